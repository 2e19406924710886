"""The control chart: evidence added up over people, most suspicious first, as a picture and its readout."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_HALF_UP, Decimal
from typing import Any

from calibrant.audit.record import AuditRecord
from calibrant.report import numbers as num
from calibrant.report.figure import Table
from calibrant.report.searched import spread, strong_test, whole
from calibrant.report.traces import SIZE, Plot, path
from calibrant.report.wording import cardinal

TITLE = "Evidence of error, people sorted most suspicious first"
ACROSS = (0, 25, 50, 75, 100)
TALL = 270  # pixels of the picture
EVERY = 6  # of the points, the one the table shows
STEPS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0)


@dataclass(frozen=True, slots=True)
class Mark:
    """Words inside the picture: where, how they are set, and what they say."""

    x: str
    y: str
    dy: int
    anchor: str
    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Drawn:
    """The columns of a control chart, and the ends of its axis."""

    share: tuple[float, ...]
    score: tuple[float, ...]
    nulls: tuple[tuple[float, ...], ...]
    line: float | None
    low: float
    high: float

    def at(self, x: float, y: float) -> tuple[int, int]:
        """Return a place in the picture."""
        return round(x * SIZE), round((self.high - y) / (self.high - self.low) * SIZE)


def control(record: AuditRecord) -> Mapping[str, Any] | None:
    """Return the picture, the readout and the numbers; None where the record holds no chart."""
    c, s = record.curve("control_chart").columns, record.curve("control_chart").settings
    if not c.get("share"):
        return None
    d = _drawn(c, s)
    marks = _marks(d, s)
    step = next((v for v in STEPS if (d.high - d.low) / v <= 6), (d.high - d.low) / 5)
    ticks = [k * step for k in range(math.ceil(d.low / step), math.floor(d.high / step) + 1)]
    shapes = [("sim", path([d.at(x, y) for x, y in zip(d.share, n, strict=True)])) for n in d.nulls]
    shapes.append(("zero", f"M0 {d.at(0, 0)[1]}h{SIZE}"))
    if d.line is not None:
        shapes.append(("limit", f"M0 {d.at(0, d.line)[1]}h{SIZE}"))
    shapes.append(("curve", path([d.at(x, y) for x, y in zip(d.share, d.score, strict=True)])))
    if s.get("peak_rows"):
        x, y = d.at(float(s["peak_share"]), float(s["peak_score"]))
        shapes.append(("peak", f"M{x} {y}h0"))
    up = tuple((_percent(d.at(0, t)[1]), num.written(Decimal(f"{t:g}"), signed=True)) for t in ticks)
    times = num.confidence(float(s["alpha"]))
    return {
        "title": TITLE,
        "plot": Plot(up, tuple((f"{v}%", f"{v}%") for v in ACROSS), tuple(shapes)),
        "marks": marks,
        "label": _label(record, d),
        "paths": f"{cardinal(len(d.nulls))} repeats in which the model is right",
        "crossed": "" if d.line is None else f"line crossed in {times[0]} of {times[1]} such repeats{_told_by(s)}",
        "caption": _caption(record, d),
        "readouts": _readouts(d, s),
        "start": num.nearest(float(s["peak_share"]), 1),
        "table": _table(d),
    }


def _drawn(c: Mapping[str, Any], s: Mapping[str, Any]) -> Drawn:
    nulls = tuple(tuple(map(float, c[k])) for k in c if k.startswith("null_"))
    share, score = tuple(map(float, c["share"])), tuple(map(float, c["score"]))
    line = None if s.get("line") is None else float(s["line"])
    seen = [0.0, *score, *(v for n in nulls for v in n), *([line] if line is not None else [])]
    low, high = min(seen), max(seen)
    room = max(high - low, 1e-9)
    return Drawn(share, score, nulls, line, low - 0.04 * room, high + 0.1 * room)


def _marks(d: Drawn, s: Mapping[str, Any]) -> tuple[Mark, ...]:
    out = []
    if d.line is not None:
        band = 0.09 * (d.high - d.low)
        ends = [y for x, y in zip(d.share, d.score, strict=True) if x > 0.5]
        over = any(d.line - 0.2 * band < y < d.line + band for y in ends)
        times, of = num.confidence(float(s["alpha"]))
        words = f"line crossed in {times} of {of} repeats"
        if not s.get("peak_rows") or abs(float(s["peak_score"]) - d.line) > 1.3 * band:  # else over the peak's words
            out.append(Mark("100%", _percent(d.at(0, d.line)[1]), 15 if over else -6, "end", "t-lim", words))
    if s.get("peak_rows"):
        share, score = float(s["peak_share"]), float(s["peak_score"])
        x, y = d.at(share, score)
        anchor = "start" if share < 0.25 else "end" if share > 0.75 else "middle"
        words = f"peak {num.written(_two(score))} at {whole(share)}% of people"
        under = 0.0 if d.line is None else (d.line - score) / (d.high - d.low) * TALL
        dy = -9 - round(under) if 0.0 < under < 24.0 else -9  # its words stand above a line that would run through them
        out.append(Mark(_percent(x), _percent(y), dy, anchor, "t-ink", words))
    return tuple(out)


def _two(score: float, rounding: str = ROUND_HALF_UP) -> Any:
    """Return evidence to two decimals, as fine as the picture shows it."""
    return num.cut(Decimal(repr(score)), 2, rounding)


def _label(record: AuditRecord, d: Drawn) -> str:
    crossed = d.line is not None and max(d.score) > d.line
    what = "crosses the line" if crossed else "stays under the line"
    of = f" of {num.written(_two(d.line, ROUND_CEILING))}" if d.line is not None else ""
    return f"{TITLE}. It {what}{of}, and is {num.written(_two(max(d.score)), signed=True)} at most. {spread(record)}".strip()


def _caption(record: AuditRecord, d: Drawn) -> str:
    check, s = strong_test(record), record.curve("control_chart").settings
    tested = f"{num.count(s['rows_tested'])} people"
    unseen = "whom the models had not seen" if s.get("null") == "split" else "each judged by models fitted to others"
    under = ""
    if check is not None and not record.found(check):
        under = " It stays under the dashed line, as for a model that is right."
    if d.line is None:
        under = " There are too few simulations for a line."
    return f"{tested}, {unseen}.{under}{_ending(d, s)}{_repeats(record)} {spread(record)}".strip()


def _ending(d: Drawn, s: Mapping[str, Any]) -> str:
    """Return why the curve ends before the last person; nothing where it does not."""
    end, t = max(d.share), float(s.get("tolerance", 0.0))
    if end > 1.0 - 0.005 or s.get("rows_beyond", s["rows_tested"]) == s["rows_tested"]:
        return ""
    off = f"to be off by no more than the tolerance of {num.limit_points(t)} points" if t else "not to be off"
    return f" The curve ends at {whole(end)}% of people: the others are predicted {off}."


def _told_by(s: Mapping[str, Any]) -> str:
    """Return on how many repeats the line rests, where they are few."""
    return f", as far as {num.count(s['draws'])} can tell" if s.get("null") == "refit" else ""


def _repeats(record: AuditRecord) -> str:
    """Return how often all was fitted anew, and whether that stopped early; nothing where models were held."""
    check, s = strong_test(record), record.curve("control_chart").settings
    if s.get("null") != "refit" or check is None or check.outcome is None:
        return ""
    made, most = int(s["draws"]), int(check.outcome.settings.get("draws", 0))
    early = ", and then no more: enough of them had shown as much evidence" if made < most else ""
    return f" All was fitted anew in {num.count(made)} repeats{early}."


def _readouts(d: Drawn, s: Mapping[str, Any]) -> dict[str, Any]:
    """Return each point as cells, and the sentence they are told in."""
    times, of = num.confidence(1 - float(s["alpha"]))
    under = (
        ""
        if d.line is None
        else f"; a model that is right stays under {num.written(_two(d.line, ROUND_CEILING))} in {times} of {of} repeats"
    )
    told = "After the {0}% most suspicious people: evidence {1}" + under + "."
    cells = [
        (whole(x), num.written(_two(y), signed=True), "", "", "", 0) for x, y in zip(d.share, d.score, strict=True)
    ]
    return {"x": [round(100 * x, 1) for x in d.share], "n": "", "f": [told], "v": cells}


def _table(d: Drawn) -> Table:
    some = list(zip(d.share, d.score, strict=True))[::EVERY]
    rows = tuple((whole(x), num.written(_two(y), signed=True)) for x, y in some)
    return Table("The line, at some of its points.", ("Most suspicious people, %", "Evidence"), rows)


def _percent(place: int) -> str:
    return f"{place / 10:g}%"
