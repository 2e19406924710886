"""The section about repairs: who is over the limit before and after, which repairs were tried, and the command."""

from __future__ import annotations

from collections.abc import Iterator

from calibrant.audit.record import AuditRecord, CheckRecord
from calibrant.report import commands
from calibrant.report import document as doc
from calibrant.report import numbers as num
from calibrant.report.findings import FIXED, Line, gaps_of, limit_of, lines_of, noun, range_of, ranked
from calibrant.report.outline import Declared, OutlineCheck
from calibrant.report.spans import Span, Text, code, lines, link, literal, say, strong
from calibrant.report.wording.change import AS_AUDITED as AS_AUDITED
from calibrant.report.wording.change import AT_ONCE, CLASS_REPAIRS, basis_of, best_line, changes_of, scores_changed
from calibrant.report.wording.decisions import lost_by_repair
from calibrant.report.wording.terms import VERDICTS, capital, cardinal, fitted_to, joined, repair_named, unmade
from calibrant.sanitize import sanitize

CLEAR = "half a point"  # a smaller change of a gap is not called one: `repair.evaluate` tests beyond it
KEEPS = {
    "kept": "keep{s} the order of {noun}",
    "kept up to ties": "keep{s} it up to ties",
    "may change": "may change it",
}
EVERY_ROW = {  # what writes every row repaired, of other outcomes and of those by a horizon
    False: "with -o repaired.parquet it writes every row repaired",
    True: "calibrant apply then repairs every row",
}
GIVES = "gives its calibrator, which repairs the scores of any rows"  # to who made the audit in Python
BY_WEIGHTS = (
    "Repairs are fitted and judged by weights of censoring. The {pilots} {rows} of the fit give its law, between "
    "limits that hold at this number of rows. Loss is taken as independent of outcome and score together{within}. "
    "Repairs that read covariates are left out: loss would have to be independent of these too. Anything is wrongly "
    "called better or worse at most {alpha:g} of 100 times; estimates and their intervals are ordinary."
)
TESTS = {
    "local": "local test (error among those with the same score)",
    "strong": "strong test (a badly served group)",
    "scan": "scan test (every subgroup of two attributes)",
}


def repair(record: AuditRecord) -> Iterator[doc.Node]:
    if not compared(record):
        if record.curve(CLASS_REPAIRS).columns:
            there = link("under the classes", "classes")
            yield doc.Paragraph(say("Repairs of all classes at once are compared ", there, "."), "quiet", doc.PAGE)
            return
        yield doc.Paragraph(unmade(record, "repair", "No repairs were compared in this audit."), "quiet", doc.PAGE)
        return
    yield doc.Paragraph(answer(record), "answer")
    if named := by_tree(record):
        yield doc.Paragraph(named, "note")
    if populations(record):
        yield doc.Paragraph(say(fixed_caption(record)), where=doc.MARKDOWN)
        yield fixed_table(record)
        yield doc.Paragraph(say(fixed_note(record)), "note")
    yield doc.Paragraph(say(caption(record)), where=doc.MARKDOWN)
    yield table(record)
    yield doc.Paragraph(say(note(record)), "note")
    if decision_lines(record):
        yield doc.Paragraph(say(DECISIONS), where=doc.MARKDOWN)
        yield decision_table(record)
        yield doc.Paragraph(say(decision_note(record)), "note")
        if lost := lost_by_repair(record.curve("repair_decisions"), record.curve("repairs").settings["recommended"]):
            yield doc.Paragraph(say(strong(lost)))
    if typed := command(record):
        yield doc.Paragraph(how(record))
        yield doc.Command(typed)


def compared(record: AuditRecord) -> bool:
    return bool(record.curve("repairs").columns.get("probability"))


def by_weights(record: AuditRecord) -> bool:
    """Whether rows were lost before a horizon, and repairs are judged by weights of censoring."""
    return record.curve("repairs").settings.get("way") == "weights"


def rows(record: AuditRecord) -> list[Line]:
    """What was compared, "as audited" first."""
    return lines_of(record.curve("repairs"))


def populations(record: AuditRecord) -> list[Line]:
    return lines_of(record.curve(FIXED))


