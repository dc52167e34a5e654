"""
A density of small pictures
===========================

A density model that is exact can do several jobs with one fit: say how likely a picture
is, complete half a picture, draw new ones, and give features to a classifier. We let
:class:`~sklearn_boltz.FSLLDensity` do all four on handwritten digits, and choose its one
important parameter, ``alpha``, by cross-validation.
"""

# %%
# Twenty pixels
# -------------
# The digits of scikit-learn have 8 × 8 pixels, and the model wants a table of all joint
# states, so we make the pictures coarser: without the empty border columns, averaged to
# 5 × 4 pixels, and black or white. Twenty binary pixels have 2\ :sup:`20`, about a million,
# joint states. We have 1,257 pictures to learn from.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline

from sklearn_boltz import FSLLDensity

SHAPE = (5, 4)


def averaging(n_from, n_to):
    """Matrix that averages a line of pixels to a shorter one, by shared area."""
    edges = np.linspace(0, n_from, n_to + 1)
    pixel = np.arange(n_from)
    shared = np.minimum(edges[1:, None], pixel + 1) - np.maximum(edges[:-1, None], pixel)
    return shared.clip(0) * n_to / n_from


images, digit = load_digits(return_X_y=True)
images = images.reshape(-1, 8, 8)[:, :, 1:7]
coarse = averaging(8, 5) @ images @ averaging(6, 4).T
X = (coarse > 7).astype(int).reshape(len(coarse), -1)
X_train, X_test, digit_train, digit_test = train_test_split(
    X, digit, test_size=0.3, stratify=digit, random_state=0
)


def show(ax, picture):
    ax.imshow(np.reshape(picture, SHAPE), cmap="Greys", vmin=0, vmax=1)
    ax.set(xticks=[], yticks=[])


fig, axes = plt.subplots(2, 10, figsize=(8, 2.3), layout="constrained")
for k in range(10):
    axes[0, k].imshow(images[k], cmap="Greys")
    axes[0, k].set(xticks=[], yticks=[])
    show(axes[1, k], X[k])
axes[0, 0].set_ylabel("given")
axes[1, 0].set_ylabel("5 × 4")
plt.show()

# %%
# Two simple models to beat
# -------------------------
# Independent pixels are one extreme: they cannot remember any shape. The other extreme
# remembers every shape: the table of relative frequencies, mixed with the independent
# pixels so that unseen pictures have some probability too. We even give this table the
# share of the mixture that is best on the test set, which is more than fair.

frequency = (X_train.sum(axis=0) + 1) / (len(X_train) + 2)


def independent(X):
    return (X * np.log(frequency) + (1 - X) * np.log1p(-frequency)).sum(axis=1)


pictures, counts = np.unique(X_train, axis=0, return_counts=True)
seen = {tuple(row): count / len(X_train) for row, count in zip(pictures, counts, strict=True)}
remembered = np.array([seen.get(tuple(row), 0.0) for row in X_test])
by_independence = independent(X_test)
smoothed_table = max(
    np.mean(np.log((1 - share) * remembered + share * np.exp(by_independence)))
    for share in np.linspace(0.01, 1, 100)
)
print(f"independent pixels: {by_independence.mean():.2f} nats a picture")
print(f"smoothed table:     {smoothed_table:.2f}")

# %%
# Choosing alpha
# --------------
# A term enters the model if it explains more than its own description costs; ``alpha``
# multiplies that cost. The default of 1 is a careful choice that needs no tuning. The
# ``score`` of the model is its mean log-likelihood, so
# :class:`~sklearn.model_selection.GridSearchCV` maximises just what we want.

alphas = [0.2, 0.3, 0.4, 0.6, 1.0, 2.0]
search = GridSearchCV(FSLLDensity(columns=range(2)), {"alpha": alphas}, cv=5)
search.fit(X_train)
model = search.best_estimator_
print(f"best alpha: {model.alpha}, {len(model.theta_)} terms")
print(f"FSLLDensity: {model.score(X_test):.2f} nats a picture on the test set")

