"""No public function passes over `cluster` or `weights`: its result is another one, or it says what can be used."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import calibrant as cal

FACES = (cal.measure, cal.detect, cal.diagnose, cal.certify)
GIVEN = {"variable": "x", "variables": ["x"], "first": "x", "second": "z", "level": "a", "by": "g"}
TAKES_MORE: dict[str, dict[str, Any]] = {
    "inferred_gap": {"variable": "g"},
    "kernel_tuning": {"by_variable": "x"},
    "by_group": {"function": cal.measure.brier, "by": "g"},
    "groups": {"by": "g"},
    "accept": {"risk": 0.45},
    "heterogeneity": {"site": "g"},
    "net_benefit": {"threshold": 0.4},
    "regret": {"threshold": 0.4},
    "worst_group": {"by": "g"},
    "certify.rows_needed": {"gap": 0.1},
    "detect.rows_needed": {"error": 0.2},
    "detect.smallest_error": {"rows": 600},
    "measure.rows_needed": {"widths": {"auroc": 0.2}},
}
ROWS, SIZE = 400, 5
FEWER_DRAWS = {"draws": 99, "jitters": 9}
REFUSED = {  # units and weights are, where unlabelled rows are kept; and rows without follow-up: test_by_horizon.py
    "missing_labels",
    "horizon",
    "integrated_calibration_index",
    "curve_by_horizon",
}
READS = ("value", "interval", "p_value", "statistic", "columns")
NEITHER = {"Rounding", "Jitter"}  # maps that read no outcome; and those of several classes
NEITHER |= {name for name, entry in cal.repair.recipes().items() if not entry.fits(several=False)}
SEVERAL = (
    "classwise",
    "jittered_classes",
    "classwise_ece",
    "ranked_probability_score",
)  # these read several classes: test_classes.py


def functions() -> dict[str, Callable[..., Any]]:
    found = {f"{m.__name__.split('.')[-1]}.{n}": getattr(m, n) for m in FACES for n in m.__all__}
    asked = {n: f for n, f in found.items() if f.__name__ not in (*REFUSED, *SEVERAL) and inspect.isfunction(f)}
    return {n: f for n, f in asked.items() if "data" in inspect.signature(f).parameters}


def data(off: float = 0.0, **more: Any) -> cal.Predictions:
    """Units share part of their outcomes; where `off`, one level of g is far off."""
    rng = np.random.default_rng(5)
    cluster, g = np.repeat(np.arange(ROWS // SIZE), SIZE), rng.choice(["a", "b", "c"], ROWS)
    p = np.round(rng.uniform(0.2, 0.6, ROWS), 1)
    u = 0.5 * rng.uniform(size=ROWS // SIZE)[cluster] + 0.5 * rng.uniform(size=ROWS)
    table = {"x": rng.normal(size=ROWS), "z": rng.normal(size=ROWS), "g": g}
    given = {"cluster": cluster, "weights": rng.uniform(0.5, 3.0, ROWS // SIZE)[cluster]}
    return cal.predictions(u < p + off * (g == "a"), p, table, **{k: given[k] for k in more})


def numbers(f: Callable[..., Any], d: cal.Predictions) -> Any:
    """Return what the function finds, without words; a refusal as itself."""
    name, parameters = f.__name__, inspect.signature(f).parameters
    face_and_name = f"{f.__module__.split('.')[1]}.{name}"
    needed = {k for k, v in parameters.items() if v.default is v.empty and k in GIVEN}
    asked = {k: GIVEN[k] for k in needed} | {k: v for k, v in FEWER_DRAWS.items() if k in parameters}
    try:
        found = f(data=d, **(asked | TAKES_MORE.get(name, TAKES_MORE.get(face_and_name, {}))))
    except cal.NotComputable as e:
        return e
    if isinstance(found, dict):
        return {k: v.value for k, v in found.items()} | {f"{k} low": v.low for k, v in found.items()}
    reported = found.to_dict() if hasattr(found, "to_dict") else found
    return {k: reported[k] for k in READS if k in reported} if isinstance(reported, dict) else repr(reported)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(functions()))
def test_every_function_reads_units_and_weights_or_names_what_does(name: str) -> None:
    f = functions()[name]
    for more in ({"cluster": 1}, {"weights": 1}, {"cluster": 1, "weights": 1}):
        differs = False
        for off in (0.0, 0.4):
            plain, found = numbers(f, data(off)), numbers(f, data(off, **more))
            if isinstance(plain, cal.NotComputable):
                continue
            if isinstance(found, cal.NotComputable):
                assert any(what in str(found) for what in ("cluster", "weight", "unit")), found
                differs = True
            differs = differs or found != plain
        assert differs, f"{name} passes over {', '.join(more)}"


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(functions()))
def test_clusters_that_cross_are_never_called_one_cluster(name: str) -> None:
    rows = data()
    table = {c: rows.covariates.column(c) for c in rows.covariates.column_names}
    person, question = np.divmod(np.arange(ROWS), 20)
    found = numbers(functions()[name], cal.predictions(rows.y, rows.p, table, cluster={"m": person, "q": question}))
    if isinstance(found, cal.NotComputable):
        assert not any(what in str(found) for what in ("are one cluster", "1 clusters", "in every row")), found


@pytest.mark.parametrize("more", [{"cluster": np.arange(4) // 2}, {"weights": np.arange(1.0, 5.0)}])
def test_unlabelled_rows_keep_their_units_and_weights(more: dict[str, Any]) -> None:
    apart = cal.predictions([1, 0, None, 1], [0.5, 0.4, 0.3, 0.2], missing="keep", **more).unlabelled
    assert apart is not None
    (name, values), held = next(iter(more.items())), {"cluster": apart.cluster, "weights": apart.weights}
    assert held[name].tolist() == [values[2]]


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(cal.repair.recipes()) - NEITHER))
def test_every_recipe_fits_with_weights(name: str) -> None:
    recipe = cal.repair.recipes()[name].recipe
    needed = {k: ["g"] for k, v in inspect.signature(recipe).parameters.items() if v.default is v.empty}
    plain, weighted = (recipe(**needed).fit(d) for d in (data(0.4), data(0.4, weights=1)))
    assert not np.array_equal(plain(data(0.4)).p, weighted(data(0.4)).p)


def test_a_function_that_passes_over_them_is_seen() -> None:
    def naive(data: cal.Predictions) -> cal.Estimate:
        return cal.measure.brier(cal.predictions(data.y, data.p))

    assert numbers(naive, data(0.4)) == numbers(naive, data(0.4, cluster=1, weights=1))


def test_a_misspelt_variable_is_named_before_a_jitter_is_refused() -> None:
    rng = np.random.default_rng(0)
    p = rng.uniform(size=400)
    age, sex = rng.uniform(size=400), np.array(["f", "m"])[rng.integers(0, 2, 400)]
    data = cal.predictions(rng.uniform(size=400) < p, p, {"age": age, "sex": sex}, cluster=np.arange(400) // 4)
    with pytest.raises(cal.BadInput, match="column 'aeg' is not in the data; did you mean 'age'"):
        cal.certify.variable(data, "aeg", bandwidth=0.1)
    with pytest.raises(cal.NotComputable, match="'sex' is a category"):
        cal.certify.variable(data, "sex", bandwidth=0.1)
    with pytest.raises(cal.NotComputable, match="no jitter of the variable is proved"):
        cal.certify.variable(data, "age", bandwidth=0.1)
    with pytest.raises(cal.BadInput, match=r"variable=\(1, 2\)"):
        cal.diagnose.variable_curve(data, (1, 2))
