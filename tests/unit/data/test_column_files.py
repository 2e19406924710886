"""Files of columns, as they are: changed while they are read, in folders that name columns, odd but sound."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from pyarrow import fs, orc

import calibrant as cal
from calibrant.data.engines import reduce as engines
from calibrant.data.engines import work
from calibrant.data.reading import Reading
from calibrant.data.rewrite import rewrite
from calibrant.data.sources import columnar as arrow_files
from calibrant.data.sources import files as file_versions
from calibrant.data.sources import source as sources
from calibrant.data.sources.files import open_source
from calibrant.data.sources.source import Source

ASK: dict[str, Any] = {"label": "y", "score": "p"}


def table(n: int = 400, seed: int = 0) -> pa.Table:
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "y": rng.integers(0, 2, n),
            "p": rng.random(n),
            "g": pa.array(rng.choice(["a", "b", "c"], n)),
            "x": rng.normal(size=n),
        }
    )


def write(rows: pa.Table, path: Path, **more: Any) -> Path:
    """Write a file of the format that its ending names."""
    path.parent.mkdir(parents=True, exist_ok=True)
    match path.suffix:
        case ".parquet":
            pq.write_table(rows, path, **more)
        case ".orc":
            orc.write_table(rows, str(path), **more)
        case ".csv":
            from pyarrow import csv

            csv.write_csv(rows, path)
        case ending:
            make = pa.ipc.new_stream if ending == ".arrows" else pa.ipc.new_file
            with make(path, rows.schema) as w:
                w.write_table(rows, **more)
    return path


def rows_of(source: Source, columns: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    columns = columns or source.columns
    real = [c for c in columns if c == "p"]
    return [r for part in source.parts for b in part.read(columns, real) for r in b.to_pylist()]


def bits(source: Any, **more: Any) -> bytes:
    """Return what a sketch holds, but for where it came from and which file held what."""
    made = cal.sketch(source, **(ASK | more)).copy()
    made.name, made.files = "", ()
    made.parts.pop("contents")
    return made.to_bytes()


FORMATS = (".parquet", ".arrow", ".arrows", ".orc", ".csv")


# ---- formats ----


@pytest.mark.parametrize("ending", FORMATS)
def test_one_table_is_the_same_in_every_format(tmp_path: Path, ending: str) -> None:
    more = {"row_group_size": 90} if ending == ".parquet" else {"max_chunksize": 70} if "arrow" in ending else {}
    path = write(table(), tmp_path / f"d{ending}", **more)
    want = bits(table(), by="g", variables="x", tests=True)
    assert bits(str(path), by="g", variables="x", tests=True) == want
    assert bits(f"file://{path}", by="g", variables="x", tests=True) == want


@pytest.mark.parametrize("ending", FORMATS)
def test_a_name_that_lies_about_the_format_is_not_believed(tmp_path: Path, ending: str) -> None:
    path = write(table(), tmp_path / f"d{ending}")
    for lie in (".parquet", ".csv", ".arrow", ".orc", ""):
        shutil.copy(path, named := tmp_path / f"lie{lie}")
        assert bits(str(named)) == bits(table())


def test_a_folder_of_two_formats_is_refused(tmp_path: Path) -> None:
    write(table(), tmp_path / "a.parquet")
    write(table(), tmp_path / "b.csv")
    with pytest.raises(cal.BadInput, match=r"^a\.parquet is Parquet and b\.csv is text: files of one data set share"):
        cal.sketch(str(tmp_path), **ASK)


@pytest.mark.parametrize("ending", FORMATS)
def test_rows_of_two_files_are_told_apart(tmp_path: Path, ending: str) -> None:
    """Rows of equal numbers in two files are two rows: they lie in blocks of their own."""
    many = table(3000)
    write(many, tmp_path / f"a{ending}")
    write(many, tmp_path / f"b{ending}")
    found = open_source(str(tmp_path))
    assert {(part.name, part.first_row) for part in found.parts} == {(f"a{ending}", 0), (f"b{ending}", 0)}


@pytest.mark.parametrize("ending", [".arrow", ".orc", ".parquet"])
def test_runs_of_batches_and_stripes_know_their_first_row(
    tmp_path: Path, ending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrow_files, "PART", 150)
    monkeypatch.setattr(arrow_files, "FEW_ROWS", 200)
    monkeypatch.setattr(arrow_files, "LOOKED", 0)  # of a small file of ORC few rows are read at once, in one part
    n = 100_000 if ending == ".orc" else 1000
    rows = table(n)
    more: dict[str, Any] = {".arrow": {"max_chunksize": 70}, ".parquet": {"row_group_size": 90}}.get(
        ending, {"stripe_size": 1 << 16}
    )
    found = open_source(str(write(rows, tmp_path / f"d{ending}", **more)))
    assert len(found.parts) > 3
    assert found.rows == n
    for part in found.parts:
        first = next(iter(part.read(("p",), ())))
        assert first.column(0)[0].as_py() == rows["p"][part.first_row].as_py()
    assert [r["p"] for r in rows_of(found, ("p",))] == rows["p"].to_pylist()


def test_dictionaries_that_grow_or_change_along_a_stream(tmp_path: Path) -> None:
    kind = pa.dictionary(pa.int8(), pa.string())
    schema = pa.schema([("y", pa.int8()), ("p", pa.float64()), ("g", kind)])
    words = (["a"], ["a", "b"], ["c", "a", "d"])  # grows, then is another
    batches = [
        pa.record_batch(
            [
                pa.array([0, 1], pa.int8()),
                [0.2, 0.7],
                pa.DictionaryArray.from_arrays(pa.array([0, len(w) - 1], pa.int8()), w),
            ],
            schema=schema,
        )
        for w in words
    ]
    for deltas in (False, True):
        with pa.ipc.new_stream(
            tmp_path / "d.arrows", schema, options=pa.ipc.IpcWriteOptions(emit_dictionary_deltas=deltas)
        ) as w:
            for b in batches:
                w.write_batch(b)
        assert [r["g"] for r in rows_of(open_source(str(tmp_path / "d.arrows")))] == ["a", "a", "a", "b", "c", "d"]
        assert cal.sketch(str(tmp_path / "d.arrows"), **ASK, by="g").n == 6


def test_a_stream_is_whole_or_refused(tmp_path: Path) -> None:
    raw = write(table(), tmp_path / "d.arrows", max_chunksize=100).read_bytes()
    (tmp_path / "cut.arrows").write_bytes(raw[:-8])  # batches are all there: nobody would miss what followed
    with pytest.raises(cal.BadInput, match="stream of Arrow IPC without an end"):
        cal.sketch(str(tmp_path / "cut.arrows"), **ASK)
    (tmp_path / "two.arrows").write_bytes(raw + raw)
    with pytest.raises(cal.BadInput, match="goes on after the end of its stream"):
        cal.sketch(str(tmp_path / "two.arrows"), **ASK)


# ---- odd but sound, or refused in one line ----


def test_files_of_no_rows_groups_or_columns(tmp_path: Path) -> None:
    for ending in (".parquet", ".arrow", ".arrows", ".orc"):
        path = write(table(0), tmp_path / f"none{ending}")
        with pytest.raises(cal.BadInput, match="no rows"):
            cal.sketch(str(path), **ASK, by="g")
    write(pa.table({}), tmp_path / "empty.parquet")
    with pytest.raises(cal.BadInput, match="'y' is not in the data"):
        cal.sketch(str(tmp_path / "empty.parquet"), **ASK)
    assert cal.sketch(str(write(table(1), tmp_path / "one.parquet")), **ASK).n == 1


@pytest.mark.slow
def test_a_thousand_row_groups(tmp_path: Path) -> None:
    path = write(table(1000), tmp_path / "d.parquet", row_group_size=1)
    assert len(open_source(str(path)).parts) == 1  # neighbours of few rows are read as one
    assert bits(str(path), by="g") == bits(table(1000), by="g")


def test_a_name_that_two_columns_have(tmp_path: Path) -> None:
    rows = table()
    twice = pa.table([*rows.columns, rows["x"]], [*rows.schema.names, "x"])
    for ending in (".parquet", ".arrow", ".arrows"):
        path = write(twice, tmp_path / f"d{ending}")
        assert bits(str(path), by="g") == bits(rows, by="g")
        with pytest.raises(cal.BadInput, match=r"columns (named )?'x': rename"):
            cal.sketch(str(path), **ASK, by="x")


def test_nested_columns_and_dots_in_names(tmp_path: Path) -> None:
    rows = table()
    nested = pa.array([{"b": i, "c": "t"} for i in range(len(rows))])
    path = write(rows.append_column("a", nested).append_column("a.b", rows["x"]), tmp_path / "d.parquet")
    assert open_source(str(path)).columns == ("y", "p", "g", "x", "a", "a.b")
    assert [r["a.b"] for r in rows_of(open_source(str(path)), ("a.b", "y"))] == rows["x"].to_pylist()
    assert rows_of(open_source(str(path)), ("a",))[3] == {"a": {"b": 3, "c": "t"}}
    with pytest.raises(cal.BadInput, match="'a' holds struct"):
        cal.sketch(str(path), **ASK, by="a")


def test_texts_stored_as_differences(tmp_path: Path) -> None:
    """They cannot be read as dictionaries, as other texts are."""
    more = {"use_dictionary": False, "column_encoding": {"g": "DELTA_BYTE_ARRAY"}}
    path = write(table(), tmp_path / "d.parquet", **more)
    assert bits(str(path), by="g") == bits(table(), by="g")


def test_text_that_is_not_utf8(tmp_path: Path) -> None:
    raw = pa.array([b"ok", b"caf\xe9"] * 200, pa.binary())
    text = pa.Array.from_buffers(pa.string(), 400, raw.buffers())
    for ending in (".parquet", ".arrow", ".arrows"):
        path = write(table().set_column(2, "g", text), tmp_path / f"d{ending}")
        with pytest.raises(cal.BadInput, match=r"column 'g' holds text that is not UTF-8, in rows 0 to 399 \("):
            cal.sketch(str(path), **ASK, by="g")
        assert bits(str(path)) == bits(table())


def test_names_that_are_not_utf8(tmp_path: Path) -> None:
    raw = write(table().rename_columns(["y", "p", "gxyz", "x"]), tmp_path / "d.parquet").read_bytes()
    (tmp_path / "d.parquet").write_bytes(raw.replace(b"gxyz", b"g\xff\xfez"))
    with pytest.raises(cal.BadInput, match="names a column in bytes that are not UTF-8"):
        cal.sketch(str(tmp_path / "d.parquet"), **ASK)


def test_feather_of_the_first_version_and_encrypted_parquet(tmp_path: Path) -> None:
    (tmp_path / "old.feather").write_bytes(b"FEA1" + bytes(100) + b"FEA1")
    with pytest.raises(cal.BadInput, match="a Feather file of the first version: write it again as"):
        cal.sketch(str(tmp_path / "old.feather"), **ASK)
    (tmp_path / "d.parquet").write_bytes(b"PARE" + bytes(100) + (40).to_bytes(4, "little") + b"PARE")
    with pytest.raises(cal.BadInput, match=r"^d\.parquet cannot be read as Parquet \(") as reported:
        cal.sketch(str(tmp_path / "d.parquet"), **ASK)
    assert "\n" not in str(reported.value)


def test_page_checksums_are_verified(tmp_path: Path) -> None:
    more = {"compression": "none", "use_dictionary": False, "write_page_checksum": True}
    raw = bytearray(write(table(), tmp_path / "d.parquet", **more).read_bytes())
    where = bytes(raw).index(np.asarray(table()["p"])[:4].tobytes())
    raw[where + 3] ^= 1
    (tmp_path / "d.parquet").write_bytes(raw)
    with pytest.raises(cal.BadInput, match=r"d\.parquet cannot be read as Parquet \(.*(CRC|checksum)"):
        cal.sketch(str(tmp_path / "d.parquet"), **ASK)


# ---- a file that changes while it is read ----


def replaced(path: Path, rows: pa.Table, **more: Any) -> None:
    write(rows, made := path.with_name(f"new{path.suffix}"), **more)
    os.replace(made, path)


def in_place(path: Path, rows: pa.Table, **more: Any) -> None:
    path.write_bytes(write(rows, path.with_name(f"new{path.suffix}"), **more).read_bytes())


def removed(path: Path, *_: Any, **__: Any) -> None:
    path.unlink()


@pytest.mark.parametrize("ending", FORMATS)
@pytest.mark.parametrize(
    ("change", "why"),
    [(replaced, "another file took its place"), (in_place, "it was written to"), (removed, "it is gone")],
)
def test_a_file_that_changes_is_refused(
    tmp_path: Path, ending: str, change: Callable[..., None], why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "ROWS", 100)
    path = write(table(), tmp_path / f"d{ending}")
    for rows in (table(seed=1), table(90, seed=1)):  # as many rows, or other row groups
        write(table(), path)
        found = open_source(str(path))
        change(path, rows)
        with pytest.raises(cal.BadInput, match=rf"^d\{ending} changed while it was read: {why}; nothing was counted"):
            rows_of(found)


def test_a_file_that_changes_between_the_look_and_the_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from calibrant.data import read as reads

    path, look = write(table(), tmp_path / "d.parquet"), reads.first_look

    def then_changed(*given: Any) -> Any:
        out = look(*given)
        replaced(path, table(seed=1))
        return out

    monkeypatch.setattr(reads, "first_look", then_changed)
    with pytest.raises(cal.BadInput, match="changed while it was read: another file took its place"):
        cal.sketch(str(path), **ASK, by="g")


def test_a_file_that_changes_after_its_rows_were_read(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write(table(), tmp_path / f"{name}.parquet")
    found = open_source(str(tmp_path))

    def one_pass() -> None:
        with found.one_pass():
            rows_of(found)
            replaced(tmp_path / "a.parquet", table(seed=1))

    with pytest.raises(cal.BadInput, match=r"^a\.parquet changed while it was read"):
        one_pass()


@pytest.mark.parametrize("ending", [".arrow", ".arrows", ".parquet", ".orc", ".csv"])
def test_a_file_that_is_cut_while_it_is_read(tmp_path: Path, ending: str) -> None:
    """A file that were mapped would end the process."""
    path = write(table(20_000), tmp_path / f"d{ending}")
    parts = iter(open_source(str(path)).parts)
    batches = next(parts).read(("p", "y"), ())
    next(batches)
    os.truncate(path, 1000)
    with pytest.raises(cal.BadInput, match="changed while it was read: it was written to"):
        [*batches, *(b for part in parts for b in part.read(("p", "y"), ()))]


class Elsewhere:
    """A cluster during whose work a file is replaced; it counts, or fails."""

    def __init__(self, path: Path, fails: bool) -> None:
        self.path, self.fails = path, fails

    def run(self, task: bytes, _: Any) -> tuple[list[bytes], int | None]:
        shares = open_source(str(self.path)).fragments.shares()  # type: ignore[union-attr]
        replaced(self.path, table(seed=1))
        if self.fails:
            raise cal.EngineFailed("the job failed")
        return [work.count_fragments(task, i, share) for i, share in enumerate(shares)], len(shares)


@pytest.mark.parametrize("fails", [True, False])
def test_a_file_that_changes_while_a_cluster_reads_it(tmp_path: Path, fails: bool) -> None:
    path = write(table(), tmp_path / "d.parquet")
    source = replace(open_source(str(path)), engine=Elsewhere(path, fails))
    with pytest.raises(cal.BadInput, match="changed while it was read: another file took its place"):
        engines.sketch_source(source, cal.sketch(table(), **ASK).spec)


def test_a_worker_refuses_a_damaged_file(tmp_path: Path) -> None:
    path = write(table(), tmp_path / "d.parquet", compression="none", use_dictionary=False, write_page_checksum=True)
    (share,) = open_source(str(path)).fragments.shares()  # type: ignore[union-attr]
    task = work.Task(kind="count", spec=cal.sketch(table(), **ASK).spec)
    raw = bytearray(path.read_bytes())
    raw[raw.index(np.asarray(table()["p"])[:4].tobytes()) + 3] ^= 1
    path.write_bytes(raw)
    with pytest.raises(cal.BadInput, match=r"^d\.parquet cannot be read as Parquet \("):
        work.joined(task, [work.count_fragments(task.to_bytes(), 0, share)])


@pytest.mark.parametrize("few", [0, 32])
@pytest.mark.parametrize(("change", "why"), [(in_place, "it was written to"), (removed, "it is gone")])
def test_a_file_afar_that_changes(
    tmp_path: Path, few: int, change: Callable[..., None], why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such files have sizes and times; few of them are asked for one by one, many are listed anew."""
    monkeypatch.setattr(file_versions, "FEW", few)
    for name in ("a", "b"):
        write(table(), tmp_path / f"{name}.parquet")
    afar = fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem())
    found = open_source(ds.dataset("", filesystem=afar, format="parquet"))
    with found.one_pass():
        rows_of(found)
    change(tmp_path / "b.parquet", table(seed=1))
    with pytest.raises(cal.BadInput, match=rf"^b\.parquet changed while it was read: {why}"), found.one_pass():
        pass


