"""Clusters that several columns name together: `a+b`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import calibrant as cal
from calibrant.data.columns import joint_texts
from calibrant.errors import BadInput

READ: dict[str, Any] = {"label": "y", "score": "p"}


def table(n: int = 600) -> pa.Table:
    rng = np.random.default_rng(0)
    p, who = rng.uniform(size=n), np.arange(n) // 5
    log = {"y": (rng.uniform(size=n) < p) * 1, "p": p, "a": who % 12, "b": [f"t{k // 12}" for k in who]}
    return pa.table({**log, "both": [f"{k}" for k in who]})


@pytest.mark.parametrize("name", ["log.csv", "log.parquet", ""])
def test_two_columns_are_the_clusters_that_their_values_make_together(name: str, tmp_path: Path) -> None:
    source: Any = table()
    if name.endswith("csv"):
        pyarrow.csv.write_csv(source, tmp_path / name)
    elif name:
        pq.write_table(source, tmp_path / name)
    source = tmp_path / name if name else source
    joint = cal.read(source, cluster="a+b", **READ)
    one = cal.read(source, cluster="both", **READ)
    assert joint.cluster is not None
    assert len(np.unique(joint.cluster)) == len(np.unique(one.cluster)) == 120
    assert cal.certify.raw_lower(joint).interval == cal.certify.raw_lower(one).interval
    assert cal.sketch(source, cluster="a+b", variables=None, **READ).spec.cluster == "a+b"


def test_a_column_that_is_called_so_is_read_as_it_is() -> None:
    t = table().append_column("a+b", pa.array(np.arange(600) // 100))
    assert len(np.unique(cal.read(t, cluster="a+b", **READ).cluster)) == 6


def test_a_joint_cluster_may_be_one_of_two_levels() -> None:
    t = table().append_column("site", pa.array(np.arange(600) // 60))
    assert cal.read(t, cluster=["a+b", "site"], **READ).levels == (("site", 10), ("a+b", 120))


def test_a_column_that_is_not_there_is_named() -> None:
    with pytest.raises(BadInput, match=r"cluster column 'a\+c' is not in the data"):
        cal.read(table(), cluster="a+c", **READ)


def test_values_are_told_apart_and_a_missing_one_is_missing() -> None:
    texts = joint_texts([pa.array(["x + y", "x", None]), pa.array(["z", "y + z", "z"])], ["a", "b"])
    assert texts.to_pylist() == ["x ++ y + z", "x + y ++ z", None]
    with pytest.raises(BadInput, match=r"column 'a\+b': 1 value is missing"):
        cal.read(table().set_column(2, "a", pa.array([None] + [1] * 599)), cluster="a+b", **READ)


def test_none_declares_independent_rows_wherever_a_cluster_is_named() -> None:
    assert cal.read(table(), cluster="none", **READ).cluster is None
