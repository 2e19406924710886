"""Imports run downward only and never in a circle, files stay readable, and importing calibrant costs nothing."""

from __future__ import annotations

import ast
import importlib
import json
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

import calibrant

ROOT = Path(calibrant.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))
FOLDERS = sorted({p.parent for p in FILES})
TIERS = (  # each room may import those before it; rooms of one tier are strangers
    ("sanitize",),
    ("errors", "lazy_module"),
    ("plugins",),
    ("results",),
    ("arguments",),
    ("kernels",),
    ("stats", "data"),
    ("views",),
    ("search",),
    ("decisions",),
    ("certify",),
    ("inspect",),
    ("measure",),
    ("detect",),
    ("diagnose",),
    ("repair",),
    ("monitor",),
    ("audit",),
    ("report",),
    ("cli", "pytest_plugin"),
    ("toolkit",),
    ("apps",),
    ("datasets", "papers", "testing", "tracking", "weights"),
    ("__main__",),
)
RANKS = {room: rank for rank, tier in enumerate(TIERS) for room in tier}
JUNK = {"utils", "util", "helpers", "helper", "common", "misc", "base", "core", "shared", "tools"}
LINES, SIBLINGS, ARGUMENTS = 600, 14, 6
PUBLIC = {n for m in (calibrant, *(getattr(calibrant, m) for m in calibrant._MODULES)) for n in m.__all__} | {
    "fixed_subgroups",
    "searched_subgroups",
}  # methods of `diagnose.subgroups`
DELIBERATE = {  # files whose `import_module` may name what no statement may, and why
    "lazy_module.py": "what a face names in its own `_WHERE`, which counts as imports of the face",
    "results.py": "drawing, when a chart is asked for: results know that they can be drawn, not how",
    "audit/monitor/monitor.py": "words and files, when it is reported: a monitor knows that it can be, not how",
    "audit/record.py": "words and files, when it is shown or saved: a record knows that it can be told, not how",
    "apps/grades/sheet.py": "workbooks, when it is saved: a validation knows that it can be told, not how",
    "inspect/looked.py": "words, when it is printed: a look knows that it can be told, not how",
    "repair/catalogue.py": "the folder of recipes, each of which declares itself to the catalogue",
    "report/outline.py": "the folder of sections, each of which is declared in the outline's words",
    "plugins.py": "what its table and installed packages name",
    "cli/run.py": "the file of the command that was typed, so that help loads no library",
    "data/engines/work.py": "itself, by name, on another machine",
}
DOORS = {  # files outside `apps` that name it, and why: the public names that users had before stay where they are
    "__init__.py": "calibrant.grades and GradeValidation",
    "papers.py": "the public face of apps/papers",
    "plugins.py": "the table of plug-ins",
    "repair/objectives.py": "calibrant.repair.objectives, the losses of apps/losses",
    "testing.py": "calibrant.testing.summary",
    "tracking.py": "the public face of apps/trackers",
    "weights.py": "the public face of apps/population",
}
FOR_APPS = {
    "arguments",
    "errors",
    "lazy_module",
    "plugins",
    "results",
    "sanitize",
}  # files that applications may import
BEYOND = {  # what applications import that is not public, and why; the list only falls
    "apps/guidelines/answers.py": (
        tuple(
            f"report.{m}" for m in ("commands", "findings", "sections.overall", "sections.reference", "sections.repair")
        ),
        "the checklist quotes lines of the report, so that both say the same",
    ),
    "apps/papers/adaptive_tests.py": (
        ("search.detectors", "search.models", "search.nulls", "stats.cusum", "stats.nulls"),
        "the comparators search as the core's test does, and differ in what the papers say alone",
    ),
    "apps/papers/bounds.py": (("kernels.smooth",), "the core's smoother, which rounds in its own way"),
    "apps/papers/calibration_function.py": (("kernels.smooth",), "the same"),
    "apps/papers/variable_error.py": (
        ("stats.smoothing", "stats.strata"),
        "the local regression and the quantile bins that the core has as published",
    ),
    "apps/papers/local_test.py": (
        ("stats.local.kernel_sums", "views.kernel_rows"),
        "the sums over pairs of the core's exact test, for the same rows",
    ),
}
TOOLKIT = 129  # names that applications may use beside the public functions; two are for writing in German
ANYS = 300  # of the whole library; it only ever falls


