"""What is counted where rows share clusters or count more: clusters, their effective number, and what that costs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from calibrant.audit.record import SAME_VARIANCE, AuditRecord, Finding
from calibrant.report import numbers as num
from calibrant.report.document import Entry
from calibrant.report.findings import (
    TOGETHER,
    SharedBy,
    cluster_totals,
    crossing,
    declared,
    limit_of,
    lost,
    noun,
    refuted,
)
from calibrant.report.spans import Text, code, say
from calibrant.sanitize import sanitize

NAMED = 3  # columns of groups
WIDE = 3.0  # times the limit: the widest range of an error that may be called close to it
NOT_CORRELATED = "the rows of one cluster are hardly more correlated than others"


TWO_WAY = (
    "Clusters of both columns are assigned to as many groups each, by size and name. For an offset, rows of one group "
    "of {0} and of the group of {1} that many places on are a block; no two blocks of one offset share a cluster. Each "
    "offset is certified by its blocks as independent clusters are, and the mean of its e-values over offsets is one, "
    "however they depend on one another (Theorem X). Assumed: rows that share neither cluster are independent; which "
    "rows there are, and what they weigh, does not depend on scores and outcomes. The design effect is the variance "
    "of the mean error, of rows that share a cluster of either, over that of independent rows. Measures, tests, "
    "subgroups and repairs have no proof for such rows, and none is reported."
)


def no_plan(record: AuditRecord) -> str:
    """Return what would decide where clusters cross, of which no plan says how many; empty where they do not."""
    both = " and more of ".join(map(sanitize, crossing(record)))
    return f"More clusters of {both} would decide; how many is not planned where clusters cross." if both else ""


def too_wide(record: AuditRecord, finding: Finding) -> bool:
    """Return whether a range is so wide that few rows or clusters, and not the limit, leave it undecided."""
    limit, (low, high) = limit_of(record), finding.shown
    return limit is not None and high - low > WIDE * limit


def no_number(record: AuditRecord, few: str, *undecided: Finding) -> str:
    """Return why nobody can say how many rows or clusters, called `few`, would decide."""
    if lost(record):
        return f"More {few} are needed; no plan says how many, where the outcomes of some are unknown."
    reported = f"The error is too close to the limit to say how many {few} would decide."
    if any(too_wide(record, f) for f in undecided):
        reported = f"More {few} are needed: the range is too wide to say how many."
    return no_plan(record) or reported


def one_column(record: AuditRecord) -> Text:
    """Return which option has an answer to what is not checked where clusters cross; empty where they do not."""
    if not (both := crossing(record)):
        return ()
    _, other = both
    by = [code(f"--cluster {name}") for name in both]
    return say(" By one column it is: ", by[0], ", about these clusters of ", code(other), ", or ", by[1], ".")


def one_cluster_each(record: AuditRecord, column: str) -> str | None:
    """Return how many values a column of groups has, where each is one cluster: it names the cluster; else None."""
    result, data = cluster_totals(record), record.data
    if not result or crossing(record) or column != data.get("cluster"):
        return None
    return f"{'' if result['exact'] else 'About '}{num.count(result['count'])}"


@dataclass(frozen=True, slots=True)
class Independent:
    """What counts as independent, rows or whole clusters, in words."""

    one: str
    many: str
    chance: str  # what a statistic is compared with
    # `least`, `most`, `when`: how surely, and when, a band from that holds.
    least: str
    most: str
    when: str


ROWS = Independent("row", "rows", "simulated outcomes", "at least", "at most", "at any number of rows")
CLUSTERS = Independent(
    "cluster", "clusters", "random signs of whole clusters", "about", "about", "if clusters are many"
)


def independent(record: AuditRecord) -> Independent:
    """What counts as independent in an audit."""
    return CLUSTERS if record.data.get("cluster") else ROWS


def chance(record: AuditRecord, draws: int) -> str:
    return f"{num.count(draws)} sets of {independent(record).chance}"


def wider(effect: float) -> str:
    """Return how many times as wide ranges are by clusters as by rows, about, by the design effect."""
    return f"{effect**0.5:.1f}"


def too_narrow(record: AuditRecord) -> str:
    """Return why ranges decide nothing."""
    return f"Ranges are too narrow: rows are {'copies' if refuted(record) is None else 'correlated'}."


def names_of(columns: Sequence[str]) -> Text:
    """Return columns that name a cluster, alone or together."""
    parts = [(*say(", " if i else ""), code(name)) for i, name in enumerate(columns[:-1])]
    return (*(span for part in parts for span in part), *say(" and " if parts else "", code(columns[-1])))


def correlated(record: AuditRecord, one: SharedBy) -> Text:
    """Return that rows of one value are correlated, though nobody named the cluster, and what that does to ranges."""
    rows, effect = say("Rows of one ", *names_of(one.columns)), f"design effect {one.effect:.1f}."
    if declared(record):
        reported = f" are correlated: {effect} They are declared independent by "
        return say(*rows, reported, code("--cluster none"), ", so ranges may be too narrow.")
    if one.one_outcome:
        return say(
            *rows, f" have one outcome, in each of {num.count(one.clusters)}: {effect} Ranges take them as independent."
        )
    few = " A few values make it: they may be groups that are off." if one.few else ""
    reported = (
        f" are more correlated than their scores explain: {effect}{few} Ranges and tests here take rows as independent."
    )
    return say(*rows, reported)


def counts_as_independent(record: AuditRecord) -> Text:
    """Return what was looked at for correlated rows, where none was detected."""
    s = record.curve(TOGETHER).settings
    if declared(record):
        return say("Rows are declared independent by ", code("--cluster none"), ".")
    n, joint = int(s.get("columns", 0)), int(s.get("joint", 0))
    also = f" and {num.count(joint)} pair{' or triple' if joint == 1 else 's and triples'}" if joint else ""
    looked = f"looked at {num.count(n)} column{'' if n == 1 else 's'}{also} that rows share"
    by = tuple(dict.fromkeys(variable for group in record.groups for variable, _ in group.variables))
    none = f"Rows count as independent: {looked}, and detected no correlation. A small one is not detected."
    if not n and not joint:
        none = "Rows count as independent: no column was there that rows of one person or one site could share."
    if not by:
        return say(none)
    named = names_of(by) if len(by) <= NAMED else say(f"the {num.count(len(by))} columns of ", code("--by"))
    return say(none, " Groups were not looked at as clusters: ", *named, ".")


def counted(record: AuditRecord) -> Text:
    """Return what is counted: rows, of how many clusters, weighted by which column; nothing of independent rows."""
    result, data = cluster_totals(record), record.data
    if not result:
        return ()
    rows = f"{num.count(record.everyone.rows)} {noun(record)}"
    by = say(", weighted by ", code(data["weights"])) if data.get("weights") else ()
    if both := crossing(record):
        (one, n), (other, m) = both.items()
        first, second = (
            say(f"{num.count(n)} clusters (", code(one), ")"),
            say(f"{num.count(m)} clusters (", code(other), ")"),
        )
        return say(f"{rows} of ", *first, " and ", *second, ", which cross", *by)
    of = say(f" of {_clusters(record)} (", code(data["cluster"]), *_nested(record), ")") if data.get("cluster") else ()
    return say(rows, *of, *by)


def _nested(record: AuditRecord) -> Text:
    """Return which finer clusters lie whole in these; nothing where one column names the clusters."""
    kept = [(f"all {num.count(n)} of ", code(name)) for name, n in (record.data.get("nested") or {}).items()]
    parts = [piece for i, pair in enumerate(kept) for piece in (*((" and ",) if i else ()), *pair)]
    return say(", in which ", *parts, " lie") if parts else ()


def in_clusters(record: AuditRecord) -> Iterator[Text]:
    """Yield what ranges by clusters or weights are about, and what they rest on: at most two lines."""
    if not cluster_totals(record):
        return
    yield say(*counted(record), ": ", *_holds(record))
    if more := tuple(_more(record)):
        yield say(" ".join(more))


def _clusters(record: AuditRecord) -> str:
    result = cluster_totals(record)
    return f"{'' if result['exact'] else 'about '}{num.count(result['count'])} clusters"


def _holds(record: AuditRecord) -> Text:
    result, data = cluster_totals(record), record.data
    effective = num.count(result["effective"])
    also = " Counts of rows and events are not weighted." if data.get("weights") else ""
    if both := crossing(record):
        one, other = map(code, both)
        shared = say("ranges take ", noun(record), " as independent that share neither ", one, " nor ", other)
        return say(
            *shared,
            f", and hold however correlated others are; as precise as {effective} independent blocks.{also}",
        )
    if not data.get("cluster"):
        reported = f"as precise as {effective} of equal weight"
        return say(f"ranges are of the weighted rows, {reported}; counts of rows and events are not weighted.")
    return say(
        f"ranges hold however correlated the rows of one cluster are; as precise as {effective} "
        f"clusters of equal "
        f"size.{also}"
    )


def _more(record: AuditRecord) -> Iterator[str]:
    """Yield which clusters are certified, how much wider that makes ranges, and which were weighted down."""
    result, clusters = cluster_totals(record), independent(record).many
    if not result["exact"]:
        kept = f"{num.count(result['held'])} of about {num.count(result['count'])} {clusters}"
        yield f"Certified on the rows of {kept}, chosen without looking at outcomes."
    effect, wider = float(result["design_effect"]), result["wider"]
    as_wide = ": the range of the overall gap is {:.1f} times as wide as of independent rows"
    wide = "" if wider is None else as_wide.format(wider)
    if crossing(record):
        shared = "are hardly more correlated than others"
        if effect > SAME_VARIANCE:
            shared = f"are correlated (design effect {effect:.1f})"
        yield f"Rows that share a cluster of either {shared}{_though_few(record, wide)}."
        return
    if record.data.get("cluster"):
        correlated = NOT_CORRELATED
        if effect > SAME_VARIANCE:
            correlated = f"the rows of one cluster are correlated (design effect {effect:.1f})"
        yield f"{correlated[:1].upper()}{correlated[1:]}{_though_few(record, wide)}."
    elif wider is not None:
        yield f"The range of the overall gap is {wider:.1f} times as wide as with equal weights."
    if result["truncated_weights"]:
        n, pilots = int(result["truncated_weights"]), num.count(result["pilots"])
        which = f"{clusters[:-1]} was larger" if n == 1 else f"{clusters} were larger"
        yield f"{num.count(n)} {which} than the largest of {pilots} pilot {clusters} and weighted down to it."


def _though_few(record: AuditRecord, wide: str) -> str:
    """Return how much wider ranges are, and where rows are not correlated that it is for few clusters."""
    result = cluster_totals(record)
    if not wide or result["design_effect"] > SAME_VARIANCE or result["wider"] <= SAME_VARIANCE:
        return wide
    counts = [num.count(n) for n in crossing(record).values()] or [num.count(result["held"])]
    return f", but of {' and '.join(counts)} clusters{wide.removeprefix(':')}"


def methods(record: AuditRecord) -> tuple[Entry, ...]:
    result = cluster_totals(record)
    if not result:
        return ()
    if crossing(record):
        return (Entry("Clusters that cross", say(TWO_WAY.format(*map(sanitize, crossing(record))))),)
    one, pilots = result["pilots"] == 1, num.count(result["pilots"])
    clusters = independent(record).one if one else independent(record).many
    bets = (
        "A cluster, not a row, is one independent observation: its rows' errors are added up, weighted, before "
        "anything is estimated from them (Theorem CL from below, CU from above). "
    )
    chosen = (
        f"{pilots} {clusters}, chosen by name and set aside as pilot sample, give{'s' * one} the largest size; larger "
        "ones count as that. Assumed: clusters are independent, and weights do not depend on outcomes. "
        f"Effective number: the squared sum of sizes over the sum of squares, {num.count(result['effective'])}. "
        "The design effect is the variance of the mean error by clusters over that by rows. Halves and folds keep "
        "clusters whole."
    )
    return (Entry("Clusters and weights", say(bets + chosen)),)
