"""
Correlation is not interaction
==============================

Sixteen voters sit on four rows of four chairs. Before a vote each whispers with the
neighbours at the left and at the right, in front and behind, and tends to vote like them.
Nobody else talks; yet everybody's vote is correlated with everybody's.

A fully visible Boltzmann machine shows who talks to whom, and how sure we can be:
:class:`~sklearn_boltz.FVBMPseudoLikelihood` estimates a coupling for each pair, with a
standard error.
"""

# %%
# A parliament
# ------------
# Such votes are an Ising model on a grid, which
# :func:`~sklearn_boltz.datasets.make_ising_grid` samples exactly. Each of the 24 true
# couplings is 0.4, all others are 0.

import matplotlib.pyplot as plt
import numpy as np

from sklearn_boltz import FVBMPseudoLikelihood, statistics
from sklearn_boltz.datasets import make_ising_grid
from sklearn_boltz.inspection import CouplingDisplay, HistoryDisplay

X, edges = make_ising_grid(4, 4, n_samples=2000, coupling=0.4, random_state=0, return_edges=True)
truth = np.zeros((16, 16))
truth[tuple(edges.T)] = truth[tuple(edges.T[::-1])] = 0.4
print(X.shape, np.unique(X))

# %%
# The fit
# -------
# The data may be coded as -1 and 1, as 0 and 1 or as bool; samples from the model come back
# in the same coding.

model = FVBMPseudoLikelihood().fit(X)

fig, axes = plt.subplots(1, 2, figsize=(10, 4.4), layout="constrained")
correlation = np.corrcoef(X.T)
np.fill_diagonal(correlation, np.nan)
image = axes[0].imshow(correlation, cmap="RdBu_r", vmin=-0.6, vmax=0.6)
fig.colorbar(image, ax=axes[0], label="correlation")
names = [f"x{i}" for i in range(16)]
axes[0].set_xticks(range(16), names, rotation=90, fontsize=8)
axes[0].set_yticks(range(16), names, fontsize=8)
axes[0].set_title("Everybody is correlated with everybody")
CouplingDisplay.from_estimator(model, X, ax=axes[1], limit=0.6)
axes[1].set_title("Few are coupled (hatched: may be chance)")
plt.show()

# %%
# Which edges are there?
# ----------------------
# :func:`~sklearn_boltz.statistics.inference` gives standard errors, Wald tests and confidence
# intervals. The p values of 120 pairs have to be adjusted for their number; drawn are the
# couplings that Benjamini and Hochberg's method calls significant at 1 %: of the edges found, one
# in a hundred is wrong on average, and sometimes more. The rows of chairs are bent, as in a real
# parliament, so that no edge hides another.

row, column = np.divmod(np.arange(16), 4)
chairs = np.column_stack([column + 0.12 * row**2, -row - 0.1 * (column - 1.5) ** 2])
display = CouplingDisplay.from_estimator(
    model, X, kind="graph", significance_level=0.01, layout=chairs
)
display.ax_.set_title("Who talks to whom")
found = np.triu(display.significant, 1)
print(
    f"{(found & (truth > 0)).sum()} of {len(edges)} true edges found, "
    f"{(found & (truth == 0)).sum()} found that does not exist"
)
plt.show()

# %%
# How sure are we?
# ----------------
# About 95 % of the intervals should cover the truth.

inference = statistics.inference(model, X)
pairs = slice(16, None)
true_values = truth[np.triu_indices(16, 1)]
order = np.lexsort([inference.estimate[pairs], true_values])
low, high = inference.ci_low[pairs][order], inference.ci_high[pairs][order]
covers = (low < true_values[order]) & (true_values[order] < high)

fig, ax = plt.subplots(figsize=(10, 4), layout="constrained")
place = np.arange(len(order))
ax.vlines(place, low, high, colors=np.where(covers, "C0", "C1"), lw=1.5)
ax.plot(place, true_values[order], "k", drawstyle="steps-mid", lw=1, label="truth")
ax.set(xlabel="pair", ylabel="coupling", title=f"{covers.mean():.0%} of the intervals cover")
ax.legend(loc="upper left")
plt.show()

# %%
# The first rows of the table:

inference.to_frame().head().round(4)

# %%
# Two ways to one maximum
# -----------------------
# By default the maximum is found by Newton's method. The algorithm of Nguyen and Wood (2016),
# ``solver="bslm"``, makes many cheap steps instead, none of which ever goes down. Both are drawn
# without a penalty.

fig, ax = plt.subplots(layout="constrained")
for solver in ["bslm", "newton"]:
    fitted = FVBMPseudoLikelihood(solver=solver, alpha=0).fit(X)
    HistoryDisplay.from_estimator(fitted, label=solver, show_increase=True, ax=ax, marker=".")
ax.legend(loc="center right")
plt.show()

# %%
# An absent voter
# ---------------
# The model is a probability for each of the 2\ :sup:`16` votes. So it also knows how those who
# stayed away would have voted, given the others.

absent = X[:3].astype(float)
absent[:, [5, 6]] = np.nan
print("imputed probabilities of a yes:\n", model.impute(absent)[:, [5, 6]].round(2))
print("what they really voted:\n", X[:3, [5, 6]])

# %%
# And by how much does the model beat one of independent voters, on votes it has not seen?
# A huge penalty on the couplings is such a model.

X_test = make_ising_grid(4, 4, n_samples=2000, coupling=0.4, random_state=1)
independent = FVBMPseudoLikelihood(alpha=1e6).fit(X)
print(
    f"mean log-likelihood: {model.score(X_test):.3f}, independent {independent.score(X_test):.3f}"
)
