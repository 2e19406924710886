"""Every English verdict and sentence about a record; nothing else in the library judges in words."""

from __future__ import annotations

from collections.abc import Sequence

from calibrant.audit.record import AuditRecord, Finding
from calibrant.report import numbers as num
from calibrant.report.findings import (
    POCKETS,
    check_of,
    draws_of,
    impossible,
    limit_of,
    ordered,
    pockets_state,
    shift_side,
    told,
    with_verdict,
)
from calibrant.report.spans import (
    Span,
    Text,
    clipped,
    code,
    given,
    link,
    name,
    say,
    sentence,
    shown,
    strong,
)
from calibrant.results import Estimate, Outcome
from calibrant.visible import visible

VERDICTS = {"met": "Met", "undecided": "Undecided", "broken": "Broken", "none": "Not judged"}
DIRECTIONS = {
    "low": "the model says too little here",
    "high": "the model says too much here",
    "unclear": "not shown to be off here",
}
TOO = {"low": "too little", "high": "too much", "unclear": "not shown off"}
NAMED = 3  # variables in a sentence
FINDINGS = {
    "found": "Error found",
    "unfound": "No error found (not proof of none)",
    "not-applicable": "Not applicable (not a pass)",
    "not-run": "Not run",
    "measured": "Measured",
}
WHO, LOOKED_AT = "Who they are", "Looked at most closely, not shown to be badly served"  # over rules, if any is shown
HEADLINE_POCKETS = {  # behind a headline that is otherwise all within the limit
    "undecided": "; for unnamed pockets too few people to tell",
    "uncleared": "; error found in unnamed pockets, none shown over it",
}
HEADLINE_MODELS = "; error found in a mix of traits, no pocket shown over it"
TITLE_POCKETS = {"undecided": ", pockets undecided", "uncleared": ", pockets not cleared"}
TRAITS = ("one trait", "one or two traits", "one to three traits")
POCKET_WORDS = {
    "broken": "Over the limit",
    "undecided": "Undecided",
    "uncleared": "Not cleared",
    "met": "Met",
    "measured": "Not judged",
    "absent": "Not searched",
}
UNPROVEN = "which is not proof of none"
NOTICES = {  # what to know of the data, by its code: the words that open it, and what it means for the numbers
    "one-class": ("One outcome", "Everyone has the same outcome: nothing can be said of people with the other."),
    "repeated-rows": (
        "Repeated rows",
        "If they are the same people, they count more than once and the ranges are too narrow.",
    ),
    "likely-id": ("Identifiers left out", "Columns that look like identifiers are neither ranked nor tested"),
    "scores-are-decisions": (
        "Decisions, not probabilities",
        "Every score is 0 or 1. Audit the probabilities behind them.",
    ),
    "one-score": ("One score", "Everyone has the same score, to within 0.01 points."),
}
CARDINALS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


def cardinal(n: int) -> str:
    """Write a small number as a word."""
    return CARDINALS[n] if 0 <= n < len(CARDINALS) else num.count(n)


def capital(text: str) -> str:
    """Return a text with a capital first."""
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


def p_told(outcome: Outcome) -> str:
    """Write the p-value of a test; where an outcome was impossible, say so instead."""
    n = impossible(outcome)
    if n:
        return f"certain: {num.count(n)} outcome{'' if n == 1 else 's'} that the score called impossible"
    return num.p_value(outcome.p_value, draws=draws_of(outcome))


def variable_name(variable: str) -> Span:
    """Return the name of a variable in a sentence."""
    return Span(clipped(shown(variable), 40), "name")


def variable_names(variables: Sequence[str]) -> Text:
    """Return a few variables as "age, race and two more"."""
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


