"""Maps of the score against programs not written here.

scikit-learn, betacal and uncertainty-calibration (its module is `calibration`) are called. netcal needs some
gigabytes beside it; the values of netcal 1.4.0 (numpy 2.4.6, scikit-learn 1.9.1) were printed, with `drawn` and `AT`
below, by::

    p, y = drawn()
    for criterion in ("BIC", "AIC"):
        model = netcal.binning.BBQ(score_function=criterion, equal_intervals=True)
        model.fit(p, y)
        print(model.transform(AT))
    model = netcal.binning.HistogramBinning(bins=15)
    model.fit(p, y)
    print(model.transform(AT))
"""

import numpy as np
import pytest
import sklearn
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

import calibrant as cal
from calibrant.repair import BBQ, Beta, Dirichlet, Histogram, Isotonic, Platt, ScalingBinning, Temperature

AT = np.array([0.03, 0.17, 0.31, 0.443, 0.58, 0.71, 0.86, 0.97])
NETCAL = {
    "bic": [0.00469566, 0.03572024, 0.13241949, 0.26432433, 0.72563052, 0.88143179, 0.96856477, 0.9999264],
    "aic": [
        4.38631526e-04,
        3.28114261e-02,
        1.60551321e-01,
        3.31891131e-01,
        6.96177703e-01,
        8.62740238e-01,
        9.76743757e-01,
        1.0,
    ],
    "histogram": [0.0, 0.02877698, 0.15671642, 0.37837838, 0.67938931, 0.86666667, 0.95862069, 1.0],
}


def drawn():
    rng = np.random.default_rng(20_150_125)
    p = rng.uniform(size=2_000)
    return p, (rng.uniform(size=2_000) < p**2 / (p**2 + (1 - p) ** 2)).astype(int)


class Scores(ClassifierMixin, BaseEstimator):
    """A classifier whose only feature is its probability."""

    def fit(self, X, y):  # noqa: ARG002
        self.classes_ = np.array([0, 1])
        self.n_features_in_ = 1
        return self

    def predict_proba(self, X):
        return np.column_stack([1 - X[:, 0], X[:, 0]])

    def predict(self, X):
        return (X[:, 0] > 0.5).astype(int)


def by_sklearn(method, p, y, weights=None):
    held = FrozenEstimator(Scores().fit(p[:, None], y))
    model = CalibratedClassifierCV(held, method=method, cv=None)
    return model.fit(p[:, None], y, sample_weight=weights)


def rows(kind, seed=77, n=3_000):
    rng = np.random.default_rng(seed)
    p = {
        "even": rng.uniform(size=n),
        "ties": np.round(rng.beta(0.5, 2, n), 2),
        "rare": 0.05 * rng.uniform(size=n) ** 2,
    }[kind]
    y = (rng.uniform(size=n) < 0.9 * p**1.4 + 0.02).astype(int)
    return p, y, rng.uniform(0.2, 3.0, n)


@pytest.mark.filterwarnings("ignore:Since FrozenEstimator")
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", ["even", "ties", "rare"])
@pytest.mark.parametrize(
    ("recipe", "method"),
    [(Platt(scale="raw"), "sigmoid"), (Isotonic(fewest=1), "isotonic"), (Temperature(), "temperature")],
)
def test_equals_scikit_learn(recipe, method, kind, weighted):
    if method == "temperature" and tuple(map(int, sklearn.__version__.split(".")[:2])) < (1, 8):
        pytest.skip("scikit-learn has temperature scaling from 1.8")
    p, y, w = rows(kind)
    w = w if weighted else None
    theirs = by_sklearn(method, p, y, w).predict_proba(p[:, None])[:, 1]
    ours = recipe.fit(cal.predictions(y, p, weights=w)).scores(p)
    assert np.abs(ours - theirs).max() < 1e-5


def test_temperature_equals_scikit_learn_at_scores_of_0_and_1():
    p, y, _ = rows("ties")
    assert p.min() == 0.0
    p = np.append(p, [1.0, 1.0])
    y = np.append(y, [1, 1])
    theirs = by_sklearn("temperature", p, y).predict_proba(p[:, None])[:, 1]
    assert np.abs(Temperature().fit(cal.predictions(y, p)).scores(p) - theirs).max() < 1e-5


def test_isotonic_interpolates_as_scikit_learn_does():
    p, y, w = rows("ties")
    theirs = IsotonicRegression(out_of_bounds="clip", y_min=0, y_max=1).fit(p, y, w)
    at = np.linspace(0, 1, 999)
    assert (
        np.abs(Isotonic(fewest=1).fit(cal.predictions(y, p, weights=w)).scores(at) - theirs.predict(at)).max() < 1e-12
    )


