"""Array kernels: `reference` is obviously right, `compiled` is fast, and a property test holds them equal."""
