"""What exact numbers may not tell in one record, what a page to publish says of few, who may see every group."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import calibrant as cal
from calibrant.audit.pooling import pooled_counts
from calibrant.cli.run import main
from calibrant.report import markdown
from calibrant.report import numbers as num
from calibrant.report.outline import document
from towns import people


@pytest.mark.slow
def test_the_record_is_rounded_then_and_says_so() -> None:
    how: dict[str, Any] = {"label": "y", "score": "p", "by": ["town", "county"], "quick": True}
    record = cal.audit(people(), **how)
    assert record.data["rounded_for"] == ("town", "county")
    assert all(g.rows % 5 == 0 for g in record.groups)
    assert "Groups of town and of county share people" in markdown.written(document(record))
    assert "rounded_for" not in cal.audit(people(), **{**how, "by": "town"}).data


def test_grades_of_a_rating_pool_with_neighbours_and_regions_with_the_smallest() -> None:
    grade = np.repeat(list("ABCDE"), [8, 300, 200, 90, 9])
    p = np.full(len(grade), 0.3)
    y = np.arange(len(grade)) % 3 == 0
    names = {}
    for column in ("rating", "region"):
        record = cal.audit(cal.predictions(y, p, {column: grade}), by=column, quick=True, variables=None)
        names[column] = {g.variables[0][1]: g.rows for g in record.groups}
    assert names["rating"] == {"C": 200, "B + 1 more": 308, "D + 1 more": 99}
    assert names["region"] == {"B": 300, "C": 200, "D + 2 more": 107}


@pytest.mark.slow
def test_every_group_is_shown_to_readers_who_may_see_them_and_the_page_says_so(capsys: Any, tmp_path: Any) -> None:
    how: dict[str, Any] = {"label": "y", "score": "p", "by": "town", "quick": True, "variables": None}
    for mask in ("none", None):
        record = cal.audit(people(), **how, mask=mask)
        assert {g.variables[0][1]: g.rows for g in record.groups} == {"big": 300, "large": 200, "mid": 88, "tiny": 12}
        assert record.settings["mask"] is None
        assert cal.AuditRecord.from_json(record.to_json()) == record
    text = markdown.written(document(record))
    assert "Every group is shown, however small" in text
    with pytest.raises(cal.BadInput, match=r"mask='none' shows every group, and publish=True .* drop one of the two"):
        cal.audit(people(), **how, mask="none", publish=True)
    assert main(["audit", str(tmp_path / "none.csv"), "--mask", "none", "--publish"]) == 2
    assert "--mask='none' shows every group, and --publish" in capsys.readouterr().err


def test_rates_of_few_people_to_publish_are_the_range_that_rounding_leaves() -> None:
    assert num.reported_rate(0.1, 50) == "0 to 22"
    assert num.reported_rate(0.1, 0) == "10.0"
    assert num.reported_rate(0.1, 200) == "10.0"
    assert num.reported_gap(0.0, 50) == "–"
    assert num.reported_gap(0.012, 0) == "+1.2"
    rng = np.random.default_rng(0)
    from calibrant.audit.rounding import RandomRounding

    for _ in range(500):
        n = int(rng.integers(20, 200))
        events, expected = int(rng.integers(0, n + 1)), float(rng.uniform(0, n))
        told = RandomRounding.of(n, events, expected)
        for exact, rounded in ((events, told.events), (expected, told.expected)):
            low, high = num.rounded_range(rounded, told.rows)
            assert low <= exact / n <= high


def test_a_page_to_publish_prints_no_rate_of_few_that_rounding_made() -> None:
    """49 people, 16.3 in 100 predicted and 11.5 happened, read "10.0", "10.0" and a gap of 0."""
    record = cal.audit(people(), label="y", score="p", by="town", quick=True, variables=None, publish=True)
    small = next(g for g in record.groups if g.rows < 200)
    written = markdown.written(document(record)).splitlines()
    line = next(x for x in written if x.startswith("|") and f"| {small.rows} |" in x)
    assert "withheld" in line.split("|")[3]
    assert small.gap.interval.low < small.gap.interval.high


def swapped(first: int) -> pa.Table:
    """Towns of 7 and 9 people, whose outcomes are swapped between two people alike in all else."""
    town = np.repeat(["north", "east", "cove", "dale"], [150, 120, 7, 9])
    y, p = np.arange(286) % 3 == 0, np.linspace(0.1, 0.6, 286)
    y[270], y[277], p[270] = first, 1 - first, p[277]
    return pa.table({"y": y, "p": p, "town": town})


@pytest.mark.slow
def test_sizes_along_a_variable_tell_no_level_under_the_mask() -> None:
    """They add up the gaps of levels: less those that are shown, they would be those of the small ones."""

    def sizes(first: int, pooled: bool) -> list[float]:
        whole = cal.sketch(swapped(first), label="y", score="p", by=["town"])
        read = pooled_counts(whole, 20) if pooled else whole
        c = cal.diagnose.rank_variables(read, draws=99).columns
        return [*c["beyond_gap_plain"], *c["vece_plain"], *c["vece"]]

    assert sizes(0, pooled=True) == sizes(1, pooled=True)
    assert sizes(0, pooled=False) != sizes(1, pooled=False)


@pytest.mark.slow
def test_a_swap_under_the_mask_moves_no_size_of_the_record() -> None:
    def sizes(first: int, mask: str | int) -> list[object]:
        how = {"label": "y", "score": "p", "by": ["town"], "quick": True, "seed": 0}
        c = cal.audit(swapped(first), mask=mask, **how).curve("ranking").columns
        return [c[k] for k in ("beyond_gap", "beyond_gap_plain", "vece", "vece_plain", "worst", "worst_gap")]

    assert sizes(0, 20) == sizes(1, 20)
    assert sizes(0, "none") != sizes(1, "none")
