"""Maps of the score: settings, degenerate rows, and what each is by definition."""

import warnings
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy.special import betaln
from scipy.special import softmax as softmax_of
from scipy.stats import chisquare

import calibrant as cal
from calibrant.errors import BadInput, NotComputable
from calibrant.kernels.draws import outcomes, uniforms
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
from calibrant.repair.regression import EDGE, log_odds, log_of
from calibrant.stats.jitter import jitter
from calibrant.views.sample import everyone

FITTED = (
    Platt(),
    Platt(scale="logit"),
    Platt(scale="raw"),
    Platt(scale="raw", ridge=1.0),
    Platt(scale="log ratio", ridge=0.0),
    Temperature(),
    Isotonic(),
    Beta(),
    Beta(parameters="am"),
    Beta(parameters="ab"),
    Histogram(),
    Histogram(strategy="uniform"),
    ScalingBinning(),
    ScalingBinning(split=False),
    BBQ(),
    BBQ(criterion="bic", strategy="uniform"),
)


def square(n, seed=1):
    rng = np.random.default_rng([seed, n])
    p = rng.uniform(size=n)
    return cal.predictions(rng.uniform(size=n) < p**2, p)


def classes(n, k=3, seed=2, power=2.0):
    rng = np.random.default_rng([seed, n])
    p = rng.dirichlet(np.ones(k), n)
    truth = p**power / (p**power).sum(axis=1, keepdims=True)
    y = (rng.uniform(size=(n, 1)) > truth.cumsum(axis=1)).sum(axis=1).clip(0, k - 1)
    return cal.multiclass_predictions(y, p), truth


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: Platt(scale="cubic"), "scale"),
        (lambda: Platt(ridge=-1.0), "ridge"),
        (lambda: Platt(ridge=True), "ridge"),
        (lambda: ScalingBinning(ridge=float("nan")), "ridge"),
        (lambda: Beta(parameters="bm"), "parameters"),
        (lambda: Histogram(bins=0), "bins"),
        (lambda: Histogram(bins=True), "bins"),
        (lambda: Histogram(strategy="mass"), "strategy"),
        (lambda: ScalingBinning(bins=2.0), "bins"),
        (lambda: ScalingBinning(scale="x"), "scale"),
        (lambda: ScalingBinning(split=1), "split"),
        (lambda: ScalingBinning(seed=-1), "seed"),
        (lambda: BBQ(criterion="bdeu2"), "criterion"),
        (lambda: BBQ(strategy="log"), "strategy"),
        (lambda: Rounding(steps=1), "steps"),
        (lambda: Jitter(bandwidth=1.0), "bandwidth"),
        (lambda: Jitter(seed="a"), "seed"),
        (lambda: Dirichlet(penalty="l1"), "penalty"),
        (lambda: Dirichlet(strength=-1), "strength"),
        (lambda: Dirichlet(strength=float("nan")), "strength"),
        (lambda: Dirichlet(penalty="l2", intercept_strength=1.0), "intercept_strength"),
        (lambda: Dirichlet(seed=None), "seed"),
    ],
)
def test_refuses_settings_by_name(make, name):
    with pytest.raises(BadInput, match=f"^{name}="):
        make()


@pytest.mark.parametrize("recipe", FITTED, ids=repr)
def test_one_outcome_is_not_computable(recipe):
    with pytest.raises(NotComputable, match="outcome"):
        recipe.fit(cal.predictions([1, 1, 1, 1], [0.1, 0.2, 0.3, 0.4]))


DEGENERATE = (
    [0.3] * 6,
    [0.0] * 6,
    [1.0] * 6,
    [0.0, 0.0, 0.0, 1.0, 1.0, 1.0],
    [0.5, 0.5, 0.5, 0.5, 0.5, 0.5000000000000001],
    [5e-324, 1e-320, 1e-7, 0.999999999, 1.0, 0.5],
    [0.0, 0.0, 0.0, 5e-324, 5e-324, 5e-324],
    [0.1, 0.2, 0.3, 0.7, 0.8, 0.9],
    [0.9, 0.8, 0.7, 0.3, 0.2, 0.1],
)


