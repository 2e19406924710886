"""The section about sites: the mean over them, what a new one is to expect, and each with its range."""

from __future__ import annotations

from collections.abc import Iterator

from calibrant.audit.record import AuditRecord, CheckRecord
from calibrant.report import numbers as num
from calibrant.report import places, svg
from calibrant.report.document import Cell, Column, Entry, Figure, Node, Panel, Paragraph, Row, Table
from calibrant.report.outline import Declared, OutlineCheck
from calibrant.report.spans import Text, code, say, strong
from calibrant.results import Curve

CODE = "sites"
LEVEL = 0.05  # of the test that all sites are alike


def sites(record: AuditRecord) -> Iterator[Node]:
    """The answer and one row for the mean, a new site and each site shown; nothing where no units are sites."""
    curve = record.curve(CODE)
    if not curve.settings:
        return
    yield Paragraph(_answer(curve), "answer")
    yield _figure(record)
    yield Paragraph(_note(record), "note")


def _answer(curve: Curve) -> Text:
    """Return in words how many events there are for each that was expected, on average and at a new site."""
    s = curve.settings
    differ = (
        "Clusters differ beyond chance"
        if s["p_value"] <= LEVEL
        else ("No difference between clusters is shown beyond chance")
    )
    return say(
        f"{differ}. Averaged over {num.count(s['sites'])} clusters (",
        code(s["site"]),
        "), ",
        strong(f"{_times(curve, 'ratio')} times as many events happened as the model expects"),
        f" ({_times(curve, 'ratio_low')} to {_times(curve, 'ratio_high')}). A new one is to expect ",
        strong(f"{_times(curve, 'ratio_new_low')} to {_times(curve, 'ratio_new_high')} times as many"),
        ".",
    )


def _times(curve: Curve, name: str) -> str:
    return num.decimals(float(curve.settings[name]), 2)


def _figure(record: AuditRecord) -> Figure:
    """The caterpillar: intercepts in logits with their ranges, the lowest first, over the mean and a new one."""
    c, s = record.curve(CODE).columns, record.curve(CODE).settings
    inside = [s[k] for k in ("new_low", "new_high", "mean_low", "mean_high")] + list(c["estimate"])
    top = places.end_of(max(abs(float(v)) for v in inside))
    lines = [(float(a), float(b), float(h)) for a, b, h in zip(c["low"], c["estimate"], c["high"], strict=True)]
    mean, new = ((float(s[f"{k}_low"]), float(s[f"{k}_high"])) for k in ("mean", "new"))
    words = f"Calibration intercepts of {num.count(len(lines))} clusters, from {num.decimals(lines[0][1], 2)} to "
    picture = svg.caterpillar(lines, (mean, new), top, f"{words}{num.decimals(lines[-1][1], 2)}.")
    panel = Panel("Each cluster with its range", picture, axis="calibration intercept, logits; above 0: underpredicts")
    return Figure(panels=(panel,), key=(), caption=say(_caption(record.curve(CODE))), numbers=(_numbers(record),))


def _numbers(record: AuditRecord) -> Table:
    """The picture as a table."""
    c, s = record.curve(CODE).columns, record.curve(CODE).settings
    columns = Column(say("Cluster")), Column(say("Intercept, logits"), "r"), Column(say("Range"), "r")
    pooled = (
        ("Mean of all clusters", s["mean"], s["mean_low"], s["mean_high"]),
        ("A new cluster", s["mean"], s["new_low"], s["new_high"]),
    )
    each = ((f"number {rank}", *rest) for rank, *rest in zip(*c.values(), strict=True))
    rows = (
        Row(
            tuple(
                Cell(say(t))
                for t in (name, num.decimals(at, 2), num.between(num.decimals(low, 2), num.decimals(high, 2)))
            )
        )
        for name, at, low, high in (*pooled, *each)
    )
    return Table(columns, tuple(rows), "The lowest first, without names.")


def _caption(curve: Curve) -> str:
    s, shown = curve.settings, len(curve.columns["rank"])
    unshown, all_of = int(s["unshown"]), int(s["sites"]) - int(s["unshown"])
    parts = [
        "The lowest first, without names: a cluster may be one person. Narrow strip: the mean; wide: a new cluster."
    ]
    if shown < all_of:
        parts.append(f"{num.count(shown)} of {num.count(all_of)} are drawn, evenly spaced.")
    if unshown:
        parts.append(f"{num.count(unshown)} with few rows count and are not drawn.")
    return " ".join(parts)


def _note(record: AuditRecord) -> Text:
    """The same in logits, the spread between sites, and what the ranges rest on."""
    s, nested = record.curve(CODE).settings, list(record.data.get("nested") or {})
    level = f"{100.0 * (1.0 - s['alpha']):g}%"
    mean, low, high, new_low, new_high, tau, most = (
        num.decimals(float(s[k]), 2)
        for k in ("mean", "mean_low", "mean_high", "new_low", "new_high", "tau", "tau_high")
    )
    also = " count as independent here, so clusters may seem to differ more than they do."
    kept = (" Rows of one ", code(nested[-1]), also) if nested else ()
    return say(
        f"Calibration intercept, in logits (0: calibrated; above 0: underpredicts): mean {mean} ({low} to {high}), a "
        f"new cluster {new_low} to {new_high}; standard deviation between clusters {tau}, at most {most}. Ranges of "
        f"{level} each hold for many clusters, not for few: no certificate. Every cluster has equal weight here, "
        "large or small.",
        *kept,
    )


def _check(_: CheckRecord, record: AuditRecord) -> OutlineCheck:
    curve = record.curve(CODE)
    means = "how far calibration differs between clusters, and what a new one is to expect"
    if not curve.settings:
        return OutlineCheck("Clusters", "", means)
    reported = (
        f"a new cluster: {_times(curve, 'ratio_new_low')} to {_times(curve, 'ratio_new_high')} times the events "
        "expected"
    )
    return OutlineCheck("Does it hold in every cluster?", reported, means)


def methods(record: AuditRecord) -> tuple[Entry, ...]:
    """Return how sites are compared."""
    if not record.curve(CODE).settings:
        return ()
    text = (
        "Each cluster's binomial likelihood of its own intercept, integrated over a normal distribution of clusters "
        "(one stage, REML); Student's law for the mean and for a new cluster (Higgins, Thompson, Spiegelhalter). "
        "Assumed: clusters independent, rows of one cluster independent given it. A cluster's own range is Firth's. "
        "Every cluster has equal weight, so the mean is not that of all rows."
    )
    return (Entry("Cluster by cluster", say(text)),)


DECLARED = (
    Declared(
        id="sites",
        order=32,
        nav="In every cluster?",
        heading="Does it hold in every cluster?",
        nodes=sites,
        methods=methods,
        checks={CODE: _check},
        there=lambda record: bool(record.curve(CODE).settings),
    ),
)
