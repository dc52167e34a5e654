"""Pairwise networks whose couplings are those of a few functions of each column."""
