"""The sections of the report, a file each or a few: what each shows of a record, in words, tables and pictures.

Each declares itself at its end; `report.outline` puts them in order.
"""
