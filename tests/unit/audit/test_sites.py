"""The check of sites: where it speaks, what it tells of single units, and what the page says."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import calibrant as cal


def visits(sites: int = 30, rows: int = 60, spread: float = 0.5, seed: int = 3) -> dict[str, Any]:
    """Return visits of hospitals, two of each patient."""
    rng, n = np.random.default_rng(seed), sites * rows
    hospital = np.repeat(np.arange(sites), rows)
    p = np.round(rng.uniform(0.05, 0.6, n), 2)
    x = np.log(p / (1 - p)) + rng.normal(0.3, spread, sites)[hospital]
    y = (rng.random(n) < 1 / (1 + np.exp(-x))).astype(int)
    names = [f"Saint {i:02d}" for i in hospital]
    return {"y": y, "p": p, "hospital": names, "patient": [f"P{i // 2}" for i in range(n)]}


@cache
def audited(**of: Any) -> Any:
    asked = {"label": "y", "score": "p", "quick": True, "variables": ()}
    return cal.audit(visits(**of), cluster="hospital", **asked)


@pytest.mark.slow
def test_the_record_holds_what_heterogeneity_finds_of_the_units():
    data, found = visits(), audited().curve("sites")
    direct = cal.diagnose.heterogeneity(cal.predictions(data["y"], data["p"], cluster=data["hospital"]))
    for name in ("mean", "new_low", "new_high", "tau", "ratio", "ratio_new_high"):
        assert found.settings[name] == pytest.approx(direct.settings[name], abs=1e-6), name
    assert (found.settings["site"], found.settings["sites"], found.settings["unshown"]) == ("hospital", 30, 0)
    assert found.columns["rank"] == tuple(range(1, 31))


def test_single_units_stand_in_steps_outward_and_without_name_or_count():
    data, found = visits(), audited().curve("sites")
    direct = cal.diagnose.heterogeneity(cal.predictions(data["y"], data["p"], cluster=data["hospital"])).columns
    assert set(found.columns) == {"rank", "estimate", "low", "high"}
    for reported, exact, side in (("low", "low", -1), ("high", "high", 1)):
        off = side * (np.array(found.columns[reported]) - np.array(direct[exact]))
        assert (off >= -1e-6).all()
        assert (off <= 0.05 + 1e-6).all()
        assert np.allclose(np.array(found.columns[reported]) * 20, np.round(np.array(found.columns[reported]) * 20))
    assert "Saint" not in audited().to_json()


def test_units_with_fewer_rows_than_the_mask_count_and_are_not_shown():
    data = visits(sites=8)
    small = np.repeat(True, 480)
    small[60:100] = False  # one hospital keeps 20 rows, under a mask of 30
    data = {k: [v for v, kept in zip(column, small, strict=True) if kept] for k, column in data.items()}
    found = cal.audit(data, label="y", score="p", cluster="hospital", quick=True, variables=(), mask=30).curve("sites")
    assert (found.settings["sites"], found.settings["unshown"], len(found.columns["rank"])) == (8, 1, 7)


@pytest.mark.parametrize("cluster", [None, "patient"])
def test_nothing_is_said_without_units_that_are_sites(cluster):
    record = cal.audit(visits(), label="y", score="p", cluster=cluster, quick=True, variables=())
    assert not record.curve("sites").settings
    assert "sites" not in {c.code for c in record.checks}


def test_four_large_units_are_too_few():
    assert not audited(sites=4, rows=200).curve("sites").settings


def test_weights_are_no_part_of_it_and_the_check_says_so():
    data = visits() | {"w": np.linspace(0.5, 2.0, 1800)}
    record = cal.audit(data, label="y", score="p", cluster="hospital", weights="w", quick=True, variables=())
    check = next(c for c in record.checks if c.code == "sites")
    assert check.status == "not-applicable"
    assert "weights=" in check.reason


def test_scores_of_zero_are_moved_and_said():
    data = visits()
    data["p"][0] = 0.0
    record = cal.audit(data, label="y", score="p", cluster="hospital", quick=True, variables=())
    assert record.curve("sites").settings["clip"] == 1e-6


def page(record: Any, folder: Any) -> str:
    record.save(folder / "audit.html")
    record.save(folder / "audit.md")
    return str((folder / "audit.html").read_text())


def test_the_page_says_whether_sites_differ_and_draws_them(tmp_path):
    text, s = page(audited(), tmp_path), audited().curve("sites").settings
    assert s["p_value"] < 0.01
    assert "Does it hold in every cluster?" in text
    assert "Clusters differ beyond chance" in text
    assert f"{s['ratio_new_low']:.2f} to {s['ratio_new_high']:.2f} times as many" in text
    drawn = text[text.index('class="t" width="100%"') :]
    assert drawn[: drawn.index("</svg>")].count('class="dot"') == 30
    assert "Does it hold in every cluster?" in (tmp_path / "audit.md").read_text()


@pytest.mark.slow
def test_equal_sites_do_not_differ_and_pages_without_sites_have_no_section(tmp_path):
    assert "No difference between clusters is shown beyond chance" in page(audited(spread=0.0), tmp_path)
    assert "Does it hold in every cluster?" not in page(audited(sites=4, rows=200), tmp_path)


@pytest.mark.slow
def test_rows_of_patients_within_hospitals_are_said_to_count_as_independent(tmp_path):
    record = cal.audit(visits(), label="y", score="p", cluster=["patient", "hospital"], quick=True, variables=())
    page(record, tmp_path)
    assert "count as independent here" in (tmp_path / "audit.md").read_text()


@pytest.mark.slow
def test_many_sites_are_drawn_evenly_spaced():
    found = audited(sites=130, rows=20).curve("sites")
    assert found.columns["rank"] == tuple(range(1, 131, 3))
