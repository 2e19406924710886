"""Tests of unnamed pockets: level, power, what they name and CPU seconds, beside other programs; Markdown tables.

    OMP_NUM_THREADS=1 python benchmarks/detect/subgroups.py [--full] [--only gap,rows] [--sets 40]

Planted: a model that is right but for one pocket, a range of each of one, two or three traits. The gap is told in
standard errors of that pocket's residual sum, so that the columns of a table are equally hard for whoever knows where
to look. Beside `cal.detect`'s tests: the bias scan (Zhang and Neill 2016, `pip install aif360`), the worst segment of
`pip install mcgrad`, a search over slices after Chung et al. (2019), and boosted residuals judged on a held-out half.
A test without a p-value of its own, or with one that does not hold, gets one here: the rank of its statistic among
those of data sets of the same law with nothing planted. Without --full: a taste, in two minutes.
"""

import argparse
import importlib.util
import itertools
import logging
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, logit
from scipy.stats import norm

import calibrant as cal
from calibrant.detect.subgroup_tests import WEIGHT
from calibrant.views.rules import Condition, columns_of

ALPHA = 0.05
CELLS = 5  # of a number, for the searches that want cells; calibrant's make their own
LEVELS = 12
SLICES = 200_000  # the search over slices goes a level deeper while its lattice stays below


# Planted data


@dataclass(frozen=True)
class Design:
    """What is drawn: `errors` is the gap of the pocket in standard errors of its residual sum, 0 for a right model."""

    rows: int = 10_000
    attributes: int = 8
    share: float = 0.05
    order: int = 2
    errors: float = 6.0
    shape: str = "corner"

    def right(self) -> "Design":
        """Return the design whose model is right: one for all pockets that could be planted."""
        return replace(self, share=0.05, order=2, errors=0.0, shape=self.shape if self.shape in LAWS else "corner")


class Event(NamedTuple):
    """One data set: `levels` tells which traits are categories; `inside` who is in the pocket that was planted."""

    x: Any
    levels: tuple[int, ...]
    p: Any
    y: Any
    inside: Any

    @property
    def data(self) -> Any:
        """Return the rows as calibrant takes them."""
        columns = {f"x{j}": self.column(j) for j in range(self.x.shape[1])}
        return cal.predictions(self.y, self.p, columns)

    def column(self, j: int) -> Any:
        """Return a trait: numbers, or names of levels."""
        return (
            np.array([f"l{v}" for v in range(LEVELS)])[self.x[:, j].astype(int)] if j in self.levels else self.x[:, j]
        )

    def cells(self) -> Any:
        """Return the number of each row's cell along each trait: fifths by rank, or the level."""
        return np.column_stack(
            [
                self.x[:, j].astype(np.int64) if j in self.levels else fifths(self.x[:, j])
                for j in range(self.x.shape[1])
            ]
        )

    def frame(self) -> Any:
        """Return the rows as mcgrad takes them."""
        import pandas as pd

        return pd.DataFrame({f"x{j}": self.column(j) for j in range(self.x.shape[1])} | {"p": self.p, "y": self.y})


def fifths(x: Any) -> Any:
    """Return fifths of a number, by its quantiles."""
    return np.searchsorted(np.quantile(x, np.arange(1, CELLS) / CELLS), x, side="right")


LAWS = ("rare", "levels")  # shapes with scores or traits of their own, so with a null of their own


