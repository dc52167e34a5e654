"""Do the tests notice a wrong formula? One change at a time in the source, and the tests near it.

Each mutation is a small error of the kind that a hand makes: a sign, a factor of ½, `<` for `<=`,
a degree of freedom, a weight that is left out. One whose tests pass survives: something is not
tested. The source is put back after each, also after Ctrl-C. It takes twenty minutes.

    python tests/mutations.py                 # all of them
    python tests/mutations.py tap units       # those in files with these words in their paths
    python tests/mutations.py --list
    python tests/mutations.py --random 100 --seed 46

The last one draws from all changes of an operator, or of a number beside one, in the mathematics:
the folders of `ROOMS`, but not the estimators above them. Tests near the file come first
(changed.py), then those of the room. Not each of these is an error: some change rounding only, some
what ends a search. Those that survive have to be looked at.
"""

import argparse
import functools
import io
import os
import random
import re
import shlex
import signal
import subprocess
import sys
import time
import tokenize
from pathlib import Path
from typing import NamedTuple

from changed import tests_near

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "sklearn_boltz"
HANGS = 1800  # seconds after which tests will not end


class Mutation(NamedTuple):
    """A change of a file of the package, and what is to notice it."""

    file: str
    old: str  # occurs once in the file
    new: str
    tests: tuple  # arguments of pytest, each a call of its own

    def __str__(self):
        return f"{self.file}: {self.old!r} -> {self.new!r}"


