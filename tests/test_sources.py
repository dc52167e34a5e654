"""What a source of batches loses is told: columns, types, batches, links."""

import os

import numpy as np
import pandas as pd
import pytest
from conftest import cases
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.base import clone

from sklearn_boltz import SDCPRBM, FSLLDensity, FVBMPseudoLikelihood
from sklearn_boltz.batches import Batches

pa = pytest.importorskip("pyarrow")
dataset = pytest.importorskip("pyarrow.dataset")
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

# What a column may become in a later file, and whether both have a type in common.
TYPES = {
    "same": (lambda x: x, True),
    "fractions": (lambda x: x / 2, True),
    "narrow": (lambda x: x.astype(np.int8), True),
    "missing": (lambda x: pd.Series([None] * len(x), dtype="Int64"), True),
    "strings": (lambda x: x.astype(str), False),
}
NAMES = {
    "same": lambda frame: frame,
    "other order": lambda frame: frame[frame.columns[::-1]],
    "renamed": lambda frame: frame.rename(columns={"b": "beta"}),
    "absent": lambda frame: frame.drop(columns="b"),
    "extra": lambda frame: frame.assign(more=1),
}
CHANGES = st.tuples(st.sampled_from(list(NAMES)), st.sampled_from(list(TYPES)))


def frame(seed=0, n=40):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(rng.integers(3, size=(n, 3)), columns=list("abc"))


def write(frames, folder):
    for i, one in enumerate(frames):
        one.to_parquet(folder / f"{i}.parquet", index=False)


@settings(max_examples=cases(20))
@given(
    st.lists(st.tuples(*map(st.sampled_from, (list(NAMES), list(TYPES)))), min_size=1, max_size=4)
)
def test_files_agree_or_are_refused_by_name(tmp_path_factory, changes):
    folder = tmp_path_factory.mktemp("files")
    frames = [frame()]
    for i, (name, kind) in enumerate(changes):
        one = frame(i + 1)
        frames.append(NAMES[name](one.assign(a=TYPES[kind][0](one["a"]))))
    write(frames, folder)
    bad = [i for i, change in enumerate(changes) if change[0] not in ("same", "other order")]
    wrong = [i for i, change in enumerate(changes) if not TYPES[change[1]][1]]
    if bad:
        with pytest.raises(
            ValueError, match=rf"different columns: '.*{bad[0] + 1}\.parquet' (lacks|has)"
        ):
            Batches(folder)
    elif wrong:
        with pytest.raises(ValueError, match=r"Column 'a' is of type .*string in '.*parquet'"):
            Batches(folder)
    else:
        read = pa.concat_tables(list(Batches(folder))).to_pandas()
        expected = pd.concat(frames, ignore_index=True)
        assert_allclose(read.astype(float), expected[list("abc")].astype(float))


def test_partitions_and_given_schemas_are_no_other_columns(tmp_path):
    for part in ("x", "y"):
        (tmp_path / f"kind={part}").mkdir()
        write([frame()], tmp_path / f"kind={part}")
    hive = dataset.dataset(tmp_path, partitioning="hive")
    assert set(next(iter(Batches(hive))).column_names) == {"a", "b", "c", "kind"}
    write([frame().assign(d=1.5), frame()], tmp_path)
    schema = pa.schema({"c": pa.float64(), "a": pa.int64()})
    chosen = dataset.dataset([str(tmp_path / f"{i}.parquet") for i in range(2)], schema=schema)
    assert next(iter(Batches(chosen))).column_names == ["c", "a"]


def test_a_link_to_nothing(tmp_path):
    write([frame()], tmp_path)
    os.symlink(tmp_path / "gone", tmp_path / "1.parquet")
    with pytest.raises(FileNotFoundError, match=r"1\.parquet' is a link to a file that does not"):
        Batches(tmp_path)


def test_a_file_of_text_whose_types_change(tmp_path):
    """Between files they are found; within a file, after what is looked at, the error says how."""
    whole, fractions = tmp_path / "0.csv", tmp_path / "1.csv"
    frame().to_csv(whole, index=False)
    (frame() / 2).to_csv(fractions, index=False)
    model = FVBMPseudoLikelihood().fit(dataset.dataset([str(whole), str(fractions)], format="csv"))
    assert len(model.categories_[0]) == 4
    whole.write_text(
        frame(n=400).to_csv(index=False) + (frame() / 2).to_csv(index=False, header=False)
    )
    options = pytest.importorskip("pyarrow.csv").ReadOptions(block_size=1000)
    text = dataset.CsvFileFormat(read_options=options)
    with pytest.raises(ValueError, match="CSV conversion.*Give the types of the columns by"):
        FVBMPseudoLikelihood().fit(dataset.dataset(str(whole), format=text))
    schema = pa.schema(dict.fromkeys("abc", pa.float64()))
    model = FVBMPseudoLikelihood().fit(dataset.dataset(str(whole), format=text, schema=schema))
    assert len(model.categories_[0]) == 4


@pytest.mark.parametrize("change", ["renamed", "absent", "extra", "other order"])
@pytest.mark.parametrize("make", [Batches, lambda frames: Batches(lambda: iter(frames))])
def test_batches_with_other_columns(make, change):
    with pytest.raises(ValueError, match="In batch 1: The feature names should match"):
        FVBMPseudoLikelihood().fit(make([frame(), NAMES[change](frame(1))]))


class Source:
    """Passes over batches; after a whole one, they lack the last batch or fail before it."""

    def __init__(self, batches, failure):
        self.batches, self.failure, self.is_whole = batches, failure, True

    def __call__(self):
        yield from self.batches[:-1]
        if self.is_whole:
            yield self.batches[-1]
            self.is_whole = False
        elif self.failure is not None:
            raise self.failure


@pytest.mark.parametrize("model", [FSLLDensity(), FVBMPseudoLikelihood(), SDCPRBM(2, max_iter=1)],
                         ids=lambda model: type(model).__name__)  # fmt: skip
@pytest.mark.parametrize("failure", [None, OSError("the share is gone")], ids=["ends", "fails"])
def test_a_later_pass_that_yields_less(model, failure):
    # Strings need a pass to be counted, and another one.
    batches = [frame(k).astype(str).add("!") for k in range(4)]
    match = "120 rows in 3 batches, the first one 160 in 4" if failure is None else "share is gone"
    model = clone(model)
    with pytest.raises(ValueError if failure is None else OSError, match=match):
        model.fit(Batches(Source(batches, failure)))
    assert not hasattr(model, "n_features_in_")
