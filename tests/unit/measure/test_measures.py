"""What the measures return, refuse and say."""

import numpy as np
import pytest

import calibrant as cal
from calibrant.errors import BadInput, CalibrantWarning, NotComputable

M = cal.measure
ALL = [
    M.ece,
    M.max_calibration_error,
    M.smooth_ece,
    M.brier,
    M.log_loss,
    M.auroc,
    M.calibration_intercept,
    M.calibration_slope,
    M.observed_expected,
]
ANY_OUTCOME = [M.ece, M.max_calibration_error, M.smooth_ece, M.brier, M.log_loss, M.observed_expected]


def drawn(n=2000, seed=0, **more):
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.01, 0.99, n)
    return cal.predictions(rng.random(n) < p**1.3, p, **more)


@pytest.mark.parametrize("measure", ALL)
def test_returns_an_estimate_with_an_honest_interval(measure):
    found = measure(drawn())
    assert found.method == f"measure.{measure.__name__}"
    assert found.interval.low <= found.value <= found.interval.high
    assert found.interval.low < found.interval.high
    assert (found.interval.guarantee, found.interval.level, found.n) == ("asymptotic", 0.95, 2000)
    assert found.settings["interval"]
    assert found.settings["reads"] == "rows"
    assert type(found).from_dict(found.to_dict()).to_dict() == found.to_dict()
    assert measure(drawn()).to_dict() == found.to_dict()
    wide = measure(drawn(), alpha=0.01).interval
    assert wide.high - wide.low > found.interval.high - found.interval.low


@pytest.mark.parametrize("measure", ALL)
def test_rows_and_sketch_agree_to_a_cell(measure):
    data = drawn(20_000)
    rows, cells = measure(data), measure(cal.sketch(data))
    assert cells.settings["reads"] == "16384 score cells"
    assert cells.n == rows.n
    assert cells.value == pytest.approx(rows.value, abs=6e-3 if "max" in rows.method else 2e-4)
    assert cells.interval.high == pytest.approx(rows.interval.high, abs=6e-3)


@pytest.mark.parametrize("measure", ALL)
def test_frequency_is_not_weight(measure):
    """A sketch's counts are rows; equal weights change nothing; doubled weights are not doubled rows."""
    data = drawn()
    equal = cal.predictions(data.y, data.p, weights=np.full(data.n, 7.0))
    once, again = measure(data), measure(equal)
    assert again.value == pytest.approx(once.value, rel=1e-9)
    assert again.interval.high - again.interval.low == pytest.approx(once.interval.high - once.interval.low, rel=0.02)
    assert again.settings["weights"] is True


@pytest.mark.parametrize("measure", ALL)
def test_weights_stand_for_the_rows_left_out(measure):
    """Half of the rows above 0.5 sampled, with weight two: the estimate of all rows, with a wider interval."""
    data = drawn(40_000)
    kept = (data.p < 0.5) | (np.arange(data.n) % 2 == 0)
    part = cal.predictions(data.y[kept], data.p[kept], weights=np.where(data.p[kept] < 0.5, 1.0, 2.0))
    whole, found = measure(data), measure(part)
    half = whole.interval.high - whole.interval.low
    assert abs(found.value - whole.value) < 1.5 * half
    assert found.interval.high - found.interval.low > 0.9 * half


