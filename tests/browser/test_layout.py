"""Nothing is cut off from 360 to 1920 pixels, tables filter and sort, and every download is a file that can be used."""

from __future__ import annotations

import csv
import io
import json
import re
import subprocess
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

import factories
from calibrant.report.html import render

pytestmark = pytest.mark.xdist_group("browser")
HERE = Path(__file__).parent
WIDTHS = (360, 390, 768, 1280, 1920)
PAGES = {
    "hidden": lambda: factories.scanned(factories.hidden()),
    "hostile": factories.hostile_subgroups,
    "long": lambda: factories.record(
        groups=[factories.finding(0.02, 0.04, variables=[(c * 150, "long " * 60)]) for c in "wv"]
    ),
    "nolimit": lambda: factories.employment(limit=None),
    "rare": factories.rare,
    "repaired": factories.repaired,
    "variables": factories.variables,
}


def node(script: str, *arguments: object) -> dict[str, Any]:
    command = ["node", str(HERE / script), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False, encoding="utf-8")
    assert done.returncode == 0, done.stderr[-2000:]
    return dict(json.loads(done.stdout))


@pytest.fixture(scope="module")
def faults(browser: str, modules: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    folder = tmp_path_factory.mktemp("layout")
    for name, make in PAGES.items():
        (folder / f"{name}.html").write_text(render(make()), encoding="utf-8")
    return node("layout.cjs", modules, browser, *(folder / f"{name}.html" for name in PAGES))


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", PAGES)
def test_nothing_is_cut_off(faults, name, width):
    assert faults[f"{name} {width}"] == []


def test_the_layout_test_would_notice(browser, modules, tmp_path):
    page = render(factories.tiny())
    wide = (
        page.replace("</h1>", f"</h1><pre>{'w' * 300}</pre>").replace("pre-wrap", "pre").replace("anywhere", "normal")
    )
    (tmp_path / "spoilt.html").write_text(re.sub(r'<meta http-equiv="Content-Security.*?>', "", wide), encoding="utf-8")
    found = node("layout.cjs", modules, browser, tmp_path / "spoilt.html")
    assert all(any(f.startswith(("cut", "off the page", "sideways")) for f in stated) for stated in found.values())


@pytest.fixture(scope="module")
def used(browser: str, modules: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], Path]:
    folder = tmp_path_factory.mktemp("downloads")
    groups = [
        factories.finding(0.001 * i, 0.02 + 0.001 * i, variables=[("g", name)])
        for i, name in enumerate(['=1+1,"x"', "@SUM(A1)", "plain, with a comma", *(f"v{i}" for i in range(9))])
    ]
    levels = factories.by_variable("odd", labels=("=1+1", "@SUM(A1)", 'a, "b"'), gaps=(0.03, 0.02, 0.01))
    record = factories.drawn(factories.record(groups=groups), **dict(factories.scanned(factories.hidden()).curves))
    page = folder / "page.html"
    page.write_text(render(factories.drawn(record, **{"variable_curve/odd": levels})), encoding="utf-8")
    return node("downloads.cjs", modules, browser, folder, page), folder


def test_downloads_ask_for_nothing_and_log_nothing(used):
    reported, _ = used
    assert reported["said"] == []
    assert [url for url in reported["asked"] if not url.startswith(("file:", "data:", "blob:"))] == []


def test_every_chart_comes_as_svg_and_png_with_its_title(used):
    reported, folder = used
    names = [f["name"].partition("-")[2] for f in reported["files"]]
    for chart in ("fig-reliability", "groups-all", "curve-age-013f54"):
        assert {f"employment_ma-{chart}.{kind}" for kind in ("svg", "png", "csv")} <= set(names)
    for f in reported["files"]:
        content = (folder / f["name"]).read_bytes()
        if f["name"].endswith(".png"):
            assert content.startswith(b"\x89PNG")
            assert len(content) > 3_000
        if f["name"].endswith(".svg"):
            root = ET.fromstring(content)  # noqa: S314
            assert float(root.get("width")) > 300
            texts = "".join(root.itertext())
            assert "var(--" not in content.decode()
            assert "class=" not in content.decode().replace('class="cursor"', "")
            if "curve-age" in f["name"]:
                assert "underpredicts for" in texts
                assert "everyone" in texts


def test_tables_come_as_csv_that_no_spreadsheet_runs(used):
    reported, folder = used
    name = next(f["name"] for f in reported["files"] if f["name"].endswith("groups-all.csv"))
    text = (folder / name).read_bytes().decode("utf-8-sig")
    rows = list(csv.reader(io.StringIO(text, newline="")))
    assert rows[0][:2] == ["Group", "Rows"]
    assert rows[0][-4:-2] == ["Calibration error, points: low", "Calibration error, points: high"]
    assert len(rows) == 1 + 12  # also those that the page shows on demand
    assert len({len(row) for row in rows}) == 1
    assert {row[0] for row in rows[1:]} >= {'g = =1+1,"x"', "g = plain, with a comma", "g = v8"}
    for row in rows[1:]:
        assert not any(cell.startswith(("=", "@", "+", "\t")) for cell in row)
        assert all(re.fullmatch(r"-?[\d.]+", cell) for cell in row[1:7] if cell)
    name = next(f["name"] for f in reported["files"] if "curve-odd" in f["name"] and f["name"].endswith(".csv"))
    raw = (folder / name).read_bytes().decode("utf-8-sig")
    assert raw.count("\r\n") == raw.count("\n") == 1 + 3
    assert {row[0] for row in csv.reader(io.StringIO(raw, newline=""))} == {"Level", "'=1+1", "'@SUM(A1)", 'a, "b"'}


def test_every_table_filters_and_sorts_by_what_its_head_shows(used):
    reported, _ = used
    assert len(reported["tables"]) > 8
    for table in reported["tables"]:
        assert table["none"] == 0
        assert table["some"] > 0
        if table["rows"] > 1:
            assert table["buttons"] >= table["heads"] - 1  # a column of small curves has no order
            assert set(table["sorted"]) <= {"ascending", "descending"}
            assert any("▲" in a or "▼" in a for a in table["arrow"])
            assert all("↕" in a for a in table["arrow"][:-1])
