"""A catalogue of sentences in another language: which words stand for which, and how numbers are written.

A catalogue is a folder of TOML files. A key is a sentence or a phrase of the report, in which ``#`` stands for a number
and ``{}`` for a phrase, a name or a list of them; its value says it in the other language, with the same holes in the
same order, or each by its place (``{2}``).
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import count

from calibrant.errors import BadInput

ENGLISH = "en"
LANGUAGES = (ENGLISH, "de")

# A number as the report writes it: 1,234, 0.05, +2.0, 10^-6; no part of a word, of a version or of a name.
NUMBER = re.compile(r"(?<![\w.,{])[+\-\u2212±]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:e[+-]?\d+)?(?![\w]|[.,]\d)")
HOLE = re.compile(r"\{(\d*)\}|#")
WORD = re.compile(r"[^\W\d_]+")
DATE = re.compile(r"(?<![\w-])(\d{4})-(\d\d)-(\d\d)(?![\w-])")
PHRASE = "((?:[\ue400-\ue7ff][^\ue3ff]*\ue3ff)|.+?)"  # whole where it is marked
NOUNS = ("Fehler", "Abweichung")  # with which a verdict begins
NARROW = "\u202f"  # between thousands, and before a percent sign


def number(text: str) -> str:
    """A number of an English sentence as German writes it: a decimal comma, a narrow space between thousands."""
    whole, point, rest = text.partition(".")
    return whole.replace(",", NARROW) + ("," if point else "") + rest


def numbers(text: str) -> str:
    """A text that holds numbers, dates and signs alone, as German writes it."""
    text = DATE.sub(r"\3.\2.\1", text)
    text = NUMBER.sub(lambda m: number(m[0]), text) if not DATE.search(text) else text
    return re.sub(r"(?<=\d)%", f"{NARROW}%", text)


@dataclass(frozen=True, slots=True)
class Pattern:
    """One entry with holes for phrases: what it matches, and how it is worded."""

    match: re.Pattern[str]
    holes: str  # one letter each, in the order of the key: "n" a number, "p" a phrase
    worded: str
    weight: int  # letters of its key


def _pattern(key: str, worded: str) -> Pattern:
    parts: list[str] = []
    end = 0
    for hole in HOLE.finditer(key):
        parts += [re.escape(key[end : hole.start()]), f"({NUMBER.pattern})" if hole[0] == "#" else PHRASE]
        end = hole.end()
    parts.append(re.escape(key[end:]))
    holes = "".join("n" if h[0] == "#" else "p" for h in HOLE.finditer(key))
    return Pattern(re.compile("".join(parts), re.DOTALL), holes, worded, len(HOLE.sub("", key)))


def fill(worded: str, values: Sequence[str]) -> str:
    """A translation with its holes filled, in their order or by their places."""
    order = count()
    return HOLE.sub(lambda m: values[int(m[1]) - 1 if m[1] else next(order)], worded)


@dataclass(frozen=True, slots=True)
class Catalogue:
    """All entries of a language, found by their words."""

    exact: Mapping[str, str]  # without holes, or with holes for numbers alone
    patterns: Mapping[str, tuple[Pattern, ...]]  # by the rarest word of each
    script: Mapping[str, str]  # pieces of the script of the page
    style: tuple[str, ...]  # rules after those of the page

    def entry(self, text: str) -> str | None:
        """What stands for a text word for word, its numbers filled in."""
        if (worded := self.exact.get(text)) is not None:
            return worded
        seen = NUMBER.findall(text)
        if seen and (worded := self.exact.get(NUMBER.sub("#", text))) is not None:
            return fill(worded, [number(n) for n in seen])
        return None

    def candidates(self, text: str) -> Iterator[tuple[Pattern, re.Match[str]]]:
        """Entries with holes that a text matches, those with the most words of their own first."""
        words = dict.fromkeys(WORD.findall(text))
        near = {id(p): p for w in (*words, "") for p in self.patterns.get(w, ())}
        for p in sorted(near.values(), key=lambda p: -p.weight):
            if (m := p.match.fullmatch(text)) is not None:
                yield p, m


@cache
def catalogue(language: str) -> Catalogue:
    """The catalogue of a language that reports are written in."""
    folder = files("calibrant.report.languages") / language
    tables = [tomllib.loads(f.read_text(encoding="utf-8")) for f in folder.iterdir() if f.name.endswith(".toml")]
    entries = {
        k: v.replace(" %", f"{NARROW}%") for table in tables for k, v in table.get("sentences", {}).items()
    }  # no line ends between a number and its percent sign
    exact = {k: v for k, v in entries.items() if "{" not in k}
    holed = {k: v for k, v in entries.items() if "{" in k}
    often: dict[str, int] = {}
    for key in holed:
        for word in set(WORD.findall(key)):
            often[word] = often.get(word, 0) + 1
    patterns: dict[str, list[Pattern]] = {}
    for key, worded in holed.items():
        rarest = min(WORD.findall(key), key=lambda w: (often[w], w), default="")
        patterns.setdefault(rarest, []).append(_pattern(key, worded))
    script = {k: v for table in tables for k, v in table.get("script", {}).items()}
    style = tuple(rule for table in tables for rule in table.get("style", {}).values())
    return Catalogue(exact, {w: tuple(p) for w, p in patterns.items()}, script, style)


def checked(language: str) -> str:
    """A language that reports are written in; `BadInput` for any other."""
    if language not in LANGUAGES:
        raise BadInput(f"language={language!r}: a report is written in {' or '.join(LANGUAGES)}")
    return language


@dataclass(frozen=True, slots=True)
class Words:
    """What every report has, such as the head of its contents, in its language."""

    language: str

    def __call__(self, text: str) -> str:
        return text if self.language == ENGLISH else catalogue(self.language).entry(text) or text

    def inside(self, word: str) -> str:
        """A word of a verdict as it is inside a sentence; German keeps its nouns."""
        if self.language == ENGLISH:
            return word.lower()
        return word if word.startswith(NOUNS) else word[:1].lower() + word[1:]


def scripted(script: str, language: str) -> str:
    """The script of the page, with what it says and how it reads numbers in a language."""
    if language != ENGLISH:
        for piece, worded in catalogue(checked(language)).script.items():
            script = script.replace(piece, worded)
    return script


def styled(style: str, language: str) -> str:
    """The style of the page, with what the words of a language need."""
    return style if language == ENGLISH else "\n".join((style, *catalogue(checked(language)).style))
