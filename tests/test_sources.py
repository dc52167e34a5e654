"""What a source of batches loses is told: columns, types, batches, links."""

import os
import re
from decimal import Decimal
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
from conftest import cases
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from rounding import within
from sklearn.base import clone

from private import form_of
from sklearn_boltz import SDCPRBM, FSLLDensity, FVBMPseudoLikelihood
from sklearn_boltz.batches import Batches

pa = pytest.importorskip("pyarrow")
dataset = pytest.importorskip("pyarrow.dataset")
pytest.importorskip("pyarrow.parquet")
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

NAMES = {
    "renamed": lambda frame: frame.rename(columns={"b": "beta"}),
    "absent": lambda frame: frame.drop(columns="b"),
    "extra": lambda frame: frame.assign(more=1),
    "other order": lambda frame: frame[frame.columns[::-1]],
}
# A column of a few values, of which some are missing where its type allows it.
DAYS = pd.date_range("2024-02-28", periods=4, unit="s")
KINDS = {
    "codes": pd.Series([0, 1, 2, 2]),
    "nullable": pd.Series([3, 1, 2, None], dtype="Int16"),
    "fractions": pd.Series([0.25, 1.5, None, 2.5]),
    "words": pd.Series(["no", "yes", None, "no"]),
    "numerals": pd.Series(["1", "2", None, "2"]),
    "flags": pd.Series([True, False, True, True]),
    "days": pd.Series(DAYS).mask(np.arange(4) == 2),
    "moments": pd.Series(DAYS.tz_localize("Europe/Berlin")),
    "categories": pd.Series(pd.Categorical(["lo", "hi", None, "hi"], ["lo", "hi"], ordered=True)),
    "decimals": pd.Series([Decimal("0.10"), Decimal("2.55"), Decimal(1), None]),
}
# What a column may be in another batch.
TYPES = {
    "same": lambda x: x,
    "fractions": lambda x: x / 2 if x.dtype.kind in "iuf" else x,
    "narrow": lambda x: x.astype(np.int8) if x.dtype == np.int64 else x,
    "missing": lambda x: pd.Series([None] * len(x), x.index, dtype=object),
    "strings": lambda x: x.astype(str),
    "wide": lambda x: x * 1000 if x.dtype == np.int64 else x,
    "fine": lambda x: x.dt.as_unit("us") + pd.Timedelta("1us") if x.dtype.kind == "M" else x,
    "coarse": lambda x: x.dt.floor("D").dt.as_unit("ms") if x.dtype.kind == "M" else x,
}
LIBRARIES = {
    "pandas": lambda frame: frame,
    "polars": lambda frame: pl.from_arrow(LIBRARIES["PyArrow"](frame)),
    "PyArrow": lambda frame: pa.Table.from_pandas(frame, preserve_index=False),
}
FORMS = ["list", "callable", "iterator", "parquet", "dataset", "record batches"]
FAILURES = ["none", "none", "ends", "short", "extra", "fails"]
# Words of an error that tell what is wrong with a source.
BLAMED = re.compile(
    r"[Cc]olumns? |[Bb]atch(es)? |\.parquet|feature names|the share is gone|one pass"
)


# To make a failing case smaller takes minutes.
UNSHRUNK = (Phase.explicit, Phase.reuse, Phase.generate)


def frame(seed=0, n=40):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(rng.integers(3, size=(n, 3)), columns=list("abc"))


def write(frames, folder):
    for i, one in enumerate(frames):
        one.to_parquet(folder / f"{i}.parquet", index=False)


class Source:
    """Passes over batches; after a whole one they yield less or more, or fail."""

    def __init__(self, batches, failure):
        self.batches, self.failure = batches, failure
        self.is_whole, self.has_failed = True, False

    def __call__(self):
        yield from self.batches[:-1]
        self.has_failed = not self.is_whole and self.failure != "none"
        if self.has_failed and self.failure == "fails":
            raise OSError("the share is gone")
        yield from (
            {"ends": [], "extra": self.batches[-1:] * 2, "short": [self.batches[-1][:-1]]}[
                self.failure
            ]
            if self.has_failed
            else self.batches[-1:]
        )
        self.is_whole = False


@st.composite
def pieces(draw):
    """Frames of pandas with the same columns, or almost, and whether they are the same."""
    kinds = draw(st.lists(st.sampled_from(list(KINDS)), min_size=3, max_size=3))
    sizes = draw(st.lists(st.sampled_from([1, 2, 20, 30, 30]), min_size=1, max_size=4))
    rng, found, same = np.random.default_rng(draw(st.integers(0, 99))), [], True
    for n in [60, *sizes]:
        rows = rng.integers(4, size=n)
        one = pd.DataFrame({
            name: KINDS[kind][rows].reset_index(drop=True)
            for name, kind in zip("abc", kinds, strict=True)
        })  # fmt: skip
        if found and draw(st.sampled_from([False, False, True])):
            change = draw(st.sampled_from([*NAMES, *TYPES]))
            same &= change == "same"
            one = NAMES[change](one) if change in NAMES else one.assign(a=TYPES[change](one["a"]))
        found.append(one)
    order = draw(st.permutations(range(len(found))))
    return [found[k] for k in order], same


