"""The section about repairs: before and after, on people that no repair was fitted on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from calibrant.audit.record import AuditRecord
from calibrant.report import numbers as num
from calibrant.report import standing
from calibrant.report.spans import Text, code, link, say, visible
from calibrant.report.wording import cardinal

AS_AUDITED = "as audited"
CLEAR = "half a point"
NAMES = {
    "Platt": "Platt scaling",
    "Temperature": "temperature scaling",
    "Beta": "beta calibration",
    "Isotonic": "isotonic regression",
    "Histogram": "histogram binning",
    "ScalingBinning": "scaling-binning",
    "BBQ": "Bayesian binning (BBQ)",
    "VariableTree": "a tree of traits with a curve in each leaf",
    "AugmentedLogistic": "logistic regression with traits",
    "AugmentedBeta": "beta calibration with traits",
    "LocalBias": "local bias correction",
    "Multicalibrator": "multicalibration",
    "ProportionalMulticalibrator": "proportional multicalibration",
}
KEEPS = {
    "kept": "keep{s} the order of people",
    "kept up to ties": "keep{s} it up to ties",
    "may change": "may change it",
}


@dataclass(frozen=True, slots=True)
class Line:
    """One probability in the table: as audited, or repaired."""

    name: str
    certified: str
    gap: str
    group: str
    along: str
    brier: str
    log_loss: str
    auroc: str
    local: str
    groups: str
    chosen: bool


def compared(record: AuditRecord) -> bool:
    """Tell whether repairs were compared."""
    return bool(record.curve("repairs").columns.get("probability"))


def named(recipe: str) -> str:
    """Return what a repair is called in the report."""
    return NAMES.get(recipe, visible(recipe))


def repairs(record: AuditRecord) -> Mapping[str, Any]:
    """Return the answer, the table and its notes; or why there is none."""
    if not compared(record):
        return {"why": standing.absent(record, "repair")}
    s = record.curve("repairs").settings
    local = any(p is not None for p in record.curve("repairs").columns["local_p"])
    return {
        "why": (),
        "answer": answer(record),
        "lines": lines(record),
        "caption": caption(record),
        "along": visible(s["along"]) if s["along"] else "",
        "grouped": int(s["groups"]) > 0,
        "local": local,
        "note": note(record, local),
        "how": how(record),
    }


def rows(record: AuditRecord) -> list[dict[str, Any]]:
    """Return the table's rows, "as audited" first."""
    c = record.curve("repairs").columns
    return [dict(zip(c, row, strict=True)) for row in zip(*c.values(), strict=True)]


def recommended(record: AuditRecord) -> dict[str, Any] | None:
    """Return the row of the repair to take; None where leaving it alone is as good, or nothing was compared."""
    if not compared(record):
        return None
    chosen = record.curve("repairs").settings["recommended"]
    return next((r for r in rows(record) if r["probability"] == chosen and chosen != AS_AUDITED), None)


def answer(record: AuditRecord) -> Text:
    """Return the first line of "What would repair it?"."""
    chosen, before = recommended(record), rows(record)[0]
    n = num.count(record.curve("repairs").settings["rows_judged"])
    if chosen is None:
        tried = len(rows(record)) - 1
        return say(
            f"None is shown to help: on {n} people it was not fitted on, "
            f"{'the repair tried is' if tried == 1 else f'none of the {cardinal(tried)} repairs tried is'} shown to be better than leaving the probabilities alone. "
            "That is not proof that none would."
        )
    text = f"{_capital(named(chosen['recipe']))}: {_told(record, chosen, before)}."
    return say(text + (f" {_gaps(record, chosen)}" if record.curve("repairs").settings["groups"] else ""))


def _told(record: AuditRecord, chosen: Mapping[str, Any], before: Mapping[str, Any]) -> str:
    shown, after = _shown(record, chosen), _upper(chosen)
    if chosen["error_high"] is None:
        return shown
    if _falls(chosen, before):
        return f"at most {after} points instead of {_upper(before)}"
    same = after == _upper(before)
    return (
        f"at most {after} points, as before, but {shown}"
        if same
        else f"{shown}, but at most {after} points instead of {_upper(before)}"
    )


def _falls(chosen: Mapping[str, Any], before: Mapping[str, Any]) -> bool:
    """Tell whether the certified upper end falls, as it is written."""
    ends = chosen["error_high"], before["error_high"]
    return None not in ends and ends[0] < ends[1] and _upper(chosen) != _upper(before)


def _shown(record: AuditRecord, chosen: Mapping[str, Any]) -> str:
    line = str(record.curve("repairs").settings["verdicts"][chosen["probability"]]["line"])
    return visible(line.partition(": ")[2].partition(";")[0])


def _gaps(record: AuditRecord, chosen: Mapping[str, Any]) -> str:
    total = num.count(record.curve("repairs").settings["groups"])
    return f"The gap shrinks for {chosen['groups_better']} of {total} groups and grows for {chosen['groups_worse']}."


