"""Bayesian selection of edges: the posterior probability that two columns interact."""

from dataclasses import dataclass
from numbers import Integral, Real

import numpy as np
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval

from sklearn_boltz._warnings import warn
from sklearn_boltz.missing._completion import distinct_incomplete
from sklearn_boltz.numerics._memory import check_memory
from sklearn_boltz.numerics._random import make_generator
from sklearn_boltz.statistics._arguments import counted, of_network
from sklearn_boltz.statistics._physics import r_hat
from sklearn_boltz.statistics._results import pair_frame, pair_matrix
from sklearn_boltz.tables._values import as_objects

# Above, chains have not forgotten where they began.
MAX_R_HAT = 1.1
# Parts of each chain, by whose means the error of an inclusion probability is estimated.
N_BATCHES = 10
# Of a random walk in one dimension, in standard deviations of a normal target.
STEP = 2.4
# New edges are proposed by earlier ones if there are this many, as a normal distribution with their
# standard deviation times this.
LEAST_FOUND, WIDER = 50, 1.3
# How often a sweep moves all thresholds.
N_THRESHOLD_MOVES = 4
# Steps of Hamiltonian dynamics in a sweep, their first length in widths, and the share of sweeps
# whose end is to be accepted. In the warm-up, a sweep changes the length by less than a tenth.
N_LEAPS, FIRST_LEAP, ACCEPTED, CHANGE = 6, 0.3, 0.8, 0.1


@dataclass(frozen=True, repr=False)
class EdgeInclusion:
    """Probability that each pair of columns interacts, by the posterior of the graph.

    The result of `edge_inclusion`.

    Parameters
    ----------
    samples : ndarray of shape (n_chains, n_sweeps, n_pairs)
        The interactions of each sweep, 0 where there is no edge. The pairs are in the order of
        ``numpy.triu_indices(n_features, 1)``.
    edge_prior : float
        The prior probability of an edge.
    feature_names : ndarray of str of shape (n_features,)
        Names of the variables.

    See Also
    --------
    edge_inclusion : The method, with its references.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_boltz import FVBMPseudoLikelihood, statistics
    >>> X = np.random.default_rng(0).choice([0, 1], size=(200, 3))
    >>> X[:, 1] = X[:, 0]
    >>> X[::9, 1] = 1 - X[::9, 1]
    >>> model = FVBMPseudoLikelihood().fit(X)
    >>> statistics.edge_inclusion(model, X, n_sweeps=200, random_state=0)
    EdgeInclusion: 1 of 3 pairs with a Bayes factor of 10 or more
    """

    samples: np.ndarray
    edge_prior: float
    feature_names: np.ndarray

    @property
    def probability(self):
        """The probability of each edge, (n_features, n_features), 0 on the diagonal."""
        return pair_matrix((self.samples != 0).mean(axis=(0, 1)), 0.0)

    @property
    def std_err(self):
        """The standard error of `probability` that comes from the finite number of sweeps."""
        parts = np.array_split(self.samples != 0, N_BATCHES, axis=1)
        means = np.concatenate([part.mean(axis=1) for part in parts])
        return pair_matrix(means.std(axis=0, ddof=1) / np.sqrt(len(means)), 0.0)

    @property
    def bayes_factor(self):
        """The posterior odds of each edge over the prior odds; infinite if it is in all sweeps.

        Below 1, the rows are evidence against the edge.
        """
        prior_odds = self.edge_prior / (1 - self.edge_prior)
        with np.errstate(divide="ignore"):
            return self.probability / (1 - self.probability) / prior_odds

    @property
    def interaction(self):
        """The mean interaction of each pair, 0 in graphs without the edge."""
        return pair_matrix(self.samples.mean(axis=(0, 1)), 0.0)

    @property
    def std(self):
        """The standard deviation of the interaction of each pair, in all graphs."""
        return pair_matrix(self.samples.std(axis=(0, 1)), 0.0)

    @property
    def r_hat(self):
        """R̂ of the interaction of each pair, NaN where it is always 0."""
        return pair_matrix([r_hat(x) for x in np.moveaxis(self.samples, 2, 0)], 0.0)

    def to_frame(self):
        """Return a table of all pairs, the most probable first; needs pandas.

        Returns
        -------
        frame : pandas.DataFrame
            A row for each pair of variables, with their names as the index.
        """
        names = ("probability", "std_err", "bayes_factor", "interaction", "std", "r_hat")
        frame = pair_frame(self.feature_names, {name: getattr(self, name) for name in names})
        return frame.sort_values("probability", ascending=False, kind="stable")

    def __repr__(self):
        n_found = (np.triu(self.bayes_factor, 1) >= 10).sum()
        return (
            f"EdgeInclusion: {n_found} of {self.samples.shape[2]} pairs with a Bayes factor of "
            "10 or more"
        )


