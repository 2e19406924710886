"""What each kind of method reads of rows or a sketch: score cells, points, cells along a variable, coded covariates."""
