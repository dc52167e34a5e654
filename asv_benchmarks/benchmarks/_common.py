"""What the benchmarks share."""

import numpy as np

DTYPES = ["float32", "float64"]


def generator():
    """Random numbers that are the same in every run."""
    return np.random.default_rng(0)


def spins(n_rows, n_columns):
    """Rows of -1 and 1, as float64."""
    return generator().choice([-1.0, 1.0], size=(n_rows, n_columns))


def bits(n_rows, n_columns, dtype, share=0.13):
    """Rows of 0 and 1, with the share of ones that images of digits have."""
    return (generator().random((n_rows, n_columns)) < share).astype(dtype)


def symmetric(n_columns, scale):
    """Couplings with a diagonal of zeros."""
    upper = np.triu(generator().normal(scale=scale, size=(n_columns, n_columns)), 1)
    return upper + upper.T
