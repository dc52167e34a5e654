"""Rows compared in pairs."""

import numpy as np

from benchmarks._common import generator
from sklearn_boltz.metrics import sequence_weights
from sklearn_boltz.metrics._similar_rows import BLOCK, count_similar


class SimilarRows:
    """All pairs of 2,000 rows, of which none are similar, and of related ones."""

    params = [["uint8", "uint32"], [False, True]]
    param_names = ["dtype", "related"]

    def setup(self, dtype, related):
        rng = generator()
        codes = rng.integers(20, size=(2000, 2 * BLOCK))
        if related:
            codes = np.where(rng.random(codes.shape) < 0.6, codes[0], codes)
        self.codes = codes.astype(dtype)
        self.counts, self.multiplicity = np.ones((2, len(codes)), dtype=np.int64)

    def time_count_similar(self, dtype, related):
        count_similar(self.codes, self.multiplicity, self.counts, 0, 2000, 50)

    def time_sequence_weights(self, dtype, related):
        sequence_weights(self.codes)
