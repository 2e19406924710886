"""Which findings come first, and what the record says as a whole; no words here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Literal, TypeAlias

from calibrant.arguments import MASK, judged_by
from calibrant.audit.record import ALL_CLASSES as ALL_CLASSES
from calibrant.audit.record import CLASS_LOCAL as CLASS_LOCAL
from calibrant.audit.record import CLASS_STRONG as CLASS_STRONG
from calibrant.audit.record import NOUN, SAME_VARIANCE, AuditRecord, CheckRecord, Finding, at_limit, size
from calibrant.results import Curve, Estimate, Outcome
from calibrant.sanitize import sanitize

Line: TypeAlias = Mapping[str, Any]  # one row of a curve, by its columns
RANK = {"over": 0, "undecided": 1, "within": 2, "not_checked": 3}
MOST_ROWS = 500  # groups in the long table; the others are in the JSON only
SIMULATED = ("simulation", "sign")  # in the law of a p-value that is a rank among draws
UNREPORTED = 0.5  # a certified upper end from here on tells nothing
FEW = 50  # expected events, and expected non-events, that a curve needs
STRONG = "strong-calibration"
TOGETHER = "dependence"
VERDICT_STATES = ("over", "undecided", "within", "not_checked")
UNDONE = ("not-run", "not-applicable")
SUBGROUPS = "subgroups"  # the code of their check, and the name of their estimate and curve
FIXED = "fixed"  # the curve of everyone, groups and subgroups before and after a repair
Side = Literal["low", "high", "unclear"]
Subgroups = Literal["over", "undecided", "error_shown", "within", "measured", "absent", "withheld"]
State = Literal["over", "undecided", "error_shown", "within", "not_checked", "absent", "withheld"]


def ordered(groups: Sequence[Finding]) -> list[Finding]:
    """Sort groups, worst first: broken, undecided, met; within each by lower, then by upper end."""

    def key(f: Finding) -> tuple[float, float, float, str]:
        low, high = f.lower.interval.low, f.upper.interval.high
        first, second = (high, low) if f.verdict == "within" else (low, high)
        return RANK.get(f.verdict, 3), -first, -second, f.id

    return sorted(groups, key=key)


def by_evidence(groups: Sequence[Finding]) -> list[Finding]:
    """Sort groups, the most evident first: those over the limit, or shown to be off and not within it, lead.

    Each part goes by its p-value against "no gap", adjusted by Holm.
    Where p-values do not distinguish, the gap counts in widths of its ordinary interval: how many it is from zero.
    """
    ranked = sorted(groups, key=lambda f: f.gap.p_value)
    raw = (min(1.0, (len(ranked) - i) * f.gap.p_value) for i, f in enumerate(ranked))
    adjusted = {f.id: p for f, p in zip(ranked, accumulate(raw, max), strict=True)}
    return sorted(groups, key=lambda f: (not is_pressing(f), adjusted[f.id], -_widths(f), f.id))


def _widths(finding: Finding) -> float:
    value, ordinary = finding.gap.value, finding.gap.interval
    if ordinary is None:
        return abs(value)
    return abs(value) / max(value - ordinary.low if value > 0 else ordinary.high - value, 1e-9)


def is_pressing(finding: Finding) -> bool:
    """Whether a finding is over the limit, or shows error and is not within it."""
    return finding.verdict == "over" or (finding.error_shown and finding.verdict != "within")


def is_off(finding: Finding) -> bool:
    """Whether a finding is over the limit, or error of any size is shown."""
    return finding.verdict == "over" or finding.error_shown


def shown_off(record: AuditRecord) -> list[Off]:
    """Groups and subgroups that are shown to be off, the most evident first.

    Groups that are over the limit, or whose judged size is guaranteed to be above 0; then subgroups; then groups whose
    calibration error alone is shown.
    """
    groups = named_off(record, is_off)
    rules = [o for o in unlisted_known(record) if o.rule]
    sure = [o for o in groups if o.finding is not None and (o.finding.verdict == "over" or o.least > 0)]
    return [*sure, *rules, *(o for o in groups if o not in sure)]


def named_off(record: AuditRecord, which: Callable[[Finding], bool]) -> list[Off]:
    """The groups and the classes of which that holds, the most evident first."""
    classes = {f.id for f in record.classes}
    every = by_evidence([*record.groups, *record.classes])
    return [Off(f.shown[0], f, of_class=f.id in classes) for f in every if which(f)]


def with_verdict(record: AuditRecord, verdict: str) -> list[Finding]:
    return [f for f in ordered(record.groups) if f.verdict == verdict]


def reported(record: AuditRecord) -> list[Finding]:
    """The findings whose counts the page shows as people: the worst broken group, and everyone."""
    broken = with_verdict(record, "over")[:1]
    return ([record.everyone] if record.everyone.verdict == "over" else []) + broken


def only_together(record: AuditRecord) -> int:
    """How many small values are shown only in pools; no verdict is about one of them."""
    return sum(f.pooled for f in record.groups)


def all_named(record: AuditRecord) -> bool:
    """Whether every group that was named is shown: none pooled, and no column without a group."""
    seen = {tuple(k for k, _ in f.variables) for f in record.groups}
    return not only_together(record) and all(names in seen for names in groupings(record))


def limit_of(record: AuditRecord) -> float | None:
    """The limit as a fraction, or None."""
    limit = record.settings.get("limit")
    return None if limit is None else float(limit)


def common_less(record: AuditRecord) -> int:
    """How many classes have a mean probability below their limit, so that too high a probability is never over it."""
    return sum((f.limit or 0.0) > f.expected / f.rows for f in record.classes)


def noun(record: AuditRecord) -> str:
    """What the rows are called, in the plural: "people" only where somebody said so."""
    stated = (record.settings.get("about") or {}).get("noun")
    return sanitize(stated).strip() or NOUN if stated else NOUN


def cluster_totals(record: AuditRecord) -> Mapping[str, Any]:
    """What is known of clusters and weights; empty where rows are independent and count alike."""
    return record.data.get("clusters") or {}


def crossing(record: AuditRecord) -> Mapping[str, int]:
    """The two columns whose clusters cross, each with its number of clusters; empty where none do."""
    return record.data.get("two_way") or {}


def other_columns(record: AuditRecord) -> bool:
    """Whether there may be columns other than label and score; where some were not read, nobody knows."""
    known, d = record.data.get("columns"), record.data
    every = tuple(record.settings.get("variables") or ()) == ("*",)
    return not known or not every or bool({*known} - {d.get("label"), d.get("score")})


RARE = 0.05  # share of events under which gaps of tenths of a point matter, and the ratio of rates says more


def rare(record: AuditRecord) -> bool:
    """Whether events are so few that gaps are written to hundredths of a point, and tables add their ratio."""
    return record.everyone.events < RARE * record.everyone.rows


def decimals(record: AuditRecord) -> int:
    """The decimals of gaps in points."""
    return 2 if rare(record) else 1


def withheld(record: AuditRecord) -> bool:
    """Whether nothing is decided: rows are copies, or share clusters that nobody named."""
    return record.withheld is not None


def state(record: AuditRecord, part: str) -> State:
    """What is known of a part: its verdict, or why there is none.

    ``"error_shown"``: a test of subgroups finds error, and none is certified over the limit. ``"absent"``: there are no
    groups, or subgroups were not searched. ``"not_checked"``: there is no limit.
    """
    verdict, check = record.verdicts[part], check_of(record, SUBGROUPS)
    if part == "subgroups" and verdict in ("within", "undecided") and record.error_shown[part]:
        return "error_shown"
    if verdict != "not_checked":
        return verdict
    if (part == "groups" and not record.groups) or (part == "subgroups" and (check is None or check.status in UNDONE)):
        return "absent"
    return "withheld" if withheld(record) else verdict


def summed(record: AuditRecord) -> State:
    """The verdict on the errors of all classes, added up; "not_checked" where they have no limit, or are withheld."""
    check, of = check_of(record, ALL_CLASSES), dict[str, State](over="over", within="within", undecided="undecided")
    return "not_checked" if check is None else of.get(check.status, "not_checked")


def states(record: AuditRecord) -> dict[str, State]:
    """The same of all parts."""
    return {part: state(record, part) for part in record.verdicts}


@dataclass(frozen=True, slots=True)
class SharedBy:
    """Columns whose rows of one value are correlated beyond chance, though no cluster was named."""

    columns: tuple[str, ...]
    effect: float  # the design effect
    clusters: int
    one_outcome: bool  # the label never changes within a value
    few: bool  # a few values make it: groups that are off look the same
    refutes: bool  # nothing that takes rows as independent is decided

    @property
    def option(self) -> str:
        """What `--cluster` takes."""
        return "+".join(self.columns)


def shared_by(record: AuditRecord) -> SharedBy | None:
    """What rows share that makes them correlated; what decides nothing first."""
    detected = [
        SharedBy(
            tuple(line["columns"]),
            float(line["design_effect"]),
            int(line["clusters"]),
            line["one_outcome"] == 1.0,
            line["kind"] == "group",
            bool(line["refutes"]),
        )
        for line in lines_of(record.curve(TOGETHER))
    ]
    return min(detected, key=lambda one: not one.refutes, default=None)


def refuted(record: AuditRecord) -> SharedBy | None:
    """What rows share where nothing is decided because of it; None where that is because rows are copies."""
    one, repeats = shared_by(record), record.data.get("repeats") or {}
    copies = (
        repeats.get("copied") and repeats.get("times", 1.0) > SAME_VARIANCE and not record.settings.get("allow_same")
    )
    return one if withheld(record) and not copies and one is not None and one.refutes else None


def declared(record: AuditRecord) -> bool:
    """Whether somebody declared rows to be independent, whatever they share."""
    return bool(record.settings.get("independent"))


def screened(record: AuditRecord) -> Mapping[str, Any]:
    """Which columns the tests read, and which rows chose them; empty where they read all of them."""
    results: Mapping[str, Any] = record.data.get("screen") or {}
    return results


def tested_rows(record: AuditRecord) -> int | None:
    """How many rows tests and subgroups read, where others chose the columns; None where they read all."""
    result = screened(record)
    return int(result["rows_tested"]) if result else None


def stated_of(record: AuditRecord, what: str) -> str:
    """What the caller said of the model, its use, the rows or the limit; empty where nothing was said."""
    stated = (record.settings.get("about") or {}).get(what)
    return sanitize(stated).strip() if stated else ""


def by_gap(record: AuditRecord, part: str) -> bool:
    """Whether a part is judged by the gap, in which errors cancel, and not by the calibration error."""
    return judged_by(str(record.settings["judge"]), part) == "gap"


def lost(record: AuditRecord) -> str:
    """The way that was chosen for rows whose outcome by a horizon is unknown; empty where there are none."""
    of = record.data.get("horizon") or {}
    return str(of["way"]) if of.get("unknown") and of["way"] != "followed" else ""


def unestimated(finding: Finding) -> bool:
    """Whether nobody of these was followed to the horizon, so that nothing estimates what happened."""
    return finding.gap.settings.get("estimate") == "none"


def gaps_of(record: AuditRecord) -> str:
    """Whose gaps were certified: "rows" in the data, or the "population", as of all before there was a choice."""
    return str(record.everyone.gap.settings.get("target", "population"))


def ordinary_level(record: AuditRecord) -> float | None:
    """The level of the ordinary intervals of gaps; None where none is known."""
    of = record.everyone.gap.interval
    return None if of is None else of.level


def cancels(record: AuditRecord) -> bool:
    """Whether everyone's gap is judged and the calibration error is certified over the limit: errors cancel."""
    limit, least = limit_of(record), record.everyone.lower.interval.low
    return by_gap(record, "everyone") and limit is not None and record.everyone.verdict != "over" and least > limit


