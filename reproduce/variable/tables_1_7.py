"""Tables 1 and 7: the variables of Adult by their error (VECE), and what recalibration along age does to the others.

Table 1 ranks variables of the beta-calibrated network by VECE, beside the worst error along each: the largest distance
of two local quadratic (LOESS) curves, span 0.9. Table 7 has the VECE of six variables uncalibrated, after beta
calibration, and after the tree of age. The authors' predictions are read where they are at hand, and six networks of
our own are trained the same way (see tables_2_10). Of the authors' rows a deal at random for every 1,000 of the size
tells how much hangs on the deal. --full: as quick, about 80 CPU seconds.
"""

from typing import Any

import calibrant as cal
from reproduce.claim import Claim
from reproduce.experiment import DIFFERS, Experiment, Row
from reproduce.variable import charts, deals, models
from reproduce.variable.data import NUMBERS
from reproduce.variable.recalibrated import BETA, NONE, TREE, WAYS, by_variable, errors, recipes, worded

PRINTED: dict[str, Any] = {  # VECE uncalibrated, beta-calibrated, after the tree of age; worst error
    "education-num": (20.67, 9.95, 8.53, 20.13),
    "age": (20.67, 9.59, 2.11, 23.44),
    "hours-per-week": (20.67, 7.94, 6.02, 18.21),
    "fnlwgt": (20.67, 5.06, 4.10, 12.08),
    "capital-gain": (20.67, 1.50, 1.39, None),
    "capital-loss": (20.67, 1.50, 1.39, None),
}
AUTHORS, OWN, DEPTH, NETWORKS = "the authors' predictions", "our networks", 3, 6
RANKED = NUMBERS[:4]
WORST = "worst error"


def run(size: int, seed: int) -> list[Row]:
    """Measure the authors' predictions and those of networks of our own, and count deals of the authors'."""
    own = models.adult(size, seed, NETWORKS)
    measured = measures(AUTHORS, models.authors()) + measures(OWN, own)
    measured += deals.trained(own, lambda rounds: held(by_variable(OWN, rounds, "age", NUMBERS, BETA, depth=DEPTH)))
    return measured + deals.counted(
        lambda deal: models.authors(deal=deal),
        size // 1_000,
        seed,
        lambda rounds: held(by_variable(AUTHORS, rounds, "age", NUMBERS, BETA, depth=DEPTH)),
    )


def measures(name: str, rounds: list[list[models.Fold]]) -> list[Row]:
    """Measure the errors along each variable."""
    rows = by_variable(name, rounds, "age", NUMBERS, BETA, depth=DEPTH)
    for way, recipe in zip(WAYS, recipes("age", DEPTH)[BETA], strict=True):
        shown = [errors(recipe, folds, way) for folds in rounds]
        rows += [
            {"data": name, "method": BETA, "way": way, "error": WORST, "variable": v, "value": worst(shown, v)}
            for v in RANKED
            if shown
        ]
    return rows


def worst(shown: list[Any], variable: str) -> float:
    """Return the mean over networks of the worst error along a variable, in percent."""
    found = [cal.diagnose.variable_curve(s, variable, span=0.9, draws=99).settings["worst_gap"] for s in shown]
    return 100 * float(sum(abs(f) for f in found)) / len(found)


def values(rows: list[Row]) -> dict[tuple[str, str, str, str, str], float]:
    """Return the values by data, way, method, error and variable."""
    return {(r["data"], r["way"], r["method"], r["error"], r["variable"]): r["value"] for r in deals.others(rows)}


