"""Messages of networks with figures that depend on the machine, and remedies that are followed."""

import warnings

import numpy as np
import pytest
from networks import fit
from sklearn.exceptions import ConvergenceWarning

from sklearn_boltz import MaximumEntropy, statistics


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
