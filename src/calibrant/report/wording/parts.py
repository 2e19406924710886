"""The verdict in three parts: everyone, the named groups, unlisted subgroups; none of them stands for another."""

from __future__ import annotations

from collections.abc import Sequence

from calibrant.audit.record import AuditRecord, Finding, at_limit
from calibrant.report import findings as facts
from calibrant.report import numbers as num
from calibrant.report.findings import groupings
from calibrant.report.spans import Span, Text, clipped, code, literal, say, sentence, shown, strong
from calibrant.report.wording.clusters import independent
from calibrant.report.wording.terms import (
    ATTRIBUTES,
    VERDICTS,
    p_reported,
    people_share,
    verdict_on,
)
from calibrant.results import Estimate
from calibrant.sanitize import sanitize

STATES = {  # of a part of the verdict: the status that marks it, and its word
    **{k: (k, word) for k, word in VERDICTS.items() if k != "not_checked"},
    "not_checked": ("measured", VERDICTS["not_checked"]),
    "error_shown": ("error_shown", "Error shown"),
    "absent": ("absent", "Not checked"),
    "withheld": ("undecided", "Withheld"),
}
SIDES = {"low": "underpredicted", "high": "overpredicted", "unclear": "off"}
ORDER = ("over", "error_shown", "undecided", "within", "measured")  # of states, the worst first
COUNTED = {  # how many groups are in a state, in words
    "over": "over the limit",
    "error_shown": "with error shown",
    "within": "within",
    "undecided": "undecided",
    "measured": "without error shown",
}
LONGER = 120  # characters of the rule of a subgroup


def verdict_word(record: AuditRecord, part: str) -> tuple[str, str]:
    """The status of a part of the verdict and its word; of groups how many are in each state, the worst first."""
    state = facts.state(record, part)
    if part == "everyone" and state in facts.VERDICT_STATES:
        return state_of(record.everyone)
    if part in ("groups", "classes") and state in facts.VERDICT_STATES:
        status, word = _counted(record.groups if part == "groups" else record.classes)
        if part == "classes" and status == "within" and (n := facts.common_less(record)):
            status, word = "measured", f"{word}; the limit is larger than the mean probability of {num.count(n)}"
        if part == "groups" or (summed := facts.summed(record)) == "not_checked":
            return status, word
        return min(status, summed, key=ORDER.index), f"{word}; all added up: {STATES[summed][1].lower()}"
    if part == "subgroups" and state == "not_checked" and record.error_shown["subgroups"]:
        return STATES["error_shown"]
    status, word = STATES.get(state, (state, sanitize(state)))
    n = len(facts.subgroups_over(record)) if state == "over" else 0
    return status, f"{num.count(n)} {word.lower()}" if n else word


def marked(record: AuditRecord, part: str) -> str:
    """The status that marks a part of the verdict wherever it is named; empty where nothing is decided or shown."""
    status = verdict_word(record, part)[0]
    return status if status in ("within", "undecided", "over", "error_shown") else ""


def state_of(finding: Finding) -> tuple[str, str]:
    """The status of a finding and its word: the verdict, and that error is shown where it says less."""
    verdict, word = finding.verdict, verdict_on(finding)
    if finding.error_shown and verdict in ("undecided", "not_checked") and finding.withheld is None:
        return STATES["error_shown"]
    if verdict == "within" and finding.error_shown and not gap_shows_none(finding):
        return "within", f"{word}, error shown"
    return ("measured" if verdict == "not_checked" and finding.withheld is None else STATES[verdict][0]), word


def gap_shows_none(finding: Finding) -> bool:
    """Whether the gap, which is judged, shows no error: what the calibration error shows stands next to it."""
    low, high = finding.gap_ends
    return finding.by == "gap" and low <= 0.0 <= high


def _counted(findings: Sequence[Finding]) -> tuple[str, str]:
    each = [state_of(f) for f in findings]
    known = {
        s: sum(status == s for status, _ in each) for s in ("over", "error_shown", "within", "undecided", "measured")
    }
    left = {s: n for s, n in known.items() if n}
    if len(left) == 1:
        status, word = next(iter(left)), each[0][1] if len({w for _, w in each}) == 1 else ""
        word = word or f"All {COUNTED[status]}"
        return status, word
    return min(left, key=ORDER.index), ", ".join(f"{num.count(n)} {COUNTED[s]}" for s, n in left.items())


def page_status(record: AuditRecord) -> str:
    """The status of the three parts together: the worst of them; "measured" without a limit."""
    states = set(facts.states(record).values())
    return "measured" if facts.limit_of(record) is None else next((s for s in ORDER if s in states), "measured")


# ---- the named groups ----


def unchecked(record: AuditRecord) -> Text:
    """Which columns of groups have none that is judged, and why; nothing where each has one."""
    seen, by = {tuple(k for k, _ in f.variables) for f in record.groups}, independent(record)
    gone = [names for names in groupings(record) if names not in seen]
    alone = {names for names in gone if len(names) == 1}
    reported: list[Text] = []
    for names in gone:
        if len(names) > 1 and any((name,) in alone for name in names):
            continue  # for want of the groups of one column by itself
        which = [piece for i, name in enumerate(names) for piece in (*((" by ",) if i else ()), literal(shown(name)))]
        start, why = "Groups of ", "none can be shown without revealing a few people."
        if names == (by.column,):
            start, why = f"{by.one_each} groups of ", "one cluster each."
        reported.append(say(start, *which, f": not checked, {why}"))
    return _joined(reported)


