"""Training losses for PyTorch that weigh calibration, called on logits and labels; they need the extra ``torch``."""

from __future__ import annotations

import math
from typing import Literal, get_args

import numpy as np

from calibrant.arguments import check_int, choice, number, positive
from calibrant.errors import BadInput

try:
    import torch
    from torch import Tensor, nn
    from torch.nn import functional
except ImportError:
    raise ImportError("calibrant.repair.objectives needs PyTorch: pip install 'calibrant[torch]'") from None

Confidence = Literal["top label", "positive"]
Form = Literal["unweighted", "weighted"]
Pairs = Literal["distinct", "all"]
ROOT = 1e-12  # added under a square root, so that its slope stays finite at 0
TAIL = 24.0  # bandwidths from the score; beyond them lies 5e-11 of the jitter
NEAR = 1e-12  # of the bandwidth: scores nearer to 0 or 1 than this have the expectation of that distance


class CrossEntropyMMCE(nn.Module):  # type: ignore[misc]
    r"""Cross-entropy and the maximum mean calibration error, a kernel calibration error of the confidence.

    Estimand: ``cross-entropy + strength sqrt(sum_ij a_i a_j exp(-|r_i - r_j| / width))``, r the confidence, c whether
    it came true, ``a_i = (c_i - r_i) / m`` or, weighted, ``(c_i - r_i) / (rows of the batch with the same c)``.

    Parameters
    ----------
    strength : float
        Of the penalty; 0 is cross-entropy.
    form : {"unweighted", "weighted"}
        The authors' MMCE_m, or their MMCE_w, in which rows that came true and rows that did not count the same.
    confidence : {"top label", "positive"}
        r is the largest probability and c whether that class occurred (the authors); or, with two classes, r is the
        probability of class 1 and c whether it occurred, which is calibration as the rest of calibrant means it.
    width : float
        Of the Laplacian kernel; the authors' 0.4.

    Raises
    ------
    BadInput
        A setting out of range; when called, logits or labels of the wrong shape, or labels that are no classes.

    Notes
    -----
    **Assumes.** Batches of a hundred rows or more: the penalty is that of the batch, and its mean over small batches is
    mostly noise. **Guarantee.** None. The unweighted penalty tends to 0 for calibrated confidences. The weighted one
    does not unless half of them come true: ``E[(1 - r) k | c = 1] = E[r k | c = 0]`` is another condition, it pulls
    calibrated scores towards one half, and at strength 1 it makes a linear model say one half of everyone. **Method.**
    Kumar et al., the square root of their squared statistic, with 1e-12 under the root. As in their program, the
    weighted penalty is 0 for a batch in which all or none came true. The largest probability has a kink where two
    classes tie; the gradient is that of one side. **Cost.** m x m numbers for a batch of m. **Reads.** Logits of shape
    (m,) or (m, 1) for two classes or (m, K), and labels 0 to K - 1 of shape (m,).

    References
    ----------
    Kumar, Sarawagi and Jain (2018), "Trainable calibration measures for neural networks from kernel mean embeddings",
    ICML.
    """

    def __init__(
        self,
        strength: float = 1.0,
        *,
        form: Form = "unweighted",
        confidence: Confidence = "top label",
        width: float = 0.4,
    ) -> None:
        super().__init__()
        self.form = choice("form", form, get_args(Form))
        self.confidence = choice("confidence", confidence, get_args(Confidence))
        self.strength = number("strength", strength, least=0)
        self.width = positive("width", width)

    def forward(self, logits: Tensor, labels: Tensor) -> Tensor:
        """The loss of a batch."""
        return cross_entropy(logits, labels) + self.strength * self.penalty(logits, labels)

    def penalty(self, logits: Tensor, labels: Tensor) -> Tensor:
        """The maximum mean calibration error of a batch."""
        p = probabilities(logits, labels)
        if self.confidence == "positive":
            if p.shape[1] != 2:
                raise BadInput(
                    f"confidence='positive' is for two classes and logits have {p.shape[1]}: use 'top label'"
                )
            r, right = p[:, 1], labels == 1
        else:
            r, top = p.max(dim=1)
            right = labels == top
        hit = right.to(r.dtype)
        share = torch.full_like(r, 1.0 / len(r))
        if self.form == "weighted":
            true, false = hit.sum(), (1.0 - hit).sum()
            both = (true > 0) & (false > 0)
            share = torch.where(right, 1.0 / true.clamp(min=1.0), 1.0 / false.clamp(min=1.0)) * both
        a = (hit - r) * share
        kernel = torch.exp(-(r[:, None] - r[None, :]).abs() / self.width)
        return torch.sqrt(torch.relu(a @ kernel @ a) + ROOT)


