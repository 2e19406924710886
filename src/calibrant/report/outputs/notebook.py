"""What a notebook shows: the first screen of a report, and curves as the page draws them; nothing is loaded."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise

from calibrant.audit.record import AuditRecord
from calibrant.report import html, outline, svg
from calibrant.report import numbers as num
from calibrant.report.by_variable import (
    ByVariable,
    bins_of,
    by_variable_map,
    by_variable_of,
    levels_top,
    named,
    score_view,
    shown_of,
)
from calibrant.report.document import Contents, Panel
from calibrant.report.places import digits_of, percent, score_axis
from calibrant.report.sections.curves import HEADS, cells, finding, further, heading, reading
from calibrant.report.sections.decisions import drawn as worth
from calibrant.report.sections.decisions import numbers as worth_numbers
from calibrant.report.spans import clipped, plain, shown
from calibrant.report.wording.decisions import in_the_pool
from calibrant.report.wording.terms import TOO
from calibrant.results import Curve

FIRST = 12  # rows of a table
DIGITS = 4  # of its numbers
PANELS = 6  # groups of a curve
MANY = 15  # points of a line in its table, about
RATES = "What happened (solid), and what the model says (dashed)"
GAP = "Gap: happened minus the model says, in points, with the band that holds all of it"
FUNCTION = "Event rate at each score; dashed, that of a calibrated score"
MISSED = "How often the error is missed: by the whole test (solid, 95% ranges), by KLCE alone (dashed)"
WORTH = "Net benefit per 100 (solid, with its band at all thresholds at once); acting on everyone (dashed)"
DIAGONAL = f"M0 {svg.SIZE}L{svg.SIZE} 0"
SHARES = ("0%", "0%"), ("50%", "50%"), ("100%", "100%")  # places along an axis from 0 to 1, and their labels
WRONG = "Wrong among the accepted: at most, certified (solid), and seen (dashed); across, what was asked"
EVIDENCE = "Evidence added up over people, most suspicious first; pale: repeats in which the model is calibrated"


@dataclass(frozen=True, slots=True)
class Drawing:
    """What is shown of a curve, or of one of its groups: pictures, a sentence and a table."""

    title: str
    panels: tuple[Panel, ...]
    text: str
    heads: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()  # cells; one that is SVG is a picture
    folded: bool = False  # the table is opened on demand


def drawings(curve: Curve) -> tuple[Drawing, ...]:
    """The pictures of a curve, or its first rows where it has none or nothing to draw."""
    make = DRAWN.get(curve.method)
    result = tuple(make(curve)) if make is not None and _rows(curve) else ()
    return result or (_table(curve),)


def _rows(curve: Curve) -> int:
    return len(next(iter(curve.columns.values()), ()))


def _table(curve: Curve) -> Drawing:
    columns = {k: v for k, v in curve.columns.items() if not k.startswith("null_")}
    rows = tuple(tuple(_written(v[i]) for v in columns.values()) for i in range(min(FIRST, _rows(curve))))
    more = _rows(curve) - FIRST
    text = f"{num.count(more)} more rows: to_frame() has all." if more > 0 else ""
    return Drawing(f"{curve.method}: {num.count(_rows(curve))} rows", (), text, tuple(map(shown, columns)), rows)


def _written(value: object) -> str:
    if value is None:
        return "\N{EN DASH}"
    return f"{value:.{DIGITS}g}" if isinstance(value, float) else clipped(shown(value), 60)


# ---- gaps along the score or a variable ----


def _reliability(curve: Curve) -> Iterator[Drawing]:
    if "stretch" in curve.columns:
        by_variable = score_view((), curve)
        window = shown_of(by_variable.line)
        yield from _lines(replace(by_variable, across=window, axis=score_axis(window)))
    elif "x_low" in curve.columns:  # bins by themselves were put to no test
        by_variable = score_view(bins_of(curve), Curve(method="", columns={}))
        yield Drawing("By score, in bins", tuple(_panels(by_variable, "score")), "", *_numbers(by_variable, "score"))


def _variable(curve: Curve) -> Iterator[Drawing]:
    if curve.settings["kind"] == "pair":
        return
    for group, mine in _groups(curve):
        title = f"{curve.settings['by']} = {group}" if group else ""
        yield from _lines(by_variable_of(str(curve.settings["variable"]), mine), title)


def _map(curve: Curve) -> Iterator[Drawing]:
    axes = curve.settings.get("axes", ())
    if "people" in curve.columns and len(axes) == 1:
        for group, mine in _groups(curve):
            yield from _lines(by_variable_map(str(axes[0]["name"]), mine, None), group)


def _groups(curve: Curve) -> Iterator[tuple[str, Curve]]:
    """Yield the first few groups of a curve, each by itself under its name; a curve of everyone has none."""
    of = curve.columns.get("group", ())
    names = list(dict.fromkeys(of))
    if len(names) < 2:
        yield "", curve
        return
    for name in names[:PANELS]:
        rows = [i for i, g in enumerate(of) if g == name]
        yield str(name), replace(curve, columns={k: tuple(v[i] for i in rows) for k, v in curve.columns.items()})


def _lines(by_variable: ByVariable, group: str = "") -> Iterator[Drawing]:
    digits, name = digits_of(by_variable.across), clipped(shown(by_variable.variable))
    title = f"By {name}: {heading(by_variable, digits)}"
    text = f"{plain(finding(by_variable, digits))} {further(by_variable, digits)} {reading(by_variable)}"
    title, text = (f"{shown(group)}. {title}", text) if group else (title, text)
    if by_variable.axis is not None:
        yield Drawing(title, tuple(_panels(by_variable, name)), text, *_numbers(by_variable, name))
        title, text = f"Without a value of {name}", ""
    if by_variable.levels:
        top = levels_top(by_variable)
        levels = tuple((named(p), *cells(p, digits), svg.level(p, top), TOO[p.side]) for p in by_variable.levels)
        axis = f"{num.MINUS}{top:g} to +{top:g} points"
        yield Drawing(title, (), text, (name, *HEADS, axis, "The model says"), levels)


def _panels(by_variable: ByVariable, name: str) -> Iterator[Panel]:
    rates, gaps = svg.rates(by_variable), svg.gaps(by_variable, None, by_variable.top(None))
    yield Panel(RATES, svg.plot(rates, f"What the model says and what happened, by {name}.", "", "", "sq"), axis=name)
    yield Panel(GAP, svg.plot(gaps, f"Happened minus the model says, by {name}.", "", ""), axis=name)


def _numbers(by_variable: ByVariable, name: str) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...], bool]:
    written, digits = by_variable.axis.written if by_variable.axis is not None else str, digits_of(by_variable.across)
    some = by_variable.line[:: max(1, len(by_variable.line) // MANY)]
    return (name, *HEADS), tuple((written(float(p.x or 0.0)), *cells(p, digits)) for p in some), True


# ---- evidence over people ----


def _control(curve: Curve) -> Iterator[Drawing]:
    drawn = svg.control(curve, "line of the repeats", "peak")
    if drawn is not None:
        picture = svg.plot(drawn, EVIDENCE, "", "")
        yield Drawing("Control chart", (Panel(EVIDENCE, picture, axis="people"),), "")


# ---- decisions ----


def _worth(curve: Curve) -> Iterator[Drawing]:
    for group, mine in _groups(curve):
        table = worth_numbers(mine)
        heads = tuple(plain(c.head) for c in table.columns)
        rows = tuple(tuple(plain(cell.text) for cell in row.cells) for row in table.rows)
        panel = Panel(WORTH, worth(mine, (), WORTH), axis="threshold")
        yield Drawing(group or "Decision curve", (panel,), table.caption, heads, rows, True)


# ---- the published reconstruction, and which kernel finds an error ----


def _calibration_function(curve: Curve) -> Iterator[Drawing]:
    c, steps = curve.columns, curve.settings["method"] == "total-variation"
    at = [(round(x * svg.SIZE), round((1 - rate) * svg.SIZE)) for x, rate in zip(c["x"], c["rate"], strict=True)]
    if steps:  # level up to the next point
        at = [at[0], *(p for a, b in pairwise(at) for p in ((b[0], a[1]), b))]
    title = f"Calibration function, by the {'total variation denoiser' if steps else 'kernel smoother'}, as published"
    title = "Reliability diagram, as published" if curve.settings["method"] == "bins" else title
    panel = Panel(FUNCTION, _square([("says", DIAGONAL), ("curve", svg.path(at))], FUNCTION, SHARES), axis="score")
    table = replace(_table(curve), title=title)
    yield replace(table, panels=(panel,), folded=True)


def _kernel_tuning(curve: Curve) -> Iterator[Drawing]:
    c = curve.columns
    widths = list(dict.fromkeys(c["width"]))
    place = {w: round((i + 0.5) / len(widths) * svg.SIZE) for i, w in enumerate(sorted(widths))}
    across = tuple((percent(x / svg.SIZE), f"{w:g}") for w, x in place.items())
    for family in dict.fromkeys(c["family"]):
        rows = sorted((i for i, f in enumerate(c["family"]) if f == family), key=lambda i: c["width"][i])
        x = [place[c["width"][i]] for i in rows]
        whole, alone = ([(at, _down(c[k][i])) for at, i in zip(x, rows, strict=True)] for k in ("type_2", "raw"))
        ends = "".join(f"M{at} {_down(c['low'][i])}V{_down(c['high'][i])}" for at, i in zip(x, rows, strict=True))
        lone = "lone" if len(rows) == 1 else "curve"
        shapes = [("whisker", ends), ("says", svg.path(alone)), (lone, svg.path(whole))]
        picture = _square(shapes, f"{MISSED}: {family}.", across)
        yield Drawing(str(family), (Panel(MISSED, picture, axis="width, in median distances"),), "")
    yield replace(_table(curve), title="Every kernel", folded=True)


# ---- what may be accepted ----


def _acceptance(curve: Curve) -> Iterator[Drawing]:
    risk, reported = float(curve.settings["risk"]), curve.settings["groups"]
    top = min(4.0 * risk, 1.0)  # of the rate: what was asked stands at a quarter
    up = tuple((percent(1 - share), f"{100 * share * top:.3g}%") for share in (0.0, 0.25, 0.5, 0.75, 1.0))
    for group, mine in _groups(curve):
        c = mine.columns
        name = shown(group or c["group"][0])
        x = [round(share * svg.SIZE) for share in c["share"]]
        high, seen = ([(at, _down(min(v / top, 1.0))) for at, v in zip(x, c[k], strict=True)] for k in ("high", "rate"))
        limit = f"M0 {_down(risk / top)}H{svg.SIZE}"
        shapes = (("limit", limit), ("says", svg.path(seen)), ("curve", svg.path(high)))
        picture = svg.plot(svg.Plot(up, SHARES, shapes), f"{WRONG}: {name}.", "", "")
        accepted = float(reported[str(c["group"][0])]["accepted"])
        whom = f"{math.floor(1000.0 * accepted) / 10.0:g}%" if accepted else "nobody"
        stated = f"{name}: {whom} accepted with at most {num.in_percent(risk)}% wrong, certified"
        each = max(1, len(x) // MANY)
        columns = {k: v[::each] for k, v in c.items() if k != "group"}
        rows = tuple(tuple(_written(v) for v in row) for row in zip(*columns.values(), strict=True))
        stated_of_groups = " ".join(in_the_pool(curve.settings))
        yield Drawing(
            stated, (Panel(WRONG, picture, axis="share accepted"),), stated_of_groups, tuple(columns), rows, folded=True
        )


def _square(shapes: Sequence[tuple[str, str]], label: str, across: tuple[tuple[str, str], ...]) -> svg.Svg:
    up = tuple((percent(1 - share), text) for share, text in zip((0, 0.5, 1), ("0%", "50%", "100%"), strict=True))
    return svg.plot(svg.Plot(up, across, tuple(shapes)), label, "", "", "sq")


def _down(share: float) -> int:
    return round((1 - share) * svg.SIZE)


DRAWN: dict[str, Callable[[Curve], Iterator[Drawing]]] = {
    "detect.kernel_tuning": _kernel_tuning,
    "diagnose.acceptance_curve": _acceptance,
    "papers.calibration_function": _calibration_function,
    "papers.reliability_diagram": _calibration_function,
    "diagnose.control_chart": _control,
    "diagnose.decision_curve": _worth,
    "diagnose.local_bias": _map,
    "diagnose.reliability_curve": _reliability,
    "diagnose.variable_curve": _variable,
}


ROOM = "calibrant-shown"  # the class of what is shown; every rule of style is inside it
THEMES = (  # of Jupyter, VS Code, Colab, and sites that Sphinx builds of notebooks
    "[data-jp-theme-light=true], .vscode-light, html[data-theme=light]",
    "[data-jp-theme-light=false], .vscode-dark, html[theme=dark], html[data-theme=dark]",
)
NARROW = re.compile(r"@media screen and \(max-width: [\w.]+\)")
LEAST = "36rem"  # that the page's column has next to its contents; in less the rules of narrow windows hold
LEADS = re.compile(r' ?<a class="(?:anchor|lead)" [^>]*>[^<]*</a>')  # words that only lead elsewhere on the page
LINK = re.compile(r'<a [^>]*href="#[^>]*>(.*?)</a>', re.DOTALL)  # words that also do
APART = re.compile(r",\s*(?![^()]*\))")  # commas between selectors, not those inside one
NARROWED = re.compile(r":{1,2}[\w-]+(\([^)]*\))?|\[[^\]]*\]")  # states and attributes
FRAME = "margin: .4rem 0; padding: .9rem 1.1rem; border-radius: 8px; max-width: 60rem; container-type: inline-size"

CURVE = """\
{% for d in drawings %}
<p class="pt-title">{{ d.title }}</p>
{% if d.panels %}<div class="{{ "duo" if d.panels|length > 1 }}">
{% for p in d.panels %}
<div><p class="quiet">{{ p.title }}</p>{{ p.picture }}<p class="ax-name">{{ p.axis }}</p></div>
{% endfor %}</div>{% endif %}
{% if d.text %}<p class="quiet">{{ d.text }}</p>{% endif %}
{% if d.rows %}
{% if d.folded %}<details><summary>Numbers</summary>{% endif %}
<div class="tw forest"><table><thead><tr>{% for h in d.heads %}<th>{{ h }}</th>{% endfor %}</tr></thead>
<tbody>{% for row in d.rows %}
<tr>{% for c in row %}<td{% if c.__html__ %} class="c"{% endif %}>{{ c }}</td>{% endfor %}</tr>
{% endfor %}</tbody></table></div>
{% if d.folded %}</details>{% endif %}
{% endif %}
{% endfor %}"""


def record(of: AuditRecord) -> str:
    shown_nodes = outline.document(of).sections[0].nodes
    return framed(html.show(n for n in shown_nodes if not isinstance(n, Contents)))


def curve(of: Curve) -> str:
    """A curve for a notebook: its picture as the page draws it, or its first rows."""
    return drawn(drawings(of))


def drawn(drawings: Sequence[Drawing]) -> str:
    from jinja2 import Environment

    template = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True).from_string(CURVE)
    return framed(template.render(drawings=drawings))


# ---- the page's style, inside one element ----


def framed(inside: str) -> str:
    """Markup with the rules of the page's style that it needs, which touch nothing else in the notebook."""
    markup = LINK.sub(r"\1", LEADS.sub("", inside))  # that part of the page is not here
    return f'<div class="{ROOM}"><style>{palette()}\n{needed(markup)}</style>\n{markup}\n</div>'