def through_parquet(path, frame):
    """Write a frame; it comes back with the types that a file has."""
    pa.parquet.write_table(LIBRARIES["PyArrow"](frame), path)
    return pa.parquet.read_table(path)


def types_of(table):
    return table.schema.types if isinstance(table, pa.Table) else list(table.dtypes)


def as_source(form, library, frames, failure, folder):
    """What `Batches` takes; the passes over it; and a function that makes one table of frames."""
    make, passes = LIBRARIES[library], None
    if form in ("parquet", "dataset"):
        make = partial(through_parquet, folder / "../whole.parquet")
        for k, one in enumerate(frames):
            through_parquet(folder / f"{k}.parquet", one)
        if failure != "none":
            os.truncate(folder / "0.parquet", 100)
        source = folder if form == "parquet" else dataset.dataset(folder)
    elif form == "record batches":
        make = LIBRARIES["PyArrow"]
        source = [batch for one in frames for batch in make(one).to_batches()]
    else:
        source = list(map(make, frames))
        passes = Source(source, failure)
        source = {"list": source, "iterator": iter(source)}.get(form, passes)
    return source, passes, make


@pytest.mark.parametrize("model", [FSLLDensity(), FVBMPseudoLikelihood(alpha=0.01)],
                         ids=lambda model: type(model).__name__)  # fmt: skip
@pytest.mark.filterwarnings("ignore")
@settings(max_examples=cases(25), phases=UNSHRUNK)
@given(some=pieces(), form=st.sampled_from(FORMS), library=st.sampled_from(list(LIBRARIES)),
       failure=st.sampled_from(FAILURES))  # fmt: skip
def test_the_fit_of_a_source_is_that_of_its_table(
    tmp_path_factory, model, some, form, library, failure
):
    """Or an error names a batch, a file or a column; the same frames are never refused."""
    (frames, same), folder = some, tmp_path_factory.mktemp("files")
    model, passes = clone(model), None
    try:
        source, passes, make = as_source(form, library, frames, failure, folder)
        model.fit(Batches(source))
    except (ValueError, TypeError, OSError) as error:
        assert BLAMED.search(str(error)), repr(error)
        is_damaged = passes is None and failure != "none"
        needs_passes = form == "iterator" and "one pass" in str(error)
        assert not same or is_damaged or needs_passes or passes.has_failed, repr(error)
        assert not hasattr(model, "n_features_in_")
        return
    assert passes is None or not passes.has_failed
    try:
        table = make(pd.concat(frames, ignore_index=True)[list(model.feature_names_in_)])
    except (pa.ArrowInvalid, pa.ArrowTypeError):  # values of several types
        return
    whole = clone(model).fit(table)
    scores, found = model.score_samples(table), whole.score_samples(table)
    assert_allclose(scores, found, rtol=1e-3, atol=2 * within(whole.tol))  # of either
    types = [str(types_of(one.sample(3, random_state=0))) for one in (model, whole)]
    assert not same or types[0] == types[1]


NOON, FINE = pd.Timestamp(2020, 1, 1, 12), pd.Timestamp(2020, 1, 2, 3, 0, 0, 7)
# Two types of a column, and a value of each that the other one cannot hold, or perhaps not.
PAIRS = {
    "Int8 and Int64": ("Int8", 1, "Int64", 300),
    "float and Float64": ("float32", 0.5, "Float64", 0.1),
    "unsigned and signed": ("uint64", 2**63 + 5, "Int64", -1),
    "int and text": ("int64", 5, "str", "a"), "text and object": ("string", "a", "object", 3),
    "dates": ("datetime64[s]", NOON, "datetime64[us]", FINE),
    "dates with a zone": ("datetime64[s, UTC]", NOON, "datetime64[us, UTC]", FINE),
    "Arrow int": (pa.int8(), 1, pa.int64(), 300),
    "Arrow date": (pa.date32(), NOON.date(), pa.timestamp("us"), FINE),
    "Arrow decimal": (pa.decimal128(3, 0), Decimal(7), pa.decimal128(5, 2), Decimal("1.25")),
    "Arrow dates": (pa.timestamp("s"), NOON, pa.timestamp("us"), FINE),
    "polars int": (pl.Int8, 1, pl.Int64, 300),
    "polars date": (pl.Date, NOON.date(), pl.Datetime("us"), FINE),
    "polars decimal": (pl.Decimal(3, 0), Decimal(7), pl.Decimal(5, 2), Decimal("1.25")),
    "polars dates": (pl.Datetime("ms"), NOON, pl.Datetime("us"), FINE),
}  # fmt: skip


