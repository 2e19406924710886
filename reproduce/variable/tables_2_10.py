"""Tables 2 and 10: errors over scores (ECE) and along age (VECE) of a network on Adult, before and after repair.

The authors trained a network with hidden layers of 100 and 75 on 32,561 rows of UCI Adult, recalibrated it on 2,500 and
tested it on 13,781. Here their predictions are read where they are at hand, and six networks of our own are trained
the same way on the public copy without missing values, its inputs as they are (age next to census weight: with
standardised inputs it would be 85 % accurate and well calibrated, not 79 % and almost certain of everything, as theirs
was). Every recalibration is fitted and measured twice: by the paper's procedure and by this library's defaults. Of the
authors' rows a deal at random for every 1,000 of the size tells how much hangs on the deal. --full: as quick, about
50 CPU seconds.
"""

from typing import Any

from reproduce.claim import Claim
from reproduce.experiment import DIFFERS, Experiment, Row
from reproduce.variable import charts, deals, models
from reproduce.variable.recalibrated import AUGMENTED, BETA, BINNED, NONE, PLATT, TREE, WAYS, compared, worded

PRINTED = {
    NONE: (20.67, 20.67),
    BINNED: (2.27, 9.25),
    PLATT: (4.57, 10.13),
    BETA: (1.65, 9.59),
    TREE: (1.64, 2.11),
    AUGMENTED: (1.49, 1.87),
}
AUTHORS, OWN = "the authors' predictions", "our networks"
NETWORKS = 6  # the fewest that can tell a share above one half
DEPTH = 3  # of the authors' program; their text says 2
IN_TEXT = "variable-based (tree of depth 2, as in the text)"
SCORES = (BINNED, PLATT, BETA)


def run(size: int, seed: int) -> list[Row]:
    """Measure the authors' predictions, if they are here, and those of networks of our own on `size` rows."""
    rows, own = list[Row](), models.adult(size, seed, NETWORKS)
    for name, rounds in {AUTHORS: models.authors(), OWN: own}.items():
        if rounds:
            rows += compared(name, rounds, "age", depth=DEPTH)
            text = compared(name, rounds, "age", depth=2, only=(TREE,))
            rows += [{**r, "method": IN_TEXT} for r in text if r["way"] == "as published"]
    rows += deals.trained(own, lambda r: held(compared(OWN, r, "age", depth=DEPTH)))
    return rows + deals.counted(
        lambda deal: models.authors(deal=deal),
        size // 1_000,
        seed,
        lambda r: held(compared(AUTHORS, r, "age", depth=DEPTH)),
    )


def values(rows: list[Row]) -> dict[tuple[str, str, str, str], float]:
    """Return the values by data, way, method and error."""
    return {(r["data"], r["way"], r["method"], r["error"]): r["value"] for r in deals.others(rows)}


def held(rows: list[Row]) -> dict[str, bool]:
    """What the paper says of these tables."""
    v, out = values(rows), dict[str, bool]()
    for data in dict.fromkeys(r["data"] for r in deals.others(rows)):
        for way in WAYS:
            ece, vece = ({m: v[data, way, m, e] for m in PRINTED} for e in ("ECE", "VECE"))
            found = {
                "Uncalibrated, ECE and VECE are the same to 0.1 points: the model is overconfident everywhere": abs(
                    ece[NONE] - vece[NONE]
                )
                < 0.1,
                "Every recalibration of the score alone at least halves the ECE": max(ece[m] for m in SCORES)
                < ece[NONE] / 2,
                "Of the maps of the score beta calibration has the lowest ECE": ece[BETA]
                < min(ece[BINNED], ece[PLATT]),
                "After each of them the error along age stays: VECE is still over twice the ECE": all(
                    vece[m] > 2 * ece[m] for m in SCORES
                ),
                "The tree of age lowers the VECE to less than half of that of any map of the score": 2 * vece[TREE]
                < min(vece[m] for m in SCORES),
                "The tree's ECE is the lowest of Table 2": ece[TREE] < min(ece[m] for m in (NONE, *SCORES)),
                "The augmented beta curve lowers the VECE to less than half of beta calibration's": 2 * vece[AUGMENTED]
                < vece[BETA],
                "It has the lowest ECE and the lowest VECE of Table 10": all(
                    e[AUGMENTED] < min(e[m] for m in (NONE, BETA, TREE)) for e in (ece, vece)
                ),
            }
            out |= {worded(claim, way, data): holds for claim, holds in found.items()}
    return out


