"""A map may come from anyone: however large, deep or odd, it is refused in one line, in little time and memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import calibrant as cal
from calibrant.cli.run import main
from calibrant.repair import Calibrator
from calibrant.repair.fitted import LARGEST, LISTS, parsed
from calibrant.results import DEEPEST

LINE = '{"format":"calibrant-calibrator/1","kind":"Logistic","recipe":"Platt","slope":1.0,"intercept":0.0'
HEAD = '{"format":"calibrant-calibrator/1","recipe":"x",'


def many(value: str, times: int) -> str:
    return "[" + ",".join([value] * times) + "]"


HOSTILE = {
    "not JSON": "{",
    "nothing": "",
    "a list": "[1]",
    "deep": "[" * 150_000,
    "deep settings": f'{LINE},"settings":{{"a":{"[" * 900 + "]" * 900}}}}}',
    "a little too deep": f'{LINE},"settings":{{"a":{"[" * DEEPEST + "]" * DEEPEST}}}}}',
    "NaN": LINE.replace("1.0", "NaN") + "}",
    "NaN in settings": f'{LINE},"settings":{{"a":NaN}}}}',
    "Infinity in settings": f'{LINE},"settings":{{"a":-Infinity}}}}',
    "a number beyond floats": LINE.replace("1.0", "1e999") + "}",
    "a name twice": f'{LINE},"slope":-5.0}}',
    "a name twice inside": f'{LINE},"settings":{{"a":1,"a":2}}}}',
    "a long integer": LINE.replace("1.0", "9" * 4_000) + "}",
    "a longer integer": LINE.replace("1.0", "9" * 40_000) + "}",
    "many lists": f'{LINE},"settings":{{"a":{many("[]", LISTS)}}}}}',
    "a long text": f'{LINE},"settings":{{"a":"{"x" * LARGEST}"}}}}',
    "many knots": f'{HEAD}"kind":"KernelShift","slope":1.0,"intercept":0.0,"score":[0.0,1.0],"edges":[0.1,0.1],"lines":'
    f"[[0,1.0,{many('0.5', 400_000)},{many('0.5', 400_000)}]]}}",
    "many lines": f'{HEAD}"kind":"KernelShift","slope":1.0,"intercept":0.0,"score":[0.0,1.0],"edges":[0.1,0.1],"lines":'
    f"{many('[0,1.0,[0.5],[0.5]]', 50_000)}}}",
    "many steps": f'{HEAD}"kind":"LevelShifts","bins":100,"grouping":{many("[0,-1]", 60_000)},'
    f'"cells":{many("[0]", 60_000)},"shifts":{many("[0.0]", 60_000)}}}',
    "many trees": f'{HEAD}"kind":"BoostedTrees","feature":{many("[0]", 6_000)},"left":{many("[0]", 6_000)},'
    f'"value":{many("[0.0,0.0]", 6_000)},"score_edges":{many("[]", 600)}}}',
    "many nodes": f'{HEAD}"kind":"Branches","feature":{many("-1", 9_000)},"threshold":{many("0.0", 9_000)},'
    f'"left":{many("-1", 9_000)},"right":{many("-1", 9_000)},"slopes":{many("[1.0,1.0]", 9_000)},'
    f'"intercepts":{many("0.0", 9_000)},"edges":[0.1,0.1]}}',
    "many levels": f'{HEAD}"kind":"Logistic","slope":1.0,"intercept":0.0,"codings":[{{"name":"x","kind":"category",'
    f'"levels":{many(chr(34) + "a" + chr(34), 5_000)}}}]}}',
    "many covariates": f'{LINE},"codings":{many("{" + chr(34) + "name" + chr(34) + ":0}", 20_000)}}}',
}


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow) if n == "many steps" else n for n in HOSTILE])
def test_a_hostile_map_is_refused_in_one_line(name: str) -> None:
    with pytest.raises(cal.BadInput) as refused:
        Calibrator.from_json(HOSTILE[name])
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 400


def test_a_calibrator_of_an_older_version_is_to_be_fitted_again() -> None:
    with pytest.raises(cal.BadInput, match=r"older calibrant, as 'calibrant-map/1': fit it again$"):
        Calibrator.from_json(LINE.replace("calibrant-calibrator", "calibrant-map") + "}")


def test_names_may_be_long_and_a_mark_of_byte_order_is_no_fault(tmp_path: Path) -> None:
    (tmp_path / "calibrator.json").write_bytes(b"\xef\xbb\xbf" + (LINE + "}").encode())
    (tmp_path / "d.csv").write_text("p\n0.5\n")
    asked = [
        str(tmp_path / "calibrator.json"),
        str(tmp_path / "d.csv"),
        "--score",
        "p",
        "--out",
        str(tmp_path / "o.csv"),
    ]
    assert main(["apply", *asked]) == 0


def test_every_map_of_a_recipe_is_well_within_the_bounds() -> None:
    """The fullest: boosted trees of the largest depth, of which early stopping keeps far fewer."""
    nodes, trees = 63, 300
    full = {
        "feature": [[1] * nodes] * trees,
        "left": [[2**52 - 1] * nodes] * trees,
        "value": [[-0.123456789012345678] * 64] * trees,
    }
    text = json.dumps(full, indent=1)
    assert len(text) < LARGEST / 4
    assert parsed(text) == full


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="limits of memory are POSIX's")
def test_the_command_reads_no_more_than_a_map_can_be_long(tmp_path: Path) -> None:
    """What never ends, is a folder, or is huge: one line, within 1 GB of address space beyond what Python needs."""
    (tmp_path / "d.csv").write_text("p\n0.5\n")
    with open(tmp_path / "huge.json", "wb") as file:
        file.truncate(40 << 30)  # a hole: no disk is used
    program = (
        "import resource, sys\n"
        "from calibrant.cli import run, repairing, parser\n"
        "import pyarrow, numpy, msgspec\n"
        "now = int(open('/proc/self/statm').read().split()[0]) * 4096 if sys.platform == 'linux' else 4 << 30\n"
        "resource.setrlimit(resource.RLIMIT_AS, (now + (1 << 30), now + (1 << 30)))\n"
        "for path in sys.argv[1:]:\n"
        "    print(run.main(['apply', path, 'd.csv', '--score', 'p', '--out', 'o.csv']))\n"
    )
    (tmp_path / "full.json").write_text(HOSTILE["many lists"].replace("[]", "0"))
    places = ["/dev/zero", ".", "none.json", "huge.json"]
    done = subprocess.run(
        [sys.executable, "-c", program, *places],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["2"] * len(places)
    assert len(done.stderr.splitlines()) == len(places)
    assert "larger than 16 MB" in done.stderr
