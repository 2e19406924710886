"""The reliability curve as a scikit-learn display: what it draws is the curve, by weights and groups too."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import calibrant as cal
from calibrant.diagnose import ReliabilityDisplay

matplotlib = pytest.importorskip("matplotlib", reason="Matplotlib is not installed")
matplotlib.use("agg")


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    from matplotlib import pyplot

    pyplot.close("all")


def rows(n: int = 1200) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng([7, 0xD15])
    p = rng.uniform(size=n)
    return p, (rng.uniform(size=n) < p**1.4).astype(int)


def test_the_line_is_the_curve_and_the_band_its_simultaneous_band() -> None:
    p, y = rows()
    curve = cal.diagnose.reliability_curve(cal.predictions(y, p), draws=199, grid=21, alpha=0.1, seed=3)
    display = ReliabilityDisplay.from_predictions(y, p, name="model", draws=199, grid=21, alpha=0.1, seed=3)
    assert display.curve == curve
    stated, gap, low, high = (np.array(curve.columns[k]) for k in ("predicted", "gap", "low", "high"))
    x, shown = display.line_.get_data()
    np.testing.assert_allclose(x, stated)
    np.testing.assert_allclose(shown, stated + gap, atol=1e-12)
    around = display.band_.get_paths()[0].vertices
    for at, bottom, top in zip(stated, np.clip(stated + low, 0, 1), np.clip(stated + high, 0, 1), strict=True):
        here = around[np.abs(around[:, 0] - at) < 1e-12, 1]
        assert here.min() == pytest.approx(bottom)
        assert here.max() == pytest.approx(top)
    words = [t.get_text() for t in display.ax_.get_legend().get_texts()]
    assert words == ["Calibrated", f"model (p = {curve.settings['p_value']:.3g})"]
    assert display.figure_ is display.ax_.figure


def test_weights_and_groups_widen_the_band() -> None:
    p, y = (np.repeat(v, 3) for v in rows(500))  # each three times: no more is known than of one
    groups, weights = np.arange(len(p)) // 3, np.repeat(np.random.default_rng(0).uniform(0.5, 2.0, 500), 3)
    plain = ReliabilityDisplay.from_predictions(y, p, draws=199)
    whole = ReliabilityDisplay.from_predictions(y, p, groups=groups, sample_weight=weights, draws=199)
    data = cal.predictions(y, p, cluster=groups, weights=weights)
    assert whole.curve == cal.diagnose.reliability_curve(data, draws=199)

    def width(d: ReliabilityDisplay) -> float:
        return float(np.mean(np.subtract(d.curve.columns["high"], d.curve.columns["low"])))

    assert width(whole) > 1.4 * width(plain)


def test_an_estimator_and_its_predictions_are_drawn_alike() -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(900, 2))
    y = np.where(rng.uniform(size=900) < 1 / (1 + np.exp(-X[:, 0])), "paid", "default")
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)
    stated = model.predict_proba(X)
    own = ReliabilityDisplay.from_estimator(model, X, y, draws=99)
    other = ReliabilityDisplay.from_predictions(y, stated[:, 1], pos_label="paid", draws=99, name="Pipeline")
    assert own.curve == other.curve
    assert own.ax_.get_xlabel() == other.ax_.get_xlabel() == "Predicted probability of paid"
    assert own.estimator_name == other.estimator_name
    first = ReliabilityDisplay.from_estimator(model, X, y, pos_label="default", draws=99, name="risk", ax=own.ax_)
    assert first.ax_ is own.ax_
    assert first.curve == cal.diagnose.reliability_curve(cal.predictions(y == "default", stated[:, 0]), draws=99)
    labels = [t.get_text() for t in own.ax_.get_legend().get_texts()]
    assert [w.split(" (")[0] for w in labels] == ["Calibrated", "Pipeline", "risk"]  # one diagonal


def test_a_hole_stays_open() -> None:
    p, y = rows(2000)
    far = (p < 0.3) | (p > 0.7)
    display = ReliabilityDisplay.from_predictions(y[far], p[far], bandwidth=0.05, draws=99, ref_line=False)
    stretches = len(set(display.curve.columns["stretch"]))
    assert stretches > 1
    assert np.isnan(display.line_.get_ydata()).sum() == stretches - 1
    assert len(display.band_.get_paths()) == stretches
    assert len(display.ax_.lines) == 1


def test_it_is_drawn_again_elsewhere_with_other_words() -> None:
    from matplotlib import pyplot

    p, y = rows()
    display = ReliabilityDisplay(cal.diagnose.reliability_curve(cal.predictions(y, p), draws=99))
    _, (left, right) = pyplot.subplots(1, 2)
    assert display.plot(ax=left).ax_ is left
    assert display.plot(ax=right, name="again", color="k").line_.get_color() == "k"
    assert right.get_legend().get_texts()[1].get_text().startswith("again")


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda X, y: ReliabilityDisplay.from_estimator(RidgeClassifier().fit(X, y), X, y), "no predict_proba"),
        (
            lambda X, y: ReliabilityDisplay.from_estimator(LogisticRegression().fit(X, y + (X[:, 0] > 1)), X, y),
            "3 clas",
        ),
        (lambda X, y: ReliabilityDisplay.from_estimator(LogisticRegression().fit(X, y), X, y, pos_label=3), "no class"),
        (lambda X, y: ReliabilityDisplay.from_estimator(LogisticRegression().fit(X, y), X, y + 1), "y has the label"),
        (lambda X, y: ReliabilityDisplay.from_predictions(y, X[:, 0], bins=5), "bins= has no meaning"),
        (lambda X, y: ReliabilityDisplay.from_predictions(y, X[:, 0]), "outside"),
        (lambda X, y: ReliabilityDisplay(X), "pass a smooth curve"),
    ],
)
def test_what_cannot_be_drawn_is_refused(draw: Callable[..., Any], message: str) -> None:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(60, 2))
    with pytest.raises(cal.BadInput, match=message):
        draw(X, (X[:, 0] + rng.normal(size=60) > 0).astype(int))


WORDS = {0: "no", 1: "yes"}
GAP = {7: float("nan")}


def changed(values: np.ndarray, at: dict[int, float]) -> np.ndarray:
    out = values.astype(float)
    out[list(at)] = list(at.values())
    return out


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda p, y: {"y_true": np.vectorize(WORDS.get)(y)}, r"not numbers; pass pos_label= to name the event$"),
        (
            lambda p, y: {"y_true": np.where(p < 0.01, "unknown", np.vectorize(WORDS.get)(y))},
            "if these outcomes are not known, store it as missing and pass pos_label= to name the event",
        ),
        (lambda p, y: {"y_true": y + 1}, "neither 0 nor 1; pass pos_label= to name the class"),
        (
            lambda p, y: {"y_true": y, "pos_label": "yes"},
            "pos_label='yes' does not occur in label column 'y_true' of numbers, which holds '0', '1'",
        ),
        (
            lambda p, y: {"y_true": np.vectorize(WORDS.get)(y), "pos_label": "Yes"},
            "pos_label='Yes' does not occur in y_true, which holds 'no', 'yes'",
        ),
        (lambda p, y: {"y_prob": changed(p, GAP)}, r"missing .*; fill them in, or leave those rows out of the data"),
        (lambda p, y: {"y_true": changed(y, GAP)}, r"missing .*; fill them in, or leave those rows out of the data"),
        (lambda p, y: {"sample_weight": changed(p, GAP)}, "^sample_weight must be positive"),
        (lambda p, y: {"sample_weight": p[:9]}, r"^sample_weight has shape \(9,\)"),
        (lambda p, y: {"groups": changed(y, GAP)}, "^groups is missing in 1 rows, first in row 7: fill it in"),
        (lambda p, y: {"y_prob": np.stack([p, p, p], 1)}, "pass that of the event, and pos_label=$"),
        (lambda p, y: {"positive": 1}, "^positive= has no meaning here: pass .*pos_label"),
    ],
)
def test_what_a_refusal_tells_to_pass_is_taken(change: Callable[..., dict[str, Any]], message: str) -> None:
    p, y = rows(400)
    with pytest.raises(cal.BadInput, match=message) as refused:
        ReliabilityDisplay.from_predictions(**{"y_true": y, "y_prob": p, "draws": 99} | change(p, y))
    assert not re.search(r"(?<!^)(positive|drop_missing|weights|cluster|missing)=|--", str(refused.value))


def test_groups_of_one_value_are_refused_by_their_own_name() -> None:
    p, y = rows(400)
    with pytest.raises(cal.NotComputable, match=r"^groups= is 3 in every row: .*; name in groups= a column"):
        ReliabilityDisplay.from_predictions(y, p, groups=np.full(400, 3))


def test_a_label_of_an_estimator_that_is_missing_is_told_with_its_row() -> None:
    X = np.linspace(-1, 1, 60)[:, None]
    y = np.array(["no", "yes"], dtype=object)[(X[:, 0] > 0).astype(int)]
    model = LogisticRegression().fit(X, y.astype(str))
    y[3] = None
    with pytest.raises(
        cal.BadInput, match=r"y has the label None in row 3: .* has 'no', 'yes', so leave such rows out"
    ):
        ReliabilityDisplay.from_estimator(model, X, y)


def test_an_isotonic_curve_has_no_confidence_band_to_show() -> None:
    p, y = rows()
    curve = cal.diagnose.reliability_curve(cal.predictions(y, p), method="isotonic", draws=99)
    with pytest.raises(cal.BadInput, match="smooth curve"):
        ReliabilityDisplay(curve)


def test_without_matplotlib_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    p, y = rows(400)
    with pytest.raises(ImportError, match=r"calibrant\[displays\]"):
        ReliabilityDisplay.from_predictions(y, p, draws=99)
