"""What to do: one action and one command, the most pressing first."""

from __future__ import annotations

from calibrant.audit.record import AuditRecord
from calibrant.report import commands
from calibrant.report import numbers as num
from calibrant.report.brief import before_after
from calibrant.report.document import Decision
from calibrant.report.findings import (
    FIXED,
    SUBGROUPS,
    cancels,
    cluster_totals,
    limit_of,
    median_need,
    need_of,
    needed,
    noun,
    stated_of,
    subgroups_known,
    subgroups_need,
    suppressed,
    together,
    with_verdict,
)
from calibrant.report.spans import Span, Text, clipped, code, say
from calibrant.report.wording.clusters import no_number, no_plan, wider
from calibrant.report.wording.headline import everyone_off, for_use, off_named
from calibrant.report.wording.terms import capital, cardinal
from calibrant.sanitize import sanitize

MONTHS = 24  # from here on a time is reported in years
LONGEST = 50  # years: a longer time is reported as over them
PLACEHOLDER = '--intended-use "…"'
Need = tuple[int, bool]  # rows that would decide, and whether at least


def decision(record: AuditRecord) -> Decision:
    """The one thing to do next."""
    if suppressed(record):
        return _one_of_each(record)
    if record.data.get("events") in (0, record.data.get("rows")):
        return _check_the_label(record)
    result = together(record)
    return _by_verdict(record) if result is None else _by_clusters(record, *result)


def _by_verdict(record: AuditRecord) -> Decision:
    """Return what to do by the verdict, where rows may count as independent."""
    state = record.verdicts
    if limit_of(record) is None:
        return _give_a_limit(record)
    if record.verdict == "over":
        return _repair(record)
    if state["subgroups"] == "error_shown":
        return _subgroups(record)
    if state["everyone"] == "undecided":
        return Decision(say(_collect(record)), commands.audit_again(record))
    if state["groups"] == "absent" or state["subgroups"] == "absent":
        return _look_closer(record)
    if "undecided" in (state["groups"], state["subgroups"]):
        return Decision(say(_collect(record)), commands.audit_again(record))
    if cancels(record):
        text = "Errors cancel on average, but not at each score: judge the calibration error too."
        return Decision(say(text), commands.audit_again(record, without=["--judge"]))
    if not for_use(record):
        text = "Say what it is for and who set the limit; then this page says whether to use it."
        more = [PLACEHOLDER] if stated_of(record, "set_by") else [PLACEHOLDER, '--set-by "…"']
        return Decision(say(text), commands.audit_again(record, more))
    text = "Nothing to repair. Audit again when the model, its use or the population changes."
    return Decision(say(text), commands.audit_again(record))


def _one_of_each(record: AuditRecord) -> Decision:
    text = "Remove the copies, or name the column that says what they belong to: "
    more = ". If they are different people, name one that distinguishes them:  "
    reported = say(text, code("--cluster COLUMN"), more, code("--key COLUMN"), ".")
    return Decision(reported, commands.audit_again(record))


def _check_the_label(record: AuditRecord) -> Decision:
    """What to do where every row has one outcome: no repair can be fitted, and no error of the other shown."""
    data, all_of = record.data, noun(record)
    what = "an event" if data.get("events") else "a non-event"
    reported = say("Check the label: by ", code(str(data.get("label"))), f" each of these {all_of} is {what}. ")
    if data.get("positive") is None:
        return Decision((*reported, *say(f"Audit {all_of} of both outcomes.")), "")
    return Decision((*reported, *say(code("--positive"), " names the value that counts as an event.")), "")


def _by_clusters(record: AuditRecord, column: str, effect: float) -> Decision:
    reported = say(
        "Audit by ", code(column), f": its rows are correlated, and ranges about {wider(effect)} times too narrow."
    )
    return Decision(reported, commands.audit_again(record, commands.by_clusters(column)))


def _give_a_limit(record: AuditRecord) -> Decision:
    text = "Choose the largest error you can accept, before you see the next data, and pass it: 0.02 is 2 points."
    return Decision(say(text), commands.audit_again(record, ["--limit 0.02"]))


def _repair(record: AuditRecord) -> Decision:
    if before_after.helped(record):
        return _recalibrate(record)
    s = record.curve(FIXED).settings
    if before_after.judged(record):
        tried, n = sum(bool(c["command"]) for c in s.get("candidates") or ()), num.count(int(s.get("rows_judged") or 0))
        which = "the one repair tried is not" if tried == 1 else f"none of the {cardinal(tried)} repairs tried is"
        if not tried:
            which = "no repair tried is"
        text = f"Retrain, or leave out {_whom(record)}: {which} shown to help, on {n} {noun(record)} held out."
        return Decision(say(f"{text} Then audit the new scores."), "")  # the same file would give the same answer
    text = f"Recalibrate, judged on {noun(record)} that no repair is fitted on: none was tried in this audit."
    return Decision(say(text), commands.repair(record))


