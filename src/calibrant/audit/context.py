"""What a check of an audit is: a question, asked of a case, with an answer; and the reasons why one is not asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from calibrant.audit.judging import Judging
from calibrant.audit.pooling import Name, pooled_counts, pooled_rows, sharing, shown_groups
from calibrant.audit.record import SAME_VARIANCE, AuditRecord, CheckRecord, Finding, Share, Status
from calibrant.audit.rounding import RandomRounding, Sums
from calibrant.data.engines.reduce import release_memory
from calibrant.data.predictions import MulticlassPredictions, Predictions
from calibrant.data.sketches.contents import Repeats
from calibrant.data.sketches.sketch import Sketch
from calibrant.data.specs.local import MOST
from calibrant.errors import NotComputable
from calibrant.results import Curve, Estimate, Outcome
from calibrant.stats.clusters.shared_values import Looked
from calibrant.views.features import Screen, hash_split, strongest
from calibrant.views.people import People, people_of
from calibrant.views.population import Population
from calibrant.views.sample import everyone, sought
from calibrant.views.unlabelled import kind_of

DRAWS = 999  # simulated outcomes of a test: the smallest p-value is 0.001
NONE_NAMED = "no covariates were given"
NO_COVARIATES = f"{NONE_NAMED}: add columns that describe the people"
ALL_LEFT_OUT = f"{NONE_NAMED}: left out by --variables none"
QUICK = "left out by --quick"
TOGETHER = (
    "rows of one {what} are correlated: name the cluster, --cluster {name}, or declare rows independent, --cluster none"
)
COPIES = "rows are copies of others: remove them, or name their cluster, --cluster COLUMN"
OF_LOST = "some outcomes by the horizon are unknown, and this is proved for known outcomes alone"
NO_TESTS = "the sketch was made without what tests need: add --tests when sketching"


class NotRun(Exception):
    """A check is not run, and why; `NotComputable` says that it does not apply."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True)
