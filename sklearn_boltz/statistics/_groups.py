"""Whether two groups of rows have the same network: a permutation test."""

from dataclasses import dataclass
from itertools import combinations
from math import comb
from numbers import Integral

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_consistent_length, column_or_1d
from sklearn.utils._param_validation import Interval, StrOptions, validate_params

from sklearn_boltz._density import Density
from sklearn_boltz._warnings import warn
from sklearn_boltz.networks.location._joint import joint_scores
from sklearn_boltz.networks.model._gauge import reduce_blocks
from sklearn_boltz.numerics._bar import progress_bar
from sklearn_boltz.numerics._random import make_generator
from sklearn_boltz.numerics._threads import in_parallel
from sklearn_boltz.statistics._arguments import REPEATED
from sklearn_boltz.statistics._inference import adjust_p_values
from sklearn_boltz.statistics._refits import Refits, all_couplings, codes_and_scores
from sklearn_boltz.statistics._results import pair_frame, pair_matrix
from sklearn_boltz.tables._values import as_objects, is_missing

# Differences that rounding makes are not larger than others.
ROUNDING = 1e-9
# Labels in a message.
N_SHOWN = 5


@dataclass(frozen=True, repr=False)
class GroupComparison:
    """Differences of the networks of two groups, with p values by permutation.

    The result of `compare_groups`.

    Parameters
    ----------
    groups : ndarray of shape (2,)
        The labels of the groups.
    coupling : ndarray of shape (2, n_features, n_features)
        The couplings of each group, m_jk, or the Frobenius norms of the blocks. Where numbers have
        normal scores, they are those of :func:`~sklearn_boltz.statistics.joint_network`, and a
        score counts √2 times.
    difference : ndarray of shape (n_features, n_features)
        The coupling m_jk of each pair in the first group less that in the second. If some variable
        has more than two values or a normal score, the Frobenius norm of the difference of the
        blocks, which has no sign.
    p_value : ndarray of shape (n_features, n_features)
        The p value of each difference; NaN on the diagonal.
    adjusted_p_value : ndarray of shape (n_features, n_features)
        These p values adjusted for the number of pairs.
    max_difference : float
        The largest absolute difference.
    max_difference_p_value : float
        The p value of `max_difference`, for the hypothesis that the networks do not differ.
    strength : ndarray of shape (2,)
        The sum of the strengths of all couplings of each group, abs(m_jk) or the norm of a block.
    strength_p_value : float
        The p value of the difference of these sums.
    n_permutations : int
        The number of permutations, including the original groups.
    is_exact : bool
        Whether all possible permutations were used.
    feature_names : ndarray of str of shape (n_features,)
        Names of the variables.

    See Also
    --------
    compare_groups : The test, with its references.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_boltz import FVBMPseudoLikelihood
    >>> from sklearn_boltz.statistics import compare_groups
    >>> X = np.random.default_rng(2).choice([-1, 1], size=(60, 3))
    >>> model, groups = FVBMPseudoLikelihood(alpha=0.1), np.arange(60) % 2
    >>> test = compare_groups(model, X, groups, 99, random_state=0)
    >>> bool(test.max_difference_p_value > 0.05)
    True
    """

    groups: np.ndarray
    coupling: np.ndarray
    difference: np.ndarray
    p_value: np.ndarray
    adjusted_p_value: np.ndarray
    max_difference: float
    max_difference_p_value: float
    strength: np.ndarray
    strength_p_value: float
    n_permutations: int
    is_exact: bool
    feature_names: np.ndarray

    def to_frame(self):
        """Return the couplings of all pairs and their differences as a table; needs pandas.

        Returns
        -------
        frame : pandas.DataFrame
            A row for each pair of variables, with their names as the index.
        """
        both = zip(self.groups, self.coupling, strict=True)
        matrices = {f"coupling[{label}]": coupling for label, coupling in both}
        for name in ("difference", "p_value", "adjusted_p_value"):
            matrices[name] = getattr(self, name)
        return pair_frame(self.feature_names, matrices)

    def __repr__(self):
        n_random = self.n_permutations - 1
        permuted = f"{n_random} permutations and the groups as they are"
        if self.is_exact:
            permuted = f"all {self.n_permutations} permutations"
        return (
            f"GroupComparison of {self.groups[0]} and {self.groups[1]}, {permuted}\n"
            f"largest difference {self.max_difference:.4f}, p = {self.max_difference_p_value:.3g}\n"
            f"strengths {self.strength[0]:.4f} and {self.strength[1]:.4f}, "
            f"p = {self.strength_p_value:.3g}"
        )


