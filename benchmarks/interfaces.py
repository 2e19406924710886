"""What the public interfaces of other packages have, against the table of docs/compared.md that says so.

    python benchmarks/interfaces.py                 # their newest releases, from the package index: about a minute
    python benchmarks/interfaces.py --names relplot # its public names, to write a pattern by

No package is installed or run: wheels are downloaded without what they depend on, and their syntax trees are read. A
name is public where neither it nor the class around it begins with an underscore; modules that do are imported from.
For each row of the table a pattern says which names would show the feature: a cell that says "–" where some do, or
another where none does, is printed, and the program ends with 1. `BY_HAND` has the cells that names cannot decide,
with the reason.
"""

from __future__ import annotations

import argparse
import ast
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs/compared.md"
PACKAGES = ("scikit-learn", "netcal", "probcal", "calibre", "MCGrad", "model-diagnostics", "relplot")
SKIPPED = re.compile(r"(^|/)(tests?|testing|externals|benchmarks|examples|datasets|conftest)(/|\.py|$)")
SHOWS = {  # of the start of a row's first cell: names that would show the feature
    "reliability diagram": r"reliab|rel_diagram|calibration_curve|CalibrationDisplay",
    "binned ECE": r"\bECE\b|(?<!\w)ece\b|expected_calibration_error|binnedECE",
    "smooth ECE": r"smooth_?ece|smECE|smooth_calibration_error",
    "finite-sample bounds": r"certif|clopper|hoeffding|confidence_sequence",
    "rows needed": r"rows_needed|required_sample|minimum_detectable|\bmde\b",
    "two models on the same rows": r"delong|paired_comparison|paired_difference|compare_models",
    "share that may be accepted": r"risk_control|selective|accept_rate|abstain",
    "recalibration as SQL": r"to_sql|as_sql|to_javascript",
    "net benefit, decision curves": r"net_benefit|decision_curve|decision_report",
    "net benefit lost": r"regret",
    "larger than memory": r"partial_fit|merge_sketch|dask|spark",
    "reads logs of language-model": r"lm_eval|inspect_ai|promptfoo",
    "leaves out": r"leak",
    "detects copied": r"design_effect|intraclass|duplicate",
    "report file": r"validation_report|calibration_report|to_markdown|html_report",
    "reporting guideline": r"tripod",
    "JSON record": r"json|CalibrationReport.to_dict",
    "formats, outputs": r"entry_point",
    "subgroup discovery": r"multicalib|subgroup|MCGrad\b|SegmentedCalibrator",
    "statistical tests": r"spiegelhalter|hosmer|_test\b|p_?value|pvalue",
    "which covariates": r"by_feature|by_segment|compute_bias|plot_bias",
    "outcomes by a horizon": r"censor|ipcw|kaplan|time_to_event|survival_(prob|curve|func)",
    "spread between sites": r"heterogeneity|caterpillar|between_sites",
    "monitoring at any": r"monitor",
}
BY_HAND = {  # what a name that matches, or none, is about
    ("scikit-learn", "larger than memory"): "partial_fit of estimators, not of a measure of calibration",
    ("scikit-learn", "statistical tests"): "names of samples to test on",
    ("scikit-learn", "monitoring at any"): "the progress of training",
    ("netcal", "which covariates"): "its ECE takes several columns",
    ("probcal", "finite-sample bounds"): "its confidence sequence is of a shift of the log-odds: note [3]",
    ("probcal", "larger than memory"): "its monitor takes batches",
    ("calibre", "two models on the same rows"): "differences of policies in its decision report",
    ("MCGrad", "JSON record"): "models are saved as JSON",
    ("model-diagnostics", "statistical tests"): "a column of compute_bias",
}


def downloaded(package: str, folder: Path) -> Path:
    """The newest release of a package, as its index has it, without what it depends on."""
    words = ["download", "--quiet", "--no-deps", "--ignore-requires-python", "--dest", str(folder), package]
    subprocess.run([sys.executable, "-m", "pip", *words], check=True)
    return next(iter(sorted(folder.iterdir())))


def sources(archive: Path) -> Iterator[tuple[str, str]]:
    """Name and text of each module."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            for name in wheel.namelist():
                if name.endswith(".py"):
                    yield name, wheel.read(name).decode("utf-8", "replace")
        return
    with tarfile.open(archive) as source:
        for member in source:
            file = source.extractfile(member) if member.name.endswith(".py") else None
            if file is not None:
                yield member.name, file.read().decode("utf-8", "replace")


def names(archive: Path) -> set[str]:
    """Public functions, classes, methods and their arguments: `Class.method(argument)`."""
    result: set[str] = set()
    for place, text in sources(archive):
        if not SKIPPED.search(place):
            result |= {*_names(ast.parse(text).body, "")}
    return result


def _names(body: list[ast.stmt], around: str) -> Iterator[str]:
    for node in body:
        if not isinstance(node, ast.FunctionDef | ast.ClassDef) or node.name.startswith("_"):
            continue
        yield around + node.name
        if isinstance(node, ast.ClassDef):
            yield from _names(node.body, f"{around}{node.name}.")
        else:
            every = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
            yield from (f"{around}{node.name}({a.arg})" for a in every if a.arg not in ("self", "cls"))


def table() -> dict[tuple[str, str], str]:
    """The cells of the page's first table by package and row."""
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("|")]
    head, _, *rows = (
        [c.strip() for c in line.strip("|").split("|")] for line in lines[: lines.index("| package | for |")]
    )
    return {(package, row[0]): cell for row in rows for package, cell in zip(head[1:], row[1:], strict=True)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--names", metavar="PACKAGE", help="print the public names of one package")
    wanted, cells, wrong, checked = parser.parse_args().names, table(), 0, 0
    used: set[tuple[str, str]] = set()
    for package in [wanted] if wanted else PACKAGES:
        with tempfile.TemporaryDirectory() as place:
            archive = downloaded(package, Path(place))
            there = names(archive)
        if wanted:
            print("\n".join(sorted(there)))
            continue
        print(f"{archive.name}: {len(there):,} public names")
        for start, pattern in SHOWS.items():
            row = next(r for p, r in cells if p == package and r.replace("[", "").startswith(start))
            cell, shown = cells[package, row], sorted(n for n in there if re.search(pattern, n, re.IGNORECASE))
            checked += 1
            if (cell == "–") == bool(shown):
                reason = BY_HAND.get((package, start))
                wrong += reason is None
                used.add((package, start))
                print(f"  {'by hand' if reason else 'LOOK'}: {row}: {cell!r}; {', '.join(shown[:4]) or 'no name'}"
                      f"{'; ' + reason if reason else ''}")  # fmt: skip
    if not wanted:
        idle = sorted(f"{p}, {r}" for p, r in {*BY_HAND} - used)
        print(
            f"{checked} cells, {wrong} to look at"
            + (f"; reasons that nothing needs: {'; '.join(idle)}" if idle else "")
        )
        wrong += len(idle)
    return int(wrong > 0)


if __name__ == "__main__":
    raise SystemExit(main())
