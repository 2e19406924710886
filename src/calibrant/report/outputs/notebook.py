"""What a notebook shows: the first screen of a report and curves separately; nothing is loaded, light and dark."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache

from calibrant.audit.record import AuditRecord
from calibrant.report import html, outline
from calibrant.report.document import Contents
from calibrant.report.outputs import lines, pictures
from calibrant.results import Curve

ROOM = "calibrant-shown"  # the class of what is shown; every rule of style is inside it
THEMES = (  # of Jupyter, VS Code, Colab, and sites that Sphinx builds of notebooks
    "[data-jp-theme-light=true], .vscode-light, html[data-theme=light]",
    "[data-jp-theme-light=false], .vscode-dark, html[theme=dark], html[data-theme=dark]",
)
NARROW = re.compile(r"@media screen and \(max-width: [\w.]+\)")
LEAST = "36rem"  # that the page's column has beside its contents; in less the rules of narrow windows hold
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
    """The first screen of a record's report for a notebook."""
    first = outline.declared()[0]
    return framed(html.show(n for n in first.nodes(of) if not isinstance(n, Contents)))


def curve(of: Curve) -> str:
    """A curve for a notebook: its picture as the page draws it, or its first rows."""
    return drawn(pictures.drawings(of))


def drawn(drawings: Sequence[pictures.Drawing]) -> str:
    """Return pictures, sentences and tables for a notebook."""
    from jinja2 import Environment

    template = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True).from_string(CURVE)
    return framed(template.render(drawings=drawings))


def brief_text(of: AuditRecord) -> str:
    """A record in ten lines."""
    return lines.lines(of)


# ---- the page's style, inside one element ----


def framed(inside: str) -> str:
    """Return markup with the rules of the page's style that it needs, which touch nothing else in the notebook."""
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
