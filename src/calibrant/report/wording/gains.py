"""What a repair gains, in words: by how much proper scores change on the rows judged, paired, with their intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from calibrant.audit.record import AuditRecord
from calibrant.report import numbers as num
from calibrant.report.findings import Line, lines_of, noun
from calibrant.report.spans import label, shown
from calibrant.report.wording.headline import group_named
from calibrant.results import Curve

AS_AUDITED, CLASS_REPAIRS = "as audited", "class_repairs"
SCORES = {"brier": "Brier score", "log_loss": "log loss"}
Change = tuple[float, float, float]  # and its ends


def scores_changed(changes: Mapping[str, Change], by: str = "") -> str:
    """Return such as "Brier score −0.0049 (−0.0075 to −0.0023), log loss …"; negative is better."""
    return ", ".join(
        f"{SCORES[k]} {by}{_signed(v)} ({_signed(low)} to {_signed(high)})" for k, (v, low, high) in changes.items()
    )


def _signed(value: float) -> str:
    text = num.decimals(value, 4)
    return text if value < 0 else f"+{text}"


def changes_of(line: Line) -> dict[str, Change]:
    """The paired changes of a line of the table of repairs; none as audited."""
    return {
        k: (line[f"{k}_change"], line[f"{k}_change_low"], line[f"{k}_change_high"])
        for k in SCORES
        if line.get(f"{k}_change") is not None
    }


def class_repair(record: AuditRecord) -> Line | None:
    """The repair of all classes that other rows recommend; None where there is none."""
    curve = record.curve(CLASS_REPAIRS)
    name = curve.settings.get("recommended", AS_AUDITED)
    return next((r for r in lines_of(curve) if r["repair"] == name and name != AS_AUDITED), None)


def of_classes_gained(record: AuditRecord, line: Line) -> str:
    """By how much a repair of all classes changes the score that decides, and on how many rows."""
    settings = record.curve(CLASS_REPAIRS).settings
    rows, score = f"{num.count(int(settings['rows_judged']))} {noun(record)} held out", str(settings["by"])
    return f"on {rows} it changes the {scores_changed({score: changes_of(line)[score]}, 'by ')}"


def impossible(curve: Curve) -> str:
    """What is said of rows whose class had probability 0; empty where there are none."""
    n, clip = int(curve.settings["impossible"]), float(curve.settings["clip"])
    rows = "one row" if n == 1 else f"{num.count(n)} rows"
    text = f" In {rows} a class came true whose probability was 0: the log loss counts it as {clip:g}, and the Brier "
    return f"{text}score decides." if n else ""


def recommended_line(record: AuditRecord) -> Line | None:
    """The line of the repair recommended; None where there is none."""
    return _line(record, str(record.curve("repairs").settings.get("recommended") or AS_AUDITED))


def best_line(record: AuditRecord) -> Line | None:
    """The line of the repair with the least Brier score, if it is less than as audited; None where none is."""
    lines = lines_of(record.curve("repairs"))
    best = min(lines, key=lambda line: line["brier"], default=None)
    return None if best is None or best["probability"] == AS_AUDITED else best


def _line(record: AuditRecord, name: str) -> Line | None:
    return next((r for r in lines_of(record.curve("repairs")) if r["probability"] == name and name != AS_AUDITED), None)


def basis_of(record: AuditRecord) -> str:
    """What the recommendation rests on: ``"guaranteed"``, ``"estimated"`` or nothing."""
    return str(record.curve("repairs").settings.get("basis") or "")


def moved(lines: Sequence[Line]) -> Line | None:
    """The population whose estimated gap a repair brings nearest to 0; None where it moves none that way."""
    some = [p for p in lines if p["after_gap"] is not None and p["kind"] != "subgroup"]
    best = min(some, key=lambda p: abs(p["after_gap"]) - abs(p["now_gap"]), default=None)
    return None if best is None or abs(best["after_gap"]) >= abs(best["now_gap"]) else best


def brought(record: AuditRecord, line: Line) -> str:
    """Return such as "brings Valley from +8.9 to +0.7 points"."""
    who = "everyone"
    if line["kind"] != "everyone":
        same = (f for f in record.groups if line["id"] == f.id or line["who"] == label(f))
        who = next(map(group_named, same), shown(line["who"]))
    return f"brings {who} from {num.gap(line['now_gap'])} to {num.gap(line['after_gap'])} points"
