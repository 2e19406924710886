"""Data: parsed once into `Predictions` (rows) or `Sketch` (a mergeable summary of any number of rows)."""
