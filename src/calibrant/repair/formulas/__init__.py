"""A fitted map as a formula of columns, and the formula written in SQL or JavaScript."""
