"""The commands that change probabilities: repair and apply."""

from __future__ import annotations

import itertools
import json
import sys
from argparse import Namespace
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from calibrant.arguments import COMMAND, acting, lacking, names
from calibrant.cli.commands import inputs_of, reading, report_left_out, report_rows, report_seen_events
from calibrant.cli.progress import Progress
from calibrant.cli.reporting import STDOUT, Target, only_target, target_of, write
from calibrant.cli.standard_output import write_exact
from calibrant.data.classes.columns import matched
from calibrant.data.columns import row_ids
from calibrant.data.engines.reduce import chosen_rows
from calibrant.data.predictions import Predictions
from calibrant.data.progress import ProgressEvent, counted
from calibrant.data.read import classes_in_memory, in_memory
from calibrant.data.reading import Reading
from calibrant.data.rewrite import checked_rows
from calibrant.data.sketches.contents import UNKNOWN, each_once, in_both
from calibrant.data.sketches.rows import Chosen, cluster_batches, on_levels
from calibrant.data.sources.files import open_source
from calibrant.data.sources.query import Query
from calibrant.data.sources.source import Form, Source, marks_of, spread, with_joint
from calibrant.data.survey import KEPT
from calibrant.data.targets import checked_targets
from calibrant.errors import BadInput, NotComputable
from calibrant.plugins import OUTPUTS
from calibrant.repair.catalogue import recipes, tried_by_default
from calibrant.repair.fitted import Calibrator, calibrator_text
from calibrant.repair.formulas.dialects import DIALECTS
from calibrant.repair.judge.classes import Judged, judged_classes
from calibrant.repair.judge.evaluate import audited_variables, evaluate
from calibrant.repair.judge.lost import ALONG
from calibrant.repair.judge.rows import Repair, hash_split
from calibrant.repair.judge.verdict import AS_AUDITED, NEVER, Comparison
from calibrant.repair.streamed import (
    Output,
    apply_calibrator,
    apply_classes,
    checked_calibrator,
    fitted_name,
    repaired_name,
)
from calibrant.sanitize import as_message, sanitize
from calibrant.views.unlabelled import with_lost

ROWS, CALIBRATOR = "rows", "calibrator"
ON_BOTH = "the files and --judge-on {} {}: judge a calibrator on rows that it was not fitted on"
UNASSUMED = (
    "without an assumption about the rows lost no repair can be fitted: --way weights, which takes being lost as "
    "independent of outcome and score, fits and judges repairs; or keep rows that were followed to the horizon "
    "(--entered, --closed), and repair these"
)
ENDINGS = {".json": CALIBRATOR, ".sql": "duckdb", ".js": "javascript"}  # other files are of rows


def _targets(a: Namespace) -> list[Target]:
    """What is to be written: rows, the calibrator, or the calibrator as code."""
    made = ((text, target_of(text, "calibrator", ENDINGS, DIALECTS)) for text in a.out)
    return [Target(f"-o {text}", ROWS, text) if one is None else one for text, one in made]


def _checked(targets: Sequence[Target], files: Sequence[str | Query]) -> Path | None:
    """Refuse what cannot be written; return where rows go, nothing if nowhere."""
    rows = only_target([t.path for t in targets if t.kind == ROWS])
    checked_targets({t.typed: t.path for t in targets if t.path != STDOUT or t.kind == ROWS}, files)
    return None if rows is None else Path(rows)


