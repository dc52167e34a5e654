"""
Tuning without labels
=====================

How many hidden units, and which learning rate? Often this is answered by a classifier that follows
the machine, which needs labels, or by looking at samples. But the log-likelihood of images that
were held out is a score of the model itself, so
:class:`~sklearn.model_selection.GridSearchCV` can choose.
"""

# %%
# A pipeline with a likelihood
# ----------------------------
# The score of a pipeline is that of its last step: here the mean log-probability of an image
# that :class:`~sklearn.preprocessing.Binarizer` has made black and white. With up to 20
# hidden units it is exact, beyond it is estimated.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Binarizer

from sklearn_boltz import SDCPRBM

X, digit = load_digits(return_X_y=True)
X_train, X_test, digit_train, digit_test = train_test_split(
    X, digit, train_size=1200, stratify=digit, random_state=0
)
pipeline = make_pipeline(
    Binarizer(threshold=7),
    SDCPRBM(batch_size=50, max_iter=15, random_state=0),
)
grid = {
    "sdcprbm__n_components": [8, 16, 32, 64],
    "sdcprbm__learning_rate": [0.03, 0.1, 0.3],
}
search = GridSearchCV(pipeline, grid, cv=2).fit(X_train)
print(search.best_params_, f"{search.best_score_:.2f} nats")
print(f"on the test images: {search.score(X_test):.2f} nats")

# %%
# A map of scores
# ---------------
# The best cell has a frame. With smaller rates, fifteen epochs are too short.

rates, sizes = grid["sdcprbm__learning_rate"], grid["sdcprbm__n_components"]
score = search.cv_results_["mean_test_score"].reshape(len(rates), len(sizes))


def heat_map(ax, score, title, fmt):
    image = ax.imshow(score, cmap="viridis", aspect="auto")
    ax.set_xticks(range(len(sizes)), sizes)
    ax.set_yticks(range(len(rates)), rates)
    ax.set(xlabel="n_components", ylabel="learning_rate", title=title)
    middle = (score.min() + score.max()) / 2
    for (line, column), value in np.ndenumerate(score):
        color = "black" if value > middle else "white"
        ax.text(column, line, fmt.format(value), ha="center", va="center", color=color)
    line, column = np.unravel_index(score.argmax(), score.shape)
    frame = plt.Rectangle((column - 0.5, line - 0.5), 1, 1, fill=False, ec="#d55e00", lw=3)
    ax.add_patch(frame)
    frame.set_clip_on(False)
    return image


fig, ax = plt.subplots(figsize=(6.4, 4), layout="constrained")
image = heat_map(ax, score, "held-out log-likelihood", "{:.2f}")
fig.colorbar(image, label="nats an image")
plt.show()

# %%
# Is a good model a good feature extractor?
# -----------------------------------------
# Now with labels: a logistic regression after each machine, judged by cross-validation on the same
# training images. The two maps are alike, but not the same: the likelihood of 64 units is no better
# than that of 32, and their accuracy is. If labels are the goal, search by accuracy.

classifier = make_pipeline(*pipeline, LogisticRegression(max_iter=1000))
by_accuracy = GridSearchCV(classifier, grid, cv=2).fit(X_train, digit_train)
accuracy = by_accuracy.cv_results_["mean_test_score"].reshape(score.shape)
by_likelihood = make_pipeline(*search.best_estimator_, LogisticRegression(max_iter=1000))
by_likelihood.fit(X_train, digit_train)
print(f"chosen by likelihood: {by_likelihood.score(X_test, digit_test):.3f} of the test digits")
print(f"chosen by accuracy:   {by_accuracy.score(X_test, digit_test):.3f}")

fig, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
heat_map(axes[0], score, "held-out log-likelihood, nats", "{:.2f}")
heat_map(axes[1], accuracy, "held-out accuracy of a classifier", "{:.3f}")
axes[1].set_ylabel("")
plt.show()

# sphinx_gallery_thumbnail_number = -1
