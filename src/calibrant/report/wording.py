"""Every English verdict and sentence about a record; nothing else in the library judges in words."""

from __future__ import annotations

from dataclasses import dataclass

from calibrant.audit.record import AuditRecord, Check, Finding
from calibrant.report import numbers as num
from calibrant.report.order import (
    limit_of,
    median_need,
    ordered,
    shift_side,
    side,
    told,
    with_verdict,
)
from calibrant.report.spans import Span, Text, code, link, name, say, strong, title, visible

VERDICTS = {"met": "Met", "undecided": "Undecided", "broken": "Broken", "none": "Not judged"}
DIRECTIONS = {
    "low": "the model says too little here",
    "high": "the model says too much here",
    "unclear": "not shown to be off here",
}
FOUND, NOT_FOUND = "Error found", "No error found (not proof of none)"
NOT_APPLICABLE, NOT_RUN, MEASURED = "Not applicable (not a pass)", "Not run", "Measured"
CARDINALS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


def cardinal(n: int) -> str:
    """Write a small number as a word."""
    return CARDINALS[n] if 0 <= n < len(CARDINALS) else num.count(n)


def of_groups(k: int, total: int) -> str:
    """Return such as "1 of 41 groups"; "the one group" where there is only one."""
    return f"{num.count(k)} of {num.count(total)} groups" if total > 1 else "the one group"


def all_groups(total: int) -> str:
    """Return such as "all 12 groups"."""
    return f"all {num.count(total)} groups" if total > 1 else "the one group"


def headline(record: AuditRecord) -> str:
    """Return the headline of a record: one line that answers "within the limit?".

    Parameters
    ----------
    record : AuditRecord

    Returns
    -------
    str
    """
    limit = limit_of(record)
    if limit is None:
        return _unjudged_headline(record.everyone)
    total = len(record.groups)
    broken, undecided = (len(with_verdict(record, v)) for v in ("broken", "undecided"))
    verdict = record.everyone.verdict
    if verdict == "broken":
        more = f", and for {of_groups(broken, total)}" if broken else ""
        return f"Over the limit for everyone together{more}"
    if verdict == "undecided":
        if broken:
            return f"Too few people to tell for everyone together; over the limit for {of_groups(broken, total)}"
        return f"Too few people to tell: the limit of {num.limit_points(limit)} lies inside the interval"
    if broken:
        return f"Within the limit for everyone together, over it for {of_groups(broken, total)}"
    if undecided:
        few = of_groups(undecided, total)
        return f"Within the limit for everyone together; for {few} too few people to tell"
    return "Within the limit for everyone together" + (f" and for {all_groups(total)}" if total else "")


def _unjudged_headline(one: Finding) -> str:
    low, high = num.bounds(one, None)
    if crossed(one):
        return f"Off by at least {low} points raw, by at most {high} as shown"
    return f"Off by {low} to {high} points on average"


def page_title(record: AuditRecord) -> str:
    """Return the title of the page: the verdict in a few words, and what was audited."""
    broken = len(with_verdict(record, "broken"))
    word = VERDICTS[record.verdict] if limit_of(record) is not None else headline(record)
    if record.verdict == "broken" and broken and record.everyone.verdict != "broken":
        word += f" for {of_groups(broken, len(record.groups))}"
    return f"{word}: calibration audit of {visible(record.name)}"


def crossed(finding: Finding) -> bool:
    """Tell whether the raw lower bound exceeds the upper bound of the score shown: two scores, two truths."""
    return finding.lower.interval.low > finding.upper.interval.high


def certified_range(finding: Finding, limit: float | None) -> str:
    """Return the certified range in points, such as "0.6 to 1.2"."""
    low, high = num.bounds(finding, limit)
    return f"raw {low}, shown {high}" if crossed(finding) else f"{low} to {high}"


def range_label(finding: Finding, limit: float | None) -> str:
    """Return the certified range as the text of its picture."""
    low, high = num.bounds(finding, limit)
    shown = f"{low} to {high} points"
    if crossed(finding):
        shown = f"raw score at least {low} points, as shown at most {high}"
    return shown if limit is None else f"{shown}; limit {num.limit_points(limit)}"


def people(record: AuditRecord, finding: Finding) -> Text:
    """Return the natural frequencies of a finding, such as "expects 562 to be employed; 585 were"."""
    expected, happened = num.of_every(finding, num.denominator(told(record)))
    outcome = record.settings.get("outcome")
    if outcome is None:
        was = "was" if happened == 1 else "were"
        cases = "case" if expected == 1 else "cases"
        return say(f"expects {num.count(expected)} {cases}; there {was} {num.count(happened)}")
    verb = "was" if happened == 1 else "were"
    who = Span(visible(outcome), "name")
    return say(f"expects {num.count(expected)} to be ", who, f"; {num.count(happened)} {verb}")


def every(record: AuditRecord) -> str:
    """Return the one denominator of the page, written."""
    return num.count(num.denominator(told(record)))


