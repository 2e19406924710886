"""Figure 1: a network for heart disease that is calibrated by its score, and off by age.

The authors trained a network on 49,000 patients (Kaggle's cardiovascular data), recalibrated it by Platt scaling on
6,000 and tested it on 15,000: its ECE is 0.74 %, its VECE along age 2.04 %; it is underconfident for the young and
overconfident for the old. Here their predictions are read, dealt as theirs, and then at random as often as the size
says, to see how much hangs on the deal. Where they are not at hand 4,238 people of the Framingham study (coronary heart
disease within ten years) are cross-fitted: three fifths train, one calibrates and one is tested, in turn; the size is
then the number of networks, 50 at most, values are means over rounds of five, curves are of the first round. --full:
about 30 CPU seconds.
"""

from functools import partial
from typing import Any

import numpy as np

from reproduce.claim import Claim
from reproduce.experiment import REPRODUCED, Experiment, Row
from reproduce.variable import charts, data, deals, models
from reproduce.variable.curves import drawn
from reproduce.variable.recalibrated import BEYOND, NONE, PLATT, WAYS, errors, measured, recipes, worded

AUTHORS, FRAMINGHAM = "the authors' predictions", "Framingham, our networks"
PRINTED = {"ECE": 0.74, "VECE": 2.04}
YOUNG, OLD = 45, 58  # years; the paper says younger and older


def run(size: int, seed: int) -> list[Row]:
    """Measure and draw the authors' predictions, and count deals of them; or `size` networks of our own."""
    theirs = models.authors("cardio")
    if not theirs:
        return shown(FRAMINGHAM, models.cross_fitted(data.heart(), min(size, 50), 30, seed))
    return shown(AUTHORS, theirs) + deals.counted(
        partial(models.authors, "cardio"), size, seed, lambda r: held(shown(AUTHORS, r))
    )


def shown(name: str, rounds: list[list[models.Fold]]) -> list[Row]:
    """Measure and draw networks before and after Platt scaling."""
    rows: list[Row] = []
    for method in (NONE, PLATT):
        for way, recipe in zip(WAYS, recipes("age")[method], strict=True):
            after = [errors(recipe, folds, way) for folds in rounds]
            found = [measured(s, "age", way) for s in after]
            about = {"data": name, "method": method, "way": way}
            rows += [
                {**about, "kind": "error", "error": e, "value": float(np.mean([f[e] for f in found]))} for e in PRINTED
            ]
            if method == PLATT or way == WAYS[0]:  # uncalibrated both ways draw the same
                rows += drawn(after[0], "age", about)
    return rows


def values(rows: list[Row]) -> dict[tuple[str, str, str], float]:
    """Return the values by method, way and error."""
    return {(r["method"], r["way"], r["error"]): r["value"] for r in rows if r["kind"] == "error"}


def held(rows: list[Row]) -> dict[str, bool]:
    """What the paper says of this figure."""
    v, out = values(rows), dict[str, bool]()
    for way in WAYS:
        curve = [r for r in rows if r["kind"] == "variable" and (r["method"], r["way"]) == (PLATT, way)]
        age, gap = np.array([r["x"] for r in curve]), np.array([r["observed"] - r["predicted"] for r in curve])
        found = {
            "After Platt scaling the ECE is below one percent": v[PLATT, way, "ECE"] < 1,
            "The VECE of age is more than twice the ECE": v[PLATT, way, "VECE"] > 2 * v[PLATT, way, "ECE"],
            f"The network is underconfident for the younger, at every age below {YOUNG}": bool(
                (gap[age < YOUNG] < 0).all()
            ),
            "At some of these ages it is so by upwards of five points": bool((gap[age < YOUNG] < -0.05).any()),
            f"It is overconfident for the older, at every age above {OLD}": bool((gap[age > OLD] > 0).all()),
        }
        out |= {worded(claim, way): holds for claim, holds in found.items()}
        out[f"{BEYOND}The error along age is not noise: p at most 0.01 ({way})"] = curve[0]["p_value"] <= 0.01
    return out


def claims(rows: list[Row]) -> dict[str, Claim]:
    """What the paper says of this figure, and whether its numbers come out."""
    v, one = values(rows), {words: Claim(holds) for words, holds in held(rows).items()}
    if rows[0]["data"] == AUTHORS:
        off = max(abs(v[PLATT, WAYS[0], e] - printed) for e, printed in PRINTED.items())
        one["Both printed numbers come out to 0.01 points"] = Claim(off < 0.01, fixed=True)
    return deals.joined(one, rows)


def table(rows: list[Row]) -> list[Row]:
    """Printed values beside ours."""
    v, name = values(rows), rows[0]["data"]
    return [
        {
            "recalibration": m,
            "error": e,
            "printed": PRINTED[e] if m == PLATT else None,
            **{f"{name}, {w}": round(v[m, w, e], 2) for w in WAYS},
        }
        for m in (NONE, PLATT)
        for e in PRINTED
    ]


def chart(rows: list[Row]) -> Any:
    """Reliability diagrams above, errors along age below."""
    drawn_ = [r for r in deals.others(rows) if r["kind"] != "error" and r["way"] == WAYS[0]]
    return charts.panels(drawn_, "age")


EXPERIMENT = Experiment(
    items=("Figure 1",),
    title="Calibrated by the score, off by age",
    status=REPRODUCED,
    difference=(
        "The authors' predictions, dealt and recalibrated as in their program: people older than 32, Platt scaling as "
        "scikit-learn's `LogisticRegression` of the score, right and wrong by the class before recalibration. The "
        "paper says 'younger' and 'older' without ages; below 45 and above 58 are ours. Where the file of predictions "
        "is absent 4,238 people of the Framingham study stand in, of whom 15 % fell ill rather than half, with "
        "networks of our own (hidden layers of 100 and 75, standardised inputs)."
    ),
    sizes={"tiny": 1, "quick": 40, "full": 100},
    run=run,
    claims=claims,
    chart=chart,
    table=table,
)
