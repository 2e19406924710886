"""Every public function of data says in one line what to pass where it cannot read what it was passed."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

import calibrant as cal

FACES = (cal.certify, cal.measure, cal.detect, cal.diagnose, cal.repair)
NEEDED: dict[str, Any] = {"variable": "x", "by": "x", "variables": ["x"], "limit": 0.1, "threshold": 0.5}


def functions() -> dict[str, Callable[..., Any]]:
    every = {f"{m.__name__.split('.')[-1]}.{n}": getattr(m, n) for m in FACES for n in m.__all__}
    first = {name: next(iter(inspect.signature(f).parameters), "") for name, f in every.items() if callable(f)}
    return {n: every[n] for n, f in first.items() if f in ("data", "pilot") and inspect.isfunction(every[n])}


def call(name: str, data: object) -> None:
    f = functions()[name]
    _, *others = inspect.signature(f).parameters.values()
    needed = [p.name for p in others if p.default is p.empty and p.kind is not p.VAR_KEYWORD]
    f(data, **{name: NEEDED.get(name, 0.1) for name in needed})


@pytest.mark.parametrize("name", sorted(functions()))
def test_what_is_no_data_is_refused_in_one_line(name: str) -> None:
    with pytest.raises(cal.BadInput) as caught:
        call(name, "abc")
    assert "\n" not in str(caught.value)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(functions()))
def test_several_classes_are_read_or_refused(name: str) -> None:
    rng = np.random.default_rng(0)
    classes = cal.multiclass_predictions(rng.integers(0, 3, 60), rng.dirichlet(np.ones(3), 60))
    with suppress(cal.BadInput, cal.NotComputable):
        call(name, classes)
