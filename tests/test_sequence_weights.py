"""Weights of similar rows, against definitions and programs of the field; effects of mutations."""

import gzip

import numpy as np
import pandas as pd
import polars as pl
import pytest
from conftest import cases
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_allclose, assert_array_equal

from sklearn_boltz import SDCPRBM, FSLLDensity, FVBMPseudoLikelihood
from sklearn_boltz.datasets import make_alignment, read_alignment
from sklearn_boltz.metrics import mutational_effect, sequence_weights

BLOCK = 128  # of columns, in the kernel
LETTERS = np.array(list("-ACDEFGHIKLMNPQRSTVWY"))


def similar_counts(rows, identity):
    """How many rows have at least that part of the sites in common, by the definition."""
    return ((rows[:, np.newaxis] == rows).mean(axis=2) >= identity).sum(axis=1)


def related_rows(n_rows, n_columns, n_values, seed=0):
    """Rows of which many resemble each other."""
    rng = np.random.default_rng(seed)
    ancestors = rng.integers(n_values, size=(3, n_columns))[rng.integers(3, size=n_rows)]
    mutated = rng.random((n_rows, n_columns)) < rng.random((n_rows, 1)) * 0.4
    return np.where(mutated, rng.integers(n_values, size=ancestors.shape), ancestors)


@settings(max_examples=cases(60))
@given(
    X=hnp.arrays(np.int16, st.tuples(st.integers(1, 12), st.integers(1, 9)),
                 elements=st.integers(0, 2)),
    identity=st.floats(0.01, 1) | st.sampled_from([1 / 9, 0.07, 0.2, 0.3, 0.57, 0.6, 0.7, 0.8]),
)  # fmt: skip
def test_weights_are_those_of_the_definition(X, identity):
    assert_array_equal(sequence_weights(X, identity), 1 / similar_counts(X, identity))


@pytest.mark.parametrize(
    ("n_columns", "identity"),
    [(1, 1.0), (BLOCK - 1, 0.3), (BLOCK, 0.8), (BLOCK + 1, 1.0), (3 * BLOCK + 7, 0.8)],
)
def test_rows_of_all_lengths_and_several_tiles(n_columns, identity):
    """Also of more values than a byte has."""
    X = related_rows(300, n_columns, 4)
    X[::9] = X[0]
    if n_columns == BLOCK:
        X[:290, 1] = 257 * np.arange(290)
    weights = sequence_weights(X, identity)
    assert_array_equal(weights, 1 / similar_counts(X, identity))
    assert len(np.unique(weights)) > 1


@pytest.mark.parametrize(
    "table",
    [
        lambda X: LETTERS[X],
        lambda X: np.where(X == 0, np.nan, X),
        lambda X: np.where(X == 0, np.nan, LETTERS[X].astype(object)),
        lambda X: pd.DataFrame(np.where(X == 0, None, LETTERS[X])).astype("string"),
        lambda X: pd.DataFrame(X).astype("Int8").replace(0, pd.NA),
        lambda X: pl.DataFrame(np.where(X == 0, None, LETTERS[X]).tolist(), orient="row"),
        lambda X: (X - 128).astype(np.int8),
        lambda X: X.astype(np.uint64) + np.uint64(2**63),
        lambda X: [[(value, "a") for value in row] for row in X.tolist()],
    ],
)
def test_any_table_of_the_same_cells(table):
    X = related_rows(80, 30, 21)
    table = table(X)
    if isinstance(table, list) and isinstance(table[0][0], tuple):
        cells = np.empty(X.shape, dtype=object)
        for place in np.ndindex(X.shape):
            cells[place] = table[place[0]][place[1]]
        table = cells
    expected = sequence_weights(X)
    assert 0.02 < expected.min() < 0.5 < expected.max()
    assert_array_equal(sequence_weights(table), expected)


