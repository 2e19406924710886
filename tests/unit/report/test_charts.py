"""Interactive charts: one vocabulary for all kinds of curve, and a clear word where Altair is missing."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest

import factories
from calibrant.errors import NotComputable
from calibrant.results import Curve

pytest.importorskip("altair")


def found(curve: Curve, **settings: Any) -> Curve:
    return replace(curve, settings={**curve.settings, **settings})


PEAK = {"peak_observed": 0.5, "peak_predicted": 0.4, "rows_beyond": 10_000, "tolerance": 0.0}
CURVES = {
    **factories.kinds_of_curve(),
    "map on ranks": factories.bias_map(scaling="rank"),
    "control": found(factories.control_chart(), **PEAK),
    "rules": factories.searched_subgroups(),
    "subgroups": factories.subgroup_lines(),
    "subgroup map": factories.subgroup_map(),
}


@pytest.fixture(scope="module")
def drawn() -> dict[str, Any]:
    return {name: curve.chart().to_dict() for name, curve in CURVES.items()}


def nodes(value: Any) -> Iterator[Mapping[str, Any]]:
    """Return every mapping inside a chart."""
    if isinstance(value, Mapping):
        yield value
        for v in value.values():
            yield from nodes(v)
    elif isinstance(value, list):
        for v in value:
            yield from nodes(v)


def rows_with(chart: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    """The most rows of a chart that have this column."""
    return max((rows for rows in chart["datasets"].values() if rows and key in rows[0]), key=len)


@pytest.mark.parametrize("name", CURVES)
def test_every_chart_is_finite_titled_and_in_the_palette(drawn, name):
    text = json.dumps(drawn[name], allow_nan=False)
    assert drawn[name]["title"]["text"]
    assert drawn[name]["config"]["background"] == "#ffffff"
    known = {"#27517a", "#b9cbdd", "#576068", "#1e2428", "#e6e4df", "#ffffff", "#b03a06", "#0a6a86"}
    assert set(re.findall("#[0-9a-f]{6}", text)) <= known


def unread(
    view: Mapping[str, Any], data: Any, sets: Mapping[str, list[dict[str, Any]]], above: frozenset[str]
) -> Iterator[str]:
    """Fields that a chart draws and no row of its data has: what they would show is blank."""
    data = view.get("data", data)
    made = above | {t["as"] for n in nodes(view.get("transform", [])) if isinstance((t := n).get("as"), str)}
    if "encoding" in view and data and "name" in data:
        have = {k for row in sets[data["name"]] for k in row} | made
        fields = {n["field"] for n in nodes(view["encoding"]) if isinstance(n.get("field"), str)}
        yield from sorted(fields - have)
    for part in ("layer", "hconcat", "vconcat", "concat"):
        for inner in view.get(part, []):
            yield from unread(inner, data, sets, made)
    if "spec" in view:
        yield from unread(view["spec"], data, sets, made)


@pytest.mark.parametrize("name", CURVES)
def test_every_field_that_is_drawn_is_in_the_data(drawn, name):
    chart = drawn[name]
    assert [*unread(chart, None, chart["datasets"], frozenset())] == []


@pytest.mark.parametrize("name", [n for n in CURVES if n not in ("control", "subgroup map")])
def test_tooltips_are_in_the_users_units(drawn, name):
    tips = {t["field"] for n in nodes(drawn[name]) for t in n.get("tooltip", []) if isinstance(n.get("tooltip"), list)}
    assert {"predicted rate", "observed rate", "off by", "band"} <= tips
    rows = rows_with(drawn[name], "off by")
    assert re.fullmatch(r"[\d.]+ in 100", rows[0]["predicted rate"])
    assert re.fullmatch(r"[+\u2212]?[\d.]+ points", rows[0]["off by"])
    assert re.fullmatch(r"[+\u2212]?[\d.]+ to [+\u2212]?[\d.]+ points", rows[0]["band"])


@pytest.mark.parametrize("name", ["score", "number", "date", "map", "map on ranks"])
def test_what_is_shown_to_be_off_is_marked(drawn, name):
    layers = [n for n in nodes(drawn[name]) if n.get("transform") == [{"filter": "datum.off"}]]
    assert [n["mark"]["color"] for n in layers] == ["#b03a06"]
    curve = CURVES[name]
    rows = rows_with(drawn[name], "off")
    sides = [low > 0 or high < 0 for low, high in zip(curve.columns["low"], curve.columns["high"], strict=True)]
    assert [r["off"] for r in rows] == sides


def test_an_axis_of_gaps_holds_zero_and_every_gap(drawn):
    for name in ("score", "number", "levels", "map"):
        low, high = next(n["scale"]["domain"] for n in nodes(drawn[name]) if n.get("field") == "gap" and "scale" in n)
        gaps = [100 * g for g in CURVES[name].columns["gap"]]
        assert low < min(0.0, *gaps)
        assert high > max(0.0, *gaps)


@pytest.mark.slow
def test_rare_events_are_told_with_more_digits():
    text = factories.curve(rate=0.001).chart().to_json()
    assert re.search(r'"predicted rate": "0\.\d{2,} in 100"', text)


def test_a_ranking_shows_what_the_error_follows():
    order = factories.ranking()
    columns = {**order.columns, "worst_gap": [0.02] * 3, "worst_rows": [100] * 3}
    made = replace(order, columns=columns, settings={**order.settings, "gap": 0.01, "alpha": 0.05}).chart().to_dict()
    rows = rows_with(made, "finding")
    assert [r["finding"] for r in rows] == ["error varies with it", "error varies with it", "not shown"]


def test_pockets_show_what_is_certified_and_the_limit(drawn):
    rows = rows_with(drawn["subgroups"], "off by at least")
    assert [r["off by at least"] for r in rows] == ["2.6 points", "1.1 points", "not shown"]
    assert [r["off"] for r in rows] == [True, True, False]
    assert [r["limit"] for r in rows] == ["over", "not shown to be over", "not shown to be over"]
    assert rows[0]["without those above"] == ""
    assert rows[0]["besides"] == "marital = married (61%, others 38%); x1 over 0.5 (70%, others 50%)"
    assert rows_with(drawn["subgroups"], "gap")
    dashes = [n for n in nodes(drawn["subgroups"]) if n.get("strokeDash") == [5, 4]]
    assert len(dashes) == 1
    quiet = factories.subgroup_lines(["sex = f"], [-0.01], [0.02], limit=None).chart().to_dict()
    assert quiet["title"]["text"] == "The subgroup that seems worst"


def test_a_map_of_a_pair_has_a_place_for_every_cell_and_outlines_the_pocket(drawn):
    rows, frames = rows_with(drawn["subgroup map"], "people"), rows_with(drawn["subgroup map"], "rule")
    assert len(rows) == 11 * 11 - 3
    assert all(r["x2"] == r["x"] + 1 and r["y2"] == r["y"] + 1 for r in rows)
    assert [(f["x"], f["x2"], f["y"], f["y2"]) for f in frames] == [(8, 10, 8, 10)]
    assert rows[-1]["first"] == "missing"


def test_a_map_leaves_cells_of_few_people_blank_and_levels_without_a_name():
    curve = factories.subgroup_map(("x", "site"), levels=("a", "b"))
    axes = (curve.settings["axes"][0], {**curve.settings["axes"][1], "labels": ("a", None)})
    columns = {**curve.columns, "rows": (19, *curve.columns["rows"][1:])}
    made = replace(found(curve, axes=axes, subgroups=(((0, 2, 4, 5), (1, 2)),)), columns=columns).chart().to_dict()
    assert len(rows_with(made, "people")) == len(columns["rows"]) - 1
    assert {r["second"] for r in rows_with(made, "people")} == {"a", "not named"}
    assert [(f["x"], f["x2"]) for f in rows_with(made, "rule")] == [(0, 2), (4, 5)]


def test_a_table_has_its_ranges_rounded_outward_in_its_tooltips():
    table = factories.record().table
    row = rows_with(table.chart().to_dict(), "95% guaranteed")[0]
    low, high = (100 * table.columns[f"gap_guaranteed_{k}"][0] for k in ("low", "high"))
    a, b = (float(v.replace("\u2212", "-")) for v in row["95% guaranteed"].split(" to "))
    assert low - 0.01 <= a <= low < high <= b <= high + 0.01
    assert row["name"] == table.columns["group"][0]


def kernels():
    columns = {"family": ("biweight", "biweight", "laplace"), "width": (0.5, 1.0, 0.5)}
    rates = {"type_2": 0.2, "low": 0.1, "high": 0.3, "raw": 0.4, "raw_low": 0.3, "raw_high": 0.5}
    columns |= {k: (v,) * 3 for k, v in rates.items()}
    settings = {"n": 200, "planted": 0.03, "by_variable": None, "runs": 20}
    return Curve(method="detect.kernel_tuning", columns=columns, settings=settings)


def test_the_width_of_a_kernel_is_no_gap():
    rows = rows_with(kernels().chart().to_dict(), "misses")
    assert [r["width"] for r in rows] == ["0.5", "1"]
    assert [r["x"] for r in rows] == [0.5, 1.0]
    assert rows[0]["misses"] == "20 in 100 (10 to 30)"


def test_large_numbers_on_an_axis_are_written_out():
    vlc = pytest.importorskip("vl_convert")
    incomes = factories.by_variable("income", xs=[20_000.0 + 7_000 * i for i in range(20)])
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", vlc.vegalite_to_svg(incomes.chart().to_json()))
    assert "120,000" in texts
    assert not [t for t in texts if "e+" in t]


def legends_of(chart):
    return [n["legend"] for n in nodes(chart) if n.get("legend") and "field" in n]


def test_the_legend_of_densities_stands_over_them_alone(drawn):
    gap, crowd = drawn["score"]["vconcat"]
    assert not [n for n in nodes(gap) if n.get("legend")]
    assert [n for n in nodes(crowd) if n.get("legend")]
    assert drawn["score"]["resolve"]["legend"]["color"] == "independent"
    vlc = pytest.importorskip("vl_convert")
    svg = vlc.vegalite_to_svg(CURVES["score"].chart().to_json())
    assert svg.index("observed minus predicted, points") < svg.index("non-events")  # it is drawn with the lower panel


def test_a_legend_of_lines_shows_strokes_and_one_of_bars_does_not(drawn):
    for name in ("score", "number", "date"):
        assert {legend.get("symbolType") for legend in legends_of(drawn[name])} == {"stroke"}
    bars = replace(factories.ranking(), settings={**factories.ranking().settings, "gap": 0.01, "alpha": 0.05})
    columns = {**bars.columns, "worst_gap": [0.02] * 3, "worst_rows": [100] * 3}
    legends = legends_of(replace(bars, columns=columns).chart().to_dict())
    assert legends
    assert not any("symbolType" in legend for legend in legends)


def test_lines_under_a_title_are_no_wider_than_the_picture():
    long = found(CURVES["control"], null="refit")
    lines = long.chart().to_dict()["title"]["subtitle"]
    assert max(map(len, lines)) <= (560 + 50) // 6
    assert len(lines) > 3


@pytest.mark.parametrize(("masked", "words"), [(1, "1 point not drawn"), (2, "2 points not drawn")])
def test_one_point_is_no_points(masked, words):
    text = " ".join(found(CURVES["number"], masked=masked).chart().to_dict()["title"]["subtitle"])
    assert words in text


def test_curves_without_a_picture_say_so():
    with pytest.raises(NotComputable, match="there is no picture of other, a table: use to_frame"):
        Curve(method="other", columns={}).chart()
    with pytest.raises(NotComputable, match="nothing to draw"):
        Curve(method="diagnose.importance", columns={"variable": ()}).chart()


WITHOUT = """
import sys
sys.modules["altair"] = None
from calibrant.results import Curve
curve = Curve(method="diagnose.importance", columns={"variable": ("a",)})
print(curve, "<td>a</td>" in curve._repr_html_())
try:
    curve.chart()
except ImportError as e:
    print(e)
"""


def test_without_the_extra_a_notebook_shows_rows_and_a_chart_says_how_to_get_it():
    reported = "Curve(method='diagnose.importance', 1 rows of variable)"
    done = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [f"{reported} True", 'a chart needs Altair: pip install "calibrant[charts]"']


def test_the_page_needs_no_altair():
    script = "import sys; sys.modules['altair'] = sys.modules['vl_convert'] = None; import calibrant.report.svg"
    subprocess.run([sys.executable, "-c", script], check=True)
