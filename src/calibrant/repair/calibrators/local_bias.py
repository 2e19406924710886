"""Correct the local calibration bias: move each probability by how far off the people nearby were."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.arguments import check_int, checked_seed, names, number
from calibrant.data.predictions import Predictions
from calibrant.data.specs.coding import Encoded
from calibrant.errors import NotComputable
from calibrant.repair.calibrators.augmented import of_kept
from calibrant.repair.catalogue import Tunable, recipe
from calibrant.repair.disclosure import reported_codings, stepped
from calibrant.repair.fitted import Batch, Calibrator, Order, fitted_on, inputs_of, known, rising, shares, sound
from calibrant.repair.formulas import expression
from calibrant.repair.formulas.expression import Applied, Chosen, Formula, Number, Term
from calibrant.repair.regression import (
    FOLDS,
    Choice,
    Edges,
    Floats,
    Kept,
    Trial,
    chosen,
    edges_of,
    encoded,
    expit,
    fit_rows,
    folds_of,
    independent,
    indicators,
    kept_levels,
    log_odds,
    losses,
    of_levels,
    paired,
    targets,
)
from calibrant.stats.logistic import regress
from calibrant.views.points import even_weights, weights_of

Codes = NDArray[np.int32]
Marks = tuple[Floats, Codes | None]  # positions on the axes of a kernel, and levels where it reads them

# ---- The map that moves log-odds by a smooth function of score and covariates, held as a few hundred bells ----

APART = 2.0  # squared distance of two different levels, numbers being in standard deviations: that of two random rows
AT_ONCE = 8192  # rows taken at once: a table of bells of 16 MB
LOWEST = -300.0  # exponent of a bell far from its mark: no subnormal numbers, which are slow
Line = tuple[int, float, tuple[float, ...], tuple[float, ...]]  # axis, width, knots, heights


@dataclass(frozen=True, kw_only=True)
class KernelShift(Calibrator):
    """The map ``expit(slope logit p + intercept + f(p, x))``, f a sum of Gaussian bells and of constants by level."""

    slope: float
    intercept: float
    score: tuple[float, ...]  # location and scale of the score; then, if its ranks are used, their table
    edges: Edges  # nearer to 0, and to 1, than these logarithms of the score are continued along their tangents
    lines: tuple[Line, ...] = ()  # bells along one axis: 0 is the score, then the numbers
    # Score and numbers, standardised, of the places around which the joint bells lie: values of rows, each column
    # shuffled by itself.
    landmarks: tuple[tuple[float, ...], ...] = ()
    levels_there: tuple[tuple[int, ...], ...] = ()  # their levels
    heights: tuple[float, ...] = ()  # of the joint bells
    width: float = 1.0  # of the joint bells
    kept: Kept = ()  # levels that have a constant
    constants: tuple[float, ...] = ()

    @property
    def order(self) -> Order:
        if self.lines or self.heights or self.constants or self.slope < 0:
            return "may change"
        return "kept" if self.slope > 0 else "kept up to ties"

    def check(self) -> None:
        x, bells_there = inputs_of(self.codings), len(self.heights)
        sound(len(self.score) > 1 and self.score[1] > 0 and rising(self.score[2:]), "score must be location and scale")
        sound(min(self.edges) > 0 and shares(self.edges) and self.width > 0, "edges must lie between 0 and 1")
        sound(bells_there <= LANDMARKS and len(self.lines) <= 1 + x.numbers, "more bells than a fit leaves there")
        for axis, width, knots, heights in self.lines:
            sound(len(knots) <= KNOTS, "more knots than a fit leaves there")
            sound(0 <= axis <= x.numbers and width > 0, "a line is along an axis that is not there")
            sound(len(knots) == len(heights) > 0, "every knot needs a height")
        sound(len(self.landmarks) == len(self.levels_there) == bells_there, "every landmark needs levels and a height")
        sound(all(len(m) == 1 + x.numbers for m in self.landmarks), "a landmark lacks a number")
        sound(all(known([(c,) for c in own], x.levels) for own in self.levels_there), "a landmark lacks a level")
        sound(len(self.constants) == sum(map(len, self.kept)), "a level lacks its constant")
        sound(not self.constants or known(self.kept, x.levels), "kept must name levels of each level variable")

    def values(self, rows: Batch) -> Floats:
        if self.order == "kept" and (self.slope, self.intercept) == (1.0, 0.0):
            return rows.p.copy()
        eta = self.slope * log_odds(rows.p, self.edges) + self.intercept
        if self.lines or self.heights or self.constants:
            for at in blocks(len(eta)):
                eta[at] += self._gap(rows.p[at], rows.covariates, at)
        return expit(eta)

    def _gap(self, p: Floats, x: Encoded, at: slice) -> Floats:
        """``f(p, x)`` of some rows."""
        z, codes = positions(p, x.scaled[at], self.score), x.codes[at]
        out = np.zeros(len(p))
        for axis, width, knots, heights in self.lines:
            out += bells((z[:, [axis]], None), (np.array(knots)[:, None], None), width) @ np.array(heights)
        if self.heights:
            levels = np.array(self.levels_there, dtype=np.int32).reshape(len(self.heights), -1)
            out += bells((z, codes), (np.array(self.landmarks), levels), self.width) @ np.array(self.heights)
        return out + of_levels(codes, self.kept, self.constants) if self.constants else out

    def formula(self, row: Formula) -> Term:
        if self.order == "kept" and (self.slope, self.intercept) == (1.0, 0.0):
            return row.score
        parts = [expression.log_odds(row.score, self.edges) * self.slope, Number(self.intercept)]
        if self.lines or self.heights:
            parts += self._bells(row)
        if self.constants:
            parts.append(of_kept(row, self.kept, self.constants))
        return expression.probability(expression.total(parts))

    def _bells(self, row: Formula) -> list[Term]:
        location, scale, *ranks = self.score
        own = expression.broken_line(row.score, ranks, np.linspace(0.0, 1.0, len(ranks)).tolist()) if ranks else None
        axes = [((own or row.score) - location) / scale, *row.scaled]
        z = list(row.step({f"axis{k}": axis for k, axis in enumerate(axes)}).values())
        parts = [
            _bell([(z[axis], knot)], width, height)
            for axis, width, knots, heights in self.lines
            for knot, height in zip(knots, heights, strict=True)
        ]
        marks = zip(self.landmarks, self.levels_there, self.heights, strict=True)
        return parts + [
            _bell(list(zip(z, place, strict=True)), self.width, height, _apart(row, levels))
            for place, levels, height in marks
        ]


def _bell(places: Sequence[tuple[Term, float]], width: float, height: float, apart: Sequence[Term] = ()) -> Term:
    """``height exp(-d^2 / (2 width^2))`` as a formula."""
    squares = [(z - mark) * (z - mark) for z, mark in places]
    exponent = expression.total([*squares, *apart]) * (-0.5 / width**2)
    return Applied("exp", (Applied("greatest", (exponent, Number(LOWEST))),)) * height


def _apart(row: Formula, levels: Sequence[int]) -> list[Term]:
    """The squared distance of a row's levels from those of a mark."""
    pairs = zip(row.variables, levels, strict=True)
    return [Chosen(((v.among(code.__eq__), Number(0.0)),), Number(APART)) for v, code in pairs]


