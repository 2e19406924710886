"""
How far do sites differ, and what will a new one see?
=====================================================

How far each site's scores are too low or too high, and where a site that nobody has seen will lie.
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
