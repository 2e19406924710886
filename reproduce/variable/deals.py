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
    hits: Counter[str] = Counter()
    for k in range(deals):
        if folds := dealt((seed, k)):
            hits.update({words: int(holds) for words, holds in held(folds).items()})
    return [{"kind": KIND, "claim": words, "hits": n, "deals": deals} for words, n in hits.items()]


def others(rows: list[Row]) -> list[Row]:
    """Return the rows that are not counts of deals."""
    return [r for r in rows if r.get("kind") != KIND]


def of_the_paper(claims: Mapping[str, Claim]) -> dict[str, Claim]:
    """Return the claims that the paper makes of its own deal; those beyond it are told of many deals."""
    return {words: one for words, one in claims.items() if not words.startswith(BEYOND)}


def told(rows: list[Row]) -> dict[str, Claim]:
    """Say of each claim whether it holds in more than half of the deals."""
    found = [r for r in rows if r.get("kind") == KIND]
    return {
        f"{BEYOND}in most random deals of the authors' rows: {r['claim'].removeprefix(BEYOND)}": claim.share(
            r["hits"], r["deals"], above=0.5
        )
        for r in found
    }