@pytest.mark.parametrize("recipe", [*FITTED, Rounding(), Jitter()], ids=repr)
@pytest.mark.parametrize("weights", [None, [1e-9, 1e9, 1, 1, 2, 3]])
def test_degenerate_rows_give_probabilities_or_a_reason(recipe, weights):
    for p, y in product(DEGENERATE, ([0, 0, 0, 1, 1, 1], [1, 0, 1, 0, 0, 0], [0, 1, 0, 1, 0, 1])):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            try:
                made = recipe.fit(cal.predictions(y, p, weights=weights))
            except NotComputable:
                assert isinstance(recipe, ScalingBinning)  # the rows dealt to its curve may have one outcome
                continue
            shown = made.scores(np.array([0.0, 1e-300, 0.3, 0.5, 1.0]))
        assert np.isfinite(shown).all()
        assert ((shown >= 0) & (shown <= 1)).all()
        assert Calibrator.from_json(made.to_json()) == made


@pytest.mark.parametrize("recipe", FITTED, ids=repr)
def test_five_rows(recipe):
    data = cal.predictions([0, 1, 0, 1, 1], [0.1, 0.4, 0.35, 0.8, 0.2])
    try:
        shown = recipe.fit(data)(data).p
    except NotComputable:
        assert isinstance(recipe, ScalingBinning)
        return
    assert ((shown >= 0) & (shown <= 1)).all()


def test_binary_maps_refuse_classes_and_dirichlet_refuses_two():
    many, _ = classes(60)
    two = square(60)
    for recipe in (r for r in (*FITTED, Rounding(), Jitter()) if not isinstance(r, Temperature)):
        with pytest.raises(BadInput):
            recipe.fit(many)
        with pytest.raises(BadInput):
            (recipe.fit(two) if not getattr(recipe, "split", False) else Platt().fit(two))(many)
    with pytest.raises(BadInput, match="use Beta"):
        Dirichlet().fit(two)
    made = Dirichlet(strength=0.1).fit(many)
    with pytest.raises(BadInput, match="use Beta"):
        made(two)
    with pytest.raises(BadInput, match="3 classes"):
        made(classes(20, k=4)[0])


def test_logarithms_are_finite_exact_inside_and_rise_everywhere():
    p = np.unique(np.concatenate([[0.0], np.logspace(-300, 0, 4_000), np.linspace(0, 1, 4_001)]))
    t = log_of(p)
    assert np.isfinite(t).all()
    assert np.allclose(t[p >= EDGE], np.log(p[p >= EDGE]), rtol=1e-15)
    moved = p[1:] - p[:-1] > 1e-20
    assert (np.diff(t)[moved] > 0).all()
    assert np.allclose(log_odds(1 - p), -log_odds(p), atol=1e-3)
    assert log_odds(np.array([1.0]))[0] == -log_odds(np.array([0.0]))[0]


def test_isotonic_is_the_running_event_rate_of_its_stretches():
    data = cal.predictions([0, 1, 0, 1, 1, 0], [0.1, 0.2, 0.3, 0.4, 0.4, 0.4])
    made = Isotonic(fewest=1).fit(data)
    assert made.knots == (0.1, 0.2, 0.3, 0.4)
    assert made.shown == pytest.approx((0.0, 0.5, 0.5, 2 / 3))
    assert made.scores(np.array([0.0, 0.15, 0.25, 0.35, 1.0])) == pytest.approx([0, 0.25, 0.5, 7 / 12, 2 / 3])


def test_histogram_keeps_ties_together_and_rates_are_of_its_bins():
    p = [0.1] * 6 + [0.2, 0.3, 0.4, 0.5]
    made = Histogram(bins=5, fewest=1).fit(cal.predictions([0, 0, 1, 0, 0, 0, 1, 0, 1, 1], p))
    assert made.edges == pytest.approx((0.15, 0.35))
    assert made.shown == pytest.approx((1 / 6, 0.5, 1.0))
    wide = Histogram(bins=4, strategy="uniform", fewest=1).fit(cal.predictions([0, 1, 1], [0.1, 0.25, 0.26]))
    assert wide.shown == (0.0, 1.0, 0.625, 0.875)  # empty bins show their middle


