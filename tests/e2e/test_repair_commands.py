"""`calibrant repair` and `calibrant apply`, as a user runs them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import calibrant as cal
from calibrant.cli import main
from calibrant.data.sources.source import ROWS
from calibrant.repair.calibrators.curves import Logistic
from calibrant.repair.fitted import Calibrator, fitted_on
from calibrant.repair.judge.verdict import Comparison

BIG = 700_000


def table(n: int, bend: float = 2.0, seed: int = 3) -> Any:
    rng = np.random.default_rng([seed, 0xE2E])
    true = rng.uniform(size=n)
    return pa.table(
        {
            "id": [f"k{i}" for i in range(n)] if n < 10_000 else pa.array(np.arange(n)),
            "y": (rng.uniform(size=n) < true).astype(np.int8),
            "p": true**bend,
            "sex": pa.array(np.where(rng.uniform(size=n) < 0.5, "f", "m")),
            "age": rng.integers(18, 90, n),
        }
    )


@pytest.fixture(scope="module")
def big(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory with two files that hold more rows than a batch, and than are fitted on and judged."""
    where = tmp_path_factory.mktemp("big")
    whole = table(BIG)
    (where / "log").mkdir()
    pq.write_table(whole.slice(0, 400_000), where / "log" / "a.parquet", row_group_size=300_000)
    pq.write_table(whole.slice(400_000), where / "log" / "b.parquet", row_group_size=300_000)
    assert ROWS < 300_000 < BIG
    args = [
        "repair",
        str(where / "log"),
        "--label",
        "y",
        "--score",
        "p",
        "--variables",
        "age,sex",
        "--by",
        "sex",
        "--quick",
    ]
    assert (
        main(
            [
                *args,
                "--method",
                "platt,beta",
                "--out",
                str(where / "out.parquet"),
                "-o",
                str(where / "calibrator.json"),
            ]
        )
        == 0
    )
    return where


def test_every_row_and_column_is_there_with_its_repaired_score(big: Path) -> None:
    out, whole = pq.read_table(big / "out.parquet"), table(BIG)
    assert out.column_names == [*whole.column_names, "p_repaired", "p_fitted_on"]
    assert out.select(whole.column_names).equals(whole)
    fitted = Calibrator.from_json((big / "calibrator.json").read_text())
    np.testing.assert_array_equal(out["p_repaired"].to_numpy(), fitted.scores(whole["p"].to_numpy()))


@pytest.mark.slow
def test_the_rows_of_the_fit_are_marked_exactly(big: Path) -> None:
    out = pq.read_table(big / "out.parquet")
    fitted = Calibrator.from_json((big / "calibrator.json").read_text())
    rows = out.filter(out["p_fitted_on"])
    assert rows.num_rows == fitted.fitted_on.rows == 150_000
    data = cal.predictions(rows["y"].to_numpy(), rows["p"].to_numpy())
    assert fitted_on(data) == fitted.fitted_on
    with pytest.raises(cal.BadInput, match="very rows it was fitted on"):
        cal.repair.evaluate(data, repairs=fitted, tests=())
    others = out.filter(pc.invert(out["p_fitted_on"])).slice(0, 20_000)
    judged = cal.predictions(others["y"].to_numpy(), others["p"].to_numpy())
    assert cal.repair.evaluate(judged, repairs=fitted, tests=()).recommended == fitted.recipe


@pytest.mark.slow
def test_apply_gives_the_same_scores_in_any_format(big: Path, capsys: pytest.CaptureFixture[str]) -> None:
    expected = pq.read_table(big / "out.parquet")["p_repaired"].to_numpy()
    for ending in ("parquet", "arrow", "csv"):
        out = big / f"applied.{ending}"
        assert main(["apply", str(big / "calibrator.json"), str(big / "log"), "--score", "p", "--out", str(out)]) == 0
        assert "700,000 rows, p_repaired by" in capsys.readouterr().out
        read = {"parquet": pq.read_table, "arrow": pyarrow.feather.read_table, "csv": pyarrow.csv.read_csv}[ending](out)
        assert read.column_names == ["id", "y", "p", "sex", "age", "p_repaired"]
        np.testing.assert_allclose(read["p_repaired"].to_numpy(), expected, rtol=1e-14)
        assert read["sex"].type == pa.string()
    assert not list(big.glob(".*"))


