"""
Find the odd cell
=================

A wrong species, a slipped digit, a measurement in the wrong row: each value is ordinary, and the
row is not. :class:`~sklearn_boltz.BoltzmannOutlierDetector` scores rows by their probability, and
``explain`` says which cells are to blame.
"""

# %%
# The strangest penguins
# ----------------------
# The surprise of a cell is :math:`-\ln p` of its value, given the other cells of the row: at 5, one
# such penguin in 150 has it.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.ensemble import IsolationForest
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import LocalOutlierFactor
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from sklearn_boltz import BoltzmannOutlierDetector
from sklearn_boltz.datasets import load_penguins

penguins = load_penguins().dropna(ignore_index=True)
detector = BoltzmannOutlierDetector(random_state=0).fit(penguins)
score = detector.score_samples(penguins)
strangest = penguins.iloc[np.argsort(score)[:10]]
surprise = detector.explain(strangest)


fig, ax = plt.subplots(figsize=(9, 4), layout="constrained")
image = ax.imshow(surprise, cmap="Oranges", vmin=0, vmax=6, aspect="auto")
for (i, j), value in np.ndenumerate(strangest.to_numpy()):
    ax.text(j, i, value, ha="center", va="center", fontsize=9)
ax.set_xticks(range(7), ["species", "island", "bill", "its depth", "flipper", "mass", "sex"])
ax.set_yticks(range(len(strangest)), strangest.index)
ax.tick_params(length=0, labeltop=True, labelbottom=False)
ax.spines[:].set_visible(False)
fig.colorbar(image, label="surprise of the cell", pad=0.01)
plt.show()

# %%
# In the first row is a female with a bill of 58 mm, longer than that of any male of her species. A
# female Adelie has a bill as deep as that of a male: was the sex written down wrongly?
#
# Errors that we know
# -------------------
# In one row of twenty, a cell gets the value of another row. How well are these rows found, and the
# cell in them? The other detectors take numbers; none of them names a cell.

encoder = make_column_transformer(
    (OneHotEncoder(), ["species", "island", "sex"]), remainder=StandardScaler()
)
results = []
for seed in range(5):
    rng, table = np.random.default_rng(seed), penguins.copy()
    rows = rng.choice(len(table), len(table) // 20, replace=False)
    columns = rng.integers(table.shape[1], size=len(rows))
    for row, column in zip(rows, columns, strict=True):
        cells = penguins.iloc[:, column]
        table.iat[row, column] = rng.choice(cells[cells != cells[row]])
    is_right = ~np.isin(np.arange(len(table)), rows)
    X = encoder.fit_transform(table)
    detector = BoltzmannOutlierDetector(random_state=0).fit(table)
    scores = {
        "IsolationForest": IsolationForest(random_state=0).fit(X).score_samples(X),
        "LocalOutlierFactor": LocalOutlierFactor().fit(X).negative_outlier_factor_,
        "BoltzmannOutlierDetector": detector.score_samples(table),
    }
    surprise = detector.explain(table.iloc[rows]).to_numpy()
    place = (surprise > surprise[np.arange(len(rows)), columns, None]).sum(axis=1)
    results.append({name: roc_auc_score(is_right, score) for name, score in scores.items()})
    results[-1] |= {"cell is first": np.mean(place == 0), "cell is among two": np.mean(place < 2)}
means = pd.DataFrame(results).mean()
print("area under the ROC curve of the rows:", means[:3].round(2).to_string(), sep="\n")
print("of the wrong rows, share of which the", means[3:].round(2).to_string(), sep="\n")

# %%
# All three find these rows about equally well: many errors, such as a flipper length that this
# penguin could have, are undetectable. The detector needs no code for strings, takes rows with
# missing cells, and shows where to look. :doc:`More tables and detectors </user_guide/outliers>`.
