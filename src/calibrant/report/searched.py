"""What the strong calibration test says: its sentences, the variables it needs, and the rules beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from calibrant.audit.record import AuditRecord, Check
from calibrant.report import numbers as num
from calibrant.report.evidence import UNPROVEN, p_told
from calibrant.report.order import check_of
from calibrant.report.ranking import shown
from calibrant.report.spans import visible
from calibrant.report.wording import cardinal

STRONG = "strong-calibration"
MOST_VARIABLES = 8
UNNEEDED = "not shown to be needed"
UNDECIDED = "undecided"
WHO, LOOKED_AT = "Who they are", "Looked at most closely, not shown to be badly served"
SEARCHES = 5  # anew, each without a fifth of the half that finds the rules
FEW, MANY = 0.2, 0.5  # shares of people: a peak before the first is concentrated, one after the second spread


@dataclass(frozen=True, slots=True)
class Need:
    """One variable that the search needs; numbers are shares of the evidence, `low` to `high` its range."""

    name: str
    lost: float
    low: float
    high: float
    word: str


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
    told: str


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
    check, s = strong_test(record), record.curve("control_chart").settings
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
    c, check = record.curve("importance").columns, strong_test(record)
    if not c.get("variable") or check is None or not record.found(check):
        return ()
    total = float(record.curve("importance").settings["statistic"])
    keys = ("variable", "drop", "low", "high")
    return tuple(
        Need(shown(str(v)), float(d) / total, float(a) / total, float(b) / total, "" if a > 0 else UNNEEDED)
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
    s = record.curve("importance").settings
    level = num.percent(1 - float(s["alpha"]))
    few = (
        f"the shuffles are few ({num.count(s['repeats'])} of each variable)" if s.get("repeats") else "shuffles are few"
    )
    return (
        f"Share of the evidence that is lost when the variable is shuffled among people; {level}% range, approximate, "
        f"each by itself. {_other_fit(record)} A share may lie outside 0 to 100%: {few}, and variables share what they "
        f"know, so that those that say the same hide each other. Where a range takes in 0, the variable is {UNNEEDED}.{rest}"
    )


def _other_fit(record: AuditRecord) -> str:
    """Return what evidence the bars split up: that of models fitted beside those of the test."""
    s = record.curve("importance").settings
    parts = int(s.get("folds", 0))
    others = "half" if parts == 2 else f"{cardinal(parts - 1)} of {cardinal(parts)} parts"
    fitted = f", each judging people by models fitted to the other {others}" if parts > 1 else ""
    return (
        f"The evidence split up here, {num.decimals(s['statistic'], 2)} in all, comes from a fit of its own{fitted}; "
        "it is not that of the test and the chart above."
    )


def rules(record: AuditRecord) -> tuple[Rule, ...]:
    """Return the rules, the largest excess first, with the numbers of the half that did not find them."""
    c = record.curve("subgroups").columns
    return tuple(_rule({k: v[i] for k, v in c.items()}) for i in range(len(c.get("rule", ()))))


def _rule(c: Mapping[str, Any]) -> Rule:
    a, b = num.signed_range(float(c["low"]), float(c["high"]))
    text, gap = visible(c["rule"]), f"{num.gap(float(c['gap']))} ({a} to {b})"
    says, happened = num.nearest(float(c["predicted"])), num.nearest(float(c["observed"]))
    judged = f"{num.count(c['rows'])} people judged"
    return Rule(
        text=text,
        again=f"{judged}; found again in {round(SEARCHES * float(c['stability']))} of {SEARCHES} searches",
        share=f"{num.nearest(float(c['share']))}%",
        says=says,
        happened=happened,
        gap=gap,
        found=bool(c["finding"]),
        word=str(c["side"]) if c["finding"] else UNDECIDED,
        told=f": the model says {says} in 100, {happened} happened; {judged}.",
    )


def first_shown(record: AuditRecord) -> Rule | None:
    """Return the first rule that is shown to be off; None where none is."""
    return next((r for r in rules(record) if r.found), None)


def rules_heading(record: AuditRecord) -> str:
    """Return the words over the rules: they name the badly served only where one is shown to be."""
    return WHO if first_shown(record) else LOOKED_AT


def rules_note(record: AuditRecord) -> str:
    """Return where the rules come from, or why there is none."""
    c, s = record.curve("subgroups").columns, record.curve("subgroups").settings
    if not c.get("rule"):
        none = "No rule tells who they are: "
        return none + ("no rule was worth judging." if "rule" in c else "there are too few people for two halves.")
    n = len(c["rule"])
    times, of = num.confidence(1 - float(s["alpha"]))
    every = "Its range holds" if n == 1 else f"{'Both' if n == 2 else f'All {cardinal(n)}'} ranges hold together"
    return (
        f"Found in one half of the people; but for the share, every number is from the other half, "
        f"{num.count(s['rows_judged'])} people who did not find {'it' if n == 1 else 'them'}. {every} in at least {times} of {of} "
        f"audits.{_one_sided(record)}"
    )


def _one_sided(record: AuditRecord) -> str:
    """Return why a rule is a finding though its range takes in what the test allows; nothing where none is."""
    c, t = record.curve("subgroups").columns, float(record.curve("subgroups").settings.get("tolerance", 0.0))
    inner = (
        low if side == "too little" else -high
        for low, high, side in zip(c["low"], c["high"], c["side"], strict=True)
    )
    if not any(found and end <= t for found, end in zip(c["finding"], inner, strict=True)):
        return ""
    within = f"gaps within the tolerance of {num.limit_points(t)} points" if t else "zero"
    return f" A rule is tested on the side it was found on, so it can be shown off though its range takes in {within}."


def summary(record: AuditRecord) -> str:
    """Return the numbers of the test for the table of checks."""
    found = rules(record)
    shown_off = sum(r.found for r in found)
    return f"{told(record)}; {shown_off} of {len(found)} rules shown to be off" if found else told(record)


def none_found(record: AuditRecord) -> str:
    """Return the sentence that nothing was found by the search alone."""
    return f"None was found, {UNPROVEN}: {predicts(record)} ({told(record)})."
