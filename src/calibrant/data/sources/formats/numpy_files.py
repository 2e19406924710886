"""Arrays of NumPy on disk: `.npz` and `.npy`, never pickled objects."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from calibrant.data.sources.formats.cells import whole
from calibrant.data.sources.frames import as_rows
from calibrant.data.sources.source import Form, Source
from calibrant.errors import BadInput

Arrays = dict[str, NDArray[Any]]
BEGINS = b"\x93NUMPY"
ENDING = ".npy"
WAY = "save named columns of one length: np.savez('log.npz', y=y, p=p)"


def numpy_arrays(path: Path, name: str, _: Form) -> Source:
    """The arrays of an `.npz` as columns, or the fields of a structured `.npy`."""
    try:
        with path.open("rb") as file:
            if file.read(len(BEGINS)) == BEGINS:
                file.seek(0)
                arrays = _fields(_array(file, path.stat().st_size, path.name), path.name)
            else:
                arrays = _archive(path)
    except BadInput:
        raise
    except (ValueError, EOFError, OSError, MemoryError, zipfile.BadZipFile, zlib.error, NotImplementedError) as e:
        raise BadInput(f"{path.name} cannot be read as NumPy's: {str(e).splitlines()[0][:120]}") from None
    kept = as_rows(_columns(arrays, path.name), "column")
    if kept is None or not arrays:
        raise BadInput(f"{path.name} holds no arrays: {WAY}")
    return whole(kept.table, name, {name: f"it {why}" for name, why in kept.unread.items()})


def _archive(path: Path) -> Arrays:
    with zipfile.ZipFile(path) as archive:
        out: Arrays = {}
        for one in archive.infolist():
            if not one.filename.endswith(ENDING):
                raise BadInput(f"{path.name} is a zip file with {one.filename[:60]!r} in it, not arrays: {WAY}")
            with archive.open(one) as file:
                result = _array(file, one.file_size, path.name)
            column = one.filename.removesuffix(ENDING)
            out |= {column: result} if result.dtype.names is None else _fields(result, path.name)
        return out


def _array(file: IO[bytes], size: int, name: str) -> NDArray[Any]:
    """An array whose header claims no more than there is."""
    version = np.lib.format.read_magic(file)
    header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = header(file)
    if dtype.hasobject:
        raise BadInput(f"{name} holds Python objects, which run code when they are read: save text as a text array")
    if dtype.itemsize * int(np.prod(shape, dtype=object)) > size:
        raise BadInput(f"{name} is truncated: its header says {shape}, and there is not so much")
    file.seek(0)
    result: NDArray[Any] = np.lib.format.read_array(file, allow_pickle=False)
    return result


def _fields(array: NDArray[Any], name: str) -> Arrays:
    if array.dtype.names is None:
        shape = " x ".join(f"{n:,}" for n in array.shape)
        if array.ndim == 2 and array.shape[1] > 1:
            read = f"cal.multiclass_predictions(labels, np.load({name!r})).top_label()"
            raise BadInput(
                f"{name} holds a matrix of {shape} numbers and no labels: of class probabilities audit {read} "
                f"in Python; else {WAY}"
            )
        raise BadInput(f"{name} holds one array of {shape} values and no names: {WAY}")
    return {field: np.asarray(array[field]) for field in array.dtype.names}


def _columns(arrays: Mapping[str, NDArray[Any]], name: str) -> Arrays:
    """Return arrays of one dimension and one length; the columns of a matrix ``x`` are ``x_0``, ``x_1``."""
    out: Arrays = {}
    for column, array in arrays.items():
        if array.ndim == 2 and array.shape[1] == 1:
            out[column] = array[:, 0]
        elif array.ndim == 2:
            out |= {f"{column}_{i}": array[:, i] for i in range(array.shape[1])}
        elif array.ndim == 1:
            out[column] = array
        else:
            raise BadInput(f"{name}: array {column!r} has {array.ndim} dimensions: {WAY}")
    lengths = {column: len(array) for column, array in out.items()}
    if len(set(lengths.values())) > 1:
        short, long = min(lengths, key=lengths.__getitem__), max(lengths, key=lengths.__getitem__)
        raise BadInput(
            f"{name}: array {short!r} has {lengths[short]:,} rows and {long!r} {lengths[long]:,}: give one value a row"
        )
    return out
