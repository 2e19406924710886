"""
Reliability diagram (calibration curve)
=======================================

Observed minus predicted event rate at every score, with a simultaneous confidence band.
"""

import calibrant as cal
from calibrant.data import employment_path

data = cal.read(
    employment_path(),
    label="employed",
    score="predicted_probability",
    by=["sex", "race", "nativity", "age"],
)
curve = cal.diagnose.reliability_curve(data)
print(f"p-value: {curve.settings['p_value']}")

# %%
chart = curve.chart()

# %%
# **How to read it.** Zero is calibrated. At 40% the curve is at +2 points: of a hundred people scored 40%, 42 are
# employed. Where the line is orange, the whole band excludes zero, so the model is shown to underpredict there.
# Elsewhere nothing is shown. The bars below count the people at each score.
