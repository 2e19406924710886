"""What a ranking measures: errors along variables in bins, and along pairs in cells, and how they are judged."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, combinations
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from calibrant.arguments import names
from calibrant.data.columns import require
from calibrant.data.predictions import Predictions
from calibrant.data.profile import ColumnProfile
from calibrant.data.specs.coding import OTHER
from calibrant.data.survey import no_attributes
from calibrant.diagnose.bands import FEW, PAIR_BINS, Codes, Floats, Ints, affordable, simulated_events
from calibrant.errors import BadInput, NotComputable
from calibrant.kernels.strata import Seen, strata_sums
from calibrant.stats.nulls import BY_ROWS, ClusterSums, holm, p_value, step_down, surprises, total_interval
from calibrant.stats.strata import SUMS, Strata, View, beyond_gap, widened
from calibrant.views.by_variable import along, by_cluster, by_variable_of
from calibrant.views.kinds import ByKind
from calibrant.views.people import people_of
from calibrant.views.points import SIGNS

STREAM = 0x4A9C
SIZE_DRAWS = 1000  # of the label noise that debiased sizes are free of
GAUSSIAN_DRAWS = 99_999  # so many that Holm's correction over hundreds of variables can still find something
FIRST_DRAWS = 999  # drawn for every variable
UNREMARKABLE = 0.02  # p-value beyond which no more are drawn; for few lines, half over their number
NUMBERS_KEPT = 50_000_000  # normal numbers at once, 400 MB
TIE = 1e-6  # sizes whose relative difference is smaller are equal
LEAST = 2.0  # null variance of a level or a split that is looked at by itself, in expected events
MEAN = float(np.sqrt(2.0 / np.pi))  # of the absolute value of a standard normal
EXACT = (
    "exact: outcomes of every row simulated at its score, the same for every variable, and again with the noise seen, "
    "the larger p-value counting; step-down maximum"
)
GAUSSIAN = "asymptotic: Gaussian residual sums with the variance of each bin, or that seen if larger; Holm"


SIGNED = f"{SIGNS}; the same signs for every variable, step-down maximum"


def standardised(entries: Floats, variance: Floats) -> Floats:
    """``sum |entries|`` over the last axis, less its mean and over its spread if entries are independent noise.

    Their dependence is left out of the spread: it only sets the scale on which variables are compared, and the
    simulated statistics are on the same scale.
    """
    middle = MEAN * float(np.sqrt(variance).sum())
    spread = float(np.sqrt((1.0 - MEAN**2) * variance.sum()))
    result: Floats = (np.abs(entries).sum(axis=-1) - middle) / max(spread, 1e-300)
    return result


# ---- A variable in bins ----


@dataclass(frozen=True)
class Line:
    """A variable in bins, or a pair in cells."""

    name: str
    kind: str  # "number", "date", "category" or "pair"
    bins: Strata
    collapsed: int  # bins asked for that do not exist, for ties
    cell: Codes | None  # shape (n,)
    clusters: ClusterSums | None = None  # what each cluster adds to each bin, where rows come in units

    @property
    def share(self) -> Floats:
        """Share of the weight in each bin."""
        share: Floats = self.bins.weight / self.bins.total
        return share

    def statistics(self, sums: Floats, variance: Floats) -> Floats:
        """What speaks for error beyond the overall gap, in deviations of noise, shape (statistics, draws).

        The size; of a category the level that stands out most; of a number or date its trend, and the split that
        stands out most. `sums` (draws, bins) are over the total weight, `variance` (bins,) theirs if they are noise.
        """
        left, share, noise = beyond_gap(sums, self.share), self.share, variance / self.bins.total**2
        spread = np.maximum(noise * (1.0 - 2.0 * share) + share**2 * noise.sum(), 0.0)
        out, least = [standardised(left, spread)], LEAST / self.bins.total**2
        if not self.bins.ordered:
            enough = spread >= least
            if enough.any():
                scale = np.where(enough, 1.0 / np.sqrt(np.where(enough, spread, 1.0)), 0.0)
                out.append(np.abs(left * scale).max(axis=-1))
        else:
            for contrasts in self._contrasts():
                size = contrasts**2 @ noise
                if (enough := size >= least).any():
                    scores = left @ contrasts[enough].T / np.sqrt(size[enough])
                    out.append(np.abs(scores).max(axis=-1))
        return np.stack(out)

    def _contrasts(self) -> tuple[Floats, Floats]:
        """The trend over the ranks of a number's values, and its splits; the overall gap changes neither."""
        there, mass = self.bins.there, self.bins.weight
        trend = np.zeros((1, self.bins.size))
        trend[0, :there] = np.cumsum(mass[:there]) - 0.5 * mass[:there]
        trend[0, there:] = mass[:there] @ trend[0, :there] / mass[:there].sum()  # a missing value has no place in it
        trend = trend - trend @ self.share
        splits = np.tri(there - 1, self.bins.size)
        if self.bins.missing:
            splits = np.vstack([splits, np.arange(self.bins.size) == there])
        return trend / np.abs(trend).max(initial=1e-300), splits - (splits @ self.share)[:, None]

    def measured(self, sums: Floats, variance: Floats) -> tuple[float, Floats]:
        """The statistics joined: how surprising is the most surprising? As observed, and of simulated sums."""
        observed = (self.bins.residual / self.bins.total)[None, :]
        both = np.hstack([self.statistics(observed, variance), self.statistics(sums, variance)])
        joined = surprises(both).max(axis=0)
        return float(joined[0]), joined[1:]

    def sizes(self, seed: int, alpha: float) -> dict[str, float]:
        """The size beyond the overall gap and the whole one, each freed of label noise and plain."""
        binned = self.bins.as_bins(self.clusters or BY_ROWS)
        noise = binned.gap_noise(SIZE_DRAWS, np.random.default_rng([seed, STREAM]))
        out = {}
        for name, gap, drawn in (
            ("beyond_gap", beyond_gap(binned.gap, binned.share), beyond_gap(noise, binned.share)),
            ("vece", binned.gap, noise),
        ):
            result = total_interval(gap, drawn, lambda g: np.abs(g).sum(axis=-1), alpha)
            out[name], out[f"{name}_plain"] = float(result.middle), float(result.plug_in)
        return out

    @property
    def worst_bin(self) -> int:
        """The bin that adds most to the size beyond the overall gap; the first of equals.

        Two bins always add equally much, and rounding must not choose between them.
        """
        size = np.abs(beyond_gap(self.bins.residual / self.bins.total, self.share))
        return int(np.flatnonzero(size >= (1.0 - TIE) * size.max())[0])

    def worst(self) -> dict[str, Any]:
        """What is known of the worst bin, in the user's units."""
        at = self.worst_bin
        weight = float(self.bins.weight[at])
        observed, says = float(self.bins.events[at]) / weight, float(self.bins.score[at]) / weight
        return {
            "worst": self.bins.titles()[at],
            "worst_predicted": says,
            "worst_observed": observed,
            "worst_gap": observed - says,
            "worst_beyond_gap": observed - says - self.bins.gap,
            "worst_rows": int(self.bins.rows[at]),
        }