def recommended(record: AuditRecord) -> Line | None:
    """The repair to take; None where leaving it alone is as good, or nothing was compared."""
    if not compared(record):
        return None
    chosen = record.curve("repairs").settings["recommended"]
    return next((r for r in rows(record) if r["probability"] == chosen and chosen != AS_AUDITED), None)


# ---- in words ----


def answer(record: AuditRecord) -> Text:
    """The first line of "What would repair it?"."""
    s, chosen, before = record.curve("repairs").settings, recommended(record), rows(record)[0]
    if chosen is None:
        tried = len(rows(record)) - 1
        which = "the one repair tried is not" if tried == 1 else f"none of the {cardinal(tried)} repairs tried is"
        best = best_line(record)
        least = (
            f" Best is {repair_named(best['recipe'])}: {scores_changed(changes_of(best))}. {AT_ONCE}" if best else ""
        )
        return say(
            f"None is shown to help: on {num.count(s['rows_judged'])} {noun(record)} it was not fitted on, {which} "
            f"shown better, or estimated better in Brier score or log loss, without harm elsewhere.{least} "
            "That is not proof that none would."
        )
    gaps = ""
    if s["groups"]:
        gaps = f" The gap shrinks for {chosen['groups_better']} of {num.count(s['groups'])} groups"
        gaps += f" and grows for {chosen['groups_worse']}."
    gain = _kept(record) or _gain(record, chosen, before)
    scores = f" {capital(scores_changed(changes_of(chosen)))}, paired, with ordinary intervals."
    if basis_of(record) == "estimated":
        scores += " It is recommended by such intervals alone, which give no guarantee."
    return say(f"{capital(repair_named(chosen['recipe']))}: {gain}.{gaps}{scores}")


def by_tree(record: AuditRecord) -> Text:
    """The repair that no audit tries, where error is shown along a variable; nothing where it is along none."""
    name = next((r.variable for r in ranked(record) if r.error_shown), "")
    if not name:
        return ()
    call = f"cal.repair.VariableTree(variables={name!r})" if commands.from_python(record) else "--method variable-tree"
    start = say("Error is shown along ", code(sanitize(name)))
    return (*start, *say(". Audits fit no tree by variable; this does: ", code(sanitize(call)), "."))


def _kept(record: AuditRecord) -> str:
    result = populations(record)
    if limit_of(record) is None or not result or result[0]["after"] is None:
        return ""
    if len(result) == 1:
        words = {"within": "within the limit", "over": "over the limit", "undecided": "undecided"}
        return f"everyone together, {words[result[0]['now']]} before, is {words[result[0]['after']]} after"
    before, after, few = (
        sum(line[when] == verdict for line in result)
        for when, verdict in (("now", "over"), ("after", "over"), ("after", "undecided"))
    )
    reported = (
        f"of the {cardinal(len(result))} examined, {_none(before)} {'is' if before == 1 else 'are'} over the limit "
    )
    left = f"; {cardinal(few)} {'is' if few == 1 else 'are'} undecided" if few else ""
    return f"{reported}before and {_none(after)} after{left}"


def _none(n: int) -> str:
    return cardinal(n) if n else "none"


def _gain(record: AuditRecord, chosen: Line, before: Line) -> str:
    better, after, now = sanitize(_verdict(record, chosen).partition(";")[0]), _upper(chosen), _upper(before)
    if chosen["error_high"] is None:
        return better
    if after == now:  # as they are written
        return f"at most {after} points, as before, but {better}"
    if before["error_high"] is not None and chosen["error_high"] < before["error_high"]:
        return f"at most {after} points instead of {now}"
    return f"{better}, but at most {after} points instead of {now}"


def _verdict(record: AuditRecord, chosen: Line) -> str:
    return str(record.curve("repairs").settings["verdicts"][chosen["probability"]]["line"]).partition(": ")[2]


def _upper(line: Line) -> str:
    return num.upper_bound(float(line["error_high"])) if line["error_high"] is not None else "–"


def command(record: AuditRecord) -> str:
    """The command that makes the repair recommended; empty where there is none, or no command can."""
    chosen, method = recommended(record), record.curve(FIXED).settings.get("command", "")
    return commands.repair(record, method) if chosen is not None and method else ""


