"""How far the objective falls to where a pair of columns has no coupling, beside a parabola.

Wald's test takes the objective for a parabola around the estimate. Of rare values it is none: where
10 rows should have two of them and 22 have, it falls by two thirds of what the parabola does. Among
many pairs, those with the largest statistics would be such.
"""

import numpy as np

from sklearn_boltz.networks.training._objective import parameter_places
from sklearn_boltz.statistics.covariance._curvature import columns_of_parameters


def falls(curvature, n_columns):
    """The falls in ratio to those of parabolas, at most 1; symmetric, (n_columns, n_columns).

    Of the terms of the two columns, along the line to the estimate without their couplings by one
    step of Newton's method. The other terms, whose estimates this changes, hardly matter. It is 1
    where a coupling is separated, or where there is none.
    """
    ratios, pairs, lines = np.ones((n_columns, n_columns)), [], {}
    for pair, ends in _lines(curvature):
        pairs.append(pair)
        for column, line in ends:
            lines.setdefault(column, []).append((len(pairs) - 1, line))
    sums = np.zeros((2, len(pairs)))
    for part in curvature.parts:
        for column, own in lines.items():
            of_pairs, rows = zip(*own, strict=True)
            sums[:, of_pairs] += part.falls(column, np.array(rows))
    for pair, (fall, parabola) in zip(pairs, sums.T, strict=True):
        ratios[pair] = ratios[pair[::-1]] = fall / max(fall, parabola, 1e-300)
    return ratios


def _lines(curvature):
    """Yield the numbers of two columns, and how the fields of each change along their line."""
    one = next(iter(curvature.parts), None)
    if one is None or not len(curvature.places):
        return
    places = parameter_places(len(one.column), one.pairs)
    columns, separated = columns_of_parameters(one.column, one.pairs), curvature.is_separated()
    columns, change = columns[:, curvature.places], np.zeros(places.max() + 1)
    inverse, order = curvature.inverse(), np.lexsort(columns[::-1])
    starts = np.flatnonzero(np.diff(columns[:, order]).any(axis=0)) + 1
    for block in np.split(order, starts) if len(order) else ():
        ends = columns[:, block[0]].tolist()
        if ends[0] == ends[1] or separated[block].any():
            continue
        inner = inverse[:, block]
        change[curvature.places] = -inner @ np.linalg.solve(inner[block], curvature.theta[block])
        rows = [(end, change[places[one.column == end]]) for end in ends]
        yield tuple(curvature.columns[:, block[0]]), rows
