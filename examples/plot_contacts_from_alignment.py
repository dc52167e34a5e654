"""
The fold of an RNA from its relatives
=====================================

Two sites of an RNA that pair must fit each other: where one mutates from G to A, the other tends
to go from C to U. An alignment of relatives shows this, and the fold can be read from sequences
alone. But sites that do not pair are correlated, too: along chains of pairs, and because relatives
inherit most letters from one ancestor. A Potts model tells direct couplings from such correlations.

The RNA is the SAM riboswitch, with which bacteria sense S-adenosylmethionine. Its base pairs are
known, so that we can count how many :class:`~sklearn_boltz.FVBMPseudoLikelihood` finds.
"""

# %%
# The family
# ----------
# Brackets of the last line are base pairs: each opening one pairs with the one that closes it.

import matplotlib.pyplot as plt
import numpy as np

from sklearn_boltz import FVBMPseudoLikelihood
from sklearn_boltz.datasets import load_sam_riboswitch
from sklearn_boltz.inspection import ContactMapDisplay
from sklearn_boltz.metrics import sequence_weights

family = load_sam_riboswitch()
for sequence in family.letters[:3]:
    print("".join(sequence))
print(family.structure)

# %%
# Beside these stems, four letters of a loop pair with four letters between two stems: a pseudoknot,
# which brackets cannot show. It was found in the crystal structure.

pseudoknot = np.column_stack([[24, 25, 26, 27], [78, 77, 76, 75]])
contacts = np.vstack([family.contacts, pseudoknot])

# %%
# Couplings
# ---------
# Many sequences are near copies of each other. With weights, all that share 80 % of their letters
# count as one. `interaction_scores` turns the couplings of a pair of sites into one number.

weights = sequence_weights(family.codes)
print(f"{len(weights)} sequences count as {weights.sum():.0f}")
model = FVBMPseudoLikelihood(columns=range(5))
scores = model.fit(family.codes, sample_weight=weights).interaction_scores()

# %%
# The forty pairs with the highest scores, beside the known ones. Neighbours cannot pair: sites less
# than four apart are left out.

fig, axes = plt.subplots(1, 2, figsize=(10, 4.8), width_ratios=[3, 2], layout="constrained")
best = ContactMapDisplay(scores=scores, contacts=contacts, min_separation=4, n_pairs=40)
best.plot(ax=axes[1])


def arc(i, j, side, **style):
    """Half an ellipse from one site to the other, above (1) or below (-1) the sequence."""
    angle = np.linspace(0, np.pi, 50)
    radius = (j - i) / 2
    axes[0].plot(i + 1 + radius * (1 - np.cos(angle)), side * radius * np.sin(angle), **style)


for k, (i, j) in enumerate(contacts):
    arc(i, j, 1, color="0.4" if k < len(family.contacts) else "#cc79a7")
for (i, j), right in zip(best.pairs_, best.is_contact_, strict=True):
    arc(i, j, -1, color="#0072b2" if right else "#d55e00", ls="-" if right else "--")
axes[0].text(54, 56, "known base pairs; the pseudoknot in pink", ha="center")
axes[0].text(54, -59, "found in the sequences; others dashed", ha="center")
axes[0].axhline(0, color="0.3", lw=0.8)
axes[0].set(xlabel="site", yticks=[], ylim=(-65, 65))
axes[0].spines[["left", "top", "right"]].set_visible(False)
plt.show()

# %%
# All four stems are there, and the pseudoknot, which nobody drew into the alignment. Known pairs
# that are missing are conserved: nearly all relatives have the same two letters there, so that
# nothing can be learned from them.

found = {tuple(pair) for pair in best.pairs_.tolist()}
for i, j in contacts:
    if (i, j) not in found:
        same = (family.codes[:, [i, j]] == np.median(family.codes[:, [i, j]], axis=0)).all(axis=1)
        print(f"{i + 1}-{j + 1}: the same letters in {np.average(same, weights=weights):.0%}")

# %%
# Most pairs that are not known lie in a stem or next to one: in many relatives, a stem is longer
# than in the consensus.

for i, j in best.pairs_[best.is_contact_ == 0]:
    print(f"{i + 1}-{j + 1}", end="  ")

# %%
# What the model is needed for
# ----------------------------
# Mutual information measures how far two sites are from independent, with the same weights and the
# same correction (the average product correction). How many base pairs are among the best pairs?


def mutual_information(codes, weights, n_letters):
    """Mutual information of all pairs of sites, in nats, with the average product correction."""
    n_sites = codes.shape[1]
    one_hot = np.eye(n_letters)[codes].reshape(len(codes), -1)
    p = (one_hot.T * (weights / weights.sum())) @ one_hot
    independent = np.outer(p.diagonal(), p.diagonal())
    log_ratio = np.log(np.divide(p, independent, out=np.ones_like(p), where=p > 0))
    blocks = (p * log_ratio).reshape(n_sites, n_letters, n_sites, n_letters)
    information = blocks.sum(axis=(1, 3))
    np.fill_diagonal(information, 0)
    mean = information.sum(axis=0) / (n_sites - 1)
    return information - np.outer(mean, mean) / mean.mean()


fig, ax = plt.subplots(figsize=(8, 4), layout="constrained")
n_sequences = len(family.codes)
unweighted = np.ones(n_sequences)
for label, found_scores, color in (
    ("Potts model, weighted", scores, "#0072b2"),
    ("mutual information, weighted", mutual_information(family.codes, weights, 5), "#d55e00"),
    ("mutual information", mutual_information(family.codes, unweighted, 5), "#e69f00"),
):
    ranked = ContactMapDisplay(scores=found_scores, contacts=contacts, min_separation=4, n_pairs=60)
    found = np.cumsum(ranked.is_contact_)
    ax.plot(np.arange(1, 61), found, color=color, lw=2, label=label)
    print(f"{label:28s} {found[19]:.0f} of the first 20, {found[39]:.0f} of the first 40")
ax.plot([0, 60], [0, 60 * best.chance_], color="0.5", ls=":", label="chance")
ax.axhline(len(contacts), color="0.5", lw=0.8)
ax.set(xlabel="pairs with the highest scores", ylabel="base pairs among them")
ax.legend(loc="center right")
plt.show()

# %%
# Among the first pairs, mutual information has more that do not pair; weights help it, too.
#
# For a protein, the same steps find residues in contact; there, pairs less than six sites apart are
# left out, as :class:`~sklearn_boltz.inspection.ContactMapDisplay` does by default. A file of your
# own, and effects of mutations: :ref:`how-to-alignments`. New sequences of this family:
# :ref:`sphx_glr_auto_examples_plot_alignment_rbm.py`.

# sphinx_gallery_thumbnail_number = 1
