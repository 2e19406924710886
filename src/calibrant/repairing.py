"""The `repair` and `apply` commands."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calibrant.errors import BadInput
from calibrant.options import bins, data_options, names
from calibrant.progress import Progress

if TYPE_CHECKING:
    from calibrant.repair.judge.verdict import Comparison

STATUS = """exit status:
  0   a repair is shown to be better; its map is written
  1   the one repair asked for is shown to be worse; its map is written all the same
  2   the data or a setting cannot be used; one line says why
  3   undecided: no repair is shown to be better. With --method auto, or several, nothing is written
  70  an unexpected error: please report it
"""
APPLY_STATUS = """exit status:
  0   every row is written
  2   the data, the map or a setting cannot be used; one line says why, and nothing is written
  70  an unexpected error: please report it
"""
REPAIR = """Fits repairs on one half of a sample of the rows and judges them on the other; then streams every row through the
one recommended. The map that is written is the one that was judged, as JSON without code.

OUT holds every column, SCORE_repaired, and SCORE_fitted_on: true for the rows the map was fitted on, on which it must
never be judged.

examples:
  calibrant repair log.parquet --label y --score p
  calibrant repair log.parquet --label y --score p --by sex,age --out repaired.parquet --map map.json
  calibrant repair 2015.parquet --judge 2017.parquet --label y --score p --method platt,isotonic --map map.json
"""
APPLY = """Streams files of any size; covariates that the map reads must be there. OUT holds every column and SCORE_repaired.

example:
  calibrant apply map.json tomorrow.parquet --score p --out tomorrow-repaired.parquet
