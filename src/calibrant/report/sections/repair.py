"""The section about repairs: before and after, on people that no repair was fitted on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from calibrant.audit.record import AuditRecord, Check
from calibrant.report import numbers as num
from calibrant.report.document import (
    MARKDOWN,
    NOWHERE,
    PAGE,
    WHOLE,
    Cell,
    Column,
    Node,
    Paragraph,
    Row,
    Table,
)
from calibrant.report.outline import Asked, Declared
from calibrant.report.spans import BREAK, Span, Text, code, given, lines, say
from calibrant.report.wording import capital, cardinal, repair_named, unmade
from calibrant.visible import visible

AS_AUDITED = "as audited"
CLEAR = "half a point"  # a smaller change of a gap is not called one: `repair.compare` tests beyond it
KEEPS = {
    "kept": "keep{s} the order of people",
    "kept up to ties": "keep{s} it up to ties",
    "may change": "may change it",
}
Line = Mapping[str, Any]  # one probability of the table, by the names of its columns


def repair(record: AuditRecord) -> Iterator[Node]:
    """Return the answer, the table and its notes; or why there is none."""
    if not compared(record):
        yield Paragraph(unmade(record, "repair", "No repairs were compared in this audit."), "quiet", PAGE)
        return
    yield Paragraph(answer(record), "answer")
    yield Paragraph(say(caption(record)), where=MARKDOWN)
    yield table(record)
    yield Paragraph(say(note(record)), "note")
    if recommended(record) is not None:
        yield Paragraph(how(record))


def compared(record: AuditRecord) -> bool:
    """Tell whether repairs were compared."""
    return bool(record.curve("repairs").columns.get("probability"))


def rows(record: AuditRecord) -> list[Line]:
    """Return what was compared, "as audited" first."""
    c = record.curve("repairs").columns
    return [dict(zip(c, row, strict=True)) for row in zip(*c.values(), strict=True)]


def recommended(record: AuditRecord) -> Line | None:
    """Return the repair to take; None where leaving it alone is as good, or nothing was compared."""
    if not compared(record):
        return None
    chosen = record.curve("repairs").settings["recommended"]
    return next((r for r in rows(record) if r["probability"] == chosen and chosen != AS_AUDITED), None)


# ---- in words ----


def answer(record: AuditRecord) -> Text:
    """Return the first line of "What would repair it?"."""
    s, chosen, before = record.curve("repairs").settings, recommended(record), rows(record)[0]
    if chosen is None:
        tried = len(rows(record)) - 1
        which = "the repair tried is" if tried == 1 else f"none of the {cardinal(tried)} repairs tried is"
        return say(
            f"None is shown to help: on {num.count(s['rows_judged'])} people it was not fitted on, {which} shown to be "
            "better than leaving the probabilities alone. That is not proof that none would."
        )
    gaps = ""
    if s["groups"]:
        gaps = f" The gap shrinks for {chosen['groups_better']} of {num.count(s['groups'])} groups"
        gaps += f" and grows for {chosen['groups_worse']}."
    return say(f"{capital(repair_named(chosen['recipe']))}: {_gain(record, chosen, before)}.{gaps}")


def _gain(record: AuditRecord, chosen: Line, before: Line) -> str:
    better, after = visible(_verdict(record, chosen).partition(";")[0]), _upper(chosen)
    if chosen["error_high"] is None:
        return better
    if _falls(chosen, before):
        return f"at most {after} points instead of {_upper(before)}"
    if after == _upper(before):
        return f"at most {after} points, as before, but {better}"
    return f"{better}, but at most {after} points instead of {_upper(before)}"


def _falls(chosen: Line, before: Line) -> bool:
    """Tell whether the certified upper end falls, as it is written."""
    ends = chosen["error_high"], before["error_high"]
    return None not in ends and ends[0] < ends[1] and _upper(chosen) != _upper(before)


def _verdict(record: AuditRecord, chosen: Line) -> str:
    """Return what a repair is shown to be better and worse in."""
    return str(record.curve("repairs").settings["verdicts"][chosen["probability"]]["line"]).partition(": ")[2]


def _upper(line: Line) -> str:
    return num.upper_bound(float(line["error_high"])) if line["error_high"] is not None else "–"


def caption(record: AuditRecord) -> str:
    """Return what the table is about."""
    n = num.count(record.curve("repairs").settings["rows_judged"])
    return f"Fitted on one half of the people, judged on the other ({n}). Lower is better, except for AUROC and p."


def note(record: AuditRecord) -> str:
    """Return how to read the table."""
    s = record.curve("repairs").settings
    level = num.percent(1 - float(s["alpha"]))
    text = f"The certified ranges of all lines hold together, {level} of 100 times. " if "." not in level else ""
    if s["groups"]:
        text += f"* Of {num.count(s['groups'])} groups, those whose gap shrank or grew by more than {CLEAR}. "
    if _tested(record):
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
        kinds.setdefault(r["order"], []).append(repair_named(r["recipe"]))
    told: list[str] = []
    for order, words in KEEPS.items():
        if who := kinds.get(order):
            names = who[0] if len(who) == 1 else f"{', '.join(who[:-1])} and {who[-1]}"
            first = words if told or order == "kept" else words.replace("it", "the order of people", 1)
            told.append(f"{names} {first.format(s='s' if len(who) == 1 else '')}")
    return f"{capital('; '.join(told))}." if told else ""


def how(record: AuditRecord) -> Text:
    """Return how to make the repaired file, where a repair is recommended."""
    chosen = recommended(record)
    if chosen is None:
        return ()
    return say(
        f"{capital(repair_named(chosen['recipe']))} is the simplest repair that is shown to help and is not shown to "
        f"be worse than the best of them: {visible(_verdict(record, chosen))}. To repair a file: ",
        code("calibrant repair FILE --label … --score … --out repaired.parquet --map map.json"),
        ".",
    )


# ---- in numbers ----


def _tested(record: AuditRecord) -> bool:
    """Tell whether the local calibration test was made of any line."""
    return any(p is not None for p in record.curve("repairs").columns["local_p"])


def table(record: AuditRecord) -> Table:
    """Return one line for each probability; a column that would be empty is left out."""
    s = record.curve("repairs").settings
    grouped = WHOLE if int(s["groups"]) else NOWHERE
    along = given(s["along"] or "")
    columns = (
        Column(say("Probabilities")),
        Column(lines("Certified error,", "points"), "r"),
        Column(lines("Largest group", "gap, points"), "r", where=grouped),
        Column((*say("Error by ", along, ","), BREAK, *say("points")), "r", where=PAGE if s["along"] else NOWHERE),
        Column(lines("Brier", "score"), "r"),
        Column(lines("Log", "loss"), "r"),
        Column(say("AUROC"), "r"),
        Column(lines("Local", "p†"), "r", where=WHOLE if _tested(record) else NOWHERE),
        Column(lines("Groups better,", "worse*"), "r", where=grouped),
    )
    made = tuple(_row(r, int(s["draws"]), s["recommended"]) for r in rows(record))
    return Table(columns, made, caption(record), id="repairs")


def _row(r: Line, draws: int, recommended: str) -> Row:
    first = r["probability"] == AS_AUDITED
    chosen = r["probability"] == recommended and not first
    name = AS_AUDITED if first else repair_named(r["recipe"])
    low = "" if r["error_low"] is None else f"{num.lower_bound(float(r['error_low']))} to "
    gap, group = _points(r["largest_gap"]), visible(r["largest_gap_group"] or "")
    whose = Cell(lines(gap, Span(group, "quiet")), brief=say(f"{gap} ", given(group))) if group else Cell(say(gap))
    local = "refuted" if r["impossible"] else "–"
    if r["local_p"] is not None and not r["impossible"]:
        local = num.p_value(float(r["local_p"]), draws=draws).partition(",")[0].removeprefix("p = ").removeprefix("p ")
    return Row(
        (
            Cell(say(name, " ", Span("(recommended)", "quiet")), brief=say(name)) if chosen else Cell(say(name)),
            Cell(say(f"{low}{_upper(r)}")),
            whose,
            Cell(say(_points(r["error_along"]))),
            Cell(say(num.decimals(r["brier"], 4))),
            Cell(say("infinite" if r["impossible"] else num.decimals(r["log_loss"], 4))),
            Cell(say("–" if r["auroc"] is None else num.decimals(r["auroc"], 4))),
            Cell(say(local)),
            Cell(say("–" if first else f"{r['groups_better']}, {r['groups_worse']}")),
        ),
        style="chosen" if chosen else "",
    )


def _points(value: float | None) -> str:
    return "–" if value is None else num.nearest(abs(float(value)))


def _check(_: Check, record: AuditRecord) -> Asked:
    numbers = ""
    if compared(record):
        chosen = recommended(record)
        taken = "none" if chosen is None else repair_named(chosen["recipe"])
        numbers = f"{cardinal(len(rows(record)) - 1)} compared; {taken} recommended"
    return Asked("Comparing repairs", numbers, "what would lower the error, judged on people held out?")


DECLARED = (
    Declared(
        id="repair",
        order=60,
        nav="What would repair it?",
        heading="What would repair it?",
        nodes=repair,
        checks={"repair": _check},
    ),
)
