"""Values that `fit` did not see: in each column of categories one more, "any other"."""

import numpy as np
from scipy.special import logsumexp

# Training rows, and their cells in all variants together, in which "any other" value of a column is
# compared with the seen ones.
N_ROWS, MOST_CELLS = 50, 2**21
# How far below 1 / (n + q + 1) its probability may be for that, in nats: where columns depend on
# each other, a seen value can be as good as impossible beside some rows.
MOST_NATS = 3.0


class Unseen:
    """One more value in each column of categories, "any other", independent of the other columns.

    A row has the probability of its seen cells, the others missing, times ε for each cell with an
    unseen value and 1 - ε for each with a seen one. The probabilities of all rows sum to 1 as
    without it.

    Parameters
    ----------
    n_values : ndarray of int of shape (n_columns,)
        Number of values of each column that has one more; -1 for the others.
    counts : list of ndarray of float64
        How often each value of these columns occurs in the training rows.
    rows : ndarray of float64 of shape (n_rows, n_columns)
        Some of these, without gaps.
    """

    def __init__(self, n_values, counts, rows):
        self.n_values, self.counts, self.rows = n_values, counts, rows

    @classmethod
    def learn(cls, codes, weights, n_values):
        """Count the values of codes, of which NaN or, in integers, -1 is a missing cell.

        None if no column has one more value.
        """
        if (n_values < 0).all() or not len(codes):
            return None
        codes, weights = codes[weights > 0], weights[weights > 0]
        if codes.dtype.kind in "iu":
            codes = np.where(codes < 0, np.nan, codes)
        some = np.linspace(0, len(codes) - 1, min(len(codes), N_ROWS)).round().astype(int)
        rows, counts = codes[some].astype(np.float64), []
        for j, n in enumerate(n_values):
            known = ~np.isnan(codes[:, j])
            seen = np.zeros(0)
            if n > 0:
                seen = np.bincount(codes[known, j].astype(np.intp), weights[known], minlength=n)
            counts.append(seen)
            typical = seen.argmax() if len(seen) else codes[known, j][:1].sum()
            rows[np.isnan(rows[:, j]), j] = typical
        return cls(n_values, counts, rows)

    def hidden(self, codes):
        """Rows of codes in which the numbers that are no values of their columns are missing."""
        with np.errstate(invalid="ignore"):
            legal = (codes != np.floor(codes)) | ((codes >= 0) & (codes < self.n_values))
        strange = (self.n_values >= 0) & ~legal & ~np.isnan(codes)
        strange |= self.n_values == 0
        return np.where(strange, np.nan, codes) if strange.any() else codes

    def shares(self, log_weight):
        """ε of each column: 1 / (n + q + 1), for n training cells with q values, or less.

        It is less where the model has a seen value as improbable as that beside training rows, so
        that an unseen value is not the more probable one. It is 1 for a column without a value, 0
        for one that has no other. `log_weight` has ln p(x) plus a constant of rows of codes.
        """
        shares = np.zeros(len(self.n_values))
        for j, seen in enumerate(self.counts):
            if self.n_values[j] >= 0:
                n, least = seen.sum(), min(seen[seen > 0], default=np.inf)
                # ε / (1 - ε) is at most the share of the rarest value, however small weights are.
                shares[j] = min(1 / (n + len(seen) + 1), 1 / (1 + n / least))
        columns = np.flatnonzero([len(seen) > 0 and seen.any() for seen in self.counts])
        if len(columns):
            least = self._least(columns, log_weight)
            lowest = shares[columns] * np.exp(-MOST_NATS)
            shares[columns] = np.clip(least / (1 + least), lowest, shares[columns])
        return shares

    def _least(self, columns, log_weight):
        """The least conditional probability of a seen value of each column, in all rows."""
        n_values = [len(self.counts[j]) for j in columns]
        n_cells = sum(n_values) * self.rows.shape[1]
        rows = self.rows[:: -(-len(self.rows) // max(1, MOST_CELLS // n_cells))]
        variants = []
        for j, n in zip(columns, n_values, strict=True):
            some = np.repeat(rows, n, axis=0)
            some[:, j] = np.tile(np.arange(n), len(rows))
            variants.append(some)
        found = np.split(log_weight(np.concatenate(variants)), np.cumsum(n_values)[:-1] * len(rows))
        least = []
        for j, part in zip(columns, found, strict=True):
            part = part.reshape(len(rows), -1)
            seen = part[:, self.counts[j] > 0].min(axis=1)
            least.append((seen - logsumexp(part, axis=1)).min())
        return np.exp(least)

    def log_probability(self, seen, observed, shares):
        """Summands of ln p of rows by other values.

        `seen` and `observed` tell, (n_samples, n_columns), which cells have a value that `fit` saw,
        and which have a value.
        """
        other, inside = np.log(shares, where=shares > 0, out=np.zeros_like(shares)), 1 - shares
        own = np.log(inside, where=inside > 0, out=np.zeros_like(inside))
        return np.where(observed, np.where(seen, own, other), 0).sum(axis=1)
