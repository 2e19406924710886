"""The mutants still fit the source, and the table says of each which test kills it."""

from __future__ import annotations

import ast
import csv
import json
import re
from collections import defaultdict
from pathlib import Path

import pytest

from mutants import matrix
from mutants.mutant import Mutant, span
from mutants.registry import MUTANTS, SURVIVORS

HERE = Path(__file__).parent
BY_MODULE: dict[str, list[Mutant]] = defaultdict(list)
for _mutant in MUTANTS:
    BY_MODULE[_mutant.module].append(_mutant)


def table() -> list[dict[str, str]]:
    with (HERE / "matrix.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("module", BY_MODULE)
def test_mutants_fit_the_source(module: str) -> None:
    """Each text to be changed occurs once in the function that is named, and what is left is Python."""
    text = BY_MODULE[module][0].path.read_text(encoding="utf-8")
    lines, tree = text.splitlines(keepends=True), ast.parse(text)
    for mutant in BY_MODULE[module]:
        changed = mutant.changed(list(lines), tree)
        assert changed != lines, mutant.name
        for edit in mutant.edits:
            first, last = span(tree, edit.within)
            margin = re.match(" *", lines[first])
            assert margin
            inner = "".join(changed[first:last])
            ast.parse("if True:\n" + inner if margin.group() else inner)
        for name in mutant.entered:
            assert span(tree, name), mutant.name


def test_each_has_a_name_of_its_own() -> None:
    assert len({m.name for m in MUTANTS}) == len(MUTANTS)
    assert len({(m.module, m.edits) for m in MUTANTS}) == len(MUTANTS)


def test_the_table_has_each_mutant_and_its_killer() -> None:
    lines = table()
    assert [line["mutant"] for line in lines] == [m.name for m in MUTANTS], "run tests/mutants/matrix.py"
    alive = [line["mutant"] for line in lines if "K" not in list(line.values())[3:-1]]
    assert alive == [m.name for m in MUTANTS if m.name in SURVIVORS]
    assert all(line["killers"] for line in lines if line["mutant"] not in SURVIVORS)


def test_killers_are_there() -> None:
    """A test that is renamed, moved or deleted is no killer: of each mutant one that is named is left."""
    held: dict[str, str] = {}
    for line in table():
        if line["mutant"] in SURVIVORS:
            continue
        there = []
        for killer in line["killers"].split():
            file, _, name = killer.partition("::")
            path = HERE.parent / file
            if file not in held:
                held[file] = path.read_text(encoding="utf-8") if path.exists() else ""
            there.append((not name and bool(held[file])) or f"def {name}(" in held[file])
        assert any(there), f"{line['mutant']}: none of {line['killers']} is there"


def test_a_run_of_one_mutant_keeps_the_rest_of_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = tmp_path / "matrix.csv"
    kept.write_text(matrix.TABLE.read_text(encoding="utf-8"), encoding="utf-8")
    monkeypatch.setattr(matrix, "TABLE", kept)
    file, first = "tests/golden/test_horizon.py", MUTANTS[0].name
    found = {"killed": {file: f"{file}::test_one"}, "ran": [file], "reached": [file]}
    (tmp_path / f"mutant-{first}.json").write_text(json.dumps(found), encoding="utf-8")
    matrix.write(tmp_path)
    with kept.open(encoding="utf-8", newline="") as lines:
        after = {line["mutant"]: line["killers"] for line in csv.DictReader(lines)}
    assert after == {line["mutant"]: line["killers"] for line in table()} | {first: "golden/test_horizon.py::test_one"}
