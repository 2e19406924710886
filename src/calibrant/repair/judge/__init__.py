"""The judge of repairs: rows, comparisons, verdicts."""
