"""Look at a source before anything is computed: what it holds, what is in the way, and which audit it calls for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import singledispatch
from pathlib import Path
from typing import Any, NoReturn, Unpack

import pyarrow as pa
import pyarrow.compute as pc

from calibrant.arguments import takes
from calibrant.certify.decidable import Planned, decided, of_everyone_and_groups
from calibrant.data.calls import takes_arrays
from calibrant.data.classes.columns import beginning, class_labels, of_pattern, whole
from calibrant.data.columns import ABSENT, is_number, unknown_of
from calibrant.data.engines.reduce import source_of
from calibrant.data.inputs import ClustersCross, cluster_codes, crossing_of
from calibrant.data.layouts import decoded
from calibrant.data.predictions import SEVERAL, MulticlassPredictions, Predictions
from calibrant.data.read import in_memory
from calibrant.data.reading import INDEPENDENT, Reading
from calibrant.data.sketches.rows import on_levels
from calibrant.data.sketches.sketch import Sketch
from calibrant.data.sources.encoded import NotUtf8
from calibrant.data.sources.query import Query
from calibrant.data.sources.source import CLASS, REPAIRED, Form, Source, marks_of, spread
from calibrant.data.specs.column_names import CONFIDENCE
from calibrant.data.specs.faults import HARDLY
from calibrant.data.specs.follow_up import seen_events
from calibrant.data.specs.options import FIRST, ColumnOptions
from calibrant.data.survey import EVERY, leaking, leaks_in, repeated_in
from calibrant.errors import BadInput, NotComputable
from calibrant.inspect import roles
from calibrant.inspect.classes import ClassColumns, class_errors, classes_of, classes_stated, lists_of_classes
from calibrant.inspect.columns import LEAST, Sampled, followed_less, looked_at_sketch, sampled, seen
from calibrant.inspect.command import (
    command,
    facts,
    mended,
    of_sketch,
    with_grades,
    with_horizon,
    with_parts,
)
from calibrant.inspect.input_errors import absent, dropped_rows, first_dropped, input_errors, weightless
from calibrant.inspect.looked import Column, Look
from calibrant.inspect.one_outcome import one_outcome
from calibrant.results import Curve

WORDS = {"na", "n/a", "#n/a", "null", "nan", "none", "nil", "?", "-", ".", "missing"}  # text that stands for no value
SETTINGS = ("label", "score", "positive", "by", "key", "cluster", "weights", "variables", "percent", "missing")
SCALE_CODES = {"decision": "scores-are-decisions", "other": "scores-outside", "outliers": "scores-outside"}
MARKS = "it marks the rows that a calibrator was fitted on"
OUTSIDE = "outside 0 to 1; "  # what is said of scores above 1
FIRST_FILES = 20
SHOWN_GROUPS, DRAWS = 6, 20  # groups of which a look says what can be decided, from so many drawn sets


@takes_arrays
@takes(ColumnOptions, FIRST)
def look(source: object, *, engine: object = None, **settings: Unpack[ColumnOptions]) -> Look:
    """Look at a source before anything is computed: its columns, what is in the way, and the audit to run.

    Parameters
    ----------
    source : path, URI, glob, frame, Predictions or Sketch
        Anything that `calibrant.audit` takes.
    label, score, by, variables, bins, intersections, key, cluster, weights, positive, percent, drop_missing, missing
    encoding, delimiter, decimal, sheet, dates, allow_same, seed, engine
        As `calibrant.audit`: what you plan. All that would make the audit refuse is found at once. What is left out is
        proposed.

    Returns
    -------
    Look
        Printed, it is a table and the command to run; in a notebook too. ``to_frame()`` and ``to_dict()`` give it to
        programs.

    Raises
    ------
    BadInput
        The source cannot be read at all.

    Notes
    -----
    **Guarantee.** A look spends none: labels are never held against scores; against other columns they are, to name
    those that reproduce the outcome.
    **Cost.** At most 6 million values, all rows or as many from evenly spread places: about a second; what they can
    decide another half second, or two seconds with clusters.
    **Reads.** Rows, or what a sketch holds.

    Examples
    --------
    >>> import calibrant as cal
    >>> seen = cal.look({"y": [0, 1, 1, 0], "p": [20.0, 70.0, 90.0, 40.0], "site": ["a", "a", "b", "b"]})
    >>> seen.label, seen.score, seen.scale
    ('y', 'p', 'percent')
    >>> seen.command
    "calibrant.audit(data, label='y', score='p', percent=True, by='site')"
    """
    return looked(source, Reading.of(**settings), engine)


@singledispatch
def looked(source: object, options: Reading, engine: object = None) -> Look:
    """What a look finds: what `look` and the command both run."""
    files = tuple(map(str, source)) if isinstance(source, (list, tuple)) else (str(source),)
    files = files if isinstance(source, (str, Path, list, tuple)) else ()
    guessed = ""
    try:
        opened = source_of(source, options, (), engine)
    except NotUtf8 as e:  # what fits is read, and said
        guessed = "" if options.form.encoding else e.encoding
        options = replace(options, form=replace(options.form, encoding=guessed))
        opened = source_of(source, options, (), engine)
        if len(opened.files) > 1:  # of which others may be UTF-8
            raise
    options = options.by_horizon()[-1]  # of several the last
    opened = opened if options.at is None else options.rows_of(opened)
    frame = getattr(opened.engine, "frame", None)
    if frame is not None and not opened.parts:
        opened = replace(source_of(_first_rows(frame), Reading()), name=opened.name, rows=None, numbered=False)
    seen = looked_at(opened, options, files, source.text if isinstance(source, Query) else "", plans=True)
    if guessed:
        seen = replace(
            seen, warnings=(*seen.warnings, "encoding-guessed"), settings={**seen.settings, "encoding": guessed}
        )
    return seen


@looked.register
def _of_rows(source: Predictions, options: Reading, engine: object = None) -> Look:
    table, own = source.covariates, {"y_true": pa.array(source.y), "y_prob": pa.array(source.p)}
    more = {} if table is None else {c: table.column(c) for c in table.column_names if c not in own}
    return looked(pa.table(own | more), replace(options, label="y_true", score="y_prob"), engine)


@looked.register
def _of_classes(_source: MulticlassPredictions, *_: object) -> NoReturn:
    raise BadInput(SEVERAL)


@looked.register
def _of_sketch(source: Sketch, *_: object) -> Look:
    seen = looked_at_sketch(source, of_sketch(()))
    return replace(seen, decides=_decides(source, (), 1.0)) if seen.command else seen


def preview(source: object, options: Reading, engine: object = None) -> tuple[object, Look | None]:
    """Open the source of an audit and look at it first; return what the audit is to go on with, and the look.

    There is none where it would run a query twice, or spend a stream.
    """
    at_hand = isinstance(source, (Sketch, Predictions, MulticlassPredictions))
    if at_hand or engine is not None or (options.at is not None and not options.at.complete):
        return source, None
    try:
        opened = source_of(source, options, options.columns)
        opened = opened if options.at is None else options.rows_of(opened)
        lazy = opened.rows is None and not opened.files
        if lazy or not opened.again or opened.engine is not None:
            return opened, None
        named = (*options.columns, options.label)
        some = opened.columns if EVERY in options.variables else [c for c in opened.columns if c in named]
        return opened, looked_at(replace(opened, columns=tuple(some)), options)
    except BadInput:
        return source, None  # the audit says it itself


def _first_rows(frame: Any) -> object:
    """The first rows of a Spark or Dask DataFrame."""
    if hasattr(frame, "npartitions"):
        return frame.head(LEAST, npartitions=-1)
    first = frame.limit(LEAST)
    return first.toArrow() if hasattr(first, "toArrow") else first.toPandas()


def looked_at(
    opened: Source, options: Reading, files: Sequence[str] = (), sql: str = "", *, plans: bool = False
) -> Look:
    """What a look at an opened source finds; if it `plans`, what so many rows can decide too."""
    refused: tuple[str, ...] = ()
    try:
        rows = sampled(opened, options.score)
    except BadInput as e:  # the score's column cannot be read as numbers
        rows, refused = sampled(opened), (str(e),)
    if patterns := (*(s for s in options.scores if "*" in s), *lists_of_classes(rows.table)):
        wider = spread(opened, patterns)
        opened, rows = wider, rows if wider is opened else sampled(wider, options.score)
    options, refused = _levels(rows.table, options, refused)
    columns, unreadable = seen(rows, {name: taken.why for name, taken in opened.kinds.items()})
    columns += tuple(Column(name=c, kind="unusable", role="left out", why=why) for c, why in opened.not_read)
    marks = {*marks_of(opened.columns)} - {options.label, options.score, *options.by, *options.variables}
    columns = tuple(replace(c, kind="other", role="left out", why=MARKS) if c.name in marks else c for c in columns)
    kept = {c.name: c for c in columns}
    # (1) what could play which part, where nothing is named
    scores = roles.scores(columns)
    reported = with_parts(options, opened.log)
    classes, options, refused = _classes(opened, rows, columns, options, refused)
    scores = scores or roles.nearly_scores(columns)
    score = reported.score or ("" if opened.log.tool else roles.sure_score(columns, scores))
    if classes is not None and not classes.named and {*scores} - {*classes.columns}:
        classes = None  # shares of a whole next to a score: attributes of a row
    truth = options.labels or (options.label,)
    several = classes is not None and not options.score and truth in (("",), classes.truth)
    score = "" if several else score
    labels = roles.labels(columns, score)
    label = "" if several else reported.label or roles.sure_label(columns, labels, score)
    columns = tuple(_as_audited(c, rows.table) if c.name in (label, score) else c for c in columns)
    kept = {c.name: c for c in columns}
    planned = replace(options, label=label, score=score, labels=(), scores=())
    scale = _scale(kept.get(score), rows.table, score)
    read = (classes.truth, classes.columns) if classes is not None and several else ((label,), (score,))
    names = class_labels(read[1], [v for c in read[0] for v, _ in kept[c].frequent]) if several else ()
    needed = (read[0], ()) if several and classes is not None and classes.partial else read
    dropped = dropped_rows(rows.table, *needed, names)
    # (2) the same, with what the values call for
    values = kept[label].frequent if label in kept else ()
    unknown = unknown_of(dict(values)) if options.positive is None else ()
    event, plain = roles.event_of([pair for pair in values if pair[0] not in unknown])
    event = options.positive if options.positive is not None else event
    planned = mended(planned, opened.log, columns, rows.table.num_rows)
    taken = ((label,) if label else labels) + (score, *options.key, *options.row_attributes, *options.levels)
    others = () if opened.log.tool else roles.clusters(columns)
    free = (u for u in others if u not in (*taken, *options.by) and not kept[u].missing)
    # none where rows without a label are kept, which have clusters in memory alone: whoever has room names one
    cluster = planned.cluster or ("" if options.missing == "keep" else next(free, ""))
    # (3) what is known only with the outcome, or looks at one outcome many times
    positive = options.positive if options.positive is not None or plain or not values else event
    judged = replace(planned, label=label, positive=positive)
    outcomes = one_outcome(rows.table, columns, judged, (score, *options.levels, *options.row_attributes))
    settled = cluster or options.independent or options.missing == "keep"
    cluster = cluster if settled or not outcomes else "+".join(outcomes[0])
    together = tuple(name for names in outcomes for name in names)
    of_classes = (*classes.columns, *classes.truth, *classes.listed) if classes is not None else ()
    played = {*of_classes, *taken, *others, *together, *options.allow}
    used = [c.name for c in columns if c.role != "left out" and c.name not in played]
    detected = leaks_in(rows.table, label, positive, used, options.seed) if label in kept else ()
    leaked = {name: leak.says(alone=True) for name, leak in leaking(detected).items()}
    no_group = (*taken, *others, *together, *of_classes, *opened.log.own, *opened.log.verdicts, *leaked)
    groups = roles.groups(columns, no_group)
    percents = options.percent or scale == "percent"
    by_scores = {s: roles.scale_of(kept[s]) == "percent" for s in scores} | {score: percents}
    for of, in_percent in ((s, q) for s, q in by_scores.items() if s in ((score,) if score else scores)):
        while of in kept and (again := repeated_in(rows.table, of, in_percent, groups, options.seed)):
            no_group = (*no_group, *again)
            groups = roles.groups(columns, no_group)
    proposed = replace(
        planned,
        cluster=cluster,
        positive=positive,
        percent=percents,
        missing="drop" if dropped and options.missing == "level" else options.missing,
        by=options.by or groups[: roles.OFFERED],
        key=options.key or (roles.keys(columns)[:1] if not opened.numbered else ()),
    )
    unsaid = not (options.label or options.score or options.scores)
    met = replace(proposed, positive=None) if unknown else proposed  # which outcomes are known is to be said first
    met = met if cluster in (*kept, planned.cluster) else replace(met, cluster="")  # of several columns, all there
    refusals = input_errors(opened, rows, met if unsaid else planned)
    typed = proposed
    if classes is not None and several:
        typed = _all_classes(proposed, classes, rows.table.column_names)
        typed = replace(typed, scores=options.scores or typed.scores)
        wanted = replace(options, label=typed.label, labels=typed.labels) if options.scores else typed
        wanted = wanted if unsaid else replace(wanted, missing=options.missing)
        refusals += class_errors(rows.table, wanted) if typed.label else (_no_truth(classes, options),)
    else:
        refusals += tuple(_unnamed(planned, labels, scores, opened))
    if scale == "points" and not options.percent:
        outside = f"column {score!r}: "
        kept_refusals = (r for r in refusals if not (r.startswith(outside) and OUTSIDE in r))
        refusals = (*kept_refusals, _points(kept[score], options))
    refusals += tuple(r for r in (*refused, *unreadable) if r not in refusals)
    made = options.at is not None or options.final  # outcomes are of times already, or said to be final
    looks = not (made or several or opened.log.tool) and label in kept
    times = [c for c in rows.table.column_names if c not in {score, *options.scores, options.weights, *options.by}]
    pair = seen_events(label, positive, times, rows.table.column) if looks else None
    if pair is not None and pair.sure and options.label:
        refusals += (pair.refusal(options.positive, score, options.caller),)
    sql = sql if options.caller.command else ""
    runs = command(files, typed, sql)
    if pair is not None and pair.sure:
        runs = with_horizon(files, typed, pair.time, sql)
    runs = "" if scale == "points" and not options.percent else runs
    grade = roles.grade(columns, label, score)
    compared = not opened.not_read or opened.log.tool or {label, score} <= {*rows.table.column_names}  # as the audit
    repeats = repeated(rows.table, columns) if compared else None
    known = {label, score, *dict(opened.log.confidences), *of_classes}
    named = {options.weights: "weights", options.cluster: "cluster"} | dict.fromkeys(options.levels, "cluster")
    named |= dict.fromkeys(read[1], "score") | dict.fromkeys(read[0], "label")
    named |= dict.fromkeys(proposed.key, "key") | dict.fromkeys(proposed.by, "group")
    return Look(
        name=opened.name,
        files=opened.files[:FIRST_FILES],
        rows=rows.rows,
        rows_read=rows.table.num_rows,
        columns=tuple(_with_role(c, named, options) for c in columns),
        label=label,
        score=score,
        event=event,
        label_values=values,
        scale=scale,
        candidates={
            "label": labels,
            "score": scores,
            "by": groups,
            "key": roles.keys(columns),
            "cluster": roles.clusters(columns),
            "weights": roles.weights(columns, (label, score)),
            "outcome": tuple(f"{name} ({how})" for name, how in leaked.items()),
            "classes": () if classes is None else classes.columns,
            "truth": () if classes is None else classes.truth,
            "grade": (grade,) if grade else (),
            "horizon": (ends := (pair.time, pair.label) if pair else () if made else roles.follow_up(columns)),
            "lost": (str(pair.lost), str(pair.none)) if pair else followed_less(rows.table, ends),
            "output": tuple(c.name for c in columns if roles.is_output(c) and c.name not in known),
        },
        one_outcome=outcomes,
        dropped=dropped | weightless(rows.table, options.weights),
        first_dropped=first_dropped(opened, rows, (*needed[0], *needed[1]), names),
        repeats=repeats,
        warnings=tuple(_warnings(columns, kept.get(label), scale, dropped, repeats)),
        refusals=refusals,
        command=runs,
        decides=_decided_by(rows, proposed) if plans and runs and not (refusals or several) else None,
        settings={name: getattr(options, name) for name in SETTINGS}
        | {"cluster": options.levels or options.cluster or (INDEPENDENT if options.independent else "")}
        | ({"grades": with_grades(files, proposed, grade)} if grade else {})
        | ({"log": facts(opened.log, files, proposed)} if opened.log.tool else {}),
    )


def _decided_by(rows: Sampled, proposed: Reading) -> Curve | None:
    """What an audit of rows as proposed can decide; of some rows, what as many as there are could."""
    wanted = replace(proposed, form=Form(), variables=(), key=())
    try:
        data = in_memory(rows.table, wanted)
        return _decides(data, wanted.by, (rows.rows or rows.table.num_rows) / rows.table.num_rows)
    except (BadInput, NotComputable):  # the audit says why
        return None


def _decides(data: Predictions | Sketch, by: Sequence[str], times: float) -> Curve:
    """What so many times these rows can decide of everyone, and of the largest and the smallest groups."""
    return decided(*of_everyone_and_groups(data, by, False, 0), Planned(draws=DRAWS, times=times), SHOWN_GROUPS)


def _classes(
    opened: Source, rows: Sampled, columns: Sequence[Column], options: Reading, refused: tuple[str, ...]
) -> tuple[ClassColumns | None, Reading, tuple[str, ...]]:
    """The columns of classes, named or detected; the options; and why columns that were named are none."""
    options = options.in_columns(opened.columns)
    try:
        if options.scores:
            return classes_stated(opened, columns, options), options, refused
    except BadInput as e:
        options, refused = replace(options, scores=(), labels=()), (*refused, str(e))
    return None if opened.log.tool else classes_of(rows.table, columns), options, refused


def _no_truth(classes: ClassColumns, options: Reading) -> str:
    """Say that columns are classes, and that none says which came true."""
    sums = {"probability": "add up to 1", "percent": "add up to 100", "log": "are logarithms of parts of 1"}
    kind = {"log": "log-probabilities"}.get(classes.scale, "probabilities")
    named = ", ".join(map(repr, classes.columns[:4])) + (" and more" if len(classes.columns) > 4 else "")
    reported = f"{named} are {kind} of {len(classes.columns)} classes: they {sums[classes.scale]} in every row"
    return f"{reported}. No column says which class came true: name it by {options.caller.says('label')}"


def _all_classes(proposed: Reading, classes: ClassColumns, columns: Sequence[str]) -> Reading:
    """How all classes are audited together: by a pattern where it stands for their columns alone."""
    # of a column of lists of pairs, which names both
    paired = bool(classes.listed) and all(name.endswith(CLASS) for name in classes.listed)
    own = [c for c in columns if not (paired and c in classes.listed)]
    return replace(
        proposed,
        label=(*classes.truth, "")[0],
        labels=classes.truth if len(classes.truth) > 1 else (),
        positive=None,
        scores=_pattern(classes.columns, own) or classes.columns,
        percent=classes.scale == "percent",
        logits=classes.scale == "log",
        renormalize=proposed.renormalize or classes.renormalize,
        rest=proposed.rest or classes.rest,
        listed=proposed.listed or (() if paired else _pattern(classes.listed, columns) or classes.listed),
        ordered=proposed.ordered or classes.ordered,
    )


def _pattern(names: Sequence[str], columns: Sequence[str]) -> tuple[str, ...]:
    """The pattern that stands for some columns alone, if there is one."""
    first = beginning(names) if names else ""
    starts = dict.fromkeys(filter(None, (whole(first), first)))  # of structs and lists no part of a class's name
    patterns = (f"{start}*{end}" for start in starts for end in ("", REPAIRED))
    return tuple(pattern for pattern in patterns if of_pattern(pattern, columns) == tuple(names))[:1]


def _points(c: Column, options: Reading) -> str:
    """Ask whether numbers are percent, and say what serves where they are points."""
    ends = f"{c.low:g} to {c.high:g}"
    whole = "whole numbers" if c.why == roles.WHOLE else "numbers"
    percent = f"if they are percent, pass {options.caller.turns_on('percent')}"
    how = "calibrant repair, which takes them as percent (--percent)"
    how = how if options.caller.command else "calibrant.repair.Recalibrator, scale='decision'"
    return (
        f"column {c.name!r} holds {whole} from {ends}: {percent}; points, ranks and deciles are no probabilities: "
        f"make them some by a calibrator fitted on other rows ({how}), and audit what it says"
    )


def _scale(c: Column | None, table: pa.Table, score: str) -> str:
    """What the numbers of a score look like, probabilities but for one in a hundred or fewer among them."""
    values = decoded(table.column(score)) if score in table.column_names else pa.nulls(0)
    if not is_number(values.type):
        return roles.scale_of(c)
    below, above = (pc.sum(off).as_py() or 0 for off in (pc.less(values, 0), pc.greater(values, 1)))
    there = len(values) - values.null_count
    scale = roles.scale_of(c, 2 * above > there)
    return "outliers" if scale in ("other", "logit") and HARDLY * (below + above) <= there else scale


def _levels(table: pa.Table, options: Reading, refused: tuple[str, ...]) -> tuple[Reading, tuple[str, ...]]:
    """What was asked with the coarsest column of clusters among the rows seen; or why there is none."""
    if not {*options.levels} <= {*table.column_names}:
        return options, refused
    try:
        return on_levels(options, table.to_batches())[0], refused
    except ClustersCross:
        try:
            crossing_of(cluster_codes({name: table.column(name) for name in options.levels}))
        except NotComputable as e:
            return options, (*refused, str(e))
        return options, refused  # an audit takes both
    except (BadInput, NotComputable) as e:
        return options, (*refused, str(e))


def _unnamed(planned: Reading, labels: Sequence[str], scores: Sequence[str], opened: Source) -> Iterator[str]:
    """Yield what has to be named because the look cannot tell it."""
    wanted = {"label": "two values, such as 0 and 1", "score": "many numbers from 0 to 1, or to 100"}
    parts = ("label", labels, roles.LABELS_LISTED), ("score", scores, roles.LISTED)
    for name, result, most in parts:
        if getattr(planned, name):
            continue
        says, unsure = planned.caller.says(name), dict(opened.unread).get(CONFIDENCE, "") if name == "score" else ""
        if opened.log.tool and unsure:
            yield unsure
        elif result:
            many = f"{len(result)}{' or more' if len(result) == most else ''}"
            yield f"{many} columns could be the {name}: pass {says}, one of {', '.join(map(repr, result))}"
        else:
            none = f"no column looks like a {name} ({wanted[name]}): pass {says} if there is one all the same"
            lost = () if opened.log.tool else opened.not_read
            yield "; ".join((none, *(f"column {column!r} cannot be read: {why}" for column, why in lost)))


def _as_audited(c: Column, table: pa.Table) -> Column:
    """A column as an audit reads labels and scores: texts such as NA are missing there, and no values."""
    if c.name not in table.column_names:
        return c
    lacking = int(absent(table.column(c.name), c.name).sum())
    if lacking <= c.missing:
        return c
    values = tuple(pair for pair in c.frequent if pair[0] not in ABSENT)
    distinct = None if c.distinct is None else c.distinct - (len(c.frequent) - len(values))
    return replace(c, missing=lacking, missing_in_all=None, frequent=values, distinct=distinct)


def _with_role(c: Column, named: Mapping[str, str], options: Reading) -> Column:
    """A column with what it is in the audit."""
    wanted = EVERY in options.variables or c.name in options.variables
    role = named.get(c.name) or c.role or ("covariate" if wanted else "")
    return replace(c, role=role)  # type: ignore[arg-type]


def repeated(table: pa.Table, columns: Sequence[Column]) -> int | None:
    """How many rows are in every column read as an earlier one; None where one cannot be compared."""
    if not table.num_columns or any(c.distinct == table.num_rows for c in columns):
        return 0
    places = [str(i) for i in range(table.num_columns)]  # a name such as ".p" would be read as a path
    try:
        different = table.rename_columns(places).group_by(places).aggregate([([], "count_all")])
    except pa.ArrowNotImplementedError:
        return None
    return int(table.num_rows - different.num_rows)


def _warnings(
    columns: Sequence[Column], label: Column | None, scale: str, dropped: Mapping[str, int], repeats: int | None
) -> Iterator[str]:
    """Yield the codes of what the reader should know."""
    if scale not in ("", "probability"):
        yield SCALE_CODES.get(scale, f"scores-look-like-{scale}")
    yield from (f"missing-{name}" for name in ("label", "score") if any(name in why for why in dropped))
    if label is not None and label.distinct == 1:
        yield "one-class"
    if repeats:
        yield "equal-rows"
    if any(c.of_kind.identifies and c.role == "left out" for c in columns):
        yield "likely-id"
    if any(c.kind == "cluster" for c in columns):
        yield "several-rows-per-cluster"
    if any(v.strip().lower() in WORDS for c in columns for v, _ in c.frequent):
        yield "words-for-missing"
