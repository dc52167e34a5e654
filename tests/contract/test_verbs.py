"""All verbs speak of one distribution, that of score_samples: sums over all values of a row.

Of numbers with normal scores, see test_location.py.
"""

import pickle
from functools import cache, reduce

import numpy as np
import pandas as pd
import pytest
from contract.estimators import MODELS, each, name_of
from contract.test_numbers import every_kind, nodes_of
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import comb, logsumexp
from scipy.stats import chi2
from sklearn.base import clone

from oracles import assert_drawn
from oracles_rbm import agreeing, binary
from private import _network_incomplete as _incomplete
from sklearn_boltz import (
    SDCPRBM,
    FVBMPseudoLikelihood,
)
from sklearn_boltz.datasets import load_house_votes

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
# A figure may be off by this many standard errors: a false alarm in 1.7 million.
SIGMAS = 5


class Cells:
    """A fitted model, and the weights of all cells of a table by exp(score_samples)."""

    def __init__(self, estimator):
        X, rng = every_kind(), np.random.default_rng(1)
        y, weights = X.iloc[:, 0] == X.iloc[0, 0], rng.integers(1, 4, len(X))
        gaps = X.astype(object).where(rng.random(X.shape) > 0.1)
        labels = [y] if name_of(estimator) == "RBMClassifier" else []
        model = clone(estimator).fit(gaps.infer_objects(), *labels, sample_weight=weights)
        couple(model, rng)
        self.model = pickle.loads(pickle.dumps(model))
        self.table, self.names = self.model._encoder, list(X)
        nodes = [nodes_of(column) for column in self.table.columns]
        self.cells = [cells for cells, _ in nodes]
        self.places = np.indices([len(own) for own in self.cells]).reshape(len(nodes), -1)
        weight = np.prod(
            [w[place] for (_, w), place in zip(nodes, self.places, strict=True)], axis=0
        )
        self.weights = weight * np.exp(self.model.score_samples(self.rows(self.places)))
        # The values of a column, of which another word is none, and the bins of a number.
        self.values = [self._values(j) for j in range(len(nodes))]

    def rows(self, places):
        parts = zip(self.names, self.cells, places, strict=True)
        return pd.DataFrame({name: own[place] for name, own, place in parts})

    def _values(self, j):
        column = self.table.columns[j]
        bins = column.bins if column.scores is None else column.scores.bins
        if bins is None:
            return np.r_[np.arange(len(self.cells[j]) - 1), -1]
        return bins.encode(self.cells[j].astype(float)).astype(int)

    def law(self, place, missing, columns):
        """p of the values of some columns given the other cells of a row that are there."""
        known = ~np.isin(np.arange(len(place)), [*np.flatnonzero(missing), *columns])
        agree = (self.places[known] == place[known, None]).all(axis=0)
        values = np.array([self.values[j][self.places[j]] for j in columns])
        p = np.zeros([self.values[j].max() + 1 for j in columns])
        agree &= (values >= 0).all(axis=0)
        np.add.at(p, tuple(values[:, agree]), self.weights[agree])
        return p / p.sum()

    def some_rows(self, n, seed=0):
        """Places of rows, drawn from the model, and which of their cells are missing."""
        rng = np.random.default_rng(seed)
        seen = [values >= 0 for values in self.values]
        legal = reduce(np.logical_and, [s[p] for s, p in zip(seen, self.places, strict=True)])
        chosen = rng.choice(np.flatnonzero(legal), size=n)
        missing = rng.random((n, len(self.names))) < 0.5
        missing[0], missing[1] = True, False
        return self.places[:, chosen].T, missing

    def with_gaps(self, places, missing):
        rows = self.rows(places.T).astype(object).mask(missing)
        return rows.infer_objects()


def couple(model, rng):
    """Give machines large weights, which a short fit does not find."""
    weights = getattr(model, "components_", [])
    for W in weights if isinstance(weights, list) else [weights]:
        W[...] = rng.normal(0, 1.2, W.shape) if len(W) else W


@cache
def cells_of(name):
    return Cells(next(e for e in MODELS if name_of(e) == name))


@each(MODELS)
def test_probabilities_of_columns_are_ratios_of_scores(estimator):
    cells = cells_of(name_of(estimator))
    places, missing = cells.some_rows(12)
    X = cells.with_gaps(places, missing)
    atol = 1e-5 if hasattr(cells.model, "components_") else 1e-8
    for j, name in enumerate(cells.names):
        found = cells.model.predict_column_proba(X, name)
        laws = zip(places, missing, strict=True)
        expected = [cells.law(place, gaps, [j]) for place, gaps in laws]
        assert_allclose(found, expected, rtol=0, atol=atol)
        assert_array_equal(cells.model.predict_column_proba(X, name, random_state=3), found)
    pair = [0, 1]
    found = cells.model.predict_column_proba(X, cells.names[:2])
    laws = zip(places, missing, strict=True)
    expected = [cells.law(place, gaps, pair) for place, gaps in laws]
    assert_allclose(found, expected, rtol=0, atol=atol)


