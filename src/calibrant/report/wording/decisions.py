"""What acting at a threshold means, in words: who is acted on, and the worst that is known."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from calibrant.audit.record import AuditRecord
from calibrant.report import numbers as num
from calibrant.report.findings import Line, lines_of
from calibrant.report.spans import Text, clipped, link, literal, say, shown, strong
from calibrant.results import Curve

CODE, EVERYONE = "decisions", "everyone"
Range = tuple[float, float, float]  # a number and its ends


@dataclass(frozen=True, slots=True)
class Acted:
    """One population at one threshold, as the record reports it."""

    name: str
    threshold: float
    acts_from: float
    rows: int
    acted: int
    wrong: Range | None
    missed: Range | None
    net_benefit: Range
    over_all: Range
    regret: Range

    @property
    def everyone(self) -> bool:
        return self.name == EVERYONE


def acted(record: AuditRecord) -> tuple[Acted, ...]:
    """Every line that the record has, by threshold, everyone first; none where nobody asked."""

    def ends(line: Line, name: str) -> Any:
        return None if line[name] is None else tuple(line[f"{name}{end}"] for end in ("", "_low", "_high"))

    names, ranges = (
        ("threshold", "acts_from", "rows", "acted"),
        ("wrong", "missed", "net_benefit", "over_all", "regret"),
    )
    lines = lines_of(record.curve(CODE))
    return tuple(Acted(d["group"], *(d[k] for k in names), *(ends(d, k) for k in ranges)) for d in lines)


RATES, DIFFERENCES = "rates", "rate_differences"
RATE_WORDS = {
    "selection_rate": "selection rate",
    "true_positive_rate": "true positive rate",
    "false_positive_rate": "false positive rate",
    "precision": "precision (PPV)",
}
MOST_REPORTED = 2  # differences on the first screen


def rates_at(record: AuditRecord, threshold: float) -> dict[str, dict[str, Line]]:
    """The rates of each population at a threshold by their names, everyone first."""
    result: dict[str, dict[str, Line]] = {}
    for one in lines_of(record.curve(RATES)):
        if one["threshold"] == threshold:
            result.setdefault(one["group"], {})[one["rate"]] = one
    return result


def differences_at(record: AuditRecord, threshold: float) -> list[Line]:
    """How far groups are apart in each rate at a threshold."""
    return [one for one in lines_of(record.curve(DIFFERENCES)) if one["threshold"] == threshold]


def apart_reported(record: AuditRecord) -> Text:
    """The largest differences between groups that are certified, with whom; nothing where none is."""
    certified = [one for one in lines_of(record.curve(DIFFERENCES)) if float(num.lower_bound(one["guaranteed_low"]))]
    sentences: list[Text] = []
    for one in sorted(certified, key=lambda one: -one["guaranteed_low"])[:MOST_REPORTED]:
        key = one["variable"], one["threshold"], one["rate"]
        own = [r for r in lines_of(record.curve(RATES)) if (r["variable"], r["threshold"], r["rate"]) == key]
        own = [r for r in own if r["value"] is not None]
        high, low = max(own, key=lambda r: r["guaranteed_low"]), min(own, key=lambda r: r["guaranteed_high"])
        at = link(f"Acting from {percent_of(one['threshold'])}% on", CODE)
        by = f"at least {num.lower_bound(one['guaranteed_low'])} points higher"
        names = [literal(clipped(shown(r["group"]), 40)) for r in (high, low)]
        seen = f" ({num.nearest(high['value'])}% and {num.nearest(low['value'])}%). "
        sentences.append(
            say(at, f", the {RATE_WORDS[one['rate']]} is ", strong(by), " for ", names[0], " than for ", names[1], seen)
        )
    return say(*(part for text in sentences for part in text))


def percent_of(threshold: float) -> str:
    return f"{100.0 * threshold:.4g}"


MOST_NAMED = 3  # groups of a pool


def in_the_pool(settings: Mapping[str, Any]) -> Iterator[str]:
    """Say of which groups more accepted rows are wrong than was asked for, where one threshold is for everyone."""
    pool, risk = settings["pool"], f"{100.0 * settings['risk']:.3g}%"
    above = [
        f"{clipped(shown(g), 40)} ({num.count(f['wrong'])} of {num.count(f['accepted'])} wrong, {100 * f['rate']:.1f}%)"
        for g, f in pool["above_risk"].items()
    ]
    by = ",".join(map(shown, pool["by"]))
    if above:
        more = f", and {len(above) - MOST_NAMED} more" if len(above) > MOST_NAMED else ""
        yield (
            f"Over {risk} wrong of what is accepted of these rows, certified: {', '.join(above[:MOST_NAMED])}{more}. "
            f"For a threshold and a promise in each group: --by {by}."
        )
    elif pool["columns"]:
        looked = f"{num.count(pool['groups'])} groups of {clipped(', '.join(map(shown, pool['columns'])), 60)}"
        yield f"Looked at {looked}: none is shown to be over {risk} wrong. That is no promise for each: --by makes one."
    if pool["left_out"]:
        yield f"Not looked at, as they reproduce the outcome: {clipped(', '.join(map(shown, pool['left_out'])), 60)}."


def who(one: Acted) -> Text:
    return say("everyone") if one.everyone else say(literal(clipped(shown(one.name), 40)))


def at_least(lines: Sequence[Acted]) -> str:
    return f"of at least {num.lower_bound(max(v.regret[1] for v in lines))} per 100"


def worst_reported(record: AuditRecord) -> Text:
    """The worst known of acting: it does harm, acting on all is better, or error costs; else nothing."""
    lines = acted(record)
    harm = min(lines, key=lambda v: v.net_benefit[2], default=None)
    if harm is not None and harm.net_benefit[2] < 0.0:
        return _reported(harm, "acting on nobody is better", harm.net_benefit[2])
    beaten = min(lines, key=lambda v: v.over_all[2], default=None)
    if beaten is not None and beaten.over_all[2] < 0.0:
        return _reported(beaten, "acting on all is better", beaten.over_all[2])
    costly = max(lines, key=lambda v: v.regret[1], default=None)
    if costly is not None and float(num.lower_bound(costly.regret[1]) or 0.0) > 0.0:
        at = link(f"Acting from {percent_of(costly.threshold)}% on", CODE)
        lost = strong(f"error costs at least {num.lower_bound(costly.regret[1])} true positives per 100")
        return say(at, ", ", lost, ": ", *who(costly), ".")
    return ()


def lost_by_repair(changes: Curve, repair: str) -> str:
    """At which thresholds a repair is shown to lose net benefit, and for whom; nothing where it is not."""
    lost: dict[float, list[str]] = {}
    reported = (changes.columns[k] for k in ("probability", "threshold", "population", "shown"))
    for name, threshold, population, result in zip(*reported, strict=True):
        if name == repair and result == "worse":
            lost.setdefault(threshold, []).append(clipped(shown(population), 40))
    if not lost:
        return ""
    where = (
        f"from {percent_of(t)}% on for {whom[0]}{f' and {len(whom) - 1} more' if len(whom) > 1 else ''}"
        for t, whom in lost.items()
    )
    return f"Its decisions are shown to lose net benefit: {'; '.join(where)}."


def _reported(one: Acted, better: str, by: float) -> Text:
    at = link(f"Acting from {percent_of(one.threshold)}% on", CODE)
    lost = f", by at least {num.lower_bound(-by)} true positives per 100"
    return say(at, ": for ", *who(one), " ", strong(better), f"{lost}.")
