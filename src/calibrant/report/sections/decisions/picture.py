"""The decision curve as the page draws it, and its numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence

from calibrant.report import numbers as num
from calibrant.report import svg
from calibrant.report.document import Table, number_table
from calibrant.report.places import percent, signed
from calibrant.results import Curve

BELOW = 0.25  # of the height above zero: acting on everyone soon loses more than any picture holds
MANY = 20  # lines of the table


def drawn(curve: Curve, thresholds: Sequence[float], label: str) -> svg.Svg:
    """Return net benefit in its band over the thresholds, with acting on everyone, cut where it leaves."""
    c = curve.columns
    top = max(max(c["high"]), max(c["treat_all"]), 0.01) * 1.05
    low = min(max(min(c["low"]), -top), -BELOW * top)

    def at(x: float, y: float) -> svg.At:
        return round(x * svg.SIZE), round((top - max(low, min(top, y))) / (top - low) * svg.SIZE)

    lines = {k: [at(x, y) for x, y in zip(c["threshold"], c[k], strict=True)] for k in ("low", "high", "net_benefit")}
    everyone = [at(x, y) for x, y in zip(c["threshold"], c["treat_all"], strict=True) if y >= low]
    shapes = [("band", svg.area(lines["low"], lines["high"])), ("zero", f"M0 {at(0, 0)[1]}h{svg.SIZE}")]
    shapes += [("limit", f"M{at(t, 0)[0]} 0v{svg.SIZE}") for t in dict.fromkeys(thresholds)]
    shapes += [("says", svg.path(everyone)), ("curve", svg.path(lines["net_benefit"]))]
    step = next((v for v in (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0) if (top - low) / v <= 6), (top - low) / 5)
    up = tuple(
        (percent(at(0, k * step)[1] / svg.SIZE), signed(round(100 * k * step, 6)))
        for k in range(math.ceil(low / step), math.floor(top / step) + 1)
    )
    across = tuple((f"{v}%", f"{v}%") for v in (0, 25, 50, 75, 100))
    return svg.plot(svg.Plot(up, across, tuple(s for s in shapes if s[1])), label, "", "")


def numbers(curve: Curve) -> Table:
    """Return some points of the curve as a table."""
    c = curve.columns
    heads = ("Threshold", "Net benefit per 100", "Its band", "Acting on everyone", "Gain over that, band")
    rows = []
    for i in range(0, len(c["threshold"]), max(1, len(c["threshold"]) // MANY)):
        band = " to ".join(num.signed_range(c["low"][i], c["high"][i]))
        gain = " to ".join(num.signed_range(c["over_all_low"][i], c["over_all_high"][i]))
        worth = (num.gap(c["net_benefit"][i]), band, num.gap(c["treat_all"][i]), gain)
        rows.append((f"{round(100 * c['threshold'][i], 6):g}%", *worth))
    level = num.percent(float(curve.settings["level"]))
    return number_table(f"Bands hold at all thresholds at once, {level}%, {kind(curve)}.", heads, rows)


def kind(curve: Curve) -> str:
    """Return what the bands of a curve are: certified of few clusters, else approximate; an audit's settings say it."""
    reported = set(curve.columns.get("guarantee", (curve.settings.get("guarantee"),)))
    if len(reported) > 1:
        return "certified where there are few clusters, else approximate"
    return "certified" if reported == {"finite-sample"} else "approximate"
