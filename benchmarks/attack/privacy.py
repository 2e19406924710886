"""What can be learned of a group under the mask, or of one person, from what an audit writes: tried and counted.

    python benchmarks/attack/privacy.py [DATA SETS] [ATTACK]

The reader who attacks knows the covariates' levels, who is in which group that a record names, and which combinations
of levels occur. From the published counts they solve for the people and the events of every small set: by linear
algebra (is it a sum of what was published?) and by linear programming (do all tables that fit agree on it?). Small sets
are the levels and pairs of levels of fewer than 20 people, and what two published sets have in common or apart.

`count` and `events`: sets whose people, or events, are known exactly. `labels`: sets whose people all have the same
label in every table that fits, so that each person's label is known.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.sparse import csr_array

import calibrant as cal
from calibrant.audit.pooling import shown_groups
from calibrant.report import html
from calibrant.report.outline import document
from calibrant.report.outputs.files import write_all
from calibrant.views.rules import Condition, columns_of
from calibrant.views.sample import keyed

Flags = NDArray[np.bool_]
SMALL = 20
TRIED = 40  # small sets of an audit that linear programs are solved for; sums are tried for all of them
MODES: dict[str, dict[str, Any]] = {"default": {}, "publish": {"publish": True}, "mask none": {"mask": "none"}}
GROUPS = ("region", "sex", "grade")
KINDS = ("count", "events", "labels")
SLACK = 4  # people by which a count in multiples of five may be off


# ---- data ----


def people(seed: int, n: int) -> pa.Table:
    """Draw people of eight regions and six grades, some rare, whose rates differ by region."""
    rng = np.random.default_rng([39, seed])
    region = rng.choice(list("ABCDEFGH"), n, p=rng.dirichlet([6, 5, 4, 2, 1, 0.3, 0.2, 0.1]))
    grade = rng.choice(np.arange(1, 7), n, p=rng.dirichlet([0.2, 4, 6, 5, 3, 0.2]))
    p = rng.beta(2, 5, n)
    off = rng.normal(0, 0.1, 8)[np.searchsorted(list("ABCDEFGH"), region)]
    return pa.table(
        {
            "y": (rng.random(n) < np.clip(p + off, 0, 1)).astype(int),
            "p": p,
            "region": region,
            "sex": rng.choice(["f", "m"], n),
            "grade": grade,
            "age": rng.integers(18, 90, n).astype(float),
        }
    )


def audited(data: pa.Table, mode: Mapping[str, Any], by: Any = GROUPS, **more: Any) -> cal.AuditRecord:
    """Audit with groups, pairs of groups and thresholds, as its owner would."""
    how: dict[str, Any] = {"intersections": True, "quick": True, "limit": 0.05, "seed": 0, **more, **mode}
    how.setdefault("bins", {"grade": [2, 3, 4, 5, 6]} if "grade" in by else None)
    return cal.audit(data, label="y", score="p", by=list(by), **how)


# ---- what was published ----


@dataclass
class Published:
    """Sets of people whose numbers a record holds: who is in each, how many it says and how many events."""

    n: int
    slack: int  # people by which a count may be off
    sets: list[Flags] = field(default_factory=list)
    rows: list[float] = field(default_factory=list)
    events: list[float] = field(default_factory=list)
    off: list[int] = field(default_factory=list)

    def add(self, who: Flags, rows: float, events: float, off: int | None = None) -> None:
        self.sets.append(who)
        self.rows.append(rows)
        self.events.append(events)
        self.off.append(self.slack if off is None else off)


def published(data: pa.Table, record: cal.AuditRecord, **more: Any) -> Published:
    """Read every count of a record of which it is known whose it is."""
    n, exact = data.num_rows, is_exact(record)
    out = Published(n, 0 if exact else SLACK)
    out.add(np.ones(n, dtype=bool), record.everyone.rows, record.everyone.events, off=0)
    who = dict(members(data, record, **more))
    for f in record.groups:
        out.add(who[f.variables], f.rows, f.events)
    named = {keyed(name): rows for name, rows in who.items()} | {"everyone": np.ones(n, dtype=bool)}
    p = data["p"].to_numpy()
    for c in _lines(record, "decisions"):
        acted = named[c["group"]] & (p >= c["acts_from"])
        out.add(acted, c["acted"], c["events_acted"])
        out.add(named[c["group"]] & ~acted, c["left"], c["events_left"])
    for c in _lines(record, "bins"):
        out.add((p >= c["x_low"]) & (p < c["x_high"] + (c["x_high"] >= 1)), c["rows"], c["rows"] * c["observed"])
    for name in (k for k in record.curves if k.startswith("variable_curve/")):
        for c in _lines(record, name):
            if c["stretch"] < 0 and c["label"] in (levels := data[name.split("/")[1]].cast(pa.string()).to_pylist()):
                out.add(np.array(levels) == c["label"], c["rows"], c["rows"] * c["observed"])
    _add_rules(out, data, record)
    return out


def is_exact(record: cal.AuditRecord) -> bool:
    """Whether counts of groups are exact."""
    return not (record.settings.get("publish", True) or record.data.get("rounded_for"))


def _lines(record: cal.AuditRecord, name: str) -> Iterator[dict[str, Any]]:
    if name in record.curves:
        c = record.curve(name).columns
        yield from (dict(zip(c, line, strict=True)) for line in zip(*c.values(), strict=True))


def _add_rules(out: Published, data: pa.Table, record: cal.AuditRecord) -> None:
    if "subgroups" not in record.curves:
        return
    known = data.drop_columns(["y", "p"])
    read = columns_of(cal.predictions(data["y"].to_numpy(), data["p"].to_numpy(), known), None)
    rules = record.curve("subgroups").settings["conditions"]
    for c, rule in zip(_lines(record, "subgroups"), rules, strict=True):
        meets = read.matching([Condition.from_dict(d) for d in rule])
        out.add(meets, c["rows"], c["rows"] * c["observed"], off=SLACK if record.settings["mask"] else 0)


def members(data: pa.Table, record: cal.AuditRecord, by: Any = GROUPS, **more: Any) -> Iterator[tuple[Any, Flags]]:
    """Yield the people of each group shown; whoever knows how levels are pooled knows whose numbers a pool has."""
    how = {k: v for k, v in more.items() if k in ("bins", "cluster")}
    how.setdefault("bins", {"grade": [2, 3, 4, 5, 6]} if "grade" in by else None)
    both = more.get("intersections", True)
    sketch = cal.sketch(data, label="y", score="p", by=list(by), intersections=both, **how)
    mask = record.settings["mask"] or 1
    codes = {v.name: v.codes(data[v.name]).astype(int) for v in sketch.spec.variables}
    numbers, base = [], 0
    for names, size in zip(sketch.spec.groupings, sketch.spec.sizes, strict=True):
        own = codes[names[0]]
        for name in names[1:]:
            own = own * len(sketch.spec.by_name[name].labels) + codes[name]
        numbers.append((base, base + size, base + own))
        base += size
    for name, kept, _ in shown_groups(sketch, mask):
        own = next(v for first, last, v in numbers if first <= kept[0] < last)
        yield name, np.isin(own, kept)


# ---- what follows from it ----


@dataclass
class Solver:
    """Every table of people and events that fits what was published."""

    out: Published
    more: list[Flags]  # small sets that are asked about, so that they are sums of cells

    def __post_init__(self) -> None:
        sign = np.array([*self.out.sets, *self.more]).T
        cells, self.cell = np.unique(sign, axis=0, return_inverse=True)
        self.cell = self.cell.reshape(-1)
        self.a = cells[:, : len(self.out.sets)].T.astype(float)
        exact = np.array(self.out.off) == 0
        self.known = np.linalg.svd(self.a[exact], full_matrices=False)[2][: np.linalg.matrix_rank(self.a[exact])]

    def sums(self, who: Flags) -> bool:
        """Whether a set is a sum of exact published ones, so that its counts are."""
        target = self._target(who)
        return bool(np.abs(target - self.known.T @ (self.known @ target)).max() < 1e-7)

    def _target(self, who: Flags) -> NDArray[np.float64]:
        size = np.bincount(self.cell, minlength=self.a.shape[1])
        return np.bincount(self.cell, who, minlength=self.a.shape[1]) / size

    def ranges(self, who: Flags) -> dict[str, tuple[float, float]]:
        """The least and the most people, events and other people of a set in any table that fits."""
        m, t = self.a.shape[1], self._target(who)
        upper = np.concatenate([self.a, self.a], axis=1)  # people are events and others
        event = np.concatenate([np.zeros_like(self.a), self.a], axis=1)
        rows, events = np.array(self.out.rows), np.array(self.out.events)
        off = np.array(self.out.off, dtype=float)
        left = np.concatenate([upper, -upper, event, -event])
        right = np.concatenate([rows + off, off - rows, events + off, off - events])
        found = {}
        for what, goal in {
            "count": np.concatenate([t, t]),
            "events": np.concatenate([np.zeros(m), t]),
            "others": np.concatenate([t, np.zeros(m)]),
        }.items():
            ends = [
                linprog(side * goal, A_ub=csr_array(left), b_ub=right + 1e-7, bounds=(0, None), method="highs")
                for side in (1, -1)
            ]
            low, high = (side * e.fun if e.success else side * -np.inf for side, e in zip((1, -1), ends, strict=True))
            found[what] = (float(np.ceil(low - 1e-5)), float(np.floor(high + 1e-5)))
        return found


def learned(out: Published, wanted: list[Flags], tried: int = TRIED) -> Counter[str]:
    """Count what is learned of small sets."""
    solver, result = Solver(out, wanted), Counter({"tried": len(wanted)})
    for i, who in enumerate(wanted):
        if solver.sums(who):
            result.update(("count", "events"))
            continue
        if i >= tried:
            continue
        ranges = solver.ranges(who)
        result.update(k for k in ("count", "events") if ranges[k][0] == ranges[k][1])
        result["labels"] += ranges["count"][0] > 0 and 0.0 in (ranges["events"][1], ranges["others"][1])
    return result


def small_sets(data: pa.Table, out: Published, seed: int) -> list[Flags]:
    """Levels and pairs of levels of few people first, then what is common to two published sets, or apart."""
    columns = [np.array(data[name].cast(pa.string()).to_pylist()) for name in GROUPS]
    own = [c == level for c in columns for level in np.unique(c)]
    own += [(a == u) & (b == v) for a, b in combinations(columns, 2) for u in np.unique(a) for v in np.unique(b)]
    both = [x for a, b in combinations(out.sets, 2) for x in (a & b, a & ~b, b & ~a)]
    np.random.default_rng(seed).shuffle(both)  # type: ignore[arg-type]
    few = {x.tobytes(): x for x in [*own, *both] if 0 < x.sum() < SMALL}
    return list(few.values())[:300]


# ---- attacks ----


def one_audit(seed: int, mode: Mapping[str, Any], quick: bool = True) -> Counter[str]:
    """Solve for small sets from one record."""
    n = (200, 600, 2000)[seed % 3]
    data = people(seed, n)
    how = {"threshold": [0.2, 0.4], "quick": quick}
    out = published(data, audited(data, mode, **how))
    return learned(out, small_sets(data, out, seed))


def towns(seed: int, mode: Mapping[str, Any]) -> Counter[str]:
    """Solve for small towns from one record of towns and of the counties that they lie in."""
    data = people(seed, 600)
    town = data["region"].to_numpy(zero_copy_only=False)
    county = np.where(np.isin(town, list("ACEG")), "north", "south")
    data = data.append_column("county", pa.array(county.astype(str)))
    by = ("region", "county")
    out = published(data, audited(data, mode, by=by, intersections=False), by=by, intersections=False)
    small = [town == t for t in np.unique(town) if (town == t).sum() < SMALL]
    return learned(out, small)


def values(seed: int, mode: Mapping[str, Any]) -> Counter[str]:
    """Solve for values of few people from one record of a number in wide ranges, whose curve is drawn by value."""
    data = people(seed, 600)
    how: dict[str, Any] = {"by": ("grade",), "bins": {"grade": [3]}}
    out = published(data, audited(data, mode, **how), **how)
    grade = data["grade"].to_numpy()
    return learned(out, [grade == g for g in np.unique(grade) if (grade == g).sum() < SMALL])


def joined(*results: Published) -> Published:
    """What several records of the same people hold."""
    whole = Published(results[0].n, results[0].slack)
    for r in results:
        whole.sets += r.sets
        whole.rows += r.rows
        whole.events += r.events
        whole.off += r.off
    return whole


def other_bins(seed: int, mode: Mapping[str, Any]) -> Counter[str]:
    """Audit the same people with one cut moved by a year: who is of that age?"""
    data, cut = people(seed, 600), 30.0 + seed % 40
    records = []
    for edge in (cut, cut + 1):
        how: dict[str, Any] = {"by": ("age",), "bins": {"age": [edge]}}
        records.append(published(data, audited(data, mode, **how), **how))
    return learned(joined(*records), [data["age"].to_numpy() == cut])


def other_covariates(seed: int, mode: Mapping[str, Any]) -> Counter[str]:
    """Audit the same people by region, and by a coarser region."""
    data = people(seed, 600)
    names, counts = np.unique(data["region"].to_numpy(zero_copy_only=False), return_counts=True)
    rare = names[np.argmin(counts)]
    coarse = np.where(np.isin(data["region"].to_numpy(zero_copy_only=False), ["A", rare]), "A+", data["region"])
    more = data.append_column("area", pa.array(coarse.astype(str)))
    records = [published(more, audited(more, mode, by=by), by=by) for by in (("region",), ("area",))]
    out = joined(*records)
    return learned(out, [data["region"].to_numpy(zero_copy_only=False) == rare])


def one_row_more(seed: int, mode: Mapping[str, Any]) -> Counter[str]:
    """Audit the same people and one more: what happened to that one?"""
    data = people(seed, 601)
    before, after = audited(data.slice(0, 600), mode), audited(data, mode)
    result = Counter({"tried": 1})
    result["count"] += after.everyone.rows - before.everyone.rows == 1
    result["events"] += after.everyone.rows - before.everyone.rows == 1
    result["labels"] += after.everyone.rows - before.everyone.rows == 1
    return result


def one_row_more_by_groups(seed: int, mode: Mapping[str, Any]) -> Counter[str]:
    """The same, by groups alone: the numbers of everyone are not looked at."""
    data = people(seed, 601)
    records = [audited(d, mode) for d in (data.slice(0, 600), data)]
    result = Counter({"tried": 1})
    at = {f.variables: f for f in records[0].groups}
    apart = [
        (f.rows - at[f.variables].rows, f.events - at[f.variables].events)
        for f in records[1].groups
        if f.variables in at
    ]
    moved = {d for d in apart if d != (0, 0)}
    known = is_exact(records[0]) and moved <= {(1, 0), (1, 1)} and len(moved) == 1
    result.update({"count": known, "events": known, "labels": known})
    return result


def over_time(seed: int, mode: Mapping[str, Any]) -> Counter[str]:
    """Audit a log each month: who came in between, by group?"""
    data = people(seed, 630)
    records = [audited(d, mode) for d in (data.slice(0, 600), data)]
    exact, at = is_exact(records[0]), {f.variables: f for f in records[0].groups}
    result: Counter[str] = Counter()
    for f in records[1].groups:
        if f.variables not in at or f.pooled or at[f.variables].pooled:
            continue
        result["tried"] += 1
        result.update(dict.fromkeys(("count", "events"), exact))
    return result


def sketch(seed: int, _: Mapping[str, Any]) -> Counter[str]:
    """Read the counts of small groups in a sketch."""
    data = people(seed, 600)
    kept = cal.sketch(data, label="y", score="p", by=list(GROUPS), bins={"grade": [2, 3, 4, 5, 6]}, intersections=True)
    rows = cal.Sketch.from_bytes(kept.to_bytes()).group_levels.sum(axis=(1, 2, 3))
    few = int(((rows > 0) & (rows < SMALL)).sum())
    return Counter({"tried": few, "count": few, "events": few})


def page(seed: int, mode: Mapping[str, Any]) -> Counter[str]:
    """Write page, Markdown and tables from the record alone: a file that differs holds what the record does not."""
    data = people(seed, 600)
    record = audited(data, mode)
    again = cal.AuditRecord.from_json(record.to_json())
    with tempfile.TemporaryDirectory() as folder:
        for name, one in (("a", record), ("b", again)):
            write_all(one, document(one), Path(folder) / name)
        names = [p.relative_to(Path(folder) / "a") for p in (Path(folder) / "a").rglob("*") if p.is_file()]
        same = [(Path(folder) / "a" / n).read_bytes() == (Path(folder) / "b" / n).read_bytes() for n in names]
    return Counter({"tried": len(same), "count": same.count(False), "events": same.count(False)})


def calibrators(seed: int, _: Mapping[str, Any]) -> Counter[str]:
    """Look in calibrators for a level of few people, and for a value or an outcome that is one person's own."""
    from calibrant import repair

    data = people(seed, 600)
    known = data.drop_columns(["y", "p"])
    rows = cal.predictions(data["y"].to_numpy(), data["p"].to_numpy(), known)
    names, counts = np.unique(data["region"].to_numpy(zero_copy_only=False), return_counts=True)
    rare = [f'"{name}"' for name, k in zip(names, counts, strict=True) if k < SMALL]
    result: Counter[str] = Counter()
    for make in (
        repair.Isotonic(),
        repair.Histogram(),
        repair.LocalBias(),
        repair.VariableTree(variables=["age", "region"]),
    ):
        text = make.fit(rows).to_json()
        result["tried"] += len(rare) + 1
        result["count"] += sum(name in text for name in rare)
        scores = {repr(float(v)) for v in data["p"].to_numpy()}
        result["labels"] += sum(v in text for v in scores) > 0
    return result