CROWD = 5  # rows a level has on average, at least, or the category is taken for an identifier
HEAD = 10_000  # rows that tell an identifier
ONE_VALUE = "one value only"
AS_MANY = "nearly as many values as rows: it looks like an identifier"


# ---- Whose variables are ranked: rows that a sketch counted, or rows at hand ----


@dataclass(frozen=True)
class Counted:
    """Rows that a sketch counted in cells along variables."""

    data: Any
    pairs = False  # there are cells of pairs

    @property
    def available(self) -> tuple[str, ...]:
        """The covariates there are."""
        spec = self.data.spec
        counted = (c.name for c in spec.codings), (v.name for v in spec.variables), (name for name, _ in spec.left_out)
        return tuple(dict.fromkeys(chain.from_iterable(counted)))

    def names_of(self, variables: Iterable[str] | str | None) -> tuple[str, ...]:
        """The variables asked for: every covariate by default."""
        available = self.available
        if variables is None:
            if not available:
                raise NotComputable("there are no covariates: pass them with the predictions")
            return available
        options = names("variables", variables, what="a covariate", least=1, distinct=True)
        require(options, available, "covariate")
        return options

    def left_out(self, _: int) -> dict[str, str]:
        """Columns that are ranked only where they are named, and why: they reproduce the outcome, say."""
        return {}

    def identifies(self, name: str) -> str:
        """Why a column cannot be ranked before it is cut: it numbers the rows, nearly every value its own."""
        return str(dict(self.data.spec.left_out).get(name, ""))

    def null(self, _lines: int, _draws: int, seed: int, _stream: int) -> GaussianNull:
        """The null of so many lines and draws, with a stream of random numbers."""
        return GaussianNull(seed)


