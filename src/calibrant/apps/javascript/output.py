"""JavaScript as an output of a calibrator: ``-o javascript:FILE``, and `to_javascript` of a map."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING, Literal

from calibrant.plugins import Output

if TYPE_CHECKING:
    from calibrant.repair import Calibrator


class JavaScript(Output):
    """A calibrator as a JavaScript function."""

    line, metavar = "the calibrator as a JavaScript function", "OUT.js"
    of: Literal["record", "calibrator"] = "calibrator"

    def content(self, thing: Calibrator, target: str, inputs: Namespace) -> str:
        """The function, called as `target` says."""
        from calibrant.apps.javascript.script import Script
        from calibrant.toolkit.formulas import Formula

        row = Formula(thing.codings)
        results = thing.formulas(row)
        return Script(row, thing.classes).function(results, target, 100.0 if thing.percent else 1.0)


JAVASCRIPT = JavaScript()
