"""Pairwise networks as distributions, exact where the states can be enumerated."""
