"""The detectors of the strong calibration test: what is asked, and rows in the order in which models suspect them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.arguments import check_int, checked_seed, choice, names, number
from calibrant.data.predictions import codes_of
from calibrant.data.sketches.sample import identities_of
from calibrant.errors import NotComputable
from calibrant.kernels.draws import Draws, outcomes, words
from calibrant.search.corners import pool_of
from calibrant.search.models import (
    Fitted,
    Floats,
    Models,
    Pool,
    Rows,
    Sample,
    WeightedSample,
    cross_fit,
    hash_split,
    predicted,
)
from calibrant.stats.cusum import (
    Alternative,
    BinnedPath,
    Boundary,
    Detector,
    Path,
    first_multiplied,
    first_simulated,
    multiplied,
    multiplied_squares,
    off_by,
    path,
    simulated,
    simulated_squares,
    within,
)
from calibrant.views.features import Features, features_of, rows_of
from calibrant.views.people import clusters_in
from calibrant.views.points import even_weights

Ids = NDArray[np.uint64]
ALTERNATIVES: tuple[Alternative, ...] = ("two-sided", "greater", "less")
DETECTORS: tuple[Detector, ...] = ("default", "paper", "authors")
LEAST_ROWS = 20  # with fewer, a fold of five has under four
INFLATED = "; may reject too often here (in simulations up to 18% of calibrated models where 10% was asked)"
CLUSTERED = "asymptotic in the number of clusters: a random sign for each cluster's scores"
FOLDS = 5  # each fit sees four fifths of the rows; more folds cost more fits


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What the strong calibration test, its comparators and its diagnoses are asked with; each is described there."""

    variables: Iterable[str] | str | None = None
    tolerance: float = 0.0
    alternative: Alternative = "two-sided"
    seed: int = 0
    detector: Detector = "default"
    models: Models | None = None
    min_size: float = 0.0
    folds: int = FOLDS

    def checked(self) -> Settings:
        """The settings as they will be used; refuse one that cannot be."""
        return replace(
            self,
            alternative=choice("alternative", self.alternative, ALTERNATIVES),
            detector=choice("detector", self.detector, DETECTORS),
            tolerance=number("tolerance", self.tolerance, least=0, below=1, hint="such as 0.05"),
            min_size=number("min_size", self.min_size, least=0, below=1, hint="such as 0.05"),
            folds=check_int("folds", self.folds, 2, 20),
            seed=checked_seed(self.seed),
            variables=None if self.variables is None else names("variables", self.variables, what="a covariate"),
        )


