"""Rows of the files of a folder or an Arrow dataset, whose columns are compared first."""

import os
from pathlib import Path

from sklearn_boltz.tables._frames import optional
from sklearn_boltz.tables._libraries import in_one_zone


def open_dataset(path):
    """The dataset of a parquet file or of a folder of them."""
    message = (
        f"Reading {os.fspath(path)!r} needs pyarrow, which is not installed: run `pip install "
        "pyarrow`, or give a callable that yields arrays."
    )
    dataset = optional("pyarrow.dataset", message)
    folder = Path(path)
    for link in sorted(folder.rglob("*")) if folder.is_dir() else ():
        if link.is_symlink() and not link.exists():
            raise FileNotFoundError(
                f"{str(link)!r} is a link to a file that does not exist. Restore the file, or "
                "remove the link."
            )
    return dataset.dataset(path, format="parquet")


def agreed(dataset):
    """A dataset whose files have the same columns, in types that hold the values of all.

    Arrow would read the columns of the first file: others would be left out, or missing cells. A
    dataset with columns that are not those of its first file, nor names of folders, has been given
    a schema, and is read as that says.
    """
    if not hasattr(dataset, "files") or not dataset.files:
        return dataset
    files = list(dataset.get_fragments())
    partitioning = getattr(dataset, "partitioning", None)
    of_folders = set(partitioning.schema.names) if partitioning is not None else set()
    first, names = files[0], files[0].physical_schema.names
    if set(dataset.schema.names) - of_folders != set(names) - of_folders:
        return dataset
    for file in files[1:]:
        _check_names(first.path, names, file.path, file.physical_schema.names)
    schema = _with_types(dataset.schema, files)
    if schema.equals(dataset.schema):
        return dataset
    return type(dataset)(files, schema, dataset.format, dataset.filesystem)


def _check_names(first, names, path, others):
    lacks, more = [n for n in names if n not in others], [n for n in others if n not in names]
    if lacks or more:
        parts = [f"lacks {_columns(lacks)}"] * bool(lacks) + [f"has {_columns(more)}"] * bool(more)
        raise ValueError(
            f"The files have different columns: {path!r} {' and '.join(parts)}, other than "
            f"{first!r}. Rename or add columns, or choose some of them by the schema of "
            "pyarrow.dataset.dataset(path, schema=...)."
        )


def _columns(names):
    return f"column{'s' * (len(names) > 1)} {', '.join(map(repr, names))}"


def _with_types(schema, files):
    """A schema with types of columns that hold the values of all files."""
    import pyarrow

    for i, field in enumerate(schema):
        own = [(file, file.physical_schema.field(field.name)) for file in files
               if field.name in file.physical_schema.names]  # fmt: skip
        common = field
        for file, other in own:
            try:
                types = in_one_zone(common.type, other.type)
                pair = [pyarrow.schema([field.with_type(own)]) for own in types]
                common = pyarrow.unify_schemas(pair, promote_options="permissive").field(0)
            except (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError) as error:
                raise ValueError(
                    f"Column {field.name!r} is of type {other.type} in {file.path!r}, and of type "
                    f"{common.type} in {own[0][0].path!r} and others. Write it as one type, or "
                    "give the types by pyarrow.dataset.dataset(path, schema=...)."
                ) from error
        schema = schema.set(i, common.with_metadata(field.metadata))
    return schema


def read(dataset, n_rows):
    """Tables of PyArrow from files, a few row groups at a time, without an index of pandas."""
    from pyarrow import ArrowInvalid, Table

    index = (dataset.schema.pandas_metadata or {}).get("index_columns", ())
    columns = [name for name in dataset.schema.names if name not in index]
    # Threads would read ahead while the rows are used, up to a GiB.
    options = {"batch_readahead": 2, "fragment_readahead": 1, "use_threads": False}
    try:
        for batch in dataset.to_batches(columns=columns, batch_size=n_rows, **options):
            yield Table.from_batches([batch])
    except ArrowInvalid as error:  # of a file of text, whose first rows tell the types
        raise ValueError(
            f"{error}. Give the types of the columns by pyarrow.dataset.dataset(path, schema=...)."
        ) from error
