"""Run in a process of its own: lose a machine, or press Ctrl-C, in the middle of a sketch. Prints what came of it.

``python cluster_failures.py spark|dask lost|stopped LOG DIRECTORY``
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).parents[1]
NEEDED, SLOW = 6, 0.7  # partitions that must have begun before the blow, and seconds that each takes


def strike(directory: Path, what: str) -> None:
    """Wait for enough partitions, then kill the process that ran the first, or interrupt this one."""
    while len(begun := sorted(directory.iterdir(), key=lambda f: f.stat().st_mtime)) < NEEDED:
        time.sleep(0.05)
    pid = int(begun[0].name.split("-")[0]) if what == "lost" else os.getpid()
    os.kill(pid, signal.SIGKILL if what == "lost" else signal.SIGINT)


def spark(log: str, directory: Path) -> tuple[Any, Any]:
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = (
        SparkSession.builder.master("local-cluster[2,1,1024]")
        .config("spark.ui.enabled", "false")
        .config("spark.executor.memory", "700m")
        .config("spark.log.level", "OFF")
        .getOrCreate()
    )
    frame = session.read.parquet(log).repartition(24)

    def slowly(batches: Any) -> Any:
        daemon = Path(f"/proc/{os.getppid()}/stat").read_text().rsplit(")", 1)[1].split()
        (directory / f"{daemon[1]}-{time.time_ns()}").touch()  # the daemon's parent is the executor
        time.sleep(SLOW)
        yield from batches

    def idle() -> bool:
        return not session.sparkContext.statusTracker().getActiveJobsIds()

    return frame.mapInArrow(slowly, frame.schema), idle


def dask(log: str, directory: Path) -> tuple[Any, Any]:
    import dask.dataframe
    from distributed import Client, LocalCluster

    cluster = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50)
    client = Client(cluster)

    def slowly(frame: Any) -> Any:
        (directory / f"{os.getpid()}-{time.time_ns()}").touch()
        time.sleep(SLOW)
        return frame

    frame = dask.dataframe.read_parquet(log, split_row_groups=True)

    def idle() -> bool:
        return not any(client.processing().values())

    return frame.map_partitions(slowly, meta=frame._meta), idle


def main(engine: str, what: str, log: str, directory: Path) -> None:
    """Sketch the log while it happens."""
    sys.path.insert(0, str(HERE))
    import calibrant as cal
    from e2e.cluster_log import COLUMNS, bits

    columns = {k: COLUMNS[k] for k in ("label", "score", "key")}
    spec = cal.sketch(log, by="site", **columns).spec
    frame, idle = {"spark": spark, "dask": dask}[engine](log, directory)
    threading.Thread(target=strike, args=(directory, what), daemon=True).start()
    try:
        outcome = hashlib.sha256(bits(cal.sketch(frame, spec=spec))).hexdigest()
    except cal.EngineFailed as e:
        outcome = f"EngineFailed: {e}"
    except KeyboardInterrupt:
        outcome = "stopped"
    begun = len(list(directory.iterdir()))
    time.sleep(4 * SLOW)
    here = hashlib.sha256(bits(cal.sketch(log, spec=spec))).hexdigest()
    later = len(list(directory.iterdir()))
    print(json.dumps({"outcome": outcome, "here": here, "begun": begun, "later": later, "idle": idle()}), flush=True)
    os._exit(0)  # no engine's shutdown is under test


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], Path(sys.argv[4]))
