"""Frames of whatever library: read by what they can do, joined by their labels, equal whichever way they come."""

from __future__ import annotations

import datetime as dt
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import calibrant as cal
from calibrant.data.sources import frames as holding
from calibrant.data.sources.files import open_source
from calibrant.errors import BadInput

N = 400
COLUMNS: dict[str, list[Any]] = {
    "y": [i * 5 % 7 < 3 for i in range(N)],
    "p": [(i * 7 % N) / N for i in range(N)],
    "site": [("007", "7", "0042")[i % 3] for i in range(N)],  # codes
    "sex": [("f", "m", None)[i % 3] for i in range(N)],
    "day": [dt.date(2026, 1, 1) + dt.timedelta(days=i % 300) for i in range(N)],
    "at": [dt.datetime(2026, 1, 1, 12) + dt.timedelta(days=i % 300) for i in range(N)],
    "id": [2**60 + i for i in range(N)],  # beyond double precision
    "age": [None if i % 50 == 0 else i % 90 + 0.5 for i in range(N)],
    "flag": [i % 2 == 0 for i in range(N)],
}
TABLE = pa.table(COLUMNS)
REQUESTED: dict[str, Any] = {
    "label": "y",
    "score": "p",
    "by": ["site", "sex", "day"],
    "variables": ["age", "at"],
    "key": "id",
}


def printed(source: object) -> str:
    return cal.sketch(source, **REQUESTED).fingerprint


class OnlyArrow:
    """Speaks the Arrow stream protocol and nothing else."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.table.__arrow_c_stream__(requested_schema)


class OnlyInterchange:
    """Speaks the dataframe interchange protocol and nothing else."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    def __dataframe__(self, *given: Any, **more: Any) -> object:
        return self.table.__dataframe__(*given, **more)


def batches() -> Iterator[pa.RecordBatch]:
    yield from TABLE.to_batches(max_chunksize=70)


def forms() -> Iterator[tuple[str, object]]:
    yield "table", TABLE
    yield "one batch", TABLE.to_batches()[0]
    yield "Arrow protocol", OnlyArrow(TABLE)
    yield "reader", pa.RecordBatchReader.from_batches(TABLE.schema, batches())
    yield "generator of batches", batches()
    yield "generator of tables", (TABLE.slice(i, 90) for i in range(0, N, 90))
    yield "list of batches", list(batches())
    yield "dictionary of lists", COLUMNS
    yield "dictionary of arrays", {name: TABLE.column(name) for name in COLUMNS}
    yield "records", TABLE.to_pylist()
    yield "generator of records", iter(TABLE.to_pylist())
    yield "text as codes", TABLE.set_column(2, "site", TABLE.column("site").dictionary_encode())
    yield "text as views", TABLE.set_column(2, "site", TABLE.column("site").cast(pa.string_view()))
    yield "large text", TABLE.set_column(2, "site", TABLE.column("site").cast(pa.large_string()))


@pytest.mark.parametrize(("name", "form"), list(forms()), ids=lambda v: v if isinstance(v, str) else "")
def test_one_table_has_one_fingerprint(name: str, form: object) -> None:
    assert printed(form) == printed(TABLE)


@pytest.mark.slow
def test_one_table_has_one_fingerprint_in_every_library(monkeypatch: pytest.MonkeyPatch) -> None:
    pd, pl, duckdb, nw = (pytest.importorskip(m) for m in ("pandas", "polars", "duckdb", "narwhals"))
    frame, fast = TABLE.to_pandas(), pl.from_arrow(TABLE)
    odd = frame.assign(junk=[object()] * N)
    library = {
        "pandas": frame,
        "pandas, Arrow types": TABLE.to_pandas(types_mapper=pd.ArrowDtype),
        "pandas, nullable": frame.convert_dtypes(),
        "pandas, categories": frame.assign(site=frame["site"].astype("category"), sex=frame["sex"].astype("category")),
        "pandas, a column that nobody can read": odd,
        "pandas, sparse": frame.assign(p=frame["p"].astype("Sparse[float]")),
        "pandas by chunks": (frame.iloc[i : i + 90] for i in range(0, N, 90)),
        "polars": fast,
        "polars, categories": fast.with_columns(pl.col("site", "sex").cast(pl.Categorical)),
        "polars, lazy": fast.lazy(),
        "narwhals": nw.from_native(fast),
        "narwhals, lazy": nw.from_native(fast.lazy()),
        "duckdb": duckdb.from_arrow(TABLE),
        "dictionary of series": {name: frame[name] for name in COLUMNS},
    }
    assert {name: printed(form) == printed(TABLE) for name, form in library.items()} == dict.fromkeys(library, True)


