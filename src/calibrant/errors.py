"""The two ways calibrant says no, and the one way it warns."""

from __future__ import annotations

from calibrant.sanitize import as_message


class BadInput(ValueError):
    """The data or a setting cannot be used as given.

    The message is one line: it names the column or setting, the offending value or count, and the fix.
    What of it was given, be it the name of a file or of a level, can neither break the line nor steer a terminal.
    """

    def __init__(self, message: str = "", argument: str = "") -> None:
        super().__init__(as_message(message))
        self.argument = argument  # with which the message begins: a command line calls it by its option


def first_line(error: BaseException, most: int = 160) -> str:
    """The first line of what a library says went wrong, or the kind of error where it says nothing."""
    return next((line[:most] for line in str(error).splitlines() if line.strip()), type(error).__name__)


class NotComputable(RuntimeError):
    """The quantity asked for does not exist for this data, or no proof covers it.

    An audit reports it as "not applicable", which is not a pass.

    Parameters
    ----------
    reason : str
        One line for a reader: why not, and what would make it computable.
    """

    def __init__(self, reason: str) -> None:
        self.reason = as_message(reason)
        super().__init__(self.reason)


class EngineFailed(RuntimeError):
    """A cluster did not finish: no result was made, and nothing of what was read is kept."""


class CalibrantWarning(UserWarning):
    """Something the reader of a result should know, though the result stands."""

    def __init__(self, message: str = "") -> None:
        super().__init__(as_message(message))