def claims(rows: list[Row]) -> dict[str, Claim]:
    """What the paper says of these tables, and whether its numbers come out."""
    v, out = values(rows), {words: Claim(holds) for words, holds in held(rows).items()}
    if (AUTHORS, "as published", NONE, "ECE") in v:
        off = [
            abs(v[AUTHORS, "as published", m, e] - p)
            for m, both in PRINTED.items()
            for e, p in zip(("ECE", "VECE"), both, strict=True)
        ]
        out["The twelve printed numbers come out to 0.02 points"] = Claim(max(off) < 0.02, fixed=True)
        out["The tree of the paper's text, of depth 2, gives the printed VECE of 2.11 to 0.1 points"] = Claim(
            abs(v[AUTHORS, "as published", IN_TEXT, "VECE"] - 2.11) < 0.1, fixed=True
        )
    return deals.joined(out, rows)


def table(rows: list[Row]) -> list[Row]:
    """Printed values beside ours."""
    v, out = values(rows), []
    for data in dict.fromkeys(r["data"] for r in deals.others(rows)):
        for m in (*PRINTED, IN_TEXT):
            ours = {
                f"{e}, {way}": None if (data, way, m, e) not in v else round(v[data, way, m, e], 2)
                for e in ("ECE", "VECE")
                for way in ("as published", "default")
            }
            ece, vece = PRINTED.get(m, (None, None))
            out.append({"data": data, "recalibration": m, "ECE printed": ece, "VECE printed": vece, **ours})
    return out


def chart(rows: list[Row]) -> Any:
    """Printed and reproduced errors."""
    printed = [
        {"method": m, "error": e, "value": p, "kind": "printed"}
        for m, both in PRINTED.items()
        for e, p in zip(("ECE", "VECE"), both, strict=True)
    ]
    ours = [{**r, "kind": f"{r['data']}, {r['way']}"} for r in deals.others(rows) if r["method"] in PRINTED]
    return charts.dots(printed + ours, kinds="kind", height=190)


EXPERIMENT = Experiment(
    items=("Table 2", "Table 10"),
    title="ECE and VECE of a network on Adult, before and after recalibration",
    status=DIFFERS,
    difference=(
        "The printed numbers need choices that the text leaves out or contradicts, found in the authors' files: a "
        "tree of depth 3 rather than 2, right and wrong by the class before recalibration, and the ECE in bins of the"
        " score before recalibration, of which ties leave three on Adult; 'as published' follows them. 'Default' is "
        "this library's: the class follows from the probability shown, bins are of the score judged, the bias from "
        "noise is taken off, and the recipes are its own; so the ECE of beta calibration on the authors' predictions "
        "is about 3.5 %, not 1.65 % (on our own networks the two ways differ little). Platt scaling as published is "
        "scikit-learn's `LogisticRegression` of the score, and scaling-binning has log-odds that end at 1e-12. Our "
        "own networks, six with a deal of the rows each (means are shown), are trained on 30,148 rows of the public"
        " copy without missing values, for at most 20 passes, and keep the weights that are best on a tenth of them; "
        "the paper does not say how long, and from pass to pass the accuracy of such a network jumps. Keeping the "
        "best weights was chosen after other runs had been seen, as were inputs left as they are: both because "
        "accuracy and uncalibrated error then come near those printed."
    ),
    sizes={"tiny": 2_000, "quick": 45_222, "full": 45_222},
    run=run,
    claims=claims,
    sure=(
        f"Uncalibrated, ECE and VECE are the same to 0.1 points: the model is overconfident everywhere ({OWN}, as "
        f"published)",
    ),
    chart=chart,
    table=table,
)
