"""From rows to the maximum of the pseudo-likelihood."""
