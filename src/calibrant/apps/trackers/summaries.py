"""A record for other places: numbers for a tracker, what changed for a pull request, a model card."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping

from calibrant import AuditRecord
from calibrant.arguments import text
from calibrant.sanitize import sanitize
from calibrant.toolkit.report import (
    ENGLISH,
    EVERYONE,
    VERDICTS,
    Cell,
    Column,
    Difference,
    Document,
    Finding,
    Heading,
    Node,
    Opening,
    Paragraph,
    Parts,
    Row,
    Section,
    Span,
    Table,
    Text,
    audits_compared,
    certified_range,
    clipped,
    decision,
    facts,
    headline,
    inside,
    judged_range,
    keyed,
    label,
    limit_of,
    literal,
    number_table,
    page_title,
    parts,
    say,
    stated_of,
    states,
    verdict_word,
    worded,
    written,
)
from calibrant.toolkit.report import numbers as num

# ---- numbers ----


def metrics(record: AuditRecord) -> dict[str, float]:
    """The numbers of an audit by name, as DVC, MLflow and other trackers take them.

    Parameters
    ----------
    record : AuditRecord

    Returns
    -------
    dict of str to float
        ``everyone/error``, ``everyone/error_low``, ``everyone/error_high`` (estimate and both certified ends of the
        calibration error, as fractions), the same of ``everyone/gap``, ``everyone/rows``; of each group under
        ``groups/ID/`` with the id of the record; ``brier``, ``brier_low``, ``brier_high`` and so on of every estimate;
        ``groups_met``, ``groups_over``, ``groups_undecided``; ``exit_status``. What is infinite is left out: there is
        no such number in JSON.

    Notes
    -----
    **Guarantee.** Ends of ``error`` and ``gap`` are certified; those of measures are asymptotic, as in the record.
    **Reads.** The record.
    """
    reported = [*_people("everyone", record.everyone)]
    for f in record.groups:
        reported += _people(f"groups/{f.id}", f)
    for name, e in record.estimates.items():
        reported += [(name, float(e.value)), (f"{name}_low", e.interval.low), (f"{name}_high", e.interval.high)]
    for word, verdict in (("within", "within"), ("over", "over"), ("undecided", "undecided")):
        reported.append((f"groups_{word}", float(sum(f.verdict == verdict for f in record.groups))))
    reported.append(("exit_status", float(record.exit_status)))
    return {name: float(value) for name, value in reported if math.isfinite(value)}


def as_json(record: AuditRecord) -> str:
    """The same as JSON text."""
    return json.dumps(metrics(record), indent=1, allow_nan=False) + "\n"


def _people(where: str, f: Finding) -> Iterator[tuple[str, float]]:
    yield f"{where}/error", f.error.value
    yield f"{where}/error_low", f.lower.interval.low
    yield f"{where}/error_high", f.upper.interval.high
    yield f"{where}/gap", f.gap.value
    if f.gap.guaranteed is not None:
        yield f"{where}/gap_low", f.gap.guaranteed.low
        yield f"{where}/gap_high", f.gap.guaranteed.high
    yield f"{where}/rows", float(f.rows)


# ---- what changed ----

MOST = 10  # of those that changed are listed


def summary(record: AuditRecord, *, against: AuditRecord | None = None) -> str:
    """A summary of an audit in Markdown, short enough for a pull request.

    Parameters
    ----------
    record : AuditRecord
    against : AuditRecord, optional
        An earlier audit, such as that of the main branch: the summary then shows whose verdict changed, and for whom
        the calibration error is certified to be larger or smaller.

    Returns
    -------
    str
        GitHub-flavoured Markdown in which no name from the data can act as markup.

    Notes
    -----
    **Guarantee.** A change is called certified where the certified ranges of both audits do not meet: wrong with
    probability at most the sum of their alphas, whether or not they share rows. A change of verdict by itself proves
    no change of the error.
    **Reads.** The records.
    """
    reported: list[Node] = [Opening(headline(record)), Parts(parts(record)), decision(record)]
    if against is not None:
        reported += _changes(record, against)
    section = Section("summary", "The brief", "", tuple(reported), record.verdict)
    return written(Document(sanitize(record.name), page_title(record), tuple(facts(record)), (section,)))


def _changes(now: AuditRecord, before: AuditRecord) -> Iterator[Node]:
    """Yield who changed, at most ten of them, and how many others did."""
    result = audits_compared({"before": before, "now": now}, margin=0.0)
    earlier, later = _by_name(before), _by_name(now)
    pairs = [(earlier[d.population], later[d.population], d) for d in result.differences]
    changed = [(old, new, d) for old, new, d in pairs if old.verdict != new.verdict or _certified(d)]
    changed.sort(key=lambda pair: (not _certified(pair[2]), -pair[2].interval.low))
    yield Heading("What changed")
    if (now.settings["judge"], limit_of(now)) != (before.settings["judge"], limit_of(before)):
        yield Paragraph(say("The audits were made against different limits: compare ranges, not verdicts."))
    if changed:
        heads = ("Who", "Before", "Now", "Certified change in points")
        rows = tuple(
            Row(tuple(map(Cell, (*_who(new), *_reported(old), *_reported(new), say(_change(d))))))
            for old, new, d in changed[:MOST]
        )
        yield Table(tuple(Column(say(h)) for h in heads), rows)
    if states(now)["subgroups"] != states(before)["subgroups"]:
        was, is_now = (verdict_word(r, "subgroups")[1].lower() for r in (before, now))
        yield Paragraph(say(f"Unlisted subgroups: {was} before, {is_now} now."))
    alone = len(earlier.keys() ^ later.keys())
    yield Paragraph(say(_rest(len(pairs) - len(changed), max(len(changed) - MOST, 0), alone)))


def _by_name(record: AuditRecord) -> dict[str, Finding]:
    """Everyone and the groups; pooled values are not the same people in two audits."""
    return {EVERYONE: record.everyone} | {keyed(f.variables): f for f in record.groups if not f.pooled}


def _certified(d: Difference) -> bool:
    return d.interval.low > 0.0 or d.interval.high < 0.0


def _who(finding: Finding) -> tuple[Text]:
    return (say(Span(clipped(label(finding)), "name") if finding.variables else "Everyone"),)


def _reported(finding: Finding) -> tuple[Text]:
    return (say(f"{judged_range(finding)}, {VERDICTS[finding.verdict].lower()}"),)


def _change(d: Difference) -> str:
    """By how much the calibration error is certified to have changed, in points."""
    if d.interval.low > 0.0:
        return f"larger by at least {num.lower_bound(d.interval.low)}"
    return f"smaller by at least {num.lower_bound(-d.interval.high)}" if d.interval.high < 0.0 else "none shown"


def _rest(same: int, more: int, alone: int) -> str:
    """How many are not in the table."""
    reported = [f"{num.count(more)} more changed."] if more else []
    reported.append(
        f"For {num.count(same)} of those in both audits, everyone counted, the verdict is the same "
        "and no change is certified; that does not show that there is none."
        if same
        else "All that are in both audits changed."
    )
    if alone:
        reported.append(f"{num.count(alone)} group{' is' if alone == 1 else 's are'} in one audit only.")
    return " ".join(reported)


# ---- a model card ----

TASK = "tabular-classification"  # as the Hub calls it
NAMED = {  # of what the Hub lists: its type, and how it is read
    "brier": ("brier_score", "Brier score"),
    "log_loss": ("log_loss", "Log loss"),
    "auroc": ("roc_auc", "AUROC"),
    "ece": ("ece", "Expected calibration error (estimate)"),
    "calibration_slope": ("calibration_slope", "Calibration slope"),
}
FRACTION = re.compile(r"^(-?\d+)e")  # YAML takes 1e-05 for text, and 1.0e-05 for a number


def model_card(record: AuditRecord, *, task: str = TASK, language: str = ENGLISH) -> str:
    """The section of a model card: `model-index` as front matter, and what it says in Markdown.

    Parameters
    ----------
    record : AuditRecord
        Its `model` names the model, if it was given; else the name of the data does.
    task : str
        What the Hub calls the task, such as ``"text-classification"``.
    language : {"en", "de"}
        Of the Markdown. The front matter is for programs, and English.

    Returns
    -------
    str
        YAML between two lines of dashes, then Markdown. Each metric has its interval, level and guarantee under
        ``args``, where the Hub keeps what it does not know.

    Notes
    -----
    **Guarantee.** ``calibration_error`` and ``worst_group_calibration_error`` are certified; the others have
    asymptotic intervals. Each says so.
    **Reads.** The record.
    """
    front = "\n".join(_block(_index(record, text("task", task))))
    return f"---\n{front}\n---\n\n{_section(record, language)}"


# ---- the front matter ----


def _index(record: AuditRecord, task: str) -> dict[str, object]:
    name = sanitize(record.name)
    dataset = {"name": name, "type": re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "data"}
    result = {"task": {"type": task}, "dataset": dataset, "metrics": [*_metrics(record)]}
    return {"model-index": [{"name": stated_of(record, "model") or name, "results": [result]}]}


def _metrics(record: AuditRecord) -> Iterator[dict[str, object]]:
    one = record.everyone
    ends = {"low": one.lower.interval.low, "high": one.upper.interval.high}
    yield {
        "type": "calibration_error",
        "name": "Average calibration error, certified",
        "value": one.error.value,
        "args": {**ends, "level": one.upper.interval.level, "guarantee": one.upper.interval.guarantee},
    }
    if (worst := record.estimates.get("worst_group")) is not None:
        yield {
            "type": "worst_group_calibration_error",
            "name": "Of no named group more than, certified",
            "value": worst.interval.high,
            "args": {"level": worst.interval.level, "guarantee": worst.interval.guarantee},
        }
    for key, (kind, name) in NAMED.items():
        if (e := record.estimates.get(key)) is not None:
            yield {
                "type": kind,
                "name": name,
                "value": float(e.value),
                "args": {
                    "low": e.interval.low,
                    "high": e.interval.high,
                    "level": e.interval.level,
                    "guarantee": e.interval.guarantee,
                },
            }


def _block(tree: object, depth: int = 0) -> Iterator[str]:
    """Yield the lines of a tree in YAML's block style; what ends a branch is written as JSON, which YAML reads."""
    start = "  " * depth
    if isinstance(tree, Mapping):
        for key, value in tree.items():
            if isinstance(value, (Mapping, list)):
                yield f"{start}{key}:"
                yield from _block(value, depth + isinstance(value, Mapping))
            else:
                yield f"{start}{key}: {_scalar(value)}"
    elif isinstance(tree, list):
        for item in tree:
            first, *more = _block(item, depth + 1)
            yield from (f"{start}- {first.lstrip()}", *more)


