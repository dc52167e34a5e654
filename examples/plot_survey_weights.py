"""
What would everybody answer?
============================

A survey has gaps, and it reaches the wrong people: here are too many men above 65 and too few
below 35. A network of all answers takes survey weights and missing cells, says what men of each age
would answer, and which answers go together once all others are held fixed.
"""

# %%
# The wrong people
# ----------------
# 1,615 men of the United States were asked in May 2018. The weights make them as old, as educated
# and as white as all men.

import matplotlib.pyplot as plt
import pandas as pd

from sklearn_boltz import FVBMPseudoLikelihood
from sklearn_boltz.datasets import load_masculinity_survey
from sklearn_boltz.inspection import CouplingDisplay

survey = load_masculinity_survey()
weight = survey["weight"]
shares = {
    "men asked": survey["age"].value_counts(normalize=True),
    "weighted": weight.groupby(survey["age"]).sum() / weight.sum(),
}
pd.DataFrame(shares).round(2)

# %%
# The model
# ---------
# Answers with an order are declared, from low to high. Nothing else has to be prepared: a missing
# cell is a question without an answer, above all the income.

often = ["never, not open to it", "never, but open to it", "rarely", "sometimes", "often"]
habits = ["lonely", "cry", "affection", "personal_advice", "work_out", "therapist"]
incomes = survey["income"].dropna().unique()
order = {
    "age": ["18-34", "35-64", "65+"],
    "education": ["high school", "some college", "college", "postgraduate"],
    "income": sorted(
        incomes, key=lambda text: int(text.replace(",", "").strip("$+").split("-")[0])
    ),
    "feels_masculine": ["not at all", "not very", "somewhat", "very"],
    "seen_as_masculine": ["not at all", "not too", "somewhat", "very"],
} | dict.fromkeys(habits, often)
others = ["pressure", "worry_mental_health", "worry_finances", "worry_family"]
answers = survey[[*order, *others]]
kinds = {name: ("ordinal", levels) for name, levels in order.items()}
model = FVBMPseudoLikelihood(columns=kinds).fit(answers, sample_weight=weight)
answers.isna().sum().nlargest(4)

# %%
# What would men of each age answer?
# ----------------------------------
# A row holds what is known, here the age; all else is missing.

ages = pd.DataFrame({"age": order["age"]}).reindex(columns=answers.columns).astype(object)
p = pd.DataFrame(
    {habit: model.predict_column_proba(ages, habit)[:, -2:].sum(axis=1) for habit in habits},
    order["age"],
)
does = answers[habits].isin(often[-2:]).where(answers[habits].notna()).astype(float)
counted = does.notna().mul(weight, axis=0).groupby(survey["age"]).sum()
share = does.mul(weight, axis=0).groupby(survey["age"]).sum() / counted

fig, ax = plt.subplots(figsize=(8, 3.6), layout="constrained")
ax.hlines(habits, p.min(), p.max(), color="0.85", lw=4, zorder=0)
for age in order["age"]:
    ax.plot(p.loc[age], habits, "o", ms=8, label=age)
    ax.plot(share.loc[age], habits, "|", ms=13, color="k")
ax.plot(does.mean(), habits, "x", ms=7, color="0.5", label="men asked, no weights")
ax.plot([], [], "k|", ms=12, label="weighted share")
ax.set(xlabel="sometimes or often", xlim=(0, 1))
ax.invert_yaxis()
ax.legend(loc="center left", bbox_to_anchor=(1, 0.5))
plt.show()

# %%
# Young men are lonelier, and ask friends for advice more often. Crosses are far off where age
# matters, such as for loneliness: so many of the men asked are old. The model shrinks what few rows
# say, as of lonely men above 65.
#
# Which answers go together?
# --------------------------
# Edges are significant after a correction for the number of pairs, with standard errors that the
# weights enlarge. Red pairs go up together, blue ones in opposite directions.

groups = ["person"] * 3 + ["view"] * 2 + ["habit"] * 6 + ["view"] + ["worry"] * 3
CouplingDisplay.from_estimator(
    model, answers, sample_weight=weight, kind="graph", groups=groups, random_state=0
)
plt.show()

# %%
# Who did not tell the income?
# ----------------------------
# The model says how probable each income is, given the other answers of a man.

silent = answers["income"].isna()
told = weight.groupby(answers["income"]).sum() / weight[~silent].sum()
guess = model.predict_column_proba(answers[silent], "income").T @ weight[silent]
guess = pd.Series(guess / weight[silent].sum(), order["income"])
pd.DataFrame({"told": told[order["income"]], "not told, by the model": guess}).round(2)

# %%
# As far as their other answers say, men who did not tell are neither richer nor poorer than others.
