"""Benchmarks of tables of words and levels, with missing cells or without."""
