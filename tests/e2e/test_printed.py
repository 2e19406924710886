"""What is printed for programs is what files hold, and engines run it as Python does, whatever names there are."""

from __future__ import annotations

from pathlib import Path

import pytest

import calibrant as cal
import engines
import hostile_names
from calibrant.cli.standard_output import StandardOutput
from calibrant.errors import BadInput
from hostile_names import CHECKS, NAMES, REFUSED, Scenario

SOME = (
    *("soft hyphen", "line separator", "right-to-left override", "colours of a terminal", "carriage return", "quotes"),
    *("backslash", "template", "end of a script", "formula behind blanks", "prototype", "emoji"),
)
QUICK = {k: check for k, check in CHECKS.items() if k[0] not in ("audit", "papers")}
SLOW = {k: check for k, check in CHECKS.items() if k not in QUICK}
IN_SQL = [text for name, text in NAMES.items() if name not in (*REFUSED, "NUL")]


def named(keys: dict[tuple[str, str], object]) -> list[str]:
    return [" ".join(k) for k in keys]


@pytest.fixture(scope="module")
def some(tmp_path_factory: pytest.TempPathFactory) -> Scenario:
    """Rows of twelve such levels, in a column and a folder that are called so too."""
    folder = tmp_path_factory.mktemp("names") / NAMES["quotes"]
    folder.mkdir()
    out = Scenario(folder, [NAMES[name] for name in SOME], NAMES["line separator"], NAMES["title of a terminal"])
    out.write()
    return out


@pytest.fixture(scope="module")
def every(tmp_path_factory: pytest.TempPathFactory) -> Scenario:
    """A calibrator by every level that SQL has a text for."""
    out = Scenario(tmp_path_factory.mktemp("every"), IN_SQL, NAMES["injection"], "yes")
    out.write(audit=False)
    return out


def test_every_output_for_programs_is_tried() -> None:
    tried = {o for o in hostile_names.outputs() if o[0] != hostile_names.BUNDLED}
    assert tried == set(CHECKS)
    assert len(NAMES) >= 40


@pytest.mark.parametrize("output", QUICK, ids=named(dict(QUICK)))
def test_what_is_printed_is_what_the_file_holds(output: tuple[str, str], some: Scenario) -> None:
    CHECKS[output](some)


@pytest.mark.parametrize("output", [("apply", "sql")])
def test_a_display_filter_is_noticed(output: tuple[str, str], some: Scenario, monkeypatch: pytest.MonkeyPatch) -> None:
    """A saboteur: what programs read passes the filter of what a terminal shows."""
    monkeypatch.setattr(StandardOutput, "write_exact", StandardOutput.write)
    with pytest.raises(AssertionError):
        CHECKS[output](some)


@pytest.mark.slow
@pytest.mark.parametrize("output", SLOW, ids=named(dict(SLOW)))
def test_what_is_printed_by_longer_commands_is_what_the_file_holds(output: tuple[str, str], some: Scenario) -> None:
    CHECKS[output](some)


@pytest.mark.parametrize("engine", ["duckdb", "sqlite", "node"])
def test_engines_repair_every_level_as_python_does(engine: str, every: Scenario) -> None:
    if engine == "duckdb":
        pytest.importorskip("duckdb")
    assert hostile_names.worst(every, engine) <= 1e-12


@pytest.mark.slow
def test_postgres_repairs_every_level_as_python_does(every: Scenario) -> None:
    if why := engines.no_postgres():
        pytest.skip(why)
    with engines.postgres() as run:
        assert hostile_names.worst(every, "postgres", run) <= 1e-12


def test_cells_of_tables_are_read_back(some: Scenario) -> None:
    hostile_names.cells_read_back(some)


def test_cells_of_the_workbook_are_read_back(some: Scenario) -> None:
    for library in ("openpyxl", "xlsxwriter"):
        pytest.importorskip(library)
    hostile_names.workbook_read_back(some)


def test_a_level_that_sql_has_no_text_for_is_refused(tmp_path: Path) -> None:
    one = Scenario(tmp_path, [NAMES["NUL"], "b"], "g", "yes")
    one.write(audit=False)
    with pytest.raises(hostile_names.Refused, match=r"'a\\x00b' holds a character that SQL has no text for"):
        CHECKS["apply", "sql"](one)
    assert hostile_names.worst(one, "node") <= 1e-12


HALF = NAMES["half a character"]


@pytest.mark.parametrize("word", ["name", "outcome", "model", "population"])
def test_half_a_character_is_refused_where_a_record_would_hold_it(word: str) -> None:
    data = cal.predictions([0, 1] * 50, [0.4, 0.6] * 50)
    with pytest.raises(BadInput, match="pass whole characters, for half of a pair of surrogates"):
        cal.audit(data, quick=True, **{word: HALF})
    with pytest.raises(BadInput, match="pass whole characters"):
        cal.predictions([0, 1] * 50, [0.4, 0.6] * 50, name=HALF)
    with pytest.raises(BadInput, match=r"covariate 'g' holds 'a\\ud800b': half of a pair"):
        cal.predictions([0, 1] * 50, [0.4, 0.6] * 50, {"g": [HALF, "b"] * 50})


@pytest.mark.parametrize("name", [HALF, NAMES["NUL"]])
def test_a_name_that_no_file_can_have_is_refused(name: str, some: Scenario) -> None:
    record = str(some.folder / "record.json")
    for arguments in (
        ["report", name],
        ["report", record, "-o", f"{name}.html"],
        ["report", record, "-o", f"{name}/"],
    ):
        with pytest.raises(hostile_names.Refused, match="is the name of no file"):
            some.run(*arguments)
