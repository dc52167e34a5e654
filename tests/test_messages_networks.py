"""Messages of networks with figures that depend on the machine, and remedies that are followed."""

import re
import warnings

import numpy as np
import pandas as pd
import pytest
from networks import fit
from sklearn.exceptions import ConvergenceWarning

from sklearn_boltz import (
    BoltzmannImputer,
    FSLLDensity,
    FVBMPseudoLikelihood,
    MaximumEntropy,
    SparseFVBM,
    statistics,
)


def table(n_values=2, n=200, d=4):
    return np.random.default_rng(0).integers(n_values, size=(n, d))


def told(call):
    """The one warning that a fit did not converge."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    (found,) = [str(w.message) for w in caught if issubclass(w.category, ConvergenceWarning)]
    return found


def test_more_values_as_the_message_says():
    again = fit(table(), alpha=0.1, columns=[range(3), range(2), range(2), range(2)])
    assert np.isfinite(again.score_samples([[2, 0, 1, 0], [np.nan, 0, 1, 0]])).all()


def test_the_least_temperature_of_the_message():
    model = fit(table(), alpha=0.1)
    with pytest.raises(ValueError, match="log-weights are too large for") as caught:
        statistics.thermodynamics(model, [1.0, 1e-320])
    message = str(caught.value)
    assert message.endswith("or more; at that temperature only the most probable states are left.")
    least = float(message.split("Use ")[1].split(" or more")[0])
    # The least temperature is shown in two digits.
    assert abs(statistics.thermodynamics(model, [1.1 * least]).entropy[0]) < 10


@pytest.mark.parametrize(
    "n_values, options, remedies",
    [
        (2, {"alpha": 0.01}, "or use a larger alpha"),
        (2, {"alpha": 0.0}, "or set alpha > 0"),
        (2, {"alpha": 0.01, "solver": "bslm"}, "use solver='newton', or use a larger alpha"),
        (2, {"alpha": 0.0, "solver": "lbfgs"}, "use solver='newton', or set alpha > 0"),
        (2, {"alpha": 0.01, "kind": MaximumEntropy}, "or use a larger alpha"),
        (3, {"alpha": 0.0, "solver": "lbfgs"}, "or set alpha > 0"),
    ],
)
def test_an_early_end_names_what_is_not_yet_set(n_values, options, remedies):
    message = told(lambda: fit(table(n_values), max_iter=1, **options))
    name = "log-likelihood" if "kind" in options else "log pseudo-likelihood"
    assert message.startswith("The fit ended at max_iter=1 before it converged")
    assert message.endswith(f". Raise max_iter, {remedies}.")
    if n_values == 2:
        assert f"converged; the maximum of the {name} " in message and " nats higher. " in message


@pytest.mark.parametrize(
    "alpha, remedy", [(0.01, "use a larger alpha"), (0, "set alpha > 0")]
)  # fmt: skip
def test_an_early_end_with_very_many_parameters(alpha, remedy):
    message = told(lambda: fit(2 * table(n=300, d=78) - 1, max_iter=2, alpha=alpha))
    # Newton's method would not run.
    assert message.endswith(f" with so many parameters. Raise max_iter, or {remedy}.")
    assert " is is " not in message


def test_an_early_end_by_tol():
    rng = np.random.default_rng(0)
    X = rng.choice([-1, 1], size=(4000, 1)) * np.where(rng.random((4000, 4)) < 0.01, -1, 1)
    message = told(lambda: fit(X, solver="bslm", tol=1e-2, alpha=1e-9))
    assert message.endswith(" nats higher. Lower tol, use solver='newton', or use a larger alpha.")


def mixed():
    """A column of three categories, of which one has no row, and two of bits."""
    codes = np.random.default_rng(0).integers(2, size=(200, 3))
    few = pd.Categorical(np.array(["x", "y"])[codes[:, 0]], categories=["x", "y", "z"])
    return pd.DataFrame({"few": few, "b": codes[:, 1], "c": codes[:, 2]})


def refused(model, X):
    """What a fit says when it refuses a table."""
    with pytest.raises(ValueError) as caught:
        model.fit(X)
    return str(caught.value)


@pytest.mark.parametrize("option", [
    {"terms": [("few", "b", "c")]}, {"count_potential": True}, {"alpha": 0.1},
    {"sampler": lambda J, h, n, rng: None},
])  # fmt: skip
def test_options_for_binary_columns(option):
    X = mixed()
    message = refused(MaximumEntropy(**option), X)
    assert f"{next(iter(option))}` " in message and "column 'few' has more than two" in message
    codes = X.assign(few=X["few"].astype(str))
    assert np.isfinite(MaximumEntropy(random_state=0).fit(codes).score(codes))


def test_terms_of_three_columns_that_are_not_binary():
    X = pd.DataFrame(table(3, d=2), columns=["a", "b"]).astype(str)
    message = refused(SparseFVBM(max_order=3), X)
    assert message.endswith("Use FSLLDensity or one-hot columns, or max_order=2.")
    one_hot = pd.get_dummies(X).astype(int)
    models = (FSLLDensity(), X), (SparseFVBM(max_order=3), one_hot), (SparseFVBM(max_order=2), X)
    for model, rows in models:
        assert np.isfinite(model.fit(rows).score(rows))


def test_missing_cells_in_many_columns_for_maximum_entropy():
    X = table(d=26).astype(float)
    X[::7, 0] = np.nan
    message = refused(MaximumEntropy(), X)
    assert message.endswith("or fill the cells by `impute(X, how='sample')` of such a model.")
    filled = FVBMPseudoLikelihood(alpha=0.1).fit(X).impute(X, how="sample", random_state=0)
    model = MaximumEntropy(alpha=0.1, moment_tol=3, random_state=0).fit(filled)
    assert model.converged_


def test_missing_cells_beside_further_terms():
    X = table().astype(float)
    X[::7, 0] = np.nan
    model = MaximumEntropy(terms=[(0, 1, 2)])
    assert refused(model, X).endswith("Fill them, for example by BoltzmannImputer.")
    assert model.fit(BoltzmannImputer().fit_transform(X)).converged_


@pytest.mark.parametrize("values", [["1", "2", "3"], [str(k) for k in range(100)]])
def test_strings_of_numbers_that_are_declared_as_numbers(values):
    X = pd.DataFrame({"a": np.resize(values, 200), "b": np.arange(200) % 2})
    model = FVBMPseudoLikelihood(columns={"a": "number"}, alpha=0.1)
    line = "X['a'] = pd.to_numeric(X['a'].str.strip())"
    assert refused(model, X).endswith(f"They are numbers. Convert the column: {line}.")
    exec(line)
    assert np.isfinite(model.fit(X).score(X))


@pytest.mark.parametrize("values", [["p", "q", "r"], [0.5, 1.5, 2.5]])
def test_more_values_in_a_column_that_is_declared_as_binary(values):
    X = pd.DataFrame({"a": np.resize(values, 200), "b": np.arange(200) % 2})
    message = refused(FVBMPseudoLikelihood(columns={"a": "binary"}), X)
    remedies = re.findall("'([a-z]+)'", message.split("Declare it as")[1])
    assert remedies == ["nominal", "number"][: 1 + (values[0] != "p")]
    for kind in remedies:
        model = FVBMPseudoLikelihood(columns={"a": kind}, alpha=0.1)
        assert np.isfinite(model.fit(X).score(X))
