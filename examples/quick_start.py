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
    padded = [f"{text:15}" for text in texts]
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
    same = SDCPRBM.from_parameters(old.components_, old.intercept_visible_, old.intercept_hidden_)
    start = process_time()
    new = SDCPRBM(
        64, learning_rate=0.1, max_iter=50, early_stopping=False, track_likelihood=False,
        random_state=0,
    ).fit(train)  # fmt: skip
    new_seconds = process_time() - start

    def true(model):
        log_partition = model.log_partition("ais", random_state=0)
        return -model.free_energy(test).mean() - log_partition.value

    headline("Trust the likelihood: mean ln p of 397 held-out digits, 64 pixels each")
    line("", "its score says", "the truth", "seconds")
    line("independent", f"{independent:.1f}", f"{independent:.1f}")
    said = old.score_samples(test).mean()
    line("BernoulliRBM", f"{said:.1f}", f"{true(same):.1f}", f"{old_seconds:.1f}")
    line("SDCPRBM", f"{new.score(test):.1f}", f"{true(new):.1f}", f"{new_seconds:.1f}")
    print("  Higher is better. By its own score, scikit-learn's BernoulliRBM looks better")
    print("  than independent pixels, and is worse. (Truth: annealed importance sampling.)")


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
    headline("Fill missing cells: 435 members of the US House of 1984, a fifth hidden")
    line(*SHOWN.values())
    rows = np.argsort((shown(table) != "?").sum(axis=1), kind="stable")[:3]
    for row in rows:
        line(*shown(table)[row])
        line(*shown(filled)[row], filled=np.flatnonzero(shown(table)[row] == "?"))
    names = "BoltzmannImputer", "IterativeImputer (yes is 1)", "most frequent"
    found = zip(names, np.mean(shares, axis=0), strict=True)
    print("  ? is missing, * is filled. Share of hidden cells that are filled correctly:")
    print("  " + ", ".join(f"{name} {share:.0%}" for name, share in found))


def strange(votes):
    """The members whose votes are the least probable, and the cell that is the most surprising."""
    detector = BoltzmannOutlierDetector(random_state=0).fit(votes)
    members = votes.iloc[np.argsort(detector.score_samples(votes))[:3]]
    headline("Find anomalies: the least probable members, and the cell to blame")
    for row, surprise in detector.explain(members).iterrows():
        name, p = surprise.idxmax(), np.exp(-surprise.max())
        party, vote = members.loc[row, ["party", name]]
        print(f"  row {row} ({party}): {name} is {vote} (p = {p:.3f} given the rest)")


def main():
    print(styled("sklearn_boltz: learn a whole table once, then ask it anything", "1"))
    votes = load_house_votes()
    filling(votes)
    strange(votes)
    model = FVBMPseudoLikelihood().fit(votes)
    headline("Draw synthetic rows: three democrats")
    line(*SHOWN.values())
    for row in shown(model.sample(3, given={"party": "democrat"}, random_state=0)):
        line(*row)
    headline("See which columns interact, given all others (+: yes or republican with yes)")
    terms = model.interactions().query("order == 2").head(5)
    for term, weight in terms[["term", "weight"]].itertuples(index=False):
        print(f"  {weight:+.2f}  {term.replace('*', ' * ')}")
    likelihoods()
    headline("Read on")
    print("  README.md             the same in a few lines of code, and benchmarks")
    print("  examples/             a story for each task, as scripts")
    print("  make doc              builds the guide, in doc/_build/html/index.html")


if __name__ == "__main__":
    main()
