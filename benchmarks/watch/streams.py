"""How often monitors alarm on calibrated streams by their usual settings, which nobody has tuned on such streams.

    python benchmarks/watch/streams.py                        40 streams of 120 days
    python benchmarks/watch/streams.py --streams 1000 --days 1095

A day has 200 rows with scores from Beta(2, 6 - 3 s), and the columns `site` (a tenth of rows is "a") and `sex`; s as in
`rates.py`. `calibrant` is the e-detector with a mean of at least ten years between false alarms and without tolerance;
shocks are declared to it. `rolling ECE`: an alarm where the ECE of 10 bins over 7 days is three standard deviations
above its mean over the first 30 days. `ADWIN` and `Page-Hinkley` watch `y - p` row by row with the settings of river,
an install of your own (pip install river); they are left out where it is missing. How fast errors are seen: `peers.py`.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator

import numpy as np

import calibrant as cal
from calibrant.audit.monitor.plan import Plan
from calibrant.stats.sequential.detector import Detector

ROWS, BETWEEN = 200, 3650.0
Floats = np.ndarray
KINDS = "calibrated", "drift of scores", "seasons", "shocks of a day"


def stream(name: str, days: int, seed: int) -> Iterator[tuple[Floats, Floats, dict[str, Floats]]]:
    """Outcomes, scores and columns of each day."""
    rng = np.random.default_rng(seed)
    for day in range(days):
        season = np.sin(2 * np.pi * day / 90) * (name == "seasons")
        share = day / days if name == "drift of scores" else 0.5 + 0.5 * season
        p = rng.beta(2, 6 - 3 * share, ROWS)
        columns = {"site": rng.choice(list("abcd"), ROWS, p=[0.1, 0.3, 0.3, 0.3]), "sex": rng.choice(["f", "m"], ROWS)}
        eta = p
        if name == "shocks of a day":
            eta = p + 0.5 * np.minimum(p, 1 - p) * rng.choice([-1, 1])
        yield (rng.uniform(size=ROWS) < np.clip(eta, 0, 1)).astype(float), p, columns


def ours(name: str, days: int, seed: int) -> bool:
    """Whether the e-detector alarms."""
    more = {"shared_shocks": name == "shocks of a day", "days_between_false_alarms": BETWEEN}
    watch = cal.Monitor(label="y", score="p", by="site", variables="sex", **more)
    detector, plan = None, None
    for day, (y, p, columns) in enumerate(stream(name, days, seed)):
        rows = cal.predictions(y, p, columns)
        plan = plan or Plan.of(watch.settings, rows)
        detector = (detector or Detector.fresh(plan.prior)).after(plan.day(rows).gains, day, 1)
        if detector.log_change >= np.log(BETWEEN):
            return True
    return False


def rolling(name: str, days: int, seed: int) -> bool:
    """Whether a rolling ECE alarms."""
    sums, errors = [], []
    for y, p, _ in stream(name, days, seed):
        sums.append(np.bincount(np.minimum((10 * p).astype(int), 9), y - p, 10))
        errors.append(np.abs(np.sum(sums[-7:], axis=0)).sum() / (ROWS * len(sums[-7:])))
    first = np.array(errors[7:30])
    return max(errors[30:]) > first.mean() + 3 * first.std()


def of_river(kind: str) -> Callable[[str, int, int], bool]:
    """Whether a detector of river alarms."""

    def alarms(name: str, days: int, seed: int) -> bool:
        from river import drift

        watch = getattr(drift, kind)()
        for y, p, _ in stream(name, days, seed):
            for value in y - p:
                watch.update(float(value))
                if watch.drift_detected:
                    return True
        return False

    return alarms


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", type=int, default=40)
    parser.add_argument("--days", type=int, default=120)
    a = parser.parse_args()
    methods = {"calibrant": ours, "rolling ECE, 3 sd": rolling}
    try:
        import river  # noqa: F401

        methods |= {"ADWIN (river)": of_river("ADWIN"), "Page-Hinkley (river)": of_river("PageHinkley")}
    except ImportError:
        print("river is not installed: its detectors are left out")
    print(f"| false of {a.streams} | {' | '.join(methods)} |\n|{'---|' * (len(methods) + 1)}")
    for name in KINDS:
        false = (sum(alarms(name, a.days, seed) for seed in range(a.streams)) for alarms in methods.values())
        print(f"| {name} | {' | '.join(map(str, false))} |", flush=True)


if __name__ == "__main__":
    main()
