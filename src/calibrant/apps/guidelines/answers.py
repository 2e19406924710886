"""What a record answers of a reporting guideline: counts, handling of missing values, performance, what was not done.

Every function returns the lines that the record supports, and none where it supports none. Nothing is inferred: a line
is about a field of the record, and a field that nobody gave makes no line.
"""

from __future__ import annotations

from collections.abc import Iterator

from calibrant import AuditRecord
from calibrant.arguments import lacking
from calibrant.report.commands import audit_again, cuts, listed
from calibrant.report.findings import dropped, groupings, lost, mask_of, published
from calibrant.report.sections.overall import MEASURES
from calibrant.report.sections.reference import UNDONE, folded, line
from calibrant.report.sections.repair import AS_AUDITED
from calibrant.report.sections.repair import rows as repairs_of
from calibrant.results import Estimate
from calibrant.toolkit.report import (
    VERDICTS,
    Finding,
    Span,
    Text,
    code,
    independent,
    limit_of,
    literal,
    name,
    notices,
    noun,
    ordered,
    repair_named,
    say,
    screened,
    sentence,
    shared_by,
    stated_of,
    states,
)
from calibrant.toolkit.report import numbers as num

Lines = tuple[Text, ...]
NO_LINES: Lines = ()
SHOWN = 60  # columns that are listed; the record names the others
EACH = 4  # decimals of a measure
HANDLED = {
    "refuse": "Data with a missing value anywhere are refused.",
    "drop": "A missing value of a covariate is a level of its own; rows without a label or a score were left out.",
    "level": "A missing value of a covariate is a level of its own.",
    "keep": "A missing value of a covariate is a level of its own; rows without a label were kept apart.",
}
PLOTS = {"reliability": "reliability curve", "bins": "ranges of the score"}
LIMIT = " against the limit"
CHECKED = {
    "error-everyone": "the calibration error against the limit, for everyone",
    "error-groups": "the calibration error against the limit, in every group named",
    "variables": "every covariate ranked by how strongly the error varies with it",
    "local-calibration": "a test of error among people with the same score",
    "kernel-error": "the kernel local calibration error",
    "strong-calibration": "a search for badly served groups",
    "subgroups": "every subgroup of two attributes",
    "repair": "recalibrations, judged on rows they were not fitted on",
    "sites": "differences between clusters",
}


# ---- what was audited ----


def study(record: AuditRecord) -> Lines:
    """Say that this evaluates probabilities that exist, of which model, for which outcome, in whom."""
    model = stated_of(record, "model")
    what = say("An evaluation, not a development: predicted probabilities ", code(record.data.get("score", "")))
    of = say(*what, *(say(" of ", literal(model)) if model else ()), " compared with observed outcomes.")
    return (of, _outcome(record), *population(record))


def population(record: AuditRecord) -> Lines:
    """Whom the rows stand for, as the caller said it."""
    reported = stated_of(record, "population")
    return (say("Population: ", literal(reported), "."),) if reported else NO_LINES


def purpose(record: AuditRecord) -> Lines:
    """What the probabilities are for, and for whom, as the caller said it."""
    use = stated_of(record, "intended_use")
    return (*((say("Meant for: ", literal(use), "."),) if use else NO_LINES), *population(record))


def objective(record: AuditRecord) -> Lines:
    """What the audit was to decide, and who set the limit."""
    limit = limit_of(record)
    if limit is None:
        return (say("To measure the calibration of probabilities that exist; no limit was given."),)
    by = stated_of(record, "set_by")
    judged = {
        "auto": "calibration error of everyone, and the gap between observed and predicted of each group,",
        "gap": "gap between observed and predicted",
    }.get(record.settings["judge"], "calibration error")
    reported = f"To decide whether the {judged} is at most {num.limit_points(limit)} points, for everyone and in every "
    return (say(f"{reported}group named.", *((" Limit set by ", literal(by), ".") if by else ())),)


def source(record: AuditRecord) -> Lines:
    """Which files were read, their fingerprint, and which weights make them stand for others."""
    files, more = listed(record.data.get("files")), int(record.data.get("file_count") or 0)
    made = [_listing("Files: ", files, f" and {num.count(more - len(files))} more" if more > len(files) else "")]
    made = made if files else [say("The rows came as arrays or as a frame.")]
    made.append(say("Fingerprint of the rows: ", code(record.data.get("fingerprint", "")), "."))
    if weights := record.data.get("weights"):
        made.append(say("Each row is weighted by ", code(weights), "."))
    return (*made, *population(record))


