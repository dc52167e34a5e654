"""Terms of three columns and more: their pseudo-likelihood, what they are worth, and their choice.

Candidates are all triples at once, and of higher orders the terms all of whose parts are there.
"""

import math
from functools import partial
from itertools import combinations

import numpy as np
from scipy.sparse import csr_array

from sklearn_boltz.networks.model._spin_model import SpinModel
from sklearn_boltz.networks.training._existence import without_maximum
from sklearn_boltz.networks.training._likelihood import Further
from sklearn_boltz.networks.training._objective import Objective, Point, PseudoLikelihood
from sklearn_boltz.networks.training._solvers import Monitor, lbfgs

# Entries of a temporary array that should stay in the cache.
CACHED = 2**18
# Of sech² of the fields of a column, a mean that is not 0.
LEAST_SECH2 = 1e-6
# A joint value of the columns of a term is rare in fewer rows.
LEAST_ROWS = 5
# Rows that are multiplied at once.
ROWS = 2**12
# A round appends this many terms at most, or this share of those that there are. The evidence of
# several times as many triples is looked at.
FEW, SHARE, PER_TERM = 32, 0.5, 10
# Rounds, and iterations of a refit, at most.
MAX_ROUNDS, MAX_ITER = 100, 5000
# While terms are chosen, a refit ends when an iteration raises the objective by less, in nats.
ROUGH = 0.1


