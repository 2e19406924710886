"""What a terminal shows of decisions before and after a repair: who changes side, and what that gains."""

from __future__ import annotations

from collections.abc import Iterator

from calibrant.repair.judge.decisions import EVERYONE, DecisionChange, lines_of
from calibrant.repair.judge.verdict import AS_AUDITED, Comparison
from calibrant.report import numbers as num
from calibrant.report.terminal import cells, pad, wrap
from calibrant.sanitize import sanitize

HEAD = ("", "rows", "come to act", "leave", "gain", "certified", "")


def lines(result: Comparison) -> list[str]:
    """The changes for everyone under every repair, and for groups under the one recommended or the only one."""
    chosen = result.recommended if result.recommended != AS_AUDITED else ""
    if not chosen and len(result.calibrators) == 1:
        chosen = next(iter(result.calibrators))
    rows = [HEAD, *_rows(result, chosen)]
    wide = [max(cells(r[i]) for r in rows) for i in range(len(HEAD))]
    table = []
    for who, *numbers, verdict in rows:
        right = (" " * (w - cells(v)) + v for v, w in zip(numbers, wide[1:], strict=False))
        table.append("  ".join((pad(who, wide[0]), *right, verdict)).rstrip())
    s = result.decisions.settings
    note = "Rows rounded to multiples of five; gain in net benefit, true positives a row. "
    if any(line.shown is None for line in _reported(result, chosen)):
        note += f"–: under {s['least']} rows change side, or recoverable by subtraction. "
    note += f"A gain is called better or worse wrongly with probability at most {s['alpha']:g}, simultaneously."
    head = (
        "Acted on from the threshold: repaired but not as audited (come to act), and the reverse (leave); rows judged:"
    )
    return [*wrap(head), *table, *wrap(note)]


def _reported(result: Comparison, chosen: str) -> Iterator[DecisionChange]:
    for line in lines_of(result.decisions):
        if line.population == EVERYONE or line.probability == chosen:
            yield line


def _rows(result: Comparison, chosen: str) -> Iterator[tuple[str, ...]]:
    for line in _reported(result, chosen):
        who = (
            f"{line.threshold:g} {line.probability}: everyone"
            if line.population == EVERYONE
            else f"  {line.population}"
        )
        rows = num.count(line.rows)
        if line.shown is None or line.gain is None:
            yield sanitize(who), rows, "–", "–", "–", "–", ""
        else:
            yield (
                sanitize(who),
                rows,
                num.count(line.to_act or 0),
                num.count(line.to_leave or 0),
                f"{line.gain:+.4f}",
                f"{line.gain_low:+.4f} to {line.gain_high:+.4f}",
                "no row changes side" if line.shown == "none" else line.shown,
            )
