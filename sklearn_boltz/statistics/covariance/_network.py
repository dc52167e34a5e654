"""The information and the products of the scores of a fitted network."""

from functools import partial

import numpy as np

from sklearn_boltz.missing._completion import distinct_incomplete
from sklearn_boltz.networks.categorical._contrasts import Contrasts
from sklearn_boltz.networks.categorical._objective import block_starts
from sklearn_boltz.networks.categorical._task import CodesTask
from sklearn_boltz.networks.model._spin_model import SpinModel
from sklearn_boltz.networks.training._fit import Task
from sklearn_boltz.networks.training._likelihood import MAX_COLUMNS, Likelihood
from sklearn_boltz.networks.training._objective import (
    PseudoLikelihood,
    distinct_rows,
    parameter_places,
)
from sklearn_boltz.numerics._memory import check_memory
from sklearn_boltz.statistics.covariance._categorical import fitted_places
from sklearn_boltz.statistics.covariance._completed import CompletedRows, draws
from sklearn_boltz.statistics.covariance._curvature import (
    Curvature,
    Regressions,
    Spread,
    columns_of_parameters,
    fitted_curvature,
    free_places,
)
from sklearn_boltz.statistics.covariance._separation import (
    empty_pairs,
    separated_by_contrasts,
    separated_by_spins,
    span_of,
)
from sklearn_boltz.tables._weights import are_counts, squares_of

# Completions of each row that stand for it where directions are looked for that the data separate,
# and their cells at most, unless single ones have more.
N_DRAWS, MOST_CELLS = 10, 2**23


def check_pairwise(network):
    """Refuse terms of three columns and more, and a potential of the number of ones."""
    further, remedy = None, "Fit pairs only"
    terms, _, potential = network._beyond_pairs()
    if terms:
        count = "1 term" if len(terms) == 1 else f"{len(terms)} terms"
        further = f"{count} of more columns"
    elif potential.any():
        further, remedy = "a potential of the number of ones", "Set count_potential=False"
    if further is not None:
        raise ValueError(
            f"{type(network).__name__}: standard errors, tests and information criteria are those "
            f"of pairwise networks, and this one has {further}. {remedy}, or "
            "compare models by `score` of other rows."
        )


def find_curvature(network, codes, weights, *, jackknife=False):
    """H and J of the free parameters, see `Curvature`.

    Of columns that vary; and the `Spread` from these to all parameters, None of smooth functions,
    whose values have no standard errors.
    """
    check_pairwise(network)
    d, coding = network.n_features_in_, network._encoder.coding
    functions = network._functions(codes, weights)
    if functions is not None:
        sizes = np.array([len(f.costs) for f in functions])
        n_parameters = block_starts(sizes)[1]
    else:
        n_parameters = d * (d + 1) // 2 if coding.is_binary else block_starts(coding.n_values)[1]
    # There are six matrices of all parameters at a time, and with trends, which have fewer, two.
    check_memory(
        (6 if network._trends is None else 2) * 8 * n_parameters**2,
        f"The covariance of {n_parameters:,} parameters",
        "Leave out columns, or use `interaction_scores`, which needs none.",
    )
    if coding.is_binary:
        return spin_curvature(network, codes, weights, jackknife)
    return codes_curvature(network, codes, weights, jackknife, functions)


