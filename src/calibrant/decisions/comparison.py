"""Whether a model is better, no worse or worse than another: the differences, and what they decide."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from calibrant.results import Curve, Framed, Interval, Plain

if TYPE_CHECKING:
    import pyarrow as pa

Decision = Literal["better", "no worse", "worse within margin", "worse", "undecided"]
EVERYONE = "everyone"
STATUS: Mapping[str, int] = {"better": 0, "no worse": 0, "worse within margin": 0, "worse": 1, "undecided": 3}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Difference(Plain):
    """One model against the reference, of one population.

    Parameters
    ----------
    model : str
    population : str
        ``"everyone"``, or a group such as ``"sex=f"``.
    rows : int
        Of a group in multiples of five.
    reference, value : float
        What is measured, of the reference and of the model.
    difference : float
        How much worse the model is than the reference: of a loss ``value - reference``, of the AUROC and the net
        benefit the reverse.
    interval : Interval
        Of the difference; all groups' hold simultaneously.
    margin : float
        By how much more the model may lose in this population.
    verdict : {"better", "no worse", "worse within margin", "worse", "undecided"}
        `decided` of the interval and the margin.
    threshold : float, optional
        Of the net benefit: the score from which on one acts.
    """

    model: str
    population: str
    rows: int
    reference: float
    value: float
    difference: float
    interval: Interval
    margin: float
    verdict: Decision
    threshold: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ModelComparison(Framed, Plain):
    """What `calibrant.compare` found.

    Parameters
    ----------
    reference : str
        The model that the others are held against.
    measure : str
    margin : float
        By how much more a model may lose for everyone together; that of each group is in its difference.
    differences : tuple of Difference
        Of every other model, everyone first; of the net benefit one threshold after another.
    worst : Mapping of str to float
        By model: in no group, at no threshold, is it worse than the reference by more than this. Empty without groups.
    verdicts : Mapping of str to str
        By model: ``"worse"`` if it is so for everyone together or for a group; ``"better"`` if it is so for everyone
        together and no worse in every group; ``"no worse"`` if so for both; ``"worse within margin"`` if it is
        certified to be worse for anyone, and for nobody by more than the margin; else ``"undecided"``. Of several
        thresholds the `least` of theirs.
    settings : Mapping
    """

    reference: str
    measure: str
    margin: float
    differences: tuple[Difference, ...]
    worst: Mapping[str, float] = field(default_factory=dict)
    verdicts: Mapping[str, Decision] = field(default_factory=dict)
    settings: Mapping[str, object] = field(default_factory=dict)

    @property
    def verdict(self) -> Decision:
        """The least verdict: "worse", "undecided", "worse within margin", "no worse", "better", in this order."""
        return least(self.verdicts.values())

    @property
    def exit_status(self) -> int:
        """0 better, no worse or worse within the margin, 1 worse for anyone by more, 3 undecided."""
        return STATUS[self.verdict]

    @property
    def table(self) -> Curve:
        """The differences as columns."""
        rows = [
            {
                "model": d.model,
                "population": d.population,
                **({} if d.threshold is None else {"threshold": d.threshold}),
                "rows": d.rows,
                "reference": d.reference,
                "value": d.value,
                "difference": d.difference,
                "low": d.interval.low,
                "high": d.interval.high,
                "margin": d.margin,
                "verdict": d.verdict,
            }
            for d in self.differences
        ]
        columns = {name: tuple(row[name] for row in rows) for name in rows[0]}
        reported = {"reference": self.reference, "measure": self.measure, "margin": self.margin}
        return Curve(method="compare", columns=columns, settings=reported)

    def to_arrow(self) -> pa.Table:
        """The differences as a `pyarrow.Table`."""
        return self.table.to_arrow()


def decided(low: float, high: float, margin: float) -> Decision:
    """What an interval of "how much worse" decides against a margin.

    Better: the high end is below 0. No worse: it is at most the margin; worse within the margin: that, and the low end
    is above 0. Worse: the low end is above the margin.
    """
    if high < 0.0:
        return "better"
    if high <= margin:
        return "worse within margin" if low > 0.0 else "no worse"
    return "worse" if low > margin else "undecided"


def least(verdicts: Iterable[Decision]) -> Decision:
    """The verdict that stands for several."""
    result = set(verdicts)
    order: tuple[Decision, ...] = ("worse", "undecided", "worse within margin", "no worse", "better")
    return next(v for v in order if v in result)


def overall(everyone: Decision, groups: Iterable[Decision]) -> Decision:
    """The verdict on a model from that of everyone together and those of the groups.

    Better takes everyone together to be better, and no group to be worse, be it within the margin.
    """
    rest = least((*groups, "better"))
    return everyone if rest in ("better", "no worse") else least((everyone, rest))
