"""What must hold of every certificate on any data: order, monotonicity, invariance, round trips."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given
from hypothesis import strategies as st

import calibrant as cal
from calibrant.certify.groups import groups
from calibrant.certify.jittered import jittered
from calibrant.certify.whole import bounded_variation, distance, raw_lower, rounded
from calibrant.kernels.tally import fixed_point
from calibrant.results import Estimate
from calibrant.stats.betting import FORWARD, solve
from calibrant.stats.bounds import _forward
from calibrant.views.population import EXACT_STEPS
from calibrant.views.sample import everyone, group
from effort import examples

TWO_SIDED = (rounded, jittered, distance, bounded_variation)
EVERY = (*TWO_SIDED, raw_lower)
SOME_LATER = [pytest.param(c, marks=[pytest.mark.slow] if c in (jittered, distance) else []) for c in EVERY]
some = examples(8, quick=3, suppress_health_check=[HealthCheck.too_slow])
many = examples(60, quick=10)

scores = st.one_of(
    st.floats(0, 1),
    st.sampled_from([0.0, 1.0, 0.5, 0.25, 1 / 3, 1e-12, 1 - 1e-12, 0.005, 0.015, 0.995]),
)
alphas = st.floats(1e-4, 0.5)


@st.composite
def data(draw, most=60):
    """A handful of distinct scores, each with some outcomes: n from 1 to a few thousand."""
    values = draw(st.lists(scores, min_size=1, max_size=6))
    parts = [(p, draw(st.integers(0, most)), draw(st.integers(0, most))) for p in values]
    p = np.concatenate([np.full(a + b, v) for v, a, b in parts])
    y = np.concatenate([np.repeat([0, 1], [a, b]) for _, a, b in parts])
    assume(len(p) > 0)
    order = np.random.default_rng([0x9209, draw(st.integers(0, 1000))]).permutation(len(p))
    return cal.predictions(y[order], p[order])


def ends(estimate):
    return estimate.interval.low, estimate.interval.high


@pytest.mark.parametrize("certify", EVERY)
@some
@given(data(), alphas, st.integers(0, 5))
def test_ends_lie_in_the_unit_interval_and_hold_the_value(certify, d, alpha, seed):
    found = certify(d, alpha=alpha, seed=seed)
    low, high = ends(found)
    assert 0.0 <= low <= 1.0
    assert 0.0 <= high <= 1.0
    if low <= high:
        assert low <= found.value <= high
    assert found.n == d.n
    assert found.interval.level == 1.0 - alpha


@pytest.mark.parametrize("certify", [rounded, distance, jittered, bounded_variation])
@some
@given(data(), st.sampled_from([(0.01, 0.05), (0.05, 0.1), (0.1, 0.5)]))
def test_upper_end_falls_as_alpha_rises(certify, d, pair):
    strict, loose = (certify(d, alpha=a, side="upper").interval.high for a in pair)
    assert loose <= strict + 1e-9


@some
@given(data(), st.sampled_from([(0.01, 0.05), (0.05, 0.1), (0.1, 0.5)]))
def test_lower_evidence_rises_as_alpha_rises_at_fixed_bets(d, pair):
    """The stakes follow alpha; for given wagers the bound is monotone."""
    wagers = [_forward(everyone(d).cells, bet_size) for bet_size in FORWARD.multiples]
    strict, loose = (solve(wagers, np.full(4, 0.25), a) for a in pair)
    assert loose >= strict - 1e-9


@pytest.mark.parametrize("certify", SOME_LATER[:-1])
@some
@given(data(), st.integers(0, 3))
def test_two_sided_has_the_ends_of_two_one_sided_at_half_alpha(certify, d, seed):
    both = certify(d, alpha=0.1, seed=seed)
    low, high = (certify(d, alpha=0.05, side=side, seed=seed) for side in ("lower", "upper"))
    assert ends(both) == (low.interval.low, high.interval.high)
    assert (low.interval.high, high.interval.low) == (1.0, 0.0)


@some
@given(data())
def test_raw_lower_spends_half_of_alpha_when_two_sided(d):
    assert ends(raw_lower(d, alpha=0.1, side="two-sided")) == ends(raw_lower(d, alpha=0.05))


@pytest.mark.parametrize("certify", SOME_LATER)
@some
@given(data(), st.integers(0, 3))
def test_rows_and_sketch_agree_to_the_last_bit(certify, d, seed):
    table = {"y": d.y, "p": d.p}
    whole = cal.sketch(table, label="y", score="p", seed=seed)
    again = cal.Sketch.from_bytes(whole.to_bytes())
    assert certify(d, seed=seed) == certify(whole, seed=seed) == certify(again, seed=seed)


@pytest.mark.parametrize("certify", [rounded, jittered, distance, bounded_variation])
@some
@given(data(), st.randoms(use_true_random=False))
def test_upper_end_ignores_the_order_of_rows(certify, d, random):
    order = list(range(d.n))
    random.shuffle(order)
    shuffled = cal.predictions(d.y[order], d.p[order])
    assert certify(d, side="upper").interval.high == certify(shuffled, side="upper", seed=9).interval.high


@pytest.mark.parametrize("certify", SOME_LATER)
@some
@given(data())
def test_same_input_same_result(certify, d):
    assert certify(d, seed=3) == certify(d, seed=3)


@pytest.mark.parametrize("certify", EVERY)
@some
@given(data())
def test_results_round_trip(certify, d):
    found = certify(d)
    again = Estimate.from_dict(found.to_dict())
    assert again.to_dict() == found.to_dict()
    assert (again.interval, again.value, again.n) == (found.interval, found.value, found.n)


@some
@given(data(), st.integers(2, 1024))
def test_every_number_of_levels_is_certified(d, levels):
    low, high = ends(rounded(d, steps=levels, alpha=0.2))
    assert 0.0 <= low <= 1.0
    assert 0.0 <= high <= 1.0


def rounded_by_library(p, steps, by=None):
    """Level of each score, one sketch of one row each."""
    y = np.zeros(len(p))
    whole = cal.sketch(cal.predictions(y, p, by and {"g": by}), by=["g"] if by else None)
    q = group(whole, 0) if by else everyone(whole)
    return q.levels(steps).totals[:, 0]


@pytest.mark.parametrize("steps", EXACT_STEPS)
@many
@given(st.lists(scores, min_size=1, max_size=30))
def test_exact_levels_follow_integer_arithmetic(steps, p):
    level = ((fixed_point(p) + 1) * steps + (1 << 29)) >> 30
    assert (rounded_by_library(p, steps) == np.bincount(level, minlength=steps + 1)).all()


@pytest.mark.parametrize("steps", EXACT_STEPS)
def test_every_decimal_half_goes_up(steps):
    """As people round: 0.005 is 0.01 in whole percent, though its nearest double may be a hair less."""
    p = [(2 * k + 1) / (2 * steps) for k in range(steps)]
    assert rounded_by_library(p, steps).tolist() == [0, *[1] * steps]


@pytest.mark.parametrize("steps", [2**j for j in range(1, 11)])
@many
@given(st.lists(scores, min_size=1, max_size=30))
def test_dyadic_levels_follow_integer_arithmetic(steps, p):
    level = (fixed_point(p) * steps + (1 << 29)) >> 30
    assert (rounded_by_library(p, steps) == np.bincount(level, minlength=steps + 1)).all()


@pytest.mark.parametrize("steps", [*EXACT_STEPS, *(2**j for j in range(1, 10))])
@some
@given(st.lists(scores, min_size=1, max_size=30))
def test_levels_of_a_group_follow_integer_arithmetic(steps, p):
    """All but 1024 steps, where a group's cells are as wide as a step."""
    level = ((fixed_point(p) + (steps in EXACT_STEPS)) * steps + (1 << 29)) >> 30
    assert (rounded_by_library(p, steps, ["x"] * len(p)) == np.bincount(level, minlength=steps + 1)).all()


