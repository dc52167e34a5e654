"""
Digits with few labels
======================

Labels often cost more than images. :class:`~sklearn_boltz.RBMClassifier` takes -1 for a missing
label, and learns the density of images from all of them. This example measures how much that is
worth, beside methods of scikit-learn.
"""

# %%
# Errors with few labels
# ----------------------
# Some training images of each class keep their labels. The machine learns from these alone, or
# from all images. `LabelSpreading` spreads the labels along a graph of nearest neighbours, and
# `LogisticRegression` has the labelled images alone. Each is fitted with three choices of the
# labelled images.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.semi_supervised import LabelSpreading

from sklearn_boltz import RBMClassifier

images, digit = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(
    (images / 16).astype(np.float32), digit, test_size=0.3, stratify=digit, random_state=0
)


def with_few_labels(n_each, seed):
    """The labels of the training images, -1 for all but `n_each` of each class."""
    order = np.random.default_rng(seed).permutation(len(y_train))
    labelled = [order[y_train[order] == k][:n_each] for k in range(10)]
    y = np.full(len(y_train), -1)
    y[np.concatenate(labelled)] = np.repeat(np.arange(10), n_each)
    return y


def machine():
    """The machine; with so few labels, none are set aside for early stopping."""
    return RBMClassifier(100, early_stopping=False, max_iter=20, random_state=0)


def discriminative():
    """The machine without a density."""
    return machine().set_params(generative=0, max_iter="auto")


def alone(estimator, y):
    """Fit an estimator to the labelled images."""
    return estimator.fit(X_train[y >= 0], y[y >= 0])


methods = {
    "LogisticRegression, labelled": lambda y: alone(LogisticRegression(max_iter=500), y),
    "RBMClassifier, labelled": lambda y: alone(discriminative(), y),
    "RBMClassifier, all": lambda y: machine().fit(X_train, y),
    "LabelSpreading, all": lambda y: LabelSpreading(kernel="knn", n_neighbors=7).fit(X_train, y),
}
counts = [1, 2, 5, 10, 20]
errors = {name: np.zeros((len(counts), 3)) for name in methods}
for row, n_each in enumerate(counts):
    for seed in range(3):
        y = with_few_labels(n_each, seed)
        for name, fit in methods.items():
            # In the graph, an image that no label reaches has the probabilities 0 / 0.
            with np.errstate(invalid="ignore"):
                errors[name][row, seed] = 100 * (1 - fit(y).score(X_test, y_test))

for name, values in errors.items():
    print(f"{name:29s}", *(f"{n}: {v:.1f}" for n, v in zip(counts, values.mean(1), strict=True)))

# %%
# Lines are means over the three choices, areas reach from the best to the worst.

fig, ax = plt.subplots(figsize=(6.4, 4), layout="constrained")
for name, values in errors.items():
    ax.plot(counts, values.mean(axis=1), "o-", label=name)
    ax.fill_between(counts, values.min(axis=1), values.max(axis=1), alpha=0.15, linewidth=0)
ax.set(xscale="log", xlabel="labels of each class", ylabel="errors in the test set, %")
ax.set_xticks(counts, counts, minor=False)
ax.minorticks_off()
ax.legend()
plt.show()

# %%
# What the machine learned from five labels of each class
# -------------------------------------------------------
# The first five columns are the labelled images of each class. The others are test images: those
# of which the machine is surest, in the middle, and the least sure ones with the same prediction,
# on the right, with a frame where the prediction is wrong.

y = with_few_labels(5, 0)
model = machine().fit(X_train, y)
probability = model.predict_proba(X_test)
predicted = probability.argmax(axis=1)
fig, axes = plt.subplots(10, 15, figsize=(7.2, 5), layout="constrained")
for k, line in enumerate(axes):
    mine = np.flatnonzero(predicted == k)
    mine = mine[np.argsort(-probability[mine, k])]
    shown = [*X_train[y == k], *X_test[mine[:5]], *X_test[mine[-5:]]]
    wrong = [False] * 5 + [y_test[i] != k for i in [*mine[:5], *mine[-5:]]]
    for ax, image, is_wrong in zip(line, shown, wrong, strict=True):
        ax.imshow(image.reshape(8, 8), cmap="gray_r")
        ax.set(xticks=[], yticks=[])
        for spine in ax.spines.values():
            spine.set(visible=is_wrong, color="tab:red", linewidth=2)
for column, title in ((2, "labelled"), (7, "surest"), (12, "least sure")):
    axes[0, column].set_title(title, fontsize=10)
plt.show()

# %%
# With one label of each class, the other images spare the machine six errors in a hundred; with
# five and ten they change little, and with twenty they cost it one. On these small images the
# graph of neighbours makes far more of them: nearest neighbours nearly always have the same label
# here. What the machine has beside its predictions is the density: it draws images, fills gaps and
# rejects strange images also after a fit with few labels.

# sphinx_gallery_thumbnail_number = 1
