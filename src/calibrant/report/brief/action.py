"""What to do: one action and one command, the most pressing first."""

from __future__ import annotations

from calibrant.audit.record import AuditRecord
from calibrant.report import commands
from calibrant.report import findings as facts
from calibrant.report import numbers as num
from calibrant.report.document import Decision
from calibrant.report.spans import Span, clipped, code, say, shown
from calibrant.report.wording.clusters import names_of, no_number, wider
from calibrant.report.wording.decisions import lost_by_repair
from calibrant.report.wording.headline import everyone_off, for_use, off_named
from calibrant.report.wording.terms import capital, cardinal, repair_named
from calibrant.sanitize import sanitize

LONG = 40  # characters of a name
TESTS = {"scan": "subgroup"}  # what a test is called, where that is not its name


def populations(record: AuditRecord) -> list[facts.Line]:
    """Everyone, then the groups and subgroups, the farthest off now first, with their ranges now and after."""
    limit, out = facts.limit_of(record), []
    for p in facts.lines_of(record.curve(facts.FIXED)):
        who = "Everyone" if p["kind"] == "everyone" else shown(p["who"])
        now, after = (facts.range_of(p, when, limit) for when in ("now", "after"))
        out.append({**p, "who": who, "now_range": now, "after_range": after})
    return sorted(out, key=lambda p: (p["kind"] != "everyone", *(-v for v in p["now_range"]), p["who"]))


def candidate(record: AuditRecord) -> str:
    """The repair that is recommended, as it is called everywhere; empty where none is shown to help."""
    name = str(record.curve(facts.FIXED).settings.get("candidate") or "")
    return repair_named(name) if name else ""


def lost(record: AuditRecord) -> str:
    """Return at which thresholds, and for whom, the repair is shown to lose net benefit; empty where it is not."""
    changes = record.curve("repair_decisions")
    return lost_by_repair(changes, record.curve("repairs").settings["recommended"]) if changes.columns else ""


def judged(record: AuditRecord) -> bool:
    return bool(record.curve(facts.FIXED).columns.get("id"))


def helped(record: AuditRecord) -> bool:
    return judged(record) and bool(candidate(record))


def outcome(record: AuditRecord) -> str:
    limit, result = facts.limit_of(record), [p for p in populations(record) if p["after_range"] is not None]
    n = num.count(int(record.curve(facts.FIXED).settings.get("rows_judged") or 0))
    start = f"On {n} {facts.noun(record)} held out, "
    if limit is None:
        return start + _in_points(result)
    over, few = ([p for p in result if p["after"] == v] for v in ("over", "undecided"))
    was = [p for p in result if p["now"] == "over"]
    if over:
        who = clipped(over[0]["who"], LONG) if over[0]["kind"] != "everyone" else "everyone"
        more = f" and {cardinal(len(over) - 1)} more" if len(over) > 1 else ""
        first = f"{who}{more} {'stay' if more else 'stays'} over the limit"
    elif left(record) or (was and not any(p["after"] == "within" for p in was)):
        first = "it is not shown to be enough"
    else:
        first = "nothing is over the limit any more" if was else "nothing is over the limit"
    if few:
        first += f"; {cardinal(len(few))} {'stays' if len(few) == 1 else 'stay'} undecided"
    return f"{start}{first}."


def _in_points(results: list[facts.Line]) -> str:
    one = next((p for p in results if p["kind"] == "everyone"), None)
    now, after = ("", "") if one is None else (num.upper_bound(one[f"{w}_range"][1]) for w in ("now", "after"))
    return f"everyone is off by at most {after} points instead of {now}." if now != after else "it is shown to help."


def left(record: AuditRecord) -> str:
    """Return which tests still find error after the repair, and which do not any more."""
    tests = record.curve(facts.FIXED).settings.get("tests") or {}
    alpha = float(record.settings["alpha"])
    ps = {k: t.get("after") for k, t in tests.items()}
    results = [k for k, p in ps.items() if p is not None and p <= alpha]
    if not results:
        return ""
    least = num.p_value(min(float(ps[k]) for k in results)).partition(",")[0].replace(" ", "\N{NO-BREAK SPACE}")
    which = f"The {TESTS.get(results[0], results[0])} test" if len(results) == 1 else "Tests"
    return f"{which} still find{'s' if len(results) == 1 else ''} error ({least})."


MONTHS = 24  # from here on a time is reported in years
LONGEST = 50  # years: a longer time is reported as over them
PLACEHOLDER = '--intended-use "…"'
Need = tuple[int, bool]  # rows that would decide, and whether at least


def decision(record: AuditRecord) -> Decision:
    if facts.withheld(record) and facts.refuted(record) is None:
        return _one_of_each(record)
    if record.data.get("events") in (0, record.data.get("rows")):
        return _check_the_label(record)
    result = facts.shared_by(record)
    return _by_verdict(record) if result is None or facts.declared(record) else _by_clusters(record, result)


