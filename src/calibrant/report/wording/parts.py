"""The verdict in three parts: everyone, the named groups, unlisted subgroups; none of them stands for another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from calibrant.audit.record import AuditRecord, Finding
from calibrant.report import findings as facts
from calibrant.report import numbers as num
from calibrant.report.commands import groupings, naming_groups
from calibrant.report.spans import Span, Text, clipped, code, literal, say, sentence, shown, strong
from calibrant.report.wording.clusters import CLUSTERS, independent, no_number, one_cluster_each, too_narrow
from calibrant.report.wording.headline import group_named
from calibrant.report.wording.terms import (
    ATTRIBUTES,
    VERDICTS,
    error_bounds,
    gap_ends,
    p_reported,
    people_share,
    two_way,
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
OPEN = ("within", "undecided")  # verdicts next to which error may be shown
NAMED = 2  # groups that a part names
CLIPPED, LONGER = 60, 120  # characters of the name of a group, and of the rule of a subgroup


def verdict_word(record: AuditRecord, part: str) -> tuple[str, str]:
    """The status of a part of the verdict and its word: how many are over the limit, where some are."""
    state = facts.state(record, part)
    status, word = STATES.get(state, (state, sanitize(state)))
    if part == "everyone":
        return status, f"{word}, error shown" if record.error_shown[part] and state in OPEN else word
    if state not in ("over", "undecided"):
        return status, word
    n = (
        len(facts.with_verdict(record, state))
        if part == "groups"
        else len(facts.subgroups_over(record))
        if state == "over"
        else 0
    )
    return status, f"{num.count(n)} {word.lower()}" if n else word


def page_status(record: AuditRecord) -> str:
    """The status of the three parts together: the worst of them; "measured" without a limit."""
    states = set(facts.states(record).values())
    order = ("over", "error_shown", "undecided", "within")
    return "measured" if facts.limit_of(record) is None else next((s for s in order if s in states), "measured")


# ---- everyone ----


def everyone_reported(record: AuditRecord) -> Text:
    one, limit = record.everyone, facts.limit_of(record)
    low, high = judged(record, one)
    if facts.by_gap(record, one):
        reported = say(f"Gap of {' to '.join(num.signed_range(*gap_ends(one)))} points.")
        if facts.cancels(record):
            least = strong(error_bounds(record, one)[0])
            reported = say(*reported, " Errors of opposite signs cancel in it: on average off by at least ", least, ".")
    elif two_way(one):
        reported = say(f"Raw score at least {low} points off, rounded score at most {high}.")
    else:
        reported = say(f"Off by {low} to {high} points on average.")
    if facts.withheld(record):
        return say(*reported, f" {too_narrow(record)}")
    more = limit is not None and one.verdict == "undecided"
    elsewhere = record.verdict == "undecided" and facts.state(record, "subgroups") != "error_shown"  # in the headline
    return say(*reported, " ", *rows_would(record, one)) if more and not elsewhere else reported


def judged(record: AuditRecord, finding: Finding) -> tuple[str, str]:
    """Return both ends of what is judged, in points: rounded outward, true to the verdict."""
    (low, high), limit = facts.ends(record, finding), facts.limit_for(record, finding)
    return num.lower_bound(low, limit), num.upper_bound(high, limit)


def rows_would(record: AuditRecord, finding: Finding) -> Text:
    need = facts.need_of(finding)
    if need is None:
        return say(no_number(record, independent(record).many, finding))
    n = num.amount(*need)
    if finding.rows_at_least:
        return say(f"To find it within the limit takes {n} {facts.needed(record)} in the log.")
    return say(f"{n.capitalize()} {facts.needed(record)} in the log would decide.")


# ---- the named groups ----


def groups_reported(record: AuditRecord) -> Text:
    if not record.groups:
        reason = unshown_reason(record)
        return say(f"{reason} Name coarser ones.") if reason else say("Name some: ", code(naming_groups(record)), ".")
    if facts.withheld(record):
        return say(too_narrow(record))
    over = facts.groups_off(record)
    reported = [*_worst_groups(record, over[: NAMED if facts.limit_of(record) is not None else 1])]
    if facts.limit_of(record) is not None:
        more, few = len(over) - NAMED, len(facts.with_verdict(record, "undecided"))
        reported += [say(f"{num.count(more)} more")] if more > 0 else []
        reported += [say(f"{num.count(few)} undecided")] if few and over else []
        shown = sum(f.error_shown and f.verdict in OPEN for f in record.groups)
        reported += (
            [say(f"error shown in {num.count(shown)} more" if over else f"Error shown in {num.count(shown)}")]
            if shown
            else []
        )
    first = tuple(span for text in reported for span in say(*text, "; "))[:-1]
    return _joined([say(*first, ".") if first else (), unchecked(record), no_group(record), _small_ones(record)])


def _worst_groups(record: AuditRecord, results: list[facts.Off]) -> Iterator[Text]:
    """Yield the groups farthest off, each with what it is off by at least; reported once where it reads the same."""
    least = [num.lower_bound(o.least, facts.limit_of(record)) for o in results]
    names = [_linked(record, o.finding) for o in results if o.finding is not None]
    if len(names) == 2 and least[0] == least[1]:
        yield say(names[0], " and ", names[1], f": at least {least[0]}")
        return
    for name, at in zip(names, least, strict=True):
        yield say(name, f": at least {at}")


def _linked(record: AuditRecord, finding: Finding) -> Span:
    href = f"#{finding.id}" if len(record.groups) <= facts.MOST_ROWS else ""
    return Span(clipped(group_named(finding), CLIPPED), "name", href)


def unchecked(record: AuditRecord) -> Text:
    """Return which columns of groups have none that is judged, and why; nothing where each has one."""
    seen = {tuple(k for k, _ in f.variables) for f in record.groups}
    gone = [names for names in groupings(record) if names not in seen]
    alone = {names for names in gone if len(names) == 1}
    reported: list[Text] = []
    for names in gone:
        if len(names) > 1 and any((name,) in alone for name in names):
            continue  # for want of the groups of one column by itself
        which = [piece for i, name in enumerate(names) for piece in (*((" by ",) if i else ()), literal(shown(name)))]
        clusters = one_cluster_each(record, names[0]) if len(names) == 1 else None
        if clusters is None:
            reported.append(
                say("Groups of ", *which, ": not checked, none can be shown without revealing a few people.")
            )
        else:
            reported.append(say(f"{clusters} groups of ", *which, ": not checked, one cluster each."))
    return _joined(reported)


def _small_ones(record: AuditRecord) -> Text:
    """Return how many small groups are judged only in pools, in which their errors may cancel."""
    n = facts.only_together(record)
    return say(f"{num.count(n)} small ones are judged only pooled.") if n else ()


def worst_end(record: AuditRecord) -> float:
    """Return what no group that is shown exceeds, as the verdict leaves it."""
    e, limit = record.estimates.get("worst_group"), facts.limit_of(record)
    high = max(facts.ends(record, f)[1] for f in record.groups) if e is None else e.interval.high
    return min(high, limit) if facts.state(record, "groups") == "within" and limit is not None else high


def beyond_worst(record: AuditRecord, shown: Sequence[Finding]) -> str:
    """Return why the range of a group that is shown goes beyond what no group exceeds; empty where none does."""
    limit, high = facts.limit_of(record), worst_end(record) if record.groups else 1.0
    widest = max((facts.ends(record, f)[1] for f in shown if f.variables), default=0.0)
    if high >= 1.0 or widest <= high or num.upper_bound(widest, limit) == num.upper_bound(high, limit):
        return ""
    return (
        f"The ranges of groups are simultaneous; that none exceeds {num.upper_bound(high, limit)} is a separate "
        "statement."
    )


def no_group(record: AuditRecord) -> Text:
    e, limit, high = record.estimates.get("worst_group"), facts.limit_of(record), worst_end(record)
    if high >= 1.0:
        return ()
    group = "group" if facts.all_named(record) else "group shown"
    what = f"No {group}’s gap is more than " if facts.by_gap(record, "groups") else f"No {group} is off by more than "
    if not facts.by_gap(record, "groups") and (
        any(map(two_way, record.groups)) or any(o.least > high for o in facts.groups_off(record))
    ):
        what = f"After rounding, n{what[1:]}"  # the raw score of one is off by more
    large = None if e is None else e.settings.get("clear_high")
    if e is None or large is None or num.upper_bound(large, limit) == num.upper_bound(high, limit):
        return say(what, strong(num.upper_bound(high, limit)), ".")
    of = f", none with {people_share(float(e.settings['clear_size']))} of {facts.noun(record)} by more than "
    return say(what, num.upper_bound(high, limit), of, strong(num.upper_bound(min(large, high), limit)), ".")


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
        reported.append(say(f"{start}{n if at_least else n.capitalize()} {facts.needed(record)}{end}."))
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
    """Return what no subgroup of rows enough exceeds; where that says nothing, that there are too few rows."""
    limit, high = facts.limit_of(record), e.interval.high
    if high >= facts.UNREPORTED and facts.state(record, "subgroups") != "within":
        by = independent(record)
        rows = by.many if by is CLUSTERS else facts.noun(record)
        return say(f"Too few {rows} to say what no subgroup exceeds.")
    if facts.state(record, "subgroups") == "within" and limit is not None:
        high = min(high, limit)
    of, share = ATTRIBUTES[int(e.settings["order"]) - 1], people_share(float(e.settings["clear_size"]))
    if chosen := facts.screened(record):
        of = f"{of} among the {num.count(len(chosen['chosen']))} columns searched"
    start = f"No subgroup of {of} with {share} of {facts.noun(record)} has a gap over "
    return say(start, strong(num.upper_bound(high, limit)), ".")


def _joined(texts: list[Text]) -> Text:
    return tuple(span for text in texts if text for span in say(*text, " "))[:-1]


def unshown_reason(record: AuditRecord) -> str:
    """Return why no group is shown although some were named; empty where none were named."""
    check = facts.check_of(record, "error-groups")
    if record.groups or check is None or check.status != "not-applicable":
        return ""
    return sentence(check.reason or "no group could be certified")
