"""What pages need beyond Sphinx: ids and heads of tables, leads of docstrings as paragraphs, charts of the gallery."""

from __future__ import annotations

import re
import unicodedata
from functools import partial
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx_gallery.scrapers import figure_rst

TABLE = re.compile(r"<table.*?</table>", re.DOTALL)
CODE = re.compile(r'<span class="pre">[^<]*')
JOINT = re.compile(r"(?<=[A-Za-z])([._/(])(?=[A-Za-z])")
LEAD = re.compile(r"\*\*(Assumes|Guarantee|Method|Cost|Reads)\.\*\*")


def slug(title: str) -> str:
    """Return the id of a heading, as pages link to it."""
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode()
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", plain).strip().lower())


def written_out(app: Sphinx, tree: nodes.document) -> None:
    """Let links between pages find the ids that a page writes out as `<a id="..."></a>`."""
    page = app.env.metadata[app.env.current_document.docname]
    known = page.setdefault("myst_slugs", {})
    for node in tree.findall(nodes.raw):
        for name in re.findall(r'<a id="([^"]+)">', node.astext()):
            known[name] = (node.line or 0, name, name)


def heads(_: Sphinx, tree: nodes.document) -> None:
    """Leave out the head of a table that says nothing, as Markdown must have one; a corner without words gets some."""
    for head in [*tree.findall(nodes.thead)]:
        empty = [entry for entry in head.findall(nodes.entry) if not entry.astext().strip()]
        if len(empty) == len([*head.findall(nodes.entry)]):
            head.parent.remove(head)
        else:
            for entry in empty:
                entry.append(nodes.paragraph("", "", nodes.inline("", "Row", classes=["visually-hidden"])))


def leads(_: Sphinx, __: str, ___: str, ____: Any, _____: Any, lines: list[str]) -> None:
    """Begin a paragraph at each fixed lead of a docstring."""
    lines[:] = [part for line in lines for part in (("", line) if LEAD.match(line) else (line,))]


def charts(_: Any, block_vars: dict[str, Any], conf: Any) -> str:
    """Keep the `chart` that a part of an example made, for sphinx-gallery."""
    names = block_vars["example_globals"]
    if (chart := names.get("chart")) is None or chart is names.get("_kept"):
        return ""
    names["_kept"] = chart
    picture = next(block_vars["image_path_iterator"])
    if hasattr(chart, "savefig"):  # a figure of Matplotlib's
        chart.savefig(picture, dpi=144)
    else:
        chart.save(picture, ppi=144)
    return str(figure_rst([picture], conf["src_dir"]))


def joints(_: Sphinx, __: str, ___: str, context: dict[str, Any], ____: nodes.document | None) -> None:
    """Let long names in cells of tables wrap at their joints: behind a dot, a low line, a stroke or a bracket."""
    wrapped = partial(CODE.sub, lambda code: JOINT.sub(r"\1<wbr>", code[0]))
    context["body"] = TABLE.sub(lambda table: wrapped(table[0]), context.get("body", ""))


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.setup_extension("sphinx.ext.autodoc")
    app.connect("doctree-read", written_out)
    app.connect("doctree-read", heads)
    app.connect("autodoc-process-docstring", leads)
    app.connect("html-page-context", joints)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
