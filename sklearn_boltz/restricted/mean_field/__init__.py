"""Deterministic inference: TAP, relaxed belief propagation, adaptive TAP."""
