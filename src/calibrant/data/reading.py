"""What to read: the columns, the groups and how rows are distinguished, checked once for whoever asks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Unpack

from calibrant.arguments import (
    ORDERS,
    PYTHON,
    TAB,
    Caller,
    Missing,
    checked,
    choice,
    finite,
    names,
    text,
)
from calibrant.data.columns import require, short
from calibrant.data.predictions import missing_way
from calibrant.data.sources.delimited import EVERY
from calibrant.data.sources.source import DETECTED, Form, Source, unfitted
from calibrant.data.sources.standard_input import FORMATS
from calibrant.data.specs.follow_up import of_source
from calibrant.data.specs.horizon import Horizon, refuse_known
from calibrant.data.specs.options import NONE, OF_HORIZON, ColumnOptions, CommandOptions
from calibrant.data.specs.spec import Spec, attached, roles
from calibrant.errors import BadInput, NotComputable

NO_NUMBERS = "rows of a Spark or Dask DataFrame have no number"
FORM = tuple(f.name for f in fields(Form))
OF_CLASSES = "renormalize", "logits", "listed", "rest"
OF_ROWS = "label", "score", "positive", "percent", "drop_missing", "missing", "key", "cluster", "weights", *OF_HORIZON
INDEPENDENT = "none"  # as the cluster: rows are declared to be independent
# Other parts that a column of clusters or weights cannot play; clusters may be groups, or part of the key, too.
ALONE = {"cluster": ("label", "score"), "weights": ("label", "score", "key", "cluster")}
BROUGHT = *OF_ROWS, "by", "intersections", "bins", "seed"


class SketchOptions(ColumnOptions, total=False):
    """What a sketch takes, too."""

    tests: bool
    spec: Spec | None


class ReadingOptions(CommandOptions, SketchOptions, total=False):
    """All of them."""


@dataclass(frozen=True, kw_only=True)
class Reading:
    """What to read of a source; made by `Reading.of`, which checks."""

    # `label` and `score`: columns of labels and probabilities; empty where the source brings its own (`Predictions`, a
    # sketch).
    label: str = ""
    score: str = ""
    labels: tuple[str, ...] = ()  # in place of `label`, of several classes: a column of 0 and 1 each
    scores: tuple[str, ...] = ()  # in place of `score`, of several classes: a column each, or patterns such as ``p_*``
    renormalize: bool = False  # of several classes: divide each row by its sum
    logits: bool = False  # of several classes: take the softmax of each row
    listed: tuple[str, ...] = ()  # of several classes: columns that name the classes of the probabilities of each row
    ordered: tuple[str, ...] = ()  # classes from the lowest, or `BY_NUMBER`; none where they have no order
    rest: bool = False  # of several classes: what probabilities lack of one is that of one more class
    positive: str | None = None  # the label that counts as the event
    percent: bool = False  # scores are percent: they are divided by 100
    drop_missing: bool = False  # leave out rows whose label or score is missing: short for ``missing="drop"``
    missing: Missing = "level"  # what is done about missing values: see `Spec`
    form: Form = DETECTED  # how files of text, workbooks and standard input are to be taken
    key: tuple[str, ...] = ()  # columns that identify a row; empty for file and row number
    # `cluster` and `weights`: column of the cluster that a row belongs to, and of how much it counts; empty for a
    # cluster, and a count, of its own.
    cluster: str = ""
    # The columns that name clusters, where they are several: `cluster` is the first until the coarsest is known.
    levels: tuple[str, ...] = ()
    weights: str = ""
    by: tuple[str, ...] = ()  # columns whose levels are the groups
    intersections: bool = False  # also every pair of them
    bins: Mapping[str, tuple[float, ...]] = field(default_factory=dict)  # inner edges of a number among them
    variables: tuple[str, ...] = ()  # covariates; ``"*"`` for every other column that can be used
    tests: bool = False  # hold what tests need too
    # Keep the columns of the first look whose values rows may share, though nobody said what rows belong to.
    candidates: bool = False
    seed: int = 0  # deals the rows into blocks
    spec: Spec | None = None  # of an earlier sketch, in place of all this
    allow_same: bool = False  # count rows twice that two files hold
    independent: bool = False  # rows are declared to be independent, whatever they share
    allow: tuple[str, ...] = ()  # columns that are kept though they reproduce the outcome
    at: Horizon | None = None  # labels are outcomes by a horizon, which are made of other columns
    final: bool = False  # labels are declared to be outcomes, however long rows were followed
    caller: Caller = PYTHON  # how refusals name the arguments
    eventless: float = 0.0  # rows may all be without the `positive` label if scores add up to less, as on one day

    @classmethod
    def of(cls, *, caller: Caller = PYTHON, **options: Unpack[ReadingOptions]) -> Reading:
        """Check what was asked for; of covariates none are read that are not named."""
        inputs = checked(ReadingOptions, {"variables": None} | options, caller)
        clusters = names(caller.name("cluster"), inputs["cluster"] or None, distinct=True)
        independent = clusters == (INDEPENDENT,)
        clusters = () if independent else clusters
        edges = {
            name: tuple(finite(f"{caller.name('bins')} for {name!r}", v) for v in inner)
            for name, inner in (inputs["bins"] or {}).items()
        }
        unknown = [name for name in edges if name not in inputs["by"]]
        if unknown:
            raise BadInput(f"bins for {unknown[0]!r}, which is not a group column: name it in {caller.says('by')} too")
        form = _form({k: inputs.pop(k) for k in FORM}, caller)
        way = missing_way(inputs["drop_missing"], inputs["missing"], caller)
        final = inputs["horizon"] == NONE
        inputs["horizon"] = None if final else inputs["horizon"]
        at = Horizon.of({k: inputs.pop(k) for k in OF_HORIZON}, inputs["positive"], way == "drop", caller)
        if at is not None:
            if inputs["label"]:
                raise BadInput(
                    f"{caller.says('time')} and {caller.says('label')}: an outcome by a horizon is made of times and "
                    f"events, so leave {caller.says('label')} out"
                )
            inputs |= {"label": at.label, "positive": None}
            way = way if at.complete else "keep"
        scores = names(caller.name("score"), inputs["score"] or None, distinct=True)
        labels = names(caller.name("label"), inputs["label"] or None, distinct=True)
        listed = names(caller.name("listed"), inputs["listed"] or None, distinct=True)
        if at is not None and at.family:
            at, scores = _each_its_score(at, scores, caller)
        several = len(scores) > 1 or bool(scores and listed) or any("*" in name for name in scores)
        if several and at is not None:
            raise BadInput(f"{caller.says('score')}: an outcome by a horizon has two classes, so name one column")
        if len(labels) > 1 and not several:
            raise BadInput(f"{caller.name('label')} names {len(labels)} columns: of two classes name one")
        for name in OF_CLASSES:
            if inputs[name] and not several:
                passed = caller.says(name) if name == "listed" else caller.turns_on(name)
                raise BadInput(f"{passed} is of several classes: name their columns in {caller.says('score')}")
        if inputs["renormalize"] and (listed or inputs["rest"]):
            other = caller.says("listed") if listed else caller.turns_on("rest")
            raise BadInput(f"{caller.turns_on('renormalize')} leaves no rest, which {other} states: leave one out")
        return cls(
            **inputs
            | {
                "label": (*labels, "")[0],
                "listed": listed,
                "labels": labels if len(labels) > 1 else (),
                "score": "" if several else (*scores, "")[0],
                "scores": scores if several else (),
                "missing": way,
                "at": at,
                "final": final,
                "cluster": (*clusters, "")[0],
                "levels": clusters if len(clusters) > 1 else (),
                "independent": independent,
                "weights": inputs["weights"] or "",
                "bins": edges,
            },
            form=form,
            caller=caller,
        )

    def by_horizon(self) -> tuple[Reading, ...]:
        """How to read each of several horizons, which share alpha."""
        at = self.at
        if at is None or not at.several:
            return (self,)
        each = zip(at.family, at.scores, strict=True)
        ones = ((replace(at, horizon=h, one=True), score) for h, score in each)
        return tuple(replace(self, at=one, label=one.label, score=score) for one, score in ones)

    # ---- sources that bring their own ----

    def passed(self, *among: str) -> tuple[str, ...]:
        """Which of some arguments were given."""
        usual = {"missing": self.missing == "level" or self.drop_missing}  # one of two names of a setting is enough
        usual |= {"label": True, "missing": True} if self.at is not None else {}  # they follow from the horizon
        stated = ((name, getattr(self.at if name in OF_HORIZON else self, name, None)) for name in among)
        return tuple(name for name, value in stated if value and not usual.get(name, False))

    def for_a_sketch(self, spec: Spec, engine: object = None) -> None:
        """Refuse what a sketch brings itself."""
        inputs = [name for name in self.passed(*BROUGHT) if name != "seed" or self.seed != spec.seed]
        self._leaves_out("a sketch brings its own columns, groups and seed", inputs, engine)

    def for_predictions(self, engine: object = None) -> None:
        """Refuse what predictions bring themselves."""
        if self.cluster or self.levels:
            raise BadInput(
                "predictions bring their own clusters: make them with cluster=, which takes one value a row, such as "
                "[f'{a}+{b}' for a, b in zip(season, team)] of two columns; leave cluster= out here"
            )
        self._leaves_out("predictions bring their own labels and scores", self.passed(*OF_ROWS, "spec"), engine)

    def for_a_spec(self) -> None:
        """Refuse what the spec of an earlier sketch brings."""
        own = (name for name in BROUGHT if name not in ("drop_missing", "missing"))
        brings = f"{self.caller.says('spec')} brings columns, groups, key, positive value and seed"
        self._leaves_out(brings, self.passed(*own, "variables", "tests"))

    def _leaves_out(self, brings: str, inputs: Sequence[str], engine: object = None) -> None:
        """Refuse arguments that were given though the source brings its own."""
        if inputs or engine is not None:
            listed = self.caller.says(*inputs, *(("engine",) if engine is not None else ()))
            raise BadInput(f"{brings}: leave {listed} out")

    def with_tests(self, wanted: bool) -> Reading:
        """This reading, holding what tests need if they are wanted and there are covariates to test."""
        return replace(self, tests=wanted and bool(self.variables))

    def with_candidates(self) -> Reading:
        """This reading, looking for columns by which rows may be clusters, unless one is named."""
        return replace(self, candidates=not self.cluster)

    # ---- sources of columns ----

    def in_columns(self, columns: Sequence[str]) -> Reading:
        """This reading, with one pattern that is the name of a column, which has an asterisk in it, as that column."""
        one = len(self.scores) == 1 and self.scores[0] in columns
        return replace(self, score=self.scores[0], scores=()) if one else self

    def named(self) -> Reading:
        """This reading; refuse one that does not name the columns of labels and of one score."""
        if self.scores:
            named = ",".join(self.scores[:4])
            raise NotComputable(
                f"{self.caller.name('score')}={named!r} is of several classes: this reads two classes, so name the "
                f"column of one, with {self.caller.says('positive')}; look, audit, plan and repair take several"
            )
        if not (self.label and self.score):
            label, score = self.caller.says("label"), self.caller.says("score")
            raise BadInput(f"name the columns: {label} for the labels and {score} for the probabilities")
        return self

    @property
    def columns(self) -> tuple[str, ...]:
        """Every column that is named, once or more."""
        own = (*self.by, *self.key, *self.row_attributes, *self.levels, *self.variables)
        label = (self.label,) if self.at is None else self.at.columns
        return (*label, *self.labels[1:], *(() if self.scores else (self.score,)), *own)

    @property
    def clusters(self) -> tuple[str, ...]:
        """The columns that name clusters, some of them as ``a+b``."""
        return self.levels or ((self.cluster,) if self.cluster else ())

    @property
    def row_attributes(self) -> tuple[str, ...]:
        """The columns of clusters and of weights, if any are named."""
        return attached(self)

    @property
    def keeps_attached(self) -> bool:
        """Rows without a label are kept, which have clusters or weights: no sketch holds both."""
        return self.missing == "keep" and (bool(self.row_attributes) or self.at is not None)

    def known(self) -> Reading:
        """This reading; refuse one that keeps rows whose outcome is not known."""
        if self.at is not None and not self.at.complete:
            refuse_known(self.at.horizon, self.at.way == "weights")
        return self

    def rows_of(self, opened: Source, scores: Sequence[str] = ()) -> Source:
        """A source without the rows that a score's calibrator was fitted on, and with outcomes by the horizon.

        Labels of events seen are refused, where rows were followed for unlike times.
        """
        opened = unfitted(opened, scores or (self.score,))
        if self.at is not None:
            return self.at.of_source(opened, self.score, self.percent, self.by)
        if self.final or self.labels or opened.log.tool or opened.log.horizon or opened.log.seen_events:
            return opened
        used = {self.score, *self.scores, *scores, *self.by, self.weights}
        seen = of_source(opened, self.label, self.positive, used)
        if seen is None:
            return opened
        if seen.sure:
            raise BadInput(seen.refusal(self.positive, self.score or ",".join(self.scores), self.caller))
        return replace(opened, log=replace(opened.log, seen_events=asdict(seen)))

    @property
    def roles(self) -> dict[str, tuple[str, ...]]:
        """Columns by the part they play, covariates left out."""
        own = roles(self, self.by)
        return own | ({"cluster": self.levels} if self.levels else {})

    def others(self, columns: Sequence[str]) -> tuple[str, ...]:
        """The columns that do not name clusters next to `cluster`, unless asked for: what covariates may be."""
        finer = {*self.levels} - {self.cluster, *self.variables}
        return tuple(c for c in columns if c not in finer)

    def plain_spec(self, opened: Source) -> Spec:
        """The spec of columns, key, seed and blocks; rows that nothing distinguishes are not dealt into blocks."""
        fits(opened, self.roles)
        known = bool(self.key) or opened.numbered
        in_blocks = known or bool(self.cluster)  # clusters are dealt by their names
        if self.variables and not known:
            require([v for v in self.variables if v != EVERY], opened.columns, "covariate")
            key, none = self.caller.says("key"), "--variables none" if self.caller.command else "variables=None"
            fix = f"pass {key} (columns that identify a row)"
            fix += f", or {none} to go without covariates" if in_blocks else ""
            raise BadInput(f"covariates are sampled row by row, and {NO_NUMBERS}: {fix}")
        if self.weights and not in_blocks:
            rows, key = self.caller.says("weights"), self.caller.says("key")
            raise BadInput(f"{rows} needs to know the rows, and {NO_NUMBERS}: pass {key} (columns that identify a row)")
        return replace(self.rows_spec(), blocks=Spec.blocks if in_blocks else 1, numbered=known or not in_blocks)

    def rows_spec(self) -> Spec:
        """The spec of how rows are read and distinguished."""
        return Spec(
            label=self.label,
            score=self.score,
            positive=self.positive,
            key=self.key,
            seed=self.seed,
            percent=self.percent,
            missing=self.missing,
            cluster=self.cluster,
            weights=self.weights,
        )


def _each_its_score(at: Horizon, scores: tuple[str, ...], caller: Caller) -> tuple[Horizon, tuple[str, ...]]:
    """The horizons with a score each, or one score for all of them; and the score of the last."""
    count = len(at.family)
    if len(scores) not in (1, count):
        raise BadInput(
            f"{caller.says('score')} names {len(scores)} columns for {count} horizons: name one each, or one for all"
        )
    each = scores if len(scores) == count else scores * count
    return replace(at, scores=each), each[-1:]


def _form(inputs: Mapping[str, object], caller: Caller) -> Form:
    """How files are to be taken."""
    stated = {k: text(caller.name(k), v) for k, v in inputs.items() if v not in (None, "")}
    if stated.get("delimiter") in (TAB, "tab"):
        stated["delimiter"] = "\t"
    if "dates" in stated:
        choice(caller.name("dates"), stated["dates"], ORDERS)
    if "format" in stated:
        choice(caller.name("format"), stated["format"], tuple(FORMATS))
    return Form(**stated)


def fits(opened: Source, columns: Mapping[str, Sequence[str]]) -> None:
    """Refuse columns, given by their part, that are not in the data, or that cannot play it."""
    for part, kept in columns.items():
        for name, why in opened.unread:
            if name in kept:
                raise BadInput(f"{part} column {name!r} cannot be read: {why}")
        require(kept, opened.columns, part)
        short(kept, part)
    label, score = (next(iter(columns.get(part, ())), "") for part in ("label", "score"))
    if label and label == score:
        raise BadInput(f"column {label!r} is named both as the label and as the score: name the probabilities too")
    labelled = sorted({label, score} & set(columns["key"]))
    if labelled:
        raise BadInput(
            f"key column {labelled[0]!r} is the label or the score: a row's identity must not depend on them"
        )
    both = ((part, other) for part, taken in ALONE.items() for other in taken)
    for name, part, other in ((n, p, o) for p, o in both for n in {*columns.get(p, ())} & {*columns.get(o, ())}):
        raise BadInput(f"column {name!r} is named both as the {other} and as the {part}: name another column")
    by = list(columns["group"])
    there = Counter(opened.columns)
    twice = sorted({c for kept in columns.values() for c in kept if there[c] > 1})
    if twice:
        raise BadInput(f"the data has two columns named {twice[0]!r}: rename one")
    doubled = sorted({b for b in by if by.count(b) > 1} | ({label, score} & set(by)))
    if doubled:
        part = {label: "the label, which no group may know", score: "the score"}.get(doubled[0], "named twice")
        raise BadInput(f"group column {doubled[0]!r} is {part}: leave it out of the groups")
