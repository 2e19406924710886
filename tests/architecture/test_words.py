"""One word for one thing: words that were retired stay out of names, and out of what people read.

`NAMES` holds parts of identifiers, of names of files and of keys, `VALUES` whole strings of the record, and `SENTENCES`
words of the texts that people read, each with what is said now. A name with a retired word in another, right meaning
stands in `ALLOWED` with the reason; an entry that allows nothing any more fails, too. Only `src` is read, and the
prose of pages for `PAGES`: proofs and the changelog keep their words.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

import pytest

import calibrant

ROOT = Path(calibrant.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))
DOCS = ROOT.parents[1] / "docs"

NAMES = {
    "abreast": "parallel_map",
    "alike": "intraclass_correlation",
    "asked": "options, or requested",
    "asker": "caller",
    "beside": "row_attributes, or columns",
    "case": "event (label 1), or context (of an audit)",
    "cases": "events",
    "crossed": "two_way",
    "deals": "block_orders",
    "dealt": "hash_split",
    "edged": "quote_blank",
    "faces": "lazy_module",
    "found": "result, detected, or error_shown",
    "given": "inputs, or passed",
    "glance": "preview",
    "held": "rows, kept, or stored",
    "lightened": "truncated_weights",
    "noncases": "nonevents",
    "notch": "quadratic_penalty",
    "obstacles": "input_errors",
    "pocket": "subgroup",
    "pockets": "subgroups",
    "said": "stated",
    "sealed": "as_readonly",
    "shift": "gap",
    "shifted": "diagonal_blocks",
    "shifts": "gaps, or diagonals",
    "stake": "bet_size",
    "stakes": "bet_sizes",
    "stamps": "file_versions",
    "tell": "report",
    "tells": "reports",
    "told": "reported, RandomRounding, or disclosure",
    "trait": "attribute",
    "traits": "attributes",
    "unit": "cluster (rows that belong together)",
    "units": "clusters",
    "visible": "sanitize",
    "wager": "bet",
    "withheld": "suppressed",
}
VALUES = {"met": "within", "broken": "over", "not-cleared": "error_shown", "calibrant/3": "calibrant/4"}
SENTENCES = {
    "accuse": "report",
    "anew": "again",
    "average error": "calibration error",
    "belong together": "are clusters",
    "found out": "detected",
    "in vain": "(plain words)",
    "per cent": "percent",
    "pocket": "subgroup",
    "pockets": "subgroups",
    "right model": "calibrated model",
    "taken for": "interpreted as",
    "tells": "reports",
    "told": "reported, shown, or stated",
    "too high": "overpredicts",
    "too low": "underpredicts",
    "trait": "attribute",
    "traits": "attributes",
    "wrong model": "miscalibrated model",
}
PAGES = ("average error", "per cent", "pocket", "pockets", "trait", "traits")
ALLOWED = {  # where, which names or words: why
    ("*", "ModuleNotFoundError"): "a name of Python",
    ("data/sources/remote.py", "allow_not_found"): "a name of Arrow",
    ("data/sources/columnar/arrow.py", "tell"): "a method of files",
    ("data/sources/formats/excel.py", "visible Visible SheetVisibleEnum"): "names of the library that reads workbooks",
    ("repair/regression.py", "_held_out"): "held out is the term for rows that are not fitted on",
    ("data/specs/faults.py", "_which_case"): "upper and lower case",
    ("*", "unit UNITS"): "the unit of measurement of an estimate, a date or a bandwidth",
    ("*", "Unit unit_of"): "the unit of a date",
    ("report/*", "in_units _units"): "a number in the unit of its variable",
    ("kernels/*", "_UNIT _UNIT_INTERVAL PER_UNIT"): "the interval from 0 to 1; a table's entries per unit",
    ("views/local_sums.py", "PER_UNIT"): "a table's entries per unit",
    ("kernels/contents.py", "_SHIFT"): "bits are shifted",
    (
        "repair/*",
        "KernelShift LevelShifts shifts shifted",
    ): "the calibrators shift a score by what they add to its logit",
    ("apps/papers/*", "shift SHIFTS"): "the published bound's own shift of its buckets",
    ("stats/*", "SHIFTS _shifted shifted"): "thresholds and bets that are moved by an offset",
    ("apps/llm_logs/*", "case Case test_case test_cases"): "a test case of an evaluation tool's file",
}
PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
KEY = re.compile(r"[a-z]+(?:[_-][a-z]+)+")
CODE = re.compile(r"```.*?```|`[^`\n]*`|\]\([^)]*\)", re.DOTALL)


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def named(node: ast.AST) -> Iterator[str]:
    """Names that a node of the syntax tree has."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name) | ast.keyword(arg=str(name)):
            yield name
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            yield name
        case ast.alias(name=name, asname=other):
            yield from name.split(".")
            yield from [other] if other else []


