"""The spec of one month serves the next: sketches add up, new values have a place, a changed column is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import calibrant as cal
from calibrant.cli import main
from calibrant.data.sketches.parts import MOST
from calibrant.data.sketches.sketch import Sketch
from calibrant.data.specs.sketch_file import stored_sketch

N = 300


def month(seed: int, **other: Any) -> pa.Table:
    rng = np.random.default_rng([0x30AD, seed])
    columns = {
        "y": rng.integers(0, 2, N).astype(np.int8),
        "p": rng.uniform(size=N),
        "site": np.array(["a", "b", "c"])[rng.integers(0, 3, N)],
        "age": rng.integers(20, 70, N),
        "x": rng.normal(size=N),
        "kind": np.array(["k", "l"])[rng.integers(0, 2, N)],
        "day": pa.array(rng.integers(19_000, 19_030, N).astype(np.int32), pa.date32()),
        "few": rng.integers(0, 3, N),
    }
    return pa.table(columns | other)


@pytest.fixture(scope="module")
def january(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("month")
    pq.write_table(month(1), folder / "january.parquet")
    asked = ["--label", "y", "--score", "p", "--by", "site,age,day,few", "--variables", "*", "--tests"]
    assert main(["sketch", str(folder / "january.parquet"), *asked, "--out", str(folder / "january.sketch")]) == 0
    return folder / "january.sketch"


@pytest.mark.slow
def test_new_values_missing_ones_and_outliers_have_a_place(january: Path, capsys: Any) -> None:
    site, kind = np.array(["a"] * N, dtype=object), np.array(["k"] * N, dtype=object)
    site[:20], site[20:25], kind[:10], kind[10:16] = "new", None, "new", None
    age, x = np.full(N, 30.0), np.zeros(N)
    age[:7], age[7:9], x[:8], x[8:10] = np.nan, 500.0, np.nan, (1e6, -1e6)
    folder = january.parent
    changed = {"site": site, "kind": kind, "age": pa.array(age, from_pandas=True), "x": pa.array(x, from_pandas=True)}
    pq.write_table(month(2, **changed), folder / "february.parquet")
    given = ["--like", str(january), "--out", str(folder / "february.sketch")]
    assert main(["sketch", str(folder / "february.parquet"), *given]) == 0
    february = Sketch.from_bytes(stored_sketch(folder / "february.sketch"))
    rows = dict(
        zip(
            [n[0][1] for n in february.spec.group_names(0)],
            february.group_levels.sum(axis=(1, 2, 3)).tolist(),
            strict=False,
        )
    )
    assert (rows["other"], rows["missing"]) == (20, 5)
    held = {c.name: (c, february.parts["fine"].stored[c.name][..., 0].sum(axis=(1, 2))) for c in february.spec.codings}
    assert held["kind"][1][-2:].tolist() == [10, 6]
    assert held["x"][1][-1] == 8
    assert held["x"][1][0] >= 1
    assert held["x"][1][-2] >= 1
    assert held["age"][1][-1] == 7
    both = [str(folder / f"{name}.sketch") for name in ("january", "february")]
    assert main(["merge", *both, "--out", str(folder / "winter.sketch")]) == 0
    capsys.readouterr()
    assert main(["audit", *both, "--quick", "--json"]) == 0
    apart = capsys.readouterr().out
    assert main(["audit", str(folder / "winter.sketch"), "--quick", "--json"]) == 0
    assert capsys.readouterr().out == apart
    winter = Sketch.from_bytes(stored_sketch(folder / "winter.sketch"))
    assert winter.n == 2 * N
    assert 0.0 < cal.detect.local_calibration_test(winter).p_value <= 1.0


@pytest.mark.parametrize(
    ("column", "values", "message"),
    [
        ("site", np.arange(N), "held values such as 'a' when the spec was fixed and holds int64"),
        ("site", pa.array([[1]] * N), "holds list"),
        ("site", np.arange(N) % 2 == 0, "holds bool"),
        ("kind", np.arange(N) / 2, "covariate column 'kind' held values such as '[kl]'.*holds double"),
        ("x", pa.array(["1.5"] * N), "not numbers; store it as numbers"),
        ("age", pa.array(["30"] * N), "not numbers; store it as numbers"),
        ("day", np.arange(N), "held dates when the spec was fixed and holds int64"),
        ("day", pa.array(["soon"] * N), "held dates when the spec was fixed and holds string"),
        ("x", np.full(N, np.inf), "infinite"),
        ("few", pa.array(["many"] * N), None),
        ("few", np.arange(N) / 10, None),
        ("site", pa.nulls(N), None),
        ("kind", pa.nulls(N), None),
        ("x", pa.nulls(N), None),
        ("day", pa.array([19_000 * 86_400_000_000] * N, pa.timestamp("us")), None),
        ("x", pa.array([1] * N, pa.int8()), None),
    ],
)
def test_a_column_that_changed_its_kind_is_refused(
    january: Path, column: str, values: Any, message: str | None
) -> None:
    spec = Sketch.from_bytes(stored_sketch(january)).spec
    if message is not None:
        with pytest.raises(cal.BadInput, match=message):
            cal.sketch(month(3, **{column: values}), spec=spec)
    elif column == "few" and isinstance(values, pa.Array):
        with pytest.raises(cal.BadInput, match="not numbers"):  # the covariate is a number, the group would be "other"
            cal.sketch(month(3, **{column: values}), spec=spec)
    else:
        assert cal.sketch(month(3, **{column: values}), spec=spec).n == N


def test_sums_that_would_leave_64_bits_are_refused(january: Path) -> None:
    whole = Sketch.from_bytes(stored_sketch(january))
    whole.parts["fine"].stored["kind"][0, 1, 1, 0] = MOST
    with pytest.raises(cal.BadInput, match="'kind': more than 2,147,483,648 rows"):
        whole.merge(Sketch.from_bytes(stored_sketch(january)), allow_same=True)