@pytest.mark.parametrize("few", [0, 32])
def test_a_store_that_does_not_answer_is_no_change(tmp_path: Path, few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_versions, "FEW", few)
    write(table(), tmp_path / "a.parquet")

    class Store:
        type_name, answers = "store", True

        def get_file_info(self, asked: Any) -> Any:
            if not self.answers:
                raise OSError("access denied")
            return fs.LocalFileSystem().get_file_info(asked)

    store = Store()
    held = file_versions.versions_of(store, str(tmp_path), [str(tmp_path / "a.parquet")])
    held.check()
    store.answers = False
    held.check()
    file_versions.versions_of(store, str(tmp_path), [str(tmp_path / "a.parquet")]).check()


# ---- folders ----


def test_hidden_files_and_folders_are_no_data(tmp_path: Path) -> None:
    for name in ("a", "_temporary/0/b", ".trash/c", "_d", "_e=1/f"):
        write(table(50), tmp_path / f"{name}.parquet")
    (tmp_path / "_temporary" / "0" / "README.md").write_text("no data")
    for source in (str(tmp_path), f"file://{tmp_path}"):
        with pytest.raises(cal.BadInput, match=r"^a\.parquet lacks column '_e'|lacks column '_e' that f\.parquet has"):
            open_source(source)
    shutil.rmtree(tmp_path / "_e=1")
    for source in (str(tmp_path), f"file://{tmp_path}"):
        assert open_source(source).files == ("a.parquet",)