def repair(a: Namespace) -> int:
    """Compare, print, and write what was asked for."""
    options = reading(a)
    if options.scores:
        return _repair_classes(a, options)
    options = options.named()
    if options.at is not None and options.at.way == "unknown":
        raise NotComputable(UNASSUMED)
    if a.distinct_clusters and not (a.judge_on and (options.cluster or options.levels)):
        raise BadInput("--distinct-clusters goes with --judge-on and --cluster")
    a.threshold, a.costs = acting(a.threshold, a.costs, COMMAND)[0] or None, None  # checked before anything is read
    data, targets, tables, path = _planned(a)
    source, joint = _opened(data, options.form), options.clusters
    judged_on = cluster_batches(with_joint(_opened([a.judge_on], options.form), joint), options) if a.judge_on else ()
    options, _ = on_levels(options, itertools.chain(cluster_batches(with_joint(source, joint), options), judged_on))
    if path:
        if options.at is not None:  # rows that entered too late are left out, and others numbered without them
            raise BadInput(
                f"-o {path}: of outcomes by a horizon write -o calibrator.json, and let calibrant apply repair all rows"
            )
        checked_rows(path, source, (repaired_name(options.score), fitted_name(options.score)))
    kept = options.rows_of(with_joint(source, joint))
    report_seen_events(kept.log.seen_events)
    with Progress() as progress:
        result, fitted = _judged(a, options, kept, progress)
        if chosen := _chosen(result):
            one = result.calibrators[chosen]
            for t in targets:
                if t.kind != ROWS:
                    write(t.path, _content(replace(one, percent=options.percent), t, a, tables.get(t.kind)))
            if path:
                checked_calibrator(one, source, (options.score,))
                rows_done = counted(progress, "writing", source.rows)
                apply_calibrator(one, source, options.rows_spec(), Output(path, fitted), rows_done)
    _say(result, chosen, targets, a)
    return _status(result, chosen)


def _planned(
    a: Namespace,
) -> tuple[list[str] | list[Query], list[Target], dict[str, Sequence[str]], Path | None]:
    """The data, what is to be written, the tables that queries read, and where rows go; refuse what cannot be."""
    data, targets = inputs_of(a), _targets(a)
    if printed := [t.typed for t in targets if t.path == STDOUT]:
        raise BadInput(f"{printed[0]}: standard output has the comparison, write it to a file")
    tables = {t.kind: a.table or _table_of(t.kind, data) for t in targets if t.kind in DIALECTS}
    if a.table and not tables:
        raise BadInput("--table is of SQL: name a file for it, such as -o repair.sql")
    return data, targets, tables, _checked(targets, (*data, *([a.judge_on] if a.judge_on else ())))


OF_TWO = "by", "variables", "bins", "limit", "judge", "target", "threshold", "costs", "quick", "distinct_clusters"


def _repair_classes(a: Namespace, options: Reading) -> int:
    """Compare repairs of all classes at once, print, and write the calibrator, or every row with what it says."""
    offered = {entry.command: name for name, entry in recipes().items() if entry.command and entry.fits(several=True)}
    if unknown := [name for name in a.method or () if name not in ("auto", *offered)]:
        raise BadInput(f"--method {unknown[0]!r}: of several classes choose auto, or some of {', '.join(offered)}")
    named = [offered[name] for name in a.method or () if name != "auto"]
    reading_columns = any(recipes()[name].covariates for name in named)
    refused = OF_TWO[2:] if reading_columns else OF_TWO
    if stated := [name for name in refused if getattr(a, name) not in (None, False, [], ("none",), "auto")]:
        them = "them" if len(stated) > 1 else "it"
        raise BadInput(f"{COMMAND.says(*stated)}: repairs of several classes take none, so leave {them} out")
    data, targets, tables, path = _planned(a)
    _refuse_code(targets, options)
    source = spread(_opened(data, options.form), options.scores)
    options = options if reading_columns else replace(options, variables=())
    rows = classes_in_memory(source, options)
    report_left_out(rows.top_label())
    other = classes_in_memory(_opened([a.judge_on], options.form), options) if a.judge_on else None
    if path:
        checked_rows(path, source, (*map(repaired_name, rows.columns), fitted_name(rows.columns[0])))
    result = judged_classes(rows, named, judge_on=other, steps=a.steps, alpha=a.alpha, seed=options.seed)
    chosen = _chosen(result)
    if chosen:
        one = replace(result.calibrators[chosen], percent=options.percent)
        for t in targets:
            if t.kind != ROWS:
                code = Namespace(**vars(a) | {"scores": rows.columns})
                write(t.path, _content(one, t, code, tables.get(t.kind)))
        if path:
            fitted = np.zeros(rows.n + rows.dropped, dtype=np.bool_)
            fitted[result.fitted if rows.kept is None else rows.kept[result.fitted]] = True
            apply_classes(one, source, replace(options, scores=rows.columns), path, fitted)
    if a.json:
        write_exact(json.dumps(result.curve.to_dict(), sort_keys=True, indent=1) + "\n")
    else:
        from calibrant.report.terminal import class_repairs

        print(class_repairs(result.curve))
        _say_written(targets, chosen)
    return 0 if result.recommended != AS_AUDITED else 3