def test_plmc(shared_data):
    folder = shared_data / "oracles" / "potts"
    alignment = read_alignment(folder / "plmc_DHFR.a2m.gz", focus="DYR_ECOLI", unknown="drop")
    weights = sequence_weights(alignment.codes)
    assert weights.sum() == pytest.approx(1568.104282573092, abs=1e-9)
    # plmc writes zeros for the sequences that it drops.
    with gzip.open(folder / "plmc_DHFR_weights_raw.txt.gz") as file:
        expected = np.loadtxt(file)
    assert_allclose(weights, expected[alignment.rows], rtol=1e-15)
    assert (np.delete(expected, alignment.rows) == 0).all()
    # The same where gaps are missing cells.
    codes = read_alignment(
        folder / "plmc_DHFR.a2m.gz", focus="DYR_ECOLI", unknown="drop", gaps="missing"
    ).codes
    assert_array_equal(sequence_weights(codes), weights)
    assert_array_equal(sequence_weights(np.where(codes < 0, np.nan, codes)), weights)


def test_plm_dca(shared_data):
    alignment = read_alignment(
        shared_data / "oracles" / "potts" / "plmDCA_example1_alignment.fasta.gz"
    )
    assert alignment.codes.shape == (3090, 53)
    # plmDCA leaves out repetitions first.
    rows = np.unique(alignment.letters, axis=0)
    assert sequence_weights(rows).sum() == pytest.approx(1478.2347, abs=5e-5)


@pytest.fixture(scope="module")
def family():
    found = make_alignment(300, 5, alphabet="dna", random_state=0)
    names = [f"{letter}{27 + j}" for j, letter in enumerate("ACGTA")]
    cells = np.array(list(found.alphabet))[found.codes]
    dtype = pd.CategoricalDtype(list(found.alphabet))
    found.frame = pd.DataFrame(cells, columns=names).astype(dtype)
    return found


def test_effects_by_hand(family):
    model = FVBMPseudoLikelihood(alpha=0.1).fit(family.codes)
    J, h = model.coupling_.reshape(5, 4, 5, 4), model.intercept_.reshape(5, 4)
    wild = [2, 0, 3, 1, 1]  # GATCC
    single = h[1, 2] - h[1, 0]  # A2G
    single += sum(J[1, 2, k, wild[k]] - J[1, 0, k, wild[k]] for k in (0, 2, 3, 4))
    other = h[4, 3] - h[4, 1]  # C5T
    other += sum(J[4, 3, k, wild[k]] - J[4, 1, k, wild[k]] for k in (0, 1, 2, 3))
    epistasis = J[1, 2, 4, 3] - J[1, 2, 4, 1] - J[1, 0, 4, 3] + J[1, 0, 4, 1]
    expected = [single, single + other + epistasis, other, 0]
    mutants = ["A2G", "A2G:C5T", "GATCT", "GATCC"]
    found = mutational_effect(model, "GATCC", mutants, alphabet="ACGT")
    assert_allclose(found, expected, atol=1e-12)
    for mutant in ([2, 2, 3, 1, 3], [[2, 2, 3, 1, 3]]):
        assert_allclose(mutational_effect(model, wild, mutant), expected[1:2], atol=1e-12)
    with pytest.raises(ValueError, match="position of its own"):
        mutational_effect(model, wild, "A2G", alphabet="ACGT", positions=[1, 2, 2, 4, 5])
    moved = mutational_effect(
        model, "GATCC", "A12G,C9T", alphabet="ACGT", positions=[2, 12, 3, 4, 9]
    )
    assert_allclose(moved, expected[1:2], atol=1e-12)


@pytest.mark.parametrize(
    "model",
    [FVBMPseudoLikelihood(alpha=0.1), SDCPRBM(4, max_iter=5, random_state=0), FSLLDensity()],
)
def test_effects_of_letters_are_differences_of_scores(family, model):
    """Positions are those in the names of columns; whole sequences are letters, rows or frames."""
    model.fit(family.frame)
    wild, mutants = family.frame.iloc[:1], family.frame.iloc[[3, 7, 3]]
    sequence = "".join(wild.iloc[0])
    score = model.score_samples
    expected = score(mutants) - score(wild)
    for rows in (mutants, mutants.to_numpy(), ["".join(row) for row in mutants.to_numpy()]):
        assert_allclose(mutational_effect(model, sequence, rows), expected, atol=1e-6)
    names = [
        ":".join(f"{a}{27 + j}{b}" for j, (a, b) in enumerate(zip(sequence, row, strict=True)))
        for row in mutants.to_numpy()
    ]
    found = mutational_effect(model, wild.iloc[0], names, alphabet=family.alphabet)
    assert_allclose(found, expected, atol=1e-6)
