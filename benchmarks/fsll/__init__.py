"""Benchmarks of FSLLDensity and of its fast Walsh-Hadamard transform."""