# File, arguments of pytest, and pairs of a text and the one in its place. Changes that leave all
# results as they are, or as good, do not belong here.
# fmt: off
SOURCES = [
    ("units/_bernoulli.py", "test_units.py -k 'from_data or derivatives'", [
        ("+ 0.5) / (n_rows + 1))", "+ 0.5) / (n_rows + 0.5))"),
        ("self.intercept + field - 0.5 * precision", "self.intercept + field - precision"),
    ]),
    ("units/_categorical.py",
     "test_units.py -k 'categorical or domain or contract or derivatives'", [
        ("counts + 1 / widths", "counts + 1"),
        ("np.abs(self._totals(X) - 1) <=", "self._totals(X) - 1 <="),
        ("units._spread(units._totals(units.intercept)) / widths", "units.intercept.mean()"),
        ("field = field - 0.5 * precision", "field = field - precision"),
    ]),
    ("units/_gaussian.py", "test_units.py -k 'gaussian or side_by_side or gradients'", [
        ("LEAST_SHARE * self.precision)", "LEAST_SHARE)"),
        ("LEAST_VARIANCE * (1 + mean**2)", "LEAST_VARIANCE"),
        ("rate * self.precision * slopes", "rate * slopes"),
        ('"precision": change / rate}', '"precision": change}'),
        ("weights)[0] / count - mean**2", "weights)[0] / count"),
        ("first, second = mean, variance + mean * mean", "first, second = mean, variance"),
        ("x *= np.sqrt(1 / a)", "x *= 1 / a"),
    ]),
    ("units/_truncated.py",
     "test_units.py -k 'from_data or rounded or derivatives or gradients or slopes or spike'", [
        ("(square + 1 / 3)", "(square + 1 / 2)"),
        ("second - 2 * low * first", "second - low * first"),
        ("U / width + V / width**2 * low", "U / width - V / width**2 * low"),
        ("tiny, self.low + self.high)", "tiny, self.low - self.high)"),
        ("self.rho * (1 - self.rho) * slopes", "self.rho * slopes"),
        ("absent * mean * mean", "present * mean * mean"),
        ("share * (variance_0 + mean_0**2)", "share * variance_0"),
        ("return logit(self.rho.astype(np.float64)) - self", "return logit(self.rho) + self"),
        ("(counts + 0.5) / (n_rows + 1)", "(counts + 1) / (n_rows + 1)"),
    ]),
    ("units/_stacked.py", "test_units.py -k side_by_side", [
        ("unit -= units.n_units", "unit -= len(units)"),
        ("[k - start for k in units if start <= k < stop]",
         "[k - start for k in units if start < k < stop]"),
    ]),
    ("units/_unit.py", "test_units.py -k 'by_hand or mode_is'", [
        ("weights @ ~gaps", "(~gaps).sum(axis=0)"),
        ("weights @ np.where(gaps, 0.0, X)", "np.where(gaps, 0.0, X).sum(axis=0)"),
        ("self.state_log_weights() + (field", "(field"),
    ]),
    ("partition/_estimates.py",
     "test_rbm_ladder.py test_rbm_model.py test_fvbm.py contract/test_estimates.py "
     "test_ladder.py -k 'combined or contradicting or ais_run or annealing_until or "
     "standard_error_of_annealed or without_their_arrays or floor or by_hand or "
     "estimate_stands'", [
        ("weights.std(ddof=1)", "weights.std()"),
        ('if method == "ais" else -math.inf', 'if method == "ais" else value - MARKOV'),
        ("estimate.ess >= MIN_ESS and", "estimate.ess >= MIN_ESS or"),
        ("floor.low > estimate.value:", "floor.value > estimate.value:"),
        ("math.hypot(other.std_err, annealed.std_err)", "other.std_err"),
        ("-max(error, MAX_STD_ERR) <= apart", "-error <= apart"),
        ("max(min(ends), annealed.low)", "min(ends)"),
        ("not is_ladder and annealed.trusted", "annealed.trusted"),
        ("max(other.value, annealed.value) + MARKOV", "annealed.value + MARKOV"),
        ("value - MARKOV if", "value + MARKOV if"),
        ("math.log(n_chains)", "math.log(n_chains - 1)"),
    ]),
    ("partition/_ladder.py", "test_ladder.py -k 'not estimate'", [
        ("_relative_variance(f) + _relative_variance(b)", "_relative_variance(f)"),
        ("np.minimum(forward + backward, 0)", "np.minimum(forward - backward, 0)"),
        ("self.n_rounds += first == 0", "self.n_rounds += 1"),
        ("np.cumsum(ratios[:, 1] ** 2)", "np.cumsum(ratios[:, 1])"),
        ("ratios.std(ddof=1) / np.sqrt", "ratios.std() / np.sqrt"),
        ("error * np.sqrt(shares[-1])", "error * shares[-1]"),
    ]),
    ("partition/_ladder_record.py",
     "test_ladder.py test_fvbm_ladder.py -k 'bennett or standard_errors or broken or "
     "too_few or log_partition or contributes or by_hand or quarter'", [
        ("f * (1 - f) + b * (1 - b)", "f * (1 - f) + b"),
        ("ddof=1) / math.sqrt(values.shape[-1])", "ddof=1) / math.sqrt(values.shape[-1] - 1)"),
        ("low=value - ENDS * std_err", "low=value - std_err"),
        ("int(BURN_IN * len(self.blocks))", "0"),
        ("SETTLED * error", "error"),
        ("share = (f - b)", "share = (b - f)"),
    ]),
    ("restricted/sampling/_climb.py",
     "test_rbm_ladder.py -k 'annealed_chains or some_states'", [
        ("V[: n_chains // 2, ...]", "rung.states[1::2, ...]"),
        ("np.unique(np.concatenate([as_numpy(V) for V in states]), axis=0)",
         "np.concatenate([as_numpy(V) for V in states])"),
        ("value=max(estimate.value, floor)", "value=estimate.value"),
    ]),
    ("restricted/sampling/_annealing.py",
     "test_rbm_model.py test_rbm_ladder.py -k 'unbiased or by_hand or are_apart or from_above'", [
        ("math.log(len(by_row)) - logsumexp(by_row, axis=0)", "-logsumexp(by_row, axis=0)"),
        ("values.std(ddof=1)", "values.std()"),
        ("max(estimate.low, former.low)", "estimate.low"),
        ("backward.value + MARKOV", "backward.value"),
        ("visible.log_weight(V) + hidden.log_partition_sum(low * field)",
         "hidden.log_partition_sum(low * field)"),
        ("(estimate.value - former.value) <= 2 * tol", "(estimate.value - former.value) <= 2"),
    ]),
    ("restricted/mean_field/_tap.py",
     "test_tap.py test_layered.py -k 'stands_for_all or change_of_a_row or a_part or no_part or "
     "stationary or rows_stop or known_units or outer_fields or told_apart or second_order or "
     "tap_free or satisfy or one_kernel'", [
        ("float(logsumexp(-free_energy))", "float((-free_energy).max())"),
        ("solutions.converged if solutions.converged.any() else",
         "slice(None) if solutions.converged.any() else"),
        ("6 / np.sqrt(tail)", "6 / tail"),
        ("total + evidence.log_weight", "total - evidence.log_weight"),
        ("field -= 0.5 * evidence.precision", "field -= evidence.precision"),
        ("np.argsort(solutions.change, kind", "np.argsort(-solutions.change, kind"),
        ("0.5 * A * (a * a + c)", "0.5 * A * a * a"),
        ("np.subtract(mean, 0.5, out=variance)", "np.subtract(mean, 0, out=variance)"),
        ("(visible.mean.shape[1] + hidden.mean.shape[1])", "visible.mean.shape[1]"),
        ("-MOST_TAKEN * tail", "-tail"),
        ("now &= ~evidence.known", "now &= evidence.known"),
        ("first += -0.5 * (hidden", "first += 0.5 * (hidden"),
    ]),
    ("restricted/mean_field/_second_order.py",
     "test_tap.py test_tap_gradients.py -k 'both_descriptions or general_formula or stationary or "
     "gradients_are'", [
        ("precision[:, others] += common * common", "precision[:, others] -= common * common"),
        ("product = -0.5 * precision", "product = -precision"),
        ("-= (spread[:, others] * common) @", "+= (spread[:, others] * common) @"),
    ]),
    ("restricted/mean_field/_clamped.py",
     "test_layered.py test_tap_estimators.py -k 'several_layers or given_rows or "
     "against_enumeration or to_the_bit or tap_free'", [
        ("(first[0] + self.field, first[1])", "(first[0], first[1])"),
        ("return of_hidden - visible.log_weight", "return of_hidden + visible.log_weight"),
    ]),
    ("restricted/mean_field/_vamp.py", "test_tap.py -k 'adaptive or power or tree or inferences'", [
        ("coupled = 0.5 * B2 @ mean", "coupled = B2 @ mean"),
        ("+ np.log(point.variance)).sum()", "- np.log(point.variance)).sum()"),
    ]),
    ("restricted/training/_tap_steps.py",
     "test_tap_gradients.py -k 'penalties or gradients_are or all_parameters or tap_gradient'", [
        ("step -= rate * scheme.alpha * slope", "step += rate * scheme.alpha * slope"),
        ('if scheme.penalty == "l2" else', 'if scheme.penalty == "l1" else'),
        ("spread.append((np.subtract, scaled", "spread.append((np.add, scaled"),
        ("shares[0] * rows[name] - shares[1] * model[name]",
         "rows[name] - shares[1] * model[name]"),
    ]),
    ("restricted/training/_sdcp.py",
     "test_rbm_sdcp.py test_rbm_ladder.py -k 'paper or one_call or literal or other_parameters'", [
        ("if inner == 0:", "if True:"),
        ("step -= rate * scheme.alpha", "step += rate * scheme.alpha"),
        ("(self.own, 1 - fraction), (self.others, fraction)",
         "(self.own, fraction), (self.others, 1 - fraction)"),
        ("offset += scheme.offset_rate * (mean", "offset -= scheme.offset_rate * (mean"),
        ("self.hidden.shift(-(weights @ self.visible_offset))",
         "self.hidden.shift(weights @ self.visible_offset)"),
        ("slopes[name] - model_slopes[name]", "slopes[name] + model_slopes[name]"),
        ("self._H_factors[rows] *= factor / len(V)",
         "self._H_factors[rows] *= factor / len(self.V)"),
    ]),
    ("restricted/training/_optimizers.py",
     "test_rbm_sdcp.py test_rbm_classifier.py test_rbm_kernels.py -k adam", [
        ("(1 - MOMENTUM**self.n_steps)", "(1 - MOMENTUM)"),
    ]),
    ("restricted/training/_frank_wolfe.py",
     "test_infinite_rbm.py test_rbm_weights.py -k 'linearised or gain_of or exact_one "
     "or never_falls or bias_steps or starts_are or expectations or unit_would_add or "
     "do_not_hide or nothing_is_to or noise'", [
        ("shift = scale * data.mean", "shift = data.mean"),
        ("if change.ess >= min_ess", "if change.ess <= min_ess"),
        ("values * self.probability\n", "values / len(self)\n"),
        ("(len(self) * (weights**2).sum())", "(weights**2).sum()"),
        ("unit / (data.field(unit).std() or 1.0)", "unit"),
        ("if objective < 0]", "if objective < np.inf]"),
        ("alpha / 2 * (unit @ unit)\n", "alpha * (unit @ unit)\n"),
        ("np.mean(variance)) / len(self)", "np.mean(variance))"),
        ("centered=not plain", "centered=True"),
    ]),
    ("loglinear/_search.py",
     "test_fsll.py -k 'joint or exact_quantities or limits or newton_whatever or appended'", [
        ("0.5 * residual**2 / np.maximum", "residual**2 / np.maximum"),
        ("left = left - row**2", "left = left"),
        ("residual[k] / row[k])", "residual[k])"),
        ("removal_tol = 0.0 if solver.removes_freely",
         "removal_tol = 0.0 if not solver.removes_freely"),
        ('state.cost < before["cost"] - tol', 'state.cost < before["cost"] + tol'),
        ("0.5 * (1 + math.copysign(t, step * t))", "0.5 * (1 - math.copysign(t, step * t))"),
        ("state.cost += penalty.sum()", "state.cost += penalty.max()"),
        ("n_free = max_basis - len(state.codes)", "n_free = max_basis"),
    ]),
    ("loglinear/_fit.py", "test_fsll.py -k 'cost or limits'", [
        ("(math.log(size) + math.log(total + 1))", "math.log(total + 1)"),
        ("(weights + 1 / size) / (total + 1)", "weights / (total + 1)"),
        ("settings.max_basis - history.n_basis_path[-1]", "settings.max_basis"),
    ]),
    ("loglinear/_dual_table.py",
     "test_fsll.py test_dual_update.py -k 'cost_against or promising or follows'", [
        ("0.5 * math.log(max(n_samples, 1.0))", "math.log(max(n_samples, 1.0))"),
        ("math.atanh(d) - math.atanh(t)", "d - t"),
        ("order_inner).ravel() > self._max_order", "order_inner).ravel() >= self._max_order"),
    ]),
    ("loglinear/_incomplete.py", "test_fsll_missing.py -k 'enumeration or score_test or maximum'", [
        ("expected = (log_likelihood + spread) / self._total - state.log_partition",
         "expected = log_likelihood / self._total - state.log_partition"),
        ("weights @ np.log(weights / weights.sum()) / self._total",
         "weights @ np.log(weights) / self._total"),
        ("information += scores.T @ (weights * scores)", "information += scores.T @ scores"),
        ('state.cost < before["cost"] - self', 'state.cost < before["cost"] + self'),
        ("completed.weights @ model.log_weight(completed.rows) - completed", "-completed"),
    ]),
    ("loglinear/_factor.py",
     "test_distribution.py test_fvbm_ladder.py -k 'mode_is or enumeration or exact_sums or "
     "connected or thermodynamics and exact'", [
        ("share * (1 - share) * apart**2", "share * apart**2"),
        ("if weights[k] > best", "if weights[k] < best"),
    ]),
    ("missing/_completion.py",
     "test_completion.py test_fsll_missing.py -k 'test_completion or many_missing'", [
        ("minlength=m) + 1 / m", "minlength=m) + 1"),
        ("weights * (data.weights.sum() / weights.sum())", "weights"),
        ("data.rows[known, j], data.weights[known], minlength", "data.rows[known, j], minlength"),
        ("self.weights[self._drawn] / self._n_each",
         "self.weights[self._drawn] / self._n_each.max()"),
        ("peaks + np.log(sums)", "np.log(sums)"),
        ("if 2 * k >= n_rounds - 1 and", "if k >= n_rounds - 1 and"),
    ]),
    ("networks/training/_objective.py",
     "test_fvbm_solvers.py test_fvbm_penalty.py -k 'definition or derivatives or "
     "information_of or curvature or rarest or empty'", [
        ("            - self.penalty / 4 * np.vdot", "            - self.penalty / 2 * np.vdot"),
        ("2 * cross", "cross"),
        ("information[pairs, pairs] += self.penalty",
         "information[pairs, pairs] += self.penalty / 2"),
        ("squares = curvature @ self.observed.T", "squares = curvature.sum(axis=1)[:, None]"),
        ("spread *= self.observed[:, part]", "spread *= 1"),
        ("known = self.weights * self.observed[j] * self.observed[k]",
         "known = self.weights * self.observed[j]"),
    ]),
    ("networks/training/_strength.py", "test_fvbm_penalty.py -k 'strength'", [
        ("variance = (couplings @ couplings - noise)", "variance = (couplings @ couplings)"),
        ("(information**2 @ shrunk)", "(information @ shrunk)"),
        ("np.mean(2 * (1 - 1 / n_values))", "np.mean(2 * (1 - 1 / n_values)) / 2"),
        ("max(len(n_values) - 1, 1)", "len(n_values)"),
    ]),
    ("statistics/_inference.py",
     "test_fvbm_inference.py -k 'holm or adjusted or null or wald "
     "or senate_inference or hypotheses or frame'", [
        ("np.arange(len(p_value), 0, -1)", "np.arange(len(p_value) + 1, 1, -1)"),
        ("np.abs(z - correlation * z[:, None])", "np.abs(z - z[:, None])"),
        ("2 * norm.sf(np.abs(self.z))", "norm.sf(np.abs(self.z))"),
        ("difference = (self.estimate - self.null)[places]", "difference = self.estimate[places]"),
        ("adjust(p_value[known])", "adjust(p_value[known]) * len(p_value) / known.sum()"),
    ]),
    ("statistics/covariance/_tests.py",
     "test_fvbm_inference.py -k 'weights or chi or wald or rank'", [
        ("int(kept.sum())", "len(kept)"),
        ("(directions.T @ (difference / scale))", "(directions.T @ difference)"),
        ("x, weights = x / weights.max(),", "x, weights = x,"),
    ]),
    ("statistics/covariance/_curvature.py",
     "test_fvbm_inference.py test_fvbm_solvers.py -k 'jackknife or criteria_are or "
     "single_rows or influence'", [
        ("scores *= np.sqrt(self.weights[rows])", "scores *= self.weights[rows]"),
        ("LEFT_OUT * np.minimum(weights[rows], 1)", "LEFT_OUT * weights[rows]"),
        ("both += u[r] * e[s]", "both -= u[r] * e[s]"),
        ("np.trace(self.solve(self.products))", "np.trace(self.solve(self.information))"),
    ]),
    ("statistics/covariance/_completed.py",
     "test_fvbm_missing.py -k 'expected_scores or are_drawn or leaves_each'", [
        ("total -= regressions.missing_information()", "pass"),
        ("return self.problem.penalised(total)", "return total"),
        ("shares * np.repeat(weights[owner], n_each)", "shares"),
        (".reshape(N_COMPLETIONS, -1).T.ravel()", ""),
    ]),
    ("statistics/_bootstrap.py",
     "test_fvbm_bootstrap.py -k 'bias_is or quantiles'", [
        ("norm.cdf(2 * shift + side * z)", "norm.cdf(shift + side * z)"),
        ("below + equal / 2 + 0.5", "below + equal + 0.5"),
        ("self.resamples.std(axis=0, ddof=1)", "self.resamples.std(axis=0)"),
        ("* (len(ordered) - 1)", "* len(ordered)"),
    ]),
    ("statistics/_groups.py", "test_fvbm_bootstrap.py -k 'tiny_groups'", [
        ("(values >= first - ROUNDING", "(values > first + ROUNDING"),
        ("comb(n, n_first) - 1 > n_permutations", "comb(n, n_first) > n_permutations"),
        ("np.maximum(sizes, largest[:, None]), sizes[0]", "sizes, sizes[0]"),
    ]),
    ("statistics/_criteria.py",
     "contract/test_same_table.py test_fvbm_inference.py test_fvbm_bootstrap.py -k criteria", [
        ("edges = 4 * gamma", "edges = 2 * gamma"),
        ("deviance + 2 * n_parameters", "deviance + n_parameters"),
        ("max(network.n_features_in_ - 1, 1)", "max(network.n_features_in_, 1)"),
        ("np.log(n_rows) * n_parameters", "np.log(len(X)) * n_parameters"),
    ]),
    ("statistics/_criteria.py", "test_fvbm_inference.py -k likelihood_ratios_in", [
        ("4 if network._coding.is_binary else 16", "4 if network._coding.is_binary else 4"),
    ]),
    ("statistics/_stability.py", "test_fvbm_bootstrap.py -k stability", [
        ("np.sqrt((2 * threshold - 1) * n_possible", "np.sqrt(threshold * n_possible"),
        ("(entered <= k).mean", "(entered < k).mean"),
        (".sum() > max_edges", ".sum() >= max_edges"),
    ]),
    ("networks/sparse/_path.py",
     "test_fvbm_sparse.py -k 'criterion or cross_validation or path_begins'", [
        ("value += 2 * gamma * n_neighbours", "value += gamma * n_neighbours"),
        ("max(network.n_columns - 1, 1)", "network.n_columns"),
        ("other.losses * network.total", "other.losses"),
    ]),
    ("networks/sparse/_penalty.py", "test_fvbm_sparse.py -k 'path_begins'", [
        ("/ max(self.l1_ratio, LEAST_RATIO)", ""),
    ]),
    ("networks/sparse/_penalty.py", "test_fvbm_sparse.py -k 'lasso or not_convex'", [
        ("self.scale**2 * step", "self.scale * step"),
        ("strength / scale", "strength"),
        ("- slope[block] / bound", "- slope[block]"),
    ]),
    ("networks/sparse/_penalty.py", "test_fvbm_sparse.py -k 'prox or kkt'", [
        ("(1 - l1_ratio) * alpha * w**2", "(1 - l1_ratio) * alpha * w"),
        ("np.maximum(off - self.l1, 0.0)", "np.maximum(off, 0.0)"),
    ]),
    ("networks/sparse/_network.py",
     "test_fvbm_sparse.py -k 'kkt or by_node'", [
        ("np.maximum(1 - rates**2, 0)", "np.maximum(1 - rates, 0)"),
        ("(1 - squares) / (1 - 1 / self.n_values)", "1 - squares"),
    ]),
    ("networks/sampling/_tempering.py",
     "test_fvbm_ladder.py -k 'have_its_law or moments_of'", [
        ("squares - 2 * mean * sums + mean**2", "squares - mean**2"),
        ("(1 - beta) * path.base + beta * path.model.intercept",
         "path.base + beta * path.model.intercept"),
    ]),
    ("networks/categorical/_block_penalty.py", "test_fvbm_ordered.py -k 'gradient or measured'", [
        ("a * a[::-1] / 2", "a * a / 2"),
        ("a=-2 * strength", "a=-strength"),
    ]),
    ("networks/training/_strength.py", "test_fvbm_ordered.py -k 'weights_are'", [
        ("(square + prior)", "(square + 1)"),
        ("strength * weights[i, j]", "strength"),
        ("strength / DOUBLE", "strength"),
    ]),
    ("networks/categorical/_objective.py", "test_fvbm_penalty.py -k 'curvature or information'", [
        ("squares / self.total", "squares"),
        ("(information + information.T)", "(2 * information)"),
    ]),
    ("networks/categorical/_block_penalty.py", "test_fvbm_ordered.py -k 'its_weight'", [
        ("np.repeat(weights[i, j], n_values[i] * n_values[j])",
         "np.repeat(weights[j, i], n_values[i] * n_values[j])"),
    ]),
    ("networks/categorical/_block_penalty.py", "test_fvbm_sparse.py -k kkt_of_groups", [
        ("squares = 1 / np.concatenate(costs)", "squares = np.concatenate(costs)"),
        ("block_diag(*blocks) * np.sqrt(squares)", "block_diag(*blocks) * squares"),
    ]),
    ("networks/sparse/_network.py", "test_fvbm_sparse.py -k kkt_of_groups", [
        ("* self.n_values[i] / self.sizes[i]", "/ self.sizes[i]"),
    ]),
    ("networks/sparse/_path.py", "test_fvbm_sparse.py -k criterion_of_trends", [
        ("single + 2 * np.log(2)", "single"),
        ("- saved[idle].sum()", ""),
        ("rise(places) < saved[g]", "rise(places) > saved[g]"),
        ("return rise(np.flatnonzero(np.isin(groups, idle)))", "return 0"),
    ]),
    ("networks/model/_gauge.py", "test_fvbm_categorical.py -k scores", [
        ("scores.sum(axis=0) / (d - 1)", "scores.sum(axis=0) / d"),
    ]),
    ("restricted/sampling/_observed.py", "test_rbm_missing.py -k 'sums_over or scores_of'", [
        ("log_weight[:, np.newaxis] + states @ field.T", "states @ field.T"),
    ]),
    ("restricted/training/_monitor.py", "test_rbm_missing.py -k 'sums_over or scores_of'", [
        ("np.where(missing, 0, of_units).sum(axis=1)", "of_units.sum(axis=1)"),
    ]),
    ("meta/_calibration.py", "test_meta_classifier.py -k 'calibration'", [
        ("log_softmax(log_priors + scale", "log_softmax(scale"),
        ("rest = weights[:, None] * (", "rest = ("),
        ("len(rows) - 2)", "len(rows) - 1)"),
    ]),
    ("meta/_class_densities.py",
     "test_meta_classifier.py -k 'bayes or summed_out or request or offsets'", [
        ("self._log_posteriors(rows) - np.log(self.shares)", "self._log_posteriors(rows)"),
        ("estimate.trusted and estimate.std_err <= MAX_ERROR",
         "estimate.trusted or estimate.std_err <= MAX_ERROR"),
        ("logsumexp(self.log_likelihoods(rows) + log_priors",
         "logsumexp(self.log_likelihoods(rows)"),
    ]),
    ("meta/_mixture.py",
     "test_meta_mixture.py test_meta_common.py -k 'ends or weights_are or impossible or "
     "need_no_rows or enumerated or imputation or count_rows'", [
        ("(row_weights / (p @ weights)) @ p", "(1 / len(p) / (p @ weights)) @ p"),
        ("used - estimate.high, used - estimate.low", "used - estimate.low, used - estimate.high"),
        ("np.log(self.weights_[k]) + self", "self"),
        ("* len(X) + np.arange(len(X)))\n        shares", "* len(X))\n        shares"),
    ]),
    ("meta/_outlier_detector.py",
     "test_meta_outlier_detector.py test_meta_common.py -k 'scores or few_new or fence or a_word "
     "or count_rows'", [
        ("first - FENCE * (third - first)", "first - FENCE * third"),
        ("np.average(scores, weights=weights))", "np.average(scores))"),
        ("self.decision_function(X) < 0", "self.decision_function(X) <= 0"),
    ]),
    ("meta/_surprise.py", "test_meta_outlier_detector.py -k surprises", [
        ("(codes + 1) / 2 if codes.min() < 0 else codes", "codes"),
        ("found[known, j] += _thinness", "found[known, j] -= _thinness"),
    ]),
    ("networks/model/_enumeration.h", "test_fvbm_kernels.py -k 'enumerate or importance'", [
        ("peak = plan->shift + enumeration_exps", "peak = enumeration_exps"),
        ("totals[s] *= less", "totals[s] *= 1"),
        ("0.75 * exp(log_p - more)", "exp(log_p - more)"),
        ("*is_small = n_states <= most", "*is_small = n_states < most"),
    ]),
    ("networks/model/_incomplete.py", "contract/test_enumeration.py -k column_probabilities", [
        ("softmax(known[own] + peak", "softmax(peak"),
        ("codes[:, column] = -1", "pass"),
    ]),
    ("meta/_coding.py",
     "test_meta_classifier.py test_meta_outlier_detector.py -k 'coding or a_word or bins'", [
        ("(n_seen + n_unseen) * np.log(n_rows + 1)", "n_unseen * np.log(n_rows + 1)"),
    ]),
    ("tables/_bins.py", "test_bins.py", [
        ("mass > ATOM * n", "mass > 0.6 * n"),
        ("(n / (n + 1))", "1"),
        ("- 3 * beyond", "- 2 * beyond"),
        ("np.log1p(at / after)", "np.log(2)"),
        ("room = high - low - 2 * half", "room = high - low"),
        ("borders[1] - cells[0], weights=counts[0]", "borders[1] - cells[0]"),
        ("1 / (mass.sum() + 1), np.nan", "1.0, np.nan"),
    ]),
    ("meta/_completed.py", "test_meta_outlier_detector.py -k 'quantiles or left_out'", [
        ("np.maximum(left[one] - 1, 0)", "0"),
        ("values[min(end + is_end, len(values) - 1)]", "values[end]"),
    ]),
    ("loglinear/_dual_update.pyx", "test_dual_update.py -k active", [
        ("theta[k] * dy - penalty[k]", "theta[k] * dy"),
    ]),
    ("restricted/sampling/_gibbs_kernel.pyx",
     "test_rbm_kernels.py test_rbm_model.py -k 'kernels or ais or unbiased'", [
        ("(high - low) * ddot(", "high * ddot("),
    ]),
    ("restricted/sampling/_gibbs_kernel.pyx", "test_rbm_sdcp.py -k 'paper or one_call'", [
        ("ascent[i, j] - decay * weights", "ascent[i, j] + decay * weights"),
        ("rate * (v_mean[i] - mu[i])", "rate * v_mean[i]"),
    ]),
    ("restricted/model/_class_kernel.pyx", "test_rbm_classifier.py -k gradient", [
        ("factors[y] *= share[i] / total", "factors[y] *= share[i]"),
    ]),
]
# fmt: on
MUTATIONS = [
    Mutation(file, old, new, (tests,)) for file, tests, changes in SOURCES for old, new in changes
]