@each(MODELS)
def test_scores_of_rows_with_gaps_are_sums(estimator):
    cells = cells_of(name_of(estimator))
    atol = 1e-5 if hasattr(cells.model, "components_") else 1e-8
    assert_allclose(cells.weights.sum(), 1, rtol=0, atol=atol)
    places, missing = cells.some_rows(12)
    found = cells.model.score_samples(cells.with_gaps(places, missing))
    for place, gaps, log_p in zip(places, missing, found, strict=True):
        agree = (cells.places[~gaps] == place[~gaps, None]).all(axis=0)
        widths = [w[k] for (_, w), k in zip(map(nodes_of, cells.table.columns), place, strict=True)]
        weight = np.prod([w for w, gap in zip(widths, gaps, strict=True) if not gap])
        assert log_p == pytest.approx(np.log(cells.weights[agree].sum() / weight), abs=1e-5)


def numbers_of(cells, X):
    """The places of cells of a table among the values of their columns."""
    found = []
    for j, name in enumerate(cells.names):
        column = cells.table.columns[j]
        bins = column.bins if column.scores is None else column.scores.bins
        if bins is None:
            found.append([column.categories.tolist().index(value) for value in X[name]])
        else:
            found.append(bins.encode(X[name].to_numpy(dtype=float)))
    return np.array(found, dtype=int).T


@each(MODELS)
def test_draws_have_these_probabilities(estimator):
    """Three chi-square tests of 2,000 draws, with 1e-6 of false alarms in each."""
    cells, n = cells_of(name_of(estimator)), 2000
    places, _ = cells.some_rows(3)
    last = len(cells.names) - 1
    free = list(range(last))  # the last column is given
    law = cells.law(places[2], np.zeros(last + 1, dtype=bool), free)
    states = np.indices(law.shape).reshape(len(free), -1).T
    missing = np.isin(np.arange(last + 1), free)
    row = cells.with_gaps(places[2:3], missing[None])
    filled = cells.model.impute(row.loc[[0] * n], how="sample", random_state=0)
    assert_drawn(numbers_of(cells, filled)[:, free], states, law.ravel())
    name = cells.names[last]
    drawn = cells.model.sample(n, 1, given={name: row[name].iloc[0]})
    assert_drawn(numbers_of(cells, drawn)[:, free], states, law.ravel())
    law = cells.law(places[2], np.ones(last + 1, dtype=bool), list(range(last + 1)))
    states = np.indices(law.shape).reshape(last + 1, -1).T
    drawn = cells.model.sample(n, 2, n_steps=50)
    assert_drawn(numbers_of(cells, drawn), states, law.ravel())


def ratios(model, rows, name):
    """exp(score_samples) of the values of a column over their sum."""
    logs = np.column_stack([
        model.score_samples(rows.assign(**{name: pd.Series([value] * len(rows), dtype=object)}))
        for value in model._encoder.columns[rows.columns.get_loc(name)].categories.tolist()
    ])  # fmt: skip
    return np.exp(logs - logsumexp(logs, axis=1, keepdims=True))


# Tables of up to 2^16 states, and larger ones.


def coupled(n, n_hidden, seed=0):
    """An RBM with strong weights."""
    rng = np.random.default_rng(seed)
    W = rng.normal(0, 1.5, (n_hidden, n))
    return W, rng.normal(size=n) - W.sum(axis=0) / 2, rng.normal(size=n_hidden)


@pytest.mark.parametrize("kind", ["machine", "network"])
def test_tables_of_2_to_the_16_states(kind):
    V = binary(16)
    if kind == "machine":
        model = SDCPRBM.from_parameters(*coupled(16, 20))
    else:
        J = np.random.default_rng(0).normal(0, 0.5, (16, 16))
        model = FVBMPseudoLikelihood.from_couplings(np.triu(J, 1) + np.triu(J, 1).T, np.zeros(16))
        V = 2 * V - 1
    log_p = model.score_samples(V)
    assert logsumexp(log_p) == pytest.approx(0, abs=1e-4)
    assert_allclose(model.free_energy(V) + model.log_partition_, -log_p, atol=1e-6)
    p, rng = np.exp(log_p), np.random.default_rng(1)
    X = V[rng.choice(len(V), size=10)].astype(float)
    X[rng.random(X.shape) < np.linspace(0, 1, 10)[:, None]] = np.nan
    X[-1] = np.nan
    ones = [agreeing(V, p, row) @ (V[:, 3] > 0) for row in with_gap(X, 3)]
    assert_allclose(model.predict_column_proba(X, 3)[:, 1], ones, atol=1e-5)
    filled = model.impute(np.repeat(X[-1:], 4000, axis=0), how="sample", random_state=0)
    assert_drawn(filled[:, :8], *summed(V, p))
    means = model.impute(with_gap(X, 3), how="mean")[:, 3]
    assert_allclose((means - V.min()) / (V.max() - V.min()), ones, atol=1e-5)


def with_gap(X, j):
    X = X.copy()
    X[:, j] = np.nan
    return X


