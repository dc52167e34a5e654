"""Estimates of ln Z."""