@dataclass(frozen=True, kw_only=True)
class DetectorInputs:
    """Data and settings put together: everything that fixes the test."""

    settings: Settings  # checked
    sample: Sample  # features, outcomes, scores and weights (mean one)
    edge: Boundary
    pool: Pool
    memory: dict[Any, Any]  # of the predictions: what was fitted to them
    cluster: Rows | None = None  # shape (n,): cluster of each row, 0 to C - 1; None where rows are independent
    repeats = True  # repeated fitting is exact
    stops = True  # repeated fitting may stop at the tenth draw that reaches the data

    @property
    def n(self) -> int:
        """Rows."""
        return len(self.edge.p)

    @property
    def clusters(self) -> int:
        """Rows, or clusters: what is independent of each other."""
        return self.n

    @cached_property
    def fold(self) -> Rows:
        """Fold of each row, dealt without looking at labels."""
        return hash_split(self.n, self.settings.folds, self.settings.seed, self.cluster)

    @cached_property
    def ids(self) -> Ids:
        """Identities of the rows, which key their simulated outcomes."""
        result: Ids = identities_of(self.n, self.settings.seed)
        return result

    def simulated(self, rows: Rows, rate: Floats, which: Draws) -> NDArray[np.uint8]:
        """Outcomes of some rows, simulated at a rate, shape (rows, draws)."""
        return outcomes(self.ids[rows], rate, which.first, which.count, which.salt)

    def simulated_words(self, rows: Rows, rate: Floats, first: int, salt: int) -> Ids:
        """The same of 64 draws, as the bits of a number a row."""
        result: Ids = words(self.ids[rows], rate, rate, first, salt)[:, 0]
        return result

    def clusters_of(self, rows: Rows) -> tuple[Rows, Ids]:
        """The clusters of some rows, numbered from 0, and the identities of each; of independent rows each is one."""
        return np.arange(len(rows)), self.ids[rows]

    def people(self, rows: Rows, inside: NDArray[np.bool_]) -> tuple[int, int]:
        """Rows, or clusters, that have some of these rows, and that have others of them."""
        outside, own = clusters_in(inside.astype(np.intp), self.clusters_of(rows)[0], 2).tolist()
        return own, outside

    def reported(self, **_people: object) -> dict[str, object]:
        """What results tell of how many people, by name; nothing of independent rows, which are counted anyway."""
        return {}

    def clusters_along(self, _rows: Rows, _at: Rows) -> dict[str, tuple[int, ...]]:
        """How many clusters the rows up to each point have, 0 before the first, for curves."""
        return {}

    def drawn(self, paths: Sequence[Path], rows: Rows, draws: int, salt: int) -> Floats:
        """Statistics of paths over some rows, of outcomes simulated at the edge, models held (Theorem 1)."""
        return simulated(paths, self.edge.rows(rows), self.ids[rows], draws, salt, self.settings.detector)

    def drawn_squares(self, paths: Sequence[BinnedPath], rows: Rows, draws: int, salt: int) -> Floats:
        """The same of paths in groups, whose squares are added up (Theorem 4)."""
        return simulated_squares(paths, self.edge.rows(rows), self.ids[rows], draws, salt)

    def first_scores(self, path: Path, rows: Rows, draws: int, salt: int) -> Iterator[Floats]:
        """The score of each step of a path over some rows, in each of the first draws that `drawn` sums."""
        return first_simulated(path, self.edge.rows(rows), self.ids[rows], draws, salt)

    def law(self, law: str) -> str:
        """What the null with models held rests on."""
        return law

    def paths(self, g: Floats, rows: Rows | None = None) -> tuple[Path, ...]:
        """The path of each model; of some rows, numbered again, if they are given."""
        edge = self.edge if rows is None else self.edge.rows(rows)
        weights = self.sample.mass if rows is None else self.sample.mass_of(rows)
        s = self.settings
        return tuple(path(one, edge, s.alternative, s.detector, weights, s.min_size) for one in g)

    def with_outcomes(self, y: NDArray[Any]) -> DetectorInputs:
        """The same question of other outcomes, which remembers nothing."""
        return replace(self, sample=replace(self.sample, y=np.asarray(y, dtype=np.float64)), memory={})

    def part(self, rows: Rows) -> DetectorInputs:
        """The question of some rows, which remembers nothing."""
        return replace(self, sample=self.sample.part(rows), edge=self.edge.rows(rows), memory={})

    @property
    def impossible(self) -> int:
        """Outcomes that have probability zero under every rate within the tolerance."""
        y = self.sample.y > 0
        return self.edge.impossible(y, ~y, self.settings.alternative)

    @property
    def train(self) -> dict[str, int]:
        """Rows that one fit of each learner may see."""
        return {learner.name: learner.most(self.sample.x) for learner in self.pool.learners}

    @property
    def looks_for(self) -> str:
        """What the test looks for, in words."""
        return f"for some group the event rate is {off_by(self.edge.tolerance, self.settings.alternative)}"

    @property
    def doubts(self) -> str:
        """What the test doubts, as a formula."""
        return within(self.edge.tolerance, self.settings.alternative)


@dataclass(frozen=True, kw_only=True)
class ClusteredInputs(DetectorInputs):
    """The same of rows in clusters, which keep their scores: the null is one random sign for each cluster."""

    cluster: Rows
    repeats = False

    @property
    def clusters(self) -> int:
        return int(self.cluster.max()) + 1

    def clusters_of(self, rows: Rows) -> tuple[Rows, Ids]:
        kept, codes = np.unique(self.cluster[rows], return_inverse=True)
        return codes, identities_of(self.clusters, self.settings.seed)[kept]

    def reported(self, **people: object) -> dict[str, object]:
        return people

    def clusters_along(self, rows: Rows, at: Rows) -> dict[str, tuple[int, ...]]:
        first = np.sort(np.unique(self.cluster[rows], return_index=True)[1])
        return {"people": (0, *np.searchsorted(first, at, side="right").tolist())}

    def drawn(self, paths: Sequence[Path], rows: Rows, draws: int, salt: int) -> Floats:
        y, clusters = self.sample.y[rows], self.clusters_of(rows)
        return multiplied(paths, y, clusters, draws, salt, self.settings.detector)

    def drawn_squares(self, paths: Sequence[BinnedPath], rows: Rows, draws: int, salt: int) -> Floats:
        return multiplied_squares(paths, self.sample.y[rows], self.clusters_of(rows), draws, salt)

    def first_scores(self, path: Path, rows: Rows, draws: int, salt: int) -> Iterator[Floats]:
        return first_multiplied(path, self.sample.y[rows], self.clusters_of(rows), draws, salt)

    def law(self, law: str) -> str:
        return CLUSTERED + (INFLATED if law.endswith(INFLATED) else "")

    def part(self, rows: Rows) -> DetectorInputs:
        return replace(super().part(rows), cluster=self.clusters_of(rows)[0])


@dataclass(frozen=True, kw_only=True)
class ClassInputs(DetectorInputs):
    """The same of one class against the rest, where all classes see one class drawn for each row."""

    stops = False
    # `low`, `high`, shape (n,): a row is drawn to be of the class where its uniform number is from one to the other.
    low: Floats
    high: Floats

    @classmethod
    def of(cls, q: DetectorInputs, low: Floats, high: Floats) -> ClassInputs:
        """The question of two classes, with the numbers that draw the class."""
        return cls(**{f.name: getattr(q, f.name) for f in fields(q)}, low=low, high=high)

    def simulated(self, rows: Rows, _rate: Floats, which: Draws) -> NDArray[np.uint8]:
        below, upto = (
            outcomes(self.ids[rows], at[rows], which.first, which.count, which.salt) for at in (self.low, self.high)
        )
        return upto - below

    def simulated_words(self, rows: Rows, _rate: Floats, first: int, salt: int) -> Ids:
        below, upto = words(self.ids[rows], self.low[rows], self.high[rows], first, salt).T
        result: Ids = upto & ~below
        return result


