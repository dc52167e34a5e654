"""
From BernoulliRBM to SDCPRBM
============================

:class:`~sklearn_boltz.SDCPRBM` takes the place of
:class:`sklearn.neural_network.BernoulliRBM`: the same data, the same attributes, features for
a classifier. It learns a better model in the same time, and it has what ``BernoulliRBM``
lacks: a normalised likelihood, so that we can say how good the model is, tune it, draw from
it, and let it complete half a picture.
"""

# %%
# Change one import
# -----------------
# The digits of scikit-learn, black or white. Both machines get 100 hidden units and go over
# the pictures until about the same time has passed.

from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.neural_network import BernoulliRBM
from sklearn.pipeline import make_pipeline

from sklearn_boltz import SDCPRBM

images, digit = load_digits(return_X_y=True)
X = (images > 7).astype(np.float32)
X_train, X_test, digit_train, digit_test = train_test_split(
    X, digit, test_size=0.3, stratify=digit, random_state=0
)

start = perf_counter()
model = SDCPRBM(100, learning_rate=0.1, batch_size=50, max_iter=20, random_state=0).fit(X_train)
seconds = perf_counter() - start

start = perf_counter()
old = BernoulliRBM(100, learning_rate=0.05, batch_size=10, n_iter=1, random_state=0)
while perf_counter() - start < seconds:
    old.partial_fit(X_train[np.random.default_rng(old.n_iter).permutation(len(X_train))[:10]])
    old.n_iter += 1

# %%
# How good is it?
# ---------------
# ``score_samples`` of ``BernoulliRBM`` is a random pseudo-likelihood. Here it is the
# log-probability, in nats. With 100 hidden units the normalising constant cannot be computed
# exactly; :meth:`~sklearn_boltz.SDCPRBM.log_partition` estimates it by annealed
# importance sampling, and, the other way round, by chains that start at the test pictures,
# which bounds their likelihood from below. To judge the old machine
# by the same measure, we lend its parameters to the new class.

lent = SDCPRBM(100, max_iter=0).fit(X_train)
lent.components_ = np.ascontiguousarray(old.components_, dtype=np.float32)
lent.intercept_hidden_ = old.intercept_hidden_.astype(np.float32)
lent.intercept_visible_ = old.intercept_visible_.astype(np.float32)

for name, machine in {"BernoulliRBM": lent, "SDCPRBM": model}.items():
    low = machine.log_partition("ais", random_state=0)
    high = machine.log_partition("raise", X=X_test, random_state=0)
    mean = -machine.free_energy(X_test).mean()
    print(
        f"{name:13s} {mean - low.value:.2f} nats a test picture, "
        f"and hardly less than {mean - high.value:.2f}"
    )

# %%
# The course of learning is in ``history_``.

fig, axes = plt.subplots(1, 2, figsize=(8, 3), layout="constrained")
for ax, key in zip(axes, ["log_pseudo_likelihood", "reconstruction_error"], strict=True):
    ax.plot(np.arange(1, model.n_iter_ + 1), model.history_[key])
    ax.set(xlabel="epoch", title=key.replace("_", " "))
plt.show()

# %%
# Receptive fields and samples
# ----------------------------
# The weights of a hidden unit are a picture: what it looks for. Samples come from long Markov
# chains; they show what the model believes in.


def gallery(pictures, title, limit):
    fig, axes = plt.subplots(2, 12, figsize=(8, 1.8), layout="constrained")
    for ax, picture in zip(axes.flat, pictures, strict=False):
        ax.imshow(picture.reshape(8, 8), cmap="RdBu", vmin=-limit, vmax=limit)
        ax.set(xticks=[], yticks=[])
    fig.suptitle(title)
    plt.show()


strongest = np.argsort(-np.linalg.norm(model.components_, axis=1))
gallery(model.components_[strongest], "receptive fields of the strongest units", 3)
gallery(-model.sample(24, random_state=0, init=X_train, n_steps=500), "samples", 1)

# %%
# Features for a classifier
# -------------------------

for name, machine in {"pixels": None, "BernoulliRBM": old, "SDCPRBM": model}.items():
    train, test = X_train, X_test
    if machine is not None:
        train, test = machine.transform(X_train), machine.transform(X_test)
    classifier = LogisticRegression(max_iter=2000).fit(train, digit_train)
    accuracy = classifier.score(test, digit_test)
    print(f"{name:13s} {accuracy:.3f} of the test digits")

# %%
# In practice both steps make a pipeline. And as the likelihood is a score, the machine can be
# tuned without labels. With up to 20 hidden units it is exact.

make_pipeline(SDCPRBM(100, max_iter=10), LogisticRegression(max_iter=2000))

search = GridSearchCV(
    SDCPRBM(max_iter=10, batch_size=50, random_state=0),
    {"n_components": [4, 16], "learning_rate": [0.02, 0.2]},
    cv=3,
).fit(X_train)
print(search.best_params_, f"{search.best_score_:.2f} nats")

# %%
# Half a digit
# ------------
# Missing pixels are NaN. ``impute`` runs chains with the known pixels held fast, and fills in
# the conditional means, or a draw.

truth = X_test[[int(np.flatnonzero(digit_test == k)[0]) for k in range(10)]]
half = truth.reshape(-1, 8, 8).copy()
half[:, :, 4:] = np.nan
half = half.reshape(len(truth), -1)
rows = {
    "truth": truth,
    "given": half,
    "mean": model.impute(half, random_state=0),
    "sample": model.impute(half, how="sample", random_state=0),
}
fig, axes = plt.subplots(len(rows), 10, figsize=(8, 3.6), layout="constrained")
for line, (name, pictures) in zip(axes, rows.items(), strict=True):
    for ax, picture in zip(line, pictures, strict=True):
        ax.imshow(picture.reshape(8, 8), cmap="Greys", vmin=0, vmax=1)
        ax.set(xticks=[], yticks=[])
        ax.set_facecolor("#f0c78a")  # what is hidden
    line[0].set_ylabel(name, rotation=0, ha="right", va="center")
plt.show()

# sphinx_gallery_thumbnail_number = -1
