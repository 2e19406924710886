"""What a record reports about some of the people is rounded, so that two records do not say what happened to one
person.

Groups cut at 40 in one audit and at 41 in the next differ by those who are 40. Were it one person, the difference of
exact sums would be that person's outcome and score. So numbers of people become multiples of five, up or down by chance
(Statistics New Zealand's random rounding), rates follow from those, and certified ends move outward to a step of two to
five people, by chance too: at a fixed rounding a number that just passes a boundary would tell on which side it was.

Chance is drawn from the exact sums themselves, which a reader of the record does not have: the same people are rounded
alike wherever they appear and however often they are audited, so that repeating an audit averages nothing out. Who
knows two of the three sums of a group can try out the third, and fewer values are left than true chance would leave.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from calibrant.results import Curve, Estimate, Interval, Layered, Outcome

MULTIPLE = 5  # people: a count is reported as a multiple of it
FEW = 2  # people that a step of a rate is worth at least; the next round number is at most five
ENDS = {"low": -1, "high": 1, "low_point": -1, "high_point": 1, "observed_low": -1, "observed_high": 1}
FINE = 10  # the steps of a smooth line are so much finer: no point of it is about a set of people
SIZES = ("vece", "vece_plain", "beyond_gap", "beyond_gap_plain", "low", "high", "beyond_low", "beyond_high")
SMOOTH = ("predicted", "observed", "gap", *ENDS)


def step(people: float) -> float:
    """The smallest of 1, 2 and 5 times a power of ten that is at least two people's share."""
    share = FEW / max(people, 1.0)
    power = 10.0 ** math.floor(math.log10(share))
    return next(m * power for m in (1.0, 2.0, 5.0, 10.0) if m * power >= share * (1 - 1e-9))


def chance(*facts: object) -> float:
    """A number in [0, 1) that depends on the facts alone."""
    digest = hashlib.blake2b(repr(facts).encode(), digest_size=7).digest()
    return int.from_bytes(digest, "big") / 2.0**56


@dataclass(frozen=True)
class RandomRounding:
    """What is reported of a set of people."""

    exact: tuple[int, int, float]  # people, events and the sum of their scores to a thousandth

    @classmethod
    def of(cls, people: float, events: float, expected: float) -> RandomRounding:
        """Describe a set of people by its exact sums."""
        return cls((round(people), round(events), float(round(expected, 3))))  # NumPy's floats are written otherwise

    def _count(self, value: float, draw: float) -> int:
        return MULTIPLE * math.floor(value / MULTIPLE + draw)

    @property
    def rows(self) -> int:
        """People, a multiple of five."""
        return max(self._count(self.exact[0], chance("rows", self.exact)), MULTIPLE)

    @property
    def events(self) -> int:
        """Events, a multiple of five; none if there are none."""
        return min(self._count(self.exact[1], chance("cases", self.exact)), self.rows)

    @property
    def expected(self) -> int:
        """Expected events, a multiple of five, moved by the draw of the events, so that the two can be compared."""
        return min(self._count(self.exact[2], chance("cases", self.exact)), self.rows)

    @property
    def observed(self) -> float:
        """Share of events."""
        return self.events / self.rows

    @property
    def predicted(self) -> float:
        """Mean score."""
        return self.expected / self.rows

    def end(self, value: float, side: int, about: str, least: float = -1.0, most: float = 1.0) -> float:
        """Move an end outward (`side` -1 down, 1 up) by up to two steps; one that says nothing stays."""
        if not least < value < most:
            return value
        u, draw = step(self.exact[0]), chance(about, self.exact)
        moved = side * u * math.ceil(side * value / u + draw)
        moved = round(moved, 12) + 0.0  # no -0.0, which would be written so
        return min(max(moved, least), value) if side < 0 else max(min(moved, most), value)

    def over(self, limit: float, about: str) -> float:
        """The least that an end from below must be for its end as reported to be over a limit.

        With the step u and the draw d it is reported as ``u floor(low / u - d)``. That is above the limit if and only
        if ``floor(low / u - d) >= floor(limit / u) + 1``, so if ``low >= u (floor(limit / u) + 1 + d)``.
        """
        return step(self.exact[0]) * (self._steps(limit) + 1 + chance(about, self.exact))

    def within(self, limit: float, about: str) -> float:
        """The most that an end from above may be for its end as reported to be within a limit.

        It is reported as ``u ceil(high / u + d)``, at most the limit if and only if ``high <= u (floor(limit / u) -
        d)``.
        """
        return step(self.exact[0]) * (self._steps(limit) - chance(about, self.exact))

    def _steps(self, limit: float) -> int:
        """Return how many whole steps, as ends are written, are at most a limit."""
        u = step(self.exact[0])
        most = math.floor(limit / u + 1e-9)
        return most if round(u * most, 12) <= limit else most - 1

    def near(self, value: float, about: str) -> float:
        """Round a number to a step, up or down by chance."""
        u = step(self.exact[0])
        return round(u * math.floor(value / u + chance(about, self.exact)), 12) + 0.0


# ---- estimates of a group ----


