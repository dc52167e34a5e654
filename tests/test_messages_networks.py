"""Messages of networks are about the case at hand, and their remedies work."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from sklearn_boltz import SDCPRBM, FSLLDensity, FVBMPseudoLikelihood
from sklearn_boltz.fully_visible import compare_groups
from sklearn_boltz.inspection import PathDisplay

NETWORK = FVBMPseudoLikelihood(alpha=0.1)
ONLY = "In the training data this column has the values {} and 1 only. Correct the cell, or write"


def table(n_values=2, n=200, d=4, seed=0):
    return np.random.default_rng(seed).integers(n_values, size=(n, d))


def refusal(call):
    with pytest.raises((ValueError, TypeError)) as caught:
        call()
    return str(caught.value)


def told(call, category=UserWarning):
    """The one warning of a call."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    (found,) = [str(w.message) for w in caught if issubclass(w.category, category)]
    return found


def fitted(X, **options):
    return FVBMPseudoLikelihood(alpha=0.1, **options).fit(X)


# Rows for a fitted model.


def no_advice_for_fit(message):
    return not any(
        words in message
        for words in ("If they are categories", "`fit` takes", "looks like a code", "Encode")
    )


@pytest.mark.parametrize("method", ["score_samples", "transform", "impute", "partial_fit"])
def test_a_value_beyond_the_two_of_the_training_data(method):
    model = fitted(table())
    message = refusal(lambda: getattr(model, method)([[2, 0, 1, 0]]))
    assert "values 0 and 1 in column 0, but row 0 has the value 2. In the training" in message
    assert ONLY.format(0) + " it as NaN; to allow more values, fit again with `n_val" in message
    assert no_advice_for_fit(message)
    again = fitted(table(), n_values=[3, 2, 2, 2])
    assert np.isfinite(again.score_samples([[2, 0, 1, 0], [np.nan, 0, 1, 0]])).all()


def test_other_numbers_for_a_network_of_two_values():
    model, signs = fitted(table()), fitted(2 * table() - 1)
    message = refusal(lambda: model.score_samples([[0, -1, 1, 0]]))
    assert message.endswith(ONLY.format(0) + " it as NaN.") and no_advice_for_fit(message)
    assert "column 1, but row 0 has the value -1" in message
    # Of what is 0.5 or 0, a threshold would make a value.
    for network, low, row in ((model, 0, [0.5, 0, 1, 0]), (signs, -1, [0, -1, 1, 2])):
        message = refusal(lambda network=network, row=row: network.score_samples([row]))
        assert ONLY.format(
            low
        ) + " it as NaN; to allow other numbers, fit again with `binarize`." in (message)
        assert no_advice_for_fit(message)


def test_tables_in_the_other_coding_are_recoded():
    X = table()
    model, signs = fitted(X), fitted(2 * X - 1)
    assert "Recode it by (X + 1) / 2." in refusal(lambda: model.score_samples(2 * X - 1))
    assert "Recode it by 2 * X - 1." in refusal(lambda: signs.score_samples(X))
    density = FSLLDensity().fit(X)
    assert "Recode it by (X + 1) / 2." in refusal(lambda: density.score_samples(2 * X - 1))


@pytest.mark.parametrize("model", [NETWORK, FSLLDensity()], ids=lambda m: type(m).__name__)
@pytest.mark.parametrize("value", [7, -1, 0.5])
def test_other_numbers_for_a_model_of_three_values(model, value):
    model.fit(table(3))
    message = refusal(lambda: model.score_samples([[value, 0, 1, 2]]))
    assert f"values from 0 to 2 in column 0, but row 0 has the value {value}. " in message
    assert no_advice_for_fit(message) and "orrect the cell" in message and "NaN" in message
    assert ("Set `n_values`" in message) == (value == 7)
    assert "use words" not in message


@pytest.mark.parametrize("value", [-1, 0.5])
def test_other_numbers_for_a_density_of_two_values(value):
    model = FSLLDensity().fit(table())
    message = refusal(lambda: model.score_samples([[0, value, 1, 0]]))
    assert f"values from 0 to 1 in column 1, but row 0 has the value {value}. " in message
    assert message.endswith(
        "The training data have no other values. Correct the cell, or write it as NaN."
    )
    assert no_advice_for_fit(message)


def test_in_fit_the_advice_is_about_fit():
    X = table().astype(float)
    X[3, 1] = -1
    for model in (NETWORK, FSLLDensity()):
        message = refusal(lambda model=model: model.fit(X))
        assert "`fit` takes NaN" in message and "training data" not in message


def test_energy_before_fit():
    with pytest.raises(NotFittedError):
        FVBMPseudoLikelihood().energy(table())


# Samples.


