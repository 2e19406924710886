"""The perturbed classifier of Ciosek et al. in one step: the bandwidth, the score that is emitted, its certificate."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import calibrant
from calibrant import Predictions
from calibrant.arguments import checked_seed, number, optional
from calibrant.errors import BadInput, NotComputable
from calibrant.repair import Calibrator, Jitter
from calibrant.results import Estimate, Side
from calibrant.sanitize import as_message
from calibrant.toolkit.command import Progress, inputs_of, print_result, reading
from calibrant.toolkit.data import (
    checked_data,
    checked_rows,
    checked_targets,
    counted,
    finite_numbers,
    in_memory,
    open_source,
    rewrite,
    takes_arrays,
    written,
)

PILOT, LOSS = 0.1, 0.001
FEWEST = 30  # rows of the pilot
STREAM = 0x9E17
PERTURBED, CERTIFIED = "_perturbed", "_certified"  # behind the name of the score, in the rows that are written


@dataclass(frozen=True, kw_only=True)
class Perturbed:
    """A perturbed score, and the certificate of the classifier that emits it.

    Parameters
    ----------
    scores : float64 array of shape (n,), read-only
        The score that each row is emitted with, in [0, 1].
    certified : bool array of shape (n,), read-only
        The rows that the certificate rests on; the others chose the bandwidth.
    certificate : Estimate
        Of the emitted score's calibration error, in probability units.
    calibrator : Calibrator
        What perturbs: of the next rows too, with `calibrant apply`.
    """

    scores: NDArray[np.float64]
    certified: NDArray[np.bool_]
    certificate: Estimate
    calibrator: Calibrator

    def to_dict(self) -> dict[str, object]:
        """The certificate, and how many rows chose the bandwidth."""
        return {
            "certificate": self.certificate.to_dict(),
            "rows": len(self.scores),
            "pilot": int((~self.certified).sum()),
        }


@takes_arrays
def perturb(
    data: Predictions,
    *,
    loss: float = LOSS,
    pilot: float = PILOT,
    bandwidth: float | None = None,
    alpha: float = 0.05,
    side: Side = "two-sided",
    seed: int = 0,
) -> Perturbed:
    r"""Perturb a score by a bandwidth chosen on pilot rows, and certify the score that is emitted.

    Estimand: ``CE = E|s - E[Y|s]|`` of the emitted score s, drawn with density proportional to ``sech((s - p) / h)`` on
    [0, 1]; in probability units.

    Parameters
    ----------
    data : Predictions
        Rows with labels `y` in {0, 1} and scores `p` in [0, 1]; no weights, no clusters.
    loss : float, positive
        AUROC that the perturbation may cost: h is the largest power of two that costs no more of the pilot rows.
    pilot : float in (0, 1)
        Share of the rows that choose h; they are drawn by the seed and leave the certificate.
    bandwidth : float, optional
        h itself, fixed before labels are seen: then there is no pilot.
    alpha : float in (0, 0.5]
    side : {"two-sided", "lower", "upper"}
    seed : int
        Of the pilot, and of what is emitted.

    Returns
    -------
    Perturbed
        ``scores``, ``certified`` (the rows that did not choose h), ``certificate`` and ``calibrator``.

    Raises
    ------
    BadInput
        A setting out of range; under 30 rows in the pilot.
    NotComputable
        Weights, clusters, a sketch; every bandwidth costs more than `loss`.

    Notes
    -----
    **Assumes.** Independent rows from one distribution.
    **Guarantee.** Finite-sample, about the classifier that emits the perturbed score, whatever the model: the pilot
    rows choose h, and the others certify it. A bandwidth that is chosen on the certified rows voids it.
    **Method.** Equation 8 and Figure 2 (the cost in AUROC), on the grid of `certify.jittered`, which certifies the law
    of the emitted score and not one draw. `published_kernel` has the published bound of the same classifier.
    **Cost.** A pass over the rows; about 0.3 s.
    **Reads.** Rows.

    References
    ----------
    K. Ciosek, N. Felicioni, S. Ghiassian, J. Elenter Litwin, F. Tonolini, D. Gustafsson, E. Garcia Martin,
    C. Barcena Gonzales, R. Bertrand-Lalo, "Measuring Uncertainty Calibration", ICLR 2026, arXiv:2512.13872.

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(20000)
    >>> emitted = cal.papers.perturb(cal.predictions(rng.random(20000) < p, p))
    >>> emitted.certificate.settings["bandwidth"], bool(emitted.certificate.interval.high < 0.03)
    (0.0078125, True)
    """
    checked_data(data, Predictions)
    for what in ("weights", "cluster"):
        if getattr(data, what) is not None:
            raise NotComputable(
                f"no proof covers the perturbed score with {what}: leave it out, or use certify.rounded"
            )
    seed = checked_seed(seed)
    first = _pilot(data.n, number("pilot", pilot, above=0.0, below=1.0, hint="such as 0.1"), seed)
    if optional(number)("bandwidth", bandwidth) is not None:
        first = np.zeros(data.n, dtype=np.bool_)
    width = calibrant.certify.jitter_bandwidth(_some(data, first), tolerance=loss) if bandwidth is None else bandwidth
    calibrator = Jitter(bandwidth=width, seed=seed).fit()
    certificate = calibrant.certify.jittered(_some(data, ~first), bandwidth=width, alpha=alpha, side=side, seed=seed)
    scores, certified = calibrator.scores(data.p), ~first
    for column in (scores, certified):
        column.setflags(write=False)
    return Perturbed(scores=scores, certified=certified, certificate=certificate, calibrator=calibrator)


def _pilot(n: int, share: float, seed: int) -> NDArray[np.bool_]:
    """Draw the rows that choose the bandwidth; labels and scores play no part."""
    out = np.zeros(n, dtype=np.bool_)
    out[np.random.default_rng([STREAM, seed]).permutation(n)[: round(share * n)]] = True
    if not FEWEST <= out.sum() < n:
        raise BadInput(f"pilot={share:g}: {out.sum():,} of {n:,} rows; at least {FEWEST} are needed, and not all")
    return out


def _some(data: Predictions, rows: NDArray[np.bool_]) -> Predictions:
    return calibrant.predictions(data.y[rows], data.p[rows])


# ---- as a command ----


def run(a: Namespace) -> int:
    """Choose the bandwidth, write the rows with the score that is emitted, and print its certificate."""
    files, options = inputs_of(a), reading(a, variables=()).named()
    calibrators = [out for out in a.out if out.endswith(".json")]
    tables = [out for out in a.out if not out.endswith(".json")]
    if len(tables) > 1 or len(calibrators) > 1:
        raise BadInput("-o takes one file of rows, such as perturbed.parquet, and one calibrator, such as jitter.json")
    if options.missing == "drop" or options.drop_missing:
        raise BadInput("--missing drop: every row is written with its perturbed score; leave it out")
    if options.at is not None:
        raise BadInput("--time: every row is written with its perturbed score, followed or not; leave it out")
    paths = checked_targets({f"-o {out}": out for out in a.out}, files)
    source = open_source(list(files) if len(files) > 1 else files[0], form=options.form)
    names = options.score + PERTURBED, options.score + CERTIFIED
    if tables:
        checked_rows(Path(paths[f"-o {tables[0]}"]), source, names)
    data = in_memory(source, options)
    result = perturb(
        data, loss=a.loss, pilot=a.pilot, bandwidth=a.bandwidth, alpha=a.alpha, side=a.side, seed=options.seed
    )
    if tables:
        with Progress() as progress:
            rows = _Rows(data, result, options.score, 100.0 if options.percent else 1.0)
            done = counted(progress, "writing", source.rows)
            rewrite(source, Path(paths[f"-o {tables[0]}"]), (options.score,), rows.added, rows.whole, done)
    for out in calibrators:
        written(out, f"{result.calibrator.to_json()}\n".encode())
    print_result(a.json, result.to_dict, lambda: "\n".join(_stated(result, a.out, names)))
    return 0


class _Rows:
    """The emitted scores, row by row in the order of the source."""

    def __init__(self, data: Predictions, result: Perturbed, score: str, unit: float) -> None:
        self.data, self.result, self.score, self.unit, self.at = data, result, score, unit, 0

    def added(self, batch: pa.RecordBatch, _part: str, _row: int) -> dict[str, pa.Array]:
        """The scores of the next rows, and whether they were certified; they are those that were read."""
        these = slice(self.at, self.at + batch.num_rows)
        self.at += batch.num_rows
        seen = finite_numbers(batch.column(self.score), self.score, "score") / self.unit
        if not np.allclose(seen, self.data.p[these], rtol=0.0, atol=1e-12):
            raise BadInput("the rows changed, or come in another order, while they were read: nothing is written")
        emitted = self.result.scores[these] * self.unit
        certified = self.result.certified[these]
        return {self.score + PERTURBED: pa.array(emitted), self.score + CERTIFIED: pa.array(certified)}

    def whole(self) -> None:
        """Every row that was read is written."""
        if self.at != self.data.n:
            raise BadInput(f"{self.data.n:,} rows were read and {self.at:,} came to be written: nothing is written")


def _stated(result: Perturbed, outs: Sequence[str], names: Sequence[str]) -> list[str]:
    """What was chosen, what is certified of it, and where the rows are."""
    made, n = result.certificate, int(result.certified.sum())
    low, high = 100.0 * made.interval.low, 100.0 * made.interval.high
    chosen = f", chosen on {len(result.scores) - n:,} pilot rows" if n < len(result.scores) else ""
    ends = f"{np.floor(10 * low) / 10:.1f} to {np.ceil(10 * high) / 10:.1f} points"
    return [
        f"bandwidth {made.settings['bandwidth']:g}{chosen}",
        f"calibration error of the perturbed score: {ends}, {100 * made.interval.level:g}%, finite-sample; {n:,} rows",
        f"assumes {made.assumes}",
        *(
            as_message(
                f"{out}: the calibrator, for calibrant apply"
                if out.endswith(".json")
                else f"{out}: {' and '.join(names)}"
            )
            for out in outs
        ),
    ]
