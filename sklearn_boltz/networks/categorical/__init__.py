"""Pairwise networks of columns with more than two values."""
