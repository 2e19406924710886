from __future__ import annotations

import re

import pytest

import factories
from calibrant.report import charts
from calibrant.report.html import asset
from calibrant.results import Curve

TEXT = [
    ("ink", "bg"),
    ("ink", "panel"),
    ("ink2", "bg"),
    ("ink2", "panel"),
    ("met", "bg"),
    ("met", "met-bg"),
    ("und", "bg"),
    ("und", "und-bg"),
    ("bro", "bg"),
    ("bro", "bro-bg"),
    ("bro", "panel"),
]
SHAPES = [("line", "bg"), ("met", "panel"), ("und", "panel"), ("bro", "panel"), ("focus", "bg")]


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


@pytest.mark.parametrize("theme", ["light", "dark", "print"])
def test_contrast(theme):
    colours = themes()[theme]
    for a, b in TEXT:
        assert contrast(colours[a], colours[b]) >= 4.5, (a, b)
    for a, b in SHAPES:
        assert contrast(colours[a], colours[b]) >= 3, (a, b)


def test_every_variable_used_is_defined():
    style = asset("style.css")
    used = set(re.findall(r"var\(--([\w-]+)\)", style + " ".join(charts.SENTINELS.values())))
    assert used <= set(themes()["light"])


@pytest.mark.parametrize("frame", [charts.WIDE, charts.NARROW])
def test_the_figure_follows_the_colours_of_the_page_and_is_the_same_every_time(frame):
    curve = factories.reliability()
    drawn = charts.gaps(curve, 0.015, frame)
    assert drawn == charts.gaps(curve, 0.015, frame)
    assert not re.search("#[0-9a-f]{3}", drawn)
    assert not re.search(r"\b(id|style|href|class|on\w+)=", drawn)
    assert {"var(--line)", "var(--okzone)", "var(--bar)"} <= set(re.findall(r"var\(--\w+\)", drawn))
    assert "var(--okzone)" not in charts.gaps(curve, None, frame)


def test_group_ten_does_not_precede_group_two():
    drawn = charts.classic(factories.reliability(bins=12))
    dots = [float(x) for x in re.findall(r'<path transform="translate\(([\d.]+),', drawn)]
    assert len(dots) == 12
    assert dots == sorted(dots)


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
    drawn = charts.gaps(Curve(method="m", columns=columns), 0.5)
    numbers = [abs(float(x)) for x in re.findall(r"-?\d+(?:\.\d+)?", drawn)]
    assert max(numbers) < 600
