"""Data, parsed once: rows (`predictions`), or a mergeable summary of any number of rows (`sketch`, fixed by a `spec`).

`sources` says where rows come from, `survey` looks at them first, `engines` sum them up; `read` is the way in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from calibrant.lazy_module import lacking

if TYPE_CHECKING:
    from collections.abc import Callable

    from calibrant.data.predictions import Predictions


def __getattr__(name: str) -> Callable[[], Predictions]:
    if name != "load_employment":
        raise lacking(__name__, name, ())
    from calibrant.data.read import load_employment  # which loads the libraries that read files

    return load_employment
