"""
What the layers of a deep machine see
=====================================

A deep Boltzmann machine has several layers of hidden units, each joined to the next.
:class:`~sklearn_boltz.TAPDBM` learns it without Markov chains: mean-field equations compute how the
hidden layers respond to a row, and how the machine behaves on its own (Appendix E of Tramel et al.,
2018). Here it learns scikit-learn's handwritten digits, 8 × 8 pixels, dark or not.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

from sklearn_boltz import TAPDBM
from sklearn_boltz.inspection import SampleDisplay

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X > 8, y, test_size=500, random_state=0)

# %%
# First each layer by itself
# --------------------------
#
# Before all layers are trained together, each is trained as a machine of one layer, on what the
# layer below has made of the data. Without this, the weights of the upper layers stay small: the
# lowest layer explains what it can, and little is left for the others.

deep = TAPDBM(
    (64, 32, 16),
    learning_rate=0.2,
    batch_size=50,
    pretrain_max_iter=20,
    max_iter=20,
    random_state=0,
).fit(X_train)
at_once = clone(deep).set_params(pretrain_max_iter=0).fit(X_train)

fig, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
for model, name, style in [(deep, "one by one before", "-"), (at_once, "all at once", "--")]:
    for k in (1, 2, 3):
        for ax, figure in zip(axes, ("weight_norm", "feature_std"), strict=True):
            values = model.history_[f"{figure}_{k}"]
            label = f"layer {k}, {name}"
            ax.plot(np.arange(1, 21), values, style, color=f"C{k - 1}", label=label)
axes[0].set(title="norm of the weights", yscale="log")
axes[1].set(title="variation of the features between digits", ylim=(0, 0.5))
for ax in axes:
    ax.set(xlabel="epoch of joint training", xticks=[1, 5, 10, 15, 20])
fig.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)

for model, name in [(deep, "one by one before"), (at_once, "all at once")]:
    layers = zip(model.mean_hidden(X_train), model.mean_hidden(X_test), strict=True)
    right = [
        LogisticRegression(max_iter=1000).fit(H, y_train).score(H_test, y_test)
        for H, H_test in layers
    ]
    print(f"{name}: digits recognised from layers 1, 2, 3:", ", ".join(f"{r:.0%}" for r in right))

# %%
# Training layer by layer makes the third layer useful. But each layer loses a little of what a
# classifier needs, and no deep machine that was measured has a better likelihood than
# :class:`~sklearn_boltz.SDCPRBM` (:doc:`/user_guide/limits`). Use one if you want the layers.
#
# What each unit responds to
# --------------------------
#
# Each image is the mean of the 30 digits that excite a unit most, less the mean of all digits: red
# is where there is more ink than usual, blue where there is less. Most units of the first layer
# answer to strokes in one place; those of the last layer, of which there are few, to whole shapes.


def liked(H, n_units=12):
    """Means of the digits that excite each of the most variable units of a layer."""
    units = np.argsort(-H.std(axis=0))[:n_units]
    return np.array([
        X_train[np.argsort(-H[:, j])[:30]].mean(axis=0) - X_train.mean(axis=0) for j in units
    ])  # fmt: skip


names = ["first layer", "second layer", "third layer"]
images = {name: liked(H) for name, H in zip(names, deep.mean_hidden(X_train), strict=True)}
SampleDisplay.from_rows(images, cmap="RdBu_r", limits=(-0.8, 0.8))

# %%
# Completing half a digit
# -----------------------
#
# The lower half of test digits is hidden; the equations run on with the upper half held fixed,
# and all layers together say how probable ink is in the lower half.

half = X_test[:12].astype(float)
half[:, 32:] = np.nan
SampleDisplay.from_rows({
    "digit": X_test[:12].astype(float),
    "upper half": half,
    "imputed": deep.impute(half, method="tap"),
    "sample": deep.sample(12, random_state=0),
})  # fmt: skip
plt.show()
