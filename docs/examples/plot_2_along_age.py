"""
Along which age is it off?
==========================

The error along a covariate, with a band for the whole curve.
"""

import calibrant as cal
from calibrant.data import employment_path

data = cal.read(
    employment_path(),
    label="employed",
    score="predicted_probability",
    by=["sex", "race", "nativity", "age"],
)
curve = cal.diagnose.variable_curve(data, "age")

# %%
chart = curve.chart()
