"""The model, exactly: two layers, deep machines as two sides, sums over states."""
