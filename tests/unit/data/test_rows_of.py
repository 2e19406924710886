"""Rows of a group or a subgroup, by the name that a report gives it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import calibrant as cal
from calibrant.cli.run import main
from calibrant.data.specs.coding import codings
from calibrant.errors import BadInput
from calibrant.report.spans import label
from calibrant.views.rules import Condition, columns_of, parsed, text_of


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(8)
    n = 600
    p = rng.uniform(0.05, 0.9, n)
    days = np.datetime64("2026-01-01") + rng.integers(0, 200, n)
    return pd.DataFrame(
        {
            "y": (rng.uniform(size=n) < p).astype(int),
            "p": p,
            "site": rng.choice(["North", "South and East", 'the "old" one', "Valley or Hill"], n),
            "age over all": np.where(rng.uniform(size=n) < 0.1, np.nan, rng.integers(18, 90, n)),
            "day": days,
        }
    )


@pytest.fixture(scope="module")
def log(frame: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path: Path = tmp_path_factory.mktemp("rows") / "log.parquet"
    frame.to_parquet(path)
    return path


def written(log: Path, name: str, *more: str) -> pd.DataFrame:
    out = log.with_name("rows.parquet")
    out.unlink(missing_ok=True)
    assert main(["audit", str(log), "--label", "y", "--score", "p", *more, "--rows-of", name, "-o", str(out)]) == 0
    return pd.read_parquet(out)


@pytest.mark.slow
def test_every_group_of_an_audit_is_written_by_its_name(frame: pd.DataFrame, log: Path) -> None:
    record = cal.audit(frame, label="y", score="p", by=["site", "age over all"], variables=(), quick=True, mask=None)
    assert len(record.groups) > 8  # as many values, and ranges
    for group in record.groups[:: len(record.groups) // 4]:
        kept = written(log, label(group), "--by", "site,age over all")
        assert (len(kept), int(kept["y"].sum())) == (group.rows, group.events)
        assert list(kept.columns) == list(frame.columns)


def test_a_pair_of_groups_is_written(frame: pd.DataFrame, log: Path) -> None:
    by = ("--by", "site,age over all", "--intersections")
    kept = written(log, "site = North, age over all = 40–49", *by)
    some = frame[(frame["site"] == "North") & frame["age over all"].between(40, 49)]
    assert len(kept) == len(some) > 0


CONDITIONS = [
    Condition(variable="site", kind="category", levels=("South and East", 'the "old" one')),
    Condition(variable="site", kind="category", others=("Valley or Hill",)),
    Condition(variable="age over all", kind="number", above=30.0, up_to=61.5),
    Condition(variable="age over all", kind="number", up_to=40.0, missing=True),
    Condition(variable="age over all", kind="number", above=np.inf, missing=True),
    Condition(variable="age over all", kind="number"),
    Condition(variable="day", kind="date", above=20_500.0, up_to=20_590.5),
    Condition(variable="the score", kind="number", above=0.3),
]


def test_rules_are_read_as_they_are_written(frame: pd.DataFrame, log: Path) -> None:
    data = cal.predictions(frame["y"], frame["p"], frame[["site", "age over all", "day"]])
    columns, how = columns_of(data, None), codings(data.covariates, None)
    rules: list[Any] = [(c,) for c in CONDITIONS] + [(CONDITIONS[0], CONDITIONS[2]), (CONDITIONS[1], CONDITIONS[6])]
    for rule in rules:
        again = parsed(text_of(rule), how)
        assert (columns.matching(again) == columns.matching(rule)).all(), text_of(rule)
    kept = written(log, text_of(rules[-2]))
    assert len(kept) == int(columns.matching(rules[-2]).sum()) > 0


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("site = Vally", "column 'site' has no value 'Vally': its values are "),
        ("sites = North", "names no group and no column"),
        ('"age over all" = 50', 'write "age over all" over X, up to Y'),
        ('"age over all" over old', "'old' is no number"),
        ("day after May", "'May' is no date such as 2026-01-31"),
        ("", "names no group and no column"),
    ],
)
def test_what_names_nobody_is_refused(frame: pd.DataFrame, name: str, why: str) -> None:
    data = cal.predictions(frame["y"], frame["p"], frame[["site", "age over all", "day"]])
    with pytest.raises(BadInput) as e:
        parsed(name, codings(data.covariates, None))
    assert why in str(e.value)


def test_thresholds_are_said_to_be_taken_as_written(
    frame: pd.DataFrame, log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = written(log, "the score over 0.44")
    assert len(kept) == int((frame["p"] > 0.44).sum())
    assert f"as written in --rows-of, which gives {len(kept):,} rows" in capsys.readouterr().err
    written(log, "site = North")
    assert "as written" not in capsys.readouterr().err


def test_rows_are_written_on_request_only(log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    start = ["audit", str(log), "--label", "y", "--score", "p"]
    out = tmp_path / "rows.csv"
    for more, why in {
        ("--rows-of", "site = North"): "say where to write the rows with -o",
        ("-o", str(out)): "end the name of a file in .html",
        ("--rows-of", "site = North", "-o", str(out), "-o", "x.html"): "this command writes one file",
        ("--rows-of", "site = North", "-o", str(out), "--open"): "leave --open out",
        ("--rows-of", '"age over all" over 200', "-o", str(out)): "no row of the data is of it",
        ("--rows-of", "site = North", "-o", "rows.txt"): "end its name in",
    }.items():
        assert main([*start, *more]) == 2
        assert why in capsys.readouterr().err
        assert not out.exists()
