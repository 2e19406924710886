"""How a number is written: bounds rounded outward, signs, thousands, whole people."""

from __future__ import annotations

import math
from collections.abc import Iterable
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_UP, Context, Decimal
from typing import Any

from calibrant.audit.record import Finding
from calibrant.audit.rounding import CLEAR as CLEAR
from calibrant.results import Estimate

MINUS = "\u2212"
DENOMINATORS = (100, 1_000, 10_000)
MANY_ROWS = 2_000_000
FIVE = 5  # people by which a count to publish may be off: see audit/rounding.py
NO_GAP = "–"
WIDE = Context(prec=800)  # every digit of any float


def exact(probability: float) -> Decimal:
    """A probability in points, exactly as the JSON writes it."""
    return Decimal(repr(float(probability))) * 100


def cut(points: Decimal, digits: int, rounding: str) -> Decimal:
    """Round to `digits` decimals in the direction given."""
    return points.quantize(Decimal(1).scaleb(-digits), rounding=rounding, context=WIDE)


def written(points: Decimal, *, signed: bool = False) -> str:
    """Write points with a true minus; `signed` puts a plus before what is positive."""
    size = f"{points.copy_abs():f}"
    if not points:
        return size
    return (MINUS if points < 0 else "+" if signed else "") + size


def decimals_of(limit: float | None) -> int:
    """The decimals of every bound next to a limit: as many as the limit has, and at least one."""
    exponent = 0 if limit is None else exact(limit).normalize(WIDE).as_tuple().exponent
    return max(1, -exponent if isinstance(exponent, int) else 1)


def lower_bound(probability: float, limit: float | None = None, digits: int = 1) -> str:
    """Write a lower bound, a fraction, in points: rounded down, with the decimals of the limit, `digits` or more.

    What is over the limit is never written as under it: the limit is one of the values that can be written.
    """
    return written(cut(exact(probability), max(decimals_of(limit), digits), ROUND_FLOOR))


def upper_bound(probability: float, limit: float | None = None) -> str:
    """Write an upper bound, a fraction, in points: rounded up, with the decimals of the limit, true to it."""
    return written(cut(exact(probability), decimals_of(limit), ROUND_CEILING))


def bounds(low: float, high: float, limit: float | None = None) -> tuple[str, str]:
    """Write both certified ends, fractions, in points: rounded outward, true to the limit."""
    return lower_bound(low, limit), upper_bound(high, limit)


def span(low: float, high: float, limit: float | None = None) -> str:
    """The same as a range in a table."""
    return between(*bounds(low, high, limit))


def ends(low: float, high: float, limit: float | None = None) -> str:
    """The same; where they cross they are about two scores, and it says which."""
    least, most = bounds(low, high, limit)
    return between(least, most) if low <= high else f"raw at least {least}, rounded at most {most}"


def between(low: str, high: str) -> str:
    """Write a range in a table: with an en dash, or with "to" where a number has a sign."""
    signed = any(text.startswith((MINUS, "+", "-")) for text in (low, high))
    return f"{low} to {high}" if signed else f"{low}–{high}"


def signed_range(low: float, high: float, digits: int = 1) -> tuple[str, str]:
    """Write a range of gaps, rounded outward; one that excludes zero is written so that it still does."""
    while True:
        a, b = cut(exact(low), digits, ROUND_FLOOR), cut(exact(high), digits, ROUND_CEILING)
        if (low > 0 and a == 0) or (high < 0 and b == 0):
            digits += 1
            continue
        return written(a, signed=True), written(b, signed=True)


def nearest(probability: float, digits: int = 1) -> str:
    """Write an estimate in points, or a rate in 100, rounded to the nearest."""
    return written(cut(exact(probability), digits, ROUND_HALF_UP))


def gap(probability: float, digits: int = 1) -> str:
    """Write a gap in points with its sign."""
    return written(cut(exact(probability), digits, ROUND_HALF_UP), signed=True)


def rates(predicted: float, observed: float, least: int = 1) -> tuple[str, str]:
    """Write two rates in 100, with enough digits, `least` or more, that rates which differ look different.

    One digit more where their difference, as written, would not be that of the two.
    """
    gap = nearest(observed - predicted, least)
    for digits in range(least, 9):
        a, b = nearest(predicted, digits), nearest(observed, digits)
        agree = digits > least or nearest((float(b) - float(a)) / 100.0, least) == gap
        if agree and (a != b or predicted == observed):
            return a, b
    return nearest(predicted, least), nearest(observed, least)


def reported_rate(rate: float, rows: float, digits: int = 1) -> str:
    """Write a rate in 100: of people in multiples of five its range where they are few; 0 is fewer than five of them.

    `rows` is the people in multiples of five; 0 where the rate is exact, or a point of a smooth line.
    """
    if 0 < rows < CLEAR:
        low, high = rounded_range(rate * rows, rows)
        return f"{_whole(100 * low)} to {_whole(100 * high)}"
    if rate or not rows:
        return nearest(rate, digits)
    return f"under {written(cut(exact(min(FIVE / rows, 1.0)), digits, ROUND_CEILING))}"


