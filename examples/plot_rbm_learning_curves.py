"""
Six ways to learn, seen by their curves
=======================================

:class:`~sklearn_boltz.SDCPRBM` reaches six published algorithms by its parameters. They
differ in how the gradient is estimated, and how often it is used. What they learn, and how
fast, is in ``history_``, and :class:`~sklearn_boltz.inspection.HistoryDisplay` draws it.
"""

# %%
# Six algorithms
# --------------
# With a number for ``max_iter``, all rows are learned from, at a constant rate, and the
# log-likelihood is measured after each epoch. With 12 hidden units it is exact. S-DCP and CS-DCP
# make six steps for each mini-batch. The others make one, with a learning rate six times as large;
# only PCD has a smaller rate, because its chains must keep up with the weights.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from sklearn_boltz import SDCPRBM
from sklearn_boltz.inspection import HistoryDisplay

X = (load_digits().data > 7).astype(np.float32)
algorithms = {
    "CD-1": dict(n_inner=1, n_gibbs=1, centered=False, learning_rate=0.3),
    "CD-24": dict(n_inner=1, n_gibbs=24, centered=False, learning_rate=0.3),
    "CG-24": dict(n_inner=1, n_gibbs=24, learning_rate=0.3),
    "PCD": dict(n_inner=1, n_gibbs=1, centered=False, chains="persistent", learning_rate=0.1),
    "S-DCP": dict(centered=False, learning_rate=0.05),
    "CS-DCP": dict(learning_rate=0.05),
}
common = dict(n_components=12, batch_size=50, random_state=0)
models = {
    name: SDCPRBM(max_iter=60, **common, **parameters).fit(X)
    for name, parameters in algorithms.items()
}

# %%
# By epochs, and by seconds
# -------------------------
# An epoch of CD-1 is cheap and one of CD-24 or S-DCP is not. So they are also compared by time,
# at the right, without that of the measurements. By epochs, S-DCP, CS-DCP and CG-24 are best.
# By time, CD-1 leads at first and ends lower, and CG-24 is the first of the best: on a machine this
# small, the additional steps of S-DCP and CS-DCP do not pay. On larger ones they do:
# :doc:`/benchmarks`.

colors = {name: f"C{k}" for k, name in enumerate(models)}
fig, axes = plt.subplots(1, 2, figsize=(10, 4), sharey=True, layout="constrained")
for ax, against in zip(axes, ["iteration", "seconds"], strict=True):
    for name, model in models.items():
        HistoryDisplay.from_estimator(model, against=against, color=colors[name], ax=ax)
axes[0].set(ylabel="log-likelihood, nats", xlabel="epoch", ylim=(-24.5, None))
axes[1].set(ylabel="", xscale="log", xlim=(0.01, None))
fig.legend(axes[0].lines, models, loc="outside upper center", ncols=6, frameon=False)
plt.show()

# %%
# What the other curves say
# -------------------------
# The reconstruction error is what many programs report, and the log pseudo-likelihood needs no
# normalising constant. Neither orders the algorithms as the likelihood does. Here S-DCP has a
# larger reconstruction error than CD-1, and a better likelihood; the pseudo-likelihood puts CD-1
# before CG-24, which has the better likelihood.

keys = ["log_likelihood", "log_pseudo_likelihood", "reconstruction_error"]
fig, axes = plt.subplots(1, 3, figsize=(11, 3.6), layout="constrained")
for ax, key in zip(axes, keys, strict=True):
    for name, model in models.items():
        HistoryDisplay.from_estimator(model, key, color=colors[name], ax=ax)
    ax.set_xlabel("epoch")
fig.legend(axes[0].lines, models, loc="outside upper center", ncols=6, frameon=False)
plt.show()

# %%
# Overfitting
# -----------
# ``early_stopping`` sets rows aside. The free-energy gap says by how much they seem less likely
# than those that are learned. Twelve units cannot remember much. A machine of 200 units with 160
# images can: the gap goes on to open when the held-out likelihood no longer rises. Training then
# takes smaller steps, and goes back to the best epoch where these do not help.

machine = SDCPRBM(
    200, learning_rate=0.1, batch_size=20, max_iter=300, early_stopping=0.2, random_state=0
)
machine.fit(X[:200])
best = int(np.nanargmax(machine.history_["validation_log_likelihood"]))
fig, axes = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
for ax, key in zip(axes, ["validation_log_likelihood", "free_energy_gap"], strict=True):
    HistoryDisplay.from_estimator(machine, key, ax=ax)
    ax.axvline(best + 1, color="0.5", ls="--", lw=1)
    ax.set_title(f"best epoch: {best + 1}", fontsize=10)
    ax.set_xlabel("epoch")
plt.show()

# sphinx_gallery_thumbnail_number = 1
