"""A stream of batches is certified as all of its rows at once: same counts, same blocks, alpha shared by both ends."""

from __future__ import annotations

from typing import Any

import numpy as np

import calibrant as cal

ALPHA = 0.1


def stream() -> list[tuple[Any, Any]]:
    """Return batches of unequal sizes, each sorted by the label, so that a row's place in its batch tells it."""
    rng = np.random.default_rng(5)
    p = np.round(rng.uniform(size=3_000), 3)
    y = (rng.uniform(size=3_000) < p**1.4).astype(int)
    cuts = np.cumsum(rng.integers(1, 90, size=80))
    batches = zip(np.split(p, cuts), np.split(y, cuts), strict=True)
    return [(a[np.argsort(b, kind="stable")], np.sort(b)) for a, b in batches]


def counted(batches: Any, **settings: Any) -> cal.tracking.CalibrationMetric:
    metric = cal.tracking.CalibrationMetric(alpha=ALPHA, **settings)
    for p, y in batches:
        metric.update(p, y)
    return metric


def test_batches_are_counted_as_all_rows_at_once() -> None:
    p, y = (np.concatenate(column) for column in zip(*stream(), strict=True))
    metric, whole = counted(stream()), cal.sketch({"y": y, "p": p}, label="y", score="p")
    assert metric.n == len(p) == whole.n
    assert (metric.sketch.cells == whole.cells).all()  # by block: rows go where they would go
    assert (metric.sketch.levels == whole.levels).all()


def test_both_ends_share_alpha() -> None:
    p, y = (np.concatenate(column) for column in zip(*stream(), strict=True))
    found, data = counted(stream()).compute(), cal.predictions(y, p)
    assert found["raw_lower"].low == cal.certify.raw_lower(data, side="lower", alpha=ALPHA / 2).low > 0
    assert found["rounded"].high == cal.certify.rounded(data, side="upper", alpha=ALPHA / 2).high
    assert [found[end].interval.level for end in ("raw_lower", "rounded")] == [1 - ALPHA / 2] * 2


def test_processes_in_any_order_are_one_stream() -> None:
    parts = {name: stream()[k::3] for k, name in enumerate("abc")}
    made = []
    for order in ("abc", "cab"):
        metric = counted([], part=order[0])
        for name in order:
            other = counted(parts[name], part=name)
            metric.add_bytes(other.to_bytes())
        made.append(metric)
    assert made[0].sketch.fingerprint == made[1].sketch.fingerprint
    assert made[0].n == sum(len(p) for p, _ in stream())
    assert made[0].compute() == made[1].compute()
