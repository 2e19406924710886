"""One answer everywhere: the same bits from files, queries, Spark (classic and Connect) and Dask, on real engines."""

from __future__ import annotations

import os
import shutil
import socket
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import calibrant as cal
from calibrant.data import survey
from calibrant.data.engines import reduce as engines
from calibrant.data.engines import work as travel
from calibrant.data.sketches.sketch import Sketch
from calibrant.views.boxes import tables_of
from e2e.cluster_log import COLUMNS, bits, sketched, table, write

NO_SPARK = "PySpark 4 is not installed: pip install 'calibrant[spark]'"
NO_DASK = "Dask is not installed: pip install 'calibrant[dask]'"
IN_FOLDERS: dict[str, Any] = COLUMNS | {
    "by": ["site", "year"],
    "variables": ["site", "age"],
    "key": ["id", "at", "year"],
}
PLAIN: dict[str, Any] = {"tests": False}  # the local test's sums are most of a full sketch's work
pytestmark = [
    pytest.mark.filterwarnings("ignore::FutureWarning:pyspark"),  # of pandas 3, which calibrant does not use there
    pytest.mark.filterwarnings("ignore::UserWarning:pyspark"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def spark_tests(test: Any) -> Any:
    """One process starts Java, once; it takes a minute."""
    return pytest.mark.slow(pytest.mark.xdist_group("spark")(test))


def dask_tests(test: Any) -> Any:
    return pytest.mark.slow(pytest.mark.xdist_group("dask")(test))


@pytest.fixture(scope="module", autouse=True)
def small() -> Iterator[None]:
    """Samples smaller than the log, so that which rows are in them shows."""
    with pytest.MonkeyPatch.context() as m:
        m.setattr(survey, "LOOK", 3000)
        m.setattr(survey, "KEPT", 2000)
        m.setattr(survey, "DRAWS", 99)
        yield


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("log") / "log.parquet")


@pytest.fixture(scope="module")
def local(log: Path) -> Sketch:
    return sketched(str(log))  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def per_cent(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The log with scores of whole per cents, all of which a sketch keeps."""
    rows = table()
    p = pa.array(np.round(rows["p"].to_numpy(), 2))
    rows = rows.set_column(rows.schema.get_field_index("p"), "p", p)
    return write(tmp_path_factory.mktemp("log") / "per_cent.parquet", rows)


@pytest.fixture(scope="module")
def session() -> Iterator[Any]:
    """A classic session whose Java process also serves Spark Connect."""
    sql = pytest.importorskip("pyspark.sql", reason=NO_SPARK)
    if "JAVA_HOME" not in os.environ and shutil.which("java") is None:
        pytest.skip("there is no Java, which Spark runs in: install version 17 or set JAVA_HOME")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = {
        "spark.ui.enabled": "false",
        "spark.driver.memory": "1g",
        "spark.sql.session.timeZone": "America/New_York",
        "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
        "spark.connect.grpc.binding.port": port,
        "spark.log.level": "ERROR",
        "spark.ui.showConsoleProgress": "false",
    }
    builder = sql.SparkSession.builder.master("local[2]")
    for name, value in options.items():
        builder = builder.config(name, value)
    with pytest.MonkeyPatch.context() as m, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        m.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        made = builder.getOrCreate()
        yield made
        made.stop()


@pytest.fixture(scope="module")
def connect(session: Any) -> Iterator[Any]:
    remote = pytest.importorskip("pyspark.sql.connect.session", reason=NO_SPARK)
    port = session.conf.get("spark.connect.grpc.binding.port")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = remote.SparkSession.builder.remote(f"sc://127.0.0.1:{port}").create()
        yield made
        made.stop()


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    distributed = pytest.importorskip("distributed", reason=NO_DASK)
    pytest.importorskip("dask.dataframe", reason=NO_DASK)
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50) as cluster,
        distributed.Client(cluster) as made,
    ):
        yield made


def in_years() -> pa.Table:
    return table().append_column("year", pa.array(2020 + np.arange(len(table())) % 3))


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The log in folders of sites, one of them absent, and years."""
    root: Path = tmp_path_factory.mktemp("folders")
    rows = in_years()
    kinds = pa.schema([rows.schema.field("site").remove_metadata(), ("year", pa.int64())])
    ds.write_dataset(rows, root, format="parquet", partitioning=ds.partitioning(kinds, flavor="hive"))
    return root


def spark_frame(session: Any, log: Path, parts: int) -> Any:
    return session.read.parquet(str(log)).repartition(parts)  # repartition shuffles the rows


# ---- the same bits ----


@pytest.mark.slow
def test_few_values_from_files_frames_and_queries(per_cent: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    local = sketched(str(per_cent), **PLAIN)
    held = local.parts["values"]
    assert len(held.scores) == len(set(pq.read_table(per_cent)["p"].to_pylist())) > 90
    assert held.counts([0, 1, 2]).sum() < held.counts().sum() == local.n
    for source in (pq.read_table(per_cent), duckdb.read_parquet(str(per_cent))):
        assert bits(sketched(source, **PLAIN)) == bits(local)


@spark_tests
def test_few_values_on_spark(session: Any, per_cent: Path) -> None:
    assert bits(sketched(spark_frame(session, per_cent, 3), **PLAIN)) == bits(sketched(str(per_cent), **PLAIN))


@dask_tests
def test_few_values_on_dask(client: Any, per_cent: Path) -> None:
    frames = pytest.importorskip("dask.dataframe", reason=NO_DASK)
    frame = frames.read_parquet(per_cent, split_row_groups=True)
    assert bits(sketched(frame, **PLAIN)) == bits(sketched(str(per_cent), **PLAIN))


@pytest.mark.slow
@pytest.mark.parametrize("threads", [5, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 2))])
def test_threads(log: Path, local: Sketch, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines.os, "cpu_count", lambda: threads)
    assert bits(sketched(str(log))) == bits(local)


@pytest.mark.slow
def test_shuffled_rows_and_other_storage(tmp_path: Path, local: Sketch) -> None:
    """Rows in another order, in another number of row groups; strings as views, times in other units and zones."""
    order = np.random.default_rng(5).permutation(len(t := table()))
    t = t.take(pa.array(order))
    stored = {
        "site": pa.array(t["site"].to_pylist(), pa.large_string()),
        "at": t["at"].cast(pa.timestamp("ns", tz="Asia/Tokyo")),
        "month": t["month"].cast(pa.timestamp("us", tz="Europe/Paris")),
        "id": t["id"].cast(pa.int32()),
    }
    for name, column in stored.items():
        t = t.set_column(t.schema.get_field_index(name), name, column)
    assert bits(sketched(t)) == bits(local)
    assert bits(sketched(t, key="id")) == bits(sketched(table(), key="id"))  # two rows of each
    t = t.set_column(t.schema.get_field_index("site"), "site", stored["site"].cast(pa.string_view()))
    assert bits(sketched(t)) == bits(local)


@pytest.mark.slow
def test_merge_order(local: Sketch) -> None:
    t = table()
    cuts = np.random.default_rng(1).choice(len(t), 9, replace=False)
    pieces = [t.slice(a, b - a) for a, b in zip([0, *sorted(cuts)], [*sorted(cuts), len(t)], strict=True)]
    made = [cal.sketch(piece, spec=local.spec) for piece in pieces]
    for seed in range(3):
        whole = Sketch(local.spec)
        for i in np.random.default_rng(seed).permutation(len(made)):
            whole.merge(made[i])
        assert bits(whole) == bits(local)


@pytest.mark.slow
def test_a_query_counts_as_sql_does(log: Path, local: Sketch) -> None:
    """Every cell of everyone and of each site, counted by DuckDB; and a query as a source."""
    duckdb = pytest.importorskip("duckdb")
    score = "least(cast(floor(p * 1073741824) as bigint), 1073741823)"
    counted = duckdb.sql(f"select {score} >> 16, y, count(*) from '{log}' group by all").fetchall()  # noqa: S608
    cells = local.cells.sum(axis=0)
    assert {(c, y): n for c, y, n in counted} == {
        (int(c), y): int(cells[c, y]) for y in (0, 1) for c in np.flatnonzero(cells[:, y])
    }
    by_site = duckdb.sql(
        f"select coalesce(site, 'missing'), {score} >> 20, y, count(*) from '{log}' group by all"  # noqa: S608
    ).fetchall()
    names, held = [n[0][1] for n in local.spec.group_names(0)], local.group_cells.sum(axis=1)
    assert {row[:3]: row[3] for row in by_site} == {
        (names[g], int(c), y): int(held[g, c, y])
        for g in range(len(names))
        for y in (0, 1)
        for c in np.flatnonzero(held[g, :, y])
    }
    with duckdb.connect() as own:
        assert bits(sketched(cal.sql(f"select * from '{log}' order by age", connection=own))) == bits(local)  # noqa: S608
    with pytest.raises(cal.BadInput, match="cannot be run"):
        sketched(cal.sql("select * from nowhere"))


@pytest.mark.slow
def test_boxes_from_rows_files_and_queries(log: Path, local: Sketch) -> None:
    """Rows in memory, a file, its parts added up, a query: one table of boxes and one p-value."""
    names = COLUMNS["variables"]
    rows = cal.read(str(log), label="y", score="p", by=names)
    file = cal.sketch(str(log), label="y", score="p", variables=names, tests=True)
    here, there = (tables_of(data, names, 2, 0) for data in (rows, file))
    assert here.attributes == there.attributes == file.spec.attributes
    np.testing.assert_array_equal(here.sums, there.sums)
    for ask in (lambda d: cal.detect.scan_test(d, variables=names, null="bound"), cal.certify.subgroups):
        assert ask(rows) == ask(file)
    # by key, from any source, since the bits of the sketches agree
    keyed = tables_of(local, None, 2, 0)
    t = table()
    whole = Sketch(local.spec)
    for start in (5000, 0):
        whole.merge(cal.sketch(t.slice(start, 5000 if start == 0 else len(t)), spec=local.spec))
    np.testing.assert_array_equal(tables_of(whole, None, 2, 0).sums, keyed.sums)
    assert cal.detect.scan_test(whole) == cal.detect.scan_test(local)
    assert not keyed.complete  # the sample is smaller than the log
    with pytest.raises(cal.NotComputable):
        cal.detect.scan_test(local, null="simulated")


@pytest.mark.slow
def test_uris_and_datasets(log: Path, local: Sketch, tmp_path: Path) -> None:
    from pyarrow import dataset, fs

    assert bits(sketched(log.as_uri())) == bits(local)
    below = fs.SubTreeFileSystem(str(log.parent), fs.LocalFileSystem())
    assert bits(sketched(dataset.dataset("log.parquet", filesystem=below, format="parquet"))) == bits(local)
    (tmp_path / "a" / "north").mkdir(parents=True)
    for i, name in enumerate(("a/north/x.parquet", "a/y.parquet", "a/_z.parquet")):
        pq.write_table(table(900).slice(300 * i, 300), tmp_path / name)
    kw = {k: v for k, v in COLUMNS.items() if k != "key"}
    for path in (tmp_path / "a", tmp_path / "a" / "**" / "*.parquet", tmp_path / "a" / "[x-z].parquet"):
        there = f"file://{path}"
        assert bits(cal.sketch(there, **kw)) == bits(cal.sketch(str(path), **kw)), there
    for wrong in (f"file://{tmp_path}/none/*.parquet", "nothing://bucket/log", f"file://{tmp_path}/none"):
        with pytest.raises(cal.BadInput, match=r"no file|cannot read"):
            cal.sketch(wrong, label="y", score="p")


@pytest.fixture(scope="module")
def plain(log: Path) -> Sketch:
    return sketched(str(log), **PLAIN)  # type: ignore[no-any-return]


@spark_tests
@pytest.mark.parametrize("parts", [3, *(pytest.param(n, marks=pytest.mark.nightly) for n in (17, 100))])
def test_spark_classic(session: Any, log: Path, local: Sketch, parts: int) -> None:
    settings = {row.key: row.value for row in session.sql("set").collect()}
    assert bits(sketched(spark_frame(session, log, parts))) == bits(local)
    assert {row.key: row.value for row in session.sql("set").collect()} == settings
    assert not session.getTags()


@spark_tests
@pytest.mark.parametrize("parts", [17, 100])
def test_spark_classic_without_tests(session: Any, log: Path, plain: Sketch, parts: int) -> None:
    frame = spark_frame(session, log, parts)
    assert bits(sketched(frame, **PLAIN) if parts < 100 else cal.sketch(frame, spec=plain.spec)) == bits(plain)


@spark_tests
def test_spark_connect(connect: Any, log: Path, local: Sketch) -> None:
    assert bits(sketched(spark_frame(connect, log, 5))) == bits(local)


@spark_tests
@pytest.mark.parametrize("remote", [False, True])
def test_spark_reads_fragments(
    session: Any, request: pytest.FixtureRequest, log: Path, local: Sketch, remote: bool
) -> None:
    """Executors open the files themselves: rows keep file and number, so that no key is needed."""
    on = request.getfixturevalue("connect") if remote else session
    kw = {k: v for k, v in (COLUMNS if remote else COLUMNS | PLAIN).items() if k != "key"}
    here = cal.sketch(str(log), **kw)
    there = cal.sketch(str(log) if remote else log.as_uri(), engine=on, **kw)
    assert bits(there) == bits(here)
    assert (there.name, there.files) == (here.name, here.files)


@pytest.fixture
def reached(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many messages of each pass reach this process."""
    counts: list[int] = []

    def reported(task: Any, messages: Any) -> Any:
        counts.append(len(messages))
        return travel.joined(task, messages)

    monkeypatch.setattr(engines, "joined", reported)
    return counts


@spark_tests
@pytest.mark.parametrize("stages", [1, 2])
def test_one_stage_or_two_on_spark(
    session: Any, log: Path, monkeypatch: pytest.MonkeyPatch, reached: list[int], stages: int
) -> None:
    """Eighteen row groups, joined by five tasks at once, or in six groups and what these gave by five."""
    spark = pytest.importorskip("calibrant.data.engines.spark")
    monkeypatch.setattr(spark, "BUCKETS", 5)
    monkeypatch.setattr(spark, "GROUP", 3 if stages == 2 else 4)
    assert len(spark.stages(True, 18)) == stages
    kw = {k: v for k, v in (COLUMNS | PLAIN).items() if k != "key"}
    assert bits(cal.sketch(str(log), engine=session, **kw)) == bits(cal.sketch(str(log), **kw))
    assert len(reached) == 2
    assert max(reached) <= 5


# Of 18 row groups two end short, and join their neighbours.
@dask_tests
@pytest.mark.parametrize(
    ("fan", "most"), [(2, 2), (64, 16)]
)  # 18 row groups, of which two end short and join their neighbours
def test_one_stage_or_many_on_dask(
    client: Any, log: Path, monkeypatch: pytest.MonkeyPatch, reached: list[int], fan: int, most: int
) -> None:
    monkeypatch.setattr("calibrant.data.engines.dask.FAN", fan)
    kw = {k: v for k, v in (COLUMNS | PLAIN).items() if k != "key"}
    assert bits(cal.sketch(str(log), engine=client, **kw)) == bits(cal.sketch(str(log), **kw))
    assert reached == [most, most]


@spark_tests
def test_spark_reads_the_keys_of_folders(session: Any, folders: Path) -> None:
    keyed(folders, session)


@dask_tests
def test_dask_reads_the_keys_of_folders(client: Any, folders: Path) -> None:
    keyed(folders, client)


def keyed(folders: Path, engine: Any) -> None:
    """Folders name columns for workers too: groups, covariates and keys."""
    whole, here = cal.sketch(in_years(), **IN_FOLDERS), cal.sketch(str(folders), **IN_FOLDERS)
    assert here.fingerprint == whole.fingerprint
    for source in (str(folders), folders.as_uri()):
        assert bits(cal.sketch(source, engine=engine, **IN_FOLDERS)) == bits(here)
    kw = IN_FOLDERS | {"key": None}
    assert bits(cal.sketch(str(folders), engine=engine, **kw)) == bits(cal.sketch(str(folders), **kw))


@dask_tests
def test_dask(client: Any, log: Path, local: Sketch) -> None:
    frames = pytest.importorskip("dask.dataframe", reason=NO_DASK)
    frame = frames.read_parquet(log, split_row_groups=True)
    assert frame.npartitions > 8  # so that sums are joined in a tree
    assert bits(sketched(frame)) == bits(local)
    kw = {k: v for k, v in (COLUMNS | PLAIN).items() if k != "key"}
    assert bits(cal.sketch(str(log), engine=client, **kw)) == bits(cal.sketch(str(log), **kw))


@dask_tests
@pytest.mark.filterwarnings("ignore:The inplace keyword")  # Dask's own use of pandas
def test_dask_without_a_cluster(log: Path, local: Sketch) -> None:
    frames = pytest.importorskip("dask.dataframe", reason=NO_DASK)
    import dask
    import distributed

    with dask.config.set(scheduler="threads"), pytest.MonkeyPatch.context() as m:
        m.setattr(distributed.Client, "compute", None, raising=True)  # another test's client may still be active
        assert bits(sketched(frames.read_parquet(log).repartition(npartitions=3))) == bits(local)


@spark_tests
@pytest.mark.parametrize("quick", [True, pytest.param(False, marks=pytest.mark.nightly)])
def test_an_audit_on_a_cluster(session: Any, log: Path, monkeypatch: pytest.MonkeyPatch, quick: bool) -> None:
    """Every method that reads the sketch: the whole record is that of the file."""
    monkeypatch.setattr(survey, "DRAWS", 999)
    kw = {
        "label": "y",
        "score": "p",
        "by": ["site"],
        "key": ["id", "at"],
        "variables": ["age", "site"],
        "limit": 0.1,
        "quick": quick,
    }
    here, there = cal.audit(str(log), **kw), cal.audit(spark_frame(session, log, 4), name="log", **kw)
    plain = [record.to_dict() for record in (here, there)]
    for record in plain:
        record["data"] = {k: v for k, v in record["data"].items() if k not in ("files", "file_count")}
    assert plain[0] == plain[1]


# ---- rows that belong together ----


CLUSTERS: dict[str, Any] = {"label": "y", "score": "p", "by": "site", "cluster": "id", "weights": "w"}


@pytest.fixture(scope="module")
def of_clusters(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The log with weights; two rows share an id."""
    rows = table().drop_columns(["flag", "price"])
    weights = pa.array(1.0 + np.arange(len(rows)) % 7 / 4)
    return write(tmp_path_factory.mktemp("clusters") / "log.parquet", rows.append_column("w", weights))


@spark_tests
@pytest.mark.parametrize("remote", [False, True])
def test_units_on_spark(session: Any, request: pytest.FixtureRequest, of_clusters: Path, remote: bool) -> None:
    on = request.getfixturevalue("connect") if remote else session
    assert bits(cal.sketch(str(of_clusters), engine=on, **CLUSTERS)) == bits(cal.sketch(str(of_clusters), **CLUSTERS))
    keyed = CLUSTERS | {"key": ["at", "id"]}
    there, here = cal.sketch(spark_frame(on, of_clusters, 5), **keyed), cal.sketch(str(of_clusters), **keyed)
    assert bits(there) == bits(here)
    assert there.parts["sample"].of_clusters == 6000
    assert cal.certify.rounded(there) == cal.certify.rounded(here)
    assert cal.certify.distance(there, side="upper") == cal.certify.distance(here, side="upper")


@dask_tests
def test_units_on_dask(client: Any, of_clusters: Path) -> None:
    frames = pytest.importorskip("dask.dataframe", reason=NO_DASK)
    assert bits(cal.sketch(str(of_clusters), engine=client, **CLUSTERS)) == bits(
        cal.sketch(str(of_clusters), **CLUSTERS)
    )
    keyed = CLUSTERS | {"key": ["at", "id"]}
    frame = frames.read_parquet(of_clusters, split_row_groups=True).repartition(npartitions=5)
    there, here = cal.sketch(frame, **keyed), cal.sketch(str(of_clusters), **keyed)
    assert bits(there) == bits(here)
    assert there.parts["sample"].of_clusters == 6000
    assert cal.certify.rounded(there) == cal.certify.rounded(here)
    assert cal.certify.distance(there, side="upper") == cal.certify.distance(here, side="upper")


# ---- what is refused, and how ----


@spark_tests
def test_what_needs_to_know_the_rows_asks_for_a_key(session: Any, log: Path, local: Sketch) -> None:
    frame = spark_frame(session, log, 2)
    whole = cal.sketch(frame, label="y", score="p", by="site")
    for method in ("rounded", "jittered", "distance"):
        assert getattr(cal.certify, method)(whole, side="upper") == getattr(cal.certify, method)(local, side="upper")
    assert Sketch.from_bytes(whole.to_bytes()).fingerprint == whole.fingerprint
    asks = [
        lambda: cal.certify.raw_lower(whole),
        lambda: cal.certify.rounded(whole),
        lambda: cal.certify.groups(whole),
        lambda: cal.sketch(frame, label="y", score="p", variables="age"),
        lambda: cal.audit(frame, label="y", score="p"),
        lambda: cal.audit(whole),
        lambda: cal.sketch(frame, spec=cal.sketch(str(log), label="y", score="p").spec),
    ]
    for ask in asks:
        with pytest.raises(cal.BadInput, match=r"key="):
            ask()


@spark_tests
def test_bad_rows_on_executors_are_bad_input_here(session: Any, log: Path) -> None:
    frame = spark_frame(session, log, 3)
    events = [
        (frame.selectExpr("y", "p * 100 as p"), {}, "percentages"),
        (frame.selectExpr("y", "site as p"), {}, "not numbers"),
        (frame.selectExpr("y", "p", "array(age) as a"), {"by": "a"}, "use text, numbers"),
        (frame.selectExpr("y", "site", "if(age = 20, null, p) as p"), {"by": "site"}, r"value(s are| is) missing"),
        (frame.where("age < 0"), {}, "no rows"),
        (frame, {"by": "sit"}, "did you mean 'site'"),
    ]
    for made, more, stated in events:
        with pytest.raises(cal.BadInput, match=stated) as e:
            cal.sketch(made, label="y", score="p", **more)
        assert "\n" not in str(e.value)
    counted = cal.sketch(frame.selectExpr("y", "if(age = 20, null, p) as p"), label="y", score="p", drop_missing=True)
    assert counted.dropped == int((table()["age"].to_numpy() == 20).sum())


@spark_tests
@pytest.mark.parametrize("lacking", [False, True])
def test_executors_without_this_calibrant(
    session: Any, log: Path, lacking: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = cal.__version__
    if lacking:
        monkeypatch.setattr(travel, "WORK", "calibrant_of_another_machine")
    else:
        monkeypatch.setattr(cal, "__version__", "9.9.9")
    with pytest.raises(cal.BadInput, match="worker") as e:
        cal.sketch(spark_frame(session, log, 2), label="y", score="p")
    stated = str(e.value)
    assert ("cannot import" in stated and "install" in stated) if lacking else (here in stated and "9.9.9" in stated)


@spark_tests
def test_a_failed_job_is_one_clear_line(session: Any, log: Path) -> None:
    frame = spark_frame(session, log, 2).selectExpr("y", "if(age = 20, raise_error('the disk is gone'), p) as p")
    with pytest.raises(cal.EngineFailed, match="the disk is gone") as e:
        cal.sketch(frame, label="y", score="p")
    assert "\n" not in str(e.value)
    assert not session.getTags()


@spark_tests
def test_a_frame_that_changes_is_refused(session: Any, log: Path) -> None:
    def fewer(batches: Any) -> Iterator[Any]:
        import random

        for batch in batches:
            yield batch.slice(random.randrange(1, batch.num_rows))

    frame = spark_frame(session, log, 2)
    changing = frame.mapInArrow(fewer, frame.schema)
    with pytest.raises(cal.BadInput, match="changed while it was read"):
        cal.sketch(changing, label="y", score="p", by="site")


def test_a_part_that_ran_twice_does_not_count_twice(local: Sketch) -> None:
    from calibrant.data.engines.work import Task, count_frame, join, joined

    task = Task(kind="count", spec=cal.sketch(table(), label="y", score="p").spec)
    raw, batches = task.to_bytes(), table().to_batches(max_chunksize=5000)
    a, b = (count_frame(raw, i, batches[i : i + 1]) for i in (0, 1))
    assert joined(task, [join(raw, [b]), a])[0].n == 10_000
    for twice in ([a, b, a], [join(raw, [a, b]), b]):
        with pytest.raises(cal.EngineFailed, match="twice"):
            joined(task, twice)


def test_an_engine_is_not_guessed(log: Path) -> None:
    for source, engine in ((str(log), object()), (table(), object()), (cal.sql("select 1"), object())):
        with pytest.raises(cal.BadInput, match="engine"):
            cal.sketch(source, label="y", score="p", engine=engine)