@pytest.mark.parametrize("sign", ["_delta_log/0.json", "metadata/v1.metadata.json", ".hoodie/hoodie.properties"])
def test_tables_of_table_formats_are_no_plain_files(tmp_path: Path, sign: str) -> None:
    write(table(50), tmp_path / "data" / "a.parquet")
    (tmp_path / sign).parent.mkdir()
    (tmp_path / sign).write_text("{}")
    for source in (str(tmp_path), f"file://{tmp_path}"):
        with pytest.raises(
            cal.BadInput, match=r"is a table of (Delta Lake|Iceberg|Hudi), whose files also hold rows that"
        ):
            open_source(source)
    assert open_source(f"{tmp_path}/data/*.parquet").rows == 50


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
def test_a_pipe_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(cal.BadInput, match="is no file but a pipe or device, which can be read only once"):
        open_source(str(tmp_path / "pipe"))


# ---- folders that name columns ----

SITES = [("a", "2020"), ("a", "2021"), ("b", "2021")]


def hive(root: Path, ending: str = ".parquet", pairs: list[tuple[str, str]] = SITES) -> pa.Table:
    """Write a table in folders, and return what it is."""
    whole = []
    for i, (site, year) in enumerate(pairs):
        rows = table(200, seed=i)
        write(rows, root / f"site={site}" / f"year={year}" / f"part{ending}")
        whole.append(rows.append_column("site", [[site] * 200]).append_column("year", [[int(year)] * 200]))
    return pa.concat_tables(whole)


