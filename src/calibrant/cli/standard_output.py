"""What a command prints: lines for a reader, shown as a terminal may show them, and what programs read, as it is."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from itertools import pairwise

from calibrant.errors import BadInput
from calibrant.sanitize import sanitize

LINES = "\n\t"  # what text of several lines keeps


class StandardOutput(io.StringIO):
    """Standard output until the command is done."""

    def __init__(self) -> None:
        super().__init__()
        self._ends: list[int] = []  # where text for programs begins and ends

    def write_exact(self, text: str) -> None:
        """Take text that nothing may rewrite."""
        start = self.seek(0, io.SEEK_END)
        self._ends += [start, start + self.write(text)]

    def shown(self, terminal: bool) -> str:
        """Everything; refuse to send a terminal text for programs that would steer it."""
        text = self.getvalue()
        pieces = [text[a:b] for a, b in pairwise([0, *self._ends, len(text)])]
        for k, piece in enumerate(pieces):
            displayed = sanitize(piece, keep=LINES)
            if k % 2 == 0:
                pieces[k] = displayed
            elif terminal and displayed != piece:
                hidden = next(code for c in piece if (code := sanitize(c, keep=LINES)) != c)
                raise BadInput(
                    f"what is printed holds {hidden}, which a terminal would obey or hide: "
                    "send it to a file, such as with > FILE"
                )
        return "".join(pieces)


def write_exact(text: str) -> None:
    """Print what programs read: SQL, JSON, a page."""
    out = sys.stdout
    (out.write_exact if isinstance(out, StandardOutput) else out.write)(text)


def print_result(as_json: bool, content: Callable[[], object], lines: Callable[[], str]) -> None:
    """Print a result as JSON for programs, or as lines for a reader; `content` may be JSON already, as text."""
    if as_json:
        whole = content()
        text = whole if isinstance(whole, str) else json.dumps(whole, sort_keys=True, indent=1)
        write_exact(text.rstrip("\n") + "\n")
    else:
        print(lines())
