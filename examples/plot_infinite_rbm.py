"""
How many hidden units?
======================

:class:`~sklearn_boltz.SDCPRBM` sets its number of hidden units by a rule.
:class:`~sklearn_boltz.InfiniteRBM` chooses it: it inserts one unit after another, each where the
likelihood rises fastest, until that of validation pictures no longer improves. We let it choose on
the digits of scikit-learn, and compare it with a grid search over sizes.
"""

# %%
# Growing
# -------
# All units are trained together for some mini-batches after each insertion. ``history_`` has an
# entry for each number of units.

from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV, train_test_split

from sklearn_boltz import SDCPRBM, InfiniteRBM

images, _ = load_digits(return_X_y=True)
X_train, X_test = train_test_split((images > 7).astype(np.float32), test_size=0.3, random_state=0)

start = perf_counter()
grown = InfiniteRBM(100, early_stopping=0.2, random_state=0).fit(X_train)
growing = perf_counter() - start
print(f"{grown.n_components_} units chosen after {grown.n_iter_} insertions, {growing:.1f} s")

# %%
# Searching
# ---------
# A grid of four sizes, each fitted to three parts of the data, and the best one finally to all: 13
# fits. We give each as many epochs as make the search take about as long.

sizes = [5, 15, 45, 135]


def search(max_iter):
    """Search over the sizes; -> the search and its seconds."""
    start = perf_counter()
    found = GridSearchCV(
        SDCPRBM(max_iter=max_iter, batch_size=50, learning_rate=0.05, random_state=0),
        {"n_components": sizes},
        cv=3,
    ).fit(X_train)
    return found, perf_counter() - start


_, trial = search(10)
grid, searching = search(max(2, round(10 * growing / trial)))
print(
    f"{grid.best_params_['n_components']} units found with {grid.best_estimator_.max_iter} "
    f"epochs each, {searching:.1f} s"
)

# %%
# Refining
# --------
# The grown model is a start for further training: the paper recommends it for contrastive
# divergence.

start = perf_counter()
refined = SDCPRBM(
    grown.n_components_, init=FrozenEstimator(grown), max_iter=20, batch_size=50,
    learning_rate=0.02, random_state=0,
).fit(X_train)  # fmt: skip
refining = perf_counter() - start

machines = {"grown": grown, "grid search": grid.best_estimator_, "grown, refined": refined}
seconds = [growing, searching, growing + refining]
for (name, machine), spent in zip(machines.items(), seconds, strict=True):
    print(f"{name:15s} {len(machine.components_):3d} units, {spent:5.1f} s, "
          f"{machine.score(X_test):.2f} nats a test picture")  # fmt: skip

# %%
# The whole curve comes for the price of one fit; the search knows the likelihood at four points.

fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.5), layout="constrained")
history = grown.history_
left.plot(history["n_components"], history["log_likelihood"], label="grown, training")
left.plot(history["n_components"], history["validation_log_likelihood"], label="grown, validation")
left.plot(sizes, grid.cv_results_["mean_test_score"], "o", label="grid search, left-out folds")
left.axvline(grown.n_components_, color="0.6", ls="--")
left.set(xlabel="hidden units", ylabel="log-likelihood, nats")
left.legend()
right.plot(history["n_components"], history["free_energy_gap"])
right.axvline(grown.n_components_, color="0.6", ls="--")
right.set(xlabel="hidden units", ylabel="training − validation, nats")
plt.show()

# %%
# In the same time, growing gives a better model than a search of 13 short fits. A long fit of one
# size can be better still: :doc:`/user_guide/tuning`.
#
# The units, in the order in which they came. The first ones have gone on learning ever since.

fig, axes = plt.subplots(2, 12, figsize=(8, 1.8), layout="constrained")
for ax in axes.flat:
    ax.axis("off")
for ax, unit in zip(axes.flat, grown.components_, strict=False):
    ax.imshow(unit.reshape(8, 8), cmap="RdBu", vmin=-4, vmax=4)
fig.suptitle("receptive fields")
plt.show()

# sphinx_gallery_thumbnail_number = 1