def _refuse_code(targets: Sequence[Target], options: Reading) -> None:
    """Refuse SQL and scripts of columns that are no probabilities: a calibrator reads what they are made into."""
    code = [t.typed for t in targets if t.kind not in (ROWS, CALIBRATOR)]
    if code and (stated := [name for name in ("logits", "renormalize") if getattr(options, name)]):
        raise BadInput(
            f"{code[0]}: code reads probabilities, and {COMMAND.says(*stated)} makes them first: write -o "
            "calibrator.json, and have calibrant apply repair the rows"
        )


def _table_of(dialect: str, data: Sequence[str] | Sequence[Query]) -> tuple[str, ...]:
    """The table that a query reads where none is named: the file, as DuckDB reads it, or a table called as the file."""
    if not isinstance(data[0], str):
        raise BadInput("-o of SQL reads a table: name it with --table")
    return (data[0] if dialect == "duckdb" else Path(data[0]).stem,)


def apply(a: Namespace) -> int:
    """Stream files through a calibrator, or write it as code."""
    targets = _targets(a)
    code = [t for t in targets if t.kind not in (ROWS, CALIBRATOR)]
    if wrong := [t.typed for t in targets if t.kind == CALIBRATOR]:
        raise BadInput(f"{wrong[0]}: apply writes rows or code; {a.calibrator} holds the calibrator")
    if not targets:
        raise BadInput(
            "name the file to write with -o: rows such as repaired.parquet, or code such as repair.sql, postgres:- or "
            "javascript:-"
        )
    stated = [name for name in ("table", "keep") if getattr(a, name)]
    if stated and not all(t.kind in DIALECTS for t in targets):
        raise BadInput(f"{COMMAND.says(*stated)} of SQL: write nothing else, such as -o duckdb:-")
    if len([t for t in code if t.path == STDOUT]) > 1:
        raise BadInput("only one output can go to standard output: write the others to files")
    if len(code) == len(targets) and (a.files or a.sql):
        raise BadInput(f"{code[0].typed} writes the calibrator and reads no data: leave the files out")
    read = inputs_of(a) if len(code) < len(targets) else []
    path = _checked(targets, (*read, a.calibrator))
    one = Calibrator.from_json(calibrator_text(a.calibrator))
    options = reading(a, **({"score": a.scores} if a.scores and not a.score else {}))
    _refuse_code(code, options)
    for t in code:
        if t.kind in DIALECTS and bool(a.scores) == bool(a.score):
            raise BadInput("name the column of the score with --score, or those of several classes with --scores")
        a.scores = options.scores or a.scores
        write(t.path, _content(replace(one, percent=a.percent or one.percent), t, a, a.table))
    return 0 if path is None else _apply_rows(a, one, options, path)


def _apply_rows(a: Namespace, one: Calibrator, options: Reading, path: Path) -> int:
    """Write every row with its repaired score, or that of each class."""
    source = spread(_opened(inputs_of(a), options.form), options.scores)
    options = options.in_columns(source.columns)
    if not (options.score or options.scores):
        raise BadInput("name the column to repair with --score")
    scores = matched(options.scores, source.columns, COMMAND) if options.scores else (options.score,)
    checked_calibrator(one, source, scores)
    checked_rows(path, source, tuple(map(repaired_name, scores)))
    reported = list[str]()
    with Progress() as progress:
        if one.several:
            options = replace(options, scores=scores, percent=a.percent or one.percent)
            rows = apply_classes(one, source, options, path, None, counted(progress, "writing", source.rows))
            print(as_message(f"{path}: {rows:,} rows, {len(scores)} classes by {one.recipe}"))
            return 0
        spec = replace(options.rows_spec(), percent=a.percent or one.percent)
        rows = apply_calibrator(
            one, source, spec, Output(path), counted(progress, "writing", source.rows), reported.append
        )
    for line in reported:
        print(as_message(f"calibrant: {line}"), file=sys.stderr)
    print(as_message(f"{path}: {rows:,} rows, {repaired_name(options.score)} by {one.recipe}"))
    return 0


