"""Names that break out, tried on every output for programs, and run in engines: what is held, what is refused.

    python benchmarks/attack/names.py [SEED] [MORE] [STEP]

Each name is at once a level, a column, the event, the outcome and the name of the data. MORE names (default 8) are
drawn from pieces of the others and from all of Unicode. Of all, every STEP-th (default 1) is tried. An output is *the
same* where what is printed is the file byte for byte or holds every name as it is; a program is *the same* where an
engine repairs every row as Python does, to 1e-12; a table, a workbook, a page and a PDF are where each name is read
back as text. *Refused* is one line and exit 2.

What `names.py` printed (64 names, 149 s of CPU time):

| output | tried | the same | refused | fell |
|---|--:|--:|--:|--:|
| CSV that a page saves | 60 | 60 | 0 | 0 |
| PDF | 60 | 60 | 0 | 0 |
| accept --json | 64 | 60 | 4 | 0 |
| apply -o javascript: | 64 | 62 | 2 | 0 |
| apply -o sql: | 64 | 60 | 4 | 0 |
| audit -o html: | 8 | 7 | 1 | 0 |
| audit -o json: | 8 | 8 | 0 | 0 |
| audit -o junit: | 8 | 7 | 1 | 0 |
| audit -o markdown: | 8 | 8 | 0 | 0 |
| audit -o metrics: | 8 | 7 | 1 | 0 |
| audit -o model-card: | 8 | 8 | 0 | 0 |
| audit -o summary: | 8 | 7 | 1 | 0 |
| audit -o tripod: | 8 | 8 | 0 | 0 |
| certify --json | 64 | 60 | 4 | 0 |
| compare --json | 64 | 60 | 4 | 0 |
| detect --json | 64 | 62 | 2 | 0 |
| diagnose --json | 64 | 53 | 11 | 0 |
| grades --json | 64 | 60 | 4 | 0 |
| look --json | 64 | 60 | 4 | 0 |
| measure --json | 64 | 60 | 4 | 0 |
| papers --json | 64 | 62 | 2 | 0 |
| plan --json | 64 | 62 | 2 | 0 |
| repair --json | 64 | 60 | 4 | 0 |
| report -o html: | 64 | 62 | 2 | 0 |
| report -o json: | 64 | 62 | 2 | 0 |
| report -o junit: | 64 | 62 | 2 | 0 |
| report -o markdown: | 64 | 62 | 2 | 0 |
| report -o metrics: | 64 | 62 | 2 | 0 |
| report -o model-card: | 64 | 62 | 2 | 0 |
| report -o summary: | 64 | 62 | 2 | 0 |
| report -o tripod: | 64 | 62 | 2 | 0 |
| run in duckdb | 64 | 60 | 4 | 0 |
| run in node | 64 | 62 | 2 | 0 |
| run in postgres | 64 | 60 | 4 | 0 |
| run in sqlite | 64 | 60 | 4 | 0 |
| tables of a folder | 64 | 62 | 2 | 0 |
| weights --json | 64 | 60 | 4 | 0 |
| workbook of grades | 64 | 60 | 4 | 0 |
| all | 1,976 | 1,881 | 95 | 0 |
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests"))
import engines  # noqa: E402
import hostile_names  # noqa: E402
from calibrant.errors import BadInput  # noqa: E402
from hostile_names import CHECKS, NAMES, RECORD, Refused, Scenario  # noqa: E402

Check = Callable[[Scenario], None]
CLOSE = 1e-12
PLAIN = "plain"
TOGETHER = 5  # pages, each with a fifth of the names: a browser takes seconds to start
SAME, REFUSED, FELL = "the same", "refused", "fell"


def drawn(seed: int, count: int) -> dict[str, str]:
    """Names of pieces of others, and of characters of all of Unicode."""
    rng, out = np.random.default_rng([seed, 40]), {}
    pieces = [*NAMES.values(), *"=+-@'\"\\`${}<>&%;,\t\r\n\0", "\x1b", "\u202e", "\u2028"]
    for k in range(count):
        parts = [pieces[i][:12] for i in rng.integers(0, len(pieces), rng.integers(1, 8))]
        parts += [chr(c) for c in rng.integers(32, 0x10FFFF, 4)]
        rng.shuffle(parts)
        out[f"drawn {k + 1}"] = "".join(parts)
    return out


def tries(number: int, postgres: Callable[[str], str] | None) -> Iterator[tuple[str, Check]]:
    """What one name is tried on; of the outputs of an audit another one for each name, and all of its record."""
    turn = list(RECORD)[number % len(RECORD)]
    for (command, name), check in CHECKS.items():
        if command != "audit" or name == turn:
            yield (
                f"{command} --json"
                if name == "json" and command not in ("audit", "report")
                else f"{command} -o {name}:",
                check,
            )
    for engine in ("duckdb", "sqlite", "node", *(["postgres"] if postgres else [])):
        yield f"run in {engine}", partial(repaired, engine=engine, postgres=postgres)
    yield "tables of a folder", hostile_names.cells_read_back
    yield "workbook of grades", hostile_names.workbook_read_back


def repaired(s: Scenario, engine: str, postgres: Callable[[str], str] | None) -> None:
    worst = hostile_names.worst(s, engine, postgres)
    assert worst <= CLOSE, worst


def downloads(s: Scenario, browser: str, modules: str) -> None:
    """What a page saves in a browser."""
    page, script = s.folder / "page.html", ROOT / "tests" / "browser" / "downloads.cjs"
    page.write_text(hostile_names.page(s), encoding="utf-8")
    command = ["node", str(script), modules, browser, str(s.folder), str(page), "CSV"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=True, encoding="utf-8")
    reported = json.loads(done.stdout)
    assert not reported["said"], reported["said"]
    assert reported["title"] != "owned"
    hostile_names.downloads_read_back(s, [s.folder / f["name"] for f in reported["files"]])


def outcome(check: Check, s: Scenario) -> tuple[str, str]:
    """How one output ends, and what it says."""
    try:
        check(s)
    except Refused as e:
        return REFUSED, str(e)
    except Exception as e:
        return FELL, f"{type(e).__name__}: {str(e)[:300]!r}"
    return SAME, ""


def scenario(folder: Path, name: str) -> tuple[Scenario, str]:
    """Rows called so, and why there are none; text that no table can hold is a column asked for on the command line."""
    s = Scenario(folder, [name, PLAIN], name, name)
    try:
        s.write()
    except (Refused, BadInput) as e:
        return s, str(e)
    except UnicodeEncodeError:
        plain = Scenario(folder, [PLAIN, "b"], "g", "yes")
        plain.write()
        return Scenario(folder, plain.levels, name, "yes"), ""
    return s, ""


def batches(names: Mapping[str, str], count: dict[str, Counter[str]], fallen: list[str]) -> None:
    """Pages and PDFs of many names at once, where there is a browser."""
    browser = next(filter(None, map(shutil.which, ("chromium-headless-shell", "chromium", "google-chrome"))), None)
    modules = Path(os.environ.get("CALIBRANT_NODE_MODULES", "")) / "node_modules"
    texts = [text for name, text in names.items() if name not in hostile_names.REFUSED]
    for k in range(TOGETHER):
        levels = [t for t in texts[k::TOGETHER] if storable(t)]
        with tempfile.TemporaryDirectory() as folder:
            s = Scenario(Path(folder), levels, levels[0], NAMES["end of a script"])
            s.write()
            ways: dict[str, Check] = {"PDF": hostile_names.pdf_read_back} if browser else {}
            if browser and modules.is_dir():
                ways["CSV that a page saves"] = partial(downloads, browser=browser, modules=str(modules))
            for what, check in ways.items():
                how, why = outcome(check, s)
                count[what][how] += len(levels)
                if how == FELL:
                    fallen.append(f"{what}, page {k + 1}: {why}")


def storable(text: str) -> bool:
    """Whether text can be a level: it has whole characters, and not too many."""
    with contextlib.suppress(UnicodeEncodeError):
        return 0 < len(text.encode()) < 1000
    return False


def main(seed: int, more: int, step: int) -> int:
    names = dict([*NAMES.items(), *drawn(seed, more).items()][::step])
    count, fallen = defaultdict[str, Counter[str]](Counter), list[str]()
    why = engines.no_postgres()
    with contextlib.nullcontext() if why else engines.postgres() as postgres:
        for number, (called, name) in enumerate(names.items()):
            with tempfile.TemporaryDirectory() as folder:
                s, refused = scenario(Path(folder), name)
                for what, check in tries(number, postgres):
                    how, says = (REFUSED, refused) if refused else outcome(check, s)
                    count[what][how] += 1
                    if how == FELL:
                        fallen.append(f"{what}, {called}: {says}")
    batches(names, count, fallen)
    print(f"{len(names)} names\n\n| output | tried | {SAME} | {REFUSED} | {FELL} |\n|---|--:|--:|--:|--:|")
    for what, by in sorted(count.items()):
        print(f"| {what} | {by.total()} | {by[SAME]} | {by[REFUSED]} | {by[FELL]} |")
    whole = sum(count.values(), Counter())
    print(f"| all | {whole.total():,} | {whole[SAME]:,} | {whole[REFUSED]:,} | {whole[FELL]:,} |")
    for line in [*fallen, *([why] if why else [])]:
        print(line, file=sys.stderr)
    print(f"{time.process_time():.0f} s of CPU time", file=sys.stderr)
    return 1 if fallen else 0


if __name__ == "__main__":
    inputs = [int(a) for a in sys.argv[1:]]
    sys.exit(main(*inputs, *(0, 8, 1)[len(inputs) :]))
