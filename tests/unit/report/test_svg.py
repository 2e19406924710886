"""The pictures: colours come from the style sheet, shapes stay inside, the same record draws the same bytes."""

from __future__ import annotations

import re

import pytest

import factories
from calibrant.report import places, svg
from calibrant.report.brief.forest import SPOTS, Scale, estimated, foot, head
from calibrant.report.by_variable import bins_of, by_variable_of, score_view
from calibrant.report.html import asset
from calibrant.results import Curve

TEXT = [
    ("ink", "bg"),
    ("ink", "panel"),
    ("ink2", "bg"),
    ("ink2", "panel"),
    ("within", "bg"),
    ("within", "within-bg"),
    ("und", "bg"),
    ("und", "und-bg"),
    ("bro", "bg"),
    ("bro", "bro-bg"),
    ("bro", "panel"),
]
SHAPES = [("line", "bg"), ("within", "panel"), ("und", "panel"), ("bro", "panel"), ("focus", "bg")]


def themes() -> dict[str, dict[str, str]]:
    blocks = re.findall(r":root \{(.*?)\}", asset("style.css"), re.S)
    light, dark, _, printed = [dict(re.findall(r"--([\w-]+): (#[0-9a-f]{3,8});", b)) for b in blocks]
    return {"light": light, "dark": dark, "print": {**light, **printed}}


