"""Measures of several classes beside those of other packages: equal numbers where definitions are equal, and time.

    python -m venv ENV && ENV/bin/pip install netcal relplot probmetrics mapie calibrant
    ENV/bin/python benchmarks/classes/peers.py [--rows 20000] [--classes 10]

Prints CSV: what is measured, the package, its value, ours, their difference, and CPU seconds of the call alone, the
second of two. Then a line for each input that is wrong, and what each package does with it: refuses it with a message,
or returns a number. The tables in docs/evidence are of 20,000 rows of 10 classes.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import calibrant as cal

Number = Callable[[], float]
MESSAGE = 90  # characters of a refusal that are printed
LOGGED = ("a row that adds up to 2", "logits")  # no faults of a package that takes logits


def drawn(rows: int, classes: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """An overconfident classifier in double precision, and the class of each row."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(classes, 0.4), rows)
    truth = p**0.6 / (p**0.6).sum(axis=1, keepdims=True)
    y = np.minimum((rng.uniform(size=(rows, 1)) > truth.cumsum(axis=1)).sum(axis=1), classes - 1)
    return p, y


def ours(p: np.ndarray, y: np.ndarray) -> dict[str, Number]:
    """What calibrant gives, with an interval each."""

    def data() -> cal.MulticlassPredictions:
        return cal.multiclass_predictions(y, p)

    return {
        "class-wise ECE, 15 equal-width bins": lambda: cal.measure.classwise_ece(
            data(), bins=15, strategy="uniform"
        ).settings["plug_in"],
        "top-label ECE, 15 equal-width bins": lambda: cal.measure.ece(
            data().top_label(), bins=15, strategy="uniform"
        ).settings["plug_in"],
        "smooth ECE of the top label": lambda: cal.measure.smooth_ece(data().top_label()).value,
        "Brier score": lambda: cal.measure.brier(data()).value,
        "log loss": lambda: cal.measure.log_loss(data()).value,
    }


def peers(p: np.ndarray, y: np.ndarray) -> list[tuple[str, str, str, Number]]:
    """Measure, package, note on its definition, and its call."""
    import relplot
    import torch
    from mapie.metrics.calibration import top_label_ece
    from netcal.metrics import ECE
    from probmetrics.metrics import Metrics
    from sklearn.metrics import brier_score_loss, log_loss

    top, right = p.max(axis=1), (p.argmax(axis=1) == y).astype(int)
    log_p, target = torch.as_tensor(np.log(np.maximum(p, 1e-300))), torch.as_tensor(y)

    def probmetrics(name: str) -> float:
        return float(Metrics.from_names([name]).compute_all_from_labels_logits(target, log_p)[name])

    def by_class() -> float:
        return float(np.mean([ECE(15).measure(p[:, k], (y == k).astype(int)) for k in range(p.shape[1])]))

    return [
        ("class-wise ECE, 15 equal-width bins", "netcal", "its ECE of one class, averaged by hand", by_class),
        ("top-label ECE, 15 equal-width bins", "netcal", "", lambda: float(ECE(15).measure(p, y))),
        ("top-label ECE, 15 equal-width bins", "probmetrics", "", lambda: probmetrics("ece-15")),
        (
            "top-label ECE, 15 equal-width bins",
            "MAPIE",
            "averages over predicted classes without their sizes",
            lambda: float(top_label_ece(y, p, num_bins=15)),
        ),
        ("smooth ECE of the top label", "relplot", "", lambda: float(relplot.smECE(top, right))),
        ("smooth ECE of the top label", "probmetrics", "", lambda: probmetrics("smece")),
        ("Brier score", "probmetrics", "", lambda: probmetrics("brier")),
        (
            "Brier score",
            "scikit-learn",
            "",
            lambda: float(brier_score_loss(y, p, labels=range(p.shape[1]), scale_by_half=False)),
        ),
        ("log loss", "probmetrics", "", lambda: probmetrics("logloss")),
        ("log loss", "scikit-learn", "", lambda: float(log_loss(y, p))),
    ]


def timed(call: Number) -> tuple[float, float]:
    """The value, and CPU seconds of the second call."""
    call()
    start = time.process_time()
    value = call()
    return float(value), time.process_time() - start


def done(call: Number) -> str:
    """What a call does: its number, or the first line of its refusal."""
    try:
        return f"returns {float(call()):.4f}"
    except Exception as e:  # whatever a package raises
        first = next(iter(str(e).splitlines()), "")
        return f"{type(e).__name__}: {first[:MESSAGE]}"


def wrong(p: np.ndarray, y: np.ndarray) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Inputs that are wrong in one way each."""
    empty, doubled, shifted = p.copy(), p.copy(), y.copy()
    empty[0, 0], doubled[0] = np.nan, 2.0 * p[0]
    shifted[0] = p.shape[1]
    return {
        "a missing probability": (empty, y),
        "a row that adds up to 2": (doubled, y),
        "logits": (np.log(p), y),
        "a class that has no probability": (p, shifted),
    }


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--rows", type=int, default=20_000)
    asked.add_argument("--classes", type=int, default=10)
    a = asked.parse_args()
    warnings.simplefilter("ignore")
    p, y = drawn(a.rows, a.classes)
    own: dict[str, Any] = {name: timed(call) for name, call in ours(p, y).items()}
    print("measure,package,its value,calibrant,difference,its CPU seconds,calibrant CPU seconds,note")
    for name, package, note, call in peers(p, y):
        value, seconds = timed(call)
        mine, cost = own[name]
        print(f'"{name}",{package},{value:.6f},{mine:.6f},{value - mine:+.1e},{seconds:.3f},{cost:.3f},"{note}"')
    print("\ninput,package,measure,what it does")
    for fault, (bad, label) in wrong(p, y).items():
        for name, call in ours(bad, label).items():
            if name.startswith(("top", "Brier")):
                print(f'{fault},calibrant,"{name}","{done(call)}"')
        try:
            calls = peers(bad, label)
        except Exception as e:
            print(f'{fault},all others,,"{type(e).__name__} before any is called"')
            continue
        for name, package, _, call in calls:
            if name.startswith(("top", "Brier")) and not (package == "probmetrics" and fault in LOGGED):
                print(f'{fault},{package},"{name}","{done(call)}"')


if __name__ == "__main__":
    main()