@pytest.mark.slow
@pytest.mark.parametrize("ending", FORMATS)
def test_folders_that_name_columns(tmp_path: Path, ending: str) -> None:
    whole = hive(tmp_path / "log", ending)
    found = open_source(str(tmp_path / "log"))
    assert found.columns == ("y", "p", "g", "x", "site", "year")
    for columns in (("site",), ("year", "y"), ("year", "site", "x", "p")):
        assert [r[columns[0]] for r in rows_of(found, columns)] == whole[columns[0]].to_pylist()
    ask: dict[str, Any] = {"by": ["site", "year"], "key": ["site", "x"], "variables": ["g", "year"]}
    want = bits(whole, **ask)
    given = [str(tmp_path / "log"), f"{tmp_path}/log/*/*/*{ending}", f"file://{tmp_path}/log"]
    given += [sorted(map(str, tmp_path.rglob(f"part{ending}"))), f"file://{tmp_path}/log/**"]  # type: ignore[list-item]
    for source in given:
        assert bits(source, **ask) == want
    one = {"by": "site", "key": "x"}
    assert bits(f"{tmp_path}/log/site=a", **one) == bits(whole.slice(0, 400), **one)


def test_datasets_bring_their_partitions(tmp_path: Path) -> None:
    whole = hive(tmp_path / "log")
    for how in ("hive", ds.partitioning(pa.schema([("site", pa.string()), ("year", pa.string())]), flavor="hive")):
        made = ds.dataset(tmp_path / "log", partitioning=how)
        assert bits(made, by="site", key="x") == bits(whole, by="site", key="x")
        year = rows_of(open_source(made), ("year",))[0]["year"]
        assert year == (2020 if how == "hive" else "2020")
    assert "site" not in open_source(ds.dataset(tmp_path / "log")).columns  # as the dataset has it
    with pytest.raises(cal.BadInput, match="a filter of the dataset would be ignored"):
        open_source(made.filter(ds.field("y") == 1))


