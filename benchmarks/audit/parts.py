"""Where the time of an audit goes: by question of the audit, and by function.

    python benchmarks/audit/parts.py questions|functions|run NAME FOLDER

is what `run.py profile` runs in a process of its own; NAME is ``example``, ``wide`` or a number of rows.
"""

from __future__ import annotations

import cProfile
import pstats
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from logs import written

import calibrant as cal

MOST = 5  # parts that are named


def audited(name: str, folder: Path) -> tuple[cal.AuditRecord, str]:
    """Return the record and page of a log, as the command makes them."""
    from calibrant.report import html

    if name == "example":
        from calibrant.data import EMPLOYMENT, EMPLOYMENT_BY, employment_path

        record = cal.audit(str(employment_path()), by=EMPLOYMENT_BY, variables="*", limit=0.014, **EMPLOYMENT)
    else:
        by = ("c1", "c2") if name == "wide" else ("site", "sex")
        record = cal.audit(str(written(folder, name)), label="y", score="p", by=by, variables="*")
    return record, html.render(record)


def questions(name: str, folder: Path) -> Mapping[str, float]:
    """Return CPU seconds by question; what is not one: imports and reading, the page."""
    import importlib

    from calibrant.audit import checks

    run = importlib.import_module("calibrant.audit.run")
    spent: dict[str, float] = defaultdict(float)

    def timed(of: Callable[..., Any], part: str) -> Callable[..., Any]:
        def call(*given: Any, **named: Any) -> Any:
            start = time.process_time()
            try:
                return of(*given, **named)
            finally:
                spent[part] += time.process_time() - start

        return call

    asked = tuple(replace(q, make=timed(q.make, q.code)) for q in checks.questions())
    vars(run)["questions"] = lambda: asked
    vars(run)["summarised"] = timed(run.summarised, "reading the rows, twice")
    from calibrant.report import html

    vars(html)["render"] = timed(html.render, "the page")
    audited(name, folder)
    spent["Python, imports and the rest"] = time.process_time() - sum(spent.values())
    return spent


def functions(name: str, folder: Path) -> Mapping[str, float]:
    """Return seconds by function of calibrant, what it calls of libraries included, not what calibrant's own ones take.

    Seconds of a library's function are dealt to its callers by the share of its time that each call took.
    """
    profile = cProfile.Profile(time.process_time)
    profile.runcall(audited, name, folder)
    stats = pstats.Stats(profile).stats  # type: ignore[attr-defined]
    own: dict[tuple[str, int, str], float] = defaultdict(float)

    def dealt(key: tuple[str, int, str], seconds: float, depth: int) -> None:
        callers = stats[key][4] if key in stats else {}
        total = sum(c[3] for c in callers.values())
        if "/calibrant/" in key[0] or not callers or not total or depth > 12 or seconds < 1e-3:
            own[key] += seconds
            return
        for caller, c in callers.items():
            if c[3]:
                dealt(caller, seconds * c[3] / total, depth + 1)

    for key, (_, _, seconds, _, _) in stats.items():
        dealt(key, seconds, 0)
    named: dict[str, float] = defaultdict(float)
    for (file, _, function), seconds in own.items():
        place = file.rpartition("/calibrant/")[2] if "/calibrant/" in file else Path(file).name
        named[f"`{place}` {function}" if "/calibrant/" in file else "Python and imports"] += seconds
    return named


def main() -> None:
    """Print parts, largest first, as lines of a table."""
    what, name, folder = sys.argv[1], sys.argv[2], Path(sys.argv[3])
    if what == "run":
        audited(name, folder)
        return
    spent = {"questions": questions, "functions": functions}[what](name, folder)
    total, known = sum(spent.values()), sorted(spent.items(), key=lambda item: -item[1])
    for part, seconds in known[:MOST]:
        print(f"| {part} | {seconds:.2f} | {100 * seconds / total:.0f} % |")
    print(f"| all | {total:.2f} | |")


if __name__ == "__main__":
    main()
