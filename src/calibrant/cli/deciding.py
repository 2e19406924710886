"""The commands about decisions: accept."""

from __future__ import annotations

import json
from argparse import Namespace

from calibrant.arguments import COMMAND
from calibrant.certify import accept as certified
from calibrant.certify import rows_to_accept
from calibrant.cli.commands import given, source
from calibrant.data.predictions import Predictions
from calibrant.data.read import in_memory, summarised
from calibrant.data.reading import FORM, OF_ROWS, Reading
from calibrant.data.sketches.sketch import Sketch
from calibrant.data.targets import checked_targets, written
from calibrant.diagnose import acceptance_curve
from calibrant.errors import BadInput
from calibrant.report.outputs import acceptance, results

PLAN = ("share", "error", "power")
NONE, WITHIN = 3, 0  # exit status


def accept(a: Namespace) -> int:
    """Print what may be accepted, and write the curve; or plan how many rows a wish takes."""
    if a.error is not None:
        return _planned(a)
    if said := [name for name in ("share", "power") if getattr(a, name) is not None]:
        raise BadInput(f"{COMMAND.says(*said)} plans: name the errors to expect with --error, and no data")
    files = given(a)
    if a.out is not None:
        checked_targets({"--out": results.checked(a.out, True)}, files)
    data = _read(a)
    how = {"risk": a.risk, "by": a.by, "end": a.end, "target": a.target, "alpha": a.alpha, "seed": a.seed}
    found = certified(data, **how)
    if a.out is not None:
        written(a.out, results.content(acceptance_curve(data, **how), a.out))
    print(json.dumps(found.to_dict(), sort_keys=True, indent=1) if a.json else acceptance.lines(found))
    return WITHIN if found.low > 0.0 else NONE


def _planned(a: Namespace) -> int:
    if a.files or a.sql or a.out:
        raise BadInput("--error plans rows, and reads none: leave the data and --out out")
    wish = {name: v for name in PLAN if (v := getattr(a, name)) is not None}
    found = rows_to_accept(risk=a.risk, alpha=a.alpha, **wish)
    print(json.dumps(found.to_dict(), sort_keys=True, indent=1) if a.json else acceptance.plan_lines(found))
    return WITHIN


def _read(a: Namespace) -> Predictions | Sketch:
    data = source(given(a), a.allow_same)
    how = {k: getattr(a, k) for k in (*OF_ROWS, *FORM, "allow_same") if hasattr(a, k)}
    if isinstance(data, Sketch):
        return summarised(data, Reading.of(asker=COMMAND, **how))
    return in_memory(data, Reading.of(asker=COMMAND, by=a.by, variables=(), **how).named())
