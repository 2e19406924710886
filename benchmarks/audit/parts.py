"""Where the time of an audit goes: by question of the audit, and by function.

    python benchmarks/audit/parts.py questions|run NAME FOLDER

is what `run.py profile` runs in a process of its own; NAME is ``example``, ``wide`` or a number of rows.
"""

from __future__ import annotations

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

    asked = tuple(replace(q, make=timed(q.make, q.code)) for q in checks.all_checks())
    vars(run)["questions"] = lambda: asked
    vars(run)["summarised"] = timed(run.summarised, "reading the rows, twice")
    from calibrant.report import html

    vars(html)["render"] = timed(html.render, "the page")
    audited(name, folder)
    spent["Python, imports and the rest"] = time.process_time() - sum(spent.values())
    return spent


def main() -> None:
    """Print parts, largest first, as lines of a table."""
    what, name, folder = sys.argv[1], sys.argv[2], Path(sys.argv[3])
    if what == "run":
        audited(name, folder)
        return
    spent = questions(name, folder)
    total, known = sum(spent.values()), sorted(spent.items(), key=lambda item: -item[1])
    for part, seconds in known[:MOST]:
        print(f"| {part} | {seconds:.2f} | {100 * seconds / total:.0f} % |")
    print(f"| all | {total:.2f} | |")


if __name__ == "__main__":
    main()