def headline(record: AuditRecord) -> str:
    """Return the headline of a record: one line that answers "within the limit?", the worst that is known in it.

    Parameters
    ----------
    record : AuditRecord

    Returns
    -------
    str
    """
    limit = limit_of(record)
    if limit is None:
        return _unjudged_headline(record)
    total = len(record.groups)
    broken, undecided = (len(with_verdict(record, v)) for v in ("broken", "undecided"))
    over = [of_groups(broken, total)] if broken else []
    over += ["an unnamed pocket"] if pockets_state(record) == "broken" else []
    verdict = record.everyone.verdict
    if verdict == "broken":
        more = f", and for {' and '.join(over)}" if over else ""
        return f"Over the limit for everyone together{more}"
    if verdict == "undecided":
        if over:
            return f"Too few people to tell for everyone together; over the limit for {' and '.join(over)}"
        return f"Too few people to tell: the limit of {num.limit_points(limit)} lies inside the interval"
    if over:
        return f"Within the limit for everyone together, over it for {' and '.join(over)}"
    if undecided:
        few = of_groups(undecided, total)
        return f"Within the limit for everyone together; for {few} too few people to tell"
    state = pockets_state(record)
    rest = HEADLINE_MODELS if state == "uncleared" and _by_models(record) else HEADLINE_POCKETS.get(state, "")
    return "Within the limit for everyone together" + (f" and for {all_groups(total)}" if total else "") + rest


def _by_models(record: AuditRecord) -> bool:
    """Tell whether the error that was found is none that the search of pockets finds."""
    check = check_of(record, POCKETS)
    return check is not None and check.outcome is not None and check.outcome.parts.get("found_by") == "adaptive"


def _unjudged_headline(record: AuditRecord) -> str:
    one, pockets = record.everyone, record.estimates.get(POCKETS)
    low, high = num.bounds(one, None)
    worse = pockets is not None and pockets.interval.low > one.upper.interval.high
    more = f"; an unnamed pocket by at least {num.lower_bound(pockets.interval.low)}" if pockets and worse else ""
    if crossed(one):
        return f"Off by at least {low} points raw, by at most {high} as shown{more}"
    return f"Off by {low} to {high} points on average{more}"


def page_title(record: AuditRecord) -> str:
    """Return the title of the page: the verdict in a few words, and what was audited."""
    broken = len(with_verdict(record, "broken"))
    word = VERDICTS[record.verdict] if limit_of(record) is not None else headline(record)
    if record.verdict == "broken" and record.everyone.verdict != "broken":
        word += f" for {of_groups(broken, len(record.groups)) if broken else 'an unnamed pocket'}"
    if record.verdict == "met":
        word += TITLE_POCKETS.get(pockets_state(record), "")
    return f"{word}: calibration audit of {visible(record.name)}"


def crossed(finding: Finding) -> bool:
    """Tell whether the raw lower bound exceeds the upper bound of the score shown: two scores, two truths."""
    return finding.lower.interval.low > finding.upper.interval.high


def certified_range(finding: Finding, limit: float | None) -> str:
    """Return the certified range in points, such as "0.6 to 1.2"."""
    low, high = num.bounds(finding, limit)
    return f"raw {low}, shown {high}" if crossed(finding) else f"{low} to {high}"


def error_at_most(record: AuditRecord) -> str:
    """Return what the limit is a limit of."""
    limit = limit_of(record)
    return "average error" if limit is None else f"average error at most {num.limit_points(limit)} points"


def range_label(finding: Finding, limit: float | None) -> str:
    """Return the certified range as the text of its picture."""
    low, high = num.bounds(finding, limit)
    shown = f"{low} to {high} points"
    if crossed(finding):
        shown = f"raw score at least {low} points, as shown at most {high}"
    return shown if limit is None else f"{shown}; limit {num.limit_points(limit)}"


def people(record: AuditRecord, finding: Finding) -> Text:
    """Return the natural frequencies of a finding, such as "expects 562 to be employed; 585 were"."""
    d = num.denominator(told(record))
    expected, happened = map(num.count, num.of_every(finding, d))
    if finding.variables:
        expected, happened = (num.told_of_every(finding.rows, n, d) for n in (finding.expected, finding.cases))
    outcome, was = record.settings.get("outcome"), "was" if happened == "1" else "were"
    if outcome is None:
        cases = "case" if expected == "1" else "cases"
        return say(f"expects {expected} {cases}; there {was} {happened}")
    return say(f"expects {expected} to be ", given(outcome), f"; {happened} {was}")


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
            f". {too(record)}",
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


def too(record: AuditRecord) -> str:
    """Return the direction of the overall shift as a sentence, or nothing where it is not shown."""
    words = {"low": "The probabilities are too low. ", "high": "The probabilities are too high. "}
    return words.get(shift_side(record) or "", "")


