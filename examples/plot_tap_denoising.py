"""
Denoising with a density model
==============================

A noisy picture has passed through a channel that flips each pixel with a known probability. With
a model of clean pictures as the prior, the most probable value of each pixel follows from the
whole noisy picture, by mean-field equations (Section VII.D of Tramel et al.,
2018).
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import expit, logit
from sklearn.datasets import load_digits
from sklearn.metrics import matthews_corrcoef
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsRegressor

from sklearn_boltz import TAPRBM
from sklearn_boltz.inspection import SampleDisplay

X_train, X_test = train_test_split(load_digits().data > 8, test_size=500, random_state=0)
model = TAPRBM(100, learning_rate=0.2, batch_size=50, max_iter=100, random_state=0).fit(X_train)
nearest = KNeighborsRegressor(1).fit(X_train, X_train)

# %%
# Three ways to guess
# -------------------
#
# *Each pixel for itself*: from how often it is dark in the training data, and from its noisy
# value. *The nearest digit* of the training data. And the machine. They are compared by
# Matthews correlation with the clean pictures.

rng = np.random.default_rng(0)
dark = (X_train.sum(axis=0) + 0.5) / (len(X_train) + 1)
probabilities = [0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4]
scores = {"noisy": [], "each pixel for itself": [], "nearest digit": [], "TAPRBM": []}
pictures = {}
for p in probabilities:
    noisy = X_test ^ (rng.random(X_test.shape) < p)
    estimates = {
        "noisy": noisy,
        "each pixel for itself": expit(logit(dark) + (2.0 * noisy - 1) * logit(1 - p)),
        "nearest digit": nearest.predict(noisy),
        "TAPRBM": model.denoise(noisy, flip_probability=p),
    }
    for name, estimate in estimates.items():
        scores[name].append(matthews_corrcoef(X_test.ravel(), estimate.ravel() > 0.5))
    if p == 0.15:
        pictures = {"clean": X_test, **estimates}

fig, ax = plt.subplots(layout="constrained")
for name, values in scores.items():
    ax.plot(probabilities, values, "o-", label=name, lw=2.5 if name == "TAPRBM" else 1.2)
ax.set(xlabel="probability that a pixel is flipped", ylabel="Matthews correlation", ylim=(0, 1))
ax.legend(frameon=False)

# %%
# Up to 20 % of flipped pixels, the machine is clearly best. At 30 % it is hardly better than each
# pixel for itself, and at 40 % worse: too little is left of the picture for the mean-field
# equations.
#
# The pictures
# ------------
#
# Sixteen digits of the test data with 15 % of the pixels flipped. The machine gives a
# probability for each pixel: grey is where it is in doubt.

SampleDisplay.from_rows({name: rows[:16].astype(float) for name, rows in pictures.items()})
plt.show()
