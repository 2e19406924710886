"""What the terminal shows: the summary of an audit, and short lines for the other commands."""

from __future__ import annotations

import re
import unicodedata

from calibrant.audit.record import AuditRecord
from calibrant.report.document import Beside, Document, Items, Node, Opening, Paragraph, Ruler, seen
from calibrant.report.sections import document
from calibrant.report.spans import Text, plain

WIDTH = 88  # cells of a line: two windows side by side, and it can be quoted in a mail
NAME = 34  # cells for a name in the table; with the other columns it fits the width
FLOOR = re.compile(", the smallest that [^ ]+ simulations can show")


def render(record: AuditRecord) -> str:
    """Return a summary for a terminal: headline, certified ranges worst first, and what to do next.

    Parameters
    ----------
    record : AuditRecord

    Returns
    -------
    str
        Plain text without colour codes.
    """
    return written(document(record))


def written(of: Document) -> str:
    """Return the summary of a document: what is marked for the terminal, and last what closes."""
    blocks = [" · ".join((of.name, *(plain(f.text) for f in seen(of.facts, "terminal"))))]
    last: list[str] = []
    for section in of.sections:
        lines: list[str] = []
        for node in seen(section.nodes, "terminal"):
            if isinstance(node, Items) and node.closes:
                last += [line for i, text in enumerate(node.items, 1) for line in wrap(_said(text), f"{i}. ")]
            else:
                lines += _lines(node)
        blocks += ["\n".join(lines).rstrip("\n")] if lines else []
    return "\n\n".join([*blocks, "\n".join(last)] if last else blocks)


def _lines(node: Node) -> list[str]:
    match node:
        case Opening():
            top = f"{node.word.upper()}. {node.headline}" if node.word else node.headline
            return [*wrap(top), "", *wrap(_said(node.lead)), ""]
        case Ruler():
            return [*_ruler(node), ""]
        case Paragraph() | Beside():
            return wrap(_said(node.text))
        case _:
            return []


def _ruler(ruler: Ruler) -> list[str]:
    """Return the certified ranges as aligned lines."""
    names = [clip(f"{m.variable}: {m.value}" if m.variable else m.value, NAME) for m in ruler.marks]
    wide = [
        max(map(cells, names)),
        max(cells(text) for text in ("people", *(m.people for m in ruler.marks))),
        max(cells(text) for text in ("points off", *(m.range for m in ruler.marks))),
    ]
    out = [f"  {pad('', wide[0])}  {'people':>{wide[1]}}  {'points off':>{wide[2]}}"]
    for m, name in zip(ruler.marks, names, strict=True):
        word = f"  {m.word.lower()}" if ruler.judged else ""
        out.append(f"  {pad(name, wide[0])}  {m.people:>{wide[1]}}  {m.range:>{wide[2]}}{word}")
    return [*out, f"  {ruler.more}"] if ruler.more else out


def _said(text: Text) -> str:
    """Return a sentence without what is too long for a terminal: how fine a simulation can see."""
    return FLOOR.sub("", plain(text))


def cells(text: str) -> int:
    """Return how many columns a terminal needs for a text."""
    wide = sum(unicodedata.east_asian_width(c) in "WF" for c in text)
    return len(text) + wide - sum(bool(unicodedata.combining(c)) for c in text)


def clip(text: str, width: int) -> str:
    """Return a text cut to a number of columns."""
    if cells(text) <= width:
        return text
    while cells(text) > width - 1:
        text = text[:-1]
    return text + "…"


def pad(text: str, width: int) -> str:
    """Return a text filled up with spaces to a number of columns."""
    return text + " " * max(0, width - cells(text))


def wrap(text: str, start: str = "") -> list[str]:
    """Return a text as lines that fit a terminal, the first with a number or mark before it."""
    lines, line = [], start
    for word in text.split(" "):
        if cells(line) + cells(word) + 1 > WIDTH and line.strip() and line != start:
            lines.append(line)
            line = " " * len(start)
        line += word if line in (start, " " * len(start)) else f" {word}"
    return [*lines, line]
