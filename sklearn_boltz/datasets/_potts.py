"""Simulated alignments with known couplings: samples of Potts models."""

from numbers import Integral, Real

import numpy as np
from sklearn.utils import Bunch, check_random_state
from sklearn.utils._param_validation import Interval, validate_params

from sklearn_boltz.datasets._alphabets import check_alphabet
from sklearn_boltz.datasets._networks import check_memory

_POSITIVE_INT = [Interval(Integral, 1, None, closed="left")]
_COUNT = [Interval(Integral, 0, None, closed="left")]
_SCALE = [Interval(Real, 0, None, closed="left")]


@validate_params(
    {
        "n_samples": _POSITIVE_INT,
        "n_sites": _POSITIVE_INT,
        "alphabet": [str],
        "n_contacts": [*_COUNT, None],
        "coupling": _SCALE,
        "field": _SCALE,
        "n_steps": _COUNT,
        "model_state": ["random_state"],
        "random_state": ["random_state"],
    },
    prefer_skip_nested_validation=True,
)
def make_alignment(
    n_samples=1000,
    n_sites=30,
    *,
    alphabet="protein",
    n_contacts=None,
    coupling=1.0,
    field=0.5,
    n_steps=100,
    model_state=None,
    random_state=None,
):
    r"""Draw sequences from a Potts model with couplings between a few pairs of sites, the contacts.

    The distribution is
    :math:`p(x) \propto \exp(\sum_i h_i(x_i) + \sum_{(i, j)} J_{ij}(x_i, x_j))`, the second sum
    over contacts, which are chosen at random among all pairs. Two sites without a contact are
    correlated, too, if a path of contacts connects them. Models are fitted to alignments to
    distinguish contacts from such indirect correlations [1]_.

    Parameters
    ----------
    n_samples : int, default=1000
        Number of sequences, each drawn by its own Markov chain.
    n_sites : int, default=30
        Length of a sequence.
    alphabet : {"protein", "dna", "rna"} or str, default="protein"
        The letters: 20, four, or those of your own alphabet. There are no gaps.
    n_contacts : int or None, default=None
        Number of contacts. None means the number of sites, or of pairs if that is smaller.
    coupling : float, default=1.0
        Standard deviation of the couplings of a contact. They are normally distributed; then the
        means of the rows and columns of each block are subtracted.
    field : float, default=0.5
        Standard deviation of the fields of a site. They are normally distributed; then their mean
        is subtracted. Large fields make conserved sites.
    n_steps : int, default=100
        Number of sweeps of Gibbs sampling over all sites, starting from independent sites.
        Couplings of 2 or more may need more sweeps.
    model_state : int, RandomState instance or None, default=None
        The source of randomness for the model. None means that `random_state` is used for the
        model and then for the samples. Pass an int here and vary `random_state` to get several
        alignments of one model.
    random_state : int, RandomState instance or None, default=None
        The source of randomness for the samples. Pass an int for reproducible output.

    Returns
    -------
    alignment : :class:`~sklearn.utils.Bunch`
        Dictionary-like object, with the following attributes.

        codes : ndarray of shape (n_samples, n_sites), int8
            Position of each letter in `alphabet`.
        letters : ndarray of shape (n_samples, n_sites), str
            The letters.
        alphabet : str
            All letters, in the order of their codes.
        contacts : ndarray of shape (n_contacts, 2), int
            Pairs of sites ``i < j``, in lexicographic order.
        coupling : ndarray of shape (n_sites, n_sites, n_letters, n_letters), float64
            ``coupling[i, j, a, b]`` is :math:`J_{ij}(a, b)` and equals ``coupling[j, i, b, a]``.
            It is zero for pairs that are not contacts. All rows and columns of a block sum to
            zero.
        field : ndarray of shape (n_sites, n_letters), float64
            :math:`h_i(a)`; sums to zero over the letters.

    Raises
    ------
    ValueError
        If a parameter is out of its domain, or if the couplings would exceed 1 GiB.

    See Also
    --------
    read_alignment : Read an alignment from a file.
    sklearn_boltz.inspection.ContactMapDisplay : Draws predicted beside known contacts.

    References
    ----------
    .. [1] M. Ekeberg, C. Lövkvist, Y. Lan, M. Weigt, E. Aurell (2013). "Improved contact prediction
       in proteins: Using pseudolikelihoods to infer Potts models". Physical Review E 87, 012707.

    Examples
    --------
    >>> from sklearn_boltz.datasets import make_alignment
    >>> alignment = make_alignment(200, 12, alphabet="dna", n_contacts=3, random_state=0)
    >>> "".join(alignment.letters[0])
    'AGAATAATACGA'
    >>> alignment.codes.shape, alignment.contacts.tolist()
    ((200, 12), [[2, 10], [2, 11], [5, 6]])
    """
    letters, _ = check_alphabet(alphabet)
    n_pairs = n_sites * (n_sites - 1) // 2
    if n_contacts is None:
        n_contacts = min(n_sites, n_pairs)
    if n_contacts > n_pairs:
        raise ValueError(
            f"n_contacts is {n_contacts}, but {n_sites} sites have only {n_pairs} pairs."
        )
    check_memory((n_sites * len(letters)) ** 2, 8, f"The couplings of {n_sites} sites")
    rng = check_random_state(random_state)
    model_rng = rng if model_state is None else check_random_state(model_state)
    chosen = np.sort(model_rng.choice(n_pairs, n_contacts, replace=False)) if n_contacts else []
    contacts = np.column_stack(np.triu_indices(n_sites, 1))[chosen]
    fields = field * _centred(model_rng.standard_normal((n_sites, len(letters))), 1)
    couplings = _random_couplings(n_sites, len(letters), contacts, coupling, model_rng)
    codes = _gibbs(fields, couplings, contacts, n_samples, n_steps, rng)
    return Bunch(
        codes=codes,
        letters=np.array(list(letters))[codes],
        alphabet=letters,
        contacts=contacts,
        coupling=couplings,
        field=fields,
    )


