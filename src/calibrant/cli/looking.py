"""The commands before anything is computed: what data hold, and which command answers which question."""

from __future__ import annotations

import json
from argparse import Namespace
from dataclasses import replace
from importlib.resources import files

from calibrant.cli.commands import inputs_of, reading, source
from calibrant.data.sketches.sketch import Sketch
from calibrant.inspect.command import of_sketch
from calibrant.inspect.run import looked
from calibrant.report.looked import written

FINE, IN_THE_WAY = 0, 2


def look(a: Namespace) -> int:
    """Print what files, a query or sketches hold, and the audit to run; say by exit status whether it would run."""
    options = reading(a)
    data = source(inputs_of(a), a.allow_same)
    seen = looked(data, options)
    if isinstance(data, Sketch):
        seen = replace(seen, command=of_sketch(a.files))
    print(json.dumps(seen.to_dict(), sort_keys=True, indent=1) if a.json else written(seen))
    return IN_THE_WAY if seen.refusals else FINE


def guide(_: Namespace) -> int:
    """Print which command answers which question, how to read a verdict, and what never to claim."""
    print(files("calibrant.cli").joinpath("guide.md").read_text(encoding="utf-8"), end="")
    return FINE
