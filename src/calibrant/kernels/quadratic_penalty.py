r"""The peak of a binomial's Gaussian notch, which the product certificates of rounded scores pay for.

For ``k ~ Binomial(n, e)`` the notch is ``q(k) = exp(-alpha (k - centre)^2 / 2)``, and what is wanted is ``max over e of
ln E_e q(k)``. The mean is a Bernstein polynomial of a log-concave sequence in e, hence unimodal: Newton's method on the
log odds of e finds the peak where counts are large, golden-section search where they are small.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibrant.kernels.runtime import as_readonly, few, kernel

Floats = NDArray[np.float64]

GOLDEN_SECTION = (math.sqrt(5.0) - 1.0) / 2.0
HALF_LOG_TWO_PI = 0.5 * math.log(2.0 * math.pi)
NEGLIGIBLE = -45.0  # of a logarithm: exp(-45) is 3e-20 of the largest term
FEW = 4  # successes, or failures, at the centre below which golden section is used
FEWER = 8  # so much larger is the work for a trial than for a row
ROUNDS = 12  # of Newton's method, which takes four or five


def penalty_peaks(n: ArrayLike, centre: ArrayLike, alpha: ArrayLike) -> Floats:
    """The largest log mean of each binomial's notch.

    `n`: int64 of shape (m,); trials. `centre`, `alpha`: float64 of shape (m,); where the notch is, and its curvature.
    """
    inputs = as_readonly(n, np.int64), as_readonly(centre, np.float64), as_readonly(alpha, np.float64)
    if not len(inputs[0]):
        return np.empty(0, dtype=np.float64)
    if few(int(inputs[0].max(initial=0)) * FEWER, often=True):
        return plain_penalty_peaks(*inputs)
    out = np.empty(len(inputs[0]), dtype=np.float64)
    _penalty_peaks(*inputs, out)
    return out


@kernel
def _penalty_peaks(n: NDArray[np.int64], centre: Floats, alpha: Floats, out: Floats) -> None:
    for i in range(out.shape[0]):
        out[i] = _penalty_peak(n[i], centre[i], alpha[i])


# ---- Large counts: Newton's method on the log odds ----


@kernel
def _penalty_peak(n: int, centre: float, alpha: float) -> float:
    middle = math.floor(centre + 0.5)
    if middle < FEW or middle > n - FEW:
        return _golden_peak(n, centre, alpha)
    e = middle / n
    variance = n * e * (1.0 - e)
    up, down = _outward(n, middle, centre, alpha)
    logit0 = math.log(e) - math.log1p(-e)
    logit, value = logit0, -np.inf
    for _ in range(ROUNDS):
        q = 1.0 / (1.0 + math.exp(-logit))
        mass, mean, square = _tilted(up, down, math.exp(logit - logit0))
        value = math.log(mass) + middle * math.log(q / e) + (n - middle) * math.log((1.0 - q) / (1.0 - e))
        gradient = middle + mean - n * q
        hessian = square - mean * mean - n * q * (1.0 - q)
        if not hessian < 0.0:
            return _golden_peak(n, centre, alpha)
        if gradient * gradient < -1e-13 * hessian:  # the step would gain 1e-13 of a logarithm
            break
        logit -= gradient / hessian
    else:
        return _golden_peak(n, centre, alpha)
    # The weights were relative to the binomial's own at the middle (Stirling's formula cancels less than lgamma).
    at_middle = _stirling_error(n * 1.0) - _stirling_error(middle * 1.0) - _stirling_error((n - middle) * 1.0)
    at_middle -= 0.5 * math.log(2.0 * math.pi * variance)
    return value + at_middle - 0.5 * alpha * (middle - centre) ** 2


@kernel
def _outward(n: int, middle: int, centre: float, alpha: float) -> tuple[Floats, Floats]:
    """Weights right and left of `middle`, relative to it, of Binomial(n, middle / n) times the notch.

    They reach 9.5 standard deviations of the product, beyond which a normal law has 2e-21, and 14 steps more.
    """
    e = middle / n
    variance = n * e * (1.0 - e)
    reach = int(9.5 * math.sqrt(variance / (1.0 + alpha * variance))) + 14
    odds = middle / (n - middle)
    shrink = math.exp(-alpha)
    up, down = np.empty(min(reach, n - middle)), np.empty(min(reach, middle))
    w, g = 1.0, math.exp(-alpha * (middle - centre + 0.5))
    for j in range(up.shape[0]):
        k = middle + j
        w *= (n - k) / (k + 1.0) * odds * g
        g *= shrink
        up[j] = w
    w, g = 1.0, math.exp(alpha * (middle - centre - 0.5))
    for j in range(down.shape[0]):
        k = middle - j
        w *= k / ((n - k + 1.0) * odds) * g
        g *= shrink
        down[j] = w
    return up, down


@kernel
def _tilted(up: Floats, down: Floats, tilt: float) -> tuple[float, float, float]:
    """Mass, mean and second moment about the middle of the outward weights times ``tilt^(k - middle)``."""
    mass, one, two = 1.0, 0.0, 0.0
    t = 1.0
    for j in range(up.shape[0]):
        t *= tilt
        w = up[j] * t
        mass += w
        one += w * (j + 1)
        two += w * (j + 1) * (j + 1)
    t = 1.0
    for j in range(down.shape[0]):
        t /= tilt
        w = down[j] * t
        mass += w
        one -= w * (j + 1)
        two += w * (j + 1) * (j + 1)
    return mass, one / mass, two / mass


@kernel
def _stirling_error(x: float) -> float:
    """``ln x! - ln(sqrt(2 pi x) (x / e)^x)``, after Loader (2000), "Fast and accurate ... binomial probabilities"."""
    if x < 16.0:
        return math.lgamma(x + 1.0) - (x + 0.5) * math.log(x) + x - HALF_LOG_TWO_PI
    y = 1.0 / (x * x)
    return (1.0 / 12.0 - y * (1.0 / 360.0 - y * (1.0 / 1260.0 - y / 1680.0))) / x


# ---- Small counts: golden-section search ----


@kernel
def _golden_peak(n: int, centre: float, alpha: float) -> float:
    """Search the unimodal log mean; exact to rounding."""
    first, weight = _window(n, centre, alpha)
    e0 = min(max(centre / n, 0.0), 1.0)
    half = 2.0 * math.sqrt(e0 * (1.0 - e0) / n) + 2.0 / n  # the peak lies within two standard errors of the centre
    low, high = max(e0 - half, 0.0), min(e0 + half, 1.0)
    a, b = high - GOLDEN_SECTION * (high - low), low + GOLDEN_SECTION * (high - low)
    fa, fb = _log_value(weight, first, n, a), _log_value(weight, first, n, b)
    best = max(_log_value(weight, first, n, low), _log_value(weight, first, n, high), fa, fb)
    while (high - low) * n > 1e-5 * (1.0 + math.sqrt(n * e0 * (1.0 - e0))):  # the value errs by its square
        if fa < fb:
            low, a, fa = a, b, fb
            b = low + GOLDEN_SECTION * (high - low)
            fb = _log_value(weight, first, n, b)
        else:
            high, b, fb = b, a, fa
            a = high - GOLDEN_SECTION * (high - low)
            fa = _log_value(weight, first, n, a)
        best = max(best, fa, fb)
    return best


@kernel
def _window(n: int, centre: float, alpha: float) -> tuple[int, Floats]:
    """First index and log weights ``ln C(n, k) - alpha (k - centre)^2 / 2`` where they can matter."""
    e = min(max(centre / n, 0.0), 1.0)
    spread = n * e * (1.0 - e) + 1.0
    reach = int(10.0 * math.sqrt(spread / (1.0 + alpha * spread)) + 0.02 * math.sqrt(spread)) + 12
    middle = min(max(int(centre + 0.5), 0), n)
    first, last = max(middle - reach, 0), min(middle + reach, n)
    weight = np.empty(last - first + 1)
    choose = math.lgamma(n + 1.0) - math.lgamma(first + 1.0) - math.lgamma(n - first + 1.0)
    for j in range(weight.shape[0]):
        k = first + j
        weight[j] = choose - 0.5 * alpha * (k - centre) ** 2
        choose += math.log((n - k) / (k + 1.0)) if k < n else 0.0
    return first, weight


@kernel
def _log_value(weight: Floats, first: int, n: int, e: float) -> float:
    """Log of ``sum_k exp(weight_k) e^k (1 - e)^(n - k)`` over the window that starts at `first`."""
    if e <= 0.0:
        return weight[0] if first == 0 else -np.inf
    if e >= 1.0:
        return weight[-1] if first + weight.shape[0] - 1 == n else -np.inf
    step = math.log(e) - math.log1p(-e)
    base = first * step + n * math.log1p(-e)
    top = -np.inf
    for j in range(weight.shape[0]):
        v = weight[j] + j * step
        if v > top:
            top = v
    total = 0.0
    for j in range(weight.shape[0]):
        d = weight[j] + j * step - top
        if d > NEGLIGIBLE:
            total += math.exp(d)
    return base + top + math.log(total)


# ---- the same in NumPy, for few rows ----

Ints = NDArray[np.int64]

HALVINGS = 60  # Newton's method takes five or six, and where it leaves what is known to hold the peak, halving fifty
ENOUGH = 1e-13  # of a logarithm, that another step would gain
FARTHEST = 60.0  # log odds beyond which a chance is 0 or 1


def plain_penalty_peaks(n: Ints, centre: Floats, alpha: Floats) -> Floats:
    """The largest log mean of each binomial's notch.

    ``ln sum_k C(n, k) exp(-alpha (k - centre)^2 / 2) e^k (1 - e)^(n - k)`` is unimodal in e; with t the log odds of e
    its slope is ``E[k] - n e``, the mean under the weights of the sum, and its curvature ``Var[k] - n e (1 - e)``.
    """
    if not len(n):
        return np.zeros(0)
    k, weight = _windows(n, centre, alpha)
    share = np.clip(centre / n, 0.0, 1.0)
    with np.errstate(divide="ignore"):
        t = np.clip(np.log(share) - np.log1p(-share), -FARTHEST, FARTHEST)
    low, high = np.full(len(t), -FARTHEST), np.full(len(t), FARTHEST)
    best = _ends(n, k, weight)
    # The mean rises from e = 0 where the notch is higher at one success than at none, and falls to e = 1 likewise;
    # as it has one peak, elsewhere that is at the end
    going = np.flatnonzero((centre > 0.5) & (centre < n - 0.5))
    for _ in range(HALVINGS if len(going) else 0):
        # (1) Value, slope and curvature at t
        own, at = t[going], k[going]
        terms = weight[going] + at * own[:, None]
        top = terms.max(axis=1)
        mass = np.exp(terms - top[:, None])
        total = mass.sum(axis=1)
        mean = (mass * at).sum(axis=1) / total
        square = (mass * (at - mean[:, None]) ** 2).sum(axis=1) / total
        m, e = n[going], 1.0 / (1.0 + np.exp(-own))
        value = top + np.log(total) - m * np.logaddexp(0.0, own)
        best[going] = np.maximum(best[going], value)
        slope, curve = mean - m * e, square - m * e * (1.0 - e)
        # (2) The peak lies on the side to which it rises
        low[going] = np.where(slope > 0.0, own, low[going])
        high[going] = np.where(slope < 0.0, own, high[going])
        # (3) Newton's step, or halving where that leads out of what holds the peak
        with np.errstate(divide="ignore", invalid="ignore"):
            step = own - slope / curve
        inside = (curve < 0.0) & (step > low[going]) & (step < high[going])
        t[going] = np.where(inside, step, 0.5 * (low[going] + high[going]))
        done = np.where(inside, slope * slope < -ENOUGH * curve, high[going] - low[going] < 1e-9)
        going = going[~done & (slope != 0.0)]
        if not len(going):
            break
    return best


def _windows(n: Ints, centre: Floats, alpha: Floats) -> tuple[Floats, Floats]:
    """The numbers of successes that can matter, a row a binomial, and their log weights.

    Binomials of one n share the logarithms of their coefficients.
    """
    from scipy.special import gammaln

    e = np.clip(centre / n, 0.0, 1.0)
    spread = n * e * (1.0 - e) + 1.0
    reach = (10.0 * np.sqrt(spread / (1.0 + alpha * spread)) + 0.02 * np.sqrt(spread)).astype(np.int64) + 12
    middle = np.clip((centre + 0.5).astype(np.int64), 0, n)
    first, last = np.maximum(middle - reach, 0), np.minimum(middle + reach, n)
    k = first[:, None] + np.arange(int((last - first).max()) + 1, dtype=np.float64)
    inside = k <= last[:, None]
    k = np.minimum(k, last[:, None])
    m = n[:, None].astype(np.float64)
    ratio = np.log((m - k[:, :-1]) / (k[:, :-1] + 1.0), where=inside[:, 1:], out=np.zeros_like(k[:, 1:]))
    at_first = gammaln(n + 1.0) - gammaln(first + 1.0) - gammaln(n - first + 1.0)
    choose = np.cumsum(np.column_stack([at_first, ratio]), axis=1)
    weight = choose - 0.5 * alpha[:, None] * (k - centre[:, None]) ** 2
    return k, np.where(inside, weight, -np.inf)


def _ends(n: Ints, k: Floats, weight: Floats) -> Floats:
    """The larger of the values at the chances 0 and 1, where the window holds what they are of."""
    none = np.where(k[:, 0] == 0.0, weight[:, 0], -np.inf)
    every = np.where((k == n[:, None]) & np.isfinite(weight), weight, -np.inf).max(axis=1)
    return np.maximum(none, every)
