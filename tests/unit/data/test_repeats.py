"""Rows that occur more than once: which are chance, which are copies, and where the same rows may not count twice."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import calibrant as cal
from calibrant.cli import main
from calibrant.data import EMPLOYMENT, EMPLOYMENT_BY, employment_path

READ: dict[str, Any] = {"label": "y", "score": "p"}


def rows(n: int, seed: int, decimals: int | None = None, *, a: float = 1.0, b: float = 1.0) -> pa.Table:
    """Rows with two group columns; scores in full, or rounded."""
    g = np.random.default_rng([seed, 0x2E9])
    p = g.beta(a, b, n)
    y = (g.random(n) < p).astype(np.int8)
    groups = {name: g.choice(["a", "b", "c"], n) for name in ("site", "ward")}
    return pa.table({"y": y, "p": p if decimals is None else np.round(p, decimals), **groups})


def scorecard(n: int, seed: int, base: float) -> pa.Table:
    """Scores that follow from a few whole numbers, so that two people often share everything."""
    g = np.random.default_rng([seed, 0x5C0])
    age, flags = g.integers(20, 100, n), g.integers(0, 2, (n, 4))
    p = 1 / (1 + np.exp(-(base + 0.03 * (age - 60) + flags @ [0.5, 0.4, 0.8, 0.2])))
    columns = {f"f{j}": flags[:, j] for j in range(4)}
    return pa.table({"y": (g.random(n) < p).astype(np.int8), "p": p, "age": age, **columns})


def times(table: pa.Table, k: int) -> pa.Table:
    return pa.concat_tables([table] * k)


def equal_scores(n: int, seed: int) -> pa.Table:
    t, y = rows(n, seed), np.random.default_rng(seed).random(n) < 0.3
    return t.set_column(0, "y", pa.array(y)).set_column(1, "p", pa.array(np.full(n, 0.3)))


def measured(n: int) -> pa.Table:
    """Return rows in whole per cents, with a number that hardly two people share."""
    return rows(n, 8, 2).append_column("size", pa.array(np.random.default_rng(8).normal(size=n)))


def leaking(n: int, seed: int) -> pa.Table:
    """Return rounded scores, six traits that follow them, and a column that is the label: equal rows never differ."""
    t = rows(n, seed, 2)
    z = np.random.default_rng(seed)
    attributes = {
        f"trait{j}": np.digitize(t["p"].to_numpy() + 0.3 * z.normal(size=n), [0.25, 0.5, 0.75]) for j in range(6)
    }
    return pa.table(dict(zip(t.column_names, t.columns, strict=True)) | attributes | {"code": t["y"]})


@pytest.mark.parametrize(
    ("table", "count"),
    [
        (times(rows(150, 1), 5), 600),
        (times(rows(150, 2, 2), 5), None),
        (pa.concat_tables([measured(1000), measured(1000).slice(0, 500)]), 500),
        (times(rows(20, 3), 2), 20),
        (times(scorecard(500, 4, -2.0), 2), None),
        (pa.concat_tables([rows(100_000, 5), rows(100_000, 5).slice(700, 1000)]), 1000),
        (pa.concat_tables([rows(20_000, 6, a=0.1, b=100.0), rows(20_000, 6, a=0.1, b=100.0).slice(0, 200)]), 200),
    ],
    ids=[
        "five times",
        "rounded, five times",
        "rounded, with a number",
        "few, twice",
        "scorecard, twice",
        "one percent",
        "rare, one percent",
    ],
)
def test_copies_are_warned_about(table: pa.Table, count: int | None) -> None:
    found = cal.sketch(table, **READ, variables="*").repeats
    assert found.copied
    assert found.of == len(table)
    assert found.by == "row"
    if count is not None:
        assert found.rows == count if found.exact else abs(found.rows - count) < 0.2 * count


@pytest.mark.slow
@pytest.mark.parametrize(
    "make",
    [
        lambda seed: rows(3000, seed),
        lambda seed: rows(3000, seed, 2),
        lambda seed: rows(3000, seed, 2).select(["y", "p"]),
        lambda seed: rows(3000, seed, 4),
        lambda seed: rows(300, seed, 3),
        lambda seed: rows(3000, seed, 4, a=0.3, b=100.0).select(["y", "p"]),
        lambda seed: leaking(3000, seed),
        lambda seed: equal_scores(3000, seed),
        lambda seed: scorecard(3000, seed, -2.0),
        lambda seed: scorecard(300, seed, -6.0),
    ],
    ids=[
        "full",
        "percent",
        "alone",
        "4 decimals",
        "3 decimals",
        "rare",
        "leaking",
        "equal",
        "scorecard",
        "rare scorecard",
    ],
)
def test_chance_is_not_warned_about(make: Callable[[int], pa.Table]) -> None:
    warned = [cal.sketch(make(seed), **READ, variables="*").repeats.copied for seed in range(10)]
    assert sum(warned) == 0


@pytest.mark.slow
def test_the_bundled_data_repeat_by_chance() -> None:
    plain = cal.sketch(employment_path(), **EMPLOYMENT)
    grouped = cal.sketch(employment_path(), **EMPLOYMENT, by=EMPLOYMENT_BY)
    for found in (plain.repeats, grouped.repeats):
        assert found.rows > 50_000
        assert not found.copied


def test_a_repeated_key_is_counted_and_warned_about() -> None:
    t = rows(1000, 7).append_column("id", pa.array([*range(990), *range(10)]))
    found = cal.sketch(t, **READ, key="id").repeats
    assert found == cal.sketch(t.take(np.random.default_rng(1).permutation(1000)), **READ, key="id").repeats
    assert (found.rows, found.of, found.exact, found.by, found.copied) == (10, 1000, True, "key", True)
    assert not cal.sketch(t.slice(0, 990), **READ, key="id").repeats.copied
    many = pa.concat_tables([rows(60_000, 8)]).append_column("id", pa.array(np.arange(60_000) // 2))
    found = cal.sketch(many, **READ, key="id").repeats
    assert not found.exact
    assert abs(found.rows - 30_000) < 1500


@pytest.mark.slow
def test_an_audit_says_how_many_rows_repeat_and_warns() -> None:
    t = times(rows(150, 1), 5)
    from_table = cal.audit(t, **READ, quick=True)
    in_memory = cal.audit(cal.read(t, **READ, by=["site", "ward"]), quick=True)
    for record in (from_table, in_memory):
        reported = {"rows": 600, "of": 750, "exact": True, "by": "row", "copied": True, "times": 5.0}
        assert record.data["repeats"] == reported
        assert "repeated-rows" in record.data["warnings"]
    assert "repeated-rows" not in cal.audit(rows(750, 1), **READ, quick=True).data["warnings"]


# ---- the same rows twice ----


def test_the_same_rows_are_not_merged() -> None:
    t = rows(1000, 1)
    whole = cal.sketch(t, **READ, by="site", key="ward")
    shuffled = cal.sketch(t.take(np.random.default_rng(1).permutation(1000)), spec=whole.spec)
    for other in (whole, whole.copy(), cal.Sketch.from_bytes(whole.to_bytes()), shuffled):
        with pytest.raises(cal.BadInput, match=r"'data' and '.*' hold the same 1,000 rows.*allow_same=True"):
            whole.merge(other)
    assert whole.n == 1000
    assert whole.merge(whole, allow_same=True).n == 2000
    assert whole.repeats.copied


def test_all_equal_scores_are_the_same_rows_too() -> None:
    whole = cal.sketch(equal_scores(100, 1), **READ)
    with pytest.raises(cal.BadInput, match="hold the same 100 rows"):
        whole.merge(whole.copy())


def test_overlapping_sketches_are_not_merged() -> None:
    t = rows(2000, 1)
    first = cal.sketch(t.slice(0, 1000), **READ, by="site")
    for start, count in ((500, 500), (800, 200)):
        with pytest.raises(cal.BadInput, match=f"have {count} rows in common"):
            first.merge(cal.sketch(t.slice(start, 1000), spec=first.spec))
    assert first.copy().merge(cal.sketch(t.slice(980, 1000), spec=first.spec)).n == 2000  # a few rows are no mistake


@pytest.mark.parametrize(
    "make", [lambda s: rows(2000, s, 2), lambda s: equal_scores(2000, s), lambda s: scorecard(2000, s, -3.0)]
)
def test_months_that_share_rows_by_chance_are_merged(make: Callable[[int], pa.Table]) -> None:
    whole = cal.sketch(make(1), **READ, variables="*")
    for month in range(2, 8):
        whole.merge(cal.sketch(make(month), spec=whole.spec))
    assert whole.n == 14_000
    assert not whole.repeats.copied


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for month in (1, 2, 3):
        pq.write_table(rows(2000, month, 2), tmp_path / f"{month}.parquet")
    shutil.copy(tmp_path / "1.parquet", tmp_path / "one-again.parquet")
    columns = ["--label", "y", "--score", "p", "--by", "site"]
    assert main(["sketch", str(tmp_path / "1.parquet"), *columns, "--out", str(tmp_path / "1.sketch")]) == 0
    for month in ("2", "3", "one-again"):
        like = ["--like", str(tmp_path / "1.sketch"), "--out", str(tmp_path / f"{month}.sketch")]
        assert main(["sketch", str(tmp_path / f"{month}.parquet"), *like]) == 0
    return tmp_path


@pytest.mark.slow
def test_commands_refuse_the_same_rows_and_name_both(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Scores are whole percent: a file is known again by all that it holds, not by its rows."""

    def run(*words: str) -> tuple[int, str]:
        capsys.readouterr()
        at = [str(folder / w) if w.endswith((".sketch", ".parquet")) else w for w in words]
        return main(at), capsys.readouterr().err.replace(str(folder) + "/", "")

    out, read = ("--out", "sum.sketch"), ("--label", "y", "--score", "p")
    both = "calibrant: {} and {} {}, which would count twice: leave one out, or pass --allow-same if that is meant\n"
    same = both.format("{}", "{}", "hold the same 2,000 rows")
    events = {
        ("merge", "1.sketch", "1.sketch", *out): same.format("1.sketch", "1.sketch"),
        ("audit", "1.sketch", "1.sketch", "--quick"): same.format("1.sketch", "1.sketch"),
        ("merge", "2.sketch", "1.sketch", "one-again.sketch", *out): same.format("1.sketch", "one-again.sketch"),
        ("audit", "1.parquet", "one-again.parquet", *read, "--quick"): same.format("1.parquet", "one-again.parquet"),
        ("sketch", "1.parquet", "2.parquet", "one-again.parquet", *read, *out): same.format(
            "1.parquet", "one-again.parquet"
        ),
    }
    for words, message in events.items():
        assert run(*words) == (2, message)
        assert not (folder / "sum.sketch").exists()
    assert run("merge", "1.sketch", "2.sketch", "--out", "12.sketch")[0] == 0
    assert run("merge", "2.sketch", "3.sketch", "--out", "23.sketch")[0] == 0
    status, message = run("merge", "12.sketch", "23.sketch", *out)
    assert (status, message) == (2, both.format("12.sketch", "23.sketch", "both hold the 2,000 rows of 2.parquet"))
    for words in events:
        assert run(*words, "--allow-same")[0] != 2