def test_the_interchange_protocol_is_enough() -> None:
    plain = TABLE.select(["y", "p", "site", "age"])
    asked: dict[str, Any] = {"label": "y", "score": "p", "by": "site", "variables": "age"}
    assert cal.sketch(OnlyInterchange(plain), **asked).fingerprint == cal.sketch(plain, **asked).fingerprint


def test_records_may_lack_what_others_have() -> None:
    records = [{"y": 0, "p": 0.2}, {"y": 1, "p": 0.7, "g": "a"}, {"p": 0.9, "y": 1, "g": "b"}]
    rows = cal.read(records, label="y", score="p", by="g")
    assert rows.covariates.column("g").to_pylist() == [None, "a", "b"]


def test_a_structured_array_is_a_frame() -> None:
    records = np.array([(0, 0.2, "a"), (1, 0.7, "b")], dtype=[("y", "i4"), ("p", "f8"), ("g", "U3")])
    for entry in (records, records.view(np.recarray)):
        assert cal.read(entry, label="y", score="p", by="g").covariates.column("g").to_pylist() == ["a", "b"]


def test_a_column_with_a_name_is_a_covariate() -> None:
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    for column in (pd.Series([1, 2], name="v"), pl.Series("v", [1, 2])):
        assert cal.predictions([0, 1], [0.2, 0.7], column).covariates.to_pydict() == {"v": [1, 2]}
    with pytest.raises(BadInput, match="covariates is a list"):
        cal.predictions([0, 1], [0.2, 0.7], [3, 4])


@pytest.mark.slow
def test_a_grid_has_a_row_for_each_of_its_points() -> None:
    xr = pytest.importorskip("xarray")
    grid = xr.Dataset(
        {
            "y": (("day", "lat"), [[0, 1], [1, 0], [1, 1]]),
            "p": (("lat", "day"), [[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]]),
            "height": ("lat", [10.0, 20.0]),
        },
        coords={"lat": [50.0, 60.0], "zone": ("lat", ["n", "s"])},
    )
    rows = cal.read(grid, label="y", score="p", by=["zone", "lat"])
    assert (rows.y.tolist(), rows.p.tolist()) == ([0, 1, 1, 0, 1, 1], [0.1, 0.4, 0.2, 0.5, 0.3, 0.6])
    assert rows.covariates.to_pydict() == {"zone": ["n", "s"] * 3, "lat": [50.0, 60.0] * 3}
    with pytest.raises(BadInput, match=r"'height' has other dimensions than \(day, lat\): use xarray.broadcast"):
        cal.read(grid, label="y", score="p", by="height")
    y = xr.DataArray([0, 1, 1], dims="row", coords={"row": [1, 2, 3]})
    p = xr.DataArray([0.1, 0.2, 0.3], dims="row", coords={"row": [3, 2, 1]})
    assert cal.predictions(y, p).p.tolist() == [0.3, 0.2, 0.1]


# ---- lazy frames, and streams ----


