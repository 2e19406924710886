"""What a terminal shows of decisions: what may be accepted, and models or audits compared."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from html import escape
from pathlib import Path
from typing import cast

from calibrant.decisions.comparison import EVERYONE, Decision, Difference, ModelComparison
from calibrant.report import numbers as num
from calibrant.report import svg
from calibrant.report.numbers import in_percent
from calibrant.report.outputs import notebook, results
from calibrant.report.outputs.notebook import Drawing
from calibrant.report.terminal import aligned, clip
from calibrant.report.wording.decisions import in_the_pool
from calibrant.results import Estimate
from calibrant.sanitize import sanitize

Accepted = Mapping[str, float | None]  # of one group, as `settings` of the result tell it
GROUP_NAME = 40  # cells of a group's name
ACCEPTED = ("", "accept if", "share", "accepted", "wrong", "rate", "certified at most")
SIGN = {"high": ">=", "low": "<="}
AT_ONCE = {  # at which thresholds the rate holds, of everyone and of several groups
    ("all", False): "at all thresholds at once",
    ("all", True): "at all thresholds and in all groups at once",
    ("pilot clusters", False): "by clusters, at thresholds that pilot clusters chose",
    ("pilot clusters", True): "by clusters, at thresholds that pilot clusters chose, in all groups at once",
}


def accepted(result: Estimate) -> str:
    s = result.settings
    groups: Mapping[str, Accepted] = s["groups"]
    rows = [ACCEPTED, *(_accepted_row(name, g, SIGN[s["end"]]) for name, g in groups.items())]
    return "\n".join((*_accepted_stated(result, groups), "", *aligned(rows), "", *_accepted_rests(result, groups)))


def planned(result: Estimate) -> str:
    s = result.settings
    rows, fixed = (num.count(math.ceil(v)) for v in (result.value, s["threshold_fixed_beforehand"]))
    return (
        f"{rows} rows to certify, with probability {in_percent(s['power'])}%, that the best {in_percent(s['share'])}% "
        f"of them may be accepted\nwith at most {in_percent(s['risk'])}% wrong, if {in_percent(s['error'])}% are; "
        f"{fixed} if the threshold is fixed beforehand. A plan, not a certificate."
    )


def _accepted_stated(result: Estimate, groups: Mapping[str, Accepted]) -> Iterator[str]:
    s, risk = result.settings, in_percent(result.settings["risk"])
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


def _accepted_rests(result: Estimate, groups: Mapping[str, Accepted]) -> Iterator[str]:
    none = [name for name, g in groups.items() if g["threshold"] is None]
    if none and len(groups) > 1:
        yield clip(f"Nobody is accepted of {', '.join(map(sanitize, none))}.", 2 * GROUP_NAME + 20)
    yield from in_the_pool(result.settings)
    yield f"Assumes {result.assumes}. By observed rates alone {in_percent(result.value)}% would pass: no promise."


def _accepted_row(name: str, g: Accepted, sign: str) -> tuple[str, ...]:
    who = clip(sanitize(name), GROUP_NAME)
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


NAME = 40  # cells of a name
MOST_NAMED = 4  # for whom a model is certified to be worse, in its sentence
MEASURES = {
    "brier": "Brier score",
    "log_loss": "log loss",
    "error": "share called wrongly at 0.5",
    "calibration_error": "calibration error",
    "auroc": "AUROC",
    "net_benefit": "net benefit",
}
TARGETS = {
    "population": "About future rows like these. ",
    "rows": "About these rows given their scores, not about others. ",
}
SENTENCES = {
    "better": "{new} is better than {old}: it loses less",
    "no worse": "{new} is no worse than {old}: it loses at most {margin} more",
    "worse within margin": "{new} is worse than {old} for {known}, within {within}",
    "worse": "{new} is worse than {old} for {whom}: it loses over {margin} more",
    "undecided": "Undecided whether {new} is no worse than {old}",
}
CERTIFIED = "; it is worse for {known}, and whether by more than {within} is undecided"
USUAL = {  # what the margin is where none is named
    "brier": "2% of rate x (1 - rate)",
    "log_loss": "2% of the entropy of the rate",
    "auroc": "the default",
}
LEAST = "0.005 or 2% of the share of the rarer outcome, whichever is less"
MOST_DECIMALS = 8


def compared(result: ModelComparison) -> str:
    other = next(iter(result.verdicts)) if len(result.verdicts) == 1 else "other"
    margin = ("margin",) if _own_margins(result) else ()
    head = ("", "rows", _name(result.reference), _name(other), "worse by", "certified", *margin, "verdict")
    return "\n".join((*_stated(result), "", *_table(result, head), "", *_rests(result)))


KINDS: Mapping[Decision, str] = {
    "better": "within",
    "no worse": "within",
    "worse within margin": "within",
    "worse": "over",
    "undecided": "undecided",
}


def content(result: ModelComparison, out: str, form: results.CsvForm = results.CSV) -> bytes:
    """A comparison in the format of a file's ending: a page with its verdicts, or the table of differences."""
    if Path(out).suffix.lower() != ".html":
        return results.content(result.table, out, form)
    title = " or ".join((result.reference, *result.verdicts))
    page = results.PAGE.format(title=escape(sanitize(title)), inside=notebook.drawn([*_drawings(result)]))
    return page.encode()


