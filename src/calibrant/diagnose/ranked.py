"""What a ranking measures: bins of each variable, errors along them, and what their statistics come to under the null."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from calibrant.data.coding import OTHER
from calibrant.data.columns import decoded, is_date, is_number, require
from calibrant.data.predictions import Predictions
from calibrant.data.sample import identities_of
from calibrant.data.sketch import Sketch
from calibrant.diagnose.panels import AFFORDABLE, salt_of
from calibrant.errors import BadInput, NotComputable
from calibrant.kernels.draws import Draws, tallies
from calibrant.stats.nulls import holm, p_value, step_down, total_interval
from calibrant.stats.strata import Strata, View, beyond_shift, widened
from calibrant.views.along import Along, along_of, strata_of

SIZE_DRAWS = 1000  # of the label noise that debiased sizes are free of

STREAM = 0x4A9C

TIE = 1e-6  # sizes whose relative difference is smaller are equal

MEAN = float(np.sqrt(2.0 / np.pi))  # of the absolute value of a standard normal


@dataclass(frozen=True)
class Line:
    """A variable in bins, or a pair in cells.

    Parameters
    ----------
    name : str
    kind : {"number", "date", "category", "pair"}
    bins : Strata
    collapsed : int
        Bins asked for that do not exist, for ties.
    cell : int32 array of shape (n,) or None
    """

    name: str
    kind: str
    bins: Strata
    collapsed: int
    cell: Any

    @property
    def share(self) -> Any:
        """Share of the weight in each bin."""
        return self.bins.weight / self.bins.total

    @property
    def left(self) -> Any:
        """Residual sums over the total weight, without the overall shift, shape (bins,)."""
        return beyond_shift(self.bins.residual / self.bins.total, self.share)

    def scale(self, variance: Any) -> tuple[float, float]:
        """Return mean and spread, about, of the size beyond the shift if residual sums are noise of this variance."""
        noise, share = variance / self.bins.total**2, self.share
        var = np.maximum(noise * (1.0 - 2.0 * share) + share**2 * noise.sum(), 0.0)
        return MEAN * float(np.sqrt(var).sum()), float(np.sqrt((1.0 - MEAN**2) * var.sum()))

    def statistic(self, left: Any, variance: Any) -> Any:
        """Return the size of residuals beyond the shift, over the last axis, standardised by `scale`."""
        middle, spread = self.scale(variance)
        return (np.abs(left).sum(axis=-1) - middle) / max(spread, 1e-300)

    def sizes(self, seed: int, alpha: float) -> dict[str, float]:
        """Return the size beyond the shift and the whole one, each freed of label noise and plain."""
        binned = self.bins.as_bins()
        noise = binned.gap_noise(SIZE_DRAWS, np.random.default_rng([seed, STREAM]))
        out = {}
        for name, gap, drawn in (
            ("beyond_shift", beyond_shift(binned.gap, binned.share), beyond_shift(noise, binned.share)),
            ("vece", binned.gap, noise),
        ):
            found = total_interval(gap, drawn, lambda g: np.abs(g).sum(axis=-1), alpha)
            out[name], out[f"{name}_plain"] = float(found.middle), float(found.plug_in)
        return out

    def worst(self) -> dict[str, Any]:
        """Return the bin that adds most to the size beyond the shift, in the user's units; of equal ones, the first.

        Two bins always add equally much, and rounding must not choose between them.
        """
        size = np.abs(self.left)
        at = int(np.flatnonzero(size >= (1.0 - TIE) * size.max())[0])
        weight = float(self.bins.weight[at])
        observed, says = float(self.bins.cases[at]) / weight, float(self.bins.score[at]) / weight
        return {
            "worst": self.bins.titles()[at],
            "worst_predicted": says,
            "worst_observed": observed,
            "worst_gap": observed - says,
            "worst_beyond_shift": observed - says - self.bins.shift,
            "worst_rows": int(self.bins.rows[at]),
        }


CROWD = 5  # rows a level has on average, at least, or the category is taken for an identifier

HEAD = 10_000  # rows looked at before all are

GAUSSIAN_DRAWS = 99_999  # so many that Holm's correction over hundreds of variables can still find something

EXACT = (
    "exact: outcomes of every row simulated at its score, the same for every variable, and again with the noise seen, "
    "the larger p-value counting; step-down maximum"
)

GAUSSIAN = "asymptotic: Gaussian residual sums with the variance of each bin, or that seen if larger; Holm"

ONE_VALUE = "one value only"

AS_MANY = "nearly as many values as rows: it looks like an identifier"


def names_of(data: Any, variables: Any) -> tuple[str, ...]:
    """Return the variables asked for: every covariate by default."""
    if isinstance(data, Sketch):
        spec = data.spec
        counted = (c.name for c in spec.codings), (v.name for v in spec.variables), (name for name, _ in spec.left_out)
        available: tuple[str, ...] = tuple(dict.fromkeys(chain.from_iterable(counted)))
    else:
        available = () if data.covariates is None else tuple(data.covariates.schema.names)
    if variables is None:
        if not available:
            raise NotComputable("there are no covariates: pass them with the predictions")
        return available
    asked = (variables,) if isinstance(variables, str) else tuple(variables)
    require(asked, available, "covariate")
    if not asked or len(set(asked)) < len(asked):
        raise BadInput(f"variables={list(asked)!r}: pass different names of covariates")
    return asked


def lines_of(
    data: Any, names: Sequence[str], view: View, bins: int, keep_cells: bool
) -> tuple[list[Line], dict[str, str]]:
    """Return a line for each variable that can be ranked, and the reason for each that cannot."""
    lines, left_out = [], {}
    for name in names:
        reason = _unrankable(data, name)
        if not reason:
            try:
                along = (
                    Along(strata_of(data, name, view), None) if isinstance(data, Sketch) else along_of(data, name, view)
                )
            except (BadInput, NotComputable) as e:
                reason = str(e)
            else:
                reason = _unfit(along)
        if reason:
            left_out[name] = reason
            continue
        lines.append(_line(name, along, bins, keep_cells))
    return lines, left_out


def _line(name: str, along: Along, bins: int, keep_cells: bool) -> Line:
    s = along.strata
    group = s.bin_of(bins)
    joined = s.joined(group)
    collapsed = bins + int(s.missing) - joined.size if s.ordered else 0
    kind = "date" if s.date else "number" if s.ordered else "category"
    cell = group[along.cell].astype(np.int32) if keep_cells and along.cell is not None else None
    return Line(name, kind, joined, collapsed, cell)


def _unfit(along: Along) -> str:
    s = along.strata
    if s.size < 2:
        return ONE_VALUE
    other = sum(float(n) for label, n in zip(s.labels or (), s.rows, strict=False) if label == OTHER)
    if not s.ordered and (s.n < CROWD * s.size or other > 0.5 * s.n):
        return AS_MANY
    return ""


def _unrankable(data: Any, name: str) -> str:
    """Return why a column cannot be ranked before it is cut: it numbers the rows, nearly every value its own."""
    if isinstance(data, Sketch):
        return dict(data.spec.left_out).get(name, "")
    if data.n < 100:
        return ""
    import pyarrow as pa
    import pyarrow.compute as pc

    column = decoded(data.covariates.column(name))
    if pa.types.is_nested(column.type):
        return ""  # cutting it says what is wrong
    some = column.slice(0, HEAD)
    if pc.count_distinct(some.cast(pa.string())).as_py() * CROWD <= len(some):
        return ""
    if is_date(column.type) or pa.types.is_boolean(column.type) or pa.types.is_null(column.type):
        return ""
    if not is_number(column.type):
        return AS_MANY if pc.count_distinct(column.cast(pa.string())).as_py() * CROWD > data.n else ""
    if not pa.types.is_integer(column.type):
        return ""
    ends = pc.min_max(column)
    if ends["min"].as_py() is None or ends["max"].as_py() - ends["min"].as_py() >= 2 * data.n:
        return ""
    return AS_MANY if pc.count_distinct(column).as_py() >= 0.99 * data.n else ""


def affordable(data: Any, lines: int, draws: int) -> bool:
    """Tell whether outcomes of all rows can be simulated for so many cuttings."""
    return isinstance(data, Predictions) and data.n * lines * draws <= AFFORDABLE


def shared_residuals(data: Predictions, lines: Sequence[Line], draws: int, seed: int) -> list[Any]:
    """Return each line's simulated residual sums over the total weight, shape (draws, bins), from the same outcomes."""
    firsts = np.cumsum([0, *(line.bins.size for line in lines)])
    codes = np.stack([line.cell + first for line, first in zip(lines, firsts, strict=False)], axis=1)
    confidence = lines[0].bins.view == "confidence"
    rate = np.where(data.p < 0.5, 1.0 - data.p, data.p) if confidence else data.p
    ids = identities_of(data.n, seed)
    sums = tallies(ids, rate, data.weights, codes, int(firsts[-1]), Draws(0, draws, salt_of(seed)))
    out = []
    for line, first in zip(lines, firsts, strict=False):
        own = sums[first : first + line.bins.size]
        out.append((own.T - line.bins.score) / line.bins.total)
    return out


