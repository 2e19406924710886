"""What the verdict rests on, by what is true of these data, what was not checked, and the block that somebody signs."""

from __future__ import annotations

from collections.abc import Iterator

from calibrant.audit.record import AuditRecord, Finding, size
from calibrant.report import document as doc
from calibrant.report import findings as facts
from calibrant.report import numbers as num
from calibrant.report.findings import limit_of, stated_of
from calibrant.report.spans import Text, code, literal, pointer, say
from calibrant.report.wording.clusters import correlated, independent
from calibrant.report.wording.missing_labels import unknown
from calibrant.report.wording.notices import NOTICES, identifiers, notices
from calibrant.report.wording.parts import state_of, unchecked
from calibrant.report.wording.terms import (
    at_thresholds,
    bound_of,
    capital,
    joined,
    joint_shares,
    jointly_wrong,
    p_reported,
    whose_gaps,
)
from calibrant.sanitize import sanitize

MOST = 3  # lines
AGAIN = "repeats-score"
MISREAD = [
    NOTICES[code][0]
    for code in (
        *("reproduces-outcome", "may-reproduce-outcome"),
        *("other-labels", "mostly-under-1-percent", "perhaps-points", "unfinished-log", "fitted-rows"),
        *("perhaps-seen-events", "horizon"),
    )
]
BEYOND = {1: "two or more attributes", 2: "three or more attributes", 3: "four or more attributes"}
ICI = "integrated-calibration-index"
CHECKS = {  # what a check is about, where it was not made; the parts of the verdict say it for theirs
    "gap": "the overall gap",
    "distance": "the distance from calibration",
    "jittered": "the jittered score",
    "variables": "variables",
    "local-calibration": "the local test",
    "strong-calibration": "the strong test",
    "repair": "repairs",
    "error-classes": "each class",
    facts.ALL_CLASSES: "all classes together",
    "class-matrix": "which class comes true in place of which",
    facts.CLASS_LOCAL: "the local test of all classes",
    facts.CLASS_STRONG: "the strong test of all classes",
    "class-repairs": "repairs of all classes",
    facts.TOGETHER: "rows that share a cluster",
    "inference": "use in place of labels",
    "task-trust": "means to be inferred",
    "change": "what changed",
    "missing-labels": "missing labels",
    "decisions": "decisions",
    "kernel-error": "the kernel local calibration error",
    "reliability": "the curve by score",
    **dict.fromkeys(
        ("ece", "smooth-ece", "max-calibration-error", "brier", "log-loss", "auroc", "observed-expected", ICI),
        "some standard measures",
    ),
    **dict.fromkeys(("calibration-intercept", "calibration-slope"), "some standard measures"),
}
MEANINGS = {  # of states that a reader may take for one another
    "error_shown": "“Error shown”: surely off, not surely beyond the limit.",
    "undecided": "“Undecided”: not shown to be within, nor to be off.",
}
PARTS = {"error-groups": "named groups", facts.SUBGROUPS: "unlisted subgroups"}


def reading(record: AuditRecord, *, drawn: bool) -> str:
    """Say how to read the plot, or without one its lines, what is judged by what, and how often a verdict is wrong."""
    level = facts.ordinary_level(record)
    estimate = f"estimate with its {num.percent(level)}% interval" if level else "estimate"
    start = f"Dot and line: {estimate}. Bar:" if drawn else f"{capital(estimate)}, then the"
    who = "groups and classes" if record.groups and record.classes else "classes" if record.classes else "groups"
    every = f", all {who} simultaneously" if record.groups or record.classes else ""
    text = f"{start} range guaranteed at this sample size{every}, which decides. The surest first, not the largest."
    if facts.limit_of(record) is not None:
        states = {state_of(f)[0] for f in (record.everyone, *record.groups, *record.classes)}
        text += "".join(f" {meaning}" for state, meaning in MEANINGS.items() if state in states)
        one, groups = ("gap" if facts.by_gap(record, part) else "calibration error" for part in ("everyone", "groups"))
        judged = f"Everyone and {who} are judged by {one}."
        apart = "Gaps are drawn, in which errors cancel; everyone is judged by calibration error, in which none do."
        text += f" {judged}" if one == groups else f" {apart}"
    if any(_passes(f) for f in record.groups):
        text += " A group can be within by Holm's procedure although its range passes the limit."
    return text if drawn else f"{text} {jointly_wrong(record)}."  # the page says it where it is signed


