"""A level of fewer people than may be shown is named nowhere, and `mask` says how few that is."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import calibrant as cal
from calibrant.audit.pooling import group_name, pool_name
from calibrant.cli.run import main
from calibrant.report import html, markdown, terminal


def rare(quick: bool = False, n: int = 1500, **settings: object) -> cal.AuditRecord:
    """Columns with levels of 1 to 19 people, whose names say who they are."""
    rng = np.random.default_rng(8)
    p = rng.uniform(0.2, 0.8, n)
    job = rng.choice(["nurse", "teacher", "clerk"], n).astype(object)
    job[:19], job[19:22], job[22:25] = "SECRET-bishop", [f"SECRET-{i}" for i in range(3)], "SECRET-diver"
    town = rng.choice(["Bern", "Chur"], n).astype(object)
    town[30:41] = "SECRET-Zug"
    y = rng.random(n) < np.where(job == "nurse", p - 0.15, p + 0.05)
    data = cal.predictions(y, p, {"job": job, "town": town, "age": rng.integers(20, 90, n)})
    return cal.audit(data, by=["job", "town"], intersections=True, limit=0.05, quick=quick, **settings)


@pytest.mark.slow
@pytest.mark.parametrize("quick", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_no_level_of_few_people_is_named_anywhere(quick: bool) -> None:
    record = rare(quick)
    for text in (record.to_json(), html.render(record), markdown.render(record), terminal.render(record)):
        assert "SECRET" not in text
    assert "levels pooled" in record.to_json() or " more" in record.to_json()


def test_pools_are_named_by_members_of_people_enough() -> None:
    assert pool_name(["a", "b"], [50, 60], 20) == "a + b"
    assert pool_name(["a", "b", "c", "d"], [50, 60, 70, 80], 20) == "a + b + 2 more"
    assert pool_name(["a", "b"], [50, 3], 20) == "a + 1 more"
    assert pool_name(["a", "b", "c"], [4, 3, 19], 20) == "3 levels pooled"
    assert pool_name(["a", "b", "c"], [4, 3, 19], 5) == "c + 2 more"
    people = {(("v", "a"),): 9, (("v", "b"),): 40, (("v", "a"), ("w", "c")): 9, (("v", "b"), ("w", "d")): 21}
    cells = [(("v", "a"), ("w", "c")), (("v", "b"), ("w", "d"))]
    assert group_name(cells, people, 20) == (("v and w", "b and d + 1 more"),)
    assert group_name(cells[:1], people, 20) == cells[0]


def test_a_value_that_reads_like_a_pool_is_not_taken_for_it() -> None:
    from calibrant.audit.pooling import pooled_rows

    level = np.repeat(["2 levels pooled", "a", "b"], [50, 12, 13])
    rows = pooled_rows(cal.predictions(np.arange(75) % 2, np.full(75, 0.5), {"v": level}), 20)
    column = rows.covariates.column("v").combine_chunks().cast("string").to_pylist()  # type: ignore[union-attr]
    assert {v: column.count(v) for v in column} == {"2 levels pooled": 50, "2 levels pooled (pooled)": 25}


def clusters_of_many_rows() -> cal.Predictions:
    """300 clusters of 22 rows, of which three are a site of their own."""
    rng, cluster = np.random.default_rng(3), np.repeat(np.arange(300), 22)
    site = np.where(cluster < 3, "tiny", np.where(cluster < 100, "a", np.where(cluster < 200, "b", "c")))
    p = rng.uniform(0.1, 0.9, len(cluster))
    return cal.predictions(rng.random(len(cluster)) < p**1.5, p, {"site": site}, cluster=cluster)


@pytest.mark.slow
def test_a_level_of_few_clusters_is_pooled_however_many_rows_it_has() -> None:
    from calibrant.audit.pooling import pooled_rows, unshown_levels
    from calibrant.repair.judge.evidence import groups_of

    data = clusters_of_many_rows()
    assert set(unshown_levels(data, "site", 20) or ()) == {"tiny", "a"}
    column = pooled_rows(data, 20).covariates.column("site").combine_chunks()  # type: ignore[union-attr]
    assert set(column.cast("string").to_pylist()) == {"a + 1 more", "b", "c"}
    assert [one.value for one in groups_of(data, ["site"], {}, 20, 0).people] == ["a", "b", "c"]


@pytest.mark.slow
def test_a_group_of_few_clusters_is_named_nowhere() -> None:
    record = cal.audit(clusters_of_many_rows(), by="site", variables="site", limit=0.02)
    assert "tiny" not in record.to_json()
    shown = {None, *(f"{v} = {level}" for g in record.groups for v, level in g.variables)}
    for column in ("largest_rise_group", "largest_gap_group"):
        assert set(record.curve("repairs").columns[column]) <= shown


@pytest.mark.slow
def test_the_mask_is_the_callers_and_the_record_remembers_it() -> None:
    assert "SECRET-bishop" in rare(True, mask=10).to_json()
    assert "SECRET-bishop" not in rare(True, mask=20).to_json()
    wide = rare(True, mask=400)
    assert wide.settings["mask"] == 400
    assert min(g.rows for g in wide.groups) >= 395
    assert min(wide.curve("bins").columns["rows"]) >= 395
    assert "fewer than 400" in html.render(rare(True, mask=400, n=500)) or "under 400" in html.render(wide)


@pytest.mark.slow
def test_a_mask_that_protects_nobody_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = cal.predictions([0, 1], [0.5, 0.5])
    for wrong in (4, 0, -1, 2.5, True, "20"):
        with pytest.raises(cal.BadInput, match="mask"):
            cal.audit(data, mask=wrong)
    file = tmp_path / "d.csv"
    file.write_text("y,p,g\n" + "".join(f"{i % 2},0.5,{'a' if i % 10 else 'b'}\n" for i in range(100)))
    asked = ["audit", str(file), "--label", "y", "--score", "p", "--by", "g", "--quick", "--json"]
    assert main([*asked, "--mask", "4"]) == 2
    assert "--mask" in capsys.readouterr().err
    assert main([*asked, "--mask", "8"]) == 0
    assert {g["variables"][0][1] for g in json.loads(capsys.readouterr().out)["groups"]} == {"a", "b"}
