"""Maps of the score and of covariates."""
