"""Tests of the probabilities of several classes at once, with one p-value for all of them.

Each class against the rest is tested as two classes are, of the same simulated data sets: in each every row has one
class, drawn from its probabilities. So whatever is made of the classes' statistics together can be ranked again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from calibrant.arguments import check_int
from calibrant.arguments import names as names_of
from calibrant.data.predictions import MulticlassPredictions, Predictions
from calibrant.data.sketches.sample import identities_of
from calibrant.data.specs.coding import Coding
from calibrant.data.specs.local import LANDMARKS, LocalSpec, salt_of
from calibrant.data.survey import EVERY, survey_rows
from calibrant.errors import BadInput
from calibrant.kernels.draws import outcomes
from calibrant.kernels.runtime import one_thread
from calibrant.results import Outcome
from calibrant.stats.local.spectra import GLOBAL, LEAST, LOCAL, Statistics, adjusted, combined, statistics
from calibrant.stats.nulls import ranked
from calibrant.views.kernel_rows import LEAST_DRAWS, checked_classes, residuals_of
from calibrant.views.local_sums import (
    CLUSTERED,
    EXACT,
    Flips,
    blocks_of,
    featured,
    fixed_features,
    natural,
    region_of,
    steps_of,
    weighted_sums,
)
from calibrant.views.points import clusters_or_rows, hash_part, weights_of

Floats = NDArray[np.float64]

PREDICTED, OTHERS = "(predicted class)", "(other classes)"
MOST = 10  # classes tested by themselves, those expected most often; the others count as one
IMPOSSIBLE = "a row is of a class of score 0"
VALUES = 100_000  # rows times one more than the classes tested; of more rows a random part, which no label chooses


@dataclass(frozen=True)
class ClassRows:
    """Rows of the classes that are tested, and classes drawn from their probabilities."""

    data: MulticlassPredictions  # of all classes
    joined: MulticlassPredictions  # of the classes tested; its covariates hold the predicted class too
    edges: Floats  # shape (n, classes tested + 1): of the parts of [0, 1] in which a uniform number draws each class
    variables: tuple[str, ...]  # covariates that are tested, the predicted class last
    left_out: tuple[tuple[str, str], ...]  # covariates that are not, and why

    @classmethod
    def of(cls, data: MulticlassPredictions, variables: Iterable[str] | str | None, seed: int) -> ClassRows:
        """Join rare classes, and choose rows where there are too many, all without labels."""
        k = data.p.shape[1]
        common = np.sort(np.argsort(-data.p.sum(axis=0), kind="stable")[: MOST if k > MOST + 1 else k])
        most = VALUES // (len(common) + 1)
        if data.n > most:  # about so many, whole clusters where there are, chosen by the hash of their number
            data = data.part(np.flatnonzero(hash_part(clusters_or_rows(data), most, seed)))
        joined = data
        if len(common) < k:
            place = np.full(k, len(common), dtype=np.int32)
            place[common] = np.arange(len(common))
            p = np.column_stack([data.p[:, common], np.delete(data.p, common, axis=1).sum(axis=1)])
            names = (*(data.name_of(int(c)) for c in common), OTHERS)
            joined = replace(data, y=place[data.y], p=np.minimum(p, 1.0), classes=names, rest=False)
        used, left_out = _used(joined, variables, seed)
        columns = {name: data.covariates.column(name) for name in used}
        if PREDICTED in columns:
            raise BadInput(f"covariate {PREDICTED!r}: the test gives that name to something else, so rename the column")
        columns[PREDICTED] = pa.array([data.name_of(c) for c in data.predicted.tolist()])
        edges = np.column_stack([np.zeros(data.n), np.minimum(np.cumsum(joined.p, axis=1), 1.0)])
        edges[:, -1] = 1.0  # some class is drawn, whatever rounding leaves of the sum
        edges[:, :-1][joined.p[:, ::-1].cumsum(axis=1)[:, ::-1] == 0.0] = 1.0  # and none of probability 0
        return cls(data, replace(joined, covariates=pa.table(columns)), edges, (*used, PREDICTED), left_out)

    @property
    def classes(self) -> range:
        """Numbers of the classes tested."""
        return range(self.joined.p.shape[1])

    def drawn(self, draws: int, seed: int) -> Iterator[tuple[int, NDArray[np.uint8]]]:
        """Yield each class and in which draws each row is of it, shape (n, draws): of the same uniform numbers."""
        ids, salt = identities_of(self.data.n, seed), salt_of(seed)
        before = np.zeros((self.data.n, draws), dtype=np.uint8)
        for k in self.classes:
            upto = outcomes(ids, np.ascontiguousarray(self.edges[:, k + 1]), 0, draws, salt)
            yield k, upto - before
            before = upto

    @property
    def contradicted(self) -> int:
        """Rows whose class had the probability 0."""
        return int((self.data.p[np.arange(self.data.n), self.data.y] == 0.0).sum())

    def refuted(self, k: int) -> bool:
        """Whether the probability of a class was 0 or 1 in a row that says otherwise."""
        p, there = self.joined.p[:, k], self.joined.y == k
        return bool((there & (p == 0.0) | ~there & (p == 1.0)).any())

    def exchanged(self, inside: NDArray[np.bool_]) -> dict[str, str | float]:
        """Which class gets too much at the cost of which, of some of the rows tested."""
        return exchanged(self.data, inside)


def exchanged(data: MulticlassPredictions, inside: NDArray[np.bool_] | None = None) -> dict[str, str | float]:
    """Which class gets too much of some rows at the cost of which, and by how much: the largest contrast.

    Mean residuals of all classes add up to 0; the pair that differs most is the smallest and the largest.
    """
    residual = residuals_of(data)[1]
    weight = weights_of(data) * (1.0 if inside is None else inside)
    mean = weight @ residual / weight.sum()
    over, under = int(mean.argmin()), int(mean.argmax())
    return {
        "over_class": data.name_of(over),
        "over_gap": float(mean[over]),
        "under_class": data.name_of(under),
        "under_gap": float(mean[under]),
    }


def _used(
    data: MulticlassPredictions, variables: Iterable[str] | str | None, seed: int
) -> tuple[tuple[str, ...], tuple[tuple[str, str], ...]]:
    """The covariates that are tested, and those that are not: of all, what reproduces some class is left out."""
    if variables is not None:
        return names_of("variables", variables, what="a covariate"), ()
    every = () if data.covariates is None else (EVERY,)
    seen = [survey_rows(data.one_vs_rest(k), every, seed) for k in range(data.p.shape[1])]
    out = {name: why for one in seen if one is not None for name, why in one.left_out}
    return tuple(n for n in (() if seen[0] is None else seen[0].names) if n not in out), tuple(out.items())


# ---- The local test ----


def local_class_test(
    data: MulticlassPredictions,
    *,
    variables: Iterable[str] | str | None = None,
    draws: int = 999,
    seed: int = 0,
    landmarks: int = LANDMARKS,
) -> Outcome:
    r"""Test local calibration of all classes at once, with features that see no label.

    Estimand of the raw statistic: ``sum_k E[e_k k(z_k, z_k') e_k']`` with ``e_k = 1{y = k} - p_k`` and
    ``z_k = (p_k, predicted class, x)``; zero when ``P(Y = k | p, x) = p_k`` for every class, positive otherwise.

    **Assumes.** Independent rows (or clusters); covariates chosen without the labels.
    **Guarantee.** Level alpha at any number of rows, for ``p_value``, ``p_global``, ``p_local``, each of ``class_p``
    and the smallest of ``class_adjusted_p`` and ``variable_adjusted_p``: given the rows, classes are drawn from the
    probabilities stated, the same for every statistic, so that data and draws are exchangeable under the null. With
    clusters the signs of whole clusters' residual vectors are drawn: asymptotic in their number. The pair of classes in
    ``over_class`` and ``under_class`` is an estimate, chosen by these outcomes.
    **Method.** The statistics of the test of two classes, of each class against the rest; the predicted class is one
    more covariate. Each becomes a rank among the draws; so do, over classes, the sums of the logarithms of each
    statistic's ranks, which add up what every class shows a little of. The weighted harmonic mean of all is ranked
    again: half of the weight on classes, equally, half on sums. **Cost.** About that of the test of two classes for
    each class; of more than 100,000 / (classes tested + 1) rows a random part is tested, 25,000 of three classes; the
    pair of classes is that of all rows. **Reads.** Rows.
    """
    checked = checked_classes(data)
    draws = check_int("draws", draws, LEAST_DRAWS, hint="such as 999")
    rows = ClassRows.of(checked, variables, seed)
    own = draws if checked.cluster is None else 0  # clusters keep their outcomes
    each = [_against_the_rest(rows, k, drawn, (draws, seed, landmarks)) for k, drawn in rows.drawn(own, seed)]
    results = [one.statistics for one in each]
    names, p = tuple(map(rows.joined.name_of, rows.classes)), [ranks_of(s.by_name) for s in results]
    by_class = adjusted({name: np.log(_harmonic(ranks)) for name, ranks in zip(names, p, strict=True)})
    sure = [rows.refuted(k) for k in rows.classes]
    impossible = rows.contradicted
    every = dict.fromkeys(name for one in results for name in one.variables)
    surprises = {n: np.max([s.variables[n] for s in results if n in s.variables], axis=0) for n in every}
    by_variable, first = adjusted(surprises), each[0]
    return Outcome(
        method="detect.local_calibration_test",
        statistic=float(sum(one.squared for one in each)),
        p_value=0.0 if impossible else together_of_classes(p, GLOBAL | LOCAL),
        alternative="the rate of some class given scores and covariates is not its score",
        null="given scores and covariates, classes are independent with the probabilities stated",
        law=f"certain: {IMPOSSIBLE}" if impossible else first.law,
        settings={
            "features": "default",
            "n": rows.data.n,
            "rows": checked.n,
            "draws": draws,
            "seed": seed,
            "classes": len(names),
            "landmarks": landmarks,
            "columns": tuple(one.spec.columns for one in each),
            "variables": tuple(c.name for c in first.how if c.name != PREDICTED),
            "left_out": tuple(tuple(pair) for pair in rows.left_out),
            "weights": tuple((GLOBAL | LOCAL).items()),
        },
        parts={
            "p_global": together_of_classes(p, GLOBAL),
            "p_local": together_of_classes(p, LOCAL),
            "contradicted": impossible,
            "classes": names,
            "class_p": tuple(0.0 if s else by_class[name][0] for name, s in zip(names, sure, strict=True)),
            "class_adjusted_p": tuple(0.0 if s else by_class[name][1] for name, s in zip(names, sure, strict=True)),
            "variables": tuple(by_variable),
            "variable_p": tuple(one for one, _ in by_variable.values()),
            "variable_adjusted_p": tuple(every for _, every in by_variable.values()),
            **exchanged(checked),
            **_region(rows, each),
        },
    )


@dataclass(frozen=True)
class Against:
    """Sums and statistics of one class against the rest."""

    rows: Predictions
    spec: LocalSpec
    how: tuple[Coding, ...]
    statistics: Statistics
    sums: tuple[Floats, Floats, Floats]  # of the columns: residuals, weights, rows
    squared: float  # equation 4
    law: str


def _against_the_rest(rows: ClassRows, k: int, drawn: NDArray[np.uint8], how: tuple[int, int, int]) -> Against:
    """One class, of data sets in which the same classes are drawn for all."""
    draws, seed, landmarks = how
    one, own = rows.joined.one_vs_rest(k), drawn.shape[1]
    spec, used, _ = fixed_features(one, rows.variables, own, seed, landmarks)
    law = EXACT
    with one_thread():
        sums = weighted_sums(one, spec, used, own, drawn)
        score, gram, mass = natural(sums)
        if own == 0:
            flips = Flips.of(spec, one, used, draws)
            score, law = np.column_stack([score[:, 0], flips.sums / steps_of(spec)[:, None]]), CLUSTERED
        result = statistics(score, gram, np.arange(2, 2 + spec.joint), blocks_of(spec), LEAST)
    return Against(one, spec, used, result, (score[:, 0], mass, sums.rows), sums.squared, law)


def _region(rows: ClassRows, each: Sequence[Against]) -> dict[str, object]:
    """The step or level in which some class deviates most from the rest, and the pair of classes that differs there."""
    k = int(np.argmax([abs(one.statistics.z) for one in each]))
    one = each[k]
    column = one.statistics.column
    if column < 0:
        return {}
    parts = region_of(one.spec, one.how, one.statistics, one.sums[0], one.sums[1:])
    inside = np.concatenate([f[:, column] != 0.0 for _, f in featured(one.rows, one.spec, one.how)])
    inside = ~inside if parts["region_side"] == "under" else inside
    clusters = {}
    if rows.data.cluster is not None:
        clusters = {"region_clusters": tuple(len(np.unique(rows.data.cluster[at])) for at in (inside, ~inside))}
    pair = {f"region_{name}": value for name, value in rows.exchanged(inside).items()}
    return {**parts, "region_class": rows.joined.name_of(k), **pair, **clusters}


# ---- Ranks of several classes, joined ----


def ranks_of(by_name: Mapping[str, Floats]) -> dict[str, Floats]:
    """The rank of each statistic among data and draws."""
    return dict(zip(by_name, ranked(np.array(list(by_name.values()))), strict=True))


def _harmonic(p: Mapping[str, Floats]) -> Floats:
    """The weighted mean of one over each rank of a class: large where it speaks against the null."""
    weights = {name: w for name, w in (GLOBAL | LOCAL).items() if name in p}
    return np.average([1.0 / p[name] for name in weights], axis=0, weights=list(weights.values()))


def together_of_classes(p: Sequence[Mapping[str, Floats]], weights: Mapping[str, float]) -> float:
    """The p-value of all classes, from the ranks of each and the sums of their logarithms; 1 if there are none."""
    ranks, each = [], []
    for name, weight in weights.items():
        there = [one[name] for one in p if name in one]
        if there:
            ranks += [*there, ranked(-np.log(there).sum(axis=0))[0]]
            each += [weight / len(there)] * len(there) + [weight]
    return float(combined(np.array(ranks), each)[0]) if ranks else 1.0
