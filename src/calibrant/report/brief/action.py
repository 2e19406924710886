"""What to do: one action and one command, the most pressing first."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence

from calibrant.audit.record import AuditRecord, Finding, size
from calibrant.report import commands
from calibrant.report import findings as facts
from calibrant.report import numbers as num
from calibrant.report.brief.cards import estimate_of
from calibrant.report.brief.cards import shown as shown_estimate
from calibrant.report.document import Decision
from calibrant.report.spans import Span, clipped, code, label, literal, say, shown
from calibrant.report.wording.change import (
    CLASS_REPAIRS,
    basis_of,
    brought,
    changes_of,
    class_repair,
    moved,
    of_classes_gained,
    recommended_line,
    score_lowered,
)
from calibrant.report.wording.clusters import independent, names_of, no_number, too_wide, wider
from calibrant.report.wording.decisions import lost_by_repair
from calibrant.report.wording.headline import for_use, group_named, in_question, off_named
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
    """At which thresholds, and for whom, the repair is shown to lose net benefit; empty where it is not."""
    changes = record.curve("repair_decisions")
    return lost_by_repair(changes, record.curve("repairs").settings["recommended"]) if changes.columns else ""


def judged(record: AuditRecord) -> bool:
    return bool(record.curve(facts.FIXED).columns.get("id"))


def left(record: AuditRecord) -> str:
    """Which tests still find error after the repair, and which do not any more."""
    tests = record.curve(facts.FIXED).settings.get("tests") or {}
    alpha = float(record.settings["alpha"])
    ps = {k: t.get("after") for k, t in tests.items()}
    results = [k for k, p in ps.items() if p is not None and p <= alpha]
    if not results:
        return ""
    least = num.p_value(min(float(ps[k]) for k in results)).partition(",")[0].replace(" ", "\N{NO-BREAK SPACE}")
    which = f"the {TESTS.get(results[0], results[0])} test still finds" if len(results) == 1 else "tests still find"
    return f"On those rows {which} error ({least}): audit it again once repaired."


MONTHS = 24  # from here on a time is reported in years
LONGEST = 50  # years: a longer time is reported as over them
USE, SETTER = 'intended_use = "…"', 'set_by = "…"'  # lines of the file of words
KEPT = "-o audit.json"
AFTER_LOOKING = "gap chosen after the calibration error was undecided"
RELATIVE = "--limit-relative 0.2"  # of rare events: the observed are from .8 to 1.2 times the expected
Need = tuple[int, bool]  # rows that would decide, and whether at least

# What the state of a record calls for, the most pressing first; docs/read-a-report.md has the table.
STATES = (
    *("copies", "one outcome"),
    "correlated",
    "no limit",
    "lost unlike",
    "in question",
    "repair of classes helps",
    "repair helps",
    "class off",
    "shown, within the limit",
    "off by a horizon",
    "off, look at it",
    "off, not repaired",
    "groups or subgroups missing",
    "gap decides",
    "fewer groups decide",
    "undecided",
    "errors cancel",
    "no use stated",
    "nothing to do",
)


def decision(record: AuditRecord) -> Decision:
    """The one action that the state of the record calls for, with one command, which is not the one just run."""
    return MADE[state_of(record)](record)


def _by_weights(record: AuditRecord) -> Decision:
    """What to do where error is shown by a horizon, and no repair was compared: by weights of censoring."""
    text, typed = "Retrain the model: repairs of clusters that were lost have no proof.", commands.repair(record)
    if typed:
        text = "Recalibrate by weights of censoring, which take being lost as independent of outcome and score."
    return Decision(say(f"{meanwhile(record)}{text}"), typed or commands.look(record))


def _lost_unlike(record: AuditRecord) -> list[str]:
    """The group columns by which rows are lost unlike, and whose levels can have a law of their own each."""
    return list((record.data.get("horizon") or {}).get("own_law") or ())


def _name_levels(record: AuditRecord) -> Decision:
    """What to do where rows of some groups are lost sooner: give each level its own law of being followed."""
    text = "Let each level have its own law of being followed, for what everyone's range assumes may not hold: "
    option = commands.within_levels(record, _lost_unlike(record))
    reported = say(text, code(option), ". Name such columns beforehand: a choice is not counted.")
    return Decision(reported, commands.audit_again(record, [option], without=["--within"]))


def state_of(record: AuditRecord) -> str:
    """The first of `STATES` that holds."""
    state, shared = facts.states(record), facts.shared_by(record)
    undecided, known = "undecided" in state.values(), record.verdicts
    named_within = known["everyone"] == "within" and known["groups"] in ("within", "not_checked")
    within = named_within and record.verdict != "over"  # nor is a subgroup over the limit
    holds = {
        "copies": facts.withheld(record) and facts.refuted(record) is None,
        "one outcome": record.data.get("events") in (0, record.data.get("rows")),
        "correlated": shared is not None and not facts.declared(record),
        "no limit": facts.limit_of(record) is None,
        "lost unlike": bool(_lost_unlike(record)),
        "in question": bool(in_question(record)),
        "repair of classes helps": (_off(record) or undecided) and class_repair(record) is not None,
        "class off": _class_off(record) is not None,
        "repair helps": (_off(record) or undecided) and judged(record) and bool(candidate(record)),
        "shown, within the limit": _off(record) and judged(record) and within,
        "off by a horizon": _off(record) and bool(facts.lost(record)) and not judged(record),
        "off, look at it": _off(record) and bool(_first_off(record)[1]) and judged(record),
        "off, not repaired": _off(record),
        "groups or subgroups missing": state["everyone"] != "undecided" and bool(_closer(record)[0]),
        "gap decides": undecided and _gap_decides(record),
        "fewer groups decide": undecided and bool(_fewer(record)[0]),
        "undecided": undecided,
        "errors cancel": facts.cancels(record),
        "no use stated": not for_use(record),
        "nothing to do": True,
    }
    return next(name for name in STATES if holds[name])


def meanwhile(record: AuditRecord) -> str:
    """For whom not to rely on the score until that is done, or that undecided is no pass; empty where all is within."""
    if _off(record) and record.verdicts["everyone"] != "within":
        undecided = record.error_shown["everyone"] and facts.state(record, "everyone") == "undecided"
        perhaps = undecided and record.verdict != "over"  # nobody is surely beyond it
        return f"Do not rely on it yet{': error is shown, perhaps beyond the limit' if perhaps else ''}. "
    off = [o for o in facts.shown_off(record) if o.finding is None or o.finding.verdict != "within"]
    names = [name for name in map(off_named, off[:1]) if name]
    if names:
        more = f" and {cardinal(len(off) - 1)} more" if len(off) > 1 else ""
        return f"Do not rely on it yet for {names[0]}{more}. "
    return "Undecided is not a pass. " if "undecided" in facts.states(record).values() else ""


def _off(record: AuditRecord) -> bool:
    """Whether anybody is over the limit, or error of any size is shown."""
    return record.verdict == "over" or any(record.error_shown.values())


def _gap_decides(record: AuditRecord) -> bool:
    """Whether everyone is undecided by the calibration error, and guaranteed to be within the limit by the gap."""
    one, limit = record.everyone, facts.limit_of(record)
    if one.verdict != "undecided" or one.by == "gap" or limit is None or one.gap.guaranteed is None:
        return False
    return size(*one.gap_ends)[1] <= limit and one.error.value <= limit


def _one_of_each(record: AuditRecord) -> Decision:
    text = "Remove the copies, or name the column that says what they belong to: "
    distinct = say("name one that distinguishes them: ", code("--key COLUMN"))
    distinct = say("keep them by ", code("--allow-same")) if commands.arrays(record) else distinct  # they have no key
    more = (*say(". If they are different people, "), *distinct)
    reported = say(text, code("--cluster COLUMN"), *more, ". This lists the columns.")
    return Decision(reported, commands.look(record))


def _check_the_label(record: AuditRecord) -> Decision:
    """What to do where every row has one outcome: no repair can be fitted, and no error of the other shown."""
    data, all_of = record.data, facts.noun(record)
    what = "an event" if data.get("events") else "a non-event"
    reported = say("Check the label: by ", code(str(data.get("label"))), f" each of these {all_of} is {what}. ")
    if data.get("positive") is None:
        return Decision((*reported, *say(f"Audit {all_of} of both outcomes.")), commands.look(record))
    more = say(code("--positive"), " names the value that counts as an event.")
    return Decision((*reported, *more), commands.look(record))


def _by_clusters(record: AuditRecord) -> Decision:
    """What to do where rows share clusters that nobody named: both readings, where the data cannot tell."""
    one = facts.shared_by(record)
    if one is None:
        raise ValueError("no rows of this record share anything")
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
    text = "Choose the largest error you can accept, before you see the next data, and pass it: "
    if facts.rare(record):
        text += "0.2 lets the observed be from 0.8 to 1.2 times the expected."
        return Decision(say(text), commands.audit_again(record, [RELATIVE]))
    return Decision(say(f"{text}0.02 is 2 points."), commands.audit_again(record, ["--limit 0.02"]))


def _leave_out(record: AuditRecord) -> Decision:
    name = in_question(record)
    text = say("Leave ", code(name), " out if it is known only after the outcome: the finding rests on it.")
    return Decision(text, commands.without_column(record, name))


# ---- off: recalibrate, or look at it first ----


def _recalibrate(record: AuditRecord) -> Decision:
    method, n = (record.curve(facts.FIXED).settings.get(k) or "" for k in ("command", "rows_judged"))
    lines = [p for p in facts.lines_of(record.curve(facts.FIXED)) if p["kind"] != "subgroup"]
    first, line, gained = moved(lines), recommended_line(record), []
    if first is not None:
        gained.append(brought(record, first))
    if first is None and line is not None and (changes := changes_of(line)):
        gained.append(score_lowered("brier", changes["brier"]))
    text = f"{meanwhile(record)}Recalibrate by {candidate(record)}"
    on_rows = f"{num.count(int(n or 0))} {facts.noun(record)} held out"
    text += f": on {on_rows} it {' and '.join(gained)}" if gained else f", judged on {on_rows}"
    if line is not None and line["largest_rise_group"]:
        rise = max(0.0, float(line["largest_rise"]))
        by = num.nearest(rise)
        text += f"; no group's gap is estimated to rise{f' by more than {by}' if float(by) else ''}"
    text += "." if basis_of(record) != "estimated" else " (estimated, not guaranteed)."
    gone = lost(record)
    text = " ".join(t for t in (text, _still(record), gone) if t)
    return Decision(say(text), commands.repair(record, str(method)) if method else commands.repair(record))


def _recalibrate_classes(record: AuditRecord) -> Decision:
    line, method = class_repair(record), str(record.curve(CLASS_REPAIRS).settings.get("command", ""))
    if line is None:
        raise ValueError("no repair of all classes of this record is recommended")
    name = str(line["repair"])
    start = f"{meanwhile(record)}Recalibrate all classes by {repair_named(name)}"
    text = f"{start}: {of_classes_gained(record, line)}, estimated."
    return Decision(say(text), commands.repair_classes(record, name, method))


def _class_off(record: AuditRecord) -> Finding | None:
    """The class that is most evidently over the limit, or shows error and is not within; None where none is."""
    off = facts.named_off(record, facts.is_pressing)
    return next((o.finding for o in off if o.of_class), None)


def _look_at_classes(record: AuditRecord) -> Decision:
    """What to do where error is shown and no repair of all classes helps: audit the class that is off by itself."""
    first = _class_off(record)
    if first is None:
        raise ValueError("no class of this record is off")
    name = first.variables[0][1]
    text = "No recalibration of all classes is shown to help" if record.curve(CLASS_REPAIRS).columns else "Look closer"
    return Decision(
        say(
            f"{meanwhile(record)}{text}. Audit class ", literal(name), " against the others, by group and by variable."
        ),
        commands.one_class(record, name),
    )


def _still(record: AuditRecord) -> str:
    """Who stays over the limit after the repair, or that tests still find error; empty where neither."""
    over, rest = [p for p in populations(record) if p["after"] == "over"], left(record)
    if not over:
        return rest
    who = capital(clipped(over[0]["who"], LONG)) if over[0]["kind"] != "everyone" else "Everyone"
    more = f" and {cardinal(len(over) - 1)} more" if len(over) > 1 else ""
    return " ".join(filter(None, (f"{who}{more} {'stay' if more else 'stays'} over the limit.", rest)))


def _look_at(record: AuditRecord) -> Decision:
    """Whose rows to look at, where error is shown of them and no repair is shown to help."""
    who, name, estimate = _first_off(record)
    text = say("Do not rely on it yet for ", who, f"{estimate}: look at these rows first. {capital(_tried(record))}.")
    return Decision(text, commands.rows_of(record, name))


def _watch(record: AuditRecord) -> Decision:
    """What to do where error is shown, of everyone and groups that are within the limit all the same."""
    who, name, estimate = _first_off(record)
    all_of = "Everyone and every group is" if record.groups else "Everyone is"
    if name:
        shown_of = say(f"{all_of} within the limit, but error is shown of ", who, f"{estimate}: look at these rows ")
        reported = (*shown_of, *say(f"before the next release. {capital(_tried(record))}."))
        return Decision(reported, commands.rows_of(record, name))
    text = f"{all_of} within the limit, but error is shown. {capital(_tried(record))}: keep this record, and compare "
    return Decision(say(f"{text}the next with it."), commands.audit_again(record, [KEPT]))


def _retrain(record: AuditRecord) -> Decision:
    """What to do where error is shown, and of nobody whose rows could be written."""
    if record.curve(CLASS_REPAIRS).columns:
        tried = "No recalibration of all classes is shown to help: retrain it, or try the others."
    elif judged(record):
        tried = f"{capital(_tried(record))}: retrain it, or run this, which tries slower ones too."
    else:
        tried = (
            f"Recalibrate, judged on {facts.noun(record)} that no repair is fitted on: none was tried in this audit."
        )
    return Decision(say(f"{meanwhile(record)}{tried}"), commands.repair(record))


def _tried(record: AuditRecord) -> str:
    s = record.curve(facts.FIXED).settings
    tried = sum(bool(c["command"]) for c in s.get("candidates") or ())
    which = "the one repair tried is not" if tried == 1 else f"none of the {cardinal(tried)} repairs tried is"
    on_rows = f"on {num.count(int(s.get('rows_judged') or 0))} {facts.noun(record)} held out"
    return f"{which if tried else 'no repair tried is'} shown to help {on_rows}"


def _first_off(record: AuditRecord) -> tuple[Span | str, str, str]:
    """Who is off first, as page and command name it, and its estimate; no name of nobody, or of a file by a horizon."""
    for o in facts.shown_off(record) if commands.from_python(record) or not record.data.get("horizon") else ():
        if o.finding is None:
            return Span(clipped(sanitize(o.rule)), "name", "#subgroups"), o.rule, f", {num.gap(o.gap)} points"
        if not o.finding.pooled:
            who = Span(clipped(group_named(o.finding), LONG), "name")
            return who, label(o.finding), _estimated(record, o.finding)
    return "", "", ""


def _estimated(record: AuditRecord, finding: Finding) -> str:
    return f", {estimate_of(record, finding, unit=True)}" if shown_estimate(record, finding) else ""


# ---- what was not looked at ----


def _closer(record: AuditRecord) -> tuple[str, list[str], list[str]]:
    """What to name or search that was not, with options to add and to leave out; empty where nothing can be."""
    groups, subgroups = (facts.state(record, k) == "absent" for k in ("groups", "subgroups"))
    more, without, steps = [], [], []
    if groups and not record.data.get("by") and (option := commands.proposed_groups(record)):
        steps.append("name the groups that matter")
        more.append(option)
    if facts.lost(record):  # subgroups are not searched
        subgroups = False
    if subgroups and record.settings.get("quick"):
        steps.append("search the unlisted subgroups")
        without.append("--quick")
    elif subgroups and tuple(record.settings.get("variables", ("*",))) != ("*",):
        steps.append("search unlisted subgroups in every column")
        without.append("--variables")
    return capital(" and ".join(steps)), more, without


def _look_closer(record: AuditRecord) -> Decision:
    text, more, without = _closer(record)
    return Decision(say(f"{text}."), commands.audit_again(record, more, without=without))


def _judge_by_gap(record: AuditRecord) -> Decision:
    need = facts.need_of(record.everyone)
    text = "Undecided is not a pass. "
    text += "" if need is None else f"More {facts.noun(record)} decide it {_growth(record, need)}. "
    # What is judged is then chosen with the labels in view, so the next record has to say it where the limit is signed.
    text += (
        f"{'Or judge' if need else 'Judge'} the gap, which is guaranteed to be within the limit already but does not "
    )
    text += "see errors that cancel. As these labels were read before that choice, "
    chosen = f"{facts.stated_of(record, 'set_by') or 'nobody named'}; {AFTER_LOOKING}"
    if commands.from_python(record):
        more, noted = f"--set-by {shlex.quote(chosen)}", say("the command says so in the record.")
    else:
        more, line = f"--about {commands.ABOUT}", code(commands.toml_line("set_by", chosen))
        noted = say("say so in ", code(commands.ABOUT), ": ", line, ".")
    without = ["--judge", "--set-by", "--about"]
    return Decision((*say(text), *noted), commands.audit_again(record, ["--judge gap", more], without=without))


def _fewer(record: AuditRecord) -> tuple[tuple[str, ...], int, float]:
    """The columns by which the largest share of groups would be decided, of how many, and how many; or nothing.

    Of equal shares the most columns. Nothing where everyone is undecided too, where a group is estimated clearly over
    the limit, which no smaller number of groups decides as within, and where fewer columns promise less than half.
    """
    c = record.curve("fewer_groups").columns
    lines = list(zip(*(c.get(k, ()) for k in ("by", "groups", "decided")), strict=True))
    in_pairs = any(len(names) > 1 for names in facts.groupings(record))
    every = {name for names in facts.groupings(record) for name in names}
    fewer = [(by, n, met) for by, n, met in lines if in_pairs or {*by} != every]
    few = facts.with_verdict(record, "undecided")
    if not fewer or record.everyone.verdict == "undecided" or any(_clear(f) for f in few):
        return (), 0, 0.0
    by, n, met = max(fewer, key=lambda line: (line[2] / line[1], line[1]))
    now = sum(f.verdict != "undecided" for f in record.groups if [v for v, _ in f.variables] in [[name] for name in by])
    return (tuple(map(str, by)), n, met) if met >= n / 2 and round(met) > now else ((), 0, 0.0)


def _judge_fewer(record: AuditRecord) -> Decision:
    by, n, met = _fewer(record)
    names = [
        part for i, name in enumerate(by) for part in ((" and " if i == len(by) - 1 else ", ") if i else "", code(name))
    ]
    decided = f"about {num.count(round(met))} of {num.count(n)} groups would be decided"
    text = f" alone: {decided} at these {facts.noun(record)}, if scores are right."
    return Decision(say(f"{meanwhile(record)}Judge by ", *names, text), commands.by_fewer(record, by))


def _cancelling(record: AuditRecord) -> Decision:
    text = "Errors cancel on average, but not at each score: judge the calibration error too."
    return Decision(say(text), commands.audit_again(record, without=["--judge"]))


def _say_the_use(record: AuditRecord) -> Decision:
    lines = [code(USE)] if facts.stated_of(record, "set_by") else [code(USE), " and ", code(SETTER)]
    if commands.from_python(record):
        text = "Say what it is for and who set the limit; then this page says whether to use it."
        more = ['--intended-use "…"', '--set-by "…"'][: 1 if len(lines) == 1 else 2]
        return Decision(say(text), commands.audit_again(record, more))
    start = ("Say what it is for and who set the limit, in the file ", code(commands.ABOUT), ": ")
    stated = say(*start, *lines, "; then this page says whether to use it.")
    return Decision(stated, commands.audit_again(record, [f"--about {commands.ABOUT}"], without=["--about"]))


def _keep(record: AuditRecord) -> Decision:
    text = "Nothing to repair. Keep this record, and compare the next with it when model, use or population changes."
    return Decision(say(text), commands.audit_again(record, [KEPT]))


# ---- rows that would decide ----


def _collect(record: AuditRecord) -> Decision:
    """How many rows would decide, and of whom; no number where the estimate is over and the plan is for within."""
    one, few = record.everyone, facts.with_verdict(record, "undecided")
    need, some = (facts.need_of(one), [one]) if one.verdict == "undecided" else (_need(record, few), few)
    over = [f for f in some if f.limit is not None and _size(f) > f.limit] if need is None or need[1] else []
    if over and any(too_wide(record, f) for f in over):
        need = None
    elif over:
        first = facts.by_evidence(over)[0]
        who = Span(clipped(group_named(first), LONG), "name") if first.variables else "everyone"
        size = _estimated_size(record, first)
        if _clear(first):
            more = f"{size}: estimated, not guaranteed."
            return Decision(say("Treat it as over the limit for ", who, more), _plan(record))
        more = f"{size}: too close to the limit to say how many. This lists what these {facts.noun(record)} can decide."
        start = f"{meanwhile(record)}Collect more {facts.noun(record)}, first for "
        return Decision(say(start, who, more), _plan(record))
    text = no_number(record, independent(record).needed, *some)
    if need is not None:
        text = f"Collect more: {_who_settles(record, some)} would settle {_growth(record, need)}."
    if one.verdict != "undecided" and len(record.groups) > FEWER:
        text += " Fewer or coarser groups take fewer."
    return Decision(say(f"{meanwhile(record)}{text}"), _plan(record))


FEWER = 5  # groups: of more than so many, fewer are proposed


def _who_settles(record: AuditRecord, some: Sequence[Finding]) -> str:
    if not some:
        return "unlisted subgroups"
    if record.everyone.verdict == "undecided":
        return "everyone"
    few = {1: "the undecided group", 2: "one of two undecided groups"}
    return few.get(len(some), f"half of {cardinal(len(some))} undecided groups")


def _clear(finding: Finding) -> bool:
    """Whether the ordinary interval, too, lies beyond the limit."""
    limit, by_gap = finding.limit, finding.by == "gap"
    of = finding.gap.interval if by_gap else finding.error.interval
    return limit is not None and of is not None and (of.low > limit or (by_gap and of.high < -limit))


def _size(finding: Finding) -> float:
    return abs(finding.gap.value) if finding.by == "gap" else finding.error.value


def _estimated_size(record: AuditRecord, finding: Finding) -> str:
    if finding.variables:
        return _estimated(record, finding)
    what = "gap" if finding.by == "gap" else "calibration error"
    return f", whose {what} is about {num.nearest(_size(finding))} points"


def _need(record: AuditRecord, undecided: Sequence[Finding]) -> Need | None:
    """What would decide half of these groups, or the unlisted subgroups where no group needs more."""
    need = facts.median_need(undecided)
    if need is None and facts.SUBGROUPS in record.estimates:
        return facts.subgroups_need(record.estimates[facts.SUBGROUPS])
    return need


def _plan(record: AuditRecord) -> str:
    """What these rows can decide, and how many would: the plan, or where none takes these data, the look."""
    return commands.plan(record) or commands.look(record)


def _growth(record: AuditRecord, need: Need) -> str:
    """When so many rows or clusters are there; of a sketch with some clusters, that it must hold more."""
    (more, at_least), rows, by = need, record.everyone.rows, independent(record)
    about = f"{num.amount(more, at_least)} {by.needed}"
    if by.part:
        return f"with {about}: the sketch holds {by.part}"
    time = _time(record, round((more - by.now) * rows / by.now))
    return f"when this log has grown from {num.count(by.now)} to {about}{time}"


def _time(record: AuditRecord, more: int) -> str:
    """How long so many rows take to arrive; nothing where there is no date."""
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


MADE: Mapping[str, Callable[[AuditRecord], Decision]] = {
    "copies": _one_of_each,
    "one outcome": _check_the_label,
    "correlated": _by_clusters,
    "no limit": _give_a_limit,
    "lost unlike": _name_levels,
    "in question": _leave_out,
    "repair of classes helps": _recalibrate_classes,
    "repair helps": _recalibrate,
    "class off": _look_at_classes,
    "shown, within the limit": _watch,
    "off by a horizon": _by_weights,
    "off, look at it": _look_at,
    "off, not repaired": _retrain,
    "groups or subgroups missing": _look_closer,
    "gap decides": _judge_by_gap,
    "fewer groups decide": _judge_fewer,
    "undecided": _collect,
    "errors cancel": _cancelling,
    "no use stated": _say_the_use,
    "nothing to do": _keep,
}