# Numbers that follow how rows are dealt to blocks: by a hash of whole rows, which the twins do not share.
DEALT = ("fingerprint", "p_value", "p_adjusted", "lower", "guaranteed/low", "ranking/low", "ranking/beyond_")


def twins(seed: int, mode: Mapping[str, Any]) -> Counter[str]:
    """Audit twice, with the outcomes of two people swapped who differ by their small region alone.

    Everything else, every level shown, every pool and every total, is the same. So a number of the record that moves
    is about a small region's events, however it was made. `tried` are all numbers, but for those that are dealt.
    """
    columns = people(seed, 600).to_pydict()
    region = np.array(columns["region"])
    small = [r for r in np.unique(region) if (region == r).sum() < SMALL]
    if len(small) < 2:
        return Counter()
    one, other = (int(np.flatnonzero(region == r)[0]) for r in small[:2])
    for name in ("p", "sex", "grade", "age"):
        columns[name][other] = columns[name][one]
    read = []
    for outcomes in ((1, 0), (0, 1)):
        columns["y"][one], columns["y"][other] = outcomes
        record = audited(pa.table(columns), mode, threshold=[0.2, 0.4])
        read.append(dict(_numbers(json.loads(record.to_json()))))
    moved = sum(read[0].get(k) != read[1].get(k) for k in read[0].keys() | read[1].keys())
    return Counter({"tried": len(read[0]), "events": moved})