def test_what_folders_say_is_taken_as_it_is(tmp_path: Path) -> None:
    names = ["007", "12", "__HIVE_DEFAULT_PARTITION__"]
    for i, name in enumerate(names):
        write(table(50, seed=i), tmp_path / f"site%20code={name}" / "month=2020%2F01" / f"n={-i}" / "d.parquet")
    found = open_source(str(tmp_path))
    assert found.columns[-3:] == ("site code", "month", "n")
    rows = rows_of(found, ("site code", "month", "n"))
    assert [tuple(r.values()) for r in rows[::50]] == [
        ("007", "2020/01", 0),
        ("12", "2020/01", -1),
        (None, "2020/01", -2),
    ]
    write(table(50), tmp_path / "site%20code=12" / "month=%ff" / "n=1" / "d.parquet")
    assert rows_of(open_source(f"{tmp_path}/*12/*ff/*/*.parquet"), ("month",))[0] == {"month": "%ff"}


def test_keys_can_be_had_as_text(tmp_path: Path) -> None:
    """As a spec has them that was fixed where some were no numbers."""
    for ending in (".parquet", ".csv"):
        write(table(50), tmp_path / ending / "code=12" / f"d{ending}")
        found = open_source(f"{tmp_path}/{ending}/**/*{ending}")
        assert rows_of(found, ("code",))[0]["code"] == 12
        assert found.as_text is not None
        assert rows_of(found.as_text(["code"]), ("code",))[0]["code"] == "12"