def how(record: AuditRecord) -> Text:
    chosen, first = recommended(record), ""
    if chosen is None:
        return ()
    if limit_of(record) is not None and populations(record):
        first = "has the fewest over the limit, then the fewest undecided, then the least left in the worst of these; "
        first += "of those that are equal in this it "
    writes = f"writes its calibrator; {EVERY_ROW[bool(record.data.get('horizon'))]}"
    return say(
        f"{capital(repair_named(chosen['recipe']))} {first}is the simplest repair that is shown to help and is not "
        f"shown to be worse than the best of them: {sanitize(_verdict(record, chosen))}. This fits it, judges it again "
        f"and {GIVES if commands.from_python(record) else writes}:"
    )


# ---- before and after ----


def fixed_caption(record: AuditRecord) -> str:
    s = record.curve(FIXED).settings
    gap = s.get("judge") == "gap" or all(p["measure"] == "gap" for p in populations(record))
    limit = limit_of(record)
    what = "Gap" if gap else "Calibration error"
    if not gap and any(p["measure"] == "gap" and p["kind"] == "group" for p in populations(record)):
        what = "Calibration error of everyone, gaps of groups and subgroups,"
    against = "" if limit is None else f" against the limit of {num.limit_points(limit)}"
    people = f"{num.count(s['rows_judged'])} {noun(record)}"
    if not s["candidate"]:
        return f"{what} in points{against}, on {people} that no repair was fitted on."
    return (
        f"{what} in points{against}, before and after {repair_named(s['candidate'])}, on {people} it was not fitted on."
    )


def fixed_table(record: AuditRecord) -> doc.Table:
    s = record.curve(FIXED).settings
    after = doc.WHOLE if s["candidate"] else doc.NOWHERE
    columns = (
        doc.Column(say("Who")),
        doc.Column(say(capital(noun(record))), "r"),
        doc.Column(say("Now"), "r"),
        doc.Column(say("After"), "r", where=after),
    )
    limit, made = limit_of(record), []
    for p in populations(record):
        name = doc.Cell(say(literal(p["who"]) if p["kind"] == "group" else "Everyone"))
        if p["kind"] == "subgroup":
            who, what = literal(p["who"]), "subgroup: gap"
            name = doc.Cell(say(who, Span(what, "small")), brief=say(who, f" ({what})"))
        made.append(doc.row(name, num.count(p["rows"]), _side(p, "now", limit), _side(p, "after", limit)))
    return doc.Table(columns, tuple(made), fixed_caption(record), id="fixed")


def _side(p: Line, when: str, limit: float | None) -> doc.Cell:
    verdict, ends = p[when], range_of(p, when, limit)
    if ends is None:
        return doc.Cell(say("–"))
    low, high = ends
    text = num.ends(low, high, limit)
    if limit is None:
        return doc.Cell(say(text), sort=f"{high:.4g}")
    return doc.Cell(say(f"{text}, {VERDICTS[verdict].lower()}"), sort=f"{high:.4g}", icon=verdict)


GAPS_OF = {  # by whose gaps there are here, and in the audit
    ("rows", "rows"): "A gap here is that of the {rows} judged; in the audit, of all {rows} in the data.",
    ("rows", "population"): "A gap here is that of the {rows} judged; in the audit, of all {rows} like these.",
    ("rows", "weights"): "A gap here is that of the {rows} judged; in the audit, of the {rows} that are no pilots.",
    ("population", "population"): "A gap is that of all {rows} like these, as in the audit.",
}


