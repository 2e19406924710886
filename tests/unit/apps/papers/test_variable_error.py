"""ECE, VECE and VCE(v*) as published: the authors' values, the theorems, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import calibrant as cal
from calibrant.errors import BadInput, NotComputable


def rows(n: int = 400, seed: int = 0) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    p, v = rng.uniform(0.05, 0.95, n), rng.integers(0, 40, n).astype(float)
    return (rng.uniform(size=n) < p).astype(int), p, {"v": v, "w": rng.uniform(size=n), "g": rng.choice(["a", "b"], n)}


def test_the_authors_values(shared: Any) -> None:
    given = np.genfromtxt(shared / "golden/B_vece/input2_signflip_n3000.csv", delimiter=",", names=True)
    golden = json.loads((shared / "golden/B_vece/vece_golden2_signflip.json").read_text(encoding="utf-8"))
    data = cal.predictions(given["actual"], given["prob_1"], {"v": given["v"]})
    for span in (0.75, 0.9):
        found = cal.papers.published_variable_curve(data, "v", span=span).settings
        assert abs(100 * found["worst"] - golden[f"maxdiff_v_s{span}_percent"]) < 1e-9
        exact = cal.diagnose.variable_curve(data, "v", view="confidence", span=span, draws=99).settings
        assert abs(exact["worst_gap"]) != pytest.approx(found["worst"], abs=1e-6)  # the surface is another
    for bins in (5, 10, 20):
        found = cal.papers.published_variable_curve(data, "v", bins=bins).settings
        assert found["vece"] == pytest.approx(golden[f"VECE_v_b{bins}"], abs=1e-9)
        assert found["ece"] == pytest.approx(golden[f"ECE_b{bins}"], abs=1e-9)
        assert cal.papers.reliability_diagram(data, bins=bins).settings["ece"] == found["ece"]


def test_many_values_are_smoothed_in_parts_to_the_same_curve(monkeypatch: pytest.MonkeyPatch) -> None:
    from calibrant.apps.papers import variable_error

    y, p, x = rows()
    whole = cal.papers.published_variable_curve(cal.predictions(y, p, x), "w")
    monkeypatch.setattr(variable_error, "AT_ONCE", 7 * 400)
    np.testing.assert_allclose(
        cal.papers.published_variable_curve(cal.predictions(y, p, x), "w").columns["gap"],
        whole.columns["gap"],
        atol=1e-12,
    )


def test_order_of_rows_plays_no_part() -> None:
    y, p, x = rows()
    mixed = np.random.default_rng(1).permutation(len(y))
    one = cal.papers.published_variable_curve(cal.predictions(y, p, x), "v")
    other = cal.papers.published_variable_curve(
        cal.predictions(y[mixed], p[mixed], {k: v[mixed] for k, v in x.items()}), "v"
    )
    np.testing.assert_allclose(one.columns["gap"], other.columns["gap"], atol=1e-12)


def test_the_diagram_by_hand() -> None:
    """Scores .9 .8 | .7 .6 of the class that is more probable; right 1, 0 | 1, 1."""
    data = cal.predictions([1, 0, 0, 1], [0.9, 0.8, 0.3, 0.6])
    diagram = cal.papers.reliability_diagram(data, bins=2)
    assert diagram.columns["x"] == pytest.approx((0.65, 0.85))
    assert diagram.columns["rate"] == pytest.approx((1.0, 0.5))
    assert diagram.settings["ece"] == pytest.approx((0.35 + 0.35) / 2)
    assert diagram.settings["accuracy"] == pytest.approx(0.75)
    plain = cal.papers.reliability_diagram(data, bins=2, view="probability")
    assert plain.columns["x"] == pytest.approx((0.45, 0.85))


def test_two_classes_are_the_top_label_of_three_of_which_one_never_is() -> None:
    y, p, x = rows()
    two = cal.papers.reliability_diagram(cal.predictions(y, p, x))
    many = cal.papers.reliability_diagram(cal.multiclass_predictions(y, np.column_stack([1 - p, p, 0 * p]), x))
    np.testing.assert_allclose(two.columns["rate"], many.columns["rate"])
    assert (two.settings["classes"], many.settings["classes"]) == (2, 3)


@pytest.mark.parametrize("classes", [2, 4])
def test_one_error_says_nothing_of_the_other(classes: int) -> None:
    """Theorems 5.1 and 5.2: one is 0 and the other ``0.5 - 1 / (2 K)``, of the constructions in their proofs."""
    far = 0.5 - 1 / (2 * classes)
    middle, n = 0.5 + 1 / (2 * classes), 400

    def built(confidence: Any, right: Any, v: Any) -> Any:
        if classes == 2:
            return cal.predictions(right.astype(int), confidence, {"v": v})
        p = np.repeat((1 - confidence)[:, None] / (classes - 1), classes, axis=1)
        p[:, 0] = confidence
        return cal.multiclass_predictions(np.where(right, 0, 1), p, {"v": v})

    v = np.arange(n) % 2.0
    whole = round(middle * n)  # one confidence, right in so many: wrong in most rows of one value of v
    low = built(np.full(n, middle), _right(v, {1.0: 1.0, 0.0: 2 * whole / n - 1}), v)
    found = cal.papers.published_variable_curve(low, "v", span=1.0).settings
    assert (found["ece"], found["vece"]) == pytest.approx((0.0, far), abs=0.01)
    assert found["most_apart"] == pytest.approx(far)
    confident = np.where(np.arange(n) % 4 < 2, 1.0 - 1e-9, 1 / classes + 1e-9)  # both are right as often as the mean
    high = built(confident, _right(confident * 10 + v, dict.fromkeys(np.unique(confident * 10 + v), middle)), v)
    found = cal.papers.published_variable_curve(high, "v", span=1.0).settings
    assert (found["vece"], found["ece"]) == pytest.approx((0.0, far), abs=0.01)


def _right(key: Any, share: dict[float, float]) -> Any:
    """Mark the first rows of each key, so many as its share says."""
    out = np.zeros(len(key), dtype=bool)
    for k, s in share.items():
        mine = np.flatnonzero(key == k)
        out[mine[: round(s * len(mine))]] = True
    return out


def test_errors_on_one_side_are_equal() -> None:
    """Theorem 5.4."""
    rng = np.random.default_rng(3)
    p, v = rng.uniform(0.7, 0.95, 5000), rng.uniform(size=5000)
    found = cal.papers.published_variable_curve(
        cal.predictions((rng.uniform(size=5000) < p - 0.2).astype(int), p, {"v": v}), "v"
    ).settings
    assert found["one_sided"] == "over"
    assert found["ece"] == pytest.approx(found["vece"], abs=1e-12)
    y, p, x = rows()
    assert cal.papers.published_variable_curve(cal.predictions(y, p, x), "v").settings["one_sided"] is None


def test_the_table_ranks_by_vece() -> None:
    y, p, x = rows()
    data = cal.predictions(y, p, x)
    table = cal.papers.published_variable_table(data)
    assert table.settings["left_out"] == ("g",)
    for name, vece, worst in zip(*(table.columns[k] for k in ("variable", "vece", "worst")), strict=True):
        one = cal.papers.published_variable_curve(data, name).settings
        assert (vece, worst) == (one["vece"], one["worst"])
    assert table.columns["vece"] == tuple(sorted(table.columns["vece"], reverse=True))


def test_what_it_does_not_know_is_refused() -> None:
    y, p, x = rows(40)
    curve = cal.papers.published_variable_curve
    with pytest.raises(NotComputable, match="no weights"):
        curve(cal.predictions(y, p, x, weights=np.ones(40)), "v")
    with pytest.raises(NotComputable, match="is no number"):
        curve(cal.predictions(y, p, x), "g")
    with pytest.raises(BadInput, match="did you mean 'v'"):
        curve(cal.predictions(y, p, x), "vv")
    with pytest.raises(NotComputable, match="missing values"):
        curve(cal.predictions(y, p, {"v": [None, *x["v"][1:].tolist()]}), "v")
    with pytest.raises(NotComputable, match="one value only"):
        curve(cal.predictions(y, p, {"v": np.ones(40)}), "v")
    with pytest.raises(BadInput, match="one_vs_rest"):
        cal.papers.reliability_diagram(
            cal.multiclass_predictions(y, np.column_stack([1 - p, p, 0 * p])), view="probability"
        )
    with pytest.raises(NotComputable, match="no covariate"):
        cal.papers.published_variable_table(cal.predictions(y, p, {"g": x["g"]}))