def positions(p: Floats, scaled: Floats, score: tuple[float, ...]) -> Floats:
    """Score and numbers on the axes of the kernels, shape (n, 1 + numbers)."""
    location, scale, *ranks = score
    own = np.interp(p, ranks, np.linspace(0.0, 1.0, len(ranks))) if ranks else p
    return np.hstack([((own - location) / scale)[:, None], scaled])


def blocks(n: int) -> Iterator[slice]:
    return (slice(a, min(a + AT_ONCE, n)) for a in range(0, n, AT_ONCE))


def squared(rows: Marks, marks: Marks) -> Floats:
    """Squared distances of rows and marks: of their numbers, and `APART` for each level that differs."""
    (z, codes), (there, codes_there) = rows, marks
    out: Floats = (z * z).sum(axis=1)[:, None] + (there * there).sum(axis=1)[None, :] - 2.0 * (z @ there.T)
    np.maximum(out, 0.0, out=out)
    if codes is not None and codes_there is not None:
        for j in range(codes.shape[1]):
            out += APART * (codes[:, j][:, None] != codes_there[None, :, j])
    return out


def bells(rows: Marks, marks: Marks, width: float) -> Floats:
    """``exp(-d^2 / (2 width^2))`` of rows and marks, shape (rows, marks)."""
    d = squared(rows, marks)
    np.multiply(d, -0.5 / width**2, out=d)
    out: Floats = np.exp(np.maximum(d, LOWEST, out=d), out=d)
    return out