@dataclass(frozen=True)
class RankedRows(Counted):
    """Rows at hand."""

    data: Predictions
    pairs = True

    @property
    def available(self) -> tuple[str, ...]:
        return () if self.data.covariates is None else tuple(self.data.covariates.schema.names)

    def left_out(self, seed: int) -> dict[str, str]:
        return no_attributes(self.data, seed)

    def identifies(self, name: str) -> str:
        if self.data.n < 100:  # too few to tell an identifier from a fine measurement
            return ""
        result = ColumnProfile(self.data.covariates.column(name).slice(0, HEAD), name)
        return AS_MANY if result.kind == "id" else ""

    def null(self, lines: int, draws: int, seed: int, stream: int) -> GaussianNull:
        if self.data.cluster is not None:
            return SignedNull(seed, self.data, draws, 4)
        if not affordable(self.data, lines, draws):
            return GaussianNull(seed)
        return SimulatedNull(seed, self.data, draws, stream)


ranked: ByKind[[], Counted] = ByKind(rows=RankedRows, sketches=Counted)


def lines_of(
    data: Counted, wanted: Sequence[str], view: View, bins: int, keep_cells: bool
) -> tuple[list[Line], dict[str, str]]:
    """A line for each variable that can be ranked, and the reason for each that cannot."""
    lines, left_out = [], {}
    for name in wanted:
        made = _line(data, name, view, bins)
        if isinstance(made, str):
            left_out[name] = made
        else:
            lines.append(made if keep_cells else replace(made, cell=None))
    return lines, left_out


def _line(data: Counted, name: str, view: View, bins: int) -> Line | str:
    """A variable in bins, or the reason why it cannot be ranked."""
    reason = data.identifies(name)
    if reason:
        return reason
    try:
        s, cell = along(data.data, name, view)
    except (BadInput, NotComputable) as e:
        return str(e)
    if s.size < 2:
        return ONE_VALUE
    other = sum(float(n) for label, n in zip(s.labels or (), s.rows, strict=False) if label == OTHER)
    if not s.ordered and (s.n < CROWD * s.size or other > 0.5 * s.n):
        return AS_MANY
    group = s.bin_of(bins)
    joined = s.joined(group)
    collapsed = bins + int(s.missing) - joined.size if s.ordered else 0
    code = None if cell is None else group[cell].astype(np.int32)
    clusters = None if code is None else by_cluster(data.data, code, joined.size, view)
    return Line(name, _kind(s), joined, collapsed, code, clusters)


def _kind(s: Strata) -> str:
    return "date" if s.date else "number" if s.ordered else "category"


# ---- A pair in cells: what an additive fit of its two variables leaves ----

AT_ONCE = 40  # pairs whose outcomes are simulated together, for memory
MOST = 400  # cells of a pair, at most: a pair of long categories is left out


