"""The first screen: the verdict, certified ranges on a ruler, what to know before using them, what to do next."""

from __future__ import annotations

from collections.abc import Iterator

from calibrant.audit.record import AuditRecord, Finding
from calibrant.report import numbers as num
from calibrant.report import places, svg
from calibrant.report.document import (
    EVERYWHERE,
    MARKDOWN,
    NOWHERE,
    PAGE,
    TERMINAL,
    Contents,
    Heading,
    Items,
    Link,
    Mark,
    Node,
    Opening,
    Paragraph,
    Part,
    Parts,
    Ruler,
)
from calibrant.report.findings import MOST_ROWS, POCKETS, limit_of, median_need, ordered, pockets_state, with_verdict
from calibrant.report.outline import Declared, declared
from calibrant.report.sections.repair import step
from calibrant.report.spans import Span, Text, clipped, code, link, name, say, title, value_label, variable_label
from calibrant.report.wording import (
    VERDICTS,
    cardinal,
    certified_range,
    groups_word,
    headline,
    lead,
    no_groups,
    notices,
    pockets_told,
    pockets_word,
    range_label,
    tally,
    too,
    unshown_reason,
    worst_pocket,
    would_decide,
)
from calibrant.visible import visible

IN_PART = "Met in part"  # everyone and every named group are within the limit, unnamed pockets are not cleared
WORST = 4  # groups on the ruler of the page
TERSE = 9  # groups on the ruler of a terminal


def summary(record: AuditRecord) -> Iterator[Node]:
    """Return the verdict in three parts, the ruler, three caveats and at most three next steps."""
    limit = limit_of(record)
    verdict, word = ("", "") if limit is None else (record.verdict, VERDICTS[record.verdict])
    if verdict == "met" and pockets_state(record) in ("undecided", "uncleared"):
        verdict, word = "undecided", IN_PART
    yield Opening(headline(record), lead(record), verdict, word)
    three = parts(record)
    yield Parts(three, PAGE)
    yield ruler(record)
    yield Parts(three, MARKDOWN | TERMINAL)
    yield Contents(tuple(Link(d.id, d.nav, d.verdict(record)) for d in declared()))
    yield Heading("Before you use these numbers")
    yield Items(caveats(record), "three")
    if told := notices(record):
        yield Items(tuple(say(title(lead), *text) if lead else text for lead, text in told), "three")
        known = [span for lead, text in told if lead for span in say(f"{lead}. ", *text, " ")][:-1]
        yield Paragraph(say("Data: ", *known), where=TERMINAL if known else NOWHERE)
    steps = next_steps(record)
    if steps:
        yield Heading("What to do next")
        yield Items(steps, numbered=True, closes=True, where=EVERYWHERE)


# ---- the three parts of the verdict, and everyone and the worst groups on one axis ----


def parts(record: AuditRecord) -> tuple[Part, ...]:
    """Return everyone, the named groups and unnamed pockets; a part that was not asked for says how to ask."""
    one, total, limit = record.everyone, len(record.groups), limit_of(record)
    status, word = ("measured", "Not judged") if limit is None else (one.verdict, VERDICTS[one.verdict])
    bound = "" if limit is None else f" The limit is {num.limit_points(limit)}."
    everyone = say(f"Off by {certified_range(one, limit)} points on average.{bound}")
    unjudged = say("A certified range each. ", link("See all groups", "groups"))
    named = no_groups(record) if not total else unjudged if limit is None else tally(record)
    pocket, told = pockets_word(record), pockets_told(record)
    more = say(link("See pockets", "pockets")) if POCKETS in record.estimates else ()
    return (
        Part("Everyone", status, word, everyone),
        Part(_named(total), *groups_word(record), named, () if total and limit is None else named),
        Part("Unnamed pockets", *pocket, say(*told, " ", *more), say(f"Unnamed pockets: {pocket[1].lower()}. ", *told)),
    )


def _named(total: int) -> str:
    return f"{num.count(total)} named groups" if total > 1 else "The named group" if total else "Named groups"


