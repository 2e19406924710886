"""The terms of a comparison of models: what is lost, where one acts, by how much more, and of whom."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Literal, TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray

from calibrant.arguments import (
    COSTS,
    PYTHON,
    Caller,
    Option,
    acting,
    checked,
    checked_alpha,
    checked_seed,
    named,
    number,
    optional,
)
from calibrant.errors import BadInput, NotComputable
from calibrant.stats.decisions import comparison as losses

Floats = NDArray[np.float64]
Measure = Literal["brier", "log_loss", "error", "calibration_error", "auroc", "net_benefit"]
Target = Literal["population", "rows"]
MARGIN, OF_RATE = 0.005, 0.02  # the margin where no rate sets it; and its share of what a constant model loses


class TermOptions(TypedDict, total=False):
    """The settings of a comparison, as `compare` and the command take them."""

    measure: Annotated[
        Measure,
        "what a model loses (default brier); error: called wrongly at a score of 0.5",
        Option(default="brier"),
    ]
    threshold: Annotated[
        Sequence[float] | float | None,
        "of net_benefit: act from this score on; several, separated by commas, are judged simultaneously",
        Option("T,…"),
    ]
    costs: Annotated[Sequence[float] | None, COSTS, Option("FP,FN")]
    margin: Annotated[
        float | None,
        "by how much more a model may lose and be no worse, fixed before looking; default: 0.02 x rate x "
        "(1 - rate) of brier, 0.02 x the entropy of the rate of log_loss, 0.005 of auroc and audits, of others 0.005 "
        "or 0.02 x the share of the rarer outcome, whichever is less",
        Option("M", None, optional(number, least=0.0, hint="such as 0.005")),
    ]
    clip: Annotated[
        float,
        "of log_loss: scores are kept in [C, 1 - C]",
        Option("C", 0.001, partial(number, above=0, below=0.5, hint="such as 0.001")),
    ]
    target: Annotated[
        Target,
        "about future rows like these (default), or about the rows at hand, given their scores",
        Option(default="population"),
    ]
    alpha: Annotated[
        float, "error probability of all verdicts (default 0.05)", Option(default=0.05, check=named(checked_alpha))
    ]
    seed: Annotated[int, "puts the rows in a random order (default 0)", Option(default=0, check=named(checked_seed))]


@dataclass(frozen=True, kw_only=True)
class Terms:
    """What a comparison of models was asked, checked."""

    measure: Measure
    thresholds: tuple[float, ...]
    margin: float | None  # None: the usual one, by the rate of events
    target: Target
    clip: float
    alpha: float
    seed: int

    @classmethod
    def of(cls, *, caller: Caller = PYTHON, **options: Unpack[TermOptions]) -> Terms:
        """Check it."""
        inputs = checked(TermOptions, options, caller)
        what = inputs["measure"]
        if inputs["target"] == "rows" and what in ("calibration_error", "auroc"):
            raise NotComputable(f"{what} is about a population: leave {caller.says('target')} out, or take brier")
        return cls(thresholds=_thresholds(what, inputs.pop("threshold"), inputs.pop("costs"), caller), **inputs)

    @property
    def at(self) -> tuple[float | None, ...]:
        """The thresholds, or None where the measure has none."""
        return self.thresholds or (None,)

    def losses(self, p: Floats, threshold: float | None) -> losses.Ends:
        """What each row loses if the outcome is 0, and if it is 1."""
        if threshold is not None:
            return losses.benefit_lost(p, threshold)
        if self.measure == "log_loss":
            return losses.logarithmic(p, self.clip)
        return losses.squared(p) if self.measure == "brier" else losses.wrong(p)

    def margin_at(self, rate: float) -> float:
        """By how much more a model may lose where so many rows in one are events."""
        return usual_margin(self.measure, rate) if self.margin is None else self.margin

    def reach(self, threshold: float | None) -> float:
        """The largest difference that two losses can have."""
        if threshold is not None:
            return max(1.0, losses.odds(threshold))
        return float(np.log((1.0 - self.clip) / self.clip)) if self.measure == "log_loss" else 1.0


def usual_margin(measure: Measure, rate: float | None = None) -> float:
    """The margin that holds where none is named: a fiftieth of what a model loses that says the rate of everybody.

    Of other measures it is 0.005, or a fiftieth of the share of the rarer outcome where that is less: a model that
    says nothing may lose no more than that share. Rounded to two digits, so that what is printed is what is used.
    """
    if measure == "auroc" or rate is None:
        return MARGIN
    if measure == "brier":
        most = rate * (1.0 - rate)
    elif measure == "log_loss":
        most = -sum(share * math.log(share) for share in (rate, 1.0 - rate) if share > 0.0)
    else:
        most = min(rate, 1.0 - rate, MARGIN / OF_RATE)
    return float(f"{OF_RATE * most:.2g}")


def _thresholds(measure: Measure, threshold: object, costs: object, caller: Caller) -> tuple[float, ...]:
    """Where one acts: of the net benefit, which needs it, and of no other measure."""
    if measure == "net_benefit":
        if threshold is None and costs is None:
            raise BadInput(f"net_benefit acts from a threshold on: name it, {caller.says('threshold')} such as 0.2")
        return acting(threshold, costs, caller)[0]
    if threshold is not None or costs is not None:
        stated = caller.says("costs" if threshold is None else "threshold")
        raise BadInput(f"{stated} is of net_benefit, and the measure is {measure}: leave one out")
    return ()
