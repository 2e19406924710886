"""What a certificate of everyone's error, or of the worst of many, says of itself; `calibrant certify` offers those.

To add a certificate, write one file next to this one, with its function under ``@certificate(...)``, and its
line in the face of the folder. Nothing else lists the certificates.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar, get_type_hints

from calibrant.results import Curve, Estimate, Side

Function = TypeVar("Function", bound=Callable[..., Estimate | Curve])


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting that is a certificate's own, as an option of the command."""

    name: str  # the keyword of the function; the option is `--name`, with `-` for `_`
    default: int | float | None  # its type is the option's; a number is None where there is none to start with
    letter: str  # stands for the value in the help
    help: str  # what the setting is, after "of <certificate>: "


@dataclass(frozen=True, slots=True)
class Certificate:
    """One certificate."""

    # `function(data, *, alpha, side, seed)` and its own settings by keyword, returning an `Estimate`; of a table
    # without `side`, returning a `Curve`.
    function: Callable[..., Estimate | Curve]
    order: int  # its place in the command's table
    usual: bool  # printed where no certificate is named
    # What `--side two-sided` asks of it: a bound with one end that can be had spends all of alpha on that end.
    side: Side
    settings: tuple[Setting, ...]
    tests: bool  # it reads what a sketch holds if it is made with `tests=True`
    grouped: bool  # it is about the groups of a sketch that was made with them

    @property
    def table(self) -> bool:
        """It tells several ranges at once, as a curve does."""
        return bool(get_type_hints(self.function)["return"] is Curve)

    @property
    def name(self) -> str:
        """The name of the function, which users and the command know it by."""
        return self.function.__name__


_DECLARED: dict[str, Certificate] = {}


def certificate(
    *,
    order: int,
    usual: bool = False,
    side: Side = "two-sided",
    settings: tuple[Setting, ...] = (),
    tests: bool = False,
    grouped: bool = False,
) -> Callable[[Function], Function]:
    """Declare a function as a certificate; the arguments are those of `Certificate`."""

    def declared(function: Function) -> Function:
        _DECLARED[function.__name__] = Certificate(function, order, usual, side, settings, tests, grouped)
        return function

    return declared


def certificates() -> tuple[Certificate, ...]:
    """Return every certificate that the files of this folder declare, in order; the face imports them all."""
    return tuple(sorted(_DECLARED.values(), key=lambda c: c.order))