def reported_estimate(estimate: Estimate, reported: RandomRounding) -> Estimate:
    """A group's certificate with ends moved outward; it holds all the more."""
    of = estimate.interval
    low, high = (
        reported.end(of.low, -1, f"{estimate.method} low", 0.0),
        reported.end(of.high, 1, f"{estimate.method} high", 0.0),
    )
    value = low if estimate.value == of.low else min(max(reported.near(estimate.value, estimate.method), low), high)
    return replace(estimate, n=reported.rows, value=value, interval=replace(of, low=low, high=high))


def reported_gap(estimate: Estimate, reported: RandomRounding) -> Estimate:
    """A group's signed gap as its counts tell it, ends moved outward."""
    of = estimate.interval
    low, high = reported.end(of.low, -1, f"{estimate.method} low"), reported.end(of.high, 1, f"{estimate.method} high")
    value = min(max(reported.observed - reported.predicted, low), high)
    return replace(estimate, n=reported.rows, value=value, interval=replace(of, low=low, high=high))


def reported_layer(
    layer: Layered, reported: RandomRounding, about: str, least: float = -1.0, most: float = 1.0
) -> Layered:
    """A number of a group in two layers, the ends of its ordinary interval moved outward.

    Certified ends of an error and a gap are reported already; those of a ratio, which may exceed one, are moved here.
    """

    def moved(of: Interval | None, name: str) -> Interval | None:
        if of is None:
            return None
        low = reported.end(of.low, -1, f"{about} {name} low", least, most)
        return replace(of, low=low, high=reported.end(of.high, 1, f"{about} {name} high", least, most))

    interval = moved(layer.interval, "ordinary")
    guaranteed = moved(layer.guaranteed, "certified") if most > 1.0 else layer.guaranteed
    value = layer.value
    for of in (interval, guaranteed) if most > 1.0 else ():
        value = value if of is None else min(max(value, of.low), of.high)
    return replace(layer, value=value, interval=interval, guaranteed=guaranteed)


def two_digits(value: float) -> float:
    """A number rounded up to two digits."""
    if not value or not math.isfinite(value):
        return value
    scale = 10.0 ** (math.floor(math.log10(abs(value))) - 1)
    return float(f"{math.ceil(value / scale - 1e-9) * scale:.2g}")


# ---- curves ----


def reported_sets(curve: Curve, people: float, rows: str = "rows") -> Curve:
    """A curve each of whose lines is about a set of people: bins, levels, rules."""
    c = dict(curve.columns)
    if not c or not len(c[rows]):
        return curve
    lines = [dict(zip(c, line, strict=True)) for line in zip(*c.values(), strict=True)]
    reported = [_reported_line(line, people, rows) for line in lines]
    return Curve(method=curve.method, columns={k: tuple(v[k] for v in reported) for k in c}, settings=curve.settings)


def _reported_line(line: Mapping[str, Any], people: float, rows: str) -> dict[str, Any]:
    n = line[rows]
    t = RandomRounding.of(n, n * line["observed"], n * line["predicted"])
    out: dict[str, Any] = {**line, rows: type(n)(t.rows)}
    out |= {k: t.end(line[k], side, k) for k, side in ENDS.items() if line.get(k) is not None}
    gap, predicted = t.observed - t.predicted, t.predicted
    if line.get("low") is not None:
        gap = min(max(gap, out["low"]), out["high"])
    if "x_low" in line:
        predicted = min(max(predicted, line["x_low"]), line["x_high"])
    observed = min(max(predicted + gap, 0.0), 1.0)
    out |= {"predicted": predicted, "observed": observed, "gap": observed - predicted}
    if "x_low" in line:
        out["x"] = predicted
    for share in ("share", "density"):
        if share in line:
            out[share] = min(t.rows / people, 1.0)
    return out


def reported_line(curve: Curve) -> Curve:
    """A smooth curve in steps of a fraction of a person, ends outward."""
    c = dict(curve.columns)
    for k in (k for k in SMOOTH if k in c):
        clusters = [step(FINE * n) for n in c["rows"]]
        c[k] = tuple(v if v is None else stepped(v, u, ENDS.get(k, 0)) for v, u in zip(c[k], clusters, strict=True))
    return Curve(method=curve.method, columns=c, settings=curve.settings)


def stepped(value: float, unit: float, side: int = 0) -> float:
    """A number in whole steps, down or up by `side`, or the nearest."""
    ratio = value / unit
    whole = round(ratio) if side == 0 else math.floor(ratio) if side < 0 else math.ceil(ratio)
    result = round(unit * whole, 12) + 0.0
    return min(result, value) if side < 0 else max(result, value) if side else result


