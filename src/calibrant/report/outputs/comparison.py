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
from calibrant.visible import visible

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


def lines(found: ModelComparison) -> str:
    """Return a verdict on each model, the table of differences, and what they rest on."""
    other = next(iter(found.verdicts)) if len(found.verdicts) == 1 else "other"
    head = ("", "rows", _name(found.reference), _name(other), "worse by", "certified", "verdict")
    return "\n".join((*_said(found), "", *_table(found, head), "", *_rests(found)))


KINDS: Mapping[Decision, str] = {"better": "met", "no worse": "met", "worse": "broken", "undecided": "undecided"}


def content(found: ModelComparison, out: str) -> bytes:
    """Return a comparison in the format of a file's ending: a page with its verdicts, or the table of differences."""
    if Path(out).suffix.lower() != ".html":
        return results.content(found.table, out)
    title = " or ".join((found.reference, *found.verdicts))
    page = results.PAGE.format(title=escape(visible(title)), inside=notebook.drawn([*_drawings(found)]))
    return page.encode()


def _drawings(found: ModelComparison) -> Iterator[Drawing]:
    """Yield each model's verdict, with a picture of every difference and its certified range, and what all rest on."""
    ends = [abs(v) for d in found.differences for v in (d.interval.low, d.interval.high)]
    top = 100.0 * max(found.margin * 1.25, *ends)
    for model in found.verdicts:
        said = [*_said(found, model)]
        words = f"{num.MINUS}{top / 100:.2g} better … worse +{top / 100:.2g}"
        head = ("", words, "verdict", "worse by", "certified", "rows", _name(found.reference), _name(model))
        rows = tuple(_cells(d, top, found.margin) for d in found.differences if d.model == model)
        yield Drawing(said[0], (), " ".join(said[1:]), head, rows)
    bars = "Bars are certified ranges, dots what these rows show; left of the middle the model is better."
    edges = f" Thin lines: {found.margin:g} better, and {found.margin:g} worse, which is the margin."
    yield Drawing("What it rests on", (), " ".join((bars + edges * (found.margin > 0.0), *_rests(found))))


def _cells(d: Difference, top: float, margin: float) -> tuple[str, ...]:
    population = clip(visible(d.population), NAME)
    at = population if d.threshold is None else f"{population} at {d.threshold:g}"
    who, rows, old, new, worse, certified, verdict = _row(d, at)
    picture = svg.signed_track(d.interval.low, d.difference, d.interval.high, top, margin, KINDS[d.verdict])
    told = (v.replace("-", num.MINUS).replace(" ", "\N{NO-BREAK SPACE}") for v in (verdict, worse, certified, rows))
    return (who, picture, *told, old, new)


def _said(found: ModelComparison, *models: str) -> Iterator[str]:
    for model in models or found.verdicts:
        verdict = found.verdicts[model]
        own = [d for d in found.differences if d.model == model]
        hurt = [_whom(d, several=len(_thresholds(found)) > 1) for d in own if d.verdict == "worse"]
        text = SENTENCES[verdict].format(
            new=_name(model),
            old=_name(found.reference),
            margin=f"{found.margin:g}",
            whom=clip(", ".join(map(visible, hurt)), 2 * NAME),
        )
        groups = any(d.population != EVERYONE for d in own)
        each = ", and no worse in any group" if verdict == "better" and groups else ""
        each = ", in no group either" if verdict == "no worse" and groups else each
        yield f"{text}{each} ({_measure(found)})."
        if model in found.worst:
            yield _bound(found.worst[model], ", at no threshold," if len(_thresholds(found)) > 1 else "")


def _thresholds(found: ModelComparison) -> tuple[float, ...]:
    return tuple(cast("tuple[float, ...]", found.settings.get("thresholds", ())))


def _measure(found: ModelComparison) -> str:
    at = " and ".join(f"{t:g}" for t in _thresholds(found))
    return f"{MEASURES[found.measure]} at {at}" if at else MEASURES[found.measure]


def _whom(d: Difference, *, several: bool) -> str:
    return f"{d.population} at {d.threshold:g}" if several else d.population


def _table(found: ModelComparison, head: tuple[str, ...]) -> Iterator[str]:
    models, thresholds = len(found.verdicts) > 1, len(_thresholds(found)) > 1
    rows = [head]
    for d in found.differences:
        who = clip(visible(f"{d.model}: {d.population}" if models else d.population), NAME)
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


def _rests(found: ModelComparison) -> Iterator[str]:
    s, first = found.settings, found.differences[0].interval
    held = "Every verdict at once" if len(found.differences) > 1 else "The verdict"
    if "audits" in s:
        end = cast("float", s["each_end"])
        held = f"Everyone's ranges hold at level {first.level:.4g}, each bound separately at {end:.4g}"
        if any(d.population != EVERYONE for d in found.differences):
            held += f"; all groups' simultaneously at {end:.4g}"
        yield "Each end from two audits: raw score from below, rounded score from above. Rows of the audits may differ."
        for model, names in cast("Mapping[str, tuple[str, ...]]", s["unmatched"]).items():
            if names:
                yield clip(f"Not in both audits: {', '.join(map(visible, names))} ({visible(model)}).", 3 * NAME)
    else:
        held += f" at level {first.level:g}"
    yield f"{held}, {s['guarantee']}; margin {found.margin:g}, to be fixed beforehand."
    if found.measure == "auroc":
        yield "Worse by: how much smaller the AUROC is."
    if found.measure == "net_benefit":
        yield "Net benefit in true positives a row, less false ones at the threshold's odds; worse by: what is lost."
    if "clip" in s:
        kept = cast("float", s["clip"])
        yield f"Scores are kept within {kept:g} and {1.0 - kept:g}."
    about = TARGETS[str(s["target"])] if "target" in s else ""
    yield f"{about}Assumes {s['assumes']}."


def _name(model: str) -> str:
    return clip(visible(model), NAME)


def _bound(most: float, at: str) -> str:
    """Say of the worst group what its bound says, rounded up."""
    high = math.ceil(1e4 * most - 1e-9) / 1e4
    if high < 0.0:
        return f"In every group{at.replace('no', 'every')} it is better by at least {-high:.4f}."
    return f"In no group{at} is it worse by more than {high:.4f}."