def _passes(finding: Finding) -> bool:
    """Whether a group is within by its gap, and its range is not."""
    if finding.verdict != "within" or finding.limit is None or finding.by == "error":
        return False
    return size(*finding.gap_ends)[1] > finding.limit


def rests(record: AuditRecord) -> tuple[Text, ...]:
    """At most three lines of what was left out or looked at, and what is withheld; nothing every report says."""
    # First what may have been read as something else, or in part: every number is then another.
    misread = [say(f"{lead}: ", *text) for lead, text in notices(record) if lead in MISREAD]
    out = [*misread, *_lines(record)][:MOST]
    if gone := unchecked(record):
        out.append(gone)
    if n := facts.only_together(record):
        out.append(say(f"{num.count(n)} small groups are judged only pooled."))
    return tuple(out)


def _lines(record: AuditRecord) -> Iterator[Text]:
    yield from unknown(record)
    yield from independent(record).lines
    if result := facts.shared_by(record):
        yield correlated(record, result)
    yield from _small(record)
    yield from _counted(record)
    for lead, text in notices(record):
        if lead not in (*MISREAD, NOTICES["likely-id"][0], NOTICES[AGAIN][0]):
            yield say(f"{lead}: " if lead else "", *text)
    if chosen := facts.screened(record):
        read, of = num.count(len(chosen["chosen"])), num.count(chosen["of"])
        rows = f"{num.count(chosen['rows_tested'])} {facts.noun(record)}"
        yield say(f"Tests, subgroups and repairs read {read} of {of} columns, in {rows}; the other rows chose them.")
    one = record.everyone
    if facts.few(record):
        least = min(one.expected, one.rows - one.expected)
        which = "events" if one.expected <= one.rows - one.expected else "non-events"
        yield say(
            f"Few {which}: {num.count(least)} expected. Under {facts.FEW} no curve is drawn, and ranges are wide."
        )
    for lead, text in notices(record):
        if lead == NOTICES["likely-id"][0]:
            names = {*identifiers(record)}
            grouped = names <= {name for group in record.data.get("by") or () for name in group}  # and shown as such
            lead = "Neither ranked nor tested, like identifiers" if names and grouped else lead
            unseen = " If one names a household or a site, its rows are not independent and ranges are too narrow."
            seen = record.curve(facts.TOGETHER).settings.get("identifiers")
            yield (*say(f"{lead}: "), *_names(text), *say("" if seen else unseen))
    yield from _score(record)
    yield from _subgroups(record)
    yield from independent(record).looked
    for lead, text in notices(record):
        if lead == NOTICES[AGAIN][0]:
            yield say(f"{lead}: ", *text)


def _small(record: AuditRecord) -> Iterator[Text]:
    """Who may read the numbers of groups, where that was set, and why they are rounded where it was not."""
    if facts.mask_of(record) == 1:
        yield say("Every group is shown, however small: this is for readers who may see them.")
    elif record.settings.get("publish"):
        yield say("For readers outside: counts of groups are multiples of five, and ranges are wider by that.")
    elif columns := record.data.get("rounded_for"):
        one, other = columns
        share = " share people, so exact ones would tell those of small groups."
        yield say("Counts of groups are multiples of five: ", code(one), " and ", code(other), share)


def _counted(record: AuditRecord) -> Iterator[Text]:
    for test in record.settings.get("fail_on") or ():
        check = facts.ran(record, test)
        if check is not None and check.outcome is not None and record.test_shows(check):
            what = capital(_about(test))
            yield say(
                f"{what} counts separately, by ", code("--fail-on"), f": error shown ({p_reported(check.outcome)})."
            )


def _about(code: str) -> str:
    """What a check is about: one without words above has its own, in its file."""
    if code in CHECKS:
        return CHECKS[code]
    from calibrant.audit.checks import of_code  # loads numerical libraries, which most reports do without

    check = of_code(code)
    return check.about if check and check.about else code


def _names(text: Text) -> Text:
    """The columns that a notice names, as the end of a sentence; of one that names none its words."""
    listed = tuple(s for s in text if s.kind == "code" or s.text == ", ")
    return (*listed, *say(".")) if listed else text


