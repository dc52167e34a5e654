"""Sparse networks: penalties that choose pairs of columns, their solver, and a path of them."""
