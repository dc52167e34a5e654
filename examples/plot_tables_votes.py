"""
Votes of an assembly with empty chairs
======================================

Twelve members vote on fifteen hundred motions, and hardly ever are all of them there. Who votes
with whom, and who against whom? To keep complete rows only would throw most of the table away.

:class:`~sklearn_boltz.FVBMPseudoLikelihood` takes the table as it is, words and empty cells
included, and the errors of its couplings account for what was not seen.
"""

# %%
# An assembly
# -----------
# Two parties of four and a group of four between them. Members have allies, with a coupling of
# 0.4 or so, and three pairs of opponents. All other couplings are 0. With twelve members all
# 4,096 votes can be enumerated, so that the votes are drawn from just this network.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from sklearn_boltz import FVBMPseudoLikelihood, statistics
from sklearn_boltz.inspection import CouplingDisplay

names = ["Ada", "Ben", "Cleo", "Dov", "Elif", "Finn", "Gita", "Hugo", "Ines", "Jon", "Kira", "Lev"]
allies = "Ada-Ben Ben-Cleo Cleo-Dov Dov-Ada Elif-Finn Finn-Gita Gita-Hugo Ines-Jon Jon-Kira"
allies += " Kira-Lev Lev-Ines Dov-Elif Hugo-Ines"
opponents = "Ada-Kira Cleo-Jon Ben-Gita"
truth = pd.DataFrame(0.0, index=names, columns=names)
for pairs, coupling in ((allies, 0.4), (opponents, -0.35)):
    for pair in pairs.split():
        one, other = pair.split("-")
        truth.loc[one, other] = truth.loc[other, one] = coupling

rng = np.random.default_rng(0)
states = 2 * (np.arange(2**12)[:, None] >> np.arange(12) & 1) - 1
log_weight = np.einsum("ij,jk,ik->i", states, truth.to_numpy(), states) / 2 + 0.1 * states.sum(1)
weight = np.exp(log_weight - log_weight.max())
drawn = states[rng.choice(len(states), size=1500, p=weight / weight.sum())]
all_votes = pd.DataFrame(np.where(drawn > 0, "yes", "no"), columns=names)

# %%
# Who is there
# ------------
# Ada, who is in the chair, is always present. The others miss a motion in ten, and where Ada
# votes no, three in ten: this depends on what can be seen, her vote, so that cells are *missing at
# random*. Just one motion in six has all votes.

absent = rng.random(all_votes.shape) < np.where(all_votes[["Ada"]] == "no", 0.3, 0.1)
absent[:, 0] = False
votes = all_votes.mask(absent)
complete = votes.dropna()
print(votes.head(4))
print(f"{absent.mean():.0%} of the cells are empty; {len(complete)} of {len(votes)} rows are not")

# %%
# Two fits
# --------
# Words and empty cells go in as they are. ``missing="em"``, the default, completes each row by
# what the model says of it, fits again, and so on. The other fit has the complete rows only.

model = FVBMPseudoLikelihood(missing="em").fit(votes)
from_complete = FVBMPseudoLikelihood().fit(complete)
print("no and yes:", model.categories_[0].tolist())

upper = np.triu_indices(12, 1)
true_values = truth.to_numpy()[upper]
results = {"all rows, EM": statistics.inference(model, votes)}
results["complete rows"] = statistics.inference(from_complete, complete)
for label, result in results.items():
    estimate, error = result.estimate[12:], result.std_err[12:]
    covered = np.abs(estimate - true_values) < 1.96 * error
    found = result.adjusted_p_value("fdr_bh")[12:] < 0.01
    print(
        f"{label:14s} mean error {np.abs(estimate - true_values).mean():.3f}, "
        f"standard error {error.mean():.3f}, {covered.mean():.0%} of the intervals cover; "
        f"{(found & (true_values != 0)).sum()} of {(true_values != 0).sum()} edges found, "
        f"{(found & (true_values == 0)).sum()} that do not exist"
    )

# %%
# The network
# -----------
# Edges that are significant at 1 %, by Benjamini and Hochberg's method: allies in red, opponents in
# blue and dashed. Below are the intervals of the pairs that have a coupling, and of as
# many that have none. Those of the complete rows are more than twice as wide.

fig = plt.figure(figsize=(10, 8.5), layout="constrained")
axes = fig.subplot_mosaic([["em", "complete"], ["intervals", "intervals"]], height_ratios=[3, 2])
angle = np.pi * (1 - (np.arange(12) + np.arange(12) // 4) / 7)
chairs = np.column_stack([np.cos(angle), np.sin(angle)])
for key, fitted, rows in (("em", model, votes), ("complete", from_complete, complete)):
    CouplingDisplay.from_estimator(
        fitted,
        rows,
        kind="graph",
        significance_level=0.01,
        layout=chairs,
        limit=0.5,
        legend=key == "complete",
        ax=axes[key],
    )
axes["em"].set_title(f"All {len(votes)} rows, {absent.mean():.0%} of the cells empty")
axes["complete"].set_title(f"The {len(complete)} complete rows")

edges = np.flatnonzero(true_values)
others = rng.choice(np.flatnonzero(true_values == 0), len(edges), replace=False)
shown = np.concatenate([edges[np.argsort(-true_values[edges], kind="stable")], others])
for shift, colour, (label, result) in zip(
    (-0.15, 0.15), ("tab:blue", "tab:orange"), results.items(), strict=True
):
    low, high = result.ci_low[12:][shown], result.ci_high[12:][shown]
    place = np.arange(len(shown)) + shift
    axes["intervals"].vlines(place, low, high, colors=colour, lw=2.5, label=label)
axes["intervals"].plot(true_values[shown], "k_", ms=11, mew=2, label="truth")
labels = [f"{names[upper[0][p]]}–{names[upper[1][p]]}" for p in shown]
axes["intervals"].set_xticks(range(len(shown)), labels, rotation=90)
axes["intervals"].set(ylabel="coupling", title="95 % intervals")
axes["intervals"].legend(loc="upper right")
plt.show()

# %%
# How would they have voted?
# --------------------------
# The model fills the empty chairs: by the most probable votes given the others, or by their
# probabilities. Here we know the truth.

filled = model.impute(votes, how="mode")
right = (filled.to_numpy() == all_votes.to_numpy())[absent].mean()
usual = all_votes.mode().iloc[0].to_numpy()
print(f"right: {right:.0%}; by each member's usual vote:", end=" ")
print(f"{(usual == all_votes.to_numpy())[absent].mean():.0%}")
p = model.predict_column_proba(votes, "Hugo")[:, 1]
print("P(Hugo votes yes) for the first motions:", p[:4].round(2))
