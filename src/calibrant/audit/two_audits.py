"""Audits of different rows held against each other: the difference of their certified ranges."""

from __future__ import annotations

from collections.abc import Mapping

from calibrant.arguments import Caller
from calibrant.audit.record import AuditRecord, Finding
from calibrant.decisions.comparison import EVERYONE, Difference, ModelComparison, decided, overall
from calibrant.errors import BadInput
from calibrant.results import Interval
from calibrant.views.grouped import keyed

MEASURE = "calibration_error"
UNSAID: Mapping[str, tuple[object, ...]] = {
    "measure": ("brier", MEASURE),
    "threshold": (None,),
    "costs": (None,),
    "target": ("population",),
    "clip": (0.001,),
    "alpha": (0.05,),
    "seed": (0,),
}  # what `compare` has where nothing is asked, and what an audit is about


def settled(caller: Caller, **requested: object) -> None:
    """Refuse what audits have settled when they were made, and would else be passed over."""
    if row_attributes := [name for name, value in requested.items() if value not in UNSAID[name]]:
        raise BadInput(
            f"audits have their own alpha and certify calibration errors: leave {caller.says(*row_attributes)} out"
        )


def audits_compared(records: Mapping[str, AuditRecord], margin: float) -> ModelComparison:
    """Compare the calibration errors that audits certified; the first is the reference.

    In an audit each end of everyone's range fails with probability at most its alpha, and of all groups' ranges any end
    does. So of everyone's differences each end fails with probability at most the sum of the audits' alphas, and either
    end with twice that; of all groups' any end with the sum (union bound), whether or not rows are shared.
    """
    reference, *others = records
    old = records[reference]
    differences: list[Difference] = []
    verdicts, unmatched = {}, {}
    spent = sum(float(r.settings["alpha"]) for r in records.values())
    of_everyone, of_groups = max(1.0 - 2.0 * spent, 0.0), max(1.0 - spent, 0.0)
    for model in others:
        new = records[model]
        everyone = _difference(model, EVERYONE, (old.everyone, new.everyone), of_everyone, margin)
        before, now = _groups(old), _groups(new)
        both = [name for name in now if name in before]
        groups = [_difference(model, name, (before[name], now[name]), of_groups, margin) for name in both]
        unmatched[model] = tuple(sorted(before.keys() ^ now.keys()))
        differences += [everyone, *groups]
        verdicts[model] = overall(everyone.verdict, [d.verdict for d in groups])
    return ModelComparison(
        reference=reference,
        measure=MEASURE,
        margin=margin,
        differences=tuple(differences),
        verdicts=verdicts,
        settings={
            "audits": {name: r.name for name, r in records.items()},
            "rows": {name: r.everyone.rows for name, r in records.items()},
            "each_end": of_groups,
            "alphas": {name: r.settings["alpha"] for name, r in records.items()},
            "guarantee": "finite-sample",
            "assumes": "what each audit assumes, of its own rows",
            "unmatched": unmatched,
        },
    )


def _groups(record: AuditRecord) -> dict[str, Finding]:
    """The groups by name; pooled values are not the same people in two audits."""
    return {keyed(f.variables): f for f in record.groups if not f.pooled}


def _difference(model: str, name: str, pair: tuple[Finding, Finding], level: float, margin: float) -> Difference:
    old, new = pair
    low = new.lower.interval.low - old.upper.interval.high
    high = new.upper.interval.high - old.lower.interval.low
    return Difference(
        model=model,
        population=name,
        rows=new.rows,
        reference=old.error,
        value=new.error,
        difference=new.error - old.error,
        interval=Interval(low=low, high=high, level=level, guarantee="finite-sample"),
        verdict=decided(low, high, margin),
    )
