"""The search for badly served groups: models of the residual, detectors made of them, and their nulls."""
