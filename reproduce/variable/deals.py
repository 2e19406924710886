"""Claims on the authors' predictions in other deals of their rows than theirs, and on each of several networks.

Deals are other draws of the same people: what they tell is how much a claim hangs on the deal, not on the people. The
authors' own deal of their own predictions is fixed: there is no chance in it.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from reproduce import claim
from reproduce.claim import Claim
from reproduce.experiment import Row
from reproduce.variable.recalibrated import BEYOND

KIND, NETWORKS = "deals", "networks"
Folds = TypeVar("Folds", bound=list[Any])


def counted(
    hash_split: Callable[[tuple[int, int]], Folds],
    block_orders: int,
    seed: int,
    held: Callable[[Folds], Mapping[str, bool]],
    kind: str = KIND,
) -> list[Row]:
    """Return in how many random deals each claim holds; nothing where the authors' predictions are not here."""
    asked, hits = Counter[str](), Counter[str]()  # a claim about a curve is asked where there is one
    for k in range(block_orders):
        if folds := hash_split((seed, k)):
            found = held(folds)
            asked.update(found.keys())
            hits.update(words for words, holds in found.items() if holds)
    return [{"kind": kind, "claim": words, "hits": hits[words], "deals": n} for words, n in asked.items()]


def trained(rounds: Folds, held: Callable[[Folds], Mapping[str, bool]]) -> list[Row]:
    """Return with how many networks each claim holds, of several that were trained alike on a deal each."""
    return counted(lambda k: type(rounds)([rounds[k[1]]]), len(rounds), 0, held, NETWORKS)


def others(rows: list[Row]) -> list[Row]:
    """Return the rows that are not counts of deals or of networks."""
    return [r for r in rows if r.get("kind") not in (KIND, NETWORKS)]


def joined(one: Mapping[str, Claim], rows: list[Row]) -> dict[str, Claim]:
    """Return claims of one deal, and whether each that was counted holds in more than half of many.

    Of those beyond the paper the count alone is told, where there is one. A claim on the means of several networks has
    the share of networks of which it holds.
    """
    found = [r for r in rows if r.get("kind") == KIND]
    counted_ = {r["claim"] for r in found}
    kept = {words: c for words, c in one.items() if not (words.startswith(BEYOND) and words in counted_)}
    fixed = {words: replace(c, fixed=True) for words, c in kept.items() if words in counted_}
    each = {r["claim"]: claim.share(r["hits"], r["deals"], above=0.5) for r in rows if r.get("kind") == NETWORKS}
    means = {words: both(c, each[words]) for words, c in kept.items() if words in each}
    return (kept | fixed | means) | {
        f"{BEYOND}in most random deals of the authors' rows: {r['claim'].removeprefix(BEYOND)}": claim.share(
            r["hits"], r["deals"], above=0.5
        )
        for r in found
    }


def both(means: Claim, share: Claim) -> Claim:
    """Return what holds in the means of networks and of most of them; neither yes nor no where the two differ."""
    return share if share.holds is means.holds else replace(share, holds=None)
