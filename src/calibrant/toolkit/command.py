"""Commands, for applications: the options that several commands share, and the data that they name."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from calibrant.lazy_module import LazyModule, where

if TYPE_CHECKING:
    from calibrant.cli import options as options
    from calibrant.cli.commands import inputs_of as inputs_of
    from calibrant.cli.commands import reading as reading
    from calibrant.cli.commands import source as source
    from calibrant.cli.methods import run_method as run_method
    from calibrant.cli.options import CHECK_STATUS as CHECK_STATUS
    from calibrant.cli.options import names as names
    from calibrant.cli.parser import APPLY_STATUS as APPLY_STATUS
    from calibrant.cli.parser import CHECK as CHECK
    from calibrant.cli.parser import asking as asking
    from calibrant.cli.progress import Progress as Progress
    from calibrant.cli.standard_output import print_result as print_result

_WHERE = where(
    {
        "calibrant.cli.commands": "inputs_of reading source",
        "calibrant.cli.methods": "run_method",
        "calibrant.cli.options": "CHECK_STATUS names",
        "calibrant.cli.options:": "options",
        "calibrant.cli.parser": "APPLY_STATUS CHECK asking",
        "calibrant.cli.progress": "Progress",
        "calibrant.cli.standard_output": "print_result",
    }
)
__all__ = sorted(_WHERE)
sys.modules[__name__].__class__ = LazyModule
