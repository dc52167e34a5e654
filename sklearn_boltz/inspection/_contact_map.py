"""ContactMapDisplay: the best pairs of sites of an alignment beside known contacts."""

from numbers import Integral, Real

import numpy as np
from sklearn.utils.validation import check_is_fitted, check_scalar

from sklearn_boltz.inspection._axes import axes_or_new, height_in_points

# The markers differ in hue and in shape.
STYLES = {
    "contact": {"color": "#0072b2", "marker": "o", "ls": "none", "mew": 0},
    "no contact": {"color": "#d55e00", "marker": "X", "ls": "none", "mew": 0},
    "not known": {"color": "0.5", "marker": "o", "ls": "none", "mfc": "none"},
}


class ContactMapDisplay:
    """Contact map: pairs of sites with the highest scores, and known contacts.

    Predicted pairs are above the diagonal: a blue circle for a known contact, an orange cross for
    a pair that is not in contact, a grey ring if this is unknown. Known contacts or distances are
    below the diagonal. Use `from_estimator` to create a display.

    Parameters
    ----------
    scores : array-like of shape (n_sites, n_sites)
        Symmetric scores of pairs. A higher score means that a contact is more likely.
    contacts : array-like of int of shape (n_contacts, 2), default=None
        The known contacts, as pairs of column numbers from 0.
    distances : array-like of shape (n_sites, n_sites), default=None
        Instead of `contacts`, the distance between the sites of each pair, in Å. NaN means
        unknown.
    max_distance : float, default=8.0
        Largest distance of sites in contact, in Å.
    positions : array-like of int of shape (n_sites,), default=None
        The number of each site in its sequence. None means 1, 2, 3, ...
    min_separation : int, default=6
        Pairs that are closer in the sequence are left out, because neighbours are always in
        contact.
    n_pairs : int, default=None
        Number of predicted pairs. None means the number of sites.

    Attributes
    ----------
    pairs_ : ndarray of int of shape (n_pairs, 2)
        The predicted pairs as column numbers from 0, with i < j, highest score first. There can be
        fewer than asked for.
    is_contact_ : ndarray of shape (n_pairs,)
        1 if a predicted pair is a contact, 0 if not, NaN if unknown.
    precision_ : float
        Share of contacts among the predicted pairs with known status; NaN if there is none.
    chance_ : float
        Share of contacts among all pairs that could be predicted.
    ax_ : matplotlib Axes
        The axes with the plot.
    figure_ : matplotlib Figure
        The figure of the axes.

    See Also
    --------
    CouplingDisplay : All couplings as a heat map or a graph.
    sklearn_boltz.datasets.make_alignment : Alignments whose contacts are known.

    References
    ----------
    .. [1] M. Ekeberg, C. Lövkvist, Y. Lan, M. Weigt and E. Aurell, "Improved contact prediction in
       proteins: Using pseudolikelihoods to infer Potts models", Physical Review E 87, 012707,
       2013. https://doi.org/10.1103/PhysRevE.87.012707

    Examples
    --------
    >>> from sklearn_boltz import FVBMPseudoLikelihood
    >>> from sklearn_boltz.datasets import make_alignment
    >>> from sklearn_boltz.inspection import ContactMapDisplay
    >>> alignment = make_alignment(2000, 12, alphabet="dna", random_state=0)
    >>> model = FVBMPseudoLikelihood(alpha=0.01).fit(alignment.codes)
    >>> display = ContactMapDisplay.from_estimator(
    ...     model, alignment.contacts, min_separation=1
    ... )
    >>> display.precision_, round(display.chance_, 2)
    (1.0, 0.18)
    """

    def __init__(
        self,
        *,
        scores,
        contacts=None,
        distances=None,
        max_distance=8.0,
        positions=None,
        min_separation=6,
        n_pairs=None,
    ):
        self.scores = np.asarray(scores, dtype=np.float64)
        d = len(self.scores)
        self.positions = np.arange(1, d + 1) if positions is None else np.asarray(positions)
        if self.positions.shape != (d,):
            raise ValueError(
                f"positions must have a number for each of the {d} sites, got the shape "
                f"{self.positions.shape}."
            )
        self.min_separation = check_scalar(min_separation, "min_separation", Integral, min_val=1)
        self.n_pairs = (
            d if n_pairs is None else check_scalar(n_pairs, "n_pairs", Integral, min_val=1)
        )
        self.max_distance = check_scalar(max_distance, "max_distance", Real, min_val=0)
        self.distances = None
        if contacts is not None and distances is not None:
            raise ValueError(
                "ContactMapDisplay: pass contacts or distances, not both; contacts follow from "
                "distances and max_distance."
            )
        if contacts is not None:
            self.known = contact_matrix(contacts, d)
        elif distances is not None:
            self.distances = checked_distances(distances, d)
            self.known = np.where(
                np.isnan(self.distances), np.nan, self.distances <= self.max_distance
            )
        else:
            self.known = np.full((d, d), np.nan)
        self._rank()

    @classmethod
    def from_estimator(
        cls, estimator, contacts=None, *, apc=True, ignore=None, ax=None, **display_kw
    ):
        """Draw the pairs with the highest scores of a fitted estimator.

        Parameters
        ----------
        estimator : FVBMPseudoLikelihood or SparseFVBM
            Fitted to an alignment, with one column for each site.
        contacts : array-like of int of shape (n_contacts, 2), default=None
            The known contacts, as pairs of column numbers from 0.
        apc : bool, default=True
            Whether `interaction_scores` applies the average product correction.
        ignore : int or array-like of int of shape (n_sites,), default=None
            Code of the gap, which `interaction_scores` ignores.
        ax : matplotlib Axes, default=None
            Axes to draw on. None means a new figure.
        **display_kw : dict
            Further parameters of the class, such as `distances`, `positions` and `n_pairs`.

        Returns
        -------
        display : ContactMapDisplay
            The display with its data.
        """
        check_is_fitted(estimator)
        scores = estimator.interaction_scores(apc=apc, ignore=ignore)
        return cls(scores=scores, contacts=contacts, **display_kw).plot(ax=ax)

    def _rank(self):
        """The pairs with the highest scores, and whether they are known contacts."""
        i, j = np.triu_indices(len(self.scores), 1)
        far = np.abs(self.positions[j] - self.positions[i]) >= self.min_separation
        i, j = i[far], j[far]
        best = np.argsort(-self.scores[i, j], kind="stable")[: self.n_pairs]
        self.pairs_ = np.column_stack([i[best], j[best]])
        self.is_contact_ = self.known[i[best], j[best]]
        self.precision_ = share_of_contacts(self.is_contact_)
        self.chance_ = share_of_contacts(self.known[i, j])

    def plot(self, *, ax=None):
        """Draw the plot.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on. None means a new figure.

        Returns
        -------
        display : ContactMapDisplay
            The display itself.
        """
        self.ax_ = ax = axes_or_new(ax)
        self.figure_ = ax.figure
        self._plot_known()
        is_contact = self.is_contact_
        kinds = {
            "contact": is_contact == 1,
            "no contact": is_contact == 0,
            "not known": np.isnan(is_contact),
        }
        for label, chosen in kinds.items():
            if chosen.any():
                i, j = self.pairs_[chosen].T
                # About the size of a cell.
                size = np.clip(0.9 * height_in_points(ax) / len(self.scores), 3, 9)
                ax.plot(j, i, label=f"{label} ({chosen.sum()})", ms=size, **STYLES[label])
        ax.axline((0, 0), slope=1, color="0.3", lw=0.6)
        ax.set(xlabel="site", ylabel="site", title=self._title())
        self._number_sites()
        if len(self.pairs_):
            ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.12), ncols=3, frameon=False)
        return self

    def _plot_known(self):
        """Distances or contacts below the diagonal."""
        lower = np.tril(np.ones_like(self.known, dtype=bool), -1)
        if self.distances is None:
            self.ax_.imshow(np.where(lower, self.known, np.nan), cmap="Greys", vmin=0, vmax=1.6)
        else:
            # Beyond twice the distance of a contact, cells are white.
            image = self.ax_.imshow(
                np.where(lower, self.distances, np.nan), cmap="Greys_r", vmin=0,
                vmax=2 * self.max_distance,
            )  # fmt: skip
            self.figure_.colorbar(image, ax=self.ax_, label="distance, Å", shrink=0.8, extend="max")

    def _title(self):
        n_known = np.count_nonzero(~np.isnan(self.is_contact_))
        if not n_known:
            return f"{len(self.pairs_)} pairs with the highest scores"
        found = int(np.nansum(self.is_contact_))
        shares = f"{self.precision_:.0%}, by chance {self.chance_:.0%}"
        return f"{found} of {n_known} pairs are contacts ({shares})"

    def _number_sites(self):
        """Label both axes with round numbers of sites."""
        from matplotlib.ticker import MaxNLocator

        ends = self.positions.min(), self.positions.max()
        shown = np.isin(self.positions, MaxNLocator(7, integer=True).tick_values(*ends))
        for axis in (self.ax_.xaxis, self.ax_.yaxis):
            axis.set_ticks(np.flatnonzero(shown), self.positions[shown])


