"""The groups over which `Multicalibrator` can work, as published."""

from __future__ import annotations

from dataclasses import dataclass

from calibrant.errors import BadInput
from calibrant.repair.level_shifts import Cells


def checked_number(name: str, value: object, low: float, high: float) -> None:
    """Refuse what is not a number in (low, high)."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not low < value < high:
        raise BadInput(f"{name}={value!r}: pass a number above {low:g} and below {high:g}")


@dataclass(frozen=True, kw_only=True)
class Groups:
    """How `Multicalibrator` works over named groups.

    Parameters
    ----------
    alpha : float in (0, 1)
        Residual that a cell may keep.
    fewest : int
        Rows (of mean weight) that a cell must hold to be looked at.
    levels : int
        Levels of the score, of equal width.
    cuts : int
        Groups that a number is cut into, of equal size.
    depth : {1, 2}
        Groups of one variable; or of each pair of variables too.
    """

    alpha: float = 0.02
    fewest: int = 100
    levels: int = 10
    cuts: int = 5
    depth: int = 1

    def __post_init__(self) -> None:
        checked_number("alpha", self.alpha, 0.0, 1.0)
        self.cells(None).check()

    def cells(self, variables: tuple[str, ...] | None) -> Cells:
        """Return the cells to look at."""
        return Cells(variables=variables, cuts=self.cuts, depth=self.depth, levels=self.levels, fewest=self.fewest)
