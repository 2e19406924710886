"""What must not pass silently when files and frames are read, and what must just work."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import calibrant as cal
from calibrant.arguments import COMMAND
from calibrant.cli import main
from calibrant.data.engines.reduce import source_of
from calibrant.data.reading import Reading
from calibrant.data.rewrite import checked_rows
from calibrant.data.sketches.sketch import Sketch
from calibrant.data.sources.files import open_source
from calibrant.data.specs.spec import Spec
from calibrant.errors import BadInput

ROWS = {"y": [0, 1, 1, 0], "p": [0.2, 0.7, 0.9, 0.1]}


def levels(whole: cal.Sketch) -> dict[str, int]:
    rows = whole.group_levels.sum(axis=(1, 2, 3))
    return {n[0][1]: int(r) for n, r in zip(whole.spec.group_names(0), rows, strict=True) if r}


def test_reserved_levels_do_not_swallow_real_ones() -> None:
    whole = cal.sketch(ROWS | {"g": ["missing", "other", None, "a"]}, label="y", score="p", by="g")
    assert levels(whole) == {"missing": 1, "other": 1, "(missing)": 1, "a": 1}
    assert sum(e.n for e in cal.certify.groups(whole).values()) == 4


def test_a_public_sketch_is_the_callers_own() -> None:
    a, b = cal.predictions([0, 1], [0.2, 0.7]), cal.predictions([1, 1], [0.2, 0.7])
    mine = cal.sketch(a)
    mine.merge(cal.sketch(b))
    assert cal.certify.rounded(a).n == 2


def test_an_unchecked_sketch_certifies_nothing() -> None:
    whole = Sketch(Spec(label="y", score="p"))
    whole.update(pa.record_batch({"y": [0.0, 1.0, None], "p": [0.5, 7.0, 0.5]}))
    for call in (cal.certify.rounded, Sketch.to_bytes, cal.audit):
        with pytest.raises(BadInput, match="outside 0 to 1"):
            call(whole)


def looked(*args: Any, **kwargs: Any) -> None:
    for refusal in cal.look(*args, **kwargs).refusals:
        raise BadInput(refusal)


@pytest.mark.parametrize("reader", [cal.read, cal.sketch, cal.audit, looked])
@pytest.mark.parametrize(
    ("labels", "positive", "stated"),
    [
        (["a", "b"], "zz", "positive='zz' does not occur in column 'y', which holds 'a', 'b'$"),
        (["Ja", "Nein"], "ja", "which holds 'Ja', 'Nein': did you mean 'Ja'"),
        (["yes ", "no"], "yes", "which holds 'no', 'yes ': did you mean 'yes '"),
        (["Win.", "Loss"], "Win", "which holds 'Loss', 'Win.': did you mean 'Win.'"),
        ([0, 1], "yes", "does not occur in label column 'y' of numbers, which holds '0', '1'"),
        ([0, 1], "2", "does not occur in column 'y', which holds '0', '1'"),
        ([False, True], "ja", "does not occur in column 'y', which holds 'false', 'true'"),
    ],
)
def test_a_misspelt_event_is_refused_everywhere_and_the_values_are_listed(
    reader: Any, labels: list[Any], positive: str, stated: str
) -> None:
    with pytest.raises(BadInput, match=stated):
        reader({"y": labels, "p": [0.2, 0.7]}, label="y", score="p", positive=positive)


@pytest.mark.parametrize(
    ("labels", "positive", "events"),
    [([1, 5, 5], 5, 2), ([1, 5, 5], "5", 2), ([0.0, 1.0, 1.0], 1, 2), ([False, True, True], "True", 2)],
)
def test_a_class_is_named_as_its_user_would(labels: list[Any], positive: Any, events: int) -> None:
    assert cal.sketch({"y": labels, "p": [0.1, 0.2, 0.3]}, label="y", score="p", positive=positive).events == events
    assert cal.predictions(labels, [0.1, 0.2, 0.3], positive=positive).events == events


def test_text_that_means_no_label_is_missing() -> None:
    data = {"y": ["yes", "NA", "no"], "p": [0.1, 0.2, 0.3]}
    with pytest.raises(BadInput, match="missing"):
        cal.sketch(data, label="y", score="p", positive="yes")
    assert cal.sketch(data, label="y", score="p", positive="yes", drop_missing=True).dropped == 1
    with pytest.raises(BadInput, match="missing"):
        cal.predictions(data["y"], data["p"], positive="yes")
    assert cal.predictions(data["y"], data["p"], positive="yes", drop_missing=True).dropped == 1


def test_files_that_disagree_are_refused(tmp_path: Path) -> None:
    pq.write_table(pa.table(ROWS | {"g": [1, 2, 3, 4]}), tmp_path / "a.parquet")
    pq.write_table(pa.table(ROWS | {"g": list("abcd")}), tmp_path / "b.parquet")
    for reader in (cal.read, cal.sketch):
        with pytest.raises(BadInput, match=r"one way"):
            reader(str(tmp_path), label="y", score="p", by="g")


def test_a_file_counts_once(tmp_path: Path) -> None:
    pq.write_table(pa.table(ROWS), tmp_path / "a.parquet")
    with pytest.raises(BadInput, match="twice"):
        cal.sketch([str(tmp_path / "*.parquet"), str(tmp_path / "a.parquet")], label="y", score="p")


def test_paths_may_be_relative_and_absolute_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("x", "y"):
        (tmp_path / name).mkdir()
        pq.write_table(pa.table(ROWS), tmp_path / name / "a.parquet")
    monkeypatch.chdir(tmp_path)
    assert cal.sketch(["x/a.parquet", str(tmp_path / "y" / "a.parquet")], label="y", score="p").n == 8


def test_a_files_blocks_do_not_depend_on_its_neighbours(tmp_path: Path) -> None:
    (tmp_path / "2026").mkdir()
    pq.write_table(pa.table({"y": [0, 1] * 500, "p": np.linspace(0, 1, 1000)}), tmp_path / "2026" / "a.parquet")
    pq.write_table(pa.table({"y": [0] * 3, "p": [0.5] * 3}), tmp_path / "2026" / "b.parquet")
    before = cal.sketch(str(tmp_path), label="y", score="p").cells.copy()
    (tmp_path / "2027").mkdir()
    pq.write_table(pa.table({"y": [1], "p": [0.25]}), tmp_path / "2027" / "c.parquet")
    after = cal.sketch(str(tmp_path), label="y", score="p").cells - before
    assert after[..., :2].min() == 0
    assert after[..., :2].sum() == 1


@pytest.mark.slow
def test_csv_types_are_not_fixed_by_its_first_lines(tmp_path: Path) -> None:
    n = 1_000_000  # more than two blocks
    text = "y,p,g\n" + "0,0,\n" * n + "1,0.5,late\n"
    (tmp_path / "a.csv").write_text(text)
    whole = cal.sketch(str(tmp_path / "a.csv"), label="y", score="p", by="g")
    assert levels(whole) == {"late": 1, "missing": n}


def test_csv_keeps_text_as_text_and_speaks_semicolon(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("y;p;region\n0;0.2;NA\n1;0.7;EU\n1;0.9;\n")
    assert levels(cal.sketch(str(tmp_path / "a.csv"), label="y", score="p", by="region")) == {
        "EU": 1,
        "NA": 1,
        "missing": 1,
    }
    (tmp_path / "latin.csv").write_bytes("y,p,gr\xf6\xdfe\n0,0.2,1\n".encode("latin-1"))
    with pytest.raises(BadInput, match="UTF-8"):
        cal.sketch(str(tmp_path / "latin.csv"), label="y", score="p")


def test_columns_that_are_not_read_do_not_matter() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(ROWS | {"junk": [1, "a", None, 2.5]})
    assert cal.sketch(frame, label="y", score="p").n == 4
    with pytest.raises(BadInput, match="mixes types"):
        cal.sketch(frame, label="y", score="p", by="junk")
    with pytest.raises(BadInput, match="mixes types"):
        cal.predictions([0, 1], [0.2, 0.7], {"g": [1, "a"]})


@pytest.mark.parametrize(
    ("call", "stated"),
    [
        (lambda: cal.sketch(ROWS, label="y", score="p", key="y"), "identity"),
        (lambda: cal.sketch(ROWS, label="y", score="y"), "both as the label and as the score"),
        (lambda: cal.sketch(ROWS, label="y", score="p", seed=-1), "seed"),
        (lambda: cal.sketch(cal.predictions([0, 1], [0.2, 0.7]), key="id"), "leave"),
        (lambda: cal.audit(cal.predictions([0, 1], [0.2, 0.7]), label="y"), "leave"),
        (lambda: cal.audit(cal.sketch(ROWS, label="y", score="p"), seed=5), "seed"),
        (
            lambda: cal.sketch(pa.table([[0, 1], [0.2, 0.7], [1, 2]], ["y", "p", "p"]), label="y", score="p"),
            "two columns",
        ),
        (lambda: cal.predictions([0, 1, 2], np.eye(3), weights=[1, 1, 1]), "multiclass_predictions"),
        (lambda: cal.predictions([0, 1], [[0.2, 0.2], [0.5, 0.5]]), "add up"),
        (lambda: cal.predictions([0, 1], np.ma.array([0.1, 0.2], mask=[0, 1])), "missing"),
        (lambda: cal.predictions([0, 1], [0.5, 1.0000001]), "rounding error"),
        (lambda: Sketch.from_bytes("path"), "not a calibrant sketch"),
    ],
)
def test_nothing_is_ignored_or_coerced(call: Any, stated: str) -> None:
    with pytest.raises(BadInput, match=stated):
        call()


@pytest.mark.slow
def test_results_equal_what_they_round_trip_to() -> None:
    record = cal.audit(cal.predictions([0, 1] * 40, [0.3, 0.6] * 40, {"g": ["a", "b"] * 40}), by="g", limit=0.1)
    assert cal.AuditRecord.from_dict(record.to_dict()) == record


@pytest.mark.parametrize(
    "arguments",
    [
        ["audit", "a.sketch", "b.csv"],
        ["audit", "FILE", "--label", "y", "--score", "p", "--json", "-o", "markdown:-"],
        ["audit", "FILE", "--label", "y", "--score", "p", "--seed", "-1"],
        ["certify", "FILE", "--label", "y", "--score", "p", "--method", "raw_lower", "--side", "upper"],
        ["plan", "0.02", "--label", "y"],
    ],
)
def test_the_command_refuses_what_it_would_ignore(arguments: list[str], tmp_path: Path) -> None:
    pq.write_table(pa.table(ROWS), tmp_path / "a.parquet")
    assert main([str(tmp_path / "a.parquet") if a == "FILE" else a for a in arguments]) == 2


def test_plan_reads_any_data(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pq.write_table(pa.table({"y": ["n", "j"] * 50, "p": np.linspace(0.01, 0.99, 100)}), tmp_path / "a.parquet")
    data = ["--data", str(tmp_path / "a.parquet"), "--label", "y", "--score", "p", "--positive", "j"]
    assert main(["plan", "0.02", *data]) == 0
    assert "rows" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["gap", pytest.param("slope", marks=pytest.mark.slow)])
@pytest.mark.parametrize(("error", "limit"), [(0.05, 0.025), (0.08, 0.06)])
def test_the_rows_planned_for_the_low_end_decide_about_half_the_time(kind: str, error: float, limit: float) -> None:
    """Error of one sign, or of one change of sign; the estimate is the truth."""
    from calibrant.stats.bounds import lower_bound
    from calibrant.views.sample import everyone

    def draw(n: int, seed: int) -> Any:
        rng = np.random.default_rng([seed, 0xDEC])
        p = rng.uniform(0.1, 0.9, n)
        rate = p + (error if kind == "gap" else error * np.where(p < 0.5, 1, -1))
        return cal.predictions(rng.uniform(size=n) < rate, p)

    n = int(cal.certify.rows_needed(error - limit, draw(300, 0), side="lower").value)
    decided = sum(lower_bound(everyone(draw(n, seed)).cells, 0.05) > limit for seed in range(1, 41))
    assert 8 <= decided <= 38


def test_a_column_that_only_some_files_have_is_left_out_and_said(tmp_path):
    table = pa.table({"y": [0, 1] * 50, "p": [0.25, 0.75] * 50, "age": list(range(100))})
    pq.write_table(table, tmp_path / "a.parquet")
    pq.write_table(table.append_column("new", table.column("age")), tmp_path / "b.parquet")
    sketch = cal.sketch(str(tmp_path / "*.parquet"), label="y", score="p", variables="*", allow_same=True)
    assert ("new", "only some of the files have it") in sketch.spec.left_out
    with pytest.raises(BadInput, match="only some of the files have column 'new'"):
        checked_rows(tmp_path / "out.parquet", open_source(str(tmp_path / "*.parquet")), ())


@pytest.mark.parametrize(
    ("asked", "stated"),
    [
        ({}, r"no number: pass key= \(columns that identify a row\)$"),
        ({"caller": COMMAND}, r"no number: pass --key \(columns that identify a row\)$"),
        ({"cluster": "who"}, "or variables=None to go without covariates$"),
        ({"cluster": "who", "caller": COMMAND}, "or --variables none to go without covariates$"),
        ({"variables": "none"}, "^covariate column 'none' is not in the data"),
    ],
)
def test_rows_without_a_number_are_refused_by_what_is_needed_not_by_what_nobody_passed(asked: Any, stated: str) -> None:
    # as of a Spark or Dask DataFrame
    opened = replace(source_of(ROWS | {"who": [1, 1, 2, 2]}, Reading()), numbered=False)
    with pytest.raises(BadInput, match=stated) as refusal:
        Reading.of(**{"label": "y", "score": "p", "variables": "*"} | asked).plain_spec(opened)
    assert "variables= needs" not in str(refusal.value)
