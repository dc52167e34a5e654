"""
Ask a table: how would they vote?
=================================

A classifier answers one question, about one column given all others. A model of whole rows answers
any: the probability of any column, given whatever is known of the row. Here are sixteen votes of
the United States House of Representatives in 1984, and the parties of its members.
"""

# %%
# One fit
# -------
# Half of the members are held out. Cells are missing where a member was absent or abstained.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.naive_bayes import CategoricalNB

from sklearn_boltz import FVBMPseudoLikelihood
from sklearn_boltz.datasets import load_house_votes

votes = load_house_votes().sample(frac=1, random_state=0, ignore_index=True)
seen, unseen = votes[:217], votes[217:]
model = FVBMPseudoLikelihood().fit(seen)
seen.iloc[:4, :6]

# %%
# Any column, given any others
# ----------------------------
# A row holds what is known; all else is missing, and summed out. How probable is a yes to each
# question, if nothing but the party is known?

bills = votes.columns[1:]
parties = ["democrat", "republican"]
question = pd.DataFrame({"party": parties}).reindex(columns=votes.columns).astype(object)
p_yes = pd.DataFrame(
    {bill: model.predict_column_proba(question, bill)[:, 1] for bill in bills}, parties
).T.sort_values("republican")
asked = seen.groupby("party")[bills].agg(lambda cells: (cells == "yes").sum() / cells.count()).T

fig, ax = plt.subplots(figsize=(8, 5), layout="constrained")
ax.hlines(p_yes.index, *p_yes.to_numpy().T, color="0.8", lw=4, zorder=0)
for party in parties:
    (dots,) = ax.plot(p_yes[party], p_yes.index, "o", ms=9, label=f"{party}, model")
    ax.plot(asked[party][p_yes.index], p_yes.index, "|", ms=12, color="k")
ax.plot([], [], "k|", ms=12, label="share of the votes")
ax.set(xlabel="probability of a yes", xlim=(0, 1))
ax.legend(loc="upper center", bbox_to_anchor=(0.4, 1.1), ncols=3)
plt.show()

# %%
# Votes one by one
# ----------------
# Which party is a new member of? At first nothing is known; then the votes are read, in the order
# of the record.

ks = range(len(bills) + 1)


def first(k):
    return unseen.assign(party=None, **dict.fromkeys(bills[k:], None))


p = np.column_stack([model.predict_column_proba(first(k), "party")[:, 0] for k in ks])

fig, ax = plt.subplots(figsize=(8, 3.6), layout="constrained")
for colour, party in zip(("C0", "C1"), parties, strict=True):
    ax.plot(ks, p[unseen["party"] == party].T, color=colour, lw=0.8, alpha=0.3)
    ax.plot([], [], color=colour, lw=2, label=party)
ax.set(xlabel="votes read", ylabel="probability of a democrat", xlim=(0, 16))
ax.legend(loc="center right")
plt.show()

# %%
# As good as classifiers?
# -----------------------
# Naive Bayes, too, takes any number of votes. A logistic regression is fitted anew for each.

code = votes[bills].fillna("absent").replace({"no": 0, "absent": 1, "yes": 2}).astype(int)
rivals = {
    "naive Bayes": CategoricalNB(min_categories=3),
    "logistic regression": LogisticRegression(),
}
is_democrat = votes["party"] == "democrat"
lines = []
for k in (1, 2, 4, 8, 16):
    losses = {"votes read": k, "this model": log_loss(is_democrat[217:], p[:, k])}
    for name, rival in rivals.items():
        rival.fit(code[bills[:k]][:217], is_democrat[:217])
        losses[name] = log_loss(is_democrat[217:], rival.predict_proba(code[bills[:k]][217:]))
    lines.append(losses)
print("mean of -ln p of the right party")
print(pd.DataFrame(lines).round(2).to_string(index=False))

# %%
# It is about as good as the regressions, each of which answers one question only. Naive Bayes
# counts the same evidence again with every vote, and becomes overconfident.