def drawn(design: Design, seed: int) -> Event:
    """Draw one data set; which traits make the pocket is drawn as well."""
    g = np.random.default_rng([0x90C7, seed])
    n, d = design.rows, design.attributes
    x = g.uniform(size=(n, d))
    p = expit((-4.6 if design.shape == "rare" else -1.0) + 1.6 * (x[:, 0] - 0.5) + 0.8 * (x[:, 1] - 0.5))
    levels: tuple[int, ...] = ()
    if design.shape == "levels":
        levels = tuple(range(d // 2, d))
        x[:, levels] = np.floor(x[:, levels] * LEVELS)
    off, inside = planted(design, x, p, g)
    return Event(x, levels, p, (g.uniform(size=n) < p + off).astype(int), inside)


def planted(design: Design, x: Any, p: Any, g: Any) -> tuple[Any, Any]:
    """Return by how much the truth is above the score, and who is in the pocket (None if there is none to name)."""
    who = g.permutation(x.shape[1])[: design.order]
    side = design.share ** (1 / design.order)
    if design.shape == "gradient":  # every trait bends the truth a little, none in particular
        return by_variable(design, p, (x - 0.5) @ g.choice([-1.0, 1.0], x.shape[1])), None
    if design.shape == "slope":  # high scores too high, low ones too low
        return by_variable(design, p, logit(p.mean()) - logit(p)), None
    if design.shape == "levels":  # three levels that are no neighbours, and a range of a number
        low = x.shape[1] // 2
        j, k = g.integers(0, low), g.integers(low, x.shape[1])
        inside = np.isin(x[:, k], g.permutation(LEVELS)[:3]) & (x[:, j] > 1 - 4 * design.share)
        return gap(design, p, inside) * inside, inside
    start = g.uniform(0, 1 - side, len(who)) if design.shape == "middle" else np.full(len(who), 1 - side)
    held = (x[:, who] > start) & (x[:, who] <= start + side)
    inside = held.all(axis=1)
    if design.shape == "flat":  # the rest of each trait's range makes up for it: no trait alone shows anything
        return np.clip(gap(design, p, inside) * ((held - side) / (1 - side)).prod(axis=1), -p, 1 - p), inside
    return gap(design, p, inside) * inside, inside


def gap(design: Design, p: Any, inside: Any) -> float:
    """Return the gap that is so many standard errors of the residual sum."""
    v = (p * (1 - p))[inside]
    return float(min(design.errors * np.sqrt(v.sum()) / len(v), (1 - p[inside]).min()))


def by_variable(design: Design, p: Any, direction: Any) -> Any:
    """Return a bend of the logit along a direction, `errors` standard errors for whoever knows the direction."""
    by = design.errors / np.sqrt(p * (1 - p) @ direction**2)
    return expit(logit(p) + by * direction) - p


# The tests


class Found(NamedTuple):
    """What a test says: larger statistics are worse; a p-value of its own; whom it names."""

    statistic: float
    p_value: float | None = None
    named: Any = None


def calibrants(name: str, **settings: Any) -> Callable[[Event, int], Found]:
    """Return one of calibrant's tests."""

    def test(case: Event, seed: int) -> Found:
        data = case.data
        out = getattr(cal.detect, name)(data, seed=seed, **settings)
        rule = [Condition.from_dict(c) for c in out.parts.get("conditions", ())]
        return Found(out.statistic, out.p_value, columns_of(data, None).matching(rule) if rule else None)

    return test


def bias_scan(case: Event, seed: int) -> Found:
    """Zhang and Neill's scan in both directions, three starts each; of cells and penalties tried, the best ones."""
    import pandas as pd
    from aif360.detectors.mdss.MDSS import MDSS
    from aif360.detectors.mdss.ScoringFunctions import Bernoulli

    cells = pd.DataFrame(case.cells()).add_prefix("x")
    best, where = -np.inf, {}
    for direction in ("positive", "negative"):
        scan = MDSS(Bernoulli(direction=direction)).scan
        subset, score = scan(cells, pd.Series(case.p), pd.Series(case.y), penalty=3.0, num_iters=3, seed=seed)
        if score > best:
            best, where = float(score), subset
    named = np.logical_and.reduce([np.ones(len(cells), bool)] + [cells[j].isin(v).to_numpy() for j, v in where.items()])
    return Found(best, None, named)


def segments(**settings: Any) -> Callable[[Event, int], Found]:
    """Return mcgrad's worst segment, and the p-value it gives: that segment's, as if it were the only one."""

    def test(case: Event, seed: int) -> Found:  # noqa: ARG001
        from mcgrad.metrics import MulticalibrationError

        names = [f"x{j}" for j in range(case.x.shape[1])]
        found = MulticalibrationError(
            case.frame(), "y", "p",
            categorical_segment_columns=[names[j] for j in case.levels] or None,
            numerical_segment_columns=[n for j, n in enumerate(names) if j not in case.levels],
            **settings,
        )  # fmt: skip
        worst = int(np.argmax(found.segments_ecce_sigma))
        chunk, row = divmod(worst, found.chunk_size)
        named = np.zeros(len(case.y), bool)
        named[found.df["index"]] = found._segments[0][chunk][row]
        return Found(float(found.mce_sigma), float(found.mce_pvalue), named)

    return test


def slices(loss: str) -> Callable[[Event, int], Found]:
    """Return the search over slices: the lattice of "trait is in cell", level by level, each slice against all others.

    Welch's t of the slice's mean loss against the rest's, slices of at least 1 % of the rows, Bonferroni over the
    lattice. The paper looks for a higher log loss; residuals, of both signs, ask what is asked here. Its threshold of
    the effect size (0.4) would pass none of the pockets below, and is left out.
    """

    def test(case: Event, seed: int) -> Found:  # noqa: ARG001
        y, p = case.y, case.p
        e = -np.log(np.where(y, p, 1 - p)) if loss == "log" else y - p
        codes, worst, count, where = case.cells(), -np.inf, 0, ()
        for order in (1, 2, 3):
            combinations = list(itertools.combinations(range(codes.shape[1]), order))
            if count + len(combinations) * LEVELS**order > SLICES and order > 2:
                break
            for attributes in combinations:
                key = np.zeros(len(e), np.int64)
                for j in attributes:
                    key = key * LEVELS + codes[:, j]
                t, tested = welch(key, e, LEVELS**order)
                size = np.abs(t) if loss == "residual" else t
                count += tested
                if size.max() > worst:
                    worst, where = float(size.max()), (key, int(size.argmax()))
        sides = 2 if loss == "residual" else 1
        key, at = where
        return Found(worst, min(1.0, sides * count * float(norm.sf(worst))), key == at)

    return test


def welch(key: Any, e: Any, size: int) -> tuple[Any, int]:
    """Return Welch's t of each slice against the rest, and how many slices are large enough."""
    n, s, q = (np.bincount(key, w, size) for w in (None, e, e * e))
    rest = len(e) - n
    enough = (n >= 0.01 * len(e)) & (rest > 1)
    t = np.zeros(size)
    n, s, q, rest = n[enough], s[enough], q[enough], rest[enough]
    a, b = s / n, (e.sum() - s) / rest
    spread = (q - n * a * a) / (n - 1) / n + ((e @ e - q) - rest * b * b) / (rest - 1) / rest
    t[enough] = (a - b) / np.sqrt(np.maximum(spread, 1e-300))
    return t, int(enough.sum())


def boosted(case: Event, seed: int) -> Found:
    """Boosted trees of the residual, fitted to one half; in the other, predictions times residuals, one-sided.

    Small steps and few leaves: scikit-learn's defaults follow the noise, and found 15 of 30 where these found 23.
    """
    from sklearn.ensemble import HistGradientBoostingRegressor

    fit = np.random.default_rng(seed).permutation(len(case.y)) < len(case.y) // 2
    e, v = case.y - case.p, case.p * (1 - case.p)
    gentle = {"max_iter": 50, "learning_rate": 0.05, "max_leaf_nodes": 8, "min_samples_leaf": 50}
    model = HistGradientBoostingRegressor(categorical_features=list(case.levels) or None, random_state=seed, **gentle)
    q = model.fit(case.x[fit], e[fit]).predict(case.x[~fit])
    z = float(q @ e[~fit] / np.sqrt(max(q**2 @ v[~fit], 1e-300)))
    return Found(z, float(norm.sf(z)))


@dataclass(frozen=True)
class Test:
    """A test: whether its own p-value counts, what it needs, and how much of it can be paid for."""

    name: str
    run: Callable[[Event, int], Found] | None  # None: those of `JOINED` in one p-value
    own: bool = True
    needs: str = "calibrant"
    most: tuple[int, int] = (10**9, 10**9)  # rows, traits

    def absent(self) -> bool:
        """Return whether what it needs is not installed."""
        return importlib.util.find_spec(self.needs) is None

    def affordable(self, design: Design) -> bool:
        """Return whether a design is within what it can do in minutes."""
        return design.rows <= self.most[0] and design.attributes <= self.most[1]


JOINED = (
    Test("`scan_test`, order 2", calibrants("scan_test")),
    Test("`strong_calibration_test`", calibrants("strong_calibration_test", null="split")),
)
TESTS = (
    Test("`scan_test`, order 1", calibrants("scan_test", order=1)),
    JOINED[0],
    Test("`scan_test`, order 3, 199 draws", calibrants("scan_test", order=3, draws=199), most=(10_000, 8)),
    JOINED[1],
    Test("`subgroup_test`: order 2 and strong", None),
    Test("boosted residuals, held-out half", boosted),
    Test("bias scan (aif360)", bias_scan, False, "aif360", (10_000, 20)),
    Test("segments (mcgrad), as it comes", segments(), False, "mcgrad", (100_000, 100)),
    Test(
        "segments (mcgrad), 5 cells, pairs",
        segments(max_depth=2, max_values_per_segment_feature=5, max_n_segments=None),
        False, "mcgrad", (10_000, 20),
    ),
    Test("slices, log loss", slices("log"), False, most=(100_000, 100)),
    Test("slices, residuals", slices("residual"), False, most=(100_000, 100)),
)  # fmt: skip


# Level, power, overlap, seconds


class Run(NamedTuple):
    """One test on one data set."""

    error_shown: Found
    overlap: float | None
    seconds: float


class Bench:
    """Runs what the tables ask for, once: planted data sets, and right ones of the same law for p-values by rank."""

    def __init__(self, sets: int, null: int) -> None:
        self.sets, self.null = sets, null
        self.kept: dict[tuple[str, Design], list[Run]] = {}

    def runs(self, test: Test, design: Design, seeds: range) -> list[Run]:
        """Return the runs of a test on data sets of a design."""
        if test.run is None:
            return [joined(*both) for both in zip(*(self.runs(t, design, seeds) for t in JOINED), strict=True)]
        if (test.name, design) not in self.kept:
            out = []
            for seed in seeds:
                case = drawn(design, seed)
                start = time.process_time()
                found = test.run(case, seed)
                took = time.process_time() - start
                out.append(Run(found._replace(named=None), overlap(case.inside, found.named), took))
            self.kept[test.name, design] = out
        return self.kept[test.name, design]

    def planted(self, test: Test, design: Design) -> list[Run]:
        """Return runs with something planted; fewer where one takes long."""
        fewer = 1 if design.rows <= 10_000 else 2 if design.rows <= 100_000 else 6
        return self.runs(test, design, range(max(3, self.sets // fewer // (1 + design.attributes // 50))))

    def right(self, test: Test, design: Design) -> list[Run]:
        """Return runs on right models, of which ranks are made: 19, 39, ..., so that a rank can be just 0.05."""
        usual = (design.rows, design.attributes) == (BASE.rows, BASE.attributes)
        count = self.null if usual else min(self.null, 39 if design.rows <= 10_000 else 19)
        return self.runs(test, design.right(), range(10_000, 10_000 + count))

    def p_values(self, test: Test, design: Design) -> Any:
        """Return p-values: the test's own, or the rank among right models."""
        runs = self.planted(test, design)
        if test.own:
            return np.array([r.error_shown.p_value for r in runs])
        null = np.array([r.error_shown.statistic for r in self.right(test, design)])
        return np.array([(1 + np.sum(null >= r.error_shown.statistic)) / (1 + len(null)) for r in runs])

    def power(self, test: Test, design: Design) -> str:
        """Return the share of planted data sets that are rejected."""
        return f"{np.mean(self.p_values(test, design) <= ALPHA):.2f}"

    def named(self, test: Test, design: Design) -> str:
        """Return the mean overlap of who is named with who is in the pocket."""
        known = [r.overlap for r in self.planted(test, design) if r.overlap is not None]
        return f"{np.mean(known):.2f}" if known else "names nobody"

    def seconds(self, test: Test, design: Design) -> str:
        """Return CPU seconds of one data set."""
        return f"{np.median([r.seconds for r in self.planted(test, design)]):.2g}"

    def level(self, test: Test, design: Design) -> str:
        """Return the share of right data sets that are rejected by the p-value that the test gives, if it does."""
        p = [r.error_shown.p_value for r in self.right(test, design)]
        return "gives none" if p[0] is None else f"{np.mean(np.array(p) <= ALPHA):.2f} of {len(p)}"


def joined(scan: Run, adaptive: Run) -> Run:
    """Return what `subgroup_test` returns, without running again what it joins."""
    p = [r.error_shown.p_value or 0.0 for r in (scan, adaptive)]
    least = min(p[0] / WEIGHT, p[1] / (1 - WEIGHT), 1.0)
    return Run(Found(-least, least), scan.overlap, scan.seconds + adaptive.seconds)


def overlap(inside: Any, named: Any) -> float | None:
    """Return Jaccard's overlap of two groups: people in both over people in either."""
    return None if inside is None or named is None else float((inside & named).sum() / max(1, (inside | named).sum()))


# Tables

BASE = Design()
ROWS = tuple((f"{n:,} rows", Design(rows=n)) for n in (2_000, 10_000, 100_000, 1_000_000))
GAPS = tuple((f"{e:g}", Design(errors=e)) for e in (4.5, 6.0, 7.5))
ORDERS = tuple((f"order {k}", Design(order=k)) for k in (1, 2, 3))
SHARES = tuple((f"{s:.0%} of the people", Design(share=s)) for s in (0.02, 0.05, 0.2))
ATTRIBUTES = tuple((f"{d} traits", Design(attributes=d)) for d in (5, 8, 20, 100))
MIDDLE = ("amid the ranges", Design(shape="middle"))
FLAT = ("no trait alone shows it", Design(shape="flat"))
NAMES = ("3 of 12 levels and a range", Design(shape="levels"))
RARE = ("1 % of events", Design(shape="rare"))
SMOOTH = (("all traits a little", Design(shape="gradient")), ("slope of the score", Design(shape="slope")))
TABLES: dict[str, tuple[str, tuple[tuple[str, Design], ...]]] = {
    "level": ("Right models rejected at 0.05, by the p-value that the test gives", (("usual", BASE), RARE)),
    "gap": ("Power against the size of the gap, in standard errors of the pocket's residual sum", GAPS),
    "share": ("Power against share, at 6 standard errors", SHARES),
    "order": ("Power against the number of traits that make the pocket", ORDERS),
    "shapes": ("Power against other errors", (MIDDLE, FLAT, NAMES, RARE, *SMOOTH)),
    "named": ("Overlap (Jaccard, mean) of who is named with who was planted", (*ORDERS, MIDDLE, NAMES)),
    "attributes": ("Power against the number of traits searched", ATTRIBUTES),
    "rows": ("Power against rows, at 6 standard errors", ROWS),
    "seconds": ("CPU seconds a data set", (*ROWS, *ATTRIBUTES[2:])),
}
QUICK = ("gap", "order", "named", "seconds")


def cell(bench: Bench, test: Test, kind: str, design: Design) -> str:
    """Return one cell of a table."""
    if test.absent():
        return "not installed"
    return str(getattr(bench, kind)(test, design)) if test.affordable(design) else "not run"


def table(bench: Bench, name: str, columns: int, tests: list[Test]) -> None:
    """Print one table."""
    title, designs = TABLES[name]
    picked = designs[:columns]
    kind = name if name in ("level", "named", "seconds") else "power"
    print(f"\n{title}\n\n| test | " + " | ".join(head for head, _ in picked) + " |\n|---|" + "---:|" * len(picked))
    for test in tests:
        print(f"| {test.name} | " + " | ".join(cell(bench, test, kind, d) for _, d in picked) + " |", flush=True)


def main() -> None:
    """Print the tables."""
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("--full", action="store_true")
    ask.add_argument("--only", help=f"of {', '.join(TABLES)}")
    ask.add_argument("--tests", default="", help="part of their names; all without it")
    ask.add_argument("--sets", type=int, help="data sets a cell")
    ask.add_argument("--null", type=int, help="right models for ranks: 19, 39, 59, ...")
    given = ask.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    bench = Bench(given.sets or (30 if given.full else 3), given.null or (99 if given.full else 19))
    tests = [t for t in TESTS if any(part in t.name for part in given.tests.split(","))]
    start = time.process_time()
    for test in tests:  # compile
        if test.run and not test.absent():
            test.run(drawn(Design(rows=2_500), 0), 0)
            test.run(drawn(Design(rows=2_500, shape="levels"), 0), 0)
    for name in given.only.split(",") if given.only else TABLES if given.full else QUICK:
        table(bench, name, len(TABLES[name][1]) if given.full else 2, tests)
    print(f"\n{time.process_time() - start:,.0f} CPU seconds.")


if __name__ == "__main__":
    main()
