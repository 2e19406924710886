"""The page: one self-contained HTML file from a record, the same bytes every time."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from calibrant.audit.record import AuditRecord
from calibrant.report import numbers as num
from calibrant.report import provenance, svg, views
from calibrant.report.hidden import hidden
from calibrant.report.order import limit_of, ordered
from calibrant.report.repairs import repairs
from calibrant.report.spans import visible
from calibrant.report.variables import variables
from calibrant.report.wording import VERDICTS, page_title

if TYPE_CHECKING:
    from jinja2 import Environment


@dataclass(frozen=True, slots=True)
class Section:
    """One section of the page: its template is ``{id}.html.j2``, or `template` where several share one."""

    id: str
    nav: str
    heading: str
    view: Callable[[AuditRecord], views.View]
    template: str = ""


SECTIONS = (
    Section("summary", "The answer", "", views.summary),
    Section("overall", "How far off?", "How far off are the probabilities?", views.overall),
    Section("groups", "For whom?", "For whom are they off?", views.groups),
    Section(
        "variables",
        "Following what?",
        "Which variables does the error follow?",
        variables,
    ),
    Section("hidden", "Hidden pockets?", "Is error hiding in a mix of traits?", hidden),
    Section("repair", "What would repair it?", "What would repair it?", repairs),
    Section("checks", "Every check", "Every check, and what it found", views.checks),
    Section("about", "What was audited", "What was audited", provenance.about, "entries"),
    Section("limits", "Not shown here", "What this report does not show", views.limits),
    Section("methods", "How computed", "How this was computed", views.methods, "entries"),
    Section("glossary", "Words used", "Words used here", views.glossary, "entries"),
    Section("reproduce", "Reproduce it", "Reproduce this report", provenance.reproduce),
)


def render(record: AuditRecord) -> str:
    """Return the report as one HTML page that loads nothing, sends nothing and holds no time stamp.

    Parameters
    ----------
    record : AuditRecord

    Returns
    -------
    str
        The page; `record` as JSON is in its element ``calibrant-result``.

    Notes
    -----
    **Guarantee.** The same record and versions give the same bytes. Every bound printed is the bound of the
    record rounded outward. Text from the data can not act as markup, and the page's policy lets no other
    script run.
    """
    style, script = asset("style.css"), asset("script.js")
    context = {
        "record": record,
        "limited": limit_of(record) is not None,
        "word": VERDICTS[record.verdict],
        "title": page_title(record),
        "name": visible(record.name),
        "facts": facts(record),
        "version": visible(record.versions.get("calibrant", "")),
        "sections": SECTIONS,
        "marks": nav_marks(record),
        "views": {s.id: s.view(record) for s in SECTIONS},
        "style": style,
        "script": script,
        "style_hash": digest(style),
        "script_hash": digest(script),
        "result": island(record.to_dict()),
        "island": island,
    }
    return environment().get_template("page.html.j2").render(context)


def facts(record: AuditRecord) -> list[str]:
    """Return the facts in the header of the page."""
    limit, outcome = limit_of(record), record.settings.get("outcome")
    out = [f"outcome: {visible(record.data.get('label', '') if outcome is None else outcome)}"]
    out.append("no limit" if limit is None else f"limit {num.limit_points(limit)} points")
    out.append(f"{num.percent(1 - float(record.settings['alpha']))}% certificates")
    if record.settings.get("date") is not None:
        out.append(visible(record.settings["date"]))
    return out


def nav_marks(record: AuditRecord) -> dict[str, str]:
    """Return which entries of the contents carry a verdict."""
    if limit_of(record) is None:
        return {}
    marks: dict[str, str] = {"overall": record.everyone.verdict}
    if record.groups:
        marks["groups"] = ordered(record.groups)[0].verdict
    return marks


def island(value: Any) -> str:
    """Return a value as JSON that is safe inside a page: ASCII only, and no ``<``."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c")


def digest(text: str) -> str:
    """Return the hash by which the page's policy knows its own style and script."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


@cache
def asset(name: str) -> str:
    """Return the text of a template, the style or the script."""
    return (files("calibrant.report") / "templates" / name).read_text(encoding="utf-8").strip()


@cache
def environment() -> Environment:
    """Return the template engine: everything is escaped, and an unknown name is an error."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    made = Environment(
        loader=FunctionLoader(asset),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals.update(icon=svg.icon, track=svg.track, dots=svg.dots, swatch=svg.swatch)
    return made