def _numbers(value: Any, at: str = "", but: Sequence[str] = DEALT) -> Iterator[tuple[str, Any]]:
    """Every number and word of a record with its place, but for some."""
    if isinstance(value, dict | list):
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        for k, v in pairs:
            yield from _numbers(v, at if k in ("curves", "columns") else f"{at}/{k}".lstrip("/"), but)
    elif not any(name in at for name in but):
        yield at, value


def _joined(seed: int, mode: Mapping[str, Any], **how: Any) -> tuple[int, float, tuple[cal.AuditRecord, ...]]:
    """The outcome of one person, whose score is known, and the records of a group of 250 without and with them."""
    rng = np.random.default_rng([41, seed])
    p = people(seed, 600)["p"].to_numpy()
    y = (rng.random(600) < np.clip(p + 0.08, 0, 1)).astype(int)
    who, inside = 300, np.arange(600) < 250
    y[who] = rng.integers(0, 2)
    records = []
    for more in (False, True):
        group = np.where(inside | (more & (np.arange(600) == who)), "a", "b")
        records.append(audited(pa.table({"y": y, "p": p, "g": group}), mode, by=("g",), intersections=False, **how))
    return int(y[who]), float(p[who]), tuple(records)


def _guess(outcome: int, score: float, numbers: Sequence[Sequence[float]]) -> int:
    """One where the mean change of some numbers, in people, is nearer to the outcome's; minus one where it is not."""
    people_moved = float(np.mean(np.subtract(numbers[1], numbers[0]))) * 250
    return 1 if (people_moved > 0.5 - score) == bool(outcome) else -1