def dates(record: AuditRecord) -> Lines:
    """When the rows were recorded: as the caller said it, and as a column of dates says it."""
    reported, arrival = stated_of(record, "period"), record.data.get("arrival")
    stated = (say("Period: ", literal(reported), "."),) if reported else NO_LINES
    if not arrival:
        return stated
    return (*stated, say("By ", code(arrival["column"]), f": {arrival['first']} to {arrival['last']}."))


def cluster_count(record: AuditRecord) -> Lines:
    """How many clusters the rows belong to, where a column names them."""
    counted = independent(record).counted
    return (say(*counted, "."),) if counted else NO_LINES


def preparation(record: AuditRecord) -> Lines:
    """How columns were read and grouped, alike for everyone, and what the checks of quality found."""
    made = [say("Labels, probabilities and covariates were checked and read by one rule for all rows.")]
    for column, edges in cuts(record).items():
        made.append(say(code(column), f" was cut at {', '.join(f'{e:g}' for e in edges)}."))
    made += [say(*text, ".") for text in folded(record)]
    made += [say(f"{lead}: " if lead else "", *text) for lead, text in notices(record)]
    if (result := shared_by(record)) is not None:
        beyond = f" are correlated beyond chance: design effect {result.effect:.1f}."
        made.append(say("Rows of one ", code(result.option), beyond))
    return tuple(made)


def outcome(record: AuditRecord) -> Lines:
    """The column and the value that count as the outcome; by a horizon how it was made, and the way of lost rows."""
    of = record.data.get("horizon")
    if not of:
        return (_outcome(record),)
    made = say(
        "Horizon: ", code(f"{of['horizon']:g}"), " of ", code(of["time"]), "; what ended it: ", code(of["event"])
    )
    made = (*made, *(say("; competing: ", code(of["competing"])) if of["competing"] else ()), *say("."))
    entry = say("Entry: ", code(of["entered"]), f"; closed {of['closed']}.") if of["closed"] else ()
    ways = {"weights": "weights of censoring", "unknown": "no assumption"}
    lines = [_outcome(record), made, *([entry] if entry else [])]
    if lost(record):
        lines.append(say(f"{num.count(of['unknown'])} rows were lost before it: {ways[lost(record)]}."))
    return tuple(lines)


def _outcome(record: AuditRecord) -> Text:
    reported, positive = record.settings.get("outcome"), record.data.get("positive")
    word = say(" (", literal(reported), ")") if reported else ()
    return say("Outcome: ", code(record.data.get("label", "")), " = ", code(1 if positive is None else positive), *word)


def covariates(record: AuditRecord) -> Lines:
    """The columns along which error was looked for; they need not be the model's predictors."""
    names = listed(record.data.get("covariates"))
    if not names:
        return NO_LINES
    more = f" and {num.count(len(names) - SHOWN)} more" if len(names) > SHOWN else ""
    about = ". They are what the audit read, and need not be the model's predictors"
    return (_listing("Covariates: ", names[:SHOWN], f"{more}{about}"),)


def output(record: AuditRecord) -> Lines:
    """Say that the output is a probability, and in which steps people see it."""
    acted = " and ".join(f"{t:g}" for t in _thresholds(record))
    what = f"; people are acted on from {acted} on" if acted else "; no classification was audited"
    made = [say("A probability, ", code(record.data.get("score", "")), f"{what}.")]
    if shown := (record.data.get("display") or {}).get("steps"):
        made.append(say(f"Upper bounds apply to it in {num.count(shown)} rounding steps."))
    return tuple(made)


def again(record: AuditRecord) -> Lines:
    """The software and the command that does the audit again."""
    software = ", ".join(f"{k} {v}" for k, v in sorted(record.versions.items()))
    typed = audit_again(record).replace(" \\\n", " ")
    command = (say("Command: ", code(" ".join(typed.split()))),) if typed else NO_LINES
    return (say(f"Analysis of calibration: {software}; seed {record.settings['seed']}."), *command)


