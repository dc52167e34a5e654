"""Networks of tables with next to nothing in them, and what users give that was refused."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from sklearn_boltz import FVBMPseudoLikelihood, MaximumEntropy, SparseFVBM, statistics

BIT = np.arange(20)[:, None] % 2


@pytest.mark.parametrize(
    "X",
    [np.zeros((20, 2), int), BIT, np.hstack([BIT, 0 * BIT]), np.arange(20)[:, None] % 3],
    ids=["constant", "one column", "one that varies", "one of three values"],
)
@pytest.mark.parametrize("alpha", ["ebic", "cv"])
@pytest.mark.parametrize("nodewise", [False, "and"])
def test_no_pair_to_choose(X, alpha, nodewise):
    penalty = "l1" if X.max() < 2 else "group"
    model = SparseFVBM(penalty=penalty, alpha=alpha, nodewise=nodewise).fit(X)
    alone = FVBMPseudoLikelihood(alpha=0.0).fit(X)
    assert not model.coupling_.any() and model.converged_
    assert_allclose(model.intercept_, alone.intercept_, atol=1e-4)
    assert len(model.alphas_) == 0 and not hasattr(model, "path_")
    assert not np.nan_to_num(model.alpha_).any()


@pytest.mark.parametrize(
    ("model", "has_gap"),
    [
        (FVBMPseudoLikelihood(), False), (FVBMPseudoLikelihood(), True),
        (FVBMPseudoLikelihood(missing="observed"), True), (FVBMPseudoLikelihood(alpha=0.0), False),
        (MaximumEntropy(), False), (FVBMPseudoLikelihood(columns=[range(3), range(2)]), False),
        (FVBMPseudoLikelihood(columns=[range(3), range(2)]), True),
    ],
)  # fmt: skip
def test_criteria_and_inference_of_constant_columns(model, has_gap):
    X = np.zeros((10, 2))
    X[0, 0] = np.nan if has_gap else 0
    model = clone(model).fit(X)
    n_terms = model.log_pseudo_likelihood(X).sum()
    for criterion in (statistics.aic, statistics.bic, statistics.ebic):
        assert_allclose(criterion(model, X), -2 * n_terms)
    result = statistics.inference(model, X)
    assert np.isnan(result.std_err).all() and not result.separated.any()


def test_edges_as_argwhere_gives_them():
    X = np.random.default_rng(0).integers(2, size=(60, 4))
    mask = np.zeros((4, 4), dtype=bool)
    mask[[0, 1, 2], [1, 3, 3]] = True
    expected = SparseFVBM(edges=mask | mask.T, alpha=0).fit(X).coupling_
    for pairs in (np.argwhere(mask), np.argwhere(mask | mask.T), np.argwhere(mask).astype("u1")):
        assert_array_equal(SparseFVBM(edges=pairs, alpha=0).fit(X).coupling_, expected)
    assert not SparseFVBM(edges=np.argwhere(mask & False), alpha=0).fit(X).coupling_.any()


def test_scores_without_a_letter():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.choice(list("AC-"), size=(100, 4)))
    X[3] = rng.choice(list("AC"), size=100)  # without a gap
    model = FVBMPseudoLikelihood().fit(X)
    scores = model.interaction_scores(ignore="-")
    assert_array_equal(scores, model.interaction_scores(ignore=[0, 0, 0, -1]))
    assert not np.allclose(scores, model.interaction_scores())


@pytest.mark.parametrize(
    ("model", "allowed"),
    [
        (FVBMPseudoLikelihood(), True),
        (FVBMPseudoLikelihood(missing="observed"), True),
        (FVBMPseudoLikelihood(solver="bslm"), True),
        (FVBMPseudoLikelihood(solver="bslm", missing="observed"), False),
        (SparseFVBM(), True),
        (SparseFVBM(max_order=3), False),
        (SparseFVBM(max_order=3, missing="observed"), True),
        (SparseFVBM(nodewise="and"), False),
        (SparseFVBM(nodewise="and", missing="observed"), True),
        (MaximumEntropy(), True),
        (MaximumEntropy(count_potential=True), False),
        (MaximumEntropy(terms=[(0, 1, 2)]), False),
    ],
)
def test_the_tag_of_missing_cells_follows_the_parameters(model, allowed):
    assert model.__sklearn_tags__().input_tags.allow_nan is allowed
    X = np.random.default_rng(0).integers(2, size=(60, 4)).astype(float)
    clone(model).fit(X)
    X[0, 0] = np.nan
    if allowed:
        model.fit(X)
    else:
        with pytest.raises(ValueError, match="missing"):
            model.fit(X)


def likert(rng, n_items=12, strength=0.7):
    """Answers of five levels with one common cause."""
    cause = rng.normal(size=(300, 1))
    answers = 2 + strength * cause + rng.normal(size=(300, n_items))
    return np.clip(np.round(answers), 0, 4).astype(int)


def test_an_empty_network_of_dependent_columns_is_told():
    X = likert(np.random.default_rng(0))
    with pytest.warns(UserWarning, match="no pair.*of 66 pairs dependent.* more. Use alpha='cv'"):
        empty = SparseFVBM(ebic_gamma=20).fit(X)
    assert not empty.coupling_.any()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("strength", [0.0, 0.7])
def test_other_networks_are_silent(strength):
    """False alarm for independent columns by the level of the tests: 1 % for this seed."""
    model = SparseFVBM().fit(likert(np.random.default_rng(0), strength=strength))
    assert model.coupling_.any() == (strength > 0)


@pytest.mark.filterwarnings("error")
def test_pairs_that_may_not_be_connected_are_not_tested():
    rng = np.random.default_rng(0)
    X = np.hstack([likert(rng, 4), likert(rng, 4)])
    apart = [(j, k) for j in range(4) for k in range(4, 8)]
    model = SparseFVBM(edges=apart).fit(X)
    assert not model.coupling_.any()


@pytest.mark.parametrize("count_potential", [False, True])
@pytest.mark.parametrize("n_columns", [1, 2])
def test_maximum_likelihood_of_one_and_two_columns(n_columns, count_potential):
    """Without a penalty, the model has the frequencies of the states."""
    X = np.array([[0, 0]] * 3 + [[0, 1]] * 4 + [[1, 0]] * 5 + [[1, 1]] * 8)[:, :n_columns]
    model = MaximumEntropy(count_potential=count_potential, tol=1e-12).fit(X)
    states, counts = np.unique(X, axis=0, return_counts=True)
    # A count potential determines nothing that one and two columns leave open.
    atol = 0.02 if count_potential else 1e-6
    assert_allclose(np.exp(model.score_samples(states)), counts / len(X), atol=atol)
