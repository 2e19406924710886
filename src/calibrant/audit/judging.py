"""What to judge: the limit and every other setting of an audit, checked once for whoever asks; and the verdict."""

from __future__ import annotations

import math
import os
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from os import PathLike, fspath
from typing import Annotated, Literal, TypedDict, Unpack, get_args

import numpy as np

from calibrant import arguments
from calibrant.arguments import (
    BOUNDS,
    COSTS,
    DECISIONS,
    GROUPS,
    PYTHON,
    TESTS,
    WORDING,
    By,
    Caller,
    Judge,
    Option,
    acting,
    check_int,
    checked,
    checked_alpha,
    checked_steps,
    choice,
    judged_by,
    named,
    names,
    number,
    optional,
    refuse,
    share,
    shown,
    text,
)
from calibrant.audit.pooling import FEWEST, MASK
from calibrant.audit.record import (
    ALL_CLASSES,
    ERROR_SHOWN,
    About,
    AuditRecord,
    CheckRecord,
    Finding,
    Part,
    Share,
    Verdict,
    Wrong,
)
from calibrant.certify.closed import OVER_BY_GAP
from calibrant.certify.missing_labels import ODDS, checked_odds
from calibrant.errors import BadInput
from calibrant.stats.nulls import holm
from calibrant.views.population import Target, checked_bandwidth

AboutInput = Mapping[str, object] | str | PathLike[str] | None
LARGEST = 100_000  # bytes of a file of words for the report: names within names take more time than their length
STEPS = arguments.STEPS  # in which a score is shown where nobody says
GRID = 1 << 14  # cells of everyone's score, on which the jitter of `bandwidth` must be resolved
SUBGROUPS = "subgroups"  # code of a check
LEAST_LIMIT = 1e-9  # under which scores are read no finer
ASSUMING = ("missing-labels",)  # checks that rest on what nobody can check: the verdict of the audit is without them
MOST_THRESHOLDS = 5  # each takes its share of alpha, and its lines on the page
POINTS = "such as 0.02 for two points"


def checked_mask(mask: object, name: str = "mask") -> int | None:
    """The people under whom a group is not shown; None where every group is."""
    if mask is None or (isinstance(mask, str) and mask == "none"):
        return None
    return check_int(name, mask, FEWEST, 10**6, hint=f"such as {MASK}, or 'none' to show every group")


# What `about` may say: what an event is ("employed"), what a row is ("people"), and what a reader must know.
WORDS = "outcome", "noun", "model", "intended_use", "period", "population", "set_by", "name", "date"


