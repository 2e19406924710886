"""
Which variables does the error follow?
======================================

Age, sex, race, where somebody was born: which of the columns tells best where the model is wrong?
"""

import calibrant as cal
from calibrant.data import employment_path

data = cal.read(
    employment_path(),
    label="employed",
    score="predicted_probability",
    by=["sex", "race", "nativity", "age"],
)
ranking = cal.diagnose.rank_variables(data)

# %%
chart = ranking.chart()

# %%
# **How to read it.** A bar is how far the model is off along a column, beyond being off for everybody alike.
# Along age it is 0.7 points. The line is the certified range; all lines hold together. Along sex no error is
# shown, and at most 0.5 points can be there.