@dataclass(frozen=True)
class Pair:
    """Two variables crossed."""

    line: Line  # the cells that hold rows
    singles: tuple[Line, Line]  # the two in the same cut
    remainder: Floats  # shape (cells, cells): turns residual sums into what an additive fit leaves of them

    def measured(self, sums: Floats, variance: Floats) -> tuple[float, Floats]:
        """The statistic as observed, and of simulated sums over the total weight, shape (draws,)."""
        bins = self.line.bins
        noise = (self.remainder**2) @ variance / bins.total**2
        observed, drawn = (s @ self.remainder.T for s in (bins.residual / bins.total, sums))
        return float(standardised(observed, noise)), standardised(drawn, noise)


@dataclass(frozen=True)
class TestedPair:
    """A pair without its rows' cells, and what its test found."""

    line: Line
    singles: tuple[Line, Line]
    statistic: float
    p_value: float
    adjusted: float


def tested_pairs(
    data: Counted, wanted: Sequence[str], view: View, draws: int, seed: int
) -> tuple[list[TestedPair], str]:
    """Test what each pair shows beyond its two variables; p-values are adjusted over all pairs."""
    cut = [_coarse(data.data, name, view) for name in wanted]
    chosen = [(a, b) for a, b in combinations(cut, 2) if a.bins.size * b.bins.size <= MOST]
    null = data.null(len(chosen), draws, seed, 3)
    kept: list[tuple[Line, tuple[Line, Line]]] = []
    results: list[_Measures] = []
    for start in range(0, len(chosen), AT_ONCE):
        pairs = [_pair(data.data, a, b, view) for a, b in chosen[start : start + AT_ONCE]]
        kept += [(Line(p.line.name, "pair", p.line.bins, 0, None), p.singles) for p in pairs]
        results += null.of_pairs(pairs)
    if not kept:
        return [], EXACT
    own, adjusted = null.judged(results)
    rows = zip(kept, results, own.tolist(), adjusted.tolist(), strict=True)
    return [TestedPair(k, s, m[0][0], p, a) for (k, s), m, p, a in rows], null.law


def _coarse(data: Predictions, name: str, view: View) -> Line:
    """A variable in the cut of a pair: numbers in six bins, few values and levels as they are."""
    by_variable = by_variable_of(data, name, view)
    s = by_variable.strata
    group = s.bin_of(PAIR_BINS) if s.ordered and s.there > FEW else np.arange(s.size)
    return Line(name, _kind(s), s.joined(group), 0, group[by_variable.cell].astype(np.int32))


def _pair(data: Predictions, a: Line, b: Line, view: View) -> Pair:
    width = b.bins.size
    code = np.asarray(a.cell) * np.int32(width) + np.asarray(b.cell)
    sums = strata_sums(code, a.bins.size * width, data.y, Seen(data.p, data.weights, view == "confidence"))
    kept = np.flatnonzero(sums[:, 0])
    first, second = kept // width, kept % width
    titles = a.bins.titles(), b.bins.titles()
    labels = tuple(
        f"{a.name} {titles[0][i]}, {b.name} {titles[1][j]}"
        for i, j in zip(first.tolist(), second.tolist(), strict=True)
    )
    x = np.arange(len(kept), dtype=np.float64)
    own: dict[str, Any] = {k: np.ascontiguousarray(sums[kept, j]) for j, k in enumerate(SUMS)}
    bins = Strata(name=f"{a.name} x {b.name}", labels=labels, x=x, low=x, high=x, view=view, **own)
    cell = (np.cumsum(sums[:, 0] > 0) - 1).astype(np.int32)[code]
    return Pair(Line(bins.name, "pair", bins, 0, cell), (a, b), _remainder(first, second, bins.weight))


