"""Arrays, series and tensors of any library as Arrow columns, null where a value is missing, joined by row labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from calibrant.arguments import shown
from calibrant.data.columns import Floats, as_float
from calibrant.errors import BadInput
from calibrant.sanitize import HALF, has_half_characters

# What Arrow refuses with.
REFUSED = (ValueError, TypeError, NotImplementedError, OverflowError, AttributeError, OSError, pa.ArrowException)
ARROW = ("__arrow_c_array__", "__arrow_c_stream__", "__arrow_array__", "iloc")  # what Arrow reads by itself
FRAMES = ("columns", "column_names", "dims")  # what has columns, or points of a grid: not one column of Arrow
NUMPY = ("__array__", "__array_interface__")
UNITS = ("s", "ms", "us", "ns")  # of time that Arrow has; coarser ones become seconds, finer ones nanoseconds
COARSE = ("Y", "M", "W", "D", "h", "m", "generic")
EXACT = 1 << 53  # whole numbers up to it are real numbers of double precision too
FIX = "make it text, numbers, dates, or true and false"


# ---- one column ----


def column_of(values: object, name: str) -> pa.Array | pa.ChunkedArray:
    """One value for each row as an Arrow column, null where it is missing: masked, NaN, None, NA, NaT.

    `values`: a list or iterator; an array, series or tensor of NumPy, pandas (nullable, Arrow, sparse), Polars, Arrow,
    xarray, PyTorch, or whatever speaks the Arrow or NumPy protocol. Refused, by its `name` (``"covariate 'age'"``), is
    what is not one column, mixes text and numbers, or holds what no column can.
    """
    if isinstance(values, (pa.Array, pa.ChunkedArray)):
        return values
    values = dense(values, name)
    if isinstance(values, np.ndarray):
        return _of_numpy(values, name)
    if any(hasattr(values, a) for a in ARROW) and not any(hasattr(values, a) for a in FRAMES):
        try:
            stream = hasattr(values, "__arrow_c_stream__") and not hasattr(values, "iloc")
            return pa.chunked_array(values) if stream else pa.array(values, from_pandas=True)
        except REFUSED:  # objects of several types, or a type that Arrow lacks: as NumPy has them
            return _of_numpy(numpy_of(values, name), name)
    if any(hasattr(values, a) for a in NUMPY):
        return _of_numpy(numpy_of(values, name), name)
    if isinstance(values, (str, bytes, Mapping, set, frozenset)) or not hasattr(values, "__iter__"):
        raise BadInput(f"{name} is a {type(values).__name__}: pass one value for each row")
    return _of_objects(list(values), name)


def matrix_of(values: object, name: str) -> Floats | None:
    """Values of several columns as real numbers, NaN where missing; None if they are of one column."""
    plain = dense(values, name)
    if isinstance(plain, (pa.Array, pa.ChunkedArray)) or len(getattr(plain, "shape", (0, 0))) < 2:
        return None
    if not (isinstance(plain, Sequence) or any(hasattr(plain, a) for a in (*NUMPY, *ARROW))):
        return None
    if isinstance(plain, Sequence) and not (len(plain) and hasattr(plain[0], "__len__")):
        return None
    array = plain if isinstance(plain, np.ndarray) else numpy_of(plain, name)
    if array.ndim != 2 or array.shape[1] < 2:
        return None
    if array.dtype.kind == "f" and array.dtype.itemsize in (4, 8) and not isinstance(array, np.ma.MaskedArray):
        return np.array(array, dtype=np.float64, order="C")
    return np.column_stack([as_float(_of_numpy(array[:, j], name), name, "score") for j in range(array.shape[1])])


def columns_of(values: object, name: str) -> list[pa.Array]:
    """Each column of a frame or a matrix, of text or of numbers, as an Arrow column."""
    plain = dense(values, name)
    if hasattr(plain, "columns"):
        return [column_of(plain[c], name) for c in plain.columns]  # type: ignore[index]
    array = numpy_of(plain, name)
    return [column_of(column, name) for column in (array[:, None] if array.ndim == 1 else array).T]


SPARSE = {"data", "indices", "indptr", "shape"}  # arrays by which SciPy stores a sparse matrix


def with_dense(arrays: Mapping[str, NDArray[np.generic]], name: str) -> dict[str, NDArray[np.generic]]:
    """Arrays of a file with the sparse matrix that SciPy stores in four of them as the matrix ``data``."""
    from scipy import sparse

    kind = str(np.asarray(arrays.get("format", b"csr")).astype("U"))
    if kind not in ("csr", "csc"):
        raise BadInput(f"{name} holds a sparse matrix of format {kind!r}: store matrix.tocsr()")
    try:
        inside = arrays["data"], arrays["indices"], arrays["indptr"]
        shape = tuple(arrays["shape"].tolist())
        matrix = (sparse.csr_array if kind == "csr" else sparse.csc_array)(inside, shape=shape)
        matrix.check_format(full_check=True)  # an index out of range would be written there
        made = matrix.toarray()
    except (ValueError, TypeError) as e:
        raise BadInput(f"{name} holds a sparse matrix that is damaged ({e}): store it again") from None
    own = {key: array for key, array in arrays.items() if key not in (*SPARSE, "format", "_is_array")}
    return own | {"data": made}


def dense(values: object, name: str) -> object:
    """Tensors and sparse matrices as NumPy has them; anything else as it is."""
    plain: Any = values
    if callable(getattr(plain, "detach", None)):  # a tensor: away from its gradient and its device
        try:
            plain = plain.detach().cpu().to_dense()
            return np.asarray(plain)
        except TypeError:  # bfloat16 and smaller, which NumPy lacks
            return numpy_of(plain.float(), name)
        except RuntimeError as e:
            raise _unreadable(values, name, e) from None
    if callable(getattr(plain, "toarray", None)) and hasattr(plain, "nnz"):
        return np.asarray(plain.toarray())
    return values


def numpy_of(values: object, name: str) -> NDArray[Any]:
    """What NumPy makes of values; refuse in one line what it cannot take."""
    try:
        return np.asarray(values)
    except Exception as e:  # a library's own: on another device, ragged, lazy
        raise _unreadable(values, name, e) from None


def _unreadable(values: object, name: str, error: Exception) -> BadInput:
    why = " ".join(str(error).split())[:100]
    return BadInput(f"{name} is a {type(values).__name__} that cannot be read ({why}): pass an array of NumPy")


def _of_numpy(values: NDArray[Any], name: str) -> pa.Array:
    absent = np.ma.getmaskarray(values).reshape(-1) if isinstance(values, np.ma.MaskedArray) else None
    values = np.asarray(np.ma.getdata(values))
    if values.ndim == 0 or values.ndim > 2 or (values.ndim == 2 and values.shape[1] != 1):
        raise BadInput(f"{name} has shape {values.shape}: pass one value for each row")
    values = _known(values.reshape(-1), name)
    if values.dtype.kind in "OT":
        items = values.tolist()
        gone = [False] * len(items) if absent is None else absent.tolist()
        return _of_objects([None if g else v for v, g in zip(items, gone, strict=True)], name)
    try:
        return pa.array(values, mask=absent, from_pandas=True)
    except REFUSED:
        raise BadInput(f"{name} holds {values.dtype}: {FIX}") from None


def _known(values: NDArray[Any], name: str) -> NDArray[Any]:
    """Values in a type that Arrow has too."""
    t = values.dtype
    if t.kind == "c":
        raise BadInput(f"{name} holds complex numbers: pass real ones")
    if t.names is not None:
        raise BadInput(f"{name} holds records of {', '.join(t.names)}: pass one of these fields")
    try:
        if t.kind in "mM":
            unit = np.datetime_data(t)[0]
            return values.astype(f"{t.kind}8[{unit if unit in UNITS else 's' if unit in COARSE else 'ns'}]")
        if t.kind == "V" or t == np.longdouble:  # of kind V are bfloat16 and smaller, where a library adds them
            return values.astype(np.float64)
    except (TypeError, ValueError):
        raise BadInput(f"{name} holds {t}: {FIX}") from None
    return values if t.isnative else values.astype(t.newbyteorder("="))


def _of_objects(items: list[Any], name: str) -> pa.Array:
    """Python's own values as a column: of one type, or numbers of several."""
    try:
        column = pa.array(items, from_pandas=True)
    except REFUSED:
        return _of_numbers(items, name)
    if pa.types.is_list(column.type) and items and all(hasattr(v, "__len__") for v in items):  # rows of lists
        rows = numpy_of(items, name)
        if rows.ndim == 1:
            raise BadInput(f"{name} holds {type(items[0]).__name__}, such as {shown(items[0])}: {FIX}")
        return _of_numpy(rows, name)
    if pa.types.is_null(column.type) and any(isinstance(v, float) for v in items):  # NaN in every row is no number yet
        return column.cast(pa.float64())
    return column


