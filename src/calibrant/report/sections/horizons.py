"""Several horizons that share alpha: everyone, and how many groups are what, by each."""

from __future__ import annotations

from collections.abc import Iterator

from calibrant.audit.record import AuditRecord
from calibrant.report import numbers as num
from calibrant.report.document import Node, Paragraph, number_table
from calibrant.report.findings import limit_of, lines_of, lost
from calibrant.report.spans import say
from calibrant.report.wording.lost import each, recorded
from calibrant.report.wording.terms import VERDICTS

EVERYONE = "everyone"
NONE = "no estimate"
CAPTION = (
    "All {count} horizons share the {alpha}%: everyone's guaranteed ranges hold simultaneously, and so do those of "
    "groups. This page is about {which}, {shown}. Points."
)


def by_horizon(record: AuditRecord) -> Iterator[Node]:
    """A table with a line for each horizon; nothing of one horizon."""
    curve = record.curve("horizons")
    lines = lines_of(curve)
    if not lines:
        return
    judged = limit_of(record) is not None
    gone = {horizon: (how, unknown) for horizon, how, unknown in each(record)}
    happened = "Estimated, in 100" if lost(record) or any(n for _, n in gone.values()) else "Happened, in 100"
    heads = [
        "Horizon",
        *(["Rows lost"] if gone else []),
        "Model says, in 100",
        happened,
        "Gap",
        "Guaranteed",
        *(["Everyone", "Groups"] if judged else []),
    ]
    rows = []
    for line in (x for x in lines if x["people"] == EVERYONE):
        groups = [x["verdict"] for x in lines if x["horizon"] == line["horizon"] and x["people"] != EVERYONE]
        counts = ((v, groups.count(v)) for v in ("over", "undecided", "within"))
        summed = ", ".join(f"{num.count(n)} {VERDICTS[v].lower()}" for v, n in counts if n) or "none"
        low, high = num.signed_range(float(line["low"]), float(line["high"]))
        cells = [NONE if line[k] is None else f"{float(line[k]) * 100:.1f}" for k in ("predicted", "observed")]
        cells += [NONE if line["gap"] is None else num.gap(float(line["gap"]))]
        more = (VERDICTS[line["verdict"]], summed) if judged else ()
        how, unknown = gone.get(line["horizon"], ("", 0))
        ways = "weights" if how == "weights" else "nothing assumed"
        left = (f"{num.count(unknown)}, {ways}" if unknown else "none",) if gone else ()
        rows.append((f"{float(line['horizon']):g}", *left, *cells, f"{low} to {high}", *more))
    caption = CAPTION.format(
        count=num.count(len(rows)),
        alpha=f"{100 * float(curve.settings['alpha']):g}",
        which=recorded(record),
        shown=f"{record.data['horizon']['horizon']:g}",
    )
    yield Paragraph(say(caption))
    yield number_table("By horizon", heads, rows, "cards")