def far_out(n=2_000, seed=3):
    """Return rows of which a twentieth, scored about 1e-9, are cases one time in eight; the others are right."""
    rng = np.random.default_rng([seed, n])
    p = np.where(rng.uniform(size=n) < 0.05, 1e-9 * rng.uniform(size=n), rng.uniform(0.02, 0.9, n))
    return cal.predictions(rng.uniform(size=n) < np.where(p < 1e-6, 0.125, p), p)


def brier(data):
    return float(np.mean((data.p - data.y) ** 2))


def test_platt_leaves_the_log_odds_where_scores_far_out_would_rule_them():
    data, other = far_out(), far_out(20_000, seed=4)
    found = Platt().fit(data)
    assert (found.scale, found.settings) == ("raw", {"scale": "raw", "scale_requested": "auto", "ridge": None})
    assert found.scores(other.p) == pytest.approx(Platt(scale="raw").fit(data).scores(other.p))
    assert brier(found(other)) < brier(other) < brier(Platt(scale="logit").fit(data)(other))


@pytest.mark.parametrize("seed", range(5))
def test_platt_stays_with_the_log_odds_of_scores_that_are_right_or_too_bold(seed):
    rng = np.random.default_rng(seed)
    p = rng.uniform(size=10_000)
    for power in (1.0, 0.5):
        truth = p**power / (p**power + (1 - p) ** power)
        assert Platt().fit(cal.predictions(rng.uniform(size=10_000) < truth, p)).scale == "logit"


def test_platt_stays_with_the_log_odds_where_both_curves_pass_through_the_same_points():
    two = cal.predictions([0, 1, 1, 0, 1], [0.0, 0.5, 0.5, 0.5, 0.0])
    assert Platt().fit(two).scale == "logit"


def test_platt_weighs_rows_where_it_compares_curves():
    data = far_out()
    weights = np.where(data.p < 1e-6, 1e-6, 1.0)  # those far out hardly count
    assert Platt().fit(replace(data, weights=weights, cache={})).scale == "logit"


def test_a_ridge_of_platt_shrinks_the_slope_alone_and_stays_finite_when_classes_separate():
    apart = cal.predictions([0] * 50 + [1] * 50, np.linspace(0.01, 0.99, 100))
    slopes = [Platt(scale="raw", ridge=r).fit(apart).slope for r in (0.01, 1.0, 100.0)]
    assert slopes[0] > slopes[1] > slopes[2] > 0
    level = Platt(scale="logit", ridge=1e9).fit(square(3_000))
    assert level.slope == pytest.approx(0.0, abs=1e-5)
    assert level.scores(np.array([0.1, 0.9])) == pytest.approx(square(3_000).y.mean(), abs=1e-5)


def test_scaling_binning_shows_means_of_its_curve_and_states_its_rows():
    data = square(3_000)
    made = ScalingBinning(bins=5, split=False, fewest=1).fit(data)
    curve = Platt().fit(data)
    held = np.searchsorted(made.edges, data.p, side="right")
    assert np.bincount(held).tolist() == [600] * 5
    assert made.shown == pytest.approx([curve(data).p[held == j].mean() for j in range(5)])
    thirds = ScalingBinning(bins=5, seed=3).fit(data)
    assert [thirds.settings[f"rows_{k}"] for k in ("curve", "edges", "means")] == [1_000] * 3
    assert thirds != ScalingBinning(bins=5, seed=4).fit(data)


def test_scaling_binning_gives_a_bin_that_its_means_miss_the_curve():
    data = square(12)
    for seed in range(20):
        made = ScalingBinning(bins=4, seed=seed)
        try:
            shown = made.fit(data).shown
        except NotComputable:
            continue
        assert min(shown) > 0


