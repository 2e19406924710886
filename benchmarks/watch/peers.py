"""Days until an error is seen, for a monitor and its peers, each at the threshold with the same false alarms.

    python benchmarks/watch/peers.py                      40 streams: ours, rolling ECE and Page-Hinkley
    python benchmarks/watch/peers.py --python PYTHON      with river, probcal and MAPIE of that Python, too

Streams have 120 days of 200 rows, as in `rates.py`; an error begins on day 61. Of each method the statistic of each day
is kept. Its threshold is the one at which it alarms in 5% of calibrated streams (four times as many as there
are of each error; of methods by their own settings the setting with the nearest rate is taken). So none is quicker by
more false alarms. Cells: median day of the alarm after the beginning, and how many of the streams have one.

`calibrant` is the e-detector, `calibrant, ever` the e-process, without tolerance. `rolling ECE` is of ten bins over
7 or 28 days. `Page-Hinkley` and `ADWIN` (river) watch ``y - p`` row by row, upwards and downwards. `probcal` is the
evidence of `CalibrationMonitor`, whose plug-ins see 28 days (all days take a minute a stream). `MAPIE` is the lower
bound of `RiskMonitoring` for the accuracy of ``p >= 0.5``, with the first 30 days as reference.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
from rates import ROWS, Bets, Day, stream

Floats = np.ndarray
DAYS, BEGINS, RATE = 120, 60, 0.05
Off = Callable[[Day, int], Floats]
EXPIT = 1e-6


def slope(day: Day, _: int) -> Floats:
    odds = 1.3 * np.log(np.clip(day.p, EXPIT, 1 - EXPIT) / (1 - np.clip(day.p, EXPIT, 1 - EXPIT)))
    return 1.0 / (1.0 + np.exp(-odds)) - day.p


ERRORS: dict[str, Off] = {
    "all by 0.5 points": lambda d, _: np.full(d.p.shape, 0.005),
    "all by 2 points": lambda d, _: np.full(d.p.shape, 0.02),
    "all by 5 points": lambda d, _: np.full(d.p.shape, 0.05),
    "slope 1.3": slope,
    "a tenth by 10 points": lambda d, _: 0.1 * (d.site == 0),
    "a corner of two by 10 points": lambda d, _: 0.1 * ((d.site != 0) & (d.sex == 1)),
    "sine of 5 points": lambda d, _: 0.05 * np.sin(4 * np.pi * d.p),
    "slow drift to 5 points": lambda d, day: np.full(d.p.shape, 0.05 * (day - BEGINS) / (DAYS - BEGINS)),
    "two groups at 5 points": lambda d, _: np.where(d.sex == 1, 0.05, -0.05),
}


def days(name: str, streams: int, seed: int) -> Iterator[Day]:
    """Every day of some streams, outcomes with the error from `BEGINS` on."""
    rng = np.random.default_rng([seed, ["calibrated", *ERRORS].index(name)])
    for number, day in enumerate(stream("calibrated", DAYS, streams, rng)):
        if name in ERRORS and number >= BEGINS:
            eta = np.clip(day.p + ERRORS[name](day, number), 0.0, 1.0)
            day.y = (rng.uniform(size=day.p.shape) < eta).astype(float)
        yield day


def ours(name: str, streams: int, seed: int) -> dict[str, Floats]:
    """The e-detector and the e-process, (streams, days) in logs; the detector is not started again."""
    bets, ever, detector, out = None, 0.0, None, {"calibrant": [], "calibrant, ever": []}
    for day in days(name, streams, seed):
        bets = bets or Bets("calibrated", day)
        prior = np.log(bets.plan.prior / bets.plan.prior.sum())
        gains = bets.gains(day)
        ever = ever + gains
        detector = gains if detector is None else np.logaddexp(detector, 0.0) + gains
        for key, log in zip(out, (detector, ever), strict=True):
            out[key].append(np.logaddexp.reduce((log + prior).reshape(streams, -1), axis=1))
    return {key: np.array(v).T for key, v in out.items()}


def rolling(name: str, streams: int, seed: int) -> dict[str, Floats]:
    """Rolling ECE in ten bins, and Page-Hinkley with river's settings but its threshold."""
    sums, errors, up = [], {7: [], 28: []}, np.zeros((4, streams))
    hinkley, mean, seen = [], np.zeros(streams), 0
    for day in days(name, streams, seed):
        r, bins = day.y - day.p, np.minimum((10 * day.p).astype(int), 9)
        at = np.arange(streams)[:, None] * 10 + bins
        sums.append(np.bincount(at.ravel(), r.ravel(), 10 * streams).reshape(streams, 10))
        for width, values in errors.items():
            own = sums[-width:]
            values.append(np.abs(np.sum(own, axis=0)).sum(axis=1) / (ROWS * len(own)))
        highest = np.zeros(streams)
        for i in range(ROWS):
            seen += 1
            mean += (r[:, i] - mean) / seen
            up[0] = 0.9999 * up[0] + (r[:, i] - mean - 0.005)
            up[1] = 0.9999 * up[1] + (r[:, i] - mean + 0.005)
            up[2], up[3] = np.minimum(up[2], up[0]), np.maximum(up[3], up[1])
            highest = np.maximum(highest, np.maximum(up[0] - up[2], up[3] - up[1]))
        hinkley.append(highest)
    # Windows that are not full say more: they count from the day on which they are.
    out = {f"rolling ECE, {w} days": np.array(v).T for w, v in errors.items()}
    for w in errors:
        out[f"rolling ECE, {w} days"][:, : w - 1] = 0.0
    return out | {"Page-Hinkley": np.array(hinkley).T}