class AuditContext:
    """What is audited, and how: all that a check reads."""

    sketch: Sketch
    judging: Judging
    announce: Callable[[str], None] = lambda _: None  # hears what is being done
    findings: list[Finding] = field(default_factory=list)  # what was certified of everyone and of groups so far
    meant: bool = False  # whoever asks knows that rows are there more than once, and means them to count so
    left_out: bool = False  # whoever asks left every covariate out
    independent: bool = False  # whoever asks declares rows to be independent, whatever they share
    classes: MulticlassPredictions | None = None  # rows of several classes; the sketch is that of their top label
    before: AuditRecord | None = None  # an earlier audit, whose gaps are held against these
    lost: Predictions | None = (
        None  # rows of which some outcomes by a horizon are unknown; the sketch is of those known
    )

    @cached_property
    def people(self) -> People:
        """Who its people are."""
        return people_of(self.sketch)

    @cached_property
    def repeats(self) -> Repeats:
        """Rows that occur more than once."""
        return self.sketch.repeats

    @property
    def copies(self) -> bool:
        """Rows are copies, and so many that nothing is decided; not where a cluster holds its copies together."""
        alone = self.people.are_rows and not self.meant
        return alone and self.repeats.copied and self.repeats.times > SAME_VARIANCE

    @cached_property
    def clusters_sought(self) -> Looked | None:
        """What was detected of columns whose values rows share; None where no rows are held that could tell."""
        if not self.people.are_rows:
            return None
        shared, sample = self.sketch.shared, self.sketch.parts.get("sample")
        if shared is None and sample is not None:
            shared = sample.shared(self.sketch.n)
        return None if shared is None else sought(shared, tuple(self.sketch.spec.by_name), self.seed)

    @property
    def withheld_for(self) -> str:
        """Why nothing is decided, and the way out; empty where ranges hold."""
        if self.copies:  # which rows of one value are too: what is to be done about copies comes first
            return COPIES
        shared = self._dependent
        return TOGETHER.format(what=" and ".join(shared), name="+".join(shared)) if shared else ""

    @property
    def withheld(self) -> str | None:
        """The same in the fewest words, as findings hold it: copied rows, or what rows depend by."""
        if self.copies:
            return "copied rows"
        return f"dependence by {' and '.join(self._dependent)}" if self._dependent else None

    @property
    def _dependent(self) -> tuple[str, ...]:
        """The columns by which rows depend so much that nothing that takes them as independent is decided."""
        detected = () if self.independent or self.clusters_sought is None else self.clusters_sought.detected
        return next((tuple(one.columns) for one in detected if one.refutes), ())

    @property
    def seed(self) -> int:
        """The only source of randomness."""
        return self.sketch.spec.seed

    def needed(self, rows: Callable[[int], float] | None) -> tuple[int | None, int | None]:
        """The rows and the clusters that a finding needs, by how many a log of so many calls for; None of neither.

        Clusters where rows share clusters, of those that are certified, and then no rows.
        """
        return (None, None) if rows is None else self.people.needed(rows, self.everyone)

    @property
    def mask(self) -> int:
        """People under whom a count is not shown; 1 where every group may be."""
        return self.judging.mask or 1

    @property
    def sums(self) -> type[Sums]:
        """How sets of people are reported: as they are, or rounded for those who will read what is published."""
        return RandomRounding if self.judging.publish or self.sharing else Sums

    @property
    def searched(self) -> type[Sums]:
        """How sets are reported that a search cut: next to groups cut elsewhere, exact ones tell of few people."""
        return Sums if self.judging.mask is None else RandomRounding

    @cached_property
    def shown_groups(self) -> list[tuple[Name, list[int], int]]:
        """Name, numbers in the sketch and pool size of every group that may be shown."""
        return shown_groups(self.sketch, self.mask)

    @cached_property
    def sharing(self) -> tuple[str, ...]:
        """Two group columns of which exact numbers would tell those of small groups."""
        if self.judging.publish or self.judging.mask is None:
            return ()
        return sharing(self.sketch, self.sample_rows, self.mask)

    @cached_property
    def everyone(self) -> Population:
        """The population of all rows."""
        return everyone(self.sketch, self.seed)

    @cached_property
    def sample_rows(self) -> Predictions | None:
        """The rows that a sketch for tests holds, as they are: what is tested, and not shown level by level.

        Of more covariates than the tests take at once, those of the screen, in the rows that did not choose them. Where
        columns of groups alone fill the tests, nothing is chosen: every row is tested.
        """
        return None if self._screened is None else self._screened[0]

    @property
    def screen(self) -> Screen | None:
        """Which covariates are tested, and which rows chose them; None where all of them are."""
        return None if self._screened is None else self._screened[1]

    @cached_property
    def _screened(self) -> tuple[Predictions, Screen | None] | None:
        sample, of = self.sketch.parts.get("sample"), len(self.sketch.spec.codings)
        if sample is None:
            return None
        if self.sketch.two_way is not None:
            return self.sketch.two_way, None
        if of <= MOST:
            return sample.predictions(self.sketch.name), None
        self.announce("choosing covariates to test")
        usable = {c.name for c in self.sketch.spec.codings}
        named = tuple(v.name for v in self.sketch.spec.variables if v.name in usable)
        if len(named) >= MOST:  # no place is left for a choice
            rows = sample.predictions(self.sketch.name, only=named[:MOST])
            return rows, Screen(chosen=named[:MOST], of=of, pilot=0, tested=rows.n)
        pilot, rest = hash_split(len(sample.lines), self.seed)
        chosen = strongest(sample.predictions(at=pilot), always=named)
        rows = sample.predictions(self.sketch.name, at=rest, only=chosen)
        return rows, Screen(chosen=chosen, of=of, pilot=len(pilot), tested=len(rest))

    @cached_property
    def read(self) -> Predictions | Sketch:
        """What measures and curves read: the sketch, or the rows that it holds of clusters."""
        if not self.sketch.by_clusters:
            return self.sketch
        return self.sketch.rows() if self.sample_rows is None or self.screen is not None else self.sample_rows

    @cached_property
    def unlabelled(self) -> int:
        """How many people lack a label: rows, or clusters where rows share clusters."""
        return kind_of(self.sketch).people_apart(self.sketch)

    @cached_property
    def fewest_rows(self) -> int:
        """The rows that are of enough people to be shown, whosever they are; of clusters by those that are held."""
        return self.people.most_rows(self.mask)

    @property
    def tested(self) -> Predictions | Sketch:
        """What tests and certificates of subgroups read: the sketch, or the rows of the screen, or of clusters."""
        return self.read if self.sample_rows is None or self.screen is None else self.sample_rows

    @cached_property
    def rows(self) -> Predictions | None:
        """The same with small levels pooled: whatever names a level reads these."""
        return None if self.sample_rows is None else pooled_rows(self.sample_rows, self.mask)

    @cached_property
    def adaptive(self) -> Outcome:
        """The strong calibration test of the rows held; made once for the checks that read it."""
        from calibrant.detect.strong_calibration_test import strong_calibration_test

        rows = self.needs_sample()
        self.announce("searching for badly served groups")
        return strong_calibration_test(rows, tolerance=self.judging.tolerance, seed=self.seed)

    @cached_property
    def fullest(self) -> Predictions | Sketch:
        """The rows where the sketch holds every one, so that outcomes can be simulated for each; else the sketch.

        The sketch too where covariates are so many that outcomes are not simulated: rows would say no more, and cost
        their memory. Of clusters the rows that the sketch holds.
        """
        if self.read is not self.sketch:
            return self.read
        if self.screen is None:
            rows = self.sample_rows
            return rows if rows is not None and rows.n == self.sketch.n else self.sketch
        from calibrant.diagnose.bands import AFFORDABLE

        sample, work = self.sketch.parts["sample"], self.sketch.n * self.screen.of * DRAWS
        return sample.predictions() if len(sample.lines) == self.sketch.n and work <= AFFORDABLE else self.sketch

    @cached_property
    def fullest_pooled(self) -> Predictions | Sketch:
        """The same, of rows those with small levels pooled."""
        if isinstance(self.fullest, Sketch):
            return self.sketch
        return self.rows if self.fullest is self.sample_rows and self.rows else pooled_rows(self.fullest, self.mask)

    @property
    def ranked(self) -> Predictions | Sketch:
        """The same, of a sketch its counts with small levels joined: what adds up levels reads these."""
        pooled = self.fullest_pooled
        return pooled_counts(self.sketch, self.mask) if pooled is self.sketch else pooled

    def forget(self) -> None:
        """Drop what answered questions left with the rows (features, models, cells), before what reads none of it."""
        for rows in (self.sample_rows, self.rows):
            if rows is not None:
                rows.cache.clear()
        release_memory()

    def needs_lost(self) -> Predictions:
        """The rows of which some outcomes by a horizon are unknown."""
        if self.lost is None:
            raise NotComputable("every outcome is known")
        return self.lost

    def needs_outcomes(self) -> None:
        """Say what is proved of known outcomes alone, where some by a horizon are unknown."""
        if self.lost is not None:
            raise NotComputable(OF_LOST)

    def needs_no_crossing(self) -> None:
        """Say what is proved of clusters of one column alone, where clusters cross."""
        if self.people.one_column:
            raise NotComputable(self.people.one_column)

    def needs_covariates(self) -> None:
        """Say that a check is not run where there are no covariates."""
        if not self.sketch.spec.codings:
            raise NotRun(ALL_LEFT_OUT if self.left_out else NO_COVARIATES)

    def needs_tests(self) -> None:
        """Say that a check is not run where tests are left out."""
        if self.judging.quick:
            raise NotRun(QUICK)
        if self.withheld_for:
            raise NotRun(self.withheld_for)

    def needs_sample(self) -> Predictions:
        """The rows that the sketch holds, as they are; raise `NotRun` where there are none, or no test is to be run."""
        self.needs_tests()
        if self.sample_rows is None:
            raise NotRun(NO_TESTS)
        return self.sample_rows

    def needs_rows(self, without: str = NO_TESTS) -> Predictions:
        """The rows that the sketch holds, small levels pooled; raise `NotRun` where there are none."""
        self.needs_tests()
        if self.rows is None:
            raise NotRun(without)
        return self.rows