class CrossEntropyMMD(nn.Module):  # type: ignore[misc]
    r"""Cross-entropy and the squared distance of outcomes with covariates from outcomes drawn from the forecasts.

    Estimand: ``cross-entropy + strength mean_{i != j} (e_i . e_j) l(x_i, x_j)``, e the indicator of the class less its
    probability, ``l = exp(-|x - x'|^2 / (2 width^2))``; with `score_width`, times ``exp(-|p - p'|^2 / (2
    score_width^2))``.

    Parameters
    ----------
    strength : float
        Of the penalty, a squared distance: 10 to 100 is felt next to cross-entropy.
    width : float, optional
        Of the kernel of covariates; the square root of their number by default, which suits standardised columns.
    score_width : float, optional
        Of the kernel of probabilities: calibration given score and covariates (twice the squared local calibration
        error, with two classes). By default covariates only, as the authors do for calibration of individuals.
    pairs : {"distinct", "all"}
        Leave out a row with itself, which makes the penalty unbiased and sometimes negative; or not.

    Raises
    ------
    BadInput
        A setting out of range; when called, logits, labels or covariates of the wrong shape, or labels that are no
        classes.

    Notes
    -----
    **Assumes.** Covariates on comparable scales; batches of a hundred rows or more.
    **Guarantee.** None. Its expectation with distinct pairs is 0 if and only if the model is calibrated given the
    covariates (and the score).
    **Method.** Marx et al., equation for MMD^2 with the kernel on (covariates, label) a product; expectations over
    drawn labels are exact sums. The kernel of labels is 1 if equal, 0 if not: any Gaussian one of indicators gives the
    same but for a factor. **Cost.** m x m numbers for a batch of m. **Reads.** Logits and labels as `CrossEntropyMMCE`;
    covariates of shape (m, d).

    References
    ----------
    Marx, Zalouk and Ermon (2023), "Calibration by distribution matching: trainable kernel calibration metrics",
    NeurIPS.
    """

    def __init__(
        self,
        strength: float = 10.0,
        *,
        width: float | None = None,
        score_width: float | None = None,
        pairs: Pairs = "distinct",
    ) -> None:
        super().__init__()
        self.pairs = choice("pairs", pairs, get_args(Pairs))
        self.strength = number("strength", strength, least=0)
        self.width = None if width is None else positive("width", width)
        self.score_width = None if score_width is None else positive("score_width", score_width)

    def forward(self, logits: Tensor, labels: Tensor, covariates: Tensor) -> Tensor:
        """The loss of a batch."""
        return cross_entropy(logits, labels) + self.strength * self.penalty(logits, labels, covariates)

    def penalty(self, logits: Tensor, labels: Tensor, covariates: Tensor) -> Tensor:
        """The squared distance of a batch."""
        p = probabilities(logits, labels)
        n = len(p)
        if covariates.ndim != 2 or covariates.shape[0] != n or not covariates.shape[1]:
            raise BadInput(
                f"covariates have shape {tuple(covariates.shape)}: pass {n:,} rows and a column for each variable"
            )
        if n < 2 and self.pairs == "distinct":
            raise BadInput("a batch of one row has no pairs: use larger batches, or pairs='all'")
        e = functional.one_hot(labels.long(), p.shape[1]).to(p.dtype) - p
        kernel = _gaussian(covariates.to(p.dtype), self.width or math.sqrt(covariates.shape[1]))
        if self.score_width is not None:
            kernel = kernel * _gaussian(p[:, 1:] if p.shape[1] == 2 else p, self.score_width)
        every = ((e @ e.T) * kernel).sum()
        if self.pairs == "all":
            return every / n**2
        return (every - (e * e).sum()) / (n * (n - 1))  # a kernel is 1 where a row meets itself


