"""The headline: the decision in one sentence of at most sixteen words, the worst that is known in it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from calibrant.audit.record import AuditRecord, Finding
from calibrant.report import findings as facts
from calibrant.report import numbers as num
from calibrant.report.spans import shown, value_label
from calibrant.report.wording.clusters import too_wide
from calibrant.report.wording.missing_labels import partly, qualified
from calibrant.report.wording.terms import cardinal, joined, two_way
from calibrant.sanitize import sanitize

COPIES = "Not certified: rows are copies of others. Remove them, or name their cluster."
MOST_WORDS = 16
MOST_LETTERS = 130
NAME_WORDS, NAME_LETTERS = 9, 56  # of a group or a rule that a headline names
PLAIN = re.compile(r"[\w\s=,.:;%+/&'’\"()≤≥–\u2212\u202f-]*")  # a name of other characters is counted, not written
ODD = re.compile(r"true|false|yes|no|y|n|other|missing|none|unknown|\W*", re.IGNORECASE)  # no name by itself


def headline(record: AuditRecord) -> str:
    """The decision in at most 16 words: for whom to use it, for whom not, or what is missing to say.

    Never better than the worst of the three verdicts. "Use it" stands only where a limit and an intended use were
    given, and outcomes are known; with a limit alone the same sentence speaks of the limit, and without one of points.
    Where outcomes are not known of all, it says of whom it is.
    """
    if facts.withheld(record):
        one = facts.refuted(record)
        return COPIES if one is None else _first_that_fits(record, _correlated(one))
    if facts.limit_of(record) is None:
        return _first_that_fits(record, _in_points(record))
    reported = {"over": _everyone_over, "undecided": _everyone_undecided}.get(
        facts.state(record, "everyone"), _everyone_met
    )
    return _first_that_fits(record, reported(record))


def _correlated(one: facts.SharedBy) -> Iterator[str]:
    """Yield that rows share clusters that nobody named, so that nothing is certified."""
    shared = joined([shown(name) for name in one.columns])
    way = "Audit by clusters, or by these groups." if one.few and not one.one_outcome else "Audit by clusters."
    are = f"{'share one outcome' if one.one_outcome else 'are correlated'}. {way}"
    if PLAIN.fullmatch(shared):
        yield f"Not certified: rows of one {shared} {are}"
    yield f"Not certified: rows {are}"


def for_use(record: AuditRecord) -> bool:
    """Whether a decision about use can be made: a limit and an intended use were given."""
    return facts.limit_of(record) is not None and bool(facts.stated_of(record, "intended_use"))


def page_title(record: AuditRecord) -> str:
    return f"{headline(record).rstrip('.')}: calibration audit of {sanitize(record.name)}"


def words_of(text: str) -> int:
    """Return how many words a sentence has; a number with spaces between its thousands is one."""
    return len(text.split(" "))


def _first_that_fits(record: AuditRecord, forms: Iterator[str]) -> str:
    """The first form that is short enough, with of whom it is; else the last, which always is."""
    form, (name, condition) = "", _condition(record)
    for form in (reported for each in forms for reported in qualified(record, each)):
        if condition and (facts.limit_of(record) is not None or name in form or "subgroup" in form):
            form = f"{form[:-1]}{condition}."
        if words_of(form) <= MOST_WORDS and len(form) <= MOST_LETTERS:
            break
    return form


def _condition(record: AuditRecord) -> tuple[str, str]:
    """A column that may reproduce the outcome, where it tells who is over the limit, and what must be true of it."""
    kept = dict(record.data.get("in_question") or ())
    name = next((name for o in everyone_off(record) for name in o.attributes if name in kept), "")
    return shown(name) if name else "", f", if {shown(name)} was known before the outcome" if name else ""


def _by_use(record: AuditRecord) -> bool:
    """Whether the headline decides about use: what is known of some is not known of those it is used for."""
    return for_use(record) and not partly(record)


# ---- who is over the limit, in a few words ----


def off_named(o: facts.Off) -> str:
    """The name of a group or a subgroup as it stands in a sentence; empty where it is too long or unknown."""
    text = _one_subgroup(o) if o.finding is None else group_named(o.finding)
    if _short(text) or not o.attributes:
        return text if _short(text) else ""
    text = f"a subgroup of {' and '.join(map(shown, o.attributes))}"
    return text if _short(text) else ""


def _one_subgroup(o: facts.Off) -> str:
    """The rule of a subgroup, its conditions joined as those of one."""
    text = sanitize(o.rule).strip()
    return text.replace(" and ", " with ") if text.count(" and ") == len(o.attributes) - 1 else text


def _short(text: str) -> bool:
    return bool(text.strip() and PLAIN.fullmatch(text)) and words_of(text) <= NAME_WORDS and len(text) <= NAME_LETTERS


def group_named(finding: Finding) -> str:
    """The name of a group in a sentence: its value, and the variable where the value alone says nothing."""
    text, pairs = value_label(finding), finding.variables
    alone = len(pairs) > 1 or finding.pooled or (not ODD.fullmatch(text) and re.search(r"[^\W\d_]{3}", text))
    return text if alone else f"{shown(pairs[0][0])} = {text}"


def counted(results: Sequence[facts.Off]) -> str:
    """Return such as "two groups and one subgroup"."""
    groups = sum(o.finding is not None for o in results)
    kinds = ((groups, "group", "groups"), (len(results) - groups, "unlisted subgroup", "unlisted subgroups"))
    return " and ".join(f"{cardinal(n)} {one if n == 1 else many}" for n, one, many in kinds if n)


def _whom(results: Sequence[facts.Off], joined: str) -> Iterator[str]:
    """Yield ways to say who is off, the longest first; the one farthest off is named where it has a short name."""
    first = off_named(results[0])
    second = off_named(results[1]) if len(results) == 2 else ""
    if first and second:
        yield f"{first} {joined} {second}"
    if first and len(results) == 1:
        yield first
    elif first:
        yield f"{first} and {counted(results[1:])}"
        yield f"{first} and {cardinal(len(results) - 1)} more"
    yield counted(results)


def everyone_off(record: AuditRecord) -> list[facts.Off]:
    """Return groups and subgroups over the limit together, the farthest off first; one that is both once."""
    groups = facts.groups_off(record)
    named = {tuple(sorted(o.finding.variables)) for o in groups if o.finding is not None}
    return sorted(
        (*groups, *(o for o in facts.subgroups_over(record) if o.levels not in named)), key=lambda o: -o.least
    )


def _worse_off(record: AuditRecord) -> list[facts.Off]:
    """Return who is farther off than everyone: certified to be off by more than everyone is estimated to be."""
    one = record.everyone
    about = max(facts.ends(record, one)[0], abs(one.gap.value) if facts.by_gap(record, one) else one.error.value)
    return [o for o in everyone_off(record) if o.least > about]


# ---- each state of everyone ----


def _everyone_over(record: AuditRecord) -> Iterator[str]:
    worse = _worse_off(record)
    start, forms = (
        "Do not use it as it is",
        ("Do not use it as it is, least of all for", "Do not use it, least of all for"),
    )
    if not _by_use(record):
        start = "Over the limit for everyone together"
        forms = ("Over the limit for everyone together, most of all for", "Over the limit for everyone, most for")
    for whom in (*_whom(worse, "and"), off_named(worse[0])) if worse else ():
        yield from (f"{form} {whom}." for form in forms if whom)
    yield f"{start}."


def _everyone_undecided(record: AuditRecord) -> Iterator[str]:
    use, over, few = _by_use(record), everyone_off(record), f"Too few {_short_noun(record)} to decide"
    if over:
        for whom in _whom(over, "or" if use else "and"):
            if use:
                yield f"Do not use it as it is for {whom}. {few} for everyone."
            yield f"{'Do not use it' if use else 'Over the limit'} for {whom}. {few} for everyone."
            yield f"{'Do not use it' if use else 'Over the limit'} for {whom}."
        return
    if facts.state(record, "subgroups") == "error_shown":
        yield f"{few} for everyone, and error is shown in unlisted subgroups."
        return
    need = facts.need_of(record.everyone)
    if facts.crossing(record):
        yield f"{few}."
        return
    if need is None:
        low, high = facts.ends(record, record.everyone)
        wide = f"{few}: the range is {num.lower_bound(low)} to {num.upper_bound(high)} points."
        yield wide if too_wide(record, record.everyone) else f"{few}: the error is too close to the limit."
        return
    n = num.amount(*need)
    yield f"{few}: {n} {'are needed' if record.everyone.rows_at_least else 'would'}."


def _everyone_met(record: AuditRecord) -> Iterator[str]:
    use, over, hidden = _by_use(record), everyone_off(record), facts.cancels(record)
    if hidden and not over:
        least = num.lower_bound(record.everyone.lower.interval.low, facts.limit_of(record))
        yield f"On balance within the limit for everyone together; on average off by at least {least} points."
        yield f"On balance within the limit; on average off by at least {least} points."
        return
    use = use and not hidden
    start = "Use it for" if use else "On balance within the limit for" if hidden else "Within the limit for"
    if over:
        for whom in _whom(over, "or" if use else "and"):
            if use:
                yield f"{start} everyone together. Do not use it as it is for {whom}."
                yield f"{start} everyone together, not for {whom}."
            else:
                yield f"{start} everyone together. Over it for {whom}."
                yield f"{'On balance w' if hidden else 'W'}ithin the limit together, over it for {whom}."
        return
    groups, subgroup_lines = facts.state(record, "groups"), facts.state(record, "subgroups")
    if (groups, subgroup_lines) == ("within", "within"):
        yield f"{start} everyone, {_every_group(record)} and unlisted subgroups."
        return
    whom = "everyone together"
    if groups == "within":
        whom += f" and {_every_group(record)}"
    elif (groups, subgroup_lines) == ("absent", "within"):
        whom += " and unlisted subgroups"
    yield f"{start} {whom}. {_left_open(record)}"


def _every_group(record: AuditRecord) -> str:
    """Return whom the verdict on groups is about: a small one is judged in its pool only."""
    return "every named group" if facts.all_named(record) else "every group shown"


def _left_open(record: AuditRecord) -> str:
    """Return what is not within the limit, where nothing is over it."""
    groups, subgroup_lines = facts.state(record, "groups"), facts.state(record, "subgroups")
    few = f"Too few {_short_noun(record)} to decide for"
    if groups == "undecided":
        n, total = len(facts.with_verdict(record, "undecided")), len(record.groups)
        some = f"{cardinal(n)} groups" if n > 1 else "one group" if total > 1 else "the one group"
        one = "is" if n == 1 else "are"
        if subgroup_lines == "error_shown":
            return f"{some[:1].upper()}{some[1:]} {one} undecided; error shown in unlisted subgroups."
        if subgroup_lines == "undecided":
            return f"{some[:1].upper()}{some[1:]} and unlisted subgroups are undecided."
        return f"{few} {some}."
    if subgroup_lines == "error_shown":
        return "Error shown in unlisted subgroups."
    if subgroup_lines == "undecided":
        return "Unlisted subgroups are undecided."
    if subgroup_lines == "within":
        return "No named groups were checked."
    return "Unlisted subgroups were not checked." if groups == "within" else "Groups and subgroups were not checked."


def _short_noun(record: AuditRecord) -> str:
    """Return what there are too few of: clusters, or what the rows are called, where that is one word."""
    if record.data.get("cluster"):
        return "clusters"
    stated = facts.noun(record)
    return stated if words_of(stated) == 1 and len(stated) <= 24 else "rows"


def _in_points(record: AuditRecord) -> Iterator[str]:
    """Yield how far off everyone is, and who is farther off; without a limit nothing is judged."""
    low, high = facts.ends(record, record.everyone)
    start, short = f"Off by {num.lower_bound(low)} to {num.upper_bound(high)} points", " for everyone"
    if two_way(record.everyone) and not facts.by_gap(record, "everyone"):
        start, short = (
            f"Off by at least {num.lower_bound(low)} points raw, at most {num.upper_bound(high)} rounded",
            "",
        )
    worse = [o for o in _worse_off(record) if num.lower_bound(o.least) != num.lower_bound(low)]
    for whom in _whom(worse[:1], "and") if worse else ():
        least = num.lower_bound(worse[0].least)
        yield f"{start}{short}, by at least {least} for {whom}."
        yield f"{start}; at least {least} for {whom}."
        yield f"Off by at least {least} points for {whom}."
    yield f"{start}{short}."
