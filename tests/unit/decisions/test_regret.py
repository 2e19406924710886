"""Regret by hand: steps, values, weights, units, sketches, groups, refusals, the command."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import calibrant as cal
from calibrant.cli import main
from calibrant.decisions.ladder import Ladder
from calibrant.views.sample import everyone


def exactly(low: float, high: float) -> cal.Predictions:
    """Two scores, 0.1 and 0.4, of 1,000 rows each, with given shares of cases."""
    y = np.concatenate([np.arange(1000) < 1000 * low, np.arange(1000) < 1000 * high])
    return cal.predictions(y, np.repeat([0.1, 0.4], 1000))


def by_decisions(p: np.ndarray, y: np.ndarray, t: float, weight: np.ndarray) -> float:
    """Net benefit of the best of all uses of the values, less that of acting at t: every use tried."""
    values = np.unique(p)
    odds = t / (1 - t)
    worth = [float((weight * np.where(y == 1, 1, -odds))[p == v].sum() / weight.sum()) for v in values]
    uses = [[(k >> i) & 1 for i in range(len(values))] for k in range(2 ** len(values))]
    return max(float(np.dot(u, worth)) for u in uses) - sum(w for v, w in zip(values, worth, strict=True) if v >= t)


@pytest.mark.parametrize(("low", "high", "t"), [(0.3, 0.5, 0.2), (0.1, 0.1, 0.2), (0.3, 0.1, 0.25), (0.1, 0.4, 0.2)])
def test_by_hand(low: float, high: float, t: float) -> None:
    data = exactly(low, high)
    found = cal.measure.regret(data, threshold=t)
    truth = by_decisions(data.p, data.y, t, np.ones(data.n))
    assert found.low <= truth <= found.high
    assert found.value == pytest.approx(truth, abs=0.003)
    assert found.interval.guarantee == "finite-sample"
    assert found.settings["acts_from"] == t


def test_it_is_never_more_than_everything_is_worth() -> None:
    found = cal.measure.regret(cal.predictions([1, 0, 1], [0.1, 0.2, 0.3]), threshold=0.2)
    assert 0.0 <= found.low <= found.value <= found.high <= 1.0
    found = cal.measure.regret(cal.predictions([1, 0, 1], [0.1, 0.2, 0.3]), threshold=0.8)
    assert found.high == pytest.approx(4.0)  # nobody can lose more than t / (1 - t) false positives


def test_more_rows_make_it_narrower_and_alpha_wider() -> None:
    few, many = exactly(0.3, 0.5), exactly(0.3, 0.5)
    many = cal.predictions(np.tile(many.y, 20), np.tile(many.p, 20))
    a, b, c = (
        cal.measure.regret(few, threshold=0.2),
        cal.measure.regret(many, threshold=0.2),
        cal.measure.regret(few, threshold=0.2, alpha=0.001),
    )
    assert a.low < b.low < b.high < a.high
    assert c.low <= a.low <= a.high < c.high


def test_weights_and_units_count() -> None:
    data = exactly(0.3, 0.5)
    weights = np.where(data.p < 0.2, 3.0, 1.0)
    heavy = cal.measure.regret(cal.predictions(data.y, data.p, weights=weights), threshold=0.2)
    assert heavy.value == pytest.approx(by_decisions(data.p, data.y, 0.2, weights), abs=0.01)
    alone = cal.measure.regret(data, threshold=0.2)
    order = np.argsort(data.y, kind="stable")
    intraclass_correlation = cal.predictions(
        data.y[order], data.p[order], cluster=np.arange(2000) // 50
    )  # units of one fate
    wider = cal.measure.regret(intraclass_correlation, threshold=0.2)
    assert wider.high - wider.low > 2 * (alone.high - alone.low)
    assert "clusters" in wider.settings
    assert "clusters" in wider.assumes


@pytest.mark.parametrize("t", [0.2, 0.205, 1 / 3])
def test_a_sketch_gives_the_same(t: float) -> None:
    rng = np.random.default_rng(0)
    p = rng.beta(1, 3, 5000)
    y = (rng.uniform(size=5000) < p + 0.1).astype(int)
    rows = cal.measure.regret(cal.predictions(y, p), threshold=t)
    cells = cal.measure.regret(cal.sketch({"y": y, "p": p}, label="y", score="p"), threshold=t)
    assert rows.settings["acts_from"] == t
    if t == 1 / 3:
        assert 0 <= cells.settings["acts_from"] - t < 1 / 1024
        assert cells.high == pytest.approx(rows.high, abs=0.01)
    else:
        assert (rows.low, rows.value, rows.high) == (cells.low, cells.value, cells.high)


def test_who_is_acted_on_is_exact() -> None:
    p = np.array([0.1, 0.2 - 1e-6, 0.2, 0.205, 0.7] * 300)
    y = np.tile([0, 1, 1, 0, 1], 300)
    p[:4] += 1e-3 * np.arange(4)
    rng = np.random.default_rng(1)
    for scores in (p, np.clip(p + rng.uniform(0, 1e-7, len(p)) * (p != 0.2), 0, 1)):
        at = Ladder.of(everyone(cal.predictions(y, scores)), 0.2)
        assert at.acted == (int((scores >= 0.2).sum()), int(y[scores >= 0.2].sum()))
        assert sum(at.acted) + sum(at.left) == len(p) + y.sum()


def test_groups_by_rows_and_by_sketch() -> None:
    rng = np.random.default_rng(0)
    p, sex = rng.beta(1, 3, 6000), np.array(["f", "m"])[rng.integers(0, 2, 6000)]
    y = (rng.uniform(size=6000) < p + 0.15 * (sex == "f")).astype(int)
    found = cal.measure.by_group(cal.measure.regret, cal.predictions(y, p, {"sex": sex}), by="sex", threshold=0.2)
    assert found["sex = f"].low > found["sex = m"].low
    sketch = cal.sketch({"y": y, "p": p, "sex": sex}, label="y", score="p", by="sex")
    again = cal.measure.by_group(cal.measure.regret, sketch, threshold=0.2)
    assert again["sex = f"].high == pytest.approx(found["sex = f"].high, abs=0.01)


def test_refusals() -> None:
    data = exactly(0.3, 0.5)
    for bad in (0, 1, 1.5, -0.2, "0.2", None):
        with pytest.raises(cal.BadInput, match="threshold="):
            cal.measure.regret(data, threshold=bad)
    with pytest.raises(cal.BadInput, match="alpha=2"):
        cal.measure.regret(data, threshold=0.2, alpha=2)
    with pytest.raises(cal.NotComputable, match="one cluster"):
        cal.measure.regret(cal.predictions(data.y, data.p, cluster=np.zeros(2000, dtype=int)), threshold=0.2)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, path = exactly(0.3, 0.5), tmp_path / "log.csv"
    path.write_text("y,p\n" + "".join(f"{int(y)},{p}\n" for y, p in zip(data.y, data.p, strict=True)))
    assert main(["measure", "regret", str(path), "--label", "y", "--score", "p", "--threshold", "0.2"]) == 0
    assert "net benefit lost" in capsys.readouterr().out
    assert main(["measure", "regret", str(path), "--label", "y", "--score", "p", "--threshold", "2"]) == 2
    assert capsys.readouterr().err.count("\n") == 1