def _of_numbers(items: list[Any], name: str) -> pa.Array:
    """Truth values, decimals, fractions and single tensors, mixed or not, as numbers."""
    plain = [v.item() if getattr(v, "ndim", None) == 0 and hasattr(v, "item") else v for v in items]
    plain = [None if v is None or _is_absent(v) else v for v in plain]
    kinds = {type(v).__name__: v for v in plain if v is not None}
    strange = [v for v in kinds.values() if not isinstance(v, (Real, Decimal))]
    if strange and len(kinds) > 1:
        raise BadInput(f"{name} mixes types ({' and '.join(sorted(kinds)[:3])}): make it text or numbers")
    if halves := [v for v in plain if isinstance(v, str) and has_half_characters(v)]:
        raise BadInput(f"{name} holds {shown(halves[0])}: {HALF}; write whole characters")
    if strange:
        raise BadInput(f"{name} holds {next(iter(kinds))}, such as {shown(strange[0])}: {FIX}")
    if all(isinstance(v, int) and v >= 0 for v in plain if v is not None):
        try:
            return pa.array([v if v is None else int(v) for v in plain], pa.uint64())
        except REFUSED:
            pass
    large = next((v for v in plain if isinstance(v, int) and abs(v) > EXACT), None)
    if large is not None:
        raise BadInput(f"{name} holds {shown(large)}, which no number of 64 bits keeps here: store it as text")
    return pa.array([None if v is None else float(v) for v in plain], pa.float64())


