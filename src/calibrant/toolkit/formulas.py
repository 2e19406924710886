"""Formulas of calibrators, for an application that writes them in another language."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from calibrant.lazy_module import LazyModule, where

if TYPE_CHECKING:
    from calibrant.data.specs.coding import Coding as Coding
    from calibrant.repair.formulas.expression import Among as Among
    from calibrant.repair.formulas.expression import Chosen as Chosen
    from calibrant.repair.formulas.expression import Formula as Formula
    from calibrant.repair.formulas.expression import Term as Term
    from calibrant.repair.formulas.expression import Writer as Writer

_WHERE = where(
    {
        "calibrant.data.specs.coding": "Coding",
        "calibrant.repair.formulas.expression": "Among Chosen Formula Term Writer",
    }
)
__all__ = sorted(_WHERE)
sys.modules[__name__].__class__ = LazyModule