@dataclass(frozen=True, slots=True)
class Off:
    """What is certified to be off: a named group, or a subgroup by its rule; where there is a limit, over it."""

    least: float  # it is off by at least this: the calibration error or gap of a group, the gap of a subgroup
    finding: Finding | None = None  # the group, or the class; None for a subgroup
    rule: str = ""  # the subgroup's; empty for one that cannot be shown
    side: Side = "unclear"  # whether the probabilities of a subgroup are too low or too high
    attributes: tuple[str, ...] = ()  # the variables of a subgroup's rule
    # Variables and levels of a subgroup that is one level of each, as a named group is reported; else empty.
    levels: tuple[tuple[str, str], ...] = ()
    rows: int = 0  # of a subgroup, as reported
    # Of a subgroup: its gap as estimated, and both certified ends of it.
    gap: float = 0.0
    low: float = -1.0
    high: float = 1.0
    of_class: bool = False  # it is one of several classes, against the others


def subgroups_over(record: AuditRecord) -> list[Off]:
    """The subgroups over the limit, the farthest off first; without a limit all that are off."""
    limit = limit_of(record)
    if limit is not None and state(record, "subgroups") != "over":
        return []
    return subgroups_known(record, limit or 0.0)


def subgroups_known(record: AuditRecord, beyond: float = 0.0) -> list[Off]:
    """The subgroups that are certified to be off by more than this, the farthest off first."""
    e, curve = record.estimates.get(SUBGROUPS), record.curve(SUBGROUPS)
    results = []
    for i, least in enumerate(curve.columns.get("floor", ())):
        if least > beyond:
            rule, low, high, rows = (curve.columns[k][i] for k in ("rule", "low", "high", "rows"))
            conditions = curve.settings["conditions"][i]
            attributes = tuple(dict.fromkeys(str(c["variable"]) for c in conditions))
            where = side(float(low), float(high))
            ends_ = float(curve.columns["gap"][i]), float(low), float(high)
            levels: tuple[tuple[str, str], ...] = ()
            if all(len(c.get("levels", ())) == 1 for c in conditions):
                levels = tuple(sorted((str(c["variable"]), str(c["levels"][0])) for c in conditions))
            results.append(Off(float(least), None, str(rule), where, attributes, levels, int(rows), *ends_))
    if not results and e is not None and e.interval.low > beyond:
        results = [Off(e.interval.low)]
    return sorted(results, key=lambda o: (-o.least, o.rule))


