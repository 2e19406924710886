"""Trees that tell two populations apart are grown on one thread: threads that wait for one another are slow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import calibrant as cal

sklearn = pytest.importorskip("sklearn.ensemble")


def test_trees_are_grown_on_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    from threadpoolctl import threadpool_info

    seen: list[int] = []
    fit = sklearn.HistGradientBoostingClassifier.fit

    def watched(self: Any, *given: Any, **named: Any) -> Any:
        seen.extend(pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "openmp")
        return fit(self.set_params(max_iter=3), *given, **named)

    monkeypatch.setattr(sklearn.HistGradientBoostingClassifier, "fit", watched)
    rng = np.random.default_rng(0)
    here, there = (
        cal.predictions(rng.uniform(size=300) < 0.5, np.full(300, 0.5), {"age": rng.normal(at, 1.0, 300)})
        for at in (0, 1)
    )
    cal.weights.to(here, there, columns=["age"], method="classifier", learner="trees", folds=2)
    assert seen
    assert set(seen) == {1}