def lead(record: AuditRecord) -> Text:
    """Return the paragraph under the headline."""
    limit, one = limit_of(record), record.everyone
    low, high = num.bounds(one, limit)
    over = f"Over all {num.count(one.rows)} people, the probabilities "
    if limit is None:
        return (
            *say(over, "are off by ", strong(f"at least {low} points"), " on average; shown in steps of "),
            *say(num.step(record.settings["levels"]), ", by ", strong(f"at most {high}"), "."),
            *say(" No limit was given, so nothing here is judged."),
        )
    if one.verdict == "broken":
        return say(
            f"{over}are off by ",
            strong(f"at least {low} points"),
            f" on average; the limit is {num.limit_points(limit)}. ",
            f"Of every {every(record)} people the model ",
            *people(record, one),
            f". {_too(record)}",
            *_worst_group(record, limit),
        )
    if one.verdict == "undecided":
        shown = f"{low} to {high} points"
        return say(
            f"{over}shown are off by ",
            strong(shown),
            " on average. ",
            *would_decide(one),
            *_worst_group(record, limit),
        )
    return say(
        f"{over}shown are off by ",
        strong(f"at most {high} points"),
        f" on average, within the limit of {num.limit_points(limit)}. ",
        *_worst_group(record, limit),
    )


def _too(record: AuditRecord) -> str:
    words = {"low": "The probabilities are too low. ", "high": "The probabilities are too high. "}
    return words.get(shift_side(record) or "", "")


def _worst_group(record: AuditRecord, limit: float) -> Text:
    if not record.groups:
        return ()
    worst = ordered(record.groups)[0]
    low, high = num.bounds(worst, limit)
    if worst.verdict == "broken":
        return say(
            "For the group ",
            Span(name(worst).text, "name"),
            " they are off by ",
            strong(f"at least {low}"),
            f": of every {every(record)} people in it the model ",
            *people(record, worst),
            ".",
        )
    if record.everyone.verdict in ("broken", "undecided"):
        return ()
    if worst.verdict == "undecided":
        return say(
            "Least certain is the group ", name(worst), ": off by ", strong(f"{low} to {high}"), ". ",
            *would_decide(worst, " in it"),
        )  # fmt: skip
    return say("The group with the largest upper bound is ", name(worst), f", at most {high}.")


def would_decide(finding: Finding, where: str = "") -> Text:
    """Return how many people would decide, and on what condition."""
    e = num.nearest(finding.error)
    if finding.rows_needed is None:
        return say(f"The error is estimated at {e} points, so close to the limit that no number of people{where}")\
            + say(" is sure to decide. ")  # fmt: skip
    n = num.rows_needed(finding.rows_needed)
    about = n if n.startswith("over") else f"about {n}"
    return say(
        about[0].upper() + about[1:].split(" ", 1)[0] + " ",
        strong(f"{about.split(' ', 1)[1]} people"),
        f"{where} would decide, if the error is as estimated ({e} points). ",
    )


def tally(record: AuditRecord) -> Text:
    """Return the count of verdicts over the groups."""
    broken, undecided, met = (len(with_verdict(record, v)) for v in ("broken", "undecided", "met"))
    return say(
        strong(num.count(broken)),
        f" group{'' if broken == 1 else 's'} broken, ",
        strong(num.count(undecided)),
        " undecided, ",
        strong(num.count(met)),
        " met. ",
        "Undecided is not a pass: too few people to tell. " if undecided else "",
        link("See all groups", "groups"),
    )


def caveats(record: AuditRecord) -> tuple[Text, ...]:
    """Return the three things to know before using the numbers."""
    by = num.step(record.settings["levels"])
    return (
        say(title("Averages, not individuals"), "An average error of 1 point can hide larger errors for some ",
            "people, in both directions."),
        say(title("Independent rows"), "No household or site column was given, so rows were treated as ",
            "independent. If they are not, the ranges are too narrow."),
        say(title(f"Shown in steps of {by}"), f"“At most” is about probabilities displayed in steps of {by}. ",
            "“At least” is about the raw score. So “a to b” is a certified range, not a confidence interval."),
    )  # fmt: skip


def next_steps(record: AuditRecord) -> tuple[Text, ...]:
    """Return at most three things to do next, the most pressing first."""
    steps = [*_for_broken(record), *_for_undecided(record)]
    if limit_of(record) is None:
        steps.append(
            say("Choose the largest error you can accept, before you see the next data, and pass it: ",
                code("--limit 0.02"), " is 2 points.")
        )  # fmt: skip
    if not record.groups:
        steps.append(say("Name the groups that matter: ", code("--by age,sex"), "."))
    if record.verdict == "met":
        steps.append(say("Audit again when the model, the people or the years change."))
    return tuple(steps[:3])