def _remainder(first: Ints, second: Ints, mass: Floats) -> Floats:
    """What turns residual sums by cell into those that a weighted additive fit of the means leaves.

    With W the cells' weights and D the design of the two variables, ``I - W^(1/2) U U' W^(-1/2)``, U an orthonormal
    basis of ``W^(1/2) D``.
    """
    design = np.concatenate([first[:, None] == np.unique(first), second[:, None] == np.unique(second)], axis=1) * 1.0
    root = np.sqrt(mass)
    basis, size, _ = np.linalg.svd(root[:, None] * design, full_matrices=False)
    basis = basis[:, size > 1e-9 * size[0]]  # the two designs share the constant
    remainder: Floats = np.eye(len(mass)) - (root[:, None] * basis) @ (basis / root[:, None]).T
    return remainder


# ---- Under the null: the same simulated outcomes for all, or Gaussian sums ----

_Measures = list[tuple[float, Floats]]  # of one line or pair: observed and simulated statistic, with either noise


class Measured(Protocol):
    """What has a statistic: a line, or a pair."""

    def measured(self, sums: Floats, variance: Floats) -> tuple[float, Floats]:
        """The statistic as observed, and of simulated sums."""


@dataclass(frozen=True)
class GaussianNull:
    """Gaussian residual sums with the variance of each bin: of each line its p-value is kept."""

    seed: int
    law, reads_cells = GAUSSIAN, False  # in words; whether it reads the cell of each row

    def measures(self, things: Sequence[Measured], lines: Sequence[Line]) -> list[_Measures]:
        """Measure things, which have a line each."""
        return gaussian_measures(things, lines, self.seed)

    def of_pairs(self, pairs: Sequence[Pair]) -> list[_Measures]:
        """Measure pairs."""
        return [m for p in pairs for m in self.measures([p], [p.line])]

    def judged(self, results: Sequence[_Measures]) -> tuple[Floats, Floats]:
        """P-values, each by itself and adjusted by Holm, whatever the dependence."""
        own = np.array([m[0][1][0] for m in results])
        return own, holm(own)

    def people(self, _: Line) -> tuple[int, int] | None:
        """The clusters with rows in the worst bin, and with others; None where rows are independent."""
        return None


@dataclass(frozen=True)
class SimulatedNull(GaussianNull):
    """Outcomes drawn at the scores, with the noise of a calibrated model, and that seen where it is more."""

    data: Predictions
    draws: int
    stream: int  # of random numbers
    law, reads_cells = EXACT, True

    @cached_property
    def rng(self) -> np.random.Generator:
        """The random numbers of the noise that is added."""
        return np.random.default_rng([self.seed, STREAM, self.stream])

    def measures(self, things: Sequence[Measured], lines: Sequence[Line]) -> list[_Measures]:
        out = []
        for thing, line, s in zip(things, lines, self.residuals(lines), strict=True):
            calibrated = thing.measured(s, line.bins.noise)
            out.append([calibrated, thing.measured(widened(s, line.bins, self.rng), line.bins.variance)])
        return out

    def of_pairs(self, pairs: Sequence[Pair]) -> list[_Measures]:
        return self.measures(pairs, [p.line for p in pairs])

    def residuals(self, lines: Sequence[Line]) -> list[Floats]:
        """Each line's simulated residual sums over the total weight, shape (draws, bins), from the same outcomes."""
        codes, firsts = _numbered(lines)
        sums = simulated_events(self.data, codes, int(firsts[-1]), lines[0].bins.view, self.draws, self.seed)
        own = [sums[first : first + line.bins.size] for line, first in zip(lines, firsts, strict=False)]
        return [(s.T - line.bins.score) / line.bins.total for line, s in zip(lines, own, strict=True)]

    def judged(self, results: Sequence[_Measures]) -> tuple[Floats, Floats]:
        """P-values, each by itself and by the step-down maximum; the larger of both noises counts."""
        both = []
        for noise in zip(*results, strict=True):
            observed, top = np.array([m[0] for m in noise]), np.stack([m[1] for m in noise])
            own = np.array([p_value(t, s) for t, s in zip(observed.tolist(), top, strict=True)])
            both.append((own, step_down(observed, top)))
        return np.max([own for own, _ in both], axis=0), np.max([adjusted for _, adjusted in both], axis=0)