def forms_of(frame):
    """What the values of a column are, whatever their types."""
    cells = frame["x"]
    return set(map(form_of, cells.to_pylist() if isinstance(frame, pa.Table) else list(cells)))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("what", PAIRS)
def test_samples_have_the_values_of_all_batches_whichever_comes_first(what, first):
    one, a, other, b = PAIRS[what]
    makes = [lambda dtype, x: pd.DataFrame({"x": pd.Series([x] * 30, dtype=dtype)})]
    if isinstance(one, pa.DataType):
        makes = [
            lambda dtype, x: pa.table({"x": pa.array([x] * 30, dtype)}),
            lambda dtype, x: pd.DataFrame({"x": pd.Series([x] * 30, dtype=pd.ArrowDtype(dtype))}),
        ]
    if not isinstance(one, (str, pa.DataType)):
        makes = [lambda dtype, x: pl.DataFrame({"x": pl.Series([x] * 30, dtype=dtype)})]
    for make in makes:
        batches = [make(one, a), make(other, b)][:: 1 - 2 * first]
        drawn = FSLLDensity().fit(Batches(batches)).sample(50, random_state=0)
        assert forms_of(drawn) == forms_of(batches[0]) | forms_of(batches[1])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("form", ["frames", "arrow", "polars", "parquet", "csv"])
@pytest.mark.parametrize("zones", [("Asia/Tokyo", "America/New_York"), (None, "UTC")])
def test_dates_of_two_zones_are_instants_in_utc(tmp_path, zones, form):
    """Those without a zone are no instants, and refused beside others."""
    dates = pd.Series(pd.date_range("2020-01-01 20:00", periods=40, freq="7h"), name="at")
    frames = [
        dates.dt.tz_localize(zone).dt.as_unit(unit).to_frame()
        for zone, unit in zip(zones, ("s", "us"), strict=True)
    ]
    arrow = [pa.Table.from_pandas(frame, preserve_index=False) for frame in frames]
    polars = list(map(pl.from_arrow, arrow))
    source = {"frames": frames, "arrow": arrow, "polars": polars}.get(form)
    if source is None:
        for k, frame in enumerate(frames):
            getattr(frame, f"to_{form}")(tmp_path / f"{k}.{form}", index=False)
        source = dataset.dataset(tmp_path, format=form)
    if None in zones:
        with pytest.raises(
            ValueError, match="(?i)column 'at' .*UTC.* in .*(without one in|0.*and)"
        ):
            FSLLDensity().fit(Batches(source))
        return
    model = FSLLDensity().fit(Batches(source))
    whole = pd.concat([frame["at"].dt.tz_convert("UTC").to_frame() for frame in frames])
    expected = FSLLDensity().fit(whole).score_samples(whole)
    assert_allclose(model.score_samples(whole), expected)
    drawn = model.sample(1, random_state=0)
    assert "UTC" in str(getattr(drawn, "schema", None) or drawn.dtypes)


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


def test_files_of_other_columns_and_tables_without_files(tmp_path):
    write([frame(), frame().rename(columns={"b": "beta"}).drop(columns="c")], tmp_path)
    with pytest.raises(ValueError, match="1.parquet' lacks columns 'b', 'c' and has column 'beta'"):
        Batches(tmp_path)
    (batch,) = Batches(dataset.dataset(pa.Table.from_pandas(frame())))
    assert batch.num_rows == 40


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


@pytest.mark.parametrize("model", [FSLLDensity(), FVBMPseudoLikelihood(), SDCPRBM(2, max_iter=1)],
                         ids=lambda model: type(model).__name__)  # fmt: skip
@pytest.mark.parametrize("failure", ["ends", "fails"])
def test_a_later_pass_that_yields_less(model, failure):
    # Strings need a pass to be counted, and another one.
    batches = [frame(k).astype(str).add("!") for k in range(4)]
    match = {"ends": "120 rows in 3 batches, the first one 160 in 4", "fails": "share is gone"}
    model = clone(model)
    with pytest.raises((ValueError, OSError), match=match[failure]):
        model.fit(Batches(Source(batches, failure)))
    assert not hasattr(model, "n_features_in_")


@pytest.mark.parametrize("model", [FSLLDensity(), FVBMPseudoLikelihood(alpha=0.01)])
def test_categories_in_one_batch_and_objects_in_another_are_objects(model):
    words = pd.DataFrame({"a": ["hi", "lo"] * 20, "b": ["x", "y"] * 20}, dtype=object)
    ordered = words.astype({"a": pd.CategoricalDtype(["lo", "hi"], ordered=True)})
    whole = clone(model).fit(pd.concat([words, words])).score_samples(words)
    for frames in ([words, ordered], [ordered, words]):
        fitted = clone(model).fit(Batches(frames))
        assert_allclose(fitted.score_samples(words), whole, atol=2 * within(fitted.tol))
        assert fitted.sample(2, random_state=0)["a"].dtype == object
