"""The terms of a comparison of models: what is lost, where one acts, by how much more, and of whom."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypedDict, Unpack, get_args

import numpy as np
from numpy.typing import NDArray

from calibrant.arguments import PYTHON, Caller, acting, checked_alpha, checked_seed, choice, number
from calibrant.errors import BadInput, NotComputable
from calibrant.stats.decisions import comparison as losses

Floats = NDArray[np.float64]
Measure = Literal["brier", "log_loss", "error", "calibration_error", "auroc", "net_benefit"]
Target = Literal["population", "rows"]


class TermInputs(TypedDict):
    """The settings of a comparison, unchecked."""

    measure: str
    threshold: float | Sequence[float] | None
    costs: Sequence[float] | None
    margin: float
    target: str
    clip: float
    alpha: float
    seed: int


@dataclass(frozen=True, kw_only=True)
class Terms:
    """What a comparison of models was asked, checked."""

    measure: Measure
    thresholds: tuple[float, ...]
    margin: float
    target: Target
    clip: float
    alpha: float
    seed: int

    @classmethod
    def of(cls, *, caller: Caller = PYTHON, **inputs: Unpack[TermInputs]) -> Terms:
        """Check it."""
        name = caller.name
        what = choice(name("measure"), inputs["measure"], get_args(Measure))
        about = choice(name("target"), inputs["target"], get_args(Target))
        if about == "rows" and what in ("calibration_error", "auroc"):
            raise NotComputable(f"{what} is about a population: leave {caller.says('target')} out, or take brier")
        return cls(
            measure=what,
            thresholds=_thresholds(what, inputs, caller),
            margin=number(name("margin"), inputs["margin"], least=0.0, hint="such as 0.005"),
            target=about,
            clip=number(name("clip"), inputs["clip"], above=0, below=0.5, hint="such as 0.001"),
            alpha=checked_alpha(inputs["alpha"], name("alpha")),
            seed=checked_seed(inputs["seed"], name("seed")),
        )

    @property
    def at(self) -> tuple[float | None, ...]:
        """The thresholds, or None where the measure has none."""
        return self.thresholds or (None,)

    def losses(self, p: Floats, threshold: float | None) -> losses.Ends:
        """Return what each row loses if the outcome is 0, and if it is 1."""
        if threshold is not None:
            return losses.benefit_lost(p, threshold)
        if self.measure == "log_loss":
            return losses.logarithmic(p, self.clip)
        return losses.squared(p) if self.measure == "brier" else losses.wrong(p)

    def reach(self, threshold: float | None) -> float:
        """The largest difference that two losses can have."""
        if threshold is not None:
            return max(1.0, losses.odds(threshold))
        return float(np.log((1.0 - self.clip) / self.clip)) if self.measure == "log_loss" else 1.0


def _thresholds(measure: Measure, inputs: TermInputs, caller: Caller) -> tuple[float, ...]:
    """Return where one acts: of the net benefit, which needs it, and of no other measure."""
    threshold, costs = inputs["threshold"], inputs["costs"]
    if measure == "net_benefit":
        if threshold is None and costs is None:
            raise BadInput(f"net_benefit acts from a threshold on: name it, {caller.says('threshold')} such as 0.2")
        return acting(threshold, costs, caller)[0]
    if threshold is not None or costs is not None:
        stated = caller.says("costs" if threshold is None else "threshold")
        raise BadInput(f"{stated} is of net_benefit, and the measure is {measure}: leave one out")
    return ()
