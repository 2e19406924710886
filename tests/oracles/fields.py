"""Rows and fields of delimited text, character by character, and what they can be by regular expressions."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from calibrant.data.sources import inferred_types as f

EXPONENT = r"([eE][+-]?[0-9]+)?"
MARKS = (",", r"\.", " ", "'", "\u00a0", "\u202f")
TIME = r"([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.([0-9]{1,9}))?)?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])?"
DATE = re.compile(rf"([0-9]{{4}})-([0-9]{{2}})-([0-9]{{2}})([T ]{TIME})?", re.ASCII)
PATTERNS = (
    (f.CODE, rf"[+-]?0[0-9]+((\.[0-9]*)|(,[0-9]+))?{EXPONENT}"),
    (f.WHOLE, r"[+-]?[0-9]{1,15}"),
    (f.LONG, r"[+-]?[0-9]+"),
    (f.SCIENTIFIC, r"[+-]?[0-9]+[eE][+-]?[0-9]+"),
    (f.POINTED, r"[+-]?[1-9][0-9]{0,2}\.[0-9]{3}"),
    (f.REAL, rf"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+){EXPONENT}"),
    (f.EITHER, r"[+-]?[1-9][0-9]{0,2},[0-9]{3}"),
    (f.COMMA, rf"[+-]?[0-9]*,[0-9]+{EXPONENT}"),
    (f.PERCENT, r"[+-]?([0-9]+|[0-9]*[.,][0-9]+) *%"),
    (f.HEX, r"[+-]?0x[0-9a-fA-F]+"),
    *((f.GROUPED, rf"[+-]?[0-9]{{1,3}}({m}[0-9]{{3}})+((?!{m})[.,][0-9]*)?") for m in MARKS),
)


def meaning(text: str) -> int:
    """Return what a field can be."""
    text = text.strip(" \t")
    if not text:
        return f.EMPTY
    if date := DATE.fullmatch(text):
        year, month, day = (int(date[i]) for i in (1, 2, 3))
        leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
        days = (31, 29 if leap else 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
        fine = len(date[8] or "") > 6
        if not (1 <= month <= 12 and 1 <= day <= days[month - 1]) or (fine and date[9]):
            return f.TEXT
        return f.DATE if not date[4] else f.ZONED if date[9] else f.FINE if fine else f.TIME
    for code, pattern in PATTERNS:
        if re.fullmatch(pattern, text, re.ASCII):
            return code
    low = "".join(c.lower() if c.isascii() else c for c in text)
    return next((code for code, words in f.WORDS.items() if low in words), f.TEXT)


@dataclass
class Read:
    """What reading text showed."""

    lines: int = 0
    rows: list[int] = field(default_factory=list)  # the lines in which they begin
    fault: str = ""  # and its line
    first: dict[tuple[int, int], tuple[int, str]] = field(default_factory=dict)  # column, code: line, value


def one_field(text: str, i: int, delimiter: str) -> tuple[int, str, str]:
    """Return where the field at i ends, its value, and what is wrong with it."""
    rest = re.compile(rf"[^{re.escape(delimiter)}\r\n]*")
    if text[i] != '"':
        end = rest.match(text, i).end()
        return end, text[i:end], ""
    inside = re.compile(r'"((?:[^"]|"")*)"(?!")').match(text, i)
    if inside is None:
        return len(text), "", "the quote in line {} is never closed"
    end = rest.match(text, inside.end()).end()
    after = text[inside.end() : end]
    fault = "the quoted value of line {} goes on" if after.strip(" \t") else ""
    return end, inside[1].replace('""', '"') + after, fault


def scan(text: str, delimiter: str, columns: int) -> Read:
    """Read text that ends in a line end."""
    out, i = Read(), 0
    done: set[int] = set()
    while i < len(text):
        start, fields, line = i, [], out.lines + 1
        while fields or text[i] not in "\r\n":
            begin = i
            i, value, fault = one_field(text, i, delimiter)
            if fault:
                out.fault = fault.format(line)
                return out
            fields.append((line, value, meaning(value)))
            line += len(re.findall("\r\n|\r|\n", text[begin:i]))
            if text[i] in "\r\n":
                break
            i += 1
        blank = len(fields) < 2 and not text[start:i].strip(" \t")
        i += 2 if text[i : i + 2] == "\r\n" else 1
        if len(fields) == columns:
            out.rows.append(out.lines + 1)
            for column, (at, value, code) in enumerate(fields):
                if column not in done:
                    out.first.setdefault((column, code), (at, value))
                    done |= {column} if code == f.TEXT else set()
        elif not blank:
            out.fault = f"line {out.lines + 1} has {len(fields)} value{'s'[: len(fields) != 1]} and"
            return out
        out.lines = line
    return out