@pytest.mark.parametrize("measure", ALL)
def test_units_of_one_row_change_little_and_copies_add_nothing(measure):
    """The estimate is that of the rows; with every row three times, in units, the interval is that of single rows."""
    data = drawn(2000)
    thrice = [np.repeat(v, 3) for v in (data.y, data.p, np.arange(2000))]
    single, copies = (cal.predictions(*v[:2], cluster=v[2]) for v in ((data.y, data.p, np.arange(2000)), thrice))
    plain, alone, held, naive = map(measure, (data, single, copies, cal.predictions(*thrice[:2])))
    assert alone.value == plain.value
    assert held.value == pytest.approx(plain.value, rel=1e-6, abs=1e-9)
    assert np.allclose([alone.low, alone.high], [plain.low, plain.high], rtol=0.03, atol=4e-3)
    assert np.allclose([held.low, held.high], [plain.low, plain.high], rtol=0.03, atol=4e-3)
    if measure is not M.smooth_ece:
        assert naive.high - naive.low < 0.9 * (held.high - held.low)
    assert held.settings["clusters"] == 2000
    assert held.settings["effective_clusters"] == pytest.approx(2000)
    assert held.assumes.startswith("independent clusters")
    assert "weights=" in measure(cal.predictions(data.y, data.p, cluster=thrice[2][:2000], weights=data.p + 1)).assumes


@pytest.mark.parametrize("measure", ALL)
def test_refuses_one_unit_classes_and_strangers(measure):
    with pytest.raises(NotComputable, match="one cluster"):
        measure(cal.predictions([0, 1, 1, 0], [0.1, 0.2, 0.3, 0.4], cluster=[1, 1, 1, 1]))
    if measure not in (cal.measure.brier, cal.measure.log_loss):  # which several classes have too
        with pytest.raises(BadInput, match="several classes"):
            measure(cal.multiclass_predictions([0, 1, 2], np.full((3, 3), 1 / 3)))
    with pytest.raises(BadInput, match="ndarray"):
        measure(np.array([0.5]))
    with pytest.raises(BadInput, match="alpha"):
        measure(drawn(), alpha=5)


@pytest.mark.parametrize("measure", ANY_OUTCOME)
@pytest.mark.parametrize("outcome", [0, 1])
def test_one_outcome_has_width(measure, outcome):
    """Fifty rows without a case do not prove that there are none."""
    for p in (np.full(50, 0.3), np.linspace(0.05, 0.95, 50)):
        found = measure(cal.predictions(np.full(50, outcome), p)).interval
        assert found.high - found.low > 0.02, measure.__name__


@pytest.mark.parametrize("measure", [M.ece, M.max_calibration_error, M.smooth_ece, M.brier])
def test_certain_scores_have_width(measure):
    for p in (0.0, 1.0):
        found = measure(cal.predictions(np.full(50, p), np.full(50, p)))
        assert found.value == 0
        assert found.interval.high > 0.03


@pytest.mark.parametrize("measure", [M.auroc, M.calibration_intercept, M.calibration_slope])
def test_needs_both_outcomes(measure):
    with pytest.raises(NotComputable, match="both outcomes; all 2 rows have outcome 1"):
        measure(cal.predictions([1, 1], [0.2, 0.3]))


def test_ece_in_numbers():
    data = cal.predictions([0, 0, 1, 1, 0, 0, 0, 1], [0.1] * 4 + [0.85] * 4)
    for strategy in ("quantile", "uniform"):
        found = M.ece(data, bins=2, strategy=strategy)
        assert found.value == pytest.approx(0.5 * 0.4 + 0.5 * 0.6)
        assert found.settings["under_prediction"] == pytest.approx(0.2)
        assert found.settings["over_prediction"] == pytest.approx(0.3)
    assert M.ece(data, bins=2, norm=2).value == pytest.approx(np.sqrt(0.5 * 0.16 + 0.5 * 0.36))
    worst = M.max_calibration_error(data, bins=2)
    assert worst.value == pytest.approx(0.6)
    assert (worst.settings["worst_rows"], worst.settings["worst_direction"]) == (4, "over-prediction")


def test_ties_are_never_split_and_collapsed_bins_are_said():
    data = cal.predictions([0, 1] * 50, [0.5] * 90 + [0.1] * 4 + [0.9] * 6)
    found = M.ece(data, bins=15)
    assert (found.settings["bins_used"], found.settings["bins_collapsed"]) == (3, 12)
    assert M.ece(data, bins=15, strategy="uniform").settings["bins_used"] == 3