def _content(one: Calibrator, t: Target, a: Namespace, table: str | Sequence[str] | None) -> bytes:
    """A calibrator as JSON, as SQL, or in the language of a plug-in."""
    if t.kind == CALIBRATOR:
        return f"{one.to_json()}\n".encode()
    if t.kind in DIALECTS:
        several, keep = getattr(a, "scores", None), getattr(a, "keep", None)
        score = several or names("--score", a.score)[0]
        return f"{one.to_sql(t.kind, score=score, table=table, keep=keep or None)}\n".encode()
    plugged = OUTPUTS.own(t.kind) if t.kind in OUTPUTS.table else OUTPUTS.loaded(t.kind)
    with OUTPUTS.calling(t.kind):
        return plugged.content(one, "repaired", a).encode()


def _opened(data: Sequence[str] | Sequence[Query], form: Form) -> Source:
    return open_source(list(data) if len(data) > 1 else data[0], form=form)


# ---- fit on some rows, judge on others ----


def _judged(
    a: Namespace, options: Reading, source: Source, progress: Progress
) -> tuple[Comparison, NDArray[np.uint64]]:
    """The comparison on a sample of the rows, and the hashed identities of those the maps were fitted on."""
    if options.at is not None and not options.at.complete:
        lost, options = with_lost(source, options)
        if lost is not None:
            return _judged_by_weights(a, options, (source, lost.rows), progress), np.zeros(0, dtype=np.uint64)
    spec, columns = options.rows_spec(), _covariates(options, source)

    def sampled(rows: Source) -> Chosen:
        return chosen_rows(rows, spec, columns, KEPT, counted(progress, "reading", rows.rows), COMMAND)

    mine, other = sampled(source), None
    lack = lacking(spec.cluster, spec.weights)
    report_rows(mine.left_out, "left out", f"without {lack}")
    each_once(mine.contents, source, options)
    if a.judge_on:
        texts = [name for name, taken in source.kinds.items() if taken.kind == "text"]
        opened = with_joint(_opened([a.judge_on], options.form).knowing(texts), options.clusters)
        other = sampled(options.rows_of(opened))
        report_rows(other.left_out, "left out", f"of {sanitize(a.judge_on)} without {lack}")
        if why := in_both(mine.contents, other.contents, (), pair_share=UNKNOWN):
            raise BadInput(ON_BOTH.format(a.judge_on, why))
    else:
        _check_keys(mine.hashes, options.key)
    usable, left_out = audited_variables(mine.data, options.variables, options.seed, options.allow)
    for name, why in left_out:
        print(as_message(f"calibrant: left out {name}: {why}"), file=sys.stderr)
    progress(ProgressEvent(step="comparing repairs"))
    others = None if other is None else other.data
    result = _evaluated(a, options, (mine.data, others), usable, () if a.quick else ("local",))
    fitted = mine.hashes if other is not None else mine.hashes[hash_split(mine.data, 2, options.seed) == 0]
    return result, np.sort(fitted)


def _judged_by_weights(
    a: Namespace, options: Reading, of: tuple[Source, Predictions], progress: Progress
) -> Comparison:
    """The comparison where rows of a source were lost before the horizon: recipes of the score alone."""
    source, rows = of
    if a.variables not in (None, ["none"], ("none",)):
        raise BadInput(f"--variables: {ALONG}: leave it out")
    if wide := [e.command for e in recipes().values() if e.covariates and e.command in (a.method or ())]:
        raise BadInput(f"--method {wide[0]}: it reads covariates; {ALONG}: leave it out")
    report_left_out(rows)
    other = None if not a.judge_on else _others(a, options, source)
    if options.key and other is None:
        with source.one_pass():
            keys = [b.select(options.key).columns for part in source.parts for b in part.read(list(options.key), [])]
        _check_keys(np.concatenate([row_ids(own, options.seed, options.key) for own in keys]), options.key)
    progress(ProgressEvent(step="comparing repairs"))
    return _evaluated(a, options, (rows, other), (), ())