def shared(record: AuditRecord) -> Lines:
    """What a reader with the data can check, and that the record holds none of its rows."""
    print_ = record.data.get("fingerprint", "")
    return (say("The record holds no row of the data; whoever has them can check the fingerprint ", code(print_), "."),)


# ---- how many, and what is missing ----


def sample(record: AuditRecord) -> Lines:
    """Rows and events, how precise they make the answer, and how many would decide what is undecided."""
    one = record.everyone
    low, high = num.bounds(*one.error_ends, one.limit)
    made = [say(f"{_people(record)}, {num.count(one.events)} with the outcome.")]
    each = f"certified, each bound at {_level(record)} separately"
    made.append(say(f"The calibration error is at least {low} and, rounded, at most {high} points ({each})."))
    made += [say(f"{_need(f)} would decide ", name(f), ".") for f in (one, *ordered(record.groups)[:5]) if _need(f)]
    return tuple(made)


def _need(finding: Finding) -> str:
    n, of = (finding.rows_needed, "rows") if finding.clusters_needed is None else (finding.clusters_needed, "clusters")
    if n is None or finding.verdict != "undecided":
        return ""
    reported = num.amount(n, finding.rows_at_least)
    return f"{reported[:1].upper()}{reported[1:]} {of} of the whole log"


def missing(record: AuditRecord) -> Lines:
    """How missing values were handled, how many rows were left out, and each column's share."""
    gone, kept = dropped(record.data), record.data.get("columns") or {}
    made = [say(HANDLED[h])] if (h := str(record.data.get("missing"))) in HANDLED else []
    lack = lacking(record.data.get("cluster"), record.data.get("weights"))
    made.append(say(f"Rows left out for a missing {lack}: {num.count(gone) if gone else 'none'}."))
    made.append(say(_unlabelled(record)))
    shares = [(k, float(c["missing"])) for k, c in kept.items() if c.get("missing")]
    listing = [piece for k, v in shares[:SHOWN] for piece in (code(k), f" at most {num.percent(v)}%", ", ")][:-1]
    if any(c.get("missing") is not None for c in kept.values()):
        made.append(say("Missing values of covariates: ", *(listing or ["none"]), "."))
    return tuple(made)


def _unlabelled(record: AuditRecord) -> str:
    apart = record.data.get("unlabelled", 0)
    if apart is None:
        return f"Rows without a label, kept apart: fewer than {num.count(mask_of(record))}."
    return f"Rows without a label, kept apart: {num.count(apart) if apart else 'none'}."


def flow(record: AuditRecord) -> Lines:
    """Rows read, left out, kept apart, and audited with and without the outcome."""
    one, gone, apart = record.everyone, dropped(record.data), record.data.get("unlabelled", 0)
    if lost(record):
        unknown = num.count(record.data["horizon"]["unknown"])
        return (say(f"{num.count(one.rows)} audited, {unknown} of them lost before the horizon without the outcome."),)
    read = "" if apart is None else f"{num.count(one.rows + gone + apart)} rows read; "
    out = num.count(gone) if gone else "none"
    audited = f"{num.count(one.rows)} audited, {num.count(one.events)} with the outcome and "
    without = f"{num.count(one.rows - one.events)} without."
    return (say(f"{read}{out} left out; {audited}{without}"), say(_unlabelled(record)))


def characteristics(record: AuditRecord) -> Lines:
    """Rows and events of every group that may be shown."""
    if not record.groups and groupings(record):
        return (say(f"Every group has fewer than {num.count(mask_of(record))} people."),)
    if not record.groups:
        return NO_LINES
    rounded, small = published(record), mask_of(record) > 1
    fives, pooled = " in multiples of five" * rounded, "; smaller ones only together" * small
    first = say(f"Groups, rows and rows with the outcome{fives}{pooled}:")
    each = (say(name(f), f": {num.count(f.rows)} rows, {_events(f, rounded)} with the outcome") for f in record.groups)
    return (first, *each)


def _events(f: Finding, rounded: bool) -> str:
    return num.count(f.events) if f.events or not rounded else "under 5"


