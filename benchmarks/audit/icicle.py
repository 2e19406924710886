"""Stacks that were sampled, as a picture: callers above, what they call below, as wide as the time is long."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

WIDTH, BAR, LETTER = 1200, 18, 6.0  # of the picture, a row, and a letter
LEAST = 0.004  # share of the time under which nothing is drawn
LIBRARY, IMPORTS = "#d9d9d9", "Python and imports"
COLOURS = {
    "audit": "#9ecae1",
    "repair": "#fdd0a2",
    "search": "#a1d99b",
    "detect": "#a1d99b",
    "diagnose": "#c7e9c0",
    "certify": "#bcbddc",
    "stats": "#fdae6b",
    "kernels": "#fc9272",
    "data": "#c6dbef",
    "report": "#dadaeb",
}
FRAME = re.compile(r"(.*) \((.*?)(?::\d+)?\)$")


@dataclass
class Frame:
    """A function and how often it was seen, with what it called."""

    seen: int = 0
    calls: dict[str, Frame] = field(default_factory=dict)


def short(frame: str) -> str:
    """Return a frame as `folder/file.py function` of calibrant, or as the name of the library."""
    found = FRAME.match(frame)
    function, file = found.groups() if found else (frame, "")
    if "/calibrant/" in file:
        return f"{file.rpartition('/calibrant/')[2]} {function}"
    library = file.rpartition("/site-packages/")[2].split("/")[0] if "/site-packages/" in file else ""
    return library.removesuffix(".py") or "Python"


def tree(lines: Iterable[str]) -> Frame:
    """Return the sum of stacks `caller;called count`, what libraries do in a row as one, called after the first.

    What stands above calibrant's first function is left out: how Python was started. What an import does is one bar.
    """
    top = Frame()
    for line in lines:
        stack, _, count = line.rpartition(" ")
        names = [short(frame) for frame in stack.split(";")]
        ours = next((i for i, name in enumerate(names) if ".py " in name), len(names))
        loads = next((i for i, name in enumerate(names) if i >= ours and name.endswith(" <module>")), len(names))
        names = names[ours:loads] + [IMPORTS] * (loads < len(names) or ours == len(names))
        at = top
        at.seen += int(count)
        for k, name in enumerate(names):
            if k and (name == names[k - 1] or not (".py " in name or ".py " in names[k - 1])):
                continue
            at = at.calls.setdefault(name, Frame())
            at.seen += int(count)
    return top


def bars(calls: Mapping[str, Frame], left: float, depth: int, scale: float) -> Iterator[tuple[str, Frame, float, int]]:
    """Give each function that is wide enough with its place, callers before what they call, the longest first."""
    for name, frame in sorted(calls.items(), key=lambda item: -item[1].seen):
        if frame.seen * scale >= LEAST * WIDTH:
            yield name, frame, left, depth
            yield from bars(frame.calls, left, depth + 1, scale)
        left += frame.seen * scale


def picture(lines: Iterable[str], title: str) -> str:
    """Return the SVG of stacks; a bar's full name and share are shown where the pointer rests."""
    top = tree(lines)
    scale = WIDTH / max(top.seen, 1)
    out, deepest = [], 0
    for name, frame, left, depth in bars(top.calls, 0.0, 0, scale):
        deepest, width, y = max(deepest, depth), frame.seen * scale, 30 + depth * BAR
        colour = COLOURS.get(name.split("/")[0], "#e7e7c9") if ".py " in name else LIBRARY
        fits = int((width - 6) / LETTER)
        label = name if len(name) <= fits else name.rpartition(" ")[2]
        label = label if len(label) <= fits else f"{label[: fits - 1]}…" if fits > 4 else ""
        out.append(
            f'<g><title>{escape(name)}: {100 * frame.seen / top.seen:.1f} %</title><rect x="{left:.1f}" y="{y}" '
            f'width="{max(width - 0.5, 0.5):.1f}" height="{BAR - 1}" fill="{colour}"/>'
            + (f'<text x="{left + 3:.1f}" y="{y + 13}">{escape(label)}</text>' if label else "")
            + "</g>"
        )
    height = 40 + (deepest + 1) * BAR
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" '
        f'font-size="11"><rect width="{WIDTH}" height="{height}" fill="#fff"/><text x="4" y="18" font-size="13" '
        f'font-weight="bold">{escape(title)}</text>{"".join(out)}</svg>\n'
    )


def drawn(stacks: Path, title: str, to: Path) -> None:
    """Draw the stacks of a file that `py-spy record --format raw` wrote."""
    to.write_text(picture(stacks.read_text(encoding="utf-8").splitlines(), title), encoding="utf-8")