def rounded_range(people: float, rows: float) -> tuple[float, float]:
    """The least and the largest share that so many of `rows` can be, both in multiples of five."""
    return max(people - FIVE, 0.0) / (rows + FIVE), min((people + FIVE) / max(rows - FIVE, 1.0), 1.0)


def reported_gap(value: float, rows: float, digits: int = 1) -> str:
    """Write a gap in points; of few people in multiples of five (`rows` as in `reported_rate`) its range alone says."""
    return NO_GAP if 0 < rows < CLEAR else gap(value, digits)


def reported_of_every(rows: int, people: float, d: int) -> str:
    """Write how many of every `d` people so many of `rows` are, both in multiples of five: 0 is fewer than five."""
    if rows < CLEAR:
        low, high = rounded_range(people, rows)
        return f"{count(_whole(low * d))} to {count(_whole(high * d))}"
    return count(_whole(people * d / rows)) if people else f"under {count(math.ceil(min(FIVE / rows, 1.0) * d))}"


def limit_points(limit: float) -> str:
    """Write the limit in points: every digit it was given with, and at least one decimal."""
    return written(cut(exact(limit), decimals_of(limit), ROUND_HALF_UP))


def count(n: float) -> str:
    """Write a whole number with commas between thousands."""
    return f"{round(n):,}".replace("-", MINUS)


def rows_needed(n: int) -> str:
    """Write the rows that would decide: two digits, rounded up, then "over 2 million"."""
    if n >= MANY_ROWS:
        return f"over {MANY_ROWS // 10**6} million"
    step = 10 ** max(0, len(str(n)) - 2)
    up = -(-n // step) * step
    return count(up) if up < MANY_ROWS else f"over {MANY_ROWS // 10**6} million"


def amount(n: int, at_least: bool) -> str:
    """Write rows that would decide, with how surely they are known: "about 940,000", "at least 2,200"."""
    written_n = rows_needed(n)
    return written_n if written_n.startswith("over") else f"{'at least' if at_least else 'about'} {written_n}"


def denominator(findings: Iterable[Finding]) -> int:
    """The one D of a page, "of every D people", for the findings it reports.

    The least of 100, 1,000 and 10,000 at which rounding to whole people changes no difference between
    what happened and what was expected by over a tenth.
    """
    reported = list(findings)
    return next((d for d in DENOMINATORS if all(_fair(f, d) for f in reported)), DENOMINATORS[-1])


def _fair(finding: Finding, d: int) -> bool:
    true = finding.gap.value * d
    expected, happened = of_every(finding, d)
    return abs(happened - expected - true) <= 0.1 * abs(true) + 1e-12


def of_every(finding: Finding, d: int) -> tuple[int, int]:
    """How many of every `d` people the model expects, and how many there were."""
    return _whole(finding.expected * d / finding.rows), _whole(finding.events * d / finding.rows)


def _whole(x: float) -> int:
    return math.floor(x + 0.5)


def confidence(level: float) -> tuple[str, str]:
    """A level as "95 of 100" people would say it: the number of audits, of how many."""
    share = Decimal(repr(round(float(level), 6)))
    for of in (*DENOMINATORS, 100_000):
        if share * of == (share * of).to_integral_value():
            return count(int(share * of)), count(of)
    return f"{share * 100:f}", "100"


def percent(share: float) -> str:
    """Write a level as a percentage without needless digits, such as "95" or "99.9"."""
    text = f"{Decimal(repr(round(float(share), 6))) * 100:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def in_percent(share: float) -> str:
    """Write a share in percent with three digits, such as "12.5"."""
    return f"{100 * share:.3g}"


def step(steps: int) -> str:
    """Write the step between the scores shown: "2%" for 50 levels, "1/64" where no short decimal does."""
    points = Decimal(100) / Decimal(int(steps))
    short = points.quantize(Decimal("0.01")).normalize()
    return f"{short:f}%" if short == points else f"1/{int(steps)}"


def p_value(p: float, *, draws: int | None = None) -> str:
    """Write a p-value to two digits; at the floor of a simulation of so many `draws`, say so."""
    if draws is None and p < 0.001:
        return "p < 0.001"
    magnitude = math.floor(math.log10(p)) if p > 0 else -2
    two = Decimal(repr(float(p))).quantize(Decimal(1).scaleb(magnitude - 1), rounding=ROUND_HALF_UP)
    if draws is not None and p <= 1 / (draws + 1):
        return f"p = {two.normalize():f}, the smallest that {count(draws)} simulations can show"
    return f"p = {two:f}"


def interval(estimate: Estimate | None) -> str:
    """Write the interval of an estimate, with its value where it is no probability; nothing where there is none."""
    if estimate is None:
        return ""
    low, high = float(estimate.interval.low), float(estimate.interval.high)
    if estimate.unit == "probability":
        return f"{' to '.join(bounds(low, high))} points"
    return f"{float(estimate.value):.4g} ({low:.4g} to {high:.4g})"


def decimals(value: Any, digits: int) -> str:
    """Write a reference number with fixed decimals; infinity by name."""
    x = float(value)
    if not math.isfinite(x):
        return "not finite" if math.isnan(x) else "infinite" if x > 0 else f"{MINUS}infinite"
    return f"{x:.{digits}f}".replace("-", MINUS)
