"""Statistics that a method of an application may share with ours."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from calibrant.lazy_module import LazyModule

if TYPE_CHECKING:
    from calibrant.detect.classical import covered as covered
    from calibrant.kernels.runtime import one_thread as one_thread
    from calibrant.stats.classical import posterior_tails as posterior_tails
    from calibrant.stats.measures import ranking as ranking
    from calibrant.views.kinds import refuse_rows as refuse_rows

_WHERE = {
    "covered": "calibrant.detect.classical",
    "one_thread": "calibrant.kernels.runtime",
    "posterior_tails": "calibrant.stats.classical",
    "ranking": "calibrant.stats.measures",
    "refuse_rows": "calibrant.views.kinds",
}
__all__ = sorted(_WHERE)
sys.modules[__name__].__class__ = LazyModule