# ---- Features of score and covariates by which a local correction is found: bells along each axis, and of all ----

KNOTS = 12  # along an axis: as the local calibration test has them
LANDMARKS = 1024  # at most: a block of rows times as many bells is 64 MB
APIECE, LANDED = 0.01, 0.1  # steps of knots and of landmarks, in standard deviations
REAL = 1e-6  # share of the largest eigenvalue below which a direction of a kernel is left out: rounding makes it up


@dataclass(frozen=True)
class Kernel:
    """Bells around marks, and the matrix that makes of them features whose penalty is the sum of squares."""

    axes: tuple[int, ...]  # which axes of the positions it reads
    marks: Marks  # shape (k, axes)
    width: float
    half: Floats  # shape (k, features): the inverse root of the bells' matrix at the marks

    def features(self, z: Floats, codes: Codes) -> Floats:
        return bells((z[:, list(self.axes)], codes), self.marks, self.width) @ self.half

    def line(self, beta: Floats) -> Line:
        """The bells along an axis, given coefficients of the features."""
        heights = self.half @ beta
        return self.axes[0], self.width, tuple(self.marks[0][:, 0].tolist()), tuple(heights.tolist())


@dataclass(frozen=True)
class Frame:
    """All features, fixed without a label."""

    lines: tuple[Kernel, ...]  # along the axes that vary
    joint: Kernel | None
    kept: Kept  # levels that get a column

    def columns(self, free: Floats, z: Floats, codes: Codes) -> Floats:
        """The unpenalised columns `free`, then lines, levels and joint features, of all rows."""
        joint = () if self.joint is None else (self.joint,)
        width = free.shape[1] + sum(k.half.shape[1] for k in (*self.lines, *joint)) + sum(map(len, self.kept))
        out = np.empty((len(z), width))
        for at in blocks(len(z)):
            lines, joints = ([k.features(z[at], codes[at]) for k in kernels] for kernels in (self.lines, joint))
            out[at] = np.hstack([free[at], *lines, indicators(codes[at], self.kept), *joints])
        return out


def frame_of(z: Floats, codes: Codes, kept: Kept, settings: LocalBias, bandwidth: float) -> Frame:
    """Fix the features of rows at positions `z` (the score first) with levels `codes`."""
    lines = tuple(k for j in range(z.shape[1]) if (k := _line(z, j, bandwidth)) is not None)
    return Frame(lines, _joint(z, codes, settings, bandwidth), kept)


def _line(z: Floats, axis: int, bandwidth: float) -> Kernel | None:
    inside = np.linspace(0.02, 0.98, KNOTS)  # no knot stands alone beyond the bulk of the rows
    knots = np.unique(stepped(np.quantile(z[:, axis], inside), APIECE))[:, None]
    if len(knots) < 2:
        knots = np.unique(stepped(z[:, axis], APIECE))[[0, -1], None]
    if knots[0] == knots[-1]:
        return None
    return _kernel((axis,), (knots, None), bandwidth)


