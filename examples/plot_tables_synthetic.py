"""
Synthetic rows, as good as real ones?
=====================================

A table that may not be shared can be replaced by rows drawn from a model of it, if they are like
real ones and none is a copy. Both can be measured, with rows that the model has not seen. Here they
are members of the United States House of Representatives.
"""

# %%
# Fit, and draw
# -------------
# Sixteen votes of 1984, and the party of each member. The model is fitted to half of the members.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.colors import ListedColormap
from matplotlib.patches import Patch
from sklearn.tree import DecisionTreeClassifier

from sklearn_boltz import FVBMPseudoLikelihood
from sklearn_boltz.datasets import load_house_votes
from sklearn_boltz.metrics import c2st_score, nearest_record_share


def halves(seed):
    house = load_house_votes().fillna("absent")
    house = house.sample(frac=1, random_state=seed, ignore_index=True)
    return house[:217], house[217:434].reset_index(drop=True)


seen, unseen = halves(seed=0)
model = FVBMPseudoLikelihood().fit(seen)
synthetic = model.sample(len(unseen), random_state=0)
synthetic.iloc[:4, :5]

# %%
# Fix some columns, and draw the others:

model.sample(3, given={"party": "democrat", "crime": "yes"}, random_state=0).iloc[:, :5]

# %%
# Rivals
# ------
# Columns drawn independently of each other; and a decision tree for each column, given those before
# it, as in the R package synthpop: a cell is drawn from the leaf of its row.


rng = np.random.default_rng(0)


def trees(seen):
    rows = pd.DataFrame({"party": rng.permutation(seen["party"])})
    for name in seen.columns[1:]:
        code = pd.get_dummies(pd.concat([seen[list(rows)], rows]))
        tree = DecisionTreeClassifier(min_samples_leaf=5, random_state=0)
        p = tree.fit(code[: len(seen)], seen[name]).predict_proba(code[len(seen) :])
        rows[name] = [rng.choice(tree.classes_, p=p_row) for p_row in p]
    return rows


tables = {
    "real, not seen": unseen,
    "network": synthetic,
    "trees": trees(seen),
    "independent columns": seen.apply(lambda column: rng.permutation(column)),
}

# %%
# Each row is a member, each column a vote.

codes = {"no": 0, "absent": 1, "yes": 2}
colours = ListedColormap(["C1", "white", "C0"])
fig, axes = plt.subplots(1, 4, figsize=(9, 4.4), layout="constrained")
for ax, (name, table) in zip(axes, tables.items(), strict=True):
    shades = table.drop(columns="party").map(codes.get)
    order = table.sort_values(["party", "physician-fee-freeze", "crime", "mx-missile"]).index
    ax.imshow(shades.loc[order], cmap=colours, aspect="auto", interpolation="nearest")
    n_democrats = (table["party"] == "democrat").sum()
    ax.axhline(n_democrats - 0.5, color="k")
    ax.set(title=name, xlabel="16 votes", xticks=[], yticks=[])
    if ax is axes[0]:
        middles = [n_democrats / 2, (n_democrats + len(table)) / 2]
        ax.set_yticks(middles, ["democrats", "republicans"], rotation=90, va="center")
        ax.tick_params(length=0)
answers = [Patch(fc=colours(k), ec="0.6", label=name) for name, k in codes.items()]
fig.legend(handles=answers, loc="outside lower center", ncols=3, frameon=False)
plt.show()

# %%
# Like real rows, and not copies?
# -------------------------------
# The two-sample score is 1 if gradient boosting cannot tell rows from held-out real ones, and 0 if
# it always can. The second number is the share of rows that are closer to a training row than to a
# held-out one: 0.5 without copies, 1 if all are copies. Means over four splits.

results = []
for seed in range(4):
    seen, unseen = halves(seed)
    tables["network"] = FVBMPseudoLikelihood().fit(seen).sample(len(unseen), random_state=0)
    tables |= {"trees": trees(seen), "training rows": seen}
    tables["independent columns"] = seen.apply(lambda column: rng.permutation(column))
    for name in list(tables)[1:]:
        score = c2st_score(unseen, tables[name], random_state=0)
        share = nearest_record_share(seen, unseen, tables[name], random_state=0)
        results.append({"rows": name, "two-sample score": score, "close to training": share})
pd.DataFrame(results).groupby("rows", sort=False).mean().round(2)

# %%
# Rows of the network are harder to tell from real ones than those of trees, and fewer are nearly
# copies. A share of 0.5 does not prove that rows are safe to publish: :ref:`synthetic`.
