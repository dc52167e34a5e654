"""
Contacts of a protein from its relatives
========================================

Two sites of a protein that touch have to fit each other: where one changes, the other tends to
follow. An alignment of relatives shows this. But sites that do not touch are correlated, too:
along chains of contacts, and because relatives inherit most letters from one ancestor.

A Potts model tells direct couplings from correlations. Here the protein is made up, so that its
contacts are known, and we can count how many :class:`~sklearn_boltz.FVBMPseudoLikelihood` finds.
"""

# %%
# A folded chain
# --------------
# Forty sites run up and down a sheet of five strands, which do not lie beside each other in the
# order of the chain. Sites on neighbouring places are in contact, unless they follow each other in
# the chain: these are bonded. Pairs of both kinds are coupled. The 20 letters have three
# properties, such as size and charge, and in each pair equal values of a property attract or repel
# each other.

import matplotlib.pyplot as plt
import numpy as np

from sklearn_boltz import FVBMPseudoLikelihood
from sklearn_boltz.inspection import ContactMapDisplay
from sklearn_boltz.metrics import sequence_weights

rng = np.random.default_rng(0)
n_sites, n_letters, strands = 40, 20, [1, 0, 2, 4, 3]
site = np.arange(n_sites)
strand, step = np.divmod(site, 8)
height = np.where(strand % 2, 7 - step, step)
place = np.column_stack([np.argsort(strands)[strand], height])

beside = np.abs(place[:, None] - place).sum(axis=2) == 1
bonded = np.abs(site[:, None] - site) == 1
contacts = np.argwhere(np.triu(beside & ~bonded))

properties = rng.normal(size=(n_letters, 3))
coupling = np.zeros((n_sites, n_sites, n_letters, n_letters))
for i, j in np.argwhere(np.triu(beside | bonded)):
    coupling[i, j] = 0.4 * (properties * rng.choice([-1, 1], size=3)) @ properties.T
    coupling[j, i] = coupling[i, j].T
field = rng.normal(scale=0.5, size=(n_sites, n_letters))

# %%
# Its relatives
# -------------
# We draw 800 ancestral sequences with 40 sweeps of Gibbs sampling, long enough to forget their
# common start. Some families are sequenced often, most of them rarely, as in databases. Within a
# family, one site in a dozen has mutated.


def mutate(sequences, share):
    """Draw a share of the cells anew, given the other sites."""
    for i in rng.permutation(n_sites):
        others = np.flatnonzero(beside[i] | bonded[i])
        score = field[i] + sum(coupling[j, i, sequences[:, j]] for j in others)
        drawn = np.argmax(score + rng.gumbel(size=score.shape), axis=1)
        mutated = rng.random(len(sequences)) < share
        sequences[mutated, i] = drawn[mutated]
    return sequences


families = rng.integers(n_letters, size=(800, n_sites))
for _ in range(40):
    families = mutate(families, 1)
often = 1 / np.arange(1, 801)
members = rng.choice(800, size=2500, p=often / often.sum())
alignment = mutate(families[members], 1 / 12)

letters = np.array(list("ACDEFGHIKLMNPQRSTVWY"))
for sequence in letters[alignment[:3]]:
    print("".join(sequence))

# %%
# Two ways to score pairs
# -----------------------
# A Potts model has couplings. `interaction_scores` turns those of a pair into one number, corrected
# for the mean of each site (the average product correction). Mutual information measures how far
# two sites are from independent; here it gets the same correction. Both are computed twice: with
# equal weights, and with weights by which relatives that share 80 % of their sites count as one.

weights = sequence_weights(alignment)
print(f"{len(alignment)} sequences count as {weights.sum():.0f}")


def mutual_information(weights):
    """Mutual information of all pairs of sites, in nats, with the average product correction."""
    one_hot = np.eye(n_letters)[alignment].reshape(len(alignment), -1)
    p = (one_hot.T * (weights / weights.sum())) @ one_hot
    independent = np.outer(p.diagonal(), p.diagonal())
    log_ratio = np.log(np.divide(p, independent, out=np.ones_like(p), where=p > 0))
    blocks = (p * log_ratio).reshape(n_sites, n_letters, n_sites, n_letters)
    information = blocks.sum(axis=(1, 3))
    np.fill_diagonal(information, 0)
    mean = information.sum(axis=0) / (n_sites - 1)
    return information - np.outer(mean, mean) / mean.mean()


information = mutual_information(np.ones(len(alignment)))
weighted_information = mutual_information(weights)

model = FVBMPseudoLikelihood(columns=range(n_letters), alpha=0.1, tol=0.01)
unweighted = model.fit(alignment).interaction_scores()
weighted = model.fit(alignment, sample_weight=weights).interaction_scores()

# %%
# What was found
# --------------
# Neighbours in the chain are bonded anyway, so that they are left out. The best pairs of the
# weighted fit, as many as there are contacts, are compared with the truth.

fig, axes = plt.subplots(1, 2, figsize=(8, 4.6), width_ratios=[2, 3], layout="constrained")
best = ContactMapDisplay(
    scores=weighted, contacts=contacts, min_separation=2, n_pairs=len(contacts)
).plot(ax=axes[1])

axes[0].plot(*place.T, color="0.7", lw=7, solid_joinstyle="round", zorder=1)
for (i, j), right in zip(best.pairs_, best.is_contact_, strict=True):
    style = {"color": "#0072b2", "lw": 2} if right else {"color": "#d55e00", "lw": 1, "ls": "--"}
    axes[0].plot(*place[[i, j]].T, zorder=2, **style)
for number in (1, 10, 20, 30, 40):
    ground = {"boxstyle": "round", "facecolor": "white", "edgecolor": "0.7", "pad": 0.2}
    axes[0].text(*place[number - 1], number, ha="center", va="center", bbox=ground, zorder=3)
axes[0].set_title("The chain, and the pairs found")
axes[0].set_axis_off()

plt.show()

# %%
# How many contacts are among the best pairs, by each of the scores?

fig, ax = plt.subplots(figsize=(8, 4), layout="constrained")
for label, scores, color in (
    ("Potts model, weighted", weighted, "#0072b2"),
    ("Potts model", unweighted, "#56b4e9"),
    ("mutual information, weighted", weighted_information, "#d55e00"),
    ("mutual information", information, "#e69f00"),
):
    ranked = ContactMapDisplay(scores=scores, contacts=contacts, min_separation=2, n_pairs=100)
    found = np.cumsum(ranked.is_contact_)
    ax.plot(np.arange(1, 101), found, color=color, lw=2, label=label)
    print(f"{label:28s} {found[len(contacts) - 1]:.0f} of {len(contacts)} contacts")
ax.plot([0, 100], [0, 100 * best.chance_], color="0.5", ls=":", label="chance")
ax.axhline(len(contacts), color="0.5", lw=0.8)
ax.set(xlabel="pairs with the highest scores", ylabel="contacts among them")
ax.legend(loc="center right")
plt.show()

# %%
# The couplings find most of the contacts. Mutual information finds fewer, because sites that do not
# touch are correlated, too: through chains of contacts, which a model of all sites takes into
# account, and by common descent, for which the weights correct.

# sphinx_gallery_thumbnail_number = 1