def _joint(z: Floats, codes: Codes, settings: LocalBias, bandwidth: float) -> Kernel | None:
    if z.shape[1] + codes.shape[1] < 2:
        return None
    rng = np.random.default_rng([settings.seed, STREAM, 2])
    rows = rng.choice(len(z), min(int(settings.landmarks), len(z)), replace=False)
    d = z.shape[1]
    marks = np.hstack([stepped(z[rows], LANDED), codes[rows]])
    for j in range(marks.shape[1]):  # each column is shuffled by itself, so that no landmark is a person
        marks[:, j] = rng.permutation(marks[:, j])
    places = np.unique(marks, axis=0)
    if len(places) < 2:
        return None
    return _kernel(tuple(range(d)), (places[:, :d], places[:, d:].astype(np.int32)), bandwidth)


def _kernel(axes: tuple[int, ...], marks: Marks, bandwidth: float) -> Kernel:
    d2 = squared(marks, marks)
    width = bandwidth * float(np.sqrt(np.median(d2[d2 > 1e-12])))
    values, vectors = np.linalg.eigh(bells(marks, marks, width))
    real = values > REAL * values[-1]
    return Kernel(axes, marks, width, vectors[:, real] / np.sqrt(values[real]))


# ---- The fit of a local correction: nothing, the overall curve, or both and a kernel's, whichever ----

STREAM = 0xB1A5  # of random numbers, after the seed; the map of `diagnose.local_bias` has it before the seed
MOST = 200_000  # rows; of more, a uniform sample is fitted


def local_fit(rows: Predictions, settings: LocalBias) -> dict[str, Any]:
    """The fields of the map that is fitted, its settings among them."""
    seed, variables = settings.seed, None if settings.variables is None else names("variables", settings.variables)
    how, x, constants = encoded(rows, variables)
    # (1) The overall curve, and where each row stands on the axes of the kernels.
    edges, score = edges_of(rows.p), _score_axis(rows.p)
    odds = log_odds(rows.p, edges)
    slope, intercept = _curve(odds, targets(rows), weights_of(rows))
    z, codes, kept = positions(rows.p, x.scaled, score), x.codes, kept_levels(x)
    free = np.column_stack([np.ones(rows.n), odds])[:, : 1 + (np.ptp(odds) > 0)]
    # (2) For each bandwidth the penalty that cross-fitted log loss prefers; the bandwidth that gains most.
    cluster, fold = folds_of(rows, np.random.default_rng([seed, STREAM]))
    tried = []
    for bandwidth in WIDTHS if settings.bandwidth is None else (float(settings.bandwidth),):
        frame = frame_of(z, codes, kept, settings, bandwidth)
        t = Trial(
            y=rows.y.astype(np.float64),
            weight=even_weights(rows),
            base=slope * odds + intercept,
            features=frame.columns(free, z, codes),
            free=free.shape[1],
            joint=0 if frame.joint is None else frame.joint.half.shape[1],
            fold=fold,
            cluster=cluster,
        )
        shrink = settings.shrink
        choice = chosen(t) if shrink is None else Choice(t.penalty(shrink, 1.0), shrink, 1.0, 0.0, 0.0)
        tried.append((choice, frame, t, bandwidth))
    choice, frame, t, bandwidth = max(tried, key=lambda one: one[0].gain)
    # (3) The correction by penalised maximum likelihood; or the overall curve; or nothing, whichever earns its place.
    results: Mapping[str, Any] = {}
    if choice.penalty is not None:
        beta = t.fitted(choice.penalty)
        results, kind = _shape(beta, t.free, frame), "local"
        slope, intercept = slope + (float(beta[1]) if t.free == 2 else 0.0), intercept + float(beta[0])
    elif _better(rows, odds, t):
        kind = "overall"
    else:
        slope, intercept, kind = 1.0, 0.0, "none"
    return {
        "codings": how,
        "slope": slope,
        "intercept": intercept,
        "score": score,
        "edges": edges,
        "settings": {
            "constant": constants,
            "correction": kind,
            "bandwidth": bandwidth,
            "shrink_requested": settings.shrink,
            "shrink": None if choice.penalty is None else float(choice.strength),
            "joint": float(choice.joint),
            "gain": choice.gain,
            "gain_error": choice.error,
            "features": t.features.shape[1],
            "rows_used": rows.n,
            "seed": seed,
        },
        **results,
    }


