"""Whether chains mix: if they stay near the rows where they began, training has to be tempered.

The gradient by chains from the data says nothing about the masses of modes that no chain leaves,
nor about modes without data. These drift, and the likelihood falls.
"""

import numpy as np

from sklearn_boltz.numerics._random import Stream
from sklearn_boltz.restricted.sampling._gibbs import run_chains

# Transitions, and the correlation above which chains are called stuck. Measured after default fits:
# digits .02, NIPS .01, DNA .01, NLTCS .03, 1,000 rows of Plants .3; an Ising lattice of 6 x 6 below
# its critical temperature .56; bits near patterns .7 to .99.
N_TRANSITIONS, MOST_MEMORY = 100, 0.5
# Share of tempered states in the negative phase of a training that goes on with them.
LADDER_SHARE = 0.2


def sticks(training, monitor, workers):
    """Whether chains of the model in training, from rows of data, stay where they begin."""
    model = training.learner.model()
    V, seed = monitor.states(model, workers), training.evaluation_seed
    return memory(model.sides(), V, seed, workers) > MOST_MEMORY


def memory(model, V, seed, workers):
    """The correlation of states of chains with those that they began at.

    Parameters
    ----------
    model : Model
    V : ndarray of shape (n_chains, n_visible)
        Where the chains begin: rows of data.
    seed : int
    workers : Workers

    Returns
    -------
    correlation : float
        After `N_TRANSITIONS`, of deviations from the means of the columns, summed over these.
    """
    states = np.array(V, model.dtype, order="C")
    H = np.empty((len(states), len(model.hidden)), model.dtype)
    run_chains(model, states, H, N_TRANSITIONS, Stream(seed), workers)
    first, last = (A - A.mean(axis=0, dtype=np.float64) for A in (V, states))
    scale = np.sqrt((first**2).sum() * (last**2).sum())
    return float((first * last).sum() / scale) if scale > 0 else 0.0
