"""How files and their columns are read: each argument declared once, for functions and the command."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, TypedDict

from calibrant.arguments import (
    GROUPS,
    HORIZON,
    INPUT,
    MISSING_WAYS,
    ORDERS,
    TESTS,
    Option,
    checked_seed,
    increasing,
    named,
    names,
    optional,
    text,
)
from calibrant.data.sources.standard_input import FORMATS

Columns = Iterable[str] | str | None
OF_HORIZON = "time", "event", "horizon", "entered", "closed", "competing", "way", "within"
FIRST = "label", "score", "by", "variables"  # in signatures


BY_NUMBER = ("(by number)",)  # an order of classes: that of their numbers


def order_of(name: str, value: object) -> tuple[str, ...]:
    """Names of classes from the lowest to the highest, `BY_NUMBER` for True, or none."""
    if isinstance(value, bool):
        return BY_NUMBER if value else ()
    return names(name, value, what="a class", distinct=True)


NONE = "none"  # as the horizon: labels are declared to be final


def horizons_of(name: str, value: object) -> tuple[float, ...] | str:
    """Horizons, or `NONE`."""
    listed = tuple(value) if isinstance(value, Iterable) and not isinstance(value, str) else (value,)
    return NONE if listed == (NONE,) else increasing(name, value)


class RowOptions(TypedDict, total=False):
    """How rows are read, as public functions and the command take it."""

    encoding: Annotated[str, "of files of text, such as cp1252 (default: detected)", Option("NAME", ""), INPUT]
    delimiter: Annotated[str, "between their columns, tab for a tab (default: detected)", Option("CHAR", ""), INPUT]
    decimal: Annotated[
        str, "mark of their fractions (default: detected)", Option(default="", choices=(".", ",")), INPUT
    ]
    sheet: Annotated[str, "of an Excel file that has several", Option("NAME", ""), INPUT]
    dates: Annotated[
        str, "of text such as 01/02/2019 if day and month can be either", Option(default="", choices=ORDERS), INPUT
    ]
    percent: Annotated[bool, "they are percentages, 0 to 100", INPUT]
    missing: Annotated[
        str,
        "a missing label or score is refused, other missing values are a level of their own (level, the default); "
        "rows without label, score, cluster or weight are left out and counted (drop); rows without a label are "
        "counted apart (keep); or nothing may be missing (refuse)",
        Option(default="level", choices=MISSING_WAYS),
        INPUT.first,
    ]
    drop_missing: bool  # in Python, short for ``missing="drop"``
    positive: Annotated[str | None, "the label value that counts as an event", Option("VALUE"), INPUT.first]
    cluster: Annotated[
        Columns,
        "rows of one value are one cluster (a patient); a+b is one of two columns; of a,b the coarsest counts; 'none' "
        "declares rows independent",
        INPUT.first,
    ]
    weights: Annotated[
        str | None,
        "how much each row counts: positive numbers, 0 to leave a row out",
        Option("COLUMN", check=optional(text)),
        INPUT.first,
    ]
    by: Annotated[
        Columns,
        "group columns, separated by commas; quote a name that holds one: '\"a,b\",c'",
        Option(check=names),
        GROUPS.first,
    ]


class HorizonOptions(TypedDict, total=False):
    """How outcomes by a horizon are made, as public functions and the command take it."""

    time: Annotated[
        str | None,
        "in place of --label: column of the time to the event, or to the end of follow-up; or its date",
        Option("COLUMN", check=optional(text)),
        HORIZON,
    ]
    event: Annotated[
        str | None,
        "column of what ended it: the event is 1, or what --positive names",
        Option("COLUMN", check=optional(text)),
        HORIZON,
    ]
    horizon: Annotated[
        Sequence[float] | float | str | None,
        "by when, in the unit of the times; of dates in days; an audit takes several, which share alpha; 'none' "
        "declares that every --label is final, whatever the follow-up",
        Option("H,…", check=optional(horizons_of)),
        HORIZON,
    ]
    entered: Annotated[
        str | None, "column of the date of entry, or of its time", Option("COLUMN", check=optional(text)), HORIZON
    ]
    closed: Annotated[
        str | int | None,
        "last date (or time) of follow-up: rows that entered less than the horizon before it are left out",
        Option("DATE"),
        HORIZON,
    ]
    competing: Annotated[
        Columns, "values of --event of other ends, after which the event cannot come", Option("VALUES"), HORIZON
    ]
    way: Annotated[
        str,
        "what is done about rows lost before the horizon: refused (followed, the default); weights, if being lost is "
        "independent of the outcome; or unknown, which assumes nothing",
        Option(default="followed", choices=("followed", "weights", "unknown")),
        HORIZON,
    ]
    within: Annotated[
        Columns,
        "with --way weights: being lost is independent of the outcome within levels of these columns, in place of all "
        "rows together",
        Option(check=names),
        HORIZON,
    ]


class ColumnOptions(RowOptions, HorizonOptions, total=False):
    """What an audit reads of files."""

    label: Annotated[
        Columns,
        "outcomes: 0 and 1, or any values with --positive; of several classes their names or numbers, or a column of 0 "
        "and 1 each",
        Option(check=names),
        INPUT.first,
    ]
    score: Annotated[
        Columns,
        "predicted probabilities, 0 to 1; of several classes a column each, in this order, or a pattern: 'p_*'",
        Option(check=names),
        INPUT.first,
    ]
    renormalize: Annotated[bool, "of several classes: divide each row's probabilities by their sum", INPUT]
    logits: Annotated[
        bool, "of several classes: the columns are logits, or log-probabilities: take their softmax", INPUT
    ]
    listed: Annotated[
        Columns,
        "of many classes, of which each row lists the most probable: columns that name them, one for each of --score",
        Option(check=names),
        INPUT,
    ]
    rest: Annotated[
        bool, "of several classes: what a row's probabilities lack of one is that of the class '(rest)'", INPUT
    ]
    ordered: Annotated[
        Columns | bool,
        "classes have an order, by their numbers or as named from the lowest, low,mid,high: the probability of at most "
        "each class is judged too",
        Option("NAMES", check=order_of),
        INPUT,
    ]
    allow_same: Annotated[bool, "let rows that two files hold count twice", INPUT]
    key: Annotated[Columns, "columns that identify a row (default: file and row number)", Option(check=names), INPUT]
    seed: Annotated[
        int, "assigns rows to random blocks (default 0)", Option(default=0, check=named(checked_seed)), INPUT
    ]
    variables: Annotated[
        Columns,
        "covariates to rank and test (default: every other column that can be used; 'none' for none)",
        Option(default="*", check=names),
        TESTS,
    ]
    bins: Annotated[
        Mapping[str, Sequence[float]] | None,
        "bin edges of a numeric group column, such as age=18,40,65",
        Option("COLUMN=A,B,…"),
        GROUPS,
    ]
    intersections: Annotated[bool, "also every pair of the group columns", GROUPS]
    allow: Annotated[
        Columns,
        "columns that reproduce the outcome, and that were known before it all the same",
        Option(check=names),
        TESTS,
    ]


class CommandOptions(ColumnOptions, total=False):
    """What the command takes, too."""

    format: Annotated[str, "of standard input, where its first bytes do not say", Option(choices=tuple(FORMATS)), INPUT]
