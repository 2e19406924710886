"""Certified intervals: finite-sample, distribution-free, and clear about which classifier they are about."""

from __future__ import annotations

from importlib import import_module
from typing import Any

_WHERE = {
    name: name
    for name in (
        "raw_lower", "rounded", "jittered", "distance", "bounded_variation", "groups", "rows_needed", "jitter_cost",
        "published_kernel", "published_total_variation", "published_lipschitz",
    )
} | {"jitter_bandwidth": "jitter_cost"}  # fmt: skip
__all__ = list(_WHERE)  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_WHERE[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
