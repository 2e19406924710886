"""The published comparators: results, settings, refusals and the formulas' edges."""

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import calibrant as cal
from calibrant.apps.papers import bounds as published
from calibrant.apps.papers.bounds import gudermannian, perturbed
from calibrant.apps.papers.certificates import (
    published_kernel,
    published_lipschitz,
    published_stream,
    published_total_variation,
)
from calibrant.errors import BadInput, NotComputable
from calibrant.results import Estimate

ALL = [published_kernel, published_total_variation, published_lipschitz]
FOLDED = [published_kernel, published_total_variation]
JITTERED = [published_kernel, published_lipschitz]


@dataclass(frozen=True)
class Rows:
    """Stands in for `Predictions`: what the comparators read of it."""

    y: Any
    p: Any
    weights: Any = None
    cluster: Any = None

    @property
    def n(self) -> int:
        return len(self.p)


def rows(n: int = 3000, seed: int = 0, **extra: Any) -> Rows:
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    y = (rng.random(n) < p).astype(np.int8)
    p.flags.writeable = y.flags.writeable = False
    return Rows(y, p, **extra)


@pytest.mark.parametrize("bound", ALL)
def test_result(bound):
    found = bound(rows(), alpha=0.1, seed=4)
    assert found.method == f"papers.{bound.__name__}"
    assert found.unit == "probability"
    assert found.n == 3000
    assert found.interval.guarantee == "as published"
    assert found.interval.level == 0.9
    assert found.interval.low == 0.0
    assert 0.0 < found.value < found.interval.high <= 1.0
    assert Estimate.from_dict(json.loads(json.dumps(found.to_dict()))).to_dict() == found.to_dict()


@pytest.mark.parametrize("bound", ALL)
def test_same_seed_same_result(bound):
    assert bound(rows(), seed=1).to_dict() == bound(rows(), seed=1).to_dict()
    assert bound(rows(), seed=1).value != bound(rows(), seed=2).value or bound is published_total_variation


@pytest.mark.parametrize("bound", ALL)
@pytest.mark.parametrize("alpha", [0.0, 1.0, -0.1, float("nan")])
def test_alpha_outside(bound, alpha):
    with pytest.raises(BadInput, match="alpha="):
        bound(rows(), alpha=alpha)


@pytest.mark.parametrize("bound", ALL)
@pytest.mark.parametrize("side", ["two-sided", "lower"])
def test_upper_only(bound, side):
    with pytest.raises(BadInput, match="states no other bound"):
        bound(rows(), side=side)


@pytest.mark.parametrize("bound", ALL)
@pytest.mark.parametrize("what", ["weights", "cluster"])
def test_no_proof(bound, what):
    with pytest.raises(NotComputable, match=f"no proof for {what}"):
        bound(rows(**{what: np.ones(3000)}))


@pytest.mark.parametrize("bound", ALL)
def test_sketch(bound):
    with pytest.raises(NotComputable, match="reads rows"):
        bound(object())


@pytest.mark.parametrize("bound", FOLDED)
def test_folds(bound):
    for folds in (1, 0, 2.5):
        with pytest.raises(BadInput, match="folds="):
            bound(rows(), folds=folds)
    with pytest.raises(BadInput, match="was given 9 rows: pass at least 10"):
        bound(rows(9))
    assert bound(rows(10)).interval.high == 1.0


def test_one_row_is_too_few():
    with pytest.raises(BadInput, match="was given 1 rows"):
        published_lipschitz(rows(1))
    assert published_lipschitz(rows(2)).interval.high == 1.0


@pytest.mark.parametrize("bound", JITTERED)
@pytest.mark.parametrize("bandwidth", [0.0, -1.0, float("nan"), float("inf")])
def test_bandwidth(bound, bandwidth):
    with pytest.raises(BadInput, match="bandwidth="):
        bound(rows(), bandwidth=bandwidth)


