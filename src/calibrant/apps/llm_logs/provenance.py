"""Where a confidence comes from, recognised by the name of its field in a log, which its column keeps."""

from __future__ import annotations

import re

from calibrant.toolkit.data import JUDGE, SAMPLED, STATED, TOKENS

FIELDS = {  # names of fields, in small letters and without marks between words
    STATED: ("confidence", "statedconfidence", "verbalizedconfidence", "verbalisedconfidence", "selfconfidence"),
    TOKENS: ("tokenprobability", "tokenconfidence", "logprobconfidence", "answerprobability", "ptrue"),
    JUDGE: ("judgeconfidence", "judgescore", "judgeprobability", "graderconfidence"),
    SAMPLED: ("sampledconfidence", "selfconsistency", "agreement", "voteshare", "majorityshare"),
}
OF_NAME = {re.sub(r"[\W_]", "", name): provenance for provenance, names in FIELDS.items() for name in names}
LISTED = ", ".join(("confidence", "token_probability", "judge_confidence", "self_consistency"))  # for refusals


def of_field(name: str) -> str:
    """The provenance of the confidence that a field of a log holds; nothing where it holds none."""
    return OF_NAME.get(re.sub(r"[\W_]", "", name.lower()), "")