def test_levels_of_a_group_at_1024_steps_are_half_a_step_high():
    """Known and documented: the middle of a group's cell is half-way between two of 1024 steps, and moves up."""
    p = [0.0, 0.25, 0.5]
    assert rounded_by_library(p, 1024, ["x"] * 3).nonzero()[0].tolist() == [1, 257, 513]


@pytest.mark.parametrize("steps", [7, 147, 1000])
def test_other_levels_round_the_middle_of_the_cell(steps):
    p = np.linspace(0, 1, 997)
    middle = ((fixed_point(p) >> 16) + 0.5) / (1 << 14)
    level = np.floor(middle * steps + 0.5).astype(int)
    assert (rounded_by_library(p, steps) == np.bincount(level, minlength=steps + 1)).all()


def test_the_ends_of_a_group_are_about_two_displays_and_may_cross():
    """Scores next to 0.46 and 0.54, event rate 1/2: the model is off by 0.04, its display in ten steps is not."""
    n = 60_000
    p, y = np.where(np.arange(n) % 2, 0.46, 0.54) + np.arange(n) * 1e-9, np.arange(n) // 2 % 2
    (found,) = groups(cal.predictions(y, p, {"g": ["x"] * n}), by="g", steps=10).values()
    low, high = ends(found)
    assert high < low <= 0.04
    assert found.value <= high
    assert "raw" in found.settings["about"]
    assert "rounding steps" in found.settings["about"]


def test_bounded_variation_is_about_the_score_cut_to_thirty_bits():
    """An event rate that steps from 0 to 1 between two scores 2^-32 apart: cut to 2^-30 the score is one, and right."""
    y = np.arange(2000) % 2
    found = bounded_variation(cal.predictions(y, 0.5 + y * 2.0**-32), variation=1.0, side="upper")
    assert found.interval.high < 0.1
    assert "2^-30" in bounded_variation.__doc__


@pytest.mark.slow
def test_certificates_stay_functions_whatever_is_imported_first():
    code = "import calibrant.certify.groups, calibrant as cal; assert callable(cal.certify.rounded)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
