"""How kernels run: compiled when first called, for arrays of one type each, and linear algebra on one thread.

A kernel is a plain Python function over arrays that numba compiles. Importing a kernel file imports NumPy only; the
first call of any kernel in it brings numba, and machine code from the cache next to the file if it was compiled before.
Every kernel has an oracle, slow and obviously right, in the tests.

What is done for few rows has a twin in NumPy next to its kernel, called `plain_...`: compiling, and loading what was
compiled, costs more than these take. Sizes alone decide (see `few`), so that results are the same cold and warm.
Where `CALIBRANT_KERNELS` is "plain", nothing is compiled: the twins take rows however many, and what has none is done
by the interpreter; the same numbers, some hundred times slower where rows are many.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from functools import cache, update_wrapper, wraps
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any, Generic, Literal, ParamSpec, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibrant.errors import BadInput

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

P = ParamSpec("P")
R = TypeVar("R")
Number = TypeVar("Number", bound=np.generic)

_LOCK = RLock()


class _Kernel(Generic[P, R]):
    """A function that numba compiles when it, or another kernel of its file, is first called."""

    def __init__(self, function: Callable[P, R], inline: str) -> None:
        update_wrapper(self, function)
        self._function, self._inline = function, inline
        self._compiled: Callable[P, R] | None = None

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.compiled()(*args, **kwargs)

    def compiled(self) -> Callable[P, R]:
        """Numba's function, put in the places where its file's functions, which it may call, look for it."""
        if self._compiled is None:
            with _LOCK:
                if self._compiled is None:
                    self._replace_in_file()
        return cast("Callable[P, R]", self._compiled)

    def _prepared(self) -> Callable[P, R]:
        if interpreted():
            return _quietly(self._function)
        stored = make_room()
        import numba

        made = numba.njit(cache=stored, nogil=True, inline=self._inline)(self._function)
        if stored:
            _check_stored(made)
        return cast("Callable[P, R]", made)

    def _replace_in_file(self) -> None:
        file = cast("dict[str, Any]", cast("Any", self._function).__globals__)
        kept = {name: value for name, value in file.items() if isinstance(value, _Kernel)}
        own = [v for v in kept.values() if v._function.__globals__ is file]
        made = {v: v._prepared() for v in (self, *own)}
        file.update({name: made[v] if v in made else v.compiled() for name, v in kept.items()})
        for v, function in made.items():  # last, for other threads do not wait once they see it
            v._compiled = function


@cache
def interpreted() -> bool:
    """Tell whether kernels run without being compiled: where it is asked for."""
    options = os.environ.get("CALIBRANT_KERNELS", "")
    if options not in ("", "plain"):
        raise BadInput(f"CALIBRANT_KERNELS={options!r}: leave it out, or set it to 'plain'")
    return options == "plain"


def _quietly(function: Callable[P, R]) -> Callable[P, R]:
    """A function whose whole numbers wrap without a warning, as those of compiled code do."""

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        with np.errstate(all="ignore"):
            return function(*args, **kwargs)

    return call


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function over arrays when it is first called; without the interpreter's lock, and cached on disk."""
    return _Kernel(function, "never")


