"""Text that others wrote, made safe to print: what a terminal would obey or hide is shown as codes."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable

HALF = "half of a pair of surrogates, such as U+D800, is in no file"
JOINERS = "\u200c\u200d"  # letters of several scripts need them, and emoji
HIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}  # controls, directions, halves of pairs, ends of lines
# What a message shows of a value in quotes, of a run of characters without a blank, and of everything.
VALUE, RUN, MESSAGE = 80, 300, 1200
QUOTED = re.compile(r"""(?<![\w'"\\])(?:'((?:[^'\\]|\\.){81,})'|"((?:[^"\\]|\\.){81,})")(?!\w)""", re.DOTALL)
UNBROKEN = re.compile(rf"\S{{{RUN},}}")


def sanitize(text: object, keep: str = "") -> str:
    """Text with control, bidirectional and other unseen characters shown as codes, but for those to keep."""
    text = str(text)
    return text if text.isprintable() else "".join(_shown(c, keep) for c in text)


def as_message(text: object) -> str:
    """Text as one line of a message: a value that it quotes, however long, shows its first characters."""
    line = QUOTED.sub(lambda m: f"{_cut(m[0])}{m[0][0]}", sanitize(text))
    line = UNBROKEN.sub(lambda m: _cut(m[0]), line)
    return line if len(line) <= MESSAGE else f"{_cut(line, 2 * VALUE)} {line[-2 * VALUE :]}"


def _cut(text: str, most: int = VALUE) -> str:
    return f"{text[:most]}…"


def keyed(group: Iterable[tuple[str, str]]) -> str:
    """The name of a group: ``sex = f, age = 40–49``. No two groups have one name."""
    return ", ".join(" = ".join(map(_quoted, pair)) for pair in group)


def _quoted(text: str) -> str:
    """A variable or a level; in quotes where it could be misread."""
    return json.dumps(text, ensure_ascii=False) if any(c in text for c in '=",') else text


def quote_blank(text: str) -> str:
    """Text in quotes where it begins or ends with white space, which nobody would see: "a " next to a."""
    return f'"{text}"' if text.strip() and text != text.strip() else text


def has_half_characters(value: object) -> bool:
    """Whether a text in plain data is half of a pair (\\ud800), which JSON can name and no file can hold."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    return False


def _shown(c: str, keep: str) -> str:
    unseen = unicodedata.category(c) in HIDDEN and c not in JOINERS and c not in keep
    return f"⟨U+{ord(c):04X}⟩" if unseen else c
