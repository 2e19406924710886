"""What clusters rely on, without one: messages add up once, closures need no calibrant, nothing secret is said."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import calibrant as cal
from calibrant.data import survey
from calibrant.data.engines import reduce as engines
from calibrant.data.engines import reduce as freed
from calibrant.data.engines.work import Task, _one_thread, caller, count_frame, from_frame, join, joined, refusal
from calibrant.data.sources import files
from calibrant.data.sources.files import open_source
from calibrant.data.sources.listing import shown
from calibrant.kernels import runtime

ROWS = {"y": [0, 1, 1, 0], "p": [0.1, 0.6, 0.7, 0.2], "g": ["a", "b", "a", "b"]}


def task_of(rows: Any = ROWS, **more: Any) -> Task:
    return Task(kind="count", spec=cal.sketch(rows, label="y", score="p", **more).spec)


class Lossy:
    """A cluster that brings back less than it was given."""

    def __init__(self, batches: list[Any], parts: int | None) -> None:
        self.batches, self.parts = batches, parts

    def run(self, task: bytes, _: Sequence[str]) -> tuple[list[bytes], int | None]:
        return [count_frame(task, i, [b]) for i, b in enumerate(self.batches)], self.parts


def test_a_part_that_does_not_come_back_is_missed() -> None:
    source, batches = open_source(pa.table(ROWS)), pa.table(ROWS).to_batches(max_chunksize=2)
    task = task_of()
    lost = replace(source, rows=None, engine=Lossy(batches[:1], 2))
    with pytest.raises(cal.EngineFailed, match="1 of 2 parts"):
        engines.sketch_source(lost, task.spec)
    with pytest.raises(cal.BadInput, match="changed while it was read: 4 rows at first, then 2"):
        engines.sketch_source(replace(lost, rows=4, engine=Lossy(batches[:1], None)), task.spec)
    whole = engines.sketch_source(replace(source, rows=4, engine=Lossy(batches, 2)), task.spec)
    assert whole.n == 4


def test_bad_rows_are_told_and_not_called_a_change() -> None:
    """A part with faulty rows sends no counts, so that rows seem to be missing."""
    bad = pa.table(ROWS | {"p": [0.1, None, 0.7, 0.2]})
    source = replace(open_source(bad), engine=Lossy(bad.to_batches(max_chunksize=2), 2))
    with pytest.raises(cal.BadInput, match=r"column 'p': 1 value is missing.*row 1 of partition 0"):
        engines.sketch_source(source, task_of().spec)


def test_a_refusal_wins_over_the_parts_it_names() -> None:
    """A worker of another version cannot read which parts it was given to join."""
    task = task_of()
    raw, (batch,) = task.to_bytes(), pa.table(ROWS).to_batches()
    sound = count_frame(raw, 0, [batch])
    other = refusal(cal.BadInput("install the same version"), [0])
    for messages in ([sound, other], [other, sound], [join(raw, [sound, other])]):
        with pytest.raises(cal.BadInput, match="same version"):
            joined(task, messages)


@pytest.mark.slow
def test_stages_give_the_same_bytes_and_one_message_is_handed_on() -> None:
    rng = np.random.default_rng(7)
    rows = {"y": rng.integers(0, 2, 900), "p": rng.random(900), "g": rng.choice(list("abc"), 900)}
    task = task_of(rows, by="g", variables="g", tests=True)
    raw, batches = task.to_bytes(), pa.table(rows).to_batches(max_chunksize=100)
    messages = [count_frame(raw, i, [batch]) for i, batch in enumerate(batches)]
    groups = [join(raw, messages[i : i + 4]) for i in range(0, 9, 4)]
    assert groups[-1] == messages[-1]
    (one, parts), (two, same) = joined(task, [join(raw, messages)]), joined(task, [join(raw, groups)])
    assert one.to_bytes() == two.to_bytes()
    assert list(parts) == list(same) == list(range(9))


def test_memory_is_given_back_where_the_library_can(monkeypatch: pytest.MonkeyPatch) -> None:
    freed.release_memory()
    freed._trim.cache_clear()
    monkeypatch.setattr("ctypes.CDLL", lambda _: object())  # a C library that knows nothing of it
    freed.release_memory()
    freed._trim.cache_clear()


def test_texts_too_long_for_one_array_lose_no_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    table = pa.table({"x": list(range(10))})

    class Chunked:
        """What Arrow makes of batches that one chunk cannot hold."""

        from_batches = combine_chunks = classmethod(lambda cls, *_: cls)
        to_batches = classmethod(lambda _: table.to_batches(max_chunksize=4))

    batches = table.to_batches(max_chunksize=2)
    assert [(part, first, b.num_rows) for part, first, b in from_frame(batches, 3)] == [("partition 3", 0, 10)]
    monkeypatch.setattr(pa, "Table", Chunked)
    assert [(first, b.num_rows) for _, first, b in from_frame(batches, 3)] == [(0, 4), (4, 4), (8, 2)]


def test_functions_that_travel_need_no_calibrant_to_arrive() -> None:
    """Unpickled where calibrant cannot be imported they answer with a refusal that names the version."""
    cloudpickle = pytest.importorskip("cloudpickle")
    from calibrant.data.engines import dask, spark

    sent = [
        caller("Spark"),
        spark._of_rows(b""),
        spark._of_fragments(b"", []),
        spark._joining(b""),
        dask._counting(b"", "x"),
        dask._joining(b""),
    ]
    program = (
        "import pickle, sys; sys.modules['calibrant'] = None\n"
        "call, *others = pickle.load(sys.stdin.buffer)\n"
        "said = call('count_frame', b'', 7, [])\n"
        "assert all(map(callable, others)) and not any(m.startswith('calibrant.') for m in sys.modules)\n"
        "sys.stdout.write(said[16:].decode())"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], input=cloudpickle.dumps(sent), capture_output=True, check=True
    )
    stated = done.stdout.decode()
    assert f"cannot import calibrant {cal.__version__}" in stated
    assert '"parts": [7]' in stated


def test_a_sketch_file_is_never_unpickled(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = cal.sketch(ROWS, label="y", score="p", by="g").to_bytes()

    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("a sketch was unpickled")

    for name in ("load", "loads", "Unpickler"):
        monkeypatch.setattr(pickle, name, refuse)
    assert cal.Sketch.from_bytes(raw).n == 4


def test_users_and_options_of_a_uri_are_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    uri = "nothing://AKIA:s3cr3t@bucket/log/*.parquet?secret_key=hidden"
    assert shown(uri) == "nothing://bucket/log/*.parquet"
    with pytest.raises(cal.BadInput) as e:
        cal.sketch(uri, label="y", score="p")
    assert not any(secret in str(e.value) for secret in ("AKIA", "s3cr3t", "hidden"))
    named: list[str] = []
    monkeypatch.setattr(files, "uri_files", lambda _: None)
    monkeypatch.setattr(files, "listed", lambda _, name, *__: named.append(name))
    files.files_of([uri])
    assert named == ["nothing://bucket/log/*.parquet"]  # a sketch's name goes into its file and into reports


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="needs POSIX owners")
def test_compiled_code_is_stored_only_where_others_cannot_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runtime.tempfile, "gettempdir", lambda: str(tmp_path))
    monkeypatch.setattr(runtime.tempfile, "tempdir", str(tmp_path))
    own = tmp_path / f"calibrant-compiled-{os.getuid()}"
    assert runtime.own_directory() == str(own)
    assert own.stat().st_mode & 0o777 == 0o700
    own.chmod(0o777)
    other = Path(runtime.own_directory())
    assert other != own
    assert other.stat().st_mode & 0o777 == 0o700
    own.rmdir()
    own.symlink_to(other)
    assert runtime.own_directory() != str(own)


def test_tasks_that_overlap_leave_the_threads_as_they_were() -> None:
    from threadpoolctl import ThreadpoolController

    def threads() -> list[int]:
        return [lib.num_threads for lib in ThreadpoolController().select(user_api="blas").lib_controllers]

    with ThreadpoolController().limit(limits=2, user_api="blas"):
        before, began, end = threads(), threading.Event(), threading.Event()

        def other() -> None:
            with _one_thread():
                began.set()
                end.wait(10)

        task = threading.Thread(target=other)
        with _one_thread():  # begins first and ends first
            task.start()
            began.wait(10)
            assert 1 in threads()
        end.set()
        task.join()
        assert threads() == before


def test_labels_do_not_choose_among_rows_of_one_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key that tells too few rows apart: which rows are sampled may depend on covariates, never on outcomes."""
    monkeypatch.setattr(survey, "KEPT", 1000)
    rng = np.random.default_rng(31)
    n = 6000
    y = np.tile([0, 1], n // 2)
    rows = {
        "y": y,
        "p": np.repeat([0.3, 0.6], n // 2),
        "x": np.repeat(rng.standard_normal(n // 2), 2),
        "k": np.arange(n) // 12,
    }
    fine = cal.sketch(rows, label="y", score="p", variables="x", key="k", tests=True)
    assert fine.parts["sample"].predictions().n == 1000
    coarse = cal.sketch(rows | {"k": [None] * n}, label="y", score="p", variables="x", key="k", tests=True)
    lines = coarse.parts["sample"].lines
    assert abs(lines[:, 2].mean() - 0.5) < 1e-9  # each content comes with both outcomes
    assert 300 < (lines[:, 1].view(np.float64) == 0.3).sum() < 700
    with pytest.raises(cal.BadInput, match=r"key='k' distinguishes too few rows: 1,000 of 1,000"):
        coarse.parts["sample"].predictions()
