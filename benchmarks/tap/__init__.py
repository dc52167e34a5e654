"""Benchmarks of TAPRBM and TAPDBM."""
