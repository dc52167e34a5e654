"""The first screen: what the package does, on data that need no network, in half a minute.

Run it with ``make demo``, or as ``python examples/quick_start.py``.
"""

import os
import sys
import warnings
from time import process_time

import numpy as np
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer
from sklearn.neural_network import BernoulliRBM

from sklearn_boltz import (
    SDCPRBM,
    BoltzmannImputer,
    BoltzmannOutlierDetector,
    FVBMPseudoLikelihood,
)
from sklearn_boltz.datasets import load_house_votes

COLOURED = sys.stdout.isatty() and "NO_COLOR" not in os.environ
# Columns of the votes that are shown, and what they are called here.
SHOWN = {
    "party": "party",
    "physician-fee-freeze": "fee freeze",
    "el-salvador-aid": "El Salvador",
    "mx-missile": "MX missile",
    "education-spending": "education",
}


def styled(text, code):
    return f"\033[{code}m{text}\033[0m" if COLOURED else text


def headline(text):
    print("\n" + styled(text, "1;36"))


def line(*cells, filled=()):
    """Print cells in columns; those that were filled in are marked."""
    texts = [f"{cell}{'*' if k in filled else ''}" for k, cell in enumerate(cells)]
    padded = [f"{text:16}" for text in texts]
    cells = [styled(text, "1;32") if k in filled else text for k, text in enumerate(padded)]
    print("  " + "".join(cells).rstrip())


def shown(votes):
    return votes[list(SHOWN)].fillna("?").to_numpy()


def likelihoods():
    """What scikit-learn's RBM says of held-out digits, what is true, and ours."""
    X = load_digits().data > 7
    train, test = X[:1400], X[1400:]
    mean = train.mean(axis=0).clip(1e-3, 1 - 1e-3)
    independent = (test * np.log(mean) + ~test * np.log(1 - mean)).sum(axis=1).mean()
    start = process_time()
    old = BernoulliRBM(random_state=0).fit(train)
    old_seconds = process_time() - start
    # The same parameters in our class, of which `log_partition` estimates the constant.
    same = SDCPRBM(old.n_components, max_iter=0).fit(train)
    same.components_ = old.components_
    same.intercept_hidden_, same.intercept_visible_ = old.intercept_hidden_, old.intercept_visible_
    start = process_time()
    new = SDCPRBM(
        64, learning_rate=0.1, max_iter=50, early_stopping=False, track_likelihood=False,
        random_state=0,
    ).fit(train)  # fmt: skip
    new_seconds = process_time() - start

    def true(model):
        log_partition = model.log_partition("ais", random_state=0)
        return -model.free_energy(test).mean() - log_partition.value

    headline("A likelihood that can be trusted: 397 held-out digits of 64 pixels, nats per row")
    line("", "its score says", "the truth", "seconds")
    line("independent", f"{independent:.1f}", f"{independent:.1f}")
    said = old.score_samples(test).mean()
    line("BernoulliRBM", f"{said:.1f}", f"{true(same):.1f}", f"{old_seconds:.1f}")
    line("SDCPRBM", f"{new.score(test):.1f}", f"{true(new):.1f}", f"{new_seconds:.1f}")
    print("  The score of BernoulliRBM is a pseudo-likelihood: by it, a model that is worse than")
    print("  independent pixels looks better. (The truth is by annealed importance sampling.)")


def as_bits(votes):
    """The votes as IterativeImputer takes them."""
    bits = {"yes": 1.0, "no": 0.0, "republican": 1.0, "democrat": 0.0}
    return votes.apply(lambda column: column.map(bits)).to_numpy(float)


def filling(votes):
    """Votes that were hidden, filled in by three imputers; the mean of three tries."""
    truth, shares = as_bits(votes), []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        hidden = votes.notna().to_numpy() & (rng.random(votes.shape) < 0.2)
        table = votes.mask(hidden)
        filled = BoltzmannImputer(random_state=0).fit_transform(table)
        bits = as_bits(table)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # more rounds change nothing
            regressed = IterativeImputer(random_state=0).fit_transform(bits)
        shares.append([
            (filled == votes).to_numpy()[hidden].mean(),
            ((regressed > 0.5) == truth)[hidden].mean(),
            ((np.nanmean(bits, axis=0) > 0.5) == truth)[hidden].mean(),
        ])  # fmt: skip
    headline(
        "Fill in missing cells: the House of Representatives in 1984, a fifth hidden (435 x 17)"
    )
    line(*SHOWN.values())
    rows = np.argsort((shown(table) != "?").sum(axis=1), kind="stable")[:3]
    for row in rows:
        line(*shown(table)[row])
        line(*shown(filled)[row], filled=np.flatnonzero(shown(table)[row] == "?"))
    names = "BoltzmannImputer", "IterativeImputer on zeros and ones", "most frequent"
    found = zip(names, np.mean(shares, axis=0), strict=True)
    print("  * filled in. Hidden cells filled correctly, in three tries:")
    print("  " + ", ".join(f"{name} {share:.1%}" for name, share in found))


def strange(votes, model):
    """The members whose votes are the least probable, and the cell that is the most surprising."""
    scores = BoltzmannOutlierDetector(random_state=0).fit(votes).score_samples(votes)
    rows = np.argsort(scores)[:3]
    headline("Find anomalies: the least probable members, and their most surprising cell")
    for row, member in zip(rows, votes.iloc[rows].to_dict("records"), strict=True):
        probability = {}
        for name, value in member.items():
            if isinstance(value, str):  # and not missing
                (given_the_rest,) = model.predict_column_proba(votes.iloc[[row]], name)
                values = sorted(votes[name].dropna().unique())
                probability[name] = given_the_rest[values.index(value)]
        name = min(probability, key=probability.get)
        cell = f"{name}: {member[name]} (probability {probability[name]:.3f} given the rest)"
        print(f"  row {row}, a {member['party']}: {cell}")


def main():
    likelihoods()
    votes = load_house_votes()
    filling(votes)
    model = FVBMPseudoLikelihood().fit(votes)
    strange(votes, model)
    headline("See which columns interact, given all others (+: republican or yes goes with yes)")
    terms = model.interactions().query("order == 2").head(5)
    for term, weight in terms[["term", "weight"]].itertuples(index=False):
        print(f"  {weight:+.2f}  {term.replace('*', ' * ')}")
    headline("Draw synthetic rows: three democrats")
    line(*SHOWN.values())
    for row in shown(model.sample(3, given={"party": "democrat"}, random_state=0)):
        line(*row)
    headline("Read on")
    print("  README.md             the same in a few lines of code, and benchmarks")
    print("  examples/             a story for each task, as scripts")
    print("  make doc              builds the guide, in doc/_build/html/index.html")


if __name__ == "__main__":
    main()
