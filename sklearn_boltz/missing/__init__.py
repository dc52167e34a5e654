"""Missing cells of any model."""
