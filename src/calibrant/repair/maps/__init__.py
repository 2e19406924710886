"""The maps of the score and of covariates: one file a family, each of whose recipes declares itself."""
