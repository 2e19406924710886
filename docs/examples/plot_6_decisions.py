"""
Decision curve: net benefit by threshold
========================================

Is acting on the score better than acting on everybody or on nobody, at every threshold?
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
# **How to read it.** Whoever acts above 20% says that one missed event is as bad as four needless treatments. Net
# benefit counts events found, minus needless treatments at that price, per hundred people. The score is worth using
# wherever its band lies above the other two lines.
