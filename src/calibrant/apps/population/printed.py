"""Weights in a terminal: what they are about, what they cost, and the balance before and after."""

from __future__ import annotations

from calibrant.apps.population.weighting import Weighting
from calibrant.toolkit.report import cells, pad
from calibrant.toolkit.report import numbers as num
from calibrant.visible import visible


def weighting(found: Weighting) -> str:
    """Return what weights are about, what they cost, and the balance before and after."""
    kept = int(found.kept.sum())
    lines = [
        f"{num.count(kept)} of {num.count(found.n)} rows weighted ({found.method}); "
        f"they say as much as {num.count(int(found.effective))} equal ones",
        f"about: {found.estimand}",
    ]
    if found.pilot:
        lines.append(f"{num.count(found.pilot)} pilot rows taught the weights and are left out")
    if found.outside:
        lines.append(f"{num.count(found.outside)} rows are like nobody of the population and are left out")
    if found.uncovered:
        named = "; ".join(found.uncovered[:5]) + ("; ..." if len(found.uncovered) > 5 else "")
        lines.append(f"left out of the population, like no row: {named}")
    top = f"largest weight {found.largest:.3g} times the mean"
    if found.capped:
        top += (
            f", capped at {found.cap:g}: {num.count(found.capped)} rows count less, {found.trimmed:.1%} of the weight"
        )
    lines += [top, ""]
    rows = [("", "rows", "weighted", "population", "off before", "after")]
    for b in found.balance:
        off = (f"{b.difference_before:+.3f}", f"{b.difference_after:+.3f}")
        rows.append((f"{b.column} {b.level}", f"{b.before:.4g}", f"{b.after:.4g}", f"{b.target:.4g}", *off))
    wide = [max(cells(r[i]) for r in rows) for i in range(len(rows[0]))]
    lines += [
        "  ".join([pad(r[0], wide[0]), *(v.rjust(w) for v, w in zip(r[1:], wide[1:], strict=True))]) for r in rows
    ]
    lines += ["off: difference from the population, in its standard deviations"]
    return visible("\n".join(lines), keep="\n")