def unlisted_known(record: AuditRecord) -> list[Off]:
    """Those of `subgroups_known` that are no named group."""
    named = {tuple(sorted(f.variables)) for f in record.groups}
    return [o for o in subgroups_known(record) if o.levels not in named]


def check_of(record: AuditRecord, code: str) -> CheckRecord | None:
    return next((c for c in record.checks if c.code == code), None)


def ran(record: AuditRecord, code: str) -> CheckRecord | None:
    """The check with this code where its test was run, or None."""
    check = check_of(record, code)
    return check if check is not None and check.outcome is not None else None


def stands(record: AuditRecord, check: CheckRecord) -> bool:
    """Whether a test finds error that counts.

    The strong test is one of the two searches that the test of subgroups joins: joined, they count once. By itself it
    counts where subgroups were not tested, or somebody asked for it by name.
    """
    joined = ran(record, SUBGROUPS)
    once = check.code == STRONG and joined is not None and STRONG not in (record.settings.get("fail_on") or ())
    return record.test_shows(check) and (not once or joined is None or record.test_shows(joined))


def products(record: AuditRecord) -> Mapping[str, Any]:
    """What the strong test says of products of three attributes; empty where they were not tested."""
    check = ran(record, STRONG)
    parts = {} if check is None or check.outcome is None else check.outcome.parts
    return parts if "p_bayes_factor" in parts else {}


