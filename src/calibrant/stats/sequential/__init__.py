"""Statistics that may be read after every day: bets against a tolerance, e-detectors, and ranges at every look."""
