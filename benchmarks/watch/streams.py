"""Alarms of a monitor and of its peers on made streams: how often false, and how many days late.

    python benchmarks/watch/streams.py                        20 streams of 120 days
    python benchmarks/watch/streams.py --streams 1000 --days 1095

A day has 200 rows with scores from Beta(2, 5) and the columns `site` (a tenth of rows is "a") and `sex`. Errors begin
in the middle of a stream. `calibrant` is the e-detector with a mean of at least ten years between false alarms and
without tolerance, and the e-process at 5%. `rolling ECE`: an alarm where the ECE of 10 bins over 7 days is three
standard deviations above its mean over the first 30 days. `ADWIN` and `Page-Hinkley` watch `y - p` row by row with
the settings of river, an install of your own (pip install river); they are left out where it is missing.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator

import numpy as np
from scipy.special import expit, logit

import calibrant as cal
from calibrant.audit.monitor.plan import Plan
from calibrant.stats.sequential.detector import Detector

ROWS, BETWEEN, ALPHA = 200, 3650.0, 0.05
Floats = np.ndarray
Off = Callable[[Floats, dict[str, Floats]], Floats]


def sine(p: Floats, _: dict[str, Floats]) -> Floats:
    return p + 0.05 * np.sin(4 * np.pi * p)


RIGHT = "calibrated", "drift of scores", "seasons", "shocks of a day"
ERRORS: dict[str, Off] = {
    "all by 0.5 points": lambda p, _: p + 0.005,
    "all by 2 points": lambda p, _: p + 0.02,
    "all by 5 points": lambda p, _: p + 0.05,
    "slope 1.3": lambda p, _: expit(logit(np.clip(p, 1e-6, 1 - 1e-6)) * 1.3),
    "a tenth by 10 points": lambda p, c: p + np.where(c["site"] == "a", 0.1, 0.0),
    "a corner of two by 10 points": lambda p, c: p + np.where((c["site"] != "a") & (c["sex"] == "m"), 0.1, 0.0),
    "sine of 5 points": sine,
}


def stream(name: str, days: int, seed: int) -> Iterator[tuple[Floats, Floats, dict[str, Floats]]]:
    """Outcomes, scores and columns of each day."""
    rng = np.random.default_rng(seed)
    for day in range(days):
        season = np.sin(2 * np.pi * day / 90) * (name == "seasons")
        share = day / days if name == "drift of scores" else 0.5 + 0.5 * season
        p = rng.beta(2, 6 - 3 * share, ROWS)
        columns = {"site": rng.choice(list("abcd"), ROWS, p=[0.1, 0.3, 0.3, 0.3]), "sex": rng.choice(["f", "m"], ROWS)}
        eta = ERRORS[name](p, columns) if name in ERRORS and day >= days // 2 else p
        if name == "shocks of a day":
            eta = p + 0.5 * np.minimum(p, 1 - p) * rng.choice([-1, 1])
        yield (rng.uniform(size=ROWS) < np.clip(eta, 0, 1)).astype(float), p, columns


def ours(name: str, days: int, seed: int) -> list[int]:
    """The days of alarms of the e-detector; -1 in front where the e-process has asked for one."""
    watch = cal.Monitor(
        label="y",
        score="p",
        by="site",
        variables="sex",
        shared_shocks=name == "shocks of a day",
        alpha=ALPHA,
        days_between_false_alarms=BETWEEN,
    )
    detector, plan, alarms, ever = None, None, [], []
    for day, (y, p, columns) in enumerate(stream(name, days, seed)):
        rows = cal.predictions(y, p, columns)
        plan = plan or Plan.of(watch.settings, rows)
        detector = (detector or Detector.fresh(plan.prior)).after(plan.day(rows)[0], day, 1)
        ever += [-1] if detector.log_ever >= -np.log(ALPHA) and not ever else []
        if detector.log_change >= np.log(BETWEEN):
            alarms.append(day)
            detector = detector.restarted()
    return [*ever, *alarms]


def rolling(name: str, days: int, seed: int) -> list[int]:
    """The days of alarms of a rolling ECE."""
    sums, errors = [], []
    for y, p, _ in stream(name, days, seed):
        sums.append(np.bincount(np.minimum((10 * p).astype(int), 9), y - p, 10))
        errors.append(np.abs(np.sum(sums[-7:], axis=0)).sum() / (ROWS * len(sums[-7:])))
    first = np.array(errors[7:30])
    return [d for d in range(30, days) if errors[d] > first.mean() + 3 * first.std()]


def of_river(kind: str) -> Callable[[str, int, int], list[int]]:
    """The days of alarms of a detector of river."""

    def alarms(name: str, days: int, seed: int) -> list[int]:
        from river import drift

        watch, out = getattr(drift, kind)(), []
        for day, (y, p, _) in enumerate(stream(name, days, seed)):
            for value in y - p:
                watch.update(float(value))
                if watch.drift_detected and (not out or out[-1] != day):
                    out.append(day)
        return out

    return alarms


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", type=int, default=20)
    parser.add_argument("--days", type=int, default=120)
    a = parser.parse_args()
    methods = {"calibrant": ours, "rolling ECE": rolling}
    try:
        import river  # noqa: F401

        methods |= {"ADWIN": of_river("ADWIN"), "Page-Hinkley": of_river("PageHinkley")}
    except ImportError:
        print("river is not installed: its detectors are left out")
    print(f"{a.streams} streams of {a.days} days of {ROWS} rows; errors from day {a.days // 2}")
    for name in (*RIGHT, *ERRORS):
        parts = []
        for method, alarms in methods.items():
            days = [alarms(name, a.days, seed) for seed in range(a.streams)]
            changes = [[d for d in own if d >= 0] for own in days]
            if name in RIGHT:
                ever = f", ever {sum(-1 in own for own in days)}" if method == "calibrant" else ""
                parts.append(f"{method} false in {sum(map(bool, changes))}{ever}")
                continue
            start = a.days // 2
            late = [min((d - start + 1 for d in own if d >= start), default=None) for own in changes]
            seen = sorted(d for d in late if d is not None)
            median = seen[(len(late) - 1) // 2] if len(seen) > (len(late) - 1) // 2 else None
            before = sum(any(d < start for d in own) for own in changes)
            found = f"{len(seen)} found" + ("" if median is None else f", median day {median}")
            parts.append(f"{method} {found}, false before {before}")
        print(f"{name}: " + "; ".join(parts), flush=True)


if __name__ == "__main__":
    main()