def spin_curvature(network, codes, weights, jackknife):
    """Curvature of the b_j, then of the m_jk."""
    kept, d, alpha = network._varying, codes.shape[1], network._ridge()
    coupling, intercept = network.coupling_[np.ix_(kept, kept)], network.intercept_[kept]
    problem, free = spin_problem(network, codes, weights, alpha), network._free_pairs()
    squares = None if are_counts(weights) else merged_spins(codes, weights**2)[1]
    theta, kind = problem.pack(coupling, intercept), (Regressions.of_spins, separated_by_spins)
    if network._objective == "likelihood":
        found = of_empty_pairs(likelihood_curvature(network, codes, problem, squares), problem)
    elif is_completed(network, codes[:, kept]):
        rows = codes[:, kept], weights, squares_of(weights)
        model = SpinModel(coupling, intercept)
        found = of_completions(problem, theta, kind, kept, free, jackknife, rows, model)
    else:
        found = of_observed_cells(problem, theta, kind, kept, free, jackknife, squares)
    places = parameter_places(d, np.triu_indices(d, 1))[tuple(found.columns)]
    return found, Spread(None, places, d * (d + 1) // 2)


def is_completed(network, codes):
    """Whether the fit has completed rows."""
    return network.missing == "em" and (codes < 0).any()


def of_observed_cells(problem, theta, kind, columns, free, jackknife, squares):
    """Curvature at an estimate without completions; `kind` describes spins or contrasts."""
    point, (regressions, separated) = problem.at(theta), kind
    found = fitted_curvature(
        problem.information(point),
        theta,
        [regressions(problem, point)._replace(squares=squares)],
        columns,
        free,
        jackknife=jackknife,
        find_separated=None if problem.penalty else partial(separated, problem, point),
    )
    return of_empty_pairs(found, problem)


def of_completions(problem, theta, kind, columns, free, jackknife, rows, model):
    """Curvature at an estimate from completed rows, by what some completions separate."""
    (regressions, separated), (codes, weights, _) = kind, rows

    def find_separated(places):
        n_draws = min(max(MOST_CELLS // codes.size, 1), N_DRAWS)
        drawn = problem.of_rows(*draws(codes, weights, model, n_draws))
        others = separated(drawn, drawn.at(theta), places)
        return span_of(np.hstack([empty_pairs(problem, places), others]))

    completed = CompletedRows.of(problem, theta, regressions, rows, model)
    found = fitted_curvature(
        completed.information(),
        theta,
        completed,
        columns,
        free,
        jackknife=jackknife,
        find_separated=None if problem.penalty else find_separated,
        is_symmetric=False,
    )
    return of_empty_pairs(found, problem)


def likelihood_curvature(network, codes, problem, squares):
    """Curvature of the likelihood, of the b_j, then of the m_jk."""
    if (codes < 0).any() or len(network._varying) > MAX_COLUMNS or (network.n_values_ != 2).any():
        raise ValueError(
            f"{type(network).__name__}: standard errors of the likelihood are those of "
            f"complete rows of up to {MAX_COLUMNS} binary columns. Use "
            "FVBMPseudoLikelihood, or statistics.bootstrap."
        )
    kept, free = network._varying, network._free_pairs()
    problem = Likelihood(problem)
    theta = problem.pack(network.coupling_[np.ix_(kept, kept)], network.intercept_[kept])
    point = problem.at(theta)
    columns = columns_of_parameters(kept, problem.upper)
    places = free_places(columns, free)
    parts = problem.information(point), problem.score_products(point, squares)
    return Curvature(*(part[np.ix_(places, places)] for part in parts), columns[:, places], places)


def of_empty_pairs(found, problem):
    """H and J that know which pairs of values never occur together, if nothing else is known.

    With a penalty, there is a maximum in spite of them. But the scores of these couplings hardly
    differ from row to row, as if they were known: a Wald test would reject each pair of columns
    with an empty cell. So these couplings have no errors, and intercepts have.
    """
    if found.separated is not None:
        return found
    separated = empty_pairs(problem, found.places)
    if problem.penalty:
        separated[found.columns[0] == found.columns[1]] = 0
    return found._replace(separated=separated, is_penalised=problem.penalty > 0)


def spin_problem(network, codes, weights, alpha):
    """The objective of the columns that vary."""
    rows, counts = merged_spins(codes, weights)
    if not (codes < 0).any():
        return PseudoLikelihood(rows[network._varying], counts, alpha)
    return Task.of_incomplete_rows(rows, counts, alpha, network._varying).problem


def merged_spins(codes, weights):
    """The distinct rows, complete ones as spins, and the sums of their weights."""
    if not (codes < 0).any():
        return distinct_rows(codes > 0, weights)
    return distinct_incomplete(codes, weights)


def codes_curvature(network, codes, weights, jackknife, functions):
    """Curvature of the contrasts or functions of h_j, then of J_jk.

    The covariance of contrasts is that of all values.
    """
    n_values, free = network.n_values_, network._free_pairs()
    kept_rows = distinct_incomplete(codes, weights)
    trends = network._trends if functions is None else network.ordered_
    task = CodesTask(*kept_rows, n_values, network._ridge(), trends)
    contrasts, kept = Contrasts(task.problem, functions), task.varying
    theta = task.initial(network.coupling_, network.intercept_)
    z = contrasts.pack(*task.problem.unpack(theta))
    kind = Regressions.of_contrasts, separated_by_contrasts

    def sums(values):
        return task.merged(*distinct_incomplete(codes, values))[1]

    if is_completed(network, codes[:, kept]):
        rows, model = (*task.rows(), sums(squares_of(weights))), task.problem.model(theta)
        found = of_completions(contrasts, z, kind, kept, free, jackknife, rows, model)
    else:
        squares = None if are_counts(weights) else sums(weights**2)
        found = of_observed_cells(contrasts, z, kind, kept, free, jackknife, squares)
    if functions is not None:
        return found, None
    loadings = contrasts.loadings()[:, found.places]
    known = loadings.any(axis=1)
    loadings, places = loadings[known], fitted_places(task)[known]
    return found, Spread(loadings, places, block_starts(n_values)[1])
