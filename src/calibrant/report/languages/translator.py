"""A document in another language: every sentence by the catalogue, names and commands as they are."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cached_property
from html import escape, unescape
from typing import Any, TypeVar

from calibrant.audit.record import AuditRecord
from calibrant.decisions.comparison import EVERYONE
from calibrant.report import document as doc
from calibrant.report.languages.catalogue import (
    ENGLISH,
    NUMBER,
    WORD,
    Catalogue,
    catalogue,
    checked,
    fill,
    number,
    numbers,
)
from calibrant.report.spans import Span, Text, say
from calibrant.report.svg import Svg

KEPT = ("code", "name", "given")  # spans that are no sentence: words of the data, and what is typed
APART = ("title", "small", "quiet", "lead", "break")  # spans that are a sentence by themselves
FIRST, OPEN, CLOSE = 0xE000, 0xE400, "\ue3ff"  # private characters: a span that is kept, one that is marked, its end
MARKED = re.compile("([\ue400-\ue7ff])([^\ue3ff]*)\ue3ff")
KEPT_WHOLE = re.compile("\\{\\w+\\}|\u2068[^\u2069]*\u2069")  # a place in a readout, a name between isolates
STOP = re.compile(r"(?<=[.!?])\)?\s+(?=[^a-z\s])|(?<=[.!?]\u201d)\s+")
ENDED = re.compile(r"\)\.\s")  # where a sentence is over, for all that a name before it may hold a full stop
CUTS = re.compile(r"; |: | · |\n")
TIED = "\u00a0"
TIES = re.compile(
    r" (?=[=<>≤≥·] )|(?<=[=<>≤≥]) |(?<=\d) (?=Punkte?\b|bis )|(?<=\bbis) (?=\d)|(?<=·) "
)  # where no line ends
NAMED = re.compile(r"(.+?) = (?:(?!, |; | and ).)+", re.DOTALL)  # a group: a column and its value
CONDITION = re.compile(r"(.+?) (?:=|over|up to|after|before|under) [^;()]+", re.DOTALL)  # of a rule: a column, and what
BOUND = re.compile(rf"( (?:über|bis) )({NUMBER.pattern})")
JOINING = re.compile(" (?:and|or|over|up to) ")
CONDITIONS = {
    " bis ": re.compile(", up to "),
    " und ": re.compile(" and "),
    " oder ": re.compile(" or "),
    r" über \1": re.compile(r" over ([\d+\-\u2212])"),
    r" bis \1": re.compile(r" up to ([\d+\-\u2212])"),
    r" + \1 weitere": re.compile(r" \+ (\d+) more"),
    " zusammengefasst": re.compile(" pooled$"),
    "Score": re.compile(r"\bthe score\b"),
}
LISTED = re.compile(r",? and |, | or | × |; |/|\u2013")
SVG_WORDS = re.compile(
    r"(<(?:text|title|desc)\b[^>]*>)([^<]*)(?=<)|(aria-label=\")([^\"]*)(?=\")|(<tspan\b[^>]*>)([^<]*)(?=<)"
)
NOT_WORDS = {  # fields of nodes that nobody reads
    "where",
    "id",
    "href",
    "style",
    "verdict",
    "status",
    "icon",
    "sort",
    "low",
    "high",
    "start",
    "language",
    "level",
    "opened",
}


@dataclass
class Translator:
    """Says texts in the language of a catalogue; counts those that it has no words for."""

    of: Catalogue
    names: Collection[str]  # words of the data
    missing: Counter[str] = field(default_factory=Counter)
    known: dict[str, str] = field(default_factory=dict)
    phrases: dict[tuple[str, int], str | None] = field(default_factory=dict)

    @cached_property
    def kept(self) -> re.Pattern[str]:
        """What of a rule stays as it is: values in quotes, and names that hold a word of a rule."""
        with_words = sorted((n for n in self.names if JOINING.search(n)), key=len, reverse=True)
        return re.compile("|".join(('("[^"]*"', *map(re.escape, with_words))) + ")")

    # ---- nodes ----

    def document(self, of: doc.Document) -> doc.Document:
        return replace(
            of,
            title=self.string(of.title),
            facts=tuple(self.node(f) for f in of.facts),
            sections=tuple(self.node(s) for s in of.sections),
        )

    def node(self, of: object) -> Any:
        """Anything of a document, with every word in it translated."""
        if isinstance(of, Svg):
            return self.picture(of)
        if isinstance(of, str):
            return self.string(of)
        if isinstance(of, tuple):
            if of and all(isinstance(s, Span) for s in of):
                return self.text(of)
            return tuple(self.node(o) for o in of)
        if not is_dataclass(of) or isinstance(of, type):
            return of
        kept = NOT_WORDS | UNREAD.get(type(of), set())
        made = {f.name: self.node(getattr(of, f.name)) for f in fields(of) if f.name not in kept}
        if isinstance(of, doc.Figure):
            made["key"] = tuple((glyph, self.string(words)) for glyph, words in of.key)
        return replace(of, **made)

    def picture(self, of: Svg) -> Svg:
        """A picture with its words translated."""

        def worded(m: re.Match[str]) -> str:
            opening, words = (m[1], m[2]) if m[1] else (m[3], m[4])
            return opening + escape(self.string(unescape(words)))

        return Svg(SVG_WORDS.sub(worded, of))

    # ---- sentences ----

    def text(self, of: Text) -> Text:
        """A sentence of pieces; a piece that stands by itself is translated by itself."""
        made: list[Span] = []
        run: list[Span] = []
        for span in of:
            if span.kind in APART:
                made += [*self._run(run), replace(span, text=self.string(span.text))]
                run = []
            else:
                run.append(span)
        return (*made, *self._run(run))

    def _run(self, of: list[Span]) -> list[Span]:
        if not of:
            return []
        plain = ""
        for i, s in enumerate(of):
            if s.kind in KEPT:
                plain += chr(FIRST + i)
            elif s.kind != "text" or s.href:
                plain += f"{chr(OPEN + i)}{s.text}{CLOSE}"
            else:
                plain += s.text
        worded = self.string(plain)
        made: list[Span] = []
        of = [replace(x, text=self.name(x.text)) if x.kind in ("name", "given") else x for x in of]
        for piece in re.split("([\ue000-\ue3fe]|[\ue400-\ue7ff][^\ue3ff]*\ue3ff)", worded):
            if not piece:
                continue
            at = ord(piece[0])
            if OPEN <= at < OPEN + 0x400:
                made.append(replace(of[at - OPEN], text=piece[1:-1]))
            elif FIRST <= at < FIRST + 0x3FF:
                made.append(of[at - FIRST])
            else:
                made.append(Span(piece))
        return made

    def name(self, of: str) -> str:
        """The name of a group as it is; of a subgroup its rule, whose values stay as they are."""
        if of == EVERYONE:
            return self.string(of)
        if of in self.names:
            return of
        rule = CONDITION.match(of)
        if not of.endswith(" pooled") and not self._column(rule):
            return of
        parts = self.kept.split(of)
        for i in range(0, len(parts), 2):
            for worded, pattern in CONDITIONS.items():
                parts[i] = pattern.sub(worded, parts[i])
            parts[i] = BOUND.sub(lambda m: m[1] + number(m[2]), parts[i])
        return "".join(parts)

    def string(self, of: str) -> str:
        """A text; what has no entry stays as it is, and is counted."""
        if of not in self.known:
            self.known[of] = self._string(of)
        return self.known[of]

    def _string(self, of: str) -> str:
        if not of.strip():
            return of
        before, after = of[: len(of) - len(of.lstrip())], of[len(of.rstrip()) :]
        core = of.strip().replace(TIED, " ")
        worded = self.phrase(core)
        if worded is None:
            parts = STOP.split(core)
            gaps = [m[0] for m in STOP.finditer(core)]
            parts_worded = [self.phrase(p) for p in parts]
            for part, one in zip(parts, parts_worded, strict=True):
                if one is None:
                    self.missing[part] += 1
            worded = parts[0] if parts_worded[0] is None else parts_worded[0]
            for gap, part, one in zip(gaps, parts[1:], parts_worded[1:], strict=True):
                worded += gap + (part if one is None else one)
        if TIED in of:
            worded = TIES.sub(TIED, worded)
        return before + worded + after

    def phrase(self, of: str, depth: int = 0) -> str | None:
        """A sentence or a part of one; None if the catalogue has no words for it."""
        if (of, depth) not in self.phrases:
            self.phrases[of, depth] = self._phrase(of, depth)
        return self.phrases[of, depth]

    def _phrase(self, of: str, depth: int) -> str | None:
        if not WORD.search(of) or KEPT_WHOLE.fullmatch(of):
            return numbers(of)
        if (whole := MARKED.fullmatch(of)) is not None:
            words = whole[2].strip()
            inside = self.phrase(words, depth) if words else ""
            return (
                None if inside is None else f"{whole[1]}{whole[2].replace(words, inside) if words else whole[2]}{CLOSE}"
            )
        if (worded := self._entry(of, depth)) is not None:
            return worded
        if of in self.names or of[0].lower() + of[1:] in self.names:
            return of
        if of[0].isupper() and (worded := self._entry(of[0].lower() + of[1:], depth)) is not None:
            return worded[0].upper() + worded[1:]
        if of.endswith(".") and (worded := self.phrase(of[:-1], depth)) is not None:
            return f"{worded}."
        if of[0] in '(“"' and of[-1] in ')”"' and (worded := self.phrase(of[1:-1], depth)) is not None:
            return f"{of[0]}{worded}{of[-1]}".replace("“", "„").replace("”", "“")
        parts = [CONDITION.fullmatch(part) for part in of.split(" and ")]
        if ". " not in of and all(map(self._column, parts)):
            return self.name(of)
        worded = self._cut(of, depth) if depth < 4 else None
        return of if worded is None and self._part(of) else worded

    def _column(self, of: re.Match[str] | None) -> bool:
        """Whether a condition is about the score or a column of the data."""
        return of is not None and (of[1] == "the score" or of[1] in self.names)

    def _part(self, of: str) -> bool:
        """Whether a text is a line of a name, or a name that is cut."""
        start = of.removesuffix("…").rstrip(" +")
        if len(start) < LINE:
            return False
        return any(n.startswith(start) if "…" in of else f" {start} " in f" {n} " for n in self.names)

    def _entry(self, of: str, depth: int) -> str | None:
        if (worded := self.of.entry(of)) is not None:
            return worded
        if of[-1] != "." and (worded := self.of.entry(f"{of}.")) is not None:
            return worded.removesuffix(".")
        for pattern, match in self.of.candidates(of):
            values = []
            for kind, text in zip(pattern.holes, match.groups(), strict=True):
                one = number(text) if kind == "n" else self.hole(text, depth + 1)
                if one is None:
                    break
                values.append(one)
            else:
                return fill(pattern.worded, values)
        return None

    def hole(self, of: str, depth: int) -> str | None:
        """What fills a hole: a name, a number, a phrase, or several of them."""
        if depth > 6 or of != of.strip() or of.count(CLOSE) != len(MARKED.findall(of)) or ENDED.search(of):
            return None
        return self.phrase(of, depth)

    def _cut(self, of: str, depth: int) -> str | None:
        """Parts that an entry or a name says each; a name of a group, ``sex = m``, stays as it is."""
        if (name := NAMED.fullmatch(of)) and name[1] in self.names:
            return of
        parts = LISTED.split(of)
        if len(parts) > 1 and all(parts):
            worded = [self.phrase(p, depth + 1) for p in parts]
            if None not in worded:
                gaps = (JOINED.get(m[0], m[0]) for m in LISTED.finditer(of))
                return str(worded[0]) + "".join(gap + str(one) for gap, one in zip(gaps, worded[1:], strict=True))
        for cuts in (CUTS, LISTED):
            for m in cuts.finditer(of):
                if not of[: m.start()] or not of[m.end() :]:
                    continue
                first = self.phrase(of[: m.start()], depth + 1)
                if first is None:
                    continue
                rest = self.phrase(of[m.end() :], depth + 1)
                if rest is not None:
                    return first + JOINED.get(m[0], m[0]) + rest
        return None


JOINED = {" and ": " und ", ", and ": " und ", " or ": " oder ", ", or ": " oder "}
LINE = 3  # characters of a line of a name, at least
NAME = 100  # characters of a name of the data
UNREAD: dict[type, set[str]] = {
    doc.Command: {"text"},
    doc.Decision: {"command"},
    doc.Figure: {"name", "key"},
    doc.Document: {"name"},
}


OF_DATA = "label", "score", "positive", "by", "key", "cluster", "weights", "files", "classes", "covariates"


def names_of(record: AuditRecord) -> set[str]:
    """The words of the data that a report may repeat: columns, values, names of files, and what its caller gave."""
    data = record.data
    collected: set[str] = set()

    def add(of: object) -> None:
        if isinstance(of, str):
            collected.add(of)
        elif isinstance(of, dict):
            for k, v in of.items():
                add(k)
                add(v)
        elif isinstance(of, Iterable):
            for o in of:
                add(o)

    add(record.name)
    for key in OF_DATA:
        add(data.get(key))
    add(list(data.get("columns", {})))
    add(list(record.settings.get("about", {}).values()))
    add(record.settings.get("outcome") or ())
    add(record.curve("change").settings.get("name"))
    add([f"{package} {version}" for package, version in record.versions.items()])
    for finding in (*record.groups, *record.classes):
        add([list(v) for v in finding.variables])
    columns = (column for curve in record.curves.values() for column in curve.columns.values())
    add([v for column in columns for v in column if isinstance(v, str) and len(v) < NAME and not CONDITION.match(v)])
    return collected - {""}


def in_language(of: doc.Document, record: AuditRecord, language: str) -> doc.Document:
    """A report in another language; its end says how many sentences stayed English, if any did."""
    return of if checked(language) == ENGLISH else in_words(of, names_of(record), language)


T = TypeVar("T")


def in_words(of: T, names: Collection[str], language: str) -> T:
    """A document, or anything of one, in another language; `names` are words of the data, which stay as they are.

    The end of a document says how many sentences stayed English, if any did.
    """
    if checked(language) == ENGLISH:
        return of
    with_words = Translator(catalogue(language), names)
    if not isinstance(of, doc.Document):
        made: T = with_words.node(of)
        return made
    whole = replace(with_words.document(of), language=language)
    if left := _left(with_words):
        *sections, last = whole.sections
        nodes = (*last.nodes, doc.Paragraph(left, "quiet", doc.EVERYWHERE))
        whole = replace(whole, sections=(*sections, replace(last, nodes=nodes)))
    return whole  # type: ignore[return-value]


def worded(of: T, record: AuditRecord, language: str) -> tuple[T, Text]:
    """Nodes or sentences about a record in another language, and how many stayed English; empty where none did."""
    if checked(language) == ENGLISH:
        return of, ()
    with_words = Translator(catalogue(language), names_of(record))
    made: T = with_words.node(of)
    return made, _left(with_words)


def _left(of: Translator) -> Text:
    """How many sentences stayed English; empty where none did."""
    if not of.missing:
        return ()
    return say(of.string(f"{len(of.missing)} sentences of this report are in English."))
