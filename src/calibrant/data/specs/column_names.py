"""What a column's name says of its values: clusters that rows belong to, codes that are names and no quantities."""

from __future__ import annotations

import re
from typing import Literal

AT_MOST = "at most {}"  # what a cut of ordered classes is called
CLUSTERS = {"patient", "person", "household", "customer", "client", "user", "subject", "account", "family", "member"}
CLUSTERS |= {"site", "hospital", "clinic", "school", "center", "centre", "doctor", "provider", "company", "store"}
CLUSTERS |= {"author", "question"}
OWN = {"id", "ids", "mrn"}
NUMBERS = {"no", "nr", "number", "key", "code", "uuid", "guid", "hash", "index"}
QUANTITIES = {"age", "ages", "year", "years", "month", "months", "week", "weeks", "day", "days", "hour", "hours"}
QUANTITIES |= {"date", "quarter", "grade", "count", "n", "per", "size", "total"}  # `n_user`, `month_id`
CODES = OWN | (NUMBERS - {"index"}) | {"nummer", "zip", "zipcode", "postcode", "plz", "fips", "icd", "drg", "npi"}
PLACES = {"state", "county", "district", "province", "region", "country", "department", "ward", "branch"}
FIRST = {"id", "code", "zip", "icd"}  # `id_hospital`, `code_postal`
COUNTING = {"n", "num", "no", "nr", "number", "count"}  # of `number_of_visits`, `num_patient`: first, they count
ABOUT = {"of", "in", "to", "from", "since", "until", "at", "near", "time", "times", "duration", "length", "distance"}
ABOUT |= {"amount", "cost", "costs", "price", "rate", "beds", "visits", "days", "score"}  # `time_in_hospital`
WEIGHTS = {"weight", "weights", "wt", "wgt"}
OF_ROWS = {"pweight", "pweights", "fweight", "pwgt", "pwgtp", "ipw", "iptw"}
DESIGN = {"survey", "sample", "sampling", "design", "p", "probability", "inverse", "propensity", "person", "household"}
PERCENT = {"percent", "percentage", "perc", "pct", "prozent"}
POINTS = 90.0  # below which all whole numbers may be points, ranks or deciles, and no percent
FEWEST = 20  # clusters, under which nothing by clusters could be certified


def pieces(name: str) -> list[str]:
    """The words of a name: `readmittedWithin30_days` is readmitted, within, 30, days."""
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=\D)(?=\d)|(?<=\d)(?=\D)", " ", name)
    return [w for w in re.split(r"[\W_]+", spaced.lower()) if w]


def names_cluster(name: str) -> bool:
    """Whether a column's name is that of a cluster, or of its number: `patient`, `user_id`, `person no`.

    Not one that is about a cluster, such as `patient_age` or `age_of_patient`, nor the number of a month.
    """
    words = pieces(name) or [""]
    if about_cluster(name):
        return False
    return words[-1] in CLUSTERS | OWN or words[0] in OWN or (words[-1] in NUMBERS and not CLUSTERS.isdisjoint(words))


def names_code(name: str) -> bool:
    """Whether a column's name says that whole numbers in it are names: `hospital_id`, `zip`, `icd9`, `ward`.

    Not one of a quantity or a time, such as `number_of_visits`, `n_hospital`, `time_in_hospital`, `age` or `year_no`,
    nor an index of something, such as `comorbidity_index`.
    """
    words = pieces(name)
    while len(words) > 1 and words[-1].isdigit():
        words.pop()
    if not words or about_cluster(name) or (len(words) > 1 and words[0] in COUNTING):
        return False
    glued = (words[-1].removeprefix(c) for c in CLUSTERS | PLACES if words[-1].startswith(c))  # `patientid`, `sitecode`
    if words[-1] in CODES or words[0] in FIRST or words[1:][-1:] == ["num"] or not CODES.isdisjoint(glued):
        return True
    return (words[-1] in CLUSTERS | PLACES or names_cluster(name)) and ABOUT.isdisjoint(words)


def about_cluster(name: str) -> bool:
    """Whether a name is of a quantity or a time, whatever else it names: `age_of_patient`, `month_id`."""
    return not QUANTITIES.isdisjoint(pieces(name))


def names_weights(name: str) -> Literal["design", "any", ""]:
    """Whether a name is of weights of rows: of a design (`survey_weight`, `ipw`), or any (`weight`, a body's?).

    Not one of what else weighs, such as `birth_weight` or `weight_kg`.
    """
    words = {*pieces(name)}
    if words & OF_ROWS or (words & WEIGHTS and words & DESIGN):
        return "design"
    return "any" if words and words <= WEIGHTS else ""


def names_percent(name: str) -> bool:
    """Whether a name says that its numbers are percent: `risk (%)`, `pct_risk`."""
    return "%" in name or not PERCENT.isdisjoint(pieces(name))


# ---- where the confidence of a language model comes from: the name of its column tells it for good ----


STATED, TOKENS, JUDGE, SAMPLED = "stated", "token_probability", "judge", "sampled"
PROVENANCES = STATED, TOKENS, JUDGE, SAMPLED
CONFIDENCE = "confidence"


def column_of(provenance: str, more: str = "") -> str:
    """The name of the column that a confidence becomes; `more` distinguishes two of one provenance."""
    return "_".join(word for word in (CONFIDENCE, provenance, more) if word)


def of_column(name: str) -> str:
    """What the name of a column says of where a confidence comes from; nothing where it says nothing."""
    return next((p for p in PROVENANCES if name == column_of(p) or name.startswith(f"{column_of(p)}_")), "")
