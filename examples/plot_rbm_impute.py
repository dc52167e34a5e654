"""
Half a digit
============

A model of whole images can complete half of one. Missing pixels are NaN;
:meth:`~sklearn_boltz.SDCPRBM.impute` fills them from their distribution given the pixels that are
there, which no column mean can.
"""

# %%
# Hide half of each image
# -----------------------
# The machine learns from whole images, and then sees the left half of others.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.model_selection import train_test_split

from sklearn_boltz import SDCPRBM
from sklearn_boltz.inspection import SampleDisplay

images, digit = load_digits(return_X_y=True)
X = (images > 7).astype(np.float32)
X_train, X_test, _, digit_test = train_test_split(
    X, digit, test_size=0.3, stratify=digit, random_state=0
)
model = SDCPRBM(64, random_state=0)
model.fit(X_train)

half = X_test.reshape(-1, 8, 8).copy()
half[:, :, 4:] = np.nan
half = half.reshape(X_test.shape)
hidden = np.isnan(half)

# %%
# How good is the guess?
# ----------------------
# The conditional mean is the best guess if squared errors count. We compare with the mean of
# each pixel, and with the mean of the 1, 5 or 20 training images whose left half is nearest.
# With 32 of 64 pixels missing, the mean is over the second half of a Markov chain of 1,000
# transitions.

guesses = {"pixel means": SimpleImputer().fit(X_train).transform(half)}
for k in (1, 5, 20):
    guesses[f"{k} nearest"] = KNNImputer(n_neighbors=k).fit(X_train).transform(half)
guesses["SDCPRBM"] = model.impute(half, random_state=0)
for name, guess in guesses.items():
    p = guess[hidden].clip(1e-3, 1 - 1e-3)
    truth = X_test[hidden]
    wrong = np.mean((p > 0.5) != truth)
    log_loss = -np.mean(np.log(np.where(truth, p, 1 - p)))
    squared = np.mean((p - truth) ** 2)
    print(f"{name:12s} squared error {squared:.4f}  log loss {log_loss:.3f}  wrong {wrong:.1%}")

# %%
# The mean of 20 neighbours is even slightly better. But it needs all training images at every
# call, and gives a mean only. The model also draws, and gives probabilities for any pattern of
# missing pixels.
#
# Uncertainty and draws
# ---------------------
# Where the mean is grey, the model is uncertain, and the grey image itself is no digit. Draws
# are digits: ``how="sample"`` takes all hidden pixels from their joint distribution, so each
# draw is one possible completion.

chosen = [int(np.flatnonzero(digit_test == k)[1]) for k in range(10)]
lines = {"truth": X_test[chosen], "given": half[chosen]}
lines["pixel means"] = guesses["pixel means"][chosen]
lines["5 nearest"] = guesses["5 nearest"][chosen]
lines["conditional\nmean"] = guesses["SDCPRBM"][chosen]
for draw in range(3):
    lines[f"draw {draw + 1}"] = model.impute(half[chosen], how="sample", random_state=draw)
SampleDisplay.from_rows(lines)
plt.show()

# %%
# Any pixels may be missing
# -------------------------
# One fit serves every pattern of missing pixels, also a different one in each row: here
# the upper half, every second column, and three pixels of four at random.

patterns = np.zeros((3, 8, 8), dtype=bool)
patterns[0, :4] = True
patterns[1, :, 1::2] = True
patterns[2] = np.random.default_rng(0).random((8, 8)) < 0.75
missing = np.repeat(patterns.reshape(3, 64), 4, axis=0)
truth = X_test[:12]
given = np.where(missing, np.nan, truth)
SampleDisplay.from_rows(
    {
        "truth": truth,
        "given": given,
        "mean": model.impute(given, random_state=0),
        "draw": model.impute(given, how="sample", random_state=0),
    }
)
plt.show()

# sphinx_gallery_thumbnail_number = 1
