"""What judging repairs returns, and which repair is better, worse or undecided."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass, field, fields, replace
from typing import Any, Literal, Self

from calibrant.repair.catalogue import recipes
from calibrant.repair.fitted import Calibrator
from calibrant.results import Curve, Plain, frozen

# ---- What judging repairs returns ----

AS_AUDITED = "as audited"
METHOD = "repair.evaluate"
UNASKED = Curve(method=f"{METHOD}.decisions", columns={})  # no threshold was named
Shown = Literal["better", "worse", "undecided"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """One probability, as audited or repaired: a row of the table. None: it could not be, or was not, computed."""

    probability: str  # name of the repair, or "as audited"
    # `recipe` and `order`: recipe of the map, empty as audited; whether it keeps the order of people.
    recipe: str
    order: str
    # "logit", "raw" or "log ratio": what its curve is a function of, where its recipe leaves a choice: the log-odds,
    # the score.
    scale: str | None = None
    # `error_low`, `error_high` and `error_shown_low`: certified error: from below raw, from above and below as shown in
    # steps.
    error_low: float | None = None
    error_high: float | None = None
    error_shown_low: float | None = None
    distance_high: float | None = None  # certified distance to calibration, from above
    brier: float
    log_loss: float = 0.0
    auroc: float | None = None
    accuracy: float = 0.0
    impossible: int = 0  # outcomes that happened and that it had called impossible, with a score of 0 or 1
    # `local_p`, `strong_p` and `scan_p`: p-values of the tests.
    local_p: float | None = None
    strong_p: float | None = None
    scan_p: float | None = None
    # `largest_vece` and `largest_vece_variable`: error along the variable along which it is largest.
    largest_vece: float | None = None
    largest_vece_variable: str | None = None
    # `largest_gap` and `largest_gap_group`: size of the largest gap of a group.
    largest_gap: float | None = None
    largest_gap_group: str | None = None
    # `worst_group_low`, `worst_group_high` and `worst_group_shown_low`: certified error of a group, the largest of each
    # end; each with its group.
    worst_group_low: float | None = None
    worst_group_low_group: str | None = None
    worst_group_high: float | None = None
    worst_group_high_group: str | None = None
    worst_group_shown_low: float | None = None
    # `groups_better`, `groups_worse`, `groups_shown_better` and `groups_shown_worse`: groups whose gap changed by more
    # than half a point; and by a change that is shown.
    groups_better: int = 0
    groups_worse: int = 0
    groups_shown_better: int = 0
    groups_shown_worse: int = 0

    def p(self, test: str) -> float | None:
        result: float | None = getattr(self, f"{test}_p")
        return result

    def with_p(self, test: str, p: float) -> Self:
        """The row with the p-value of a test."""
        inputs: dict[str, Any] = {f"{test}_p": p}
        return replace(self, **inputs)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreChange:
    """The paired change of a score from as audited; smaller is better, but for accuracy."""

    probability: str
    measure: str
    change: float
    change_low: float
    change_high: float
    shown: Shown
    # `interval_low` and `interval_high`: the ordinary interval of the paired differences, by itself; `estimated`: what
    # such intervals show, of all repairs together.
    interval_low: float
    interval_high: float
    estimated: Shown


@dataclass(frozen=True, slots=True, kw_only=True)
class VariableChange:
    """Error along a variable, and the change of its square."""

    probability: str
    variable: str
    vece: float
    beyond_gap: float
    change_squared: float
    change_low: float
    change_high: float
    shown: Shown


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupChange:
    """The gap of a group, and the change of its size."""

    probability: str
    variable: str
    level: str
    rows: int
    gap: float
    change: float
    change_low: float
    change_high: float
    shown: Shown
    estimated: Shown  # what the ordinary intervals of the gaps show, of all groups together


def curve_of(part: str, kind: type, rows: Sequence[Any], settings: Mapping[str, Any] | None = None) -> Curve:
    """Rows of one kind as a curve; its columns are there even without rows."""
    values = [astuple(row) for row in rows]
    columns = {f.name: tuple(row[i] for row in values) for i, f in enumerate(fields(kind))}
    return Curve(method=METHOD if part == "table" else f"{METHOD}.{part}", columns=columns, settings=settings or {})


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Comparison(Plain):
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
    fixed : Curve
        With a limit: a line for everyone, and for each group over it before or after the repair recommended, with
        certified range and verdict now and after; how each repair does, and what tests find, are in its settings.
        Without a limit it has no columns.
    decisions : Curve
        With a threshold: for each repair, threshold and population, everyone and each group, how many rows change side
        in either direction, and the gain in net benefit with its certified range. Else it has no columns.
    verdicts : Mapping
        For each repair what is ``better``, ``worse`` and ``undecided`` (tuples of names), and a ``line`` of plain
        words.
    recommended : str
        The name of a repair, or ``"as audited"``.
    calibrators : Mapping of str to Calibrator
        The repairs, fitted.
    settings : Mapping
        Rows, shares of alpha, seeds, and what was left out and why.
    """

    table: Curve
    differences: Curve
    variables: Curve
    groups: Curve
    fixed: Curve
    verdicts: Mapping[str, Mapping[str, Any]]
    recommended: str
    calibrators: Mapping[str, Calibrator]
    decisions: Curve = UNASKED
    settings: Mapping[str, Any] = field(default_factory=dict)

    def row(self, name: str) -> dict[str, Any]:
        """The table's row of one probability."""
        at = self.table.columns["probability"].index(name)
        return {k: v[at] for k, v in self.table.columns.items()}

    @classmethod
    def from_dict(cls, d: Mapping[str, Any]) -> Self:
        """Rebuild the comparison that `to_dict` described."""
        curves = {
            k: Curve.from_dict(d[k]) for k in ("table", "differences", "variables", "groups", "fixed", "decisions")
        }
        return cls(
            **curves,
            verdicts=frozen(d["verdicts"]),
            recommended=d["recommended"],
            settings=frozen(d["settings"]),
            calibrators={k: Calibrator.from_dict(v) for k, v in d["calibrators"].items()},
        )

    def to_json(self) -> str:
        """The comparison as JSON text, from which `from_json` makes an equal one."""
        return json.dumps(self.to_dict(), indent=1, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Rebuild the comparison that `to_json` wrote."""
        return cls.from_dict(json.loads(text))

    def __repr__(self) -> str:
        lines = [*(v["line"] for v in self.verdicts.values()), f"recommended: {self.recommended}"]
        rows = f"{self.settings.get('rows_judged', 0):,} rows judged"
        return "\n".join([f"Comparison({len(self.calibrators)} repairs, {rows})", *(f"  {line}" for line in lines)])


# ---- Which repair is better, worse or undecided, and in what ----

WORDS = {
    "error": "certified error",
    "worst_group": "the worst group",
    "brier": "Brier score",
    "log_loss": "log loss",
    "accuracy": "accuracy",
    "certainty": "certainty (it called outcomes impossible that happened)",
}
LISTED = 3  # names in a line before it counts
Range = tuple[float | None, float | None]


RANGES: Mapping[str, Callable[[Summary], Range]] = {  # certified ranges of an error as shown
    "error": lambda row: (row.error_shown_low, row.error_high),
    "worst_group": lambda row: (row.worst_group_shown_low, row.worst_group_high),
}


def by_ends(low: float, high: float, *, upward: bool = False) -> Shown:
    """Say what a range of a change shows; smaller is better unless `upward`."""
    if upward:
        low, high = -high, -low
    return "better" if high < 0.0 else "worse" if low > 0.0 else "undecided"


def ranged(low: float, high: float, *, upward: bool = False) -> dict[str, Any]:
    """The fields of a change that tell its range, and what it shows."""
    return {"change_low": low, "change_high": high, "shown": by_ends(low, high, upward=upward)}


def by_certificates(before: Range, after: Range) -> Shown | None:
    """Say what two certified ranges of one kind of error show; None where one is missing."""
    low_before, high_before, low_after, high_after = *before, *after
    if low_before is None or high_before is None or low_after is None or high_after is None:
        return None
    return "better" if high_after < low_before else "worse" if low_after > high_before else "undecided"


@dataclass(frozen=True)
class Changes:
    """Every paired change, of all probabilities."""

    scores: Sequence[ScoreChange]
    variables: Sequence[VariableChange]
    groups: Sequence[GroupChange]


def verdict_of(name: str, table: Mapping[str, Summary], changes: Changes) -> dict[str, Any]:
    """What one repair made better and worse, and what is undecided."""
    shown: dict[str, Shown] = {}
    before, after = table[AS_AUDITED], table[name]
    for item, ends in RANGES.items():
        if (result := by_certificates(ends(before), ends(after))) is not None:
            shown[item] = result
    if after.impossible > before.impossible:
        shown["certainty"] = "worse"  # its log loss is infinite, whatever the rest: no sampling error about that
    shown |= {c.measure: c.shown for c in changes.scores if c.probability == name}
    shown |= {f"variable:{c.variable}": c.shown for c in changes.variables if c.probability == name}
    shown |= {f"group:{c.variable} = {c.level}": c.shown for c in changes.groups if c.probability == name}
    lists = {kind: tuple(k for k, v in shown.items() if v == kind) for kind in ("better", "worse", "undecided")}
    estimates = {c.measure: c.estimated for c in changes.scores if c.probability == name and c.measure in PROPER}
    estimates |= {f"group:{c.variable} = {c.level}": c.estimated for c in changes.groups if c.probability == name}
    lists |= {f"estimated_{kind}": tuple(k for k, v in estimates.items() if v == kind) for kind in ("better", "worse")}
    return {**lists, "line": line_of(name, lists)}


def line_of(name: str, lists: Mapping[str, tuple[str, ...]]) -> str:
    better, worse = (_named(lists[kind]) for kind in ("better", "worse"))
    more, less = (
        _named([i for i in lists.get(f"estimated_{kind}", ()) if i not in lists[kind]]) for kind in ("better", "worse")
    )
    if not (better or worse or more or less):
        return f"{name}: nothing is shown to be better or worse"
    stated = [f"better in {better}"] if better else [] if more else ["nothing is shown to be better"]
    stated += [f"estimated better in {more}"] if more else []
    stated += [f"worse in {worse}"] if worse else [] if less else ["nothing is shown to be worse"]
    stated += [f"estimated worse in {less}"] if less else []
    return f"{name}: {'; '.join(stated)}"


def _named(items: Sequence[str]) -> str:
    words = [WORDS[i] for i in items if i in WORDS]
    for prefix, few, many in (
        ("variable:", "error by {}", "error by {} variables"),
        ("group:", "the gap of {}", "the gaps of {} groups"),
    ):
        own = [i.removeprefix(prefix) for i in items if i.startswith(prefix)]
        if own:
            words.append(few.format(", ".join(own)) if len(own) <= LISTED else many.format(len(own)))
    return ", ".join(words)


# ---- The repair to take ----

NEVER = ("brier", "log_loss", "error", "worst_group", "certainty")  # a recommended repair is not shown worse in these
PROPER = ("brier", "log_loss")  # by which a repair may be recommended, or not, on ordinary intervals alone
MATTERS = ("error", "worst_group", "brier", "log_loss", "variable:", "group:")  # and is shown better in one of these
NEARLY = 0.005  # half a point: upper ends that differ by less do not decide between repairs


def by_estimates(verdicts: Mapping[str, Mapping[str, Sequence[str]]]) -> dict[str, dict[str, tuple[str, ...]]]:
    """The verdicts as ordinary intervals give them: proper scores alone recommend, and no group may be worse.

    What is shown worse stays so.
    """
    out = {}
    for name, v in verdicts.items():
        groups = ("worst_group",) if any(item.startswith("group:") for item in v["estimated_worse"]) else ()
        better = tuple(item for item in v["estimated_better"] if item in PROPER)
        out[name] = {"better": better, "worse": (*v["worse"], *v["estimated_worse"], *groups)}
    return out


def simplicity(recipe: str) -> float:
    """The place of a recipe in the order of simplicity; one that nobody declared is last."""
    entry = recipes().get(recipe)
    return float("inf") if entry is None else entry.simplicity


def recommended(
    table: Mapping[str, Summary],
    verdicts: Mapping[str, Mapping[str, Any]],
    worse_than: Mapping[str, Sequence[str]],
    over: Mapping[str, Mapping[str, float]] | None = None,
) -> str:
    """The repair to take, or ``"as audited"``, given for each those that it is shown to be worse than in Brier score.

    With a limit, `over` has for each how many populations are ``"over"`` and ``"undecided"`` under it, and how far off
    the ``"worst"`` of them may be at most.
    """
    # (1) Candidates: something that matters (certified error, worst group, Brier score, log loss, error along a
    # variable, the gap of a group) is shown better than as audited; neither Brier score, log loss, certified error nor
    # worst group is shown worse; nor did an outcome happen that only the repair called impossible; nor do ordinary
    # intervals show Brier score or log loss worse.
    candidates = [
        name
        for name, v in verdicts.items()
        if any(item.startswith(MATTERS) for item in v["better"])
        and not any(item in NEVER for item in v["worse"])
        and not any(item in PROPER for item in v.get("estimated_worse", ()))
    ]
    # With a limit, those under which the fewest populations are over it, and of these the fewest undecided; none that
    # brings more over it than there are. Where some are left, those under which the worst of them may be the least off,
    # nearly: an end that falls just below the limit mends nobody.
    if over:
        candidates = [name for name in candidates if over[name]["over"] <= over[AS_AUDITED]["over"]]
        left = {name: (over[name]["over"], over[name]["undecided"]) for name in candidates}
        least = min(left.values(), default=None)
        candidates = [name for name in candidates if left[name] == least]
        if least is not None and any(least):
            worst = min(over[name]["worst"] for name in candidates)
            candidates = [name for name in candidates if over[name]["worst"] <= worst + NEARLY]
    if not candidates:
        return AS_AUDITED
    # (2) The best candidate is the one with the least Brier score.
    best, kinds = min(candidates, key=lambda name: table[name].brier), RANGES.values()
    # (3) Good enough: not shown worse than the best in Brier score, and neither certified error nor worst group
    # certified to be larger than that of another candidate.
    fit = [
        name
        for name in candidates
        if best not in worse_than[name]
        and not any(by_certificates(ends(table[o]), ends(table[name])) == "worse" for o in candidates for ends in kinds)
    ]
    # (4) The simplest of those; the order of the table decides between equally simple ones.
    return min(fit or [best], key=lambda name: simplicity(table[name].recipe))