def inlined(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function of a line or two into each kernel that calls it."""
    return _Kernel(function, "always")


FEW = 1 << 15  # rows that NumPy takes in less time than numba needs to be loaded
_MANY: ContextVar[bool] = ContextVar("many", default=False)


def few(size: int, per_row: int = 1, often: bool = False) -> bool:
    """Tell whether work of a size, so much of it a row, is done in NumPy: sizes alone decide, never what is cached.

    What is done often, little at a time, is done in NumPy only where the data themselves are few (`sized`).
    """
    return interpreted() or (size <= FEW * per_row and not (often and _MANY.get()))


@contextmanager
def sized(rows: float) -> Iterator[None]:
    """A context in which all that is done is about so many rows: kernels that run often ask for it."""
    before = _MANY.set(_MANY.get() or rows > FEW)
    try:
        yield
    finally:
        _MANY.reset(before)


def as_readonly(values: ArrayLike | None, dtype: type[Number]) -> NDArray[Number]:
    """A read-only contiguous view, of nothing for None: so a kernel sees one type, and is compiled once."""
    view = np.ascontiguousarray([] if values is None else values, dtype=dtype).view()
    view.flags.writeable = False
    return view


WIDTH, ROWS_AT_ONCE = 32, 256  # columns of a matrix that are copied together, and rows: 64 kB, which a cache holds


def columns_of(p: NDArray[Number], width: int = WIDTH) -> Iterator[NDArray[Number]]:
    """Yield the columns of a matrix whose rows lie one after another, each contiguous.

    Some are copied together, and of those some rows: one by one, or all rows at once, a thousand columns are slow.
    """
    for start in range(0, p.shape[1], width):
        some = p[:, start : start + width]
        out = np.empty(some.shape[::-1], dtype=p.dtype)
        for rows in parts_of(len(p)):
            out[:, rows] = some[rows].T
        yield from out


def parts_of(rows: int, at_once: int = ROWS_AT_ONCE) -> Iterator[slice]:
    """Yield consecutive rows, so many at once: what is made of them on the way then stays in a cache."""
    for start in range(0, rows, at_once):
        yield slice(start, min(start + at_once, rows))


@cache
def _controller(_of: str, _scipy: bool) -> ThreadpoolController:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()  # of the libraries that are loaded by now


def one_thread(of: Literal["blas", "openmp"] = "blas") -> AbstractContextManager[object]:
    """A context in which linear algebra, or loops of a library just imported, run on one thread.

    The last bits of small decompositions then do not depend on how many threads a machine has.
    """
    loaded = _controller(of, "scipy.linalg" in sys.modules)  # which brings linear algebra of its own
    return cast("AbstractContextManager[object]", loaded.limit(limits=1, user_api=of))


# ---- where machine code is stored ----

CHECKSUM = hashlib.sha256().digest_size
ENOUGH_ROOM = 1 << 16  # bytes that a place must take: a full disk makes empty files, but stores none


@cache
def make_room() -> bool:
    """Find a place for machine code where neither the package nor the home directory can be written; tell if there is.

    numba looks next to the file, then in the user's cache; where it finds no place it refuses to compile at all.
    """
    if chosen := os.environ.get("NUMBA_CACHE_DIR"):
        return _takes(Path(chosen))
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path(os.path.expanduser("~")) / ".cache")
    if any(map(_takes, (Path(__file__).parent / "__pycache__", home / "numba"))):
        return True
    own = Path(own_directory())
    if not _takes(own):  # compiled again by every process, then
        return False
    os.environ["NUMBA_CACHE_DIR"] = str(own)
    if "numba" in sys.modules:  # it has read its settings already
        sys.modules["numba"].config.CACHE_DIR = str(own)
    return True


def _takes(folder: Path) -> bool:
    """Tell whether files can be written into a folder, made if it is not there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(bytes(ENOUGH_ROOM))
    except OSError:
        return False
    return True


def _check_stored(compiled: Any) -> None:
    """Have a function that numba compiles read stored code only where it is whole."""
    file = compiled._cache._cache_file
    base = file._index_name.removesuffix(".nbi")
    compiled._cache._cache_file = _checked_files()(file._cache_path, f"{base}.checked", file._source_stamp)


@cache
def _checked_files() -> type:
    """The class of the files of one kernel, each with a checksum before what numba writes: it runs that as code.

    A file that is damaged or cut short is compiled again, and stored again.
    """
    from numba.core.caching import IndexDataCacheFile

    class Checked(IndexDataCacheFile):  # type: ignore[misc]  # numba has no types
        def _load_index(self) -> dict[object, object]:
            try:
                index = super()._load_index()
            except Exception:  # whatever a pickle that is damaged brings about
                return {}
            return index if isinstance(index, dict) else {}

        def _load_data(self, name: str) -> object:
            content = Path(self._data_path(name)).read_bytes()
            if hashlib.sha256(content[CHECKSUM:]).digest() != content[:CHECKSUM]:
                raise OSError(f"{name} is damaged")  # numba then compiles
            return pickle.loads(content[CHECKSUM:])  # noqa: S301 - written here, into a folder of the user's own

        def _save_data(self, name: str, data: object) -> None:
            content = self._dump(data)
            with self._open_for_write(self._data_path(name)) as file:
                file.write(hashlib.sha256(content).digest() + content)

    return Checked


def own_directory() -> str:
    """A temporary directory in which nobody else can write: what is stored there is code."""
    me = os.getuid() if hasattr(os, "getuid") else 0
    where = Path(tempfile.gettempdir()) / f"calibrant-compiled-{me}"
    try:
        where.mkdir(mode=0o700, exist_ok=True)
        result = where.lstat()
    except OSError:
        return tempfile.mkdtemp(prefix="calibrant-compiled-")
    mine = stat.S_ISDIR(result.st_mode) and (os.name == "nt" or (result.st_uid == me and not result.st_mode & 0o022))
    return str(where) if mine else tempfile.mkdtemp(prefix="calibrant-compiled-")