@pytest.mark.slow
def test_csv_by_key_with_covariates_and_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pyarrow.csv.write_csv(table(4000), tmp_path / "log.csv")
    args = [
        "repair",
        str(tmp_path / "log.csv"),
        "--label",
        "y",
        "--score",
        "p",
        "--key",
        "id",
        "--by",
        "sex",
        "--quick",
        "--json",
    ]
    more = [
        "--method",
        "augmented-logistic",
        "--out",
        str(tmp_path / "out.tsv"),
        "-o",
        str(tmp_path / "m.json"),
    ]
    assert main([*args, "--variables", "sex,age", *more]) == 0
    found = Comparison.from_dict(json.loads(capsys.readouterr().out))
    assert found.recommended == "AugmentedLogistic"
    assert found.calibrators["AugmentedLogistic"] == Calibrator.from_json((tmp_path / "m.json").read_text())
    out = pyarrow.csv.read_csv(tmp_path / "out.tsv", parse_options=pyarrow.csv.ParseOptions(delimiter="\t"))
    assert out["p_fitted_on"].to_pylist().count(True) == 2000
    whole = table(4000)
    again = found.calibrators["AugmentedLogistic"].scores(whole["p"].to_numpy(), columns=whole)
    np.testing.assert_allclose(out["p_repaired"].to_numpy(), again, atol=1e-12)
    shuffled = whole.take(np.random.default_rng(0).permutation(4000))
    pq.write_table(shuffled, tmp_path / "shuffled.parquet")
    args[1] = str(tmp_path / "shuffled.parquet")
    assert main([*args, "--variables", "sex,age", *more[:2]]) == 0  # the key names the rows, not their place
    again_found = Comparison.from_dict(json.loads(capsys.readouterr().out))
    mine, other = (f.calibrators["AugmentedLogistic"].fitted_on for f in (found, again_found))
    assert mine == other


@pytest.mark.slow
def test_judging_on_another_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pq.write_table(table(3000, seed=1), tmp_path / "old.parquet")
    pq.write_table(table(2000, seed=2), tmp_path / "new.parquet")
    args = [
        "repair",
        str(tmp_path / "old.parquet"),
        "--judge-on",
        str(tmp_path / "new.parquet"),
        "--label",
        "y",
        "--score",
        "p",
    ]
    more = ["--method", "platt", "--variables", "none", "--out", str(tmp_path / "o.parquet")]
    assert main([*args, *more]) == 0
    stated = capsys.readouterr().out
    assert "Fitted on 3,000 other rows, judged on 2,000." in stated.replace("\u202f", " ")
    assert "Recommended: Platt" in stated
    assert all(pq.read_table(tmp_path / "o.parquet")["p_fitted_on"].to_pylist())
    args[3] = args[1]
    assert main([*args, *more]) == 2
    assert "hold the same 3,000 rows: judge a calibrator on rows that it was not fitted on" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("far", "scale", "words"), [(0.05, "raw", "the raw score"), (0.0, "logit", "the log-odds of the score")]
)
def test_it_says_which_scale_platt_took(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], far: float, scale: str, words: str
) -> None:
    rng = np.random.default_rng(6)
    p = np.where(rng.uniform(size=4000) < far, 1e-9, rng.uniform(0.02, 0.9, 4000))
    y = rng.uniform(size=4000) < np.where(p < 1e-6, 0.125, p)
    pq.write_table(pa.table({"y": y.astype(int), "p": p}), tmp_path / "log.parquet")
    args = ["repair", str(tmp_path / "log.parquet"), "--label", "y", "--score", "p", "--method", "platt,isotonic"]
    main([*args, "--quick"])
    stated = capsys.readouterr().out
    assert f"\nPlatt: fitted to {words}.\n" in stated
    assert stated.count("fitted to") == 1
    main([*args, "--quick", "--json"])
    assert json.loads(capsys.readouterr().out)["table"]["columns"]["scale"] == [None, scale, None]


