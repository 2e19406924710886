"""What the local test finds in its sums: p-values of everyone, of the joint kernel, and of each variable."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.stats.spectra import (
    FLAT,
    Block,
    Centred,
    Spectrum,
    centred,
    combined,
    level_weights,
    ranks,
    scanned,
    spectrum,
    surprise_of,
)

GAMMA = 0.1  # of a single variable's spectrum
GLOBAL = {"intercept": 2.0, "intercept and slope": 1.0}
LOCAL = {
    "joint": 0.25,
    "joint 0.1": 0.25,
    "joint 0.01": 0.75,
    "additive": 0.25,
    "additive 0.1": 0.25,
    "additive 0.01": 0.25,
    "largest step": 2.0,
    "strongest variable": 1.0,
}


@dataclass(frozen=True)
class Findings:
    """P-values among data and draws.

    Parameters
    ----------
    p_values : Mapping of str to float
        Of every statistic.
    overall, everyone, local : float
        Combined: all statistics, those of intercept and slope, the others.
    joint : float
        Of the joint kernel's three statistics.
    variables : Mapping of str to (float, float)
        P-value of each variable, by itself and adjusted for all of them.
    column : int
        The step or level with the largest standard score; -1 if none.
    z : float
        That score: positive where cases are more than the model says, the overall level and slope left aside.
    excess : float
        The sum of residuals behind it.
    """

    p_values: Mapping[str, float]
    overall: float
    everyone: float
    local: float
    joint: float
    variables: Mapping[str, tuple[float, float]]
    column: int
    z: float
    excess: float


def findings(score: Any, gram: Any, joint: Any, blocks: Sequence[Block], least: float) -> Findings:
    """Return what sums say; the first column of `score` is the data's, the others are draws under the null.

    Parameters
    ----------
    score : float array of shape (columns, 1 + draws)
        Sums of features times residuals; columns 0 and 1 are the constant and the logit.
    gram : float array of shape (columns, columns)
        Null covariance of the sums.
    joint : int array
        Columns of the joint kernel.
    blocks : sequence of Block
        Columns of each variable.
    least : float
        Null variance from which on a step or level is scanned.
    """
    c = centred(score, gram)
    by_name = {"intercept": c.intercept, "intercept and slope": c.slope}
    by_name |= flattened("joint", spectrum(c, joint)) | flattened("additive", additive(c, blocks))
    column, z, excess = -1, 0.0, 0.0
    kept, squares = scanned(c, np.concatenate([b.steps for b in blocks] or [np.zeros(0, np.int64)]), least)
    if len(kept):
        by_name["largest step"] = squares.max(axis=0)
        column = strongest(c, kept, squares[:, 0])
        excess = float(c.score[column, 0])
        z = excess / float(np.sqrt(c.covariance[column, column]))
    each = {b.name: s for b in blocks if (s := surprise(c, b, least)) is not None}
    if each:
        by_name["strongest variable"] = np.max(list(each.values()), axis=0)
    p = dict(zip(by_name, ranks(np.array(list(by_name.values()))), strict=True))
    return Findings(
        p_values={name: float(v[0]) for name, v in p.items()},
        overall=together(p, GLOBAL | LOCAL),
        everyone=together(p, GLOBAL),
        local=together(p, LOCAL),
        joint=together(p, {k: w for k, w in LOCAL.items() if k.startswith("joint")}),
        variables=adjusted(each),
        column=column,
        z=z,
        excess=excess,
    )


def strongest(c: Centred, columns: Any, squares: Any) -> int:
    """Return the column with the largest score; of equal ones, such as a level and the only other, the smallest."""
    near = columns[squares >= squares.max() * (1.0 - 1e-6)]
    return int(near[np.argmin(c.share[near])])


def flattened(name: str, s: Spectrum | None) -> dict[str, Any]:
    """Return the three statistics of a spectrum."""
    return {} if s is None else {name if g is None else f"{name} {g:g}": s.statistic(g) for g in FLAT}


def additive(c: Centred, blocks: Sequence[Block]) -> Spectrum | None:
    """Return the spectrum of the sum of the variables' kernels."""
    if not blocks:
        return None
    weights = [level_weights(c, b.smooth) if b.levels else np.ones(len(b.smooth)) for b in blocks]
    return spectrum(c, np.concatenate([b.smooth for b in blocks]), np.concatenate(weights))


def surprise(c: Centred, b: Block, least: float) -> Any:
    """Return the larger of what one variable's spectrum and its steps say; None if nothing is left of it."""
    said = []
    s = spectrum(c, b.smooth, level_weights(c, b.smooth) if b.levels else 1.0)
    if s is not None:
        said.append(s.surprise(GAMMA))
    kept, squares = scanned(c, b.steps, least)
    if len(kept):
        said.append(surprise_of(squares))
    return np.max(said, axis=0) if said else None


def together(p: Mapping[str, Any], weights: Mapping[str, float]) -> float:
    """Return the p-value of several statistics at once; 1 if there are none."""
    names = [k for k in weights if k in p]
    return float(combined(np.array([p[k] for k in names]), [weights[k] for k in names])[0]) if names else 1.0


def adjusted(each: Mapping[str, Any]) -> dict[str, tuple[float, float]]:
    """Return each variable's p-value, and that of the largest surprise of all variables under the null reaching it."""
    if not each:
        return {}
    most = np.max(list(each.values()), axis=0)
    own = ranks(np.array(list(each.values())))[:, 0]
    tie = 1e-9
    return {
        name: (float(p), float((1 + np.count_nonzero(most[1:] >= s[0] - tie)) / len(most)))
        for p, (name, s) in zip(own, each.items(), strict=True)
    }
