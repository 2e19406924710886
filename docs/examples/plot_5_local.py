"""
Local calibration: age among equal scores
=========================================

Two people have a score of 30%; one is 20, one is 60. Is 30% correct for both?
"""

import numpy as np

import calibrant as cal
from calibrant.data import employment_path

data = cal.read(
    employment_path(),
    label="employed",
    score="predicted_probability",
    by=["sex", "race", "nativity", "age"],
)
rows = np.random.default_rng(0).choice(data.n, 40_000, replace=False)
sample = cal.predictions(
    data.y[rows], data.p[rows], {name: np.asarray(data.covariates[name])[rows] for name in ("age", "sex")}
)
bias = cal.diagnose.local_bias(sample, "age")

# %%
chart = bias.chart()

# %%
# **How to read it.** At each age: observed minus predicted among people with the same score. Between 28 and 43 the
# model underpredicts by some 2 points, which is shown where the line is orange. The band is wide elsewhere because
# 40,000 people do not say more.
