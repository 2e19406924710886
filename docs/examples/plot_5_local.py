"""
Among people of one score, does age still matter?
=================================================

The bias that is left at each age among people who got the same score, from a sample of rows.
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
rows = np.random.default_rng(0).choice(data.n, 3_000, replace=False)
sample = cal.predictions(
    data.y[rows], data.p[rows], {name: np.asarray(data.covariates[name])[rows] for name in ("age", "sex")}
)
bias = cal.diagnose.local_bias(sample, "age")

# %%
chart = bias.chart()
