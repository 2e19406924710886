"""Where a confidence comes from: told by the name of its field in a log, then by the name of its column for good."""

from __future__ import annotations

import re

STATED, TOKENS, JUDGE, SAMPLED = "stated", "token_probability", "judge", "sampled"
CONFIDENCE = "confidence"
FIELDS = {  # names of fields, in small letters and without marks between words
    STATED: ("confidence", "statedconfidence", "verbalizedconfidence", "verbalisedconfidence", "selfconfidence"),
    TOKENS: ("tokenprobability", "tokenconfidence", "logprobconfidence", "answerprobability", "ptrue"),
    JUDGE: ("judgeconfidence", "judgescore", "judgeprobability", "graderconfidence"),
    SAMPLED: ("sampledconfidence", "selfconsistency", "agreement", "voteshare", "majorityshare"),
}
OF_NAME = {re.sub(r"[\W_]", "", name): provenance for provenance, names in FIELDS.items() for name in names}
LISTED = ", ".join(("confidence", "token_probability", "judge_confidence", "self_consistency"))  # for refusals


def of_field(name: str) -> str:
    """Return the provenance of the confidence that a field of a log holds; nothing where it holds none."""
    return OF_NAME.get(re.sub(r"[\W_]", "", name.lower()), "")


def column_of(provenance: str, more: str = "") -> str:
    """Return the name of the column that a confidence becomes; `more` distinguishes two of one provenance."""
    return "_".join(word for word in (CONFIDENCE, provenance, more) if word)


def of_column(name: str) -> str:
    """Return what the name of a column says of where a confidence comes from; nothing where it says nothing."""
    return next((p for p in FIELDS if name == column_of(p) or name.startswith(f"{column_of(p)}_")), "")