# The mathematics, and the tests of each room.
ROOMS = {
    "restricted/*/": "test_rbm_*.py test_tap*.py test_layered.py test_infinite_rbm.py "
    "test_training.py test_mixed_models.py test_scores.py contract/test_enumeration.py",
    "networks/*/": "test_fvbm*.py test_location.py test_joint_network.py test_physics.py "
    "test_mixed_models.py test_scores.py contract/test_enumeration.py",
    "partition/": "test_ladder.py test_rbm_ladder.py test_rbm_model.py test_fvbm_ladder.py "
    "contract/test_estimates.py",
    "loglinear/": "test_fsll*.py test_basis.py test_distribution.py test_hadamard.py "
    "test_dual_update.py contract/test_enumeration.py",
    "units/": "test_units.py test_rbm_*.py test_tap*.py test_mixed_models.py",
}
# What replaces an operator, with spaces around it, and a number beside one.
OPERATORS = {
    **{"+": "-", "-": "+", "*": "/", "/": "*", "+=": "-=", "-=": "+=", "*=": "/=", "/=": "*="},
    **{"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="},
}
NUMBERS = {"0": "1", "1": "2", "2": "1", "0.5": "1.0", "2.0": "1.0", "1.0": "2.0", "0.0": "1.0"}
OPERATOR = r" ([-+*/]=?|[<>]=?|[=!]=) "
NUMBER = r"(?<![\w.)\]])({})(?= [-+*/<>] )|(?<= [-+*/<>] )({})(?![\w.])|(?<=\*\*)(2)\b".format(
    *2 * ["|".join(map(re.escape, sorted(NUMBERS, key=len, reverse=True)))]
)
# Lines without mathematics: signatures, named settings, errors.
NO_FORMULA = re.compile(
    r"^.*(\bdef |\bclass |import |^ *#|^[A-Z_]+ = |raise |warn|Interval\().*$", re.M
)


