"""Levels measured in Figure 4, to stand beside power."""

from reproduce.experiment import Result, place
from reproduce.strong.figure_4 import EDGE, pooled


def levels() -> dict[str, str]:
    """Share of right models that each test rejects at the edge of the tolerance, measured in Figure 4."""
    found = Result.load("strong/figure_4").rows if place("strong/figure_4").is_file() else []
    known = {t: pooled(found, EDGE, t, "two-sided") for t in dict.fromkeys(r["test"] for r in found)}
    return {t: f"{hits / n:.2f} of {n}" for t, (hits, n) in known.items() if n}
