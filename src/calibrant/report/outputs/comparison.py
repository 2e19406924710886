"""What a terminal shows of models, or audits, held against each other."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from html import escape
from pathlib import Path
from typing import cast

from calibrant.decisions.comparison import EVERYONE, Decision, Difference, ModelComparison
from calibrant.report import numbers as num
from calibrant.report import svg
from calibrant.report.outputs import notebook, results
from calibrant.report.outputs.pictures import Drawing
from calibrant.report.terminal import cells, clip, pad
from calibrant.sanitize import sanitize

NAME = 40  # cells of a name
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
    "worse": "{new} is worse than {old} for {whom}: it loses over {margin} more",
    "undecided": "Undecided whether {new} is no worse than {old}",
}


def lines(result: ModelComparison) -> str:
    """A verdict on each model, the table of differences, and what they rest on."""
    other = next(iter(result.verdicts)) if len(result.verdicts) == 1 else "other"
    head = ("", "rows", _name(result.reference), _name(other), "worse by", "certified", "verdict")
    return "\n".join((*_stated(result), "", *_table(result, head), "", *_rests(result)))


KINDS: Mapping[Decision, str] = {"better": "within", "no worse": "within", "worse": "over", "undecided": "undecided"}


def content(result: ModelComparison, out: str) -> bytes:
    """A comparison in the format of a file's ending: a page with its verdicts, or the table of differences."""
    if Path(out).suffix.lower() != ".html":
        return results.content(result.table, out)
    title = " or ".join((result.reference, *result.verdicts))
    page = results.PAGE.format(title=escape(sanitize(title)), inside=notebook.drawn([*_drawings(result)]))
    return page.encode()


def _drawings(result: ModelComparison) -> Iterator[Drawing]:
    """Yield each model's verdict, with a picture of every difference and its certified range, and what all rest on."""
    ends = [abs(v) for d in result.differences for v in (d.interval.low, d.interval.high)]
    top = 100.0 * max(result.margin * 1.25, *ends)
    for model in result.verdicts:
        stated = [*_stated(result, model)]
        words = f"{num.MINUS}{top / 100:.2g} better … worse +{top / 100:.2g}"
        head = ("", words, "verdict", "worse by", "certified", "rows", _name(result.reference), _name(model))
        rows = tuple(_cells(d, top, result.margin) for d in result.differences if d.model == model)
        yield Drawing(stated[0], (), " ".join(stated[1:]), head, rows)
    bars = "Bars are certified ranges, dots what these rows show; left of the middle the model is better."
    edges = f" Thin lines: {result.margin:g} better, and {result.margin:g} worse, which is the margin."
    yield Drawing("What it rests on", (), " ".join((bars + edges * (result.margin > 0.0), *_rests(result))))


def _cells(d: Difference, top: float, margin: float) -> tuple[str, ...]:
    population = clip(sanitize(d.population), NAME)
    at = population if d.threshold is None else f"{population} at {d.threshold:g}"
    who, rows, old, new, worse, certified, verdict = _row(d, at)
    picture = svg.signed_track(d.interval.low, d.difference, d.interval.high, top, margin, KINDS[d.verdict])
    reported = (v.replace("-", num.MINUS).replace(" ", "\N{NO-BREAK SPACE}") for v in (verdict, worse, certified, rows))
    return (who, picture, *reported, old, new)


def _stated(result: ModelComparison, *models: str) -> Iterator[str]:
    for model in models or result.verdicts:
        verdict = result.verdicts[model]
        own = [d for d in result.differences if d.model == model]
        hurt = [_whom(d, several=len(_thresholds(result)) > 1) for d in own if d.verdict == "worse"]
        text = SENTENCES[verdict].format(
            new=_name(model),
            old=_name(result.reference),
            margin=f"{result.margin:g}",
            whom=clip(", ".join(map(sanitize, hurt)), 2 * NAME),
        )
        groups = any(d.population != EVERYONE for d in own)
        each = ", and no worse in any group" if verdict == "better" and groups else ""
        each = ", in no group either" if verdict == "no worse" and groups else each
        yield f"{text}{each} ({_measure(result)})."
        if model in result.worst:
            yield _bound(result.worst[model], ", at no threshold," if len(_thresholds(result)) > 1 else "")


def _thresholds(result: ModelComparison) -> tuple[float, ...]:
    return tuple(cast("tuple[float, ...]", result.settings.get("thresholds", ())))


def _measure(result: ModelComparison) -> str:
    at = " and ".join(f"{t:g}" for t in _thresholds(result))
    return f"{MEASURES[result.measure]} at {at}" if at else MEASURES[result.measure]


def _whom(d: Difference, *, several: bool) -> str:
    return f"{d.population} at {d.threshold:g}" if several else d.population


def _table(result: ModelComparison, head: tuple[str, ...]) -> Iterator[str]:
    models, thresholds = len(result.verdicts) > 1, len(_thresholds(result)) > 1
    rows = [head]
    for d in result.differences:
        who = clip(sanitize(f"{d.model}: {d.population}" if models else d.population), NAME)
        rows.append(_row(d, f"{who} at {d.threshold:g}" if thresholds else who))
    wide = [max(cells(r[i]) for r in rows) for i in range(len(head))]
    for who, *numbers, verdict in rows:
        right = (" " * (w - cells(v)) + v for v, w in zip(numbers, wide[1:], strict=False))
        yield "  ".join((pad(who, wide[0]), *right, verdict)).rstrip()


def _row(d: Difference, who: str) -> tuple[str, ...]:
    return (
        who,
        num.count(d.rows),
        f"{d.reference:.4f}",
        f"{d.value:.4f}",
        f"{d.difference:+.4f}",
        f"{d.interval:+.4f}",
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
    yield f"{stored}, {s['guarantee']}; margin {result.margin:g}, to be fixed beforehand."
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


def _bound(most: float, at: str) -> str:
    """Say of the worst group what its bound says, rounded up."""
    high = math.ceil(1e4 * most - 1e-9) / 1e4
    if high < 0.0:
        return f"In every group{at.replace('no', 'every')} it is better by at least {-high:.4f}."
    return f"In no group{at} is it worse by more than {high:.4f}."