def analyses(record: AuditRecord) -> Lines:
    """How many rows and events each analysis read."""
    one, made = record.everyone, []
    made.append(say(f"Evaluation: {_people(record)}, {num.count(one.events)} with the outcome."))
    if chosen := screened(record):
        both = (
            f"{num.count(chosen['rows_chose'])} rows chose the columns, {num.count(chosen['rows_tested'])} were tested"
        )
        made.append(say(f"Tests by covariates: {both}."))
    s = record.curve("repairs").settings
    if s.get("rows_judged"):
        made.append(
            say(f"Recalibration: fitted on {num.count(s['rows_fit'])}, judged on {num.count(s['rows_judged'])}.")
        )
    return tuple(made)


# ---- methods and results ----


def methods(record: AuditRecord) -> Lines:
    """The measures, the certified ranges, the tests and the plots that the record holds."""
    certified = (
        f"Certified ends of the calibration error, each at {_level(record)} separately: the raw score from below, "
    )
    made = [say(f"{certified}{record.everyone.upper.settings.get('about', 'the rounded score')} from above.")]
    if kept := [MEASURES[k][0] for k in MEASURES if k in record.measures]:
        made.append(say(f"Measures with intervals: {', '.join(kept)}."))
    done = [t for c in record.checks if c.status not in UNDONE and (t := CHECKED.get(c.code))]
    to = " against the limit" if limit_of(record) is not None else ""
    made.append(say(f"Asked: {'; '.join(t.replace(LIMIT, to) for t in done)}."))
    if _thresholds(record):
        made.append(say("Clinical utility: net benefit, and what error costs of it, at each threshold named."))
    if drawn := [words for curve, words in PLOTS.items() if record.curve(curve).columns.get("predicted")]:
        made.append(say(f"Plots: {' and '.join(drawn)}."))
    return tuple(made)


def clusters(record: AuditRecord) -> Lines:
    """How clusters were handled, and which model reported how they differ."""
    made = list(cluster_count(record))
    if share := independent(record).apart:
        made.append(say(f"Ranges take {share} as independent, whatever their rows have in common."))
    return (
        *made,
        *((say("Intercepts of clusters: a random-effects model of the residual."),) if _sites(record) else ()),
    )


def heterogeneity(record: AuditRecord) -> Lines:
    """How much calibration differs from unit to unit: the mean, and what a new unit is to expect."""
    s = record.curve("sites").settings
    if not _sites(record):
        return NO_LINES
    mean, new = (" to ".join(num.decimals(s[f"ratio{k}_{end}"], 2) for end in ("low", "high")) for k in ("", "_new"))
    over = (
        f"Events over expected events, mean of {num.count(s['sites'])} clusters: {num.decimals(s['ratio'], 2)} ({mean})"
    )
    equal = num.p_value(float(s["p_value"]))
    return (say(f"{over}; a new cluster is to expect {new}. Test that all are equal: {equal}."),)


def _sites(record: AuditRecord) -> bool:
    return "ratio" in record.curve("sites").settings


def fairness(record: AuditRecord) -> Lines:
    """For which groups calibration was judged, and how many tests that was."""
    if not groupings(record):
        return NO_LINES
    named = [" and ".join(by) for by in groupings(record)]
    judged = ", and who is over the limit is decided by closed testing"
    how = f"; all ranges of errors hold simultaneously{judged if limit_of(record) is not None else ''}"
    listing = _listing("Calibration was judged in groups by ", named, how)
    return (listing, say("Nothing in the model was changed by the audit."))


def performance(record: AuditRecord) -> Lines:
    """Discrimination, calibration and scores with intervals, then every group's certified range."""
    made = [say(_measure(MEASURES[k][0], record.measures[k])) for k in MEASURES if k in record.measures]
    made.append(_certified(record.everyone))
    return (*made, *(_certified(f) for f in ordered(record.groups)), *_decided(record))


def _thresholds(record: AuditRecord) -> tuple[float, ...]:
    return tuple(dict.fromkeys(record.curve("decisions").columns.get("threshold", ())))


