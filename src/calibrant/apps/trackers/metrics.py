"""An audit as flat numbers, for programs that track experiments."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator

from calibrant import AuditRecord
from calibrant.results import Estimate
from calibrant.toolkit.report import Finding


def metrics(record: AuditRecord) -> dict[str, float]:
    """The numbers of an audit by name, as DVC, MLflow and other trackers take them.

    Parameters
    ----------
    record : AuditRecord

    Returns
    -------
    dict of str to float
        ``everyone/error``, ``everyone/error_low``, ``everyone/error_high`` (estimate and both certified ends of the
        calibration error, as fractions), the same of ``everyone/gap``, ``everyone/rows``; of each group under
        ``groups/ID/`` with the id of the record; ``brier``, ``brier_low``, ``brier_high`` and so on of every estimate;
        ``groups_met``, ``groups_over``, ``groups_undecided``; ``exit_status``. What is infinite is left out: there is
        no such number in JSON.

    Notes
    -----
    **Guarantee.** Ends of ``error`` and ``gap`` are certified; those of measures are asymptotic, as in the record.
    **Reads.** The record.
    """
    reported = [*_people("everyone", record.everyone)]
    for f in record.groups:
        reported += _people(f"groups/{f.id}", f)
    for name, e in record.estimates.items():
        reported += _estimate(name, e)
    for word, verdict in (("within", "within"), ("over", "over"), ("undecided", "undecided")):
        reported.append((f"groups_{word}", float(sum(f.verdict == verdict for f in record.groups))))
    reported.append(("exit_status", float(record.exit_status)))
    return {name: float(value) for name, value in reported if math.isfinite(value)}


def as_json(record: AuditRecord) -> str:
    """The same as JSON text."""
    return json.dumps(metrics(record), indent=1, allow_nan=False) + "\n"


def _people(where: str, f: Finding) -> Iterator[tuple[str, float]]:
    yield f"{where}/error", f.error.value
    yield f"{where}/error_low", f.lower.interval.low
    yield f"{where}/error_high", f.upper.interval.high
    yield f"{where}/gap", f.gap.value
    if f.gap.guaranteed is not None:
        yield f"{where}/gap_low", f.gap.guaranteed.low
        yield f"{where}/gap_high", f.gap.guaranteed.high
    yield f"{where}/rows", float(f.rows)


def _estimate(name: str, e: Estimate) -> Iterator[tuple[str, float]]:
    yield name, float(e.value)
    yield f"{name}_low", e.interval.low
    yield f"{name}_high", e.interval.high
