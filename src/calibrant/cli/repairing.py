"""The commands that change probabilities: repair and apply."""

from __future__ import annotations

import itertools
import json
import sys
from argparse import Namespace
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from calibrant.arguments import COMMAND, acting, lacking
from calibrant.cli.commands import inputs_of, reading, report_rows
from calibrant.cli.options import outputs, printed
from calibrant.cli.options import requested as requested_of
from calibrant.cli.progress import Progress
from calibrant.cli.reporting import write
from calibrant.cli.standard_output import write_exact
from calibrant.data.engines.reduce import chosen_rows
from calibrant.data.progress import ProgressEvent, counted
from calibrant.data.read import each_once
from calibrant.data.reading import Reading
from calibrant.data.rewrite import checked_rows
from calibrant.data.sketches.contents import UNKNOWN, in_both
from calibrant.data.sketches.rows import Chosen, cluster_batches, on_levels
from calibrant.data.sources.files import open_source
from calibrant.data.sources.query import Query
from calibrant.data.sources.source import Form, Source, marks_of, with_joint
from calibrant.data.survey import KEPT
from calibrant.data.targets import checked_targets
from calibrant.errors import BadInput
from calibrant.plugins import OUTPUTS
from calibrant.repair.catalogue import recipes, tried_by_default
from calibrant.repair.fitted import Calibrator, calibrator_text
from calibrant.repair.judge.compare import audited_variables, compare
from calibrant.repair.judge.rows import Repair, hash_split
from calibrant.repair.judge.verdict import AS_AUDITED, NEVER, Comparison
from calibrant.repair.streamed import Output, apply_calibrator, checked_calibrator, fitted_name, repaired_name
from calibrant.sanitize import as_message, sanitize


def repair(a: Namespace) -> int:
    """Compare, print, and write what was asked for."""
    options = reading(a).named()
    if a.calibrator is not None and not a.calibrator.lower().endswith(".json"):
        raise BadInput(f"cannot write the calibrator to {a.calibrator!r}: end its name in .json")
    if a.distinct_clusters and not (a.judge_on and (options.cluster or options.levels)):
        raise BadInput("--distinct-clusters goes with --judge-on and --cluster")
    a.threshold, a.costs = acting(a.threshold, a.costs, COMMAND)[0] or None, None  # checked before anything is read
    data = inputs_of(a)
    read = (*data, *([a.judge_on] if a.judge_on else ()))
    path = checked_targets({"--out": a.out, "--calibrator": a.calibrator}, read).get("--out")
    source, joint = _opened(data, options.form), options.clusters
    judged_on = cluster_batches(with_joint(_opened([a.judge_on], options.form), joint), options) if a.judge_on else ()
    options, _ = on_levels(options, itertools.chain(cluster_batches(with_joint(source, joint), options), judged_on))
    if path:
        checked_rows(path, source, (repaired_name(a.score), fitted_name(a.score)))
    with Progress() as progress:
        result, fitted = _judged(a, options, with_joint(source, joint), progress)
        chosen = _chosen(result)
        if chosen and a.calibrator:
            write(a.calibrator, replace(result.calibrators[chosen], percent=options.percent).to_json() + "\n")
        if chosen and path:
            checked_calibrator(result.calibrators[chosen], source, a.score)
            rows_done = counted(progress, "writing", source.rows)
            apply_calibrator(result.calibrators[chosen], source, options.rows_spec(), Output(path, fitted), rows_done)
    _say(result, chosen, a)
    return _status(result, chosen)


def apply(a: Namespace) -> int:
    """Stream files through a map, or print it in another language."""
    chosen = printed(a)
    if a.print_sql or chosen:
        return _print_calibrator(a, chosen)
    if a.table or a.keep:
        raise BadInput("--table and --keep are of --print-sql: name a dialect, such as --print-sql duckdb")
    if a.scores:
        raise BadInput(
            "--scores is of --print-sql: of several classes call the calibrator in Python on multiclass_predictions"
        )
    if a.score is None:
        raise BadInput("name the column to repair with --score")
    if a.out is None:
        raise BadInput(f"name the file to write with --out, or print the calibrator with {_ways(' or ')}")
    data = inputs_of(a)
    path = checked_targets({"--out": a.out}, (*data, a.calibrator))["--out"]
    one, options = Calibrator.from_json(calibrator_text(a.calibrator)), reading(a)
    source = _opened(data, options.form)
    checked_calibrator(one, source, a.score)
    checked_rows(path, source, (repaired_name(a.score),))
    reported = list[str]()
    with Progress() as progress:
        spec = replace(options.rows_spec(), percent=a.percent or one.percent)
        rows = apply_calibrator(
            one, source, spec, Output(path), counted(progress, "writing", source.rows), reported.append
        )
    for line in reported:
        print(as_message(f"calibrant: {line}"), file=sys.stderr)
    print(as_message(f"{a.out}: {rows:,} rows, {repaired_name(a.score)} by {one.recipe}"))
    return 0


