"""
A survey with holes
===================

People skip questions. A table of answers in words, with levels, truth values and an age, has holes
nearly everywhere, and most methods want it complete and in numbers.
:class:`~sklearn_boltz.BoltzmannImputer` fills it as it is: it learns the distribution of whole rows
from the cells that are there, and fills each hole given the other answers of the same person.
"""

# %%
# A made survey
# -------------
# 2,500 people, so that we know what they would have said. What they read and what they do depends
# on age and on education, but not by straight lines: those in the middle of life have children
# at home and take the car, the young and the old take the bus, the old if they live in town.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer, SimpleImputer

from sklearn_boltz import SDCPRBM, BoltzmannImputer

rng = np.random.default_rng(0)
n_people = 2500


def drawn(words, scores):
    """A word for each person, with probabilities proportional to exp(scores)."""
    scores = np.column_stack(np.broadcast_arrays(*scores))
    return np.array(words)[np.argmax(scores + rng.gumbel(size=scores.shape), axis=1)]


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


age = rng.choice([28, 47, 70], n_people) + rng.normal(0, 6, n_people)
home = drawn(["town", "village"], [0.3 + 0 * age, 0 * age])
town = home == "town"
school = drawn(["some", "high", "college"], [(age - 55) / 12, 0.8, (50 - age) / 20 + 0.7 * town])
college = school == "college"
children = rng.random(n_people) < sigmoid(3.5 - ((age - 45) / 8) ** 2)
work = drawn(["studies", "works", "retired"], [(33 - age) / 3 + 1.5 * college, 2, (age - 64) / 2])
reads = drawn(
    ["paper", "online", "nothing"],
    [(age - 50) / 10 + college, 1.2 * college + (48 - age) / 15, 0.5 - college],
)
travels = drawn(
    ["car", "bus", "bicycle"],
    [1.5 * ~town + 2 * children, 1.5 * (age > 60) * town + (age < 33), 1.5 * town * (age < 60)],
)
news = np.where(reads == "nothing", 1, 2.2 + 1.2 * college + (reads == "paper"))
interest = np.clip(np.rint(news + rng.normal(0, 0.7, n_people)), 1, 5).astype(int)
people = pd.DataFrame(
    {
        "age": np.rint(age),
        "home": home,
        "school": pd.Categorical(school, ["some", "high", "college"], ordered=True),
        "work": work,
        "children": children,
        "reads": reads,
        "travels": travels,
        "interest": interest,
    }
)

# %%
# A quarter of the cells are missing. Hardly a tenth of the people have answered everything.

hidden = rng.random(people.shape) < 0.25
survey = people.astype({"children": object}).mask(hidden)
print(survey.head(4))
print(f"complete rows: {(~hidden.any(axis=1)).mean():.0%}")

# %%
# Fill it
# -------
# Without arguments, the imputer looks at the table and chooses: for one with a column of
# numbers, a restricted Boltzmann machine whose unit for that column is Gaussian. Words stay words,
# levels stay levels, and what was observed stays as it was.

imputer = BoltzmannImputer(random_state=0)
filled = imputer.fit_transform(survey)
print(filled.head(4))

# %%
# How good is it?
# ---------------
# The others need numbers: each answer becomes a column of 0 and 1, but for the last of a question,
# which follows from the others and would lead regressions astray. The answer with the largest of
# the filled numbers is the guess. We compare what they say of the hidden cells.

words = [name for name in people if name != "age"]
mean, spread = survey["age"].mean(), survey["age"].std()
blocks = {name: pd.get_dummies(survey[name], dtype=float) for name in words}
for name in words:
    blocks[name][survey[name].isna()] = np.nan
columns = [(survey["age"] - mean) / spread, *(block.iloc[:, :-1] for block in blocks.values())]
numbers = pd.concat(columns, axis=1).to_numpy()
ends = np.cumsum([1, *(block.shape[1] - 1 for block in blocks.values())])


def answers_of(numbers):
    """The table that is nearest to columns of numbers."""
    table = pd.DataFrame({"age": numbers[:, 0] * spread + mean})
    for name, start, end in zip(words, ends[:-1], ends[1:], strict=True):
        shares = numbers[:, start:end]
        shares = np.column_stack([shares, 1 - shares.sum(axis=1)])
        table[name] = np.asarray(blocks[name].columns)[shares.argmax(axis=1)]
    return table


