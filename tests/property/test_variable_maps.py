"""Whatever the rows: finite scores in [0, 1], JSON that carries the map, the tree's own laws."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from scipy.special import expit, logit

import calibrant as cal
from calibrant.repair.fitted import Batch, Calibrator
from effort import examples

QUICK = examples(12, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
RECIPES = {
    "AugmentedLogistic": {"quadratic": True},
    "AugmentedBeta": {},
    "VariableTree": {"depth": 2},
    "LocalBias": {"landmarks": 16},
}


@st.composite
def rows(draw):
    """Return rows of any shape: ties, extremes, missing numbers, rare levels, weights."""
    n = draw(st.integers(60, 300))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    p = rng.uniform(size=n) ** draw(st.sampled_from([0.1, 1.0, 30.0]))
    if draw(st.booleans()):
        p = np.round(p, 1)
    v = rng.standard_cauchy(n) if draw(st.booleans()) else rng.integers(0, 3, n).astype(float)
    if draw(st.booleans()):
        v[rng.uniform(size=n) < 0.2] = np.nan
    town = rng.choice([f"t{i}" for i in range(draw(st.integers(1, 30)))], n)
    y = (
        rng.permutation(np.arange(n) % 2)
        if draw(st.booleans())
        else np.where(rng.uniform(size=n) < 0.4, 1, np.arange(n) % 2)
    )
    weights = rng.uniform(0.1, 3.0, n) if draw(st.booleans()) else None
    return cal.predictions(y, p, {"v": v, "town": town}, weights=weights)


@pytest.mark.parametrize("name", RECIPES)
@QUICK
@given(data=rows())
def test_any_rows(name, data):
    fitted = getattr(cal.repair, name)(variables=["v", "town"], **RECIPES[name]).fit(data)
    out = fitted(data).p
    assert np.isfinite(out).all()
    assert ((out >= 0) & (out <= 1)).all()
    again = Calibrator.from_json(fitted.to_json())
    assert again == fitted
    assert np.array_equal(again(data).p, out)


@QUICK
@given(data=rows(), depth=st.integers(0, 3))
def test_a_row_lies_in_one_leaf_and_its_order_by_score_holds_there(data, depth):
    fitted = cal.repair.VariableTree(variables=["v", "town"], depth=depth).fit(data)
    from calibrant.data.specs.coding import encode

    where = np.zeros(data.n, dtype=int)
    if fitted.codings:
        x = encode(data.covariates.select(list(fitted.reads)), fitted.codings)
        where = fitted.at(Batch(data.p, x))
    leaves = fitted.leaf_nodes
    assert len(fitted.leaves) == len(leaves)
    assert [int((where == i).sum()) for i in leaves] == list(fitted.settings["leaf_rows"])
    assert min(min(s) for s in fitted.slopes) >= 0
    out = fitted(data).p
    for i in leaves:
        order = np.argsort(data.p[where == i])
        assert (np.diff(out[where == i][order]) >= -1e-12).all()


@QUICK
@given(gap=st.floats(-1.5, 1.5), slope=st.floats(0.4, 2.0), seed=st.integers(0, 1000))
def test_augmented_maps_recover_their_own_shape(gap, slope, seed):
    rng = np.random.default_rng([91, seed])
    p, v = rng.uniform(0.05, 0.95, 6_000), rng.normal(size=6_000)
    truth = expit(slope * logit(p) + gap * v)
    data = cal.predictions(rng.uniform(size=6_000) < truth, p, {"v": v})
    for recipe in (cal.repair.AugmentedLogistic(variables="v"), cal.repair.AugmentedBeta(variables="v")):
        assert np.abs(recipe.fit(data)(data).p - truth).mean() < 0.025
