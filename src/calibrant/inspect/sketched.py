"""What a sketch holds: it has no rows any more, but what they were summed up as."""

from __future__ import annotations

from calibrant.arguments import lacking
from calibrant.data.sketches.sketch import Sketch
from calibrant.data.specs.coding import Coding
from calibrant.data.specs.spec import Variable
from calibrant.inspect.looked import UNLABELLED, Column, Look

SHOWN = 12  # levels named


def looked_at_sketch(sketch: Sketch, typed: str) -> Look:
    """Return what a sketch holds; `typed` is the audit of it."""
    spec = sketch.spec
    rows = sketch.group_levels.sum(axis=(1, 2, 3)) if spec.groupings else ()
    groups, first = [], 0
    for names, size in zip(spec.groupings, spec.sizes, strict=True):
        if len(names) == 1:
            groups.append(_group(spec.by_name[names[0]], [int(n) for n in rows[first : first + size]]))
        first += size
    named = {c.name for c in groups}
    columns = [
        Column(name=spec.label, kind="yes/no", role="label", distinct=2 if 0 < sketch.events < sketch.n else 1),
        Column(name=spec.score, kind="number", role="score"),
        *groups,
        *(_covariate(c) for c in spec.codings if c.name not in named),
        *(Column(name=k, kind="id", role="key") for k in spec.key),
        *([Column(name=spec.cluster, kind="cluster", role="cluster")] if spec.cluster else []),
        *([Column(name=spec.weights, kind="number", role="weights")] if spec.weights else []),
        *(Column(name=n, kind=_left_kind(why), role="left out", why=why) for n, why in spec.left_out if n not in named),
    ]
    event = "1" if spec.positive is None else spec.positive
    return Look(
        name=sketch.name,
        holds="sketch",
        files=tuple(sketch.files[:20]),
        rows=sketch.n,
        rows_read=sketch.n,
        columns=tuple(columns),
        label=spec.label,
        score=spec.score,
        event=event,
        label_values=(
            (event, sketch.events),
            ("others" if spec.positive is not None else "0", sketch.n - sketch.events),
        ),
        scale="probability",
        dropped=_gone(sketch),
        warnings=("one-class",) if sketch.events in (0, sketch.n) else (),
        command=typed,
        settings={
            "seed": spec.seed,
            "blocks": spec.blocks,
            "intersections": tuple(" and ".join(names) for names in spec.groupings if len(names) > 1),
            "tests": spec.sample > 0,
            "covariates": len(spec.codings),
            "fingerprint": sketch.fingerprint,
            "missing": spec.missing,
        },
    )


def _gone(sketch: Sketch) -> dict[str, int]:
    """The rows without label or score, by reason."""
    lack = lacking(sketch.spec.cluster, sketch.spec.weights)
    results = {f"missing {lack}": sketch.dropped, UNLABELLED: sketch.unlabelled}
    return {why: rows for why, rows in results.items() if rows}


def _group(of: Variable, rows: list[int]) -> Column:
    pairs = sorted(zip(of.labels, rows, strict=True), key=lambda pair: -pair[1])
    return Column(
        name=of.name,
        kind="number" if of.kind == "number" else "category" if of.kind == "category" else "date",
        role="group",
        missing=rows[-1],
        distinct=sum(n > 0 for n in rows[:-1]),
        frequent=tuple((v, n) for v, n in pairs if n)[:SHOWN],
    )


def _covariate(of: Coding) -> Column:
    low, high = (of.cells[0], of.cells[-1]) if of.cells and of.kind == "number" else (None, None)
    return Column(
        name=of.name,
        kind=of.kind,
        role="covariate",
        distinct=len(of.levels) or None,
        low=low,
        high=high,
    )


def _left_kind(why: str) -> str:
    return "constant" if "one value" in why else "empty" if "empty" in why else "id" if "identifier" in why else "other"