class JudgingOptions(TypedDict, total=False):
    """What an audit is judged by, as `audit` and the command take it."""

    limit: Annotated[
        float | None,
        "largest acceptable calibration error; 0.02 is two points",
        Option("L", check=optional(share, hint=POINTS)),
        BOUNDS.first,
    ]
    limit_relative: Annotated[
        float | None,
        "in place of --limit: the limit as a share of the mean score; 0.1 is observed over expected from 0.9 to 1.1",
        Option("R", check=optional(share, hint="such as 0.1 for a tenth"), seldom=True),
        BOUNDS,
    ]
    limit_classes: Annotated[
        float | None,
        "of several classes, in addition to --limit: the largest acceptable sum of the errors of all classes, up to 2",
        Option(
            "X", check=optional(partial(number, above=0, most=2, hint="such as 0.1 for ten points in all")), seldom=True
        ),
        BOUNDS,
    ]
    judge: Annotated[
        str,
        "what the limit is about: error, or gap (observed minus predicted), of all; auto (default): error of everyone, "
        "gaps of groups",
        Option(default="auto", check=partial(choice, options=get_args(Judge)), choices=get_args(Judge)),
        BOUNDS,
    ]
    target: Annotated[
        str | None,
        "whose gap: of the rows in the data (default), or of all rows like these (with clusters or weights always)",
        Option(check=optional(partial(choice, options=get_args(Target))), choices=get_args(Target)),
        BOUNDS,
    ]
    steps: Annotated[
        int,
        "rounding steps of scores of many values; scores of few values are judged raw (default 100: whole percent)",
        Option("K", STEPS, named(checked_steps)),
        BOUNDS,
    ]
    bandwidth: Annotated[
        float, Option(default=2**-6, check=lambda _, value: checked_bandwidth(value, GRID))
    ]  # of the jittered certificate
    alpha: Annotated[
        float,
        "error probability of each certificate (default 0.05)",
        Option(default=0.05, check=named(checked_alpha)),
        BOUNDS.first,
    ]
    quick: Annotated[bool, "leave out the tests; measures and certificates remain", TESTS.first]
    mask: Annotated[
        int | str | None,
        "smallest group size shown; smaller groups are pooled (default 20, least 5); 'none' shows every group",
        Option("N", MASK, named(checked_mask)),
        GROUPS,
    ]
    publish: Annotated[bool, "for readers outside: counts of groups in fives, rates of few people as ranges", GROUPS]
    tolerance: Annotated[
        float,
        "of the strong calibration test: how far off a probability may be for anyone (default 0)",
        Option("D", 0.0, partial(number, least=0, below=1, hint=POINTS)),
        TESTS,
    ]
    missing_odds: Annotated[
        float,
        "with --missing keep: how many times the odds may differ of people without a label (default 2, least 1)",
        Option("G", ODDS, named(checked_odds)),
        BOUNDS,
    ]
    fail_on: Annotated[
        Iterable[str] | str | None,
        "exit with 1 if one of these finds error, 3 if undecided: ",
        Option("TESTS", check=partial(names, what="a test")),
        TESTS,
    ]
    threshold: Annotated[
        Sequence[float] | float | None,
        "act on people from this score on (up to five): reports net benefit and errors at each, certified separately",
        Option("T,…"),
        DECISIONS,
    ]
    costs: Annotated[Sequence[float] | None, COSTS, Option("FP,FN"), DECISIONS]
    infer: Annotated[
        Iterable[str] | str | None,
        "covariates whose mean among the events is inferred from the probabilities: its bias, with a guaranteed range",
        Option("COLUMNS", check=partial(names, what="a covariate", distinct=True), seldom=True),
        DECISIONS,
    ]
    against: Annotated[
        AuditRecord | str | os.PathLike[str] | None,
        "an earlier audit (.json), sketch or file: by how much the gaps of everyone and the groups changed since",
        Option("EARLIER", seldom=True),
        BOUNDS,
    ]
    outcome: str | None  # in Python also by themselves; the command has these in the file of `about` alone
    about: Annotated[
        AboutInput,
        f"words of the report in a file, lines such as model = 'risk 3.1': {', '.join(WORDS)}",
        Option("FILE.toml"),
        WORDING,
    ]
    noun: str | None
    model: str | None
    intended_use: str | None
    period: str | None
    population: str | None
    set_by: str | None
    name: str | None
    date: str | None


@dataclass(frozen=True, kw_only=True)
class Judging:
    """What to judge, and how; made by `Judging.of`, which checks."""

    limit: float | None  # of everyone, in probability units; once the mean score is known, also where it is relative
    limit_relative: float | None  # as a share of the mean score of those judged
    limit_classes: float | None  # of the errors of several classes, added up
    judge: Judge
    target: Target | None  # whose gaps are certified; of the rows where that is proved if nobody says
    steps: int
    bandwidth: float
    alpha: float
    tolerance: float
    missing_odds: float
    fail_on: tuple[str, ...]
    thresholds: tuple[float, ...]  # increasing; none where decisions are not asked about
    costs: tuple[float, ...]  # of a false positive and of a false negative, where they set the threshold; else none
    infer: tuple[str, ...]  # covariates that are to be inferred, with a guarantee
    against: object  # an earlier audit, or what one is made of; None where none was named
    quick: bool
    mask: int | None  # none where every group is shown
    publish: bool
    outcome: str | None
    name: str | None
    date: str | None
    about: About

    @classmethod
    def of(cls, *, gates: Sequence[str], caller: Caller = PYTHON, **options: Unpack[JudgingOptions]) -> Judging:
        """Check what was asked for; `gates` are the tests that may count for the exit status."""
        result = checked(JudgingOptions, options, caller)
        if result["limit"] is not None and result["limit_relative"] is not None:
            raise BadInput(f"{caller.says('limit', 'limit_relative')} are two ways to give one limit: drop one of them")
        if result["limit_classes"] is not None and result["limit"] is None and result["limit_relative"] is None:
            raise BadInput(
                f"{caller.says('limit_classes')} judges all classes together: pass {caller.says('limit')} too"
            )
        for gate in result["fail_on"]:
            choice(caller.name("fail_on"), gate, (*gates, ERROR_SHOWN))
        tests = [gate for gate in result["fail_on"] if gate != ERROR_SHOWN]
        if tests and result["quick"]:
            inputs, dropped = caller.name("fail_on"), caller.name("quick")
            raise BadInput(f"{inputs}={tests[0]!r} needs the tests that {dropped} leaves out: drop one of the two")
        if result["publish"] and result["mask"] is None:
            published, every = caller.turns_on("publish"), caller.name("mask")
            raise BadInput(
                f"{every}='none' shows every group, and {published} is for readers who may not see them: drop one of "
                "the two"
            )
        result["thresholds"], result["costs"] = acting(
            result.pop("threshold"), result["costs"], caller, MOST_THRESHOLDS
        )
        words = words_of(result.pop("about"), WORDS, {name: result.pop(name) for name in WORDS}, caller)
        result |= {name: words.pop(name, None) for name in ("outcome", "name", "date")}
        result["date"] = result["date"] or _epoch_date()
        return cls(**result, about=About(**words))

    def settings(self) -> dict[str, object]:
        """What a record holds of it, by the names of the arguments."""
        result = asdict(replace(self, against=None))
        del result["name"]
        result["against"] = str(self.against) if isinstance(self.against, str | os.PathLike) else None
        return result | {"threshold": result.pop("thresholds")}

    def by(self, part: str) -> By:
        """What a part is judged by."""
        return judged_by(self.judge, part)

    def limit_of(self, predicted: float) -> float | None:
        """The limit of people of this mean score, in probability units; the score is given, so it is no estimate.

        A relative one is rounded down to three digits, so that what is shown is what is judged.
        """
        return self.limit if self.limit_relative is None else three_digits(self.limit_relative * predicted)

    def at(self, predicted: float) -> Judging:
        """Judge people of this mean score: a relative limit is that share of it."""
        if (limit := self.limit_of(predicted)) is not None and limit < LEAST_LIMIT:
            raise BadInput(
                f"limit_relative={self.limit_relative:g} (--limit-relative) of a mean score of "
                f"{predicted:.3g} is no limit above zero: give --limit in points"
            )
        return replace(self, limit=limit)

    def of_rows(self, noun: str) -> Judging:
        """Call rows as the log calls them, unless somebody named them."""
        if not noun or self.about.noun != About().noun:
            return self
        return replace(self, about=replace(self.about, noun=noun))

    @property
    def limited(self) -> bool:
        """Whether there is a limit."""
        return self.limit is not None

    @property
    def shares(self) -> Shares:
        """How alpha is shared among the verdicts."""
        return Shares(self.alpha, self.judge)


