"""What comes from files, names and arguments can neither steer a terminal nor break a line of it."""

from __future__ import annotations

import json
import pickle
import re
import sys
import unicodedata
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest

import calibrant as cal
from calibrant.cli.run import main
from calibrant.errors import BadInput, CalibrantWarning, NotComputable
from calibrant.sanitize import HIDDEN, JOINERS, sanitize

EVIL = "\x1b]0;owned\x07\x1b[31mred\u202egnp\x9b31m\r\u2028all fine"


def unseen(text: str) -> list[str]:
    return [c for c in text if unicodedata.category(c) in HIDDEN and c not in f"\n{JOINERS}"]


@pytest.mark.slow
def test_every_hidden_character_is_shown_as_a_code_and_no_other() -> None:
    every = "".join(map(chr, range(sys.maxunicode + 1)))
    assert not unseen(sanitize(every).replace("\n", "?"))
    assert sanitize("⟨é 東京 👩\u200d⚕️ \xa0") == "⟨é 東京 👩\u200d⚕️ \xa0"
    assert sanitize("a\x1bb\nc") == "a⟨U+001B⟩b⟨U+000A⟩c"
    assert sanitize("a\nb\r", keep="\n") == "a\nb⟨U+000D⟩"


@pytest.mark.parametrize("kind", [BadInput, NotComputable, CalibrantWarning])
def test_a_refusal_is_one_line_that_steers_nothing(kind: type[Exception]) -> None:
    stated = kind(f"column {EVIL}\nis bad")
    assert not unseen(str(stated))
    assert "\n" not in str(stated)
    assert str(pickle.loads(pickle.dumps(stated))) == str(stated)  # noqa: S301 - our own