def test_of_a_lazy_frame_only_what_is_read_is_computed() -> None:
    pl = pytest.importorskip("polars")
    lazy = pl.LazyFrame(COLUMNS).with_columns(other=pl.col("site").cast(pl.Int64, strict=True) // 0 * 0)
    broken = lazy.with_columns(never=pl.col("sex").cast(pl.Int64, strict=True))
    assert cal.sketch(broken, label="y", score="p", by="site").n == N
    with pytest.raises(BadInput, match="cannot be computed") as e:
        cal.sketch(broken, label="y", score="p", by="never")
    assert "\n" not in str(e.value)
    with pytest.raises(BadInput, match="did you mean 'site'"):
        cal.sketch(lazy, label="y", score="p", by="sit")


def test_a_stream_is_held_for_groups_and_covariates_and_said() -> None:
    stated: list[str] = []
    whole = cal.sketch(
        iter(batches()), **REQUESTED, progress=lambda event_now: stated.append(f"{event_now.step} {event_now.rows}")
    )
    assert whole.fingerprint == printed(TABLE)
    assert f"holding {N}" in stated
    assert f"reading {N}" in stated
    stated.clear()
    assert cal.sketch(batches(), label="y", score="p", progress=lambda event_now: stated.append(event_now.step)).n == N
    assert "holding" not in stated


def test_a_long_stream_goes_through_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(holding, "AT_ONCE", 2000)
    assert printed(batches()) == printed(TABLE)
    coded = TABLE.set_column(2, "site", TABLE.column("site").dictionary_encode())
    parts = [coded.slice(i, 90).unify_dictionaries().to_batches() for i in range(0, N, 90)]
    assert printed(itertools.chain(*parts)) == printed(TABLE)


def test_a_stream_that_finds_no_room_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(holding, "AT_ONCE", 2000)

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(holding.tempfile, "TemporaryFile", full)
    with pytest.raises(BadInput, match=r"No space left on device\): write it to a Parquet file, or set TMPDIR"):
        printed(batches())


@pytest.mark.parametrize(
    ("stream", "stated"),
    [
        (lambda: iter([]), "the iterator gives nothing"),
        (lambda: iter([1, 2]), "iterator gives a int"),
        (lambda: iter([TABLE, TABLE.drop_columns(["sex"])]), "frame 1 of the iterator differs from the first"),
        (lambda: iter([TABLE, 3]), "iterator gives a int"),
    ],
)
def test_a_stream_of_something_else_is_refused(stream: Any, stated: str) -> None:
    with pytest.raises(BadInput, match=stated):
        printed(stream())


# ---- names ----


def test_names_that_are_no_text() -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({0: [0, 1, 1], 1: [0.2, 0.7, 0.9], "g": ["a", "b", "b"]})
    assert cal.read(frame, label="0", score="1", by="g").n == 3
    assert cal.read({0: [0, 1, 1], 1: [0.2, 0.7, 0.9]}, label="0", score="1").n == 3
    assert cal.predictions([0, 1, 1], [0.2, 0.7, 0.9], frame[[0]]).covariates.column_names == ["0"]
    levels = frame.rename(columns={0: ("a", "y"), 1: ("a", "p")})
    assert cal.read(levels, label="('a', 'y')", score="('a', 'p')").n == 3


def test_a_name_of_two_columns_is_refused_where_it_is_read() -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame([[0, 0.2, 5, 6], [1, 0.7, 7, 8]] * 30, columns=["y", "p", "x", "x"])
    both = pd.DataFrame([[0, 0.2, 5, 6], [1, 0.7, 7, 8]] * 30, columns=["y", "p", "1", 1])
    for source, name in (
        (frame, "x"),
        (both, "1"),
        (pa.Table.from_batches(pa.table(frame.iloc[:, :2]).to_batches()), ""),
    ):
        assert cal.sketch(source, label="y", score="p").n == 60
        if name:
            with pytest.raises(BadInput, match=f"column '{name}' is the name of two columns: rename one"):
                cal.sketch(source, label="y", score="p", by=name)
    whole = cal.sketch(frame.assign(z=range(60)), label="y", score="p", variables="*")
    assert ("x", "it is the name of two columns: rename one") in whole.spec.left_out
    with pytest.raises(BadInput, match="'x' is the name of two columns"):
        cal.predictions([0, 1] * 30, [0.2, 0.7] * 30, frame[["x"]])


def test_what_cannot_be_read_is_left_out_of_all_columns_and_said() -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"y": [0, 1] * 30, "p": [0.2, 0.7] * 30, "age": range(60), "odd": [1, "a"] * 30})
    for source in (frame, dict(frame.items())):
        whole = cal.sketch(source, label="y", score="p", variables="*")
        assert ("odd", "it mixes types (int and str): make it text or numbers") in whole.spec.left_out
        with pytest.raises(BadInput, match="column 'odd' mixes types"):
            cal.sketch(source, label="y", score="p", variables="odd")