def test_bbq_is_the_average_it_is_defined_as():
    data = square(400)
    made = BBQ(fewest=1).fit(data)
    order = np.argsort(data.p)
    p, y = data.p[order], data.y[order]
    models = []
    for bins in range(1, 75):
        if bins > min(np.ceil(400 / 5), np.ceil(10 * 400 ** (1 / 3))):
            break
        cuts = [int(np.ceil(400 * j / bins)) for j in range(1, bins)]
        edges = [(p[c - 1] + p[c]) / 2 for c in cuts]
        rates, value = [], 0.0
        for lo, hi, a, b in zip([0, *cuts], [*cuts, 400], [0, *edges], [*edges, 1], strict=True):
            m = 2 * min(max((a + b) / 2, 0.005), 0.995)
            k, n = y[lo:hi].sum(), hi - lo
            value += betaln(k + m, n - k + 2 - m) - betaln(m, 2 - m)
            rates.append((k + m) / (n + 2))
        models.append((value, edges, rates))
    assert made.settings["binnings"] == len(models)
    weight = np.exp(np.array([v for v, _, _ in models]) - max(v for v, _, _ in models))
    falling = np.argsort(-weight)
    keep = 0
    while keep < len(weight) - 1 and (weight[falling[keep]] - weight[falling[keep + 1]]) / weight.var() > 0.001:
        keep += 1
    kept = falling[: keep + 1]
    at = np.linspace(0.001, 0.999, 333)
    brute = sum(weight[i] * np.array(models[i][2])[np.searchsorted(models[i][1], at, side="right")] for i in kept)
    assert made.scores(at) == pytest.approx(brute / weight[kept].sum())


@pytest.mark.parametrize("levels", [2, 10, 20, 50, 100, 64, 1024, 7, 33, 1000])
def test_rounding_shows_the_levels_that_are_certified(levels):
    rng = np.random.default_rng(levels)
    halves = (np.arange(levels) + 0.5) / levels
    p = np.concatenate([rng.uniform(size=4_000), halves, np.nextafter(halves, 0), [0.0, 1.0, 0.005, 0.995]])
    data = cal.predictions(rng.uniform(size=len(p)) < p, p)
    shown = Rounding(steps=levels).fit()(data).p
    counted = everyone(data).levels(levels).totals.sum(axis=1)
    assert np.bincount(np.rint(shown * levels).astype(int), minlength=levels + 1).tolist() == counted.tolist()
    assert np.abs(shown - p).max() <= 0.5 / levels + 2**-15
    assert (Rounding(steps=levels).fit().scores(shown) == shown).all() or levels not in (10, 20, 50, 100, 64, 2, 1024)


def test_uniforms_are_those_that_outcomes_are_drawn_with():
    rng = np.random.default_rng(5)
    ids, rate = rng.integers(0, 2**63, 5_000).astype(np.uint64), rng.uniform(size=5_000)
    assert ((uniforms(ids, 99) < rate) == outcomes(ids, rate, 0, 1, 99)[:, 0]).all()


@pytest.mark.parametrize("bandwidth", [2**-6, 2**-10, 0.5])
@pytest.mark.parametrize("cell", [0, 3, 8_000, 16_383])
def test_jitter_inverts_the_certified_kernel(bandwidth, cell):
    kernel = jitter(1 << 14, bandwidth)
    even = (np.arange(400_000) + 0.5) / 400_000
    drawn = kernel.draw(np.full(400_000, cell), even)
    share = np.bincount((drawn * (1 << 14)).astype(int), minlength=1 << 14) / 400_000
    one = np.zeros(1 << 14)
    one[cell] = 1.0
    assert np.abs(share - kernel.spread(one)).max() < 3e-6
    assert (np.diff(drawn) >= 0).all()


