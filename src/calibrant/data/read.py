"""The ways in for data that is not arrays: `read` keeps rows, `sketch` keeps sums; and the bundled data."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import singledispatch
from pathlib import Path
from typing import NoReturn, Unpack

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from calibrant.arguments import checked_seed, choice, takes
from calibrant.data.calls import takes_arrays
from calibrant.data.classes.columns import (
    ClassInputs,
    class_labels,
    listed_columns,
    named_labels,
    one_label,
    places_of,
    probabilities_of,
)
from calibrant.data.classes.rows import frozen_classes, in_order
from calibrant.data.columns import label_values, no_events, no_such_event, require, score_values
from calibrant.data.engines.reduce import first_look, sketch_source, source_of
from calibrant.data.inputs import ClustersCross, Levels
from calibrant.data.layouts import is_text
from calibrant.data.predictions import (
    SEVERAL,
    MulticlassPredictions,
    Predictions,
    attached,
    frame_of,
    predictions,
)
from calibrant.data.profile import LevelCounts
from calibrant.data.progress import Progress, counted
from calibrant.data.reading import NO_NUMBERS, Reading, SketchOptions, fits
from calibrant.data.sketches.contents import each_once
from calibrant.data.sketches.rows import Choice, cluster_batches, on_levels
from calibrant.data.sketches.sample import NOTHING_SHARED, Origin, RowAttributes, SharedColumns
from calibrant.data.sketches.sketch import Sketch
from calibrant.data.sources.frames import load_rows
from calibrant.data.sources.source import CARRIED, Log, Source, spread, unfitted
from calibrant.data.specs.faults import Faults
from calibrant.data.specs.horizon import Followed, all_known
from calibrant.data.specs.options import FIRST, NONE, RowOptions
from calibrant.data.specs.spec import Spec, Variable
from calibrant.data.survey import (
    EVERY,
    KEPT,
    FirstLook,
    covariate_names,
    look_at,
    others,
    refuse_leaks,
    shared_columns,
    survey,
    wanted,
    with_clusters,
    with_parts,
)
from calibrant.errors import BadInput, NotComputable, first_line

EMPLOYMENT = {"label": "employed", "score": "predicted_probability"}
EMPLOYMENT_BY = ("year", "age", "sex", "race", "schooling", "marital", "disability", "citizenship", "nativity")
MOST, FEW_TIMES = 6_000, 5  # covariates, which take 3 ms each, and times as many columns that are looked at
MAX_GROUPS = 4000  # times 8 blocks, 2^10 cells and 4 numbers of 8 bytes: 1 GB of counts
STEP = 1 << 20  # rows counted at once, so that what is made next to them stays small


@takes_arrays
@takes(RowOptions, FIRST)
def read(
    source: object, *, label: str, score: str, horizon: str | None = None, **settings: Unpack[RowOptions]
) -> Predictions:
    """Read rows into memory.

    Parameters
    ----------
    source : path, glob, list of paths, directory or frame
        Parquet, CSV, Arrow IPC, ORC, JSON lines, Excel, NumPy, logs of evaluations; ``"-"`` is standard input. Also
        pandas, Polars, Arrow, DuckDB relation, dictionary of columns, records, iterator of batches, whatever speaks
        the Arrow stream protocol.
    label, score : str
        Columns of labels (0 and 1) and of probabilities.
    horizon : "none", optional
        Declares labels final. Else an event seen is refused as a label, where rows were followed for unlike times.
    by : str or sequence of str, optional
        Columns to keep as covariates.
    cluster : str or sequence of str, optional
        Column whose equal values are one cluster (a patient, a household): its rows may depend on one another. Of
        several (patient, hospital) the coarsest is the cluster, which must hold every unit of the others whole.
        ``"a+b"`` is one cluster of two columns, ``"none"`` declares rows independent.
    weights : str, optional
        Column of positive numbers: how much a row counts, whatever its label (survey, inverse probability, exposure).
        A row of weight 0 is left out, and counted.
    positive : str, optional
        The label that counts as the event.
    percent : bool
        Probabilities are percent, 0 to 100.
    drop_missing : bool
        Leave out, and count, rows whose label, probability, cluster or weight is missing: short for ``missing="drop"``.
    missing : {"level", "drop", "keep", "refuse"}
        By default a missing label or probability is refused, and any other missing value is a level "missing" of its
        own; ``"refuse"`` refuses those too. ``"keep"`` keeps rows without a label apart, for
        `certify.missing_labels`; everything else reads those that have one.
    encoding, delimiter, decimal, sheet : str
        Of files of text, by default detected; and of an Excel file that has several.
    dates : {"day-first", "month-first"}
        Of files of text: how ``01/02/2019`` is read where a column fits both. Without it such a column stays text.

    Returns
    -------
    Predictions

    Raises
    ------
    BadInput
        A column is not there, or a value cannot be used.

    Examples
    --------
    >>> import calibrant as cal
    >>> cal.read({"y": [0, 1, 1], "p": [0.2, 0.7, 0.9]}, label="y", score="p").n
    3
    """
    horizon = None if horizon is None else choice("horizon", horizon, (NONE,))
    options = Reading.of(label=label, score=score, horizon=horizon, allow_same=True, **settings)
    return in_memory(source, options.named())


def employment_path() -> Path:
    """The path of the bundled Parquet file, see NOTICE."""
    return Path(__file__).parent / "employment_ma.parquet"


def load_employment() -> Predictions:
    """The bundled data: a model of who is employed, for 277,677 residents of Massachusetts, 2015 to 2018.

    The model was trained on earlier years of the American Community Survey; see NOTICE.

    Returns
    -------
    Predictions
        Covariates year, age, sex, race, schooling, marital, disability, citizenship and nativity.

    Examples
    --------
    >>> import calibrant as cal
    >>> data = cal.datasets.load_employment()
    >>> data.n, data.covariates.column_names[:3]
    (277677, ['year', 'age', 'sex'])
    """
    return read(employment_path(), by=EMPLOYMENT_BY, label=EMPLOYMENT["label"], score=EMPLOYMENT["score"])


def in_memory(source: object, options: Reading, others: tuple[str, ...] = ()) -> Predictions:
    """The rows of a source with the group columns and covariates asked for; of "every one", those not left out.

    Two files of the same rows are refused unless that is meant. `others` are scores of other models, kept as they are
    among the covariates.
    """
    opened, kept, parts, table = _loaded(source, options, (options.score, *others), others)
    levels: Levels = ()
    two_way: dict[str, object] | None = None
    try:
        options, levels = on_levels(options, table.to_batches())
    except ClustersCross:
        options, two_way = replace(options, cluster=""), {name: table.column(name) for name in options.levels}
    spec = options.rows_spec()
    with opened.naming_lines():
        labels = label_values(table.column(options.label), options.label, options.positive, caller=options.caller)
    scores = score_values(table.column(options.score), options.score, options.percent, options.caller)
    if options.positive is not None and not np.nansum(labels) and not np.nansum(scores) < options.eventless:
        column = table.column(options.label)
        values = no_events(column, options.label, options.positive, np.ones(len(column), dtype=np.bool_))
        raise BadInput(no_such_event(values, f"column {options.label!r}", options.positive))
    faults, first, of_part = Faults(caller=options.caller), 0, Counter[str]()
    for name, batches in parts:
        rows = sum(b.num_rows for b in batches)
        own = slice(first, first + rows)
        faults.see(scores[own], options.percent, name)
        faults.note(scores[own], labels[own], name, of_part[name])
        faults.note_gaps(table.slice(first, rows), spec, kept, name, of_part[name])
        of_part[name] += rows
        first += rows
    faults.note_event(table, spec)
    row_attributes = RowAttributes.of(table, spec, faults)
    faults.check(spec, opened.place)
    faults.check_scale(spec)
    if not options.allow_same and (options.key or len({name for name, _ in parts}) > 1):  # of a key its type is checked
        seen = Choice(spec, (), 1)
        for name, batches in parts:
            for b in batches:
                seen.update(b, part=name)
        each_once(seen.contents, opened, options)
    hidden = () if options.at is None else options.at.hidden
    covariates = table.select([*kept, *hidden]) if kept or hidden else None
    result = predictions(
        labels,
        scores,
        covariates,
        weights=row_attributes.weights,
        cluster=table.column(options.cluster) if options.cluster else two_way,
        missing=spec.missing,
        name=opened.name,
    )
    if options.at is not None and hidden and (apart := result.unlabelled) is not None:
        followed, known, unknown = Followed.of(options.at, result.covariates, apart.covariates)
        result = replace(result, covariates=known, unlabelled=replace(apart, covariates=unknown), followed=followed)
    result.remember(frame_of(source))
    return replace(result, levels=levels, **{name: getattr(opened.log, name) for name in CARRIED})


def classes_in_memory(source: object, options: Reading, classes: tuple[str, ...] = ()) -> MulticlassPredictions:
    """The rows of several classes: a column of probabilities each, which labels, columns or `classes` name."""
    by = options.caller
    if not options.label:
        raise BadInput(f"name the column of the labels: {by.says('label')}")
    if two := options.passed("positive", "key"):
        raise BadInput(f"{by.says(*two)} {'are' if len(two) > 1 else 'is'} of two classes: of several leave it out")
    opened = spread(source_of(source, options, (options.label, *options.by)), options.scores)
    options = listed_columns(options, opened.columns)
    scores = options.scores
    opened, kept, parts, table = _loaded(opened, options, scores)
    covariates = table.select(list(kept)) if kept else None
    label, w, cluster_column = (f"column {name!r}" for name in (options.label, options.weights, options.cluster))
    called = ClassInputs(label, w, cluster_column, scores, places_of(opened.place, parts), by)
    labels = one_label(table, options.labels, called) if options.labels else table.column(options.label)
    labels = named_labels(labels, options)
    if is_text(labels.type) and not classes:
        classes = class_labels(scores, pc.unique(labels).to_pylist())
    cluster = {name: table.column(name) for name in options.levels or filter(None, [options.cluster])}
    weights = table.column(options.weights) if options.weights else None
    p, labels, classes = probabilities_of(table, labels, classes, options, called)
    rows, name, rest = (labels, p, covariates), opened.name, bool(options.listed or options.rest)
    del opened, parts, table  # of a thousand classes they hold as much as the probabilities
    result = frozen_classes(rows, weights, cluster or None, classes=classes or None, way=options.missing, called=called)
    result = replace(result, columns=() if options.listed else scores, name=name, rest=rest)
    return in_order(result, options.ordered, by) if options.ordered else result


@singledispatch
def with_classes(
    source: object, options: Reading, engine: object = None
) -> tuple[MulticlassPredictions | None, Sketch]:
    """The rows of several classes, in memory, and the sketch of their top label.

    No classes where the one pattern is the name of a column, which has an asterisk in it.
    """
    if engine is not None:
        raise NotComputable(f"several classes are audited in memory: leave {options.caller.says('engine')} out")
    opened = source_of(source, options, (options.label, *options.by))
    if (one := options.in_columns(opened.columns)).score:
        return None, with_rows(source, one, None, engine)
    rows = classes_in_memory(opened, options)
    label, score = ",".join(options.labels) or options.label, ",".join(options.scores)
    out = sketch_rows(rows.top_label(), replace(options, label=label, score=score, labels=(), scores=()))
    out.files, out.log = opened.files, opened.log
    return rows, out


@with_classes.register
def _top_label(
    source: MulticlassPredictions, options: Reading, engine: object = None
) -> tuple[MulticlassPredictions, Sketch]:
    options.for_predictions(engine)
    source = in_order(source, options.ordered, options.caller) if options.ordered else source
    return source, sketch_rows(source.top_label(), options)


@with_classes.register
def _of_two_classes(_: Sketch, options: Reading, _engine: object = None) -> NoReturn:
    raise BadInput(f"a sketch holds two classes: leave {options.caller.says('score')} out, or name rows of several")


def _loaded(
    source: object, options: Reading, scores: tuple[str, ...], others: tuple[str, ...] = ()
) -> tuple[Source, tuple[str, ...], list[tuple[str, list[pa.RecordBatch]]], pa.Table]:
    """A source, the columns to keep with labels and scores, its rows by part, and all of them as one table."""
    opened = options.rows_of(source_of(source, options, (*options.columns, *others)), (*scores, *others))
    for score in scores:
        fits(opened, replace(options, score=score).roles)
    names = wanted(options.variables, options.others(opened.columns), options.rows_spec())
    of_classes = {*scores, *options.labels, *options.listed}
    kept = tuple(dict.fromkeys((*options.by, *(n for n in names if n not in of_classes), *others)))
    if opened.engine is not None:
        raise BadInput("read keeps rows in memory: pass the frame to calibrant.sketch, or collect it first")
    hidden = () if options.at is None else options.at.hidden
    judged = (options.label, *options.labels, *scores, *options.listed)
    columns = list(dict.fromkeys((*judged, *kept, *options.key, *options.row_attributes, *options.levels, *hidden)))
    with opened.one_pass():
        parts = [(part.name, list(part.read(columns, scores))) for part in opened.parts]
    batches = [b for _, own in parts for b in own]
    if not sum(b.num_rows for b in batches):
        raise BadInput(opened.no_rows())
    try:
        table = pa.concat_tables([pa.Table.from_batches([b]) for b in batches], promote_options="permissive")
        return opened, kept, parts, table.unify_dictionaries()
    except (pa.ArrowInvalid, pa.ArrowTypeError) as e:
        raise BadInput(f"the files store a column in different types ({first_line(e)}): store it one way") from None


@takes_arrays
@takes(SketchOptions, FIRST, variables=None)
def sketch(
    source: object, *, progress: Progress | None = None, engine: object = None, **settings: Unpack[SketchOptions]
) -> Sketch:
    """Summarise any number of rows in one pass (two with `by` or `variables`); only the sums are kept.

    Parameters
    ----------
    source : path, URI, glob, list of paths, directory, query, frame or Predictions
        As `read`; files are streamed in record batches on threads. A Spark or Dask DataFrame is summed up where its
        rows lie. Text is a path; a query is `calibrant.sql`.
    label, score : str
        Columns of labels and probabilities; not used for `Predictions`.
    by : str or sequence of str, optional
        Columns whose levels are the groups. Numbers with more than 12 values are binned at round numbers,
        dates by month, quarter, year or decade, categories keep their 200 most frequent levels. Labels play no part.
    variables : str or sequence of str, optional
        Covariates of curves, rankings and tests; ``"*"`` for every other column that can be used.
    tests : bool
        Also hold what the tests of `detect` need: sums of the local test, and a uniform sample of whole rows. Guard
        such a sketch like the data.
    intersections : bool
        Also every pair of the variables.
    bins : mapping of str to sequence of float, optional
        Inner bin edges of a numeric variable, chosen by you.
    key : str or sequence of str, optional
        Columns that identify a row. By default file and row number do; a Spark or Dask DataFrame has none, and what
        needs them (lower bounds, `variables`, `tests`) is refused without a key.
    cluster, weights : str, optional
        As `read`. Such a sketch holds whole clusters too, with all their rows, at most a million rows: guard it like
        the data.
    positive, percent, drop_missing, missing, encoding, delimiter, decimal, sheet, dates
        As `read`.
    seed : int
        Deals the rows into random blocks.
    spec : Spec, optional
        Of an earlier sketch, so that the two merge; it brings every other setting, and what is missing is treated as
        it says unless you say how.
    allow_same : bool
        Read two files that hold the same rows, which then count twice; by default they are refused.
    progress : callable, optional
        Called with a `calibrant.data.progress.ProgressEvent`: ``"looking"`` or ``"reading"``, the rows so far, and of
        how many where the source can tell; on a cluster at the beginning and at the end. ``progress=print`` will do.
    engine : SparkSession or distributed.Client, optional
        Live and yours: it reads the Parquet files that `source` names on its own machines, past table formats and row
        policies. A DataFrame brings its own.

    Returns
    -------
    Sketch

    Raises
    ------
    BadInput
        The data or a setting cannot be used, here or on a worker.
    EngineFailed
        The cluster did not finish; there is no partial result.
    """
    out = summarised(source, Reading.of(**settings), progress, engine)
    return out.copy() if isinstance(source, (Predictions, Sketch)) else out


@singledispatch
def summarised(source: object, options: Reading, progress: Progress | None = None, engine: object = None) -> Sketch:
    """The sketch of a source; that of predictions is kept with them, so callers must not change it."""
    if options.known().keeps_attached or (
        options.missing == "keep" and options.spec is not None and options.spec.row_attributes
    ):
        raise NotComputable(IN_MEMORY)
    spec = options.spec
    if spec is None:
        opened = _opened(source, options, progress, engine)
        options, levels = on_levels(options, cluster_batches(opened, options))
        spec, looked, shared = fixed_spec(opened, options, progress)
        spec = with_clusters(spec)
    else:
        options.for_a_spec()
        levels = ()
        spec = spec if options.missing == "level" else replace(spec, missing=options.missing)
        opened = source_of(source, replace(options, cluster=spec.cluster), spec.columns, engine, spec.texts)
        opened, looked, shared = unfitted(opened, (spec.score,)), None, None
        fits(opened, spec.roles)
        require([c.name for c in spec.codings], opened.columns, "covariate")
        if not opened.numbered and spec.numbered and not spec.key and (spec.blocks > 1 or spec.sample or spec.local):
            key = options.caller.says("key")
            raise BadInput(f"the spec identifies rows by file and number, and {NO_NUMBERS}: make it with {key}")
    rows = opened.rows if looked is None else looked.rows_read
    out = sketch_source(opened, spec, counted(progress, "reading", rows), looked, options.caller)
    out.name, out.files, out.nested, out.log = opened.name, opened.files, levels, opened.log
    out.shared = shared
    each_once(out.parts["contents"], opened, options)
    return out


@summarised.register
def _as_it_is(source: Sketch, options: Reading, _: Progress | None = None, engine: object = None) -> Sketch:
    options.for_a_sketch(source.spec, engine)
    return source.checked()


@summarised.register
def _of_rows(source: Predictions, options: Reading, _: Progress | None = None, engine: object = None) -> Sketch:
    options.for_predictions(engine)
    return sketch_rows(all_known(source), options)


@summarised.register
def _of_classes(_source: MulticlassPredictions, *_: object) -> NoReturn:
    raise BadInput(SEVERAL)


def with_rows(source: object, options: Reading, progress: Progress | None = None, engine: object = None) -> Sketch:
    """The same; in memory, a sketch that lives by its rows, where no stored one says enough.

    That is where clusters cross, and where rows without a label have clusters or weights.
    """
    at_hand = isinstance(source, (Sketch, Predictions, MulticlassPredictions))
    if at_hand or not (options.levels or options.keeps_attached):
        return summarised(source, options, progress, engine)
    opened = _opened(source, options, progress, engine)
    try:
        if not options.keeps_attached:
            return summarised(opened, options, progress)
    except ClustersCross:
        pass
    if opened.engine is not None:
        raise NotComputable(IN_MEMORY)
    out = sketch_rows(in_memory(opened, options.named()), options)
    out.spec = replace(out.spec, positive=options.positive, percent=options.percent, missing=options.missing)
    out.files, out.log = opened.files, opened.log
    return out


IN_MEMORY = (
    "rows without a label, with their clusters or weights, are held in memory and by no sketch: audit or certify the "
    "rows themselves, collected first where they are distributed, or leave them out by drop_missing"
)


def _opened(source: object, options: Reading, progress: Progress | None, engine: object) -> Source:
    """The source, without rows that the score's calibrator was fitted on; held, if it can be read only once."""
    opened = options.rows_of(source_of(source, options, options.columns, engine))
    return readable_twice(opened, options.named(), progress)


