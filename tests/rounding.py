"""How far apart two fits may be that differ by rounding alone."""

import math

# Relative to a sum over rows, what solvers take for its rounding.
ROUNDING = 1e-13


def known(tol, nats=0.0):
    """How well a fit knows ln p of a row if it ends where it gains less than `tol` nats.

    An objective is flat at its maximum: at a distance δ it lacks ½ δᵀHδ, which for all rows is
    about half the square of what ln p of each is off. Less than the rounding of the objective, a
    sum of `nats`, it cannot gain. Newton's method knows more: its last step squares the distance.
    """
    return math.sqrt(max(tol, ROUNDING * nats))
