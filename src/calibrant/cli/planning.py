"""The command that plans: rows for a certificate, for measures, or for the subgroup test; and what a log can decide."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from calibrant.arguments import COMMAND
from calibrant.cli.commands import (
    certified_data,
    inputs_of,
    reading,
    report_left_out,
    report_seen_events,
    report_sketch,
    source,
    source_of_rows,
)
from calibrant.cli.standard_output import print_result
from calibrant.data.predictions import Predictions
from calibrant.data.read import classes_in_memory, in_memory, summarised, with_classes
from calibrant.data.sketches.sketch import Sketch
from calibrant.data.survey import EVERY
from calibrant.errors import BadInput
from calibrant.report.outputs import plans
from calibrant.results import Curve, Estimate

COLUMNS = "label", "score", "positive", "cluster", "weights", "by", "time", "event", "horizon"
MEASURES = {"oe": "observed_expected", "slope": "calibration_slope", "auroc": "auroc"}  # by option
DEFAULTS = {"method": "rounded", "steps": 100, "bandwidth": 2**-6, "side": "upper"}  # of a certificate
POWER = 0.8
SHARES = (0.02, 0.05, 0.1, 0.2, 0.5)  # of a subgroup, where none is named


class Plan(NamedTuple):
    """One thing to plan for: the options that ask for it, those it takes, how it is made and how it is printed."""

    asks: tuple[str, ...]
    takes: tuple[str, ...]
    made: Callable[[Namespace], Sequence[Estimate | Curve]]
    written: Callable[..., str]


def plan(a: Namespace) -> int:
    """Print how many rows a wish takes, or what a number of rows detects."""
    a.files = [a.data] if a.data else []
    if not (a.data or a.sql) and any(getattr(a, name) for name in COLUMNS):
        raise BadInput(
            "--label, --score, --positive, --cluster, --weights, --by, --time, --event and --horizon go with --data or "
            "--sql"
        )
    one = _chosen(a)
    result = one.made(a)
    print_result(
        a.json,
        lambda: result[0].to_dict() if len(result) == 1 else [e.to_dict() for e in result],
        lambda: one.written(result),
    )
    return 0


def _chosen(a: Namespace) -> Plan:
    """The one plan that is asked for; options of another are refused."""
    named = [one for one in PLANS if _stated(a, one.asks)] or ([LOG] if a.data or a.sql else [])
    if len(named) != 1:
        options = "a gap such as 0.02, a log (--data), --strong, or one or more of --oe, --slope and --auroc"
        raise BadInput(f"plan for {'one thing at a time' if named else 'something'}: pass {options}")
    every = {name for one in (*PLANS, LOG) for name in one.takes}
    if other := _stated(a, sorted(every - set(named[0].takes))):
        wish = COMMAND.says(*_stated(a, named[0].asks)).replace("--gap", "a gap") or "what a log can decide"
        do, them = ("do", "them") if len(other) > 1 else ("does", "it")
        raise BadInput(f"{COMMAND.says(*other)} {do} not go with {wish}: leave {them} out")
    return named[0]


def _stated(a: Namespace, names: Iterable[str]) -> list[str]:
    return [name for name in names if getattr(a, name) not in (None, False, [], (), DEFAULTS.get(name))]


def _data(a: Namespace) -> Sketch | Predictions | None:
    """The data whose scores are planned for; of several classes, the probability of the most probable one."""
    if not (a.data or a.sql):
        return None
    options = reading(a)
    files = source(inputs_of(a))
    if options.scores:
        return with_classes(files, options)[1]
    data = summarised(files, options)
    report_seen_events(data.log.seen_events)
    return data


def _certificate(a: Namespace) -> list[Estimate]:
    from calibrant.certify.rows_needed import rows_needed

    how = {name: getattr(a, name) for name in DEFAULTS}
    return [rows_needed(a.gap, _data(a), alpha=a.alpha, **how)]


def _measures(a: Namespace) -> list[Estimate]:
    from calibrant.measure import rows_needed

    widths = {of: getattr(a, name) for name, of in MEASURES.items() if getattr(a, name) is not None}
    how = {"beta": a.beta, "rate": a.rate, "expected_auroc": a.expected_auroc, "alpha": a.alpha}
    return [rows_needed(widths, _data(a), **how)]


def _strong(a: Namespace) -> list[Estimate]:
    """The rows that an error takes; or the error that rows detect, of each share."""
    from calibrant.detect.rows_needed import planned_errors, rows_needed
    from calibrant.views.boxes import ORDER

    if (a.rows is None) == (a.error is None):
        raise BadInput("--strong plans rows or errors: pass --rows N for the smallest errors that N rows detect, or "
                       "--error E for the rows that detect an error of E")  # fmt: skip
    data = None
    if a.data or a.sql:
        no_sketch = "--strong simulates outcomes of rows: pass the data file in place of the sketch"
        read = source_of_rows(inputs_of(a), no_sketch)
        options = reading(a, variables=EVERY)
        data = classes_in_memory(read, options).top_label() if options.scores else in_memory(read, options.named())
        report_left_out(data)
    power, order = POWER if a.power is None else a.power, ORDER if a.order is None else a.order
    shares = a.share or (SHARES if a.error is None else (0.1,))
    if a.error is None:
        return planned_errors(a.rows, data, shares, (order, a.beta), (power, a.alpha))
    how = {"beta": a.beta, "alpha": a.alpha, "power": power, "order": order}
    return [rows_needed(a.error, data, share=share, **how) for share in shares]


def _log(a: Namespace) -> list[Curve]:
    """What the rows of a log can decide."""
    from calibrant.certify.decidable import decidable

    files, options = source(inputs_of(a)), reading(a)
    groups: dict[str, object] = {}
    if options.scores:
        whole: Sketch | Predictions = report_sketch(with_classes(files, options)[1])
    else:
        whole, groups, *_ = certified_data(files, options)
    how: dict[str, Any] = groups | {
        name: value for name in ("limit", "power", "judge", "draws") if (value := getattr(a, name)) is not None
    }
    return [decidable(whole, steps=a.steps, alpha=a.alpha, **how)]


READ = "data", "sql"
PLANS = (
    Plan(("gap",), ("gap", *DEFAULTS, *READ), _certificate, plans.certificate),
    Plan(tuple(MEASURES), (*MEASURES, "beta", "rate", "expected_auroc", *READ), _measures, plans.measures),
    Plan(("strong",), ("strong", "rows", "error", "share", "power", "order", "beta", *READ), _strong, plans.subgroups),
)
LOG = Plan(
    (), ("by", "bins", "intersections", "limit", "power", "judge", "draws", "steps", *READ), _log, plans.decidable
)
