"""What the command does: rows are read, validated, printed, and written as a workbook."""

from __future__ import annotations

import sys
from argparse import Namespace

from calibrant import Predictions, Sketch
from calibrant.apps.grades import files as formats
from calibrant.apps.grades import workbook
from calibrant.apps.grades.validation import grades as validation
from calibrant.arguments import Caller
from calibrant.errors import BadInput
from calibrant.toolkit.command import inputs_of, print_result, source
from calibrant.toolkit.data import FORM, OF_ROWS, Reading, checked_targets, in_memory, written
from calibrant.toolkit.report import results

OF_ALL_ROWS = Caller(command=True, lacks=("missing", "way"))
OF_GRADES = (
    "order",
    "average_pd",
    "initial_auc",
    "initial_herfindahl",
    "rho",
    "draws",
    "seed",
    "limit_relative",
    "alpha",
)


def grades(a: Namespace) -> int:
    """Print the validation of default probabilities by grade, and write its workbook."""
    columns = {k: v for k in ("grade", "end_grade", "exposure") if (v := getattr(a, k)) is not None}
    if "grade" not in columns:
        raise BadInput("name the column of the grade at the beginning of the period: --grade COLUMN")
    files, more = inputs_of(a), [a.initial] if a.initial else []
    checked_targets({f"-o {out}": formats.checked(out) for out in a.out}, [*files, *more])
    by = a.by or ()
    data = _rows(source(files, a.allow_same), a, (*columns.values(), *by))
    first = tuple(v for k, v in columns.items() if k != "end_grade")
    initial = _initial(a, first) if a.initial else None
    how = {k: v for k in OF_GRADES if (v := getattr(a, k)) is not None}
    result = validation(data, **columns, initial=initial, lights=a.lights, by=by, **how)
    for out in a.out:
        written(out, formats.content(result, out, results.CsvForm(a.csv_decimal, a.csv_digits)))
    print_result(a.json, result.to_json, lambda: workbook.lines(result))
    return 0


def _initial(a: Namespace, columns: tuple[str, ...]) -> Predictions:
    try:
        return _rows(a.initial, a, columns)
    except BadInput as e:
        raise BadInput(f"--initial {a.initial}: {e}") from None


def _rows(data: object, a: Namespace, columns: tuple[str, ...]) -> Predictions:
    if isinstance(data, Sketch):
        raise BadInput("a sketch does not hold where each customer ended: pass the rows")
    how = {k: getattr(a, k) for k in (*OF_ROWS, *FORM, "allow_same") if hasattr(a, k)}
    rows = in_memory(data, Reading.of(caller=OF_ALL_ROWS, variables=columns, **how).named())
    if late := int(rows.horizon.get("late") or 0):
        print(f"left out {late:,} rows that entered too late to be followed to the horizon", file=sys.stderr)
    return rows
