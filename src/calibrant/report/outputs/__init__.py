"""Where a report goes: a file of any format, a notebook, a few lines at a prompt."""