@dataclass(frozen=True)
class Shares:
    """The error probabilities of verdicts: each has its own, and this is the only place that says how large.

    Everyone: alpha each way. Of a gap, whose range has two ends, only one end can be wrongly within.
    Groups: alpha for any wrong "over", and half of it for any wrong "within"; judged by their gaps with errors next to
    them, "over" is .8 of alpha by gap and .2 by error. Judged by error alone, ranges have two ends of half of alpha.
    Subgroups: alpha each way. Error shown: what the ranges spend, so that a range without 0 in it always shows error:
    of everyone alpha by gap and alpha by error, of groups as "over", and by what they are not judged by alpha, or half
    of it for errors.
    """

    alpha: float
    judge: Judge

    @property
    def groups_over_gap(self) -> float:
        """Any group wrongly over by its gap."""
        return {"auto": OVER_BY_GAP, "gap": 1.0, "error": 0.0}[self.judge] * self.alpha

    @property
    def groups_over_error(self) -> float:
        """Any group wrongly over by its error."""
        return {"auto": 1.0 - OVER_BY_GAP, "gap": 0.0, "error": 0.5}[self.judge] * self.alpha

    @property
    def groups_within(self) -> float:
        """Any group wrongly within."""
        return self.alpha / 2.0

    @property
    def everyone_ranges(self) -> tuple[float, float]:
        """Everyone's range of the gap, and that of the error from below, each wrong by itself."""
        return self.alpha, self.alpha

    @property
    def groups_ranges(self) -> tuple[float, float]:
        """Any range of a group's gap, and any of a group's error from below: as "over", or of what is not judged."""
        return self.groups_over_gap or self.alpha, self.groups_over_error or self.alpha / 2.0

    def of_everyone(self) -> tuple[Share, ...]:
        """As they are used of everyone."""
        by = judged_by(self.judge, "everyone")
        within = self.alpha if by == "error" else self.alpha / 2.0
        return (
            Share(wrong="over", part="everyone", by=by, alpha=self.alpha),
            Share(wrong="within", part="everyone", by=by, alpha=within),
        )

    def of_groups(self, part: Literal["groups", "classes"] = "groups") -> tuple[Share, ...]:
        """As they are used of groups, or of classes."""
        kinds: tuple[tuple[By, float], ...] = (("gap", self.groups_over_gap), ("error", self.groups_over_error))
        over = [Share(wrong="over", part=part, by=by, alpha=each) for by, each in kinds if each]
        return (
            *over,
            Share(wrong="within", part=part, by=judged_by(self.judge, "groups"), alpha=self.groups_within),
        )

    def of_all_classes(self) -> tuple[Share, ...]:
        """As they are used of all classes added up, whose range has two ends."""
        kinds: tuple[Wrong, Wrong] = ("over", "within")
        return tuple(Share(wrong=wrong, part="classes", by="error", alpha=self.alpha / 2.0) for wrong in kinds)

    def of_subgroups(self) -> tuple[Share, ...]:
        """As they are used of the worst subgroup, by its gap."""
        return tuple(Share(wrong=wrong, part="subgroups", by="gap", alpha=self.alpha) for wrong in ("over", "within"))

    def of_error_shown(self, groups: bool, classes: bool = False) -> tuple[Share, ...]:
        """As it is used of everyone, and of groups and of classes where there are any, also of these added up."""
        spent: dict[Part, tuple[float, float]] = {"everyone": self.everyone_ranges}
        if groups:
            spent["groups"] = self.groups_ranges
        if classes:
            spent["classes"] = self.groups_ranges
        kinds: tuple[By, By] = ("gap", "error")
        result = tuple(
            Share(wrong="error_shown", part=part, by=by, alpha=alpha)
            for part, ranges in spent.items()
            for by, alpha in zip(kinds, ranges, strict=True)
        )
        total = Share(wrong="error_shown", part="classes", by="error", alpha=self.alpha / 2.0)
        return (*result, total) if classes else result

    def of_test(self) -> Share:
        """As the test of unlisted subgroups uses it."""
        return Share(wrong="error_shown", part="subgroups", by="test", alpha=self.alpha)