def gaussian_residuals(line: Line, noise: Any) -> Any:
    """Return one line's residual sums with the variance of each bin, shape (draws, bins), from standard noise."""
    return noise[:, : line.bins.size] * (np.sqrt(line.bins.variance) / line.bins.total)


def standard_noise(lines: Sequence[Line], seed: int, draws: int) -> Any:
    """Return standard normal numbers for the longest line, shape (draws, bins); every line takes its first columns."""
    most = max(line.bins.size for line in lines)
    few = min(draws, max(999, 50_000_000 // most))
    return np.random.default_rng([seed, STREAM, 1]).standard_normal((few, most))


def p_values(data: Any, lines: Sequence[Line], draws: int, seed: int) -> tuple[Any, Any, str]:
    """Return p-values of the sizes beyond the shift, each by itself and adjusted for all, and the law.

    With simulated outcomes each is the larger of two: with the noise of a calibrated model, and with the noise seen.
    """
    if affordable(data, len(lines), draws):
        drawn = shared_residuals(data, lines, draws, seed)
        rng = np.random.default_rng([seed, STREAM, 2])
        wide = [widened(v, line.bins, rng) for line, v in zip(lines, drawn, strict=True)]
        exact, robust = (
            judged_together(*_measured(lines, sums, [getattr(line.bins, noise) for line in lines]))
            for sums, noise in ((drawn, "noise"), (wide, "variance"))
        )
        return np.maximum(exact[0], robust[0]), np.maximum(exact[1], robust[1]), EXACT
    noise, own = standard_noise(lines, seed, GAUSSIAN_DRAWS), np.empty(len(lines))
    for i, line in enumerate(lines):
        observed, top = _measured([line], [gaussian_residuals(line, noise)], [line.bins.variance])
        own[i] = p_value(float(observed[0]), top[0])
    return own, holm(own), GAUSSIAN


def _measured(lines: Sequence[Line], sums: Sequence[Any], variances: Sequence[Any]) -> tuple[Any, Any]:
    """Return each line's statistic as observed, and of its simulated sums, shape (lines, draws)."""
    each = list(zip(lines, sums, variances, strict=True))
    observed = np.array([line.statistic(line.left, v) for line, _, v in each])
    return observed, np.stack([line.statistic(beyond_shift(s, line.share), v) for line, s, v in each])


def judged_together(observed: Any, top: Any) -> tuple[Any, Any]:
    """Return p-values of statistics simulated together, each by itself and by the step-down maximum."""
    own = np.array([p_value(t, s) for t, s in zip(observed.tolist(), top, strict=True)])
    return own, step_down(observed, top)
