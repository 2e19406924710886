"""
Acceptance: how many answers may pass unread
============================================

The answers that a model is surest of go out unread. How many, if at most 5% of them may be wrong?
"""

import numpy as np

import calibrant as cal

rng = np.random.default_rng(0)
confidence = rng.beta(6, 1, 20_000)
data = cal.predictions(rng.uniform(size=20_000) < confidence, confidence)
curve = cal.diagnose.acceptance_curve(data, risk=0.05)

# %%
chart = curve.chart()

# %%
# **How to read it.** From left to right more answers pass, the surest first. The lower line is the share that was
# wrong, the upper one a guaranteed bound for future answers. Where the upper line crosses 5%, some 45% may pass. The
# bound holds at all shares at once, so one may be chosen by looking.