@pytest.mark.parametrize(
    "arguments",
    [
        [EVIL],
        ["audit", f"{EVIL}.csv", "--label", "y", "--score", "p"],
        ["audit", "d.csv", "--label", EVIL, "--score", "p"],
        ["audit", "d.csv", "--label", "y", "--score", "p", "--by", EVIL],
        ["audit", "d.csv", "--label", "y", "--score", "p", f"--{EVIL}"],
        ["audit", "d.csv", "--label", "y", "--score", "p", "--limit", EVIL],
        ["audit", "d.csv", "--label", "y", "--score", "p", "--quick", "--about", EVIL, "--by", "who"],
        ["audit", "d.csv", "--label", "y", "--score", "p", "--quick", "-o", f"{EVIL}.html"],
        ["audit", "d.csv", "--label", "y", "--score", "p", "--quick", "--by", "who", "-o", "markdown:-"],
        ["audit", "d.csv", "--label", "y", "--score", "p", "--quick", "--by", "who", "-o", "html:-"],
        ["audit", "d.csv", "--label", "y", "--score", "p", "--quick", "--by", "who", "--json"],
        ["apply", "calibrator.json", "d.csv", "--score", "p", "--out", "out.csv"],
        ["apply", f"{EVIL}.json", "d.csv", "--score", "p", "--out", "out.csv"],
        ["merge", EVIL, "--out", "x.sketch"],
        ["repair", "d.csv", "--label", "y", "--score", "p", "--key", "id", "--method", EVIL],
    ],
    ids=lambda a: re.sub("[^a-z.-]+", "_", " ".join(a).replace(EVIL, "EVIL").lower())[-60:],
)
def test_the_command_prints_nothing_that_a_terminal_would_obey(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    n = 200
    columns = {"id": np.arange(n), "y": np.arange(n) % 2, "p": np.full(n, 0.5), "who": [EVIL, "b"] * (n // 2)}
    pc.write_csv(pa.table(columns), "d.csv")
    Path("calibrator.json").write_text(
        cal.repair.Rounding().fit().to_json().replace('"Rounding"', '"\\u001b[31mx\\u202e"')
    )
    main(arguments)
    printed = capsys.readouterr()
    assert printed.out or printed.err
    assert not unseen(printed.out + printed.err)


UNSEEN = "\xad", "\u2028", "\u202e", "\x1b[31m", "\x7f", "\x85", "\x9b", "\r", "\n", "\t", "\u200b", "\ue000"
HELD = [f"a{c}b" for c in UNSEEN]


@pytest.mark.slow
def test_what_programs_read_is_the_same_on_standard_output_as_in_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(3)
    n, kinds = 120 * len(HELD), {"json": "json", "html": "html", "markdown": "md", "junit": "xml"}
    who, p = [HELD[k] for k in rng.integers(0, len(HELD), n)], rng.random(n)
    data = cal.predictions(rng.random(n) < p, p, pa.table({EVIL: who}), name=EVIL)
    record = cal.audit(
        data, by=[EVIL], variables=[], limit=0.2, quick=True, name=EVIL, about={"model": "mo\xaddel\u202e"}
    )
    record.save("record.json")
    kinds |= {"summary": "md", "metrics": "json", "model-card": "md", "tripod": "md"}
    for name, ending in kinds.items():
        assert main(["report", "record.json", "-o", f"{name}:out.{ending}"]) == 0
        capsys.readouterr()
        assert main(["report", "record.json", "-o", f"{name}:-"]) == 0
        printed = capsys.readouterr().out
        assert printed.encode() == Path(f"out.{ending}").read_bytes(), name
        assert name == "json" or not unseen(printed), name


def test_names_in_json_that_is_printed_are_those_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    n, names = 200, [f"{h}{k}" for k, h in enumerate(HELD)]
    columns = {"y": np.arange(n) % 2, "p": np.full(n, 0.5)} | {name: np.arange(n) % 7 for name in names}
    pq.write_table(pa.table(columns), "d.parquet")
    assert main(["look", "d.parquet", "--label", "y", "--score", "p", "--json"]) == 0
    seen = {c["name"] for c in json.loads(capsys.readouterr().out)["columns"]}
    assert set(names) <= seen


# ---- a message shows the first characters of a long value ----

LONG = {"run": "x" * 70_000, "words": "a b " * 17_500, "quotes": "' \"" * 23_333, "escapes": "\\'" * 35_000}


@pytest.mark.parametrize("long", LONG.values(), ids=LONG)
@pytest.mark.parametrize("kind", [BadInput, NotComputable, CalibrantWarning])
def test_a_message_shows_the_first_characters_of_a_long_value(kind: type[Exception], long: str) -> None:
    stated = str(kind(f"the row's column {long!r} holds 3 values, the file's other {long[:60]!r} none: rename it"))
    assert stated.startswith(f"the row's column {repr(long)[:60]}")
    assert stated.endswith(
        f"… holds 3 values, the file's other {long[:60]!r} none: rename it".replace("… h", f"…{repr(long)[0]} h")
    )
    assert len(stated) < 350
    assert len(str(kind(f"{long}: no such file"))) < 350
    assert str(kind(f"{long[:60]}: it's a file's name")) == f"{long[:60]}: it's a file's name"


ECHOED = (
    "{}",
    "audit {}",
    "audit d.csv --label {} --score p",
    "audit d.csv --label y --score {}",
    "audit d.csv --label y --score p --by {}",
    "audit d.csv --label y --score p --bins {}",
    "audit d.csv --label y --score p --positive {}",
    "audit d.csv --label y --score p --cluster {}",
    "audit d.csv --label y --score p --limit {}",
    "audit d.csv --label y --score p --fail-on {}",
    "audit d.csv --label y --score p --{}",
    "audit d.csv --label y --score p -o html:{}",
    "audit d.csv --label y --score p --decimal {}",
    "audit d.csv --label y --score p --delimiter {}",
    "audit d.csv --label y --score p --encoding {}",
    "audit --sql {} --label y --score p",
    "audit d.csv --label who --score p",
    "audit d.csv --label y --score who",
    "audit d.csv --label y --score p --by who --quick",
    "audit ragged.csv --label y --score p",
    "look {}",
    "report {}",
    "report record.json",
    "apply calibrator.json d.csv --score p --out out.csv",
    "apply calibrator.json -o {}:- --score p",
    "merge {} --out x.sketch",
    "compare {} {}",
    "measure {} d.csv",
    "measure ece d.csv --label y --score p --bins {}",
    "certify d.csv --label y --score p --method {}",
    "accept d.csv --label y --score p --risk {}",
    "plan {}",
    "plan 0.02 --data {}",
    "repair d.csv --label y --score p --method {} --key id",
    "grades d.csv --label y --score p --grade {}",
    "weigh d.csv --margins {} --out out.csv",
)


@pytest.mark.parametrize("command", ECHOED, ids=[c.replace("{}", "LONG") for c in ECHOED])
def test_no_command_echoes_a_long_value(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    long = LONG["run"]
    columns = {"id": np.arange(4), "y": [0, 1, 0, 1], "p": [0.5] * 4, "who": [long, "b"] * 2}
    pc.write_csv(pa.table(columns), "d.csv")
    Path("ragged.csv").write_text(f"y,p\n1,0.5,{long}\n")
    Path("record.json").write_text(json.dumps({"schema": long, long: long}))
    Path("calibrator.json").write_text(cal.repair.Rounding().fit().to_json().replace("calibrant", long))
    status = main([word.format(long) for word in command.split()])
    printed = capsys.readouterr()
    assert status == 2
    assert printed.err.count("\n") <= 2  # of columns left out, too
    assert len(printed.out + printed.err) < 1500
    assert long[:200] not in printed.out + printed.err
