"""Benchmarks of InfiniteRBM."""
