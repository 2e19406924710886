"""Training losses: equal to plain NumPy, differentiable, finite, and minimised where they should be."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import numpy as np
import pytest
from scipy.integrate import IntegrationWarning, quad
from scipy.special import expit, softmax

from calibrant.errors import BadInput

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'calibrant[torch]'")

from calibrant.repair import objectives  # noqa: E402 - PyTorch is asked for first
from calibrant.repair.objectives import CrossEntropyMMCE, CrossEntropyMMD, JitteredCrossEntropy  # noqa: E402 - PyTorch is asked for first

BANDWIDTHS = [2**-10, 2**-6, 2**-3, 1.0]


def batch(seed: int, m: int = 24, columns: int = 0) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng([0x0B, seed])
    logits = rng.normal(scale=1.5, size=(m, columns) if columns else m)
    return logits, rng.integers(0, max(columns, 2), m), rng.normal(size=(m, 3))


def tensors(*arrays: Any) -> list[Any]:
    return [torch.from_numpy(a) for a in arrays]


def chances(logits: Any) -> Any:
    if logits.ndim == 1:
        return np.column_stack([expit(-logits), expit(logits)])
    return softmax(logits, axis=1)


def entropy(logits: Any, y: Any) -> float:
    return float(-np.log(chances(logits)[np.arange(len(y)), y]).mean())


def mmce(logits: Any, y: Any, form: str, confidence: str, width: float) -> float:
    """Kumar et al. by loops over pairs: the two definitions as they are printed."""
    p = chances(logits)
    r, c = (p.max(1), p.argmax(1) == y) if confidence == "top label" else (p[:, 1], y == 1)
    m, n, total = len(y), int(c.sum()), 0.0
    for i, j in itertools.product(range(m), repeat=2):
        k = np.exp(-abs(r[i] - r[j]) / width)
        if form == "unweighted":
            total += (c[i] - r[i]) * (c[j] - r[j]) * k / m**2
        elif not c[i] and not c[j]:
            total += r[i] * r[j] * k / (m - n) ** 2
        elif c[i] and c[j]:
            total += (1 - r[i]) * (1 - r[j]) * k / n**2
        elif c[i]:
            total -= 2 * (1 - r[i]) * r[j] * k / ((m - n) * n)
    return float(np.sqrt(total))


def mmd(logits: Any, y: Any, x: Any, width: float, score_width: float | None, every: bool) -> float:
    """Marx et al.: the four expectations of a kernel on (label, covariates), label by label."""
    p, classes, total, pairs = chances(logits), chances(logits).shape[1], 0.0, 0
    for i, j in itertools.product(range(len(y)), repeat=2):
        if i == j and not every:
            continue
        k = np.exp(-((x[i] - x[j]) ** 2).sum() / (2 * width**2))
        if score_width is not None:
            q = p[:, 1:] if classes == 2 else p
            k *= np.exp(-((q[i] - q[j]) ** 2).sum() / (2 * score_width**2))
        drawn = sum(p[i, a] * p[j, b] * (a == b) for a in range(classes) for b in range(classes))
        total += k * ((y[i] == y[j]) + drawn - p[j, y[i]] - p[i, y[j]])
        pairs += 1
    return float(total / pairs)


def expected_log(p: float, h: float) -> float:
    """E log s under the density sech((s - p) / h) / Z on [0, 1], piece by piece."""
    steps = [0.0, 0.3, 1, 3, 8, 20, 40]
    ends = {0.0, 1.0, *(min(max(p + sign * k * h, 0.0), 1.0) for k in steps for sign in (-1, 1))}
    ends |= {p * 10.0**k for k in range(-7, 8) if p * 10.0**k < 1}

    def density(s: float) -> float:
        return float(1 / np.cosh(min(abs(s - p) / h, 700)))

    def integral(f: Any) -> float:
        return sum(quad(f, a, b, epsabs=1e-15, epsrel=1e-12, limit=200)[0] for a, b in itertools.pairwise(sorted(ends)))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IntegrationWarning)
        normaliser = h * (np.arctan(np.sinh(min((1 - p) / h, 700))) + np.arctan(np.sinh(min(p / h, 700))))
        assert integral(density) == pytest.approx(normaliser, rel=1e-10)
        return integral(lambda s: density(s) * np.log(s)) / normaliser


@pytest.mark.parametrize("form", ["unweighted", "weighted"])
@pytest.mark.parametrize(
    ("columns", "confidence"), [(0, "top label"), (0, "positive"), (2, "positive"), (4, "top label")]
)
def test_mmce_is_the_published_sum(form: Any, columns: int, confidence: Any) -> None:
    z, y, _ = batch(1, columns=columns)
    loss = CrossEntropyMMCE(2.5, form=form, confidence=confidence, width=0.3)
    expected = entropy(z, y) + 2.5 * mmce(z, y, form, confidence, 0.3)
    assert loss(*tensors(z, y)).item() == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("pairs", ["distinct", "all"])
@pytest.mark.parametrize("score_width", [None, 0.2])
@pytest.mark.parametrize("columns", [0, 3])
def test_mmd_is_the_published_sum(pairs: Any, score_width: float | None, columns: int) -> None:
    z, y, x = batch(2, columns=columns)
    loss = CrossEntropyMMD(4.0, width=0.8, score_width=score_width, pairs=pairs)
    expected = entropy(z, y) + 4.0 * mmd(z, y, x, 0.8, score_width, pairs == "all")
    assert loss(*tensors(z, y, x)).item() == pytest.approx(expected, rel=1e-9)
    assert CrossEntropyMMD().penalty(*tensors(z, y, x)).item() == pytest.approx(mmd(z, y, x, 3**0.5, None, False))


@pytest.mark.parametrize("h", BANDWIDTHS)
def test_expected_logs_agree_with_adaptive_quadrature(h: float) -> None:
    p = np.array([1e-9, 1e-4, 0.003, 0.1, 0.56, 0.99, 1 - 1e-6])
    with np.errstate(divide="ignore"):
        z = torch.from_numpy(np.log(p) - np.log1p(-p))
    case, rest = JitteredCrossEntropy(h).expected_logs(z)
    np.testing.assert_allclose(case, [expected_log(v, h) for v in p], atol=1e-7)
    np.testing.assert_allclose(rest, [expected_log(1 - v, h) for v in p], atol=1e-7)


def test_expected_log_is_that_of_drawn_scores() -> None:
    from calibrant.repair import Jitter

    shown = Jitter(bandwidth=2**-5).fit().scores(np.full(200_000, 0.04))
    loss = JitteredCrossEntropy(2**-5)
    case, rest = loss.expected_logs(torch.tensor([np.log(0.04 / 0.96)], dtype=torch.float64))
    assert case.item() == pytest.approx(np.log(shown).mean(), abs=0.01)
    assert rest.item() == pytest.approx(np.log1p(-shown).mean(), abs=0.001)


@pytest.mark.parametrize("columns", [0, 1, 2])
def test_the_jittered_loss_is_equation_34(columns: int) -> None:
    z, y, _ = batch(3, columns=columns)
    odds = z if columns == 0 else z[:, 0] if columns == 1 else z[:, 1] - z[:, 0]
    y, h, p = y % 2, 0.125, expit(odds)
    near = [(i, j) for i in range(24) for j in range(24) if y[i] > y[j] and abs(p[i] - p[j]) < 2 * h]
    margin = np.mean([np.log1p(np.exp(2 * h - (odds[i] - odds[j]))) for i, j in near])
    fit = -np.mean([expected_log(v, h) if c else expected_log(1 - v, h) for v, c in zip(p, y, strict=True)])
    loss = JitteredCrossEntropy(h, margin=0.7)(*tensors(z, y)).item()
    assert loss == pytest.approx(fit + 0.7 * margin, abs=1e-7)


def test_with_no_near_pair_the_margin_is_nothing() -> None:
    z, y = tensors(np.array([-3.0, 3.0]), np.array([0, 1]))
    z.requires_grad_()
    loss = JitteredCrossEntropy(2**-6)
    assert loss.separation(z, y).item() == 0
    loss(z, y).backward()
    assert torch.isfinite(z.grad).all()


LOSSES = {
    "mmce": CrossEntropyMMCE(),
    "mmce weighted": CrossEntropyMMCE(form="weighted"),
    "mmce positive": CrossEntropyMMCE(confidence="positive"),
    "mmd": CrossEntropyMMD(),
    "mmd score": CrossEntropyMMD(score_width=0.2, pairs="all"),
    "jittered": JitteredCrossEntropy(2**-4),
    "jittered narrow": JitteredCrossEntropy(2**-8),
}


def arguments(name: str, z: Any, y: Any, x: Any) -> tuple[Any, ...]:
    return (z, y, x) if "mmd" in name else (z, y)


@pytest.mark.parametrize("columns", [0, 2])
@pytest.mark.parametrize("name", LOSSES)
def test_gradients(name: str, columns: int) -> None:
    z, y, x = tensors(*batch(4, m=12, columns=columns))
    z.requires_grad_()
    assert torch.autograd.gradcheck(lambda v: LOSSES[name](*arguments(name, v, y, x)), (z,), eps=1e-6, atol=1e-5)


@pytest.mark.parametrize("kind", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", LOSSES)
def test_extreme_logits_are_finite(name: str, kind: Any) -> None:
    z = torch.tensor([-1e4, -800, -90, -30, 0, 0, 30, 90, 800, 1e4], dtype=kind, requires_grad=True)
    for y in (torch.arange(10) % 2, torch.zeros(10, dtype=torch.long), torch.ones(10, dtype=torch.long)):
        loss = LOSSES[name](*arguments(name, z, y, torch.ones(10, 2, dtype=kind)))
        (slope,) = torch.autograd.grad(loss, z)
        assert loss.dtype == kind
        assert torch.isfinite(loss)
        assert torch.isfinite(slope).all()


def test_penalties_find_what_they_are_for() -> None:
    rng = np.random.default_rng([0x0B, 5])
    x = rng.normal(size=(1500, 1))
    p = expit(rng.normal(size=1500))
    y = (rng.uniform(size=1500) < p).astype(int)
    biased = (rng.uniform(size=1500) < np.clip(p + 0.2 * np.sign(x[:, 0]), 0, 1)).astype(int)
    z = np.log(p) - np.log1p(-p)
    right, sure = tensors(z, 3 * z)
    Y, B, X = tensors(y, biased, x)
    given_score = CrossEntropyMMCE(confidence="positive").penalty
    assert given_score(sure, Y) > 3 * given_score(right, Y)
    given_x = CrossEntropyMMD(width=0.5).penalty
    assert given_x(right, B, X) > 10 * abs(given_x(right, Y, X))


def test_the_weighted_form_pulls_calibrated_scores_away() -> None:
    rng = np.random.default_rng([0x0B, 6])
    p = rng.uniform(0.02, 0.3, 1500)
    y = (rng.uniform(size=1500) < p).astype(int)
    z, Y = tensors(np.log(p) - np.log1p(-p), y)
    plain, weighted = (
        CrossEntropyMMCE(form=f, confidence="positive").penalty(z, Y) for f in ("unweighted", "weighted")
    )
    assert plain < 0.03 < 0.3 < weighted


@pytest.mark.parametrize("columns", [0, 2])
def test_training_learns(columns: int) -> None:
    torch.manual_seed(0)
    _, _, x = tensors(*batch(7, m=100))
    y = (x[:, 0] > 0).long()
    for name, loss in LOSSES.items():
        model = torch.nn.Linear(3, columns or 1, dtype=torch.float64)
        optimiser = torch.optim.Adam(model.parameters(), lr=0.1)
        for _ in range(40):
            optimiser.zero_grad()
            value = loss(*arguments(name, model(x), y, x))
            value.backward()
            optimiser.step()
        out = model(x).detach()
        odds = out[:, 1] - out[:, 0] if columns else out[:, 0]
        assert ((odds > 0).long() == y).double().mean() > 0.9, name


def test_modules_move_and_are_saved() -> None:
    loss = JitteredCrossEntropy(2**-5).float()
    assert loss.state_dict() == {}
    z, y, _ = batch(8)
    assert loss(torch.from_numpy(z), torch.from_numpy(y)).item() == pytest.approx(
        JitteredCrossEntropy(2**-5)(*tensors(z, y)).item(), rel=1e-5
    )


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: CrossEntropyMMCE(-1), "strength=-1"),
        (lambda: CrossEntropyMMCE(form="both"), "form='both'"),
        (lambda: CrossEntropyMMCE(confidence="all"), "confidence='all'"),
        (lambda: CrossEntropyMMCE(width=0), "width=0"),
        (lambda: CrossEntropyMMD(score_width=float("nan")), "score_width=nan"),
        (lambda: CrossEntropyMMD(pairs="some"), "pairs='some'"),
        (lambda: JitteredCrossEntropy(0), "bandwidth=0"),
        (lambda: JitteredCrossEntropy(2.0), "bandwidth=2"),
        (lambda: JitteredCrossEntropy(nodes=3), "nodes=3"),
        (lambda: JitteredCrossEntropy()(torch.zeros(4), torch.zeros(3)), "labels"),
        (lambda: JitteredCrossEntropy()(torch.zeros(4, 3), torch.zeros(4)), "two classes"),
        (lambda: JitteredCrossEntropy()(torch.zeros(4), torch.full((4,), 2)), "whole numbers 0 to 1"),
        (lambda: CrossEntropyMMCE(confidence="positive")(torch.zeros(4, 3), torch.zeros(4)), "two classes"),
        (lambda: CrossEntropyMMCE()(torch.zeros(0), torch.zeros(0)), "logits have shape"),
        (lambda: CrossEntropyMMD()(torch.zeros(4), torch.zeros(4), torch.zeros(3, 1)), "covariates have shape"),
        (lambda: CrossEntropyMMD()(torch.zeros(1), torch.zeros(1), torch.zeros(1, 1)), "no pairs"),
    ],
)
def test_refusals(make: Any, words: str) -> None:
    with pytest.raises(BadInput, match=words):
        make()


def test_the_module_is_reached_from_repair() -> None:
    import calibrant as cal

    assert cal.repair.objectives is objectives
