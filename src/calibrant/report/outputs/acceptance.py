"""What a terminal shows of what may be accepted."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from calibrant.report import numbers as num
from calibrant.report.terminal import cells, clip, pad
from calibrant.results import Estimate
from calibrant.sanitize import sanitize

Accepted = Mapping[str, float | None]  # of one group, as `settings` of the result tell it
NAME = 40  # cells of a group's name
HEAD = ("", "accept if", "share", "accepted", "wrong", "rate", "certified at most")
SIGN = {"high": ">=", "low": "<="}
AT_ONCE = {  # at which thresholds the rate holds, of everyone and of several groups
    ("all", False): "at all thresholds at once",
    ("all", True): "at all thresholds and in all groups at once",
    ("pilot clusters", False): "by clusters, at thresholds that pilot clusters chose",
    ("pilot clusters", True): "by clusters, at thresholds that pilot clusters chose, in all groups at once",
}


def lines(result: Estimate) -> str:
    """Return what may be accepted of everyone, or of each group, a line each."""
    s = result.settings
    groups: Mapping[str, Accepted] = s["groups"]
    rows = [HEAD, *(_row(name, g, SIGN[s["end"]]) for name, g in groups.items())]
    wide = [max(cells(r[i]) for r in rows) for i in range(len(HEAD))]
    table = ("  ".join(pad(r[0], wide[0]) if not i else _right(r[i], wide[i]) for i in range(len(HEAD))) for r in rows)
    return "\n".join((*_stated(result, groups), "", *(line.rstrip() for line in table), "", *_rests(result, groups)))


def plan_lines(result: Estimate) -> str:
    """Return how many rows a wish takes."""
    s = result.settings
    rows, fixed = (num.count(math.ceil(v)) for v in (result.value, s["threshold_fixed_beforehand"]))
    return (
        f"{rows} rows to certify, with probability {_percent(s['power'])}%, that the best {_percent(s['share'])}% of "
        f"them may be accepted\nwith at most {_percent(s['risk'])}% wrong, if {_percent(s['error'])}% are; "
        f"{fixed} if the threshold is fixed beforehand. A plan, not a certificate."
    )


def _stated(result: Estimate, groups: Mapping[str, Accepted]) -> Iterator[str]:
    s, risk = result.settings, _percent(result.settings["risk"])
    if result.low <= 0.0:
        yield f"Nothing can be accepted yet with at most {risk}% wrong, certified."
        least = min(g["fewest"] or 0 for g in groups.values())
        if least:  # of rows that are independent
            yield f"It takes {num.count(least)} accepted rows without an error, and more with some."
        return
    each = " in each group" if len(groups) > 1 else ""
    share = math.floor(1000.0 * result.low) / 10.0
    yield f"Accept {share:g}% of {num.count(result.n)} rows: at most {risk}% of them{each} wrong, certified."
    yield f"Level {result.interval.level:g}, {AT_ONCE[s['thresholds'], len(groups) > 1]}; {s['about']}."


def _rests(result: Estimate, groups: Mapping[str, Accepted]) -> Iterator[str]:
    none = [name for name, g in groups.items() if g["threshold"] is None]
    if none and len(groups) > 1:
        yield clip(f"Nobody is accepted of {', '.join(map(sanitize, none))}.", 2 * NAME + 20)
    yield f"Assumes {result.assumes}. By observed rates alone {_percent(result.value)}% would pass: no promise."


def _row(name: str, g: Accepted, sign: str) -> tuple[str, ...]:
    who = clip(sanitize(name), NAME)
    reported = {k: v for k, v in g.items() if v is not None}
    if "threshold" not in reported:
        return who, "nobody", "0%", "0", "0", "–", "–"
    high = math.ceil(1e5 * reported["certified_rate"] - 1e-9) / 1e3
    return (
        who,
        f"{sign} {reported['threshold']:.10g}",
        f"{100.0 * reported['share']:.1f}%",
        num.count(reported["accepted"]),
        num.count(reported["wrong"]),
        f"{100.0 * reported['rate']:.2f}%",
        f"{high:.2f}%" if high >= 1.0 else f"{high:.3f}%",
    )


def _right(text: str, wide: int) -> str:
    return " " * (wide - cells(text)) + text


def _percent(share: float) -> str:
    return f"{100.0 * share:.3g}"