"""


def add_commands(add: Callable[..., argparse.ArgumentParser]) -> None:
    """Add both commands to the parser."""
    fix = add("repair", repair, "fit repairs, judge them on other rows, and write the best", REPAIR)
    fix.epilog = STATUS
    data_options(fix)
    repair_options(fix)
    _name_methods_in_help(fix)
    use = add("apply", apply, "stream files through the map of a repair", APPLY)
    use.epilog = APPLY_STATUS
    apply_options(use)


def repair_options(p: argparse.ArgumentParser) -> None:
    """Add what to fit, how to judge, and what to write."""
    p.add_argument("--by", metavar="COLUMNS", type=names, default=(), help="group columns, separated by commas")
    p.add_argument(
        "--variables",
        metavar="COLUMNS",
        type=names,
        default=("*",),
        help="covariates to audit and repair by (default: every other column that can be used; 'none' for none)",
    )
    p.add_argument("--bins", metavar="COLUMN=A,B,…", action="append", default=[], help="bin edges of a group column")
    p.add_argument(
        "--method",
        metavar="NAMES",
        type=names,
        default=("auto",),
        help="recipes to fit, separated by commas (default: auto)",
    )
    p.add_argument("--judge", metavar="FILE", help="judge on these rows instead, and fit on all of FILE's sample")
    p.add_argument("--levels", type=int, default=50, metavar="K", help="steps of the certified error (default 50)")
    p.add_argument("--alpha", type=float, default=0.05, help="error probability of the verdicts (default 0.05)")
    p.add_argument("--quick", action="store_true", help="leave out the tests, and multicalibration from auto")
    p.add_argument("--out", metavar="OUT", help="write every row repaired: .parquet, .csv, .tsv, .arrow or .feather")
    p.add_argument("--map", metavar="MAP.json", help="write the map")
    p.add_argument("--json", action="store_true", help="print the comparison as JSON instead of a table")


def _name_methods_in_help(p: argparse.ArgumentParser) -> None:
    """Let help name every recipe; they are read when help is asked for, since that loads NumPy."""
    plain = p.format_help

    def format_help() -> str:
        from calibrant.repair.catalogue import recipes

        offered = [e for e in recipes().values() if e.command]
        tried = [e for e in offered if e.tried != "when named"]
        score = ", ".join(e.command for e in tried if not e.covariates)
        more = " and ".join(e.command for e in tried if e.covariates)
        method = next(action for action in p._actions if action.dest == "method")
        method.help = f"auto: {score} and, with covariates, {more}; or some of: {', '.join(e.command for e in offered)}"
        return plain()

    p.format_help = format_help  # type: ignore[method-assign]


def apply_options(p: argparse.ArgumentParser) -> None:
    """Add the map, the files and where to write."""
    p.add_argument("map", metavar="MAP.json", help="a map that `calibrant repair --map` or `to_json` wrote")
    p.add_argument("files", nargs="+", metavar="FILE", help="Parquet, CSV, Arrow IPC; a quoted glob or a directory")
    p.add_argument("--score", required=True, metavar="COLUMN", help="predicted probabilities, 0 to 1")
    p.add_argument("--out", required=True, metavar="OUT", help=".parquet, .csv, .tsv, .arrow or .feather")


def repair(a: argparse.Namespace) -> int:
    """Compare, print, and write what was asked for."""
    from calibrant.data.rewrite import checked_target
    from calibrant.repair.streamed import apply_map, checked_map, fitted_name, repaired_name

    if not (a.label and a.score):
        raise BadInput("name the columns: --label for the outcomes and --score for the probabilities")
    if a.map:
        _check_map(Path(a.map))
    source, spec = _opened(a.files), _spec(a)
    added = (repaired_name(a.score), fitted_name(a.score))
    path = checked_target(a.out, (*a.files, *([a.judge] if a.judge else ())), source, added) if a.out else None
    with Progress() as progress:
        found, fitted = _judged(a, source, spec, progress)
        chosen = _chosen(found)
        if chosen and a.map:
            _write(a.map, found.maps[chosen].to_json() + "\n")
        if chosen and path:
            checked_map(found.maps[chosen], source, a.score)
            progress.step("writing")
            apply_map(found.maps[chosen], source, spec, path, fitted, a.drop_missing, progress.rows)
    _say(found, chosen, a)
    return _status(found, chosen)


def apply(a: argparse.Namespace) -> int:
    """Stream files through a map."""
    from calibrant.data.rewrite import checked_target
    from calibrant.data.spec import Spec
    from calibrant.repair.fitted import FittedMap
    from calibrant.repair.streamed import apply_map, checked_map, repaired_name

    try:
        text = Path(a.map).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as e:
        raise BadInput(f"cannot read the map {a.map!r}: {getattr(e, 'strerror', None) or e}") from None
    one = FittedMap.from_json(text)
    source = _opened(a.files)
    checked_map(one, source, a.score)
    path = checked_target(a.out, (*a.files, a.map), source, (repaired_name(a.score),))
    with Progress() as progress:
        rows = apply_map(one, source, Spec(label="", score=a.score), path, None, False, progress.rows)
    print(f"{a.out}: {rows:,} rows, {repaired_name(a.score)} by {one.recipe}")
    return 0


def _opened(files: Any) -> Any:
    from calibrant.data.sources import open_source

    return open_source(list(files) if len(files) > 1 else files[0])


def _spec(a: argparse.Namespace) -> Any:
    from calibrant.data.seed import checked_seed
    from calibrant.data.spec import Spec

    return Spec(label=a.label, score=a.score, positive=a.positive, key=tuple(a.key), seed=checked_seed(a.seed))


def _judged(a: argparse.Namespace, source: Any, spec: Any, progress: Progress) -> tuple[Comparison, Any]:
    """Return the comparison on a sample of the rows, and the hashed identities of those the maps were fitted on."""
    import numpy as np

    from calibrant.data.sample import chosen_rows
    from calibrant.data.survey import KEPT
    from calibrant.repair.judge.compare import compare
    from calibrant.repair.judge.rows import dealt

    variables = () if a.variables == ("none",) else a.variables
    columns = _columns(source, spec, (*variables, *a.by))
    mine = chosen_rows(source, spec, columns, KEPT, a.drop_missing, progress.rows)
    other = None
    if not a.judge:
        _check_keys(mine.hashes, a.key)
    else:
        other = chosen_rows(_opened([a.judge]), spec, columns, KEPT, a.drop_missing, progress.rows)
    usable = _usable(mine.data, variables, spec.seed)
    progress.step("comparing repairs")
    found = compare(
        other.data if other else mine.data,
        _recipes(a.method, usable, a.quick),
        fit_on=mine.data if other else None,
        by=a.by,
        variables=usable,
        bins=bins(a.bins),
        levels=a.levels,
        alpha=a.alpha,
        tests=() if a.quick else ("local",),
        seed=spec.seed,
    )
    return found, np.sort(mine.hashes if other else mine.hashes[dealt(mine.data, 2, spec.seed) == 0])


def _check_keys(hashes: Any, key: tuple[str, ...]) -> None:
    """Refuse a key that rows share: one half would be fitted and the other judged on the same person."""
    import numpy as np

    if repeated := len(hashes) - len(np.unique(hashes)):
        raise BadInput(
            f"--key {','.join(key)}: {repeated:,} of {len(hashes):,} rows repeat the key of another; name columns that "
            "identify a row, or judge on another file (--judge)"
        )


def _columns(source: Any, spec: Any, asked: tuple[str, ...]) -> tuple[str, ...]:
    taken = {spec.label, spec.score, *spec.key}
    if wrong := sorted(taken & set(asked)):
        raise BadInput(
            f"covariate {wrong[0]!r} is the label, the score or the key: leave it out of --by and --variables"
        )
    every = tuple(c for c in source.columns if c not in taken) if "*" in asked else ()
    return tuple(dict.fromkeys((*every, *(c for c in asked if c != "*"))))


def _usable(data: Any, variables: tuple[str, ...], seed: int) -> tuple[str, ...]:
    from calibrant.repair.judge.compare import audited_variables

    return audited_variables(data, variables, seed)[0]


def _recipes(methods: tuple[str, ...], variables: tuple[str, ...], quick: bool) -> dict[str, Any]:
    """Return the recipes named, or for "auto" those that are tried by default."""
    from calibrant.repair.catalogue import recipes, tried_by_default

    if methods == ("auto",):
        return tried_by_default(variables, quick=quick)
    offered = {entry.command: entry for entry in recipes().values() if entry.command}
    out = {}
    for name in methods:
        if name not in offered:
            raise BadInput(f"--method {name!r}: choose auto, or some of {', '.join(offered)}")
        if offered[name].covariates and not variables:
            raise BadInput(f"--method {name} reads covariates: name them in --variables")
        out[offered[name].name] = offered[name].make(variables)
    return out


def _chosen(found: Comparison) -> str | None:
    """Return the repair to write: the one recommended, or the only one there is."""
    from calibrant.repair.judge.verdict import AS_AUDITED

    if found.recommended != AS_AUDITED:
        return found.recommended
    return next(iter(found.maps)) if len(found.maps) == 1 else None


def _say(found: Comparison, chosen: str | None, a: argparse.Namespace) -> None:
    from calibrant.report.terminal import comparison

    if a.json:
        print(json.dumps(found.to_dict(), sort_keys=True, indent=1))
        return
    print(comparison(found))
    for what, target in (("map", a.map), ("rows", a.out)):
        if target:
            print(f"{what}: {target} ({chosen})" if chosen else f"{what}: nothing written")


def _status(found: Comparison, chosen: str | None) -> int:
    from calibrant.repair.judge.verdict import NEVER

    if chosen is not None and chosen == found.recommended:
        return 0
    return 1 if chosen is not None and any(item in NEVER for item in found.verdicts[chosen]["worse"]) else 3


def _check_map(path: Path) -> None:
    """Refuse a map that would be written nowhere, or over data."""
    if path.suffix.lower() != ".json":
        raise BadInput(f"cannot write the map to {str(path)!r}: end its name in .json")
    if path.is_dir() or not path.resolve().parent.is_dir():
        why = "it is a directory" if path.is_dir() else f"there is no directory {str(path.parent)!r}"
        raise BadInput(f"cannot write the map to {str(path)!r}: {why}")


def _write(target: str, content: str) -> None:
    try:
        Path(target).write_text(content, encoding="utf-8", newline="\n")
    except OSError as e:
        raise BadInput(f"cannot write {target!r}: {e.strerror}") from None