def summed(V, p, n=8):
    """The law of the first columns of all states."""
    first = len(V) // 2**n
    return V[::first, :n], p.reshape(-1, first).sum(axis=1)


class Halves:
    """Bits in one of two modes, given by how many are 1: none of the sums can be enumerated."""

    n = 30

    def law(self, row, j):
        """p(bit j is 1 | observed bits)."""
        known = np.delete(row, j)
        known = known[~np.isnan(known)]
        return self.ratio(int(known.sum()), len(known))


class Machine(Halves):
    """One hidden unit with strong weights, and 29 without."""

    def __init__(self):
        W = np.zeros((30, 30))
        W[0], bias = 3.0, np.full(30, -1.5)
        self.low, self.high = (1 / (1 + np.exp(-bias - w)) for w in (0, 3.0))
        c = np.zeros(30)
        c[0] = 0.6 - 30 * (np.log1p(np.exp(1.5)) - np.log1p(np.exp(-1.5)))
        self.odds = 0.6
        self.model = SDCPRBM.from_parameters(W, bias, c)

    def ratio(self, k, m):
        q = np.array([self.low[0], self.high[0]])
        w = np.array([0, self.odds]) + k * np.log(q) + (m - k) * np.log(1 - q)
        w = np.exp(w - w.max())
        return w @ q / w.sum()


class Magnet(Halves):
    """All spins are coupled to all others, alike."""

    def __init__(self):
        J = np.full((30, 30), 1.5 / 30)
        np.fill_diagonal(J, 0)
        self.model = FVBMPseudoLikelihood.from_couplings(J, np.full(30, 0.012), coding="spins")

    def log_weight(self, k):
        m = 2 * k - 30
        return 1.5 / 60 * (m**2 - 30) + 0.012 * m

    def ratio(self, k, m):
        free = np.arange(30 - m)  # of the others
        logs = np.log(comb(29 - m, free))
        one, none = (logsumexp(logs + self.log_weight(k + free + a)) for a in (1, 0))
        return 1 / (1 + np.exp(none - one))


@pytest.mark.parametrize("kind", [Machine, Magnet])
def test_what_cannot_be_enumerated_is_within_its_standard_error(kind):
    """Sums of squares of errors of 0.01 at most: 1e-6 of false alarms. Of draws, 1e-6 in each."""
    case, X = kind(), np.full((4, 30), np.nan)
    X[1, :2], X[2, :3], X[3, :4] = [0, 1], [1, 1, 0], 0
    low, high = (-1, 1) if kind is Magnet else (0, 1)
    rows = np.where(np.isnan(X), np.nan, low + (high - low) * X)
    expected = np.array([case.law(row, 5) for row in X])
    assert 0.3 < expected[0] < 0.8
    found = [case.model.predict_column_proba(rows, 5, random_state=s)[:, 1] for s in range(3)]
    squares = ((np.array(found) - expected) ** 2).sum() / 0.01**2
    assert squares < chi2.isf(1e-6, 12)
    assert_allclose(np.diff(case.model.score_samples(ends(rows, 5, low, high)))[0],
                    np.log(expected[0] / (1 - expected[0])), atol=0.5)  # fmt: skip
    n, given = 300, {int(j): rows[1, j] for j in (0, 1)}
    filled = case.model.impute(np.repeat(rows[:1], n, axis=0), how="sample", random_state=0)
    for p, drawn in zip(expected, (filled, case.model.sample(n, 1, given=given)), strict=False):
        error = SIGMAS * np.sqrt(p * (1 - p) / n)
        assert abs((drawn[:, 5] == high).mean() - p) < error + 0.03
    # Half of 20 chains of each row may be in either mode.
    mean = case.model.impute(np.repeat(rows[:1], 50, axis=0), random_state=0)[:, 5].mean()
    assert (mean - low) / (high - low) == pytest.approx(expected[0], abs=0.03 + SIGMAS * 0.016)


def ends(rows, j, low, high):
    found = np.repeat(rows[:1], 2, axis=0)
    found[:, j] = low, high
    return found


def test_a_row_without_a_vote_has_the_share_of_the_parties():
    """From every seed."""
    votes = load_house_votes()
    model = SDCPRBM(20, max_iter=20, early_stopping=False, random_state=0).fit(votes)
    row = votes.iloc[[0]].astype(object).mask(np.ones((1, 17), dtype=bool))
    expected = ratios(model, row, "party")
    for seed in range(4):
        p = model.predict_column_proba(row, "party", random_state=seed)
        assert_allclose(p, expected, atol=1e-6)


@pytest.mark.parametrize("kind", [Machine, Magnet])
def test_uncertain_probabilities_are_told(kind, monkeypatch):
    monkeypatch.setattr(_incomplete, "N_DRAWS", ())  # of networks: no draws before annealing
    with pytest.warns(UserWarning, match=r"column 2 have standard errors .* in 3 of 3 rows"):
        kind().model.predict_column_proba(np.full((3, 30), np.nan), 2, n_steps=1)