def _for_broken(record: AuditRecord) -> list[Text]:
    broken = with_verdict(record, "broken")
    steps: list[Text] = []
    if record.everyone.verdict == "broken":
        on_balance = _too(record).strip().replace("The probabilities", "They") or ""
        steps.append(say(f"Do not take the probabilities at face value. {on_balance}".strip()))
    elif broken:
        steps.append(
            say("Do not take the probabilities at face value for ", name(broken[0], linked=True),
                _and_others(len(broken) - 1), ". ", _sample_direction(broken[0], len(broken) > 1))
        )  # fmt: skip
    if steps:
        steps.append(say("Recalibrate the model on people who are not in this audit, then audit it again."))
    return steps


def _and_others(k: int) -> str:
    return "" if k == 0 else f" and {cardinal(k)} more group{'' if k == 1 else 's'}"


def _sample_direction(finding: Finding, several: bool) -> str:
    who = "For the first they" if several else "They"
    if abs(finding.gap) < finding.lower.interval.low / 2:
        return f"{who} err in both directions."
    return f"{who} are too {'low' if finding.gap > 0 else 'high'} on balance."


def _for_undecided(record: AuditRecord) -> list[Text]:
    undecided = with_verdict(record, "undecided")
    steps: list[Text] = []
    if record.everyone.verdict == "undecided":
        steps.append(say("Collect more people before you rely on the limit. ", *would_decide(record.everyone)))
    if len(undecided) == 1:
        steps.append(say(*would_decide(undecided[0], " in "), name(undecided[0], linked=True)))
        steps[-1] = _single(undecided[0])
    elif undecided:
        need = median_need(undecided)
        if need is None:
            first = "For most undecided groups the estimate sits on the limit, so more people may not settle them. "
        else:
            n = num.rows_needed(need)
            much = f"{n} rows" if n.startswith("over") else f"about {n} rows or fewer"
            first = f"Half of the undecided groups would need {much} to settle, if their errors are as estimated. "
        steps.append(say(first, link("Rows that would decide", "groups-all")))
    return steps


def _single(finding: Finding) -> Text:
    return say(name(finding, linked=True), " is undecided. ", *would_decide(finding, " in it"))


def overall_answer(record: AuditRecord) -> Text:
    """Return the first line of "How far off are the probabilities?"."""
    one = record.everyone
    predicted, observed = num.rates(one.expected / one.rows, one.cases / one.rows)
    limit = limit_of(record)
    start = f"On average by {certified_range(one, limit)} points."
    if crossed(one):
        low, high = num.bounds(one, limit)
        start = f"On average the raw score by at least {low} points, the score as shown by at most {high}."
    mostly = {
        "low": "Mostly the model says too little: it",
        "high": "Mostly the model says too much: it",
        "unclear": "On balance it is not shown to be off: the model",
    }.get(shift_side(record) or "", "The model")
    return say(f"{start} {mostly} promises {predicted} in 100, and {observed} in 100 happened.")


def groups_answer(record: AuditRecord) -> Text:
    """Return the first line of "For whom are they off?"."""
    total = len(record.groups)
    if not total:
        return say("Not asked: no groups were given.")
    if limit_of(record) is None:
        return say("No limit was given; the largest certified errors come first.")
    broken, undecided = (len(with_verdict(record, v)) for v in ("broken", "undecided"))
    if not broken and not undecided:
        return say(f"{all_groups(total).capitalize()} {'are' if total > 1 else 'is'} within the limit.")
    first = f"For {cardinal(broken)} of {num.count(total)} groups the limit is broken."
    if not undecided:
        return say(f"{first} The largest certified errors come first.")
    few = f"For {cardinal(undecided)} the people are too few to tell; the largest certified errors come first."
    return say(f"{first} {few}")


@dataclass(frozen=True, slots=True)
class CheckLine:
    """One row of the table of checks."""

    question: Text
    status: str
    found: str
    numbers: Text
    meaning: str


def check_line(check: Check, record: AuditRecord) -> CheckLine:
    """Return what a check asked and found; a code not known here is shown as it is."""
    from calibrant.report.checks import describe

    question, numbers, meaning = describe(check, record)
    if check.status in ("not-applicable", "not-run"):
        numbers = say(visible(check.reason) or "no reason given")
    return CheckLine(question, *finding_word(check, record), numbers, meaning)


def finding_word(check: Check, record: AuditRecord) -> tuple[str, str]:
    """Return the status that picks an icon, and the words for it; a measurement is never met or broken."""
    if check.status in ("met", "undecided", "broken"):
        return check.status, VERDICTS[check.status]
    if check.status == "not-applicable":
        return "absent", NOT_APPLICABLE
    if check.status == "not-run":
        return "absent", NOT_RUN
    if check.code == "shift":
        off = shift_side(record) in ("low", "high")
    elif check.code == "reliability":
        off = bins_off(record) > 0
    else:
        return "measured", MEASURED
    return ("found", FOUND) if off else ("unfound", NOT_FOUND)


def bins_off(record: AuditRecord) -> int:
    """Return in how many ranges of the score the simultaneous range of the gap excludes zero."""
    columns = record.reliability.columns
    ends = zip(columns.get("gap_low", ()), columns.get("gap_high", ()), strict=True)
    return sum(side(low, high) != "unclear" for low, high in ends)