def _score_axis(p: Floats) -> tuple[float, ...]:
    """Location and scale of the score, and the table of its ranks where it is heavy-tailed."""
    import pyarrow as pa

    (c,) = reported_codings(pa.table({"score": p}), None)
    return (float(p[0]), 1.0) if c.kind == "constant" else (c.location, c.scale, *c.ranks)


def _curve(odds: Floats, target: Floats, weight: Floats) -> tuple[float, float]:
    """Slope and intercept of the overall curve, a straight line of log-odds."""
    if np.ptp(odds) == 0:
        mean = float(np.average(target, weights=weight))
        return 1.0, float(np.log(mean / (1.0 - mean)) - odds[0])
    slopes, intercept = regress(odds[:, None], target, weight)
    return float(slopes[0]), intercept


def _better(rows: Predictions, odds: Floats, t: Trial) -> bool:
    """Whether the overall curve, fitted on other folds, beats the scores as they are by a standard error."""
    after, target = np.empty(rows.n), targets(rows)
    for k in range(FOLDS):
        out = t.fold == k
        slope, intercept = _curve(odds[~out], target[~out], weights_of(rows)[~out])
        after[out] = slope * odds[out] + intercept
    gain, error = paired(t.weight * (losses(t.y, odds) - losses(t.y, after)), t.cluster)
    return gain > error


def _shape(beta: Floats, free: int, frame: Frame) -> dict[str, Any]:
    """The map's bells and constants, given coefficients of the features."""
    at, lines = free, []
    for k in frame.lines:
        lines.append(k.line(beta[at : at + k.half.shape[1]]))
        at += k.half.shape[1]
    levels = sum(map(len, frame.kept))
    out = {"lines": tuple(lines), "kept": frame.kept, "constants": tuple(beta[at : at + levels].tolist())}
    own = beta[at + levels :]
    if frame.joint is None or not own.any():
        return out
    k = frame.joint
    marks, there = k.marks
    return out | {
        "landmarks": tuple(map(tuple, marks.tolist())),
        "levels_there": () if there is None else tuple(map(tuple, there.tolist())),
        "heights": tuple((k.half @ own).tolist()),
        "width": k.width,
    }


# ---- Correct the local calibration bias: move each probability by how far off the people nearby were ----

FEWEST = 20  # events, and non-events: a few in each fold
WIDTHS = (1.0, 0.4)  # in median distances: one for smooth error, one for error that turns within them


