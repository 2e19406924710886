"""What every analysis returns: four frozen shapes that round-trip through plain dictionaries."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal, localcontext
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NoReturn, Self, TypeAlias, TypeVar

from calibrant.errors import BadInput

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.axes import Axes

T = TypeVar("T")
Frame: TypeAlias = Any  # of pandas or Polars, which may be missing
Guarantee = Literal["finite-sample", "asymptotic", "as published"]
Side = Literal["two-sided", "lower", "upper"]
DRAWN_BY = "calibrant.report.figures.charts"  # loaded when a chart is asked for: pixels come last
PLOTTED_BY = "calibrant.report.figures.plots"  # and this when it is drawn on axes
SHOWN_BY = "calibrant.report.outputs.notebook"  # and this when a notebook shows a result
INFINITIES = {"inf": math.inf, "-inf": -math.inf}
ESCAPE = "\\"
SURE: dict[Guarantee, str] = {  # what a range rests on, in a word
    "finite-sample": "guaranteed",
    "asymptotic": "approximate",
    "as published": "as published",
}


def escaped(text: str) -> str:
    """A text as `plain` writes it: one that would read as an infinity has a backslash more before it."""
    return ESCAPE + text if text.lstrip(ESCAPE) in INFINITIES else str(text)


def plain(value: Any, text: Callable[[str], str] = escaped) -> Any:
    """Turn a result, or anything inside one, into what JSON can hold; infinities become ``"inf"`` and ``"-inf"``."""
    if isinstance(value, str):
        return text(value)
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if isinstance(value, Mapping):
        return {str(k): plain(v, text) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v, text) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if hasattr(value, "item") and getattr(value, "ndim", None) == 0:
        return plain(value.item(), text)
    if hasattr(value, "tolist"):
        return plain(value.tolist(), text)
    return value


def frozen(value: Any) -> Any:
    """Make what `plain` wrote immutable: lists become tuples, objects read-only mappings, infinities numbers again."""
    if isinstance(value, str) and value.lstrip(ESCAPE) in INFINITIES:
        return INFINITIES.get(value, value[1:])
    if isinstance(value, Mapping):
        return MappingProxyType({k: frozen(v) for k, v in value.items()})
    if isinstance(value, (list, tuple)):
        return tuple(frozen(v) for v in value)
    return value


def decoded(d: Mapping[str, object], kind: type[T]) -> T:
    """The value that plain data describe, with the types that its fields declare."""
    return converted(frozen(d), kind)


def converted(value: object, kind: type[T]) -> T:
    """Data as a type has them.

    Raises
    ------
    BadInput
        The data do not fit; the message says where, as a path from ``$``.
    """
    import msgspec

    try:
        return msgspec.convert(value, kind, dec_hook=_own)
    except msgspec.ValidationError as e:
        raise BadInput(f"no {kind.__name__} as `to_dict` writes one: {str(e)[0].lower()}{str(e)[1:]}") from None


def _own(kind: type[T], value: object) -> T:
    """A sequence of a type of its own, which says how it reads plain data."""
    read: Callable[[object], T] | None = getattr(kind, "of_plain", None)
    if read is not None:
        return read(value)
    if isinstance(value, kind):  # `object`, which all are
        return value
    raise NotImplementedError(f"{kind.__name__} is no type of a result")


# ---- plain data that may come from anyone ----

DEEPEST, MOST, LONGEST = 16, 1 << 23, 400  # lists within lists; values; digits of a whole number


def plain_json(text: str, fix: str) -> Any:
    """What JSON text holds: every name once, no number that JSON has not, no deeper than what is written here."""
    if text.count(",") + text.count("[") + text.count("{") > MOST:
        raise BadInput(f"it holds more than {MOST:,} values: {fix}")
    try:
        value = json.loads(text, object_pairs_hook=_once, parse_int=_whole, parse_constant=_no_number)
    except RecursionError:
        raise BadInput(f"not JSON (its lists are nested too deep): {fix}") from None
    except ValueError as e:
        raise BadInput(f"not JSON ({e}): {fix}") from None
    level = [value] if isinstance(value, (list, dict)) else []
    for _ in range(DEEPEST):
        inside = (v for kept in level for v in (kept.values() if isinstance(kept, dict) else kept))
        level = [v for v in inside if isinstance(v, (list, dict))]
    if level:
        raise BadInput(f"its lists are nested deeper than {DEEPEST}: {fix}")
    return value


def _once(pairs: Sequence[tuple[str, object]]) -> dict[str, object]:
    """An object, of which a reader must not see one half and another reader the other."""
    value = dict(pairs)
    if len(value) < len(pairs):
        twice = next(name for name, n in Counter(name for name, _ in pairs).items() if n > 1)
        raise ValueError(f"{twice[:60]!r} is there twice")
    return value


def _whole(digits: str) -> int:
    if len(digits) > LONGEST:
        raise ValueError(f"a whole number has {len(digits):,} digits")
    return int(digits)


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number")


def _hashed(value: Any) -> int:
    """One number for all plain data that are equal."""
    if isinstance(value, Mapping):
        return hash(frozenset((k, _hashed(v)) for k, v in value.items()))
    return hash(tuple(map(_hashed, value))) if isinstance(value, list) else hash(value)


class Plain:
    """Dictionary round-trip shared by the result shapes: two are equal that are written alike."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self is other or self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash((type(self), _hashed(self.to_dict())))

    def to_dict(self) -> dict[str, Any]:
        """The result as plain lists, dictionaries, numbers and strings."""
        return {f.name: plain(getattr(self, f.name)) for f in fields(self)}  # type: ignore[arg-type]

    @classmethod
    def from_dict(cls, d: Mapping[str, Any]) -> Self:
        """Rebuild the result that `to_dict` described."""
        return decoded(d, cls)

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return type(self).from_dict, (self.to_dict(),)


