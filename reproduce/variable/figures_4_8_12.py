"""Figures 4, 8 and 12: a network on Bank Marketing, its reliability diagram and its errors along age.

The paper smooths the error and the error that the model predicts of itself (one minus its confidence) along the
customer's age by LOESS. Here the authors' predictions are read, dealt as theirs, and then at random as often as the
size says, to see how much hangs on the deal; one local quadratic regression gives both curves and a band that holds at
all ages together. All are recalibrated as published, by Platt scaling, scaling-binning, the tree of age and the
augmented beta curve. Where the predictions are not at hand the official tenth of the data is cross-fitted by five
networks (see tables_4_9_12). --full: about 10 CPU seconds.
"""

from functools import partial
from typing import Any

import numpy as np

from reproduce.claim import Claim
from reproduce.experiment import REPRODUCED, Experiment, Row
from reproduce.variable import charts, data, deals, models
from reproduce.variable.curves import curves
from reproduce.variable.recalibrated import AUGMENTED, BINNED, NONE, PLATT, TREE

AUTHORS, TENTH = "the authors' predictions", "a tenth of the rows, our networks"
METHODS = (NONE, PLATT, BINNED, TREE, AUGMENTED)


def run(size: int, seed: int) -> list[Row]:
    """Draw the authors' predictions, and count deals of them; or at most five networks of our own."""
    theirs = models.authors("bank")
    if not theirs:
        return drawn(TENTH, models.cross_fitted(data.bank(), min(size, 5), 30, seed))
    return drawn(AUTHORS, theirs) + deals.counted(
        partial(models.authors, "bank"), size, seed, lambda r: held(drawn(AUTHORS, r))
    )


def drawn(name: str, rounds: list[list[models.Fold]]) -> list[Row]:
    """Draw the networks of the first round."""
    return curves(name, rounds[0], "age", METHODS, leaf=0.05)


def along_age(rows: list[Row], method: str) -> dict[str, Any]:
    """Return ages, errors and predicted errors."""
    found = [r for r in rows if r["kind"] == "variable" and r["method"] == method]
    return {k: np.array([r[k] for r in found]) for k in ("x", "observed", "predicted", "worst", "p_value")}


def held(rows: list[Row]) -> dict[str, bool]:
    """What the paper says of these figures."""
    none, platt, _, tree, more = (along_age(rows, m) for m in METHODS)
    gap = platt["observed"] - platt["predicted"]
    after = np.interp(none["x"], platt["x"], platt["predicted"])
    return {
        "Uncalibrated, the model is overconfident at every age": bool((none["observed"] > none["predicted"]).all()),
        "Platt scaling raises the predicted error at every age": bool((after > none["predicted"]).all()),
        "After it the model is underconfident for most ages": bool((gap < 0).mean() > 0.5),
        "After it the model is overconfident at both ends": bool(gap[0] > 0 and gap[-1] > 0),
        "The tree of age lowers the worst gap along age": abs(tree["worst"][0]) < abs(platt["worst"][0]),
        "The augmented beta curve lowers it too": abs(more["worst"][0]) < abs(platt["worst"][0]),
    }


def claims(rows: list[Row]) -> dict[str, Claim]:
    """The same of the authors' deal, and of others."""
    return deals.joined({words: Claim(holds) for words, holds in held(rows).items()}, rows)


def table(rows: list[Row]) -> list[Row]:
    """Errors at five ages; the paper prints no numbers of these figures."""
    out = []
    for m in METHODS:
        c = along_age(rows, m)
        seen, stated = (partial(np.interp, xp=c["x"], fp=100 * np.asarray(c[k])) for k in ("observed", "predicted"))
        at = {f"error / predicted, %, age {a}": f"{seen(a):.1f} / {stated(a):.1f}" for a in (25, 35, 45, 55, 65)}
        out.append(
            {
                "recalibration": m,
                **at,
                "worst gap, points": round(100 * abs(c["worst"][0]), 1),
                "p, along age": round(c["p_value"][0], 3),
            }
        )
    return out


def chart(rows: list[Row]) -> Any:
    """Reliability diagrams above, errors along age below."""
    return charts.panels(deals.others(rows), "age")


EXPERIMENT = Experiment(
    items=("Figure 4", "Figure 8", "Figure 12"),
    title="Errors along age of a network on Bank Marketing",
    status=REPRODUCED,
    difference=(
        "The figures print no numbers; their shape is compared, on the authors' predictions, dealt and recalibrated as "
        "in their program (see Tables 4, 9 and 12). Bands hold at all ages together, where the paper has one for each "
        "age. Figure 8 shows scaling-binning where its text says Platt scaling; both are drawn. Where the file of "
        "predictions is absent the official tenth of the data stands in, cross-fitted by five networks of our own."
    ),
    sizes={"tiny": 1, "quick": 40, "full": 100},
    run=run,
    claims=claims,
    chart=chart,
    table=table,
)
