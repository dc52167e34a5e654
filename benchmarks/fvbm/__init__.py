"""Benchmarks of networks."""