@dataclass(frozen=True, kw_only=True)
class CheckResult:
    """What was found on a question: its check, with a status, and what else is recorded."""

    status: Status | None = None  # without one no check is listed
    reason: str = ""
    estimate: Estimate | None = None
    outcome: Outcome | None = None
    findings: tuple[Finding, ...] = ()  # certified ranges of populations
    classes: tuple[Finding, ...] = ()  # and of classes, each against the others
    # `estimates` and `curves`: for the record, by name.
    estimates: Mapping[str, Estimate] = field(default_factory=dict)
    curves: Mapping[str, Curve] = field(default_factory=dict)
    shares: tuple[Share, ...] = ()  # of alpha, that its verdicts used

    def listed(self, code: str) -> tuple[CheckRecord, ...]:
        """The check that a record lists of it."""
        if self.status is None:
            return ()
        return (
            CheckRecord(
                code=code, status=self.status, reason=self.reason, estimate=self.estimate, outcome=self.outcome
            ),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """What the time of a question depends on: groups, covariates, thousands of rows held, and whether tests are run."""

    groups: int
    covariates: int
    sample_rows: float
    tests: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Seconds that a question takes on one core, about: progress estimates from it how far an audit is."""

    # `flat`, `group`, `covariate`, `sample_rows` and `each`: in any case; for each group; each covariate; each thousand
    # rows held; each thousand, times each covariate.
    flat: float = 0.01
    group: float = 0.0
    covariate: float = 0.0
    sample_rows: float = 0.0
    each: float = 0.0
    tests: bool = False  # it takes none where tests are left out

    def seconds(self, size: Size) -> float:
        """The seconds for a size."""
        if self.tests and not size.tests:
            return 0.0
        by_rows = size.sample_rows * (self.sample_rows + self.each * size.covariates)
        return self.flat + self.group * size.groups + self.covariate * size.covariates + by_rows


LITTLE = Cost()


def not_of_lost(_context: AuditContext, _: Mapping[str, Curve]) -> CheckResult:
    """Say that a question has no answer where some outcomes by a horizon are unknown."""
    raise NotComputable(OF_LOST)


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """A question as its file declares it."""

    code: str  # stable name of its check, such as "error-everyone"
    order: int  # questions are asked in this order; the numbers leave room between them
    # Answers it, given the case and the curves made so far. `NotComputable` becomes a check that does not apply, and
    # `NotRun` one that was not run.
    make: Callable[[AuditContext, Mapping[str, Curve]], CheckResult]
    optional: bool = False  # asks nothing unless an option or a kind of data calls for it, whose reason it gives itself
    # The same where some outcomes by a horizon are unknown: by default it does not apply, unless it is optional.
    make_of_lost: Callable[[AuditContext, Mapping[str, Curve]], CheckResult] = not_of_lost
    # What progress says meanwhile; empty where `make` announces it, once it knows that there is something to do.
    step: str = ""
    cost: Cost = LITTLE  # how long it takes, about; to be given where that is more than a few hundredths of a second
    gate: bool = False  # a test that may count for the exit status
    crosses: bool = False  # it has an answer where clusters cross, or asks nothing then; another one does not apply
    # `asks` and `means`: its name in the report, and what the answer means, in plain words, where no section of the
    # report has it among the checks that it reads.
    asks: str = ""
    means: str = ""
    about: str = ""  # what the first screen calls it among what was not checked, in two or three words
