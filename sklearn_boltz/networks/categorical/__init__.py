"""The same for columns with more than two values."""
