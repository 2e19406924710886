"""The maps of the score and of covariates: one file a family, whose recipes declare themselves above their classes."""