class InteractionPseudoLikelihood(Objective):
    """Σ_i w_i Σ_j [x_ij F_ij - ln cosh F_ij - ln 2] - ½ α N (Σ_{j<k} m_jk² + Σ_t θ_t²).

    F_ij = b_j + Σ_k m_jk x_ik + Σ_{t ∋ j} θ_t ∏_{k ∈ t, k ≠ j} x_ik. With p_t = ∏_{k ∈ t} x_k, the
    term t adds x_j p_t to the field of each of its columns, since x_j² = 1. A missing cell is a
    0: it takes its term out of the row.

    Parameters
    ----------
    pairs : PseudoLikelihood
        The same without the terms: rows, weights and penalty.
    terms : list of tuples of int
        Columns.
    allowed : ndarray of bool of shape (d, d), default=None
        The pairs whose coupling is not 0; None for all.
    """

    def __init__(self, pairs: PseudoLikelihood, terms, allowed=None):
        self.pairs, self.terms = pairs, terms
        forbidden = [] if allowed is None else np.flatnonzero(~allowed[pairs.upper])
        self._forbidden = np.array(forbidden, dtype=np.intp) + len(pairs.means)
        self.total = pairs.total
        signs = pairs.spins.astype(np.int8)
        self.products = np.array([signs[list(term)].prod(axis=0, dtype=np.int8) for term in terms])
        self.products = self.products.reshape(len(terms), signs.shape[1])
        columns = np.array([j for term in terms for j in term], dtype=np.int64)
        self.orders = np.array([len(term) for term in terms], dtype=np.int64)
        starts = np.concatenate([[0], np.cumsum(self.orders)])
        shape = len(terms), len(signs)
        # Which columns are in which term, (n_terms, d).
        self.incidence = csr_array((np.ones(len(columns)), columns, starts), shape)
        self.moments = sum(
            self.products[:, rows].astype(np.float64) @ pairs.weights[rows]
            for rows in self._row_blocks()
        )

    def _row_blocks(self):
        """Slices of the data, so long that all terms of these rows fill the cache."""
        n, step = self.pairs.spins.shape[1], max(64, CACHED // max(1, len(self.terms)))
        return (slice(start, start + step) for start in range(0, n, step))

    def pack(self, coupling, intercept, weights):
        """θ: intercepts, couplings j < k, weights of the terms."""
        return np.concatenate([self.pairs.pack(coupling, intercept), weights])

    def unpack(self, theta):
        """The couplings, the intercepts and the weights of the terms."""
        n_pairs = self.pairs.n_parameters
        return *self.pairs.unpack(theta[:n_pairs]), theta[n_pairs:]

    def fields(self, coupling, intercept, weights):
        """F, of shape (d, n)."""
        fields = self.pairs.fields(coupling, intercept)
        weighted = (self.incidence * weights[:, np.newaxis]).T.tocsr()
        for rows in self._row_blocks():
            added = weighted @ self.products[:, rows].astype(np.float64)
            fields[:, rows] += self.pairs.spins[:, rows] * added
        return fields

    def at(self, theta):
        """Evaluate the objective and its gradient."""
        coupling, intercept, weights = self.unpack(theta)
        fields, penalty = self.fields(coupling, intercept, weights), self.pairs.penalty
        point = self.pairs.at(theta[: self.pairs.n_parameters], fields)
        value = (
            point.value + weights @ (self.orders * self.moments) - penalty / 2 * weights @ weights
        )
        gradient = np.empty_like(theta)
        gradient[: self.pairs.n_parameters] = self.pairs.gradient(point)
        gradient[self.pairs.n_parameters :] = self._slopes(point.tanh) - penalty * weights
        gradient[self._forbidden] = 0  # where θ is 0, and stays so
        self.pairs.recycle(point)
        return Point(theta, float(value), gradient)

    def _slopes(self, tanh):
        """Σ_i w_i p_it Σ_{j ∈ t} (1 - x_ij tanh F_ij) for each term."""
        slopes = self.orders * self.moments
        for rows in self._row_blocks():
            agreement = self.pairs.spins[:, rows] * tanh[:, rows] * self.pairs.weights[rows]
            own = self.incidence @ agreement
            slopes -= np.einsum("tn,tn->t", own, self.products[:, rows])
        return slopes

    def tanh(self, coupling, intercept, weights):
        """tanh F of the rows, (d, n); 0 for a missing cell."""
        fields = self.fields(coupling, intercept, weights)
        if self.pairs.observed is not None:
            fields *= self.pairs.observed
        return np.tanh(fields, out=fields)

    def set_scale(self, theta):
        """Take the curvature at some parameters for that of the objective."""
        observed = 1.0 if self.pairs.observed is None else self.pairs.observed
        sech2 = observed - self.tanh(*self.unpack(theta)) ** 2
        # A column that all others determine still needs a scale.
        self._sech2 = sech2 @ self.pairs.weights + LEAST_SECH2 * self.pairs.total

    def curvature(self):
        """The negative diagonal of the second derivative where `set_scale` was called."""
        sech2, penalty = self._sech2, self.pairs.penalty
        couplings = (sech2[:, np.newaxis] + sech2)[self.pairs.upper]
        return np.concatenate([sech2, couplings + penalty, self.incidence @ sech2 + penalty])


# What terms are worth.


def gains(pairs: PseudoLikelihood, tanh, terms, weights, present, allowed=None):
    """Half the squared z values of terms, for those in the model as for candidates.

    For a term t and the parts l of it that are in the model, let s be the scores of a row, and H
    minus the second derivative of the penalised log pseudo-likelihood. u = s_t - H_tl H_ll⁻¹ s_l is
    the score whose mean does not change with the parameters l. Were the weight θ_t 0, its sum would
    be A = Σ u + θ_t (H_tt - H_tl H_ll⁻¹ H_lt); and the gain is A² / (2 Σ u²). This is with the
    variance of the scores, and not with H: that is too small for a pseudo-likelihood, where a term
    stands in the conditional distribution of each of its columns.

    Where a joint value of the columns is rare, H_ll is nearly singular, and u is s_t, whose
    variance is greater. Without a penalty there may be no maximum, and among selected pairs, of
    which the rarest are missing, too much is a product of columns: then the gain counts for 0.

    Parameters
    ----------
    pairs : PseudoLikelihood
    tanh : ndarray of shape (d, n)
        Of the fields of the rows.
    terms : list of tuples of int
    weights : sequence of float
        Their weights, 0 for candidates.
    present : set of tuples of int
        The terms in the model.
    allowed : ndarray of bool of shape (d, d), default=None
        The pairs in the model; None for all.

    Returns
    -------
    gains : ndarray of shape (n_terms,)
        In nats.
    """
    x, allow_rare = pairs.spins, pairs.penalty > 0 and allowed is None
    q = np.abs(x) - x * tanh
    curvature = np.abs(x) - tanh**2
    curvature *= pairs.weights
    found = [
        _gain(x[list(term)], q[list(term)], curvature[list(term)], pairs, weight, parts, allow_rare)
        for term, weight, parts in zip(
            terms, weights, (_parts(term, present, allowed) for term in terms), strict=True
        )
    ]
    return np.array(found, dtype=np.float64)


def _parts(term, present, allowed):
    """The parts of a term that are in the model, as places in the term; the term itself last."""
    k = len(term)

    def is_present(part):
        if len(part) > 2:
            return part in present
        return len(part) < 2 or allowed is None or allowed[part]

    places = (places for size in range(1, k) for places in combinations(range(k), size))
    parts = [part for part in places if is_present(tuple(term[a] for a in part))]
    return [*parts, tuple(range(k))]


def _gain(x, q, curvature, pairs, weight, parts, allow_rare):
    rare = rarest(x, pairs.weights) < LEAST_ROWS
    if rare and not allow_rare:
        return 0.0
    products = np.array([x[list(part)].prod(axis=0) for part in parts])
    contains = np.array([[a in part for a in range(len(x))] for part in parts])
    share, effective = _adjustment(_information(products, contains, curvature, pairs.penalty))
    scores = products * (contains.astype(np.float64) @ q)
    score = scores[-1] if rare else scores[-1] - share @ scores[:-1]
    slope = pairs.weights @ score + weight * effective
    return float(slope**2 / (2 * max(pairs.weights @ score**2, 1e-300)))


def _information(products, contains, curvature, penalty):
    """H of the parts of a term: each column has a regression on the parts that contain it."""
    information = np.zeros((len(products),) * 2)
    for own, sech2 in zip(contains.T, curvature, strict=True):
        information[np.ix_(own, own)] += (products[own] * sech2) @ products[own].T
    information[np.diag_indices_from(information)] += penalty * (contains.sum(axis=1) > 1)
    return information


def _adjustment(information):
    """H_ll⁻¹ H_lt and H_tt - H_tl H_ll⁻¹ H_lt, t being the last parameter."""
    known, mixed = information[:-1, :-1], information[:-1, -1]
    ridge = max(1e-12 * known.trace(), 1e-30) * np.eye(len(known))
    share = np.linalg.solve(known + ridge, mixed)
    return share, information[-1, -1] - mixed @ share


def rarest(x, weights):
    """How many rows have the rarest joint value of some columns; rows with gaps do not count."""
    codes = (x > 0).T @ (1 << np.arange(len(x)))
    return np.bincount(codes, weights * (x != 0).all(axis=0), minlength=1 << len(x)).min()


def empty_term(pairs: PseudoLikelihood, terms):
    """The first term of which a joint value of its columns does not occur; None if all do.

    If all parts of the term are in the model, there is then no maximum without a penalty.
    """
    for term in terms:
        parts = (part for k in range(3, len(term)) for part in combinations(term, k))
        if all(part in terms for part in parts) and not rarest(
            pairs.spins[list(term)], pairs.weights
        ):
            return term
    return None


def best_triples(pairs: PseudoLikelihood, tanh, n_best, known):
    """The triples of columns whose scores are greatest, in standard deviations.

    The score of a triple is A = Σ w p (q_i + q_j + q_k), with p = x_i x_j x_k and q = 1 - x tanh F,
    and its variance about J = Σ w (q_i + q_j + q_k)², as p² = 1. For each i, all A are one product
    of matrices.

    Parameters
    ----------
    pairs : PseudoLikelihood
    tanh : ndarray of shape (d, n)
        Of the fields of the rows.
    n_best : int
        How many triples are wanted.
    known : set of tuples of int
        Those that are not.

    Returns
    -------
    triples : list of tuples of int
        The best first.
    """
    x, w = pairs.spins.astype(np.float32), pairs.weights.astype(np.float32)
    q = np.abs(x) - x * tanh.astype(np.float32)
    products = (q * w) @ q.T
    gains, triples = np.empty(0), np.empty((0, 3), dtype=np.int64)
    for i in range(len(x) - 2):
        score = _scores_with(x, q, w, i)
        variance = _variances_with(products, i)
        j, k = np.triu_indices(len(score), 1)
        new = score[j, k] ** 2 / np.maximum(variance[j, k], 1e-30)
        rest = np.column_stack([np.full(len(j), i), i + 1 + j, i + 1 + k])
        gains, triples = np.concatenate([gains, new]), np.concatenate([triples, rest])
        if len(gains) > n_best + len(known):
            best = np.argpartition(-gains, n_best + len(known))[: n_best + len(known)]
            gains, triples = gains[best], triples[best]
    triples = triples[np.lexsort([*triples.T, -gains])]
    found = (tuple(triple) for triple in triples.tolist())
    return [triple for triple in found if triple not in known][:n_best]


def _scores_with(x, q, w, i):
    """A_ijk of all j and k greater than i, a symmetric matrix."""
    total = 0.0
    for start in range(0, x.shape[1], ROWS):
        rows = slice(start, start + ROWS)
        others = x[i + 1 :, rows]
        # q_i is shared out between j and k.
        left = others * (q[i + 1 :, rows] + 0.5 * q[i, rows])
        left *= w[rows] * x[i, rows]
        total = total + left @ others.T
    return total + total.T


def _variances_with(products, i):
    """J_ijk of all j and k greater than i, from the sums of q_i q_j."""
    own, squares = products[i, i + 1 :], products.diagonal()[i + 1 :]
    mixed = np.add.outer(own, own) + products[i + 1 :, i + 1 :]
    return products[i, i] + np.add.outer(squares, squares) + 2 * mixed


def heirs(terms, order):
    """Terms of one order all of whose parts of one column less are among the terms given."""
    parts = {term for term in terms if len(term) == order - 1}
    unions = {
        tuple(sorted({*one, *other}))
        for one, other in combinations(sorted(parts), 2)
        if len({*one, *other}) == order
    }
    return sorted(u for u in unions if all(p in parts for p in combinations(u, order - 1)))


# Their choice.


def refit(pairs: PseudoLikelihood, network, terms, tol, allowed=None):
    """Maximise the objective of some terms, all parameters jointly, from a network with others.

    Returns
    -------
    network : SpinModel
    value : float
        The objective.
    status : str
        How the fit ended, as of `Monitor`.
    """
    if not len(pairs.means):
        return network, 0.0, "converged"
    problem = InteractionPseudoLikelihood(pairs, terms, allowed)
    known = dict(zip(network.terms, network.weights, strict=True))
    weights = np.array([known.get(term, 0.0) for term in terms])
    monitor = Monitor(tol, MAX_ITER)
    theta = problem.pack(network.coupling, network.intercept, weights)
    problem.set_scale(theta)
    point, _ = lbfgs(problem, problem.at(theta), monitor)
    coupling, intercept, weights = problem.unpack(point.theta)
    return SpinModel(coupling, intercept, terms, weights), point.value, monitor.status


def _paying(pairs, tanh, present, allowed, price, terms, weights):
    """The terms whose gain is greater than their price, the best first."""
    d, weight = len(pairs.means), math.log(max(pairs.total, 1)) / 2
    lengths = np.array([weight + math.log(math.comb(d, len(term))) for term in terms])
    profit = gains(pairs, tanh, terms, weights, present, allowed) - price * lengths
    return [terms[place] for place in np.argsort(-profit, kind="stable") if profit[place] > 0]


def _apart(terms):
    """The first of those that share all columns but one, as these mostly explain the same."""
    chosen, taken = [], set()
    for term in terms:
        parts = set(combinations(term, len(term) - 1))
        if not parts & taken:
            chosen.append(term)
            taken |= parts
    return chosen


def fit_terms(task, initial, allowed, max_order, price, rounds):
    """Choose terms in the columns that vary, and fit them.

    Terms that pay are appended, and those that do not removed, all refitted, until nothing changes.
    A term pays if its gain is greater than `price` times the length of its description: ½ ln N nats
    for its weight, N being the number of rows, and ln C(d, k) for its place among all terms of
    order k.

    Parameters
    ----------
    task : Task
    initial : (ndarray or None, ndarray or None)
        Couplings and intercepts of all columns.
    allowed : ndarray of bool of shape (n_features, n_features) or None
        The pairs of all columns that have a coupling; None for all pairs.
    max_order : int
        Number of columns of a chosen term at most.
    price : float
    rounds : Monitor
        The last iteration of the last round raises the objective by less than its `tol`.

    Returns
    -------
    message : str or None
        A warning about how the fit ended.
    gains : ndarray of shape (n_terms,)
        Those of the terms, in nats.
    """
    pairs, rounds.total = task.problem, task.problem.total
    if allowed is not None:
        allowed = allowed[np.ix_(task.varying, task.varying)]
    network = SpinModel(*pairs.unpack(task.initial(*initial)))
    rounds.status = _rounds(pairs, network, allowed, max_order, price, rounds)
    last = rounds.last
    message = _unbounded(task, pairs, last.terms)
    if message is None and rounds.status == "max_iter":
        message = (
            f"The choice of terms ended at max_iter={rounds.max_iter} rounds. Raise max_iter, "
            "or use a larger alpha."
        )
    present = set(last.terms)
    return message, gains(pairs, _tanh(pairs, last), last.terms, last.weights, present, allowed)


def _tanh(pairs, network):
    """tanh F of the rows."""
    problem = InteractionPseudoLikelihood(pairs, network.terms)
    return problem.tanh(network.coupling, network.intercept, network.weights)


def _rounds(pairs, network, allowed, max_order, price, rounds):
    """Choose terms, and fit them; -> how that ended."""
    refused, status = set(), "initial"

    def is_last(terms, tol):
        """Whether the round with these terms, which is fitted, is the last."""
        nonlocal network, status
        network, value, status = refit(pairs, network, terms, tol, allowed)
        line = f"round {len(rounds.values) + 1}: {len(terms)} terms, {value:.8f}"
        rounds.add(value, network, line, n_terms=len(terms))
        return rounds.stop() or len(rounds.values) >= rounds.max_iter

    ends = is_last([], ROUGH)
    for _ in range(0 if ends or len(pairs.means) < 3 else MAX_ROUNDS):
        terms, tanh = network.terms, _tanh(pairs, network)
        worth = partial(_paying, pairs, tanh, set(terms), allowed, price)
        kept, n_wanted = worth(terms, network.weights), max(FEW, int(SHARE * len(terms)))
        refused |= set(terms) - set(kept)
        known = refused | set(terms)
        candidates = best_triples(pairs, tanh, PER_TERM * n_wanted, known)
        for order in range(4, max_order + 1):
            candidates += [term for term in heirs(terms, order) if term not in known]
        new = _apart(worth(candidates, np.zeros(len(candidates))))[:n_wanted]
        ends = not (new or len(kept) < len(terms)) or is_last(sorted(kept) + new, ROUGH)
        if ends:
            break
    n_rounds = len(rounds.values)
    if not (rounds.asked or n_rounds >= rounds.max_iter):
        is_last(network.terms, rounds.tol)
        n_rounds += 1
    if n_rounds > 1 and n_rounds >= rounds.max_iter:
        return "max_iter"
    return "asked" if n_rounds > 1 and rounds.asked else status


def message(task, point, direction, monitor):
    """Warning about how a fit by the exact likelihood ended, or None."""
    pairs, further, reason = task.problem.pairs, task.problem.further, None
    if not further:
        return task.message(point, direction, monitor)
    if not len(further.counts):
        reason = _unbounded(task, pairs, further.terms)
    if reason is None and monitor.status == "max_iter":
        return "The fit ended at max_iter, while the likelihood still rose. Raise max_iter."
    return reason


def _unbounded(task, pairs, terms):
    """Why the objective has no maximum, or None if it may have."""
    reason = task.no_maximum()
    term = None if reason or pairs.penalty else empty_term(pairs, terms)
    if term is None:
        return reason
    columns = ", ".join(map(task.named, term))
    return without_maximum(f"some values of {columns} never occur together", task.objective)


def further_of(task, terms, count_potential):
    """The given terms of columns that vary, and the potential, as statistics of these columns."""
    place = {j: k for k, j in enumerate(task.varying.tolist())}
    inner = [tuple(place[j] for j in t) for t in terms if all(j in place for j in t)]
    problem, frequencies = task.problem, None
    if count_potential:
        ones = np.count_nonzero(problem.spins > 0, axis=0)
        frequencies = np.bincount(ones, problem.weights, len(task.varying) + 1)
    return Further(len(task.varying), inner, frequencies, problem.penalty > 0)
