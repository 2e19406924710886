"""What a certificate says of itself, what runs it, and which of them `calibrant certify` offers.

To add a certificate, write one file next to this one, with its function under ``@certificate(...)``, and its
line in the face of the folder. Nothing else lists the certificates. One of a whole population is a `Certificate`,
which the function runs as audits and repairs do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar, get_type_hints

from calibrant.results import Curve, Estimate, Interval, Side
from calibrant.views.population import Population

Function = TypeVar("Function", bound=Callable[..., Estimate | Curve])
Settings = dict[str, object]

# ---- The certificate of one population, and what runs it ----


def trivial(_: float) -> tuple[float, Settings]:
    """The upper end where nothing is certified from above."""
    return 1.0, {}


@dataclass(frozen=True, slots=True)
class Certificate:
    """A statement about one population's error, with what certifies it from either side."""

    name: str  # of the public function
    population: Population
    about: str  # which score's error it is, in words
    below: Callable[[float, int], float]  # the lower end, of an error probability and a seed
    above: Callable[[float], tuple[float, Settings]] = trivial  # the upper, and settings that say what gave it
    estimate: float | None = None  # of the error; otherwise the middle of the ends that are asked for
    display: Settings = field(default_factory=dict)  # settings of the score
    spends: bool = False  # settings tell the error probabilities of the ends

    def run(self, spend: tuple[float, float], level: float, seed: int) -> Estimate:
        """Certify; `spend` are the error probabilities of the lower and the upper end, 0 for a trivial one."""
        q = self.population
        low = self.below(spend[0], seed) if spend[0] else 0.0
        high, route = self.above(spend[1]) if spend[1] else (1.0, {})
        ends = [end for end, share in zip((low, high), spend, strict=True) if share]
        shared = {"delta": spend[0] if self.above is trivial else spend} if self.spends else {}
        return Estimate(
            method=f"certify.{self.name}",
            value=sum(ends) / len(ends) if self.estimate is None else min(max(self.estimate, low), high),
            unit="probability",
            n=q.n,
            interval=Interval(low=low, high=high, level=level, guarantee="finite-sample"),
            assumes=q.assumes,
            settings={"about": self.about, **self.display, **route, **q.reported, **shared, "seed": seed},
        )


# ---- What the command offers ----


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting that is a certificate's own, as an option of the command."""

    name: str  # the keyword of the function; the option is `--name`, with `-` for `_`
    default: int | float | None  # its type is the option's; a number is None where there is none to start with
    letter: str  # stands for the value in the help
    help: str  # what the setting is, after "of <certificate>: "


@dataclass(frozen=True, slots=True)
class Offer:
    """A certificate as the command offers it."""

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
        """It reports several ranges at once, as a curve does."""
        return bool(get_type_hints(self.function)["return"] is Curve)

    @property
    def name(self) -> str:
        """The name of the function, which users and the command know it by."""
        return self.function.__name__


_DECLARED: dict[str, Offer] = {}


def certificate(
    *,
    order: int,
    usual: bool = False,
    side: Side = "two-sided",
    settings: tuple[Setting, ...] = (),
    tests: bool = False,
    grouped: bool = False,
) -> Callable[[Function], Function]:
    """Declare a function as a certificate; the arguments are those of `Offer`."""

    def declared(function: Function) -> Function:
        _DECLARED[function.__name__] = Offer(function, order, usual, side, settings, tests, grouped)
        return function

    return declared


def certificates() -> tuple[Offer, ...]:
    """Every certificate that the files of this folder declare, in order; the face imports them all."""
    return tuple(sorted(_DECLARED.values(), key=lambda c: c.order))