@pytest.mark.slow
def test_nothing_better_writes_nothing_unless_one_repair_was_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pq.write_table(table(3000, bend=1.0), tmp_path / "log.parquet")
    out, where = tmp_path / "o.parquet", tmp_path / "m.json"
    args = ["repair", str(tmp_path / "log.parquet"), "--label", "y", "--score", "p", "--variables", "none"]
    assert main([*args, "--out", str(out), "-o", str(where)]) == 3
    stated = capsys.readouterr().out
    assert "None is recommended" in stated
    assert f"{where}: nothing written" in stated
    assert not out.exists()
    assert not where.exists()
    assert main([*args, "--out", str(out), "-o", str(where), "--method", "platt"]) == 3
    assert out.exists()


def test_a_repair_shown_to_be_worse_exits_with_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(8)
    p = rng.uniform(size=4000)
    pq.write_table(pa.table({"y": (rng.uniform(size=4000) < p**3).astype(int), "p": p}), tmp_path / "old.parquet")
    p = rng.uniform(size=4000)
    pq.write_table(pa.table({"y": (rng.uniform(size=4000) < p**0.5).astype(int), "p": p}), tmp_path / "new.parquet")
    args = [
        "repair",
        str(tmp_path / "old.parquet"),
        "--judge-on",
        str(tmp_path / "new.parquet"),
        "--label",
        "y",
        "--score",
        "p",
    ]
    assert main([*args, "--method", "platt"]) == 1
    assert "worse in certified error" in capsys.readouterr().out


def broken(tmp_path: Path, **columns: Any) -> str:
    whole = table(100)
    for name, values in columns.items():
        whole = whole.set_column(whole.column_names.index(name), name, pa.array(values))
    pq.write_table(whole, tmp_path / "bad.parquet")
    return str(tmp_path / "bad.parquet")


def scores(*changed: tuple[int, Any]) -> list[Any]:
    out: list[Any] = table(100)["p"].to_pylist()
    for row, value in changed:
        out[row] = value
    return out


def saved(tmp_path: Path, one: Any = None) -> str:
    (tmp_path / "calibrator.json").write_text((one or Logistic(recipe="Platt", slope=2.0, intercept=0.0)).to_json())
    return str(tmp_path / "calibrator.json")


def test_apply_names_bad_scores_and_leaves_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "o.parquet"
    for values, says in (
        (
            scores((7, None), (9, float("nan"))),
            "column 'p': 2 values are missing (null or NaN); fill them in, or pass --missing drop",
        ),
        (
            scores((3, 1.5)),
            "column 'p': 1 value is outside 0 to 1; the other 99 are within: correct it, or leave its row out.",
        ),
    ):
        assert main(["apply", saved(tmp_path), broken(tmp_path, p=values), "--score", "p", "--out", str(out)]) == 2
        assert says in capsys.readouterr().err
        assert sorted(f.name for f in tmp_path.iterdir()) == ["bad.parquet", "calibrator.json"]


