"""What comparing repairs found, for a terminal."""

from __future__ import annotations

from typing import Any

from calibrant.repair.judge.verdict import AS_AUDITED, Comparison
from calibrant.report import numbers

HOW = {
    "halves": "Fitted on {fit} rows, judged on {judged} others.",
    "fit_on": "Fitted on {fit} other rows, judged on {judged}.",
    "folds": "Cross-fitted in {folds} folds: each of {judged} rows is judged with a map fitted on the other folds.",
    "fitted": "Fitted before; judged on {judged} rows.",
}
HEAD = ("", "error", "Brier", "log loss", "AUROC", "accuracy", "local p", "groups +/-")


def compared(found: Comparison) -> str:
    """Return the before-and-after table, a line for each repair, and the recommendation."""
    s = found.settings
    lines = [HOW[s["how"]].format(fit=_count(s["rows_fit"]), judged=_count(s["rows_judged"]), folds=s["folds"])]
    rows = [HEAD, *(_row(found.row(name)) for name in found.table.columns["probability"])]
    wide = [max(len(r[i]) for r in rows) for i in range(len(HEAD))]
    kept = [i for i in range(len(HEAD)) if i == 0 or any(r[i] for r in rows[1:])]
    lines += ["  ".join(r[i].ljust(wide[i]) if i == 0 else r[i].rjust(wide[i]) for i in kept).rstrip() for r in rows]
    lines += ["", *(v["line"] + "." for v in found.verdicts.values())]
    lines += [f"{name}: left out, {reason}." for name, reason in s["left_out"]]
    lines.append(recommendation(found))
    lines.append(
        f"error: certified range in points ({100 * (1 - s['alpha']):g} %, all rows of the table together), shown in "
        f"{s['levels']} steps from above. Better and worse: wrong with probability at most {s['alpha']:g}, all together."
    )
    return "\n".join(lines)


def recommendation(found: Comparison) -> str:
    """Return the recommendation in one line."""
    if found.recommended == AS_AUDITED:
        return "Recommended: leave it as it is; no repair is shown to be better."
    return f"Recommended: {found.recommended}, the simplest that is shown better and not shown worse than the best."


def _row(row: dict[str, Any]) -> tuple[str, ...]:
    low, high = row["error_low"], row["error_high"]
    error = "" if low is None else f"{numbers.lower_bound(low)} to {numbers.upper_bound(high)}"
    name = row["probability"]
    moved = "" if name == AS_AUDITED or row["largest_gap"] is None else f"{row['groups_better']}/{row['groups_worse']}"
    return (
        name,
        error,
        f"{row['brier']:.5f}",
        f"{row['log_loss']:.5f}",
        _maybe(row["auroc"]),
        f"{row['accuracy']:.4f}",
        "" if row["local_p"] is None else f"{row['local_p']:.3f}",
        moved,
    )


def _maybe(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"


def _count(n: int) -> str:
    return f"{n:,}".replace(",", "\u202f")
