"""Sums that add up: counts of scores and groups, their parts, samples of whole rows."""
