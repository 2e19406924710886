"""Data, parsed once: rows (`predictions`), or a mergeable summary of any number of rows (`sketch`, fixed by a `spec`).

`sources` says where rows come from, `survey` looks at them first, `engines` sum them up; `read` is the way in.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from calibrant.lazy_module import lacking

if TYPE_CHECKING:
    from collections.abc import Callable

    from calibrant.data.predictions import Predictions

EMPLOYMENT = {"label": "employed", "score": "predicted_probability"}
EMPLOYMENT_BY = ("year", "age", "sex", "race", "schooling", "marital", "disability", "citizenship", "nativity")


def __getattr__(name: str) -> Callable[[], Predictions]:
    if name != "load_employment":
        raise lacking(__name__, name, ())
    from calibrant.data.read import load_employment  # which loads the libraries that read files

    return load_employment


def employment_path() -> Path:
    """The path of the bundled Parquet file: 277,677 Massachusetts residents, 2015 to 2018.

    A classifier trained on earlier years of the American Community Survey predicts who is employed; see NOTICE.
    """
    return Path(__file__).with_name("employment_ma.parquet")
