"""Decision and acceptance curves as interactive charts, and as a page by themselves."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import calibrant as cal
from calibrant.cli import main
from calibrant.report.outputs.notebook import drawings
from calibrant.results import Curve


def made() -> cal.Predictions:
    rng = np.random.default_rng(0)
    p = rng.beta(1, 3, 4000)
    return cal.predictions(rng.uniform(size=4000) < p, p, {"sex": np.array(["f", "m"])[rng.integers(0, 2, 4000)]})


def curves(by: str | None) -> list[Curve]:
    return [
        cal.diagnose.decision_curve(made(), by=by),
        cal.diagnose.acceptance_curve(made(), risk=0.1, end="low", by=by),
    ]


@pytest.mark.parametrize(("by", "panels"), [(None, 1), ("sex", 2)])
def test_charts_hold_every_point(by: str | None, panels: int) -> None:
    pytest.importorskip("altair")
    for curve, lines in zip(curves(by), (3, 3), strict=True):
        spec = curve.chart().to_dict()
        values = [r for rows in spec["datasets"].values() for r in rows if "group" in r]
        assert len(values) == len(curve.columns["group"])
        assert len({v["group"] for v in values}) == panels
        assert re.fullmatch(r"\d+%|score <= 0\.\d+", values[0]["at"])
        drawn = spec.get("concat", [spec])
        assert len(drawn) == panels
        for panel in drawn:
            assert len([m for m in panel["layer"] if m["mark"]["type"] in ("line", "rule")]) == lines


@pytest.mark.parametrize(("by", "panels"), [(None, 1), ("sex", 2)])
def test_a_page_draws_each_group_and_has_its_numbers(by: str | None, panels: int) -> None:
    for curve in curves(by):
        found = drawings(curve)
        assert len(found) == panels
        for one in found:
            assert one.panels[0].picture.startswith("<svg")
            assert one.panels[0].picture.count('class="curve"') == 1
            assert 10 < len(one.rows) <= 50
            assert one.folded


def test_the_commands_write_pages(tmp_path: Path) -> None:
    data, path = made(), tmp_path / "log.csv"
    path.write_text("y,p\n" + "".join(f"{int(y)},{p}\n" for y, p in zip(data.y, data.p, strict=True)))
    named = [str(path), "--label", "y", "--score", "p", "--out"]
    assert main(["diagnose", "decision_curve", *named, str(tmp_path / "a.html")]) == 0
    assert main(["accept", *named, str(tmp_path / "b.html"), "--risk", "0.1", "--end", "low"]) == 0
    assert "Net benefit per 100" in (tmp_path / "a.html").read_text()
    assert "share accepted" in (tmp_path / "b.html").read_text()