def readable_twice(opened: Source, options: Reading, progress: Progress | None) -> Source:
    """Hold the rows of a stream, if groups or covariates need a first look at them."""
    plain, names, more = _planned(opened, options)
    if opened.again or opened.engine is not None or not (options.by or names or more or options.levels):
        return opened
    columns = [plain.label, plain.score, *options.by, *names, *more, *plain.key, *plain.row_attributes, *options.levels]
    return load_rows(opened, columns, counted(progress, "holding"))


def fixed_spec(
    opened: Source, options: Reading, progress: Progress | None = None
) -> tuple[Spec, FirstLook | None, SharedColumns | None]:
    """Fix the levels of groups and the coding of covariates in one look at the data, never at the labels.

    With the look, and the columns that rows may share where these are asked for.
    """
    if opened.rows == 0:
        raise BadInput(opened.no_rows())
    (plain, names, more), every = _planned(opened, options), EVERY in options.variables
    nothing = NOTHING_SHARED if options.candidates and (opened.numbered or plain.key) else None
    if not options.by and not names and not more:
        if every:  # there is no other column: nothing to look at, but rows may be kept
            return replace(plain, sample=KEPT if options.tests else 0), None, nothing
        return with_parts(plain, None, options.tests), None, nothing
    covariates = tuple(dict.fromkeys((*names, *more, *options.by)))
    if len(names) > MOST or len(covariates) > FEW_TIMES * MOST:
        raise BadInput(
            f"{opened.name or 'the data'}: {len(names):,} of {len(opened.columns):,} columns as covariates take too "
            f"long (at most {MOST:,} of {FEW_TIMES * MOST:,}): pass those that matter to "
            f"{options.caller.name('variables')}, or write their columns alone"
        )
    looked = first_look(opened, plain, options.by, covariates, counted(progress, "looking", opened.rows))
    refuse_leaks(looked.look, options.by, options.allow, options.seed, options.caller)
    spec = grouped(plain, levels_of(looked.profiles, options.bins), options.intersections)
    not_read = (*((c, "only some of the files have it") for c in opened.partial), *opened.not_read)
    if every and not names:  # groups alone
        shared = None if nothing is None else shared_columns(looked.look, spec, None, options.allow)
        return replace(spec, sample=KEPT if options.tests else 0, left_out=not_read), looked, shared
    result = survey(looked.look, names, every, options.allow, options.seed, options.by) if options.variables else None
    if result is not None and every:
        result = replace(result, left_out=(*result.left_out, *not_read))
    shared = None if nothing is None else shared_columns(looked.look, spec, result, options.allow)
    return with_parts(spec, result, options.tests), looked, shared


