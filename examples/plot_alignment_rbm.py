"""
New sequences of an RNA family
==============================

A restricted Boltzmann machine learns what sequences of a family have in common. Its hidden units
recognise motifs, which we draw as sequence logos, and it writes sequences that no bacterium has, at
a temperature that makes them more or less typical. Do these keep the base pairs of the fold? The
machine was never shown them.

The family is that of the SAM riboswitch, whose fold is read off the same alignment in
:ref:`sphx_glr_auto_examples_plot_contacts_from_alignment.py`.
"""

# %%
# Training
# --------
# Each of the 107 sites is a column of five letters, one of them the gap. Sequences that are near
# copies of each other have less weight.

import matplotlib.pyplot as plt
import numpy as np

from sklearn_boltz import SDCPRBM
from sklearn_boltz.datasets import load_sam_riboswitch
from sklearn_boltz.inspection import plot_logo
from sklearn_boltz.metrics import sequence_weights

family = load_sam_riboswitch()
weights = sequence_weights(family.codes)
rbm = SDCPRBM(
    40, columns=range(5), alpha=1e-3, learning_rate=0.1, batch_size=50, max_iter=20,
    track_likelihood=False, random_state=0,
).fit(family.codes, sample_weight=weights)  # fmt: skip

# %%
# What hidden units recognise
# ---------------------------
# A hidden unit has a weight for each letter at each site. Letters above the axis switch it on,
# letters below switch it off. These are the four units whose weights are concentrated at the fewest
# sites, and for each unit the 20 sites with the largest weights. The mean over the letters of a
# site is subtracted, since each sequence has one of them. Grey boxes are gaps.

logos = rbm.components_.reshape(40, 107, 5)
logos = logos - logos.mean(axis=2, keepdims=True)
size = (logos**2).sum(axis=2)
n_sites = size.sum(axis=1) ** 2 / (size**2).sum(axis=1)
fig, axes = plt.subplots(4, 1, figsize=(9, 9), layout="constrained")
for ax, k in zip(axes, np.argsort(n_sites)[:4], strict=True):
    sites = np.sort(np.argsort(-size[k])[:20])
    plot_logo(logos[k, sites], family.alphabet, ax=ax)
    ax.set(ylabel=f"unit {k}", xlabel=None)
    ax.set_xticks(range(20), [f"{site + 1}\n{family.structure[site]}" for site in sites])
axes[-1].set_xlabel("site, and whether it is paired in the fold: ( ) or not: .")
plt.show()

# %%
# Two of these units recognise relatives by the loop of their third or fourth stem: gaps, where it
# is shorter, switch one unit on and the other off. The other two each know a base pair: letters
# that pair, such as G with C, switch a unit on at both ends of a stem, and another pair, such as C
# with G, switches it off.
#
# New sequences
# -------------
# At a temperature below 1, `sample` prefers what is probable. How many of the base pairs can form,
# and how many letters does a new sequence share with its nearest relative? For comparison: the
# family itself, and sequences whose sites are drawn one by one.

can_pair = np.zeros((5, 5), dtype=bool)
for pair in ("AU", "UA", "CG", "GC", "GU", "UG"):
    can_pair[family.alphabet.index(pair[0]), family.alphabet.index(pair[1])] = True


def describe(name, sequences):
    pairs = can_pair[sequences[:, family.contacts[:, 0]], sequences[:, family.contacts[:, 1]]]
    shared = [(family.codes == row).mean(axis=1) for row in sequences[:200]]
    nearest = np.mean([share[share < 1].max() for share in shared])  # not the sequence itself
    print(f"{name:22} {pairs.mean():.0%} of the base pairs, nearest relative {nearest:.0%}")


rng = np.random.default_rng(0)
relatives = family.codes[rng.choice(len(weights), 1000, p=weights / weights.sum())]
describe("the family", relatives)
describe("independent sites", rng.permuted(relatives, axis=0))
drawn = {}
for temperature in (1.0, 0.75, 0.5):
    drawn[temperature] = rbm.sample(1000, temperature=temperature, random_state=0)
    describe(f"RBM, temperature {temperature:g}", drawn[temperature])
for sequence in drawn[0.5][:3]:
    print("".join(family.alphabet[code] for code in sequence))
print(family.structure)

# %%
# At lower temperatures nearly all pairs form, and the sequences are still new.
#
# Statistics of the family
# ------------------------
# Do drawn sequences have the letters of the family at each site, and the covariances of letters at
# two sites? The correlation of these numbers is how the field judges a generative model. At a
# temperature other than 1 they cannot agree.


def statistics(sequences, weights=None):
    """Frequencies of letters, and their covariances at different sites."""
    one_hot = np.eye(5)[sequences].reshape(len(sequences), -1)
    covariance = np.cov(one_hot.T, aweights=weights)
    different = np.kron(1 - np.eye(107), np.ones((5, 5))) > 0
    return np.average(one_hot, axis=0, weights=weights), covariance[different]


fig, axes = plt.subplots(1, 2, figsize=(9, 4.4), layout="constrained")
titles = "frequencies of letters", "covariances at two sites"
of_family, of_drawn = statistics(family.codes, weights), statistics(drawn[1.0])
for ax, title, x, y in zip(axes, titles, of_family, of_drawn, strict=True):
    ax.plot(x, y, ".", ms=2, color="#0072b2", rasterized=True)
    ax.axline((0, 0), slope=1, color="0.3", lw=0.8)
    r = np.corrcoef(x, y)[0, 1]
    ax.set(title=f"{title}, r = {r:.2f}", xlabel="family", ylabel="drawn by the RBM")
    print(f"{title}: {r:.3f}")
plt.show()

# %%
# Chains of a few hundred transitions that start at rows of the family (``init``) have covariances
# that are closer, because they have not forgotten these rows.

# sphinx_gallery_thumbnail_number = 1