def name_of(path: Path) -> str:
    """`data/read.py`, for messages and the names of tests."""
    return path.relative_to(ROOT).as_posix()


def module_of(path: Path) -> str:
    """`calibrant.data.read` for `data/read.py`, `calibrant.data` for its face."""
    parts = ("calibrant", *path.relative_to(ROOT).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_of(p): p for p in FILES}
UNKNOWN = "calibrant.<a name that is only known when it runs>"


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def nodes(module: ast.Module) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(module))


def texts_of(module: ast.Module, name: str) -> dict[str, list[str]]:
    """Texts that a name of a module stands for: a constant its text, a mapping its values, `where` its keys."""
    held = {"__name__": [name]}
    for node in module.body:
        match node:
            case (
                ast.Assign(targets=[ast.Name(id=to)], value=value) | ast.AnnAssign(target=ast.Name(id=to), value=value)
            ):
                values = value.values if isinstance(value, ast.Dict) else [value]
                if isinstance(value, ast.Call) and ast.unparse(value.func) == "where":
                    values = [key for argument in value.args if isinstance(argument, ast.Dict) for key in argument.keys]
                held[to] = [v.value for v in values if isinstance(v, ast.Constant) and isinstance(v.value, str)]
    return {name: texts for name, texts in held.items() if texts}


def called(argument: ast.expr, texts: Mapping[str, list[str]]) -> list[str]:
    """Modules that `import_module` may load: all that fit where a loop or a caller fills in a part of the name."""
    match argument:
        case ast.Constant(value=str(text)):
            return [text]
        case ast.Name(id=name) | ast.Subscript(value=ast.Name(id=name)) if name in texts:
            return texts[name]
        case ast.JoinedStr(values=parts):
            pattern = ""
            for part in parts:
                known = called(part.value if isinstance(part, ast.FormattedValue) else part, texts)
                pattern += re.escape(known[0]) if len(known) == 1 and UNKNOWN not in known else r"[^.]+"
            return [m for m in MODULES if re.fullmatch(pattern, m)]
        case _:
            return [UNKNOWN]


def by_name(module: ast.Module, name: str = "") -> Iterator[str]:
    """Modules that a module imports by their names as texts: through `import_module`, and a face through `_WHERE`."""
    texts = texts_of(module, name)
    yield from (where.removesuffix(":") for where in texts.get("_WHERE", ()))
    for node in nodes(module):
        match node:
            case ast.Call(
                func=ast.Name(id="import_module" | "__import__") | ast.Attribute(attr="import_module"),
                args=[argument, *_],
            ):
                yield from called(argument, texts)


def unseen(module: ast.Module) -> set[ast.AST]:
    """Statements that only a type checker reads."""
    shown = (n for n in module.body if isinstance(n, ast.If) and ast.unparse(n.test) == "TYPE_CHECKING")
    return {inner for block in shown for statement in block.body for inner in ast.walk(statement)}


def stated(module: ast.Module) -> Iterator[str]:
    """Modules of the library that statements name: in functions and under TYPE_CHECKING too."""
    yield from named_by(nodes(module))


def named_by(statements: Iterable[ast.AST]) -> Iterator[str]:
    """Modules of the library that statements name."""
    for node in statements:
        match node:
            case ast.Import(names=names):
                yield from (a.name for a in names)
            case ast.ImportFrom(module=str(source), names=names, level=0):
                for a in names:
                    inner = f"{source}.{a.name}"
                    yield inner if inner in MODULES else source
            case ast.ImportFrom():
                yield "calibrant.<relative import>"


