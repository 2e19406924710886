"""The command that looks at data before anything is computed."""

from __future__ import annotations

import json
from argparse import Namespace
from dataclasses import replace

from calibrant.cli.commands import given, reading, source
from calibrant.data.sketches.sketch import Sketch
from calibrant.look.command import command
from calibrant.look.run import looked
from calibrant.report.looked import written

FINE, IN_THE_WAY = 0, 2


def look(a: Namespace) -> int:
    """Print what files, a query or sketches hold, and the audit to run; say by exit status whether it would run."""
    asked = reading(a)
    data = source(given(a), a.allow_same)
    seen = looked(data, asked)
    if isinstance(data, Sketch):
        seen = replace(seen, command=command(a.files, asked))
    print(json.dumps(seen.to_dict(), sort_keys=True, indent=1) if a.json else written(seen))
    return IN_THE_WAY if seen.refusals else FINE