def three_digits(value: float) -> float:
    """A number of at least zero rounded down to three digits."""
    if value <= 0.0:
        return 0.0
    digits = 2 - math.floor(math.log10(value))
    return math.floor(value * 10.0**digits + 1e-9) / 10.0**digits


def verdict_of(low: float, high: float, limit: float | None) -> Verdict:
    """The verdict on a certified range; "not_checked" without a limit."""
    if limit is None:
        return "not_checked"
    if low > limit:
        return "over"
    return "within" if high <= limit else "undecided"


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """The worst verdict there is."""
    result = set(verdicts)
    order: tuple[Verdict, ...] = ("over", "undecided", "within")
    return next((v for v in order if v in result), "not_checked")


def withholding(
    findings: Sequence[Finding], checks: Sequence[CheckRecord], reason: str
) -> tuple[list[Finding], list[CheckRecord]]:
    """Findings and checks without verdicts, each with the reason, and no number of rows that would help.

    Their ranges stay as they are. It is for rows that are no independent ones: each bound takes them as such.
    """
    none = [
        replace(
            f,
            verdict="not_checked",
            withheld=reason,
            error_shown=False,
            rows_needed=None,
            clusters_needed=None,
            rows_at_least=False,
        )
        for f in findings
    ]
    judged = ("within", "over", "undecided")
    return none, [replace(c, status="measured") if c.status in judged else c for c in checks]


def showing_error(findings: Sequence[Finding], shares: Shares) -> list[Finding]:
    """Mark the findings whose gap or error is shown to be other than none: everyone by itself, groups together.

    Holm's procedure with the weights of the ranges; and a range as it is reported, without 0 in it, shows error where
    rounding has made the p-value too large. No p-value is ever smaller for that, so it spends nothing more.
    """
    everyone, *groups = findings
    return [*_showing([everyone], shares.everyone_ranges), *showing_together(groups, shares)]


def showing_together(findings: Sequence[Finding], shares: Shares) -> list[Finding]:
    """The same of groups, or of classes, which have a family of their own."""
    return _showing(findings, shares.groups_ranges)


def _showing(findings: Sequence[Finding], spent: tuple[float, float]) -> list[Finding]:
    """Mark those of one part, whose gaps and errors have these shares of error."""
    if not findings:
        return []
    p = np.array([p for f in findings for p in (f.gap.p_value, f.error.p_value)])
    price = min(sum(spent), np.nextafter(1.0, 0.0))  # adjusted p-values of 1 show nothing, whatever alpha is
    shown = np.asarray((holm(p, np.tile(spent, len(findings))) <= price).reshape(-1, 2).any(axis=1))
    return [replace(f, error_shown=bool(one) or _without_none(f)) for f, one in zip(findings, shown, strict=True)]


def _without_none(finding: Finding) -> bool:
    """Whether the guaranteed range of the gap, or that of the error, is without 0."""
    gap, error = finding.gap.guaranteed, finding.error.guaranteed
    return (gap is not None and (gap.low > 0.0 or gap.high < 0.0)) or (error is not None and error.low > 0.0)


