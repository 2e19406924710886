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
from calibrant.cli.commands import given, reading, tell_rows
from calibrant.cli.plugged import asked as asked_of
from calibrant.cli.plugged import outputs, printed
from calibrant.cli.progress import Progress
from calibrant.cli.reporting import write
from calibrant.data.engines.reduce import chosen_rows
from calibrant.data.progress import Doing, counted
from calibrant.data.read import each_once
from calibrant.data.reading import Reading
from calibrant.data.rewrite import checked_rows
from calibrant.data.sketches.choice import Chosen
from calibrant.data.sketches.levels import on_levels, unit_batches
from calibrant.data.sketches.repeats import UNKNOWN, in_both
from calibrant.data.sources.opened import open_source
from calibrant.data.sources.query import Query
from calibrant.data.sources.source import Form, Source
from calibrant.data.survey import KEPT
from calibrant.data.targets import checked_targets
from calibrant.errors import BadInput
from calibrant.plugins import OUTPUTS
from calibrant.repair.catalogue import recipes, tried_by_default
from calibrant.repair.fitted import FittedMap
from calibrant.repair.judge.compare import audited_variables, compare
from calibrant.repair.judge.rows import Repair, dealt
from calibrant.repair.judge.verdict import AS_AUDITED, NEVER, Comparison
from calibrant.repair.map_file import map_text
from calibrant.repair.streamed import Output, apply_map, checked_map, fitted_name, repaired_name
from calibrant.visible import visible


def repair(a: Namespace) -> int:
    """Compare, print, and write what was asked for."""
    asked = reading(a).named()
    if a.map is not None and not a.map.lower().endswith(".json"):
        raise BadInput(f"cannot write the calibrator to {a.map!r}: end its name in .json")
    if a.distinct_units and not (a.judge_on and (asked.cluster or asked.levels)):
        raise BadInput("--distinct-units goes with --judge-on and --cluster")
    a.threshold, a.costs = acting(a.threshold, a.costs, COMMAND)[0] or None, None  # checked before anything is read
    data = given(a)
    read = (*data, *([a.judge_on] if a.judge_on else ()))
    path = checked_targets({"--out": a.out, "--map": a.map}, read).get("--out")
    source = _opened(data, asked.form)
    judged_on = unit_batches(_opened([a.judge_on], asked.form), asked) if a.judge_on else ()
    asked, _ = on_levels(asked, itertools.chain(unit_batches(source, asked), judged_on))
    if path:
        checked_rows(path, source, (repaired_name(a.score), fitted_name(a.score)))
    with Progress() as progress:
        found, fitted = _judged(a, asked, source, progress)
        chosen = _chosen(found)
        if chosen and a.map:
            write(a.map, replace(found.maps[chosen], percent=asked.percent).to_json() + "\n")
        if chosen and path:
            checked_map(found.maps[chosen], source, a.score)
            rows_done = counted(progress, "writing", source.rows)
            apply_map(found.maps[chosen], source, asked.rows_spec(), Output(path, fitted), rows_done)
    _say(found, chosen, a)
    return _status(found, chosen)


def apply(a: Namespace) -> int:
    """Stream files through a map, or print it in another language."""
    chosen = printed(a)
    if a.print_sql or chosen:
        return _print_map(a, chosen)
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
    data = given(a)
    path = checked_targets({"--out": a.out}, (*data, a.map))["--out"]
    one, asked = FittedMap.from_json(map_text(a.map)), reading(a)
    source = _opened(data, asked.form)
    checked_map(one, source, a.score)
    checked_rows(path, source, (repaired_name(a.score),))
    told = list[str]()
    with Progress() as progress:
        spec = replace(asked.rows_spec(), percent=a.percent or one.percent)
        rows = apply_map(one, source, spec, Output(path), counted(progress, "writing", source.rows), told.append)
    for line in told:
        print(visible(f"calibrant: {line}"), file=sys.stderr)
    print(visible(f"{a.out}: {rows:,} rows, {repaired_name(a.score)} by {one.recipe}"))
    return 0


def _ways(word: str) -> str:
    """Return the options that print a calibrator, ours alone."""
    return word.join(("--print-sql", *(f"--print-{name}" for name in outputs("calibrator"))))


def _print_map(a: Namespace, chosen: str) -> int:
    """Print a calibrator as SQL, or in the language of a plug-in, for which no data are read."""
    if a.files or a.sql or a.out:
        raise BadInput(f"{_ways(' and ')} print the calibrator and read no data: leave files and --out away")
    one = FittedMap.from_json(map_text(a.map))
    one = replace(one, percent=a.percent or one.percent)
    if chosen:
        if a.table or a.keep or a.scores:
            raise BadInput("--table, --keep and --scores are of --print-sql")
        with OUTPUTS.calling(chosen):
            print(asked_of(a, "calibrator")[chosen].content(one, "repaired", a), end="")
        return 0
    if bool(a.scores) == bool(a.score):
        raise BadInput("name the column of the score with --score, or those of several classes with --scores")
    print(one.to_sql(a.print_sql, score=a.scores or a.score, table=a.table, keep=a.keep or None))
    return 0


