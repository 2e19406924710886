"""
At which thresholds is it worth using?
======================================

Net benefit against the threshold, beside acting for everyone and for nobody, with a band for the whole curve.
"""

import numpy as np

import calibrant as cal

rng = np.random.default_rng(0)
risk = rng.beta(1, 4, 8_000)
data = cal.predictions(rng.uniform(size=8_000) < risk, risk)
curve = cal.diagnose.decision_curve(data)

# %%
chart = curve.chart()
