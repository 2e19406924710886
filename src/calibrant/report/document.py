"""The report as a document: one tree of headings, paragraphs, lists, tables and figures, written in three ways.

A node says by `where` which of the three ways of writing show it; none of them builds anything of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias, TypeVar

from calibrant.report.spans import Text, say

Way: TypeAlias = Literal["page", "markdown", "terminal"]
Where: TypeAlias = frozenset[Way]
PAGE: Where = frozenset({"page"})
MARKDOWN: Where = frozenset({"markdown"})
TERMINAL: Where = frozenset({"terminal"})
WHOLE: Where = PAGE | MARKDOWN  # the two that are written in full
NOWHERE: Where = frozenset()
EVERYWHERE: Where = WHOLE | TERMINAL  # the terminal shows a summary: what is marked for it


@dataclass(frozen=True, slots=True)
class Opening:
    """The headline: the decision in a sentence."""

    headline: str
    where: Where = EVERYWHERE


@dataclass(frozen=True, slots=True)
class Heading:
    text: str
    level: Literal[2, 3] = 2
    where: Where = WHOLE


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A sentence or several; `style` is how loud they are."""

    text: Text
    style: Literal["", "answer", "note", "quiet", "panel"] = ""
    where: Where = WHOLE


@dataclass(frozen=True, slots=True)
class Items:
    items: tuple[Text, ...]
    where: Where = WHOLE


@dataclass(frozen=True, slots=True)
class Entry:
    """A term, and what is said of it."""

    term: str
    text: Text
    where: Where = WHOLE


@dataclass(frozen=True, slots=True)
class Entries:
    entries: tuple[Entry, ...]
    where: Where = WHOLE


@dataclass(frozen=True, slots=True)
class Command:
    """What is typed into a shell or into Python, or kept in a file that a command names."""

    text: str
    where: Where = WHOLE
    language: str = ""  # of a file; a command and Python show what they are


@dataclass(frozen=True, slots=True)
class Link:
    """One line of the contents: where it leads, its words, and the verdict that marks it."""

    id: str
    nav: str
    verdict: str = ""


@dataclass(frozen=True, slots=True)
class Contents:
    """The table of contents, where the page has no room for it at its side."""

    links: tuple[Link, ...]
    where: Where = PAGE


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table; numbers are ``"r"``, pictures ``"c"`` or ``"sp"``, which set the head as well."""

    head: Text
    style: str = ""  # classes of its cells on the page
    brief: str = ""  # its head in Markdown, where that is another
    where: Where = WHOLE


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of a table."""

    text: Text = ()
    sort: str = ""  # what the table is sorted by where its text does not say it: a picture, a verdict, "over 2 million"
    picture: str = ""  # SVG, drawn in place of the text on the page
    icon: str = ""  # the status whose icon goes before the text
    style: str = ""  # classes on the page, after those of the column
    brief: Text = ()  # what Markdown says, where that is other words


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a table; its first cell is its head."""

    cells: tuple[Cell, ...]
    id: str = ""
    style: str = ""
    where: Where = WHOLE


@dataclass(frozen=True, slots=True)
class Table:
    """A table; with `folded`, the page's script shows so many rows and opens the rest on demand."""

    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    caption: str = ""
    style: str = "cards"
    id: str = ""
    folded: int = 0
    where: Where = WHOLE


def row(*cells: str | Text | Cell, style: str = "", where: Where = WHOLE) -> Row:
    """A row of cells; words by themselves are the text of one."""
    made = (c if isinstance(c, Cell) else Cell(say(c) if isinstance(c, str) else c) for c in cells)
    return Row(tuple(made), "", style, where)


def number_table(
    caption: str, heads: Sequence[str | Column], rows: Iterable[Sequence[str | Text | Cell]], style: str = "nums"
) -> Table:
    """A table of numbers, each row under its first cell."""
    columns = (h if isinstance(h, Column) else Column(say(h), "r" if i else "") for i, h in enumerate(heads))
    return Table(tuple(columns), tuple(row(*cells) for cells in rows), caption, style)


@dataclass(frozen=True, slots=True)
class Line:
    """One population of a forest plot: its rows, its estimate, what is guaranteed, its state, and a picture."""

    who: str
    rows: str
    of: str  # the same with how many events, where that may be shown, or that it is a subgroup
    estimate: str
    guaranteed: str
    status: str
    word: str
    picture: str
    href: str = ""  # where its name leads; empty for nowhere


