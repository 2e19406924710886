"""What to judge: the limit and every other setting of an audit, checked once for whoever asks; and the verdict."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from typing import Annotated, Literal, TypedDict, Unpack, get_args

from calibrant import arguments
from calibrant.arguments import (
    COSTS,
    PYTHON,
    Caller,
    Option,
    acting,
    check_int,
    checked,
    checked_alpha,
    checked_steps,
    choice,
    named,
    names,
    number,
    optional,
    share,
    text,
)
from calibrant.audit.pooling import FEWEST, MASK
from calibrant.audit.record import About, AboutInput, CheckRecord, Finding, Verdict
from calibrant.certify.missing_labels import ODDS, checked_odds
from calibrant.errors import BadInput
from calibrant.views.population import Target, checked_bandwidth

STEPS = arguments.STEPS  # in which a score is shown where nobody says
GRID = 1 << 14  # cells of everyone's score, on which the jitter of `bandwidth` must be resolved
Judge = Literal["error", "gap"]
ASSUMING = ("missing-labels",)  # checks that rest on what nobody can check: the verdict of the audit is without them
MOST_THRESHOLDS = 5  # each takes its share of alpha, and its lines on the page
POINTS, DAY = "such as 0.02 for two points", "such as '2026-01-31'"


def checked_mask(mask: object, name: str = "mask") -> int | None:
    """The people under whom a group is not shown; None where every group is."""
    if mask is None or (isinstance(mask, str) and mask == "none"):
        return None
    return check_int(name, mask, FEWEST, 10**6, hint=f"such as {MASK}, or 'none' to show every group")


class JudgingOptions(TypedDict, total=False):
    """What an audit is judged by, as `audit` and the command take it."""

    limit: Annotated[
        float | None,
        "largest acceptable calibration error; 0.02 is two points",
        Option("L", check=optional(share, hint=POINTS)),
    ]
    judge: Annotated[
        str,
        "what the limit is about: the calibration error (default), or the gap, observed minus predicted",
        Option(default="error", check=partial(choice, options=get_args(Judge)), choices=get_args(Judge)),
    ]
    target: Annotated[
        str | None,
        "whose gap: of the rows in the data (default), or of all rows like these (with clusters or weights always)",
        Option(check=optional(partial(choice, options=get_args(Target))), choices=get_args(Target)),
    ]
    steps: Annotated[
        int,
        "rounding steps of scores of many values; scores of few values are judged raw (default 100: whole percent)",
        Option("K", STEPS, named(checked_steps)),
    ]
    bandwidth: Annotated[
        float, Option(default=2**-6, check=lambda _, value: checked_bandwidth(value, GRID))
    ]  # of the jittered certificate
    alpha: Annotated[
        float, "error probability of each certificate (default 0.05)", Option(default=0.05, check=named(checked_alpha))
    ]
    quick: Annotated[bool, "leave out the tests; measures and certificates remain"]
    mask: Annotated[
        int | str | None,
        "smallest group size shown; smaller groups are pooled (default 20, least 5); 'none' shows every group",
        Option("N", MASK, named(checked_mask)),
    ]
    publish: Annotated[bool, "for readers outside: counts of groups in fives, rates of few people as ranges"]
    tolerance: Annotated[
        float,
        "of the strong calibration test: how far off a probability may be for anyone (default 0)",
        Option("D", 0.0, partial(number, least=0, below=1, hint=POINTS)),
    ]
    missing_odds: Annotated[
        float,
        "with --missing keep: how many times the odds may differ of people without a label (default 2, least 1)",
        Option("G", ODDS, named(checked_odds)),
    ]
    fail_on: Annotated[
        Iterable[str] | str | None,
        "exit with 1 if one of these finds error, 3 if undecided: ",
        Option("TESTS", check=partial(names, what="a test")),
    ]
    threshold: Annotated[
        Sequence[float] | float | None,
        "act on people from this score on (up to five): reports net benefit and errors at each, certified separately",
        Option("T,…"),
    ]
    costs: Annotated[Sequence[float] | None, COSTS, Option("FP,FN")]
    outcome: Annotated[str | None, "what an event is, for wording: employed", Option("WORD", check=optional(text))]
    about: Annotated[AboutInput, 'the next six in a file, such as: model = "risk 3.1"', Option("FILE.toml")]
    noun: Annotated[str | None, "what a row is, for wording: people, loans (default: rows)", Option("WORD")]
    model: Annotated[str | None, "name and version of the model", Option("TEXT")]
    intended_use: Annotated[str | None, "what the probabilities are used for", Option("TEXT")]
    period: Annotated[str | None, "when the rows were recorded", Option("TEXT")]
    population: Annotated[str | None, "whom or what they stand for", Option("TEXT")]
    set_by: Annotated[str | None, "who set the limit, and when", Option("TEXT")]
    name: Annotated[
        str | None, "name of the data in the report (default: the file's)", Option("NAME", check=optional(text))
    ]
    date: Annotated[
        str | None, "date to print in the report (default: none)", Option("DATE", check=optional(text, hint=DAY))
    ]


@dataclass(frozen=True, kw_only=True)
class Judging:
    """What to judge, and how; made by `Judging.of`, which checks."""

    limit: float | None
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
        for gate in result["fail_on"]:
            choice(caller.name("fail_on"), gate, gates)
        if result["fail_on"] and result["quick"]:
            inputs, dropped = caller.name("fail_on"), caller.name("quick")
            raise BadInput(
                f"{inputs}={result['fail_on'][0]!r} needs the tests that {dropped} leaves out: drop one of the two"
            )
        if result["publish"] and result["mask"] is None:
            published, every = caller.turns_on("publish"), caller.name("mask")
            raise BadInput(
                f"{every}='none' shows every group, and {published} is for readers who may not see them: drop one of "
                "the two"
            )
        result["thresholds"], result["costs"] = acting(
            result.pop("threshold"), result["costs"], caller, MOST_THRESHOLDS
        )
        words = {f.name: result.pop(f.name) for f in fields(About)}
        result["about"] = About.of(result["about"], caller=caller, **words)
        result["date"] = result["date"] or _epoch_date()
        return cls(**result)

    def settings(self) -> dict[str, object]:
        """What a record holds of it, by the names of the arguments."""
        result = asdict(self)
        del result["name"]
        return result | {"threshold": result.pop("thresholds")}

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

    Their ranges stay as they are. It is for rows that are no independent ones: each bound takes them as such.
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
