"""What the local calibration test says, and every sentence about it."""

from __future__ import annotations

from dataclasses import dataclass

from calibrant.audit.record import AuditRecord, Check
from calibrant.report import numbers as num
from calibrant.report.following import named_list
from calibrant.report.order import check_of
from calibrant.report.ranking import ranked
from calibrant.report.spans import Text, say
from calibrant.report.wording import cardinal
from calibrant.results import Outcome

LOCAL = "local-calibration"
SCORE = "(score)"  # how the test calls the score among its variables
SCORE_NAME = "the score itself"
SIMULATED = ("simulation", "sign")  # in the law of a p-value that is a rank among draws
UNPROVEN = "which is not proof of none"


@dataclass(frozen=True, slots=True)
class Evidence:
    """One variable of the test; `adjusted` allows for all of them, `found` for the whole test as well."""

    variable: str
    p: float
    adjusted: float
    found: bool


def local_test(record: AuditRecord) -> Check | None:
    """Return the check of the local calibration test, where it was run."""
    check = check_of(record, LOCAL)
    return check if check is not None and check.outcome is not None else None


def draws_of(outcome: Outcome) -> int | None:
    """Return how many simulations a p-value rests on; None where it rests on the law of many people."""
    simulated = any(word in outcome.law for word in SIMULATED)
    return int(outcome.settings["draws"]) if simulated and "draws" in outcome.settings else None


def impossible(outcome: Outcome) -> int:
    """Return how many outcomes the score called impossible; one is enough to refute it."""
    return int(outcome.parts.get("contradicted", outcome.parts.get("impossible", 0)))


def p_told(outcome: Outcome) -> str:
    """Write the p-value of a test; where an outcome was impossible, say so instead."""
    n = impossible(outcome)
    if n:
        return f"certain: {num.count(n)} outcome{'' if n == 1 else 's'} that the score called impossible"
    return num.p_value(outcome.p_value, draws=draws_of(outcome))


def told(record: AuditRecord) -> str:
    """Write the p-value of the local calibration test."""
    check = local_test(record)
    return "" if check is None or check.outcome is None else p_told(check.outcome)


def carried(record: AuditRecord) -> tuple[Evidence, ...]:
    """Return the variables of the test, the strongest evidence first; ties in the order of the ranking."""
    check = local_test(record)
    if check is None or check.outcome is None:
        return ()
    parts, alpha, found = check.outcome.parts, float(record.settings["alpha"]), record.found(check)
    keys = ("variables", "variable_p", "variable_adjusted_p")
    lines = zip(*(parts.get(k, ()) for k in keys), strict=True)
    order = {r.variable: i for i, r in enumerate(ranked(record))}
    rows = [Evidence(str(v), float(p), float(q), found and float(q) <= alpha) for v, p, q in lines]
    return tuple(sorted(rows, key=lambda e: (e.adjusted, e.p, order.get(e.variable, len(order)), e.variable)))


def answer(record: AuditRecord) -> Text:
    """Return what the local calibration test found, in a sentence or two."""
    check = local_test(record)
    if check is None or check.outcome is None:
        return ()
    told = p_told(check.outcome)
    if impossible(check.outcome):
        return say(f"Yes, {told}.")
    if not record.found(check):
        return say(f"None was found, {UNPROVEN} ({told}).")
    yes = [e.variable for e in carried(record) if e.found]
    traits = [v for v in yes if v != SCORE]
    if traits:
        start = "Yes: among people with the same score, what happens still depends on "
        return say(start, *named_list(traits), f" ({told}).")
    if yes:
        return say(f"Yes, along the score itself ({told}); no trait is shown to add to it, {UNPROVEN}.")
    if float(check.outcome.parts.get("p_local", 1.0)) <= float(record.settings["alpha"]):
        start = "Yes: among people with the same score some error is left"
        return say(f"{start} ({told}), though no single trait is shown to carry it.")
    start = "Only in the level or slope of the score as a whole"
    return say(f"{start} ({told}): no error was found that follows a trait, {UNPROVEN}.")


def summary(check: Check, record: AuditRecord) -> str:
    """Return the numbers of the test for the table of checks."""
    if check.outcome is None:
        return ""
    rows = [e for e in carried(record) if e.variable != SCORE]
    p = p_told(check.outcome)
    carrying = sum(e.found for e in rows)
    return f"{p}; evidence in {num.count(carrying)} of {num.count(len(rows))} variables" if rows else p


def note(record: AuditRecord) -> str:
    """Return what the p-values of the variables allow for, and their floor."""
    check = local_test(record)
    if check is None or check.outcome is None:
        return ""
    rows, n = carried(record), draws_of(check.outcome)
    looked = f"p-values are adjusted for looking at {cardinal(len(rows))} variables. " if len(rows) > 1 else ""
    starred = n is not None and any(e.adjusted <= 1 / (n + 1) for e in rows)
    star = f" * The smallest value that {num.count(n)} simulations can show." if starred and n is not None else ""
    left = "Evidence leaves out what moving or stretching all scores alike would mend; gaps include it."
    return f"{looked}{left}{star}"
