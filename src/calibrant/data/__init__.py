"""Data, parsed once: rows (`predictions`), or a mergeable summary of any number of rows (`sketch`, fixed by a `spec`).

`sources` says where rows come from, `survey` looks at them first, `engines` sum them up; `read` is the way in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from calibrant.lazy_module import lacking

if TYPE_CHECKING:
    from calibrant.data.read import EMPLOYMENT as EMPLOYMENT
    from calibrant.data.read import EMPLOYMENT_BY as EMPLOYMENT_BY
    from calibrant.data.read import employment_path as employment_path
    from calibrant.data.read import load_employment as load_employment

_BUNDLED = ("EMPLOYMENT", "EMPLOYMENT_BY", "employment_path", "load_employment")


def __getattr__(name: str) -> object:
    if name not in _BUNDLED:
        raise lacking(__name__, name, ())
    import calibrant.data.read as read  # which loads the libraries that read files

    return getattr(read, name)