def _scalar(value: object) -> str:
    """A number or a text; an infinite number as YAML writes it."""
    if isinstance(value, float):
        return FRACTION.sub(r"\1.0e", repr(value)).replace("inf", ".inf")
    return json.dumps(value, ensure_ascii=False)


# ---- the text ----


def _section(record: AuditRecord, language: str) -> str:
    """What people read: the verdict in three parts, the measures with their intervals, and the limit."""
    rows = [("Average calibration error, in points", certified_range(record.everyone, dashed=True), "certified")]
    for key, (_, name) in NAMED.items():
        if (e := record.estimates.get(key)) is not None:
            rows.append((name, f"{float(e.value):.4f} ({e.interval:.4f})", "estimate"))
    table = number_table("", ("Measure", "Value", "Interval"), rows)
    made: list[Node] = [Heading(headline(record)), Parts(parts(record)), table]
    limit = limit_of(record)
    bound = "No limit was given." if limit is None else f"The limit is {num.limit_points(limit)} points."
    if use := stated_of(record, "intended_use"):
        made.append(Paragraph(say("Intended use: ", literal(use), ".")))
    level = num.percent(1 - float(record.settings["alpha"]))
    made.append(Paragraph(say(f"{bound} One point is one in a hundred. Bounds are certified at {level}%.")))
    (title, nodes), left = worded(("## Calibration", tuple(made)), record, language)
    closing = (Paragraph(left),) if left else ()
    return f"{title}\n\n{inside((*nodes, *closing), language)}"