def _recalibrate(record: AuditRecord) -> Decision:
    """The repair that is shown to help, with what it does on rows held out."""
    method = str(record.curve(FIXED).settings.get("command") or "")
    text = f"Recalibrate by {before_after.candidate(record)}. {before_after.outcome(record)}"
    text = " ".join(t for t in (text, before_after.left(record), before_after.lost(record)) if t)
    return Decision(say(text), commands.repair(record, method) if method else "")


def _whom(record: AuditRecord) -> str:
    """Return who is farthest over the limit."""
    over = everyone_off(record)
    if record.verdicts["everyone"] == "over" or not over:
        return "decisions that rest on it"
    return off_named(over[0]) or "those over the limit"


def _subgroups(record: AuditRecord) -> Decision:
    """Return what to do where a test finds error and no subgroup is certified over the limit."""
    if before_after.helped(record):
        return _recalibrate(record)
    known, need = subgroups_known(record)[:1], _subgroups_need(record)
    who = (
        Span(clipped(sanitize(known[0].rule)), "name", "#subgroups")
        if known and known[0].rule
        else "unlisted subgroups"
    )
    more = f" Audit again {_growth(record, need)}." if need is not None else ""
    return Decision(say("Do not rely on it yet for ", who, f".{more}"), commands.audit_again(record))


def _look_closer(record: AuditRecord) -> Decision:
    groups, subgroups = (record.verdicts[k] == "absent" for k in ("groups", "subgroups"))
    named = record.data.get("by")
    more, without, steps = [], [], []
    if groups and not named:
        steps.append("name the groups that matter")
        more.append(commands.naming_groups(record))
    elif groups:
        steps.append("name coarser groups")
    if subgroups and record.settings.get("quick"):
        steps.append("search the unlisted subgroups")
        without.append("--quick")
    elif subgroups:
        steps.append("give the columns in which subgroups can be searched")
    return Decision(say(f"{capital(' and '.join(steps))}."), commands.audit_again(record, more, without=without))


# ---- rows that would decide ----


def _collect(record: AuditRecord) -> str:
    """Return how far the log must grow, and how long that takes at the rate it grows."""
    one = record.everyone
    need = _need(record)
    if one.verdict == "undecided":
        need = need_of(one)
    if need is None:
        few = [one] if one.verdict == "undecided" else with_verdict(record, "undecided")
        return no_number(record, needed(record), *few)
    return f"Audit again {_growth(record, need)}."


def _need(record: AuditRecord) -> Need | None:
    need = median_need(with_verdict(record, "undecided"))
    return _subgroups_need(record) if need is None else need


def _subgroups_need(record: AuditRecord) -> Need | None:
    return subgroups_need(record.estimates[SUBGROUPS]) if SUBGROUPS in record.estimates else None


def rows_that_would_decide(record: AuditRecord) -> Text:
    """Return in a sentence how many groups are undecided and when half of them would settle; empty where none is."""
    few = with_verdict(record, "undecided")
    if not few or suppressed(record):
        return ()
    n = len(few)
    who = f"{num.count(n)} {'group is' if n == 1 else 'groups are'} undecided"
    start = f"{who}: too few {needed(record)}. "
    need = median_need(few)
    if need is None:
        return say(start + (no_plan(record) or f"No number of {needed(record)} is certain to settle most of them."))
    half = {1: "It", 2: "One of the two", 3: "Two of the three"}.get(n, "Half of them")
    return say(f"{start}{half} would settle {_growth(record, need)}.")


def _growth(record: AuditRecord, need: Need) -> str:
    """Return when so many rows or clusters are there; of a sketch with some clusters, that it must hold more."""
    (more, at_least), rows, result = need, record.everyone.rows, cluster_totals(record)
    about = num.amount(more, at_least)
    if result and not result["exact"]:
        kept = f"{num.count(result['held'])} of about {num.count(result['count'])}"
        return f"with {about} {needed(record)}: the sketch holds {kept}"
    now = int(result["held"]) if record.data.get("cluster") else rows
    time = _time(record, round((more - now) * rows / now))
    return f"when this log has grown from {num.count(now)} to {about} {needed(record)}{time}"


def _time(record: AuditRecord, more: int) -> str:
    """Return how long so many rows take to arrive; nothing where no date tells."""
    arrival = record.data.get("arrival")
    rate = 0.0 if not arrival else float(arrival["rows_a_year"])
    if rate <= 0 or more <= 0:
        return ""
    if more / rate > LONGEST:
        return f", in over {LONGEST} years at your rate"
    months = max(1.0, -(-more * 12 // rate))
    if months < MONTHS:
        return f", in {months:.0f} month{'' if months == 1 else 's'} at your rate"
    return f", in {-(-more // rate):.0f} years at {num.count(float(f'{rate:.2g}'))} a year"
