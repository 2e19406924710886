"""The evidence written down: one HTML page, a terminal summary, a Markdown report, each from a record."""