def _worst_group(record: AuditRecord, limit: float) -> Text:
    if not record.groups:
        return ()
    worst = ordered(record.groups)[0]
    low, high = num.bounds(worst, limit)
    if worst.verdict == "broken":
        start = say("For the group ", name(worst), " they are off by ", strong(f"at least {low}"))
        if record.everyone.verdict == "broken":
            return say(*start, ".")
        return say(*start, f": of every {every(record)} people in it the model ", *people(record, worst), ".")
    if record.everyone.verdict in ("broken", "undecided"):
        return ()
    if worst.verdict == "undecided" and worst.lower.interval.low <= 0.0:
        return say("No group is shown to be off at all; for the undecided there are too few people to tell.")
    if worst.verdict == "undecided":
        off = strong(f"{low} to {high}")
        need = would_decide(worst, " in it")
        return say("Closest to breaking it is the group ", name(worst), ": off by ", off, ". ", *need)
    return say("The group with the largest upper bound is ", name(worst), f", at most {high}.")


def would_decide(finding: Finding, where: str = "") -> Text:
    """Return how many people would decide, and on what condition."""
    e = num.nearest(finding.error)
    if finding.rows_needed is None:
        close = f"The error is estimated at {e} points, so close to the limit that no number of people"
        return say(f"{close}{where} is sure to decide. ")
    n = num.rows_needed(finding.rows_needed)
    amount = strong(f"{n.removeprefix('over ')} people")
    condition = f"{where} would decide, if the error is as estimated ({e} points). "
    return say("Over " if n.startswith("over ") else "About ", amount, condition)


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


def groups_word(record: AuditRecord) -> tuple[str, str]:
    """Return the status of the named groups, and its word."""
    if not record.groups:
        return "absent", "Not shown" if unshown_reason(record) else "Not asked"
    if limit_of(record) is None:
        return "measured", "Not judged"
    for verdict, words in (("broken", "over the limit"), ("undecided", "undecided")):
        if n := len(with_verdict(record, verdict)):
            return verdict, f"{num.count(n)} {words}"
    return "met", "Met"


def pockets_word(record: AuditRecord) -> tuple[str, str]:
    """Return the status of unnamed pockets, and its word: how many distinct ones are over the limit, where some are."""
    state, over = pockets_state(record), sum(map(bool, record.curve(POCKETS).columns.get("over", ())))
    if state == "broken" and over:
        return state, f"{num.count(over)} over the limit"
    return "undecided" if state == "uncleared" else state, POCKET_WORDS[state]


def pockets_told(record: AuditRecord) -> Text:
    """Return what is certified of unnamed pockets, and what would decide."""
    check, e, state = check_of(record, POCKETS), record.estimates.get(POCKETS), pockets_state(record)
    if check is None or state == "absent" or e is None:
        return unmade(record, POCKETS, "No search for them was made.")
    test = ""
    if check.outcome is not None and record.found(check) and state in ("uncleared", "measured"):
        end = ", but no pocket is certified over the limit. " if state == "uncleared" else ". "
        test = f"A test finds error ({p_told(check.outcome)}){end}"
    decide, need = "", e.settings.get("rows_needed")
    if check.status == "undecided" and need is not None:
        n = num.rows_needed(int(need))
        decide = f" {n if n.startswith('over') else f'about {n}'} rows would decide, if errors are as estimated."
    return say(test, *_pocket_least(record, e), *_pocket_most(record, e), f" {capital(decide[1:])}" if decide else "")


def _pocket_least(record: AuditRecord, e: Estimate) -> Text:
    """Return the pocket told that is certified farthest off, and the worst of all; nothing where none is off."""
    if e.interval.low <= 0.0:
        return ()
    told, low = worst_pocket(record), num.lower_bound(e.interval.low, limit_of(record))
    if told is None:
        return say("Some pocket is off by ", strong(f"at least {low} points"), ". ")
    rule, share, floor = told
    least = num.lower_bound(floor, limit_of(record))
    off = say(
        strong(f"at least {least} points"), f"; the worst pocket of all by at least {low}" if least != low else ""
    )
    return say(
        "People with ", Span(clipped(visible(rule)), "name"), f" ({people_share(share)} of all) are off by ", *off, ". "
    )