def test_debiasing_removes_noise_and_little_else():
    rng = np.random.default_rng(1)
    p = rng.random(3000)
    noise = cal.predictions(rng.random(3000) < p, p)
    for measure in (M.ece, M.max_calibration_error):
        assert measure(noise, debiased=True).value < 0.4 * measure(noise).value
    wrong = cal.predictions(rng.random(3000) < p**2, p)
    assert M.ece(wrong, debiased=True).value == pytest.approx(1 / 6, abs=0.02)


def test_brier_parts_add_up():
    found = M.brier(drawn())
    s = found.settings
    assert found.value == pytest.approx(s["reliability"] - s["resolution"] + s["uncertainty"], rel=1e-12)
    assert s["reliability"] >= 0
    assert s["resolution"] >= 0


def test_extreme_scores_are_refused_or_clipped():
    data = cal.predictions([0, 1, 1, 0, 1] + [0, 1] * 9, [0.0, 0.4, 1.0, 0.6, 0.0] + [0.3, 0.4] * 9)
    with pytest.raises(NotComputable, match="infinite: 1 row "):
        M.log_loss(data)
    assert M.log_loss(data, clip=1e-3).settings["clipped"] == 3
    for measure in (M.calibration_intercept, M.calibration_slope):
        with pytest.raises(NotComputable, match="3 rows have probability exactly 0 or 1"):
            measure(data)
        assert measure(data, clip=1e-3).settings["clipped"] == 3
    with pytest.raises(BadInput, match="clip"):
        M.log_loss(data, clip=0.6)


def test_log_loss_of_certain_and_right_scores():
    with pytest.raises(NotComputable, match="every probability is 0 or 1"):
        M.log_loss(cal.predictions([0, 1], [0.0, 1.0]))
    assert M.log_loss(cal.predictions([0, 1, 1], [0.0, 1.0, 0.5])).value == pytest.approx(np.log(2) / 3)


def test_slope_without_a_solution():
    with pytest.raises(NotComputable, match="separate"):
        M.calibration_slope(cal.predictions([0] * 10 + [1] * 10, np.linspace(0.1, 0.9, 20)))
    with pytest.raises(NotComputable, match="all are equal"):
        M.calibration_slope(cal.predictions([0, 1] * 10, [0.5] * 20))
    with pytest.raises(NotComputable, match="one has 2"):
        M.calibration_slope(cal.predictions([0, 1] * 2, [0.5] * 4))


def test_auroc_is_delong_by_definition():
    rng = np.random.default_rng(5)
    p, y = np.round(rng.random(120), 1), rng.random(120) < 0.4
    case, other = p[y], p[~y]
    wins = (case[:, None] > other) + 0.5 * (case[:, None] == other)
    error = np.sqrt(wins.mean(axis=1).var(ddof=1) / len(case) + wins.mean(axis=0).var(ddof=1) / len(other))
    found = M.auroc(cal.predictions(y, p))
    assert found.value == pytest.approx(wins.mean())
    assert found.settings["standard_error"] == pytest.approx(error)


def test_auroc_of_separated_outcomes_has_width():
    found = M.auroc(cal.predictions([0] * 20 + [1] * 20, np.linspace(0.1, 0.9, 40)))
    assert (found.value, found.interval.high) == (1.0, 1.0)
    assert 0.8 < found.interval.low < 0.95
    assert "Newcombe" in found.settings["interval"]


def test_observed_expected_without_a_case():
    found = M.observed_expected(cal.predictions([0] * 100, [0.05] * 100))
    assert found.value == 0
    assert found.interval.high == pytest.approx(0.74, abs=0.02)  # Wilson: 3.7 cases of 100, over 5
    with pytest.raises(NotComputable, match="every probability is zero"):
        M.observed_expected(cal.predictions([0, 1], [0.0, 0.0]))


