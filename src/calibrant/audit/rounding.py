"""What a record reports about some of the people: exact, or, in a record to publish, rounded.

`Sums` reports a set of people as it is. `RandomRounding` is for records that others will read and compare. Groups cut
at 40 in one audit and at 41 in the next differ by those who are 40. Were it one person, the difference of exact sums
would be that person's outcome and score. So numbers of people become multiples of five, up or down by chance
(Statistics New Zealand's random rounding), rates follow from those, and certified ends move outward to a step of two to
five people, by chance too: at a fixed rounding a number that just passes a boundary would tell on which side it was.

Chance is drawn from the exact sums themselves, which a reader of the record does not have: the same people are rounded
alike wherever they appear and however often they are audited, so that repeating an audit averages nothing out. Who
knows two of the three sums of a group can try out the third, and fewer values are left than true chance would leave.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from calibrant.results import Curve, Estimate, Interval, Layered, Outcome

MULTIPLE = 5  # people: a count is reported as a multiple of it
CLEAR = 200  # people from which on a rate of counts to publish says more than their rounding
FEW = 2  # people that a step of a rate is worth at least; the next round number is at most five
ENDS = {"low": -1, "high": 1, "low_point": -1, "high_point": 1, "observed_low": -1, "observed_high": 1}
FINE = 10  # the steps of a smooth line are so much finer: no point of it is about a set of people
SIZES = ("vece", "vece_plain", "beyond_gap", "beyond_gap_plain", "low", "high", "beyond_low", "beyond_high")
DENSITIES = "density_events", "density_nonevents"
SMOOTH = ("predicted", "observed", "gap", *ENDS)


def few(people: Iterable[float], mask: int) -> bool:
    """Whether some of these people, counted apart, such as those inside and those outside, are few, and not none."""
    return any(0 < n < mask for n in people)


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
class Sums:
    """What is reported of a set of people: its sums as they are."""

    exact: tuple[int, int, float]  # people, events and the sum of their scores
    share_of: float = 0.0  # people that ends are a share of; none: of these
    published = False

    @classmethod
    def of(cls, people: float, events: float, expected: float) -> Self:
        """Describe a set of people by its exact sums."""
        return cls((round(people), round(events), float(expected)))

    @staticmethod
    def step(_people: float) -> float:
        """The steps in which a share of so many people is reported; 0 for none."""
        return 0.0

    @property
    def rows(self) -> int:
        """People."""
        return self.exact[0]

    @property
    def events(self) -> int:
        """Events."""
        return self.exact[1]

    @property
    def expected(self) -> float:
        """Expected events."""
        return self.exact[2]

    @property
    def observed(self) -> float:
        """Share of events."""
        return self.events / self.rows

    @property
    def predicted(self) -> float:
        """Mean score."""
        return self.expected / self.rows

    @property
    def error_rises(self) -> bool:
        """Whether one event more makes the error larger."""
        return self.exact[1] >= self.exact[2]

    # `rises`: whether one event more makes a number larger, by which its draw is chosen: see `RandomRounding`.

    def end(self, value: float, _side: int, _least: float = -1.0, _most: float = 1.0, *, rises: bool = True) -> float:  # noqa: ARG002
        """A certified end."""
        return value

    def over(self, limit: float, *, rises: bool = True) -> float:  # noqa: ARG002
        """What an end from below must be above for its end as reported to be over a limit."""
        return limit

    def within(self, limit: float, *, rises: bool = True) -> float:  # noqa: ARG002
        """The most that an end from above may be for its end as reported to be within a limit."""
        return limit

    def relative(self, limit: float | None) -> float | None:
        """A limit that is a share of the mean score of these people."""
        return limit

    @staticmethod
    def p_value(p: float) -> float:
        """A p-value."""
        return two_digits(p)

    def near(self, value: float, _about: str = "cases", *, rises: bool = True) -> float:  # noqa: ARG002
        """A number that is not certified."""
        return value

    def estimate(self, estimate: Estimate) -> Estimate:
        """A certificate."""
        return replace(estimate, n=self.rows)

    def gap(self, estimate: Estimate) -> Estimate:
        """A signed gap, certified."""
        return replace(estimate, n=self.rows)


@dataclass(frozen=True)
class RandomRounding(Sums):
    """What a record to publish reports of a set of people.

    One draw moves all of its numbers that tell events, in the same direction: a number that one event more makes larger
    is rounded up where the draw is large, one that it makes smaller is rounded down. By draws of their own, or in
    directions of their own, the mean of several numbers would tell more than one of them does.
    """

    published = True

    @classmethod
    def of(cls, people: float, events: float, expected: float) -> Self:
        """Describe a set of people by its exact sums, that of the scores to a thousandth."""
        return cls((round(people), round(events), float(round(expected, 3))))  # NumPy's floats are written otherwise

    step = staticmethod(step)  # type: ignore[assignment]  # the same, by another name of its argument

    def _count(self, value: float, draw: float) -> int:
        return MULTIPLE * math.floor(value / MULTIPLE + draw)

    @property
    def rows(self) -> int:
        """People, a multiple of five."""
        return max(self._count(self.exact[0], chance("rows", self.exact)), MULTIPLE)  # may be known: its own draw

    @property
    def events(self) -> int:
        """Events, a multiple of five; none if there are none."""
        return min(self._count(self.exact[1], self._draw(1)), self.rows)

    @property
    def expected(self) -> int:
        """Expected events, a multiple of five, moved by the draw of the events, so that the two can be compared."""
        return min(self._count(self.exact[2], self._draw(1)), self.rows)

    def _draw(self, side: int, about: str = "cases") -> float:
        """By how much of a step what rises with events is moved, up or down."""
        draw = chance(about, self.exact)
        return draw if side > 0 else 1.0 - draw

    def end(self, value: float, side: int, least: float = -1.0, most: float = 1.0, *, rises: bool = True) -> float:
        """Move an end outward (`side` -1 down, 1 up) by up to two steps; one that says nothing stays."""
        if not least < value < most:
            return value
        u, draw = step(self.share_of or self.exact[0]), self._draw(side if rises else -side)
        moved = side * u * math.ceil(side * value / u + draw)
        moved = round(moved, 12) + 0.0  # no -0.0, which would be written so
        return min(max(moved, least), value) if side < 0 else max(min(moved, most), value)

    def over(self, limit: float, *, rises: bool = True) -> float:
        """The least that an end from below must be for its end as reported to be over a limit.

        With the step u and the draw d it is reported as ``u floor(low / u - d)``. That is above the limit if and only
        if ``floor(low / u - d) >= floor(limit / u) + 1``, so if ``low >= u (floor(limit / u) + 1 + d)``.
        """
        return step(self.exact[0]) * (self._steps(limit) + 1 + self._draw(-1 if rises else 1))

    def within(self, limit: float, *, rises: bool = True) -> float:
        """The most that an end from above may be for its end as reported to be within a limit.

        It is reported as ``u ceil(high / u + d)``, at most the limit if and only if ``high <= u (floor(limit / u) -
        d)``.
        """
        return step(self.exact[0]) * (self._steps(limit) - self._draw(1 if rises else -1))

    def relative(self, limit: float | None) -> float | None:
        """A limit that is a share of the mean score, down to a step; none where it is less than one.

        With more digits it would be the mean score. Verdicts read no more of it: see `over` and `within`.
        """
        return None if limit is None else round(step(self.exact[0]) * self._steps(limit), 12) or None

    @staticmethod
    def p_value(p: float) -> float:
        """A p-value up to a power of ten: next to the numbers of people more digits would tell events."""
        return 10.0 ** math.ceil(math.log10(max(p, 1e-12)) - 1e-9)

    def _steps(self, limit: float) -> int:
        """How many whole steps, as ends are written, are at most a limit."""
        u = step(self.exact[0])
        most = math.floor(limit / u + 1e-9)
        return most if round(u * most, 12) <= limit else most - 1

    def near(self, value: float, about: str = "cases", *, rises: bool = True) -> float:
        """Round a number to a step, up or down by chance; one that is not about events has a draw of its own."""
        u = step(self.exact[0])
        return round(u * math.floor(value / u + self._draw(1 if rises else -1, about)), 12) + 0.0

    def estimate(self, estimate: Estimate) -> Estimate:
        """A certificate with ends moved outward; it holds all the more."""
        of, rises = estimate.interval, self.error_rises
        low, high = self.end(of.low, -1, 0.0, rises=rises), self.end(of.high, 1, 0.0, rises=rises)
        value = low if estimate.value == of.low else min(max(self.near(estimate.value, rises=rises), low), high)
        return replace(estimate, n=self.rows, value=value, interval=replace(of, low=low, high=high))

    def gap(self, estimate: Estimate) -> Estimate:
        """A signed gap as its counts tell it, ends moved outward."""
        of = estimate.interval
        low, high = self.end(of.low, -1), self.end(of.high, 1)
        value = min(max(self.observed - self.predicted, low), high)
        return replace(estimate, n=self.rows, value=value, interval=replace(of, low=low, high=high))


def reported_layer(
    layer: Layered, reported: Sums, least: float = -1.0, most: float = 1.0, *, rises: bool = True
) -> Layered:
    """A number of a group in two layers, the ends of its ordinary interval moved outward.

    Certified ends of an error and a gap are reported already; those of a ratio, which may exceed one, are moved here.
    """

    def moved(of: Interval | None) -> Interval | None:
        if of is None:
            return None
        low, high = (reported.end(v, side, least, most, rises=rises) for v, side in ((of.low, -1), (of.high, 1)))
        return replace(of, low=low, high=high)

    interval = moved(layer.interval)
    guaranteed = moved(layer.guaranteed) if most > 1.0 else layer.guaranteed
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


def reported_sets(curve: Curve, people: float, sums: type[Sums]) -> Curve:
    """A curve each of whose lines is about a set of people: bins, levels, rules."""
    c = dict(curve.columns)
    if not sums.published or not c or not len(c["rows"]):
        return curve
    lines = [dict(zip(c, line, strict=True)) for line in zip(*c.values(), strict=True)]
    reported = [_reported_line(line, people) for line in lines]
    return Curve(method=curve.method, columns={k: tuple(v[k] for v in reported) for k in c}, settings=curve.settings)


def _reported_line(line: Mapping[str, Any], people: float) -> dict[str, Any]:
    n = line["rows"]
    t = RandomRounding.of(n, n * line["observed"], n * line["predicted"])
    out: dict[str, Any] = {**line, "rows": type(n)(t.rows)}
    out |= {k: t.end(line[k], side) for k, side in ENDS.items() if line.get(k) is not None}
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
    """A smooth curve in steps of a fraction of a person, ends outward, in every record.

    Its points are weighted means of the same labels: with all their digits they would be equations for each of them.
    """
    c = dict(curve.columns)
    for k in (k for k in SMOOTH if k in c):
        clusters = [step(FINE * n) for n in c["rows"]]
        c[k] = tuple(v if v is None else stepped(v, u, ENDS.get(k, 0)) for v, u in zip(c[k], clusters, strict=True))
    c |= {k: tuple(float(f"{v:.3g}") for v in c[k]) for k in DENSITIES if k in c}
    return Curve(method=curve.method, columns=c, settings=curve.settings)


def stepped(value: float, unit: float, side: int = 0) -> float:
    """A number in whole steps, down or up by `side`, or the nearest; as it is where the step is 0."""
    if not unit:
        return value
    ratio = value / unit
    whole = round(ratio) if side == 0 else math.floor(ratio) if side < 0 else math.ceil(ratio)
    result = round(unit * whole, 12) + 0.0
    return min(result, value) if side < 0 else max(result, value) if side else result


def reported_by_variable(curve: Curve, people: int, sums: type[Sums]) -> Curve:
    """A curve along a variable as it is reported: by level, or as a smooth line with levels next to it."""
    c, s = curve.columns, dict(curve.settings)
    level = [stretch < 0 for stretch in c["stretch"]]
    smooth, sets = reported_line(curve), reported_sets(curve, people, sums)
    columns = {k: tuple((sets if own else smooth).columns[k][i] for i, own in enumerate(level)) for k in c}
    if s.get("worst_gap") is not None:
        at = c["label"].index(s["worst_label"]) if s["worst_label"] in c["label"] else None
        own = at is not None and level[at]
        most = max(c["rows"]) if at is None else c["rows"][at]
        unit = sums.step(most) if own else step(FINE * most)
        s |= {f"worst_{k}": stepped(s[f"worst_{k}"], unit, ENDS.get(k, 0)) for k in ("gap", "low", "high")}
        if at is not None and own and sums.published:  # the same number as in the level's own line, and in its range
            s["worst_gap"] = columns["gap"][at]
            s["worst_high"] = max(s["worst_high"], abs(columns["gap"][at]))
            s["worst_low"] = min(s["worst_low"], abs(columns["gap"][at]))
    return Curve(method=curve.method, columns=columns, settings=s)


def reported_worst(line: Mapping[str, Any], sums: type[Sums]) -> dict[str, Any]:
    """The worst bin of a variable as it is reported."""
    if not sums.published:
        return dict(line)
    n, observed, predicted = (line[f"worst_{k}"] for k in ("rows", "observed", "predicted"))
    reported = RandomRounding.of(n, n * observed, n * predicted)
    gap = reported.observed - reported.predicted
    beyond = round(gap + line["worst_beyond_gap"] - line["worst_gap"], 6)
    rates = {"worst_observed": reported.observed, "worst_predicted": reported.predicted, "worst_gap": gap}
    return {**line, **rates, "worst_rows": reported.rows, "worst_beyond_gap": beyond}


def reported_sizes(columns: Mapping[str, Sequence[Any]], people: int, sums: type[Sums]) -> dict[str, tuple[Any, ...]]:
    """The sizes of error along each variable in steps of all people, ends outward."""
    there = [k for k in SIZES if k in columns]
    sides = {k: ENDS.get(k.removeprefix("beyond_"), 0) for k in there}
    unit = sums.step(people)
    return {k: tuple(None if v is None else stepped(v, unit, sides[k]) for v in columns[k]) for k in there}


# ---- what a search found ----


def reported_rules(curve: Curve, people: int, mask: int, sums: type[Sums]) -> Curve:
    """The rules of people enough that leave people enough, and what was found of each."""
    settings = dict(curve.settings)
    rows, judged = curve.columns.get("rows", ()), settings.get("rows_judged", math.inf)
    sides = settings.pop("people", None) or tuple((n, judged - n) for n in rows)
    keep = [i for i, own in enumerate(sides) if not few(own, mask)]
    c = {k: tuple(v[i] for i in keep) for k, v in curve.columns.items()}
    rules = tuple(settings["conditions"][i] for i in keep)
    kept = Curve(method=curve.method, columns=c, settings={**settings, "conditions": rules})
    if not sums.published:
        return kept
    reported = reported_sets(kept, people, sums)
    short: dict[str, tuple[float, ...]] = {
        k: tuple(map(two_digits, c[k])) for k in ("p_value", "p_adjusted", "excess") if k in c
    }
    shares = {"share": tuple(RandomRounding.of(v * people, 0, 0.0).rows / people for v in c.get("share", ()))}
    share = {k: v for k, v in shares.items() if k in c}  # of all people: `rows` are of those judged
    return Curve(method=reported.method, columns={**reported.columns, **short, **share}, settings=reported.settings)


def reported_peak(chart: Curve, mask: int, sums: type[Sums]) -> Curve:
    """A control chart without points before so many people, and with its peak as it is reported."""
    s, c = dict(chart.settings), chart.columns
    n, peak, exact = s["rows_tested"], s.get("peak_rows", 0), s.get("peak_share", 0.0)
    before = s.pop("people", None) or [round(x * n) for x in c["x"]]  # with clusters a point is of those up to it
    hidden = few((peak, n - peak, *s.pop("peak_clusters", ())), mask)
    if peak and hidden:
        s |= {"peak_observed": None, "peak_predicted": None}
    elif peak and sums.published:
        reported = RandomRounding.of(peak, peak * s["peak_observed"], peak * s["peak_predicted"])
        s |= {"peak_observed": reported.observed, "peak_predicted": reported.predicted, "peak_rows": reported.rows}
        s["peak_share"] = min(reported.rows / n, 1.0)
    keep = [i for i, people in enumerate(before) if not few((people,), min(mask, n))]
    if peak and not hidden and sums.published:  # the peak's point moves with it, and those that it passes are left out
        here, (low, high) = s["peak_share"], sorted((exact, s["peak_share"]))
        keep = [i for i in keep if c["x"][i] == exact or not low <= c["x"][i] <= high]
        c = {**c, "x": tuple(here if x == exact else x for x in c["x"])}
    columns = {k: tuple(v[i] for i in keep) for k, v in c.items()}
    columns["evidence"] = tuple(v if v is None else round(v, 3) for v in columns["evidence"])
    return Curve(method=chart.method, columns=columns, settings=s)


REGION_GAPS = "region_gap", "region_excess", "region_over_gap", "region_under_gap"


def reported_outcome(outcome: Outcome, sums: type[Sums]) -> Outcome:
    """A test's outcome with what it says of some of the people as it is reported."""
    if not sums.published:
        return outcome
    p = dict(outcome.parts)
    if "peak_over_gap" in p:  # of classes
        every = RandomRounding.of(p["peak_rows"], p["peak_rows"] * p["peak_over_gap"], 0.0)
        p |= {k: every.near(p[k]) for k in ("peak_over_gap", "peak_under_gap")}
    if "peak_events" in p:
        reported = RandomRounding.of(p["peak_rows"], p["peak_events"], p["peak_expected"])
        p |= {"peak_rows": reported.rows, "peak_events": reported.events, "peak_expected": float(reported.expected)}
        p["peak_share"] = min(reported.rows / p["rows_tested"], 1.0)
    if "over_gap" in p:  # of all rows
        every = RandomRounding.of(outcome.settings["n"], outcome.settings["n"] * p["over_gap"], 0.0)
        p |= {k: every.near(p[k]) for k in ("over_gap", "under_gap")}
    if "region_gap" in p:
        reported = RandomRounding.of(p["region_rows"], p["region_rows"] * p["region_gap"], 0.0)
        gaps = {k: reported.near(p[k]) for k in REGION_GAPS if p.get(k) is not None}
        p |= {"region_rows": reported.rows, **gaps}
        if p.get("region_z") is not None:
            p["region_z"] = round(p["region_z"], 2)
    return replace(outcome, parts=p)