@cache
def imported(path: Path) -> frozenset[Path]:
    """Files of the library that a file imports, itself and the version left out."""
    names = {*stated(tree(path))}
    if name_of(path) == "plugins.py":  # what its protocols take stands above it: it is named for type checkers alone
        names = {*named_by(n for n in nodes(tree(path)) if n not in unseen(tree(path)))}
    if name_of(path) not in DELIBERATE:
        names |= {*by_name(tree(path), module_of(path))}
    found = {m for m in names if m.split(".")[0] == "calibrant"}
    if name_of(path) in DOORS:
        found = {m for m in found if not m.startswith("calibrant.apps.")}
    unknown = found - MODULES.keys()
    assert not unknown, f"{name_of(path)} imports {sorted(unknown)}"
    return frozenset(MODULES[m] for m in found) - {path, ROOT / "__init__.py"}


def room(path: Path) -> str:
    """The first name below the package: `data` for `data/read.py`, `errors` for `errors.py`."""
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def circle(after: Mapping[str, Iterable[str]]) -> list[str]:
    """Names along one circle, or nothing."""
    done: set[str] = set()

    def search(name: str, trail: list[str]) -> list[str]:
        if name in trail:
            return [*trail[trail.index(name) :], name]
        if name in done:
            return []
        found = next((c for n in sorted(after.get(name, ())) if (c := search(n, [*trail, name]))), [])
        done.add(name)
        return found

    return next((c for name in sorted(after) if (c := search(name, []))), [])


def neighbours(folder: Path) -> dict[str, set[str]]:
    """For each file and folder in a folder, those beside it that it, or anything inside it, imports.

    A face (`__init__`) counts as importing the files its folder shows, so nothing inside may import it.
    """
    after: dict[str, set[str]] = {}
    for path in FILES:
        if not path.is_relative_to(folder) or path == ROOT / "__init__.py":
            continue
        own = path.relative_to(folder).parts[0]
        inside = {p.relative_to(folder).parts[0] for p in imported(path) if p.is_relative_to(folder)}
        after.setdefault(own, set()).update(inside - {own})
    return after


@pytest.mark.slow(turns=1)
def test_imports_run_downward() -> None:
    two_way = ((p, room(p), room(q)) for p in FILES if p != ROOT / "__init__.py" for q in imported(p))
    wrong = {(name_of(p), own, other) for p, own, other in two_way if other != own and RANKS[other] >= RANKS[own]}
    assert not wrong, "; ".join(f"{name} imports {other}, which is not below {own}" for name, own, other in wrong)


def test_no_circles() -> None:
    """Among files, and among folders: at every level, whatever lies side by side has an order."""
    assert {name_of(f): found for f in FOLDERS if (found := circle(neighbours(f)))} == {}


def test_plug_ins_are_in_no_circle_for_type_checkers_either() -> None:
    """What a plug-in may call on a parser is a protocol, so that nothing that the protocols name imports them."""
    table = ROOT / "plugins.py"
    reached = {MODULES[m] for m in stated(tree(table)) if m in MODULES}
    while more := {q for p in reached for q in imported(p)} - reached:
        reached |= more
    assert reached
    assert table not in reached


def test_nothing_imports_the_face_of_its_own_folder() -> None:
    lazy_module = {p: {f / "__init__.py" for f in p.parents} - {p} for p in FILES}
    assert [name_of(p) for p, own in lazy_module.items() if own & imported(p)] == []


