"""
Which covariates the error varies with
======================================

Covariates ranked by the size of error along them, with guaranteed ranges.
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
# **How to read it.** A bar is the error by a covariate, beyond the overall gap. By age it is 0.7 points. The line is
# the guaranteed range; all ranges hold simultaneously. By sex no error is shown, and it is at most 0.5 points.
