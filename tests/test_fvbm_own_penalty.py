"""Penalties that a user writes: the named ones again, and one that is not convex."""

import numpy as np
import pytest
from networks import categories, spins
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from sklearn_boltz import SparseFVBM


class Lasso:
    """The norm, as ``penalty="group"`` has it."""

    def value(self, norms):
        return norms

    def prox(self, norms, step):
        return np.maximum(norms - step, 0)


class MinimaxConcave:
    """Zhang (2010): its slope falls from 1 at 0 to 0 at gamma."""

    def __init__(self, gamma=1.5):
        self.gamma = gamma

    def value(self, norms):
        return np.where(norms < self.gamma, norms - norms**2 / (2 * self.gamma), self.gamma / 2)

    def prox(self, norms, step):
        curved = np.maximum(1 - step / self.gamma, 1e-12)
        soft = np.where(norms < self.gamma, np.maximum(norms - step, 0) / curved, norms)
        hard = np.where(norms**2 > step * self.gamma, norms, 0.0)
        return np.where(step < self.gamma, soft, hard)


BITS, CODES = spins(200, 6, 1), categories(300)


@pytest.mark.parametrize("table", [BITS, CODES], ids=["bits", "categories"])
@pytest.mark.parametrize("options", [
    {"alpha": 0.05}, {}, {"alpha": "cv", "cv": 2}, {"nodewise": "and"}, {"edges": [(0, 1), (1, 2)]},
])  # fmt: skip
def test_the_lasso_is_that_of_its_name(table, options):
    expected = SparseFVBM(**options, tol=1e-8).fit(table)
    model = SparseFVBM(penalty=Lasso(), **options, tol=1e-8).fit(table)
    assert_allclose(model.alpha_, expected.alpha_)
    assert_allclose(model.coupling_, expected.coupling_, atol=1e-6)
    assert_allclose(model.history_["log_pseudo_likelihood"][-1:],
                    expected.history_["log_pseudo_likelihood"][-1:])  # fmt: skip


@pytest.mark.parametrize("table", [BITS, CODES], ids=["bits", "categories"])
def test_a_penalty_that_is_not_convex_ends_at_a_local_minimum(table):
    """No small change of a pair raises the mean log pseudo-likelihood less the penalty."""
    penalty, alpha, binary = MinimaxConcave(), 0.05, table is BITS
    model = SparseFVBM(penalty=penalty, alpha=alpha, standardize=False, tol=1e-9).fit(table)
    starts = np.append(0, np.cumsum(np.ones(6) if binary else model.n_values_)).astype(int)
    sizes = model.n_values_ - 1
    lasso = SparseFVBM(alpha=alpha, standardize=False).fit(table)
    assert np.abs(model.coupling_).max() > np.abs(lasso.coupling_).max() + 0.01

    def objective(coupling):
        model.coupling_ = coupling
        cost = 0.0
        for j in range(len(sizes)):
            for k in range(j):
                block = coupling[starts[k] : starts[k + 1], starts[j] : starts[j + 1]]
                norm = np.linalg.norm(block) * (1 if binary else 0.5)
                cost += np.sqrt(sizes[j] * sizes[k]) * penalty.value(np.array([norm]))[0]
        return model.log_pseudo_likelihood(table).mean() - alpha * cost

    best, rng = model.coupling_.copy(), np.random.default_rng(0)
    value = objective(best)
    for _ in range(100):
        j, k = sorted(rng.choice(len(sizes), 2, replace=False))
        rows, columns = slice(starts[j], starts[j + 1]), slice(starts[k], starts[k + 1])
        step = 1e-4 * rng.normal(size=best[rows, columns].shape)
        step -= 0 if binary else step.mean(axis=0) + step.mean(axis=1)[:, None] - step.mean()
        changed = best.copy()
        changed[rows, columns] += step
        changed[columns, rows] += step.T
        assert objective(changed) <= value + 1e-10


def test_scikit_learn_clones_and_searches_it():
    model = clone(SparseFVBM(penalty=MinimaxConcave(2.0), alpha=0.05))
    assert model.penalty.gamma == 2.0
    search = GridSearchCV(model, {"penalty": ["group", MinimaxConcave(1.0)]}, cv=3).fit(BITS)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
