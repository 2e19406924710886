"""
Unlisted subgroups
==================

The worst subgroup of two attributes that nobody named, found by a search over all of them.
"""

import calibrant as cal
from calibrant.data import employment_path

data = cal.read(
    employment_path(),
    label="employed",
    score="predicted_probability",
    by=["sex", "race", "nativity", "age"],
)
found = cal.diagnose.subgroups(data, limit=0.014)
for subgroup in found.to_arrow().to_pylist()[:3]:
    low, high = 100 * subgroup["low"], 100 * subgroup["high"]
    print(f"{subgroup['rule']}: off by {low:+.1f} to {high:+.1f} points")

# %%
# All subgroups of one or two columns are searched, and the ranges hold for all of them
# simultaneously. The map of the two columns of the worst one:
chart = cal.diagnose.subgroup_map(data, "race", "nativity", subgroups=found).chart()

# %%
# **How to read it.** A cell is observed minus predicted, in points. By either column the error is small. Where
# foreign birth and race meet, it is 5 to 6 points. The outlined cells are the subgroup that is certified over the
# limit of 1.4.
