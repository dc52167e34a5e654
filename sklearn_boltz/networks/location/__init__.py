"""The location model: a network of categories, and Gaussian scores of numbers given these."""
