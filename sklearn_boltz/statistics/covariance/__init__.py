"""How certain the estimates are."""
