"""What every map of the score keeps: JSON, order, weights as copies, chunks."""

import copy
import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given
from hypothesis import strategies as st

import calibrant as cal
from calibrant.errors import NotComputable
from calibrant.repair import (
    BBQ,
    Beta,
    Calibrator,
    Dirichlet,
    Histogram,
    Isotonic,
    Jitter,
    Platt,
    Rounding,
    ScalingBinning,
    Temperature,
)
from effort import examples

RECIPES = (
    Platt(),
    Platt(scale="raw"),
    Temperature(),
    Isotonic(fewest=1),
    Beta(),
    Beta(parameters="am"),
    Beta(parameters="ab"),
    Histogram(bins=4, fewest=1),
    Histogram(bins=7, strategy="uniform", fewest=1),
    ScalingBinning(bins=3, fewest=1),
    ScalingBinning(bins=4, split=False, scale="raw", fewest=1),
    BBQ(fewest=1),
    BBQ(criterion="aic", strategy="uniform", fewest=1),
    BBQ(criterion="bic", fewest=1),
    Rounding(),
    Rounding(steps=7),
    Jitter(),
    Jitter(bandwidth=0.3, seed=9),
)
EDGES = (0.0, 1.0, 5e-324, 1e-7, 1e-6, 1 - 1e-6, 1 - 2**-53, 0.5)
SCORE = st.one_of(st.floats(0.0, 1.0), st.integers(0, 8).map(lambda k: k / 8), st.sampled_from(EDGES))
ROWS = st.lists(st.tuples(SCORE, st.booleans()), min_size=2, max_size=40)
QUICK = examples(20, quick=8, suppress_health_check=[HealthCheck.filter_too_much])
ASCENDING = np.unique(
    np.concatenate([np.linspace(0, 1, 257), np.logspace(-15, -2, 53), 1 - np.logspace(-15, -2, 53), EDGES])
)


def frame(rows, weights=None):
    p, y = (np.array(v, dtype=float) for v in zip(*rows, strict=True))
    return cal.predictions(y, p, weights=weights)


def fitted(recipe, data):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            return recipe.fit(data)
        except NotComputable:
            return None


@pytest.mark.parametrize("recipe", RECIPES, ids=repr)
@given(rows=ROWS)
@QUICK
def test_values_are_probabilities_json_makes_an_equal_map_and_order_is_as_told(recipe, rows):
    made = fitted(recipe, frame(rows))
    assume(made is not None)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        shown = made.scores(ASCENDING)
    assert shown.dtype == np.float64
    assert np.isfinite(shown).all()
    assert shown.min() >= 0.0
    assert shown.max() <= 1.0
    again = Calibrator.from_json(made.to_json())
    assert again == made
    assert copy.deepcopy(again) == made  # as scikit-learn's clone does
    assert (again.scores(ASCENDING) == shown).all()
    if made.order != "may change":
        assert (np.diff(shown) >= 0).all()
    if made.order == "kept":
        inside = (shown > 1e-9) & (shown < 1 - 1e-9) & (ASCENDING > 1e-3) & (ASCENDING < 1 - 1e-3)
        slope = made.slope if hasattr(made, "slope") else max(made.a, made.b)
        if slope > 1e-3:
            assert (np.diff(shown[inside]) > 0).all()


@pytest.mark.parametrize("recipe", [r for r in RECIPES if not getattr(r, "split", False)], ids=repr)
@given(rows=ROWS, data=st.data())
@QUICK
def test_a_weight_is_so_many_copies(recipe, rows, data):
    count = np.array(data.draw(st.lists(st.integers(1, 5), min_size=len(rows), max_size=len(rows))))
    weighted = fitted(recipe, frame(rows, count.astype(float)))
    copied = fitted(recipe, frame([r for r, k in zip(rows, count, strict=True) for _ in range(k)]))
    assume(weighted is not None and copied is not None)
    assume(len({r[0] for r in rows}) > 2 or getattr(recipe, "parameters", "") != "abm")  # three numbers of two scores
    # Where scores separate the classes a curve ends in the flat of its loss: it tells the rows; rounding moves others.
    flat = isinstance(recipe, (Platt, Beta)) and separate(rows)
    at = np.array([r[0] for r in rows]) if flat else np.linspace(0.003, 0.997, 101)
    assert np.allclose(weighted.scores(at), copied.scores(at), atol=1e-4)


def separate(rows) -> bool:
    """Tell whether a threshold, or an interval, of the score has all cases on one side and all others on the other."""
    events, rest = ([p for p, y in rows if y == k] for k in (1, 0))

    def inside(some, others):
        return not [p for p in others if min(some) <= p <= max(some)]

    return not events or not rest or inside(events, rest) or inside(rest, events)


def test_a_weight_is_so_many_copies_where_scores_separate() -> None:
    rows = [(0.0, 0), (1.0, 1), (0.999999, 1)]
    assert separate(rows)
    for count in ((1, 3, 5), (5, 1, 2)):
        weighted = fitted(Beta(), frame(rows, np.array(count, dtype=float)))
        copied = fitted(Beta(), frame([r for r, k in zip(rows, count, strict=True) for _ in range(k)]))
        at = np.array([p for p, _ in rows])
        assert np.allclose(weighted.scores(at), copied.scores(at), atol=1e-4)


@pytest.mark.parametrize("recipe", RECIPES, ids=repr)
@given(cut=st.integers(0, 200))
@examples(4)
def test_chunks_give_what_the_whole_gives(recipe, cut):
    rng = np.random.default_rng(404)
    p = rng.uniform(size=200)
    made = recipe.fit(cal.predictions(rng.uniform(size=200) < p, p))
    ids = rng.integers(0, 2**63, 200).astype(np.uint64)
    whole = made.scores(p, ids=ids)
    assert (np.concatenate([made.scores(p[:cut], ids=ids[:cut]), made.scores(p[cut:], ids=ids[cut:])]) == whole).all()


@given(
    n=st.integers(6, 40),
    k=st.integers(3, 5),
    seed=st.integers(0, 999),
    penalty=st.sampled_from(["odir", "l2"]),
    sharp=st.booleans(),
)
@examples(25, quick=6)
def test_dirichlet_gives_probabilities_and_survives_json(n, k, seed, penalty, sharp):
    rng = np.random.default_rng([seed, 7])
    p = np.eye(k)[rng.integers(0, k, n)] if sharp else rng.dirichlet(np.ones(k), n)
    y = rng.integers(0, k, n)
    assume(len(np.unique(y)) > 1)
    data = cal.multiclass_predictions(y, p)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made = Dirichlet(penalty=penalty, strength=0.01).fit(data)
        shown = made(data).p
    assert np.isfinite(shown).all()
    assert shown.min() >= 0
    assert np.abs(shown.sum(axis=1) - 1).max() < 1e-12
    assert Calibrator.from_json(made.to_json()) == made
