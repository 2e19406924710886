"""The headline: two short sentences, everyone first, then who is miscalibrated."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from calibrant.audit.record import AuditRecord, Finding
from calibrant.report import findings as facts
from calibrant.report.spans import shown, value_label
from calibrant.report.wording.missing_labels import qualified
from calibrant.report.wording.terms import capital, cardinal, joined
from calibrant.sanitize import sanitize

KINDS = {"class": "classes", "group": "groups", "unlisted subgroup": "unlisted subgroups"}
SHOWN = ", with error shown"
COPIES = "Not certified: rows are copies of others. Remove them, or name their cluster."
MOST_WORDS = 15
UNNAMED = "a subgroup of "  # before its attributes, where its rule is too long
MOST_LETTERS = 130
NAME_WORDS, NAME_LETTERS = 9, 56  # of a group or a rule that a headline names
PLAIN = re.compile(r"[\w\s=,.:;%+/&'’\"()≤≥–\u2212\u202f-]*")  # a name of other characters is counted, not written
ODD = re.compile(r"true|false|yes|no|y|n|other|missing|none|unknown|\W*", re.IGNORECASE)  # no name by itself


def headline(record: AuditRecord) -> str:
    """Say in at most 15 words what is known of everyone, then who is miscalibrated, or what is left open.

    Never better than the worst of the three verdicts. Where outcomes are not known of all, it says of whom it is.
    """
    if facts.withheld(record):
        one = facts.refuted(record)
        return COPIES if one is None else _first_that_fits(record, _correlated(one))
    everyone = _everyone(record)
    short = f"{everyone.removesuffix('.').removesuffix(SHOWN)}."  # the card of everyone says it too
    starts = (everyone, short) if short != everyone and everyone_off(record) else (everyone,)
    return _first_that_fits(record, (f"{start} {who}" for who in _others(record) for start in starts))


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
    """How many words a sentence has; a number with spaces between its thousands is one."""
    return len(text.split(" "))


def _first_that_fits(record: AuditRecord, forms: Iterator[str]) -> str:
    """The first form that is short enough, with of whom it is; else the last, which always is."""
    form, name = "", in_question(record)
    condition = f", if {shown(name)} is known beforehand" if name else ""
    for form in (reported for each in forms for reported in qualified(record, each)):
        if condition and (facts.limit_of(record) is not None or shown(name) in form or "subgroup" in form):
            form = f"{form[:-1]}{condition}."
        if words_of(form) <= MOST_WORDS and len(form) <= MOST_LETTERS:
            break
    return form


def in_question(record: AuditRecord) -> str:
    """A column that may reproduce the outcome, where it says who is over the limit; empty where none does."""
    kept = dict(record.data.get("in_question") or ())
    return next((name for o in everyone_off(record) for name in o.attributes if name in kept), "")


# ---- who is over the limit, in a few words ----


def off_named(o: facts.Off) -> str:
    """The name of a group or a subgroup as it stands in a sentence; empty where it is too long or unknown."""
    if o.finding is None:
        text = sanitize(o.rule).strip()
        text = text.replace(" and ", " with ") if text.count(" and ") == len(o.attributes) - 1 else text
    else:
        text = o.finding.variables[0][1] if o.of_class else group_named(o.finding)
    if _short(text) or not o.attributes:
        return text if _short(text) else ""
    text = f"{UNNAMED}{' and '.join(map(shown, o.attributes))}"
    return text if _short(text) else ""


def _short(text: str) -> bool:
    return bool(text.strip() and PLAIN.fullmatch(text)) and words_of(text) <= NAME_WORDS and len(text) <= NAME_LETTERS


def group_named(finding: Finding) -> str:
    """The name of a group in a sentence: its value, and the variable where the value alone says nothing."""
    text, pairs = value_label(finding), finding.variables
    alone = len(pairs) > 1 or finding.pooled or (not ODD.fullmatch(text) and re.search(r"[^\W\d_]{3}", text))
    return text if alone else f"{shown(pairs[0][0])} = {text}"


def counted(results: Sequence[facts.Off]) -> str:
    """Count who is off, such as "two groups and one subgroup"."""
    kinds = Counter(_kind(o) for o in results)
    some = ((kinds[one], one, many) for one, many in KINDS.items() if kinds[one])
    return joined([f"{cardinal(n)} {one if n == 1 else many}" for n, one, many in some])


def _kind(o: facts.Off) -> str:
    """What somebody who is off is: a key of `KINDS`."""
    return "unlisted subgroup" if o.finding is None else "class" if o.of_class else "group"


def _whom(results: Sequence[facts.Off]) -> Iterator[tuple[str, bool]]:
    """Yield ways to say who is off and whether that is several, the longest first; the first is named if it can be."""
    names = [off_named(o) for o in results[:2]]
    first = _opening(results[0], names[0])
    if len(results) == 2 and all(names):
        yield _both(results, names, first), True
    if names[0] and len(results) == 1:
        yield first, False
    elif names[0]:
        kind = _kind(results[0])
        rest = counted(results[1:])
        for word in (KINDS[kind], kind):
            if f" {word}" in rest:
                rest = rest.replace(f" {word}", f" more {word}", 1)
                break
        apart = ", " if " and " in rest else " and "
        yield f"{first}{apart}{rest}", True
        yield f"{first}{apart}{rest.replace(f' more {word}', ' more', 1)}", True
        yield f"{first} and {cardinal(len(results) - 1)} more", True
    yield capital(counted(results)), len(results) > 1


def _both(results: Sequence[facts.Off], names: Sequence[str], first: str) -> str:
    """Two names as a sentence begins with them, behind their kinds where the first needs its own."""
    if first == names[0] or not first.endswith(names[0]):
        return f"{first} and {names[1]}"
    kinds = [_kind(o).removeprefix("unlisted ") for o in results]
    if kinds[0] == kinds[1]:
        many = "Classes" if kinds[0] == "class" else f"{capital(kinds[0])}s"
        return f"{many} {names[0]} and {names[1]}"
    return f"{first} and {kinds[1]} {names[1]}"


def _opening(o: facts.Off, name: str) -> str:
    """A name as a sentence begins with it: what data spell with a small letter stays so, behind its kind."""
    if not name[:1].islower() and not o.of_class:
        return name
    if name.startswith((UNNAMED, "the ")):
        return capital(name)
    return f"{capital(_kind(o).removeprefix('unlisted '))} {name}"


def everyone_off(record: AuditRecord) -> list[facts.Off]:
    """Groups over the limit, the most evident first, then subgroups; one that is both once.

    Without a limit, the groups of which error is shown, and the subgroups that are certified to be off.
    """
    judged = facts.limit_of(record) is not None
    over = facts.named_off(record, lambda f: f.verdict == "over" if judged else f.error_shown)
    named = {tuple(sorted(o.finding.variables)) for o in over if o.finding is not None}
    return [*over, *(o for o in facts.subgroups_over(record) if o.levels not in named)]


# ---- its two sentences ----


def _everyone(record: AuditRecord) -> str:
    state, error = facts.state(record, "everyone"), record.error_shown["everyone"]
    overall = "for the most probable class" if record.classes else "overall"
    if facts.limit_of(record) is None:
        return f"No limit is set; error is shown {overall}." if error else "No limit is set."
    if state == "undecided":
        return f"Error is shown {overall}." if error else f"Undecided {overall}."
    if state == "over":
        return f"Over the limit {overall}."
    start = "On balance within" if facts.by_gap(record, "everyone") else "Within"
    hidden = "; errors cancel" if facts.cancels(record) else SHOWN if error else ""
    return f"{start} the limit {overall}{hidden}."


def _others(record: AuditRecord) -> Iterator[str]:
    """Yield ways to say who is miscalibrated, the longest first; where nobody is shown to be, what is left open."""
    over = everyone_off(record)
    shown_off = facts.shown_off(record)
    off = over or [o for o in shown_off if _beyond(record, o)]
    judged = bool(over) and facts.limit_of(record) is not None
    for whom, several in _whom(off) if off else ():
        yield f"{whom} {'are' if several else 'is'} {f'over {_it(record)}' if judged else 'miscalibrated'}."
    if off:
        return
    if facts.summed(record) == "over":
        yield "Errors of all classes together are over their limit."
        return
    if record.error_shown["subgroups"]:
        yield "Error is shown in unlisted subgroups."
    yield _left_open(record)


def _beyond(record: AuditRecord, o: facts.Off) -> bool:
    """Whether a group is not within the limit, or a subgroup is estimated beyond it."""
    limit = facts.limit_of(record)
    return o.finding.verdict != "within" if o.finding is not None else limit is None or abs(o.gap) > limit


def _left_open(record: AuditRecord) -> str:
    """What is known where nobody but perhaps everyone together is shown to be off."""
    groups, subgroups = facts.state(record, "groups"), facts.state(record, "subgroups")
    unchecked = [what for what, state in (("groups", groups), ("unlisted subgroups", subgroups)) if state == "absent"]
    if facts.limit_of(record) is None:
        return "No group is shown to be miscalibrated." if groups != "absent" else "No groups were checked."
    if facts.summed(record) == "undecided" and "undecided" not in (groups, subgroups):
        return "Errors of all classes together are undecided."
    if groups == "undecided":
        n = len(facts.with_verdict(record, "undecided"))
        some = f"{capital(cardinal(n))} groups" if n > 1 else "One group"
        if subgroups == "undecided":
            return f"{some} and unlisted subgroups are undecided."
        return f"{some} {'is' if n == 1 else 'are'} undecided."
    if subgroups == "undecided":
        return "Unlisted subgroups are undecided."
    if unchecked:
        return f"{capital(joined(unchecked))} were not checked."
    every = "Every group" if facts.all_named(record) else "Every group shown"
    return f"{every} and unlisted subgroup is within {_it(record)}."


def _it(record: AuditRecord) -> str:
    return "it" if facts.state(record, "everyone") in ("over", "within") else "the limit"
