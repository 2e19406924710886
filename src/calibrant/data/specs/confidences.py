"""Where the confidence of a language model comes from: the name of its column tells it for good."""

from __future__ import annotations

STATED, TOKENS, JUDGE, SAMPLED = "stated", "token_probability", "judge", "sampled"
PROVENANCES = STATED, TOKENS, JUDGE, SAMPLED
CONFIDENCE = "confidence"


def column_of(provenance: str, more: str = "") -> str:
    """The name of the column that a confidence becomes; `more` tells two of one provenance apart."""
    return "_".join(word for word in (CONFIDENCE, provenance, more) if word)


def of_column(name: str) -> str:
    """Return what the name of a column says of where a confidence comes from; nothing where it says nothing."""
    return next((p for p in PROVENANCES if name == column_of(p) or name.startswith(f"{column_of(p)}_")), "")
