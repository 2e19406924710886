"""What judging repairs returns, and which repair is better, worse or undecided."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Self

from calibrant.repair.catalogue import recipes
from calibrant.repair.fitted import FittedMap
from calibrant.results import Curve, frozen, plain

# ---- What judging repairs returns ----

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


# ---- Which repair is better, worse or undecided, and in what; and the one to take ----

WORDS = {
    "error": "certified error",
    "worst_group": "the worst group",
    "brier": "Brier score",
    "log_loss": "log loss",
    "accuracy": "accuracy",
    "certainty": "certainty (it called outcomes impossible that happened)",
}
NEVER = ("brier", "log_loss", "error", "worst_group", "certainty")  # a recommended repair is not shown worse in these
ENDS = {"error": ("error_shown_low", "error_high"), "worst_group": ("worst_group_shown_low", "worst_group_high")}
MATTERS = ("error", "worst_group", "brier", "log_loss", "variable:", "group:")
LISTED = 3  # names in a line before it counts


def simplicity(recipe: str) -> float:
    """Return the place of a recipe in the order of simplicity; one that nobody declared is last."""
    entry = recipes().get(recipe)
    return float("inf") if entry is None else entry.simplicity


def by_ends(low: float, high: float, upward: bool = False) -> str:
    """Say what a range of a change shows; smaller is better unless `upward`."""
    if upward:
        low, high = -high, -low
    return "better" if high < 0.0 else "worse" if low > 0.0 else "undecided"


def by_certificates(before: tuple[Any, Any], after: tuple[Any, Any]) -> str | None:
    """Say what two certified ranges of one kind of error show; None where one is missing."""
    if None in (*before, *after):
        return None
    return "better" if after[1] < before[0] else "worse" if after[0] > before[1] else "undecided"


def verdict_of(
    name: str,
    table: Mapping[str, Mapping[str, Any]],
    differences: Sequence[Mapping[str, Any]],
    variables: Sequence[Mapping[str, Any]],
    groups: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
    """Return what one repair made better and worse, and what is undecided."""
    shown: dict[str, str] = {}
    before, after = table[AS_AUDITED], table[name]
    for item, (low, high) in ENDS.items():
        found = by_certificates((before[low], before[high]), (after[low], after[high]))
        shown |= {} if found is None else {item: found}
    if after["impossible"] > before["impossible"]:
        shown["certainty"] = "worse"  # its log loss is infinite, whatever the rest: no sampling error about that
    shown |= {row["measure"]: row["shown"] for row in differences if row["probability"] == name}
    shown |= {f"variable:{row['variable']}": row["shown"] for row in variables if row["probability"] == name}
    shown |= {f"group:{row['variable']}={row['level']}": row["shown"] for row in groups if row["probability"] == name}
    lists = {kind: tuple(k for k, v in shown.items() if v == kind) for kind in ("better", "worse", "undecided")}
    return {**lists, "line": line_of(name, lists)}


def line_of(name: str, lists: Mapping[str, tuple[str, ...]]) -> str:
    """Return one line of plain words."""
    better, worse = (_named(lists[kind]) for kind in ("better", "worse"))
    if not better and not worse:
        return f"{name}: nothing is shown to be better or worse"
    said = [f"better in {better}"] if better else ["nothing is shown to be better"]
    said += [f"worse in {worse}"] if worse else ["nothing is shown to be worse"]
    return f"{name}: {'; '.join(said)}"


def _named(items: Sequence[str]) -> str:
    plain = [WORDS[i] for i in items if i in WORDS]
    along = [i.removeprefix("variable:") for i in items if i.startswith("variable:")]
    groups = [i.removeprefix("group:") for i in items if i.startswith("group:")]
    if along:
        plain.append(
            f"error along {', '.join(along)}" if len(along) <= LISTED else f"error along {len(along)} variables"
        )
    if groups:
        plain.append(
            f"the gap of {', '.join(groups)}" if len(groups) <= LISTED else f"the gaps of {len(groups)} groups"
        )
    return ", ".join(plain)


def recommended(
    table: Mapping[str, Mapping[str, Any]],
    verdicts: Mapping[str, Mapping[str, Any]],
    worse_than: Mapping[str, Sequence[str]],
) -> str:
    """Return the repair to take.

    A repair is a candidate if something that matters (certified error, worst group, Brier score, log loss, error along
    a variable, the gap of a group) is shown better than as audited, and neither Brier score, log loss, certified error
    nor worst group is shown worse, nor did an outcome happen that only it called impossible (a score of 0 or 1
    refuted). Among candidates the best is the one with the least Brier score. The simplest candidate is taken that is
    not shown worse than the best in Brier score, and whose certified error and worst group are not certified to be
    larger than those of any other candidate; the order of the table decides between equally simple ones. Without a
    candidate: as audited.

    Parameters
    ----------
    table : Mapping
        Rows of the table by name.
    verdicts : Mapping
    worse_than : Mapping
        For each name those that it is shown to be worse than in Brier score.
    """
    candidates = [
        name
        for name, v in verdicts.items()
        if any(item.startswith(MATTERS) for item in v["better"]) and not any(item in NEVER for item in v["worse"])
    ]
    if not candidates:
        return AS_AUDITED
    best = min(candidates, key=lambda name: table[name]["brier"])
    fit = [
        name
        for name in candidates
        if best not in worse_than[name] and not any(_certified_worse(table[name], table[o]) for o in candidates)
    ]
    return min(fit or [best], key=lambda name: simplicity(table[name]["recipe"]))


def _certified_worse(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return any(by_certificates((other[a], other[b]), (one[a], one[b])) == "worse" for a, b in ENDS.values())
