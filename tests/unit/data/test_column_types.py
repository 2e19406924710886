"""Columns of every type, as label, score, covariate and weight: each works or is refused in one line."""

from __future__ import annotations

import array
import datetime as dt
from collections import deque
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import calibrant as cal
from calibrant.errors import BadInput, NotComputable

N = 60
BITS = [0, 1, 1] * (N // 3)
REAL = [0.25, 0.75, 0.5] * (N // 3)
TEXT = ["no", "yes", "yes"] * (N // 3)
DAYS = [dt.date(2026, 1, 1), dt.date(2026, 2, 1), dt.date(2026, 3, 1)] * (N // 3)
HOLE = [i == 7 for i in range(N)]  # which row lacks a value

Maker = Callable[[], Any]


def holed(values: list[Any], hole: Any = None) -> list[Any]:
    return [hole if h else v for v, h in zip(values, HOLE, strict=True)]


def numpy_columns() -> Iterator[tuple[str, Maker]]:
    for t in ("i1", "u1", "i8", ">i4", "u8", "f2", "f4", "f8", ">f8", "longdouble", "bool", "complex128"):
        yield f"numpy {t}", lambda t=t: np.array(BITS).astype(t)
    for cluster in ("Y", "M", "D", "h", "s", "ns", "ps"):
        yield f"datetime64[{cluster}]", lambda u=cluster: np.array(BITS, dtype="i8").astype(f"M8[{u}]")
    for t in ("m8[s]", "m8[D]", "U3", "S3", "O"):
        yield f"numpy {t}", lambda t=t: np.array(BITS).astype(t)
    if hasattr(np.dtypes, "StringDType"):
        yield "numpy StringDType", lambda: np.array(TEXT, dtype=np.dtypes.StringDType())
    yield "numpy real with NaN", lambda: np.array(holed(REAL, np.nan))
    yield "masked", lambda: np.ma.array(BITS, mask=HOLE)
    yield "masked objects", lambda: np.ma.array(TEXT, mask=HOLE, dtype=object)
    yield "one column", lambda: np.array(REAL)[:, None]
    yield "of no dimension", lambda: np.array(1.0)
    yield "of three dimensions", lambda: np.zeros((N, 1, 1))
    yield "structured", lambda: np.zeros(N, dtype=[("a", "i4"), ("b", "f8")])
    yield "a part, backwards", lambda: np.array(REAL * 2)[::-2]
    yield "nothing", lambda: np.array([])


def python_columns() -> Iterator[tuple[str, Maker]]:
    yield "ints", lambda: BITS
    yield "text", lambda: TEXT
    yield "text with None", lambda: holed(TEXT)
    yield "text and NaN", lambda: holed(TEXT, np.nan)
    yield "text with a lone surrogate", lambda: holed(TEXT, "\ud800")
    yield "text with a null byte", lambda: holed(TEXT, "a\0b")
    yield "bytes", lambda: [t.encode() for t in TEXT]
    yield "bytes that are not text", lambda: holed([t.encode() for t in TEXT], b"\xff")
    yield "decimals", lambda: [Decimal(str(v)) for v in REAL]
    yield "decimals and floats", lambda: holed([Decimal(str(v)) for v in REAL], 0.5)
    yield "fractions", lambda: [Fraction(b, 1) for b in BITS]
    yield "bools and ints", lambda: holed([bool(b) for b in BITS], 1)
    yield "bools and None", lambda: holed([bool(b) for b in BITS])
    yield "text and ints", lambda: holed(TEXT, 1)
    yield "dates and text", lambda: holed(DAYS, "soon")
    yield "ints of 70 bits", lambda: holed(BITS, 2**70)
    yield "ints of 64 bits", lambda: holed(BITS, 2**64 - 1)
    yield "ints of 60 bits", lambda: holed(BITS, 2**60)
    yield "ints and floats", lambda: holed(BITS, 0.5)
    yield "floats near the largest", lambda: holed(REAL, 1.7e308)
    yield "infinite", lambda: holed(REAL, np.inf)
    yield "complex", lambda: [complex(b) for b in BITS]
    yield "dates", lambda: DAYS
    yield "times with a zone", lambda: [dt.datetime(2026, 1, 1 + b, tzinfo=dt.UTC) for b in BITS]
    yield "times of a day", lambda: [dt.time(b) for b in BITS]
    yield "durations", lambda: [dt.timedelta(b) for b in BITS]
    yield "lists", lambda: [[b, b] for b in BITS]
    yield "ragged lists", lambda: holed([[b] for b in BITS], [1, 2])
    yield "dictionaries", lambda: [{"a": b} for b in BITS]
    yield "objects", lambda: [object() for _ in BITS]
    yield "sets", lambda: [{b} for b in BITS]
    yield "None only", lambda: [None] * N
    yield "NaN only", lambda: [np.nan] * N
    yield "empty text", lambda: [""] * N
    yield "tuple", lambda: tuple(REAL)
    yield "deque", lambda: deque(REAL)
    yield "range", lambda: range(N)
    yield "array.array", lambda: array.array("d", REAL)
    yield "memoryview", lambda: memoryview(array.array("d", REAL))
    yield "iterator", lambda: iter(REAL)
    yield "values of a dictionary", lambda: dict(enumerate(REAL)).values()
    yield "a set", lambda: set(range(N))
    yield "a dictionary", lambda: dict(enumerate(REAL))
    yield "a text", lambda: "0" * N
    yield "a number", lambda: 1.0
    yield "an object", object


def arrow_columns() -> Iterator[tuple[str, Maker]]:
    real, text = pa.array(holed(REAL)), pa.array(holed(TEXT))
    for t in (
        pa.int8(),
        pa.uint64(),
        pa.float16(),
        pa.float32(),
        pa.bool_(),
        pa.decimal128(22, 2),
        pa.decimal256(40, 3),
    ):
        yield f"arrow {t}", lambda t=t: pa.array(holed(BITS)).cast(t, safe=False)
    for t in (pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary(), pa.binary_view()):
        yield f"arrow {t}", lambda t=t: text.cast(t)
    for t in (pa.date32(), pa.date64(), pa.timestamp("s"), pa.timestamp("ns", "Europe/Paris")):
        yield f"arrow {t}", lambda t=t: pa.array(holed(DAYS)).cast(pa.timestamp("s")).cast(t)
    yield "arrow dictionary", lambda: text.dictionary_encode()
    yield "arrow dictionary of numbers", lambda: real.dictionary_encode()
    yield "arrow dictionary, unsigned", lambda: text.cast(pa.dictionary(pa.uint8(), pa.string()))
    yield "arrow null", lambda: pa.nulls(N)
    yield "arrow chunks", lambda: pa.chunked_array([real[:9], real[9:]])
    yield "arrow list", lambda: pa.array([[b] for b in BITS])
    yield "arrow struct", lambda: pa.array([{"a": b} for b in BITS])
    yield "arrow map", lambda: pa.array([[("a", b)] for b in BITS], pa.map_(pa.string(), pa.int8()))
    yield "arrow runs", lambda: pa.RunEndEncodedArray.from_arrays([N // 2, N], [0.25, 0.75])
    yield "arrow fixed bytes", lambda: pa.array([b"ab"] * N, pa.binary(2))
    yield "arrow interval", lambda: pa.array([(1, 2, 3)] * N, pa.month_day_nano_interval())
    yield "arrow with NaN", lambda: pa.array(holed(REAL, np.nan))


def pandas_columns() -> Iterator[tuple[str, Maker]]:
    pd = pytest.importorskip("pandas")
    for t in ("Int64", "Float32", "boolean", "int64[pyarrow]", "double[pyarrow]", "Sparse[int]", "Sparse[float]"):
        yield f"pandas {t}", lambda t=t: pd.Series(BITS).astype(t)
    for t in ("Int64", "Float64", "boolean", "double[pyarrow]", "Sparse[float]", "category", "object"):
        yield f"pandas {t}, one missing", lambda t=t: pd.Series(BITS).astype("float").mask(HOLE).astype(t)
    for t in ("str", "string", "category", "object", "string[pyarrow]"):
        yield f"pandas text as {t}", lambda t=t: pd.Series(holed(TEXT)).astype(t)
    yield "pandas dates", lambda: pd.Series(pd.to_datetime(holed(DAYS)))
    yield "pandas dates with a zone", lambda: pd.Series(pd.to_datetime(DAYS)).dt.tz_localize("Asia/Tokyo")
    yield "pandas months", lambda: pd.Series(pd.to_datetime(DAYS)).dt.to_period("M")
    yield "pandas durations", lambda: pd.Series(pd.to_timedelta(BITS, unit="D"))
    yield "pandas intervals", lambda: pd.Series(pd.cut(REAL, 3))
    yield "pandas NA and ints", lambda: pd.Series(holed(BITS, pd.NA), dtype=object)
    yield "pandas NaT and text", lambda: pd.Series(holed(TEXT, pd.NaT), dtype=object)
    yield "pandas mixed", lambda: pd.Series(holed(BITS, "one"), dtype=object)
    yield "pandas categories of numbers", lambda: pd.Series(BITS, dtype="category")
    yield "pandas index", lambda: pd.Index(BITS)
    yield "pandas categorical", lambda: pd.Categorical(TEXT)
    yield "pandas array", lambda: pd.array(holed(BITS), dtype="Int8")
    yield "pandas complex", lambda: pd.Series(BITS, dtype="complex128")
    yield "pandas big-endian", lambda: pd.Series(np.array(BITS, dtype=">i4"))


def polars_columns() -> Iterator[tuple[str, Maker]]:
    pl = pytest.importorskip("polars")
    for t in (pl.Int8, pl.UInt64, pl.Int128, pl.Float32, pl.Boolean, pl.Decimal(9, 2)):
        yield f"polars {t}", lambda t=t: pl.Series(holed(BITS)).cast(t)
    for t in (pl.String, pl.Categorical, pl.Enum(["no", "yes"]), pl.Binary):
        yield f"polars {t}", lambda t=t: pl.Series(holed(TEXT)).cast(t)
    yield "polars dates", lambda: pl.Series(holed(DAYS))
    yield "polars durations", lambda: pl.Series([dt.timedelta(b) for b in BITS])
    yield "polars lists", lambda: pl.Series([[b] for b in BITS])
    yield "polars structs", lambda: pl.Series([{"a": b} for b in BITS])
    yield "polars objects", lambda: pl.Series([object() for _ in BITS], dtype=pl.Object)
    yield "polars nulls", lambda: pl.Series([None] * N)
    yield "polars NaN", lambda: pl.Series(holed(REAL, np.nan))


EVENTS = [*numpy_columns(), *python_columns(), *arrow_columns()]
ROLES = (
    "label",
    "label with a case",
    "score",
    "covariate",
    "weights",
    "cluster",
    "group of a frame",
    "label of a frame",
)


def used(role: str, column: Any) -> object:
    """Use a column in one role, as far as numbers are made of it."""
    match role:
        case "label":
            return cal.predictions(column, REAL)
        case "label with a case":
            return cal.predictions(column, REAL, positive="yes", drop_missing=True)
        case "score":
            return cal.predictions(BITS, column, drop_missing=True)
        case "weights" | "cluster":
            return cal.predictions(BITS, REAL, **{role: column})
        case "covariate":
            return cal.sketch(cal.predictions(BITS, REAL, {"v": column}), variables="*")
        case "group of a frame":
            return cal.sketch({"y": BITS, "p": REAL, "g": column}, label="y", score="p", by="g", variables="g")
    return cal.read({"y": column, "p": REAL}, label="y", score="p", drop_missing=True)


def works_or_is_refused(role: str, make: Maker) -> str:
    stated = ""
    try:
        used(role, make())
    except (BadInput, NotComputable) as e:
        stated = str(e)
    assert "\n" not in stated
    assert len(stated) < 400
    return stated


@pytest.mark.parametrize("make", [c[1] for c in EVENTS], ids=[c[0] for c in EVENTS])
def test_every_column_works_or_is_refused_in_one_line(make: Maker) -> None:
    for role in ROLES:
        works_or_is_refused(role, make)


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("library", [pandas_columns, polars_columns])
def test_every_column_of_a_library_works_or_is_refused_in_one_line(library: Any, role: str) -> None:
    for _, make in library():
        works_or_is_refused(role, make)


AS_THEY_ARE = [  # how the same labels and scores come
    list,
    tuple,
    iter,
    deque,
    np.array,
    lambda v: np.array(v, dtype=">f8"),
    lambda v: np.array(v, dtype="longdouble"),
    lambda v: np.array(v, dtype=object),
    lambda v: np.array(v)[:, None],
    lambda v: np.ma.array(v),
    lambda v: [Decimal(str(x)) for x in v],
    lambda v: [Fraction(x) for x in v],
    lambda v: [np.float32(x) for x in v],
    lambda v: pa.array(v, pa.float16()),
    lambda v: pa.chunked_array([v[:7], v[7:]]),
    lambda v: pa.array(v).dictionary_encode(),
    lambda v: array.array("d", v),
]


@pytest.mark.parametrize("made", AS_THEY_ARE)
def test_labels_and_scores_are_the_same_in_every_form(made: Any) -> None:
    rows = cal.predictions(made([float(b) for b in BITS]), made(REAL), weights=made(REAL))
    assert rows.y.tolist() == BITS
    assert rows.p.tolist() == REAL
    assert rows.weights is not None
    assert rows.weights.tolist() == REAL


def test_forms_of_pandas_polars_and_pytorch() -> None:
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    kinds = ("Float64", "double[pyarrow]", "Sparse[float]", "object", "category")
    forms = [*(pd.Series(REAL).astype(t) for t in kinds), pl.Series(REAL), pd.Index(REAL), pd.array(REAL)]
    for form in forms:
        assert cal.predictions(BITS, form).p.tolist() == REAL
    assert cal.predictions(pd.DataFrame({"y": BITS}), pl.DataFrame({"p": REAL})).p.tolist() == REAL
    both = pd.DataFrame({"no": 1 - np.array(REAL), "yes": REAL})
    assert cal.predictions(BITS, both).p.tolist() == REAL


class Tensor:
    """What a tensor of bfloat16 on another device, with a gradient, lets a caller do."""

    def __init__(
        self, values: list[float], state: tuple[str, ...] = ("gradient", "device", "sparse", "bfloat16")
    ) -> None:
        self.values, self.state = values, state

    def _without(self, what: str) -> Tensor:
        return Tensor(self.values, tuple(s for s in self.state if s != what))

    def detach(self) -> Tensor:
        return self._without("gradient")

    def cpu(self) -> Tensor:
        return self._without("device")

    def to_dense(self) -> Tensor:
        return self._without("sparse")

    def float(self) -> Tensor:
        return self._without("bfloat16")

    def __array__(self, *_: object, **__: object) -> Any:
        if self.state:
            raise TypeError(f"a tensor with {self.state}")
        return np.array(self.values)


def test_tensors_leave_gradient_device_and_half_precision_behind() -> None:
    rows = cal.predictions(Tensor([0, 1, 1]), Tensor([0.25, 0.75, 0.5]), {"v": Tensor([1, 2, 3])})
    assert rows.p.tolist() == [0.25, 0.75, 0.5]
    assert rows.covariates.column("v").to_pylist() == [1, 2, 3]


@pytest.mark.slow
def test_tensors_of_pytorch() -> None:
    torch = pytest.importorskip("torch")
    p = torch.tensor(REAL, dtype=torch.bfloat16, requires_grad=True)
    for form in (p, p.float(), p.half(), p.detach().to_sparse(), torch.sigmoid(torch.logit(p.double()))):
        assert np.allclose(cal.predictions(torch.tensor(BITS), form).p, REAL)
    assert cal.predictions([torch.tensor(b) for b in BITS], REAL).y.tolist() == BITS
    pairs = torch.stack([1 - p, p], dim=1)
    assert cal.predictions(torch.tensor(BITS).bool(), pairs).p.tolist() == REAL


# ---- missing values ----


@pytest.mark.parametrize("labels", [[0.0, 1.0, np.nan, 2.0], np.ma.array([0, 1, 9, 2], mask=[0, 0, 1, 0])])
def test_a_label_that_is_missing_is_no_case_and_no_other(labels: Any) -> None:
    p = [0.1, 0.2, 0.3, 0.4]
    with pytest.raises(BadInput, match="missing"):
        cal.predictions(labels, p, positive=1)
    rows = cal.predictions(labels, p, positive=1, drop_missing=True)
    assert (rows.y.tolist(), rows.dropped) == ([0, 1, 0], 1)


def test_nan_labels_of_frames_are_missing() -> None:
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    columns = {"y": [0.0, 1.0, np.nan, 2.0], "p": [0.1, 0.2, 0.3, 0.4]}
    for frame in (columns, pd.DataFrame(columns), pl.DataFrame(columns), pl.LazyFrame(columns), pa.table(columns)):
        for entry in (cal.read, cal.sketch):
            with pytest.raises(BadInput, match="1 value is missing"):
                entry(frame, label="y", score="p", positive=1)
            rows = entry(frame, label="y", score="p", positive=1, drop_missing=True)
            assert (rows.n, rows.events) == (3, 1)


def test_masks_are_kept() -> None:
    y, p = np.ma.array([0, 1, 1], mask=[0, 1, 0]), [0.1, 0.2, 0.3]
    with pytest.raises(BadInput, match=r"'y_true': 1 value is missing"):
        cal.predictions(y, p)
    assert cal.predictions(y, p, drop_missing=True).y.tolist() == [0, 1]
    with pytest.raises(BadInput, match="row 1 has nan"):
        cal.predictions([0, 1, 1], p, weights=np.ma.array([1.0, 2.0, 3.0], mask=[0, 1, 0]))
    with pytest.raises(BadInput, match="cluster is missing"):
        cal.predictions([0, 1, 1], p, cluster=np.ma.array([1, 2, 3], mask=[0, 1, 0]))
    row_attributes = cal.predictions([0, 1, 1], p, {"age": np.ma.array([30, 99, 40], mask=[0, 1, 0])}).covariates
    assert row_attributes.column("age").to_pylist() == [30, None, 40]


def test_labels_beyond_double_precision_are_told_apart() -> None:
    y = [2**53, 2**53 + 1, 2**53 + 2]
    assert cal.predictions(y, [0.1, 0.2, 0.3], positive=2**53 + 1).y.tolist() == [0, 1, 0]