def luminance(colour: str) -> float:
    digits = colour[1:] if len(colour) > 4 else "".join(c * 2 for c in colour[1:])
    parts = [int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(a: str, b: str) -> float:
    low, high = sorted((luminance(a), luminance(b)))
    return (high + 0.05) / (low + 0.05)


def numbers(plot: svg.Plot) -> list[float]:
    """Return every place of the shapes, where steps are added up."""
    out: list[float] = []
    for _, d in plot.shapes:
        x = y = 0.0
        for command, given in re.findall(r"([MmLlHhVvz])([\d\s.\-]*)", d):
            values = [float(v) for v in re.findall(r"-?\d+(?:\.\d+)?", given)]
            if command in "Hh":
                for v in values:
                    x = v if command == "H" else x + v
                    out.append(x)
            elif command in "Vv":
                for v in values:
                    y = v if command == "V" else y + v
                    out.append(y)
            else:
                for a, b in zip(values[::2], values[1::2], strict=True):
                    x, y = (a, b) if command in "ML" else (x + a, y + b)
                    out += [x, y]
    return out


@pytest.mark.parametrize("theme", ["light", "dark", "print"])
def test_contrast(theme):
    colours = themes()[theme]
    for a, b in TEXT:
        assert contrast(colours[a], colours[b]) >= 4.5, (a, b)
    for a, b in SHAPES:
        assert contrast(colours[a], colours[b]) >= 3, (a, b)


def test_every_variable_used_is_defined():
    used = set(re.findall(r"var\(--([\w-]+)\)", asset("style.css") + "".join(svg.ICONS.values())))
    assert used <= set(themes()["light"])


SCALE = Scale(-4.0, 4.0, (-4.0, -2.0, 0.0, 2.0, 4.0))
HEAT = svg.Heat(
    ("a", "b", "c"), ("d", "e"), ((0, 0, 1.0, "+7"), (1, 0, 0.1, "0"), (2, 1, -0.6, "\u22124")), ((1, 3, 0, 1),)
)


def test_a_map_has_colours_words_labels_and_an_outline():
    drawn = svg.heat(HEAT, "Map of the gap.")
    assert re.findall(r'<path class="(\S+)" d="(\S+ ?\S*)"', drawn) == [
        ("l2", "M2 0h1v1h-1z"),
        ("u4", "M0 1h1v1h-1z"),
        ("z", "M1 1h1v1h-1z"),
        ("frame-edge", "M1 1h2v1h-2z"),
        ("frame", "M1 1h2v1h-2z"),
    ]
    assert re.findall(r'class="in"[^>]*>([^<]*)<', drawn) == ["+7", "0", "\u22124"]
    assert drawn.count("<text") == 3 + 3 + 2
    assert "rotate" not in drawn
    wide = svg.heat(svg.Heat(tuple("abcdefghijklm"), ("d",), ((0, 0, 1.0, "+7"),), ()), "label")
    assert 'class="in"' not in wide
    assert wide.count("rotate(-90)") == 13
    assert [svg.shade(v) for v in (0.0, 0.12, 0.13, -0.5, -1.0)] == ["z", "z", "u1", "l2", "l4"]


@pytest.mark.parametrize("theme", ["light", "dark", "print"])
def test_words_in_the_cells_of_a_map_can_be_read(theme):
    colours, shades = themes()[theme], re.findall(r"\.u(\d), \.l\d \{ fill-opacity: (\S+); \}", asset("style.css"))
    assert [step for step, _ in shades] == ["2", "3", "4"]
    for name in ("over", "under"):
        ends = ["".join(c * 2 for c in v[1:]) if len(v) == 4 else v[1:] for v in (colours[name], colours["bg"])]
        for _, share in shades:
            blend = [
                float(share) * int(ends[0][i : i + 2], 16) + (1 - float(share)) * int(ends[1][i : i + 2], 16)
                for i in (0, 2, 4)
            ]
            cell = "#" + "".join(f"{round(v):02x}" for v in blend)
            assert contrast(cell, colours["ink"]) >= 4.5, (name, share)
    assert contrast(colours["over"], colours["bg"]) >= 3
    assert contrast(colours["under"], colours["bg"]) >= 3


def drawn() -> list[str]:
    """Return one picture of every kind."""
    record = factories.variables()
    bins = bins_of(record.curve("bins"))
    score = score_view(bins, record.curve("reliability"))
    age = by_variable_of("age", record.family("variable_curve")["age"])
    sex = by_variable_of("sex", record.family("variable_curve")["sex"])
    plots = (
        svg.cross(bins, score.across, ("slope 1.02", "C 0.90")),
        svg.gaps(score, 0.015, 4.0),
        svg.gaps(age, 0.015, 4.0),
        svg.rates(age),
    )
    control = svg.control(factories.control_chart(), "crossed", "peak")
    assert control is not None
    return [
        *(svg.plot(p, "label", 0, 100) for p in (*plots, control)),
        *(svg.spark(a, 4.0) for a in (age, sex)),
        svg.track(0.01, 0.03, 4.0, "over", "1.0 to 3.0", 0.02),
        svg.level(sex.levels[0], 4.0, 0.015),
        svg.signed_track(0.01, 0.02, 0.03, 4.0, 0.015, "over"),
        svg.heat(HEAT, "label"),
        head(SCALE, "limit ±2"),
        foot(SCALE),
        *(estimated(SCALE, 0.01, (0.0, 0.02), (-0.2, 0.2), 0.02, s) for s in SPOTS),
        svg.dots((("ic1", 6, 6), ("ic2", 20, 6), ("ic0", 34, 6)), 40, 20, "label"),
        *(svg.icon(s) for s in svg.ICONS),
        *(svg.swatch(s) for s in svg.SWATCHES),
    ]


def test_pictures_take_their_colours_from_the_page_and_are_the_same_every_time():
    known = set(re.findall(r"\.([a-z][\w-]*)", re.sub(r"\{[^}]*\}", "{}", asset("style.css"))))
    for markup, again in zip(drawn(), drawn(), strict=True):
        assert markup == again
        assert not re.search("#[0-9a-f]{3}", markup)
        assert not re.search(r'\b(id|style|href|on\w+)="', markup)
        for classes in re.findall(r'class="([^"]*)"', markup):
            assert set(classes.split()) & known or classes in {"", "mark t-ink"}, classes


def test_a_picture_of_gaps_has_its_zone_its_strip_its_band_and_its_line():
    record = factories.record()
    score = score_view(bins_of(record.curve("bins")), record.curve("reliability"))
    kinds = [kind for kind, _ in svg.gaps(score, 0.015, 4.0).shapes]
    assert kinds == ["okzone", "hist", "band", "zero", "curve"]
    assert [kind for kind, _ in svg.gaps(score, None, 4.0).shapes] == kinds[1:]


def test_holes_break_the_line_and_a_lone_point_is_a_dot_with_its_range():
    curve = factories.by_variable(xs=[1.0, 2.0, 3.0, 9.0], gaps=[0.01] * 4)
    columns = {**curve.columns, "stretch": [0, 0, 0, 1]}
    by_variable = by_variable_of("x", Curve(method="m", columns=columns, settings=curve.settings))
    shapes = svg.gaps(by_variable, 0.015, 4.0).shapes
    assert [kind for kind, _ in shapes] == ["okzone", "hist", "band", "whisker", "zero", "overall", "curve", "lone"]
    for _, d in shapes:
        assert re.fullmatch(r"[Mm][\d\s.\-MVHhlvz]+", d)


def test_bins_without_a_curve_are_dots_with_ranges():
    bins = bins_of(factories.reliability(bins=12))
    by_variable = score_view(bins, Curve(method="", columns={}))
    kinds = [kind for kind, _ in svg.gaps(by_variable, None, by_variable.top(None)).shapes]
    assert kinds == ["hist", *["whisker"] * 12, "zero", *["lone"] * 12]


def test_group_ten_does_not_precede_group_two():
    plot = svg.cross(bins_of(factories.reliability(bins=12)), places.WHOLE)
    dots = [float(x[:-1]) for x, _, _ in plot.rings]
    assert len(dots) == 12
    assert dots == sorted(dots)


def test_the_area_of_a_dot_is_people():
    plot = svg.cross(bins_of(factories.reliability()), places.WHOLE)
    rows = factories.reliability().columns["rows"]
    least, most = svg.DOT_AREAS
    for (_, _, radius), n in zip(plot.rings, rows, strict=True):
        assert 3.14159 * radius**2 == pytest.approx(least + (most - least) * n / max(rows), rel=0.02)


def test_wild_and_empty_bins_stay_inside_the_picture():
    columns = {
        "x": [0.2, 0.9],
        "x_low": [0.2, 0.4],
        "x_high": [0.2, 1.0],
        "predicted": [0.2, 0.9],
        "observed": [1.0, 0.0],
        "gap": [0.8, -0.9],
        "low": [-1.0, -1.0],
        "high": [1.0, 1.0],
        "rows": [1, 10**7],
    }
    by_variable = score_view(bins_of(Curve(method="m", columns=columns)), Curve(method="", columns={}))
    for limit, top in ((0.5, by_variable.top(0.5)), (0.5, 4.0)):
        found = numbers(svg.gaps(by_variable, limit, top))
        assert min(found) >= 0
        assert max(found) <= svg.SIZE


@pytest.mark.parametrize("top", places.STEPS)
def test_labels_of_the_axis_of_gaps_are_true(top):
    by_variable = by_variable_of("x", factories.by_variable(xs=[1.0, 2.0, 3.0], gaps=[0.0] * 3))
    plot = svg.gaps(by_variable, None, float(top))
    labels = {text.replace("\u2212", "-") for _, text in plot.up}
    assert {f"+{top:g}", f"+{top / 2:g}", "0", f"-{top / 2:g}", f"-{top:g}"} == labels


@pytest.mark.parametrize("peak", [0.02, 0.5, 0.98])
@pytest.mark.parametrize(("top", "line"), [(4.2, 2.4), (1.1, 2.4), (0.02, 0.01), (900.0, 3.0), (2.5, None)])
def test_the_control_chart_stays_inside_its_picture(peak, top, line):
    plot = svg.control(factories.control_chart(peak, top, line), "line crossed", "peak of people")
    assert plot is not None
    assert all(-1 <= v <= svg.SIZE + 1 for v in numbers(plot))
    assert all(0 <= float(at[:-1]) <= 100 for at, _ in plot.up)
    assert 2 <= len(plot.up) <= 8
    assert "peak of people" in {m.text for m in plot.marks}
    assert ("limit" in {kind for kind, _ in plot.shapes}) is (line is not None)


@pytest.mark.parametrize(("top", "stated", "above"), [(4.2, 2, False), (2.3, 1, True), (2.5, 1, False)])
def test_the_words_of_peak_and_line_do_not_cross(top, stated, above):
    plot = svg.control(factories.control_chart(0.1, top), "line crossed", "peak")
    assert plot is not None
    assert len(plot.marks) == stated
    assert (plot.marks[-1].dy < -9) is above


def test_text_in_a_picture_is_escaped():
    plot = svg.Plot((("0%", "<b>"),), (("0%", "&"),), (), marks=(svg.Mark("0", "0", 0, "start", "", "<i>"),))
    markup = svg.plot(plot, 'a "quoted" <label>', 0, 1)
    assert "<b>" not in markup
    assert "<i>" not in markup
    assert "&amp;" in markup
    assert 'aria-label="a &quot;quoted&quot; &lt;label&gt;"' in markup


def test_a_track_ends_where_its_axis_ends():
    inside, beyond = (svg.track(0.01, high, 4.0, "within", "", 0.02) for high in (0.03, 0.5))
    assert 'x="25%" width="50%"' in inside
    assert 'class="lim" x1="50%" x2="50%"' in inside
    assert 'x="25%" width="75%"' in beyond
    assert ["<path" in drawn for drawn in (inside, beyond)] == [False, True]
    thin = svg.track(0.02, 0.02, 4.0, "within", "")
    assert float(re.findall(r'width="([^%]*)%"', thin)[0]) == pytest.approx(100 * places.THINNEST)