def sites(path):
    """What may be changed in a file: (start, stop, the text in its place)."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".h":
        words = re.finditer(r"//.*|/\*(?s:.*?)\*/|\"[^\"\n]*\"", text)
        spans = [word.span() for word in words]
    else:
        starts = [0]
        for line in text.splitlines(keepends=True):
            starts.append(starts[-1] + len(line))
        spans = [
            (starts[token.start[0] - 1] + token.start[1], starts[token.end[0] - 1] + token.end[1])
            for token in tokenize.generate_tokens(io.StringIO(text).readline)
            if token.type in (tokenize.STRING, tokenize.COMMENT)
        ]
    spans += [word.span() for word in NO_FORMULA.finditer(text)]
    for pattern, changes in ((OPERATOR, OPERATORS), (NUMBER, NUMBERS)):
        for match in re.finditer(pattern, text):
            start, stop = match.span(match.lastindex)
            if not any(first <= start < end for first, end in spans):
                yield start, stop, changes[text[start:stop]]


def draw(n, seed):
    """Random mutations of the mathematics: n of them."""
    found = [
        (path, tests, site)
        for room, tests in ROOMS.items()
        for path in sorted(PACKAGE.glob(f"{room}*.*"))
        if path.suffix in (".py", ".pyx", ".h")
        for site in sites(path)
    ]
    return [mutation_at(*one) for one in random.Random(seed).sample(found, n)]


def mutation_at(path, tests, site):
    """A change of a file, with enough of the text around it for this to occur once."""
    text = path.read_text(encoding="utf-8")
    start, stop, new = site
    first, last = start, stop
    while text.count(text[first:last]) > 1:
        first, last = max(first - 8, 0), last + 8
    names = near(path)
    changed = text[first:start] + new + text[stop:last]
    calls = (names, tests) if names else (tests,)
    return Mutation(str(path.relative_to(PACKAGE)), text[first:last], changed, calls)


@functools.cache
def near(path):
    """The files of tests near a file, as arguments of pytest."""
    found = tests_near({module.relative_to(ROOT) for module in modules_of(path)})
    return " ".join(sorted(str(name.relative_to("tests")) for name in found))


def modules_of(path):
    """A module itself; of a header the modules that include it, or another one that does."""
    if path.suffix not in (".h", ".pxd"):
        return {path}
    imported = ".".join(path.relative_to(ROOT).with_suffix("").parts) + " cimport"
    including = [
        other
        for other in PACKAGE.rglob("*")
        if other.suffix in (".h", ".pxd", ".pyx")
        and re.search(f'["/]{path.name}"|{imported}', other.read_text(encoding="utf-8"))
    ]
    return set().union(*map(modules_of, including))


def main():
    """Run the mutations; exit with the number of those that survive."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("words", nargs="*", help="words of which a file's path has one")
    parser.add_argument("--list", action="store_true", help="print the mutations, and end")
    parser.add_argument("--random", type=int, metavar="N", help="N random ones instead")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    mutations = draw(options.random, options.seed) if options.random else MUTATIONS
    chosen = [m for m in mutations if not options.words or any(w in m.file for w in options.words)]
    if options.list:
        print(*chosen, sep="\n")
        return 0
    # Where a process is told to end, the source is put back as well.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    survivors = []
    for number, mutation in enumerate(chosen, 1):
        start = time.perf_counter()
        outcome = run(mutation)
        seconds = time.perf_counter() - start
        print(f"{number:3d} {outcome:8} {seconds:5.0f} s  {mutation}", flush=True)
        if outcome != "killed":
            survivors.append(mutation)
    print(f"{len(chosen) - len(survivors)} of {len(chosen)} mutations killed")
    return len(survivors)