class Framed:
    """What can be read as a table, in the library of the frame that its data came in."""

    __slots__ = ("_library",)

    def to_arrow(self) -> pa.Table:
        """The table as a `pyarrow.Table`."""
        raise NotImplementedError

    @property
    def library(self) -> str:
        """The library of the frame that the data came in: ``"pandas"``, ``"polars"``, or nothing."""
        return str(getattr(self, "_library", ""))

    def remember(self, library: str) -> None:
        """Note the library of the frame that the data came in."""
        object.__setattr__(self, "_library", library)

    def to_frame(self) -> Frame:
        """The table as a frame: of Polars where the data came in one, else of pandas.

        Raises
        ------
        ImportError
            That library is missing; `to_arrow` needs none.
        """
        return _framed(self.to_arrow(), self.library)

    def to_pandas(self) -> Frame:
        """The table as a `pandas.DataFrame`."""
        return _framed(self.to_arrow(), "pandas")


def _framed(table: pa.Table, library: str) -> Frame:
    """An Arrow table as a frame of Polars, or else of pandas."""
    name = library or "pandas"
    try:
        module = import_module(name)
    except ImportError:
        raise ImportError(f"a frame needs {name}: pip install {name}, or take to_arrow()") from None
    return module.from_arrow(table) if name == "polars" else table.to_pandas()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Interval(Plain):
    """A range that holds the target with probability at least `level`.

    A *certified range* joins ends about two displays of one score (the estimate's ``settings["about"]`` says so); each
    end holds for its own, and the low end can then lie above the high one.

    Parameters
    ----------
    low, high : float
        The ends, in the unit of the estimate. A one-sided certificate has the trivial other end.
    level : float in (0, 1)
        The probability, over repeated samples, that the range holds the target.
    guarantee : {"finite-sample", "asymptotic", "as published"}
        What that probability rests on.
    """

    low: float
    high: float
    level: float
    guarantee: Guarantee

    def __contains__(self, number: float) -> bool:
        return self.low <= number <= self.high

    def __iter__(self) -> Iterator[float]:
        """Both ends, for ``low, high = estimate.interval``."""
        return iter((self.low, self.high))

    def __str__(self) -> str:
        return format(self, ".3f")

    def __format__(self, spec: str) -> str:
        """Both ends as this writes numbers, each rounded outward: ``0.009 to 0.014``."""
        return f"{_rounded(self.low, spec, ROUND_FLOOR)} to {_rounded(self.high, spec, ROUND_CEILING)}"