def worst_pocket(record: AuditRecord) -> tuple[str, float, float] | None:
    """Return rule, share of the people and certified size of the worst pocket told; None if none is shown to be off."""
    c = record.curve(POCKETS).columns
    lines = zip(c.get("floor", ()), c.get("rule", ()), c.get("share", ()), strict=True)
    floor, rule, share = max(lines, key=lambda line: float(line[0]), default=(0.0, "", 0.0))
    return (str(rule), float(share), float(floor)) if floor else None


def _pocket_most(record: AuditRecord, e: Estimate) -> Text:
    """Return what no pocket of people enough exceeds; nothing where there is none."""
    if e.interval.high >= 1.0:
        return ()
    high = num.upper_bound(e.interval.high, limit_of(record))
    of, size = TRAITS[int(e.settings["order"]) - 1], people_share(float(e.settings["clear_size"]))
    return say(f"No pocket of {of} with {size} of the people or more is off by more than ", strong(high), ".")


def people_share(share: float) -> str:
    """Write a share of people in per cent: a decimal where it is under ten and one says more."""
    text = num.nearest(share, 0 if share >= 0.1 else 1)
    return f"{text.removesuffix('.0')}%"


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


def unshown_reason(record: AuditRecord) -> str:
    """Return why no group is shown although some were named; empty where none were named."""
    check = check_of(record, "error-groups")
    if record.groups or check is None or check.status != "not-applicable":
        return ""
    return sentence(check.reason or "no group could be certified")


def no_groups(record: AuditRecord) -> Text:
    """Return what is said in place of the groups: that none were given, or why none is shown."""
    reason = unshown_reason(record)
    if reason:
        return say(strong("No group can be shown."), f" {reason} Name coarser groups, or audit more people.")
    return say(
        strong("No groups were given."), " Add ", code("--by age,sex"), " to see for whom the probabilities are off."
    )


def groups_answer(record: AuditRecord) -> Text:
    """Return the first line of "For whom are they off?"."""
    total = len(record.groups)
    if not total:
        reason = unshown_reason(record)
        return say(f"Not answered. {reason}" if reason else "Not asked: no groups were given.")
    if limit_of(record) is None:
        return say("No limit was given; the largest certified errors come first.")
    broken, undecided = (len(with_verdict(record, v)) for v in ("broken", "undecided"))
    if not broken and not undecided:
        return say(f"{all_groups(total).capitalize()} {'are' if total > 1 else 'is'} within the limit.")
    first = f"For {cardinal(broken)} of {num.count(total)} groups the limit is broken."
    if not broken:
        first = "No group is shown to be over the limit."
    if not undecided:
        return say(f"{first} The largest certified errors come first.")
    few = f"For {cardinal(undecided)} the people are too few to tell; the largest certified errors come first."
    return say(f"{first} {few}")


def notices(record: AuditRecord) -> tuple[tuple[str, Text], ...]:
    """Return what to know of the data before its numbers are used, each with the words that open it.

    A code that nothing knows is shown as it is, and nothing opens it.
    """
    out = []
    for warning in record.data.get("warnings") or ():
        lead, text = NOTICES.get(warning, ("", ""))
        if not lead:
            out.append(("", say(given(warning))))
        elif warning == "likely-id":
            out.append((lead, say(text, *_identifiers(record), ".")))
        else:
            counted = f"{_repeats(record)} " if warning == "repeated-rows" else ""
            out.append((lead, say(counted + text)))
    return tuple(out)


def _repeats(record: AuditRecord) -> str:
    """Say how many rows are repeated."""
    found = record.data.get("repeats") or {}
    if not found:
        return "More rows are equal than chance explains."
    about = "" if found["exact"] else "about "
    count = f"{about}{num.count(found['rows'])} of {num.count(found['of'])} rows"
    if found["by"] == "key":
        return capital(f"{count} have the key of an earlier one.")
    return capital(f"{count} equal an earlier one, more than chance explains.")


def _identifiers(record: AuditRecord) -> Text:
    """Return the names of columns that were left out as identifiers, as the end of a sentence."""
    held = record.data.get("columns") or {}
    names = [name for name, c in held.items() if c.get("kind") == "id" and c.get("used") == "left out"]
    if not names:
        return ()
    more = f" and {num.count(len(names) - NAMED)} more" if len(names) > NAMED else ""
    listed = [piece for name in names[:NAMED] for piece in (code(name), ", ")][:-1]
    return say(": ", *listed, *((more,) if more else ()))
