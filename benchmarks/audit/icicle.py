"""Stacks that py-spy sampled: time by function, and as a picture, callers above what they call."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from html import escape

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


def summed(lines: Iterable[str]) -> Frame:
    """Return the sum of stacks `caller;called count`, as `py-spy record --format raw` writes them.

    What libraries do in a row is one bar, called after the first, and so is what an import does. What stands above
    calibrant's first function is left out: how Python was started.
    """
    top = Frame()
    for line in lines:
        stack, _, count = line.rpartition(" ")
        names = [short(frame) for frame in stack.split(";")]
        first = next((i for i, name in enumerate(names) if ours(name)), len(names))
        loads = next((i for i, name in enumerate(names) if i >= first and name.endswith(" <module>")), len(names))
        names = names[first:loads] + [IMPORTS] * (loads < len(names) or first == len(names))
        at = top
        at.seen += int(count)
        for k, name in enumerate(names):
            if k and (name == names[k - 1] or not (ours(name) or ours(names[k - 1]) or name == IMPORTS)):
                continue
            at = at.calls.setdefault(name, Frame())
            at.seen += int(count)
    return top


def ours(name: str) -> bool:
    """Tell whether a bar is a function of calibrant."""
    return ".py " in name


def own(at: Frame, name: str = IMPORTS) -> Iterator[tuple[str, int]]:
    """Give functions of calibrant with the time that is theirs, what they have libraries do included."""
    yield name, at.seen - sum(frame.seen for frame in at.calls.values())
    for called, frame in at.calls.items():
        yield from own(frame, called if ours(called) or called == IMPORTS else name)


def bars(calls: Mapping[str, Frame], left: float, depth: int, scale: float) -> Iterator[tuple[str, Frame, float, int]]:
    """Give each function that is wide enough with its place, callers before what they call, the longest first."""
    for name, frame in sorted(calls.items(), key=lambda item: -item[1].seen):
        if frame.seen * scale >= LEAST * WIDTH:
            yield name, frame, left, depth
            yield from bars(frame.calls, left, depth + 1, scale)
        left += frame.seen * scale


def picture(top: Frame, title: str) -> str:
    """Return the SVG of stacks; a bar's full name and share are shown where the pointer rests."""
    scale = WIDTH / max(top.seen, 1)
    out, deepest = [], 0
    for name, frame, left, depth in bars(top.calls, 0.0, 0, scale):
        deepest, width, y = max(deepest, depth), frame.seen * scale, 30 + depth * BAR
        colour = COLOURS.get(name.split("/")[0], "#e7e7c9") if ours(name) else LIBRARY
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
