"""Boxes of attributes: which there are and what their cells add up to, their simultaneous ranges, and the scan."""
