"""
From BernoulliRBM to SDCPRBM
============================

:class:`~sklearn_boltz.SDCPRBM` takes the place of :class:`sklearn.neural_network.BernoulliRBM`: the
same data, the same attributes, features for a classifier. What changes is the score: that of
``BernoulliRBM`` is a random pseudo-likelihood, and cannot say which model is good. Here it is the
log-likelihood.
"""

# %%
# Change the import
# -----------------
# The digits of scikit-learn, black or white. As ``SDCPRBM`` takes longer, ``BernoulliRBM`` gets 700
# epochs, with its default learning rate and with a smaller one.

from time import process_time

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import BernoulliRBM

from sklearn_boltz import SDCPRBM
from sklearn_boltz.inspection import SampleDisplay

images, digit = load_digits(return_X_y=True)
X = (images > 7).astype(float)
X_train, X_test, digit_train, digit_test = X[:1200], X[1200:], digit[:1200], digit[1200:]

models, seconds = {}, {}
for rate in (0.1, 0.01):
    old = BernoulliRBM(64, learning_rate=rate, n_iter=700, random_state=0)
    models[f"BernoulliRBM, {rate}"] = old
models["SDCPRBM"] = SDCPRBM(64, random_state=0)
for name, model in models.items():
    start = process_time()
    model.fit(X_train)
    seconds[name] = process_time() - start

# %%
# What the score says, and what is true
# -------------------------------------
# To score ``BernoulliRBM`` by its log-likelihood, its parameters are copied into an ``SDCPRBM``. A
# model of independent pixels is what any other has to beat.

new = models.pop("SDCPRBM")
says = {name: model.score_samples(X_test).mean() for name, model in models.items()}
copies = {
    name: SDCPRBM.from_parameters(old.components_, old.intercept_visible_, old.intercept_hidden_)
    for name, old in models.items()
}
copies["SDCPRBM"] = new
true = {name: model.score(X_test) for name, model in copies.items()}
says["SDCPRBM"] = true["SDCPRBM"]
p = (X_train.sum(axis=0) + 1) / (len(X_train) + 2)
independent = np.mean(np.log(np.where(X_test, p, 1 - p)).sum(axis=1))
figures = {"score": says, "log-likelihood": true, "seconds": seconds}
print(pd.DataFrame(figures).round(1), f"\nindependent pixels: {independent:.1f}")

fig, ax = plt.subplots(figsize=(8, 3), layout="constrained")
for place, name in enumerate(true):
    ax.plot([says[name], true[name]], [place, place], color="0.7", lw=3, zorder=0)
ax.plot(says.values(), range(3), "o", mfc="w", ms=10, label="its score")
ax.plot(true.values(), range(3), "o", color="C0", ms=10, label="its log-likelihood")
ax.axvline(independent, color="k", ls=":", label="independent pixels")
ax.set_yticks(range(3), true)
ax.set(xlabel="nats for each image that was not seen", ylim=(-0.5, 2.5))
ax.legend(loc="upper left")
plt.show()

# %%
# The score of ``BernoulliRBM`` promises far more than its models have. One of them is worse than
# independent pixels, and nothing says so. That of ``SDCPRBM`` is the log-likelihood, and a grid
# search can maximise it: :ref:`sphx_glr_auto_examples_plot_rbm_grid_search.py`.
#
# Draw
# ----
# ``sample`` runs a chain for each row, from random pixels. Improbable rows of a model show, too.

fig, axes = plt.subplots(2, 1, figsize=(8, 3.9), layout="constrained")
for ax, name in zip(axes, ("BernoulliRBM, 0.1", "SDCPRBM"), strict=True):
    SampleDisplay.from_estimator(copies[name], 48, n_columns=16, random_state=0, ax=ax)
    ax.set_title(f"samples of {name}")
plt.show()

# %%
# Features for a classifier
# -------------------------
# ``transform`` gives the probabilities of the hidden units, as before. A higher likelihood does not
# mean better features; :ref:`features` says which settings give good ones.

for name, model in {"pixels": None, **copies}.items():
    train, test = (X_train, X_test) if model is None else map(model.transform, (X_train, X_test))
    accuracy = LogisticRegression(max_iter=2000).fit(train, digit_train).score(test, digit_test)
    print(f"{name:18} {accuracy:.3f} of the digits are right")
