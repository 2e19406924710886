"""What the strong calibration test says: its sentences, the variables it needs, and the rules beside it."""

from __future__ import annotations

from dataclasses import dataclass

from calibrant.audit.record import AuditRecord, Check
from calibrant.report import numbers as num
from calibrant.report.evidence import UNPROVEN, p_told
from calibrant.report.order import check_of
from calibrant.report.ranking import shown
from calibrant.report.spans import visible
from calibrant.report.wording import cardinal

STRONG = "strong-calibration"
MOST_VARIABLES = 8
SEARCHES = 5  # anew, each without a fifth of the half that finds the rules
FEW, MANY = 0.2, 0.5  # shares of people: a peak before the first is concentrated, one after the second spread


@dataclass(frozen=True, slots=True)
class Need:
    """One variable that the search needs; numbers are shares of the evidence, `low` to `high` its range."""

    name: str
    lost: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Rule:
    """One group in words, judged on people who did not find it."""

    text: str
    again: str
    share: str
    says: str
    happened: str
    gap: str
    found: bool
    word: str


def strong_test(record: AuditRecord) -> Check | None:
    """Return the check of the strong calibration test, where it was run."""
    check = check_of(record, STRONG)
    return check if check is not None and check.outcome is not None else None


def sought(record: AuditRecord) -> str:
    """Return what the test looks for: error, or error beyond its tolerance."""
    check = strong_test(record)
    t = 0.0 if check is None or check.outcome is None else float(check.outcome.settings.get("tolerance", 0.0))
    return f"errors of over {num.limit_points(t)} points" if t else "the error"


def predicts(record: AuditRecord) -> str:
    """Return what the test found, as a clause without its p-value."""
    check = strong_test(record)
    them = "them" if sought(record).startswith("errors") else "it"
    verb = "predicts" if check is not None and record.found(check) else "does not predict"
    return f"a model trained to find {sought(record)} {verb} {them} on people it has not seen"


def told(record: AuditRecord) -> str:
    """Write the p-value of the test."""
    check = strong_test(record)
    return "" if check is None or check.outcome is None else p_told(check.outcome)


def spread(record: AuditRecord) -> str:
    """Return what the place of the peak says; nothing where nothing was found."""
    check, s = strong_test(record), record.control_chart.settings
    if check is None or not record.found(check) or not s.get("peak_rows"):
        return ""
    share = float(s["peak_share"])
    what = "neither in few people nor spread over most"
    if share < FEW:
        what = "concentrated in few people"
    elif share > MANY:
        what = "widely spread, not confined to a small pocket"
    side = {"too little": " The model says too little for them.", "too much": " The model says too much for them."}
    both = " For some of them the model says too little, for others too much."
    peak = f"The peak comes after {whole(share)}% of people: the error is {what}."
    return peak + side.get(str(s.get("side")), both)


def whole(share: float) -> str:
    """Write a share of people in whole per cent; a decimal where it is under one."""
    return num.nearest(share, 0 if share >= 0.01 or not share else 1)


def needs(record: AuditRecord) -> tuple[Need, ...]:
    """Return the variables without which evidence is lost, the most needed first; none where nothing was found."""
    c, check = record.importance.columns, strong_test(record)
    if not c.get("variable") or check is None or not record.found(check):
        return ()
    total = float(record.importance.settings["statistic"])
    keys = ("variable", "drop", "low", "high")
    return tuple(
        Need(shown(str(v)), float(d) / total, float(a) / total, float(b) / total)
        for v, d, a, b in zip(*(c[k] for k in keys), strict=True)
    )


def needs_note(record: AuditRecord) -> str:
    """Return how to read the bars, or why there is none."""
    check, found = strong_test(record), needs(record)
    if check is not None and not record.found(check):
        return "Which variables the search needs is not shown: where nothing is found it would be noise."
    if not found:
        return "Which variables the search needs is not shown: no model predicts an error that what happened bears out."
    more = len(found) - MOST_VARIABLES
    rest = f" {num.count(more)} more variables are in the JSON of this audit." if more > 0 else ""
    level = num.percent(1 - float(record.importance.settings["alpha"]))
    return (
        f"Share of the evidence that is lost when the variable is shuffled among people; {level}% range, approximate, "
        f"each by itself. Variables that say the same hide each other.{rest}"
    )


def rules(record: AuditRecord) -> tuple[Rule, ...]:
    """Return the rules, the largest excess first, with the numbers of the half that did not find them."""
    c = record.subgroups.columns
    if not c.get("rule"):
        return ()
    keys = (
        "rule",
        "rows",
        "stability",
        "share",
        "predicted",
        "observed",
        "gap",
        "gap_low",
        "gap_high",
        "finding",
        "side",
    )
    out = []
    for text, n, stable, share, says, happened, gap, low, high, found, side in zip(*(c[k] for k in keys), strict=True):
        a, b = num.signed_range(float(low), float(high))
        out.append(Rule(
            text=visible(text), again=f"{num.count(n)} people judged; found again in {round(SEARCHES * float(stable))} of {SEARCHES} searches", share=f"{num.nearest(float(share))}%", says=num.nearest(float(says)),
            happened=num.nearest(float(happened)), gap=f"{num.gap(float(gap))} ({a} to {b})", found=bool(found),
            word=str(side) if found else "not shown off",
        ))  # fmt: skip
    return tuple(out)


def rules_note(record: AuditRecord) -> str:
    """Return where the rules come from, or why there is none."""
    c, s = record.subgroups.columns, record.subgroups.settings
    if not c.get("rule"):
        none = "No rule tells who they are: "
        return none + ("no rule was worth judging." if "rule" in c else "there are too few people for two halves.")
    n = len(c["rule"])
    level = num.percent(1 - float(s["alpha"]))
    every = "the range holds" if n == 1 else f"{'both' if n == 2 else f'all {cardinal(n)}'} ranges hold together"
    pairs = zip(c["finding"], c["gap_low"], c["gap_high"], strict=True)
    open_ = any(found and low <= 0.0 <= high for found, low, high in pairs)
    side = " A rule is tested on the side it was found on, so it can be shown off though its range takes in zero."
    return (
        f"Found in one half of the people; but for the share, every number is from the other half, "
        f"{num.count(s['rows_judged'])} people who did not find them. At {level}%, {every}.{side if open_ else ''}"
    )


def summary(record: AuditRecord) -> str:
    """Return the numbers of the test for the table of checks."""
    found = rules(record)
    shown_off = sum(r.found for r in found)
    return f"{told(record)}; {shown_off} of {len(found)} rules shown to be off" if found else told(record)


def none_found(record: AuditRecord) -> str:
    """Return the sentence that nothing was found by the search alone."""
    return f"None was found, {UNPROVEN}: {predicts(record)} ({told(record)})."
