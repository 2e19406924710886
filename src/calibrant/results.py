"""What every analysis returns: four frozen shapes that round-trip through plain dictionaries."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from importlib import import_module
from types import MappingProxyType
from typing import Any, Literal, Self, TypeVar

from calibrant.errors import BadInput, NotComputable

T = TypeVar("T")
Guarantee = Literal["finite-sample", "asymptotic", "as published"]
Side = Literal["two-sided", "lower", "upper"]
DRAWN_BY = "calibrant.report.charts"  # loaded when a chart is asked for: pixels come last


def plain(value: Any) -> Any:
    """Turn a result, or anything inside one, into what JSON can hold; infinities become strings."""
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if hasattr(value, "item") and getattr(value, "ndim", None) == 0:
        return plain(value.item())
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    return value


def frozen(value: Any) -> Any:
    """Make a parsed JSON value immutable: lists become tuples, objects read-only mappings."""
    if isinstance(value, Mapping):
        return MappingProxyType({k: frozen(v) for k, v in value.items()})
    if isinstance(value, (list, tuple)):
        return tuple(frozen(v) for v in value)
    return value


def decoded(d: Mapping[str, Any], kind: type[T]) -> T:
    """Return the value that plain data describe, with the types that its fields declare.

    Raises
    ------
    BadInput
        The data do not fit; the message says where, as a path from ``$``.
    """
    import msgspec

    try:  # not strict: an infinite number is written as text
        return msgspec.convert(frozen(d), kind, strict=False)
    except msgspec.ValidationError as e:
        raise BadInput(f"no {kind.__name__} as `to_dict` writes one: {str(e)[0].lower()}{str(e)[1:]}") from None


class Plain:
    """Dictionary round-trip shared by the result shapes."""

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain lists, dictionaries, numbers and strings."""
        return {f.name: plain(getattr(self, f.name)) for f in fields(self)}  # type: ignore[arg-type]

    @classmethod
    def from_dict(cls, d: Mapping[str, Any]) -> Self:
        """Rebuild the result that `to_dict` described."""
        return decoded(d, cls)

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return type(self).from_dict, (self.to_dict(),)


@dataclass(frozen=True, slots=True, kw_only=True)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate(Plain):
    """A number with its interval and everything needed to judge it.

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome(Plain):
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve(Plain):
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

    def to_frame(self) -> Any:
        """Return the columns as a `pyarrow.Table` (``.to_pandas()``, ``polars.from_arrow``)."""
        import pyarrow as pa

        return pa.table({k: list(v) for k, v in self.columns.items()})

    def chart(self) -> Any:
        """Return the curve as an interactive `altair` chart with tooltips.

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

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Any:
        """Return what a notebook shows: the chart where there is one, else the text."""
        try:
            return self.chart()._repr_mimebundle_(include, exclude)
        except (NotComputable, ImportError):
            return {"text/plain": repr(self)}
