"""What the project weighs: counted here, kept in `ledger.toml`, compared by `test_ledger.py`.

    python tests/architecture/ledger.py                      write what has fallen
    python tests/architecture/ledger.py --buys "what for"    write what has risen too, with what people get for it

Counted are lines of each folder, public names, branches on the kind of data, words of each page of the documentation,
widths of certificates on made data (in hundred-thousandths), and, as `.ci/run` measured them, CPU seconds of the quick
tests.
"""

from __future__ import annotations

import argparse
import ast
import datetime
import json
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
LEDGER = HERE / "ledger.toml"
ROOT = HERE.parents[1]
SOURCE = ROOT / "src/calibrant"
# A branch asks what kind of data this is where its condition names one of these: the count of the ledger.
KIND = re.compile(
    r"\b(_?(clusters?|weights?|weighted|weighs|two_way|diagonals|unlabelled|unknown|kept(?= is)|by_clusters)"
    r"|(clusters?|weights?|unlabelled)_\w+|\w+_(clusters?|weights?|unlabelled)"
    r"|Sketch|MulticlassPredictions|Cluster[A-Z]\w+)\b"
)
ROUGH = 0.02  # a count may have fallen by this share, or by 20, before the ledger is to be written anew
FEW = {"lines": 20, "words": 20}  # what a count may stand above the ledger, which stays where it is
Counts = dict[str, dict[str, int]]


def trees() -> Iterator[tuple[Path, ast.Module]]:
    for path in sorted(SOURCE.rglob("*.py")):
        yield path, ast.parse(path.read_text(encoding="utf-8"))


def room(path: Path) -> str:
    """`audit/checks` for a file of it; `calibrant` for those beside the package's face."""
    return path.parent.relative_to(SOURCE).as_posix().replace(".", "calibrant")


def conditions(module: ast.Module) -> Iterator[ast.expr]:
    """What branches ask: of statements, expressions, comprehensions and cases."""
    for node in ast.walk(module):
        match node:
            case ast.If(test=test) | ast.IfExp(test=test) | ast.While(test=test) | ast.Assert(test=test):
                yield test
            case ast.comprehension(ifs=tests):
                yield from tests
            case ast.Match(subject=subject):
                yield subject


def branches(module: ast.Module) -> int:
    """How many conditions ask what kind of data this is."""
    return sum(KIND.search(ast.unparse(c)) is not None for c in conditions(module))


def public_names() -> int:
    """Names that users may import: of the package, and of its public modules."""
    import calibrant

    modules = [getattr(calibrant, m) for m in calibrant._MODULES]
    return len({*calibrant.__all__}) + sum(len(m.__all__) for m in modules)


def words(page: Path) -> int:
    return len(page.read_text(encoding="utf-8").split())