def fixed_note(record: AuditRecord) -> str:
    s = record.curve(FIXED).settings
    times, of = num.confidence(1 - float(s["alpha"]))
    n = int(s.get("groups") or 0)
    every = f"all {num.count(n)} groups" if n > 1 else "the group"
    searched = not by_weights(record)  # for subgroups
    among = joined([*([every] if n else []), *(["all subgroups"] if searched else []), "all repairs"])
    kinds = ["for everyone", *(["for groups"] if n or searched else []), *(["for subgroups"] if searched else [])]
    whom = f", {joined(kinds)} each" if len(kinds) > 1 else ""
    text = (
        f"The verdicts of a column hold simultaneously {times} of {of} times{whom}: the risk is shared among "
        f"{among}, so who is listed, and the repair, may be chosen by these "
        "rows. Ranges are wider than in the audit, which has more rows."
    )
    if s.get("judge") == "gap":
        audited = gaps_of(record) if searched else "weights"
        text += f" {GAPS_OF[s.get('target', 'rows'), audited].format(rows=noun(record))}"
    return f"{text} {reported}" if (reported := _tests(record)) else text


def _tests(record: AuditRecord) -> str:
    s, draws = record.curve(FIXED).settings, int(record.curve("repairs").settings["draws"])
    reported = []
    for test, p in (s.get("tests") or {}).items():
        before, after = (
            None if p.get(k) is None else num.p_value(float(p[k]), draws=draws).partition(",")[0]
            for k in ("now", "after")
        )
        reported.append(f"{TESTS.get(test, test)} {before}" + ("" if after is None else f", after {after}"))
    people = num.count(record.curve("repairs").settings["test_rows"])
    return f"Do tests still find error? On {people} of them: {'; '.join(reported)}." if reported else ""


# ---- what was compared ----


def caption(record: AuditRecord) -> str:
    n = num.count(record.curve("repairs").settings["rows_judged"])
    return f"The repairs tried, fitted on one half and judged on the other ({n} {noun(record)})."


def note(record: AuditRecord) -> str:
    s = record.curve("repairs").settings
    times, of = num.confidence(1 - float(s["alpha"]))
    text = (
        f"The certified ranges of all lines hold simultaneously, {times} of {of} times. Lower is better, but for "
        "AUROC. "
    )
    if by_weights(record):
        levels = (record.data.get("horizon") or {}).get("within")
        within = f" within each level of {sanitize(levels)}" if levels else ""
        law = {"pilots": num.count(s["pilots"]), "rows": noun(record), "within": within}
        text = f"{BY_WEIGHTS.format(**law, alpha=100 * float(s['alpha']))} Lower is better, but for AUROC. "
    if s["groups"]:
        many = "one group" if s["groups"] == 1 else f"{num.count(s['groups'])} groups"
        text += f"* Of {many}, those whose gap shrank or grew by more than {CLEAR}. "
    if refuted := sum(bool(r["impossible"]) for r in rows(record)):
        which = "one line" if refuted == 1 else f"{cardinal(refuted)} lines"
        text += f"Infinite, in {which}: an outcome happened to which the score gave no chance at all (0 or 1). "
    if populations(record) and not by_weights(record):
        text += f"“{capital(AS_AUDITED)}” may differ from everyone now, above: each table shares its risk separately. "
    return " ".join(filter(None, (text.rstrip(), orders(record), scales(record))))


def scales(record: AuditRecord) -> str:
    reported = [f"{repair_named(r['recipe'])} is {words}" for r in rows(record) if (words := fitted_to(r.get("scale")))]
    return f"{capital('; '.join(reported))}." if reported else ""


def orders(record: AuditRecord) -> str:
    kinds: dict[str, list[str]] = {}
    for r in rows(record)[1:]:
        kinds.setdefault(r["order"], []).append(repair_named(r["recipe"]))
    reported: list[str] = []
    for order, words in KEEPS.items():
        if who := kinds.get(order):
            first = words if reported or order == "kept" else words.replace("it", "the order of {noun}", 1)
            reported.append(f"{joined(who)} {first.format(s='s' if len(who) == 1 else '', noun=noun(record))}")
    return f"{capital('; '.join(reported))}." if reported else ""


