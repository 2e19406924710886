"""Runs the command: parse, do it, and say by exit status how it went."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module

from calibrant.cli.parser import build_parser
from calibrant.errors import BadInput, NotComputable

BAD, UNEXPECTED, STOPPED = 2, 70, 130
ELSEWHERE = {"repair": "repairing", "apply": "repairing"}  # the other commands are in `commands`


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="replace")
    try:
        a = build_parser().parse_args(argv)
        module = import_module(f"calibrant.cli.{ELSEWHERE.get(a.command, 'commands')}")
        return int(getattr(module, a.command)(a))
    except SystemExit as e:
        return int(e.code or 0)
    except (BadInput, NotComputable) as e:
        print(f"calibrant: {e}", file=sys.stderr)
        return BAD
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        print("calibrant: stopped", file=sys.stderr)
        return STOPPED
    except Exception as e:
        if os.environ.get("CALIBRANT_TRACEBACK"):
            raise
        print(
            f"calibrant: unexpected {type(e).__name__}: {e} (set CALIBRANT_TRACEBACK=1 to see where)", file=sys.stderr
        )
        return UNEXPECTED
