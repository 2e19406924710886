"""Curves on Matplotlib's axes: every kind is drawn with titles, from its own numbers; what is none says so."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

import factories
from calibrant.errors import NotComputable
from calibrant.report.figures import plots
from calibrant.report.figures.kinds import FIGURES
from calibrant.results import Curve

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

CURVES = {
    **factories.kinds_of_curve(),
    "control": factories.control_chart(),
    "rules": factories.searched_subgroups(),
    "subgroups": factories.subgroup_lines(),
    "subgroup map": factories.subgroup_map(),
    "inferred means": factories.inference(),
    "everyone and groups": factories.record().table,
}


@pytest.fixture(autouse=True)
def closed() -> Any:
    yield
    from matplotlib import pyplot as plt

    plt.close("all")


@pytest.mark.parametrize("name", CURVES)
def test_every_curve_is_drawn_with_titles(name: str) -> None:
    ax = CURVES[name].plot()
    assert ax.get_title(loc="left")
    assert ax.get_xlabel()
    assert ax.lines or ax.collections


def test_it_draws_on_the_axes_that_are_passed_and_makes_none() -> None:
    from matplotlib import pyplot as plt

    _, (left, right) = plt.subplots(1, 2)
    assert CURVES["score"].plot(ax=right) is right
    assert not left.lines
    assert len(plt.get_fignums()) == 1


def test_the_line_is_the_gap_in_points() -> None:
    curve = CURVES["number"]
    (line,) = (one for one in CURVES["number"].plot().lines if one.get_label() == "gap")
    assert list(line.get_ydata()) == pytest.approx([100 * v for v in curve.columns["gap"]])
    assert list(line.get_xdata()) == pytest.approx(curve.columns["x"])


def test_dates_lie_where_they_are_to_the_second() -> None:
    curve = CURVES["date"]
    hours = replace(curve, columns={**curve.columns, "x": tuple(18_000 + i / 24 for i in range(20))})
    (line,) = (one for one in hours.plot().lines if one.get_label() == "gap")
    assert list(line.get_xdata()) == pytest.approx(hours.columns["x"])
    line.axes.figure.canvas.draw()


def test_three_layers_stand_under_their_names() -> None:
    table = CURVES["everyone and groups"]
    ax = table.plot()
    assert [t.get_text() for t in ax.get_yticklabels()] == list(table.columns["group"])
    (dots,) = (one for one in ax.lines if one.get_label() == "estimate")
    assert list(dots.get_xdata()) == pytest.approx([100 * v for v in table.columns["gap"]])
    texts = {t.get_text() for t in ax.get_legend().get_texts()}
    assert texts >= {"estimate", "95% interval", "95% guaranteed"}


@pytest.mark.parametrize("method", ["measure.inferred_mean", "audit.task_trust"])
def test_biases_in_several_units_share_an_axis_and_are_told_in_their_own(method: str) -> None:
    ax = replace(factories.inference(), method=method).plot()
    assert ax.get_xlabel() == "bias, in half-widths of its range"
    years, days, share = (t.get_text() for t in ax.get_yticklabels())
    assert years == "age\n+0.41 (+0.19 to +0.63)"
    assert days == "start\n+25 days (+9 to +41)"
    assert share == "sex = age\n+0.1 points (\u22120.9 to +1.1)"
    ends = [s[:, 0] for c in ax.collections for s in c.get_segments()]
    assert [b - a for a, b in ends] == pytest.approx([2.0] * 3)
    dots = {y: x for line in ax.lines if line.get_marker() == "o" for x, y in line.get_xydata()}
    assert [dots[y] for y in range(3)] == pytest.approx([6.0 / 3.2, 5.0 / 3.2, 0.3 / 3.2])


def test_names_of_the_data_are_no_formulas() -> None:
    curve = CURVES["levels"]
    hostile = replace(curve, columns={**curve.columns, "label": (r"$\frac{1}{2}$", "x" * 500)})
    ax = hostile.plot()
    ax.figure.canvas.draw()
    first, second = (t.get_text() for t in ax.get_yticklabels())
    assert first == r"\$\frac{1}{2}\$"
    assert len(second) <= plots.LONGEST


def test_what_is_no_curve_says_so() -> None:
    with pytest.raises(NotComputable, match=r"no picture of tripod, a table: use to_frame\(\)"):
        Curve(method="tripod", columns={"item": ("1",)}).plot()
    with pytest.raises(NotComputable, match="empty: too few rows"):
        Curve(method="diagnose.reliability_curve", columns={}, settings={"reason": "too few rows"}).plot()
    nothing = {"probability": ("a",), "population": ("everyone",), "threshold": (0.2,)}
    nothing |= dict.fromkeys(("gain", "gain_low", "gain_high"), (None,))
    with pytest.raises(NotComputable, match="no line of the curve has a number"):
        Curve(method="repair.evaluate.decisions", columns=nothing).plot()


@pytest.mark.slow
def test_without_matplotlib_it_names_the_extra() -> None:
    code = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "from calibrant.results import Curve\n"
        "c = Curve(method='reliability', columns={k: (.1,) for k in ('predicted', 'gap', 'low', 'high')})\n"
        "try: c.plot()\n"
        "except ImportError as e: print(e)"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shown.strip() == 'a plot needs Matplotlib: pip install "calibrant[displays]"'


def test_every_curve_of_a_record_has_a_picture() -> None:
    from calibrant.audit.schema.curves import CURVES as KINDS

    assert {kind.__struct_config__.tag for kind in KINDS.values()} <= set(FIGURES)


def test_levels_of_all_groups_are_under_each_other_and_lines_over_each_other() -> None:
    levels, line = (curve_of_two_groups(name) for name in ("levels", "number"))
    assert [t.get_text() for t in levels.plot().get_yticklabels()] == [
        f"site = {g}, {v}" for g in "ab" for v in CURVES["levels"].columns["label"]
    ]
    assert {"site = a", "site = b"} < {one.get_label() for one in line.plot().lines}


def test_maps_of_groups_get_axes_each_and_one_set_of_axes_is_refused() -> None:
    from matplotlib import pyplot as plt

    curve = curve_of_two_groups("map of levels")
    (race,) = curve.settings["axes"]
    axes = (race, {**race, "name": "ward", "places": ("c",)})
    columns = {**curve.columns, "x2": tuple("c" for _ in curve.columns["x"])}
    two = replace(curve, columns=columns, settings={**curve.settings, "axes": axes})
    assert [ax.get_title(loc="left") for ax in two.plot().figure.axes[:2]] == ["a", "b"]
    with pytest.raises(NotComputable, match="one set of axes cannot hold these 2 pictures"):
        two.plot(ax=plt.subplots()[1])


def labels_of(ax: Any) -> list[str]:
    ax.figure.canvas.draw()
    low, high = ax.get_xlim()
    return [t.get_text() for t in ax.get_xticklabels() if low <= t.get_position()[0] <= high and t.get_text()]


def test_scores_lie_on_a_logit_axis_where_it_is_titled_so() -> None:
    curve = CURVES["score"]
    ax = replace(curve, settings={**curve.settings, "axis": "logit"}).plot()
    assert (ax.get_xscale(), ax.get_xlabel()) == ("logit", "predicted probability (logit axis)")
    (line,) = (one for one in ax.lines if one.get_label() == "gap")
    assert list(line.get_xdata()) == pytest.approx(curve.columns["x"])
    assert {"10%", "50%", "90%"} <= set(labels_of(ax))


@pytest.mark.parametrize(
    ("places", "scale", "labels"),
    [
        ((1.0, 30.0, 1e4), "log", {"1", "10", "100", "1,000", "10,000"}),
        ((20.0, 30.0, 80.0), "log", {"20", "30", "40"}),
        ((0.0, 30.0, 1e4), "symlog", {"0", "10", "1,000"}),
    ],
)
def test_maps_on_ranks_lie_on_a_logarithm(places: tuple[float, ...], scale: str, labels: set[str]) -> None:
    ax = factories.bias_map(places=places, scaling="rank").plot()
    assert ax.get_xscale() == scale
    assert labels <= set(labels_of(ax))


@pytest.mark.parametrize("scaling", ["as it is", "rank"])
def test_what_is_missing_has_a_place_for_each_group(scaling: str) -> None:
    one = factories.bias_map(places=(1.0, 10.0, 100.0, None), gaps=(0.0, 0.0, 0.0, 0.05), scaling=scaling)
    columns = {k: (*v, *v) for k, v in one.columns.items()}
    ax = replace(one, columns=columns | {"group": ("a",) * 4 + ("b",) * 4}).plot()
    at = {t.get_text(): t.xy[0] for t in ax.texts}
    assert list(at) == ["a, missing", "b, missing"]
    assert 100.0 < at["a, missing"] < at["b, missing"] < ax.get_xlim()[1]


def test_no_group_looks_like_what_is_shown_to_be_off() -> None:
    from colorsys import rgb_to_hsv

    from matplotlib.colors import to_rgb

    for tint in plots.TINTS:
        hue, saturation, value = rgb_to_hsv(*to_rgb(tint))
        assert 0.14 < hue < 0.92 or saturation < 0.2 or value < 0.2, tint
    assert len({to_rgb(tint) for tint in plots.TINTS}) == len(plots.TINTS)


def decisions(thresholds: tuple[float, ...]) -> Curve:
    rates = {
        "net_benefit": 0.1,
        "treat_all": 0.05,
        "low": 0.05,
        "high": 0.15,
        "over_all_low": 0.0,
        "over_all_high": 0.1,
    }
    columns = {k: (v,) * len(thresholds) for k, v in rates.items()}
    columns |= {"threshold": thresholds}
    return Curve(method="diagnose.decision_curve", columns=columns, settings={"alpha": 0.05})


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "curve",
    [
        decisions((0.2,)),
        factories.by_variable("income", xs=[7.0]),
        factories.bias_map(places=(7.0,)),
    ],
)
def test_one_place_is_drawn_without_a_warning(curve: Curve) -> None:
    ax = curve.plot()
    ax.figure.canvas.draw()
    low, high = ax.get_xlim()
    assert low < high


def test_names_aslant_end_at_their_place() -> None:
    levels = tuple(f"a level that is long {i}" for i in range(6))
    ax = factories.bias_map("race", "category", levels, (0.02,) * 6).plot()
    assert {(t.get_ha(), t.get_rotation_mode(), t.get_rotation()) for t in ax.get_xticklabels()} == {
        ("right", "anchor", 40.0)
    }


def test_dates_do_not_collide() -> None:
    from matplotlib import pyplot as plt

    ax = CURVES["date"].plot(ax=plt.subplots(figsize=(4, 3))[1])
    ax.figure.canvas.draw()
    low, high = ax.get_xlim()
    seen = [t for t in ax.get_xticklabels() if low <= t.get_position()[0] <= high]
    boxes = [t.get_window_extent() for t in seen]
    assert all(a.x1 < b.x0 for a, b in pairwise(boxes))


def map_of_two(groups: tuple[str, ...] = ()) -> Curve:
    """A map along two levels of race and of ward, one place of ward missing."""
    curve = CURVES["map of levels"]
    (race,) = curve.settings["axes"]
    age = {**race, "name": "age", "kind": "number", "scaling": "as it is", "places": (20.0, None)}
    columns = {k: v * 2 * max(len(groups), 1) for k, v in curve.columns.items()}
    columns["x2"] = (20.0, 20.0, None, None) * max(len(groups), 1)
    columns |= {"group": tuple(g for g in groups for _ in range(4))} if groups else {}
    return replace(curve, columns=columns, settings={**curve.settings, "axes": (race, age)})


def test_a_map_counts_the_missing_values_that_it_leaves_out() -> None:
    assert map_of_two().plot().get_xlabel() == "race\nNot drawn: 2 points with a missing value."
    ax = map_of_two(("a", "b")).plot()
    assert ax.get_xlabel() == "race"
    assert ax.figure.get_supxlabel() == "Not drawn: 4 points with a missing value."


def curve_of_two_groups(name: str) -> Curve:
    curve = CURVES[name]
    columns = {k: (*v, *v) for k, v in curve.columns.items()}
    columns["group"] = tuple(g for g in "ab" for _ in curve.columns["gap"])
    return replace(curve, columns=columns, settings={**curve.settings, "by": "site"})
