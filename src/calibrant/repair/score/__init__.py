"""Maps of the score alone."""
