"""Benchmarks of FVBMPseudoLikelihood."""
