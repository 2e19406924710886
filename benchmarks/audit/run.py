"""CPU seconds and memory of whole audits: the table of goals, other packages beside it, and where the time goes.

    python benchmarks/audit/run.py                                # the table, some 3 minutes of CPU
    python benchmarks/audit/run.py --before 32c1a69               # each line also of another revision, in turn
    python benchmarks/audit/run.py --lines 200,2000,example,page --before 32c1a69
    python benchmarks/audit/run.py peers [--rows 2000,20000]      # other packages, in a throw-away environment
    python benchmarks/audit/run.py profile [--pictures FOLDER]  # where the time goes; needs py-spy

Each measurement is a process of its own; CPU seconds are of user and system, all threads, interpreter and imports
included. Processes of up to 6 CPU seconds are run three times and the least counts. Every part prints Markdown as it
goes; progress is on standard error.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import venv
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from icicle import own, picture, summed
from peers import BY, OURS, PEERS
from timed import ROOT, Cost, Tree, checkouts, cold, least, once

EARLIER = "32c1a69"  # the revision whose figures the goals were set against


class Line(NamedTuple):
    """One line: what it is, what an earlier machine took for whole and quick, and the goals there."""

    name: str
    title: str
    whole: tuple[float, float] | None
    quick: tuple[float, float] | None


LINES = (
    Line("200", "200", (35.5, 3), (5.6, 2)),
    Line("2000", "2,000", (47.4, 4), (5.4, 2)),
    Line("20000", "20,000", (21.5, 6), (5.1, 2)),
    Line("200000", "200,000", (35.1, 12), (5.8, 2.5)),
    Line("example", "277,677 (example, 62 groups)", (46.6, 20), (float("nan"), 3.5)),
    Line("2000000", "2,000,000", (42.3, 20), (6.2, 4)),
    Line("wide", "60,000 x 42 columns (earlier: wall time, credit data)", (472.0, 60), (float("nan"), 6)),
    Line("cold", "2,000, first run after install (cold)", (58.5, 12), (10.5, 6)),
    Line("page", "the example's page from its record", (2.5, 0.5), None),
)
MOST = 5  # parts that are named
PEER_PATIENCE = 120.0  # CPU seconds of a package
COMPILED = (("2000", False), ("200000", False), ("example", True))  # runs before anything is timed, quick or not
UNWARMED = ("cold", "page")  # lines that no machine code makes shorter
SLOW_BEFORE = ("wide",)  # left out of --before unless named: minutes
HEAD = (
    "| rows | run | earlier machine, CPU-s | goal there | before, CPU-s | now, CPU-s | now / before | before, MB | "
    "now, MB |\n|---|---|--:|--:|--:|--:|--:|--:|--:|"
)


def written(folder: Path, name: str) -> Path:
    """Return the file of a log, made by a process of its own: a child's peak of memory is at least its parent's."""
    path = folder / f"{name}.csv"
    if not path.exists():
        subprocess.run([sys.executable, str(Path(__file__).with_name("logs.py")), str(folder), name], check=True)
    return path


def words(name: str, folder: Path, quick: bool) -> list[str]:
    """Return the words of the command of a line."""
    more = ["--quick"] if quick else []
    if name == "example":
        return ["example", *more, "-o", "page.html", "-o", "example.json"]
    by = ("c1", "c2") if name == "wide" else BY
    path = written(folder, "2000" if name == "cold" else name)
    columns = ["--label", "y", "--score", "p", "--by", ",".join(by)]
    return ["audit", str(path), *columns, *more, "-o", "page.html"]


def measured(line: Line, tree: Tree, folder: Path, quick: bool) -> Cost:
    """Return what a line takes in a checkout."""
    place = folder / tree.name
    place.mkdir(exist_ok=True)
    stated = "quick" if quick else "whole"
    print(f"{line.title}, {stated}, {tree.name} ...", file=sys.stderr, end=" ", flush=True)
    if line.name == "page":
        kept = place / "example.json"
        if not kept.exists():
            once(tree.command(words("example", folder, quick=True)), tree.environment(), place)
        reported = ["report", str(kept), "-o", "again.html"]
        cost = least(tree.command(reported), tree.environment(), place)
    elif line.name == "cold":
        cost = cold(tree, words("cold", folder, quick), place)
    else:
        cost = least(tree.command(words(line.name, folder, quick)), tree.environment(), place)
    print(cost.failed or f"{cost.cpu:.2f} CPU-s, {cost.peak:.0f} MB", file=sys.stderr, flush=True)
    return cost


def number(value: float, digits: int = 1) -> str:
    """Write a number; nothing where there is none."""
    return "" if value != value else f"{value:,.{digits}f}"


def row(line: Line, quick: bool, costs: Mapping[str, Cost]) -> str:
    """Return a line of the table."""
    then, goal = (line.quick if quick else line.whole) or (float("nan"), float("nan"))
    now, before = costs["now"], costs.get("before")
    reported = [
        cost.failed or number(cost.cpu, 2 if cost.cpu < 10 else 1) if cost else "not run" for cost in (before, now)
    ]
    ratio = f"{now.cpu / before.cpu:.2f}" if before and not before.failed and not now.failed else ""
    memory = ["" if cost is None else f"{cost.peak:.0f}" for cost in (before, now)]
    run = "quick" if quick else "page" if line.name == "page" else "whole"
    return f"| {' | '.join([line.title, run, number(then), number(goal), *reported, ratio, *memory])} |"


def table(lines: Sequence[Line], before: str, named: bool, folder: Path) -> None:
    """Print the table: lines one after the other, of each the checkouts in turn."""
    with checkouts(before, folder) as trees:
        for tree in trees:  # machine code is compiled and kept before anything is timed
            (folder / tree.name).mkdir(exist_ok=True)
            print(f"compiling, {tree.name} ...", file=sys.stderr, flush=True)
            for name, quick in COMPILED if any(x.name not in UNWARMED for x in lines) else ():
                reported = words(name, folder, quick)
                once(tree.command(reported), tree.environment(), folder / tree.name)
        print(HEAD, flush=True)
        for line in lines:
            for quick in (False, True) if line.quick else (False,):
                costs = {
                    tree.name: measured(line, tree, folder, quick)
                    for tree in trees
                    if tree.name == "now" or named or line.name not in SLOW_BEFORE or quick
                }
                print(row(line, quick, costs), flush=True)


# ---- other packages ----


def environment(place: Path) -> dict[str, str]:
    """Make an environment that holds the other packages, unless it is there; return which could not be installed."""
    missing: dict[str, str] = {}
    if not (place / "bin" / "python").exists():
        venv.create(place, with_pip=True)
    pip = [str(place / "bin" / "python"), "-m", "pip", "--quiet", "--disable-pip-version-check", "install"]
    wanted = {"": "pandas matplotlib", **{n: p.package for n, p in PEERS.items()}}
    if not subprocess.run([*pip, *" ".join(wanted.values()).split()], capture_output=True, check=False).returncode:
        return missing
    for name, package in wanted.items():  # one by one, to tell which cannot
        done = subprocess.run([*pip, *package.split()], capture_output=True, text=True, check=False)
        if done.returncode:
            missing[name] = next((x for x in reversed(done.stderr.splitlines()) if "ERROR" in x), "pip failed")[:120]
    return missing


def versions(place: Path) -> dict[str, str]:
    """Return the versions of the other packages."""
    code = "import json, sys\nfrom importlib.metadata import version as v\n"
    code += "print(json.dumps({p: v(p) for p in sys.argv[1:]}))"
    packages = [p.package for p in PEERS.values()]
    done = subprocess.run(
        [str(place / "bin" / "python"), "-c", code, *packages], capture_output=True, text=True, check=False
    )
    return dict(json.loads(done.stdout)) if not done.returncode else {}


def row_attributes(rows: Sequence[int], packages: Sequence[str], place: Path, folder: Path) -> None:
    """Print what each package computes, and then its time beside ours in the same run."""
    print(f"installing into {place} ...", file=sys.stderr, flush=True)
    missing, known = environment(place), versions(place)
    print("| package | computes | does not |\n|---|---|---|")
    for name, peer in PEERS.items():
        lacks = f"could not be installed: {missing[name]}" if name in missing else peer.lacks
        print(f"| {name} {known.get(peer.package, '')} | {peer.does} | {lacks} |")
    print(
        "\n| rows | package | process, CPU-s | of it the call | peak MB | whole audit / process | "
        "quick audit / process |\n|--:|---|--:|--:|--:|--:|--:|",
        flush=True,
    )
    with checkouts("", folder) as (tree,):
        script = str(Path(__file__).with_name("peers.py"))
        pythons = dict.fromkeys(PEERS, str(place / "bin" / "python")) | dict.fromkeys(OURS, tree.python)
        for n in sorted(rows):
            costs = {}
            for name in OURS:  # compiled before anything is timed
                once([tree.python, script, name, str(written(folder, str(n)))], tree.environment(), folder)
            for name in [*OURS, *(p for p in packages if p not in missing)]:
                print(f"{n:,} rows, {name} ...", file=sys.stderr, flush=True)
                settings = tree.environment()
                if name not in OURS:
                    settings.pop("PYTHONPATH")
                reported = [pythons[name], script, name, str(written(folder, str(n)))]
                costs[name] = least(reported, settings, folder, PEER_PATIENCE)
                if "ended" in costs[name].failed:
                    missing[name] = costs[name].failed  # more rows would only take longer
                print(peer_row(n, name, costs), flush=True)


def peer_row(n: int, name: str, costs: Mapping[str, Cost]) -> str:
    """Return a line of the table of packages."""
    cost = costs[name]
    if cost.failed:
        return f"| {n:,} | {name} | {cost.failed} | | {cost.peak:.0f} | | |"
    call = float(json.loads(cost.printed.strip().splitlines()[-1])["call"])
    ratios = [f"{ours.cpu / cost.cpu:.2g}" if ours and not ours.failed else "" for ours in map(costs.get, OURS)]
    ratios = ["", ""] if name in OURS else ratios
    return f"| {n:,} | {name} | {cost.cpu:.2f} | {number(call, 3)} | {cost.peak:.0f} | {' | '.join(ratios)} |"


# ---- where the time goes ----


def profile(names: Sequence[str], pictures: Path | None, spy: str, folder: Path) -> None:
    """Print the largest parts by question, and by function as py-spy samples them; draw the stacks where asked."""
    script = str(Path(__file__).with_name("parts.py"))
    sampled = [spy, "record", "--format", "raw", "--full-filenames", "--function", "--rate", "100", "--output"]
    with checkouts("", folder) as (tree,):
        for name in names:
            of, raw = titles()[name], folder / f"{name}.stacks"
            run = [tree.python, script, "run", name, str(folder)]
            once(run, tree.environment(), folder)  # compiled and kept
            asked = once([tree.python, script, "questions", name, str(folder)], tree.environment(), folder)
            print(f"{of}, by question:\n\n| part | CPU-s | share |\n|---|--:|--:|\n{asked.failed or asked.printed}")
            cost = once([*sampled, str(raw), "--", *run], tree.environment(), folder)
            if not raw.exists():
                raise SystemExit(f"{spy} wrote no stacks: {cost.failed}")
            seen = summed(raw.read_text(encoding="utf-8").splitlines())
            spent = Counter[str]()
            for function, samples in own(seen):
                spent[function] += samples
            print(f"{of}, by function:\n\n| part | share |\n|---|--:|")
            for function, samples in spent.most_common(MOST):
                print(f"| {function} | {100 * samples / seen.seen:.0f} % |")
            print(flush=True)
            if pictures is not None:
                drawn = picture(seen, f"The whole audit of {of}")
                pictures.mkdir(parents=True, exist_ok=True)
                (pictures / f"{name}.svg").write_text(drawn, encoding="utf-8")


def titles() -> Mapping[str, str]:
    """Return what logs are called by the table, with their unit."""
    return {line.name: line.title if " " in line.title else f"{line.title} rows" for line in LINES}


def main() -> None:
    """Print what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="?", choices=("table", "peers", "profile"), default="table")
    known = ",".join(line.name for line in LINES)
    parser.add_argument("--lines", default="", help=f"of the table: {known}; of the profile: 2000,example")
    parser.add_argument("--before", default="", metavar="REV", help=f"also time another revision, such as {EARLIER}")
    parser.add_argument("--rows", default="2000,20000,200000,2000000", help="of the logs that other packages read")
    parser.add_argument("--packages", default=",".join(PEERS), help="that are timed beside calibrant")
    parser.add_argument("--environment", type=Path, help="where other packages are, or go (default: thrown away)")
    parser.add_argument("--pictures", type=Path, help="draw the stacks of the profile into this folder")
    parser.add_argument("--py-spy", default="py-spy", metavar="PROGRAM", help="what samples the stacks of the profile")
    parser.add_argument("--data", type=Path, help="make and keep the logs there (default: thrown away)")
    a = parser.parse_args()
    asked = [name for name in a.lines.split(",") if name]
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(a.data or temporary).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        if a.what == "peers":
            place = Path(a.environment or folder / "environment").absolute()
            row_attributes([int(n) for n in a.rows.split(",")], a.packages.split(","), place, folder)
        elif a.what == "profile":
            profile(asked or ["2000", "example"], a.pictures and a.pictures.resolve(), a.py_spy, folder)
        else:
            wrong = [name for name in asked if name not in known.split(",")]
            if wrong:
                parser.error(f"--lines {','.join(wrong)}: name some of {known}")
            table([line for line in LINES if not asked or line.name in asked], a.before, bool(asked), folder)
    print(f"\nOf `{ROOT.name}`, Python {sys.version.split()[0]}.", file=sys.stderr)


if __name__ == "__main__":
    main()
