"""The smoothed reliability curve on the page: a line in its band, and what it finds, in numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from calibrant.report.charts import BAND, LINE, WIDE, Frame, Window, draw, ground, places, reach
from calibrant.report.charts import points as bins_of
from calibrant.report.order import side
from calibrant.results import Curve


@dataclass(frozen=True, slots=True)
class Stretch:
    """Neighbouring points of a curve where the model is shown to be off to one side; scores are fractions."""

    side: str
    low: float
    high: float


def rows(curve: Curve) -> list[dict[str, float]]:
    """Return the points of a smoothed curve in points of probability, ready to draw."""
    c = curve.columns
    keys = ("score", "predicted", "observed", "gap", "gap_low", "gap_high")
    out = [{k: v * 100 for k, v in zip(keys, row, strict=True)} for row in zip(*(c[k] for k in keys), strict=True)]
    for r, stretch in zip(out, c["stretch"], strict=True):
        r["stretch"] = float(stretch)
    return out


def stretches(curve: Curve, along: str = "score") -> list[Stretch]:
    """Return where the simultaneous band excludes zero, from low values of a column to high."""
    c = curve.columns
    out: list[Stretch] = []
    before: tuple[str, int] | None = None
    for at, low, high, run in zip(c[along], c["gap_low"], c["gap_high"], c["stretch"], strict=True):
        here = (side(low, high), int(run))
        if here[0] != "unclear":
            start = out.pop().low if here == before else float(at)
            out.append(Stretch(here[0], start, float(at)))
        before = here
    return out


def top_of(curve: Curve, limit: float | None, across: Window) -> float:
    """Return where the axis of gaps ends."""
    return reach(rows(curve), limit, across)


def cut_off(curve: Curve, limit: float | None, across: Window) -> bool:
    """Tell whether the band goes on beyond the axis."""
    top = top_of(curve, limit, across)
    return any(r["gap_low"] < -top or r["gap_high"] > top for r in rows(curve))


def smoothed(curve: Curve, bins: Curve, limit: float | None, across: Window, frame: Frame = WIDE) -> str:
    """Return the smoothed gap as a line in its simultaneous band, over where the people are.

    Parameters
    ----------
    curve : Curve
        A record's ``curve``.
    bins : Curve
        A record's ``reliability``, for the strip of people.
    limit : float or None
        Drawn as a zone around zero, for scale.
    across : (float, float)
        The part of the axis of scores, in points.
    frame : Frame

    Returns
    -------
    str
        SVG markup.
    """
    import altair as alt

    drawn = rows(curve)
    top = reach(drawn, limit, across)
    for r in drawn:
        r["a"], r["b"], r["g"] = (max(-top, min(top, r[k])) for k in ("gap_low", "gap_high", "gap"))
    axes = places(alt, top, across, frame)
    x, y = axes
    base = alt.Chart(alt.InlineData(values=drawn))
    band = base.mark_area(color=BAND, opacity=1).encode(x=x("score"), y=y("a"), y2="b:Q", detail="stretch:N")
    line = base.mark_line(color=LINE, strokeWidth=2).encode(x=x("score"), y=y("g"), detail="stretch:N")
    layers = [*ground(alt, bins_of(bins), top, limit, across, axes), band, line, *_alone(alt, drawn, axes)]
    return draw(alt.layer(*layers), frame)


def _alone(alt: Any, drawn: list[dict[str, float]], axes: tuple[Any, Any]) -> list[Any]:
    """Return a dot and a range for each point with no neighbour, which no line can show."""
    numbers = [r["stretch"] for r in drawn]
    alone = [r for r in drawn if numbers.count(r["stretch"]) == 1]
    if not alone:
        return []
    x, y = axes
    base = alt.Chart(alt.InlineData(values=alone))
    return [
        base.mark_rule(color=LINE, strokeWidth=1.75, opacity=0.75).encode(x=x("score"), y=y("a"), y2="b:Q"),
        base.mark_point(filled=True, size=38, color=LINE, opacity=1).encode(x=x("score"), y=y("g")),
    ]