@dataclass(frozen=True)
class SignedNull(SimulatedNull):
    """Random signs of whole clusters, on the scale of the noise that they have."""

    law = SIGNED

    def measures(self, things: Sequence[Measured], lines: Sequence[Line]) -> list[_Measures]:
        sums = self.residuals(lines)
        seen = [(s * s).mean(axis=0) * line.bins.total**2 for line, s in zip(lines, sums, strict=True)]
        return [[thing.measured(s, variance)] for thing, s, variance in zip(things, sums, seen, strict=True)]

    def residuals(self, lines: Sequence[Line]) -> list[Floats]:
        codes, firsts = _numbered(lines)
        clusters = cast(ClusterSums, by_cluster(self.data, codes, int(firsts[-1]), lines[0].bins.view))
        signed = clusters.signed(self.draws, np.random.default_rng([self.seed, STREAM, self.stream]))  # always the same
        parts = np.split(signed, firsts[1:-1], axis=1)
        return [part / line.bins.total for line, part in zip(lines, parts, strict=True)]

    def people(self, line: Line) -> tuple[int, int] | None:
        return people_of(self.data).sides(np.asarray(line.cell) == line.worst_bin)


def _numbered(lines: Sequence[Line]) -> tuple[Codes, NDArray[np.intp]]:
    """The cell of each row in each line, numbered through, and the first of each line."""
    firsts = np.cumsum([0, *(line.bins.size for line in lines)])
    codes = [np.asarray(line.cell) + first for line, first in zip(lines, firsts, strict=False)]
    return np.stack(codes, axis=1), firsts


def gaussian_measures(things: Sequence[Measured], lines: Sequence[Line], seed: int) -> list[_Measures]:
    """Measure against Gaussian sums with the variance of each bin; every line takes the first of the same numbers.

    Two stages, so that time goes to what stands out: p1 ranks a line among the first draws, p2 among all of them. What
    is kept is p1 if that is above c, which is `UNREMARKABLE` or, for few lines, half over their number, and p2
    otherwise. Either rank is a valid p-value, and so is what is kept: at a level of at most c, ``{p <= level}`` lies
    within ``{p2 <= level}``; at a larger one, within ``{p1 <= level}``. So the first stage reads the data and costs no
    error probability; the power that it costs is the chance that p1 is above c where p2 would be below what Holm asks
    for, a tenth of c or so: none to speak of.
    """
    most = max(line.bins.size for line in lines)
    few = min(GAUSSIAN_DRAWS, max(FIRST_DRAWS, NUMBERS_KEPT // most))
    remarkable, rng = max(UNREMARKABLE, 0.5 / len(lines)), np.random.default_rng([seed, STREAM, 1])
    noise, out = rng.standard_normal((FIRST_DRAWS, most)), []
    for thing, line in zip(things, lines, strict=True):
        scale = np.sqrt(line.bins.variance) / line.bins.total
        observed, level = _gaussian(thing, line, noise[:FIRST_DRAWS], scale)
        if level <= remarkable and few > FIRST_DRAWS:
            if len(noise) < few:  # the second stage is drawn where it is first needed
                noise = np.concatenate([noise, rng.standard_normal((few - FIRST_DRAWS, most))])
            observed, level = _gaussian(thing, line, noise, scale)
        out.append([(observed, np.array([level]))])  # the p-value alone is kept, for memory
    return out


def _gaussian(thing: Measured, line: Line, noise: Floats, scale: Floats) -> tuple[float, float]:
    """The statistic as observed, and its p-value among Gaussian sums."""
    observed, top = thing.measured(noise[:, : line.bins.size] * scale, line.bins.variance)
    return observed, p_value(observed, top)
