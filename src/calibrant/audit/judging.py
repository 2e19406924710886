"""What to judge: the limit and every other setting of an audit, checked once for whoever asks; and the verdict."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypedDict, Unpack, get_args

from calibrant import arguments
from calibrant.arguments import (
    PYTHON,
    Caller,
    acting,
    check_int,
    checked_alpha,
    checked_steps,
    choice,
    flag,
    names,
    number,
    share,
    text,
)
from calibrant.audit.about import About, AboutInput
from calibrant.audit.pooling import FEWEST, MASK
from calibrant.audit.record import CheckRecord, Finding, Verdict
from calibrant.certify.missing_labels import ODDS, checked_odds
from calibrant.errors import BadInput
from calibrant.views.population import checked_bandwidth

STEPS = arguments.STEPS  # in which a score is shown where nobody says
GRID = 1 << 14  # cells of everyone's score, on which the jitter of `bandwidth` must be resolved
Judge = Literal["error", "gap"]
WORDS = ("noun", "model", "intended_use", "period", "population", "set_by")
ASSUMING = ("missing-labels",)  # checks that rest on what nobody can check: the verdict of the audit is without them
MOST_THRESHOLDS = 5  # each takes its share of alpha, and its lines on the page
POINTS, DAY = "such as 0.02 for two points", "such as '2026-01-31'"


class JudgingOptions(TypedDict, total=False):
    """The arguments as `audit` and the command line take them."""

    limit: float | None
    judge: str
    steps: int
    bandwidth: float
    alpha: float
    tolerance: float
    missing_odds: float
    fail_on: Iterable[str] | str | None
    threshold: Sequence[float] | float | None
    costs: Sequence[float] | None
    quick: bool
    mask: int
    outcome: str | None
    name: str | None
    date: str | None
    about: AboutInput
    noun: str | None
    model: str | None
    intended_use: str | None
    period: str | None
    population: str | None
    set_by: str | None
    caller: Caller


@dataclass(frozen=True, kw_only=True)
class Judging:
    """What to judge, and how; made by `Judging.of`, which checks."""

    limit: float | None = None  # in (0, 1): largest acceptable calibration error, or gap
    # What the limit is about: the calibration error, or the gap between what happened and what was said.
    judge: Judge = "error"
    steps: int = STEPS  # steps in which a score of many values is shown
    bandwidth: float = 2**-6  # of the jittered certificate
    alpha: float = 0.05  # in (0, 1): error probability of each certificate about everyone, and of all groups together
    tolerance: float = 0.0  # in [0, 1): of the strong calibration test
    missing_odds: float = ODDS  # at least 1: how many times the odds may differ of people without a label
    fail_on: tuple[str, ...] = ()  # tests that count for the exit status
    # Scores from which on people are acted on, increasing; none where decisions are not asked about.
    thresholds: tuple[float, ...] = ()
    # Of a false positive and of a false negative, where they set the threshold; else none.
    costs: tuple[float, ...] = ()
    quick: bool = False  # leave out the tests
    mask: int = MASK  # 5 or more: people under whom a count is not shown
    # `outcome`, `name` and `date`: words for the report.
    outcome: str | None = None
    name: str | None = None
    date: str | None = None
    about: About = field(default_factory=About)  # more of them

    @classmethod
    def of(cls, *, gates: Sequence[str], **options: Unpack[JudgingOptions]) -> Judging:
        """Check what was asked for; `gates` are the tests that may count for the exit status."""
        caller, kept = options.get("caller", PYTHON), cls()
        limit, quick = options.get("limit"), flag(caller.name("quick"), options.get("quick", False))
        outcome, name, date = options.get("outcome"), options.get("name"), options.get("date")
        fail_on = names(caller.name("fail_on"), options.get("fail_on"), what="a test")
        for gate in fail_on:
            choice(caller.name("fail_on"), gate, gates)
        if fail_on and quick:
            inputs, dropped = caller.name("fail_on"), caller.name("quick")
            raise BadInput(f"{inputs}={fail_on[0]!r} needs the tests that {dropped} leaves out: drop one of the two")
        thresholds, costs = acting(options.get("threshold"), options.get("costs"), caller, MOST_THRESHOLDS)
        return cls(
            thresholds=thresholds,
            costs=costs,
            limit=None if limit is None else share(caller.name("limit"), limit, hint=POINTS),
            judge=choice(caller.name("judge"), options.get("judge", kept.judge), get_args(Judge)),
            steps=checked_steps(options.get("steps", kept.steps), caller.name("steps")),
            bandwidth=checked_bandwidth(options.get("bandwidth", kept.bandwidth), GRID),
            alpha=checked_alpha(options.get("alpha", kept.alpha), caller.name("alpha")),
            tolerance=number(
                caller.name("tolerance"), options.get("tolerance", kept.tolerance), least=0, below=1, hint=POINTS
            ),
            missing_odds=checked_odds(options.get("missing_odds", kept.missing_odds), caller.name("missing_odds")),
            fail_on=fail_on,
            quick=quick,
            mask=check_int(caller.name("mask"), options.get("mask", kept.mask), FEWEST, 10**6, hint=f"such as {MASK}"),
            outcome=None if outcome is None else text(caller.name("outcome"), outcome),
            name=None if name is None else text(caller.name("name"), name),
            date=(None if date is None else text(caller.name("date"), date, hint=DAY)) or _epoch_date(),
            about=About.of(options.get("about"), caller=caller, **{k: options.get(k) for k in WORDS}),
        )

    def verdict(self, low: float, high: float) -> Verdict:
        """The three-valued verdict on a certified range; "none" without a limit."""
        if self.limit is None:
            return "not_checked"
        if low > self.limit:
            return "over"
        return "within" if high <= self.limit else "undecided"


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """The worst verdict there is."""
    result = set(verdicts)
    order: tuple[Verdict, ...] = ("over", "undecided", "within")
    return next((v for v in order if v in result), "not_checked")


def suppressed(findings: Sequence[Finding], checks: Sequence[CheckRecord]) -> tuple[list[Finding], list[CheckRecord]]:
    """Return findings and checks with nothing decided: what was met or broken is undecided, and no rows would help.

    Their ranges stay as they are. It is for rows that are copies: each bound takes them as independent.
    """
    open_: dict[str, Verdict] = {"within": "undecided", "over": "undecided"}
    reported = [
        replace(f, verdict=open_.get(f.verdict, f.verdict), rows_needed=None, clusters_needed=None) for f in findings
    ]
    return reported, [replace(c, status="undecided") if c.status in open_ else c for c in checks]


def verdicts(findings: Sequence[Finding], checks: Sequence[CheckRecord], alpha: float) -> dict[str, str]:
    """The verdict in three parts: everyone, the named groups, unlisted subgroups; none stands for another.

    Subgroups are "not-cleared" where a test finds error and none is certified over the limit; "absent" is what was not
    looked at: no group was named or could be shown, or no subgroup was searched.
    """
    everyone, *groups = findings
    return {
        "everyone": everyone.verdict,
        "groups": worst(g.verdict for g in groups) if groups else "absent",
        "subgroups": subgroups_verdict(next((c for c in checks if c.code == "subgroups"), None), alpha),
    }


def subgroups_verdict(check: CheckRecord | None, alpha: float) -> str:
    """The third part of the verdict, by its check."""
    match "absent" if check is None else check.status:
        case "over":
            return "over"
        case "within" | "undecided" as judged:
            shown = check is not None and check.outcome is not None and check.outcome.p_value <= alpha
            return "error_shown" if shown else judged
        case "measured":
            return "not_checked"
    return "absent"


def _epoch_date() -> str | None:
    """The date of SOURCE_DATE_EPOCH, by which builds repeat themselves to the byte; None where it is not set."""
    stamp = os.environ.get("SOURCE_DATE_EPOCH")
    if not stamp:
        return None
    if not stamp.isdigit() or len(stamp) > 11:
        raise BadInput(f"SOURCE_DATE_EPOCH={stamp!r}: set it to seconds since 1970, or unset it")
    from datetime import UTC, datetime

    return datetime.fromtimestamp(int(stamp), UTC).date().isoformat()
