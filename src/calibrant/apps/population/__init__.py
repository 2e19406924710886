"""Weights that make the audited rows look like a named population; made without labels."""