def test_a_cluster_has_keys_as_text_too(tmp_path: Path) -> None:
    write(table(50), tmp_path / "code=12" / "d.parquet")
    live = type("Client", (), {"__module__": "distributed.client", "gather": 0, "compute": 0, "cancel": 0})()
    for texts, key in (((), ("code", "12", True)), (["code"], ("code", "12", False))):
        found = engines.source_of(str(tmp_path), Reading(), engine=live, texts=texts)
        assert [piece[5] for piece in found.engine.fragments.pieces] == [(key,)]  # type: ignore[union-attr]


def test_a_key_that_is_also_a_column(tmp_path: Path) -> None:
    for site, n in (("a", 1), ("b", 2)):
        rows = table(50).append_column("site", [[site] * 50]).append_column("n", [[n] * 50])
        write(rows, tmp_path / f"site={site}" / f"n={n}" / "d.parquet")
    found = open_source(str(tmp_path))
    assert found.columns == ("y", "p", "g", "x", "site", "n")
    assert [r["site"] for r in rows_of(found)][::50] == ["a", "b"]
    os.rename(tmp_path / "site=b", tmp_path / "site=c")
    with pytest.raises(
        cal.BadInput, match=r"^site=c/n=2/d\.parquet holds 'b' in column 'site' and lies in a folder site=c: "
    ):
        rows_of(open_source(str(tmp_path)))


def test_a_file_outside_the_folders_is_refused(tmp_path: Path) -> None:
    hive(tmp_path)
    write(table(), tmp_path / "z.parquet")
    with pytest.raises(cal.BadInput, match=r"z\.parquet lacks column 'site' that site=a/year=2020/part\.parquet has"):
        open_source(str(tmp_path))


def test_keys_are_written_with_the_rows(tmp_path: Path) -> None:
    hive(tmp_path / "log")
    found = open_source(str(tmp_path / "log"))
    for ending in (".parquet", ".csv", ".arrow"):
        out = tmp_path / f"out{ending}"
        assert rewrite(found, out, ("p",), lambda batch, _, __: {"q": batch["p"]}, lambda: None) == 600
        rows = rows_of(open_source(str(out)), ("site", "year", "q"))
        assert [(r["site"], r["year"]) for r in rows[::200]] == [("a", 2020), ("a", 2021), ("b", 2021)]
