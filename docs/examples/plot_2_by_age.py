"""
Calibration error by age
========================

A model can be calibrated overall and still underpredict at one age and overpredict at another.
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

# %%
# **How to read it.** Above: observed and predicted rate at each age. Below: the gap, on a larger scale. At 39 the
# model underpredicts by 2 points. The band is simultaneous, so looking for the worst age is allowed.
