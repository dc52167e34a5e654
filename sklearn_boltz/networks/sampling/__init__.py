"""Gibbs chains of a network, at one temperature and at several."""
