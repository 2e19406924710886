"""Claims on the authors' predictions in other deals of their rows to calibration and test than theirs.

They are other draws of the same people: what they tell is how much a claim hangs on the deal, not on the people.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from reproduce import claim
from reproduce.claim import Claim
from reproduce.experiment import Row
from reproduce.variable.recalibrated import BEYOND

KIND = "deals"
Folds = TypeVar("Folds", bound=list[Any])


def counted(
    dealt: Callable[[tuple[int, int]], Folds], deals: int, seed: int, held: Callable[[Folds], Mapping[str, bool]]
) -> list[Row]:
    """Return in how many random deals each claim holds; nothing where the authors' predictions are not here."""
    asked, hits = Counter[str](), Counter[str]()  # a claim about a curve is asked where there is one
    for k in range(deals):
        if folds := dealt((seed, k)):
            found = held(folds)
            asked.update(found.keys())
            hits.update(words for words, holds in found.items() if holds)
    return [{"kind": KIND, "claim": words, "hits": hits[words], "deals": n} for words, n in asked.items()]


def others(rows: list[Row]) -> list[Row]:
    """Return the rows that are not counts of deals."""
    return [r for r in rows if r.get("kind") != KIND]


def joined(one: Mapping[str, Claim], rows: list[Row]) -> dict[str, Claim]:
    """Return claims of one deal, and whether each that was counted holds in more than half of many.

    Of those beyond the paper the count alone is told, where there is one.
    """
    found = [r for r in rows if r.get("kind") == KIND]
    counted_ = {r["claim"] for r in found}
    kept = {words: c for words, c in one.items() if not (words.startswith(BEYOND) and words in counted_)}
    return kept | {
        f"{BEYOND}in most random deals of the authors' rows: {r['claim'].removeprefix(BEYOND)}": claim.share(
            r["hits"], r["deals"], above=0.5
        )
        for r in found
    }
