"""Figure 2 of the strong calibration paper: power of the test beside all comparators, and which variables matter.

The paper audits a logistic regression that is wrong in a corner of the covariates, and a forest that is slow to learn,
on
400 to 1,600 rows with tolerances of 2.5, 5 and 7.5 points, two-sided at level 0.10 (100 replicates), and shuffles
variables.

Here: ten covariates, uniform on [-5, 5]; logit of the event rate ``0.8 x0 + 0.4 x1 + 0.2 x2``, but ``0.2 x1 + 0.2 x2``
where ``x0 < -2`` and ``x1 > 2``, as in the authors' program. Audited: a logistic regression fitted on 10,000 rows, and
a forest fitted on 2,000, tuned and calibrated by Platt's method as there. The same data sets, residual models and folds
serve all tests; "authors" has the paper's models and weights. --quick leaves these and 400 rows out. --full: about 120
CPU minutes.
"""

from collections import Counter
from functools import partial
from itertools import product
from statistics import mean
from typing import Any

import numpy as np

import calibrant as cal
from reproduce import claim
from reproduce.claim import Claim
from reproduce.experiment import DIFFERS, Experiment, Row
from reproduce.strong.levels import levels
from reproduce.strong.nine_tests import (
    ALONG_SCORE,
    STRONG,
    TESTS,
    averaged,
    importance_bars,
    power_lines,
    shares,
    stacked,
)
from reproduce.strong.simulation import AUDITED, audited, rate

TOLERANCES = (0.025, 0.05, 0.075)
FULL, LITTLE = 100, 0.1
ALONG = "logistic audited: tests along the score alone find next to nothing (under 10 % at tolerance 0.025)"
# In print: shares beyond the tolerances, and the most important variables, numbered from 1 (x1 is our x0).
PRINTED = {"logistic": ("0.6 / 0.5 / 0.3", "score, x1, x2"), "forest": ("0.8 / 0.5 / 0.3", "x1, x2, score, x3")}
PROGRAM = "published (program, run elsewhere): 400; 800; 1,600 rows"  # not in the paper
RUN = {
    **dict.fromkeys(ALONG_SCORE[:2], "0; 0; 0"),
    "adaptive chi-square, 10 groups": ".25/.17/.10; .58/.36/.23; .97/.88/.76",
    "adaptive score": ".32/.17/.12; .66/.42/.27; .99/.92/.87",
    "strong, authors": ".34/.24/.17; .71/.54/.44; .99/.96/.90",
    "strong, default": ".49/.34/.22; .84/.66/.52; 1/.97/.92",
}


