"""The audit: run every check that applies, judge in one place, keep the record."""