@pytest.mark.parametrize("bound", JITTERED)
@pytest.mark.parametrize("bandwidth", [1e-9, 1e-4, 1.0, 1e9])
def test_extreme_bandwidth(bound, bandwidth):
    assert 0.0 < bound(rows(400), bandwidth=bandwidth).interval.high <= 1.0


@pytest.mark.parametrize("bound", ALL)
@pytest.mark.parametrize("seed", [-1, 0.5])
def test_seed(bound, seed):
    with pytest.raises(BadInput, match=f"seed={seed}: "):
        bound(rows(), seed=seed)


def test_perturbation_is_unrelated_to_the_users_own_draws():
    p = np.random.default_rng(0).random(5000)
    assert abs(np.corrcoef(published_stream(0).random(5000), p)[0, 1]) < 0.1


@pytest.mark.parametrize("variation", [-0.5, float("inf"), float("nan")])
def test_variation(variation):
    with pytest.raises(BadInput, match="variation="):
        published_total_variation(rows(), variation=variation)


@pytest.mark.parametrize("bound", ALL)
@pytest.mark.parametrize("score", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("label", [0, 1])
def test_constant_score_and_label(bound, score, label):
    found = bound(Rows(np.full(500, label, np.int8), np.full(500, score)))
    assert 0.0 <= found.value <= found.interval.high <= 1.0


def test_kernel_bound_is_the_sum_of_its_terms():
    facts = published_kernel(rows(), seed=3).settings
    total = facts["surrogate_gap"] + facts["smoothing_error"] + facts["concentration"]
    assert published_kernel(rows(), seed=3).interval.high == pytest.approx(total, abs=1e-12)
    assert facts["evaluated"] == 3000


def test_subsampling_evaluates_fewer_rows():
    data = rows(60_000)
    facts = published_kernel(data, subsample=True).settings
    assert facts["evaluated"] == 5 * 5000
    whole, part = published_kernel(data), published_kernel(data, subsample=True)
    assert part.interval.high == pytest.approx(whole.interval.high, rel=0.1)


@pytest.mark.parametrize(("n", "held", "size"), [(1000, 200, 200), (200_000, 40_000, 10_000), (10**6, 200_000, 15_000)])
def test_subsample_size(n, held, size):
    picked = published._validation_rows(n, held, np.random.default_rng(0))
    assert picked.size == size == np.unique(picked).size
    assert np.all(np.diff(picked) > 0)


def test_nearest_neighbour_stays_below_its_ceiling():
    found = published_kernel(Rows(np.tile([0, 1], 200).astype(np.int8), np.full(400, 0.2)), bandwidth=1e-3)
    facts = found.settings
    assert facts["nearest_neighbour"] > 0
    assert facts["smoothing_error"] <= 1.0


def test_ceiling():
    slope, curvature, width = 2.0, 8.0, 0.1
    printed = 0.2 + 0.04 + 0.5
    dense = np.linspace(0.05, 0.95, 10)
    assert published._ceiling(dense, width, slope, curvature) == pytest.approx(printed)
    for gap in (dense[1:], dense[:-1], np.delete(dense, [4, 5])):
        assert published._ceiling(gap, width, slope, curvature) == 1.0


def test_bandwidth_minimises_the_surrogate():
    slope, curvature, n = 32.0, 6144.0, 5000
    best, clipped = published.plug_in_bandwidth(n, slope, curvature)

    def cost(h: float) -> float:
        return 3 / 8 * slope * h + curvature / 10 * h**2 + 1.15 / (2 * np.sqrt(2 * n)) / np.sqrt(h)

    assert clipped == best
    assert cost(best) < min(cost(0.99 * best), cost(1.01 * best))
    assert published.plug_in_bandwidth(10**12, slope, curvature)[1] == 1e-4
    assert published.plug_in_bandwidth(10, 1e-3, 1e-3)[1] == 0.25


def test_perturbation_inverts_its_distribution_function():
    class Ruler:
        def random(self, size: int) -> np.ndarray:
            return np.linspace(0.0, 1.0, size)

    for h in (0.25, 2**-6, 1e-3):
        for p in (0.0, 0.1, 0.5, 0.93, 1.0):
            s = perturbed(np.full(101, p), h, Ruler())  # type: ignore[arg-type]
            below, above = gudermannian((s - p) / h), gudermannian(np.array([(1.0 - p) / h]))
            start = gudermannian(np.array([-p / h]))
            cumulative = (below - start) / (above - start)
            assert np.allclose(cumulative, np.linspace(0, 1, 101), atol=1e-12)
            assert s.min() >= 0
            assert s.max() <= 1


def test_bucket_bound_by_hand():
    s = np.array([0.1, 0.2, 0.6, 0.9])
    y = np.array([0.0, 1.0, 1.0, 1.0])
    rows = published.Prefix.of(s, y)
    gap, high = published.bucket_bound(rows, 2, 0.0, 1.0, 0.05)
    assert gap == pytest.approx((0.4 + 0.3 + 0.4 + 0.1) / 4)
    assert high == pytest.approx(1.0 + np.sqrt(np.log(2 / 0.05) / 8))  # both buckets are at their cap
    shifted = published.bucket_bound(rows, 2, 0.3, 1.0, 0.05)[0]  # edges 0.15 and 0.65
    assert shifted == pytest.approx((0.1 + 0.8 + 0.4 + 0.1) / 4)


def test_bucket_bound_below_its_cap():
    n = 10**5
    s = (np.arange(n) + 0.5) / n
    y = (np.arange(n) % 2).astype(np.float64)
    rows = published.Prefix.of(s, y)
    gap, high = published.bucket_bound(rows, 10, 0.0, 0.5, 0.01)
    noise = np.sqrt(np.log(4 * 10 / 0.01) / (2 * n / 10))
    assert gap == pytest.approx(0.25, abs=1e-9)
    assert high == pytest.approx(0.25 + noise + 0.025 + np.sqrt(np.log(200) / (2 * n)), abs=1e-5)


def test_denoised_value_between_scores():
    knots, values = published.denoised(np.array([0.2, 0.2, 0.4]), np.array([0.0, 1.0, 1.0]), 0.0)
    assert knots.tolist() == [0.2, 0.4]
    assert values.tolist() == [0.5, 1.0]


# ---- the perturbed score in one step: certified rows do not choose its bandwidth ----

N = 3000
P = np.random.default_rng(7).beta(1, 2, N)
Y = (np.random.default_rng(8).uniform(size=N) < P).astype(int)


@pytest.mark.slow
def test_pilot_rows_choose_and_the_others_certify() -> None:
    found = cal.papers.perturb(cal.predictions(Y, P), loss=0.002, pilot=0.3, seed=1)
    chosen, kept = (cal.predictions(Y[rows], P[rows]) for rows in (~found.certified, found.certified))
    width = cal.certify.jitter_bandwidth(chosen, tolerance=0.002)
    assert found.certificate.settings["bandwidth"] == width
    assert found.certificate == cal.certify.jittered(kept, bandwidth=width, seed=1)
    assert (~found.certified).sum() == round(0.3 * N)
    np.testing.assert_array_equal(found.scores, cal.repair.Jitter(bandwidth=width, seed=1).fit().scores(P))


@pytest.mark.slow
def test_labels_of_certified_rows_choose_nothing() -> None:
    """A bandwidth that has seen them voids the guarantee: any other labels of theirs lead to the same one."""
    found = cal.papers.perturb(cal.predictions(Y, P), pilot=0.2)
    worse = np.where(found.certified, (np.median(P) > P).astype(int), Y)  # a score that orders nothing costs nothing
    other = cal.papers.perturb(cal.predictions(worse, P), pilot=0.2)
    np.testing.assert_array_equal(found.certified, other.certified)
    np.testing.assert_array_equal(found.scores, other.scores)
    assert other.certificate.settings["bandwidth"] == found.certificate.settings["bandwidth"]
    assert other.certificate.interval != found.certificate.interval