def draws_of(outcome: Outcome) -> int | None:
    """How many simulations a p-value rests on; None where it rests on the law of many people."""
    simulated = any(word in outcome.law for word in SIMULATED)
    return int(outcome.settings["draws"]) if simulated and "draws" in outcome.settings else None


def impossible(outcome: Outcome) -> int:
    """How many outcomes the score called impossible; one is enough to refute it."""
    return int(outcome.parts.get("contradicted", outcome.parts.get("impossible", 0)))


def side(low: float, high: float) -> Side:
    """What a range of observed minus predicted shows: underprediction, overprediction, or unclear."""
    return "low" if low > 0 else "high" if high < 0 else "unclear"


def gap_side(record: AuditRecord) -> Side | None:
    """The direction of the overall gap, or None where it could not be computed."""
    gap: Estimate | None = record.estimates.get("gap")
    return None if gap is None else side(gap.interval.low, gap.interval.high)


def carries_curve(record: AuditRecord) -> bool:
    """Whether the data carry a reliability curve: 50 expected events and 50 expected non-events."""
    return not few(record) and len(record.curve("bins").columns.get("predicted", ())) > 0


def few(record: AuditRecord) -> bool:
    """Whether there are under 50 expected events, or under 50 expected non-events."""
    one = record.everyone
    return min(one.expected, one.rows - one.expected) < FEW


def mask_of(record: AuditRecord) -> int:
    """The people under whom a group is not shown; 1 where every group is."""
    return int(record.settings.get("mask", MASK) or 1)


def published(record: AuditRecord) -> bool:
    """Whether numbers of groups are multiples of five; so they are in records that do not say."""
    return bool(record.settings.get("publish", True) or record.data.get("rounded_for"))


def fives(record: AuditRecord, rows: int, *, searched: bool = False) -> int:
    """The people whose numbers are multiples of five; 0 where they are exact.

    `searched`: of a set that a search cut, whose numbers are so wherever small groups are not shown.
    """
    return rows if published(record) or (searched and mask_of(record) > 1) else 0