@of_network(
    {
        "X": ["array-like"],
        "sample_weight": ["array-like", None],
        "edge_prior": [Interval(Real, 0, 1, closed="neither")],
        "interaction_scale": [Interval(Real, 0, None, closed="neither")],
        "likelihood_power": [Interval(Real, 0, 1, closed="right")],
        "n_sweeps": [Interval(Integral, N_BATCHES, None, closed="left")],
        "n_chains": [Interval(Integral, 2, None, closed="left")],
        "random_state": ["random_state", np.random.Generator],
    },
    numbers=True,  # it refuses them
)
def edge_inclusion(
    network,
    X,
    *,
    sample_weight=None,
    edge_prior=0.5,
    interaction_scale=2.5,
    likelihood_power=0.5,
    n_sweeps=1000,
    n_chains=4,
    random_state=None,
):
    """Return the posterior probability of each edge of a binary or ordinal network.

    Unlike a penalty or a test, it distinguishes evidence against an edge from a lack of evidence.

    Parameters
    ----------
    network : FVBMPseudoLikelihood, SparseFVBM or MaximumEntropy
        A fitted network, whose kinds of columns are used. Its estimates are not.
    X : array-like of shape (n_samples, n_features)
        The training data. Rows with missing cells are left out, with a warning.
    sample_weight : array-like of shape (n_samples,), default=None
        How often each row counts. None counts each once.
    edge_prior : float, default=0.5
        The prior probability of each edge.
    interaction_scale : float, default=2.5
        The scale of the Cauchy prior of an interaction if there is the edge.
    likelihood_power : float, default=0.5
        The power of the pseudo-likelihood, see Notes. 1 gives the posterior of the R package bgms.
    n_sweeps : int, default=1000
        Number of sweeps of each chain that are kept. Half as many come before them.
    n_chains : int, default=4
        Number of chains. They begin with graphs that have none to all of the edges.
    random_state : int, RandomState instance, Generator or None, default=None
        The source of randomness.

    Returns
    -------
    result : EdgeInclusion
        `probability`, `bayes_factor`, `interaction` and other statistics of each pair, and
        `to_frame` for a table of them.

    Raises
    ------
    ValueError
        If columns of more than two values have no order, if a column has the same value in all
        rows without missing cells, or if the sweeps do not fit into memory.

    Warns
    -----
    UserWarning
        If rows have missing cells, or if these are not the rows and weights of the fit.
    ConvergenceWarning
        If the chains do not agree: R̂ of a pair is above 1.1.

    See Also
    --------
    stability_selection : Edges that most halves of the rows select.
    inference : Standard errors and p values.

    Notes
    -----
    The model is that of bgms [1]_. Levels are numbered from 0 in their order, and

        ln p(x) = Σ_j μ_j(x_j) + Σ_{j<k} σ_jk x_j x_k + ...

    with a threshold for each level above 0, and a single interaction σ_jk for each pair. For binary
    columns it is 4 times the coupling of a network. The prior of a threshold μ has the density of
    the logit of a Beta(½, ½). From version 0.2 on, bgms has halves of these interactions, and a
    scale of 1 there is 2 here.

    The pseudo-likelihood takes the place of the likelihood. It counts each pair of columns twice,
    once in the regression of either column on the other: for independent columns, its logarithm has
    twice the curvature in σ that the log-likelihood has. So its Bayes factors are too extreme, and
    its intervals too narrow by √2. Its square root, the default, has the right curvature there. It
    has too little for thresholds, which matters little to edges.

    In 150 tables of 300 rows and 6 binary columns, drawn from the prior with a scale of 0.5, 98 %
    of the pairs with a probability of 0.95 to 0.99 had an edge, 82 % of those with 0.8 to 0.95, and
    47 % of those with 0.4 to 0.6. With a power of 1 these were 77, 63 and 45 %.

    A sweep proposes for each pair to add or to remove its edge, then new interactions of all edges
    together by Hamiltonian dynamics, and new thresholds of each column. The time grows with the
    square of the number of columns, and with the number of distinct rows: 6,000 sweeps of 344 rows
    of 17 columns with 5 levels take 16 s. Where the rows separate a pair, its mean interaction
    does not converge, as the prior has no mean.

    References
    ----------
    .. [1] M. Marsman, D. van den Bergh and J. M. B. Haslbeck, "Bayesian Analysis of the Ordinal
       Markov Random Field", Psychometrika 90(1), 146–182, 2025.
       https://doi.org/10.1017/psy.2024.4

    Examples
    --------
    Answers from 0 to 3 to three questions. The third is like the first, with noise.

    >>> import numpy as np
    >>> from sklearn_boltz import FVBMPseudoLikelihood, statistics
    >>> rng = np.random.default_rng(0)
    >>> X = rng.integers(4, size=(400, 3))
    >>> X[:, 2] = np.clip(X[:, 0] + rng.integers(-2, 3, size=400), 0, 3)
    >>> model = FVBMPseudoLikelihood(columns="ordinal").fit(X)
    >>> result = statistics.edge_inclusion(model, X, n_sweeps=500, random_state=0)
    >>> np.argwhere(np.triu(result.bayes_factor > 10))
    array([[0, 2]])
    >>> round(float(result.interaction[0, 2]), 1)
    0.5
    """
    codes, weights = complete_levels(network, *counted(network, X, sample_weight))
    pairs, warm_up = np.triu_indices(codes.shape[1], 1), n_sweeps // 2
    check_memory(
        8 * len(pairs[0]) * n_chains * (warm_up + 2 * n_sweeps),
        f"edge_inclusion: {n_sweeps:,} sweeps of {n_chains} chains and {len(pairs[0]):,} pairs",
        "Set a smaller n_sweeps, or leave out columns.",
    )
    chains = EdgeChains(
        *(codes, weights, network.n_values_, edge_prior, interaction_scale),
        *(likelihood_power, n_chains, make_generator(random_state)),
    )
    samples = np.empty((n_chains, warm_up + n_sweeps, len(pairs[0])))
    for k in range(warm_up + n_sweeps):
        if k in (warm_up // 4, warm_up // 2, 3 * warm_up // 4):
            chains.learn(samples[:, k // 2 : k], pairs)
        chains.sweep(tune=k < warm_up)
        samples[:, k] = chains.interaction[:, *pairs]
    names = as_objects(network._input_names())
    result = EdgeInclusion(samples[:, warm_up:].copy(), edge_prior, names)
    warn_of_chains(result)
    return result


def complete_levels(network, codes, weights):
    """The distinct rows without gaps, and their weights; an error for columns without an order."""
    scored = np.flatnonzero(network._encoder.is_scored)
    unordered = np.flatnonzero(~network._encoder.is_ordered & (network.n_values_ > 2))
    if len(scored):
        reason = f"{network._have(scored)} normal scores. Declare numbers as 'binned'"
    elif len(unordered):
        name, values = list(network.columns_)[unordered[0]], network.categories_[unordered[0]]
        reason = (
            f"{network._have(unordered)} values without one. Declare it, with the values in their "
            f"order: columns={{{name!r}: ('ordinal', {np.asarray(values).tolist()})}}"
        )
    if len(scored) or len(unordered):
        raise ValueError(
            f"edge_inclusion is for binary columns and levels with an order, and {reason}, or "
            "leave them out."
        )
    gaps = (codes < 0).any(axis=1)
    if gaps.any():
        warn(
            f"edge_inclusion leaves out {gaps.sum()} of {len(gaps)} rows, which have missing "
            "cells. To use them, fill the cells first, several times, by BoltzmannImputer with "
            "how='sample'."
        )
    codes, weights = codes[~gaps], weights[~gaps]
    constant = np.flatnonzero((codes == codes[:1]).all(axis=0))
    if len(constant):
        raise ValueError(
            f"edge_inclusion: {network._have(constant)} a single value in all rows without "
            "missing cells, which say nothing about edges then. Leave out such columns."
        )
    return distinct_incomplete(codes, weights)


def warn_of_chains(result):
    # Chains that stay at different values have no R̂.
    found = np.where(result.std > 0, np.nan_to_num(result.r_hat, nan=np.inf), 0)
    if found.max(initial=0) > MAX_R_HAT:
        j, k = np.unravel_index(found.argmax(), found.shape)
        names = result.feature_names
        warn(
            f"edge_inclusion: the chains do not agree, R̂ of {names[j]!r} and {names[k]!r} is "
            f"{found.max():.2f}. Raise n_sweeps.",
            ConvergenceWarning,
        )


def rounds(d):
    """All pairs of d columns in rounds, in none of which a column occurs twice.

    As in a tournament: one stays and the others go round.
    """
    circle, half = np.arange(1, d + d % 2), (d + 1) // 2
    for k in range(len(circle)):
        order = np.append(0, np.roll(circle, k))
        pairs = np.sort([order[:half], order[half:][::-1]], axis=0)
        yield pairs[:, pairs[1] < d]


def threshold_steps(counts, power):
    """Roots of covariances of proposed thresholds, (d, n_levels, n_levels).

    The inverse information of independent columns, with a row more, spread over the levels.
    """
    found = np.zeros((*counts.shape, counts.shape[1]))[:, 1:, 1:]
    for own, root in zip(counts, found, strict=True):
        m = int(np.flatnonzero(own).max())
        p = own[1 : m + 1] + 1 / (m + 1)
        total = own.sum() + 1
        information = power * (np.diag(p) - np.outer(p, p) / total)
        root[:m, :m] = STEP / np.sqrt(m) * np.linalg.cholesky(np.linalg.inv(information))
    return found


class EdgeChains:
    """Metropolis chains of thresholds, interactions and edges, all moved at once.

    Cells are centred. So are the thresholds, μ_jh + h Σ_k σ_jk mean_k, which hardly depend on the
    interactions then; the prior is that of the others. Columns are independent given the
    interactions, so that pairs without a common column move at once, too.

    Parameters
    ----------
    codes : ndarray of int of shape (n_rows, d)
    weights : ndarray of float64 of shape (n_rows,)
    n_values : ndarray of int of shape (d,)
    edge_prior, scale, power : float
    n_chains : int
    generator : Generator
    """

    def __init__(self, codes, weights, n_values, edge_prior, scale, power, n_chains, generator):
        d, self.weights, self.generator = codes.shape[1], weights, generator
        self.power, self.scale = power, scale
        self.log_odds = np.log(edge_prior / (1 - edge_prior))
        self.means = weights @ codes / weights.sum()
        self.cells = np.ascontiguousarray((codes - self.means).T)
        products = (self.cells * weights) @ self.cells.T
        # Symmetric to the last bit: leaps would let a difference grow.
        self.products = (products + products.T) / 2
        self.levels = np.arange(1, n_values.max())
        self.exists = self.levels < n_values[:, np.newaxis]
        counts = np.array([np.bincount(x, weights, n_values.max()) for x in codes.T])
        self.counts = counts[:, 1:]
        self.threshold_steps = threshold_steps(counts, power)
        spread = np.sqrt(self.products.diagonal())
        # Of proposed interactions; `learn` moves them. The widths are those of independent columns.
        self.centres = np.zeros((d, d))
        self.widths = STEP * np.sqrt(weights.sum() / (2 * power)) / np.outer(spread, spread)
        self.rounds, self.leap = list(rounds(d)), FIRST_LEAP
        self.begin(counts, n_chains)

    def begin(self, counts, n_chains):
        """Independent columns with some edges: none in the first chain, all in the last."""
        d = len(counts)
        logits = np.log((counts[:, 1:] + 0.5) / (counts[:, :1] + 0.5)) * self.exists
        self.thresholds = np.tile(logits, (n_chains, 1, 1))
        share = np.linspace(0, 1, n_chains)[:, np.newaxis, np.newaxis]
        shape = n_chains, d, d
        some = self.widths * self.generator.normal(size=shape)
        some = np.triu(some * (self.generator.random(shape) < share), 1)
        self.interaction = some + some.swapaxes(1, 2)
        self.fields = self.interaction @ self.cells
        self.shifts = self.interaction @ self.means
        self.log_p = self.log_density(slice(None), self.thresholds, self.fields, self.shifts)

    def log_density(self, columns, thresholds, fields, shifts):
        """Log-density of each column given the others, with its prior, (n_chains, n_columns).

        Less what a field times its cells adds.
        """
        exists = self.exists[columns]
        weights, factor = np.exp(thresholds) * exists, np.exp(fields)
        total = np.zeros_like(factor)
        for h in self.levels[::-1] - 1:
            total += weights[..., h, np.newaxis]
            total *= factor
        log_z = np.log1p(total, out=total) @ self.weights
        own = thresholds - self.levels * shifts[..., np.newaxis]
        prior = np.where(exists, own / 2 - np.logaddexp(0, own), 0).sum(axis=-1)
        observed = (thresholds * self.counts[columns]).sum(axis=-1)
        return self.power * (observed - log_z) + prior

    def log_prior(self, interaction):
        """Log prior odds of an edge and its interaction against no edge."""
        # Cauchy's law.
        log_p = self.log_odds - np.log(np.pi * (self.scale + interaction**2 / self.scale))
        return np.where(interaction != 0, log_p, 0)

    def log_proposal(self, interaction, j, k):
        """Log-density of proposing an edge, relative to its removal."""
        z = (interaction - self.centres[j, k]) / self.widths[j, k]
        log_q = -(z**2) / 2 - np.log(np.sqrt(2 * np.pi) * self.widths[j, k])
        return np.where(interaction != 0, log_q, 0)

    def learn(self, samples, pairs):
        """Propose new edges where earlier sweeps had them, (n_chains, n_sweeps, n_pairs)."""
        n_found = (samples != 0).sum(axis=(0, 1))
        mean, square = (np.sum(samples**k, axis=(0, 1)) / np.maximum(n_found, 1) for k in (1, 2))
        width = WIDER * np.sqrt(np.maximum(square - mean**2, 0))
        known = n_found >= LEAST_FOUND
        places = tuple(np.array(pairs)[:, known])
        self.centres[places] = mean[known]
        self.widths[places] = np.maximum(width[known], self.widths[places] / 2)
        self.widths[places[::-1]] = self.widths[places]

    def accepts(self, gain):
        return np.log(self.generator.random(gain.shape)) < gain

    def sweep(self, tune):
        """Move all edges, interactions and thresholds; change the length of leaps if wanted."""
        # Where a proposal is so far off that it overflows, it is refused.
        with np.errstate(over="ignore", invalid="ignore"):
            for pairs in self.rounds:
                self.move_edges(*pairs)
            accepted = self.move_interactions()
            for _ in range(N_THRESHOLD_MOVES):
                self.move_thresholds()
        if tune:
            self.leap *= np.exp(CHANGE * (accepted.mean() - ACCEPTED))

    def move_edges(self, j, k):
        """Add or remove the edges of pairs that have no column in common."""
        old = self.interaction[:, j, k]
        noise = self.generator.normal(size=old.shape)
        new = np.where(old == 0, self.centres[j, k] + self.widths[j, k] * noise, 0)
        ends, others, n = np.append(j, k), np.append(k, j), len(j)
        change = np.tile(new - old, 2)
        fields = self.fields[:, ends] + change[..., np.newaxis] * self.cells[others]
        shifts = self.shifts[:, ends] + change * self.means[others]
        log_p = self.log_density(ends, self.thresholds[:, ends], fields, shifts)
        gain = log_p - self.log_p[:, ends]
        gain = gain[:, :n] + gain[:, n:] + 2 * self.power * (new - old) * self.products[j, k]
        gain += self.log_prior(new) - self.log_prior(old)
        gain -= self.log_proposal(new, j, k) - self.log_proposal(old, j, k)
        chain, pair = np.nonzero(self.accepts(gain))
        self.interaction[chain, j[pair], k[pair]] = new[chain, pair]
        self.interaction[chain, k[pair], j[pair]] = new[chain, pair]
        for place in pair, pair + n:
            self.fields[chain, ends[place]] = fields[chain, place]
            self.shifts[chain, ends[place]] = shifts[chain, place]
            self.log_p[chain, ends[place]] = log_p[chain, place]

    def move_interactions(self):
        """Change the interactions of all edges together; -> which chains do."""
        shape, x = self.interaction.shape, self.interaction
        leap = self.leap * self.widths * (x != 0)
        leap *= self.generator.uniform(0.5, 1.5, size=(len(x), 1, 1))
        p = np.triu(self.generator.normal(size=shape), 1) * (x != 0)
        start = p = p + p.swapaxes(1, 2)
        slope = self.slope(x, x @ self.cells, x @ self.means)
        for _ in range(N_LEAPS):
            p = p + leap / 2 * slope
            x = x + leap * p
            fields, shifts = x @ self.cells, x @ self.means
            slope = self.slope(x, fields, shifts)
            p = p + leap / 2 * slope
        log_p = self.log_density(slice(None), self.thresholds, fields, shifts)
        # Matrices have each pair twice.
        gain = self.log_prior(x) - self.log_prior(self.interaction) + (start**2 - p**2) / 2
        gain = gain / 2 + self.power * (x - self.interaction) * self.products
        accepted = self.accepts(gain.sum(axis=(1, 2)) + (log_p - self.log_p).sum(axis=1))
        self.interaction[accepted], self.fields[accepted] = x[accepted], fields[accepted]
        self.shifts[accepted], self.log_p[accepted] = shifts[accepted], log_p[accepted]
        return accepted

    def slope(self, interaction, fields, shifts):
        """The derivatives of the log posterior by the interactions, (n_chains, d, d)."""
        weights, factor = np.exp(self.thresholds) * self.exists, np.exp(fields)
        total, moment = np.zeros((2, *factor.shape))
        for h in self.levels[::-1] - 1:
            total += weights[..., h, np.newaxis]
            total *= factor
            moment *= factor
            moment += total
        expected = (moment / (1 + total) * self.weights) @ self.cells.T
        below = expit(self.thresholds - self.levels * shifts[..., np.newaxis]) - 0.5
        by_shifts = (self.exists * self.levels * below).sum(axis=-1)
        one_way = by_shifts[..., np.newaxis] * self.means - self.power * expected
        prior = -2 * interaction / (self.scale**2 + interaction**2)
        return one_way + one_way.swapaxes(1, 2) + 2 * self.power * self.products + prior

    def move_thresholds(self):
        """Change all thresholds of each column."""
        noise = self.generator.normal(size=self.thresholds.shape)
        moved = self.thresholds + np.einsum("jab,cjb->cja", self.threshold_steps, noise)
        log_p = self.log_density(slice(None), moved, self.fields, self.shifts)
        accepted = self.accepts(log_p - self.log_p)
        self.thresholds[accepted], self.log_p[accepted] = moved[accepted], log_p[accepted]
