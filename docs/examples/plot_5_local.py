"""
Among people of one score, does age still matter?
=================================================

Two people are told 30%, one is 20 and one is 60. Is it as true for the one as for the other?
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
# **How to read it.** At each age: what happened minus what the model says, among people who were told the same.
# Between 28 and 43 it says some 2 points too little, and that is shown where the line is orange. That the band
# reaches far from zero elsewhere is no error: 40,000 people do not tell more.
