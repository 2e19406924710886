"""The perturbed classifier of Ciosek et al. in one step: how much noise, the score that is emitted, its certificate."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import calibrant
from calibrant import MulticlassPredictions, Predictions
from calibrant.arguments import check_int, checked_seed, number, optional
from calibrant.errors import BadInput, NotComputable
from calibrant.repair import Calibrator, Jitter
from calibrant.results import Estimate, Side
from calibrant.sanitize import as_message
from calibrant.toolkit.command import Progress, inputs_of, print_result, reading
from calibrant.toolkit.data import (
    Reading,
    Source,
    checked_data,
    checked_rows,
    checked_targets,
    classes_in_memory,
    counted,
    finite_numbers,
    in_memory,
    open_source,
    rewrite,
    takes_arrays,
    written,
)
from calibrant.toolkit.methods import refuse_rows

NO_PROOF = "no proof covers the perturbed score with {}: leave it out, or use certify.rounded"

PILOT, LOSS = 0.1, 0.001
FEWEST = 30  # rows of the pilot
STREAM = 0x9E17
PERTURBED, CERTIFIED = "_perturbed", "_certified"  # behind the name of the score, in the rows that are written


@dataclass(frozen=True, kw_only=True)
class Perturbed:
    """A perturbed score, and the certificate of the classifier that emits it.

    Parameters
    ----------
    scores : float64 array of shape (n,) or (n, K), read-only
        The score that each row is emitted with, in [0, 1]; of several classes its probabilities, which add up to one.
    certified : bool array of shape (n,), read-only
        The rows that the certificate rests on; the others chose the bandwidth.
    certificate : Estimate
        Of the emitted score's calibration error, in probability units; of several classes their class-wise error.
    calibrator : Calibrator or None
        What perturbs: of the next rows too, with `calibrant apply`. None of several classes, whose next rows
        `certify.jitter_classes` perturbs, by ids that are not those of these rows, 0 to n - 1.
    """

    scores: NDArray[np.float64]
    certified: NDArray[np.bool_]
    certificate: Estimate
    calibrator: Calibrator | None

    def to_dict(self) -> dict[str, object]:
        """The certificate, and how many rows chose the bandwidth."""
        return {
            "certificate": self.certificate.to_dict(),
            "rows": len(self.scores),
            "pilot": int((~self.certified).sum()),
        }


@takes_arrays
def perturb(
    data: Predictions | MulticlassPredictions,
    *,
    loss: float = LOSS,
    pilot: float = PILOT,
    bandwidth: float | None = None,
    steps: int | None = None,
    alpha: float = 0.05,
    side: Side = "two-sided",
    seed: int = 0,
) -> Perturbed:
    r"""Perturb a score by a bandwidth chosen on pilot rows, and certify the score that is emitted.

    Estimand: ``CE = E|s - E[Y|s]|`` of the emitted score s, drawn with density proportional to ``sech((s - p) / h)`` on
    [0, 1]; in probability units. Of several classes: ``sum_k E|s_k - P(Y = k | s_k)|`` of the vector s that
    `certify.jitter_classes` emits.

    Parameters
    ----------
    data : Predictions or MulticlassPredictions
        Rows with labels and probabilities in [0, 1]; no weights, no clusters.
    loss : float, positive
        What the perturbation may cost, of the pilot rows: AUROC, and h is the largest power of two that costs no more;
        of several classes the expected Brier score, and `steps` is the smallest power of two that costs no more.
    pilot : float in (0, 1)
        Share of the rows that choose h or `steps`; they are drawn by the seed and leave the certificate.
    bandwidth : float, optional
        h itself, fixed before labels are seen: then there is no pilot.
    steps : int from 2 to 1024, optional
        Of several classes: the multiples of ``1 / steps``, fixed before labels are seen: then there is no pilot.
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
        A setting out of range, or of other data; under 30 rows in the pilot.
    NotComputable
        Weights, clusters, a sketch; every bandwidth, or every number of steps, costs more than `loss`.

    Notes
    -----
    **Assumes.** Independent rows from one distribution.
    **Guarantee.** Finite-sample, about the classifier that emits the perturbed score, whatever the model: the pilot
    rows choose h or `steps`, and the others certify it. One that is chosen on the certified rows voids it.
    **Method.** Equation 8 and Figure 2 (the cost in AUROC), on the grid of `certify.jittered`, which certifies the law
    of the emitted score and not one draw. `published_kernel` has the published bound of the same classifier. Several
    classes are not in the paper: `certify.jittered_classes` certifies them, and as the noise has mean 0, it costs
    ``sum_k f_k (1 - f_k) / steps^2`` of the Brier score, with f the fractions of ``steps p``; no label is read.
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
    checked_data(data, Predictions, MulticlassPredictions)
    several = isinstance(data, MulticlassPredictions)
    if (bandwidth if several else steps) is not None:
        name, of = ("bandwidth", "two") if several else ("steps", "several")
        raise BadInput(f"{name}= is of {of} classes: leave it out")
    refuse_rows(data, weights=NO_PROOF.format("weights"), cluster=NO_PROOF.format("cluster"))
    seed = checked_seed(seed)
    first = _pilot(data.n, number("pilot", pilot, above=0.0, below=1.0, hint="such as 0.1"), seed)
    optional(check_int, low=2, high=1024)("steps", steps)
    if optional(number)("bandwidth", bandwidth) is not None or steps is not None:
        first = np.zeros(data.n, dtype=np.bool_)
    if isinstance(data, MulticlassPredictions):
        chosen = _fewest_steps(data.p[first], loss) if steps is None else steps
        return _of_classes(data, first, chosen, alpha, side, seed)
    width = calibrant.certify.jitter_bandwidth(_some(data, first), tolerance=loss) if bandwidth is None else bandwidth
    calibrator = Jitter(bandwidth=width, seed=seed).fit()
    certificate = calibrant.certify.jittered(_some(data, ~first), bandwidth=width, alpha=alpha, side=side, seed=seed)
    scores, certified = calibrator.scores(data.p), ~first
    for column in (scores, certified):
        column.setflags(write=False)
    return Perturbed(scores=scores, certified=certified, certificate=certificate, calibrator=calibrator)