def test_repair_can_pass_over_missing_scores(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole = table(3000)
    values = [None if i % 10 == 0 else v for i, v in enumerate(whole["p"].to_pylist())]
    pq.write_table(whole.set_column(2, "p", pa.array(values)), tmp_path / "log.parquet")
    args = ["repair", str(tmp_path / "log.parquet"), "--label", "y", "--score", "p", "--variables", "none", "--quick"]
    args += ["--method", "platt", "--out", str(tmp_path / "o.parquet")]
    assert main(args) == 2
    assert "column 'p': 300 values are missing" in capsys.readouterr().err
    assert main([*args, "--missing", "drop"]) == 0
    repaired = pq.read_table(tmp_path / "o.parquet")["p_repaired"]
    assert repaired.null_count == 300
    assert repaired[1].as_py() is not None


def test_what_apply_refuses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good, where = broken(tmp_path), saved(tmp_path)
    pq.write_table(table(50).append_column("p_repaired", pa.array(np.zeros(50))), tmp_path / "twice.parquet")
    (tmp_path / "no.json").write_text("{}")
    (tmp_path / "not.json").write_text("map")
    reads = cal.repair.AugmentedLogistic(variables=("sex",)).fit(
        cal.predictions(table(200)["y"].to_numpy(), table(200)["p"].to_numpy(), table(200).select(["sex"]))
    )
    (tmp_path / "reads.json").write_text(replace(reads, codings=(replace(reads.codings[0], name="gender"),)).to_json())
    for args, says in (
        ([where, good, "--score", "q", "--out", "o.parquet"], "score column 'q' is not in the data"),
        ([where, good, "--score", "p", "--out", "o.xlsx"], "cannot write 'o.xlsx': end its name in .parquet"),
        ([where, good, "--score", "p", "--out", str(tmp_path / "no" / "o.csv")], "there is no directory"),
        ([where, good, "--score", "p", "--out", good], "is among the files to read"),
        (
            [where, str(tmp_path / "twice.parquet"), "--score", "p", "--out", "o.csv"],
            "column 'p_repaired' is in the data already",
        ),
        ([str(tmp_path / "gone.json"), good, "--score", "p", "--out", "o.csv"], "cannot read the calibrator"),
        ([str(tmp_path / "no.json"), good, "--score", "p", "--out", "o.csv"], "not a calibrator of this version"),
        ([str(tmp_path / "not.json"), good, "--score", "p", "--out", "o.csv"], "not JSON"),
        (
            [str(tmp_path / "reads.json"), good, "--score", "p", "--out", "o.csv"],
            "covariate column 'gender' is not in the data",
        ),
    ):
        assert main(["apply", *args]) == 2
        assert says in capsys.readouterr().err


def test_a_format_that_cannot_hold_a_column_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pq.write_table(table(50).append_column("list", pa.array([[1, 2]] * 50)), tmp_path / "lists.parquet")
    args = ["apply", saved(tmp_path), str(tmp_path / "lists.parquet"), "--score", "p", "--out"]
    assert main([*args, str(tmp_path / "o.csv")]) == 2
    assert "o.csv': Unsupported cast from list" in capsys.readouterr().err
    assert not list(tmp_path.glob("*o.csv*"))
    assert main([*args, str(tmp_path / "o.parquet")]) == 0


def test_what_repair_refuses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = broken(tmp_path)
    for args, says in (
        (["--label", "z", "--score", "p"], "label column 'z' is not in the data"),
        (["--label", "y"], "name the columns"),
        (["--label", "y", "--score", "p", "--method", "plat"], "--method 'plat': choose auto"),
        (["--label", "y", "--score", "p", "--method", "augmented-beta", "--variables", "none"], "reads covariates"),
        (["--label", "y", "--score", "p", "--by", "y"], "covariate 'y' is the label"),
        (["--label", "y", "--score", "p", "--by", "sexx"], "'sexx' is not in the data; did you mean 'sex'"),
        (["--label", "sex", "--score", "p"], "pass positive="),
        (["--label", "y", "--score", "p", "--key", "sex"], "--key sex: 98 of 100 rows repeat the key of another"),
        (["--label", "y", "--score", "p", "-o", str(tmp_path / "no" / "m.json")], "there is no directory"),
        (
            ["--label", "y", "--score", "p", "--by", "sex", "--bins", "age=40"],
            "bins for 'age', which is not a group column: name it in --by",
        ),
        (["--label", "sex", "--score", "p", "--positive", "x"], "positive='x' does not occur"),
    ):
        assert main(["repair", good, *args]) == 2
        assert says in capsys.readouterr().err


@pytest.mark.slow
def test_units_stay_whole_and_are_no_covariate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(3)
    patient = np.repeat(np.arange(400), rng.integers(1, 9, 400))
    true = rng.uniform(0.05, 0.95, len(patient))
    log, out = tmp_path / "log.parquet", tmp_path / "out.parquet"
    columns = {"patient": patient, "weight": 1.0 + patient % 3, "sex": np.array(["f", "m"])[patient % 2], "p": true**3}
    pq.write_table(pa.table({**columns, "y": (rng.uniform(size=len(true)) < true).astype(int)}), log)
    asked = ["--label", "y", "--score", "p", "--cluster", "patient", "--weights", "weight", "--method", "platt"]
    assert main(["repair", str(log), *asked, "--quick", "--out", str(out)]) == 0
    reported = " ".join(capsys.readouterr().out.split())
    assert "other clusters. " in reported
    assert "error by sex" in reported
    written = pq.read_table(out)
    fitted = written["p_fitted_on"].to_numpy()
    sides = {int(i): set(fitted[patient == i].tolist()) for i in range(400)}
    assert all(len(side) == 1 for side in sides.values())
    cluster_sums = sum(side == {True} for side in sides.values())
    assert f"rows of {cluster_sums} clusters, judged on" in reported


def test_apply_prints_the_map_in_other_languages(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import duckdb

    where, good = saved(tmp_path), broken(tmp_path)
    assert main(["apply", where, "--score", "p", "-o", "duckdb:-", "--table", good]) == 0
    named = capsys.readouterr().out
    folder = '"."'.join(good.split("."))
    query = named.replace(f'FROM "{folder}"', f"FROM '{good}'")  # a file stands in for the table
    assert main(["apply", where, good, "--score", "p", "--out", str(tmp_path / "o.parquet")]) == 0
    applied = pq.read_table(tmp_path / "o.parquet")["p_repaired"].to_numpy()
    found = duckdb.sql(query).to_arrow_table()["p_repaired"].to_numpy()
    np.testing.assert_allclose(found, applied, rtol=0, atol=1e-12)
    capsys.readouterr()
    assert main(["apply", where, "--score", "p", "-o", "javascript:-"]) == 0
    assert capsys.readouterr().out.startswith("function repaired(score")
    for args, says in (
        ([good, "-o", "duckdb:-"], "reads no data: leave the files out"),
        (["-o", "oracle:-"], "'oracle' names no output: choose from bigquery"),
        (["-o", "javascript:-", "--table", "t"], "--table of SQL"),
        ([good, "--table", "t", "--out", "o.csv"], "--table of SQL"),
        ([good], "name the file to write with -o"),
    ):
        assert main(["apply", where, "--score", "p", *args]) == 2
        assert says in capsys.readouterr().err


@pytest.mark.parametrize(
    ("of_percent", "flags", "fix"),
    [
        (True, [], "multiply them by 100, for the calibrator is of percentages"),
        (True, ["--percent"], "multiply them by 100, for the calibrator is of percentages"),
        (False, ["--percent"], "leave --percent out"),
    ],
)
@pytest.mark.parametrize("highest", ["4.5", "0.9"])
def test_apply_takes_low_per_cent_and_says_so(
    of_percent: bool, flags: list[str], fix: str, highest: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = cal.predictions([0, 1] * 100, np.linspace(0.01, 0.99, 200))
    one = replace(cal.repair.Platt().fit(rows), percent=of_percent)
    where, out, log = tmp_path / "calibrator.json", tmp_path / "o.csv", tmp_path / "new.csv"
    where.write_text(one.to_json(), encoding="utf-8")
    stored = [*np.linspace(0, 0.9, 199).round(4).tolist(), float(highest)]
    log.write_text("\n".join(["p", *map(str, stored)]), encoding="utf-8")
    assert main(["apply", str(where), str(log), "--score", "p", *flags, "--out", str(out)]) == 0
    reported = f"column 'p': most scores are under 1 percent; if they are probabilities, {fix}"
    assert reported in capsys.readouterr().err
    repaired = pyarrow.csv.read_csv(out)["p_repaired"].to_numpy()
    np.testing.assert_allclose(repaired, 100 * one.scores(np.array(stored) / 100), rtol=1e-9)
    log.write_text("\n".join(["p", *map(str, np.linspace(0.5, 99, 200))]), encoding="utf-8")
    assert main(["apply", str(where), str(log), "--score", "p", *flags, "--out", str(tmp_path / "two.csv")]) == 0
    assert "percent" not in capsys.readouterr().err


def test_apply_prints_a_map_of_several_classes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(0)
    p = rng.dirichlet([1, 1, 1], size=300)
    y = (rng.uniform(size=(300, 1)) > p.cumsum(axis=1)).sum(axis=1).clip(0, 2)
    one = cal.repair.Dirichlet(strength=0.1).fit(cal.multiclass_predictions(y, p))
    (tmp_path / "calibrator.json").write_text(one.to_json(), encoding="utf-8")
    where = str(tmp_path / "calibrator.json")
    assert main(["apply", where, "--scores", "a,b,c", "-o", "duckdb:-", "--table", "t"]) == 0
    assert capsys.readouterr().out.strip() == one.to_sql("duckdb", score=["a", "b", "c"], table="t")
    for args, says in (
        (["--score", "a", "-o", "duckdb:-", "--table", "t"], "of 3 classes: name a column each (--scores)"),
        (["--scores", "a,b", "-o", "duckdb:-", "--table", "t"], "of 3 classes: name a column each (--scores)"),
        (["-o", "duckdb:-", "--table", "t"], "with --score, or those of several classes with --scores"),
        (["log.csv", "--scores", "a,b,c", "--out", "o.csv"], "no file at 'log.csv'"),
        (["--scores", "a,b,c", "--logits", "-o", "duckdb:-", "--table", "t"], "code reads probabilities, and --logits"),
        (["log.csv", "--score", "a", "-o", "o.json"], "apply writes rows or code"),
    ):
        assert main(["apply", where, *args]) == 2
        assert says in capsys.readouterr().err


def classes_log(path: Path, *, scale: float = 1.0, logits: bool = False, gaps: bool = False) -> Path:
    """Rows of three classes whose probabilities are too sure, with a group; some without label or probability."""
    rng = np.random.default_rng(3)
    p = rng.dirichlet([0.6] * 3, 1200)
    truth = p**0.5 / (p**0.5).sum(axis=1, keepdims=True)
    y = (rng.uniform(size=(1200, 1)) > truth.cumsum(axis=1)).sum(axis=1).clip(0, 2)
    values = np.log(p) + 1.0 if logits else scale * p
    table = {f"p_{name}": values[:, k] for k, name in enumerate("abc")} | {"kind": np.array(list("abc"))[y]}
    table |= {"site": np.array(["n", "s"])[rng.integers(0, 2, 1200)]}
    if gaps:
        table["kind"][[1, 5]] = ""
        table["p_b"][7] = np.nan
    pyarrow.csv.write_csv(pa.table(table), path)
    return path


OF_CLASSES = ["--label", "kind", "--score", "p_*", "--method", "temperature"]


@pytest.mark.parametrize(
    ("way", "flags"), [({}, []), ({"scale": 100.0}, ["--percent"]), ({"logits": True}, ["--logits"])]
)
def test_rows_of_classes_are_repaired_as_their_calibrator_says(tmp_path: Path, way: Any, flags: list[str]) -> None:
    log, out, where = classes_log(tmp_path / "log.csv", **way), tmp_path / "out.parquet", tmp_path / "c.json"
    assert main(["repair", str(log), *OF_CLASSES, *flags, "-o", str(out), "-o", str(where)]) == 0
    one = cal.repair.Calibrator.from_json(where.read_text())
    assert one.percent == ("--percent" in flags)
    data, unit = pyarrow.csv.read_csv(classes_log(tmp_path / "plain.csv")), 100.0 if one.percent else 1.0
    expected = unit * one.scores(np.column_stack([data[f"p_{k}"] for k in "abc"]))
    made = pyarrow.parquet.read_table(out)
    repaired = np.column_stack([made[f"p_{k}_repaired"] for k in "abc"])
    np.testing.assert_allclose(repaired, expected, rtol=1e-9)
    later = tmp_path / "later.csv"
    how = [f for f in flags if f != "--percent"]  # a calibrator of percentages says so itself
    assert main(["apply", str(where), str(log), "--score", "p_*", *how, "-o", str(later)]) == 0
    again = pyarrow.csv.read_csv(later)
    np.testing.assert_allclose(np.column_stack([again[f"p_{k}_repaired"] for k in "abc"]), expected, rtol=1e-9)


@pytest.mark.slow
def test_rows_of_classes_that_were_fitted_are_marked_and_not_audited(tmp_path: Path) -> None:
    log, out = classes_log(tmp_path / "log.csv", gaps=True), tmp_path / "out.parquet"
    record = tmp_path / "r.json"
    assert main(["repair", str(log), *OF_CLASSES, "--missing", "drop", "-o", str(out)]) == 0
    made = pyarrow.parquet.read_table(out)
    fitted = made["p_a_fitted_on"].to_numpy()
    assert len(made) == 1200
    assert not fitted[[1, 5, 7]].any()
    assert np.flatnonzero(~made["p_b_repaired"].is_valid().to_numpy()).tolist() == [7]
    columns = ["--label", "kind", "--score", "p_*_repaired", "--missing", "drop", "--quick"]
    assert main(["audit", str(out), *columns, "-o", str(record)]) == 0
    judged = json.loads(record.read_text())
    assert judged["everyone"]["rows"] == 1200 - 3 - fitted.sum()


def test_classes_are_judged_on_other_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = classes_log(tmp_path / "log.csv")
    half = pyarrow.csv.read_csv(log)
    for name, rows in (("fit.csv", half.slice(0, 700)), ("judge.csv", half.slice(700))):
        pyarrow.csv.write_csv(rows, tmp_path / name)
    args = ["repair", str(tmp_path / "fit.csv"), *OF_CLASSES, "--json", "--judge-on"]
    assert main([*args, str(tmp_path / "judge.csv")]) == 0
    settings = json.loads(capsys.readouterr().out)["settings"]
    assert (settings["rows_fitted"], settings["rows_judged"]) == (700, 500)
    assert main([*args, str(tmp_path / "fit.csv")]) == 2
    assert "judge a calibrator on rows that it was not fitted on" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (["--by", "site", "--limit", "0.02"], "--by and --limit: repairs of several classes take none"),
        (["-o", "-"], "standard output has the comparison"),
        (["--table", "t"], "--table is of SQL"),
        (["--renormalize", "-o", "c.sql"], "code reads probabilities, and --renormalize makes them first"),
        (["--logits", "-o", "c.js"], "code reads probabilities, and --logits makes them first"),
        (["--positive", "a"], "--positive is of two classes"),
    ],
)
def test_what_repairs_of_classes_do_not_take_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], more: list[str], says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["repair", str(classes_log(tmp_path / "log.csv")), *OF_CLASSES, *more]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert says in line


