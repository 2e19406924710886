"""Words for one thing each, wherever a report says it: verdicts, directions, counts, names, certified ranges."""

from __future__ import annotations

from collections.abc import Sequence

from calibrant.audit.record import AuditRecord, Finding
from calibrant.repair.catalogue import words_of
from calibrant.report import numbers as num
from calibrant.report.findings import (
    by_gap,
    check_of,
    decimals,
    draws_of,
    gaps_of,
    impossible,
    limit_of,
    noun,
)
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
    return text[:1].upper() + text[1:]


def joined(texts: Sequence[str]) -> str:
    """Words as a list: "a, b and c"."""
    return " and ".join(t for t in (", ".join(texts[:-1]), *texts[-1:]) if t)


def rows_counted(record: AuditRecord) -> str:
    """How many rows an audit is of, and what they are called."""
    return f"{num.count(record.everyone.rows)} {noun(record)}"


def in_json(left_out: int, what: str = "more") -> str:
    """Say how many a table leaves out, and where they are; empty where it leaves out none."""
    return f" {num.count(left_out)} {what} are in the JSON of this audit." if left_out > 0 else ""


def whose_gaps(record: AuditRecord) -> str:
    """Whose gaps were certified, in words."""
    if not record.everyone.proved_above:
        return f"the {num.count(record.everyone.upper.n)} {noun(record)} that are no pilots"
    return {"rows": "the {} in the data", "population": "all {} like these"}[gaps_of(record)].format(noun(record))


def together(record: AuditRecord) -> str:
    """How often all ranges hold, such as "95 of 100 times"."""
    times, of = num.confidence(1 - float(record.settings["alpha"]))
    return f"{times} of {of} times"


def unmade(record: AuditRecord, code: str, otherwise: str) -> Text:
    """Why what a check would show is not there, and how to get it, in one line."""
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


def people_share(share: float) -> str:
    """Write a share of people in percent: a decimal where it is under ten and one says more."""
    text = num.nearest(share, 0 if share >= 0.1 else 1)
    return f"{text.removesuffix('.0')}%"


def repair_named(recipe: str) -> str:
    known = words_of(recipe)
    return sanitize(recipe) if known is None else known


SCALES = {"logit": "the log-odds of the score", "raw": "the raw score", "log ratio": "the log-odds of the score"}


def fitted_to(scale: object) -> str:
    """Say what a curve is fitted to; empty of a repair that leaves no choice."""
    words = SCALES.get(str(scale))
    return f"fitted to {words}" if words else ""


def certified_range(finding: Finding, *, dashed: bool = False) -> str:
    """The certified range of the calibration error in points: "0.6 to 1.2", in a table "0.6–1.2"."""
    low, high = num.bounds(*finding.error_ends, finding.limit)
    if not finding.proved_above:
        return f"{low} or more"
    if finding.two_scores:
        return f"raw {low}, rounded {high}"
    return num.between(low, high) if dashed else f"{low} to {high}"


def judged_range(finding: Finding) -> str:
    """The certified range of what the limit is about: the calibration error, or the size of the gap."""
    if finding.by == "error":
        return certified_range(finding)
    return " to ".join(num.bounds(*finding.shown, finding.limit))


def gap_guaranteed(record: AuditRecord, finding: Finding) -> str:
    """The guaranteed range of a gap, rounded outward; of rare events to hundredths of a point."""
    return " to ".join(num.signed_range(*finding.gap_ends, decimals(record)))


def over_expected(finding: Finding) -> str:
    """Observed over expected events with its ordinary interval, such as "1.15 (1.06 to 1.25)"; a dash for none."""
    ratio = finding.observed_expected
    if ratio is None:
        return "–"
    of = ratio.interval
    return f"{ratio.value:.2f}" + ("" if of is None else f" ({of.low:.2f} to {of.high:.2f})")


def error_at_most(record: AuditRecord, part: str) -> str:
    """What the limit is a limit of."""
    limit, what = limit_of(record), "gap" if by_gap(record, part) else "calibration error"
    return what if limit is None else f"{what} at most {bound_of(record)}"


def bound_of(record: AuditRecord) -> str:
    """The limit in words: points, or a share of the mean score and how many points of everyone that is."""
    limit, relative = limit_of(record), record.settings.get("limit_relative")
    points = "" if limit is None else f"{num.limit_points(limit)} points"
    return points if relative is None else f"{num.percent(relative)}% of the mean score ({points} for everyone)"


def verdict_on(finding: Finding) -> str:
    """The verdict on a finding in words; of a group within the limit by its gap, that it is the gap that is."""
    if finding.withheld is not None:
        return "Withheld"
    if finding.verdict == "within" and finding.variables and finding.by == "gap" and finding.limit:
        return f"Gap within {num.limit_points(finding.limit)}"
    return VERDICTS[finding.verdict]


def jointly_wrong(record: AuditRecord) -> str:
    """How often a verdict is wrong at most, by the shares of alpha that were used, as a sentence without its stop."""
    over, within, error = joint_shares(record)
    if not record.shares:
        return "Nothing is decided"
    if limit_of(record) is None:
        return f"Error is shown wrongly in at most {error} of such reports"
    return f"In at most {over} of such reports is any “over” wrong, in at most {within} any “within”"


def joint_shares(record: AuditRecord) -> tuple[str, ...]:
    """The joint error of "over", of "within" and of "error shown", each in percent."""
    return tuple(f"{num.percent(record.joint_error[kind])}%" for kind in ("over", "within", "error_shown"))


AT_THRESHOLDS = {"decisions": "decisions", "decision_curve": "net benefit curve", "rates": "rates"}


def at_thresholds(record: AuditRecord) -> str:
    """The error of each part that is certified at thresholds, by the alpha that it used; empty where none is."""
    parts = ((word, record.curve(name)) for name, word in AT_THRESHOLDS.items())
    used = [f"{word} {num.percent(float(c.settings['alpha']))}%" for word, c in parts if c.columns]
    return ", ".join(used)


def classes_counted(record: AuditRecord) -> str:
    """Such as "5 classes and 4 cuts": how many events of classes are judged."""
    cuts = len(record.classes) - len(record.data["classes"])
    classes = f"{num.count(len(record.classes) - cuts)} classes"
    return f"{classes} and {num.count(cuts)} {'cut' if cuts == 1 else 'cuts'}" if cuts else classes
