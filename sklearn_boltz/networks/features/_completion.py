"""Draws of missing cells, which follow a network while it is learnt."""

import numpy as np

from sklearn_boltz.networks.features._network import draw_states


def begin(network, pairs, codes, missing, generator):
    """Draw missing cells one after another, from what is known, along the strongest pairs.

    Chains that begin so are not stuck where many strongly coupled cells agree with each other, but
    not with the rest of the row.
    """
    codes = np.where(missing, -1, codes)
    x, known = network.expand(codes), ~missing
    ways = [way for pair in pairs for way in ((pair.j, pair.k), (pair.k, pair.j))]
    reached = -1
    while reached < known.sum():
        reached = known.sum()
        for a, b in ways:
            _draw(
                network, x, codes, known, np.flatnonzero(known[:, a] & ~known[:, b]), b, generator
            )
    for j in range(codes.shape[1]):
        _draw(network, x, codes, known, np.flatnonzero(~known[:, j]), j, generator)
    return codes, x


def _draw(network, x, codes, known, rows, j, generator):
    if len(rows):
        states = draw_states(network.log_weights(network.fields(x[rows], j), j), generator)
        codes[rows, j], known[rows, j] = states, True
        x[rows, network.places[j]] = network.features[j][states]


def sweep(network, pairs, codes, x, missing, generator):
    """Draw all missing cells, pairs of strongly coupled ones at once; in place."""
    for pair in pairs:
        rows = np.flatnonzero(missing[:, pair.j] & missing[:, pair.k])
        if len(rows):
            both = pair.draw(network, x[rows], generator)
            for j, states in zip((pair.j, pair.k), both, strict=True):
                codes[rows, j] = states
                x[rows, network.places[j]] = network.features[j][states]
    for j in range(codes.shape[1]):
        rows = np.flatnonzero(missing[:, j])
        if len(rows):
            states = draw_states(network.log_weights(network.fields(x[rows], j), j), generator)
            codes[rows, j] = states
            x[rows, network.places[j]] = network.features[j][states]
