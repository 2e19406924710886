"""The spread between sites: values of other programs, the exact likelihood, refusals, and no small site shown."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import expit, logit
from scipy.stats import norm

import calibrant as cal
from calibrant.stats.clusters.sites import Fitted, Likelihoods, alone, fitted, paule_mandel, pooled, reml

# Colditz et al. (1994), 13 trials of BCG: cases and others among vaccinated, cases and others among controls.
BCG = np.array(
    [
        (4, 119, 11, 128),
        (6, 300, 29, 274),
        (3, 228, 11, 209),
        (62, 13536, 248, 12619),
        (33, 5036, 47, 5761),
        (180, 1361, 372, 1079),
        (8, 2537, 10, 619),
        (505, 87886, 499, 87892),
        (29, 7470, 45, 7232),
        (17, 1699, 65, 1600),
        (186, 50448, 141, 27197),
        (5, 2493, 3, 2338),
        (27, 16886, 29, 17825),
    ],
    dtype=float,
)


def bcg() -> tuple[np.ndarray, np.ndarray]:
    """Return log risk ratios and their variances."""
    a, b, c, d = BCG.T
    return np.log(a / (a + b)) - np.log(c / (c + d)), 1 / a - 1 / (a + b) + 1 / c - 1 / (c + d)


def hospitals(k: int = 12, n: int = 80, tau: float = 0.5, seed: int = 0) -> cal.Predictions:
    rng = np.random.default_rng(seed)
    site = np.repeat(np.arange(k), n)
    p = np.round(rng.uniform(0.05, 0.6, k * n), 2)
    y = rng.random(k * n) < expit(logit(p) + rng.normal(0.3, tau, k)[site])
    return cal.predictions(y, p, {"hospital": np.char.add("h", site.astype(str))})


def test_paule_mandel_and_hartung_knapp_are_those_of_statsmodels():
    # statsmodels 0.14 or later: combine_effects(y, v, method_re="iterated", use_t=True); computed outside
    found = pooled(*bcg(), 0.05, "paule-mandel")
    assert paule_mandel(*bcg()) == pytest.approx(0.3180684522038202, rel=1e-6)
    assert found.mean == pytest.approx(-0.7149681534933369, abs=1e-7)
    assert found.error == pytest.approx(0.18089219153759867, abs=1e-7)
    assert (found.low, found.high) == pytest.approx((-1.109098, -0.320838), abs=2e-6)
    assert (found.q, found.i2) == pytest.approx((152.2330080823733, 0.9211734685456205), abs=1e-6)


def test_restricted_likelihood_is_that_of_pymare():
    # PyMARE 0.0.13: VarianceBasedLikelihoodEstimator(method="REML"), computed outside; metafor's rma() prints .3132
    assert reml(*bcg()) == pytest.approx(0.31324327, abs=1e-5)
    assert pooled(*bcg(), 0.05, "reml").mean == pytest.approx(-0.71453234, abs=1e-5)


def test_the_likelihood_of_a_site_is_the_integral_over_normal_shifts():
    rng = np.random.default_rng(3)
    site, x = np.repeat([0, 1, 2], [5, 40, 300]), rng.normal(-1.0, 1.0, 345)
    y = (rng.random(345) < expit(x + 0.3)).astype(float)
    y[site == 0] = 0.0  # a site without a case

    def marginal(j: int, mean: float, tau: float) -> float:
        own, out = x[site == j], y[site == j]

        def density(u: float) -> float:
            return float(np.exp(out @ (own + u) - np.logaddexp(0, own + u).sum() + top) * norm.pdf(u, mean, tau))

        at = np.linspace(-8, 8, 400)
        top = -max(out @ (own + u) - np.logaddexp(0, own + u).sum() for u in at)
        points = np.linspace(mean - 9 * tau, mean + 9 * tau, 19)
        return float(np.log(sum(quad(density, a, b)[0] for a, b in pairwise(points))) - top)

    found = Likelihoods(site, x, y, 3)
    constant = sum(float(y[site == j] @ x[site == j]) for j in range(3))  # the same whatever the shift, and left out
    for mean, tau in ((0.0, 0.3), (0.5, 1.2), (-1.0, 0.1)):
        wanted = sum(marginal(j, mean, tau) for j in range(3)) - constant
        assert found.marginal(np.array([mean]), tau)[0] == pytest.approx(wanted, abs=2e-4)
    flat = float(y @ (x + 0.2) - np.logaddexp(0, x + 0.2).sum()) - constant
    assert found.marginal(np.array([0.2]), 0.0)[0] == pytest.approx(flat, abs=1e-4)


def test_a_site_without_a_case_has_limits_and_counts():
    data = hospitals(8)
    y = np.where(np.char.equal(data.covariates.column("hospital").to_numpy().astype(str), "h3"), 0, data.y)
    found = cal.diagnose.heterogeneity(replace(data, y=y.astype(np.int8), cache={}), site="hospital")
    c, s = found.columns, found.settings
    at = c["site"].index("h3")
    assert at == 0
    assert c["observed"][at] == 0.0
    assert c["low"][at] < c["estimate"][at] < c["high"][at] < 0.0
    assert s["sites"] == 8
    assert np.isfinite([s["mean_low"], s["new_low"], s["tau_high"]]).all()


def test_firths_estimate_of_equal_scores_is_in_closed_form():
    # of n rows with score 1/2 and c cases the penalised estimate is logit((c + 1/2) / (n + 1)): Firth (1993)
    y = np.repeat([0.0, 1.0], [17, 3])
    estimate, low, high = alone(Likelihoods(np.zeros(20, dtype=np.intp), np.zeros(20), y, 1), 0.05)
    assert estimate[0] == pytest.approx(logit(3.5 / 21), abs=0.02)
    assert low[0] < logit(0.15) < high[0]


def test_a_site_under_the_mask_counts_and_is_not_shown():
    data = hospitals(6, 60)
    names = data.covariates.column("hospital").to_numpy().astype("<U8")
    names[:45] = "h0"
    names[45:60] = "tiny"
    small = cal.predictions(data.y, data.p, {"hospital": names})
    found = cal.diagnose.heterogeneity(small, site="hospital")
    assert "tiny" not in found.columns["site"]
    assert len(found.columns["site"]) == 6
    assert found.settings["sites"] == 7
    assert found.settings["unshown"] == 1
    without = cal.diagnose.heterogeneity(
        cal.predictions(data.y[names != "tiny"], data.p[names != "tiny"], {"hospital": names[names != "tiny"]}),
        site="hospital",
    )
    assert found.settings["mean"] != without.settings["mean"]


def test_sites_are_the_units_unless_named_and_the_order_of_rows_does_not_matter():
    data = hospitals()
    by_name = cal.diagnose.heterogeneity(data, site="hospital")
    names = data.covariates.column("hospital").to_numpy().astype(str)
    order = np.random.default_rng(0).permutation(data.n)
    by_cluster = cal.diagnose.heterogeneity(cal.predictions(data.y[order], data.p[order], cluster=names[order]))
    assert by_cluster.columns["site"] == by_name.columns["site"]
    assert by_cluster.settings["mean"] == pytest.approx(by_name.settings["mean"], abs=1e-9)
    assert by_cluster.settings["tau"] == pytest.approx(by_name.settings["tau"], abs=1e-6)


def test_the_intercept_as_observed_over_expected():
    data = hospitals(10, 100, tau=0.0)
    s = cal.diagnose.heterogeneity(data, site="hospital").settings
    assert s["ratio_new_low"] <= s["ratio_low"] < s["ratio"] < s["ratio_high"] <= s["ratio_new_high"]
    assert s["ratio"] == pytest.approx(cal.measure.observed_expected(data).value, rel=0.02)


def test_slopes_differ_where_they_were_made_to_and_sites_without_are_counted():
    rng = np.random.default_rng(1)
    site, x = np.repeat(np.arange(10), 300), rng.normal(-1.0, 1.2, 3000)
    y = rng.random(3000) < expit(np.where(site < 5, 0.5, 1.2) * x)
    y[site == 9] = False
    s = cal.diagnose.heterogeneity(cal.predictions(y, expit(x), cluster=site), measure="slope").settings
    assert s["without"] == 1
    assert s["degrees"] == 8
    assert s["p_value"] < 1e-3
    assert 0.2 < s["tau"] < 0.8
    assert s["new_low"] < s["mean_low"] < 0.82 < s["mean_high"] < s["new_high"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"site": None}, "pass site="),
        ({"weights": 1}, "weights="),
        ({"k": 2}, "3 sites; there are 2"),
        ({"y": 0}, "3 with an event; there are 0"),
        ({"p": 1}, "pass clip=1e-6"),
    ],
)
def test_what_cannot_be_done_says_what_can(change, words):
    data = hospitals(change.get("k", 4), 30)
    more = {"weights": np.linspace(1, 2, data.n)} if "weights" in change else {}
    y = np.zeros(data.n, dtype=int) if "y" in change else data.y
    p = np.where(np.arange(data.n) == 0, 1.0, data.p) if "p" in change else data.p
    given = cal.predictions(y, p, data.covariates, **more)
    with pytest.raises(cal.NotComputable, match=words):
        cal.diagnose.heterogeneity(given, site=change.get("site", "hospital"))


def test_a_site_that_is_no_column_is_refused():
    with pytest.raises(cal.BadInput, match="ward"):
        cal.diagnose.heterogeneity(hospitals(3, 30), site="ward")


def test_the_ends_are_students_and_a_new_site_has_both_spreads():
    # by hand, of the formulas in the docstring: t(11) and t(10) at .975 from tables
    fit: Fitted = fitted(_likelihoods(hospitals()), 0.05)
    assert fit.high - fit.mean == pytest.approx(2.200985 * fit.error, rel=1e-6)
    assert fit.new_high - fit.mean == pytest.approx(2.228139 * np.hypot(fit.tau, fit.error), rel=1e-6)
    assert fit.tau_low <= fit.tau <= fit.tau_high
    assert fit.p_value < 0.01


def _likelihoods(data: cal.Predictions) -> Likelihoods:
    names = data.covariates.column("hospital").to_numpy().astype(str)
    code = np.unique(names, return_inverse=True)[1].reshape(-1)
    return Likelihoods(code, logit(data.p), data.y.astype(float), int(code.max()) + 1)


def visits(copies: int) -> cal.Predictions:
    """Each row of a log of hospitals several times, as rows of one patient."""
    data = hospitals(8, 60)
    at = np.repeat(np.arange(data.n), copies)
    return cal.predictions(data.y[at], data.p[at], data.covariates.take(at), cluster=at)


def test_a_patient_whose_rows_are_all_alike_counts_once() -> None:
    one = cal.diagnose.heterogeneity(hospitals(8, 60), site="hospital").settings
    many = cal.diagnose.heterogeneity(visits(5), site="hospital").settings
    assert many["clusters"] == 480
    assert many["design_effect"] == pytest.approx(5.0, rel=0.15)
    for end in ("mean_low", "mean_high", "tau", "new_low", "new_high"):
        assert many[end] == pytest.approx(one[end], abs=0.12)


def test_patients_of_several_hospitals_and_slopes_of_patients_are_refused() -> None:
    data = hospitals(8, 60)
    moved = replace(data, cluster=np.arange(data.n) % 7, cache={})
    with pytest.raises(cal.NotComputable, match="rows at several"):
        cal.diagnose.heterogeneity(moved, site="hospital")
    crossed = cal.predictions(data.y, data.p, cluster={"a": np.arange(data.n) % 7, "b": np.arange(data.n) // 7})
    with pytest.raises(cal.NotComputable, match=r"sites 'cluster' are not independent: clusters .* rows at several"):
        cal.diagnose.heterogeneity(crossed)
    with pytest.raises(cal.NotComputable, match="slopes"):
        cal.diagnose.heterogeneity(visits(2), site="hospital", measure="slope")


def test_sites_of_few_units_are_not_shown():
    """A hundred visits of five patients are five people."""
    rng = np.random.default_rng(4)
    patients = np.repeat([60, 60, 60, 5], 1)
    site = np.repeat(np.repeat(list("abcd"), patients), 20)
    cluster_code = np.repeat(np.arange(patients.sum()), 20)
    p = rng.uniform(0.2, 0.6, len(cluster_code))
    data = cal.predictions(rng.random(len(cluster_code)) < p, p, {"site": site}, cluster=cluster_code)
    found = cal.diagnose.heterogeneity(data, site="site")
    assert set(found.columns["site"]) == {"a", "b", "c"}
    assert found.settings["unshown"] == 1
    assert found.settings["sites"] == 4
