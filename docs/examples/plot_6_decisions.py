"""
At which thresholds is it worth using?
======================================

Treat everybody, nobody, or those above a threshold? Whether the model is better than either, at every threshold.
"""

import numpy as np

import calibrant as cal

rng = np.random.default_rng(0)
risk = rng.beta(1, 4, 8_000)
data = cal.predictions(rng.uniform(size=8_000) < risk, risk)
curve = cal.diagnose.decision_curve(data)

# %%
chart = curve.chart()

# %%
# **How to read it.** Whoever acts above 20% says that one event missed is as bad as four people treated in
# vain. Net benefit counts in that coin: cases found, less what was in vain, per hundred people. Acting by the
# score is the highest of the three lines wherever its band lies above the others.
