"""What other packages compute of a log, run one a process: prints the CPU seconds of the call alone as JSON.

    python benchmarks/audit/peers.py NAME FILE.csv

It is run by the Python of a throw-away environment that holds these packages and not calibrant, or, for "calibrant"
and "calibrant --quick", by that of calibrant. The call is the first of its process, after the packages are imported
and the columns are in memory; calibrant reads the file itself, so that reading is in its call.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

BY = ("site", "sex")
NUMBERS = ("age", "income", "bmi")
Call = Callable[[], object]


class Peer(NamedTuple):
    """A package: what pip calls it, what it computes of a log and what it does not, and how its call is made."""

    package: str
    does: str
    lacks: str
    made: Callable[[str], Call]


def columns(path: str) -> dict[str, Any]:
    """Return the columns of a file."""
    import numpy as np
    import pandas as pd

    frame = pd.read_csv(path)
    return {"frame": frame, "y": frame["y"].to_numpy(np.float64), "p": frame["p"].to_numpy(np.float64)}


def _sklearn(path: str) -> Call:
    from sklearn.calibration import calibration_curve

    c = columns(path)
    return lambda: calibration_curve(c["y"], c["p"], n_bins=15, strategy="quantile")


def _netcal(path: str) -> Call:
    from netcal.metrics import ECE

    c = columns(path)
    return lambda: ECE(15).measure(c["p"], c["y"].astype(int))


def _relplot(path: str) -> Call:
    import relplot

    c = columns(path)
    return lambda: relplot.prepare_rel_diagram(c["p"], c["y"])


def _model_diagnostics(path: str) -> Call:
    from model_diagnostics.calibration import compute_bias

    c = columns(path)
    features = [c["frame"][name] for name in (*BY, *NUMBERS)]
    return lambda: [compute_bias(c["y"], c["p"], feature=f) for f in (None, *features)]


def _mcgrad(path: str) -> Call:
    from mcgrad.metrics import MulticalibrationError

    frame = columns(path)["frame"]

    def call() -> object:
        of = MulticalibrationError(
            frame,
            label_column="y",
            score_column="p",
            categorical_segment_columns=list(BY),
            numerical_segment_columns=list(NUMBERS),
        )
        return of.mce, of.mce_pvalue, of.mde

    return call


def _probcal(path: str) -> Call:
    import matplotlib

    matplotlib.use("Agg")
    from probcal.report import validation_report

    c = columns(path)
    return lambda: [validation_report(c["y"], c["p"], by=c["frame"][name].to_numpy()) for name in BY]


def _calibrant(path: str, quick: bool = False) -> Call:
    import calibrant as cal

    def call() -> object:
        from calibrant.report import html

        return html.render(cal.audit(path, label="y", score="p", by=BY, variables="*", quick=quick))

    return call


PEERS = {
    "scikit-learn": Peer(
        "scikit-learn",
        "the points of a reliability curve, 15 bins of equal size",
        "no range, test, group or verdict",
        _sklearn,
    ),
    "netcal": Peer(
        "netcal", "one ECE of 15 bins", "no range (its `uncertainty` needs Bayesian models), group, test", _netcal
    ),
    "relplot": Peer(
        "relplot",
        "the smooth ECE, a kernel curve, and bands by bootstrap",
        "no groups, covariates, tests or guarantee at this number of rows",
        _relplot,
    ),
    "model-diagnostics": Peer(
        "model-diagnostics",
        "mean bias of everyone and along five columns (levels, 10 bins), standard errors and p-values of a t-test each",
        "no calibration by score, nothing for all comparisons together, no search, no repair",
        _model_diagnostics,
    ),
    "MCGrad": Peer(
        "mcgrad",
        "`MulticalibrationError`: largest cumulative error over up to 1,000 segments of five columns, its p-value",
        "no curve, certificate or repair in this call",
        _mcgrad,
    ),
    "probcal": Peer(
        "probcal",
        "its validation report (HTML): some twenty measures with bootstrap ranges, curves, the same by site and by sex",
        "ranges are of the bootstrap, not certified; no covariates, search or repair in it",
        _probcal,
    ),
}
OURS: dict[str, Callable[[str], Call]] = {
    "calibrant": _calibrant,
    "calibrant --quick": lambda path: _calibrant(path, quick=True),
}


def main() -> None:
    """Time one call."""
    name, path = sys.argv[1], str(Path(sys.argv[2]))
    call = OURS[name](path) if name in OURS else PEERS[name].made(path)
    start = time.process_time()
    call()
    print(json.dumps({"call": time.process_time() - start}))


if __name__ == "__main__":
    main()