def run(mutation):
    """Change the file, run the tests, and put the file back; -> "killed" or "survived"."""
    path = PACKAGE / mutation.file
    source, times = path.read_text(encoding="utf-8"), path.stat()
    n_found = source.count(mutation.old)
    if n_found != 1:
        return f"{n_found} times"
    try:
        path.write_text(source.replace(mutation.old, mutation.new), encoding="utf-8")
        build(path)
        return "survived" if all(map(passes, mutation.tests)) else "killed"
    except subprocess.CalledProcessError:  # it cannot be compiled
        return "killed"
    finally:
        path.write_text(source, encoding="utf-8")
        if path.suffix == ".py":  # so that what was compiled of it stays valid
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
        build(path)


def build(path):
    """Compile a kernel that has changed."""
    if path.suffix in (".pyx", ".h"):
        call = [sys.executable, "setup.py", "-q", "build_ext", "--inplace"]
        subprocess.run(call, cwd=ROOT, check=True, capture_output=True)


def passes(tests):
    """Whether tests pass, without a trace in the caches of Python and of pytest."""
    files = []
    for word in shlex.split(tests):
        paths = sorted(ROOT.glob(f"tests/{word}")) if word.endswith(".py") else [word]
        files += map(str, paths)
    call = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *files]
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(ROOT)}
    options = dict(cwd=ROOT, env=environment, capture_output=True, check=False, timeout=HANGS)
    try:
        ended = subprocess.run(call, **options)
    except subprocess.TimeoutExpired:
        return False
    if ended.returncode in (4, 5):  # no tests
        raise RuntimeError(ended.stdout.decode() + ended.stderr.decode())
    return ended.returncode == 0


if __name__ == "__main__":
    sys.exit(main())
