"""Bad input to networks."""

import numpy as np

from sklearn_boltz import FVBMPseudoLikelihood

BITS = np.random.default_rng(0).integers(2, size=(40, 4))

CASES = {
    "n_values of too few columns": lambda: FVBMPseudoLikelihood(n_values=[2, 2]).fit(BITS),
    "n_values that are no integers": lambda: FVBMPseudoLikelihood(n_values=["2"] * 4).fit(BITS),
}
