"""Parameters and arguments out of their domains, and legal ones at its ends."""

import inspect

import numpy as np
import pytest
from contract.estimators import ALL, DENSITIES, MODELS, VALUES, each
from contract.frames import bits
from sklearn.base import clone
from sklearn.utils._param_validation import (
    InvalidParameterError,
    generate_invalid_param_val,
    make_constraint,
)

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def test_every_parameter_of_a_model_has_legal_values():
    assert set(VALUES) == {name for estimator in MODELS for name in estimator.get_params()}


@each(ALL)
def test_every_parameter_is_constrained(estimator):
    X = np.array([[0, 1], [1, 1], [0, 0], [1, 0]])
    for name, constraints in estimator._parameter_constraints.items():
        allowed = [make_constraint(constraint) for constraint in constraints]
        bad = [object(), np.nan, -np.inf, np.inf, -1, 10**400, "", [], {}]
        for constraint in allowed:
            # Some have no value that is bad for sure.
            try:
                bad.append(generate_invalid_param_val(constraint))
            except NotImplementedError:
                continue
        for value in bad:
            if any(constraint.is_satisfied_by(value) for constraint in allowed):
                continue
            model = clone(estimator).set_params(**{name: value})
            for method in ("fit", "partial_fit"):
                if hasattr(model, method):
                    with pytest.raises(InvalidParameterError, match=f"The {name!r} parameter of"):
                        getattr(model, method)(X)
            assert not hasattr(model, "n_features_in_")


@each(MODELS)
def test_arguments_of_methods(estimator):
    X = np.array([[0.0, 1], [1, 1], [0, 0], [1, np.nan]])
    model = clone(estimator).fit(X[:3])
    calls = [("sample", {"n_samples": 0}), ("sample", {"n_samples": 1.5}),
             ("sample", {"random_state": "a"}), ("impute", {"X": X, "how": "median"}),
             ("impute", {"X": X, "random_state": -1}),
             ("impute", {"X": X, "n_steps": 0}), ("sample", {"n_steps": -1}),
             ("sample", {"temperature": 0.0}), ("sample", {"given": 3}),
             ("impute", {"X": X, "method": "magic"}), ("gibbs", {"V": X[:3], "n_steps": -1}),
             ("log_partition", {"method": "magic"}), ("log_partition", {"n_chains": 0}),
             ("log_partition", {"n_temperatures": 0}), ("tap_solutions", {"max_iter": 0}),
             ("inference", {"X": X[:3], "confidence_level": 1.0})]  # fmt: skip
    for method, arguments in calls:
        known = getattr(model, method, None)
        (name,) = arguments.keys() - {"X", "V"}
        if callable(known) and name in inspect.signature(known).parameters:
            with pytest.raises(InvalidParameterError, match=f"The {name!r} parameter of"):
                known(**arguments)


@each([e for e in MODELS if hasattr(e, "persistent") or hasattr(e, "chains")])
def test_batches_without_end_and_persistent_chains(estimator):
    """As many chains as the batch has rows would fill all memory."""
    going_on = {"chains": "persistent"} if hasattr(estimator, "chains") else {"persistent": True}
    model = clone(estimator).set_params(batch_size=10**12, max_iter=2, **going_on)
    assert np.isfinite(model.fit(bits(20)).score_samples(bits(20))).all()


@each([e for e in DENSITIES if getattr(e, "init", None) is not None])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_weights_that_the_type_cannot_hold(estimator, dtype):
    """Nor sums of their products: one row is enough for a NaN."""
    X = np.array([[0, 1]], dtype)
    model = clone(estimator).set_params(init=1e300)
    refused = rf"init=1e\+300 is too large.* in {dtype.__name__}"
    with pytest.raises(ValueError, match=refused):
        model.fit(X)
    assert not hasattr(model, "components_")
    assert np.isfinite(model.set_params(init=1e8).fit(X).score_samples(X)).all()
