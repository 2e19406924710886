"""
Differences between sites
=========================

The calibration of 24 hospitals, their mean, and what a new hospital should expect.
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
# **How to read it.** Each line is a site: right of zero its scores are too low, left of it too high, orange where
# that is shown. The dark band is the mean of all sites, the pale one contains a new site with 95%. Zero lies in the
# dark band, and yet a new site may be off by half a logit: 20% predicted where 29% is true.
