"""A fitted map applied to files of any size."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from calibrant.arguments import COMMAND
from calibrant.data.classes.columns import ClassInputs, class_scores
from calibrant.data.classes.rows import class_probabilities
from calibrant.data.columns import require, score_values
from calibrant.data.reading import Reading
from calibrant.data.rewrite import rewrite
from calibrant.data.sketches.sample import Origin, hashes_of
from calibrant.data.sources.source import FITTED_ON, REPAIRED, Source
from calibrant.data.specs.faults import Faults
from calibrant.data.specs.spec import Spec
from calibrant.errors import BadInput, first_line
from calibrant.repair.fitted import Calibrator, Hashes


def repaired_name(score: str) -> str:
    return f"{score}{REPAIRED}"


def fitted_name(score: str) -> str:
    return f"{score}{FITTED_ON}"


def checked_calibrator(one: Calibrator, source: Source, scores: Sequence[str]) -> None:
    """Refuse a map that cannot be applied to these columns of a source."""
    if len(scores) != one.classes:
        some = f"{one.classes} classes: name a column each, in the order of the fit" if one.several else "two classes"
        raise BadInput(f"--score names {len(scores)} columns, and this calibrator is of {some}")
    require(scores, source.columns, "score")
    require(one.reads, source.columns, "covariate")


@dataclass(frozen=True)
class Output:
    """Where repaired rows go, and what stands next to them."""

    path: Path
    # Sorted: hashed identities of rows that the map was fitted on: a second column marks them.
    fitted_rows: Hashes | None = None


def apply_calibrator(
    one: Calibrator,
    source: Source,
    spec: Spec,
    output: Output,
    progress: Callable[[int], None] | None = None,
    warn: Callable[[str], None] | None = None,
) -> int:
    """Write every row of a source with its repaired score; return the rows written.

    The spec names score and key, and the seed of the rows' identities. Where it drops rows, a missing score has no
    repaired score; otherwise it is refused, as is one out of range, and a column that the format cannot hold: nothing
    is written then. `warn` is called with what to know of the scores. Their scale is no reason to stop: the rows that
    the map was fitted on reported it, and new ones may all be low.
    """
    import pyarrow as pa

    faults, score = Faults(caller=COMMAND), spec.score
    named = replace(spec, seed=0)  # a map's own seed decides what it draws

    def added(batch: pa.RecordBatch, part: str, row: int) -> dict[str, pa.Array]:
        p = score_values(batch.column(score), score, spec.percent)
        faults.see(p, spec.percent, part)
        faults.note_gaps(batch, spec, one.reads, part, row)
        sound = (p >= 0.0) & (p <= 1.0)
        bad = not sound.all()
        if bad:
            faults.note(p, None, part, row)
        ids = Origin.of(batch, named, part, row).identities(len(p), named)
        values = one.scores(np.where(sound, p, 0.5) if bad else p, columns=batch, ids=ids)
        values = 100.0 * values if spec.percent else values  # in the unit of the scores next to them
        out = {repaired_name(score): pa.array(values, mask=~sound if bad else None)}
        if output.fitted_rows is not None:
            sampled_by = Origin.of(batch, spec, part, row).identities(len(p), spec)
            out[fitted_name(score)] = pa.array(among(hashes_of(sampled_by), output.fitted_rows))
        return out

    def settle() -> None:
        faults.check(spec, source.place)
        if warn is not None and faults.mostly_low(spec):
            fix = "multiply them by 100, for the calibrator is of percentages" if one.percent else "leave --percent out"
            warn(f"column {score!r}: most scores are under 1 percent; if they are probabilities, {fix}")

    source = source.knowing([c.name for c in one.codings if c.of_text])
    try:
        return rewrite(source, output.path, (score, *one.reads, *spec.key), added, settle, progress)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as e:
        raise BadInput(f"cannot write {str(output.path)!r}: {first_line(e)}; another format may hold it") from None


def apply_classes(
    one: Calibrator,
    source: Source,
    options: Reading,
    path: Path,
    fitted: NDArray[np.bool_] | None = None,
    progress: Callable[[int], None] | None = None,
) -> int:
    """Write every row of a source with the repaired probability of each class; return the rows written.

    The options name the columns, in the order of the fit, and how they are read: of logits probabilities are written.
    `fitted` marks rows that the map was fitted on, in the order of the source, in a column next to the first class's.
    """
    import pyarrow as pa

    scores, drops, at = options.scores, options.missing == "drop", 0

    def added(batch: pa.RecordBatch, part: str, row: int) -> dict[str, pa.Array]:
        nonlocal at
        p = class_scores(batch, options)
        sound = np.ones(len(p), dtype=np.bool_)
        if drops:
            sound &= ~np.isnan(p).any(axis=1)
        called = ClassInputs(scores=scores, place=lambda at: source.place(part, row + at), caller=COMMAND)
        p = class_probabilities(p, sound, called)
        ids = Origin.of(batch, Spec(label="", score=scores[0]), part, row).identities(len(p), Spec(label="", score=""))
        values = one.scores(np.where(sound[:, None], p, 1.0 / len(scores)), columns=batch, ids=ids)
        values = 100.0 * values if options.percent else values
        out = {repaired_name(c): pa.array(values[:, k].copy(), mask=~sound) for k, c in enumerate(scores)}
        if fitted is not None:
            out[fitted_name(scores[0])] = pa.array(fitted[at : at + len(p)])
        at += len(p)
        return out

    source = source.knowing([c.name for c in one.codings if c.of_text])
    try:
        return rewrite(source, path, (*scores, *one.reads), added, lambda: None, progress)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as e:
        raise BadInput(f"cannot write {str(path)!r}: {first_line(e)}; another format may hold it") from None


def among(hashes: Hashes, ordered: Hashes) -> NDArray[np.bool_]:
    """Which hashes are in an ordered array."""
    if not len(ordered):
        return np.zeros(len(hashes), dtype=bool)
    at = np.minimum(np.searchsorted(ordered, hashes), len(ordered) - 1)
    result: NDArray[np.bool_] = ordered[at] == hashes
    return result