@validate_params(
    REPEATED
    | {
        "estimator": [Density],
        "groups": ["array-like", str],
        "n_permutations": [Interval(Integral, 1, None, closed="left")],
        "adjust": [StrOptions({"holm", "fdr_bh", "max"})],
    },
    prefer_skip_nested_validation=False,
)
def compare_groups(
    estimator,
    X,
    groups,
    n_permutations=1000,
    *,
    adjust="holm",
    n_jobs=None,
    random_state=None,
    verbose=0,
):
    """Test whether two groups of rows have the same network.

    This is the network comparison test [1]_: the estimator is fitted to each group, and again after
    random permutations of the group labels.

    Parameters
    ----------
    estimator : FVBMPseudoLikelihood, SparseFVBM or MaximumEntropy
        The estimator to fit to each group; it is not changed. With ``alpha="auto"``, ``"ebic"`` or
        ``"cv"``, each fit chooses its penalty.
    X : array-like of shape (n_samples, n_features)
        The rows of both groups; NaN is a missing cell.
    groups : array-like of shape (n_samples,)
        The group of each row. There must be two groups, and no missing labels.
    n_permutations : int, default=1000
        Number of random permutations. If no more than that exist, all are used, and p values are
        exact.
    adjust : {"holm", "fdr_bh", "max"}, default="holm"
        How the p values of pairs are adjusted: as in `PairwiseInference.adjusted_p_value`, or
        with ``"max"`` by the distribution of the largest difference of all pairs [2]_, which needs
        fewer permutations.
    n_jobs : int, default=None
        Number of fits at a time, in processes of joblib. None means 1, unless in a context of
        :class:`joblib.parallel_config`. The result does not depend on it.
    random_state : int, RandomState instance, Generator or None, default=None
        The source of randomness.
    verbose : int, default=0
        If positive, show a bar with the time left, after two seconds.

    Returns
    -------
    comparison : GroupComparison
        With the difference of each pair, the largest, and that of the sums of all couplings.

    Raises
    ------
    ValueError
        If there are not two groups, if a label is missing, or if a column has no value in one of
        the groups.

    Warns
    -----
    UserWarning
        If columns are constant in one of the groups.

    See Also
    --------
    sklearn_boltz.FVBMPseudoLikelihood : The network of a table.
    stability_selection : Pairs that are coupled in most random halves of the rows.

    Notes
    -----
    If the groups have the same distribution, each p value is at most α with a probability of no
    more than α, however few rows there are. The p value is (1 + k) / (1 + n) with k of n random
    permutations as different as the groups; n permutations cannot give less than 1 / (1 + n), and
    Holm's adjustment multiplies that by the number of pairs. The test requires independent rows.
    Groups of different sizes shrink differently under a penalty with the same `alpha`, which the
    permutations account for.

    References
    ----------
    .. [1] C. D. van Borkulo et al., "Comparing Network Structures on Three Aspects: A Permutation
       Test", Psychological Methods 28(6), 1273–1285, 2023. https://doi.org/10.1037/met0000476
    .. [2] P. H. Westfall and S. S. Young, "Resampling-Based Multiple Testing",
       Wiley, 1993.

    Examples
    --------
    In the second group, the third column repeats the first.

    >>> import numpy as np
    >>> from sklearn_boltz import FVBMPseudoLikelihood
    >>> from sklearn_boltz.statistics import compare_groups
    >>> rng = np.random.default_rng(1)
    >>> X = rng.choice([-1, 1], size=(200, 3))
    >>> X[100:, 2] = X[100:, 0] * rng.choice([-1, 1], size=100, p=[0.2, 0.8])
    >>> groups = np.repeat(["before", "after"], 100)
    >>> model = FVBMPseudoLikelihood(alpha=0.01)
    >>> comparison = compare_groups(model, X, groups, 99, random_state=0)
    >>> comparison.max_difference_p_value
    0.01
    """
    labels, which = two_groups(X, groups)
    model = clone(estimator).fit(X)
    codes = model._codes(X)
    for label, number in zip(labels, (0, 1), strict=True):
        empty = np.flatnonzero((codes[which == number] < 0).all(axis=0))
        if len(empty):
            raise ValueError(
                f"compare_groups: {model._have(empty)} no value in the group {label}. Leave "
                f"{'it' if len(empty) == 1 else 'them'} out."
            )
    warn_of_constants(model, codes, labels, which)
    refits, first = Refits(model, *codes_and_scores(model, X)), which == 0
    mixed, is_exact = permutations(first, n_permutations, make_generator(random_state))
    parts = [first, *mixed]
    bar = progress_bar("compare_groups", len(parts), verbose)
    found = in_parallel(norms_of_groups, ((refits, part) for part in parts), n_jobs, bar)
    strengths = np.array([strength for _, strength in found])
    differences = np.array([difference for difference, _ in found])
    pairs = np.triu_indices(len(codes[0]), 1)
    sizes = np.abs(differences[:, *pairs])
    p_value = upper_p_value(sizes)
    largest = sizes.max(axis=1, initial=0)
    if adjust == "max":
        adjusted = upper_p_value(np.maximum(sizes, largest[:, None]), sizes[0])
    else:
        adjusted = adjust_p_values(p_value, adjust)
    return GroupComparison(
        groups=labels,
        coupling=np.array([block_norms(own, signed=True) for own in of_groups(refits, first)]),
        difference=differences[0],
        p_value=pair_matrix(p_value, np.nan),
        adjusted_p_value=pair_matrix(adjusted, np.nan),
        max_difference=float(largest[0]),
        max_difference_p_value=float(upper_p_value(largest)),
        strength=strengths[0],
        strength_p_value=float(upper_p_value(np.abs(np.subtract(*strengths.T)))),
        n_permutations=len(found),
        is_exact=is_exact,
        feature_names=as_objects(model._input_names()),
    )