def test_smooth_ece_settings():
    found = M.smooth_ece(drawn())
    assert found.settings["bandwidth"] == pytest.approx(found.value, abs=1e-6)
    parts = found.settings["under_prediction"] + found.settings["over_prediction"]
    assert parts == pytest.approx(found.value)
    assert M.smooth_ece(drawn(), bandwidth=0.005).settings["grid"] > 3000
    for bandwidth in (0.0, 2.0, "wide"):
        with pytest.raises(BadInput, match="bandwidth"):
            M.smooth_ece(drawn(), bandwidth=bandwidth)


@pytest.mark.parametrize(
    ("setting", "value"), [("bins", 0), ("bins", 2.5), ("bins", True), ("strategy", "mass"), ("norm", 3)]
)
def test_ece_refuses_settings(setting, value):
    with pytest.raises(BadInput, match=setting):
        M.ece(drawn(), **{setting: value})


def grouped(n=3000, **more):
    rng = np.random.default_rng(2)
    return drawn(n, covariates={"sex": rng.choice(["f", "m"], n), "age": rng.integers(18, 90, n)}, **more)


@pytest.mark.slow
def test_by_group_has_the_keys_of_the_certificates():
    data = grouped()
    for by in ("sex", ["sex", "age"]):
        found = M.by_group(M.brier, data, by=by)
        assert list(found) == list(cal.certify.groups(data, by=by, side="upper"))
        cells = M.by_group(M.brier, cal.sketch(data, by=by))
        assert list(cells) == list(found)
        for name, e in found.items():
            assert cells[name].value == pytest.approx(e.value, abs=1e-4)
            assert cells[name].n == e.n
    pairs = M.by_group(M.observed_expected, data, by=["sex", "age"], intersections=True)
    assert list(pairs) == list(cal.certify.groups(data, by=["sex", "age"], intersections=True, side="upper"))


def test_by_group_equals_each_group_alone():
    data = grouped(weights=np.linspace(1, 2, 3000))
    sex = np.array(data.covariates["sex"].to_pylist())
    rows = sex == "f"
    alone = M.ece(cal.predictions(data.y[rows], data.p[rows], weights=data.weights[rows]), bins=5, seed=3)
    assert M.by_group(M.ece, data, by="sex", bins=5, seed=3)["sex = f"].to_dict() == alone.to_dict()


def test_by_group_says_what_it_leaves_out():
    data = cal.predictions([0, 1, 1, 1], [0.2, 0.6, 0.7, 0.5], {"sex": ["f", "f", "m", "m"]})
    with pytest.warns(CalibrantWarning, match="left out sex = m: the AUROC needs both outcomes"):
        assert list(M.by_group(M.auroc, data, by="sex")) == ["sex = f"]
    with pytest.raises(NotComputable, match="in none of 2 groups"):
        M.by_group(M.calibration_slope, data, by="sex")
    with pytest.raises(BadInput, match="name the group columns"):
        M.by_group(M.ece, data)
    with pytest.raises(NotComputable, match="no groups"):
        M.by_group(M.ece, cal.sketch(data))
    with pytest.raises(BadInput, match="pass a function"):
        M.by_group("ece", data, by="sex")


def test_an_intercept_whose_limits_are_infinite_is_not_computed():
    """One row carries so much weight that the mean outcome could be 1 to machine precision."""
    rng = np.random.default_rng(0)
    p = rng.uniform(0.01, 0.99, 1500)
    y = (rng.random(1500) < p).astype(float)
    w = np.ones(1500)
    y[0], w[0] = 1.0, 2e4
    with pytest.raises(NotComputable, match="no finite limits: so few rows or clusters decide the mean outcome"):
        M.calibration_intercept(cal.predictions(y, p, weights=w))
    w[0] = 100.0
    found = M.calibration_intercept(cal.predictions(y, p, weights=w))
    assert np.isfinite([found.interval.low, found.interval.high]).all()
