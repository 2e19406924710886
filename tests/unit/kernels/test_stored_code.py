"""Stored machine code that is damaged is compiled and stored again: it never runs, and never ends the process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest

from calibrant.kernels import boxes, runtime

HARM: dict[str, Callable[[bytes], bytes]] = {
    "cut": lambda raw: raw[: len(raw) // 2],
    "empty": lambda raw: b"",
    "a byte": lambda raw: raw[: len(raw) // 2] + bytes([raw[len(raw) // 2] ^ 1]) + raw[len(raw) // 2 + 1 :],
    "noise": lambda raw: bytes(np.random.default_rng(0).integers(0, 256, len(raw), dtype=np.uint8)),
    "another pickle": lambda raw: b"\x80\x04K\x01.",
}


def copied() -> int:
    """Run a kernel as a new process would, and count how often its code came from where it is stored."""
    copy: Any = boxes._copy  # a kernel, or what was compiled of it once it ran
    made = runtime._Kernel(getattr(copy, "_function", None) or copy.py_func, "never")._prepared()
    rows, words = np.zeros((3, 1), np.uint64), np.arange(3, dtype=np.uint64)[:, None]
    made(words, np.array([2, 0, 1]), rows)
    assert rows.ravel().tolist() == [2, 0, 1]
    return int(sum(made.stats.cache_hits.values()))  # type: ignore[attr-defined]


@pytest.mark.slow
def test_damaged_code_is_compiled_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    runtime.make_room.cache_clear()
    assert copied() == 0
    assert copied() == 1
    for ending in ("*.nbi", "*.nbc"):
        for how, harm in HARM.items():
            for file in tmp_path.rglob(ending):
                file.write_bytes(harm(file.read_bytes() or b"emptied before, and named by no index"))
            assert copied() == 0, (ending, how)
            assert copied() == 1, (ending, how)
    runtime.make_room.cache_clear()
