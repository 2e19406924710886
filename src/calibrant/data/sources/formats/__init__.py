"""Formats of files: what can be read, and the readers of those that are not columns or delimited text."""
