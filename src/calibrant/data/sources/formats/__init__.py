"""Formats of files that are not columns: JSON, workbooks of Excel, arrays of NumPy, standard input."""
