"""
Is 30 % thirty in a hundred?
============================

What happened against what was said, without bins that somebody chose, and a band for the whole curve.
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