def table(record: AuditRecord) -> doc.Table:
    s = record.curve("repairs").settings
    grouped = doc.WHOLE if int(s["groups"]) else doc.NOWHERE
    counts = {c["name"]: c for c in record.curve(FIXED).settings.get("candidates", ())}
    kept = doc.WHOLE if counts and limit_of(record) is not None else doc.NOWHERE
    columns = (
        doc.Column(say("Probabilities")),
        doc.Column(lines("Over the limit,", "undecided"), "r", where=kept),
        doc.Column(lines("Certified error,", "points"), "r", where=doc.NOWHERE if by_weights(record) else doc.WHOLE),
        doc.Column(lines("Groups better,", "worse*"), "r", where=grouped),
        doc.Column(lines("Brier", "score"), "r"),
        doc.Column(lines("Log", "loss"), "r"),
        doc.Column(say("AUROC"), "r"),
    )
    made = tuple(_row(r, counts.get(r["probability"]), s["recommended"]) for r in rows(record))
    return doc.Table(columns, made, caption(record), id="repairs")


def _row(r: Line, counts: Line | None, recommended: str) -> doc.Row:
    first = r["probability"] == AS_AUDITED
    chosen = r["probability"] == recommended and not first
    name = AS_AUDITED if first else repair_named(r["recipe"])
    low = "" if r["error_low"] is None else f"{num.lower_bound(float(r['error_low']))} to "
    return doc.row(
        doc.Cell(say(name, " ", Span("(recommended)", "quiet")), brief=say(name)) if chosen else name,
        "–" if counts is None else f"{counts['over']}, {counts['undecided']}",
        f"{low}{_upper(r)}",
        "–" if first else f"{r['groups_better']}, {r['groups_worse']}",
        num.decimals(r["brier"], 4),
        "infinite" if r["impossible"] else num.decimals(r["log_loss"], 4),
        "–" if r["auroc"] is None else num.decimals(r["auroc"], 4),
        style="chosen" if chosen else "",
    )


# ---- whose decisions it changes ----

DECISIONS = "Who comes to be acted on, and who is not any more, under a repair; and what that gains"


def decision_lines(record: AuditRecord) -> list[Line]:
    """Everyone under every repair, and the groups under the one recommended; empty without a threshold."""
    chosen = record.curve("repairs").settings["recommended"]
    result = lines_of(record.curve("repair_decisions"))
    return [d for d in result if d["population"] == "everyone" or d["probability"] == chosen]


def decision_table(record: AuditRecord) -> doc.Table:
    recipes = {r["probability"]: repair_named(r["recipe"]) for r in rows(record) if r["recipe"]}
    columns = (
        doc.Column(say("From the threshold, under the repair")),
        doc.Column(say(capital(noun(record))), "r"),
        doc.Column(lines("Come to be", "acted on"), "r"),
        doc.Column(lines("Not any", "more"), "r"),
        doc.Column(lines("Gain in true", "positives a row"), "r"),
    )
    made = []
    for d in decision_lines(record):
        who: str | Text = say(literal(d["population"]))
        if d["population"] == "everyone":
            who = f"{d['threshold']:g}, {recipes[d['probability']]}: everyone"
        gain = "–" if d["gain"] is None else f"{d['gain_low']:+.4f} to {d['gain_high']:+.4f}".replace("-", num.MINUS)
        sides = ("–" if d[side] is None else num.count(d[side]) for side in ("to_act", "to_leave"))
        made.append(doc.row(who, num.count(d["rows"]), *sides, gain))
    return doc.Table(columns, tuple(made), DECISIONS, id="repair-decisions")


def decision_note(record: AuditRecord) -> str:
    s = record.curve("repair_decisions").settings
    return (
        f"Judged on {noun(record)} held out, numbers rounded to multiples of five; certified ranges, wrong with "
        f"probability at most {s['alpha']:g} simultaneously, whichever repair is taken. –: fewer than {s['least']} "
        "change side, or are recoverable by subtraction."
    )


def _check(_: CheckRecord, record: AuditRecord) -> OutlineCheck:
    numbers = ""
    if compared(record):
        chosen = recommended(record)
        taken = "none" if chosen is None else repair_named(chosen["recipe"])
        numbers = f"{cardinal(len(rows(record)) - 1)} compared; {taken} recommended"
    return OutlineCheck("Comparing repairs", numbers, f"what would lower the error, judged on {noun(record)} held out?")


DECLARED = (
    Declared(
        id="repair",
        order=60,
        nav="What would repair it?",
        heading="What would repair it?",
        nodes=repair,
        checks={"repair": _check},
    ),
)
