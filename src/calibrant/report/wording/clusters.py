"""What is counted where rows share clusters or count more: clusters, their effective number, and what that costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

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
    shared_by,
)
from calibrant.report.spans import Text, code, say
from calibrant.report.wording.terms import capital, rows_counted
from calibrant.sanitize import sanitize

NAMED = 3  # columns of groups
WIDE = 3.0  # times the limit: the widest range of an error that may be called close to it
WIDER = "the range of the overall gap is {:.1f} times as wide"
CHOSEN = (
    "A cluster, not a row, is one independent observation: its rows' errors are added up, weighted, before "
    "anything is estimated from them (Theorem CL from below, CU from above). {of}, chosen by name and set aside as "
    "pilot sample, {give} the largest size; larger ones count as that. Assumed: clusters are independent, and weights "
    "do not depend on outcomes. Effective number: the squared sum of sizes over the sum of squares, {effective}. "
    "The design effect is the variance of the mean error by clusters over that by rows. Halves and folds keep "
    "clusters whole."
)
TWO_WAY = (
    "Clusters of both columns are assigned to as many groups each, by size and name. For an offset, rows of one group "
    "of {0} and of the group of {1} that many places on are a block; no two blocks of one offset share a cluster. Each "
    "offset is certified by its blocks as independent clusters are, and the mean of its e-values over offsets is one, "
    "however they depend on one another (Theorem X). Assumed: rows that share neither cluster are independent; which "
    "rows there are, and what they weigh, does not depend on scores and outcomes. The design effect is the variance "
    "of the mean error, of rows that share a cluster of either, over that of independent rows. Measures, tests, "
    "subgroups and repairs have no proof for such rows, and none is reported."
)


def too_wide(record: AuditRecord, finding: Finding) -> bool:
    """Whether a range is so wide that few rows or clusters, and not the limit, leave it undecided."""
    limit, (low, high) = limit_of(record), finding.shown
    return limit is not None and high - low > WIDE * limit


def no_number(record: AuditRecord, few: str, *undecided: Finding) -> str:
    """Why nobody can say how many rows or clusters, called `few`, would decide."""
    if lost(record):
        return f"More {few} are needed; no plan says how many, where the outcomes of some are unknown."
    reported = f"The error is too close to the limit to say how many {few} would decide."
    if any(too_wide(record, f) for f in undecided):
        reported = f"More {few} are needed: the range is too wide to say how many."
    return independent(record).no_plan or reported


@dataclass(frozen=True, slots=True)
class Weighing:
    """What is said of how much rows count: here that they count alike."""

    by: Text = ()  # after what is counted
    counts: str = ""  # after a count of events
    also: str = ""  # after what ranges are about
    ranges: str = ""
    each: str = ""
    stand_for: str = "these {} were drawn from"


def weighing(record: AuditRecord) -> Weighing:
    """The same of a record."""
    if not (column := record.data.get("weights")):
        return Weighing()
    return Weighing(
        by=say(", weighted by ", code(column)),
        counts="; counts are not weighted",
        also=" Counts of rows and events are not weighted.",
        ranges=" Ranges are of the weighted rows.",
        each="each by its weight, ",
        stand_for="that these {} stand for, each by its weight",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Independent:
    """What counts as independent in an audit, in words: by default its rows, which count alike."""

    called: str  # what there may be too few of
    needed: str  # the same, by which column
    now: int  # how many there are
    one: str = "row"
    many: str = "rows"
    chance: str = "simulated outcomes"  # what a statistic is compared with
    # `least`, `most`, `when`: how surely, and when, a band from that holds.
    least: str = "at least"
    most: str = "at most"
    when: str = "at any number of rows"
    signs: str = ""  # the law of a statistic, where it is not that of a test's simulations
    would_decide: str = "Log rows that"
    head: str = ""  # of an entry that says what is counted
    counted: Text = ()  # rows, of how many clusters, weighted by which column; nothing of independent rows
    part: str = ""  # how many of how many a sketch holds, where that is not all
    lines: tuple[Text, ...] = ()  # what ranges are about, and what they rest on: at most two
    looked: tuple[Text, ...] = ()  # what was looked at for correlated rows, where none was detected
    apart: str = ""  # what ranges take as independent, where it is not each row
    gaps_of: str = ""  # whose gaps are, where they are not of the rows in the data
    term: str = ""  # one independent term of a subgroup's error, where it is not an outcome
    one_each: str = ""  # how many values the column has that names clusters: as groups they are one cluster each
    column: str = ""  # which names clusters
    without_outcome: str = ""  # of outcomes not known: how many clusters lack one, each one bet; what ranges are of
    one_column: Text = ()  # which option has an answer to what is not checked where clusters cross
    no_plan: str = ""  # what would decide, where no plan says how many
    methods: tuple[Entry, ...] = ()


def independent(record: AuditRecord) -> Independent:
    """What counts as independent in an audit."""
    if not cluster_totals(record):
        return _alone(record) if record.data.get("cluster") else _rows(record)
    if crossing(record):
        return _crossing(record)
    return _clusters(record) if record.data.get("cluster") else _weighted(record)


def _rows(record: AuditRecord) -> Independent:
    alone = shared_by(record) is None and record.curve(TOGETHER).settings
    looked = (counts_as_independent(record),) if alone else ()
    of, ranges = noun(record), weighing(record).ranges  # rows without an outcome may be weighted where others are not
    return Independent(called=of, needed=of, now=record.everyone.rows, looked=looked, without_outcome=ranges)


def _weighted(record: AuditRecord) -> Independent:
    """Rows that do not count alike, each by itself."""
    result, weights = cluster_totals(record), weighing(record)
    precise = f"as precise as {num.count(result['effective'])} of equal weight"
    holds = say(f"ranges are of the weighted rows, {precise}; counts of rows and events are not weighted.")
    width = "" if result["wider"] is None else f"{WIDER.format(result['wider'])} as with equal weights."
    one = replace(
        _rows(record),
        looked=(),
        counted=say(rows_counted(record), *weights.by),
        head="Weights",
        apart="whole clusters",
        gaps_of="weighted rows",
        term="row",
    )
    return _certified(one, record, holds, capital(width))


OF_CLUSTERS = Independent(
    called="clusters",
    needed="clusters",
    now=0,
    one="cluster",
    many="clusters",
    chance="random signs of whole clusters",
    least="about",
    most="about",
    when="if clusters are many",
    signs="random signs of whole clusters, which is approximate",
    would_decide="Clusters that",
)
CERTIFIED = replace(  # as whole clusters
    OF_CLUSTERS,
    head="Clusters",
    apart="whole clusters",
    gaps_of="clusters",
    term="cluster, however correlated its rows are,",
)


def _by_column(record: AuditRecord) -> str:
    return f"clusters ({sanitize(record.data['cluster'])})"


def _without_outcome(record: AuditRecord) -> str:
    """How many clusters have rows without an outcome, and that each is one bet; nothing where every row has one."""
    s = record.curve("missing_labels").settings
    if "clusters" not in s:
        return ""
    return (
        f" {num.count(s['clusters_unlabelled'])} of {num.count(s['clusters'])} clusters have rows without an outcome, "
        f"and each cluster, with all of its rows, is one independent observation.{weighing(record).ranges}"
    )


def _alone(record: AuditRecord) -> Independent:
    """Clusters of one row each, which count alike: certified as rows are, and tested by the signs of clusters."""
    rows, each = _rows(record), _without_outcome(record)
    return replace(OF_CLUSTERS, needed=_by_column(record), now=rows.now, looked=rows.looked, without_outcome=each)


def _clusters(record: AuditRecord) -> Independent:
    result, weights, column = cluster_totals(record), weighing(record), str(record.data["cluster"])
    number = num.count(result["count"])
    about = "" if result["exact"] else "about "
    of = say(f" of {about}{number} clusters (", code(column), *_nested(record), ")")
    precise = f"as precise as {num.count(result['effective'])} clusters of equal size.{weights.also}"
    one = replace(
        CERTIFIED,
        needed=_by_column(record),
        now=int(result["held"]),
        counted=say(rows_counted(record), *of, *weights.by),
        one_each=f"{capital(about)}{number}",
        column=column,
        without_outcome=_without_outcome(record),
    )
    holds = say(f"ranges hold however correlated the rows of one cluster are; {precise}")
    return _certified(one, record, holds, _shared(record, "The rows of one cluster", [result["held"]]))


def _crossing(record: AuditRecord) -> Independent:
    """Rows that share clusters of either of two columns, which cross."""
    result, weights, both = cluster_totals(record), weighing(record), crossing(record)
    names, (one, other) = tuple(map(sanitize, both)), map(code, both)
    n, m = map(num.count, both.values())
    of = say(" of ", f"{n} clusters (", one, ")", " and ", f"{m} clusters (", other, "), which cross")
    more, by = " and more of ".join(names), [code(f"--cluster {name}") for name in both]
    made = replace(
        CERTIFIED,
        needed=_by_column(record),
        now=int(result["held"]),
        counted=say(rows_counted(record), *of, *weights.by),
        apart="rows that share no cluster of either column",
        one_column=say(" By one column it is: ", by[0], ", about these clusters of ", other, ", or ", by[1], "."),
        no_plan=f"More clusters of {more} would decide; how many is not planned where clusters cross.",
    )
    holds = say(
        "ranges take ",
        noun(record),
        " as independent that share neither ",
        one,
        " nor ",
        other,
        f", and hold however correlated others are; as precise as {num.count(result['effective'])} independent blocks."
        f"{weights.also}",
    )
    shared = _shared(record, "Rows that share a cluster of either", list(both.values()))
    methods = (Entry("Clusters that cross", say(TWO_WAY.format(*names))),)
    return replace(_certified(made, record, holds, shared), methods=methods)


def _nested(record: AuditRecord) -> Text:
    """Which finer clusters lie whole in these; nothing where one column names the clusters."""
    kept = [(f"all {num.count(n)} of ", code(name)) for name, n in (record.data.get("nested") or {}).items()]
    parts = [piece for i, pair in enumerate(kept) for piece in (*((" and ",) if i else ()), *pair)]
    return say(", in which ", *parts, " lie") if parts else ()


def _shared(record: AuditRecord, rows: str, numbers: Sequence[int]) -> str:
    """How correlated rows are, how much wider that makes ranges, or that it is for few clusters."""
    result = cluster_totals(record)
    effect, wider = float(result["design_effect"]), result["wider"]
    shared = f"{rows} are hardly more correlated than others"
    if effect > SAME_VARIANCE:
        shared = f"{rows} are correlated (design effect {effect:.1f})"
    if wider is None:
        return f"{shared}."
    few = effect <= SAME_VARIANCE < wider
    start = f", but of {' and '.join(map(num.count, numbers))} clusters" if few else ":"
    return f"{shared}{start} {WIDER.format(wider)} as of independent rows."


def _certified(by: Independent, record: AuditRecord, holds: Text, width: str) -> Independent:
    """With which are certified, how much wider that makes ranges, and which were weighted down; and how."""
    result, many, more = cluster_totals(record), by.many, []
    pilots = num.count(result["pilots"])
    part = "" if result["exact"] else f"{num.count(result['held'])} of about {num.count(result['count'])}"
    if part:
        more.append(f"Certified on the rows of {part} {many}, chosen without looking at outcomes.")
    more += [width] if width else []
    if n := int(result["truncated_weights"]):
        which = f"{by.one} was larger" if n == 1 else f"{many} were larger"
        more.append(f"{num.count(n)} {which} than the largest of {pilots} pilot {many} and weighted down to it.")
    lines = (say(*by.counted, ": ", *holds), *((say(" ".join(more)),) if more else ()))
    chosen = CHOSEN.format(
        of=f"{pilots} {by.one if result['pilots'] == 1 else many}",
        give="gives" if result["pilots"] == 1 else "give",
        effective=num.count(result["effective"]),
    )
    return replace(by, part=part, lines=lines, methods=(Entry("Clusters and weights", say(chosen)),))


def chance(record: AuditRecord, draws: int) -> str:
    return f"{num.count(draws)} sets of {independent(record).chance}"


def wider(effect: float) -> str:
    """How many times as wide ranges are by clusters as by rows, about, by the design effect."""
    return f"{effect**0.5:.1f}"


def too_narrow(record: AuditRecord) -> str:
    """Why ranges decide nothing."""
    return f"Ranges are too narrow: rows are {'copies' if refuted(record) is None else 'correlated'}."


def names_of(columns: Sequence[str]) -> Text:
    """Write the columns that name a cluster, alone or together."""
    parts = [(*say(", " if i else ""), code(name)) for i, name in enumerate(columns[:-1])]
    return (*(span for part in parts for span in part), *say(" and " if parts else "", code(columns[-1])))


def correlated(record: AuditRecord, one: SharedBy) -> Text:
    """Say that rows of one value are correlated, though nobody named the cluster, and what that does to ranges."""
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
    """What was looked at for correlated rows, where none was detected."""
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