@pytest.mark.parametrize(
    "frame, value",
    [
        ({"lev": 1 + table(5)[:, 0], "other": table(5)[:, 1] + 1}, "'lev' is 5"),
        ({"lev": np.array(["u", "v"])[table()[:, 0]], "b": table()[:, 1]}, "'lev' is v"),
        ({"lev": np.array(["u", "v", "w"])[table(3)[:, 0]], "b": table()[:, 1]}, "'lev' is w"),
        ({"lev": table()[:, 0], "b": table()[:, 1]}, "'lev' is 1"),
        ({"lev": 2 * table()[:, 0] - 1, "b": 2 * table()[:, 1] - 1}, "'lev' is 1"),
    ],
)
def test_mass_far_from_the_data_is_told_in_values_of_the_table(frame, value):
    model = fitted(pd.DataFrame(frame))
    codes, _ = model._codes(pd.DataFrame(frame))
    codes[:, 0] = codes[:, 0].max()  # always the last value of the first column
    message = told(lambda: model._warn_if_far_from_data("Here,", codes, None, len(codes)))
    assert message.startswith(f"Here, column {value} with a rate of 1, in")


def cold_lattice():
    """Couplings of 7 x 7 spins on a torus, far below the temperature of its transition."""
    model = FVBMPseudoLikelihood(alpha=0.1).fit(2 * table(n=50, d=49) - 1)
    near = np.roll(np.eye(7), 1, axis=0) + np.roll(np.eye(7), -1, axis=0)
    model.coupling_ = 2.0 * (np.kron(near, np.eye(7)) + np.kron(np.eye(7), near))
    return model


def test_temperatures_that_do_not_connect():
    model = cold_lattice()
    message = told(lambda: model.sample(5, 0, n_steps=3, n_temperatures=2))
    assert message.endswith("not to be trusted. Use n_temperatures='auto'.")
    message = told(lambda: model.sample(5, 0, n_steps=3))
    assert "n_temperatures" not in message
    assert message.endswith("may connect the modes; fit with a larger alpha.")


# The end of a fit.


@pytest.mark.parametrize(
    "options, remedies",
    [
        ({"alpha": 0.01}, "or use a larger alpha"),
        ({"alpha": 0.0}, "or set alpha > 0"),
        ({"alpha": 0.01, "solver": "bslm"}, "use solver='newton', or use a larger alpha"),
        ({"alpha": 0.0, "solver": "lbfgs"}, "use solver='newton', or set alpha > 0"),
        ({"alpha": 0.01, "objective": "likelihood"}, "or use a larger alpha"),
    ],
)
def test_an_early_end_names_what_is_not_yet_set(options, remedies):
    model = FVBMPseudoLikelihood(max_iter=1, **options)
    message = told(lambda: model.fit(table()), ConvergenceWarning)
    name = "log-likelihood" if "objective" in options else "log pseudo-likelihood"
    assert message.startswith("The fit ended at max_iter=1 before it converged; the maximum of the")
    assert f"the maximum of the {name} " in message and " nats higher. " in message
    assert message.endswith(f" nats higher. Raise max_iter, {remedies}.")


@pytest.mark.parametrize("solver", ["newton", "lbfgs"])
@pytest.mark.parametrize("alpha", [0.0, 0.01])
def test_an_early_end_with_three_values(solver, alpha):
    model = FVBMPseudoLikelihood(max_iter=1, solver=solver, alpha=alpha)
    message = told(lambda: model.fit(table(3)), ConvergenceWarning)
    remedy = "use a larger alpha" if alpha else "set alpha > 0"
    assert "The fit ended at max_iter=1 before it converged" in message
    assert message.endswith(f". Raise max_iter, or {remedy}.")


def test_an_early_end_with_very_many_parameters():
    X = 2 * table(n=300, d=78) - 1
    for options, remedy in (
        ({"alpha": 0.01}, "use a larger alpha"),
        ({"alpha": 0}, "set alpha > 0"),
    ):
        model = FVBMPseudoLikelihood(max_iter=2, **options)
        message = told(lambda model=model: model.fit(X), ConvergenceWarning)
        # Newton's method would not run.
        assert message.endswith(f" with so many parameters. Raise max_iter, or {remedy}.")
        assert " is is " not in message


def test_an_early_end_by_tol():
    rng = np.random.default_rng(0)
    X = rng.choice([-1, 1], size=(4000, 1)) * np.where(rng.random((4000, 4)) < 0.01, -1, 1)
    model = FVBMPseudoLikelihood(solver="bslm", tol=1e-2, alpha=1e-9)
    message = told(lambda: model.fit(X), ConvergenceWarning)
    assert message.endswith(" nats higher. Lower tol, use solver='newton', or use a larger alpha.")