def _group(record: cal.AuditRecord) -> Any:
    return next(f for f in record.groups if f.variables == (("g", "a"),))


def one_moved(seed: int, mode: Mapping[str, Any]) -> Counter[str]:
    """Audit a group with one person more: does the p-value of its gap, or do all of its numbers, say the outcome?

    `count`: p-values that moved the way of the outcome, less those that moved the other way, which a guess has alike.
    `events`: the same of the mean of all numbers of gap and error, next to what the score expects. The group is off
    upwards, so that one event more makes both larger.
    """
    outcome, score, records = _joined(seed, mode)
    seen = [_group(record) for record in records]
    numbers = [
        [v for of in (f.gap, f.error) for v in (of.value, *_ends(of.guaranteed), *_ends(of.interval))] for f in seen
    ]
    result = Counter({"tried": 1, "events": _guess(outcome, score, numbers)})
    if (change := seen[1].gap.p_value - seen[0].gap.p_value) != 0.0:
        result["count"] += 1 if (change < 0) == bool(outcome) else -1
    return result


def one_drawn(seed: int, mode: Mapping[str, Any]) -> Counter[str]:
    """The same by where marks stand in the group's line of the forest plot of the page.

    `count`: pages on which a mark stands where no number of the record does, so that it tells another.
    """
    outcome, score, records = _joined(seed, mode)
    pages = [_marks(html.render(record)) for record in records]
    result = Counter({"tried": 1, "events": _guess(outcome, score, [marks for _, marks in pages])})
    for record, (axis, marks) in zip(records, pages, strict=True):
        gap = _group(record).gap
        own = np.clip([gap.value, *_ends(gap.guaranteed), *_ends(gap.interval)], *axis)
        result["count"] += bool(max(np.abs(own - v).min() for v in marks) > 0.0005)  # drawn to a tenth of a point
    return result


