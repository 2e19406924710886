"""The report as Markdown, for a pull request or a log."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from calibrant.audit.record import AuditRecord
from calibrant.report import document as doc
from calibrant.report.languages.catalogue import ENGLISH, Words
from calibrant.report.languages.translator import in_language
from calibrant.report.outline import document
from calibrant.report.spans import Span, Text, plain, say, titled

HEADS = "Who", "Of how many", "Gap, guaranteed", "State"


def render(record: AuditRecord, language: str = ENGLISH) -> str:
    """The report as GitHub-flavoured Markdown; no name from the data can act as markup, a mention or a link."""
    return written(in_language(document(record), record, language))


def written(of: doc.Document) -> str:
    """A document as Markdown; a section with nothing to show is left out."""
    parts = [
        f"# {Words(of.language)('Calibration audit of')} {fenced(of.name)}",
        " · ".join(marked(f.text) for f in doc.seen(of.facts, "markdown")),
    ]
    for section in of.sections:
        body = [p for p in _parts(section.nodes, Words(of.language)) if p]
        parts += [f"## {section.heading}", *body] if section.heading and body else body
    return "\n\n".join(parts) + "\n"


def inside(nodes: Iterable[doc.Node], language: str = ENGLISH) -> str:
    return "\n\n".join(p for p in _parts(nodes, Words(language)) if p) + "\n"


def _parts(nodes: Iterable[doc.Node], words: Words) -> list[str]:
    return [part for node in doc.seen(nodes, "markdown") for part in _node(node, words)]


def _node(node: doc.Node, words: Words) -> list[str]:
    match node:
        case doc.Opening():
            return [f"## {marked(say(node.headline))}"]
        case doc.Heading():
            return [f"### {node.text}"]
        case doc.Paragraph():
            return [marked(node.text)]
        case doc.Items():
            return ["\n".join(f"- {marked(t)}" for t in node.items)]
        case doc.Entries():
            reported = (e for e in node.entries if "markdown" in e.where)
            return ["\n".join(f"- **{e.term}:** {marked(e.text)}" for e in reported)]
        case doc.Command():
            fence = "`" * max(3, _longest(node.text) + 1)
            language = node.language or ("sh" if node.text.startswith("calibrant ") else "python")
            return [f"{fence}{language}\n{node.text}\n{fence}"] if node.text else []
        case doc.Table():
            return [_table(node)]
        case doc.Details():
            return _parts(node.nodes, words)
        case _:
            return _of_the_brief(node, words)


def _of_the_brief(node: doc.Node, words: Words) -> list[str]:
    match node:
        case doc.Parts():
            return ["\n".join(f"- **{p.who}: {words.inside(p.word)}.** {marked(p.text)}" for p in node.parts)]
        case doc.Decision():
            return [f"**{words('What to do')}.** {marked(node.text)}", *_node(doc.Command(node.command), words)]
        case doc.Forest():
            return _forest(node, words)
        case doc.Signing():
            blank = (f"- **{term}:** \\_\\_\\_\\_" for term in node.blank)
            return ["\n".join((*_node(doc.Entries(node.entries), words), *blank))]
        case _:
            return []  # what is drawn is for the page


def _grid(rows: Iterable[Sequence[str]]) -> str:
    cells = ([text.replace("\\|", "|").replace("|", "\\|") for text in row] for row in rows)
    return "\n".join(f"| {' | '.join(row)} |" for row in cells)


def _forest(forest: doc.Forest, words: Words) -> list[str]:
    rows = [
        (*map(words, HEADS[:2]), f"{words('Estimate')}: {forest.heading}", *map(words, HEADS[2:])),
        ("---", "---", "---", "---", "---"),
    ]
    rows += [(fenced(r.who), r.of, r.estimate, r.guaranteed, r.word) for r in (*forest.lines, *forest.folded)]
    return [_grid(rows), *([words(forest.rest)] if forest.left else [])]


def _table(table: doc.Table) -> str:
    kept = [i for i, c in enumerate(table.columns) if "markdown" in c.where]
    columns = [table.columns[i] for i in kept]
    head = [c.brief or plain(c.head) for c in columns]
    rule = ["--:" if {"r", "c"} & set(c.style.split()) else "---" for c in columns]
    rows = ([marked(row.cells[i].brief or row.cells[i].text) for i in kept] for row in doc.seen(table.rows, "markdown"))
    return _grid([head, rule, *rows])


def marked(text: Text) -> str:
    """A sentence as Markdown in which no name can act as markup, a mention or a link."""
    return "".join(_span(s) for s in text if s.kind != "lead").strip()


def _span(span: Span) -> str:
    if span.kind in ("code", "name", "given"):
        return fenced(span.text)
    if span.kind == "title":
        return f"**{titled(span.text).strip()}** "
    text = "".join(f"\\{c}" if c in "\\`*_[]<>&|~" else c for c in span.text)
    if span.kind != "strong" or not text.strip():
        return text
    before, after = text[: len(text) - len(text.lstrip())], text[len(text.rstrip()) :]
    return f"{before}**{text.strip()}**{after}"  # a space inside the stars would not let them act


def fenced(text: str) -> str:
    """Put text inside a Markdown code span that it cannot close."""
    if not text.strip():
        return "(blank)"
    ticks = "`" * (_longest(text) + 1)
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{ticks}{pad}{text}{pad}{ticks}"


def _longest(text: str) -> int:
    runs: Sequence[str] = "".join(c if c == "`" else " " for c in text).split()
    return max(map(len, runs), default=0)