@cache
def palette() -> str:
    """The colours: light or dark as the notebook says, and where it says nothing as the reader's system."""
    style = dict(reversed([*blocks(html.asset("style.css"))]))
    light, dark = style[":root"], dict(blocks(style["@media (prefers-color-scheme: dark)"]))[":root"]
    system = f"@media (prefers-color-scheme: dark) {{ .{ROOM} {{ {dark} }} }}"
    stated = (f":is({themes}) .{ROOM} {{ {body} }}" for themes, body in zip(THEMES, (light, dark), strict=True))
    return "\n".join((f".{ROOM} {{ {light} }}", system, *stated))


def needed(markup: str) -> str:
    """The rules that some element of the markup may obey, each inside the room; narrow is what the room is."""
    classes = {c for result in re.findall(r'class="([^"]*)"', markup) for c in result.split()}
    tags = {*re.findall(r"<([a-z][a-z0-9]*)", markup), "body"}
    out = []
    for head, body in blocks(html.asset("style.css")):
        if NARROW.fullmatch(head):
            narrow = [rule for s, b in blocks(body) for rule in _rules(s, b, classes, tags)]
            out += [f"@container (max-width: {LEAST}) {{", *narrow, "}"] if narrow else []
        else:
            out += _rules(head, body, classes, tags)
    own = f".{ROOM} {{ {FRAME} }}", f".{ROOM} :is(table, td) {{ color: var(--ink); text-align: left }}"
    return "\n".join((*out, *own))