TICK = re.compile(r'<text x="([\d.]+)%" y="17" text-anchor="\w+">([\d.+\u2212-]+)</text>')
SPOT = re.compile(r'<svg x="([\d.]+)%" y="50%"')
SPAN = re.compile(r'<line class="span[^"]*" x1="([\d.]+)%" x2="([\d.]+)%"')
SURE = re.compile(r'<rect class="sure[^"]*" x="([\d.]+)%" width="([\d.]+)%"')


def _marks(page: str) -> tuple[tuple[float, float], list[float]]:
    """The ends of the axis, and the gap at each mark of a group's line: spot, interval, and what is guaranteed."""
    at = page.index("<bdi>g = a</bdi>")
    table = page[page.rindex("<table", 0, at) : page.index("</table>", at)]
    (x0, v0), *_, (x1, v1) = ((float(x), float(v.replace("\u2212", "-"))) for x, v in TICK.findall(table))
    line = next(row for row in table.split("<tr>") if "<bdi>g = a</bdi>" in row)
    spots = [float(x) for x in SPOT.findall(line)[:1]]
    spots += [float(x) for x in SPAN.findall(line)[0]]
    at_least, width = map(float, SURE.findall(line)[0])
    spots += [at_least, at_least + width]
    return (v0 / 100, v1 / 100), [(v0 + (x - x0) * (v1 - v0) / (x1 - x0)) / 100 for x in spots]


