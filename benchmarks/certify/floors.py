"""Certificates beside the narrowest that anything valid can be, from 20 to 50,000 rows.

    python benchmarks/certify/floors.py             # prints a few sizes, some minutes
    python benchmarks/certify/floors.py --full      # all sizes; writes benchmarks/certify/floors.md
    python benchmarks/certify/floors.py --only rows,clusters

The floor is by Neyman and Pearson. An end U that is wrong with probability at most delta tests "the truth is x" at the
level delta: reject where U < x. So at data drawn by calibrated scores ``P(U < x)`` is at most the power of the best
such test against an alternative at x, and the mean of U is at least the integral over x of one less that power.
Alternatives are those that are hardest to distinguish: rates tilted by ``exp(t y)``, which change the mean with the
least information; for the size of errors, signs by chance in each value of the score; for the worst group, a group and
a sign by chance. The normal width of the worst is that of one group, and what the largest of all estimates adds.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import beta, norm

import calibrant as cal
from calibrant.stats.decisions import acceptance

OUT = Path(__file__).with_suffix(".md")
SIZES = (20, 60, 200, 600, 2_000, 6_000, 20_000, 50_000)
FEW = (60, 600, 6_000)
ALPHA = 0.05
SCORES: dict[str, Callable[[Any, int], Any]] = {
    "uniform": lambda rng, n: rng.random(n),
    "beta(2, 8)": lambda rng, n: rng.beta(2, 8, n),
    "1.5% events": lambda rng, n: rng.beta(0.6, 40, n),
    "0.2% events": lambda rng, n: rng.beta(0.5, 250, n),
    "sharp": lambda rng, n: rng.beta(0.3, 0.3, n),
}
SHARED = 0.3  # chance that all rows of a cluster have one outcome
HEAVY = np.array([1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 200])  # sizes with tails as of 1 / size
GROUPS = 20
POINTS = 60  # of an integral
DRAWS = 2_000  # data sets, where the law of a test is simulated
KINDS = 100  # kinds of rows, at most, that the law of a count distinguishes


# ---- the law of a count: rows, or clusters whose rows have one score, by kinds ----


class Count:
    """The number of events of independent clusters: sizes, rates, and how many of each kind there are."""

    def __init__(self, size: Any, rate: Any, many: Any) -> None:
        self.size, self.rate, self.many = (np.asarray(v, dtype=float) for v in (size, rate, many))
        self.rows = float(self.size @ self.many)
        self.shared = np.where(self.size > 1, SHARED, 0.0)

    @classmethod
    def of(cls, size: Any, rate: Any) -> Count:
        """Join clusters of one size to kinds of about the same rate."""
        kinds = []
        for s in np.unique(size):
            of_size = np.sort(rate[size == s])
            for part in np.array_split(of_size, min(len(of_size), max(KINDS // len(np.unique(size)), 8))):
                kinds.append((s, part.mean(), len(part)))
        return cls(*np.array(kinds).T)

    def generating(self, z: Any, t: float) -> Any:
        """Of each kind ``E z^k`` under a tilt, shape (kinds, len(z)), and the logarithm of what it is divided by."""
        z = np.concatenate([[1.0], z]) * np.exp(t)
        s, p, c = self.size[:, None], self.rate[:, None], self.shared[:, None]
        value = (1.0 - c) * (1.0 - p + p * z) ** s + c * (1.0 - p + p * z**s)
        return value[:, 1:] / value[:, :1]

    def mean(self, t: float) -> float:
        """Expected events under a tilt."""
        h = 1e-5
        up, down = (np.log(self._total(t + d)) @ self.many for d in (h, -h))
        return float((up - down) / (2.0 * h))

    def _total(self, t: float) -> Any:
        s, p, c, z = self.size, self.rate, self.shared, np.exp(t)
        return (1.0 - c) * (1.0 - p + p * z) ** s + c * (1.0 - p + p * z**s)

    def law(self, t: float, window: int) -> Any:
        """Probabilities of the counts modulo `window`, a power of two, from what is expected less half of it."""
        z = np.exp(2j * np.pi * np.arange(window // 2 + 1) / window)
        transform = np.exp(self.many @ np.log(self.generating(z, t)))
        law = np.fft.irfft(np.conj(transform), window)
        first = int(np.floor(self.mean(0.0))) - window // 2
        return np.clip(np.roll(law, -(first % window)), 0.0, None)

    @property
    def noise(self) -> float:
        """The standard deviation of the count where scores are right."""
        p, s = self.rate, self.size
        return float(np.sqrt((p * (1.0 - p) * (s * (1.0 + (s - 1.0) * self.shared))) @ self.many))


def end_of_gap(count: Count, delta: float, side: float, most: float = 1.0) -> float:
    """The least mean distance, up to `most`, of an end of the mean rate, above or below, from the truth."""
    largest = float(count.size.max())
    reach = 5.0 * (count.noise + largest)
    window = 1 << int(np.ceil(np.log2(4.0 * reach + 8.0)))
    truth, start, away, missed = count.law(0.0, window), count.mean(0.0), [0.0], [1.0 - delta]
    for t in side * np.geomspace(0.02 / (count.noise + 1.0), min(8.0 / max(count.noise, 0.2), 12.0), POINTS):
        moved = abs(count.mean(t) - start)
        if moved > reach:
            break
        away.append(moved / count.rows)
        missed.append(1.0 - power(truth[:: int(side)], count.law(t, window)[:: int(side)], delta))
    return float(np.trapezoid(missed, np.minimum(away, most)))


def power(truth: Any, other: Any, delta: float) -> float:
    """The power of the best test of a law on the line at level delta: it rejects small values."""
    spent = np.cumsum(other)
    full = int(np.searchsorted(spent, delta, side="right"))
    left = delta - (spent[full - 1] if full else 0.0)
    part = min(left / max(other[full], 1e-300), 1.0) if full < len(other) else 0.0
    return float(truth[:full].sum() + (part * truth[full] if full < len(truth) else 0.0))


# ---- where the size counts, not the sign: mixtures, simulated ----


def end_of_error(n: int, rng: Any, values: int = 101) -> float:
    """Of a calibrated score of so many values: the least mean upper end of the error."""
    p = np.clip(np.arange(values) / (values - 1), 1e-6, 1.0 - 1e-6)
    rows = rng.multinomial(n, np.full(values, 1.0 / values), DRAWS)
    room, hard = np.minimum(p, 1.0 - p), (4.0 * p * (1.0 - p)) ** (2.0 / 3.0)  # least to be seen at this mean size
    calm = rng.binomial(rows, p)
    away, missed = [0.0], [1.0 - ALPHA]
    for most in np.geomspace(0.002, 0.5, 40):
        d = np.minimum(room, most * hard)
        sign = rng.choice([-1.0, 1.0], (DRAWS, values))
        off = rng.binomial(rows, np.clip(p + sign * d, 0.0, 1.0))

        def ratio(events: Any, d: Any = d) -> Any:
            with np.errstate(divide="ignore", invalid="ignore"):
                logs = [
                    np.where(events > 0, events * np.log1p(s * d / p), 0.0)
                    + np.where(rows > events, (rows - events) * np.log1p(-s * d / (1.0 - p)), 0.0)
                    for s in (1.0, -1.0)
                ]
            return (np.logaddexp(*logs) - np.log(2.0)).sum(axis=1)

        away.append(float(d.mean()))
        missed.append(1.0 - simulated_power(ratio(calm), ratio(off)))
    return float(np.trapezoid(missed, away))


def end_of_worst(n: int, rng: Any) -> float:
    """Of groups of n rows each, uniform calibrated scores: the least mean upper end of the worst gap."""
    p, many = (np.arange(50) + 0.5) / 50, np.diff(np.round(np.linspace(0, n, 51)).astype(int))
    calm = rng.binomial(many, p, (DRAWS, GROUPS, 50)).sum(axis=2)
    count, away, missed = Count(np.ones(50), p, many), [0.0], [1.0 - ALPHA]
    for t in np.geomspace(0.05, 12.0, 50) / max(count.noise, 1.0):
        up, down = (p * np.exp(s * t) / (1.0 - p + p * np.exp(s * t)) for s in (1.0, -1.0))
        price = [float(many @ np.log(1.0 - p + p * np.exp(s * t))) for s in (1.0, -1.0)]
        off = calm[rng.permutation(DRAWS)].copy()
        rising = rng.random(DRAWS) < 0.5
        off[:, 0] = np.where(rising, *(rng.binomial(many, q, (DRAWS, 50)).sum(axis=1) for q in (up, down)))

        def ratio(k: Any, t: float = t, price: Any = price) -> Any:
            return np.logaddexp.reduce(np.logaddexp(t * k - price[0], -t * k - price[1]), axis=1)

        away.append(float(min(many @ (up - p), many @ (p - down)) / n))
        missed.append(1.0 - simulated_power(ratio(calm), ratio(off)))
    return float(np.trapezoid(missed, away))


def simulated_power(truth: Any, other: Any) -> float:
    """The power of the test that rejects small ratios, ties by chance."""
    edge = np.quantile(other, ALPHA)
    below, at = (float(np.mean(v < edge)) for v in (other, truth)), float(np.mean(other == edge))
    level, result = below
    return result + (ALPHA - level) / at * float(np.mean(truth == edge)) if at else result


# ---- certificates ----


def one_group(y: Any, p: Any, **more: Any) -> Any:
    return cal.predictions(y, p, {"g": np.full(len(p), "all")}, **more)


def gap_width(data: Any, target: str | None) -> float:
    (found,) = cal.certify.groups(data, by="g", judge="gap", target=target, alpha=ALPHA).values()
    return float(found.interval.high - found.interval.low)


def clopper_pearson(k: int, n: int) -> float:
    low = beta.ppf(ALPHA / 2, k, n - k + 1) if k else 0.0
    return float((beta.ppf(1 - ALPHA / 2, k + 1, n - k) if k < n else 1.0) - low)


def sets_of(n: int) -> int:
    return 200 if n <= 2_000 else 60


def of_rows(sizes: Sequence[int]) -> Iterator[tuple[Any, ...]]:
    """Gaps of everyone, independent rows."""
    yield "scores", "rows", "events", "normal", "floor", "Clopper-Pearson", "of rows", "of population", "bar"
    for name, draw in SCORES.items():
        for n in sizes:
            rng = np.random.default_rng([n, 0xF100])
            found = []
            for _ in range(sets_of(n)):
                p = draw(rng, n)
                y = (rng.random(n) < p).astype(int)
                data = one_group(y, p)
                found.append((*(gap_width(data, t) for t in ("rows", "population")), clopper_pearson(int(y.sum()), n)))
            p = draw(np.random.default_rng([n, 0xF101]), 200_000)
            noise, m = float(np.mean(p * (1.0 - p))), float(p.mean())
            normal = 2.0 * float(norm.isf(ALPHA / 2)) * np.sqrt(noise / n)
            quantiles = np.quantile(p, (np.arange(n) + 0.5) / n)
            count = Count.of(np.ones(n), quantiles)
            floor = sum(end_of_gap(count, ALPHA / 2, side) for side in (1.0, -1.0))
            rows, population, exact = np.mean(found, axis=0)
            wanted = min(1.45, 1.1 * np.sqrt(m * (1.0 - m) / noise))
            yield name, n, n * m, normal, floor, exact, rows, population, f"{wanted:.2f}" if n * m >= 20 else "–"


def cluster_sizes(rng: Any, clusters: int, heavy: bool) -> Any:
    if not heavy:
        return np.full(clusters, 5)
    return HEAVY[np.searchsorted(HEAVY, np.minimum(1.0 / (1.0 - rng.random(clusters)), HEAVY[-1]), side="right") - 1]


def of_clusters(sizes: Sequence[int]) -> Iterator[tuple[Any, ...]]:
    """Gaps of everyone, by clusters whose rows have one score, and one outcome with probability `SHARED`."""
    yield "clusters", "number", "rows", "normal", "floor", "certified"
    for name, heavy in (("of 5", False), ("heavy-tailed sizes, to 200", True)):
        for m in (m for m in sizes if m <= 20_000):
            rng = np.random.default_rng([m, 0xF102])
            found, floors, normals, rows = [], [], [], []
            for i in range(100 if m <= 600 else 20):
                size, rate = cluster_sizes(rng, m, heavy), rng.random(m)
                own, n = np.repeat(np.arange(m), size), int(size.sum())
                alike = (rng.random(m) < SHARED)[own]
                y = (np.where(alike, rng.random(m)[own], rng.random(n)) < rate[own]).astype(int)
                rows.append(n)
                try:
                    found.append(gap_width(one_group(y, rate[own], cluster=own), None))
                except cal.errors.NotComputable:
                    found.append(2.0)
                if i < 2:
                    count = Count.of(size, rate)
                    normals.append(2.0 * float(norm.isf(ALPHA / 2)) * count.noise / n)
                    floors.append(sum(end_of_gap(count, ALPHA / 2, side) for side in (1.0, -1.0)))
            yield name, m, np.mean(rows), np.mean(normals), np.mean(floors), np.median(found)


def of_errors(sizes: Sequence[int]) -> Iterator[tuple[Any, ...]]:
    """The error of everyone: from above of a calibrated score, from below of one that is ten points too low."""
    yield "error", "rows", "normal", "floor", "certified"
    for n in sizes:
        rng = np.random.default_rng([n, 0xF103])
        high, low = [], []
        for _ in range(15 if n <= 2_000 else 5):
            p = rng.integers(0, 101, n) / 100.0
            data = cal.predictions((rng.random(n) < p).astype(int), p)
            high.append(cal.certify.rounded(data, side="upper", alpha=ALPHA).interval.high)
            shifted = rng.uniform(0.1, 0.8, n)
            data = cal.predictions((rng.random(n) < shifted + 0.1).astype(int), shifted)
            low.append(0.1 - cal.certify.raw_lower(data, side="lower", alpha=ALPHA).interval.low)
        yield "from above, 101 values", n, None, end_of_error(n, rng), np.mean(high)
        rate = 0.2 + 0.7 * (np.arange(n) + 0.5) / n
        count, z = Count.of(np.ones(n), rate), float(norm.isf(ALPHA))
        floor = end_of_gap(count, ALPHA, -1.0, 0.1)  # no error is below 0
        yield "a shift of 10 points, less its low end", n, min(z * count.noise / n, 0.1), floor, np.mean(low)


def of_groups(sizes: Sequence[int]) -> Iterator[tuple[Any, ...]]:
    """The worst gap of 20 groups."""
    yield "worst of 20 groups, gap from above", "rows of each", "normal", "floor", "certified"
    for n in (n for n in sizes if n <= 20_000):
        rng, found = np.random.default_rng([n, 0xF104]), []
        for _ in range(100 if n <= 600 else 20):
            p, g = rng.random(n * GROUPS), np.repeat(np.arange(GROUPS), n)
            data = cal.predictions((rng.random(len(p)) < p).astype(int), p, {"g": np.array([f"g{i}" for i in g])})
            found.append(cal.certify.worst_group(data, by="g", judge="gap", side="upper", alpha=ALPHA).interval.high)
        noise = np.sqrt(1.0 / 6.0 / n)  # each group's own interval at alpha, as is asked of the worst
        most = np.abs(rng.standard_normal((2_000, GROUPS))).max(axis=1).mean()
        yield "uniform", n, noise * (most + float(norm.isf(ALPHA))), end_of_worst(n, rng), np.mean(found)


def of_lists(sizes: Sequence[int]) -> Iterator[tuple[Any, ...]]:
    """The rate of errors among the best half of a list, from above: at all depths at once, and at this one alone."""
    yield "errors", "rows", "normal", "floor", "Clopper-Pearson", "certified"
    for name, most in (("0 to 20%", 0.2), ("0 to 4%", 0.04)):
        for n in (n for n in sizes if n >= 60):
            rng, half, found = np.random.default_rng([n, 0xF105]), n // 2, []
            rate = most * (np.arange(n) + 0.5) / n
            for _ in range(sets_of(n)):
                wrong = np.cumsum(rng.random(n) < rate)[[half - 1]]
                at = acceptance.Ranking(np.zeros(1), np.array([half]), wrong)
                high = (acceptance.clopper_pearson(at.rows, at.wrong, ALPHA), acceptance.highest_rate(at, ALPHA))
                found.append([float(v[0]) - rate[:half].mean() for v in high])
            count = Count.of(np.ones(half), rate[:half])
            floor, normal = end_of_gap(count, ALPHA, 1.0), float(norm.isf(ALPHA)) * count.noise / half
            yield name, n, normal, floor, *np.mean(found, axis=0)


PARTS = {"rows": of_rows, "clusters": of_clusters, "errors": of_errors, "groups": of_groups, "lists": of_lists}


def table(lines: Iterator[tuple[Any, ...]]) -> Iterator[str]:
    """Widths in points, and each certificate as a multiple of the normal width, or of the floor where there is none."""
    heads = next(lines)
    yield f"| {' | '.join(heads)} |"
    yield f"|{'---|' * len(heads)}"
    for line in lines:
        of = dict(zip(heads, line, strict=True))
        base = of["normal"] if of["normal"] is not None else of["floor"]
        cells = []
        for head, v in of.items():
            if head in ("floor", "certified", "of rows", "of population", "Clopper-Pearson"):
                cells.append(f"{100 * v:.3g} ({v / base:.2f})")
            elif isinstance(v, float):
                cells.append(f"{100 * v:.3g}" if head == "normal" else f"{v:,.3g}")
            else:
                cells.append("–" if v is None else f"{v:,}" if isinstance(v, int) else str(v))
        yield f"| {' | '.join(cells)} |"


def main(argv: list[str]) -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--full", action="store_true")
    asked.add_argument("--only", default=",".join(PARTS))
    a = asked.parse_args(argv)
    for name in a.only.split(","):
        title, lines = title_of(PARTS[name]), []
        print(f"\n## {title}\n", flush=True)
        for line in table(PARTS[name](SIZES if a.full else FEW)):
            lines.append(line)
            print(line, flush=True)
        if a.full:
            keep(title, "\n".join(lines))


HEAD = (
    "# Certificates beside their floors\n\nMade by `python benchmarks/certify/floors.py --full`, which says what a "
    "floor is. Means over data sets, in points; in brackets as a multiple of the normal width, or of the floor where "
    "there is none. Alpha is 0.05, shared by two ends where there are two.\n"
)


def title_of(part: Any) -> str:
    return str(part.__doc__).rstrip(".")


def keep(title: str, text: str) -> None:
    """Write one part's table, and leave those of others as they are."""
    old = OUT.read_text(encoding="utf-8").split("\n## ")[1:] if OUT.exists() else []
    kept = {part.split("\n", 1)[0]: part.split("\n", 1)[1].strip() for part in old} | {title: text}
    titles = [t for t in map(title_of, PARTS.values()) if t in kept]
    OUT.write_text(HEAD + "".join(f"\n## {t}\n\n{kept[t]}\n" for t in titles), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
