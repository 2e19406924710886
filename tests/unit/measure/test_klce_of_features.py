"""KLCE of the local test's joint features: its kernel, its bound, its interval, and the audit's check of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import calibrant as cal
from calibrant.data.sketches.sample import identities_of
from calibrant.data.specs.local import Features, part_of
from calibrant.errors import BadInput, NotComputable
from calibrant.kernels.features import CLUSTER
from calibrant.report import markdown
from calibrant.stats.local.kernel_sums import pair_radius
from calibrant.views.features import chunks
from calibrant.views.local_sums import kernel_bound, sums_of_rows


def rows(n: int = 400, gap: float = 0.0, **more: Any) -> Any:
    rng = np.random.default_rng(5)
    p, x, site = rng.uniform(0.2, 0.8, n), rng.normal(size=n), rng.choice(["a", "b", "c"], n)
    return cal.predictions(rng.random(n) < p + gap * np.sign(x), p, {"x": x, "site": site}, **more)


def features(data: Any, landmarks: int = 128) -> tuple[Any, Any]:
    """Return the joint features of every row, by the features themselves, and their spec."""
    sums, how, _ = sums_of_rows(data, None, 0, "auto", 0, landmarks)
    out = np.empty((data.n, sums.spec.columns))
    (whole,) = chunks(data, how, identities_of(data.n, 0))
    Features(sums.spec).of(whole.p, part_of(whole.encoded, slice(None)), out)
    return out[:, 2 : 2 + sums.spec.joint] / CLUSTER, sums.spec


def test_it_is_the_double_loop_over_the_features() -> None:
    data = rows(120, 0.15)
    phi, _ = features(data)
    e = data.y - data.p
    pairs = np.outer(e, e) * (phi @ phi.T)
    expected = (pairs.sum() - np.trace(pairs)) / (data.n * (data.n - 1))
    found = cal.measure.klce(data, features="default")
    assert found.value == pytest.approx(expected, abs=1e-4 / data.n)
    assert found.value == cal.detect.local_calibration_test(data).statistic


def test_it_is_near_the_kernel_over_all_pairs() -> None:
    data = rows(1500, 0.1)
    near, exact = cal.measure.klce(data, features="default"), cal.measure.klce(data)
    assert near.value == pytest.approx(exact.value, rel=0.2)
    assert near.high - near.value < 0.6 * (exact.high - exact.value)
    assert near.assumes.startswith("independent outcomes, given the scores and covariates")
    assert exact.assumes.startswith("independent rows")


@pytest.mark.parametrize("landmarks", [2, 16, 128])
@pytest.mark.parametrize("kind", ["plain", "far", "ties", "one number"])
def test_no_row_is_longer_than_the_bound(kind: str, landmarks: int) -> None:
    rng = np.random.default_rng(landmarks)
    n = 600
    x = {
        "plain": {"x": rng.normal(size=n), "site": rng.choice(["a", "b", "c"], n)},
        "far": {"x": rng.standard_cauchy(n), "z": rng.standard_cauchy(n)},
        "ties": {"x": rng.integers(0, 2, n), "site": rng.choice(["a", "b"], n, p=[0.99, 0.01])},
        "one number": {"x": rng.uniform(size=n)},
    }[kind]
    p = rng.uniform(size=n)
    phi, spec = features(cal.predictions(rng.random(n) < p, p, x), landmarks)
    bound = kernel_bound(spec)
    longest = float((phi**2).sum(axis=1).max())
    assert 0.9 < longest <= bound < 1.6


def test_the_interval_and_the_region_are_hoeffdings_with_half_of_the_rows() -> None:
    data = rows(401)
    found = cal.measure.klce(data, features="default", alpha=0.1)
    bound, slack = found.settings["bound"], 1e-4 * found.settings["bound"] / 400
    assert found.high - found.value == pytest.approx(pair_radius(0.05, 200, bound / 2) + slack)
    assert found.settings["accepted"] == pytest.approx(pair_radius(0.1, 200, bound / 2) + slack)
    assert found.low == max(found.value - (found.high - found.value), -bound / 400)
    assert (found.interval.level, found.interval.guarantee) == (0.9, "finite-sample")


def test_a_sketch_gives_the_answer_of_its_rows() -> None:
    data = rows(500, 0.1)
    sketch = cal.sketch(data, variables="*", tests=True)
    found = cal.measure.klce(sketch, features="default")
    assert found == cal.measure.klce(data, features="default")
    with pytest.raises(BadInput, match="sums for all of"):
        cal.measure.klce(sketch, features="default", variables="x")
    with pytest.raises(BadInput, match="tests=True"):
        cal.measure.klce(cal.sketch(data, variables="*"), features="default")


def test_what_has_no_such_number_is_refused() -> None:
    data = rows(60)
    with pytest.raises(BadInput, match="no meaning with features='default'"):
        cal.measure.klce(data, features="default", score_width=1.0)
    with pytest.raises(BadInput, match="features="):
        cal.measure.klce(data, features="published")  # type: ignore[arg-type]
    with pytest.raises(NotComputable, match="independent rows"):
        cal.measure.klce(rows(60, cluster=np.arange(60) // 2), features="default")
    with pytest.raises(NotComputable, match="weighted"):
        cal.measure.klce(rows(60, weights=np.linspace(1, 2, 60)), features="default")
    with pytest.raises(NotComputable, match="the same in every row"):
        cal.measure.klce(cal.predictions([0, 1] * 10, [0.5] * 20, {"x": [1.0] * 20}), features="default")
    many = cal.multiclass_predictions([0, 1, 2], np.full((3, 3), 1 / 3), {"x": [1.0, 2.0, 3.0]})
    with pytest.raises(BadInput, match="two classes"):
        cal.measure.klce(many, features="default")


@pytest.mark.slow
def test_an_audit_tells_it_with_its_region_and_its_p_value() -> None:
    data = rows(2000, 0.2)
    record = cal.audit(data)
    check = next(c for c in record.checks if c.code == "kernel-error")
    assert check.estimate == record.estimates["klce"] == cal.measure.klce(data, features="default")
    assert "klce" in record.certified
    text = markdown.render(record)
    assert "Kernel local calibration error (KLCE²) | Measured |" in text
    assert "a calibrated model is accepted under 0.04" in text
    assert "help(cal.detect.kernel_tuning)" in text


@pytest.mark.slow
def test_an_audit_says_why_it_is_not_told() -> None:
    def of(data: Any, **more: Any) -> Any:
        return next(c for c in cal.audit(data, **more).checks if c.code == "kernel-error")

    assert of(rows(60), quick=True).reason == "left out by --quick"
    assert of(rows(60), variables=None).status == "not-run"
    assert of(cal.sketch(rows(60), variables="*")).status == "not-run"
    clusters = of(rows(100, cluster=np.arange(100) // 2))
    assert (clusters.status, "independent rows" in clusters.reason) == ("not-applicable", True)


def test_the_p_value_is_the_rank_of_the_squared_sums() -> None:
    right, wrong = (cal.detect.local_calibration_test(rows(2000, gap), draws=199).parts["p_klce"] for gap in (0, 0.4))
    assert wrong == 0.005 < 0.02 < right