def one_repaired(seed: int, mode: Mapping[str, Any]) -> Counter[str]:
    """The same by what is said of the group under repairs: gaps before and after, gains, and who is decided on anew.

    `count`: numbers of people that are no multiples of five.
    """
    outcome, score, records = _joined(seed, mode, quick=False, threshold=[0.3])
    numbers: list[dict[str, float]] = []
    result = Counter({"tried": 1})
    for record in records:
        seen = {}
        for line in _lines(record, "repairs"):
            for what in ("largest_gap", "largest_rise"):
                if line[f"{what}_group"] == "g = a":
                    seen[f"{what} {line['probability']}"] = line[what]
        for line in (x for x in _lines(record, "repair_decisions") if x["population"] == "g = a"):
            where = f"{line['probability']} {line['threshold']}"
            seen |= {f"{k} {where}": line[k] for k in ("gain", "gain_low", "gain_high") if line[k] is not None}
            result["count"] += sum((line[k] or 0) % 5 != 0 for k in ("rows", "to_act", "to_leave"))
        for line in (x for x in _lines(record, "fixed") if x["who"] == "g = a"):
            seen |= {k: line[k] for k in ("now_low", "now_high", "now_gap") if line[k] is not None}
        numbers.append(seen)
    both = sorted(numbers[0].keys() & numbers[1].keys())
    if both:
        result["events"] += _guess(outcome, score, [[n[k] for k in both] for n in numbers])
    return result


