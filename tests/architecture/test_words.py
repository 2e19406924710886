"""One word for one thing: words that were retired stay out of names, and out of what people read.

`NAMES` holds parts of identifiers, of names of files and of keys, `VALUES` whole strings of the record, and `SENTENCES`
words of the texts that people read, each with what is said now; templates, styles and the guide are read as text. A
name with a retired word in another, right meaning stands in `ALLOWED` with the reason; an entry that allows nothing any
more fails, too. Of `src` docstrings are read as well, but not for `PLAIN`, and of pages their prose, for `PAGES`, and
how long its sentences are. Proofs and the changelog keep their words.
"""

from __future__ import annotations

import ast
import re
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

import pytest

import calibrant

ROOT = Path(calibrant.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))
DOCS = ROOT.parents[1] / "docs"
WRITTEN = [p for kind in ("j2", "js", "css", "md") for p in sorted(ROOT.rglob(f"*.{kind}"))]

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
PLAIN = ("too high", "too low", "found out", "in vain")  # in docstrings: of an estimate, a number
PAGES = (
    "accuse",
    "anew",
    "average error",
    "belong together",
    "beside",
    "found out",
    "in vain",
    "per cent",
    "pocket",
    "pockets",
    "tells",
    "told",
    "trait",
    "traits",
)
LONGEST = 35  # words of a sentence of a page
ALLOWED = {  # where, which names or words: why
    ("*", "ModuleNotFoundError"): "a name of Python",
    ("data/sources/listing.py", "allow_not_found"): "a name of Arrow",
    ("data/sources/columnar.py", "tell"): "a method of files",
    ("data/sources/formats.py", "visible Visible SheetVisibleEnum"): "names of the library that reads workbooks",
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
    ("stats/*", "SHIFTS shifted"): "thresholds and bets that are moved by an offset",
    ("apps/llm_logs/*", "case Case test_case test_cases"): "a test case of an evaluation tool's file",
}
PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
KEY = re.compile(r"[a-z]+(?:[_-][a-z]+)+")
CODE = re.compile(r"```.*?```|`[^`\n]*`|\]\([^)]*\)", re.DOTALL)


FIELDS = {  # where the nodes of a syntax tree hold names
    ast.Name: ("id",),
    ast.Attribute: ("attr",),
    ast.arg: ("arg",),
    ast.keyword: ("arg",),
    ast.FunctionDef: ("name",),
    ast.AsyncFunctionDef: ("name",),
    ast.ClassDef: ("name",),
    ast.ExceptHandler: ("name",),
    ast.MatchAs: ("name",),
    ast.MatchStar: ("name",),
    ast.alias: ("name", "asname"),
}
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef)
PROOFS = ("proofs*.md", "reproduce*.md")
Said = tuple[str, int, str]  # file, line, and a name or a text


@pytest.fixture(scope="module")
def said() -> tuple[list[Said], ...]:
    """Names, strings that are no docstrings, and docstrings, of every file."""
    names: list[Said] = []
    texts: list[Said] = []
    documented: list[Said] = []
    for path in FILES:
        file = path.relative_to(ROOT).as_posix()
        names += [(file, 0, name) for name in path.relative_to(ROOT).with_suffix("").parts]
        docs: set[int] = set()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, DOCUMENTED) and node.body and isinstance(node.body[0], ast.Expr):
                docs.add(id(node.body[0].value))
                documented.append((file, node.body[0].lineno, ast.get_docstring(node) or ""))
            if isinstance(node, ast.Constant):
                if isinstance(node.value, str) and id(node) not in docs:
                    texts.append((file, node.lineno, node.value))
            elif fields := FIELDS.get(type(node)):
                held = [v for f in fields if (v := getattr(node, f))]
                names += [(file, getattr(node, "lineno", 0), part) for v in held for part in v.split(".")]
    return names, texts, documented


@cache
def retired(name: str) -> tuple[str, ...]:
    return tuple(part.lower() for part in PART.findall(name) if part.lower() in NAMES)


@pytest.fixture(scope="module")
def found(said: tuple[list[Said], ...]) -> list[tuple[str, int, str, str]]:
    """File, line, name or key, and the retired word in it."""
    names, texts, _ = said
    every = [*names, *(t for t in texts if KEY.fullmatch(t[2]))]
    return [(file, line, name, word) for file, line, name in every for word in retired(name)]


def allowed(file: str, name: str) -> tuple[str, str] | None:
    return next((k for k in ALLOWED if fnmatchcase(file, k[0]) and name in k[1].split()), None)


