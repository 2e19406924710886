"""
Which variables does the error follow?
======================================

Every covariate, ranked by the error along it, with certified ranges.
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
