"""CPU time of the measures beside other packages, as ratios within one run; prints a Markdown table.

    python benchmarks/measure/run.py [--quick]

Peers that are not installed are named in a line of their own. Each time is the least of several calls after a first
one, in CPU seconds of the process. calibrant's times include its interval; the peers' do not, except where said.
"""

import importlib
import platform
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import calibrant as cal

QUICK = "--quick" in sys.argv
PEERS = ("sklearn", "torch", "torchmetrics", "relplot", "calibration", "netcal", "probcal")


def least(call: Callable[[], Any], calls: int = 5) -> float:
    """CPU seconds of the fastest of several calls, the first one left out."""
    call()
    times = []
    for _ in range(1 if QUICK else calls):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return min(times)


def rows(n: int) -> tuple[Any, Any]:
    """Scores and outcomes of a model that is off by a few points."""
    rng = np.random.default_rng([n, 1])
    p = rng.uniform(0.001, 0.999, n)
    return p, (rng.random(n) < p**1.2).astype(np.int64)


def found() -> dict[str, Any]:
    """Import the peers that are there, and say which are not."""
    out = {}
    for name in PEERS:
        try:
            out[name] = importlib.import_module(name)
        except ImportError:
            print(f"Not installed, so not compared: {name}.")
    if "torch" in out:
        out["torch"].set_num_threads(1)
    return out


def once(peers: dict[str, Any], n: int) -> list[tuple[str, Callable[[Any], Any], str, Callable[[], Any]]]:
    """List what is compared: measure, ours, peer, theirs."""
    p, y = rows(n)
    out: list[tuple[str, Callable[[Any], Any], str, Callable[[], Any]]] = []
    m = cal.measure

    def wide(data: Any) -> Any:
        return m.ece(data, strategy="uniform")

    if "torchmetrics" in peers:
        error = peers["torchmetrics"].functional.classification.binary_calibration_error
        tp, ty = peers["torch"].tensor(p), peers["torch"].tensor(y)
        out.append(("ece, equal width", wide, "torchmetrics", lambda: error(tp, ty, n_bins=15)))
    if "netcal" in peers:
        netcal = importlib.import_module("netcal.metrics")
        out.append(("ece, equal width", wide, "netcal", lambda: netcal.ECE(15).measure(p, y)))
        out.append(
            (
                "max_calibration_error",
                lambda d: m.max_calibration_error(d, strategy="uniform"),
                "netcal",
                lambda: netcal.MCE(15).measure(p, y),
            )
        )
    if "probcal" in peers:
        metrics = importlib.import_module("probcal.metrics")
        out.append(("ece, equal width", wide, "probcal", lambda: metrics.ece(y, p, n_bins=15, strategy="width")))
        out.append(("ece, equal mass", m.ece, "probcal", lambda: metrics.ece(y, p, n_bins=15, strategy="mass")))
    if "relplot" in peers:
        out.append(("smooth_ece", m.smooth_ece, "relplot.smECE", lambda: peers["relplot"].smECE(p, y)))
    if "sklearn" in peers:
        scores = importlib.import_module("sklearn.metrics")
        out.append(("brier, with its parts", m.brier, "scikit-learn", lambda: scores.brier_score_loss(y, p)))
        out.append(("log_loss", m.log_loss, "scikit-learn", lambda: scores.log_loss(y, p)))
        out.append(("auroc", m.auroc, "scikit-learn", lambda: scores.roc_auc_score(y, p)))
    return out


def main() -> None:
    """Print the table."""
    peers = found()
    print(f"\nPython {platform.python_version()}, numpy {np.__version__}; one run, CPU seconds.\n")
    print("| measure | rows | calibrant | peer | its time | peer / calibrant |\n|---|---|---|---|---|---|")
    for n in (10_000,) if QUICK else (10_000, 100_000, 1_000_000):
        data = cal.predictions(rows(n)[1], rows(n)[0])
        for name, ours, peer, theirs in once(peers, n):
            try:
                b = least(theirs, 3)
            except Exception as error:
                print(f"| {name} | {n:,} | | {peer} | failed: {type(error).__name__} | |", flush=True)
                continue
            a = least(lambda ours=ours, data=data: ours(data))
            print(f"| {name} | {n:,} | {a:.4f} | {peer} | {b:.4f} | {b / a:.1f} |", flush=True)
    if "calibration" in peers:
        bootstrap(peers["calibration"], 10_000 if QUICK else 100_000)


def bootstrap(calibration: Any, n: int) -> None:
    """Print the row of the bootstrap interval, which both packages compute."""
    p, y = rows(n)
    data = cal.predictions(y, p)
    start = time.process_time()
    calibration.get_calibration_error_uncertainties(p, y, p=1)
    theirs = time.process_time() - start
    ours = least(lambda: cal.measure.ece(data))
    print(
        f"| ece with interval | {n:,} | {ours:.4f} (1,000 resamples) | uncertainty-calibration "
        f"| {theirs:.2f} (100 resamples) | {theirs / ours:.0f} |"
    )


if __name__ == "__main__":
    main()
