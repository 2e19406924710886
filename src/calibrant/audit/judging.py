"""What to judge: the limit and every other setting of an audit, checked once for whoever asks; and the verdict."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypedDict, Unpack, get_args

from calibrant import arguments
from calibrant.arguments import (
    PYTHON,
    Asker,
    acting,
    checked_alpha,
    checked_levels,
    choice,
    flag,
    names,
    number,
    share,
    text,
    whole,
)
from calibrant.audit.about import About, Given
from calibrant.audit.pooling import FEWEST, MASK
from calibrant.audit.record import Check, Finding, Verdict
from calibrant.certify.missing_labels import ODDS, checked_odds
from calibrant.errors import BadInput
from calibrant.views.population import checked_bandwidth

LEVELS = arguments.LEVELS  # in which a score is shown where nobody says
GRID = 1 << 14  # cells of everyone's score, on which the jitter of `bandwidth` must be resolved
Judge = Literal["error", "gap"]
WORDS = ("noun", "model", "intended_use", "period", "population", "set_by")
ASSUMING = ("missing-labels",)  # checks that rest on what nobody can check: the verdict of the audit is without them
MOST_THRESHOLDS = 5  # each takes its share of alpha, and its lines on the page
POINTS, DAY = "such as 0.02 for two points", "such as '2026-01-31'"


class Asked(TypedDict, total=False):
    """The arguments as `audit` and the command line take them."""

    limit: float | None
    judge: str
    levels: int
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
    about: Given
    noun: str | None
    model: str | None
    intended_use: str | None
    period: str | None
    population: str | None
    set_by: str | None
    asker: Asker


@dataclass(frozen=True, kw_only=True)
class Judging:
    """What to judge, and how; made by `Judging.of`, which checks.

    Parameters
    ----------
    limit : float in (0, 1) or None
        Largest acceptable calibration error, or gap.
    judge : {"error", "gap"}
        What the limit is about: the calibration error, or the gap between what happened and what was said.
    levels : int
        Steps in which a score of many values is shown.
    bandwidth : float
        Of the jittered certificate.
    alpha : float in (0, 1)
        Error probability of each certificate about everyone, and of all groups together.
    tolerance : float in [0, 1)
        Of the strong calibration test.
    missing_odds : float, at least 1
        How many times the odds may differ of people without a label.
    fail_on : tuple of str
        Tests that count for the exit status.
    thresholds : tuple of float
        Scores from which on people are acted on, increasing; none where decisions are not asked about.
    costs : tuple of float
        Of a false positive and of a false negative, where they set the threshold; else none.
    quick : bool
        Leave out the tests.
    mask : int, 5 or more
        People under whom a count is not shown.
    outcome, name, date : str or None
        Words for the report.
    about : About
        More of them.
    """

    limit: float | None = None
    judge: Judge = "error"
    levels: int = LEVELS
    bandwidth: float = 2**-6
    alpha: float = 0.05
    tolerance: float = 0.0
    missing_odds: float = ODDS
    fail_on: tuple[str, ...] = ()
    thresholds: tuple[float, ...] = ()
    costs: tuple[float, ...] = ()
    quick: bool = False
    mask: int = MASK
    outcome: str | None = None
    name: str | None = None
    date: str | None = None
    about: About = field(default_factory=About)

    @classmethod
    def of(cls, *, gates: Sequence[str], **asked: Unpack[Asked]) -> Judging:
        """Check what was asked for; `gates` are the tests that may count for the exit status."""
        asker, kept = asked.get("asker", PYTHON), cls()
        limit, quick = asked.get("limit"), flag(asker.name("quick"), asked.get("quick", False))
        outcome, name, date = asked.get("outcome"), asked.get("name"), asked.get("date")
        fail_on = names(asker.name("fail_on"), asked.get("fail_on"), what="a test")
        for gate in fail_on:
            choice(asker.name("fail_on"), gate, gates)
        if fail_on and quick:
            given, dropped = asker.name("fail_on"), asker.name("quick")
            raise BadInput(f"{given}={fail_on[0]!r} needs the tests that {dropped} leaves out: drop one of the two")
        thresholds, costs = acting(asked.get("threshold"), asked.get("costs"), asker, MOST_THRESHOLDS)
        return cls(
            thresholds=thresholds,
            costs=costs,
            limit=None if limit is None else share(asker.name("limit"), limit, hint=POINTS),
            judge=choice(asker.name("judge"), asked.get("judge", kept.judge), get_args(Judge)),
            levels=checked_levels(asked.get("levels", kept.levels), asker.name("levels")),
            bandwidth=checked_bandwidth(asked.get("bandwidth", kept.bandwidth), GRID),
            alpha=checked_alpha(asked.get("alpha", kept.alpha), asker.name("alpha")),
            tolerance=number(
                asker.name("tolerance"), asked.get("tolerance", kept.tolerance), least=0, below=1, hint=POINTS
            ),
            missing_odds=checked_odds(asked.get("missing_odds", kept.missing_odds), asker.name("missing_odds")),
            fail_on=fail_on,
            quick=quick,
            mask=whole(asker.name("mask"), asked.get("mask", kept.mask), FEWEST, 10**6, hint=f"such as {MASK}"),
            outcome=None if outcome is None else text(asker.name("outcome"), outcome),
            name=None if name is None else text(asker.name("name"), name),
            date=(None if date is None else text(asker.name("date"), date, hint=DAY)) or _epoch_date(),
            about=About.of(asked.get("about"), asker=asker, **{k: asked.get(k) for k in WORDS}),
        )

    def verdict(self, low: float, high: float) -> Verdict:
        """Return the three-valued verdict on a certified range; "none" without a limit."""
        if self.limit is None:
            return "none"
        if low > self.limit:
            return "broken"
        return "met" if high <= self.limit else "undecided"


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the worst verdict there is."""
    found = set(verdicts)
    order: tuple[Verdict, ...] = ("broken", "undecided", "met")
    return next((v for v in order if v in found), "none")