def held(rows: list[Row]) -> dict[str, bool]:
    """What the paper says of these tables."""
    v, out = values(rows), dict[str, bool]()
    for data in dict.fromkeys(r["data"] for r in deals.others(rows)):
        for way in WAYS:
            none, beta, tree = ({x: v[data, way, m, "VECE", x] for x in NUMBERS} for m in (NONE, BETA, TREE))
            found = {
                "Uncalibrated, the VECE is the same along all six variables, to half a point": max(none.values())
                - min(none.values())
                < 0.5,
                "After beta calibration years of education have the largest VECE, age the second": beta["education-num"]
                > beta["age"]
                > max(beta[x] for x in NUMBERS[2:]),
                "Recalibration along age more than halves the VECE of age": 2 * tree["age"] < beta["age"],
                "It lowers that of all six variables": all(tree[x] < beta[x] for x in NUMBERS),
            }
            out |= {worded(claim, way, data): holds for claim, holds in found.items()}
    return out


def claims(rows: list[Row]) -> dict[str, Claim]:
    """What the paper says of these tables, and whether its numbers come out."""
    v, out = values(rows), {words: Claim(holds) for words, holds in held(rows).items()}
    if (AUTHORS, "as published", NONE, "VECE", "age") in v:
        off = [
            abs(v[AUTHORS, "as published", m, "VECE", x] - p[i])
            for x, p in PRINTED.items()
            for i, m in enumerate((NONE, BETA, TREE))
        ]
        out["The eighteen printed errors come out to 0.01 points, rounding apart"] = Claim(max(off) < 0.015, fixed=True)
        misses = [abs(v[AUTHORS, "as published", BETA, WORST, x] - PRINTED[x][3]) for x in RANKED]
        out["The printed worst errors come out to 0.5 points"] = Claim(max(misses) < 0.5, fixed=True)
    return deals.joined(out, rows)


def table(rows: list[Row]) -> list[Row]:
    """Printed values beside ours."""
    v, out = values(rows), []
    asked = [
        (NONE, "VECE", 0, NUMBERS),
        (BETA, "VECE", 1, NUMBERS),
        (TREE, "VECE", 2, NUMBERS),
        (BETA, WORST, 3, RANKED),
    ]
    for method, error, place, variables in asked:
        for x in variables:
            ours = {
                f"{d}, {w}": round(v[d, w, method, error, x], 2)
                for d in (AUTHORS, OWN)
                for w in WAYS
                if (d, w, method, error, x) in v
            }
            out.append({"error": f"{error}, {method}", "variable": x, "printed": PRINTED[x][place], **ours})
    return out


def chart(rows: list[Row]) -> Any:
    """The errors along six variables after beta calibration and after the tree of age."""
    printed = [
        {"variable": x, "method": m, "value": p[i], "kind": "printed"}
        for i, m in ((1, BETA), (2, TREE))
        for x, p in PRINTED.items()
    ]
    shown = [r for r in deals.others(rows) if r["error"] == "VECE" and r["method"] != NONE]
    ours = [{**r, "kind": f"{r['data']}, {r['way']}"} for r in shown]
    return charts.dots(printed + ours, kinds="kind", facet="method", across="variable")


EXPERIMENT = Experiment(
    items=("Table 1", "Table 7"),
    title="Variables of Adult by their error, before and after recalibration along age",
    status=DIFFERS,
    difference=(
        "The printed numbers need a tree of depth 3, not the 2 of the text, and right and wrong by the class before "
        "recalibration; 'as published' follows them, 'default' is this library's procedure. Nearly all values of "
        "capital-gain and capital-loss are zero: published bins then hold everyone in one, and what is left is the "
        "overall shift; by default the zeros are a bin and the others have theirs. The worst errors differ from print "
        "by up to 1.2 points because the local regression here is exact, where the published one interpolates. Our own "
        "networks, six with a deal of the rows each (means are shown), are trained on 30,148 rows of the public copy "
        "without missing values; which variables lead is a property of the network. Their inputs left as they are and "
        "the best weights kept were chosen after other runs had been seen (see Tables 2 and 10)."
    ),
    sizes={"tiny": 2_000, "quick": 45_222, "full": 45_222},
    run=run,
    claims=claims,
    sure=(f"Uncalibrated, the VECE is the same along all six variables, to half a point ({OWN}, as published)",),
    chart=chart,
    table=table,
)
