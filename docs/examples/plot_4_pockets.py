"""
In which pocket that nobody named?
==================================

Every box of two traits is searched at once; the ranges hold for all of them together.
"""

import calibrant as cal
from calibrant.data import employment_path

data = cal.read(
    employment_path(),
    label="employed",
    score="predicted_probability",
    by=["sex", "race", "nativity", "age"],
)
found = cal.diagnose.pockets(data, limit=0.014)
print(found.to_frame().column_names)

# %%
# The map of two traits that the worst pocket is made of.
chart = cal.diagnose.pocket_map(data, "race", "nativity", pockets=found).chart()
