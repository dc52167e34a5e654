"""Markov chains: Gibbs sampling, annealing, tempering, imputation."""