def need_of(finding: Finding) -> tuple[int, bool] | None:
    """How many rows, or clusters, would decide, and whether that is a least; None where nobody can say."""
    need = finding.rows_needed if finding.clusters_needed is None else finding.clusters_needed
    return None if need is None else (need, finding.rows_at_least)


def subgroups_need(worst: Estimate) -> tuple[int, bool] | None:
    """The same of unlisted subgroups: how many rows, or clusters, would decide on the worst of them."""
    s = worst.settings
    noun = "rows" if s.get("clusters_needed") is None else "clusters"
    need = s.get(f"{noun}_needed")
    return None if need is None else (int(need), bool(s[f"{noun}_at_least"]))


def median_need(groups: Sequence[Finding]) -> tuple[int, bool] | None:
    """How many rows would decide at least half of these groups, and whether that is a least; None if not known."""
    needs = sorted(need for f in groups if (need := need_of(f)) is not None)
    half = -(-len(groups) // 2)
    return (needs[half - 1][0], any(least for _, least in needs[:half])) if 0 < half <= len(needs) else None


def subgroups_state(record: AuditRecord) -> Subgroups:
    """What is known of unlisted subgroups.

    ``"error_shown"``: error was found, and no subgroup is certified over the limit. ``"absent"``: they were not
    searched.
    """
    known = state(record, "subgroups")
    return "measured" if known == "not_checked" else known


# ---- curves of the record, a row each ----


def lines_of(curve: Curve) -> list[Line]:
    """The rows of a curve, by the names of its columns."""
    c = curve.columns
    return [dict(zip(c, row, strict=True)) for row in zip(*c.values(), strict=True)]


def range_of(line: Line, when: str, limit: float | None) -> tuple[float, float] | None:
    """Both ends of a population now or after a repair, as its verdict leaves them; None where there are none."""
    low, high = line[f"{when}_low"], line[f"{when}_high"]
    if low is None:
        return None
    low, high = size(low, high) if line["measure"] == "gap" else (low, high)
    return at_limit(float(low), float(high), line[when], limit)


@dataclass(frozen=True, slots=True)
class Ranked:
    """One variable of the ranking; errors are fractions."""

    error_shown: bool  # whether error beyond the overall gap is shown
    worst: str  # values that add most; empty where too few people have them to be shown
    gap: float  # what happened minus what the model says there, less the overall gap
    variable: str
    kind: str
    beyond: float  # estimated average gap along the variable beyond the overall gap
    # `low` and `high`: certified, for `beyond`; None where no proof covers the data.
    low: float | None
    high: float | None
    whole: float  # estimated average gap along the variable, the shift included
    # `whole_low` and `whole_high`: certified, for `whole`.
    whole_low: float | None
    whole_high: float | None
    adjusted: float  # p-value of `beyond`, adjusted for all variables of the ranking


RANKING = ("variable", "kind", "beyond_gap", "beyond_low", "beyond_high", "vece", "low", "high", "p_adjusted")


def ranked(record: AuditRecord) -> tuple[Ranked, ...]:
    """The variables of a record, the one the error varies with most first; pairs of variables are left out."""
    alpha, mask, out = float(record.settings["alpha"]), mask_of(record), []
    for line in lines_of(record.curve("ranking")):
        seen = line["worst_rows"] is not None and int(line["worst_rows"]) >= mask
        worst, gap = (str(line["worst"]), float(line["worst_beyond_gap"])) if seen else ("", 0.0)
        if line["kind"] != "pair":
            shown = float(line["p_adjusted"]) <= alpha
            out.append(Ranked(shown, worst, gap, *(line[k] for k in RANKING)))
    return tuple(out)


# ---- what the record holds of the data ----


def groupings(record: AuditRecord) -> list[tuple[str, ...]]:
    """The columns that form groups, alone or crossed, however the record holds them."""
    by = record.data.get("by") or ()
    return [tuple(map(str, b)) if isinstance(b, (list, tuple)) else (str(b),) for b in by]


def drops_missing(data: Mapping[str, Any]) -> bool:
    """Whether rows were left out that an audit takes only on request; those of weight 0 it leaves out unasked."""
    return dropped(data) > 0 and {*(data.get("dropped_for") or ())} != {"weight above 0"}


def dropped(data: Mapping[str, Any]) -> int:
    d = data.get("dropped", 0)
    return int(sum(d.values())) if isinstance(d, Mapping) else int(d or 0)