def _ways(word: str) -> str:
    """The options that print a calibrator, ours alone."""
    return word.join(("--print-sql", *(f"--print-{name}" for name in outputs("calibrator"))))


def _print_calibrator(a: Namespace, chosen: str) -> int:
    """Print a calibrator as SQL, or in the language of a plug-in, for which no data are read."""
    if a.files or a.sql or a.out:
        raise BadInput(f"{_ways(' and ')} print the calibrator and read no data: leave files and --out away")
    one = Calibrator.from_json(calibrator_text(a.calibrator))
    one = replace(one, percent=a.percent or one.percent)
    if chosen:
        if a.table or a.keep or a.scores:
            raise BadInput("--table, --keep and --scores are of --print-sql")
        with OUTPUTS.calling(chosen):
            write_exact(requested_of(a, "calibrator")[chosen].content(one, "repaired", a))
        return 0
    if bool(a.scores) == bool(a.score):
        raise BadInput("name the column of the score with --score, or those of several classes with --scores")
    write_exact(one.to_sql(a.print_sql, score=a.scores or a.score, table=a.table, keep=a.keep or None) + "\n")
    return 0


def _opened(data: Sequence[str] | Sequence[Query], form: Form) -> Source:
    return open_source(list(data) if len(data) > 1 else data[0], form=form)


# ---- fit on some rows, judge on others ----


def _judged(
    a: Namespace, options: Reading, source: Source, progress: Progress
) -> tuple[Comparison, NDArray[np.uint64]]:
    """The comparison on a sample of the rows, and the hashed identities of those the maps were fitted on."""
    spec, columns = options.rows_spec(), _covariates(options, source)

    def sampled(rows: Source) -> Chosen:
        return chosen_rows(rows, spec, columns, KEPT, counted(progress, "reading", rows.rows), COMMAND)

    mine, other = sampled(source), None
    lack = lacking(spec.cluster, spec.weights)
    report_rows(mine.left_out, "left out", f"without {lack}")
    each_once(mine.contents, source, options)
    if a.judge_on:
        texts = [name for name, taken in source.kinds.items() if taken.kind == "text"]
        other = sampled(with_joint(_opened([a.judge_on], options.form).knowing(texts), options.clusters))
        report_rows(other.left_out, "left out", f"of {sanitize(a.judge_on)} without {lack}")
        if why := in_both(mine.contents, other.contents, (), pair_share=UNKNOWN):
            raise BadInput(
                f"the files and --judge-on {a.judge_on} {why}: judge a calibrator on rows that it was not fitted on"
            )
    else:
        _check_keys(mine.hashes, options.key)
    usable, left_out = audited_variables(mine.data, options.variables, options.seed, options.allow)
    for name, why in left_out:
        print(as_message(f"calibrant: left out {name}: {why}"), file=sys.stderr)
    progress(ProgressEvent(step="comparing repairs"))
    result = compare(
        mine.data if other is None else other.data,
        repairs=_recipes(tuple(a.method or ("auto",)), usable, a.quick),
        fit_on=None if other is None else mine.data,
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
        tests=() if a.quick else ("local",),
        seed=options.seed,
    )
    fitted = mine.hashes if other is not None else mine.hashes[hash_split(mine.data, 2, options.seed) == 0]
    return result, np.sort(fitted)


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


def _chosen(result: Comparison) -> str | None:
    """The repair to write: the one recommended, or the only one there is."""
    if result.recommended != AS_AUDITED:
        return result.recommended
    return next(iter(result.calibrators)) if len(result.calibrators) == 1 else None


def _say(result: Comparison, chosen: str | None, a: Namespace) -> None:
    from calibrant.report.terminal import changed, comparison

    if a.json:
        write_exact(json.dumps(result.to_dict(), sort_keys=True, indent=1) + "\n")
        return
    print(comparison(result))
    if result.decisions.columns:
        print("\n".join(("", *changed(result))))
    for what, target in (("calibrator", a.calibrator), ("rows", a.out)):
        if target:
            print(as_message(f"{what}: {target} ({chosen})") if chosen else f"{what}: nothing written")


def _status(result: Comparison, chosen: str | None) -> int:
    if chosen is not None and chosen == result.recommended:
        return 0
    return 1 if chosen is not None and any(item in NEVER for item in result.verdicts[chosen]["worse"]) else 3
