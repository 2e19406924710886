"""The bundled data, for examples and tests."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from calibrant.lazy_module import LazyModule

if TYPE_CHECKING:
    from calibrant.data.read import load_employment as load_employment

_WHERE = {"load_employment": "calibrant.data.read"}
__all__ = list(_WHERE)
sys.modules[__name__].__class__ = LazyModule
