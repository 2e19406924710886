"""Which kinds of data a function takes, and its form for each: declared in one line, asked once in each call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Concatenate, Generic, ParamSpec, TypeVar

from calibrant.data.predictions import MulticlassPredictions, Predictions, checked_data
from calibrant.data.sketches.sketch import Sketch
from calibrant.errors import NotComputable

P = ParamSpec("P")
R = TypeVar("R")


class ByKind(Generic[P, R]):
    """A function of data that has a form for each kind: ``ByKind(rows=..., counts=...)``; all others are refused.

    A sketch with clusters or weights lives by the rows that it holds, and is these rows; all others are counts. A form
    for `sketches` takes both.
    """

    def __init__(
        self,
        rows: Callable[Concatenate[Predictions, P], R],
        counts: Callable[Concatenate[Sketch, P], R] | None = None,
        sketches: Callable[Concatenate[Sketch, P], R] | None = None,
        classes: Callable[Concatenate[MulticlassPredictions, P], R] | None = None,
    ) -> None:
        forms = {Predictions: rows, Sketch: counts or sketches, MulticlassPredictions: classes}
        self.forms: dict[type, Callable[..., R]] = {kind: form for kind, form in forms.items() if form is not None}
        self.as_they_are = (Sketch,) if sketches else ()

    def __call__(self, data: object, /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the form of the data's kind; refuse other kinds as `checked_data` does."""
        checked: Callable[..., object] = checked_data
        inputs = data if isinstance(data, self.as_they_are) else checked(data, *self.forms)
        return next(form for kind, form in self.forms.items() if isinstance(inputs, kind))(inputs, *args, **kwargs)


def refuse_rows(rows: object, error: type[Exception] = NotComputable, /, **reasons: str) -> None:
    """Refuse rows that have what a method has no proof for: its attribute, such as `cluster`, and why not."""
    for name, reason in reasons.items():
        if getattr(rows, name, None) is not None:
            raise error(reason)