def _by_verdict(record: AuditRecord) -> Decision:
    state = facts.states(record)
    if facts.limit_of(record) is None:
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
    if facts.cancels(record):
        text = "Errors cancel on average, but not at each score: judge the calibration error too."
        return Decision(say(text), commands.audit_again(record, without=["--judge"]))
    if not for_use(record):
        text = "Say what it is for and who set the limit; then this page says whether to use it."
        more = [PLACEHOLDER] if facts.stated_of(record, "set_by") else [PLACEHOLDER, '--set-by "…"']
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
    data, all_of = record.data, facts.noun(record)
    what = "an event" if data.get("events") else "a non-event"
    reported = say("Check the label: by ", code(str(data.get("label"))), f" each of these {all_of} is {what}. ")
    if data.get("positive") is None:
        return Decision((*reported, *say(f"Audit {all_of} of both outcomes.")), "")
    return Decision((*reported, *say(code("--positive"), " names the value that counts as an event.")), "")


def _by_clusters(record: AuditRecord, one: facts.SharedBy) -> Decision:
    """What to do where rows share clusters that nobody named: both readings, where the data cannot tell."""
    rows, option, narrow = names_of(one.columns), code("--cluster none"), f"{wider(one.effect)} times too narrow."
    if one.one_outcome:
        many = f": its rows look at one outcome many times, and ranges are about {narrow} If it was made from the "
        more = say(many, "outcome, leave it out of the file; ", option, " declares rows independent.")
    elif one.few:
        (by,) = commands.by_clusters(one.option)
        groups = say(", or, if its values are groups, a few of which are off: ", code(commands.by_groups(one.columns)))
        more = say(": ", code(by), *groups, ".")
    else:
        misses = "together say" if len(one.columns) > 1 else "says"
        more = say(f": its rows are correlated, and ranges about {narrow} Or the score misses what ", *rows)
        more += say(f" {misses}: ", code(commands.by_groups(one.columns)), ".")
        more += say(" If they are independent all the same: ", option, ".") if one.refutes else ()
    reported = say("Audit by ", *rows, *more)
    return Decision(reported, commands.audit_again(record, commands.by_clusters(one.option)))


def _give_a_limit(record: AuditRecord) -> Decision:
    text = "Choose the largest error you can accept, before you see the next data, and pass it: 0.02 is 2 points."
    return Decision(say(text), commands.audit_again(record, ["--limit 0.02"]))


def _repair(record: AuditRecord) -> Decision:
    if helped(record):
        return _recalibrate(record)
    s = record.curve(facts.FIXED).settings
    if judged(record):
        tried, n = sum(bool(c["command"]) for c in s.get("candidates") or ()), num.count(int(s.get("rows_judged") or 0))
        which = "the one repair tried is not" if tried == 1 else f"none of the {cardinal(tried)} repairs tried is"
        if not tried:
            which = "no repair tried is"
        text = f"Retrain, or leave out {_whom(record)}: {which} shown to help, on {n} {facts.noun(record)} held out."
        return Decision(say(f"{text} Then audit the new scores."), "")  # the same file would give the same answer
    text = f"Recalibrate, judged on {facts.noun(record)} that no repair is fitted on: none was tried in this audit."
    return Decision(say(text), commands.repair(record))


def _recalibrate(record: AuditRecord) -> Decision:
    method = str(record.curve(facts.FIXED).settings.get("command") or "")
    text = f"Recalibrate by {candidate(record)}. {outcome(record)}"
    text = " ".join(t for t in (text, left(record), lost(record)) if t)
    return Decision(say(text), commands.repair(record, method) if method else "")


def _whom(record: AuditRecord) -> str:
    over = everyone_off(record)
    if facts.state(record, "everyone") == "over" or not over:
        return "decisions that rest on it"
    return off_named(over[0]) or "those over the limit"


def _subgroups(record: AuditRecord) -> Decision:
    if helped(record):
        return _recalibrate(record)
    known, need = facts.subgroups_known(record)[:1], _subgroups_need(record)
    who = (
        Span(clipped(sanitize(known[0].rule)), "name", "#subgroups")
        if known and known[0].rule
        else "unlisted subgroups"
    )
    more = f" Audit again {_growth(record, need)}." if need is not None else ""
    return Decision(say("Do not rely on it yet for ", who, f".{more}"), commands.audit_again(record))


def _look_closer(record: AuditRecord) -> Decision:
    groups, subgroups = (facts.state(record, k) == "absent" for k in ("groups", "subgroups"))
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
    one = record.everyone
    need = _need(record)
    if one.verdict == "undecided":
        need = facts.need_of(one)
    if need is None:
        few = [one] if one.verdict == "undecided" else facts.with_verdict(record, "undecided")
        return no_number(record, facts.needed(record), *few)
    return f"Audit again {_growth(record, need)}."


def _need(record: AuditRecord) -> Need | None:
    need = facts.median_need(facts.with_verdict(record, "undecided"))
    return _subgroups_need(record) if need is None else need


def _subgroups_need(record: AuditRecord) -> Need | None:
    return facts.subgroups_need(record.estimates[facts.SUBGROUPS]) if facts.SUBGROUPS in record.estimates else None


def _growth(record: AuditRecord, need: Need) -> str:
    """Return when so many rows or clusters are there; of a sketch with some clusters, that it must hold more."""
    (more, at_least), rows, result = need, record.everyone.rows, facts.cluster_totals(record)
    about = num.amount(more, at_least)
    if result and not result["exact"]:
        kept = f"{num.count(result['held'])} of about {num.count(result['count'])}"
        return f"with {about} {facts.needed(record)}: the sketch holds {kept}"
    now = int(result["held"]) if record.data.get("cluster") else rows
    time = _time(record, round((more - now) * rows / now))
    return f"when this log has grown from {num.count(now)} to {about} {facts.needed(record)}{time}"


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