def _drawings(result: ModelComparison) -> Iterator[Drawing]:
    """Yield each model's verdict, with a picture of every difference and its certified range, and what all rest on."""
    ends = [abs(v) for d in result.differences for v in (d.interval.low, d.interval.high)]
    top = 100.0 * max(*(d.margin * 1.25 for d in result.differences), *ends)
    for model in result.verdicts:
        stated = [*_stated(result, model)]
        words = f"{num.MINUS}{top / 100:.2g} better … worse +{top / 100:.2g}"
        margin = ("margin",) if _own_margins(result) else ()
        head = ("", words, "verdict", *margin, "worse by", "certified", "rows", _name(result.reference), _name(model))
        rows = tuple(_cells(result, d, top) for d in result.differences if d.model == model)
        yield Drawing(stated[0], (), " ".join(stated[1:]), head, rows)
    bars = "Bars are certified ranges, dots what these rows show; left of the middle the model is better."
    edges = f" Thin lines: {result.margin:g} better, and {result.margin:g} worse, which is the margin."
    if _own_margins(result):
        edges = " Thin lines: better, and worse, by the margin of each."
    yield Drawing("What it rests on", (), " ".join((bars + edges * (result.margin > 0.0), *_rests(result))))


def _own_margins(result: ModelComparison) -> bool:
    """Tell whether groups have margins of their own."""
    return len({d.margin for d in result.differences}) > 1


def _decimals(result: ModelComparison) -> int:
    """The decimals at which the least margin has two digits, and every low end above 0 one; 4 at least."""
    margins = [1 - math.floor(math.log10(d.margin)) for d in result.differences if d.margin > 0.0]
    lows = [-math.floor(math.log10(d.interval.low)) for d in result.differences if d.interval.low > 0.0]
    return min(max(4, *margins, *lows, 4), MOST_DECIMALS)


def _cells(result: ModelComparison, d: Difference, top: float) -> tuple[str, ...]:
    population = clip(sanitize(d.population), NAME)
    at = population if d.threshold is None else f"{population} at {d.threshold:g}"
    who, rows, old, new, worse, certified, *margin, verdict = _row(result, d, at)
    picture = svg.signed_track(d.interval.low, d.difference, d.interval.high, top, d.margin, KINDS[d.verdict])
    own = (verdict, *margin, worse, certified, rows)
    reported = (v.replace("-", num.MINUS).replace(" ", "\N{NO-BREAK SPACE}") for v in own)
    return (who, picture, *reported, old, new)


def _stated(result: ModelComparison, *models: str) -> Iterator[str]:
    thresholds, measure = _thresholds(result), MEASURES[result.measure]
    if thresholds:
        measure += f" at {' and '.join(f'{t:g}' for t in thresholds)}"
    several = len(thresholds) > 1
    for model in models or result.verdicts:
        verdict = result.verdicts[model]
        own = [d for d in result.differences if d.model == model]
        hurt = [_whom(d, several=several) for d in own if d.verdict == "worse"]
        known = _known(result, own)
        text = (SENTENCES[verdict] + CERTIFIED * (verdict == "undecided" and bool(known))).format(
            new=_name(model),
            old=_name(result.reference),
            margin="its margin" if _own_margins(result) else f"{result.margin:g}",
            within="the margin of each" if _own_margins(result) else f"the margin of {result.margin:g}",
            whom=clip(", ".join(map(sanitize, hurt)), 2 * NAME),
            known=known,
        )
        groups = any(d.population != EVERYONE for d in own)
        each = ", and no worse in any group" if verdict == "better" and groups else ""
        each = ", in no group either" if verdict == "no worse" and groups and not _own_margins(result) else each
        yield f"{text}{each} ({measure})."
        if model in result.worst:
            yield _bound(result.worst[model], ", at no threshold," if several else "", _decimals(result))


