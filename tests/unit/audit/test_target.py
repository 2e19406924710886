"""Whose gaps an audit certifies: of the rows in the data unless it is told otherwise, or rows share clusters."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import calibrant as cal
from calibrant.errors import BadInput, NotComputable
from calibrant.report import html, markdown

RNG = np.random.default_rng(4)
P = RNG.beta(2, 8, 1200)
DATA = {"y": (RNG.random(1200) < P).astype(int), "p": P, "g": np.array(["a", "b", "c"])[np.arange(1200) % 3]}
HOW: dict[str, Any] = {"label": "y", "score": "p", "by": "g", "variables": None, "quick": True, "judge": "gap"}


def audited(**more: Any) -> Any:
    return cal.audit(DATA | more.pop("data", {}), **HOW, **more)


def width(gap: Any) -> float:
    return float(gap.guaranteed.high - gap.guaranteed.low)


@pytest.mark.slow
def test_gaps_are_of_the_rows_and_say_so() -> None:
    rows, population = audited(limit=0.1), audited(limit=0.1, target="population")
    assert (rows.settings["target"], population.settings["target"]) == (None, "population")
    for mine, theirs in zip((rows.everyone, *rows.groups), (population.everyone, *population.groups), strict=True):
        assert mine.gap.settings["target"] == "rows"
        assert "of the rows in the data" in mine.gap.settings["about"]
        assert mine.gap.assumes == "outcomes of different rows independent given the scores"
        assert theirs.gap.settings["target"] == "population"
        assert width(theirs.gap) > 1.15 * width(mine.gap)
    assert rows.estimates["gap"].settings["target"] == "rows"
    assert "of the rows in the data" in rows.estimates["worst_group"].settings["about"]
    assert cal.AuditRecord.from_dict(rows.to_dict()) == rows


def test_of_clusters_they_are_of_the_population() -> None:
    clusters = {"data": {"c": np.arange(1200) // 3}, "cluster": "c"}
    assert audited(**clusters).everyone.gap.settings["target"] == "population"
    with pytest.raises(NotComputable, match="--target rows"):
        audited(target="rows", **clusters)


def test_another_target_is_refused() -> None:
    with pytest.raises(BadInput, match=r"target='people'"):
        audited(target="people")


@pytest.mark.slow
def test_the_page_says_whose_gaps() -> None:
    rows, population = audited(limit=0.1, noun="loans"), audited(limit=0.1, noun="loans", target="population")
    for record, whose in ((rows, "the loans in the data"), (population, "all loans like these")):
        for page in (html.render(record), markdown.render(record)):
            assert f"Gaps are of {whose}." in page
            assert f"the raw score, of {whose}" in page
        assert f"Gaps apply to the raw score of {whose}, observed minus predicted" in html.render(record)


@pytest.mark.slow
def test_repairs_are_judged_by_the_same_gaps() -> None:
    data = {name: values[:400] for name, values in DATA.items()}
    record = cal.audit(data, **HOW | {"quick": False, "variables": ["g"]}, limit=0.1, target="population")
    fixed = record.curve("fixed")
    assert fixed.settings["target"] == "population"
    assert fixed.settings["about"]["now"] == "the raw score, of all rows like these"
    assert cal.AuditRecord.from_dict(record.to_dict()) == record