@dataclass(frozen=True, slots=True)
class Forest:
    """Estimates, guaranteed ranges and states on one axis; `folded` are opened on demand."""

    label: str  # what it shows, for those who do not see it
    heading: str  # of its estimates, where it is a table
    lines: tuple[Line, ...]
    folded: tuple[Line, ...]
    left: int  # groups that are in the table of groups alone
    # SVG: the words over the plot, and the numbers of its axis.
    head: str
    foot: str
    where: Where = EVERYWHERE

    @property
    def rest(self) -> str:
        """Which are not here; empty where all are."""
        if not self.left:
            return ""
        return f"{self.left:,} more {'group is' if self.left == 1 else 'groups are'} in the table of groups."


@dataclass(frozen=True, slots=True)
class Signing:
    """What somebody signs: terms with what is known of them, and what is left to fill in."""

    entries: tuple[Entry, ...]
    blank: tuple[str, ...]
    where: Where = EVERYWHERE


@dataclass(frozen=True, slots=True)
class Part:
    """One part of the verdict: of whom, its status and word, and its sentences."""

    who: str
    status: str
    word: str
    text: Text


@dataclass(frozen=True, slots=True)
class Parts:
    parts: tuple[Part, ...]
    where: Where = EVERYWHERE


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do: one action, and the command that does it; empty where none can."""

    text: Text
    command: str
    where: Where = EVERYWHERE


@dataclass(frozen=True, slots=True)
class Columns:
    text: Text
    picture: str
    where: Where = PAGE


@dataclass(frozen=True, slots=True)
class Panel:
    """One picture of a figure, with its titles, the name of its axis, and a note."""

    title: str
    picture: str
    small: str = ""
    axis: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Readout:
    """The slider under a figure: what it says at each row of the figure's first table of numbers."""

    label: str
    low: str
    high: str
    start: str
    form: str  # its sentence: ``{0}`` is the first cell of a row, ``{side}`` what the range of its fifth shows
    sides: tuple[str, ...] = ()  # in words: too low there, too high, unclear


@dataclass(frozen=True, slots=True)
class Figure:
    """Pictures with their key, what they show in words, and their numbers; on the page only."""

    panels: tuple[Panel, ...]
    key: tuple[tuple[str, str], ...]  # the glyph and the words of each line
    caption: Text
    id: str = ""
    name: str = ""  # joins it to its readout
    style: str = ""
    title: str = ""  # its finding
    readout: Readout | None = None
    table: Table | None = None  # under the pictures, or in place of them
    numbers: tuple[Table, ...] = ()  # opened on demand
    where: Where = PAGE


@dataclass(frozen=True, slots=True)
class Details:
    """What the page shows on demand; elsewhere it is simply there."""

    summary: str  # what is always seen
    nodes: tuple[Node, ...]
    id: str = ""
    name: str = ""  # a heading before the summary, such as a variable
    level: Literal[3, 4] = 3
    opened: bool = False
    where: Where = WHOLE


Node: TypeAlias = (
    Opening
    | Heading
    | Paragraph
    | Items
    | Entries
    | Command
    | Contents
    | Table
    | Forest
    | Signing
    | Parts
    | Decision
    | Columns
    | Figure
    | Details
)


@dataclass(frozen=True, slots=True)
class Section:
    """One section: its words in the contents, its heading, the verdict that marks it, and its nodes.

    With `closed`, words that say what is in it, the page opens it on demand.
    """

    id: str
    nav: str
    heading: str
    nodes: tuple[Node, ...]
    verdict: str = ""
    closed: str = ""
    where: Where = EVERYWHERE


@dataclass(frozen=True, slots=True)
class Document:
    """A whole report: what every way of writing puts at its top, and the sections in order."""

    name: str
    title: str
    facts: tuple[Paragraph, ...]
    sections: tuple[Section, ...]
    language: str = "en"


class Shown(Protocol):
    """What says where it is shown."""

    @property
    def where(self) -> Where:
        """The ways of writing that show it."""


Kind = TypeVar("Kind", bound=Shown)


def seen(nodes: Iterable[Kind], where: Way) -> tuple[Kind, ...]:
    """The nodes, rows or columns that one way of writing shows."""
    return tuple(n for n in nodes if where in n.where)