def two_groups(X, groups):
    """The two labels, and the number of the group of each row."""
    if isinstance(groups, str):
        raise ValueError(
            f"groups must be a label for each row, for example X[{groups!r}], got {groups!r}."
        )
    groups = column_or_1d(groups)
    check_consistent_length(X, groups)
    missing = np.flatnonzero([is_missing(label) for label in groups])
    if len(missing):
        raise ValueError(
            f"compare_groups: {len(missing)} labels in groups are missing, the first in row "
            f"{missing[0]}. Leave out these rows."
        )
    try:
        labels, which = np.unique(groups, return_inverse=True)
    except TypeError as error:
        raise ValueError(
            "compare_groups: the labels in groups are of several types. Make all of them strings, "
            "for example with str."
        ) from error
    if len(labels) == 1:
        raise ValueError(
            f"compare_groups compares two groups, and all rows have the label {labels[0]}. Give "
            "labels of two groups."
        )
    if len(labels) != 2:
        names = ", ".join(map(str, labels[:N_SHOWN])) + (", ..." if len(labels) > N_SHOWN else "")
        raise ValueError(
            f"compare_groups compares two groups, and there are {len(labels)}: {names}. Choose "
            "the rows of two."
        )
    return labels, which


def warn_of_constants(model, codes, labels, which):
    """Tell of columns that vary, but not in each group."""
    for number, label in enumerate(labels):
        rows = codes[which == number]
        # Missing cells are negative: they are no values.
        least = np.where(rows < 0, rows.max(axis=0), rows).min(axis=0)
        constant = np.flatnonzero(least == rows.max(axis=0))
        names = [model._column(j) for j in constant if j in model._varying]
        if names:
            warn(
                f"compare_groups: constant in the group {label}: {', '.join(names)}. The couplings "
                "there count as 0. Leave these columns out."
            )


def permutations(first, n_permutations, generator):
    """Other groups of the same sizes; all that there are if these are not more."""
    n, n_first = len(first), int(first.sum())
    if comb(n, n_first) - 1 > n_permutations:
        return [generator.permutation(first) for _ in range(n_permutations)], False
    every = (np.isin(np.arange(n), chosen) for chosen in combinations(range(n), n_first))
    return [part for part in every if not np.array_equal(part, first)], True


def of_groups(refits, first):
    """The networks of some rows, and of the others."""
    return [refits.fit(part.astype(np.float64)) for part in (first, ~first)]


def norms_of_groups(refits, first):
    """By how much couplings differ between rows and the others, and the sum of each network."""
    models = of_groups(refits, first)
    one, other = map(all_couplings, models)
    strengths = [np.triu(block_norms(model), 1).sum() for model in models]
    return block_norms(models[0], one - other, signed=True), strengths


def block_norms(model, coupling=None, *, signed=False):
    """The size of each coupling, (d, d): the absolute value, or the Frobenius norm of a block.

    None stands for those of the model.
    """
    coupling = all_couplings(model) if coupling is None else coupling
    if model._gaussians is not None:
        return joint_scores(coupling, model._layout())
    if model._encoder.coding.is_binary:
        return coupling if signed else np.abs(coupling)
    starts = np.cumsum(model.n_values_) - model.n_values_
    return np.sqrt(reduce_blocks(np.add, coupling**2, starts))


def upper_p_value(values, first=None):
    """The share of values, along the first axis, that are at least as large as the first."""
    first = values[0] if first is None else first
    return (values >= first - ROUNDING * np.abs(first)).mean(axis=0)
