"""
Which votes go together?
========================

In an assembly nearly all votes are correlated, since parties vote together. A network shows what is
left if the party and all other votes are held fixed. The table has sixteen votes of the United
States House of Representatives in 1984, and a missing cell where a member was absent.
"""

# %%
# Correlation is everywhere
# -------------------------
# Tests of independence for each pair of columns, corrected for their number:

from itertools import combinations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from scipy.stats import chi2_contingency, false_discovery_control

from sklearn_boltz import FVBMPseudoLikelihood, SparseFVBM, statistics
from sklearn_boltz.datasets import load_house_votes
from sklearn_boltz.inspection import CouplingDisplay

votes = load_house_votes()
pairs = list(combinations(votes, 2))
p = [chi2_contingency(pd.crosstab(votes[one], votes[other])).pvalue for one, other in pairs]
print(f"correlated: {(false_discovery_control(p) < 0.05).sum()} of {len(pairs)} pairs")

# %%
# The network
# -----------
# Strings and missing cells need no preparation. Edges are significant after the same correction:
# red if a yes to one vote goes with a yes to the other, blue and dashed if it goes with a no.
# Republicans count as yes. Widths and numbers are those of the fitted model, whose penalty shrinks
# them.

model = FVBMPseudoLikelihood().fit(votes)
display = CouplingDisplay.from_estimator(
    model, votes, kind="graph", groups=["party", *["vote"] * 16], random_state=0
)
plt.show()

# %%
# The party decides few votes directly. Members who support aid to El Salvador oppose aid to the
# Contras, even within the parties.
#
# How sure is an edge?
# --------------------
# The same edges, estimated without the penalty, so that couplings are larger: 95 % intervals, and
# how often a sparse network of resampled members has the edge.

table = statistics.inference(model, votes).to_frame()
edges = table[table["adjusted_p_value"] < 0.05].sort_values("coupling")
resampled = statistics.bootstrap(SparseFVBM().fit(votes), votes, 20, random_state=0)
frequency = pd.DataFrame(resampled.edge_frequency, votes.columns, votes.columns).stack()

fig, ax = plt.subplots(figsize=(9, 4.5), layout="constrained")
names = [" and ".join(pair) for pair in edges.index]
ax.hlines(names, edges["ci_low"], edges["ci_high"], color="0.6", lw=2)
dots = ax.scatter(
    edges["coupling"], names, c=frequency[edges.index], cmap="cividis_r", vmin=0.5, vmax=1, zorder=2
)
ax.axvline(0, color="k", lw=0.8)
ax.set(xlabel="coupling without penalty, 95 % interval")
fig.colorbar(dots, label="share of the resampled networks")
plt.show()

# %%
# If incomplete rows are dropped
# ------------------------------
# Many programs for networks ask for complete rows, and 232 of the 435 are. Here is what would be
# left of the network.

complete = votes.dropna()
few = statistics.inference(FVBMPseudoLikelihood().fit(complete), complete).to_frame()
for rows, found in ((votes, table), (complete, few)):
    n_edges = (found["adjusted_p_value"] < 0.05).sum()
    print(f"{len(rows)} rows: edges {n_edges}, standard error {np.nanmedian(found['std_err']):.2f}")

# %%
# The warning says what else is lost: in the complete rows, parties are so united on some votes that
# couplings have no finite estimate. These pairs still have a test.
