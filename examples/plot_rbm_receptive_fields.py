"""
What hidden units see, and what the model dreams
================================================

A restricted Boltzmann machine explains images by hidden units that are on or off. Two pictures
reveal much about a fitted one: the weights of its hidden units, and samples. They also show when
something is wrong, before any number does.
"""

# %%
# Fit
# ---
# Handwritten digits, 8 × 8 pixels, ink or no ink. A learning rate that falls makes the last
# steps less noisy.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from sklearn_boltz import SDCPRBM
from sklearn_boltz.inspection import ReceptiveFieldDisplay, SampleDisplay

images, digit = load_digits(return_X_y=True)
X = (images > 7).astype(np.float32)
model = SDCPRBM(64, random_state=0)
model.fit(X)

# %%
# Receptive fields
# ----------------
# A unit looks for ink where it is red, and for paper where it is blue. The units come in
# the order of the spread of their weights; all share one scale, so that pale ones are weak.

display = ReceptiveFieldDisplay.from_estimator(model, n_units=60, n_columns=12)
display.ax_.set_title("60 of 64 hidden units, by the spread of their weights")
plt.show()

# %%
# Which units answer to which digit?
# ----------------------------------
# The mean activity over some rows can order the units too. Here are the eight most active
# units over the images of each of four digits. Some units are on for several digits, others for
# one.

fig, axes = plt.subplots(4, 1, figsize=(7, 4.6), layout="constrained")
for k, ax in zip([0, 1, 4, 7], axes, strict=True):
    display = ReceptiveFieldDisplay.from_estimator(
        model, X[digit == k], order="activity", n_units=8, n_columns=8, limit=2, colorbar=False,
        ax=ax,
    )  # fmt: skip
    ax.set_ylabel(f"digit {k}", rotation=0, ha="right", va="center")
    print(f"digit {k}: units {display.units}, on in {display.rank.round(2)} of the cases")
plt.show()

# %%
# Signs of trouble
# ----------------
# With far too small a learning rate, the weights are still the noise that they began as:
# look at the scale, and at the border, where no digit has ink. With far too large a rate the
# weights become several times as large as they need to be, and chains stick.

fig, axes = plt.subplots(3, 1, figsize=(7, 3.9), layout="constrained")
for ax, rate in zip(axes, [0.001, 0.1, 2.0], strict=True):
    short = SDCPRBM(100, learning_rate=rate, batch_size=50, max_iter=20, random_state=0).fit(X)
    ReceptiveFieldDisplay.from_estimator(short, n_units=28, n_columns=14, ax=ax)
    ax.set_title(f"learning_rate={rate}, 20 epochs", fontsize=10)
plt.show()

# %%
# Samples
# -------
# Each sample is the end of a Markov chain of its own, which starts at independent pixels.
# After a few steps one sees where it comes from; after a thousand, hardly. Each column of
# the first picture is one chain. :meth:`~sklearn_boltz.SDCPRBM.gibbs` makes the steps.

chains, lines, done = model.sample(14, n_steps=0, random_state=0), {}, 0
for n_steps in [0, 1, 3, 10, 100, 1000]:
    chains = model.gibbs(chains, n_steps - done, random_state=n_steps)
    lines[f"{n_steps} steps"], done = chains, n_steps
SampleDisplay.from_rows(lines)
plt.show()

# %%
# Then a page of them, beside as many images of the data. Chains can be slow to go from one
# digit to another; with ``n_temperatures`` they exchange their states with chains at higher
# temperatures, which move freely.

fig, axes = plt.subplots(1, 2, figsize=(9, 4.7), layout="constrained")
SampleDisplay.from_rows(X[:100], n_columns=10, ax=axes[0])
axes[0].set_title("data")
SampleDisplay.from_estimator(
    model, 100, random_state=0, sample_kw={"n_temperatures": 5}, n_columns=10, ax=axes[1]
)
axes[1].set_title("samples of the model")
plt.show()

# sphinx_gallery_thumbnail_number = 1
