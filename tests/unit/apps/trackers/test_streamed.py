"""Batches as frameworks hand them over: shapes, logits, refusals, and what is counted after them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import calibrant as cal

THREE = ([[0.7, 0.2, 0.1], [0.1, 0.1, 0.8], [0.5, 0.3, 0.2]], [0, 2, 1])


def metric(**settings: Any) -> cal.tracking.CalibrationMetric:
    return cal.tracking.CalibrationMetric(**settings)


def counts(preds: Any, target: Any, **settings: Any) -> tuple[list[float], int]:
    """Return mean score by level of a hundred rows and events, of one batch."""
    made = metric(**settings)
    made.update(preds, target)
    where = made.sketch.levels.sum(axis=0)
    return np.flatnonzero(where.sum(axis=1)).tolist(), made.sketch.events


def test_columns_are_the_event_or_the_most_probable_class() -> None:
    plain = counts([0.2, 0.7], [0, 1])
    assert counts([[0.2], [0.7]], [0, 1]) == plain
    assert counts([[0.8, 0.2], [0.3, 0.7]], [0, 1]) == plain
    assert counts(*THREE) == counts([0.7, 0.8, 0.5], [1, 1, 0])


def test_logits_are_taken_where_that_is_said() -> None:
    p = np.array([0.203, 0.704, 0.5])
    assert counts(np.log(p / (1 - p)), [0, 1, 1], logits=True) == counts(p, [0, 1, 1])
    assert counts(np.log(np.array(THREE[0])) + 3.0, THREE[1], logits=True) == counts(*THREE)
    two = np.log(np.stack([1 - p, p], axis=1))
    assert counts(two, [0, 1, 1], logits=True) == counts(p, [0, 1, 1])


@pytest.mark.slow
def test_tensors_of_any_kind_are_read() -> None:
    torch = pytest.importorskip("torch", reason="pip install 'calibrant[torch]' to pass tensors")
    p = torch.tensor([0.25, 0.75], requires_grad=True)
    plain = counts([0.25, 0.75], [0, 1])
    assert counts(p, torch.tensor([0, 1])) == plain
    assert counts(p.to(torch.bfloat16), torch.tensor([False, True])) == plain


@pytest.mark.parametrize(
    ("preds", "target", "why"),
    [
        ([0.1, 1.2], [0, 1], "preds: 1 value is outside 0 to 1: .* pass logits=True .* row 1 of the batch"),
        ([-3.0, 2.0], [0, 1], "preds: 2 values are outside 0 to 1"),
        ([0.1, np.nan], [0, 1], "preds: 1 value is missing or infinite: leave the row out"),
        ([0.1, 0.2], [0, 2], r"target: 1 value is neither 0 nor 1: .* \(2.0\)"),
        ([0.1, 0.2], [0.5, 1], "target: 1 value is neither 0 nor 1"),
        (THREE[0], [0, 1, 3], "target: 1 value is none of 0 to 2: number the classes 0 to 2"),
        ([[0.7, 0.2, 0.3]], [0], "preds: 1 value is not of sum 1: pass the probabilities of all classes"),
        ([[0.7, 0.2]], [0], "not of sum 1"),
        ([0.1], [0, 1], r"preds has shape \(1,\) and target \(2,\): pass one label a row"),
        ([[[0.1]]], [0], "preds has shape"),
    ],
)
def test_a_refused_batch_is_one_line_and_is_not_counted(preds: Any, target: Any, why: str) -> None:
    made = metric()
    made.update([0.3], [0])
    with pytest.raises(cal.BadInput, match=why):
        made.update(preds, target)
    assert made.n == made.sketch.n == 1


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"measures": ["acc"]}, "measures="),
        ({"alpha": 0.7}, "alpha="),
        ({"logits": 1}, "logits="),
        ({"part": 3}, "part="),
    ],
)
def test_settings_are_checked(settings: Any, why: str) -> None:
    with pytest.raises(cal.BadInput, match=why):
        metric(**settings)


def test_nothing_counted_is_nothing_computed() -> None:
    made = metric()
    made.update([], [])
    with pytest.raises(cal.BadInput, match="no rows"):
        made.compute()
    made.update([0.4] * 50, [0, 1] * 25)
    made.reset()
    assert made.n == 0


def test_measures_are_those_of_the_rows() -> None:
    made = metric(measures=("brier", "ece"), alpha=0.1)
    p, y = np.tile([0.2, 0.6, 0.9], 40), np.tile([0, 1, 1, 0], 30)
    made.update(p, y)
    found, data = made.compute(), cal.sketch({"y": y, "p": p}, label="y", score="p")
    assert list(found) == ["raw_lower", "rounded", "brier", "ece"]
    assert found["brier"].value == cal.measure.brier(data, alpha=0.1).value
    assert found["ece"].interval == cal.measure.ece(data, alpha=0.1).interval


def test_metrics_of_one_part_are_not_merged() -> None:
    one, same, other = metric(part="a"), metric(part="a"), metric(part="b")
    for made in (one, same, other):
        made.update([0.2, 0.7], [0, 1])
    with pytest.raises(cal.BadInput, match="both metrics count part 'a': give each process a part= of its own"):
        one.merge(same)
    one.merge(other)
    assert one.n == 4
    with pytest.raises(cal.BadInput, match="specs"):
        one.merge(metric(seed=1))


@pytest.mark.slow
def test_the_counts_are_audited() -> None:
    rng = np.random.default_rng(1)
    p = rng.uniform(size=4_000)
    made = metric()
    for start in range(0, 4_000, 500):
        batch = p[start : start + 500]
        made.update(batch, rng.uniform(size=500) < batch**2)
    assert cal.audit(made.sketch, limit=0.05, quick=True).verdict == "over"