def _upper(row: Mapping[str, Any]) -> str:
    return num.upper_bound(float(row["error_high"])) if row["error_high"] is not None else "–"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def lines(record: AuditRecord) -> tuple[Line, ...]:
    """Return the table of the page."""
    draws = int(record.curve("repairs").settings["draws"])
    chosen = record.curve("repairs").settings["recommended"]
    out = []
    for r in rows(record):
        low = "" if r["error_low"] is None else f"{num.lower_bound(float(r['error_low']))} to "
        first = r["probability"] == AS_AUDITED
        out.append(
            Line(
                name=AS_AUDITED if first else named(r["recipe"]),
                certified=f"{low}{_upper(r)}",
                gap=_points(r["largest_gap"]),
                group=visible(r["largest_gap_group"] or ""),
                along=_points(r["error_along"]),
                brier=num.decimals(r["brier"], 4),
                log_loss="infinite" if r["impossible"] else num.decimals(r["log_loss"], 4),
                auroc="–" if r["auroc"] is None else num.decimals(r["auroc"], 4),
                local="refuted" if r["impossible"] else _short_p(r["local_p"], draws),
                groups="–" if first else f"{r['groups_better']}, {r['groups_worse']}",
                chosen=r["probability"] == chosen and not first,
            )
        )
    return tuple(out)


def _points(value: Any) -> str:
    return "–" if value is None else num.nearest(abs(float(value)))


def _short_p(p: Any, draws: int) -> str:
    if p is None:
        return "–"
    text = num.p_value(float(p), draws=draws).partition(",")[0]
    return text.removeprefix("p = ").removeprefix("p ")


def caption(record: AuditRecord) -> str:
    """Return what the table is about."""
    n = num.count(record.curve("repairs").settings["rows_judged"])
    return f"Fitted on one half of the people, judged on the other ({n}). Lower is better, except for AUROC and p."


def note(record: AuditRecord, local: bool) -> str:
    """Return how to read the table."""
    s = record.curve("repairs").settings
    level = num.percent(1 - float(s["alpha"]))
    text = f"The certified ranges of all lines hold together, {level} of 100 times. " if "." not in level else ""
    if s["groups"]:
        text += f"* Of {num.count(s['groups'])} groups, those whose gap shrank or grew by more than {CLEAR}. "
    if local:
        text += (
            f"† Is error left among people with the same score? p of the local calibration test on "
            f"{num.count(s['test_rows'])} of the people judged; a large p is not proof of none. "
        )
    if refuted := sum(bool(r["impossible"]) for r in rows(record)):
        which = "one line" if refuted == 1 else f"{cardinal(refuted)} lines"
        text += f"Refuted, in {which}: an outcome happened to which the score gave no chance at all (0 or 1). "
    return text + orders(record)


def orders(record: AuditRecord) -> str:
    """Return which repairs keep the order of people."""
    kinds: dict[str, list[str]] = {}
    for r in rows(record)[1:]:
        kinds.setdefault(r["order"], []).append(named(r["recipe"]))
    told: list[str] = []
    for order in ("kept", "kept up to ties", "may change"):
        if who := kinds.get(order):
            names = who[0] if len(who) == 1 else f"{', '.join(who[:-1])} and {who[-1]}"
            words = KEEPS[order] if told or order == "kept" else KEEPS[order].replace("it", "the order of people", 1)
            told.append(f"{names} {words.format(s='s' if len(who) == 1 else '')}")
    text = "; ".join(told)
    return f"{_capital(text)}." if text else ""


def how(record: AuditRecord) -> Text:
    """Return how to make the repaired file, where a repair is recommended."""
    chosen = recommended(record)
    if chosen is None:
        return ()
    verdict = str(record.curve("repairs").settings["verdicts"][chosen["probability"]]["line"]).partition(": ")[2]
    return say(
        f"{_capital(named(chosen['recipe']))} is the simplest repair that is shown to help and is not shown to be worse than the best of them: "
        f"{visible(verdict)}. To repair a file: ",
        code("calibrant repair FILE --label … --score … --out repaired.parquet --map map.json"),
        ".",
    )


def step(record: AuditRecord) -> Text:
    """Return what to do next in a line; empty where no repair is recommended."""
    chosen = recommended(record)
    if chosen is None:
        return ()
    before = rows(record)[0]
    change = f"Recalibrating by {named(chosen['recipe'])} brings the certified error from at most {_upper(before)} to at most {_upper(chosen)} points on people held out"
    if not _falls(chosen, before):
        change = f"Recalibrating by {named(chosen['recipe'])} is shown to help on people held out"
    gaps = ""
    if record.curve("repairs").settings["groups"]:
        gaps = f"; the gap shrinks for {chosen['groups_better']} groups and grows for {chosen['groups_worse']}"
    return say(f"{change}{gaps}. ", link("Compare repairs", "repair"))


def summary(record: AuditRecord) -> str:
    """Return the numbers for the table of checks."""
    if not compared(record):
        return ""
    tried, chosen = len(rows(record)) - 1, recommended(record)
    taken = "none" if chosen is None else named(chosen["recipe"])
    return f"{cardinal(tried)} compared; {taken} recommended"
