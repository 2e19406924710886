"""Boxes of attributes: which there are and what their cells add up to, their ranges all at once, and the scan for one."""
