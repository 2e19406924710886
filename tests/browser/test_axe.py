"""Every kind of page under axe-core, at two widths, light and dark; nothing scrolls sideways, nothing is logged.

CI sees a page once, every second one wide and light, the others narrow and dark; the night sees each in all four views.
"""

from __future__ import annotations

import functools
import itertools
import json
import subprocess
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import calibrant as cal
import factories
from calibrant.audit.record import AuditRecord
from calibrant.report.html import render
from calibrant.report.outputs.monitored import content

pytestmark = pytest.mark.xdist_group("browser")  # one process renders the pages, once
SCRIPT = Path(__file__).with_name("axe.cjs")
ALL = [f"{width} {scheme}" for width in (1280, 390) for scheme in ("light", "dark")]
Faults = Callable[[str, str], list[str]]  # of a page, in a view


def real(n: int, **audit: Any) -> AuditRecord:
    """Return the audit of `n` simulated rows."""
    rng = np.random.default_rng(n)
    p = rng.uniform(size=n)
    return cal.audit(
        cal.predictions(rng.uniform(size=n) < p, p, {"g": np.array(["a", "b"])[np.arange(n) % 2]}), **audit
    )


def one_class() -> AuditRecord:
    return cal.audit(cal.predictions(np.ones(500), np.linspace(0.1, 0.9, 500), {"g": ["a", "b"] * 250}), by="g")


def long_names() -> AuditRecord:
    names = [("w" * 150, "long " * 60), ("v", "x" * 300)]
    return factories.record(groups=[factories.finding(0.02, 0.04, variables=[pair]) for pair in names])


PAGES: dict[str, Callable[[], AuditRecord]] = {
    "employment": factories.employment,
    "hostile": factories.hostile,
    "long": long_names,
    "many": factories.many,
    "measures": lambda: factories.record(measured=factories.measures()),
    "nolimit": lambda: factories.employment(limit=None),
    "oneclass": one_class,
    "subgroups": lambda: factories.scanned(factories.hidden()),
    "subgroups nolimit": lambda: factories.scanned(factories.employment(limit=None)),
    "subgroups hostile": factories.hostile_subgroups,
    "rare": factories.rare,
    "three": lambda: real(3, limit=0.05),
    "thousands": lambda: real(4000, by="g", limit=0.05),
    "tiny": factories.tiny,
    "undecided": lambda: factories.mixture("undecided", ["undecided", "within", "over"]),
    "unshown": factories.unshown,
    "variables": factories.variables,
    "whole": factories.whole,
}


def monitored(language: str) -> str:
    """Return the page of a monitor with an alarm, and with a share that drifts, and back."""

    def rows(seed: int, n: int, a: float = 0.2, off: float = 0.0) -> cal.Predictions:
        rng = np.random.default_rng(seed)
        p, ward = rng.uniform(0.1, 0.8, n), rng.choice(["a", "b", "c"], n, p=[a, 0.5, 0.5 - a])
        return cal.predictions(rng.uniform(size=n) < p + off * (ward == "b"), p, {"ward": ward})

    watch = cal.Monitor(rows(99, 3000), label="y", score="p", by="ward", limit=0.1)
    for day in range(1, 15):
        watch.update(rows(day, 600, 0.4 if 4 < day < 10 else 0.2, 0.2 * (day > 7)), at=f"2026-01-{day:02}")
    return content(watch, "page.html", (), language)


MONITORS = {"monitor": "en", "monitor german": "de"}


def axe(browser: str, modules: Path, views: str, pages: Sequence[Path | str]) -> dict[str, list[str]]:
    """Return the faults of each page in each view."""
    command = ["node", str(SCRIPT), str(modules), browser, views, *map(str, pages)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False, encoding="utf-8")
    assert done.returncode == 0, done.stderr[-2000:]
    return dict(json.loads(done.stdout))


def usual(pages: Collection[str]) -> dict[str, str]:
    """Return in which view CI looks at each page."""
    return dict(zip(pages, itertools.cycle(("1280 light", "390 dark")), strict=False))


def looks(pages: Collection[str]) -> Iterator[Any]:
    """Yield every page in every view; those that are not the usual ones wait for the night."""
    for (page, seen), view in itertools.product(usual(pages).items(), ALL):
        yield pytest.param(page, view, marks=[] if view == seen else [pytest.mark.nightly])


def looking(browser: str, modules: Path, files: Mapping[str, Path | str]) -> Faults:
    """Return what finds the faults of a page in a view: all pages that are usual in it, or all others, at once."""

    @functools.cache
    def at_once(view: str, often: bool) -> dict[str, list[str]]:
        return axe(browser, modules, view, [files[p] for p, seen in usual(files).items() if (seen == view) == often])

    return lambda page, view: at_once(view, usual(files)[page] == view)[f"{page} {view}"]


@pytest.fixture(scope="module")
def faults(browser: str, modules: Path, tmp_path_factory: pytest.TempPathFactory) -> Faults:
    folder = tmp_path_factory.mktemp("axe")
    files = {name: folder / f"{name}.html" for name in (*PAGES, *MONITORS)}
    for name, make in PAGES.items():
        files[name].write_text(render(make()), encoding="utf-8")
    for name, language in MONITORS.items():
        files[name].write_text(monitored(language), encoding="utf-8")
    return looking(browser, modules, files)


@pytest.mark.parametrize(("page", "view"), [*looks([*PAGES, *MONITORS])])
def test_page_is_clean(faults: Faults, page: str, view: str) -> None:
    assert faults(page, view) == []


def test_axe_would_notice(browser, modules, tmp_path):
    page = render(factories.tiny()).replace('<html lang="en">', "<html>").replace("</h1>", '</h1><img src="x">')
    (tmp_path / "spoilt.html").write_text(page, encoding="utf-8")
    found = axe(browser, modules, ",".join(ALL), [tmp_path / "spoilt.html"])
    assert found.keys() == {f"spoilt {view}" for view in ALL}
    assert all(any(f.startswith("html-has-lang") for f in stated) for stated in found.values())
    assert all(any(f.startswith("image-alt") for f in stated) for stated in found.values())


def test_a_page_of_two_thousand_groups_is_written_in_seconds():
    record = factories.many()
    render(factories.record())  # starts the drawing library
    start = time.process_time()
    page = render(record)
    assert time.process_time() - start < 9
    assert "The first 500 of 2,000 groups, the most evident first." in page
    assert page.count("<tr id=") == 500