def worst_end(record: AuditRecord) -> float:
    """What no group that is shown exceeds, as the verdict leaves it."""
    e, limit = record.estimates.get("worst_group"), facts.limit_of(record)
    high = max(f.shown[1] for f in record.groups) if e is None else e.interval.high
    return at_limit(0.0, high, facts.state(record, "groups"), limit)[1]


def beyond_worst(record: AuditRecord, shown: Sequence[Finding]) -> str:
    """Why the range of a group that is shown goes beyond what no group exceeds; empty where none does."""
    limit, high = facts.limit_of(record), worst_end(record) if record.groups else 1.0
    widest = max((f.shown[1] for f in shown if f.variables), default=0.0)
    if high >= 1.0 or widest <= high or num.upper_bound(widest, limit) == num.upper_bound(high, limit):
        return ""
    return (
        f"The ranges of groups are simultaneous; that none exceeds {num.upper_bound(high, limit)} is a separate "
        "statement."
    )


# ---- unnamed subgroups ----


def subgroups_reported(record: AuditRecord) -> Text:
    check, e = facts.check_of(record, facts.SUBGROUPS), record.estimates.get(facts.SUBGROUPS)
    if check is not None and check.outcome is not None and e is None:
        finds = f"shows error ({p_reported(check.outcome)})" if record.test_shows(check) else "shows no error"
        return say(f"A test of all subgroups {finds}; how far off they are is not certified.")
    if check is None or e is None:
        why = "" if check is None else sentence(check.reason)
        quick = say("Left out by ", code("--quick"), ".") if record.settings.get("quick") else say(why)
        return quick if quick[0].text else say("They were not searched.")
    state = facts.state(record, "subgroups")
    known = facts.subgroups_known(record)
    reported = [
        _one_subgroup(record, o)
        for o in (_two_sides(facts.subgroups_over(record)) if state in ("over", "not_checked") else known[:1])
    ]
    least = num.lower_bound(e.interval.low, facts.limit_of(record))
    if known and known[0].rule and e.interval.low > known[0].least and least != _least(record, known[0]):
        reported.append(_worst_subgroup(e, least))
    if check.outcome is not None and record.test_shows(check) and state in ("error_shown", "not_checked"):
        end = "; no subgroup is certified over the limit" if state == "error_shown" else ""
        reported.insert(0, say(f"A test shows error ({p_reported(check.outcome)}){end}."))
    reported.append(_no_subgroup(record, e))
    need = facts.subgroups_need(e)
    if state == "undecided" and need is not None:
        number, at_least = need
        n = num.amount(number, at_least)
        start, end = ("To find them within the limit takes ", "") if at_least else ("", " would decide")
        reported.append(say(f"{start}{n if at_least else n.capitalize()} {independent(record).needed}{end}."))
    return _joined(reported)


def _worst_subgroup(e: Estimate, least: str) -> Text:
    """The subgroup with the largest certified gap, where it is none of those reported as distinct.

    Its rule is reported wherever the record holds it: not where it is of few people, or leaves few outside.
    """
    rule = e.settings.get("subgroup_low")
    if not rule:
        return say(
            f"The largest gap certified is of too few rows to name, or leaves too few outside: at least {least}."
        )
    return say(
        "The largest gap certified, of ",
        Span(clipped(sanitize(rule), LONGER), "name", "#subgroups"),
        f": at least {least}.",
    )


def _two_sides(results: list[facts.Off]) -> list[facts.Off]:
    """The subgroup farthest off, and the farthest of those that are off to the other side."""
    if not results:
        return []
    other = next((o for o in results[1:] if o.side != results[0].side), None)
    return results[:1] if other is None else [results[0], other]


def _one_subgroup(record: AuditRecord, o: facts.Off) -> Text:
    who = Span(clipped(sanitize(o.rule), LONGER), "name", "#subgroups") if o.rule else Span("One subgroup")
    return say(who, f": {SIDES[o.side]}, a gap of at least {_least(record, o)}.")


def _least(record: AuditRecord, o: facts.Off) -> str:
    return num.lower_bound(o.least, facts.limit_of(record))


def _no_subgroup(record: AuditRecord, e: Estimate) -> Text:
    """What no subgroup of rows enough exceeds; where that says nothing, that there are too few rows."""
    limit, known = facts.limit_of(record), facts.state(record, "subgroups")
    if e.interval.high >= facts.UNREPORTED and known != "within":
        return say(f"Too few {independent(record).called} to say what no subgroup exceeds.")
    high = at_limit(0.0, e.interval.high, known, limit)[1]
    of, share = ATTRIBUTES[int(e.settings["order"]) - 1], people_share(float(e.settings["clear_size"]))
    if chosen := facts.screened(record):
        of = f"{of} among the {num.count(len(chosen['chosen']))} columns searched"
    start = f"No subgroup of {of} with {share} of {facts.noun(record)} has a gap over "
    return say(start, strong(num.upper_bound(high, limit)), ".")


def _joined(texts: list[Text]) -> Text:
    return tuple(span for text in texts if text for span in say(*text, " "))[:-1]


def unshown_reason(record: AuditRecord) -> str:
    """Why no group is shown although some were named; empty where none were named."""
    check = facts.check_of(record, "error-groups")
    if record.groups or check is None or check.status != "not-applicable":
        return ""
    return sentence(check.reason or "no group could be certified")
