"""Benchmarks of SDCPRBM, also against restricted Boltzmann machines of other libraries."""
