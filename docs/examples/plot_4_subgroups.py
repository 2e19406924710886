"""
In which subgroup that nobody named?
====================================

A group that stands on no list, made of two attributes, for which the model is wrong. All of them are searched.
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
# All groups that one or two columns can make are searched at once, and the ranges hold for all of them
# together. The map of the two columns that the worst is made of:
chart = cal.diagnose.subgroup_map(data, "race", "nativity", subgroups=found).chart()

# %%
# **How to read it.** A cell is what happened minus what the model says, in points. Along either column the
# error is small; where foreign birth and race meet it is 5 to 6 points. The outlined cells are the subgroup that
# is certified to be over the limit of 1.4.
