"""
At which age is it off?
=======================

The model can be right on the whole, and wrong for one age: some overpredicted, others underpredicted.
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
# **How to read it.** Above: what happened and what the model says, at each age. Below: the difference, on a
# scale on which it can be seen. At 39 the model says 2 points too little. The band holds at all ages at once,
# so that looking for the worst age is allowed.