def test_jittered_scores_have_the_certified_law():
    n = 200_000
    data = cal.predictions(np.arange(n) % 2, np.full(n, 0.1))
    shown = Jitter(seed=3).fit()(data).p
    cell = np.zeros(1 << 14)
    cell[int(0.1 * (1 << 14))] = 1.0
    law = jitter(1 << 14, 2**-6).spread(cell)
    cuts = np.searchsorted(np.cumsum(law), np.arange(1, 40) / 40)
    edges = [0, *cuts, 1 << 14]
    expected = np.add.reduceat(law, edges[:-1])
    counts = np.histogram(shown * (1 << 14), edges)[0]
    assert chisquare(counts, expected / expected.sum() * n).pvalue > 1e-6


def test_jitter_is_keyed_by_identity_and_seed():
    p, ids = np.full(1_000, 0.4), np.arange(1_000, dtype=np.uint64)
    one = Jitter(seed=1).fit()
    assert (one.scores(p, ids=ids)[::-1] == one.scores(p, ids=ids[::-1].copy())).all()
    assert (one.scores(p) == one.scores(p)).all()
    assert abs(np.corrcoef(one.scores(p), Jitter(seed=2).fit().scores(p))[0, 1]) < 0.2
    assert one.fitted_on.rows == 0


def test_dirichlet_recovers_a_power_of_the_probabilities():
    data, truth = classes(20_000)
    made = Dirichlet(strength=1e-4).fit(data)
    assert np.abs(made(data).p - truth).mean() < 0.01
    off = Dirichlet(strength=1e4).fit(data)
    w = np.array(off.weights)
    assert np.abs(w - np.diag(np.diag(w))).max() < 1e-3  # the diagonal is free
    assert np.diag(w) == pytest.approx([2, 2, 2], abs=0.1)
    flat = Dirichlet(penalty="l2", strength=1e4).fit(data)
    assert np.abs(flat.scores(data.p) - 1 / 3).max() < 0.01


@pytest.mark.slow
def test_dirichlet_chooses_a_strength_that_pays():
    few, _ = classes(90, k=5, power=1.0)
    many, truth = classes(4_000, k=5, power=1.0, seed=3)
    chosen = Dirichlet().fit(few)
    assert chosen.settings["chosen"]
    assert chosen == Dirichlet().fit(few)
    loose = Dirichlet(strength=0.0).fit(few)
    assert np.abs(chosen(many).p - truth).mean() < np.abs(loose(many).p - truth).mean()
    with pytest.raises(NotComputable, match="strength="):
        Dirichlet().fit(classes(5)[0])


def test_dirichlet_is_remembered_by_its_rows():
    data, _ = classes(200)
    other, _ = classes(200, seed=9)
    a, b = (Dirichlet(strength=1.0).fit(d).fitted_on for d in (data, other))
    assert a.rows == 200
    assert a.digest != b.digest


def test_scaling_of_several_classes_has_the_least_log_loss_of_its_kind():
    data, truth = classes(4000)
    chosen = [recipe.fit(data) for recipe in (Temperature(), cal.repair.VectorScaling(), cal.repair.MatrixScaling())]

    def loss(p):
        return -float(np.log(p[np.arange(data.n), data.y]).mean())

    found = [loss(each.scores(data.p)) for each in chosen]
    assert found[0] > found[1] > found[2]  # each has more numbers than the one before
    grid = [loss(softmax_of(np.log(data.p) / t, axis=1)) for t in np.linspace(0.3, 0.8, 501)]
    assert found[0] <= min(grid) + 1e-9
    assert chosen[0].settings["temperature"] == pytest.approx(0.5, abs=0.02)
    assert abs(chosen[1].scores(data.p) - truth).mean() < 0.02
    off = np.array(chosen[1].weights) * (1 - np.eye(3))
    assert not off.any()


def test_a_temperature_of_several_classes_is_read_again_and_written_in_sql():
    data, _ = classes(500)
    fitted = Temperature().fit(data)
    again = cal.repair.Calibrator.from_json(fitted.to_json())
    np.testing.assert_array_equal(again.scores(data.p), fitted.scores(data.p))
    assert fitted.classes == 3
    assert "exp" in fitted.to_sql("duckdb", score=("a", "b", "c"), table="log").lower()