def _one_row(values: Mapping[str, object]) -> pa.Table:
    import pyarrow as pa

    return pa.table({name: [value] for name, value in values.items()})


def _rounded(number: float, spec: str, direction: str) -> str:
    """A number as a format specification writes it, rounded in one direction where digits are cut."""
    if "." not in spec or not math.isfinite(number):
        return format(number, spec)
    with localcontext() as exact:
        exact.rounding, exact.prec = direction, 400  # a float's decimals are at most some hundreds
        return format(Decimal(repr(number)), spec)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Estimate(Framed, Plain):
    """A number with its interval and everything needed to judge it.

    It prints as a number with its range, ``0.012 (0.009 to 0.015), guaranteed``, ends rounded outward; ``f"{e:.4f}"``
    has other digits. ``float(e)`` and ``round(e, 3)`` are the value, ``low, high = e.interval`` the ends. Compare an
    end: ``e.high < 0.02``. With a finite-sample guarantee ``<``, ``<=``, ``>`` and ``>=`` raise `TypeError`, for the
    value guarantees nothing; of other estimates they compare values. ``==`` is agreement in everything, never with a
    number.

    Parameters
    ----------
    method : str
        The function that made it, such as ``"certify.rounded"``.
    value : float
        The point estimate.
    unit : str
        ``"probability"`` (0.01 is one point), ``"rows"``, ``"ratio"`` or ``""``.
    n : int
        Rows used.
    interval : Interval
    assumes : str
        The assumption, in one line.
    settings : Mapping
        Every setting that changes the number, and facts about how it was found.
    """

    method: str
    value: float
    unit: str
    n: int
    interval: Interval
    assumes: str
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def low(self) -> float:
        """The low end of the interval."""
        return self.interval.low

    @property
    def high(self) -> float:
        """The high end of the interval."""
        return self.interval.high

    def __float__(self) -> float:
        return float(self.value)

    def __round__(self, digits: int | None = None) -> float:
        return round(float(self.value), digits)

    def __format__(self, spec: str) -> str:
        """Value and interval as this writes numbers: ``0.012 (0.009 to 0.014)``."""
        return f"{format(self.value, spec)} ({format(self.interval, spec)})"

    def __str__(self) -> str:
        return f"{self:{',.0f' if self.unit == 'rows' else '.3f'}}, {SURE[self.interval.guarantee]}"

    def to_arrow(self) -> pa.Table:
        """The value, its interval and what that rests on, as a `pyarrow.Table` of one row."""
        inputs = {"method": self.method, "value": float(self.value), "low": self.low, "high": self.high}
        level = {"level": self.interval.level, "guarantee": self.interval.guarantee}
        return _one_row(inputs | level | {"unit": self.unit, "n": self.n})

    def _compared(self, other: float | Estimate) -> float:
        """The value, if no guarantee would be passed over."""
        for one in (self, other):
            if isinstance(one, Estimate) and one.interval.guarantee == "finite-sample":
                raise TypeError(
                    f"{one.method} is a range with a guarantee, not a number: compare .high or .low, such as "
                    "estimate.high < 0.02 (or .value, which guarantees nothing)"
                )
        return float(self)

    def __lt__(self, other: float | Estimate) -> bool:
        return self._compared(other) < float(other)

    def __le__(self, other: float | Estimate) -> bool:
        return self._compared(other) <= float(other)

    def __gt__(self, other: float | Estimate) -> bool:
        return self._compared(other) > float(other)

    def __ge__(self, other: float | Estimate) -> bool:
        return self._compared(other) >= float(other)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Layered(Plain):
    """A number in two layers: what is estimated of it, and what is guaranteed.

    The estimate decides nothing, and is never hidden. It does not compare as a number: compare an end of `guaranteed`.

    Parameters
    ----------
    value : float
        The point estimate.
    interval : Interval or None
        Its ordinary interval, which holds in large samples: cluster-robust where rows share clusters, and of the
        Clopper-Pearson kind where events are few. None where no such interval is known: clusters that cross, or a ratio
        to less than one expected event.
    guaranteed : Interval or None
        What holds at this number of rows; its level is that of all ranges of the same family together. None where
        nothing is proved.
    p_value : float
        Against "there is none": no gap, or no error. It holds at this number of rows, and is shared with nobody.
    assumes : str
        What the guarantee takes for granted, in one line.
    settings : Mapping
        What the guarantee is about, and how it was made.
    """

    value: float
    interval: Interval | None
    guaranteed: Interval | None
    p_value: float
    assumes: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __format__(self, spec: str) -> str:
        """Value and both ranges as this writes numbers: ``0.012 (0.010 to 0.014; certified 0.008 to 0.017)``."""
        ranges = [] if self.interval is None else [format(self.interval, spec)]
        ranges += [] if self.guaranteed is None else [f"certified {format(self.guaranteed, spec)}"]
        return f"{format(self.value, spec)} ({'; '.join(ranges)})" if ranges else format(self.value, spec)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Outcome(Framed, Plain):
    """What a test found. A small p-value is a finding; a large one is not proof of none.

    Parameters
    ----------
    method, alternative, null : str
        The test, the alternative it has power for, and the null hypothesis it simulates or derives.
    statistic, p_value : float
    law : str
        Where the p-value comes from: ``"exact simulation"``, ``"asymptotic"``, ...
    settings, parts : Mapping
        Settings; and the statistics and p-values the result is made of.
    """

    method: str
    statistic: float
    p_value: float
    alternative: str
    null: str
    law: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    parts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def pvalue(self) -> float:
        """`p_value`, as SciPy calls it."""
        return self.p_value

    def to_arrow(self) -> pa.Table:
        """The statistic and its p-value, as a `pyarrow.Table` of one row."""
        names = ("method", "statistic", "p_value", "alternative", "null", "law")
        return _one_row({name: getattr(self, name) for name in names})

    def __format__(self, spec: str) -> str:
        """The p-value as this writes numbers, never rounded down: ``p = 0.013``."""
        return f"p = {_rounded(self.p_value, spec, ROUND_CEILING)}"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Curve(Framed, Plain):
    """A small table to draw: named columns of equal length.

    Parameters
    ----------
    method : str
    columns : Mapping of str to tuple
    settings : Mapping
    """

    method: str
    columns: Mapping[str, tuple[Any, ...]]
    settings: Mapping[str, Any] = field(default_factory=dict)

    def to_arrow(self) -> pa.Table:
        """The columns as a `pyarrow.Table`."""
        import pyarrow as pa

        return pa.table({k: list(v) for k, v in self.columns.items()})

    def chart(self) -> Any:
        """The curve as an interactive `altair` chart with tooltips.

        Raises
        ------
        NotComputable
            There is no picture for this kind of curve, or nothing to draw.
        ImportError
            Altair is missing: ``pip install "calibrant[charts]"``.
        """
        try:
            drawing = import_module(DRAWN_BY)
        except ModuleNotFoundError as e:
            if e.name != "altair":
                raise
            raise ImportError('a chart needs Altair: pip install "calibrant[charts]"') from None
        return drawing.chart(self)

    def plot(self, ax: Axes | None = None) -> Axes:
        """The curve on axes of Matplotlib, with titles in the user's units.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        matplotlib Axes
            The first, where maps of several groups have axes each.

        Raises
        ------
        NotComputable
            It is a table of several things and no curve, or empty: take ``to_frame()``. Or `ax` cannot hold maps of
            several groups.
        ImportError
            Matplotlib is missing: ``pip install "calibrant[displays]"``.
        """
        drawn: Axes = import_module(PLOTTED_BY).plot(self, ax)
        return drawn

    def __repr__(self) -> str:
        rows = len(next(iter(self.columns.values()), ()))
        return f"Curve(method={self.method!r}, {rows:,} rows of {', '.join(self.columns) or 'no columns'})"

    def _repr_html_(self) -> str:
        """What a notebook shows, without a network: a picture where there is one, else the first rows."""
        html: str = import_module(SHOWN_BY).curve(self)
        return html
