"""
Neurons by maximum entropy
==========================

Twenty neurons of a retina look at a scene. In each time bin of 20 ms a neuron fires or is silent.
What do we know of the 2\\ :sup:`20` patterns, if all we trust are the rates of the neurons and how
often two of them fire together? The distribution that assumes nothing else has the greatest
entropy of all with these moments: a pairwise network at the maximum of its likelihood.

Does it know how often three fire together, and how many fire at once?
"""

# %%
# A piece of retina
# -----------------
# There are no real recordings here: a neuron fires where its input crosses a threshold, and neurons
# share inputs with their neighbours and, less, with all others. Such a population is no
# pairwise network, as a real one is not.

import warnings

import matplotlib.pyplot as plt
import numpy as np

from sklearn_boltz import FVBMPseudoLikelihood, MaximumEntropy, statistics
from sklearn_boltz.inspection import CouplingDisplay, MomentsDisplay

rng = np.random.default_rng(0)
places = rng.random((20, 2))
distance = np.linalg.norm(places[:, np.newaxis] - places, axis=2)
covariance = 0.25 + 0.35 * np.exp(-distance / 0.15) + 0.4 * np.eye(20)
inputs = rng.multivariate_normal(np.zeros(20), covariance, size=20_000)
thresholds = rng.uniform(1.0, 2.2, size=20)
X = (inputs > thresholds).astype(np.uint8)
train, test = X[:10_000], X[10_000:]
print(f"rates {X.mean(axis=0).min():.3f} to {X.mean(axis=0).max():.3f}, at most "
      f"{X.sum(axis=1).max()} of 20 at once")  # fmt: skip

# %%
# The fit
# -------
# Up to 25 columns :class:`~sklearn_boltz.MaximumEntropy` is exact: a table of all patterns gives
# the moments of the model, and Newton's method makes them those of the data. Of some pairs there
# may be no row with both: a small penalty keeps their couplings finite.

model = MaximumEntropy(alpha=1e-3).fit(train)
shown = places.copy()
shown[14] += 0.05, -0.01  # beside its neighbour, so that both names can be read
fig, ax = plt.subplots(figsize=(8, 6.4), layout="constrained")
CouplingDisplay.from_estimator(model, kind="graph", layout=shown, ax=ax)
ax.set_title("Couplings, each neuron at its place")
plt.show()

# %%
# Neighbours are coupled, as they should be.
#
# Model against data
# ------------------
# Means and covariances are close to those of rows that the fit has not seen; the training rows have
# errors of their own, so that fewer than 95 % are within two standard errors. Third moments were
# not fitted, and the model has too many patterns in which many fire. The independent model has far
# too few.

MomentsDisplay.from_estimator(model, test, n_samples=100_000, random_state=0)
plt.show()

# %%
# A potential of the number K of neurons that fire makes P(K) that of the data, and the third
# moments agree as well. (This is the K-pairwise model of Tkačik and others.)

counts = MaximumEntropy(alpha=1e-3, count_potential=True).fit(train)
MomentsDisplay.from_estimator(counts, test, n_samples=100_000, random_state=0)
plt.show()

# %%
# Log-likelihoods of new rows, in nats. The pseudo-likelihood looks at patterns that differ from
# the data in one neuron only. It does not see that its model has mass far from the data, of which
# `sample` would warn.

pseudo = FVBMPseudoLikelihood(alpha=1e-3).fit(train)
independent = FVBMPseudoLikelihood(alpha=1e6).fit(train)
for name, fitted in {
    "independent neurons": independent,
    "pseudo-likelihood": pseudo,
    "likelihood": model,
    "likelihood and P(K)": counts,
}.items():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        at_once = fitted.sample(100_000, random_state=0).sum(axis=1)
    print(f"{name:20} {fitted.score(test):8.3f}   P(K >= 15) = {np.mean(at_once >= 15):.4f}")
print(f"{'data':31}P(K >= 15) = {np.mean(X.sum(axis=1) >= 15):.4f}")

# %%
# Temperature and minima of the energy
# ------------------------------------
# At temperature T, all energies are divided by T; the model of the data has T = 1. There, the
# specific heat is the variance of the energy E = −ln p − ln Z. It is large if the patterns have
# very different probabilities.

figures = statistics.thermodynamics(counts, np.geomspace(0.3, 3, 31))
_, ax = plt.subplots(figsize=(6, 3.4), layout="constrained")
ax.semilogx(figures.temperature, figures.specific_heat / counts.n_features_in_)
ax.axvline(1, color="0.5", linestyle="--")
ax.set(xlabel="temperature T", ylabel="specific heat of a neuron (nats per unit of T)")
plt.show()

# %%
# From each pattern there is a way down in energy, by the neuron whose change pays most. Where
# the ways of many patterns end, there is a local minimum; the patterns are its basin.

minima = statistics.local_minima(counts, test)
for state, energy, count in list(zip(minima.states, minima.energy, minima.count, strict=True))[:6]:
    print(f"energy {energy:7.2f}: {count:6} rows, neurons that fire: {np.flatnonzero(state)}")

# %%
# Nearly all rows lead to silence. To the few other minima, in which most neurons fire, hardly any
# row leads: these data have one mode.
