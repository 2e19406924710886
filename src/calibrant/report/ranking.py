"""The variables in the order in which the error follows them, as rows of the page; no sentences here."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from calibrant.audit.record import AuditRecord
from calibrant.report import numbers as num
from calibrant.report import places, svg
from calibrant.report.along import Along, along_of
from calibrant.report.order import MOST_ROWS
from calibrant.report.spans import visible

SHORT = 9  # variables in the short table


@dataclass(frozen=True, slots=True)
class Ranked:
    """One variable of the ranking; errors are fractions.

    Parameters
    ----------
    beyond : float
        Estimated average gap along the variable beyond the overall shift.
    low, high : float or None
        Certified, for `beyond`; None where no proof covers the data.
    whole : float
        Estimated average gap along the variable, the shift included.
    whole_low, whole_high : float or None
        Certified, for `whole`.
    adjusted : float
        p-value of `beyond`, adjusted for all variables of the ranking.
    found : bool
        Whether error beyond the overall shift is shown.
    worst : str
        Values that add most; empty where too few people have them to be shown.
    gap : float
        What happened minus what the model says there, less the overall shift.
    """

    variable: str
    kind: str
    beyond: float
    low: float | None
    high: float | None
    whole: float
    whole_low: float | None
    whole_high: float | None
    adjusted: float
    found: bool
    worst: str
    gap: float


KEYS = (
    "variable",
    "kind",
    "beyond_shift",
    "beyond_low",
    "beyond_high",
    "vece",
    "low",
    "high",
    "p_adjusted",
    "worst",
    "worst_beyond_shift",
    "worst_rows",
)


def ranked(record: AuditRecord) -> tuple[Ranked, ...]:
    """Return the variables of a record, the one the error follows most first; pairs of variables are left out."""
    c = record.curve("ranking").columns
    if not c.get("variable"):
        return ()
    lines = (dict(zip(KEYS, row, strict=True)) for row in zip(*(c[k] for k in KEYS), strict=True))
    alpha, mask = float(record.settings["alpha"]), int(record.settings.get("mask", 20))
    return tuple(_ranked(line, alpha, mask) for line in lines if line["kind"] != "pair")


def _ranked(line: Mapping[str, Any], alpha: float, mask: int) -> Ranked:
    seen = line["worst_rows"] is not None and int(line["worst_rows"]) >= mask
    return Ranked(
        variable=str(line["variable"]),
        kind=str(line["kind"]),
        beyond=float(line["beyond_shift"]),
        low=line["beyond_low"],
        high=line["beyond_high"],
        whole=float(line["vece"]),
        whole_low=line["low"],
        whole_high=line["high"],
        adjusted=float(line["p_adjusted"]),
        found=float(line["p_adjusted"]) <= alpha,
        worst=str(line["worst"]) if seen else "",
        gap=float(line["worst_beyond_shift"]) if seen else 0.0,
    )


def draws(record: AuditRecord) -> int | None:
    """Return how many simulated outcomes of everyone the p-values rest on; None where they rest on the normal law."""
    s = record.curve("ranking").settings
    return int(s["draws"]) if "draws" in s and str(s.get("null", "")).startswith("exact") else None


def shown(name: str) -> str:
    """Return the name of a variable as it is read."""
    text = visible(name)
    return text if text.strip() else "(blank)"


@dataclass(frozen=True, slots=True)
class Row:
    """One variable in the table; `track` is its certified range with its estimate, `spark` the gap along it."""

    name: str
    target: str
    spark: str
    range: str
    whole: str
    worst: str
    gap: str
    p: str
    track: places.Track
    sorts: dict[str, str]


def rows(record: AuditRecord, curves: dict[str, Along], top: float, scale: float) -> tuple[Row, ...]:
    """Return the rows of the table; the axis of errors ends at `top`, the small curves at `scale` points."""
    n = draws(record)
    return tuple(_row(r, curves.get(r.variable), top, scale, n) for r in ranked(record)[:MOST_ROWS])


def _row(r: Ranked, along: Along | None, top: float, scale: float, n: int | None) -> Row:
    estimate, range_ = num.nearest(r.beyond), certified_or(r.beyond, r.low, r.high)
    return Row(
        name=shown(r.variable),
        target="" if along is None else along.anchor,
        spark="" if along is None else svg.spark(along, scale),
        range=range_,
        whole=certified_or(r.whole, r.whole_low, r.whole_high),
        worst=place(r) if r.found else "",
        gap=num.gap(r.gap),
        p=floored(r.adjusted, n),
        track=_track(r, top, f"{range_} points" if r.low is None else f"{range_} points, estimated {estimate}"),
        sorts={
            "name": shown(r.variable),
            "beyond": f"{r.beyond:.6g}",
            "gap": f"{r.gap:.6g}",
            "whole": f"{r.whole:.6g}",
            "low": f"{r.beyond if r.low is None else r.low:.6g}",
            "p": f"{r.adjusted:.6g}",
        },
    )


def certified_or(estimate: float, low: float | None, high: float | None) -> str:
    """Return a certified range in points, or the estimate where there is none."""
    if low is None or high is None:
        return f"about {num.nearest(estimate)}"
    return f"{num.lower_bound(low)} to {num.upper_bound(high)}"


def place(r: Ranked) -> str:
    """Return the values that add most, as they are read; a number of four digits is not set apart, it may be a year."""
    text = visible(r.worst)
    if r.kind == "number":
        text = re.sub(r"(?<![\d\u202f.])(\d)\u202f(\d{3})(?![\d\u202f])", r"\1\2", text)
    return text if text.strip() or not r.worst else "(blank)"


def _track(r: Ranked, top: float, label: str) -> places.Track:
    """Return the certified range with the estimate; the estimate alone where no proof covers the data."""
    at, kind = places.place(r.beyond * 100, top), "along" if r.found else "unfound"
    if r.low is None or r.high is None:
        return places.Track("", "", "", False, kind, label, at)
    return replace(places.track(r.low, r.high, top, kind, label), at=at)


def floored(p: float, n: int | None) -> str:
    """Write a p-value for a table: with a star at the floor of the simulation."""
    told = num.p_value(p, draws=n)
    return told if "," not in told else f"{told.partition(',')[0]}*"


def certified(record: AuditRecord) -> bool:
    """Tell whether any variable has a certified range."""
    return any(r.high is not None for r in ranked(record))


def axis_top(record: AuditRecord) -> float:
    """Return where the axis of errors ends, in points."""
    most = 1.05 * max(max(r.beyond, r.high or 0.0) * 100 for r in ranked(record))
    return places.end_of(most)


def spark_scale(curves: dict[str, Along]) -> float:
    """Return where the small curves end, in points: the largest gap that is shown fits in all of them."""
    shown_off = [abs(p.gap) * 100 for a in curves.values() for p in a.points if p.side != "unclear"]
    need = 1.1 * max(shown_off, default=0.0)
    return places.end_of(max(need, 1.0), places.NICE)


def curves(record: AuditRecord) -> dict[str, Along]:
    """Return what is drawn of each variable, in the order of the ranking."""
    order = {r.variable: i for i, r in enumerate(ranked(record))}
    drawn = record.family("variable_curve")
    names = sorted(drawn, key=lambda v: (order.get(v, len(order)), v))
    found = {v: along_of(v, drawn[v]) for v in names if drawn[v].columns.get("gap")}
    return {v: a for v, a in found.items() if a.points}