# ---- rows that carry labels ----


def test_rows_are_joined_by_their_labels() -> None:
    pd = pytest.importorskip("pandas")
    y = pd.Series([0, 1, 1, 0], index=list("abcd"))
    p = pd.Series([0.4, 0.3, 0.2, 0.1], index=list("dcba"))
    x = pd.DataFrame({"age": [20, 10, 40, 30]}, index=list("badc"))
    w = pd.Series([3.0, 4.0, 1.0, 2.0], index=list("cdab"))
    rows = cal.predictions(y, p, x, weights=w, cluster=w)
    assert rows.p.tolist() == [0.1, 0.2, 0.3, 0.4]
    assert rows.covariates.column("age").to_pylist() == [10, 20, 30, 40]
    assert rows.weights is not None
    assert rows.weights.tolist() == rows.cluster.tolist() == [1, 2, 3, 4]
    row_attributes = cal.predictions(y, p.to_numpy(), {"age": x["age"], "w": [1, 2, 3, 4]}).covariates
    assert row_attributes.to_pydict() == {"age": [10, 20, 30, 40], "w": [1, 2, 3, 4]}
    assert cal.read({"y": y, "p": p}, label="y", score="p").p.tolist() == [0.1, 0.2, 0.3, 0.4]
    turned = cal.predictions(y.reset_index(drop=True)[::-1], pd.Series([0.1, 0.2, 0.3, 0.4]))
    assert (turned.y.tolist(), turned.p.tolist()) == ([0, 1, 1, 0], [0.4, 0.3, 0.2, 0.1])


@pytest.mark.parametrize(
    ("labels", "scores"),
    [([0, 1, 2], [0, 1, 3]), ([0, 0, 1], [0, 1, 0]), (["a", "b", "c"], [0, 1, 2]), ([2, 0, 1], None)],
)
def test_rows_of_other_labels_are_refused(labels: Any, scores: Any) -> None:
    pd = pytest.importorskip("pandas")
    y, p = pd.Series([0, 1, 1], index=labels), pd.Series([0.1, 0.2, 0.3], index=scores)
    for call in (lambda: cal.predictions(y, p), lambda: cal.read({"y": y, "p": p}, label="y", score="p")):
        with pytest.raises(BadInput, match=r"give both one index, or pass arrays \(.to_numpy\(\)\)") as e:
            call()
        assert "\n" not in str(e.value)
    assert cal.predictions(y.to_numpy(), p).n == cal.predictions(y, p.to_numpy()).n == 3


def test_labels_that_repeat_do_no_harm_in_one_order() -> None:
    pd = pytest.importorskip("pandas")
    y, p = pd.Series([0, 1, 1], index=[5, 5, 6]), pd.Series([0.1, 0.2, 0.3], index=[5, 5, 6])
    assert cal.predictions(y, p).p.tolist() == [0.1, 0.2, 0.3]


# ---- several classes ----