def widths() -> dict[str, int]:
    """Certified ranges of a calibrated score, and of the same rows by clusters of ten: what a slip would widen."""
    import numpy as np

    import calibrant as cal

    rng = np.random.default_rng(0)
    n = 2000
    p = rng.beta(2, 5, n)
    y = (rng.uniform(size=n) < p).astype(int)
    rows = cal.predictions(y, p)
    tenths = cal.predictions(y, np.round(p, 1))
    clusters = cal.predictions(y, p, cluster=np.repeat(np.arange(n // 10), 10))
    off = cal.predictions(y, np.clip(p + 0.1, 0, 1))

    def gap(score: Any, target: Any = None, **more: Any) -> float:
        one = cal.predictions(rng.uniform(size=n) < score, score, {"g": np.full(n, "all")}, **more)
        (result,) = cal.certify.groups(one, by="g", judge="gap", target=target).values()
        return float(result.interval.high - result.interval.low)

    found = {
        "rounded, 2,000 rows": cal.certify.rounded(rows).interval.high,
        "values, 2,000 rows": cal.certify.values(tenths).interval.high,
        "distance, 2,000 rows": cal.certify.distance(rows).interval.high,
        "rounded, 200 clusters of 10": cal.certify.rounded(clusters).interval.high,
        "ten points off less raw_lower": 0.1 - cal.certify.raw_lower(off).interval.low,
        "gap of rows, 2,000 rows": gap(p),
        "gap of rows, 30 expected events": gap(rng.beta(0.6, 40, n)),
        "gap of rows, sharp scores": gap(rng.beta(0.3, 0.3, n)),
        "gap of the population, 2,000 rows": gap(p, "population"),
        "gap of 400 clusters of 5": gap(p, cluster=np.repeat(np.arange(n // 5), 5)),
    }
    return {name: round(1e5 * width) for name, width in found.items()}


@cache
def count() -> Counts:
    """Everything that the ledger holds, but CPU seconds."""
    lines, asks = Counter[str](), Counter[str]()
    for path, module in trees():
        lines[room(path)] += path.read_text(encoding="utf-8").count("\n")
        asks[room(path)] += branches(module)
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "AGENTS.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return {
        "lines": dict(sorted(lines.items())),
        "public": {"names": public_names()},
        "branches": {name: n for name, n in sorted(asks.items()) if n},
        "words": {p.relative_to(ROOT).as_posix(): words(p) for p in pages},
        "widths": widths(),
    }


def held() -> dict[str, dict[str, int]]:
    return {k: v for k, v in tomllib.loads(LEDGER.read_text(encoding="utf-8")).items() if isinstance(v, dict)}


def bought() -> list[dict[str, str | int]]:
    """What each rise buys, oldest first."""
    found: list[dict[str, str | int]] = tomllib.loads(LEDGER.read_text(encoding="utf-8")).get("bought", [])
    return found


def risen(now: Mapping[str, Mapping[str, int]], before: Mapping[str, Mapping[str, int]]) -> dict[str, tuple[int, int]]:
    """Counts that are larger than the ledger's, as (before, now), by `part.name`; a few lines or words are none."""
    return {
        f"{part}.{name}": (before.get(part, {}).get(name, 0), n)
        for part, counts in now.items()
        for name, n in counts.items()
        if n > before.get(part, {}).get(name, 0) + FEW.get(part, 0)
    }


def behind(now: Mapping[str, Mapping[str, int]], before: Mapping[str, Mapping[str, int]]) -> list[str]:
    """Counts that have fallen so far that the ledger no longer holds them down."""
    return [
        f"{part}.{name}"
        for part, counts in before.items()
        if part in now
        for name, n in counts.items()
        if n - now[part].get(name, 0) > max(20, ROUGH * n) or (n and name not in now[part])
    ]


def written(counts: Counts, purchases: list[dict[str, str | int]]) -> str:
    """The ledger as text."""
    out = ["# What the project weighs: see ledger.py. A number that rises needs an entry under [[bought]], at the end,"]
    out += ["# which says what people get for it."]
    for part, values in counts.items():
        total = f"  # {sum(values.values()):,} in all" if part in ("lines", "branches", "words") else ""
        out += ["", f"[{part}]{total}", *(f"{json.dumps(name)} = {n}" for name, n in values.items())]
    for entry in purchases:
        out += ["", "[[bought]]", *(f"{k} = {json.dumps(v, ensure_ascii=False)}" for k, v in entry.items())]
    return "\n".join(out) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--buys", help="what people get for the numbers that have risen")
    parser.add_argument("--cpu", type=int, help="CPU seconds of the quick tests, as .ci/run prints them")
    args = parser.parse_args()
    before, now = held(), dict(count())
    now["cpu"] = {"quick": args.cpu} if args.cpu else before.get("cpu", {})
    up = risen(now, before)
    if up and not args.buys:
        for what, (old, new) in up.items():
            print(f"{what} rises from {old:,} to {new:,}", file=sys.stderr)
        print('say what people get for it: --buys "..."', file=sys.stderr)
        return 1
    entry: dict[str, str | int] = {
        "date": datetime.date.today().isoformat(),
        "buys": args.buys or "",
        "rises": ", ".join(f"{what} {old} to {new}" for what, (old, new) in up.items()),
    }
    LEDGER.write_text(written(now, [*bought(), *([entry] if up else [])]), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
