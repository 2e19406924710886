"""Figures 5 and 9: a network for ten classes, its reliability diagram and its errors along the difficulty of an image.

The paper smooths the error and the error that a DenseNet predicts of itself along the median time that people took to
name an image of CIFAR-10H. Here digits and their ambiguity stand in (see table_5); one local quadratic regression gives
both curves, with a band that holds everywhere together, for one network uncalibrated, after Dirichlet calibration and
after the tree of ambiguity, as published, and after this library's tree of ambiguity, which repairs the confidence of
the top label. The size is the number of the deal that is drawn. --full: as quick, about 5 CPU seconds.
"""

from functools import partial
from typing import Any

import numpy as np

from reproduce.experiment import SUBSTITUTE, Experiment, Row
from reproduce.variable import charts, models
from reproduce.variable.curves import drawn
from reproduce.variable.images import DIRICHLET, NONE, TREE, VARIABLE, shown

OURS = "variable-based (tree, default)"
METHODS = (NONE, DIRICHLET, TREE, OURS)


def run(size: int, seed: int) -> list[Row]:
    """Draw the network of the first deal."""
    f = models.digits(seed + size - 1)
    views = {m: shown(m, f, "as published") for m in METHODS[:3]} | {OURS: shown(TREE, f, "default")}
    return [r for m, view in views.items() for r in drawn(view, VARIABLE, {"data": "digits", "method": m})]


def along(rows: list[Row], method: str) -> dict[str, Any]:
    """Return ambiguities, errors and predicted errors."""
    found = [r for r in rows if r["method"] == method and r["kind"] == "variable"]
    return {k: np.array([r[k] for r in found]) for k in ("x", "observed", "predicted", "worst", "p_value")}


def under(c: dict[str, Any]) -> float:
    """Return by how much the network errs less than it says, on average over the easier half."""
    easy = c["x"] < np.median(c["x"])
    return float(np.maximum(c["predicted"] - c["observed"], 0.0)[easy].mean())


def claims(rows: list[Row]) -> dict[str, bool]:
    """What the paper says of these figures."""
    none, dirichlet, tree, ours = (along(rows, m) for m in METHODS)
    easy = none["x"] < np.median(none["x"])
    worst = [float(abs(c["worst"][0])) for c in (dirichlet, tree, ours)]
    beyond = "beyond the paper: The tree of ambiguity {} has a smaller worst gap than Dirichlet calibration"
    return {
        "beyond the paper: The error rises with the difficulty of the image": bool(
            none["observed"][-1] > none["observed"][0] + 0.05
        ),
        "Uncalibrated, the network is underconfident for easy images": bool(
            (none["observed"] < none["predicted"])[easy].all()
        ),
        "The tree of ambiguity as published reduces the underconfidence for easy images": under(tree) < under(none),
        beyond.format("as published"): worst[1] < worst[0],
        beyond.format("of this library"): worst[2] < worst[0],
    }


def table(rows: list[Row]) -> list[Row]:
    """Errors at four ambiguities; the paper prints no numbers of these figures."""
    out = []
    for m in METHODS:
        c = along(rows, m)
        seen, said = (partial(np.interp, xp=c["x"], fp=100 * np.asarray(c[k])) for k in ("observed", "predicted"))
        at = {f"error / predicted, %, at {a}": f"{seen(a):.1f} / {said(a):.1f}" for a in (0.8, 0.85, 0.9)}
        out.append(
            {
                "recalibration": m,
                **at,
                "worst gap, points": round(100 * abs(c["worst"][0]), 1),
                "p, along ambiguity": round(c["p_value"][0], 3),
            }
        )
    return out


def chart(rows: list[Row]) -> Any:
    """Reliability diagrams above, errors along ambiguity below."""
    return charts.panels(rows, VARIABLE)


EXPERIMENT = Experiment(
    items=("Figure 5", "Figure 9"),
    title="Errors along the difficulty of an image",
    status=SUBSTITUTE,
    difference=(
        "Digits and their ambiguity, a number from 0 (clear) to 1 (as near to two classes) that knows nothing of the "
        "network, stand in for CIFAR-10H and reaction times. Digits are so clear that errors are few below an "
        "ambiguity of 0.6, and no curve is drawn there. The figures print no numbers; their shape is compared. Bands "
        "hold at all values together, where the paper has one for each. The digits are split as in Table 5, which was "
        "chosen after the paper's shares had been seen."
    ),
    sizes={"tiny": 1, "quick": 1, "full": 1},
    run=run,
    claims=claims,
    sure=("beyond the paper: The error rises with the difficulty of the image",),
    chart=chart,
    table=table,
)