@pytest.mark.parametrize("alpha", [0.0, 5e-5])
def test_no_figure_where_the_curvature_does_not_tell(alpha):
    start = np.zeros((4, 4))
    start[0, 1] = start[1, 0] = -28.0
    model = FVBMPseudoLikelihood(solver="bslm", alpha=alpha, max_iter=2)
    message = told(lambda: model.fit(table(n=2000), coupling_init=start), ConvergenceWarning)
    assert "does not tell how far the maximum is" in message and " nats" not in message


def test_where_there_is_no_maximum():
    X = table(3)
    X[X[:, 0] == 1, 1] = 0
    message = told(lambda: FVBMPseudoLikelihood(alpha=0).fit(X), ConvergenceWarning)
    assert "of these columns are those at the end of the fit, and `inference` has NaN" in message


# What does not go together.


def test_terms_of_more_values():
    message = refusal(lambda: FVBMPseudoLikelihood(terms=[(0, 1, 2)]).fit(table(3)))
    assert message.endswith("Use FSLLDensity or one-hot columns, or leave out `terms`.")
    message = refusal(lambda: FVBMPseudoLikelihood(max_order=3).fit(table(3)))
    assert message.endswith("Use FSLLDensity or one-hot columns, or set max_order=2.")


def test_a_potential_of_the_counts_of_the_pseudo_likelihood():
    message = refusal(lambda: FVBMPseudoLikelihood(count_potential=True).fit(table()))
    assert message.endswith("Set objective='likelihood', or count_potential=False.")


@pytest.mark.parametrize("n_values, penalty", [(2, "l1"), (3, "group")])
def test_the_penalty_that_selects_pairs(n_values, penalty):
    X = table(n_values)
    message = refusal(lambda: FVBMPseudoLikelihood(alpha="ebic").fit(X))
    assert f"Use penalty={penalty!r}, or alpha='cv'." in message
    message = refusal(lambda: PathDisplay.from_estimator(fitted(X)))
    assert f"Fit with penalty={penalty!r} and alpha='ebic'" in message
    for alpha in ("ebic", "cv"):
        assert hasattr(FVBMPseudoLikelihood(penalty=penalty, alpha=alpha).fit(X), "path_")


@pytest.mark.parametrize(
    "options, given",
    [
        ({"penalty": "l1"}, "penalty='l1'. Leave it out"),
        ({"alpha": "cv"}, "alpha='cv'. Leave it out"),
        ({"nodewise": True}, "nodewise=True. Leave it out"),
        ({"penalty": "l1", "alpha": 0.0, "nodewise": True}, "nodewise=True. Leave it out"),
        ({"edges": [(0, 1)]}, "`edges`. Leave them out"),
        (
            {"penalty": "group", "alpha": "ebic", "nodewise": True},
            "penalty='group', alpha='ebic', nodewise=True. Leave them out",
        ),
    ],
)
def test_what_the_likelihood_does_not_take(options, given):
    message = refusal(lambda: FVBMPseudoLikelihood(objective="likelihood", **options).fit(table()))
    assert message == (
        f"objective='likelihood' does not take {given}, or use objective='pseudo-likelihood'."
    )


@pytest.mark.parametrize("model", [SDCPRBM(2, max_iter=1), FSLLDensity()])
def test_the_path_of_another_model(model):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(table())
    with pytest.raises(TypeError, match=f"PathDisplay is for FVBM.*, got {type(model).__name__}"):
        PathDisplay.from_estimator(model)


# Inference.


def test_networks_of_two_objectives_are_not_nested():
    X = table()
    one, other = fitted(X), fitted(X, objective="likelihood")
    message = refusal(lambda: one.likelihood_ratio(X, other))
    assert "Fit both to the same columns, with the same objective and alpha, and" in message


def test_few_rows():
    X = table(n=16, seed=2)
    with pytest.warns(UserWarning, match="With fewer than 5 rows per column, confidence inter"):
        FVBMPseudoLikelihood(alpha=0.1, edges=[(0, 1)]).fit(X).inference(X)


def test_temperatures_that_are_too_low():
    model = fitted(table())
    message = refusal(lambda: model.thermodynamics([1.0, 1e-320]))
    assert message.endswith("or more; at that temperature only the most probable states are left.")
    least = float(message.split("Use ")[1].split(" or more")[0])
    # The least temperature is shown in two digits.
    assert abs(model.thermodynamics([1.1 * least]).entropy[0]) < 10


def test_one_group():
    message = refusal(lambda: compare_groups(NETWORK, table(), np.zeros(200)))
    assert "all rows have the label 0.0. Give labels of two groups." in message
    message = refusal(lambda: compare_groups(NETWORK, table(), np.arange(200) % 3))
    assert "there are 3: 0, 1, 2. Choose the rows of two." in message
