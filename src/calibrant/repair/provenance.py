"""Which rows a map was fitted on, in a few numbers: enough to refuse judging it on them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.kernels.reference import mix

KEPT = 64  # hashed rows that a map carries
LOOK = 4096  # distinct hashes, about, from which they and the share of repeated rows are taken
FEW = 8  # distinct pairs of score and label below which equal rows are no evidence of the same rows
CHANCE = 1e-6  # an overlap is claimed where so many common rows have at most this probability without one


@dataclass(frozen=True, kw_only=True)
class FittedOn:
    """The rows of a fit.

    Parameters
    ----------
    rows, cases : int
        0 rows: nothing was fitted.
    digest : str
        Of the scores and labels, whatever their order; empty if nothing was fitted.
    sample : tuple of str
        Hashes of up to 64 pairs of score and label that occur once among the rows.
    repeated : float
        Share of rows whose pair of score and label occurs more than once.
    distinct : int
        Pairs of score and label, counted up to 64.
    """

    rows: int = 0
    cases: int = 0
    digest: str = ""
    sample: tuple[str, ...] = ()
    repeated: float = 1.0
    distinct: int = 0

    @classmethod
    def from_dict(cls, d: Mapping[str, Any]) -> FittedOn:
        """Rebuild from plain data."""
        return cls(
            rows=int(d["rows"]),
            cases=int(d["cases"]),
            digest=str(d["digest"]),
            sample=tuple(f"{int(str(v), 16):016x}" for v in d.get("sample", ())),
            repeated=float(d.get("repeated", 1.0)),
            distinct=int(d.get("distinct", 0)),
        )


def fitted_on(data: Any) -> FittedOn:
    """Describe the rows of a fit; of several classes, every class but the first counts as a case."""
    hashes = row_hashes(data)
    once, repeated, distinct = _looked_at(hashes)
    return FittedOn(
        rows=data.n,
        cases=int(np.count_nonzero(data.y)),
        digest=_digest(hashes),
        sample=tuple(f"{int(h):016x}" for h in once[:KEPT]),
        repeated=repeated,
        distinct=distinct,
    )


def row_hashes(data: Any) -> Any:
    """Return one number for the score, or the scores of all classes, and label of each row."""
    state = np.zeros(data.n, dtype=np.uint64)
    for column in data.p.T if data.p.ndim == 2 else (data.p,):
        state = mix(state ^ np.ascontiguousarray(column).view(np.uint64))
    return mix(state ^ data.y.astype(np.uint64))


def _digest(hashes: Any) -> str:
    return f"{int(np.add.reduce(hashes, dtype=np.uint64)):016x}{int(np.bitwise_xor.reduce(hashes)):016x}"


def _looked_at(hashes: Any) -> tuple[Any, float, int]:
    """Return the smallest hashes that occur once, the share of rows whose hash repeats, and distinct hashes up to 64.

    Equal rows have equal hashes, so that all rows below a bound show exactly which of them repeat.
    """
    near = hashes
    if len(hashes) > 2 * LOOK:
        near = hashes[hashes <= np.uint64(int(LOOK / len(hashes) * 2**64))]
        if len(near) < KEPT:  # few distinct rows, each many times: all of them are looked at
            near = hashes
    found, count = np.unique(near, return_counts=True)
    return found[count == 1], float(count[count > 1].sum() / max(count.sum(), 1)), min(len(found), KEPT)


def overlap(fitted: FittedOn, data: Any) -> str:
    """Say how rows overlap those of a fit, as far as scores and labels can tell; empty if they seem to be others.

    The same rows in any order are known by their digest, unless there are fewer than 8 distinct pairs of score and
    label. Otherwise the pairs that occurred once in the fit are looked for: without an overlap each is found with at
    most the probability that a row repeats, in the fit or here, and more finds than that allows (exact binomial, 1e-6)
    are an overlap. Where most rows repeat (scores of few values) nothing can be told, and nothing is claimed.
    """
    from scipy.special import bdtrc

    if not fitted.rows:
        return ""
    hashes = row_hashes(data)
    if fitted.rows == data.n and fitted.digest == _digest(hashes) and fitted.distinct >= FEW:
        return "the very rows it was fitted on"
    sample = np.array([int(h, 16) for h in fitted.sample], dtype=np.uint64)
    if not len(sample):
        return ""
    found = int(np.isin(sample, hashes[hashes <= sample.max()]).sum())
    chance = max(_looked_at(hashes)[1], fitted.repeated) + 1.0 / (data.n + 1)
    if found < 2 or chance >= 1.0 or bdtrc(found - 1, len(sample), chance) > CHANCE:
        return ""
    return f"rows it was fitted on: {found} of {len(sample)} looked for are here"