def _of_classes(
    data: MulticlassPredictions, first: NDArray[np.bool_], steps: int, alpha: float, side: Side, seed: int
) -> Perturbed:
    certify = calibrant.certify
    rows = calibrant.multiclass_predictions(data.y[~first], data.p[~first])
    certificate = certify.jittered_classes(rows, steps=steps, alpha=alpha, side=side, seed=seed)
    scores, certified = certify.jitter_classes(data.p, ids=range(data.n), steps=steps, seed=seed), ~first
    for column in (scores, certified):
        column.setflags(write=False)
    return Perturbed(scores=scores, certified=certified, certificate=certificate, calibrator=None)


def _fewest_steps(p: NDArray[np.float64], loss: float) -> int:
    """The smallest power of two of which the noise, whose mean is 0, costs no more of the Brier score."""
    loss = number("loss", loss, above=0.0, hint="such as 0.001")
    for steps in 2 ** np.arange(1, 11):
        part = p * steps % 1.0
        if float((part * (1.0 - part)).sum(axis=1).mean()) / steps**2 <= loss:
            return int(steps)
    raise NotComputable(f"even 1,024 steps cost more than {loss:g} of the Brier score")


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
    """Choose how much noise, write the rows with what is emitted, and print its certificate."""
    files, options = inputs_of(a), reading(a, variables=())
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
    options = options.in_columns(source.columns)
    data: Predictions | MulticlassPredictions
    if options.scores:
        data = classes_in_memory(source, options)
        columns = _columns(data, source, calibrators)
    else:
        options = options.named()
        data, columns = in_memory(source, options), (options.score,)
    names = *(name + PERTURBED for name in columns), columns[0] + CERTIFIED
    if tables:
        checked_rows(Path(paths[f"-o {tables[0]}"]), source, names)
    how = {"bandwidth": a.bandwidth, "steps": a.steps}
    result = perturb(data, loss=a.loss, pilot=a.pilot, alpha=a.alpha, side=a.side, seed=options.seed, **how)
    if tables:
        with Progress() as progress:
            rows = _Rows(data, result, columns, options)
            done = counted(progress, "writing", source.rows)
            rewrite(source, Path(paths[f"-o {tables[0]}"]), columns, rows.added, rows.whole, done)
    for out in calibrators:
        if result.calibrator is not None:
            written(out, f"{result.calibrator.to_json()}\n".encode())
    print_result(a.json, result.to_dict, lambda: "\n".join(_stated(result, a.out, names)))
    return 0


def _columns(data: MulticlassPredictions, source: Source, calibrators: Sequence[str]) -> tuple[str, ...]:
    """The columns of the classes' probabilities, each of which is written perturbed."""
    if calibrators:
        raise BadInput(
            f"-o {calibrators[0]}: of several classes no calibrator is written; in Python certify.jitter_classes(p, "
            "ids=, steps=, seed=) perturbs the next rows, by an id that no two rows share"
        )
    if missing := [name for name in data.columns if name not in source.columns]:
        raise BadInput(f"{missing[0]!r} is part of a list: perturbed rows are written of a column for each class")
    return data.columns


class _Rows:
    """What is emitted, row by row in the order of the source."""

    def __init__(
        self, data: Predictions | MulticlassPredictions, result: Perturbed, columns: Sequence[str], options: Reading
    ) -> None:
        self.data, self.result, self.columns, self.options, self.at = data, result, columns, options, 0
        self.unit = 100.0 if options.percent else 1.0

    def added(self, batch: pa.RecordBatch, _part: str, _row: int) -> dict[str, pa.Array]:
        """What is emitted of the next rows, and whether they were certified; they are those that were read."""
        these = slice(self.at, self.at + batch.num_rows)
        self.at += batch.num_rows
        if not np.allclose(self._seen(batch), self.data.p[these], rtol=0.0, atol=1e-12):
            raise BadInput("the rows changed, or come in another order, while they were read: nothing is written")
        emitted = self.result.scores[these].reshape(batch.num_rows, -1).T * self.unit
        certified = self.result.certified[these]
        out = {name + PERTURBED: pa.array(own) for name, own in zip(self.columns, emitted, strict=True)}
        return out | {self.columns[0] + CERTIFIED: pa.array(certified)}

    def _seen(self, batch: pa.RecordBatch) -> NDArray[np.float64]:
        """The probabilities that a batch holds, as they were read."""
        seen = np.stack([finite_numbers(batch.column(c), c, "score") / self.unit for c in self.columns], axis=1)
        if len(self.columns) == 1:
            return seen[:, 0]
        if self.options.logits:
            seen = np.exp(seen - seen.max(axis=1, keepdims=True))
        shares: NDArray[np.float64] = seen / seen.sum(axis=1, keepdims=True)
        return shares

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
    noise = "bandwidth" if "bandwidth" in made.settings else "steps"
    what = "calibration error of the perturbed score"
    if noise == "steps":
        what = "class-wise error of the perturbed probabilities"
        names = (f"{names[0]}, {names[1]}, ...", names[-1])
    return [
        f"{noise} {made.settings[noise]:g}{chosen}",
        f"{what}: {ends}, {100 * made.interval.level:g}%, finite-sample; {n:,} rows",
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