def withheld(findings: Sequence[Finding], checks: Sequence[Check]) -> tuple[list[Finding], list[Check]]:
    """Return findings and checks with nothing decided: what was met or broken is undecided, and no rows would help.

    Their ranges stay as they are. It is for rows that are copies: each bound takes them as independent.
    """
    open_: dict[str, Verdict] = {"met": "undecided", "broken": "undecided"}
    told = [replace(f, verdict=open_.get(f.verdict, f.verdict), rows_needed=None, units_needed=None) for f in findings]
    return told, [replace(c, status="undecided") if c.status in open_ else c for c in checks]


def verdicts(findings: Sequence[Finding], checks: Sequence[Check], alpha: float) -> dict[str, str]:
    """Return the verdict in three parts: everyone, the named groups, unlisted subgroups; none stands for another.

    Subgroups are "not-cleared" where a test finds error and none is certified over the limit; "absent" is what was not
    looked at: no group was named or could be shown, or no subgroup was searched.
    """
    everyone, *groups = findings
    return {
        "everyone": everyone.verdict,
        "groups": worst(g.verdict for g in groups) if groups else "absent",
        "pockets": pockets_verdict(next((c for c in checks if c.code == "pockets"), None), alpha),
    }


def pockets_verdict(check: Check | None, alpha: float) -> str:
    """Return the third part of the verdict, by its check."""
    match "absent" if check is None else check.status:
        case "broken":
            return "broken"
        case "met" | "undecided" as judged:
            found = check is not None and check.outcome is not None and check.outcome.p_value <= alpha
            return "not-cleared" if found else judged
        case "measured":
            return "none"
    return "absent"


def _epoch_date() -> str | None:
    """Return the date of SOURCE_DATE_EPOCH, by which builds repeat themselves to the byte; None where it is not set."""
    stamp = os.environ.get("SOURCE_DATE_EPOCH")
    if not stamp:
        return None
    if not stamp.isdigit() or len(stamp) > 11:
        raise BadInput(f"SOURCE_DATE_EPOCH={stamp!r}: set it to seconds since 1970, or unset it")
    from datetime import UTC, datetime

    return datetime.fromtimestamp(int(stamp), UTC).date().isoformat()