def _planned(opened: Source, options: Reading) -> tuple[Spec, tuple[str, ...], tuple[str, ...]]:
    """The spec of columns, key and seed; covariates; other columns to look at, for rows may be clusters by them.

    There are none where rows are not distinguished, for no sample of them can be drawn.
    """
    plain = options.plain_spec(opened)
    names = wanted(options.variables, options.others(opened.columns), plain)
    if not options.candidates or not (opened.numbered or plain.key):
        return plain, names, ()
    there = [c for c in opened.columns if c not in opened.partial]
    return plain, names, others(names, there, options.by, plain)


def levels_of(profiles: Sequence[LevelCounts], bins: Mapping[str, Sequence[float]]) -> tuple[Variable, ...]:
    """Fix the levels of group columns."""
    return tuple(q.variable(tuple(map(float, bins[q.name])) if q.name in bins else None) for q in profiles)


def make_spec(y: str, p: str, variables: tuple[Variable, ...], intersections: bool, *, seed: int = 0) -> Spec:
    """The spec of rows in memory: see `grouped`."""
    return grouped(Spec(label=y, score=p, seed=checked_seed(seed)), variables, intersections)


def grouped(spec: Spec, variables: tuple[Variable, ...], intersections: bool) -> Spec:
    """The spec with the variables and, if asked, every pair of them; refuse too many groups."""
    names = [v.name for v in variables]
    groupings: list[tuple[str, ...]] = [(n,) for n in names]
    if intersections:
        groupings += list(itertools.combinations(names, 2))
    spec = replace(spec, variables=variables, groupings=tuple(groupings))
    if spec.group_count > MAX_GROUPS:
        raise BadInput(
            f"{spec.group_count:,} groups are too many (at most {MAX_GROUPS:,}): name fewer variables, or coarser bins"
        )
    return spec


