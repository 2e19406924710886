"""A report as its reader sees it: sentences and tables of the Markdown, without what is only notation."""

from __future__ import annotations

import re
from dataclasses import dataclass

NUMBER = r"[+\-]?\d+(?:\.\d+)?"
RANGE = re.compile(rf"({NUMBER}) \(({NUMBER})(?: to |–)({NUMBER})\)")


@dataclass(frozen=True, slots=True)
class Table:
    """A table: its section, its heads, and its rows, each by these heads."""

    section: str
    heads: tuple[str, ...]
    rows: tuple[dict[str, str], ...]


@dataclass(frozen=True, slots=True)
class Read:
    """Sections by their headings; sentences are lines that are no table and no command."""

    sentences: tuple[tuple[str, str], ...]
    tables: tuple[Table, ...]

    @property
    def text(self) -> str:
        return "\n".join(line for _, line in self.sentences)

    def of(self, heading: str) -> str:
        return "\n".join(line for section, line in self.sentences if heading in section)

    def with_heads(self, *heads: str) -> list[Table]:
        return [t for t in self.tables if all(any(h in head for head in t.heads) for h in heads)]


def read(markdown: str) -> Read:
    """Read a report; numbers keep their digits, with a plain minus and no marks of thousands."""
    section, sentences, tables, fenced = "", [], [], False
    lines = iter(plain(markdown).splitlines())
    for line in lines:
        if line.startswith("```"):
            fenced = not fenced
        elif fenced or not line.strip():
            continue
        elif line.startswith("#"):
            section = line.strip("# ")
            sentences.append((section, section))
        elif line.startswith("|"):
            heads, rows = _cells(line), []
            assert set(next(lines)) <= set("|-: ")
            for row in lines:
                if not row.startswith("|"):
                    break
                rows.append(dict(zip(heads, _cells(row), strict=True)))
            tables.append(Table(section, heads, tuple(rows)))
        else:
            sentences.append((section, line))
    return Read(tuple(sentences), tuple(tables))


def plain(text: str) -> str:
    """Return text with a plain minus, no marks of thousands, and without stars and escapes of Markdown."""
    text = text.replace("\N{MINUS SIGN}", "-").replace("\N{NO-BREAK SPACE}", " ").replace("**", "")
    text = re.sub(r"\\([`*_\[\]<>&~])", r"\1", text)
    return re.sub(r"(?<=\d)[,\u202f](?=\d{3}\b)", "", text)


def _cells(line: str) -> tuple[str, ...]:
    return tuple(c.strip().replace("\\|", "|") for c in re.split(r"(?<!\\)\|", line)[1:-1])


def numbers(text: str) -> list[float]:
    return [float(n) for n in re.findall(NUMBER, text)]


def ranges(text: str) -> list[tuple[float, float, float]]:
    """Every value with its range: (value, low, high)."""
    return [(float(v), float(a), float(b)) for v, a, b in RANGE.findall(text)]