def contact_matrix(contacts, n_sites):
    """Pairs as a symmetric matrix of 0 and 1."""
    contacts = np.asarray(contacts)
    if contacts.size == 0:
        contacts = np.empty((0, 2), dtype=int)
    if contacts.ndim != 2 or contacts.shape[1] != 2 or contacts.dtype.kind not in "iu":
        raise ValueError(
            "contacts must be pairs of column numbers, an array of int of shape (n_contacts, 2); "
            f"got {contacts.dtype} of shape {contacts.shape}. Pass distances as `distances`."
        )
    outside = (contacts < 0) | (contacts >= n_sites)
    if outside.any():
        raise ValueError(
            f"contacts has the column {contacts[outside][0]}, but columns are numbered from 0 to "
            f"{n_sites - 1}."
        )
    matrix = np.zeros((n_sites, n_sites))
    matrix[tuple(contacts.T)] = matrix[tuple(contacts.T[::-1])] = 1
    return matrix


def checked_distances(distances, n_sites):
    """A symmetric matrix of distances."""
    distances = np.asarray(distances, dtype=np.float64)
    if distances.shape != (n_sites, n_sites):
        raise ValueError(
            f"distances must have the shape {(n_sites, n_sites)}, got {distances.shape}."
        )
    if not np.allclose(distances, distances.T, equal_nan=True):
        raise ValueError("distances must be symmetric.")
    return distances


def share_of_contacts(is_contact):
    """Share among the pairs with known status; NaN if there is none."""
    known = is_contact[~np.isnan(is_contact)]
    return float(known.mean()) if len(known) else np.nan
