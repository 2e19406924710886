"""What judging repairs returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Self

from calibrant.repair.fitted import FittedMap
from calibrant.results import Curve, frozen, plain

AS_AUDITED = "as audited"
METHOD = "repair.compare"


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Repairs judged on rows that none of them was fitted on.

    Parameters
    ----------
    table : Curve
        One row for each probability, ``"as audited"`` first: certified error, distance, proper scores, tests, worst
        group.
    differences : Curve
        One row for each repair and score: the paired change from as audited, with its range.
    variables : Curve
        One row for each probability and variable: error along it, and the change of its square with its range.
    groups : Curve
        One row for each probability and group: gap, and the change of its size with its range.
    verdicts : Mapping
        For each repair what is ``better``, ``worse`` and ``undecided`` (tuples of names), and a ``line`` of plain
        words.
    recommended : str
        The name of a repair, or ``"as audited"``.
    maps : Mapping of str to FittedMap
        The repairs, fitted.
    settings : Mapping
        Rows, shares of alpha, seeds, and what was left out and why.
    """

    table: Curve
    differences: Curve
    variables: Curve
    groups: Curve
    verdicts: Mapping[str, Mapping[str, Any]]
    recommended: str
    maps: Mapping[str, FittedMap]
    settings: Mapping[str, Any] = field(default_factory=dict)

    def row(self, name: str) -> dict[str, Any]:
        """Return the table's row of one probability."""
        at = self.table.columns["probability"].index(name)
        return {k: v[at] for k, v in self.table.columns.items()}

    def to_dict(self) -> dict[str, Any]:
        """Return plain lists, dictionaries, numbers and strings."""
        return {f.name: plain(getattr(self, f.name)) for f in fields(self)}

    @classmethod
    def from_dict(cls, d: Mapping[str, Any]) -> Self:
        """Rebuild the comparison that `to_dict` described."""
        curves = {k: Curve.from_dict(d[k]) for k in ("table", "differences", "variables", "groups")}
        return cls(
            **curves,
            verdicts=frozen(d["verdicts"]),
            recommended=d["recommended"],
            settings=frozen(d["settings"]),
            maps={k: FittedMap.from_dict(v) for k, v in d["maps"].items()},
        )


def curve_of(part: str, rows: list[dict[str, Any]], names: tuple[str, ...], **settings: Any) -> Curve:
    """Return rows as a curve; its columns are there even without rows."""
    columns = {name: tuple(row[name] for row in rows) for name in names}
    return Curve(method=METHOD if part == "table" else f"{METHOD}.{part}", columns=columns, settings=settings)