@recipe(
    calibrators=[KernelShift],
    words="local bias correction",
    simplicity=130,
    command="local-bias",
    covariates=True,
    tried="by the command",
)
class LocalBias(Tunable):
    r"""Correct the local calibration bias, by a smooth function of score and covariates found among the residuals.

    Estimand: ``f`` of ``logit P(Y = 1 | p, x) = a logit p + b + f(p, x)``; the correction ``p' - p`` estimates the
    local bias ``E[Y - p | p, x]`` of eq. 7 of the paper.

    Parameters
    ----------
    variables : str or sequence of str, optional
        Covariates of any kind; by default all.
    bandwidth : float above 0, optional
        Standard deviation of the kernels, in median distances: of landmarks for the joint kernel, of knots along each
        axis. By default
        1 or 0.4, whichever cross-fitted log loss prefers.
    shrink : float above 0, optional
        Penalty on ``|f|^2``, in rows' worth; the larger, the smaller the correction. By default chosen by cross-fitted
        log loss from 0.1 to 10,000, without and with the joint kernel; or no correction, if none gains more than a
        standard error.
    landmarks : int from 2 to 1,024
        Fit rows around which the joint kernel's bells lie.
    seed : int
        Of folds and landmarks.

    Raises
    ------
    BadInput
        A setting out of range; no such covariate.
    NotComputable
        Fewer than 20 rows of either outcome, or five clusters.

    Notes
    -----
    **Assumes.** Independent rows, or independent clusters (folds keep them together). The error varies smoothly with
    numbers; with levels it may jump. **Guarantee.** None by itself: judge with `calibrant.repair.evaluate` on other
    rows. Of a calibrated model it leaves the scores exactly as they are in most samples, and moves them little in the
    others; far from all fit rows only overall curve and levels act. **Method.** f lies in the span of Gaussian bells:
    along the score and each number (12 quantile knots), of all of them together (levels a fixed distance apart) around
    random fit rows, and a constant for each level; these are the features of `detect.local_calibration_test` but for
    its steps. Penalised maximum likelihood in the reproducing norm; the penalty is chosen by five-fold cross-fitting of
    one Newton step. Departures from eq. 7, which averages residuals with kernel weights: the correction is on the
    log-odds, so that no probability leaves [0, 1]; it is fitted jointly, so that neighbours are not counted for one
    another and a direction that noise could explain is left alone; and it is a map for new rows, of a few hundred
    numbers. Of more than 200,000 rows a uniform sample is fitted. **Cost.** Rows times the square of the features (256,
    and 12 a number, at most), some fifteen times: 20 s of CPU time for 100,000 rows with ten variables. A repaired row
    takes 3 to 11 us. **Reads.** Rows; weights and clusters are used.

    References
    ----------
    Vashistha and Farahi (2025), "I-trustworthy models", AISTATS, eq. 7.

    Examples
    --------
    >>> import calibrant as cal
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> p, age = rng.uniform(0.2, 0.8, 16_000), rng.uniform(18, 90, 16_000)
    >>> y = rng.uniform(size=16_000) < p + 0.1 * np.sin(age / 10)  # underpredicts at some ages
    >>> first, second = (cal.predictions(y[a], p[a], {"age": age[a]}) for a in (slice(0, 12_000), slice(12_000, None)))
    >>> fitted = cal.repair.LocalBias().fit(first)
    >>> tests = [cal.detect.local_calibration_test(d, draws=199).p_value for d in (second, fitted(second))]
    >>> bool(tests[0] <= 0.01), bool(tests[1] > 0.05)
    (True, True)
    """

    variables: str | Sequence[str] | None = None
    bandwidth: float | None = None
    shrink: float | None = None
    landmarks: int = 256
    seed: int = 0

    def __post_init__(self) -> None:
        if self.variables is not None:
            names("variables", self.variables, what="a covariate", least=1)
        for name, value in (("bandwidth", self.bandwidth), ("shrink", self.shrink)):
            if value is not None:
                number(name, value, above=0, hint="such as 1.0")
        check_int("landmarks", self.landmarks, 2, LANDMARKS)
        checked_seed(self.seed)

    def fit(self, data: Predictions) -> KernelShift:
        """Fit the correction to rows."""
        rows = fit_rows(data, "LocalBias")
        if min(rows.events, rows.n - rows.events) < FEWEST:
            raise NotComputable(
                f"LocalBias needs at least {FEWEST} rows of each outcome, to choose how much to correct: there are "
                f"{rows.events} with outcome 1 and {rows.n - rows.events} with outcome 0; take Platt or "
                f"AugmentedLogistic"
            )
        what, own = independent(rows)
        if (many := int(own.max()) + 1) < FOLDS:
            raise NotComputable(
                f"LocalBias needs at least {FOLDS} {what}, to choose how much to correct: there are {many}"
            )
        some = rows
        if rows.n > MOST:
            rng = np.random.default_rng([self.seed, STREAM, 1])
            some = rows.part(np.sort(rng.choice(rows.n, MOST, replace=False)))
        return KernelShift(recipe="LocalBias", fitted_on=fitted_on(rows), **local_fit(some, self))
