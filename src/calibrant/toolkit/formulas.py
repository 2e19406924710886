"""Formulas of calibrators, for an application that writes them in another language."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from calibrant.lazy_module import LazyModule

if TYPE_CHECKING:
    from calibrant.data.specs.coding import Coding as Coding
    from calibrant.repair.formulas.expression import Among as Among
    from calibrant.repair.formulas.expression import Chosen as Chosen
    from calibrant.repair.formulas.expression import Formula as Formula
    from calibrant.repair.formulas.expression import Term as Term
    from calibrant.repair.formulas.expression import Writer as Writer

_WHERE = {
    "Among": "calibrant.repair.formulas.expression",
    "Chosen": "calibrant.repair.formulas.expression",
    "Coding": "calibrant.data.specs.coding",
    "Formula": "calibrant.repair.formulas.expression",
    "Term": "calibrant.repair.formulas.expression",
    "Writer": "calibrant.repair.formulas.expression",
}
__all__ = sorted(_WHERE)
sys.modules[__name__].__class__ = LazyModule
