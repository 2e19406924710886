"""The terms of a comparison of models: what is lost, where one acts, by how much more, and of whom."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypedDict, Unpack, get_args

import numpy as np
from numpy.typing import NDArray

from calibrant.arguments import PYTHON, Asker, acting, checked_alpha, checked_seed, choice, number
from calibrant.errors import BadInput, NotComputable
from calibrant.stats.decisions import losses

Floats = NDArray[np.float64]
Measure = Literal["brier", "log_loss", "error", "calibration_error", "auroc", "net_benefit"]
Target = Literal["population", "rows"]


class Given(TypedDict):
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
    def of(cls, *, asker: Asker = PYTHON, **given: Unpack[Given]) -> Terms:
        """Check it."""
        name = asker.name
        what = choice(name("measure"), given["measure"], get_args(Measure))
        about = choice(name("target"), given["target"], get_args(Target))
        if about == "rows" and what in ("calibration_error", "auroc"):
            raise NotComputable(f"{what} is about a population: leave {asker.says('target')} out, or take brier")
        return cls(
            measure=what,
            thresholds=_thresholds(what, given, asker),
            margin=number(name("margin"), given["margin"], least=0.0, hint="such as 0.005"),
            target=about,
            clip=number(name("clip"), given["clip"], above=0, below=0.5, hint="such as 0.001"),
            alpha=checked_alpha(given["alpha"], name("alpha")),
            seed=checked_seed(given["seed"], name("seed")),
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
        """Return the largest difference that two losses can have."""
        if threshold is not None:
            return max(1.0, losses.odds(threshold))
        return float(np.log((1.0 - self.clip) / self.clip)) if self.measure == "log_loss" else 1.0


def _thresholds(measure: Measure, given: Given, asker: Asker) -> tuple[float, ...]:
    """Return where one acts: of the net benefit, which needs it, and of no other measure."""
    threshold, costs = given["threshold"], given["costs"]
    if measure == "net_benefit":
        if threshold is None and costs is None:
            raise BadInput(f"net_benefit acts from a threshold on: name it, {asker.says('threshold')} such as 0.2")
        return acting(threshold, costs, asker)[0]
    if threshold is not None or costs is not None:
        said = asker.says("costs" if threshold is None else "threshold")
        raise BadInput(f"{said} is of net_benefit, and the measure is {measure}: leave one out")
    return ()
