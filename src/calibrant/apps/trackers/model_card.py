"""The section of a model card on the Hugging Face Hub, and its `model-index`, which the Hub reads."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping

from calibrant import AuditRecord
from calibrant.arguments import text
from calibrant.results import Estimate
from calibrant.sanitize import sanitize
from calibrant.toolkit.report import (
    Heading,
    Node,
    Paragraph,
    Parts,
    Table,
    certified_range,
    headline,
    inside,
    limit_of,
    literal,
    number_table,
    parts,
    say,
    stated_of,
)
from calibrant.toolkit.report import numbers as num

TASK = "tabular-classification"  # as the Hub calls it
NAMED = {  # of what the Hub lists: its type, and how it is read
    "brier": ("brier_score", "Brier score"),
    "log_loss": ("log_loss", "Log loss"),
    "auroc": ("roc_auc", "AUROC"),
    "ece": ("ece", "Expected calibration error (estimate)"),
    "calibration_slope": ("calibration_slope", "Calibration slope"),
}
FRACTION = re.compile(r"^(-?\d+)e")  # YAML takes 1e-05 for text, and 1.0e-05 for a number


def model_card(record: AuditRecord, *, task: str = TASK) -> str:
    """The section of a model card: `model-index` as front matter, and what it says in Markdown.

    Parameters
    ----------
    record : AuditRecord
        Its `model` names the model, if it was given; else the name of the data does.
    task : str
        What the Hub calls the task, such as ``"text-classification"``.

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
    return f"---\n{front}\n---\n\n{_section(record)}"


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
            yield {"type": kind, "name": name, "value": float(e.value), "args": _interval(e)}


def _interval(e: Estimate) -> dict[str, object]:
    return {
        "low": e.interval.low,
        "high": e.interval.high,
        "level": e.interval.level,
        "guarantee": e.interval.guarantee,
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


def _section(record: AuditRecord) -> str:
    """Return what people read: the verdict in three parts, the measures with their intervals, and the limit."""
    reported: list[Node] = [Heading(headline(record)), Parts(parts(record)), _table(record)]
    limit = limit_of(record)
    bound = "No limit was given." if limit is None else f"The limit is {num.limit_points(limit)} points."
    if use := stated_of(record, "intended_use"):
        reported.append(Paragraph(say("Intended use: ", literal(use), ".")))
    level = num.percent(1 - float(record.settings["alpha"]))
    reported.append(Paragraph(say(f"{bound} One point is one in a hundred. Bounds are certified at {level}%.")))
    return f"## Calibration\n\n{inside(reported)}"


def _table(record: AuditRecord) -> Table:
    rows = [
        ("Average calibration error, in points", certified_range(record, record.everyone, dashed=True), "certified")
    ]
    for key, (_, name) in NAMED.items():
        if (e := record.estimates.get(key)) is not None:
            rows.append((name, f"{float(e.value):.4f} ({e.interval:.4f})", "estimate"))
    return number_table("", ("Measure", "Value", "Interval"), rows)
