"""What changed, in sentences: since an earlier audit, who is worse or better; and by a repair, what it gains.

Of a repair: by how much proper scores change on the rows judged, paired, with their intervals.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from calibrant.audit.record import AuditRecord, Finding
from calibrant.report import findings as facts
from calibrant.report import numbers as num
from calibrant.report.findings import Line, lines_of, noun
from calibrant.report.spans import Span, Text, clipped, label, say, shown
from calibrant.report.wording.headline import group_named
from calibrant.results import Curve
from calibrant.sanitize import sanitize

CHANGE = "change"
STATED = {
    "worse": "worse",
    "better": "better",
    "changed": "changed, neither surely worse nor better",
    "none": "no change shown",
}
NAMED = 2  # groups in a sentence
SHORT = 40  # characters of the name of an audit or a group


def changes(record: AuditRecord) -> list[facts.Line]:
    """Everyone, then the groups: what is shown to have changed first, the largest first."""
    order = ("worse", "better", "changed", "none")
    lines = facts.lines_of(record.curve(CHANGE))
    return lines[:1] + sorted(lines[1:], key=lambda v: (order.index(v["state"]), -abs(v["change"])))


def changed(record: AuditRecord) -> Text:
    """Say by how much the gap of everyone changed, and which groups are worse or better; empty where none was named."""
    lines = changes(record)
    if not lines:
        return ()
    one, digits = lines[0], facts.decimals(record)
    ends = " to ".join(num.signed_range(one["low"], one["high"], digits))
    since = clipped(sanitize(str(record.curve(CHANGE).settings["name"])), SHORT)
    by = f"the gap of everyone changed by {num.gap(one['change'], digits)} points"
    start = f"Since {since}, {by}, guaranteed at {num.percent(one['level'])}% {ends}: "
    out: list[str | Span] = [f"{start}{STATED[one['state']]}."]
    for state in ("worse", "better", "changed"):
        some = [line for line in lines[1:] if line["state"] == state]
        if some:
            names = [_named(record, line) for line in some[:NAMED]]
            more = f" and {num.count(len(some) - NAMED)} more" if len(some) > NAMED else ""
            listed = [part for i, name in enumerate(names) for part in ((", " if i else " "), name)]
            out += [f" {state.capitalize()}:", *listed, f"{more}."]
    if len(lines) > 1 and all(line["state"] == "none" for line in lines[1:]):
        out.append(" No group is shown to have changed.")
    return say(*out)


def group_of(record: AuditRecord, line: facts.Line) -> Finding | None:
    """The group that a line is about; None of everyone."""
    return next((f for f in record.groups if f.id == line["id"]), None)


def _named(record: AuditRecord, line: facts.Line) -> Span:
    group = group_of(record, line)
    return Span(clipped(str(line["group"]) if group is None else group_named(group), SHORT), "name")


# ---- by a repair ----

AS_AUDITED, CLASS_REPAIRS = "as audited", "class_repairs"
SCORES = {"brier": "Brier score", "log_loss": "log loss"}
AT_ONCE = "Each of these intervals holds by itself; what is called better holds for all repairs at once."
Change = tuple[float, float, float]  # and its ends


def score_lowered(score: str, change: Change, after: float | None = None) -> str:
    """How a score changes, such as "lowers the log loss from 1.0460 to 0.7464, by 0.2996 (0.2376 to 0.3617)"."""
    value, low, high = change
    if high >= 0.0:
        return f"changes the {SCORES[score]} by {_signed(value)} ({_signed(low)} to {_signed(high)})"
    by = "by {} ({} to {})".format(*(num.decimals(-v, 4) for v in (value, high, low)))
    ends = "" if after is None else f"from {num.decimals(after - value, 4)} to {num.decimals(after, 4)}, "
    return f"lowers the {SCORES[score]} {ends}{by}"


def scores_changed(changes: Mapping[str, Change]) -> str:
    """Changes of scores, such as "Brier score −0.0049 (−0.0075 to −0.0023), log loss …"; negative is better."""
    return ", ".join(
        f"{SCORES[k]} {_signed(v)} ({_signed(low)} to {_signed(high)})" for k, (v, low, high) in changes.items()
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
    return f"on {rows} it {score_lowered(score, changes_of(line)[score], float(line[score]))}"


def impossible(curve: Curve) -> str:
    """What is said of rows whose class had probability 0; empty where there are none."""
    n, clip = int(curve.settings["impossible"]), float(curve.settings["clip"])
    rows = "one row" if n == 1 else f"{num.count(n)} rows"
    text = f" In {rows} a class came true whose probability was 0: the log loss counts it as {clip:g}, and the Brier "
    return f"{text}score decides." if n else ""


def recommended_line(record: AuditRecord) -> Line | None:
    """The line of the repair recommended; None where there is none."""
    curve = record.curve("repairs")
    name = str(curve.settings.get("recommended") or AS_AUDITED)
    return next((r for r in lines_of(curve) if r["probability"] == name and name != AS_AUDITED), None)


def best_line(record: AuditRecord) -> Line | None:
    """The line of the repair with the least Brier score, if it is less than as audited; None where none is."""
    lines = lines_of(record.curve("repairs"))
    best = min(lines, key=lambda line: line["brier"], default=None)
    return None if best is None or best["probability"] == AS_AUDITED else best


def basis_of(record: AuditRecord) -> str:
    """What the recommendation rests on: ``"guaranteed"``, ``"estimated"`` or nothing."""
    return str(record.curve("repairs").settings.get("basis") or "")


def moved(lines: Sequence[Line]) -> Line | None:
    """The population whose estimated gap a repair brings nearest to 0; None where it moves none that way."""
    some = [p for p in lines if p["after_gap"] is not None and p["kind"] != "subgroup"]
    best = min(some, key=lambda p: abs(p["after_gap"]) - abs(p["now_gap"]), default=None)
    return None if best is None or abs(best["after_gap"]) >= abs(best["now_gap"]) else best


def brought(record: AuditRecord, line: Line) -> str:
    """What a repair does to a gap, such as "brings Valley from +8.9 to +0.7 points"."""
    who = "everyone"
    if line["kind"] != "everyone":
        same = (f for f in record.groups if line["id"] == f.id or line["who"] == label(f))
        who = next(map(group_named, same), shown(line["who"]))
    return f"brings {who} from {num.gap(line['now_gap'])} to {num.gap(line['after_gap'])} points"
