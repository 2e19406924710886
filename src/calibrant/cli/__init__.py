"""The `calibrant` command: `parser` says what it takes, `commands` and `repairing` do it, `run` says how it went."""

from calibrant.cli.parser import build_parser
from calibrant.cli.run import main

__all__ = ["build_parser", "main"]