def verdicts(
    findings: Sequence[Finding], checks: Sequence[CheckRecord], classes: Sequence[Finding] = ()
) -> dict[str, Verdict]:
    """The verdict in parts: everyone, the named groups, unlisted subgroups, classes; none stands for another.

    That of classes is the worst of each, and of all added up where these have a limit.

    "not_checked" is what nobody asked, or looked at: there is no limit, no group was named or could be shown, or no
    subgroup was searched.
    """
    everyone, *groups = findings
    return {
        "everyone": everyone.verdict,
        "groups": worst(g.verdict for g in groups),
        "subgroups": verdict_by(checks, SUBGROUPS),
        **({"classes": worst([*(c.verdict for c in classes), verdict_by(checks, ALL_CLASSES)])} if classes else {}),
    }


def verdict_by(checks: Sequence[CheckRecord], code: str) -> Verdict:
    """The verdict of a check; "not_checked" of one that measures, or was not made."""
    of: dict[str, Verdict] = {"over": "over", "within": "within", "undecided": "undecided"}
    return next((of.get(c.status, "not_checked") for c in checks if c.code == code), "not_checked")


def error_shown(
    findings: Sequence[Finding], checks: Sequence[CheckRecord], alpha: float, classes: Sequence[Finding] = ()
) -> dict[str, bool]:
    """Whether error is shown, in the same parts; of subgroups by their test, of classes also by their sum."""
    everyone, *groups = findings
    test = next((c.outcome for c in checks if c.code == SUBGROUPS), None)
    total = next((c.estimate for c in checks if c.code == ALL_CLASSES), None)
    summed = total is not None and total.interval.low > 0.0 and everyone.withheld is None
    return {
        "everyone": everyone.error_shown,
        "groups": any(g.error_shown for g in groups),
        "subgroups": test is not None and test.p_value <= alpha,
        **({"classes": any(c.error_shown for c in classes) or summed} if classes else {}),
    }


def _epoch_date() -> str | None:
    """The date of SOURCE_DATE_EPOCH, by which builds repeat themselves to the byte; None where it is not set."""
    stamp = os.environ.get("SOURCE_DATE_EPOCH")
    if not stamp:
        return None
    if not stamp.isdigit() or len(stamp) > 11:
        raise BadInput(f"SOURCE_DATE_EPOCH={stamp!r}: set it to seconds since 1970, or unset it")
    from datetime import UTC, datetime

    return datetime.fromtimestamp(int(stamp), UTC).date().isoformat()


# ---- words for the report ----


def words_of(
    about: AboutInput, known: Sequence[str], stated: Mapping[str, object], caller: Caller = PYTHON
) -> dict[str, str]:
    """The words that a mapping or a TOML file has, joined with what is said by itself, which wins."""
    reported = _read(about, caller)
    if unknown := next((name for name in reported if name not in known), None):
        raise BadInput(f"{caller.name('about')}: {shown(unknown)} is not known: use {', '.join(sorted(known))}")
    reported |= {k: v for k, v in stated.items() if v is not None}
    return {k: _words(k, v, caller) for k, v in reported.items() if v is not None}


def _words(name: str, value: object, caller: Caller) -> str:
    """Words as they were given; but for a name, a date and an event those of one line."""
    called = f"{caller.name('about')}: {name}" if caller.command else name
    if name in {f.name for f in fields(About)}:
        words = text(called, value)
        if not words.strip() or words.splitlines() != [words]:
            refuse(called, value, "words in one line", "or leave it out")
        return words
    return text(called, value, hint="such as '2026-01-31'" if name == "date" else "")


def _read(about: AboutInput, caller: Caller) -> dict[str, object]:
    if about is None or isinstance(about, Mapping):
        return dict(about or {})
    if not isinstance(about, (str, PathLike)):
        raise BadInput(f"{caller.name('about')}={shown(about)}: pass a mapping or the path of a TOML file")
    path = fspath(about)
    try:
        with open(path, "rb") as file:
            raw = file.read(LARGEST + 1)
        if len(raw) > LARGEST:
            raise BadInput(f"{caller.name('about')} {path} has more than {LARGEST:,} bytes: write six lines")
        return tomllib.loads(raw.decode())
    except OSError as e:
        raise BadInput(f"{caller.name('about')} {path}: {e.strerror or e}") from None
    except BadInput:
        raise
    except (ValueError, RecursionError) as e:  # not TOML or UTF-8, a number without end, lists within lists
        why = str(e)[:120]
        raise BadInput(
            f"{caller.name('about')} {path} is no TOML ({why}): write lines like model = 'risk 3.1'"
        ) from None