def _rules(selectors: str, body: str, classes: set[str], tags: set[str]) -> list[str]:
    """A rule inside the room, for those of its selectors that some element may obey; nothing if none."""
    some = [s for s in APART.split(selectors) if not s.startswith(("@", ":root")) and _obeyed(s, classes, tags)]
    inside = (f".{ROOM}" if s == "body" else f".{ROOM} {s}" for s in some)
    return [f"{', '.join(inside)} {{ {body} }}"] if some else []


def _obeyed(selector: str, classes: set[str], tags: set[str]) -> bool:
    """Whether every class and element that a selector names is there; what it says besides is taken as true."""
    bare = NARROWED.sub("", selector)
    return (
        set(re.findall(r"\.([\w-]+)", bare)) <= classes
        and set(re.findall(r"(?:^|[\s>+~])([a-z]\w*)", bare)) <= tags
        and "#" not in bare
    )


def blocks(style: str) -> Iterator[tuple[str, str]]:
    """Yield what stands before each outer pair of braces, and between them."""
    depth, start, inside, head = 0, 0, 0, ""
    for i, c in enumerate(style):
        if c == "{":
            if not depth:
                head, inside = style[start:i].strip(), i + 1
            depth += 1
        elif c == "}":
            depth -= 1
            if not depth:
                yield head, style[inside:i].strip()
                start = i + 1
