"""The commands about decisions: accept and compare."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from calibrant.arguments import COMMAND, Caller, names, of_declared
from calibrant.audit.compare import audits_compared, compared, scores_of_columns, settled
from calibrant.audit.record import AuditRecord
from calibrant.certify import rows_to_accept
from calibrant.cli.commands import EVERY, Files, Plain, data_of, inputs_of, report_left_out, source_of_rows
from calibrant.cli.standard_output import print_result
from calibrant.data.predictions import Predictions
from calibrant.data.read import classes_in_memory, in_memory
from calibrant.data.reading import FORM, Reading
from calibrant.data.specs.options import OF_HORIZON
from calibrant.data.survey import SPEC_IN_MEMORY, look_at, refuse_leaks, shared_columns
from calibrant.data.targets import checked_targets, written
from calibrant.decisions.accept import CLASS, AcceptOptions, accepted, answers
from calibrant.decisions.acceptance_curve import acceptance_at
from calibrant.decisions.comparison import ModelComparison
from calibrant.decisions.terms import TermOptions, Terms
from calibrant.errors import BadInput
from calibrant.report.outputs import decisions, results
from calibrant.sanitize import as_message
from calibrant.views.sample import sought

PLAN = ("share", "error", "power")
NONE, WITHIN = 3, 0  # exit status
OF_ALL_ROWS = Caller(command=True, lacks=("missing",))  # it takes no --missing


def accept(a: Namespace) -> int:
    """Print what may be accepted, and write the curve; or plan how many rows a wish takes."""
    if a.error is not None:
        return _planned(a)
    if stated := [name for name in ("share", "power") if getattr(a, name) is not None]:
        raise BadInput(f"{COMMAND.says(*stated)} plans: name the errors to expect with --error, and no data")
    files = inputs_of(a)
    checked_targets({f"-o {out}": results.checked(out, True) for out in a.out}, files)
    how = AcceptOptions.of(a.risk, a.end, a.target, a.alpha, a.seed)
    by, how = names("by", a.by), replace(how, allow=names("--allow", a.allow))
    data = data_of(a, files, partial(_rows, a, by=by, options=how))
    result = accepted(data, by, how)
    if a.out:
        curve, form = acceptance_at(data, by, how), results.CsvForm(a.csv_decimal, a.csv_digits)
        for out in a.out:
            written(out, results.content(curve, out, form))
    print_result(a.json, result.to_dict, lambda: decisions.accepted(result))
    return WITHIN if result.low > 0.0 else NONE


def _planned(a: Namespace) -> int:
    if a.files or a.sql or a.out:
        raise BadInput("--error plans rows, and reads none: leave the data and -o out")
    wish = {name: v for name in PLAN if (v := getattr(a, name)) is not None}
    result = rows_to_accept(risk=a.risk, alpha=a.alpha, **wish)
    print_result(a.json, result.to_dict, lambda: decisions.planned(result))
    return WITHIN


def _rows(a: Namespace, data: Files, how: Plain, by: tuple[str, ...], options: AcceptOptions) -> Predictions:
    several = Reading.of(caller=COMMAND, **how, by=tuple(name for name in by if name != CLASS), variables=EVERY)
    if several.scores:
        return _seen(a, answers(classes_in_memory(data, several), by, options), several.by)
    # every column: rows may belong together by it, and of a pool there may be groups in it
    return _seen(a, in_memory(data, Reading.of(caller=COMMAND, by=a.by, variables=EVERY, **how).named()), by)


def _seen(a: Namespace, rows: Predictions, by: tuple[str, ...]) -> Predictions:
    """The rows; refuse groups that are made of the outcome, and say what rows leave out and share.

    The predicted class is never refused.
    """
    if by:
        refuse_leaks(look_at(rows, SPEC_IN_MEMORY, by), by, names("--allow", a.allow), 0, COMMAND)
    report_left_out(rows)
    if rows.covariates is not None and not a.cluster:
        _report_shared(a, rows, rows.covariates.column_names)
    return rows


def _report_shared(a: Namespace, rows: Predictions, columns: Sequence[str]) -> None:
    """Say on standard error which rows share an outcome, or are correlated, though nobody named their cluster."""
    models = names("--score", a.score)
    look = look_at(rows, SPEC_IN_MEMORY, tuple(name for name in columns if name not in models))
    shared = shared_columns(look, SPEC_IN_MEMORY, None, names("--allow", a.allow))
    for one in sought(shared, names("--by", a.by), 0).detected[:1]:
        of_one = f"rows of one {' and '.join(one.columns)}"
        are = "share one outcome" if one.one_outcome == 1.0 else "are correlated"
        way = f"name their cluster, --cluster {'+'.join(one.columns)}, or declare rows independent, --cluster none"
        print(as_message(f"{of_one} {are}, and what is certified takes rows as independent: {way}"), file=sys.stderr)


# ---- compare ----

OF_MODELS = ("by", "cluster", "weights", "positive", "percent", "allow_same")


def compare(a: Namespace) -> int:
    """Print how models, or audits, compare."""
    files = inputs_of(a)
    checked_targets({f"-o {out}": results.checked(out, True) for out in a.out}, files)
    # audits that were kept are JSON, and no column is named
    kept = bool(a.files) and all(f.endswith(".json") for f in a.files) and a.label is None and not a.score
    result = _audits(a) if kept else _models(a)
    for out in a.out:
        written(out, decisions.content(result, out, results.CsvForm(a.csv_decimal, a.csv_digits)))
    print_result(a.json, result.to_dict, lambda: decisions.compared(result))
    return result.exit_status


def _audits(a: Namespace) -> ModelComparison:
    if row_attributes := [name for name in (*OF_MODELS, "reference", "threshold", "costs") if getattr(a, name)]:
        raise BadInput(
            f"audits bring their own rows: leave {COMMAND.says(*row_attributes)} out; the first is the reference"
        )
    if len(a.files) < 2 or len(set(a.files)) < len(a.files):
        raise BadInput("name two different audits, the earlier first: calibrant compare january.json february.json")
    margin = settled(COMMAND, vars(a))
    stems = [Path(f).stem for f in a.files]
    known = stems if len(set(stems)) == len(stems) else a.files
    return audits_compared({name: AuditRecord.load(f) for name, f in zip(known, a.files, strict=True)}, margin)


def _models(a: Namespace) -> ModelComparison:
    if any(f.endswith(".json") for f in a.files) and a.label is None and not a.score:
        raise BadInput("audits are compared with audits, kept by -o audit.json; rows need --label and --score")
    models = names("--score", a.score, distinct=True)
    if len(models) < 2:
        raise BadInput("name two models or more, the reference first: --score old,new")
    if a.reference is not None and a.reference not in models:
        raise BadInput(f"--reference {a.reference}: pass one of --score, {', '.join(models)}")
    first = a.reference or models[0]
    others = tuple(m for m in models if m != first)
    options = Terms.of(caller=COMMAND, **of_declared(TermOptions, vars(a)))
    data = source_of_rows(inputs_of(a), "a sketch holds one model's scores: pass the rows")
    how = {k: getattr(a, k) for k in ("label", *OF_MODELS, *OF_HORIZON, *FORM)} | {
        "score": first,
        "variables": () if a.cluster else EVERY,
    }
    reading = Reading.of(caller=OF_ALL_ROWS, **how).named()
    rows = _seen(a, in_memory(data, reading, others), names("--by", a.by))
    return compared(rows, scores_of_columns(rows, others, reading), names("--by", a.by), options)
