"""Follow-up that ends: the law of its end, event probabilities, and limits of that law."""
