"""
Which bird was it?
==================

Of 10,000 aircraft that were struck by an animal, four in five met an unknown bird. A model of the
rows in which the species was identified takes airports and types of aircraft as they are, 50 and
225 different strings, and says which bird it may have been, and how dangerous each one is.
"""

# %%
# 10,000 strikes, 50 airports, 225 types of aircraft
# --------------------------------------------------

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder

from sklearn_boltz import FVBMPseudoLikelihood
from sklearn_boltz.datasets import load_bird_strikes

strikes = load_bird_strikes()
columns = ["airport", "aircraft", "phase", "time_of_day", "speed", "size", "damage", "species"]
table = strikes[columns].assign(month=strikes["date"].dt.month)
is_known = ~table["species"].str.startswith("Unknown")
known, unknown = table[is_known], table[~is_known].assign(species=None)
print(f"identified: {len(known)} of {len(table)}, {known['species'].nunique()} species")
known.isna().sum()[lambda n: n > 0]

# %%
# One fit
# -------
# A fourth of the identified birds is held out. Months go round in a circle; all else is recognised.

seen = known.sample(frac=0.75, random_state=0)
unseen = known.drop(seen.index)
unseen = unseen[unseen["species"].isin(seen["species"])]
model = FVBMPseudoLikelihood(columns={"month": "cyclic", "speed": "binned"}).fit(seen)

# %%
# Is it right about birds that it has not seen?
# ---------------------------------------------
# The other methods answer this one question only. Forests get one-hot columns, boosting the numbers
# of the categories.

species = model.categories_[columns.index("species")]
words = ["airport", "aircraft", "phase", "time_of_day", "size", "damage"]
ordinal = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=np.nan)


def numbers(rows):
    return rows.drop(columns="species").fillna({"speed": seen["speed"].mean(), "damage": "none"})


def by(encoder, classifier):
    transform = make_column_transformer((encoder, words), remainder="passthrough")
    pipeline = make_pipeline(transform, classifier).fit(numbers(seen), seen["species"])
    return pd.DataFrame(pipeline.predict_proba(numbers(unseen)), columns=pipeline.classes_)


one_hot = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
shares = seen["species"].value_counts(normalize=True)
probabilities = {
    "shares of the species": pd.DataFrame([shares] * len(unseen)),
    "boosting": by(ordinal, HistGradientBoostingClassifier(max_iter=30, random_state=0)),
    "random forest": by(one_hot, RandomForestClassifier(300, random_state=0)),
    "network": pd.DataFrame(
        model.predict_column_proba(unseen.assign(species=None), "species"), columns=species
    ),
}
lines = {}
for name, p in probabilities.items():
    p = p[species].to_numpy()
    truth = np.searchsorted(species, unseen["species"])
    p_truth = p[np.arange(len(p)), truth]
    place = (p > p_truth[:, None]).sum(axis=1)
    log_loss = -np.log(0.999 * p_truth + 0.001 / len(species)).mean()
    lines[name] = {
        "first": (place == 0).mean(),
        "first 3": (place < 3).mean(),
        "log loss": log_loss,
    }
pd.DataFrame(lines).T.round(2)

# %%
# The network is right about as often as the forest, with a smaller log loss.
#
# Which birds were the unknown ones?
# ----------------------------------
# The mean probabilities of their species, at airports with many of them.

p = pd.DataFrame(model.predict_column_proba(unknown, "species"), unknown.index, species)
airports = unknown["airport"].value_counts().index[:12]
mean = p.groupby(unknown["airport"]).mean().loc[airports]
mean = mean[mean.max().nlargest(14).index]

fig, ax = plt.subplots(figsize=(9, 5), layout="constrained")
image = ax.imshow(mean, cmap="Oranges", vmin=0, aspect="auto")
ax.set_xticks(range(mean.shape[1]), mean.columns, rotation=40, ha="right")
ax.set_yticks(range(len(mean)), mean.index.str.title().str.slice(0, 30))
ax.tick_params(length=0)
ax.spines[:].set_visible(False)
fig.colorbar(image, label="probability of the species", pad=0.01)
plt.show()

# %%
# This supposes that unknown birds are like identified ones of the same place, time and size. The
# table cannot say whether that is true.
#
# How dangerous are they?
# -----------------------
# The same model answers another question: how probable is any damage, given the species?

birds = shares.index[:12]
rows = pd.DataFrame({"species": birds}).reindex(columns=table.columns).astype(object)
levels = model.categories_[columns.index("damage")]
harm = 1 - model.predict_column_proba(rows, "damage")[:, list(levels).index("none")]
damaged = known["damage"].ne("none").where(known["damage"].notna()).astype(float)
share = damaged.groupby(known["species"]).mean()[birds]
order = np.argsort(harm)

fig, ax = plt.subplots(figsize=(8, 4), layout="constrained")
ax.barh(birds[order], harm[order], color="C1", alpha=0.7, label="model")
ax.plot(share.iloc[order], birds[order], "k|", ms=14, label="share of the strikes")
ax.set(xlabel="probability of damage")
ax.legend(loc="lower right")
plt.show()
