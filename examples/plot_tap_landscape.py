"""
The landscape of a deterministic machine
========================================

:class:`~sklearn_boltz.TAPRBM` approximates the distribution of its units by the solutions of
mean-field equations, and can be trained by them alone, without sampling. Each row of data, as an
initial value, leads to a solution, and rows that share one are alike to the model. Here it learns
scikit-learn's handwritten digits, 8 × 8 pixels, dark or not.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from sklearn_boltz import TAP, TAPRBM
from sklearn_boltz.inspection import LandscapeDisplay

X, y = load_digits(return_X_y=True)
X = X > 8
paper = TAP(max_iter=10, n_gibbs=0)
model = TAPRBM(64, inference=paper, max_iter=60, random_state=0).fit(X)
print(f"{model.score(X):.1f} nats a digit, {model.tap_log_likelihood(X).mean():.1f} by TAP")

# %%
# From the digits to the solutions
# --------------------------------
#
# At first there is one solution: independent pixels. In the course of the training it splits,
# and their free energies drop (left). The rows end in fewer solutions than there are rows; the
# histogram counts how many have which free energy (middle). Isomap puts rows and solutions on a
# plane: the solutions sit where classes of digits are (right).

rows = np.random.default_rng(0).choice(len(X), 500, replace=False)
LandscapeDisplay.from_estimator(model, X[rows], y=y[rows])

# %%
# What the machine makes of each class
# ------------------------------------
#
# Rows of one class do not all end in one solution. Below are the solutions that most rows of
# each class end in: a column of the three most frequent for each class, which look like styles of
# writing.

solutions = model.tap_solutions(X)
fig, axes = plt.subplots(3, 10, figsize=(9, 3), layout="constrained")
for digit in range(10):
    counts = np.bincount(solutions.assignment[y == digit])
    for ax, k in zip(axes[:, digit], np.argsort(-counts)[:3], strict=True):
        ax.imshow(solutions.visible_mean[k].reshape(8, 8), cmap="gray_r", vmin=0, vmax=1)
        ax.set(xticks=[], yticks=[], xlabel=f"{counts[k]} rows" if counts[k] else "")
fig.suptitle(
    f"{len(solutions.free_energy)} solutions for {len(X)} rows: the most frequent of each digit"
)
plt.show()
