"""
Comparing two models by group
=============================

A model that is better overall can be worse for somebody. Differences for everyone and every region.
"""

import altair as alt
import numpy as np

import calibrant as cal

rng = np.random.default_rng(0)
truth = rng.beta(2, 4, 12_000)
region = rng.choice(["east", "north", "south", "west"], 12_000)
old = np.clip(truth + rng.normal(0.0, 0.12, 12_000), 0.01, 0.99)
new = np.clip(truth + np.where(region == "west", 0.12, 0.03), 0.01, 0.99)
y = rng.uniform(size=12_000) < truth
found = cal.compare({"old": old, "new": new}, y, {"region": region}, by="region", margin=0.01)
for line in found.to_arrow().to_pylist():
    print(line["population"], round(line["difference"], 4), line["verdict"])

# %%
# The table of the result draws with any library; here with Altair.
base = alt.Chart(alt.Data(values=found.to_arrow().to_pylist())).encode(
    y=alt.Y("population:N", title=None, sort=None),
    color=alt.Color("verdict:N", title="Verdict", scale=alt.Scale(range=["#0b6a88", "#6b5f57"])),
)
ranges = base.mark_rule(strokeWidth=4).encode(
    x=alt.X("low:Q", title="Brier score of the new model less that of the old, certified"), x2="high:Q"
)
points = base.mark_point(filled=True, size=90).encode(x="difference:Q")
zero = alt.Chart(alt.Data(values=[{"x": 0}])).mark_rule(strokeDash=[4, 4]).encode(x="x:Q")
chart = (ranges + points + zero).properties(width=480, height=260)

# %%
# **How to read it.** Left of the dashed line the new model is better: for everyone together and in three regions. In
# the west its scores are too high; there its range reaches right of zero, but not beyond the margin of 0.01: no
# worse.
