"""Weights in a terminal: what they are about, what they cost, and the balance before and after."""

from __future__ import annotations

from calibrant.apps.population.weighting import Weighting
from calibrant.sanitize import sanitize
from calibrant.toolkit.report import cells, pad
from calibrant.toolkit.report import numbers as num


def weighting(result: Weighting) -> str:
    """Return what weights are about, what they cost, and the balance before and after."""
    kept = int(result.kept.sum())
    lines = [
        f"{num.count(kept)} of {num.count(result.n)} rows weighted ({result.method}); "
        f"they say as much as {num.count(int(result.effective))} equal ones",
        f"about: {result.estimand}",
    ]
    if result.pilot:
        lines.append(f"{num.count(result.pilot)} pilot rows taught the weights and are left out")
    if result.outside:
        lines.append(f"{num.count(result.outside)} rows are like nobody of the population and are left out")
    if result.uncovered:
        named = "; ".join(result.uncovered[:5]) + ("; ..." if len(result.uncovered) > 5 else "")
        lines.append(f"left out of the population, like no row: {named}")
    top = f"largest weight {result.largest:.3g} times the mean"
    if result.capped:
        top += (
            f", capped at {result.cap:g}: {num.count(result.capped)} rows count less, {result.trimmed:.1%} of "
            f"the weight"
        )
    lines += [top, ""]
    rows = [("", "rows", "weighted", "population", "off before", "after")]
    for b in result.balance:
        off = (f"{b.difference_before:+.3f}", f"{b.difference_after:+.3f}")
        rows.append((f"{b.column} {b.level}", f"{b.before:.4g}", f"{b.after:.4g}", f"{b.target:.4g}", *off))
    wide = [max(cells(r[i]) for r in rows) for i in range(len(rows[0]))]
    lines += [
        "  ".join([pad(r[0], wide[0]), *(v.rjust(w) for v, w in zip(r[1:], wide[1:], strict=True))]) for r in rows
    ]
    lines += ["off: difference from the population, in its standard deviations"]
    return sanitize("\n".join(lines), keep="\n")