TRAINED = 60  # pairs of audits that a guess is learned from


@cache
def _changes(seed: int) -> tuple[int, dict[str, float]]:
    """The outcome of one person, their score, and by how much each published number of a group changes with them."""
    outcome, score, records = _joined(seed, MODES["publish"])
    before, after = (dict(_numbers(_group(record).to_dict(), but=())) for record in records)
    both = [k for k, v in before.items() if type(v) in (int, float) and type(after.get(k)) in (int, float)]
    return outcome, {"score of the person": score} | {k: float(after[k] - before[k]) for k in both}


def one_learned(seed: int, mode: Mapping[str, Any]) -> Counter[str]:
    """The same by a guess that is learned of other groups' published numbers, all of them and the person's score.

    `events`: right guesses, less wrong ones.
    """
    if "publish" not in mode:
        return Counter()
    from sklearn.feature_extraction import DictVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    learned_of = [_changes(10_000 + k) for k in range(TRAINED)]
    outcome, changes = _changes(seed)
    fitted = make_pipeline(DictVectorizer(sparse=False), StandardScaler(), LogisticRegression(C=0.1))
    fitted.fit([x for _, x in learned_of], [y for y, _ in learned_of])
    return Counter({"tried": 1, "events": 1 if int(fitted.predict([changes])[0]) == outcome else -1})


def visits(seed: int, mode: Mapping[str, Any]) -> Counter[str]:
    """Solve for the visits of few people, from one record of people who come often and whose scores are alike.

    And by the dates: are those who came before the first, or after the last, few?
    """
    rng = np.random.default_rng([42, seed])
    person = np.repeat(np.arange(120), rng.integers(1, 40, 120))
    base, n = rng.beta(2, 4, 120), len(person)
    p = np.clip(base[person] + rng.normal(0.0, 0.02, n), 0.001, 0.999)
    day = np.datetime64("2024-01-01") + (3 * person + rng.integers(0, 5, n)).astype("timedelta64[D]")
    region = rng.choice(list("ABCDEF"), 120, p=[0.4, 0.3, 0.2, 0.05, 0.03, 0.02])[person]
    columns = {"y": (rng.random(n) < p).astype(int), "p": p, "region": region, "person": person.astype(str)}
    data = pa.table({**columns, "seen": pa.array(day)})
    how: dict[str, Any] = {"by": ("region",), "intersections": False, "cluster": "person"}
    record = audited(data, mode, threshold=[0.2, 0.4], **how)
    out = published(data, record, **how)
    own = [region == level for level in np.unique(region)]
    both = [x for a, b in combinations(out.sets, 2) for x in (a & b, a & ~b, b & ~a)]
    few = {x.tobytes(): x for x in [*own, *out.sets, *both] if 0 < len(np.unique(person[x])) < SMALL}
    result = learned(out, list(few.values())[:300], tried=10)
    if (arrival := record.data["arrival"]) is not None:
        ends = day < np.datetime64(arrival["first"]), day > np.datetime64(arrival["last"])
        result["tried"] += 2
        result["count"] += sum(len(np.unique(person[x])) < SMALL - 1 for x in ends)  # those of the day itself are more
    return result


