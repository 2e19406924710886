"""Whether a column, by its name or by how its values are written, may say which rows belong together."""

from __future__ import annotations

import re
from collections.abc import Sequence

UNITS = {"patient", "person", "household", "customer", "client", "user", "subject", "account", "family", "member"}
UNITS |= {"site", "hospital", "clinic", "school", "center", "centre", "doctor", "provider", "company", "store"}
UNITS |= {"author", "question"}
OWN = {"id", "ids", "mrn"}
NUMBERS = {"no", "nr", "number", "key", "code", "uuid", "guid", "hash", "index"}
QUANTITIES = {"age", "ages", "year", "years", "month", "months", "week", "weeks", "day", "days", "hour", "hours"}
QUANTITIES |= {"date", "quarter", "grade", "count", "n", "per", "size", "total"}  # `n_user`, `month_id`
COUNTED = re.compile(r"([^\W\d]+[\W_]*)[0-9]+")  # a value such as "P0012"
FEWEST = 20  # units, under which nothing by units could be certified


def pieces(name: str) -> list[str]:
    """Return the words of a name: `readmittedWithin30_days` is readmitted, within, 30, days."""
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=\D)(?=\d)|(?<=\d)(?=\D)", " ", name)
    return [w for w in re.split(r"[\W_]+", spaced.lower()) if w]


def names_unit(name: str) -> bool:
    """Tell whether a column's name is that of a unit, or of its number: `patient`, `user_id`, `person no`.

    Not one that is about a unit, such as `patient_age` or `age_of_patient`, nor the number of a month.
    """
    words = pieces(name) or [""]
    if about_unit(name):
        return False
    return words[-1] in UNITS | OWN or words[0] in OWN or (words[-1] in NUMBERS and not UNITS.isdisjoint(words))


def about_unit(name: str) -> bool:
    """Tell whether a name is of a quantity or a time, whatever else it names: `age_of_patient`, `month_id`."""
    return not QUANTITIES.isdisjoint(pieces(name))


def numbered(values: Sequence[str]) -> bool:
    """Tell whether values are one word with a number each, such as P0012: names dealt out, not kinds of something."""
    starts = {m[1] if (m := COUNTED.fullmatch(value)) else "" for value in values}
    return len(values) >= FEWEST and len(starts) == 1 and starts != {""}