def test_a_circle_is_seen() -> None:
    assert circle({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == ["b", "c", "b"]
    assert circle({"a": {"b", "c"}, "b": {"c"}}) == []


def test_imports_are_seen_wherever_they_stand() -> None:
    code = (
        "from calibrant.errors import BadInput\nif TYPE_CHECKING:\n    import calibrant.results\n"
        "DRAWN_BY = 'calibrant.report.figures.charts'\nENGINES = 'calibrant.data.engines'\n"
        "_WHERE = where({'calibrant.views.axes': 'a b'})\n"
        "def f(name):\n    from calibrant import kernels\n    import_module('calibrant.data')\n"
        "    import_module(DRAWN_BY)\n    importlib.import_module(f'{ENGINES}.{name}')\n"
    )
    module = ast.parse(code)
    assert set(stated(module)) == {"calibrant.errors", "calibrant.results", "calibrant.kernels"}
    engines = {module_of(p) for p in FILES if p.parent == ROOT / "data" / "engines" and p.name != "__init__.py"}
    assert "calibrant.data.engines.work" in engines
    loaded = {"calibrant.data", "calibrant.report.figures.charts", "calibrant.views.axes", *engines}
    assert set(by_name(module)) == loaded
    assert set(by_name(ast.parse("def f(name):\n    import_module(name)"))) == {UNKNOWN}


@pytest.mark.parametrize("name", DELIBERATE)
def test_what_is_let_through_is_needed(name: str) -> None:
    """Each names a module that is only known when it runs, one that stands above it, or one that imports it."""
    path = ROOT / name
    names = set(by_name(tree(path), module_of(path)))
    files = {MODULES[m] for m in names & MODULES.keys()} - {ROOT / "__init__.py"}
    above = {p for p in files if RANKS[room(p)] > RANKS[room(path)]}
    assert UNKNOWN in names or above or {p for p in files if reaches(p, path)}


def reaches(start: Path, end: Path) -> bool:
    """Tell whether a file imports another, itself or through others."""
    seen, left = {start}, [start]
    while left:
        new = imported(left.pop()) - seen
        seen |= new
        left += new
    return end in seen


def test_every_room_has_a_tier() -> None:
    assert {room(p) for p in FILES} - {"__init__"} <= set(RANKS)


def test_files_are_short_enough_to_read_and_named_for_what_they_hold() -> None:
    assert [name_of(p) for p in FILES if len(p.read_text(encoding="utf-8").splitlines()) > LINES] == []
    assert [name_of(p) for p in FILES if JUNK & {p.stem.strip("_"), p.parent.name}] == []


def test_folders_hold_no_more_than_a_reader_takes_in() -> None:
    inside = {f: [p for p in FILES if p.parent == f and p.name != "__init__.py"] for f in FOLDERS}
    assert [name_of(f) for f, files in inside.items() if len(files) > SIBLINGS] == []
    assert [name_of(f) for f in FOLDERS if len([g for g in FOLDERS if g.parent == f]) > SIBLINGS + 3] == []


def test_functions_inside_take_few_arguments() -> None:
    """Public functions and classes may take more, by keyword only: ruff counts those that go by position."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    functions = [(p, n) for p in FILES for n in nodes(tree(p)) if isinstance(n, kinds)]
    taken = [(p, f, {a.arg for a in (*f.args.posonlyargs, *f.args.args, *f.args.kwonlyargs)}) for p, f in functions]
    classes = [n for p in FILES for n in nodes(tree(p)) if isinstance(n, ast.ClassDef) and n.name in PUBLIC]
    made = [f for n in classes for f in n.body if isinstance(f, kinds) and f.name == "__init__"]
    public = {f for _, f in functions if f.name in PUBLIC} | {*made}
    inner = [(name_of(p), f.name, names - {"self", "cls"}) for p, f, names in taken if f not in public]
    assert [(file, name) for file, name, names in inner if len(names) > ARGUMENTS] == []


def test_arrays_and_results_have_types() -> None:
    """`Any` is the exception: uses in annotations and calls, imports not counted."""
    uses = [n for p in FILES for n in nodes(tree(p)) if isinstance(n, ast.Name) and n.id == "Any"]
    assert len(uses) <= ANYS


@pytest.mark.parametrize("name", ["", *calibrant._MODULES])
def test_dir_shows_the_public_names_only(name: str) -> None:
    module = getattr(calibrant, name) if name else calibrant
    assert {n for n in dir(module) if not n.startswith("__")} == {n for n in module.__all__ if not n.startswith("__")}


def test_importing_loads_the_standard_library_only() -> None:
    code = "import sys, json, calibrant; print(json.dumps(sorted({m.split('.')[0] for m in sys.modules})))"
    loaded = set(
        json.loads(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
    )
    bought = {"numpy", "scipy", "numba", "pyarrow", "sklearn", "altair", "jinja2", "rich", "msgspec", "pandas"}
    assert not loaded & bought


def test_help_loads_no_library() -> None:
    code = (
        "import sys\nfrom calibrant.cli import build_parser\nbuild_parser().format_help()\n"
        "assert not {'numpy', 'pyarrow', 'numba', 'rich', 'jinja2'} & set(sys.modules), 'heavy'"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.slow(turns=1)
def test_public_names_are_functions_whatever_is_imported_first() -> None:
    code = (
        "import calibrant.audit.run, calibrant.certify.whole, calibrant as cal\n"
        "import calibrant.diagnose.strong_diagnosis, calibrant.detect.local_calibration_test\n"
        "assert callable(cal.diagnose.importance) and callable(cal.detect.local_calibration_test)\n"
        "assert all(callable(f) for f in (cal.audit, cal.certify.rounded, cal.certify.groups, cal.sketch, cal.read))\n"
        "assert {'audit', 'certify', 'predictions'} <= set(dir(cal))"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# ---- applications ----


def core() -> list[Path]:
    return [p for p in FILES if room(p) != "apps" and name_of(p) not in DOORS]


def app_of(path: Path) -> str:
    return path.relative_to(ROOT / "apps").parts[0]


def test_the_core_knows_applications_by_the_table_alone() -> None:
    assert [name_of(p) for p in core() if "apps" in {room(q) for q in imported(p)}] == []
    assert [name_of(p) for p in core() if re.search(r"calibrant[./]apps\b", p.read_text(encoding="utf-8"))] == []


@pytest.mark.parametrize("name", DOORS)
def test_a_door_is_needed_and_holds_names_alone(name: str) -> None:
    path = ROOT / name
    assert "calibrant.apps." in path.read_text(encoding="utf-8")
    made = [n for n in tree(path).body if isinstance(n, (ast.FunctionDef, ast.ClassDef))]
    assert not made or name in ("__init__.py", "plugins.py")


def public_for_apps(module: str) -> bool:
    """Tell whether applications may import from a module."""
    _, *rest = module.split(".")
    return not rest or rest[0] == "toolkit" or rest == [*{*rest} & {*FOR_APPS, *calibrant._MODULES}]


def of_app(path: Path) -> Iterator[tuple[str, str]]:
    """Yield each module that a file of an application imports from, and the name; its own application is left out."""
    own = f"calibrant.apps.{app_of(path)}."
    for node in nodes(tree(path)):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "calibrant":
            yield from ((node.module, a.name) for a in node.names if not f"{node.module}.".startswith(own))
        elif isinstance(node, ast.Import):
            yield from ((a.name, "") for a in node.names if a.name.split(".")[0] == "calibrant")
    yield from ((m, "") for m in by_name(tree(path), module_of(path)) if not f"{m}.".startswith(own) and m != UNKNOWN)


def apps() -> list[Path]:
    return [p for p in FILES if room(p) == "apps" and p.parent != ROOT / "apps"]


def test_applications_import_public_names_only() -> None:
    """From modules that are public for them, and of a face what it shows; one application knows no other."""
    beyond = {name_of(p): {m for m, _ in of_app(p) if not public_for_apps(m)} for p in apps()}
    allowed = {name: {f"calibrant.{m}" for m in modules} for name, (modules, _) in BEYOND.items()}
    assert {name: found for name, found in beyond.items() if found} == allowed
    lazy_module = {m for p in apps() for m, _ in of_app(p) if public_for_apps(m) and m.split(".")[-1] not in FOR_APPS}
    shown = {m: set(dir(importlib.import_module(m))) for m in lazy_module}
    assert [(name_of(p), m, n) for p in apps() for m, n in of_app(p) if m in shown and n and n not in shown[m]] == []


@pytest.mark.slow(turns=1)
def test_the_toolkit_does_not_grow() -> None:
    lazy_module = [importlib.import_module(module_of(p)) for p in FILES if p.parent == ROOT / "toolkit"]
    shown = [(f.__name__, n) for f in lazy_module for n in getattr(f, "__all__", ())]
    assert len(shown) == TOOLKIT
    used = {pair for p in apps() for pair in of_app(p)}
    assert [n for n in shown if n not in used] == []
    for f in lazy_module:
        assert all(hasattr(f, n) for n in getattr(f, "__all__", ()))