def _evaluated(
    a: Namespace,
    options: Reading,
    rows: tuple[Predictions, Predictions | None],
    usable: tuple[str, ...],
    tests: tuple[str, ...],
) -> Comparison:
    """The comparison on the second rows of maps fitted on the first; or, without these, on halves of the first."""
    mine, other = rows
    return evaluate(
        mine if other is None else other,
        repairs=_recipes(tuple(a.method or ("auto",)), usable, a.quick),
        fit_on=None if other is None else mine,
        distinct_clusters=a.distinct_clusters,
        by=options.by,
        variables=usable,
        bins=options.bins,
        limit=a.limit,
        judge=a.judge,
        target=a.target,
        threshold=a.threshold,
        steps=a.steps,
        alpha=a.alpha,
        tests=tests,
        seed=options.seed,
    )


def _others(a: Namespace, options: Reading, source: Source) -> Predictions:
    """The rows of another file to judge on, none of which is among those to fit on."""
    opened = options.rows_of(_opened([a.judge_on], options.form))
    own, more = with_lost(opened, options)
    rows = own.rows if own is not None else in_memory(opened, replace(more, variables=()).named())
    report_left_out(rows)
    spec = options.rows_spec()
    mine, others = (chosen_rows(each, spec, (), 1, None, COMMAND).contents for each in (source, opened))
    if why := in_both(mine, others, (), pair_share=UNKNOWN):
        raise BadInput(ON_BOTH.format(a.judge_on, why))
    return rows


def _check_keys(hashes: NDArray[np.uint64], key: tuple[str, ...]) -> None:
    """Refuse a key that rows share: one half would be fitted and the other judged on the same person."""
    if repeated := len(hashes) - len(np.unique(hashes)):
        raise BadInput(
            f"--key {','.join(key)}: {repeated:,} of {len(hashes):,} rows repeat the key of another; name columns that "
            "identify a row, or judge on another file (--judge-on)"
        )


def _covariates(options: Reading, source: Source) -> tuple[str, ...]:
    """The columns to read next to label, score and key."""
    taken, named = {options.label, options.score, *options.key}, (*options.variables, *options.by)
    if wrong := sorted(taken & set(named)):
        raise BadInput(
            f"covariate {wrong[0]!r} is the label, the score or the key: leave it out of --by and --variables"
        )
    # clusters and weights are covariates where they are named only
    unread = {*taken, *options.row_attributes, *marks_of(source.columns)}
    others = Counter(options.others(source.columns)) if "*" in named else {}
    every = tuple(c for c, n in others.items() if n == 1 and c not in unread)
    return tuple(dict.fromkeys((*every, *(c for c in named if c != "*"))))


def _recipes(methods: tuple[str, ...], variables: tuple[str, ...], quick: bool) -> dict[str, Repair]:
    """The recipes named, or for "auto" those that are tried by default."""
    if methods == ("auto",):
        return tried_by_default(variables, "always" if quick else "by the command")
    offered = {entry.command: entry for entry in recipes().values() if entry.command}
    out: dict[str, Repair] = {}
    for name in methods:
        if name not in offered:
            raise BadInput(f"--method {name!r}: choose auto, or some of {', '.join(offered)}")
        if offered[name].covariates and not variables:
            raise BadInput(f"--method {name} reads covariates: name them in --variables")
        out[offered[name].name] = offered[name].make(variables)
    return out


# ---- say what was found, and write it ----


def _chosen(result: Comparison | Judged) -> str | None:
    """The repair to write: the one recommended, or the only one there is."""
    if result.recommended != AS_AUDITED:
        return result.recommended
    return next(iter(result.calibrators)) if len(result.calibrators) == 1 else None


def _say(result: Comparison, chosen: str | None, targets: Sequence[Target], a: Namespace) -> None:
    from calibrant.report.terminal import changed, comparison

    if a.json:
        write_exact(json.dumps(result.to_dict(), sort_keys=True, indent=1) + "\n")
        return
    print(comparison(result))
    if result.decisions.columns:
        print("\n".join(("", *changed(result))))
    _say_written(targets, chosen)


def _say_written(targets: Sequence[Target], chosen: str | None) -> None:
    for t in targets:
        print(as_message(f"{t.path}: {chosen or 'nothing written'}"))


def _status(result: Comparison, chosen: str | None) -> int:
    if chosen is not None and chosen == result.recommended:
        return 0
    return 1 if chosen is not None and any(item in NEVER for item in result.verdicts[chosen]["worse"]) else 3
