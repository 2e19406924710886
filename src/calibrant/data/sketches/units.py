"""The rows of whole units: the one way in for whatever is about rows that belong together, or count more."""

from __future__ import annotations

from calibrant.data.predictions import Predictions
from calibrant.data.sketches.sketch import Sketch
from calibrant.errors import NotComputable


def rows_of_units(data: Predictions | Sketch) -> Predictions:
    """Return rows with `cluster` and `weights` as they are known: all rows, or those of the units that a sketch holds.

    Units of a sketch are named by hash; which it holds, their hashes alone decide, so that outcomes play no part.

    Raises
    ------
    NotComputable
        The sketch knows neither units nor weights, or its first unit is larger than it has room for.
    """
    if isinstance(data, Predictions):
        return data
    if not data.checked().by_units:
        raise NotComputable("the sketch was made without cluster= and weights=: its rows are independent and alike")
    return data.rows()


def which_units(data: Predictions | Sketch) -> str:
    """Return whose rows `rows_of_units` returns, in words; empty where they are all."""
    if isinstance(data, Predictions) or not data.by_units or not data.parts["sample"].cut:
        return ""
    held, noun = data.parts["sample"], f"units ({data.spec.cluster})" if data.spec.cluster else "rows"
    return f"the rows of {held.units:,} of about {held.of_units:,} {noun}, chosen without looking at outcomes"
