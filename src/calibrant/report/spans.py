"""A sentence as plain pieces, so that one wording serves the page, the terminal and Markdown."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from calibrant.audit.record import Finding
from calibrant.sanitize import quote_blank, sanitize

Kind = Literal[
    "text", "strong", "code", "name", "given", "missing", "title", "small", "quiet", "square", "lead", "break"
]


@dataclass(frozen=True, slots=True)
class Span:
    """One piece of a sentence; nothing in it is markup.

    ``"name"`` is a group of the data, ``"given"`` a word from the caller, ``"missing"`` stands for what was not
    given; ``"title"`` opens a list item; ``"small"`` and ``"quiet"`` are set below or behind what
    they explain; ``"square"`` is in the colour of the squares of a picture; ``"lead"`` only leads elsewhere on the
    page; ``"break"`` ends a line.
    """

    text: str
    kind: Kind = "text"
    href: str = ""  # where a link leads: ``"#"`` and the id of a part of the page; empty for no link


Text = tuple[Span, ...]


def say(*parts: str | Span) -> Text:
    """A sentence from words and pieces."""
    return tuple(Span(p) if isinstance(p, str) else p for p in parts)


BREAK = Span(" ", "break")


def lines(*parts: str | Span) -> Text:
    """Words that stand under each other, as in the head of a column."""
    return say(*(p for part in parts for p in (BREAK, part)))[1:]


def strong(text: str) -> Span:
    """Words that carry the message."""
    return Span(text, "strong")


def code(text: object) -> Span:
    """What is typed or was given, such as a column or an option."""
    return Span(sanitize(text), "code")


def literal(text: object) -> Span:
    """A word the caller gave, such as the outcome."""
    return Span(sanitize(text), "given")


def title(text: str) -> Span:
    """The opening words of a list item."""
    return Span(text, "title")


def link(text: str, target: str) -> Span:
    """Words of a sentence that also lead to the part of the page with the id `target`."""
    return Span(text, "text", f"#{target}")


def pointer(text: str, target: str) -> Span:
    """Words that only lead to the part of the page with the id `target`: a page alone shows them."""
    return Span(text, "lead", f"#{target}")


def name(finding: Finding) -> Span:
    """The name of a group, such as "nativity = foreign born"; a very long one is cut, and whole in its table."""
    return Span(clipped(label(finding)), "name")


def clipped(text: str, most: int = 90) -> str:
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"


def shown(text: object) -> str:
    """The name of a variable or a level as it is read."""
    made = sanitize(text)
    return quote_blank(made) if made.strip() else "(blank)"


def sentence(text: object) -> str:
    """A reason as a sentence: a capital first, a full stop last."""
    shown = sanitize(text).strip()
    return shown[:1].upper() + shown[1:] + ("" if shown.endswith((".", "!", "?")) or not shown else ".")


def value_label(finding: Finding) -> str:
    """The values that define a group, without their variables; of a pool those that may be named."""
    text = ", ".join(shown(v) for _, v in finding.variables)
    return f"{text} pooled" if finding.pooled and "pooled" not in text else text


def label(finding: Finding) -> str:
    """The full name of a group, such as "sex = m"; "everyone" for all."""
    if not finding.variables:
        return "everyone"
    if finding.pooled:
        return f"{', '.join(shown(k) for k, _ in finding.variables)}: {value_label(finding)}"
    return ", ".join(f"{shown(k)} = {shown(v)}" for k, v in finding.variables)


def plain(text: Text) -> str:
    """A sentence as plain text; what only leads to another part of the page is left out."""
    parts = [titled(s.text) if s.kind == "title" else s.text for s in text if s.kind != "lead"]
    return one_stop("".join(parts).strip())


def one_stop(text: str) -> str:
    """A text in which no name that ends with a full stop is followed by another."""
    return re.sub(r"(?<=[^.\s])\.\.(?=\s|$)", ".", text)


def titled(text: str) -> str:
    """The opening words of a list item as the sentence they are elsewhere."""
    return f"{text} " if text.endswith(".") else f"{text}. "