@pytest.mark.parametrize("parameters", ["abm", "am", "ab"])
@pytest.mark.parametrize("bend", ["both", "a below 0", "b below 0", "backwards"])
def test_beta_equals_betacal(parameters, bend):
    betacal = pytest.importorskip("betacal", reason="betacal is not installed")
    rng = np.random.default_rng(31)
    p = rng.beta(0.9, 1.1, 4_000).clip(1e-5, 1 - 1e-5)
    odds = {
        "both": p**1.5 / (1 - p) ** 0.7,
        "a below 0": p**-0.4 / (1 - p) ** 1.5,
        "b below 0": p**1.5 * (1 - p) ** 0.4,
        "backwards": (1 - p) / p,
    }[bend]
    y = (rng.uniform(size=4_000) < odds / (1 + odds)).astype(int)
    theirs = betacal.BetaCalibration(parameters).fit(p, y)
    ours = Beta(parameters=parameters).fit(cal.predictions(y, p))
    assert (
        np.abs(ours.scores(AT) - theirs.predict(AT)).max() < 5e-4
    )  # betacal stops at scikit-learn's tolerance of 1e-4
    assert np.allclose((ours.a, ours.b), theirs.calibrator_.map_[:2], atol=5e-3)
    if parameters == "abm" and bend != "both":
        assert (ours.a == 0) == (theirs.calibrator_.map_[0] == 0)
        assert (ours.b == 0) == (theirs.calibrator_.map_[1] == 0)


def test_beta_takes_weights_as_betacal_does():
    betacal = pytest.importorskip("betacal", reason="betacal is not installed")
    p, y, w = rows("even")
    theirs = betacal.BetaCalibration("abm").fit(p, y, w)
    assert np.abs(Beta().fit(cal.predictions(y, p, weights=w)).scores(AT) - theirs.predict(AT)).max() < 5e-4


@pytest.mark.parametrize("criterion", ["bic", "aic"])
def test_bbq_equals_netcal(criterion):
    p, y = drawn()
    ours = BBQ(criterion=criterion, strategy="uniform", fewest=1).fit(cal.predictions(y, p)).scores(AT)
    assert np.abs(ours - NETCAL[criterion]).max() < 1e-5  # netcal adds up in single precision


def test_histogram_equals_netcal():
    p, y = drawn()
    ours = Histogram(bins=15, strategy="uniform", fewest=1).fit(cal.predictions(y, p)).scores(AT)
    assert np.abs(ours - NETCAL["histogram"]).max() < 1e-8


@pytest.mark.parametrize("kind", ["even", "ties", "rare"])
def test_scaling_binning_equals_the_authors(kind):
    """Of both classes: theirs is fitted to each by itself."""
    authors = pytest.importorskip("calibration", reason="uncertainty-calibration is not installed")
    p, y, _ = rows(kind)
    both = np.column_stack([1.0 - p, p])
    model = authors.PlattBinnerMarginalCalibrator(len(p), num_bins=10)
    model.train_calibration(both, y)
    theirs = np.array(model.calibrate(both))
    recipe = ScalingBinning(scale="log ratio", ridge=1e-10, split=False, fewest=1)
    for c in (0, 1):
        fitted = recipe.fit(cal.predictions(y == c, both[:, c]))
        assert np.abs(fitted.scores(both[:, c]) - theirs[:, c]).max() < 1e-3  # they stop at scikit-learn's tolerance


@pytest.mark.parametrize("ridge", [0.1, 1.0, 30.0])
@pytest.mark.parametrize("kind", ["even", "ties", "rare"])
@pytest.mark.parametrize("weighted", [False, True])
def test_platt_with_a_ridge_equals_logistic_regression(ridge, kind, weighted):
    p, y, w = rows(kind)
    w = w if weighted else None
    theirs = LogisticRegression(C=1.0 / ridge, tol=1e-10, max_iter=1_000).fit(p[:, None], y, w)
    ours = Platt(scale="raw", ridge=ridge).fit(cal.predictions(y, p, weights=w))
    assert ours.slope == pytest.approx(theirs.coef_[0, 0], rel=1e-4)
    assert np.abs(ours.scores(p) - theirs.predict_proba(p[:, None])[:, 1]).max() < 1e-5


def test_dirichlet_with_l2_equals_multinomial_regression():
    rng = np.random.default_rng(5)
    p = rng.dirichlet([1, 2, 0.7, 1], 1_500).clip(1e-5, None)
    p /= p.sum(axis=1, keepdims=True)
    y = (
        (rng.uniform(size=(1_500, 1)) > (p**1.5 / (p**1.5).sum(axis=1, keepdims=True)).cumsum(axis=1))
        .sum(axis=1)
        .clip(0, 3)
    )
    strength, k, n = 0.3, 4, len(y)
    x = np.column_stack([np.log(p), np.ones(n)])
    model = LogisticRegression(C=k * (k + 1) / (2 * n * strength), fit_intercept=False, tol=1e-10, max_iter=5_000).fit(
        x, y
    )
    fitted = Dirichlet(penalty="l2", strength=strength).fit(cal.multiclass_predictions(y, p))
    assert np.abs(fitted.scores(p) - model.predict_proba(x)).max() < 1e-5