@pytest.mark.slow
def test_a_plan_and_the_rows_of_a_group_are_of_the_most_probable_class(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log, out = str(classes_log(tmp_path / "log.csv")), tmp_path / "rows.csv"
    columns, data = ["--label", "kind", "--score", "p_*"], pyarrow.csv.read_csv(log)
    top = np.column_stack([data[f"p_{k}"] for k in "abc"]).max(axis=1)
    assert main(["plan", "--data", log, *columns, "--by", "site", "--limit", "0.1", "--draws", "20", "--json"]) == 0
    planned = json.loads(capsys.readouterr().out)["columns"]
    plain = cal.predictions(np.arange(1200) % 2, top, {"site": data["site"]})
    expected = cal.certify.decidable(plain, by="site", limit=0.1, draws=20).columns
    assert planned["gap_within"] == pytest.approx(list(expected["gap_within"]))
    for group, rows in (
        ("site = n", data["site"].to_numpy(zero_copy_only=False) == "n"),
        ("the score over 0.7 and site = s", (top > 0.7) & (data["site"].to_numpy(zero_copy_only=False) == "s")),
    ):
        assert main(["audit", log, *columns, "--by", "site", "--rows-of", group, "-o", str(out)]) == 0
        assert pyarrow.csv.read_csv(out)["p_a"].to_pylist() == data["p_a"].filter(rows).to_pylist()
        out.unlink()
