"""
How far do sites differ, and what will a new one see?
=====================================================

Right on the average of 24 hospitals says little about the 25th. How far its scores may be off.
"""

import numpy as np

import calibrant as cal

rng = np.random.default_rng(0)
site = rng.integers(0, 24, 12_000)
off = rng.normal(0.0, 0.3, 24)  # on the scale of log-odds
p = rng.beta(2, 6, 12_000)
y = rng.uniform(size=12_000) < 1 / (1 + (1 - p) / p * np.exp(-off[site]))
data = cal.predictions(y, p, {"site": [f"site {i + 1:02}" for i in site]})
sites = cal.diagnose.heterogeneity(data, site="site")

# %%
chart = sites.chart()

# %%
# **How to read it.** A line is a site: right of zero its scores are too low, left of it too high; orange where
# that is shown. The dark band is the average of all, the pale one where a new site will lie, 95 in 100 times.
# Zero is in the dark band, and yet a new site may be off by half a logit: 20% predicted where 29% is true.