def ruler(record: AuditRecord) -> Ruler:
    """Return everyone and the groups with the largest certified error on one axis."""
    limit, groups = limit_of(record), ordered(record.groups)
    top = places.ruler_top([record.everyone, *groups[:WORST]], limit)
    n, more = min(WORST, len(groups)), len(groups) - TERSE
    of = f" and of the {n} groups with the largest certified error" if n > 1 else " and of the group" if n else ""
    return Ruler(
        label=f"Certified average error of everyone{of}",
        marks=tuple(_mark(f, limit, top) for f in (record.everyone, *groups[:TERSE])),
        shown=1 + n,
        axis=svg.ruler_axis(top, "average error, points (1 point = 1 person in 100)"),
        limit="" if limit is None else svg.ruler_limit(limit, top, f"limit {num.limit_points(limit)}"),
        more=f"and {num.count(more)} more groups" if more > 0 else "",
        judged=limit is not None,
    )


def _mark(f: Finding, limit: float | None, top: float) -> Mark:
    low, high = f.lower.interval.low, f.upper.interval.high
    track = places.track(low, high, top, f.verdict, range_label(f, limit), limit)
    return Mark(
        value=value_label(f) if f.variables else "Everyone",
        variable=variable_label(f),
        people=num.count(f.rows),
        range=certified_range(f, limit),
        verdict=f.verdict,
        word=VERDICTS[f.verdict],
        bar=svg.track(track),
    )


# ---- what to know, and what to do ----


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
        steps += _for_pockets(record)
        steps.append(say("Audit again when the model, the people or the years change."))
    return tuple(steps[:3])


def _for_broken(record: AuditRecord) -> list[Text]:
    broken, pocket = with_verdict(record, "broken"), pockets_state(record) == "broken"
    steps: list[Text] = []
    if record.everyone.verdict == "broken":
        on_balance = too(record).strip().replace("The probabilities", "They")
        steps.append(say(f"Do not take the probabilities at face value. {on_balance}".strip()))
    elif broken:
        steps.append(
            say(
                "Do not take the probabilities at face value for ",
                name(broken[0], linked=True),
                _and_others(len(broken) - 1),
                " and an unnamed pocket. " if pocket else ". ",
                _sample_direction(broken[0], len(broken) > 1 or pocket),
            )
        )
    elif pocket:
        steps.append(say("Do not take the probabilities at face value for ", *_pocket(record), "."))
    if steps:
        alone = say("Recalibrate the model on people who are not in this audit, then audit it again.")
        steps.append(step(record) or alone)
    return steps


def _for_pockets(record: AuditRecord) -> list[Text]:
    """Return what to do about unnamed pockets where all else is within the limit."""
    state, e = pockets_state(record), record.estimates.get(POCKETS)
    if state == "uncleared":
        rest = " before you rely on the probabilities for everyone."
        return [say("Error was found in a mix of traits: look at ", link("unnamed pockets", "pockets"), rest)]
    need = None if e is None else e.settings.get("rows_needed")
    if state == "undecided" and need is not None:
        n = num.rows_needed(int(need))
        return [say(f"To settle unnamed pockets, audit {n if n.startswith('over') else f'about {n}'} rows.")]
    return []


def _pocket(record: AuditRecord) -> Text:
    """Return the pocket that is over the limit, linked to its part of the page."""
    told = worst_pocket(record)
    return (
        say("people with ", Span(clipped(visible(told[0])), "name", "#pockets")) if told else say("an unnamed pocket")
    )


def _and_others(k: int) -> str:
    return "" if k == 0 else f" and {cardinal(k)} more group{'' if k == 1 else 's'}"


def _sample_direction(finding: Finding, several: bool) -> str:
    who = "For the first they" if several else "They"
    if abs(finding.gap.value) < finding.lower.interval.low / 2:
        return f"{who} err in both directions."
    return f"{who} are too {'low' if finding.gap.value > 0 else 'high'} on balance."


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


DECLARED = (Declared(id="summary", order=10, nav="The answer", heading="", nodes=summary),)