def test_names_have_no_retired_word(found: list[tuple[str, int, str, str]]) -> None:
    wrong = {f"{f}:{line}: {name}: not {w}, but {NAMES[w]}" for f, line, name, w in found if not allowed(f, name)}
    assert not wrong, "\n".join(["", *sorted(wrong)])


def test_what_is_allowed_is_there(found: list[tuple[str, int, str, str]]) -> None:
    used = {(allowed(f, name), name) for f, _, name, _ in found}
    assert [(k, n) for k in ALLOWED for n in k[1].split() if (k, n) not in used] == []


def test_values_of_the_record_are_the_new_ones(said: tuple[list[Said], ...]) -> None:
    """As strings, and among the few words of a class of the page."""
    every = [(file, line, word) for file, line, t in said[1] if len(t.split()) <= 3 for word in t.split()]
    for path in WRITTEN:
        classes = re.finditer(r"(?<=[.\"' ])[a-z/0-9-]+(?=[\"' .{,:>])", path.read_text(encoding="utf-8"))
        every += [(path.name, 0, m[0]) for m in classes if path.suffix != ".md"]
    wrong = [f"{file}:{line}: {word!r}: {VALUES[word]!r}" for file, line, word in every if word in VALUES]
    assert not wrong, "\n".join(["", *wrong])


def test_what_people_read_has_no_retired_word(said: tuple[list[Said], ...]) -> None:
    stands = re.compile(rf"(?<![\w-])(?:{'|'.join(SENTENCES)})(?![\w-])", re.IGNORECASE)
    every = [*said[1], *((path.name, 0, path.read_text(encoding="utf-8")) for path in WRITTEN)]
    wrong = [f"{f}:{line}: {m[0]} -> {SENTENCES[m[0].lower()]}" for f, line, t in every for m in stands.finditer(t)]
    assert not wrong, "\n".join(["", *wrong])


def test_docstrings_have_no_retired_word(said: tuple[list[Said], ...]) -> None:
    stands = re.compile(rf"(?<![\w-])(?:{'|'.join({*SENTENCES, 'beside'} - {*PLAIN})})(?![\w-])", re.IGNORECASE)
    wrong = [f"{file}:{line}: {m[0]}" for file, line, text in said[2] for m in stands.finditer(text)]
    assert not wrong, "\n".join(["", *wrong])


def test_docstrings_begin_with_what_there_is(said: tuple[list[Said], ...]) -> None:
    """With a noun or a precise verb: that a function returns something needs no word."""
    wrong = [
        f"{file}:{line}: {text.splitlines()[0]}" for file, line, text in said[2] if re.match(r"returns?\b", text, re.I)
    ]
    assert not wrong, "\n".join(["", *wrong])


def pages(*without: str) -> list[tuple[str, str]]:
    """Each page by name, with its prose: code and addresses of links are held to what they name by other tests."""
    every = {*DOCS.rglob("*.md"), *DOCS.parent.glob("*.md")} - {DOCS.parent / "CHANGELOG.md"}
    kept = sorted(p for p in every if not any(fnmatchcase(p.name, w) for w in without))
    return [(p.name, CODE.sub(lambda m: "x" + "\n" * m[0].count("\n"), p.read_text(encoding="utf-8"))) for p in kept]


@pytest.mark.skipif(not DOCS.exists(), reason="a source distribution without docs")
def test_pages_say_what_the_product_says() -> None:
    stands = re.compile(rf"(?<![\w-])(?:{'|'.join(PAGES)})(?![\w-])", re.IGNORECASE)
    wrong = []
    for name, text in pages("reproduce*.md"):  # as their scripts wrote them
        lines = enumerate(text.splitlines(), 1)
        wrong += [f"{name}:{i}: {m[0]}" for i, line in lines for m in stands.finditer(line)]
    assert not wrong, "\n".join(["", *wrong])


@pytest.mark.skipif(not DOCS.exists(), reason="a source distribution without docs")
def test_sentences_of_pages_are_short() -> None:
    """Of running text and lists; tables, headings, options of directives and proofs apart."""
    wrong = []
    for name, text in pages(*PROOFS, "CODE_OF_CONDUCT.md"):
        lines = (line for line in text.splitlines() if not line.lstrip().startswith(("|", "#", ":", "{", "$$", "\\")))
        for paragraph in re.split(r"\n\s*\n|\n *(?:[*-]|\d+\.) ", "\n".join(lines)):
            for sentence in re.split(r"(?<=[.:;!?])\s+", paragraph):
                if len(sentence.split()) > LONGEST:
                    wrong.append(f"{name}: {len(sentence.split())} words: {' '.join(sentence.split())[:100]}")
    assert not wrong, "\n".join(["", *wrong])
