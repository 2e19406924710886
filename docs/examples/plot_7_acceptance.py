"""
How much may pass unseen?
=========================

The certified rate of errors among the accepted against the share accepted. A share may be chosen by looking at it.
"""

import numpy as np

import calibrant as cal

rng = np.random.default_rng(0)
confidence = rng.beta(6, 1, 20_000)
data = cal.predictions(rng.uniform(size=20_000) < confidence, confidence)
curve = cal.diagnose.acceptance_curve(data, risk=0.05)

# %%
chart = curve.chart()
