"""The commands that ask one function of a file: measure, detect and diagnose, whatever their faces hold."""

from __future__ import annotations

import sys
import warnings
from argparse import Namespace
from collections.abc import Sequence
from typing import Any

from calibrant.arguments import COMMAND
from calibrant.cli.commands import inputs_of, report_left_out, source
from calibrant.cli.signature import COVARIATES, OWN, Method, Setting, methods
from calibrant.data.predictions import MulticlassPredictions, Predictions
from calibrant.data.read import classes_in_memory, in_memory, summarised
from calibrant.data.reading import FORM, OF_ROWS, Reading
from calibrant.data.sketches.sketch import Sketch
from calibrant.data.sources.query import Query
from calibrant.data.specs.attributes import THE_SCORE
from calibrant.data.survey import EVERY
from calibrant.data.targets import checked_targets, written
from calibrant.errors import BadInput, CalibrantWarning
from calibrant.measure import by_group
from calibrant.repair.judge.compare import audited_variables
from calibrant.report.outputs import results
from calibrant.results import Curve
from calibrant.sanitize import sanitize

Data = Predictions | MulticlassPredictions | Sketch
NONE = "none"  # of the other columns


def run_method(a: Namespace) -> int:
    """Ask a function of the data, with the settings that were given; the others have their own defaults."""
    m = methods(a.command)[a.method]
    own = {s.name: v for s in m.settings if (v := _passed(a, s)) is not None}
    files = inputs_of(a)
    if a.out is not None:
        checked_targets({"--out": results.checked(a.out, m.returns is Curve)}, files)
    data, covariates = _data(a, m, own, files)
    if covariates is not None:
        own[COVARIATES] = covariates
    with warnings.catch_warnings(record=True) as reported:
        warnings.simplefilter("always", CalibrantWarning)
        if m.grouped and a.by is not None and not isinstance(data, MulticlassPredictions):
            result = by_group(m.function, data, by=a.by, intersections=a.intersections, **own)
        else:
            result = m.function(data, **own)
    for warning in reported:
        _say(str(warning.message))
    if a.out is not None:
        written(a.out, results.content(result, a.out))
        _say(f"written to {a.out}")
    print(results.as_json(result).rstrip("\n") if a.json else results.lines(result))
    return 0


def _data(
    a: Namespace, m: Method, own: dict[str, Any], files: Sequence[str] | Sequence[Query]
) -> tuple[Data, tuple[str, ...] | None]:
    """The data, and the covariates to read where a function takes them and none are named.

    Of the columns only those are read that the function may look at.
    """
    data = source(files)
    how = {k: getattr(a, k) for k in (*OF_ROWS, *FORM, "allow_same") if hasattr(a, k)}
    if isinstance(data, Sketch):
        sketch = summarised(data, Reading.of(caller=COMMAND, **how))
        report_left_out(sketch)
        return sketch, None
    named = [n for s in m.settings if s.columns and s.name in own for n in _names(own[s.name]) if n != THE_SCORE]
    every = COVARIATES not in own and any(s.name == COVARIATES for s in m.settings)
    if own.get(COVARIATES) == NONE:
        named, own[COVARIATES] = [n for n in named if n != NONE], ()
    by = a.by if m.grouped else None
    options = Reading.of(caller=COMMAND, by=by, variables=EVERY if every else named, **how)
    rows: Predictions | MulticlassPredictions
    if getattr(a, "scores", None) is None:
        rows = seen = in_memory(data, options.named())
    else:
        rows = _classes(a, data, options)
        seen = rows.top_label()
    report_left_out(seen)
    if not every:
        return rows, None
    usable, left_out = audited_variables(seen, None, 0)
    for name, why in left_out:
        _say(f"left out {name}: {why}")
    return rows, usable


def _classes(a: Namespace, data: Any, options: Reading) -> MulticlassPredictions:
    if refused := options.passed("score", *(name for name in OF_ROWS if name not in ("label", "score"))):
        raise BadInput(f"{COMMAND.says(*refused)} of two classes: leave it out with --scores")
    if not options.label:
        raise BadInput("name the column of the labels: --label")
    return classes_in_memory(data, options, a.scores, a.classes or ())


def _passed(a: Namespace, s: Setting) -> Any:
    """Return what was given for a setting, one column by itself."""
    v = getattr(a, OWN + s.name, None)
    return v[0] if s.columns and s.parsed == "many" and v is not None and len(v) == 1 else v


def _names(value: str | Sequence[str]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


def _say(line: str) -> None:
    print(sanitize(line), file=sys.stderr)


measure = detect = diagnose = run_method
