"""Options that say what to read: lists of names, units, what is missing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import calibrant as cal
from calibrant import Sketch
from calibrant.cli import main
from calibrant.cli.options import names
from calibrant.cli.parser import build_parser

COLUMNS = ["--label", "y", "--score", "p"]


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pa.Table:
    rng = np.random.default_rng(11)
    p = rng.uniform(size=300)
    levels = {name: rng.choice(["a", "b"], size=300) for name in ("sex", "a,b", "first name", 'in "quotes"')}
    table = pa.table({"y": (rng.uniform(size=300) < p).astype(int), "p": p, **levels})
    pq.write_table(table, tmp_path / "log.parquet")
    monkeypatch.chdir(tmp_path)
    return table


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a,b", ("a", "b")),
        ('"a,b",c', ("a,b", "c")),
        (' first name , "in ""quotes""" ', ("first name", 'in "quotes"')),
        ('" a",', (" a",)),
        ('a"b,,c', ('a"b', "c")),
    ],
)
def test_names_are_split_as_csv_is(text: str, found: tuple[str, ...]) -> None:
    assert names(text) == found


@pytest.mark.parametrize("text", ["", " ", ",", " , "])
def test_an_option_that_names_nothing_is_refused(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", "log.parquet", *COLUMNS, "--by", text]) == 2
    assert "names nothing: leave the option out" in capsys.readouterr().err


def test_a_list_given_twice_adds_up(log: pa.Table) -> None:
    given = ["--by", "sex", "--by", '"a,b",first name', "--by", '"in ""quotes"""', "--variables", "none"]
    assert main(["sketch", "log.parquet", *COLUMNS, *given, "--out", "log.sketch"]) == 0
    made = Sketch.from_bytes(Path("log.sketch").read_bytes())
    assert [v.name for v in made.spec.variables] == ["sex", "a,b", "first name", 'in "quotes"']
    a = build_parser().parse_args(
        ["audit", "x", "--key", "a", "--key", "b,c", "--variables", "d", "--variables", "e", "--fail-on", "f"]
    )
    assert (a.key, a.variables, a.fail_on) == (("a", "b", "c"), ("d", "e"), ("f",))
    a = build_parser().parse_args(["repair", "x", "--method", "platt", "--method", "isotonic,beta"])
    assert a.method == ("platt", "isotonic", "beta")


def test_files_stand_where_they_like() -> None:
    for line in ("apply m --score p --out o a b", "apply --score p m a --out o b", "apply m a b --out o --score p"):
        a = build_parser().parse_args(line.split())
        assert (a.calibrator, a.files) == ("m", ["a", "b"])
    with pytest.raises(SystemExit):
        build_parser().parse_args(["audit", "a", "--nonsense", "b"])


def test_an_open_quote_is_told(log: pa.Table, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", "log.parquet", *COLUMNS, "--by", '"a,b']) == 2
    assert "close the quotes" in capsys.readouterr().err


@pytest.fixture
def clusters(log: pa.Table) -> None:
    """Write the same rows with scores from 0 to 1 and in percent; and with gaps."""
    shares = np.round(log["p"].to_numpy(), 4)
    plain = log.set_column(1, "p", pa.array(shares))
    pq.write_table(plain, "plain.parquet")
    pq.write_table(log.set_column(1, "p", pa.array(np.round(100 * shares, 2))), "percent.parquet")
    sex = [None if i in (5, 7) else v for i, v in enumerate(log["sex"].to_pylist())]
    pq.write_table(plain.set_column(2, "sex", pa.array(sex)), "gap.parquet")
    p = [None if i == 3 else float(v) for i, v in enumerate(shares)]
    pq.write_table(plain.set_column(1, "p", pa.array(p)), "score.parquet")


BY = ["--by", "sex", "--variables", "first name"]


def sketched(file: str, *more: str) -> Sketch:
    assert main(["sketch", file, "--out", "made.sketch", *more]) == 0
    return Sketch.from_bytes(Path("made.sketch").read_bytes())


@pytest.mark.slow
def test_per_cent_is_read_as_such(clusters: None, capsys: pytest.CaptureFixture[str]) -> None:
    plain = sketched("plain.parquet", *COLUMNS, *BY)
    percent = sketched("percent.parquet", *COLUMNS, *BY, "--percent")
    assert percent.fingerprint == plain.fingerprint
    assert percent.spec.percent
    Path("like.sketch").write_bytes(percent.to_bytes())
    again = sketched("percent.parquet", "--like", "like.sketch")
    assert again.spec == percent.spec
    assert np.array_equal(again.cells, plain.cells)
    rows = cal.read("percent.parquet", label="y", score="p", percent=True)
    assert np.allclose(rows.p, cal.read("plain.parquet", label="y", score="p").p, rtol=1e-15)
    assert (
        cal.audit("percent.parquet", label="y", score="p", percent=True, quick=True).data["fingerprint"]
        == (cal.audit("plain.parquet", label="y", score="p", quick=True).data["fingerprint"])
    )
    capsys.readouterr()
    assert main(["certify", "percent.parquet", *COLUMNS]) == 2
    assert "did you pass percentages? Pass --percent." in capsys.readouterr().err
    with pytest.raises(cal.BadInput, match="Pass percent=True"):
        cal.read("percent.parquet", label="y", score="p")
    for command in (["certify"], ["repair", "--out", "x.csv"], ["plan", "0.1", "--data"]):
        assert main([*command[:2], *command[2:], "plain.parquet", *COLUMNS, "--percent"]) == 2
        stated = (
            "no score is above 1, as if they were probabilities: leave --percent out, and if they are percent, divide"
        )
        assert stated in capsys.readouterr().err


def test_what_is_missing_is_treated_as_asked(clusters: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert sketched("gap.parquet", *COLUMNS, *BY).n == 300
    for command in (["sketch", "--out", "x.sketch"], ["audit", "--quick"], ["repair"]):
        assert main([*command, "gap.parquet", *COLUMNS, *BY, "--missing", "refuse"]) == 2
        stated = capsys.readouterr().err
        assert "column 'sex': 2 values are missing; fill them in, or leave --missing out" in stated
        assert "First: row 5" in stated
    with pytest.raises(cal.BadInput, match=r"column 'sex': 2 values are missing.*missing="):
        cal.read("gap.parquet", label="y", score="p", by="sex", missing="refuse")
    assert main(["certify", "score.parquet", *COLUMNS]) == 2
    assert "or pass --missing drop to leave those rows out" in capsys.readouterr().err
    with pytest.raises(cal.BadInput, match="or pass drop_missing=True to leave"):
        cal.audit("score.parquet", label="y", score="p")
    dropped = sketched("score.parquet", *COLUMNS, *BY, "--missing", "drop")
    assert (dropped.dropped, dropped.spec.missing) == (1, "drop")
    Path("like.sketch").write_bytes(dropped.to_bytes())
    assert sketched("score.parquet", "--like", "like.sketch").dropped == 1
    assert main(["certify", "score.parquet", *COLUMNS, "--drop-missing"]) == 2
    assert "--drop-missing: write --missing drop" in capsys.readouterr().err


def test_what_was_dropped_merges_with_what_was_whole(clusters: None) -> None:
    whole = cal.sketch("plain.parquet", label="y", score="p", by="sex")
    dropped = cal.sketch("score.parquet", spec=whole.spec, missing="drop")
    both = Sketch.from_bytes(whole.copy().merge(dropped, allow_same=True).to_bytes())
    assert (both.n, both.dropped, both.spec.missing) == (599, 1, "drop")


def test_a_map_remembers_per_cent(clusters: None) -> None:
    both = [("plain.parquet", []), ("percent.parquet", ["--percent"])]
    for i, (file, more) in enumerate(both):
        line = ["repair", file, *COLUMNS, *more, "--method", "platt", "--variables", "none", "--quick"]
        assert main([*line, "-o", f"{i}.json", "--out", f"{i}.parquet"]) in (0, 1, 3)
        assert main(["apply", f"{i}.json", file, "--score", "p", "--out", f"again{i}.parquet"]) == 0
    repaired = [pq.read_table(f"again{i}.parquet")["p_repaired"].to_numpy() for i in (0, 1)]
    assert np.allclose(100 * repaired[0], repaired[1], rtol=1e-12)
    written = pq.read_table("1.parquet")["p_repaired"].to_numpy()
    assert np.array_equal(written, repaired[1])


@pytest.mark.parametrize("words", [["audit", "a.csv", "--colour", "red"], ["measure", "ece", "a.csv", "--colour=red"]])
def test_an_unknown_option_points_to_the_help_of_its_command(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    command = " ".join(["calibrant", *words[: words.index("a.csv")]])
    reported = capsys.readouterr().err
    assert reported == f"{command}: no option --colour; all options: {command} --help-all\n"