def _opened(data: Sequence[str] | Sequence[Query], form: Form) -> Source:
    return open_source(list(data) if len(data) > 1 else data[0], form=form)


# ---- fit on some rows, judge on others ----


def _judged(a: Namespace, asked: Reading, source: Source, progress: Progress) -> tuple[Comparison, NDArray[np.uint64]]:
    """Return the comparison on a sample of the rows, and the hashed identities of those the maps were fitted on."""
    spec, columns = asked.rows_spec(), _covariates(asked, source)

    def sampled(rows: Source) -> Chosen:
        return chosen_rows(rows, spec, columns, KEPT, counted(progress, "reading", rows.rows), COMMAND)

    mine, other = sampled(source), None
    lack = lacking(spec.cluster, spec.weights)
    tell_rows(mine.left_out, "left out", f"without {lack}")
    each_once(mine.contents, source, asked)
    if a.judge_on:
        texts = [name for name, taken in source.kinds.items() if taken.kind == "text"]
        other = sampled(_opened([a.judge_on], asked.form).knowing(texts))
        tell_rows(other.left_out, "left out", f"of {visible(a.judge_on)} without {lack}")
        if why := in_both(mine.contents, other.contents, (), alike=UNKNOWN):
            raise BadInput(
                f"the files and --judge-on {a.judge_on} {why}: judge a calibrator on rows that it was not fitted on"
            )
    else:
        _check_keys(mine.hashes, asked.key)
    usable = audited_variables(mine.data, asked.variables, asked.seed)[0]
    progress(Doing(step="comparing repairs"))
    found = compare(
        mine.data if other is None else other.data,
        repairs=_recipes(tuple(a.method or ("auto",)), usable, a.quick),
        fit_on=None if other is None else mine.data,
        distinct_units=a.distinct_units,
        by=asked.by,
        variables=usable,
        bins=asked.bins,
        limit=a.limit,
        judge=a.judge,
        threshold=a.threshold,
        levels=a.levels,
        alpha=a.alpha,
        tests=() if a.quick else ("local",),
        seed=asked.seed,
    )
    fitted = mine.hashes if other is not None else mine.hashes[dealt(mine.data, 2, asked.seed) == 0]
    return found, np.sort(fitted)


def _check_keys(hashes: NDArray[np.uint64], key: tuple[str, ...]) -> None:
    """Refuse a key that rows share: one half would be fitted and the other judged on the same person."""
    if repeated := len(hashes) - len(np.unique(hashes)):
        raise BadInput(
            f"--key {','.join(key)}: {repeated:,} of {len(hashes):,} rows repeat the key of another; name columns that "
            "identify a row, or judge on another file (--judge-on)"
        )


def _covariates(asked: Reading, source: Source) -> tuple[str, ...]:
    """Return the columns to read next to label, score and key."""
    taken, named = {asked.label, asked.score, *asked.key}, (*asked.variables, *asked.by)
    if wrong := sorted(taken & set(named)):
        raise BadInput(
            f"covariate {wrong[0]!r} is the label, the score or the key: leave it out of --by and --variables"
        )
    unread = {*taken, *asked.beside}  # units and weights are covariates where they are named only
    others = Counter(asked.others(source.columns)) if "*" in named else {}
    every = tuple(c for c, n in others.items() if n == 1 and c not in unread)
    return tuple(dict.fromkeys((*every, *(c for c in named if c != "*"))))


def _recipes(methods: tuple[str, ...], variables: tuple[str, ...], quick: bool) -> dict[str, Repair]:
    """Return the recipes named, or for "auto" those that are tried by default."""
    if methods == ("auto",):
        return tried_by_default(variables, quick=quick)
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


def _chosen(found: Comparison) -> str | None:
    """Return the repair to write: the one recommended, or the only one there is."""
    if found.recommended != AS_AUDITED:
        return found.recommended
    return next(iter(found.maps)) if len(found.maps) == 1 else None


def _say(found: Comparison, chosen: str | None, a: Namespace) -> None:
    from calibrant.report.outputs import acted_on
    from calibrant.report.terminal import comparison

    if a.json:
        print(json.dumps(found.to_dict(), sort_keys=True, indent=1))
        return
    print(comparison(found))
    if found.decisions.columns:
        print("\n".join(("", *acted_on.lines(found))))
    for what, target in (("map", a.map), ("rows", a.out)):
        if target:
            print(visible(f"{what}: {target} ({chosen})") if chosen else f"{what}: nothing written")


def _status(found: Comparison, chosen: str | None) -> int:
    if chosen is not None and chosen == found.recommended:
        return 0
    return 1 if chosen is not None and any(item in NEVER for item in found.verdicts[chosen]["worse"]) else 3
