"""What a look found: a frozen value of plain facts, which `report` puts into words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

from calibrant.results import Curve, Framed, Plain

if TYPE_CHECKING:
    import pyarrow as pa

REPORTED_BY = "calibrant.report.looked"  # loaded when a look is printed: words come last
NO_NUMBER = "no number"  # why one value makes text of a column of numbers
UNLABELLED = "label missing"  # why a row may be left out, or counted apart
WEIGHTLESS = "weight of 0"  # why a row is left out whatever is done about missing values

Role = Literal["", "label", "score", "group", "key", "cluster", "weights", "covariate", "left out"]


@dataclass(frozen=True, slots=True)
class Kind:
    """What follows from the kind of a column."""

    identifies: bool = False  # a value tells one row, or one cluster of rows, from all others
    names: bool = False  # values are names: how many differ says more than where they begin and end
    listed: bool = False  # the most frequent values are kept, and shown
    worded: bool = False  # text, perhaps of numbers or dates but for a few values
    ends: bool = False  # where values are numbers, the least and the greatest are kept


KINDS = {
    "number": Kind(ends=True),
    "yes/no": Kind(listed=True, ends=True),
    "constant": Kind(listed=True, ends=True),
    "category": Kind(names=True, listed=True, worded=True),
    "code": Kind(names=True, listed=True, ends=True),
    **dict.fromkeys(("id", "cluster"), Kind(identifies=True, names=True, worded=True, ends=True)),
    "text": Kind(names=True),
    **dict.fromkeys(("date", "empty", "other", "unusable"), Kind()),
}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Column(Plain):
    """What one column holds, seen by itself: no column is ever held against another.

    Parameters
    ----------
    name : str
    kind : str
        ``"number"``, ``"category"``, ``"code"`` (digits that are names), ``"date"``, ``"id"`` (each row its own),
        ``"cluster"`` (several rows share one: a patient, a site), ``"text"``, ``"constant"``, ``"empty"``, ``"other"``.
    role : str
        What it is in the audit: ``"label"``, ``"score"``, ``"group"``, ``"key"``, ``"cluster"``, ``"weights"``,
        ``"covariate"``, ``"left out"``.
    why : str
        What made it this kind, or left it out.
    stored : str
        Its type as it is stored.
    missing : int
        Rows that hold nothing, NaN or empty text there, of those that were read.
    missing_in_all : int or None
        Of all rows, where not all were read and the files say so.
    distinct : int or None
        Different values; None where they cannot be counted.
    low, high : float or str or None
        Of numbers and dates.
    frequent : tuple of (str, int)
        The most frequent values of a category or code, and their rows.
    """

    name: str
    kind: str
    role: Role = ""
    why: str = ""
    stored: str = ""
    missing: int = 0
    missing_in_all: int | None = None
    distinct: int | None = None
    low: float | str | None = None
    high: float | str | None = None
    frequent: tuple[tuple[str, int], ...] = ()

    @property
    def of_kind(self) -> Kind:
        """What follows from its kind."""
        return KINDS[self.kind]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Look(Framed, Plain):
    """What a source holds and the audit that it calls for; made by `calibrant.inspect`.

    Parameters
    ----------
    name : str
    holds : {"rows", "sketch"}
    files : tuple of str
        The first 20.
    rows : int or None
        In all; None where only reading everything would tell.
    rows_read : int
        Rows that were looked at: all of them, or as many from evenly spread places.
    columns : tuple of Column
    label, score : str
        As named, or the one column that could be it; empty where it has to be named.
    event : str
        The label value that would count as the event.
    label_values : tuple of (str, int)
        The label's values and their rows, most frequent first; at most 12.
    scale : str
        What the scores look like: ``"probability"``, ``"percent"``, ``"logit"``, ``"decision"`` (0 and 1 only),
        ``"rounding"`` (a trifle outside 0 to 1), ``"points"`` (points, ranks or deciles, unless they are percent),
        ``"outliers"`` (probabilities but for one in a hundred or fewer), ``"other"``, or empty without a score.
    candidates : Mapping of str to tuple of str
        Columns that could be the label, score, groups (``"by"``), key, cluster and weights, best first, by name and
        content alone; those that reproduce the ``"outcome"``, each with how well. ``"classes"``: a column of
        probabilities for each class, which add up to one; ``"truth"``: what says which class it was; ``"grade"``:
        rating grades next to a PD and a default.
    one_outcome : tuple of tuple of str
        Columns, alone or two together, within whose values the label never changes, though chance does not do that.
    dropped : Mapping of str to int
        Rows that ``--missing drop`` would leave out, by reason; ``--missing keep`` counts those without a label alone.
        Those with a ``"weight of 0"`` are left out either way.
    first_dropped : str
        Where the first of the rows without label or score stands, such as ``"line 3,212 of visits.csv"``; empty if all
        rows have both.
    repeats : int or None
        Rows that are in every column that can be read as an earlier one; None where that cannot be counted, or where
        label or score cannot be read.
    warnings : tuple of str
        Codes of what the reader should know, such as ``"equal-rows"``.
    refusals : tuple of str
        All that would make the audit refuse, each with its fix; empty where it would run.
    command : str
        The audit to run, quoted for a shell, or as a call of Python where the data is no file; of several classes that
        of one of them. Empty where scores may be points: no audit takes these.
    decides : Curve or None
        What so many rows can decide, of everyone and of the groups proposed (of more than six the largest and the
        smallest): as `calibrant.certify.decidable`, from 20 drawn sets. None where no audit would run.
    settings : Mapping
        What was asked for, and what a sketch was made with.
    """

    name: str
    holds: Literal["rows", "sketch"] = "rows"
    files: tuple[str, ...] = ()
    rows: int | None = None
    rows_read: int = 0
    columns: tuple[Column, ...] = ()
    label: str = ""
    score: str = ""
    event: str = ""
    label_values: tuple[tuple[str, int], ...] = ()
    scale: str = ""
    candidates: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    one_outcome: tuple[tuple[str, ...], ...] = ()
    dropped: Mapping[str, int] = field(default_factory=dict)
    first_dropped: str = ""
    repeats: int | None = None
    warnings: tuple[str, ...] = ()
    refusals: tuple[str, ...] = ()
    command: str = ""
    decides: Curve | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def whole(self) -> bool:
        """Every row was read, so that all counts are exact."""
        return self.rows_read == self.rows

    def column(self, name: str) -> Column | None:
        """A column by its name, if there is one."""
        return next((c for c in self.columns if c.name == name), None)

    def lines(self) -> tuple[str, ...]:
        """The look in a few lines, without the command."""
        text: str = import_module(REPORTED_BY).short(self)
        return tuple(text.splitlines())

    def to_arrow(self) -> pa.Table:
        """The columns as a `pyarrow.Table`, a row each."""
        import pyarrow as pa

        reported = {f.name: [getattr(c, f.name) for c in self.columns] for f in fields(Column)}
        for end in ("low", "high"):
            reported[end] = [None if v is None else str(v) for v in reported[end]]
        reported["frequent"] = ["; ".join(f"{v}: {n}" for v, n in pairs) for pairs in reported["frequent"]]
        return pa.table(reported)

    def __repr__(self) -> str:
        text: str = import_module(REPORTED_BY).brief(self)
        return text

    def __str__(self) -> str:
        text: str = import_module(REPORTED_BY).written(self)
        return text

    def _repr_html_(self) -> str:
        html: str = import_module(REPORTED_BY).html(self)
        return html