def detector_inputs(data: object, settings: Settings) -> DetectorInputs:
    """Check the settings, and put them together with the rows."""
    rows, s = rows_of(data), settings.checked()
    if rows.n < LEAST_ROWS:
        raise NotComputable(f"there are {rows.n:,} rows: residual models need at least {LEAST_ROWS}")
    sampled: Callable[..., Sample] = Sample
    if rows.weights is not None:
        sampled = partial(WeightedSample, weights=even_weights(rows))
    inputs: Callable[..., DetectorInputs] = DetectorInputs
    if rows.cluster is not None:
        codes = codes_of(rows).astype(np.int64)
        if (count := int(codes.max()) + 1) < 2 * s.folds:
            need = f"{s.folds} folds of whole clusters need at least {2 * s.folds}"
            raise NotComputable(f"there are {count:,} clusters: {need}")
        inputs = partial(ClusteredInputs, cluster=codes)
    return inputs(
        settings=s,
        sample=sampled(x=features_of(rows, s.variables), y=rows.y.astype(np.float64), p=rows.p),
        edge=Boundary.of(rows.p, s.tolerance),
        pool=pool_of(s.detector, s.models, rows.n),
        memory=rows.cache,
    )


# ---- Detectors: what the models predict of rows that they have not seen, and the paths that this makes ----


@dataclass(frozen=True, kw_only=True)
class Fits:
    """Fitted learners, and which of them have not seen a row: what predicts the rows tested, as they are or altered."""

    pool: Pool
    fitted: tuple[tuple[Fitted, ...], ...]  # the learners, fitted to several sets of rows
    # Shape (n,): of every row of the question, which set of fits predicts it, none of whose rows it is; -1 for a row
    # that is not tested.
    part: Rows

    def predict(self, model: int, x: Features, p: Floats, part: Rows, of: str | None = None) -> Floats:
        """One model's predictions from features and scores, each row by the fits named for it.

        With `of`, a variable, what does not depend on it may be left out: differences between rows that differ in
        nothing else are the same, and cost less where few parts of a model read the variable.
        """
        out = np.zeros(len(p))
        for f, fitted in enumerate(self.fitted):
            here = np.flatnonzero(part == f)
            for share, learner in zip(self.pool.mix[model], fitted, strict=True):
                reading = getattr(learner, "reading", None)
                read = learner if of is None or reading is None else reading(x, of)
                if share > 0 and len(here) and read is not None:
                    out[here] += share * read.predict(x, p, here)
        return out


@dataclass(frozen=True, kw_only=True)
class Detectors:
    """Residual models and their paths over rows that they have not seen: what the test and its diagnosis share."""

    question: DetectorInputs
    rows: Rows  # shape (m,): the rows tested
    g: Floats  # shape (models, m): predicted `E[Y - p | x]` of these rows, by models fitted to others
    fits: Fits  # what predicted them

    @cached_property
    def paths(self) -> tuple[Path, ...]:
        """One a model."""
        return self.question.paths(self.g, self.rows)


def detectors_of(q: DetectorInputs) -> Detectors:
    """The detectors of all rows, each predicted from the other folds; fitted once.

    The fits do not depend on the tolerance, the alternative or `min_size`: changing those fits nothing again.
    """
    s = q.settings
    key = ("strong detectors", s.variables, q.pool.identity, s.folds, s.seed)
    if key not in q.memory:
        # The pool is kept next to the fits: estimators of the user's are distinguished by where they lie in memory.
        q.memory[key] = (q.pool, cross_fit(q.sample, q.pool, q.fold, s.seed))
    pool, (g, fitted) = q.memory[key]
    return Detectors(question=q, rows=np.arange(q.n), g=g, fits=Fits(pool=pool, fitted=fitted, part=q.fold))


def halves_of(q: DetectorInputs) -> Detectors:
    """The detectors of one half of the rows, by models fitted to the other; fitted once."""
    s = q.settings
    key = ("strong halves", s.variables, q.pool.identity, s.seed)
    if key not in q.memory:
        half = hash_split(q.n, 2, s.seed, q.cluster)
        fitted = q.pool.fitted(q.sample, np.flatnonzero(half == 0), s.seed)
        rows = np.flatnonzero(half == 1)
        fits = Fits(pool=q.pool, fitted=(fitted,), part=half - 1)
        q.memory[key] = (rows, predicted(fitted, q.sample, q.pool, rows), fits)
    rows, g, fits = q.memory[key]
    return Detectors(question=q, rows=rows, g=g, fits=fits)
