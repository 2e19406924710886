"""The papers' own procedures and comparators, as published; what users should call stands in the other folders."""
