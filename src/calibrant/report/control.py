"""The control chart: evidence added up over people, most suspicious first, as a picture and its readout."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import ROUND_CEILING, ROUND_HALF_UP, Decimal
from typing import Any

from calibrant.audit.record import AuditRecord
from calibrant.report import numbers as num
from calibrant.report import svg
from calibrant.report.figure import Table
from calibrant.report.searched import spread, strong_test, whole
from calibrant.report.wording import cardinal

TITLE = "Evidence of error, people sorted most suspicious first"
EVERY = 6  # of the points, the one the table shows
At = tuple[float, float]  # share of people, evidence


def control(record: AuditRecord) -> Mapping[str, Any] | None:
    """Return the picture, the readout and the numbers; None where the record holds no chart."""
    curve = record.curve("control_chart")
    c, s = curve.columns, curve.settings
    times, of = num.confidence(float(s["alpha"])) if "alpha" in s else ("", "")
    drawn = svg.control(curve, f"line crossed in {times} of {of} repeats", _peak(s))
    if drawn is None:
        return None
    line = None if s.get("line") is None else float(s["line"])
    points = [(float(x), float(y)) for x, y in zip(c["x"], c["evidence"], strict=True)]
    repeats = sum(k.startswith("null_") for k in c)
    return {
        "title": TITLE,
        "plot": svg.plot(drawn, _label(record, points, line), 0, 100),
        "paths": f"{cardinal(repeats)} repeats in which the model is right",
        "crossed": "" if line is None else f"line crossed in {times} of {of} such repeats{_told_by(s)}",
        "caption": _caption(record, points, line),
        "readouts": _readouts(points, line, s),
        "start": num.nearest(float(s["peak_share"]), 1),
        "table": Table(
            "The line, at some of its points.",
            ("Most suspicious people, %", "Evidence"),
            tuple((whole(x), num.written(_two(y), signed=True)) for x, y in points[::EVERY]),
        ),
    }


def _peak(s: Mapping[str, Any]) -> str:
    if not s.get("peak_rows"):
        return ""
    return f"peak {num.written(_two(float(s['peak_score'])))} at {whole(float(s['peak_share']))}% of people"


def _two(score: float, rounding: str = ROUND_HALF_UP) -> Any:
    """Return evidence to two decimals, as fine as the picture shows it."""
    return num.cut(Decimal(repr(score)), 2, rounding)


def _label(record: AuditRecord, points: Sequence[At], line: float | None) -> str:
    most = max(y for _, y in points)
    what = "crosses the line" if line is not None and most > line else "stays under the line"
    of = f" of {num.written(_two(line, ROUND_CEILING))}" if line is not None else ""
    return f"{TITLE}. It {what}{of}, and is {num.written(_two(most), signed=True)} at most. {spread(record)}".strip()


def _caption(record: AuditRecord, points: Sequence[At], line: float | None) -> str:
    check, s = strong_test(record), record.curve("control_chart").settings
    tested = f"{num.count(s['rows_tested'])} people"
    unseen = "whom the models had not seen" if s.get("null") == "split" else "each judged by models fitted to others"
    under = ""
    if check is not None and not record.found(check):
        under = " It stays under the dashed line, as for a model that is right."
    if line is None:
        under = " There are too few simulations for a line."
    return f"{tested}, {unseen}.{under}{_ending(points[-1][0], s)}{_repeats(record)} {spread(record)}".strip()


def _ending(end: float, s: Mapping[str, Any]) -> str:
    """Return why the curve ends before the last person; nothing where it does not."""
    t = float(s.get("tolerance", 0.0))
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


def _readouts(points: Sequence[At], line: float | None, s: Mapping[str, Any]) -> dict[str, Any]:
    """Return each point as cells, and the sentence they are told in."""
    times, of = num.confidence(1 - float(s["alpha"]))
    under = (
        ""
        if line is None
        else f"; a model that is right stays under {num.written(_two(line, ROUND_CEILING))} in {times} of {of} repeats"
    )
    told = "After the {0}% most suspicious people: evidence {1}" + under + "."
    cells = [(whole(x), num.written(_two(y), signed=True), "", "", "", 0) for x, y in points]
    return {"x": [round(100 * x, 1) for x, _ in points], "n": "", "f": [told], "v": cells}