def _decided(record: AuditRecord) -> Iterator[Text]:
    """Yield what acting is worth at each threshold, for everyone and each group that is reported."""
    c = record.curve("decisions").columns
    for i, (who, t) in enumerate(zip(c.get("group", ()), c.get("threshold", ()), strict=True)):
        names = ("net_benefit", "over_all", "regret")
        reported = ([num.decimals(c[k + end][i], EACH) for end in ("", "_low", "_high")] for k in names)
        own, over, lost = (f"{value} ({low} to {high})" for value, low, high in reported)
        gains = f" acted on from {t:g} on: net benefit {own}, over acting on all {over}"
        yield say(Span(who, "name"), f"{gains}; lost to error {lost}; all certified, in true positives a row")


def _measure(called: str, e: Estimate) -> str:
    ends = f"{num.decimals(e.interval.low, EACH)} to {num.decimals(e.interval.high, EACH)}"
    holds = "certified" if e.interval.guarantee == "finite-sample" else e.interval.guarantee
    return f"{called}: {num.decimals(e.value, EACH)} ({num.percent(e.interval.level)}% interval {ends}; {holds})"


def _certified(f: Finding) -> Text:
    low, high = num.bounds(*f.error_ends, f.limit)
    a, b = num.signed_range(*f.gap_ends)
    verdict = f"; {VERDICTS[f.verdict].lower()}" if f.verdict != "not_checked" else ""
    ranges = (
        f": calibration error at least {low}, rounded at most {high} points; observed minus predicted {a} to {b} points"
    )
    return say(name(f), f"{ranges}{verdict}")


def updating(record: AuditRecord) -> Lines:
    """Which recalibrations were tried, on which rows, and which is recommended."""
    tried = [repair_named(str(r["recipe"])) for r in repairs_of(record) if r["probability"] != AS_AUDITED]
    if not tried:
        return NO_LINES
    s = record.curve("repairs").settings
    best = str(s["recommended"])
    kept = "leaving the probabilities alone" if best == AS_AUDITED else repair_named(best)
    rows = f"fitted on {num.count(s['rows_fit'])} rows and judged on {num.count(s['rows_judged'])} others"
    return (say(f"Tried: {'; '.join(tried)}; {rows}. Recommended: {kept}."),)


def updated(record: AuditRecord) -> Lines:
    """The certified error and the scores before and after each recalibration."""
    return tuple(
        say(
            f"{'As audited' if r['probability'] == AS_AUDITED else sentence(repair_named(str(r['recipe'])))[:-1]}: ",
            f"calibration error {' to '.join(num.bounds(r['error_low'], r['error_high']))} "
            f"points, Brier score {num.decimals(r['brier'], EACH)}, AUROC {num.decimals(r['auroc'], EACH)}",
        )
        for r in repairs_of(record)
        if None not in (r["error_low"], r["error_high"], r["brier"], r["auroc"])
    )


def interpretation(record: AuditRecord) -> Lines:
    """The verdicts in their three parts, which none of them stands for another."""
    limit, reported = (
        limit_of(record),
        {"absent": "not checked", "error_shown": "error shown", "withheld": "withheld", "not_checked": "no limit"},
    )
    parts = "; ".join(f"{part}: {reported.get(v, VERDICTS.get(v, v)).lower()}" for part, v in states(record).items())
    return (say(f"Verdict{'' if limit is None else f' at {num.limit_points(limit)} points'}: {parts}."),)


def limitations(record: AuditRecord) -> Lines:
    """Which checks were not made and why, which groups are undecided, and what to know of the data."""
    made = [say(*line(c, record).question, f": {sentence(c.reason)}") for c in record.checks if c.status in UNDONE]
    if undecided := sum(f.verdict == "undecided" for f in record.groups):
        made.append(
            say(f"{num.count(undecided)} of {num.count(len(record.groups))} groups are undecided: too few rows.")
        )
    made += [say(f"{lead}: " if lead else "", *text) for lead, text in notices(record)]
    rests = independent(record).many
    made.append(say(f"Certified ranges hold if {rests} are independent draws from the population meant."))
    return tuple(made)


# ---- pieces ----


def _people(record: AuditRecord) -> str:
    return f"{num.count(record.everyone.rows)} {noun(record)}"


def _level(record: AuditRecord) -> str:
    return f"{num.percent(1 - float(record.settings['alpha']))}%"


def _listing(start: str, names: list[str], end: str = "") -> Text:
    pieces: Iterator[str | Span] = (piece for n in names for piece in (code(n), ", "))
    return say(start, *list(pieces)[:-1], f"{end}.")
