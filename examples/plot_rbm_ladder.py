"""
Two modes, and chains that cross between them
=============================================

At low temperature nearly all spins of an Ising lattice point up, or nearly all point down. A
Markov chain that flips spins stays where it began. If an RBM learns from such chains, it can give
probability to states that the chains never reach, and the chains cannot estimate its likelihood.
A ladder of the models that the training went through, whose chains exchange states, connects the
modes.
"""

# %%
# Data whose distribution is known
# --------------------------------
# Lattices of 5 × 4 spins, four fifths of them from the mode in which spins point up.

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.exceptions import ConvergenceWarning

from sklearn_boltz import SDCPRBM
from sklearn_boltz.datasets import make_ising_grid
from sklearn_boltz.inspection import HistoryDisplay, LadderDisplay

lattices, p = make_ising_grid(
    n_samples=20_000, coupling=0.9, random_state=0, return_distribution=True
)
UP = 0.8


def points_up(rows):
    return rows.mean(axis=1) > 0.5


up = points_up(lattices)
X = np.vstack([lattices[up][:3200], lattices[~up][:800]]).astype(np.float32)

# All 2²⁰ states, and the log-likelihood of the distribution that the data have.
states = np.indices(p.shape, dtype=np.int8).reshape(20, -1).T.astype(np.float32)
p = p.ravel() * np.where(points_up(states), UP, 1 - UP) / 0.5
p /= p.sum()
best = np.log(p[X.astype(int) @ 2 ** np.arange(19, -1, -1)]).mean()

# %%
# Two trainings
# -------------
# The first has the default sampler, whose chains start at the data. It is trained as in the papers,
# with a constant learning rate for 30 epochs; ``SDCPRBM()`` itself ends with persistent chains. Of
# the second, half of the chains come from the top of the ladder. Both follow their log-likelihood
# by a ladder, with a band of two standard errors. The dashed line is what the true distribution
# has. (For so small a model, ``track_likelihood=1.0`` asks for the ladder.) The ordinary training
# looks good at first. Then it has put most of its mass on states far from the data, where no chain
# from the data arrives, and cannot take it away. (The warnings of ``fit`` about this are hidden
# here.)

warnings.simplefilter("ignore", ConvergenceWarning)
models = {
    "gibbs": SDCPRBM(16, learning_rate=0.02, max_iter=30, track_likelihood=1.0, random_state=0),
    "tempered": SDCPRBM(16, tempered=0.5, learning_rate=0.01, max_iter=30, random_state=0),
}
fig, ax = plt.subplots(figsize=(7, 3.8), layout="constrained")
for name, model in models.items():
    HistoryDisplay.from_estimator(model.fit(X), "log_likelihood", label=name, ax=ax)
ax.axhline(best, color="0.4", ls="--", lw=1, label="the true distribution")
ax.legend(loc="center right")
ax.set(xlabel="epoch", ylabel="log-likelihood, nats", ylim=(-16, 0))
plt.show()

# %%
# How many point up?
# ------------------
# With 16 hidden units the distribution of a model is known by enumeration. A thousand chains from
# independent spins are no guide to it: each ends in the mode that is near. Chains started with
# ``init="ladder"`` visit every mode in the right proportion.

print(f"{'points up':12s} exactly  chains  ladder    (of the data: {points_up(X).mean():.2f})")
for name, model in models.items():
    exact = np.exp(model.score_samples(states)) @ points_up(states)
    chains = points_up(model.sample(1000, random_state=0, n_steps=200)).mean()
    ladder = points_up(model.sample(1000, random_state=0, n_steps=1000, init="ladder")).mean()
    print(f"{name:12s} {exact:7.2f} {chains:7.2f} {ladder:7.2f}")

# %%
# What the estimates are worth
# ----------------------------
# Annealed importance sampling starts at independent spins with the means of the data, so that
# most of its chains end in the larger mode: :math:`\ln Z` is too low, and its standard error
# does not show it. The ladder finds both.

model = models["tempered"]
display = LadderDisplay.from_estimator(model, random_state=0)
plt.show()
ais = model.log_partition("ais", random_state=0)
print(f"exact  {model.log_partition_:.2f}")
print(f"ladder {display.estimate.value:.2f} ± {display.estimate.std_err:.2f}")
print(f"AIS    {ais.value:.2f} ± {ais.std_err:.2f}, {ais.ess:.0f} of 100 chains count")

# sphinx_gallery_thumbnail_number = 1
