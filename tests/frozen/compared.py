"""Old and new outputs side by side: numbers within 1e-12, everything else byte for byte."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from itertools import zip_longest

from frozen.bench import Outputs

WITHIN = 1e-12
FULL = 12  # significant digits: a number with fewer was rounded for a reader, and is text
TOKEN = re.compile(r"(?<![\w.])[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?(?![\w])|\w+|\s+|[^\w\s]")
NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
PIECE = re.compile(r"[^\n,>;]*[\n,>;]?")  # of a line; records and pages have lines of a million characters
NUMBERS = ("a number", "another number")


def same(old: str, new: str) -> bool:
    """Two tokens are one, or full-precision numbers that agree."""
    if old == new:
        return True
    if not (NUMBER.fullmatch(old) and NUMBER.fullmatch(new)) or max(map(_digits, (old, new))) < FULL:
        return False
    a, b = float(old), float(new)
    return abs(a - b) <= WITHIN * max(1.0, abs(a), abs(b))


def _digits(number: str) -> int:
    mantissa = re.split("[eE]", number)[0]
    return len(re.sub(r"\D", "", mantissa).lstrip("0")) if "." in number or "e" in number.lower() else 0


@dataclass
class Differences:
    """What differs.

    Parameters
    ----------
    files : list of (name, what)
        Each file that differs: "is gone", "is new", or its first differing line.
    words : Counter of (old, new)
        Pairs of words, over all files.
    places : dict
        Of each pair, the first file with it.
    """

    files: list[tuple[str, str]] = field(default_factory=list)
    words: Counter[tuple[str, str]] = field(default_factory=Counter)
    places: dict[tuple[str, str], str] = field(default_factory=dict)

    def see(self, name: str, old: bytes | None, new: bytes | None) -> None:
        """Compare one file."""
        if old is None or new is None:
            self.files.append((name, "is new" if old is None else "is gone"))
            return
        before, after = _text(old), _text(new)
        if before == after or not (pairs := list(differing(before, after))):
            return
        self.files.append((name, first_line(before, after)))
        for pair in pairs:
            kind = NUMBERS if all(NUMBER.fullmatch(w) for w in pair) else pair
            self.words[kind] += 1
            self.places.setdefault(kind, name)


def compared(old: Mapping[str, Outputs], new: Mapping[str, Outputs]) -> dict[str, Differences]:
    """The differences of each case that has any."""
    out = {}
    for case in sorted({*old, *new}):
        before, after, found = old.get(case, {}), new.get(case, {}), Differences()
        for name in sorted({*before, *after}):
            found.see(name, before.get(name), after.get(name))
        if found.files:
            out[case] = found
    return out


def _text(content: bytes) -> str:
    return content.decode("utf-8", errors="backslashreplace")


def first_line(old: str, new: str) -> str:
    """The first line that differs, from a little before the difference on."""
    before, after = old.split("\n"), new.split("\n")
    for number, (a, b) in enumerate(zip(before, after, strict=False), 1):
        if a != b and (at := _place(a, b)) is not None:
            was, now = (text[max(0, i - 60) : i + 100] for text, i in zip((a, b), at, strict=True))
            return f"line {number}\n  was {was!r}\n  is  {now!r}"
    return f"{len(before)} lines became {len(after)}"


def _place(old: str, new: str) -> tuple[int, int] | None:
    """Where two lines begin to differ, in each; None if only numbers differ that agree."""
    at = [0, 0]
    for a, b in zip_longest(TOKEN.findall(old), TOKEN.findall(new), fillvalue=""):
        if not same(a, b):
            return at[0], at[1]
        at = [at[0] + len(a), at[1] + len(b)]
    return None


def differing(old: str, new: str) -> Iterator[tuple[str, str]]:
    """Pairs of words that differ, in the order of the text."""
    if old == new:
        return
    before, after = TOKEN.findall(old), TOKEN.findall(new)
    if len(before) == len(after):
        unlike = [i for i, (a, b) in enumerate(zip(before, after, strict=True)) if not same(a, b)]
        if len(unlike) <= max(20, len(before) // 5):
            yield from _runs(before, after, unlike)
            return
    for a, b in _blocks(old.splitlines(keepends=True), new.splitlines(keepends=True)):
        for left, right in _blocks(PIECE.findall(a), PIECE.findall(b)):
            yield from _words(left, right)


def _blocks(old: list[str], new: list[str]) -> Iterator[tuple[str, str]]:
    """What stands between equal parts."""
    for tag, i, j, k, m in SequenceMatcher(None, old, new).get_opcodes():
        if tag != "equal":
            yield "".join(old[i:j]), "".join(new[k:m])


def _runs(before: list[str], after: list[str], unlike: list[int]) -> Iterator[tuple[str, str]]:
    """Words that differ, neighbours on a line together, of texts with as many tokens; numbers by themselves."""
    at = 0
    while at < len(unlike):
        end = at
        while end + 1 < len(unlike) and _together(before, unlike[end], unlike[end + 1]):
            end += 1
        some = slice(unlike[at], unlike[end] + 1)
        yield "".join(before[some]), "".join(after[some])
        at = end + 1


def _together(tokens: list[str], first: int, second: int) -> bool:
    if any(NUMBER.fullmatch(tokens[i]) for i in (first, second)):
        return False
    return second == first + 1 or (second == first + 2 and tokens[first + 1] == " ")


def _words(old: str, new: str) -> Iterator[tuple[str, str]]:
    before, after = TOKEN.findall(old), TOKEN.findall(new)
    if len(before) == len(after):
        unlike = [i for i, (a, b) in enumerate(zip(before, after, strict=True)) if not same(a, b)]
        if len(unlike) <= max(4, len(before) // 2):
            yield from _runs(before, after, unlike)
            return
    if len(before) * len(after) > 4_000_000:  # a block that has nothing to do with the other
        yield "".join(before), "".join(after)
        return
    for tag, i, j, k, m in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag != "equal" and not (j - i == m - k and all(map(same, before[i:j], after[k:m]))):
            yield "".join(before[i:j]), "".join(after[k:m])