def threshold(calibrated: Floats) -> float:
    """What the largest value of all but `RATE` of the streams does not exceed."""
    top = np.sort(calibrated.max(axis=1))
    return float(top[int(np.ceil((1.0 - RATE) * len(top))) - 1])


def cell(values: Floats, least: float) -> str:
    late = [int(np.argmax(v[BEGINS:] > least)) + 1 if (v[BEGINS:] > least).any() else DAYS for v in values]
    seen = sum(d < DAYS for d in late)
    median = sorted(late)[(len(late) - 1) // 2]
    return f"{'–' if median == DAYS else median} ({seen} of {len(late)})"


def of_python(python: str, name: str, streams: int, seed: int, few: int) -> dict[str, Floats]:
    """Statistics that another Python works out, from the outcomes and scores of the first few streams."""
    every = list(days(name, streams, seed))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "streams.npz"
        np.savez(path, y=[d.y[:few] for d in every], p=[d.p[:few] for d in every])
        asked = [python, str(Path(__file__).with_name("installed.py")), str(path)]
        done = subprocess.run(asked, check=True, capture_output=True, text=True, env={"PATH": os.environ["PATH"]})
    return {key: np.array(v) for key, v in json.loads(done.stdout.splitlines()[-1]).items()}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", type=int, default=40)
    parser.add_argument("--few", type=int, default=20, help="streams of packages that are slow")
    parser.add_argument("--python")
    a = parser.parse_args(arguments)

    def every(name: str, streams: int, seed: int, few: int) -> dict[str, Floats]:
        out = ours(name, streams, seed) | rolling(name, streams, seed)
        return out | of_python(a.python, name, streams, seed, few) if a.python else out

    right = every("calibrated", 4 * a.streams, 1, 2 * a.few)
    least = {key: threshold(v) for key, v in right.items()}
    print(f"| | {' | '.join(least)} |\n|{'---|' * (len(least) + 1)}")
    rates = (f"{(right[key].max(axis=1) > v).mean():.0%} of {len(right[key])}" for key, v in least.items())
    print(f"| calibrated: false | {' | '.join(rates)} |", flush=True)
    for name in ERRORS:
        found = every(name, a.streams, 2, a.few)
        print(f"| {name} | {' | '.join(cell(found[key], v) for key, v in least.items())} |", flush=True)
    print(f"thresholds: { ({k: round(v, 4) for k, v in least.items()}) }", file=sys.stderr)


if __name__ == "__main__":
    main()