def _centred(values, *axes):
    for axis in axes:
        values = values - values.mean(axis=axis, keepdims=True)
    return values


def _random_couplings(n_sites, n_states, contacts, scale, rng):
    """Blocks of couplings, in the zero-sum gauge."""
    couplings = np.zeros((n_sites, n_sites, n_states, n_states))
    for i, j in contacts:
        block = scale * _centred(rng.standard_normal((n_states, n_states)), 0, 1)
        couplings[i, j], couplings[j, i] = block, block.T
    return couplings


def _gibbs(fields, couplings, contacts, n_samples, n_steps, rng):
    """Samples after `n_steps` sweeps, from independent sites."""
    n_sites, n_states = fields.shape
    codes = np.empty((n_samples, n_sites), dtype=np.int8)
    partners = [
        np.concatenate([contacts[contacts[:, 0] == i, 1], contacts[contacts[:, 1] == i, 0]])
        for i in range(n_sites)
    ]
    for i in range(n_sites):
        codes[:, i] = _draw(np.broadcast_to(fields[i], (n_samples, n_states)), rng)
    for _ in range(n_steps):
        for i in range(n_sites):
            local = np.tile(fields[i], (n_samples, 1))
            for j in partners[i]:
                local += couplings[j, i, codes[:, j]]
            codes[:, i] = _draw(local, rng)
    return codes


def _draw(log_weights, rng):
    """One state of each row, by inversion of the cumulative sums."""
    weights = np.exp(log_weights - log_weights.max(axis=1, keepdims=True))
    bounds = np.cumsum(weights, axis=1)
    uniform = rng.random_sample((len(bounds), 1)) * bounds[:, -1:]
    # The last bound is left out, because rounding may make a number equal to it.
    return (uniform >= bounds[:, :-1]).sum(axis=1)
