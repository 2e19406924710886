"""What to know before using the numbers, and what to do next."""

from __future__ import annotations

from calibrant.audit.record import AuditRecord, Finding
from calibrant.report import numbers as num
from calibrant.report import repairs
from calibrant.report.order import MOST_ROWS, limit_of, median_need, with_verdict
from calibrant.report.spans import Text, code, link, name, say, title
from calibrant.report.wording import cardinal, too, unshown_reason, would_decide


def caveats(record: AuditRecord) -> tuple[Text, ...]:
    """Return the three things to know before using the numbers."""
    by = num.step(record.settings["levels"])
    averages = "An average error of 1 point can hide larger errors for some people, in both directions."
    rows = (
        "No household or site column was given, so rows were treated as independent. "
        "If they are not, the ranges are too narrow."
    )
    steps = (
        f"“At most” is about probabilities displayed in steps of {by}. “At least” is about the raw score. "
        "So “a to b” is a certified range, not a confidence interval."
    )
    return (
        say(title("Averages, not individuals"), averages),
        say(title("Independent rows"), rows),
        say(title(f"Shown in steps of {by}"), steps),
    )


def next_steps(record: AuditRecord) -> tuple[Text, ...]:
    """Return at most three things to do next, the most pressing first."""
    steps = [*_for_broken(record), *_for_undecided(record)]
    if limit_of(record) is None:
        steps.append(
            say(
                "Choose the largest error you can accept, before you see the next data, and pass it: ",
                code("--limit 0.02"),
                " is 2 points.",
            )
        )
    if unshown_reason(record):
        steps.append(say("Name coarser groups, or audit more people, to see for whom the probabilities are off."))
    elif not record.groups:
        steps.append(say("Name the groups that matter: ", code("--by age,sex"), "."))
    if record.verdict == "met":
        steps.append(say("Audit again when the model, the people or the years change."))
    return tuple(steps[:3])


def _for_broken(record: AuditRecord) -> list[Text]:
    broken = with_verdict(record, "broken")
    steps: list[Text] = []
    if record.everyone.verdict == "broken":
        on_balance = too(record).strip().replace("The probabilities", "They") or ""
        steps.append(say(f"Do not take the probabilities at face value. {on_balance}".strip()))
    elif broken:
        steps.append(
            say(
                "Do not take the probabilities at face value for ",
                name(broken[0], linked=True),
                _and_others(len(broken) - 1),
                ". ",
                _sample_direction(broken[0], len(broken) > 1),
            )
        )
    if steps:
        alone = say("Recalibrate the model on people who are not in this audit, then audit it again.")
        steps.append(repairs.step(record) or alone)
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
        steps.append(_collect(record.everyone))
    if len(undecided) == 1:
        only = undecided[0]
        steps.append(
            say(name(only, linked=len(record.groups) <= MOST_ROWS), " is undecided. ", *would_decide(only, " in it"))
        )
    elif undecided:
        need = median_need(undecided)
        if need is None:
            first = "For most undecided groups the estimate sits on the limit; more people may not settle them. "
        else:
            n = num.rows_needed(need)
            much = f"{n} rows" if n.startswith("over") else f"about {n} rows or fewer"
            first = f"Half of the undecided groups would need {much} to settle, "
            first += "if their errors are as estimated. "
        steps.append(say(first, link("Rows that would decide", "groups-all")))
    return steps


def _collect(one: Finding) -> Text:
    if one.rows_needed is None:
        return say("The error as estimated is too close to the limit for any number of people to settle it surely.")
    n = num.rows_needed(one.rows_needed)
    return say(f"Collect more people before you rely on the limit: {n if n.startswith('over') else f'about {n}'}.")
