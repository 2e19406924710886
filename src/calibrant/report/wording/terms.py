"""Words for one thing each, wherever a report says it: verdicts, directions, counts, names."""

from __future__ import annotations

from collections.abc import Sequence

from calibrant.audit.record import AuditRecord
from calibrant.repair.catalogue import words_of
from calibrant.report import numbers as num
from calibrant.report.findings import check_of, draws_of, impossible
from calibrant.report.spans import Span, Text, clipped, say, sentence, shown
from calibrant.results import Outcome
from calibrant.sanitize import sanitize

VERDICTS = {
    "within": "Within the limit",
    "undecided": "Undecided",
    "over": "Over the limit",
    "not_checked": "Not judged",
}
MARKS = {  # what a mark says, for those who do not see it
    "within": "within the limit",
    "over": "over the limit",
    "undecided": "undecided",
    "error_shown": "error shown",
    "found": "error shown",
    "measured": "measured",
    "absent": "not checked",
    "reference": "for reference",
}
DIRECTIONS = {
    "low": "the model underpredicts here",
    "high": "the model overpredicts here",
    "unclear": "not shown to be off here",
}
TOO = {"low": "underpredicts", "high": "overpredicts", "unclear": "not shown off"}
NAMED = 3  # variables in a sentence
FINDINGS = {
    "found": "Error shown",
    "unfound": "No error shown (not proof of none)",
    "not-applicable": "Not applicable (not a pass)",
    "not-run": "Not run",
    "measured": "Measured",
}
WHO, LOOKED_AT = "Who they are", "Examined most closely, not shown to be miscalibrated"  # over rules, if any is shown
ATTRIBUTES = ("one attribute", "one or two attributes", "one to three attributes")
UNPROVEN = "which is not proof of none"
CARDINALS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


def cardinal(n: int) -> str:
    """Write a small number as a word."""
    return CARDINALS[n] if 0 <= n < len(CARDINALS) else num.count(n)


def capital(text: str) -> str:
    """A text with a capital first."""
    return text[:1].upper() + text[1:]


def together(record: AuditRecord) -> str:
    """Return how often all ranges hold, such as "95 of 100 times"."""
    times, of = num.confidence(1 - float(record.settings["alpha"]))
    return f"{times} of {of} times"


def unmade(record: AuditRecord, code: str, otherwise: str) -> Text:
    """Return in one line why what a check would show is not there, and how to get it."""
    check = check_of(record, code)
    refused = check is not None and check.status in ("not-applicable", "not-run") and check.reason
    return say(sentence(check.reason) if check is not None and refused else otherwise)


def p_reported(outcome: Outcome) -> str:
    """Write the p-value of a test; where an outcome was impossible, say so instead."""
    n = impossible(outcome)
    if n:
        return f"certain: {num.count(n)} outcome{'' if n == 1 else 's'} that the score called impossible"
    return num.p_value(outcome.p_value, draws=draws_of(outcome))


def variable_name(variable: str) -> Span:
    """The name of a variable in a sentence."""
    return Span(clipped(shown(variable), 40), "name")


def variable_names(variables: Sequence[str]) -> Text:
    """A few variables as "age, race and two more"."""
    few, more = variables[:NAMED], len(variables) - NAMED
    if more == 1:
        few, more = variables[: NAMED + 1], 0
    out: list[str | Span] = []
    for i, v in enumerate(few):
        last = i == len(few) - 1 and more <= 0
        out += [" and " if last else ", "] if i else []
        out.append(variable_name(v))
    return say(*out, f" and {cardinal(more)} more" if more > 0 else "")


def of_groups(k: int, total: int) -> str:
    """Return such as "1 of 41 groups"; "the one group" where there is only one."""
    return f"{num.count(k)} of {num.count(total)} groups" if total > 1 else "the one group"


def all_groups(total: int) -> str:
    """Return such as "all 12 groups"."""
    return f"all {num.count(total)} groups" if total > 1 else "the one group"


def people_share(share: float) -> str:
    """Write a share of people in percent: a decimal where it is under ten and one says more."""
    text = num.nearest(share, 0 if share >= 0.1 else 1)
    return f"{text.removesuffix('.0')}%"


def repair_named(recipe: str) -> str:
    """Return what a repair is called, everywhere."""
    known = words_of(recipe)
    return sanitize(recipe) if known is None else known


SCALES = {"logit": "the log-odds of the score", "raw": "the raw score", "log ratio": "the log-odds of the score"}


def fitted_to(scale: object) -> str:
    """Say what a curve is fitted to; empty of a repair that leaves no choice."""
    words = SCALES.get(str(scale))
    return f"fitted to {words}" if words else ""
