"""What a sketch summarises, fixed before any label is read: columns, levels of the variables, blocks, seed."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Annotated, Literal, Protocol

import msgspec
import numpy as np
import pyarrow as pa
from msgspec import Meta
from numpy.typing import NDArray

from calibrant.arguments import LARGEST_SEED, Missing, checked_seed
from calibrant.data.columns import as_float, level_codes
from calibrant.data.layouts import changed, decoded, periods, plain
from calibrant.data.specs.attributes import MOST, Attribute
from calibrant.data.specs.coding import MISSING, OTHER, SCORE, Codes, Coding
from calibrant.data.specs.local import LocalSpec, increasing
from calibrant.data.specs.sketch_file import need
from calibrant.errors import BadInput

Kind = Literal["category", "number", "month", "quarter", "year", "decade"]

SPEC_VERSION = 6
UNSPACED = 10_000  # bins of smaller numbers, years among them, are written without a comma

# What a stored spec may ask for, so that a small file takes little memory.

MOST_GROUPS = 4000  # of one block's counts of 8: 0.29 MB each
MOST_BLOCKS = 64
MOST_CELLS = 1024  # along a number
MOST_SAMPLED = 1_000_000
PARTS = "spec.sample", "is not that of clusters and weights"
WEIGHTS = "spec.weights", "is the label, the score, the cluster or the key"


@dataclass(frozen=True, kw_only=True)
class Variable:
    """How one covariate becomes levels."""

    name: str
    kind: Kind  # month, quarter, year and decade are dates, by that unit
    values: tuple[str, ...] = ()  # levels of a category or of dates, as text; empty for a number
    # Increasing inner edges of a number's bins, each bin closed on the left; empty for a category.
    edges: tuple[float, ...] = ()
    whole: bool = False  # the number takes whole values only, so bins are named ``"18–24"`` and not ``"18 to 25"``
    folded: Annotated[int, Meta(ge=0, le=2**63 - 1)] = 0  # less frequent values that share the level "other"

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """Names of the levels, in order; a category ends in "other", and everything in "missing".

        Where the data has such a value of its own, the reserved level is in brackets.
        """
        if self.kind == "number":
            return (*bin_labels(self.edges, self.whole), MISSING)
        return (*self.values, *(f"({r})" if r in self.values else r for r in (OTHER, MISSING)))

    @property
    def of_text(self) -> bool:
        """Whether the column held text, for all that its values tell."""
        return self.kind == "category" and not (set(self.values) <= {"true", "false"} or all(map(_plain, self.values)))

    def codes(self, column: pa.Array | pa.ChunkedArray) -> Codes:
        """The level of each value of a column as int32; see `labels` for their order."""
        column = plain(column, self.name)
        if self.kind == "number":
            values = as_float(column, self.name, "group")
            codes = np.searchsorted(np.asarray(self.edges), values, side="right").astype(np.int32)
            codes[np.isnan(values)] = len(self.labels) - 1
            return codes
        kept = column if self.kind == "category" else periods(decoded(column), self.kind, self.name)
        result = level_codes(kept, self.values)
        if result is None:
            raise changed(self.name, "group", f"values such as {self.values[0]!r}", column.type)
        return result

    def counts(self, column: pa.Array | pa.ChunkedArray) -> NDArray[np.int64]:
        """How many values of a column have each level: those of `codes`, sooner where a number has few levels."""
        if self.kind != "number":
            return np.bincount(self.codes(column), minlength=len(self.labels))
        values = as_float(plain(column, self.name), self.name, "group")
        missing = int(np.count_nonzero(np.isnan(values)))
        from_each = [len(values) - missing, *(int(np.count_nonzero(values >= e)) for e in self.edges), 0]
        return np.append(-np.diff(from_each), missing)

    def check(self, where: str) -> None:
        """Refuse stored levels that no column can have led to."""
        need(not (self.values if self.kind == "number" else self.edges), where, "has both values and edges")
        need(len(self.values) + len(self.edges) <= MOST_GROUPS, where, f"has {len(self.values):,} levels")
        need(increasing(self.edges), where, "has edges that do not increase")
        need(len(set(self.values)) == len(self.values), where, "has one value twice")
        need(len(self.labels) <= MOST_GROUPS, where, f"has {len(self.labels):,} levels")


def _plain(text: str) -> bool:
    """Tell a number as a number is written, so not "007"."""
    try:
        return text in (f"{float(text):.0f}", repr(float(text)))
    except ValueError:
        return False


def bin_labels(edges: tuple[float, ...], whole: bool) -> tuple[str, ...]:
    """Name the bins between edges as a reader would."""
    if not edges:
        return ("all values",)
    comma = "," if max(abs(e) for e in edges) >= UNSPACED else ""
    text = [f"{e:,.6g}".replace(",", comma) for e in edges]
    if not whole:
        inner = [f"{a} to {b}" for a, b in pairwise(text)]
        return (f"under {text[0]}", *inner, f"{text[-1]} and over")
    last = [f"{e - 1:,.0f}".replace(",", comma) for e in edges]
    inner = [a if a == b else f"{a}–{b}" for a, b in zip(text, last[1:], strict=False)]
    return (f"{last[0]} and under", *inner, f"{text[-1]} and over")


ATTACHED = "cluster", "weights"  # parts of columns that say how rows depend, and how much each counts


class Named(Protocol):
    """What names columns, each by its part."""

    @property
    def label(self) -> str: ...
    @property
    def score(self) -> str: ...
    @property
    def key(self) -> tuple[str, ...]: ...
    @property
    def cluster(self) -> str: ...
    @property
    def weights(self) -> str: ...


def roles(named: Named, by: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """Columns by the part they play."""
    one = {role: getattr(named, role) for role in ("label", "score", *ATTACHED)}
    return {role: (name,) for role, name in one.items() if name} | {"group": by, "key": named.key}


def attached(named: Named) -> tuple[str, ...]:
    """The columns of clusters and of weights, if any are named: then rows are not independent, or not equal."""
    return tuple(name for name in (getattr(named, role) for role in ATTACHED) if name)


@dataclass(frozen=True, kw_only=True)
class Spec:
    """Everything that decides what a sketch counts; two sketches merge only if their specs are equal.

    Parameters
    ----------
    label, score : str
        Column names, for messages and reports.
    positive : str or None
        The label value that counts as the event; None when labels are 0 and 1.
    variables : tuple of Variable
    groupings : tuple of tuple of str
        Variables, or pairs of variables, whose levels are the groups.
    key : tuple of str
        Columns that identify a row; empty for file and row number.
    seed, blocks : int
        Seed and number of random blocks.
    codings : tuple of Coding
        Covariates of the curves and tests, and how each becomes numbers or levels.
    left_out : tuple of (str, str)
        Columns that are no attributes or cannot be used, with the reason.
    in_question : tuple of (str, str)
        Covariates that may reproduce the outcome, and how well they do: kept, and asked about.
    allowed : tuple of str
        Columns that were kept though they reproduce the outcome or the score.
    sample : int
        Whole rows kept, at most; 0 for none.
    local : LocalSpec or None
        Features of the local test, if its sums are kept.
    attributes : tuple of Attribute
        The score and the covariates as boxes cut them, if their sums are kept.
    percent : bool
        Scores are percent, divided by 100 as they are read.
    missing : {"level", "drop", "keep", "refuse"}
        A missing group or covariate is a level of its own, and a missing label or score is refused; or rows with a
        missing label or score are left out and counted; or rows with a missing label are counted apart, by score and
        group; or anything missing is refused.
    cluster : str
        Column whose equal values are one cluster: its rows may depend on one another. Empty where rows are independent.
    weights : str
        Column of positive numbers: how much a row counts. Empty where every row counts alike.
    numbered : bool
        A row is known by key, or by file and number; where it is not, by its unit alone.
    """

    label: str
    score: str
    positive: str | None = None
    variables: tuple[Variable, ...] = ()
    groupings: tuple[tuple[str, ...], ...] = ()
    key: tuple[str, ...] = ()
    seed: Annotated[int, Meta(ge=0, le=LARGEST_SEED)] = 0
    blocks: Annotated[int, Meta(ge=1, le=MOST_BLOCKS)] = 8
    codings: tuple[Coding, ...] = ()
    left_out: tuple[tuple[str, str], ...] = ()
    in_question: tuple[tuple[str, str], ...] = ()
    allowed: tuple[str, ...] = ()
    sample: Annotated[int, Meta(ge=0, le=MOST_SAMPLED)] = 0
    local: LocalSpec | None = None
    attributes: tuple[Attribute, ...] = ()
    percent: bool = False
    missing: Missing = "level"
    cluster: str = ""
    weights: str = ""
    numbered: bool = True
    version: int = SPEC_VERSION

    def __post_init__(self) -> None:
        checked_seed(self.seed)

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Columns to read: score, label, variables, covariates, key, cluster, weights; each once."""
        covariates = (c.name for c in self.codings)
        own = (self.score, self.label, *self.by_name, *covariates, *self.key)
        return tuple(dict.fromkeys((*own, *self.row_attributes)))

    @property
    def row_attributes(self) -> tuple[str, ...]:
        """The columns of clusters and of weights, if there are any: then rows are not independent, or not equal."""
        return attached(self)

    @property
    def roles(self) -> dict[str, tuple[str, ...]]:
        """Columns by the part they play, covariates left out."""
        return roles(self, tuple(self.by_name))

    @property
    def texts(self) -> tuple[str, ...]:
        """Columns that held text when the spec was fixed."""
        groups = (v.name for v in self.variables if v.of_text)
        return tuple(dict.fromkeys((*groups, *(c.name for c in self.codings if c.of_text))))

    @cached_property
    def by_name(self) -> dict[str, Variable]:
        """Variables by name."""
        return {v.name: v for v in self.variables}

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Groups in each grouping, empty ones included."""
        out = []
        for names in self.groupings:
            size = 1
            for name in names:
                size *= len(self.by_name[name].labels)
            out.append(size)
        return tuple(out)

    @property
    def group_count(self) -> int:
        """Groups over all groupings, empty ones included."""
        return sum(self.sizes)

    def group_names(self, grouping: int) -> list[tuple[tuple[str, str], ...]]:
        """The ``(variable, level)`` pairs of each group of one grouping, in code order."""
        names: list[tuple[tuple[str, str], ...]] = [()]
        for variable in self.groupings[grouping]:
            names = [(*n, (variable, level)) for n in names for level in self.by_name[variable].labels]
        return names

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the spec."""
        return hashlib.sha256(msgspec.json.encode(self)).hexdigest()

    @property
    def counted(self) -> Spec:
        """The spec without its parts: what the counts of scores and groups depend on."""
        none = replace(self.as_read, codings=(), attributes=(), left_out=(), in_question=(), allowed=())
        return replace(none, sample=0, local=None)

    @property
    def as_read(self) -> Spec:
        """The spec without the cluster of the scores and what was done about missing values: two that agree here merge.

        Whether rows without a label are counted stays: what one counts, the other must.
        """
        return replace(self, percent=False, missing="keep" if self.keeps else "level")

    @property
    def drops(self) -> bool:
        """Rows without a label or score are left out and counted."""
        return self.missing == "drop"

    @property
    def keeps(self) -> bool:
        """Rows without a label are counted apart, by score and group."""
        return self.missing == "keep"

    def salt(self, part: str) -> int:
        """The 64-bit number mixed into the identity of every row of a part."""
        text = f"{self.seed}\x00{part}".encode("utf-8", "surrogatepass")
        return int.from_bytes(hashlib.sha256(text).digest()[:8], "little")

    def check(self) -> None:
        """Refuse a stored spec whose fields do not fit together; their types were checked when they were decoded."""
        if self.version != SPEC_VERSION:
            raise BadInput(
                f"the sketch's spec has version {str(self.version)[:20]}, this calibrant knows {SPEC_VERSION}: "
                "use the version that made it"
            )
        for name, inputs in (("key", self.key), ("variables", tuple(v.name for v in self.variables))):
            need(len(set(inputs)) == len(inputs), f"spec.{name}", "names a column twice")
        need(not {self.label, self.score} & set(self.key), "spec.key", "is the label or the score")
        need(self.cluster not in {self.label, self.score}, "spec.cluster", "is the label or the score")
        need(self.weights not in {self.label, self.score, self.cluster, *self.key} or not self.weights, *WEIGHTS)
        for v in self.variables:
            v.check(f"spec variable {v.name!r}")
        for names in self.groupings:
            sound = 1 <= len(names) <= 2 and len(set(names)) == len(names) and set(names) <= self.by_name.keys()
            need(sound, "spec.groupings", f"holds {names}")
        need(len(set(self.groupings)) == len(self.groupings), "spec.groupings", "names one twice")
        groups = self.group_count
        need(groups * self.blocks <= 8 * MOST_GROUPS, "spec.groupings", f"has {groups:,} groups")
        need(not self.row_attributes or (self.sample > 0 and not self.local and not self.attributes), *PARTS)
        need(self.numbered or (bool(self.cluster) and not self.key), "spec.numbered", "goes with a cluster alone")
        self._check_codings()

    def _check_codings(self) -> None:
        names, taken = [c.name for c in self.codings], {self.label, self.score, *self.key}
        need(len(set(names)) == len(names), "spec.codings", "names a covariate twice")
        need(not taken & set(names), "spec.codings", "names the label, the score or the key")
        need(bool(names) or not self.local, "spec.codings", "is empty, and there are tests")
        for c in self.codings:
            where = f"spec covariate {c.name!r}"
            need(c.kind != "constant", where, "is constant")
            c.check(where)
            if c.kind != "category":
                need(2 <= len(c.cells) <= MOST_CELLS + 1, where, f"has {len(c.cells) - 1} cells")
                in_order = increasing(c.cells[:-1]) and c.cells[-2] <= c.cells[-1]
                need(in_order, where, "has cells out of order")
        if self.local is not None:
            self.local.check(self.codings)
        self._check_attributes()

    def _check_attributes(self) -> None:
        if not self.attributes:
            return
        coded = {c.name: c for c in self.codings}
        need(len(coded) <= MOST, "spec.attributes", f"are {len(self.attributes):,}")
        named = SCORE not in coded and [t.name for t in self.attributes] == [SCORE, *coded]
        need(named, "spec.attributes", "are not those of the covariates")
        for t in self.attributes:
            t.check(f"spec attribute {t.name!r}", coded.get(t.name))