def sketch_rows(data: Predictions, options: Reading) -> Sketch:
    """The sketch of rows in memory, kept with them: callers must not change it."""
    by, seed = options.by, options.seed
    looked_at = options.variables, options.tests, options.candidates, options.allow
    cached = (by, options.intersections, repr(sorted(options.bins.items())), seed, looked_at)
    if cached in data.cache:
        return data.cache[cached]  # type: ignore[no-any-return]
    table = data.covariates
    available = covariate_names(data)
    require(by, available, "group")
    profiles = [LevelCounts(name) for name in by]
    apart = data.unlabelled
    for profile in profiles:
        profile.update(table.column(profile.name))
        if apart is not None:
            profile.update(apart.covariates.column(profile.name))
    levels = levels_of(profiles, options.bins)
    spec = make_spec(options.label or "y_true", options.score or "y_prob", levels, options.intersections, seed=seed)
    cluster, weights = _called(data, options)
    spec = replace(spec, cluster=cluster, weights=weights)
    names, candidates = wanted(options.variables, available, spec), options.candidates and not cluster
    more = others(names, available, by, spec) if candidates else ()
    seen = tuple(dict.fromkeys((*names, *more, *by)))
    asks = options.candidates or {*by} - {*options.allow}  # of group columns alone
    look = look_at(data, spec, seen) if options.variables or (seen and asks) else None
    if look is not None:
        refuse_leaks(look, by, options.allow, seed, options.caller)
    result = None
    if look is not None and options.variables:
        result = survey(look, names, EVERY in options.variables, options.allow, seed, by)
    shared = shared_columns(look, spec, result, options.allow) if candidates else None
    spec = with_clusters(with_parts(spec, result, options.tests))
    out = Sketch(replace(spec, missing="keep" if apart else "drop" if data.dropped else "level"))
    out.faults.untold = data.dropped
    codes = {v.name: v.codes(table.column(v.name)) for v in levels}
    own = {role: pa.array(column) for role, column in attached(data).items()}
    row_attributes = RowAttributes.of_columns(own, spec, out.faults)
    for start in range(0, data.n, STEP):
        rows = slice(start, start + STEP)
        origin = Origin(first_row=start, row_attributes=row_attributes.part(rows))
        part = {k: c[rows] for k, c in codes.items()}
        coded = {c.name: table.column(c.name).slice(start, STEP) for c in spec.codings}
        out.update_arrays(data.p[rows], data.y[rows], codes=part, covariates=coded, origin=origin)
    if apart is not None:
        there = {v.name: v.codes(apart.covariates.column(v.name)) for v in levels}
        out.count_unlabelled(apart.p, there)
    out.rows_read += data.dropped
    out.name, out.nested, out.shared = data.name, data.levels, shared
    out.log = Log(**{name: getattr(data, name) for name in CARRIED})
    if data.crossing is not None:
        out.two_way, out.unstored = data, "clusters cross"
    if apart is not None and spec.row_attributes:
        out.kept, out.unstored = data, "rows without a label have clusters or weights"
    data.cache[cached] = out.counted()
    return out


def _called(data: Predictions, options: Reading) -> tuple[str, str]:
    """What the columns of clusters and of weights of rows are called; empty of what they do not have."""
    cluster = data.levels[0][0] if data.levels else options.cluster or "cluster"
    if data.crossing is not None:
        cluster = data.crossing.named
    return cluster * (data.cluster is not None), options.weights or "weights" * (data.weights is not None)