def test_small_files_that_are_equal_by_chance_are_read(tmp_path: Path) -> None:
    for hour in range(60):
        pq.write_table(rows(2, hour, 1).select(["y", "p"]), tmp_path / f"{hour:02}.parquet")
    assert cal.sketch(tmp_path, **READ).n == 120


@pytest.mark.slow
def test_two_files_of_the_same_rows_are_named(folder: Path) -> None:
    both = [str(folder / "1.parquet"), str(folder / "one-again.parquet")]
    with pytest.raises(cal.BadInput, match=r"^1\.parquet and one-again\.parquet hold the .* allow_same=True if"):
        cal.audit(both, **READ, quick=True)
    record = cal.audit(both, **READ, quick=True, allow_same=True)
    assert record.data["repeats"]["copied"]


@pytest.mark.slow
def test_a_repair_reads_no_rows_twice_and_is_not_judged_on_its_own(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, again = str(folder / "1.parquet"), str(folder / "one-again.parquet")
    asked = [
        "--label",
        "y",
        "--score",
        "p",
        "--variables",
        "none",
        "--method",
        "platt",
        "-o",
        str(folder / "m.json"),
    ]
    for files, message in (
        ([first, again], "1.parquet and one-again.parquet hold the same 2,000 rows"),
        (
            [first, "--judge-on", again],
            "one-again.parquet hold the same 2,000 rows: judge a calibrator on rows that it was",
        ),
    ):
        assert main(["repair", *files, *asked]) == 2
        assert message in capsys.readouterr().err
        assert not (folder / "m.json").exists()
    assert main(["repair", first, "--judge-on", str(folder / "2.parquet"), *asked]) != 2
    assert main(["repair", first, again, *asked, "--allow-same"]) != 2
