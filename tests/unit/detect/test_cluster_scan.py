"""The scan where rows belong together or count more: every box by hand, chance by hand, what is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import norm

import calibrant as cal
from calibrant.detect.subgroup_tests import scan_of_clusters
from calibrant.errors import NotComputable
from calibrant.kernels.draws import outcomes
from calibrant.stats.subgroups.cluster_scan import LEAST_CLUSTERS, SALT, ClusterScan, ScannedClusters, ScannedRows
from calibrant.stats.subgroups.scan import EXTRA
from calibrant.views.boxes import boxed, tables_of


def cluster_totals(count: int = 60, size: int = 8, gap: float = 0.0, **more: Any) -> cal.Predictions:
    """Units whose rows share part of the outcome; where two traits are high, more may happen."""
    rng = np.random.default_rng(12)
    cluster = np.repeat(rng.permutation(count), size)
    n = len(cluster)
    x = {"x": rng.normal(size=n), "z": rng.normal(size=n), "g": rng.choice(["a", "b", "c"], n)}
    p = np.round(rng.uniform(0.1, 0.5, n), 2)
    u = np.where(rng.random(n) < 0.5, rng.random(count)[cluster], rng.random(n))
    y = u < p + gap * ((x["x"] > 0.5) & (x["z"] > 0))
    given = {"cluster": cluster, "weights": rng.gamma(2.0, size=n)}
    return cal.predictions(y, p, x, **{k: given[k] for k in more})


def searched(data: cal.Predictions, order: int = 2, tolerance: float = 0.0) -> tuple[ClusterScan, ScannedRows]:
    tables = tables_of(data, None, order, 0)
    rows = boxed(data, tables).scanned
    assert rows is not None
    return scan_of_clusters(tables, rows, 0.05, tolerance, "two-sided"), rows


def intraclass_by_hand(rows: ScannedRows) -> float:
    """Products of residuals over all pairs of different rows of one unit, over those of their null deviations."""
    if not isinstance(rows, ScannedClusters):
        return 0.0
    off, spread = rows.weight * (rows.y - rows.p), rows.weight * np.sqrt(rows.p * (1 - rows.p))
    pairs = (rows.cluster[:, None] == rows.cluster) & ~np.eye(len(off), dtype=bool)
    return float(np.clip((np.outer(off, off)[pairs]).sum() / np.outer(spread, spread)[pairs].sum(), 0, 1))


def by_hand(scan: ClusterScan, rows: ScannedRows, residual: np.ndarray, tolerance: float) -> np.ndarray:
    """Margins of every box and both sides, each from its rows, given what each row adds, shape (rows, draws)."""
    f, w = scan.family, rows.weight
    noise = w**2 * rows.p * (1 - rows.p)
    ordinary = noise.sum() / (w * rows.p * (1 - rows.p)).sum()
    intraclass_correlation, out = intraclass_by_hand(rows), []
    for b in range(f.size):
        inside = f.inside(b, rows.cells)
        assert inside.sum() == f.rows[b] < len(w)
        for sign in (1.0, -1.0):
            v = noise[inside].sum()
            if isinstance(rows, ScannedClusters):
                r = w * (rows.y - rows.p - sign * tolerance)
                joint = (np.bincount(rows.cluster[inside], np.sqrt(noise[inside])) ** 2).sum()
                v = max(
                    (1 - intraclass_correlation) * v + intraclass_correlation * joint,
                    (np.bincount(rows.cluster[inside], r[inside]) ** 2).sum(),
                )
                assert len(np.unique(rows.cluster[inside])) >= LEAST_CLUSTERS
            score = sign * residual[0 if sign > 0 else 1][inside].sum(axis=0) / np.sqrt(v + EXTRA * ordinary**2)
            out.append(score - norm.isf(0.025 * f.weight[b]))
    return np.array(out)


EVENTS = [({"cluster": 1}, 2), ({"weights": 1}, 2), ({"cluster": 1, "weights": 1}, 2), ({"cluster": 1}, 3)]


@pytest.mark.parametrize("tolerance", [0.0, pytest.param(0.05, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("more", "order"), EVENTS)
def test_scores_and_chance_are_those_of_every_box_by_itself(more: Any, order: int, tolerance: float) -> None:
    data = cluster_totals(30 if order == 3 else 60, gap=0.2, **more)
    scan, rows = searched(data, order, tolerance)
    assert len(scan.by_order()) == order
    some = np.random.default_rng(0).random(scan.family.size) < 100 / scan.family.size
    scan = replace(scan, family=scan.family.kept(some))
    assert scan.family.weight.sum() == pytest.approx(1.0)
    r = [rows.weight * (rows.y - rows.p - s) for s in (tolerance, -tolerance)]
    margins = by_hand(scan, rows, np.array(r)[:, :, None], tolerance)[:, 0].reshape(-1, 2).T
    np.testing.assert_allclose(scan.margins, margins, atol=1e-5)
    found = scan.best()
    assert found.margin == scan.margins.max()
    # chance: a sign for each unit, or another outcome of each row at the edge of the tolerance
    draws = 7
    if isinstance(rows, ScannedClusters):
        signs = 2.0 * outcomes(rows.ids, np.full(len(rows.ids), 0.5), 0, draws, SALT) - 1.0
        drawn = [one[:, None] * signs[rows.cluster] for one in r]
    else:
        at = [np.clip(rows.p + s, 0, 1) for s in (tolerance, -tolerance)]
        y = [outcomes(rows.ids, rate, 0, draws, SALT) for rate in at]
        mean_gap = (tolerance, -tolerance)
        drawn = [rows.weight[:, None] * (y[s] - rows.p[:, None] - mean_gap[s]) for s in (0, 1)]
    expected = by_hand(scan, rows, np.array(drawn), tolerance).max(axis=0)
    np.testing.assert_allclose(scan.simulated(draws), expected, atol=1e-5)


@pytest.mark.slow
def test_a_corner_is_found_and_told_by_weight() -> None:
    data = cluster_totals(400, 5, gap=0.4, cluster=1, weights=1)
    found = cal.detect.scan_test(data, draws=199)
    assert found.p_value == 0.005
    assert found.settings["null"] == "signs"
    assert "random signs of whole clusters" in found.law
    assert found.parts["rule"].startswith("x over 0.")
    assert " and z over " in found.parts["rule"]
    assert found.statistic == pytest.approx(found.parts["score"] - found.parts["needed"])
    x, z = (np.asarray(data.covariates.column(k)) for k in ("x", "z"))
    (a, b) = (c["above"] for c in found.parts["conditions"])
    inside = (x > a) & (z > b)
    assert data.weights is not None
    assert found.parts["rows"] == inside.sum()
    assert found.parts["observed"] == pytest.approx(np.average(data.y[inside], weights=data.weights[inside]))
    assert found.parts["gap"] == pytest.approx(np.average((data.y - data.p)[inside], weights=data.weights[inside]))
    both = cal.detect.subgroup_test(data, draws=199)
    assert both.parts["p_scan"] == found.p_value
    assert both.p_value <= 0.05
    assert cal.detect.scan_test(data, draws=99, tolerance=0.6).p_value > 0.5
    assert cal.detect.scan_test(data, draws=99, alternative="less").p_value > 0.05
    assert cal.detect.scan_test(data, draws=99, alternative="greater").p_value == 0.01


@pytest.mark.parametrize("more", [{"cluster": 1}, {"weights": 1}, {"cluster": 1, "weights": 1}])
def test_neither_the_scale_of_weights_nor_the_names_of_units_matter(more: Any) -> None:
    data = cluster_totals(gap=0.2, **more)
    other = cal.predictions(
        data.y,
        data.p,
        data.covariates,
        cluster=data.cluster,
        weights=None if data.weights is None else 64.0 * data.weights,
    )
    one, two = (cal.detect.scan_test(d, draws=99) for d in (data, other))
    assert (one.p_value, one.parts["rule"]) == (two.p_value, two.parts["rule"])
    assert one.statistic == pytest.approx(two.statistic, rel=1e-9)
    assert cal.detect.scan_test(data, draws=99).to_dict() == one.to_dict()


def test_order_of_rows_is_nothing_to_units() -> None:
    data = cluster_totals(gap=0.2, cluster=1)
    turn = np.random.default_rng(1).permutation(data.n)
    assert data.covariates is not None
    assert data.cluster is not None
    columns = {k: np.asarray(data.covariates.column(k))[turn] for k in ("x", "z", "g")}
    turned = cal.predictions(data.y[turn], data.p[turn], columns, cluster=np.asarray(data.cluster)[turn])
    one, two = (cal.detect.scan_test(d, draws=99) for d in (data, turned))
    assert (one.p_value, one.parts["rule"]) == (two.p_value, two.parts["rule"])
    assert one.statistic == pytest.approx(two.statistic, rel=1e-12)


def test_rows_and_sketch_agree_by_units() -> None:
    data = cluster_totals(gap=0.2, cluster=1, weights=1)
    assert data.covariates is not None
    columns = {k: data.covariates.column(k) for k in ("x", "z", "g")}
    table = pa.table({"y": data.y, "p": data.p, "u": data.cluster, "w": data.weights, **columns})
    known = {"label": "y", "score": "p", "cluster": "u", "weights": "w"}
    sketch = cal.sketch(table, variables=["x", "z", "g"], tests=True, **known)
    one, two = (cal.detect.scan_test(d, draws=99) for d in (data, sketch))
    assert one.p_value == two.p_value
    assert one.statistic == pytest.approx(two.statistic)
    assert one.parts["rule"] == two.parts["rule"]


def test_units_of_a_row_are_rows() -> None:
    data = cluster_totals(gap=0.3)
    alone = cal.predictions(data.y, data.p, data.covariates, cluster=np.arange(data.n), weights=np.full(data.n, 2.0))
    assert cal.detect.scan_test(alone, draws=99) == cal.detect.scan_test(data, draws=99)


def test_what_signs_cannot_tell_is_refused() -> None:
    with pytest.raises(NotComputable, match=r"15 clusters \(cluster=\): no subgroup rests on 20"):
        cal.detect.scan_test(cluster_totals(15, cluster=1))
    for more in ({"cluster": 1}, {"weights": 1}):
        with pytest.raises(NotComputable, match="null='bound' is for independent rows of equal weight"):
            cal.detect.scan_test(cluster_totals(**more), null="bound")


def test_a_trait_of_few_units_makes_no_box() -> None:
    """Ten of sixty units are one region: nothing is said of it, however many rows they have."""
    rng = np.random.default_rng(3)
    cluster_code = np.repeat(np.arange(60), 20)
    region = np.where(cluster_code < 10, "small", "large")
    p = rng.uniform(0.2, 0.6, 1200)
    data = cal.predictions(
        rng.random(1200) < p, p, {"region": region, "x": rng.normal(size=1200)}, cluster=cluster_code
    )
    scan, rows = searched(data)
    small = [b for b in range(scan.family.size) if (rows.cluster[scan.family.inside(b, rows.cells)] < 10).all()]
    assert not small
