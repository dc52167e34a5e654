"""Terms of three columns and more: their pseudo-likelihood, and which of them pay."""