def run(size: int, seed: int) -> list[Row]:
    """Shares of replicates in which each test finds the error, then what the strong test's statistic hangs on."""
    kinds, rows = (list(AUDITED), (800, 1600)) if size > 1 else (["logistic"], (200,))
    rows = (400, *rows) if size >= FULL else rows
    tests = {k: v for k, v in TESTS.items() if size >= FULL or k != "strong, authors"}
    replicates = range(seed * 10_000, seed * 10_000 + size)
    out: list[Row] = []
    for kind, n in product(kinds, rows):
        found = shares(partial(audited, kind, n), replicates, tests, TOLERANCES)
        out += [{"what": "power", "audited": kind, "rows": n, **row} for row in found]
    detector = "authors" if size >= FULL else "default"
    return out + [r for kind in kinds for r in shuffled(kind, rows[-1], detector, replicates[: max(size // 10, 1)])]


def shuffled(kind: str, n: int, detector: Any, replicates: range) -> list[Row]:
    """Mean loss of the statistic when a variable is shuffled, the model that gave it, and how many are badly served."""
    drops, models, beyond = Counter[str](), Counter[str](), Counter[float]()
    for r in replicates:
        data = audited(kind, n, r)
        off = abs(rate(np.column_stack([c.to_numpy() for c in data.covariates.columns])) - data.p)
        beyond.update({t: (off > t).mean() for t in TOLERANCES})
        found = cal.diagnose.importance(data, tolerance=0.05, repeats=2, seed=r, detector=detector)
        drops.update(dict(zip(found.columns["variable"], found.columns["drop"], strict=True)))
        models[found.settings["model"].split()[0]] += 1
    row = {"audited": kind, "rows": n, "test": f"strong, {detector}", "replicates": len(replicates)}
    return [
        *({"what": "importance", **row, "variable": k, "value": v / len(replicates)} for k, v in drops.most_common()),
        *({"what": "chosen", **row, "variable": k, "value": v / len(replicates)} for k, v in models.items()),
        *({"what": "badly served", **row, "tolerance": k, "value": v / len(replicates)} for k, v in beyond.items()),
    ]


def claims(rows: list[Row]) -> dict[str, Claim]:
    """What the paper says of its figure; intervals of two shares count as if the data sets were not the same."""
    kept = [r for r in rows if r["what"] == "power"]
    hits = {(r["test"], r["audited"], r["rows"], r["tolerance"]): round(r["value"] * r["replicates"]) for r in kept}
    names, cells = list(dict.fromkeys(k[0] for k in hits)), list(dict.fromkeys(k[1:] for k in hits))
    sets, simple, rivals = kept[0]["replicates"], "adaptive score", [n for n in names if n not in STRONG]
    chi = [n for n in names if "adaptive chi" in n]
    sizes = sorted({n for _, n, _ in cells})
    gain = [mean(hits[STRONG[1], *c] - hits[simple, *c] for c in cells if c[1] == n) for n in sizes]

    def each(one: str, others: list[str]) -> list[list[Claim]]:
        looks = len(others) * len(cells)
        return [[claim.more(hits[one, *c], hits[o, *c], sets, looks=looks) for c in cells] for o in others]

    def above(one: str, others: list[str]) -> Claim:
        return claim.every(part for parts in each(one, others) for part in parts)

    def nothing(kind: str) -> Claim:
        found = [hits[n, *c] for n in ALONG_SCORE for c in cells if (c[0], c[2]) == (kind, TOLERANCES[0])]
        return claim.every(claim.share(k, sets, below=LITTLE, looks=len(found)) for k in found)

    out: dict[str, Claim] = {}
    for name in [n for n in names if n in STRONG]:
        out |= {
            f"{name}: more power than every comparator in every setting": above(name, rivals),
            f"{name}: more power than every comparator on average over the settings": claim.every(
                map(averaged, each(name, rivals))
            ),
        }
    twice = any(hits[simple, *c] >= 2 * hits[n, *c] > 0 for n in chi for c in cells)
    return out | {
        ALONG: nothing("logistic"),
        "forest audited: so do they there": nothing("forest"),
        "adaptive score: more power than adaptive chi-square in every setting": above(simple, chi),
        "adaptive score: twice the power of adaptive chi-square in some setting": Claim(twice, sets),
        "the strong test gains most over the adaptive score with the fewest rows": Claim(gain[0] == max(gain), sets),
        **shown(rows),
    }


def shown(rows: list[Row]) -> dict[str, Claim]:
    """What the paper says of the variables, and of the model whose path has the largest statistic."""
    order = {k: [r for r in rows if r["what"] == "importance" and r["audited"] == k] for k in AUDITED}
    first = {k: [r["variable"] for r in v] for k, v in order.items()}
    sets, corner = next(r["replicates"] for v in order.values() for r in v), {"the score", "x0", "x1"}
    chosen = {(r["audited"], r["variable"]): r["value"] for r in rows if r["what"] == "chosen"}

    def mostly(kind: str, model: str) -> Claim:
        return claim.share(round(chosen.get((kind, model), 0.0) * sets), sets, above=0.5)

    return {
        "logistic audited: the score and the corner's two variables matter most": Claim(
            set(first["logistic"][:3]) == corner, sets
        ),
        "forest audited: they are among the four that matter most": Claim(corner <= set(first["forest"][:4]), sets),
        "logistic audited: mostly a forest of residuals is chosen": mostly("logistic", "forest"),
        "forest audited: mostly a logistic model of residuals is chosen": mostly("forest", "logistic"),
    }


def table(rows: list[Row]) -> list[Row]:
    """Power of each test beside the authors' run and the test's level; who is badly served; what matters."""
    sizes, out, level = sorted({r["rows"] for r in rows}), [], levels()
    for kind, what, test in dict.fromkeys((r["audited"], r["what"], r["test"]) for r in rows):
        same = [r for r in rows if (r["audited"], r["what"], r["test"]) == (kind, what, test)]
        shown = {n: " / ".join(f"{r['value']:.2f}" for r in same if r["rows"] == n) for n in sizes}
        name, beside, held = test, RUN.get(test, "") if kind == "logistic" else "", level.get(test, "not measured")
        if what != "power":
            held, beside = "", f"in print: {PRINTED[kind][what == 'importance']}"
            name = "share of rows beyond the tolerance" if what == "badly served" else "most important variables"
        if what == "importance":
            shown = {sizes[-1]: ", ".join(r["variable"] for r in same[:4])}
        if what != "chosen":
            ours = {f"{n:,} rows": shown.get(n, "") for n in sizes}
            head = {"audited": kind, "power at 0.025 / 0.05 / 0.075": name}
            out.append({**head, **ours, PROGRAM: beside, "right models rejected, 0.10 asked (Figure 4)": held})
    return out


def chart(rows: list[Row]) -> Any:
    """Power against rows for each audited model and tolerance; on the right, what the statistic hangs on."""
    same = {k: [r for r in rows if r["audited"] == k] for k in dict.fromkeys(r["audited"] for r in rows)}
    return stacked(power_lines(v, "tolerance", f"{k} audited: tolerance") | importance_bars(v) for k, v in same.items())


EXPERIMENT = Experiment(
    items=("Figure 2",),
    title="Power of the test beside all comparators, and variable importance",
    status=DIFFERS,
    difference="The design is the authors' program's, which differs from print: coefficients 0.8, 0.4, 0.2 and not "
    "0.6, 0.4, 0.2; corner x0 < -2, x1 > 2 and not x1 < -2, x2 > 2; in it 0.2 x1 + 0.2 x2 and not 0.2 x1. The forest "
    "is not described in print; it is the program's, tuned on its grid and calibrated by Platt's method, with 100 "
    "trees a fold for its 500. So fewer rows of the logistic regression are beyond the tolerances than in print. The "
    "figure has no numbers in print; beside ours stand those of a run of the authors' program on this design made "
    "elsewhere, and of a prototype of our default, which had more power at 400 rows. Comparators use our default "
    "residual models, one of them the mean of the others: with these the adaptive score test has the power of the "
    "strong test, where the paper has it behind. 'strong, authors' has the paper's models and weights, and gives the "
    "importance. The result checked in has the default's models as they were before corners joined them up to 2,000 "
    "rows; with those of today the default finds 0.48, 0.38 and 0.29 of 100 other data sets at 400 rows "
    "(docs/benchmarks-detect.md).",
    sizes={"tiny": 1, "quick": 10, "full": FULL},
    run=run,
    claims=claims,
    sure=(ALONG,),
    chart=chart,
    table=table,
)
