"""The model, exactly: two layers, deep models as two sides, sums over states."""
