"""
From BernoulliRBM to SDCPRBM
============================

:class:`~sklearn_boltz.SDCPRBM` takes the place of
:class:`sklearn.neural_network.BernoulliRBM`: the same data, the same attributes, features for
a classifier. In the same time it learns a model with a higher likelihood, and it has what
``BernoulliRBM`` lacks: a normalised likelihood, so that we can say how good the model is, tune
it, draw from it, and let it complete half a picture.
"""

# %%
# Change one import
# -----------------
# The digits of scikit-learn, black or white. Both machines get 100 hidden units, and
# ``BernoulliRBM`` as many epochs as take about the same time.

from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.neural_network import BernoulliRBM
from sklearn.pipeline import make_pipeline

from sklearn_boltz import SDCPRBM
from sklearn_boltz.inspection import ReceptiveFieldDisplay, SampleDisplay

images, digit = load_digits(return_X_y=True)
X = (images > 7).astype(np.float32)
X_train, X_test, digit_train, digit_test = train_test_split(
    X, digit, test_size=0.3, stratify=digit, random_state=0
)

start = perf_counter()
model = SDCPRBM(100, learning_rate=0.1, batch_size=50, max_iter=20, random_state=0).fit(X_train)
seconds = perf_counter() - start

old = BernoulliRBM(100, learning_rate=0.05, batch_size=10, n_iter=5, random_state=0)
start = perf_counter()
old.fit(X_train)
epochs = round(5 * seconds / (perf_counter() - start))
old.set_params(n_iter=max(epochs, 1)).fit(X_train)

# %%
# How good is it?
# ---------------
# ``score_samples`` of ``BernoulliRBM`` is a random pseudo-likelihood. Here it is the
# log-probability, in nats. With 100 hidden units the normalising constant cannot be computed
# exactly; :meth:`~sklearn_boltz.SDCPRBM.log_partition` estimates it by annealed
# importance sampling, and, the other way round, by chains that start at the test pictures. The
# likelihood by the former tends to be too high, and by the latter too low: if they agree, both can
# be trusted. To judge the old machine by the same measure, we lend its parameters to the new class.

lent = SDCPRBM(100, max_iter=0).fit(X_train)
lent.components_ = np.ascontiguousarray(old.components_, dtype=np.float32)
lent.intercept_hidden_ = old.intercept_hidden_.astype(np.float32)
lent.intercept_visible_ = old.intercept_visible_.astype(np.float32)

for name, machine in {"BernoulliRBM": lent, "SDCPRBM": model}.items():
    low = machine.log_partition("ais", random_state=0)
    high = machine.log_partition("raise", X=X_test, random_state=0)
    mean = -machine.free_energy(X_test).mean()
    print(
        f"{name:13s} {mean - low.value:.2f} nats a test picture by AIS, "
        f"{mean - high.value:.2f} the other way round"
    )

# %%
# Look at them
# ------------
# The weights of a hidden unit are an image: what the unit looks for.
# :class:`~sklearn_boltz.inspection.ReceptiveFieldDisplay` takes both machines.

fig, axes = plt.subplots(1, 2, figsize=(9, 2.2), layout="constrained")
for ax, (name, machine) in zip(axes, {"BernoulliRBM": old, "SDCPRBM": model}.items(), strict=True):
    ReceptiveFieldDisplay.from_estimator(machine, n_units=40, n_columns=10, ax=ax)
    ax.set_title(name)
plt.show()

# %%
# Features for a classifier
# -------------------------
# As before, ``transform`` gives the probabilities of the hidden units, and both steps make a
# pipeline.

for name, machine in {"pixels": None, "BernoulliRBM": old, "SDCPRBM": model}.items():
    train, test = X_train, X_test
    if machine is not None:
        train, test = machine.transform(X_train), machine.transform(X_test)
    classifier = LogisticRegression(max_iter=2000).fit(train, digit_train)
    accuracy = classifier.score(test, digit_test)
    print(f"{name:13s} {accuracy:.3f} of the test digits")

make_pipeline(SDCPRBM(100, max_iter=10), LogisticRegression(max_iter=2000))

# %%
# A higher likelihood does not mean better features: for a classifier, those of ``BernoulliRBM``
# are about as good. :ref:`features` says which settings give good ones.
#
# Samples of both models
# ----------------------
# ``BernoulliRBM`` can make a Gibbs step; ``sample`` makes many. Chains that start at random
# pixels and forget where they began show what a machine takes for a digit.

fig, axes = plt.subplots(2, 1, figsize=(8, 3.9), layout="constrained")
for ax, (name, machine) in zip(axes, {"BernoulliRBM": lent, "SDCPRBM": model}.items(), strict=True):
    SampleDisplay.from_estimator(machine, 48, n_columns=16, random_state=0, ax=ax)
    ax.set_title(f"samples of {name}")
plt.show()

# %%
# Where to go from here:
# :ref:`sphx_glr_auto_examples_plot_rbm_receptive_fields.py`,
# :ref:`sphx_glr_auto_examples_plot_rbm_learning_curves.py`,
# :ref:`sphx_glr_auto_examples_plot_rbm_impute.py` and
# :ref:`sphx_glr_auto_examples_plot_rbm_grid_search.py`.

# sphinx_gallery_thumbnail_number = -1