def _thresholds(result: ModelComparison) -> tuple[float, ...]:
    return tuple(cast("tuple[float, ...]", result.settings.get("thresholds", ())))


def _known(result: ModelComparison, own: list[Difference]) -> str:
    """Say for whom a model is certified to be worse, and by how much: at most four of them."""
    several, places = len(_thresholds(result)) > 1, _decimals(result)
    certified = [d for d in own if d.interval.low > 0.0]
    words = [
        f"{clip(sanitize(_whom(d, several=several)), NAME)} by {d.interval:.{places}f}" for d in certified[:MOST_NAMED]
    ]
    more = len(certified) - len(words)
    return ", ".join((*words, *((f"{more} more",) if more else ())))


def _whom(d: Difference, *, several: bool) -> str:
    return f"{d.population} at {d.threshold:g}" if several else d.population


def _table(result: ModelComparison, head: tuple[str, ...]) -> Iterator[str]:
    models, thresholds = len(result.verdicts) > 1, len(_thresholds(result)) > 1
    rows = [head]
    for d in result.differences:
        who = clip(sanitize(f"{d.model}: {d.population}" if models else d.population), NAME)
        rows.append(_row(result, d, f"{who} at {d.threshold:g}" if thresholds else who))
    yield from aligned(rows, left=(0, len(head) - 1))


def _row(result: ModelComparison, d: Difference, who: str) -> tuple[str, ...]:
    places = _decimals(result)
    return (
        who,
        num.count(d.rows),
        f"{d.reference:.{places}f}",
        f"{d.value:.{places}f}",
        f"{d.difference:+.{places}f}",
        f"{d.interval:+.{places}f}",
        *((f"{d.margin:.{places}f}",) if _own_margins(result) else ()),
        d.verdict,
    )


def _rests(result: ModelComparison) -> Iterator[str]:
    s, first = result.settings, result.differences[0].interval
    stored = "Every verdict at once" if len(result.differences) > 1 else "The verdict"
    if "audits" in s:
        end = cast("float", s["each_end"])
        stored = f"Everyone's ranges hold at level {first.level:.4g}, each bound separately at {end:.4g}"
        if any(d.population != EVERYONE for d in result.differences):
            stored += f"; all groups' simultaneously at {end:.4g}"
        yield "Each end from two audits: raw score from below, rounded score from above. Rows of the audits may differ."
        for model, names in cast("Mapping[str, tuple[str, ...]]", s["unmatched"]).items():
            if names:
                yield clip(f"Not in both audits: {', '.join(map(sanitize, names))} ({sanitize(model)}).", 3 * NAME)
    else:
        stored += f" at level {first.level:g}"
    yield f"{stored}, {s['guarantee']}; {_margin(result)}."
    if result.measure == "auroc":
        yield "Worse by: how much smaller the AUROC is."
    if result.measure == "net_benefit":
        yield "Net benefit in true positives a row, less false ones at the threshold's odds; worse by: what is lost."
    if "clip" in s:
        kept = cast("float", s["clip"])
        yield f"Scores are kept within {kept:g} and {1.0 - kept:g}."
    about = TARGETS[str(s["target"])] if "target" in s else ""
    yield f"{about}Assumes {s['assumes']}."


def _name(model: str) -> str:
    return clip(sanitize(model), NAME)


def _margin(result: ModelComparison) -> str:
    if result.settings.get("margin") != "usual":
        return f"margin {result.margin:g}, to be fixed beforehand"
    how = USUAL.get(result.measure, LEAST)
    return f"each margin is {how} of its rows" if _own_margins(result) else f"margin {result.margin:g}: {how}"


def _bound(most: float, at: str, places: int) -> str:
    high = math.ceil(10.0**places * most - 1e-9) / 10.0**places
    if high < 0.0:
        return f"In every group{at.replace('no', 'every')} it is better by at least {-high:.{places}f}."
    return f"In no group{at} is it worse by more than {high:.{places}f}."
