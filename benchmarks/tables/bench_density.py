"""Densities of tables of numbers: held-out nats a row, by networks and by scikit-learn's models.

Three quarters of the rows to learn, the others to score, `--seeds` partitions. Networks take
numbers by bins, by normal scores with one Gaussian, or with as many as held-out rows ask for.
`GaussianMixture` has 1 to 10 components by BIC, and the one of three regularisations that is best
on the held-out rows; `KernelDensity` the bandwidth of a cross-validation; both of standardised
numbers. Columns with words or a few values are categories: their probabilities are those of a
network of these columns, times the rivals' density of the numbers, given these with one-hot
columns or independent of them: what is better on the held-out rows.

All have the same measure. Whole numbers have probabilities. A value of more than a tenth of the
rows has a probability, too; rivals have there their density times the distance of the middles
between this value and its neighbours, so that they too have a probability.
"""

from itertools import pairwise
from unittest.mock import patch

import _path  # noqa: F401
import numpy as np
from _common import make_parser, print_table, report, script, unconverged_is_fine
from _data import MissingData, load_mixed, load_numbers
from sklearn.base import clone
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.neighbors import KernelDensity
from sklearn.preprocessing import StandardScaler

from sklearn_boltz import FVBMPseudoLikelihood
from sklearn_boltz.networks.location import _classes

SETS = ("iris", "wine", "diabetes", "breast_cancer", "wage")
# A column with fewer different values than this is one of categories, and a value with a greater
# share of the rows an atom, as in `sklearn_boltz.tables`.
FEW, ATOM = 9, 0.1
FORMATS = ",.2f,.2f,.2f,.2f,.2f,.1f"
# What `GaussianMixture` adds to variances.
REGULARISATIONS = (1e-6, 1e-3, 1e-2)


def words_of(train):
    """The columns of strings or few values."""
    return [name for name, cells in train.items() if cells.dtype == object or cells.nunique() < FEW]


def of_networks(train, test):
    """Scores of our models."""
    words = words_of(train)
    scored = FVBMPseudoLikelihood(columns={n: "number" for n in train if n not in words})
    bins, location = FVBMPseudoLikelihood().fit(train), clone(scored).fit(train)
    with patch.object(_classes, "MOST_CLASSES", 1):
        one = clone(scored).fit(train)
    models = {"bins": bins, "one Gaussian": one, "Gaussians": location}
    found = {name: model.score_samples(test) for name, model in models.items()}
    return found, location._gaussians.n_classes


def of_rivals(train, test):
    """Scores of scikit-learn's models of the numbers, and of a network of the other columns."""
    words = words_of(train)
    numbers = [name for name in train if name not in words]
    base = np.zeros(len(test))
    if words:
        network = FVBMPseudoLikelihood().fit(train[words])
        base = network.score_samples(test[words])
    one_hot = [
        np.column_stack(
            [(rows[w] == value).to_numpy(float) for w in words for value in train[w].unique()[1:]]
            or [np.zeros((len(rows), 0))]
        )
        for rows in (train, test)
    ]
    scaler = StandardScaler().fit(train[numbers])
    base = base - np.log(scaler.scale_).sum()
    for name in numbers:
        base += log_width(train[name].to_numpy(), test[name].to_numpy())
    A, B = (scaler.transform(rows[numbers]) for rows in (train, test))
    found = densities(A, B, len(numbers))
    if words:
        given = densities(*map(np.hstack, zip((A, B), one_hot, strict=True)), len(numbers))
        found = {name: max(found[name], given[name], key=np.mean) for name in found}
    return {name: log_p + base for name, log_p in found.items()}


def densities(A, B, k):
    """Scores of the first k columns of the rows B given the others, by models of the rows A."""
    search = GridSearchCV(KernelDensity(), {"bandwidth": np.logspace(-1.5, 0.5, 25)}, cv=5)
    kernels = search.fit(A).best_estimator_
    of_kernels = kernels.score_samples(B)
    if A.shape[1] > k:  # less the density of the categories alone
        rest = KernelDensity(bandwidth=kernels.bandwidth_).fit(A[:, k:])
        of_kernels = of_kernels - rest.score_samples(B[:, k:])
    mixtures = [of_gaussians(A, B, k, reg) for reg in REGULARISATIONS]
    return {"GaussianMixture": max(mixtures, key=np.mean), "KernelDensity": of_kernels}


def of_gaussians(A, B, k, reg):
    """The same by a mixture of Gaussians whose number BIC chooses."""
    mixtures = (GaussianMixture(n, reg_covar=reg, random_state=0).fit(A) for n in range(1, 11))
    mixture = min(mixtures, key=lambda mixture: mixture.bic(A))
    if A.shape[1] == k:
        return mixture.score_samples(B)
    rest = GaussianMixture(mixture.n_components)
    rest.weights_, rest.means_ = mixture.weights_, mixture.means_[:, k:]
    rest.precisions_cholesky_ = np.array([
        np.linalg.inv(np.linalg.cholesky(c[k:, k:])).T for c in mixture.covariances_
    ])  # fmt: skip
    return mixture.score_samples(B) - rest.score_samples(B[:, k:])


def log_width(train, test):
    """ln of how wide the cells of atoms are; 0 for other numbers."""
    values, counts = np.unique(train, return_counts=True)
    width = np.zeros(len(test))
    if (values == np.floor(values)).all():
        return width
    middles = np.array([(one + other) / 2 for one, other in pairwise(values)])
    for k in np.flatnonzero(counts > ATOM * len(train)):
        low = middles[k - 1] if k else 2 * values[0] - middles[0]
        high = middles[k] if k < len(middles) else 2 * values[-1] - middles[-1]
        width[test == values[k]] = np.log(high - low)
    return width


@script
def main():
    options = make_parser(__doc__, seeds=5, sets=SETS).parse_args()
    header, lines = None, []
    with report(options.output / "tables_density.txt", __doc__), unconverged_is_fine():
        for name in options.sets:
            try:
                X = load_mixed(name, options.data) if name == "wage" else load_numbers(name)
            except MissingData as error:
                print(f"{name} skipped: {error}")
                continue
            scores, n_classes = {}, []
            for seed in range(options.seeds):
                parts = train_test_split(X, test_size=0.25, random_state=seed)
                train, test = (part.reset_index(drop=True) for part in parts)
                ours, n = of_networks(train, test)
                n_classes.append(n)
                for model, log_p in (ours | of_rivals(train, test)).items():
                    scores.setdefault(model, []).append(log_p.mean())
            header = ["table", "columns", *scores, "their number"]
            means = map(np.mean, scores.values())
            lines.append([name, X.shape[1], *means, np.mean(n_classes)])
            print_table(header, lines[-1:], FORMATS)
        print_table(header, lines, FORMATS)