guesses = {
    "most frequent": answers_of(SimpleImputer(strategy="mean").fit_transform(numbers)),
    "20 nearest": answers_of(KNNImputer(n_neighbors=20).fit_transform(numbers)),
    "IterativeImputer": answers_of(
        IterativeImputer(max_iter=20, tol=0.01, random_state=0).fit_transform(numbers)
    ),
    "BoltzmannImputer": filled,
}
scores = {}
for method, guess in guesses.items():
    scores[method] = [
        (guess[name].astype(object) == people[name])[survey[name].isna()].mean() for name in words
    ]
    error = (guess["age"] - people["age"])[survey["age"].isna()]
    print(
        f"{method:17s} right answers {np.mean(scores[method]):.1%}, "
        f"error of the age {np.sqrt(np.mean(error**2)):.1f} years"
    )

# %%
# Regressions in rounds, once the table is coded for them, find as many answers: a few more where
# straight lines do, fewer where they do not, as for children and work, and the age is further off.
# The imputer needs no coding, and its guess is one for the whole row: what it fills in fits
# together.
#
# One answer given others
# -----------------------
# The same can be had without an imputer: a model that takes the table with its holes, with a
# Gaussian unit for the age. It gives the probabilities of one answer given any others; what is not
# known of a person is summed out. What do people read, if all that we know is their age
# and their school? Here we can compare with the formula that made the table.

model = SDCPRBM(64, columns={"age": "gaussian"}, early_stopping=True, random_state=0)
model.fit(survey)
ages = np.arange(22, 82, 3.0)


def asked(school):
    """People of whom age and school are known, and nothing else."""
    return (
        survey.iloc[[0] * len(ages)]
        .assign(
            age=ages, school=pd.Categorical([school] * len(ages), people["school"].cat.categories)
        )
        .assign(**dict.fromkeys(["home", "work", "children", "travels", "interest"]))
    )


def true_probabilities(school):
    college = school == "college"
    score = [(ages - 50) / 10 + college, 1.2 * college + (48 - ages) / 15, 0 * ages + 0.5 - college]
    weight = np.exp(score).T
    return weight / weight.sum(axis=1, keepdims=True)


fig, axes = plt.subplot_mosaic(
    [["right", "right"], ["high", "college"]], figsize=(10, 8), layout="constrained"
)
colours = ["0.75", "tab:green", "tab:orange", "tab:blue"]
for place, ((method, share), colour) in enumerate(zip(scores.items(), colours, strict=True)):
    axes["right"].bar(np.arange(7) + 0.2 * (place - 1.5), share, 0.19, label=method, color=colour)
axes["right"].set_xticks(range(7), words)
axes["right"].set(ylabel="right", title="Hidden answers that were found")
axes["right"].legend(ncols=4, loc="upper center")
axes["right"].set_ylim(0, 1.12)

answers = model.categories_[list(people).index("reads")]
for school in ("high", "college"):
    p = model.predict_column_proba(asked(school), "reads")
    truth = dict(zip(["paper", "online", "nothing"], true_probabilities(school).T, strict=True))
    for answer, colour in zip(answers, ["tab:gray", "tab:blue", "tab:red"], strict=True):
        column = answers.tolist().index(answer)
        axes[school].plot(ages, p[:, column], color=colour, lw=2.5, label=answer)
        axes[school].plot(ages, truth[answer], color=colour, ls="--", lw=1.2)
    axes[school].set(
        xlabel="age", ylabel="probability", ylim=(0, 1), title=f"What people read, school: {school}"
    )
axes["high"].plot([], [], "k--", lw=1.2, label="truth")
axes["high"].legend(loc="upper center")
plt.show()

# %%
# For several imputations, which show how much is not known, take ``how="sample"`` with different
# values of ``random_state``. They do not include the uncertainty of the fitted parameters: for
# Rubin's rules, fit each model to a bootstrap sample of the rows.

ages_drawn = [
    model.impute(survey.iloc[2:3], how="sample", random_state=seed)["age"].item()
    for seed in range(100)
]
print(f"the third person's age: {np.mean(ages_drawn):.0f} ± {np.std(ages_drawn):.0f} years")

# sphinx_gallery_thumbnail_number = 1
