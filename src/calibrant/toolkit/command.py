"""Commands, for applications: the options that several commands share, and the data that they name."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from calibrant.lazy_module import LazyModule

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

_WHERE = {
    "APPLY_STATUS": "calibrant.cli.parser",
    "CHECK": "calibrant.cli.parser",
    "CHECK_STATUS": "calibrant.cli.options",
    "Progress": "calibrant.cli.progress",
    "asking": "calibrant.cli.parser",
    "inputs_of": "calibrant.cli.commands",
    "names": "calibrant.cli.options",
    "options": "calibrant.cli.options:",
    "print_result": "calibrant.cli.standard_output",
    "reading": "calibrant.cli.commands",
    "run_method": "calibrant.cli.methods",
    "source": "calibrant.cli.commands",
}
__all__ = sorted(_WHERE)
sys.modules[__name__].__class__ = LazyModule