# %%
# ``columns=range(2)`` says that each pixel has two values, also in a fold where one of them
# happens to be missing.
#
# On the left of the figure the model starts to overfit, on the right it is too cautious.

fig, ax = plt.subplots(figsize=(6.4, 4), layout="constrained")
mean = search.cv_results_["mean_test_score"]
error = search.cv_results_["std_test_score"] / np.sqrt(5)
ax.errorbar(alphas, mean, error, fmt="o-", color="C0", capsize=3, label="cross-validation")
ax.plot(model.alpha, model.score(X_test), "*", ms=15, color="C1", label="test set", zorder=3)
ax.axhline(smoothed_table, color="0.35", ls="--", lw=1)
ax.axhline(by_independence.mean(), color="0.35", ls="--", lw=1)
ax.text(0.19, smoothed_table - 0.03, "smoothed table", va="top", color="0.25")
ax.text(0.19, by_independence.mean() + 0.03, "independent pixels", va="bottom", color="0.25")
ax.set(xscale="log", xlabel="alpha", ylabel="mean log-likelihood, nats")
ax.set_xticks(alphas, alphas)
ax.minorticks_off()
ax.legend(frameon=False, loc="upper right")
plt.show()

# %%
# What did it learn?
# ------------------
# If the model is fitted on a data frame, the terms have the names of its columns: here row
# and column of a pixel. A single pixel with a positive weight tends to be white, the value
# 0. A pair with a positive weight tends to be equal.

names = [f"r{row}c{column}" for row in range(5) for column in range(4)]
named = clone(model).fit(pd.DataFrame(X_train, columns=names))
named.interactions().head(8).round(2)

# %%
# Pairs are not all: strokes are made of several pixels.

orders, numbers = np.unique((model.basis_ != 0).sum(axis=1), return_counts=True)
for order, number in zip(orders, numbers, strict=True):
    print(f"{number:3d} terms of order {order}")

# %%
# Features for a classifier
# -------------------------
# ``transform`` evaluates the terms: a column of 1 and -1 for each. A linear classifier
# that gets these products can use what it could not see in the pixels one by one. The
# labels play no part in choosing the terms. A good density needs terms of high order; for
# this classifier, terms of at most two pixels are better.

pixels_only = LogisticRegression(C=0.1, max_iter=1000)
with_terms = make_pipeline(FSLLDensity(columns=range(2), alpha=0.3, max_order=2), pixels_only)
for name, classifier in {"pixels": pixels_only, "learned terms": with_terms}.items():
    accuracy = classifier.fit(X_train, digit_train).score(X_test, digit_test)
    print(f"{name:14s}{accuracy:.3f} of the test digits")

# %%
# Half a picture, and new ones
# ----------------------------
# ``impute`` fills NaN from the exact distribution of the missing pixels given the others, and
# ``sample`` draws whole pictures. We hide the right half of some pictures of the test set. The
# mean shows where the model is uncertain; a sample is one possible completion.

hidden = X_test[[int(np.flatnonzero(digit_test == k)[0]) for k in range(10)]]
half = hidden.astype(float).reshape(-1, *SHAPE)
half[:, :, 2:] = np.nan
half = half.reshape(len(hidden), -1)

rows = {
    "truth": hidden,
    "given": half,
    "mean": model.impute(half),
    "sample": model.impute(half, how="sample", random_state=0),
    "new": model.sample(10, random_state=1),
}
fig, axes = plt.subplots(len(rows), 10, figsize=(8, 4.9), layout="constrained")
for line, (name, pictures) in zip(axes, rows.items(), strict=True):
    for ax, picture in zip(line, pictures, strict=True):
        show(ax, picture)
        ax.set_facecolor("#f0c78a")  # what is hidden
    line[0].set_ylabel(name, rotation=0, ha="right", va="center", fontsize=11)
plt.show()

# sphinx_gallery_thumbnail_number = -1