def classes(seed: int, mode: Mapping[str, Any]) -> Counter[str]:
    """Solve for the rows of few people that a classifier takes for a rare class, and for their true classes."""
    rng = np.random.default_rng([43, seed])
    k, n = 7, 1200
    odds = rng.normal(0.0, 1.0, (n, k)) + np.array([2.0, 1.8, 1.5, 1.0, 0.2, -0.4, -1.0])
    q = np.exp(odds) / np.exp(odds).sum(axis=1, keepdims=True)
    y = (rng.random(n)[:, None] > q.cumsum(axis=1)).sum(axis=1)
    top, names = q.argmax(axis=1), list("abcdefg")
    data = pa.table({"y": np.array(names)[y], **{name: q[:, i] for i, name in enumerate(names)}})
    record = cal.audit(data, label="y", score=names, quick=True, seed=0, **mode)
    result: Counter[str] = Counter()
    totals = {f.variables[0][1]: f.events for f in record.classes}
    for true in names:  # of each true class, the sets of people are those of one top label
        out = Published(n, 0 if is_exact(record) else SLACK)
        out.add(np.ones(n, dtype=bool), n, totals[true], off=0)
        for c in _lines(record, "class_matrix"):
            if c["true_class"] == true:
                out.add(top == names.index(c["predicted_class"]), c["rows"], c["events"])
        result.update(learned(out, [top == i for i in range(k) if 0 < (top == i).sum() < SMALL]))
    return result


def _ends(of: cal.Interval | None) -> tuple[float, float]:
    return (of.low, of.high) if of is not None else (0.0, 0.0)


ATTACKS: dict[str, Callable[[int, Mapping[str, Any]], Counter[str]]] = {
    "one audit": one_audit,
    "one audit, with tests": lambda seed, mode: one_audit(seed, mode, quick=False),
    "towns in counties": towns,
    "values in ranges": values,
    "a small region's twin": twins,
    "one person more, one group": one_moved,
    "one person more, learned": one_learned,
    "one person more, forest plot": one_drawn,
    "one person more, repairs": one_repaired,
    "visits of few people": visits,
    "rare predicted classes": classes,
    "page, Markdown, CSV": page,
    "same people, a cut moved": other_bins,
    "same people, coarser levels": other_covariates,
    "one row more, by totals": one_row_more,
    "one row more, by groups": one_row_more_by_groups,
    "a month later, by groups": over_time,
    "calibrator": calibrators,
    "sketch": sketch,
}


def main() -> None:
    sets, start = int(sys.argv[1]) if len(sys.argv) > 1 else 9, time.perf_counter()
    print(f"{'':30}{'':12}{'tried':>7}" + "".join(f"{k:>8}" for k in KINDS))
    chosen = {k: v for k, v in ATTACKS.items() if not sys.argv[2:] or k.startswith(sys.argv[2])}
    for name, attack in chosen.items():
        some = sets if "tests" not in name else max(1, sets // 3)
        for called, mode in MODES.items():
            try:
                total = Counter[str]()
                for seed in range(some):
                    total.update(attack(seed, mode))  # a sum would drop guesses that are more often wrong
            except cal.BadInput as e:
                print(f"{name:30}{called:12}{str(e)[:60]}")
                continue
            print(f"{name:30}{called:12}{total['tried']:7}" + "".join(f"{total[k]:8}" for k in KINDS), flush=True)
    print(f"{time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
