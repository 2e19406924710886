"""
Is 30% thirty in a hundred?
============================

Of all people who were told 30%, how many had the event? One curve for every probability that the model says.
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
# **How to read it.** Zero is right. At 40% the curve is at +2 points: of a hundred people who were told 40%,
# 42 are employed. Where it is orange, the whole band is off zero: the model is shown to say too little there.
# Elsewhere nothing is shown. Below it, how many people have each score.