def test_several_classes_by_their_labels() -> None:
    p = [[0.7, 0.2, 0.1], [0.1, 0.1, 0.8], [0.5, 0.3, 0.2]]
    many = cal.multiclass_predictions(["cat", "dog", "cat"], p, classes=["cat", "cow", "dog"])
    assert (many.y.tolist(), many.classes) == ([0, 2, 0], ("cat", "cow", "dog"))
    assert many.one_vs_rest("dog").y.tolist() == many.one_vs_rest(2).y.tolist() == [0, 1, 0]
    assert cal.multiclass_predictions([1, 3, 2], p, classes=[1, 2, 3]).y.tolist() == [0, 2, 1]
    assert cal.multiclass_predictions(np.array([0.0, 2.0, 1.0]), p).y.tolist() == [0, 2, 1]
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(p, columns=["cat", "cow", "dog"], index=[3, 4, 5])
    many = cal.multiclass_predictions(pd.Series(["dog", "cat", "cat"], index=[4, 3, 5], dtype="category"), frame)
    assert (many.y.tolist(), many.p[0].tolist()) == ([2, 0, 0], p[1])


@pytest.mark.parametrize(
    ("labels", "more", "stated"),
    [
        (["cat", "dog", "cat"], {}, "holds text such as 'cat': pass classes="),
        (["cat", "rat", "cat"], {"classes": ["cat", "cow", "dog"]}, "'rat', which is none of the classes 'cat'"),
        (["cat", "dog", "cat"], {"classes": ["cat", "dog"]}, "name each of the 3 columns"),
        (["cat", None, "cat"], {"classes": ["cat", "cow", "dog"]}, "1 value is missing, first in row 1"),
        ([0, np.nan, 1], {}, "1 value is missing, first in row 1"),
        (np.ma.array([0, 1, 2], mask=[0, 0, 1]), {}, "1 value is missing, first in row 2"),
        ([0.5, 1, 2], {}, "class numbers 0 to 2, the columns of y_prob; row 0 holds 0.5: encode the classes"),
        ([1, 2, 3], {}, "row 2 holds 3: subtract 1"),
        (np.array(["2026-01-01"] * 3, dtype="M8[D]"), {}, "class numbers 0 to 2"),
    ],
)
def test_classes_that_cannot_be_told_are_refused(labels: Any, more: dict[str, Any], stated: str) -> None:
    with pytest.raises(BadInput, match=stated):
        cal.multiclass_predictions(labels, [[0.7, 0.2, 0.1], [0.1, 0.1, 0.8], [0.5, 0.3, 0.2]], **more)


def test_text_in_views_is_read_from_frames_batches_and_files(tmp_path: Path) -> None:
    """Arrow chooses no rows of text as Polars lays it out: it is laid out otherwise where it is read, in lists too."""
    pl = pytest.importorskip("polars")
    text, lists = ["a", None, "b"] * 40, [["x"], [], ["y", None]] * 40
    frame = pl.DataFrame({"y": [0, 1, 1] * 40, "p": [i / 120 for i in range(120)], "text": text, "lists": lists})
    frame = frame.with_columns(inside=pl.struct("text"), bits=pl.col("text").cast(pl.Binary))
    frame = frame.with_columns(
        coded=pl.col("text").cast(pl.Categorical), listed=pl.col("text").cast(pl.Enum(["a", "b"]))
    )
    frame = frame.with_columns(pair=pl.concat_list("text", "text").list.to_array(2))
    table, at = pa.table(frame), pa.array([2, 0, 119])
    assert table.schema.field("text").type == pa.string_view()
    with pa.ipc.new_file(tmp_path / "views.arrow", table.schema) as file:
        file.write_table(table)
    for source in (frame, frame.lazy(), table, table.to_reader(), str(tmp_path / "views.arrow")):
        opened = open_source(source)
        rows = pa.Table.from_batches(list(opened.read(opened.columns))).take(at)
        assert rows.to_pylist() == [table.to_pylist()[i] for i in at.to_pylist()]
    seen = [cal.look(source, label="y", score="p", cluster="text") for source in (frame, frame.lazy())]
    assert [c.name for c in seen[0].columns] == [c.name for c in seen[1].columns] == frame.columns
