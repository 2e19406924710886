"""Rows of several classes: their columns, lists of some classes, and what is made of them, validated once."""
