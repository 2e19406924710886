"""People whose outcome is not known: what they could do to an error, or a gap, certified of everyone."""
