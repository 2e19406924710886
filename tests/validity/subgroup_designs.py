"""Families of boxes whose gaps are known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import expit

import calibrant as cal
from calibrant.kernels.boxes import SUMS
from calibrant.stats.subgroups.family import Family
from calibrant.views.boxes import Tables, tables_of

FINEST = 2.0**-29  # scores and rates are both read to 2^-30


def flat(rows: Any, events: Any, score: Any, weight: Any = None) -> Family:
    """Return a family of boxes as they are given, whatever they overlap; `score` is the mean of each."""
    n = np.atleast_1d(np.asarray(rows, dtype=float))
    k, p = (np.broadcast_to(np.asarray(v, dtype=float), n.shape) for v in (events, score))
    w = np.full(n.shape, 1.0 / n.size) if weight is None else np.asarray(weight, dtype=float)
    zero = np.zeros(n.size, dtype=np.int64)
    return Family(
        combined=((0,),),
        sets=(np.zeros((1, 4), dtype=np.int64),),
        shapes=((1,),),
        n=int(n.sum()),
        table=zero,
        place=np.stack([zero, zero - 1, zero - 1], axis=1),
        rows=n,
        events=k,
        expected=np.floor(p * 2.0**30) / 2.0**30 * n,
        variance=n * p * (1.0 - p),
        weight=w,
    )


def poisson_binomial(rates: Any) -> Any:
    """Return the probabilities of 0, 1, ... cases among independent rows."""
    out = np.ones(1)
    for rate in rates:
        out = np.convolve(out, [1.0 - rate, rate])
    return out


# ---- Rows with event rates that differ from row to row ----

Rows = tuple[Any, Any, dict[str, Any]]  # scores, event rates, covariates


def _covariates(rng: np.random.Generator, n: int) -> dict[str, Any]:
    return {"x": rng.uniform(size=n), "z": rng.uniform(size=n), "site": rng.choice(list("abcde"), n)}


def calibrated(rng: np.random.Generator, n: int) -> Rows:
    p = expit(rng.normal(-0.9, 0.6, n))
    return p, p, _covariates(rng, n)


def planted(rng: np.random.Generator, n: int) -> Rows:
    """A corner of two traits that is off, as much as the rows can show."""
    p, _, x = calibrated(rng, n)
    return p, np.clip(p + min(0.3, 10 / np.sqrt(n)) * ((x["x"] > 0.8) & (x["z"] > 0.8)), 0, 1), x


def rare(rng: np.random.Generator, n: int) -> Rows:
    p = rng.uniform(0.0, 0.01, n)
    return p, p * rng.choice([0.0, 2.0], n), _covariates(rng, n)


def far(rng: np.random.Generator, n: int) -> Rows:
    """Scores that have nothing to do with the rates."""
    return rng.uniform(0.7, 0.99, n), rng.uniform(0.0, 0.3, n), _covariates(rng, n)


def decided(rng: np.random.Generator, n: int) -> Rows:
    """Rates of 0 and 1, and a few others: the score is their mean, and right in every box on average."""
    x = _covariates(rng, n)
    p = np.full(n, 0.3)
    return p, np.where(rng.uniform(size=n) < 0.5, rng.uniform(size=n) < 0.3, rng.uniform(0.0, 0.6, n)), x


def ties(rng: np.random.Generator, n: int) -> Rows:
    p = rng.choice([0.1, 0.2, 0.5], n)
    return p, p, {"x": rng.integers(0, 4, n), "z": rng.integers(0, 2, n), "site": rng.choice(["a", "b"], n)}


DESIGNS: tuple[Callable[[np.random.Generator, int], Rows], ...] = (calibrated, planted, rare, far, decided, ties)


def drawn(design: Callable[[np.random.Generator, int], Rows], n: int, replicate: int) -> tuple[Any, Any]:
    """Return predictions, and the event rates of their rows."""
    rng = np.random.default_rng([0xB0E5, n, replicate, *design.__name__.encode()])
    p, eta, x = design(rng, n)
    return cal.predictions(rng.random(n) < eta, p, x), np.asarray(eta, dtype=float)


def gaps(tables: Tables, eta: Any, min_size: float) -> Any:
    """Return the true gap of every box, to `FINEST`."""
    assert tables.sample_rows is not None
    sums = np.zeros((tables.layout.cells, SUMS), dtype=np.int64)
    tables.layout.summed(tables.sample_rows.cells, np.ascontiguousarray(eta), tables.sample_rows.y, sums)
    true = Tables(layout=tables.layout, sums=sums, n=tables.n, sample_rows=None).family(min_size)
    family = tables.family(min_size)
    return (true.expected - family.expected) / family.rows


def family_and_gaps(design: Any, n: int, replicate: int, order: int = 2, min_size: float = 0.01) -> tuple[Family, Any]:
    """Return the family of boxes of drawn rows, and what is true of each."""
    data, eta = drawn(design, n, replicate)
    tables = tables_of(data, None, order, 0)
    return tables.family(min_size), gaps(tables, eta, min_size)