def _is_absent(item: object) -> bool:
    """Tell NaN, NA and NaT, which do not equal themselves."""
    try:
        return not bool(item == item)
    except TypeError:  # NA, which does not say
        return True
    except (ValueError, ArithmeticError):  # an array, which says it of each value; a signalling NaN
        return not hasattr(item, "shape")


# ---- several columns whose rows carry labels ----


def index_of(values: object) -> Any | None:
    """The labels of rows, as pandas and xarray have them; None where rows are only counted."""
    index = getattr(values, "index", None)
    if index is None and (dims := getattr(values, "dims", ())) and hasattr(values, "indexes"):
        index = values.indexes.get(dims[0])
    return index if hasattr(index, "get_indexer") else None


def positions(inputs: Mapping[str, object]) -> dict[str, NDArray[np.intp]]:
    """Where the rows of the first of several things that carry row labels stand in each of the others.

    Left out are those that stand in the same order already. Labels that nobody chose, 0, 1, 2 to the last row, do not
    say which row is meant where the others have labels of their own: such a pair is refused.

    Raises
    ------
    BadInput
        Two have other labels, or labels that are not unique in another order.
    """
    indexes = {name: index for name, values in inputs.items() if (index := index_of(values)) is not None}
    results: dict[str, NDArray[np.intp]] = {}
    for name, index in list(indexes.items())[1:]:
        first, reference = next(iter(indexes.items()))
        if len(index) != len(reference) or index.equals(reference):
            continue  # a length that differs is refused by whoever counts the rows
        at = index.get_indexer(reference) if index.is_unique and reference.is_unique else np.array([-1])
        row = int(np.argmax(np.asarray(index != reference)))
        where = (
            f"row {row} is {shown(reference[row])} in the index of {first} and {shown(index[row])} in that of {name}"
        )
        fix = "give both one index, or pass arrays (.to_numpy()) to join them by position"
        if (at < 0).any():
            raise BadInput(f"{where}: {fix}")
        if counts(index) != counts(reference):
            raise BadInput(f"{where}, and one of the two only counts rows, of this or another order: {fix}")
        results[name] = at.astype(np.intp)
    return results


def counts(index: Any) -> bool:
    """Tell an index that only counts, up or down."""
    return hasattr(index, "start") and abs(getattr(index, "step", 0)) == 1