class JitteredCrossEntropy(nn.Module):  # type: ignore[misc]
    r"""Expected cross-entropy of a score that will be jittered, and a margin between near rows of different class.

    Estimand: ``-mean(y E log s + (1 - y) E log(1 - s)) + margin mean_near log(1 + exp(2h - (z_i - z_j)))``, s drawn
    with density proportional to ``sech((s - p) / h)`` on [0, 1], z the log-odds; the second mean is over pairs of a
    event i and a non-event j with ``|p_i - p_j| < 2h``.

    Parameters
    ----------
    bandwidth : float
        h of the jitter, above 0 and at most 1.
    margin : float
        Weight of the second term; the authors' 1.
    nodes : int
        Of the quadrature on each side of the score, 8 to 200.

    Raises
    ------
    BadInput
        A setting out of range; when called, logits or labels of the wrong shape, or labels other than 0 and 1.

    Notes
    -----
    **Assumes.** That scores are jittered with this bandwidth when they are used (`Jitter`).
    **Guarantee.** None. Unlike cross-entropy the expectation is bounded: a row that is wrong and very sure costs about
    ``-log h`` and has almost no gradient; the margin, which is not bounded, still moves it if it has a near pair.
    **Method.** Equation 34, with ``p`` before the jitter in the condition for near pairs. Gauss-Legendre quadrature in
    v, where ``s = p + h x`` and x runs as ``v^3`` to the end of [0, 1] or 24 bandwidths, on each side of the score:
    nodes crowd where the logarithm is steep, and 48 reach 2e-8 for bandwidths from 2^-10 on. The normaliser is in
    closed form. **Cost.** A table of 4 ``nodes`` numbers a row, and events x non-events of a batch. **Reads.** Logits
    of shape (m,), (m, 1) or (m, 2), and labels 0 and 1 of shape (m,).

    References
    ----------
    Ciosek et al., "Measuring Uncertainty Calibration", arXiv:2512.13872, appendix F, equation 34.
    """

    def __init__(self, bandwidth: float = 2**-6, *, margin: float = 1.0, nodes: int = 48) -> None:
        super().__init__()
        self.bandwidth = number("bandwidth", bandwidth, above=0, most=1)
        self.margin = number("margin", margin, least=0)
        at, weight = np.polynomial.legendre.leggauss(check_int("nodes", nodes, 8, 200))
        v = 0.5 * (at + 1.0)
        self.register_buffer("reach", torch.from_numpy(v**3), persistent=False)
        self.register_buffer("weight", torch.from_numpy(0.5 * weight * 3.0 * v**2), persistent=False)

    def forward(self, logits: Tensor, labels: Tensor) -> Tensor:
        """The loss of a batch."""
        z = log_odds(logits, labels)
        y = labels.to(z.dtype)
        event, rest = self.expected_logs(z)
        loss = -(y * event + (1.0 - y) * rest).mean()
        return loss + self.margin * self.separation(z, labels) if self.margin else loss

    def expected_logs(self, z: Tensor) -> tuple[Tensor, Tensor]:
        """``E log s`` and ``E log(1 - s)`` for log-odds z."""
        p, q = torch.sigmoid(z), torch.sigmoid(-z)
        return self._expected_log(p, q), self._expected_log(q, p)

    def separation(self, z: Tensor, labels: Tensor) -> Tensor:
        """The margin term of log-odds z, 0 if no event is near a non-event."""
        h, p = self.bandwidth, torch.sigmoid(z)
        event = labels == 1
        near = (p[event][:, None] - p[~event][None, :]).abs() < 2.0 * h
        gap = z[event][:, None] - z[~event][None, :]
        return torch.where(near, functional.softplus(2.0 * h - gap), 0.0).sum() / near.sum().clamp(min=1)

    def _expected_log(self, p: Tensor, q: Tensor) -> Tensor:
        h = self.bandwidth
        reach, weight = self.reach.to(p.dtype), self.weight.to(p.dtype)
        p = p.clamp(min=NEAR * h)[:, None]
        below, above = (p / h).clamp(max=TAIL), (q[:, None] / h).clamp(max=TAIL)
        low = torch.relu(p - h * TAIL) + h * below * reach
        high = p + h * above * reach
        under = below * torch.log(low) / torch.cosh(below * (1.0 - reach))
        over = above * torch.log(high) / torch.cosh(above * reach)
        total = 2.0 * (torch.atan(torch.tanh(below / 2.0)) + torch.atan(torch.tanh(above / 2.0)))
        return ((under + over) @ weight) / total[:, 0]


def cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    """The mean cross-entropy of logits of two classes, (m,) or (m, 1), or of several, (m, K)."""
    if logits.ndim == 1 or logits.shape[1] == 1:
        return functional.binary_cross_entropy_with_logits(log_odds(logits, labels), labels.to(logits.dtype))
    return functional.cross_entropy(logits, labels.long())


def log_odds(logits: Tensor, labels: Tensor) -> Tensor:
    """Log-odds of class 1, shape (m,), from checked logits of two classes."""
    columns = _checked(logits, labels)
    if columns > 2:
        raise BadInput(f"logits have {columns} columns: this is for two classes, pass (m,), (m, 1) or (m, 2)")
    return logits[:, 1] - logits[:, 0] if logits.ndim == 2 and columns == 2 else logits.reshape(-1)


def probabilities(logits: Tensor, labels: Tensor) -> Tensor:
    """Probabilities of checked logits, shape (m, K)."""
    if _checked(logits, labels) < 2:
        z = logits.reshape(-1)
        return torch.stack([torch.sigmoid(-z), torch.sigmoid(z)], dim=1)
    return torch.softmax(logits, dim=1)


def _checked(logits: Tensor, labels: Tensor) -> int:
    columns = 1 if logits.ndim == 1 else logits.shape[1] if logits.ndim == 2 else 0
    if not columns or not len(logits) or labels.shape != logits.shape[:1]:
        raise BadInput(
            f"logits have shape {tuple(logits.shape)} and labels {tuple(labels.shape)}: pass (m,) or (m, K), and (m,)"
        )
    top = max(columns, 2) - 1
    if ((labels < 0) | (labels > top) | (labels != labels.round())).any():
        raise BadInput(f"labels must be classes, whole numbers 0 to {top}: encode them first")
    return columns


def _gaussian(x: Tensor, width: float) -> Tensor:
    square = (x * x).sum(dim=1)
    return torch.exp(-torch.relu(square[:, None] + square[None, :] - 2.0 * (x @ x.T)) / (2.0 * width**2))