def _score(record: AuditRecord) -> Iterator[Text]:
    display = record.data.get("display") or {}
    if facts.by_gap(record, "everyone"):
        whose = f"Gaps apply to the raw score of {whose_gaps(record)}, observed minus predicted"
        yield say(f"{whose}; errors of opposite signs cancel in them.")
    elif "values" in display:
        n = int(display["values"])
        values = "one value" if n == 1 else f"{num.count(n)} values"
        yield say(f"The score takes {values}, so both bounds apply to the raw score.")
    elif "steps" in display:
        step = num.step(int(display["steps"]))
        steps = "to whole percent" if step == "1%" else f"in rounding steps of {step}"
        yield say(f"Upper bounds apply to the score rounded {steps}.")


def _subgroups(record: AuditRecord) -> Iterator[Text]:
    e = record.estimates.get(facts.SUBGROUPS)
    if e is None:
        return
    order = int(e.settings["order"])
    reported = (
        facts.by_gap(record, "groups")
        or not record.groups
        or "gap" in record.curve(facts.FIXED).columns.get("measure", ())
    )
    judged = "" if reported else " Groups are judged by calibration error, subgroups by gap."
    yield say(f"Subgroups of {BEYOND.get(order, 'more attributes')} are {_tested(record)}.{judged}")


def _tested(record: AuditRecord) -> str:
    """How error over more attributes than are certified was tested, as the end of a sentence."""
    parts = facts.products(record)
    if not parts.get("products"):
        return "not certified" if facts.ran(record, facts.STRONG) is None else "tested by models, not certified"
    of, columns = int(parts["triples"]), int(parts["products"])
    every = (
        f"all {num.count(of)} triples"
        if columns == of > 1
        else "the one triple"
        if of == 1
        else f"{num.count(columns)} of {num.count(of)} triples"
    )
    return f"tested by models and by {every} of columns, without a guaranteed range"


def not_checked(record: AuditRecord) -> Text:
    """What was left out, in one sentence; empty where nothing was."""
    undone = [c for c in record.checks if c.status in facts.UNDONE]
    missing = [PARTS[c.code] if c.code in PARTS else _about(c.code) for c in undone]
    missing = list(dict.fromkeys(missing))
    if facts.state(record, "subgroups") == "absent" and PARTS[facts.SUBGROUPS] not in missing:
        missing.insert(0, PARTS[facts.SUBGROUPS])
    if facts.limit_of(record) is None:
        missing.insert(0, "against a limit")
    if not missing:
        return ()
    quick = say(" ", code("--quick"), " left out tests and repairs.") if record.settings.get("quick") else ()
    more = (*quick, *independent(record).one_column)
    return say(f"{joined(missing)}: not a pass.", *more, " ", pointer("Every check", "checks"))


# ---- the block to sign ----

DIGITS = 16  # of the fingerprint; whole where the data are described
BLANK = ("Signed by", "Date")


def signing(record: AuditRecord) -> doc.Signing:
    """Who signs and when, to be filled in, and what they sign."""
    return doc.Signing(tuple(_entries(record)), BLANK)


def _entries(record: AuditRecord) -> Iterator[doc.Entry]:
    by = stated_of(record, "set_by")
    yield doc.Entry("Limit", _limit(record, by))
    over, within, error = joint_shares(record)
    verdicts = "" if limit_of(record) is None else f"over {over}, within {within}, "
    acting = at_thresholds(record)
    more = f" Certified at thresholds, each by itself: {acting}." if acting else ""
    joint = f"at most: {verdicts}error shown {error}." if record.shares else "none: nothing is decided."
    yield doc.Entry("Joint error", say(f"{joint}{more}"))
    version = sanitize(record.versions.get("calibrant", ""))
    made = say(
        "data ", code(str(record.data.get("fingerprint", ""))[:DIGITS]), f", calibrant {version}" if version else ""
    )
    yield doc.Entry("Fingerprint", made, doc.EVERYWHERE)
    if undone := not_checked(record):
        yield doc.Entry("Not checked", undone, doc.EVERYWHERE)


def _limit(record: AuditRecord, by: str) -> Text:
    if limit_of(record) is None:
        return say("none set: nothing is judged.")
    return (
        say(bound_of(record), ", set by ", literal(by), ".")
        if by
        else say(f"{bound_of(record)}; who set it is not stated.")
    )
