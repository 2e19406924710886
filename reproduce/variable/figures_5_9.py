"""Figures 5 and 9: a network for ten classes, its reliability diagram and its errors along the difficulty of an image.

The paper smooths the error and the error that a DenseNet predicts of itself along the median time that people took to
name an image of CIFAR-10H. Here their predictions are read (see table_5), or digits and their ambiguity stand in; one
local quadratic regression gives both curves, with a band that holds everywhere together, for one network uncalibrated,
after Dirichlet calibration and after the tree of the variable, as published, and after this library's tree. The size is
the number of random deals in which claims are counted besides, or of the deal of digits that is drawn. --full: about
50 CPU seconds.
"""

from functools import partial
from typing import Any

import numpy as np

from reproduce.claim import Claim
from reproduce.experiment import REPRODUCED, Experiment, Row
from reproduce.variable import charts, deals, images, models
from reproduce.variable.curves import drawn
from reproduce.variable.images import AMBIGUITY, CIFAR, DIGITS, DIRICHLET, NONE, TIME, TREE, shown, variable_of
from reproduce.variable.recalibrated import BEYOND

OURS = "variable-based (tree, default)"
METHODS = (NONE, DIRICHLET, TREE, OURS)
SPAN = {TIME: 0.9, AMBIGUITY: 0.85}  # share of the rows that a point of a curve looks at: theirs, and the library's
RISES = f"{BEYOND}The error rises with the difficulty of the image"
AT = {CIFAR: (1_300, 1_500, 1_900), DIGITS: (0.8, 0.85, 0.9)}


def run(size: int, seed: int) -> list[Row]:
    """Draw the authors' predictions, and count deals of them; or draw one deal of digits."""
    theirs = images.authors() if size > 1 else []
    if not theirs:
        return curves(DIGITS, models.digits(seed + size - 1))
    return curves(CIFAR, theirs[0]) + deals.counted(images.authors, size, seed, lambda f: held(curves(CIFAR, f[0])))


def curves(name: str, f: models.Fold) -> list[Row]:
    """Draw a network, uncalibrated and recalibrated; half of the images have at most the value "half"."""
    variable = variable_of(f)
    half = float(np.median(f.test.covariates.column(variable).to_numpy()))
    views = {m: shown(m, f, "as published") for m in METHODS[:3]} | {OURS: shown(TREE, f, "default")}
    return [
        r
        for m, v in views.items()
        for r in drawn(v, variable, {"data": name, "method": m, "half": half}, SPAN[variable])
    ]


def by_variable(rows: list[Row], method: str) -> dict[str, Any]:
    """Return values of the variable, errors and predicted errors."""
    found = [r for r in rows if r["kind"] == "variable" and r["method"] == method]
    return {k: np.array([r[k] for r in found]) for k in ("x", "observed", "predicted", "worst", "p_value", "half")}


def easier(c: dict[str, Any]) -> Any:
    """Return where the easier half of the images lies, or of the curve where none is drawn for them."""
    found = c["x"] < c["half"]
    return found if found.any() else c["x"] < np.median(c["x"])


def under(c: dict[str, Any]) -> float:
    """Return by how much the network errs less than it says, on average along the easier half of the images."""
    return float(np.maximum(c["predicted"] - c["observed"], 0.0)[easier(c)].mean())


def held(rows: list[Row]) -> dict[str, bool]:
    """What the paper says of these figures."""
    none, dirichlet, tree, ours = (by_variable(rows, m) for m in METHODS)
    worst = [float(abs(c["worst"][0])) for c in (dirichlet, tree, ours)]
    beyond = f"{BEYOND}The tree {{}} has a smaller worst gap than Dirichlet calibration"
    return {
        RISES: bool(none["observed"][-1] > none["observed"][0] + 0.05),
        "After Dirichlet calibration the network is underconfident for easy images": bool(
            (dirichlet["observed"] < dirichlet["predicted"])[easier(dirichlet)].all()
        ),
        "The tree as published reduces this underconfidence for easy images": under(tree) < under(dirichlet),
        beyond.format("as published"): worst[1] < worst[0],
        beyond.format("of this library"): worst[2] < worst[0],
    }


def claims(rows: list[Row]) -> dict[str, Claim]:
    """The same of the authors' deal, and of others."""
    return deals.joined({c: Claim(holds) for c, holds in held(rows).items()}, rows)


def table(rows: list[Row]) -> list[Row]:
    """Errors at three values of the variable; the paper prints no numbers of these figures."""
    name, variable = rows[0]["data"], TIME if rows[0]["data"] == CIFAR else AMBIGUITY
    out = []
    for m in METHODS:
        c = by_variable(rows, m)
        seen, stated = (partial(np.interp, xp=c["x"], fp=100 * np.asarray(c[k])) for k in ("observed", "predicted"))
        at = {f"error / predicted, %, at {a}": f"{seen(a):.1f} / {stated(a):.1f}" for a in AT[name]}
        out.append(
            {
                "recalibration": m,
                **at,
                "worst gap, points": round(100 * abs(c["worst"][0]), 1),
                f"p, along {variable}": round(c["p_value"][0], 3),
            }
        )
    return out


def chart(rows: list[Row]) -> Any:
    """Reliability diagrams above, errors along the variable below."""
    return charts.panels(deals.others(rows), TIME if rows[0]["data"] == CIFAR else AMBIGUITY)


EXPERIMENT = Experiment(
    items=("Figure 5", "Figure 9"),
    title="Errors along the difficulty of an image",
    status=REPRODUCED,
    difference=(
        "The figures print no numbers; their shape is compared, on the authors' predictions, dealt and recalibrated as "
        "in their program (see Table 5), with its span of 0.9. Reaction times are in thousandths of a second, where "
        "their axes say seconds. The text says that the tree reduces underconfidence for easy images, and not whose: "
        "uncalibrated the network is overconfident for them, after Dirichlet calibration underconfident. Easy is the "
        "easier half. Bands hold at all values together, where the paper has one for each. Where the file of "
        "predictions is absent digits and their ambiguity stand in, a number from 0 (clear) to 1 (as near to two "
        "classes) that knows nothing of the network."
    ),
    sizes={"tiny": 1, "quick": 4, "full": 10},
    run=run,
    claims=claims,
    sure=(RISES,),
    chart=chart,
    table=table,
)