def texts(module: ast.Module) -> Iterator[tuple[int, str]]:
    """Strings of a module with their lines, without docstrings."""
    documented = (n for n in ast.walk(module) if isinstance(n, ast.Module | ast.ClassDef | ast.FunctionDef) and n.body)
    docs = {id(n.body[0].value) for n in documented if isinstance(n.body[0], ast.Expr)}
    for n in ast.walk(module):
        if isinstance(n, ast.Constant) and isinstance(n.value, str) and id(n) not in docs:
            yield n.lineno, n.value


def retired(name: str) -> list[str]:
    return [part.lower() for part in PART.findall(name) if part.lower() in NAMES]


def found() -> Iterator[tuple[str, int, str, str]]:
    """File, line, name or text, and the retired word in it."""
    for path in FILES:
        file = path.relative_to(ROOT).as_posix()
        for name in path.relative_to(ROOT).with_suffix("").parts:
            yield from ((file, 0, name, word) for word in retired(name))
        for node in ast.walk(tree(path)):
            for name in named(node):
                yield from ((file, getattr(node, "lineno", 0), name, word) for word in retired(name))
        for line, text in texts(tree(path)):
            if KEY.fullmatch(text):
                yield from ((file, line, text, word) for word in retired(text))


def allowed(file: str, name: str) -> tuple[str, str] | None:
    return next((k for k in ALLOWED if fnmatchcase(file, k[0]) and name in k[1].split()), None)


def test_names_have_no_retired_word() -> None:
    wrong = {f"{f}:{line}: {name}: not {w}, but {NAMES[w]}" for f, line, name, w in found() if not allowed(f, name)}
    assert not wrong, "\n".join(["", *sorted(wrong)])


def test_what_is_allowed_is_there() -> None:
    used = {(allowed(f, name), name) for f, _, name, _ in found()}
    assert [(k, n) for k in ALLOWED for n in k[1].split() if (k, n) not in used] == []


def test_values_of_the_record_are_the_new_ones() -> None:
    every = ((p, line, text) for p in FILES for line, text in texts(tree(p)))
    wrong = [f"{p.relative_to(ROOT)}:{line}: {t!r}: {VALUES[t]!r}" for p, line, t in every if t in VALUES]
    assert not wrong, "\n".join(["", *wrong])


@pytest.mark.parametrize("word", SENTENCES)
def test_what_people_read_has_no_retired_word(word: str) -> None:
    stands = re.compile(rf"(?<![\w-]){re.escape(word)}(?![\w-])", re.IGNORECASE)
    every = ((p, line, text) for p in FILES for line, text in texts(tree(p)))
    wrong = [f"{p.relative_to(ROOT)}:{line}: {word} -> {SENTENCES[word]}" for p, line, t in every if stands.search(t)]
    assert not wrong, "\n".join(["", *wrong])


@pytest.mark.skipif(not DOCS.exists(), reason="a source distribution without docs")
def test_pages_say_what_the_product_says() -> None:
    """In prose: code and addresses of links are held to what they name by other tests."""
    stands = re.compile(rf"(?<![\w-])(?:{'|'.join(PAGES)})(?![\w-])", re.IGNORECASE)
    wrong = []
    for page in sorted({*DOCS.rglob("*.md")} - {*DOCS.glob("reproduce*.md")}):  # as their scripts wrote them
        text = CODE.sub(lambda m: "\n" * m[0].count("\n"), page.read_text(encoding="utf-8"))
        lines = enumerate(text.splitlines(), 1)
        wrong += [f"{page.name}:{i}: {m[0]}" for i, line in lines for m in stands.finditer(line)]
    assert not wrong, "\n".join(["", *wrong])
