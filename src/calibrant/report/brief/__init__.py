"""The brief: the first layer of a report, and all that a notebook or a terminal shows."""
