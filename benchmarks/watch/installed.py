"""Statistics of monitors of other packages on the streams of a file, for `peers.py`: in the Python that has them."""

from __future__ import annotations

import json
import sys
import warnings

import numpy as np

REFERENCE = 30  # days from which MAPIE takes its threshold
DELTAS = (1e-2, 2e-3, 3e-4, 3e-5, 3e-6, 1e-7)  # of ADWIN, from the most alarms to the fewest


def adwin(y: np.ndarray, p: np.ndarray) -> list[float]:
    """The most careful of the settings that alarms on each day, counted from 1; 0 for none."""
    from river.drift import ADWIN

    detectors, out = [ADWIN(delta=d) for d in DELTAS], []
    for outcomes, scores in zip(y, p, strict=True):
        alarmed = 0
        for k, detector in enumerate(detectors):
            for value in (outcomes - scores).tolist():
                detector.update(value)
                if detector.drift_detected:
                    alarmed = max(alarmed, k + 1)
        out.append(float(alarmed))
    return out


def probcal(y: np.ndarray, p: np.ndarray) -> list[float]:
    """The log of the evidence of probcal's monitor."""
    from probcal.monitor import CalibrationMonitor

    monitor, out = CalibrationMonitor(plug_in_window=28), []
    for number, (outcomes, scores) in enumerate(zip(y, p, strict=True)):
        step = monitor.update(outcomes, np.clip(scores, 1e-6, 1 - 1e-6), label=str(number))
        out.append(float(np.log(max(step.e_global, 1e-300))))
    return out


def mapie(y: np.ndarray, p: np.ndarray) -> list[float]:
    """How far the lower bound of the error rate of ``p >= 0.5`` is above the threshold of MAPIE's monitor."""
    from mapie.exchangeability_testing import RiskMonitoring

    monitor, right = RiskMonitoring(risk="accuracy", tolerance=0.0, warn=False), p >= 0.5
    monitor.compute_threshold(y[:REFERENCE].ravel().astype(int), right[:REFERENCE].ravel())
    # Each update works out the bounds after every row so far, so that one of all days gives those of each day.
    monitor.update(y[REFERENCE:].ravel().astype(int), right[REFERENCE:].ravel())
    bounds = monitor.online_risk_lower_bound_sequence_history[y.shape[1] - 1 :: y.shape[1]]
    return [-1.0] * REFERENCE + (bounds - monitor.threshold).tolist()


def main() -> None:
    warnings.simplefilter("ignore")
    held = np.load(sys.argv[1])
    y, p = (held[name].swapaxes(0, 1) for name in ("y", "p"))  # (streams, days, rows)
    methods = {"ADWIN": adwin, "probcal": probcal, "MAPIE": mapie}
    print(json.dumps({name: [own(*rows) for rows in zip(y, p, strict=True)] for name, own in methods.items()}))


if __name__ == "__main__":
    main()
