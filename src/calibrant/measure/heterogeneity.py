"""How far calibration differs between sites: a random-effects meta-analysis, and what to expect of a new site."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from calibrant.arguments import MASK, checked_alpha, choice
from calibrant.data.calls import takes_arrays
from calibrant.data.columns import require
from calibrant.data.layouts import decoded
from calibrant.data.predictions import Predictions, checked_data
from calibrant.data.sketches.sketch import Sketch
from calibrant.errors import BadInput, NotComputable
from calibrant.results import Curve
from calibrant.stats.clusters.sites import Likelihoods, Residuals, alone, fitted, pooled
from calibrant.stats.logistic import recalibrate
from calibrant.stats.measures import Weighed, normal_quantile
from calibrant.views.kinds import refuse_rows
from calibrant.views.people import people_of

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]
Measure = Literal["intercept", "slope"]
MEASURES: tuple[Measure, ...] = ("intercept", "slope")
FEWEST_SITES = 3  # a prediction interval has k - 2 degrees of freedom
OUTCOMES = 10  # rows of either outcome that a site's own slope needs
WEIGHTED = (
    "the spread between sites is of rows of equal weight: with weights= use measure.by_group and "
    "measure.calibration_intercept"
)
COLUMNS = ("site", "rows", "predicted", "observed", "estimate", "low", "high")


@takes_arrays
def heterogeneity(
    data: Predictions | Sketch,
    *,
    site: str | None = None,
    measure: Measure = "intercept",
    clip: float = 0.0,
    alpha: float = 0.05,
) -> Curve:
    r"""Say how far calibration differs between sites (hospitals, countries), and what to expect of a new one.

    Estimand: ``mu`` and ``tau``, mean and standard deviation over sites of each site's calibration intercept, by how
    many logits its scores underpredict; or of its calibration slope.

    Parameters
    ----------
    data : Predictions or Sketch
        Where the data name clusters, they are the sites, or lie whole in those of `site`, as patients in hospitals;
        rows of different clusters of one site are independent given it.
    site : str, optional
        Covariate that names the site; by default ``cluster=`` of the data.
    measure : {"intercept", "slope"}
    clip : float in [0, 0.5)
        Probabilities are moved into ``[clip, 1 - clip]``. By default they are not.
    alpha : float in (0, 0.5]

    Returns
    -------
    Curve
        A line for each site of 20 rows (clusters, where these lie in sites) or more, the lowest estimate first:
        ``site``, ``rows``, ``predicted``, ``observed``, ``estimate`` with limits ``low`` to ``high``. ``settings``:
        ``mean`` with ``mean_low`` to ``mean_high``; ``new_low`` to ``new_high``, the prediction interval of a new site;
        ``tau`` with ``tau_low`` to ``tau_high``; ``p_value`` of "all sites are alike"; ``sites``; ``unshown``, sites of
        fewer, which count and are not shown; of an intercept ``ratio``, ``ratio_low``, ``ratio_high``,
        ``ratio_new_low`` and ``ratio_new_high``, the same as observed over expected events of all rows; with clusters
        within sites ``clusters`` and their ``design_effect``; of a slope ``without``, sites that have none, and
        Cochran's ``q`` and ``i2``. ``.chart()`` draws it.

    Raises
    ------
    BadInput
        An argument that cannot be used.
    NotComputable
        Under 3 sites, or under 3 with an event, or a row without; probabilities of 0 or 1 and `clip` is 0; weights;
        clusters that have rows at several sites, or hold several; a slope with clusters within sites.

    Notes
    -----
    **Assumes.** Sites independent, rows of one site independent given it; sites' intercepts (or slopes) normal about
    their mean.
    **Guarantee.** Asymptotic in the number of sites: see Coverage.
    **Method.** Intercept: one stage. Each site's binomial likelihood of its shift, exact, whatever the number of
    events, is integrated over the normal distribution of sites; tau has the largest likelihood with the mean integrated
    out (REML), the mean Student's interval with ``k - 1`` degrees of freedom, a new site ``mean +- t(k - 2) sqrt(tau^2
    + error^2)`` (Higgins, Thompson, Spiegelhalter). The usual two stages are not used for it: with few events a site
    each estimate is biased, and the mean with them. A site's own estimate and limits are Firth's. Slope: two stages,
    REML, Hartung's and Knapp's interval, the same prediction interval. Clusters within sites: every site's
    log-likelihood is divided by the design effect of clusters, pooled over sites, 1 at least; so all ranges are as wide
    as clusters ask if rows are about equally alike at each site.
    **Coverage.** See docs/covariates.md. **Cost.** 320 logistic functions a row, and a second or less.
    **Reads.** Rows.

    References
    ----------
    Debray et al. (2023), TRIPOD-Cluster, doi:10.1136/bmj-2022-071018. Riley et al. (2016), doi:10.1136/bmj.i3140.
    Higgins, Thompson, Spiegelhalter (2009), doi:10.1111/j.1467-985X.2008.00552.x. Hartung, Knapp (2001),
    doi:10.1002/sim.1009. Stijnen, Hamza, Ozdemir (2010), doi:10.1002/sim.4040. Heinze, Schemper (2002),
    doi:10.1002/sim.1047.

    Examples
    --------
    >>> import calibrant as cal
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> site, p = np.repeat(np.arange(20), 200), rng.uniform(0.05, 0.6, 4000)
    >>> logit = np.log(p / (1 - p)) + rng.normal(0.3, 0.4, 20)[site]
    >>> y = rng.random(4000) < 1 / (1 + np.exp(-logit))
    >>> found = cal.diagnose.heterogeneity(cal.predictions(y, p, cluster=site)).settings
    >>> found["mean_low"] < 0.3 < found["mean_high"], 0.2 < found["tau"] < 0.6
    (True, True)
    """
    choice("measure", measure, MEASURES)
    level, rows = checked_alpha(alpha), checked_data(data, Predictions)
    q = _sites(rows, site, clip)
    result, estimate, low, high = (_intercepts if measure == "intercept" else _slopes)(q, level)
    order = np.argsort(estimate, kind="stable")
    shown = order[(q.people[order] >= MASK) & np.isfinite(estimate[order])]
    columns = (np.array(q.names, dtype=object), q.rows, q.predicted, q.observed, estimate, low, high)
    table = {name: tuple(values[shown].tolist()) for name, values in zip(COLUMNS, columns, strict=True)}
    settings = {
        "alpha": level,
        "clip": clip,
        "measure": measure,
        "site": q.column,
        "sites": len(q.rows),
        "unshown": int((q.people < MASK).sum()),
        **result,
    }
    return Curve(method="diagnose.heterogeneity", columns=table, settings=settings)


@dataclass(frozen=True)
class _Sites:
    """Rows by site."""

    column: str
    names: list[str]
    code: Codes
    p: Floats
    y: Floats

    @property
    def rows(self) -> NDArray[np.int64]:
        return np.bincount(self.code, minlength=len(self.names))

    @property
    def people(self) -> NDArray[np.int64]:
        """How many people each site has."""
        return self.rows

    def tempered(self, _sites: Likelihoods) -> dict[str, object]:
        """Make the likelihoods those of clusters within sites, and say by how much."""
        return {}

    @property
    def predicted(self) -> Floats:
        return np.bincount(self.code, self.p, len(self.names)) / self.rows

    @property
    def observed(self) -> Floats:
        return np.bincount(self.code, self.y, len(self.names)) / self.rows

    @property
    def logit(self) -> Floats:
        return np.asarray(np.log(self.p) - np.log1p(-self.p))


@dataclass(frozen=True)
class _SitesOfClusters(_Sites):
    """The same of clusters that lie whole in sites."""

    cluster: Codes

    @property
    def people(self) -> NDArray[np.int64]:
        first = np.unique(self.cluster, return_index=True)[1]
        return np.bincount(self.code[first], minlength=len(self.names))

    def tempered(self, sites: Likelihoods) -> dict[str, object]:
        effect = sites.temper(Residuals(self.code, self.cluster, self.logit, self.y))
        return {"clusters": int(self.cluster.max()) + 1, "design_effect": effect}


DEPENDENT = (
    "sites {!r} are not independent: clusters (cluster=) have rows at several of them; name a site that holds whole "
    "clusters"
)


def _sites(rows: Predictions, site: str | None, clip: float) -> _Sites:
    """Rows by site; refuse weights, extreme scores and too few sites."""
    refuse_rows(rows, weights=WEIGHTED)
    if not 0.0 <= clip < 0.5:
        raise BadInput(f"clip={clip!r}: pass a number from 0 and below 0.5, such as 1e-6")
    names, code = _named(rows, site)
    if rows.crossing is not None:
        raise NotComputable(DEPENDENT.format("cluster" if site is None else site))
    within = _within(code, people_of(rows).codes, DEPENDENT.format(site))
    p = np.clip(rows.p, clip, 1.0 - clip) if clip else rows.p
    if extreme := int(((p == 0.0) | (p == 1.0)).sum()):
        raise NotComputable(
            f"the spread between sites needs finite logits: {extreme:,} rows have probability 0 or 1; pass clip=1e-6"
        )
    if len(names) < FEWEST_SITES:
        raise NotComputable(f"the spread between sites needs {FEWEST_SITES} sites; there are {len(names)}")
    known = "cluster" if site is None else site, names, code, p, rows.y.astype(np.float64)
    return _Sites(*known) if within is None else _SitesOfClusters(*known, within)


def _within(code: Codes, cluster: Codes, dependent: str) -> Codes | None:
    """The clusters within sites; None where they are the sites, or single rows."""
    count, sites = int(cluster.max()) + 1, int(code.max()) + 1
    if len(np.unique(code * count + cluster)) > count:
        raise NotComputable(dependent)
    return None if count in (sites, len(code)) else cluster


def _named(rows: Predictions, site: str | None) -> tuple[list[str], Codes]:
    if site is not None:
        table = rows.covariates
        require((site,), () if table is None else tuple(table.schema.names), "site")
        column = decoded(table.column(site)).cast(pa.string()).fill_null("missing")
        values = np.asarray(column.to_pylist(), dtype=object).astype(str)
    elif rows.cluster is None:
        raise NotComputable("the column of the sites is not known: pass site=, or cluster= with the data")
    else:
        values = rows.cluster
    names, code = np.unique(values, return_inverse=True)
    return [str(v) for v in names], code.reshape(-1)


def _intercepts(q: _Sites, alpha: float) -> tuple[dict[str, object], Floats, Floats, Floats]:
    """What is found of all sites' intercepts, and each one's estimate with its limits."""
    from scipy.special import expit

    logit, count = q.logit, len(q.names)
    sites = Likelihoods(q.code, logit, q.y, count)
    for word, have in (("an event", sites.events > 0), ("a row without", sites.events < sites.rows)):
        if (few := int(have.sum())) < FEWEST_SITES:
            raise NotComputable(
                f"the spread between sites needs {FEWEST_SITES} with {word}; there are {few}: use "
                "measure.calibration_intercept"
            )
    within = q.tempered(sites)
    fit = fitted(sites, alpha)

    def ratio(gap: float) -> float:
        return float(expit(logit + gap).sum() / q.p.sum())

    reported = asdict(fit)
    reported["mean_low"], reported["mean_high"] = reported.pop("low"), reported.pop("high")
    reported |= within | {
        "ratio": ratio(fit.mean),
        "ratio_low": ratio(fit.low),
        "ratio_high": ratio(fit.high),
        "ratio_new_low": ratio(fit.new_low),
        "ratio_new_high": ratio(fit.new_high),
        "degrees": count - 1,
        "new_degrees": count - 2,
        "method": "one stage: exact binomial likelihoods, REML",
    }
    return reported, *alone(sites, alpha)


def _slopes(q: _Sites, alpha: float) -> tuple[dict[str, object], Floats, Floats, Floats]:
    """What is found of all sites' slopes, and each one's estimate with its limits; NaN inside where none is."""
    refuse_rows(q, cluster='slopes take rows of one site as independent, and those of one cluster are not: "intercept"')
    value, error, logit = np.full(len(q.names), np.nan), np.full(len(q.names), np.nan), q.logit
    for j in range(len(q.names)):
        at = q.code == j
        x, y = logit[at], q.y[at]
        events = int(y.sum())
        if min(events, len(y) - events) < OUTCOMES or np.ptp(x) == 0:
            continue
        one = np.ones(len(y))
        fit = recalibrate(x, Weighed(y, one, one), True)
        if fit.converged:
            value[j], error[j] = float(fit.coefficients[-1]), float(fit.errors[-1])
    have = np.isfinite(value)
    if (few := int(have.sum())) < FEWEST_SITES:
        raise NotComputable(
            f"the spread of slopes needs {FEWEST_SITES} sites with {OUTCOMES} rows of each outcome; there are {few}: "
            'use measure="intercept"'
        )
    fit_all = pooled(value[have], error[have] ** 2, alpha, "reml")
    reported = asdict(fit_all)
    for name in ("weight", "tau2", "tau2_low", "tau2_high"):
        del reported[name]
    reported["mean_low"], reported["mean_high"] = reported.pop("low"), reported.pop("high")
    reported |= {
        "tau": float(np.sqrt(fit_all.tau2)),
        "tau_low": float(np.sqrt(fit_all.tau2_low)),
        "tau_high": float(np.sqrt(fit_all.tau2_high)),
        "without": int((~have).sum()),
        "degrees": few - 1,
        "new_degrees": few - 2,
        "method": "two stages: REML, Hartung and Knapp",
    }
    half = normal_quantile(alpha) * error
    return reported, value, value - half, value + half