def reported_by_variable(curve: Curve, people: int) -> Curve:
    """A curve along a variable as it is reported: by level, or as a smooth line with levels next to it."""
    c, s = curve.columns, dict(curve.settings)
    level = [stretch < 0 for stretch in c["stretch"]]
    smooth, sets = reported_line(curve), reported_sets(curve, people)
    columns = {k: tuple((sets if own else smooth).columns[k][i] for i, own in enumerate(level)) for k in c}
    if s.get("worst_gap") is not None:
        at = c["label"].index(s["worst_label"]) if s["worst_label"] in c["label"] else None
        own = at is not None and level[at]
        unit = step((1 if own else FINE) * (max(c["rows"]) if at is None else c["rows"][at]))
        s |= {f"worst_{k}": stepped(s[f"worst_{k}"], unit, ENDS.get(k, 0)) for k in ("gap", "low", "high")}
        if at is not None and own:  # the same number as in the level's own line, and in its range
            s["worst_gap"] = columns["gap"][at]
            s["worst_high"] = max(s["worst_high"], abs(columns["gap"][at]))
            s["worst_low"] = min(s["worst_low"], abs(columns["gap"][at]))
    return Curve(method=curve.method, columns=columns, settings=s)


def reported_worst(line: Mapping[str, Any]) -> dict[str, Any]:
    """The worst bin of a variable as it is reported."""
    n, observed, predicted = (line[f"worst_{k}"] for k in ("rows", "observed", "predicted"))
    reported = RandomRounding.of(n, n * observed, n * predicted)
    gap = reported.observed - reported.predicted
    beyond = round(gap + line["worst_beyond_gap"] - line["worst_gap"], 6)
    rates = {"worst_observed": reported.observed, "worst_predicted": reported.predicted, "worst_gap": gap}
    return {**line, **rates, "worst_rows": reported.rows, "worst_beyond_gap": beyond}


def reported_sizes(columns: Mapping[str, Sequence[Any]], people: int) -> dict[str, tuple[Any, ...]]:
    """The sizes of error along each variable in steps of all people, ends outward."""
    there = [k for k in SIZES if k in columns]
    sides = {k: ENDS.get(k.removeprefix("beyond_"), 0) for k in there}
    unit = step(people)
    return {k: tuple(None if v is None else stepped(v, unit, sides[k]) for v in columns[k]) for k in there}


# ---- what a search found ----


def reported_rules(curve: Curve, people: int, mask: int) -> Curve:
    """The rules of people enough, and what was found of each."""
    keep = [i for i, n in enumerate(curve.columns.get("rows", ())) if n >= mask]
    c = {k: tuple(v[i] for i in keep) for k, v in curve.columns.items()}
    rules = tuple(curve.settings["conditions"][i] for i in keep)
    reported = reported_sets(
        Curve(method=curve.method, columns=c, settings={**curve.settings, "conditions": rules}), people
    )
    short: dict[str, tuple[float, ...]] = {
        k: tuple(map(two_digits, c[k])) for k in ("p_value", "p_adjusted", "excess") if k in c
    }
    kept = {"share": tuple(RandomRounding.of(v * people, 0, 0.0).rows / people for v in c.get("share", ()))}
    share = {k: v for k, v in kept.items() if k in c}  # of all people: `rows` are of those judged
    return Curve(method=reported.method, columns={**reported.columns, **short, **share}, settings=reported.settings)


def reported_peak(chart: Curve, mask: int) -> Curve:
    """A control chart without points before so many people, and with its peak as it is reported."""
    s, c = dict(chart.settings), chart.columns
    n, peak, exact = s["rows_tested"], s.get("peak_rows", 0), s.get("peak_share", 0.0)
    if 0 < peak < mask:
        s |= {"peak_observed": None, "peak_predicted": None}
    elif peak:
        reported = RandomRounding.of(peak, peak * s["peak_observed"], peak * s["peak_predicted"])
        s |= {"peak_observed": reported.observed, "peak_predicted": reported.predicted, "peak_rows": reported.rows}
        s["peak_share"] = min(reported.rows / n, 1.0)
    keep = [i for i, x in enumerate(c["x"]) if not 0 < round(x * n) < min(mask, n)]
    if peak >= mask:  # the peak's point moves with it, and those that it passes are left out
        here, (low, high) = s["peak_share"], sorted((exact, s["peak_share"]))
        keep = [i for i in keep if c["x"][i] == exact or not low <= c["x"][i] <= high]
        c = {**c, "x": tuple(here if x == exact else x for x in c["x"])}
    columns = {k: tuple(v[i] for i in keep) for k, v in c.items()}
    columns["evidence"] = tuple(v if v is None else round(v, 3) for v in columns["evidence"])
    return Curve(method=chart.method, columns=columns, settings=s)


def reported_outcome(outcome: Outcome) -> Outcome:
    """A test's outcome with what it says of some of the people as it is reported."""
    p = dict(outcome.parts)
    if "peak_events" in p:
        reported = RandomRounding.of(p["peak_rows"], p["peak_events"], p["peak_expected"])
        p |= {"peak_rows": reported.rows, "peak_events": reported.events, "peak_expected": float(reported.expected)}
        p["peak_share"] = min(reported.rows / p["rows_tested"], 1.0)
    if "region_gap" in p:
        reported = RandomRounding.of(p["region_rows"], p["region_rows"] * p["region_gap"], 0.0)
        gaps = {k: reported.near(p[k], k) for k in ("region_gap", "region_excess") if p.get(k) is not None}
        p |= {"region_rows": reported.rows, **gaps}
        if p.get("region_z") is not None:
            p["region_z"] = round(p["region_z"], 2)
    return replace(outcome, parts=p)
