"""Which group columns would let the most groups be decided: from the scores alone, and as an audit then decides."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import calibrant as cal
from calibrant.audit.record import AuditRecord
from calibrant.report.brief.action import decision, state_of
from calibrant.report.spans import plain

WITHIN = 0.15  # of the share of groups that is promised


def log(seed: int, rows: int, *, cluster: int = 0, rare: bool = False, again: int = 0) -> cal.Predictions:
    """Scores that are right, of three sites, of so many wards, and of ages; `again`: the same with other outcomes."""
    rng = np.random.default_rng([7, seed])
    p = rng.beta(1, 19, rows) if rare else rng.beta(2, 5, rows)
    columns = {
        "ward": rng.choice(np.array([f"w{i:02d}" for i in range(12)]), rows),
        "site": rng.choice(np.array(["Bay", "Hill", "Lake"]), rows, p=[0.5, 0.3, 0.2]),
        "age": rng.choice(np.array(["20s", "30s", "40s", "50s", "60s"]), rows),
    }
    units = rng.integers(0, rows // cluster, rows) if cluster else None
    y = np.random.default_rng([8, seed, again]).uniform(size=rows) < p
    return cal.predictions(y.astype(int), p, columns, cluster=units)


def audited(data: cal.Predictions, by: Any, **how: Any) -> AuditRecord:
    return cal.audit(data, by=by, quick=True, **how)


BY = ("ward", "site", "age")


def lines(record: AuditRecord) -> dict[tuple[str, ...], tuple[int, float]]:
    c = record.curve("fewer_groups").columns
    return {tuple(by): (n, met) for by, n, met in zip(c["by"], c["groups"], c["decided"], strict=True)}


@pytest.mark.slow
def test_the_best_column_is_named_with_its_command_and_no_label_is_read() -> None:
    records = [audited(log(1, 2400, again=k), BY, limit=0.06) for k in (0, 1)]
    assert [g.events for g in records[0].groups] != [g.events for g in records[1].groups]
    assert lines(records[0]) == lines(records[1])
    assert next(iter(lines(records[0]))) == ("site",)
    share = [met / n for n, met in lines(records[0]).values()]
    assert share == sorted(share, reverse=True)
    assert [n for n, _ in lines(records[0]).values()] == [3, 8, 20]
    record = next(r for r in records if r.everyone.verdict == "within")
    record = replace(record, settings={**record.settings, "quick": False})  # subgroups are asked for first
    assert state_of(record) == "fewer groups decide"
    done = decision(record)
    assert plain(done.text).startswith("Undecided is not a pass. Judge by site alone: ")
    assert plain(done.text).endswith("would be decided at these rows, if scores are right.")
    assert 'by="site"' in done.command


@pytest.mark.slow
@pytest.mark.parametrize("how", [{"limit": None}, {"limit": 0.4}, {"limit": 0.06, "judge": "error"}])
def test_nothing_is_computed_where_no_gap_is_undecided(how: dict[str, Any]) -> None:
    assert "fewer_groups" not in audited(log(1, 600), BY, **how).curves


@pytest.mark.slow
def test_of_crossed_columns_both_uncrossed_are_a_choice() -> None:
    record = audited(log(3, 1500), ("ward", "site"), intersections=True, limit=0.08)
    assert list(lines(record)) == [("site",), ("site", "ward")]
    assert record.curve("fewer_groups").settings["groups"] == len(record.groups) > 15


DESIGNS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "rare, a relative limit": ({"rows": 4000, "rare": True}, {"limit_relative": 0.45}),
    "clusters": ({"rows": 1800, "cluster": 3}, {"limit": 0.085}),
    "of the population, to publish": ({"rows": 1500}, {"limit": 0.08, "target": "population", "publish": True}),
}


@pytest.mark.slow(turns=10)
@pytest.mark.parametrize("design", DESIGNS)
def test_an_audit_decides_as_many_groups_as_were_promised(design: str) -> None:
    """The mean over logs of what the best column alone promises and, of three sets of outcomes, then decides."""
    of, how = DESIGNS[design]
    promised, reached = [], []
    for seed in range(6):
        (best, (n, met)), *_ = lines(audited(log(seed, **of), BY, **how)).items()
        promised.append(met / n)
        for again in range(1, 4):
            groups = audited(log(seed, again=again, **of), best, **how).groups
            assert len(groups) == n
            reached.append(sum(g.verdict != "undecided" for g in groups) / n)
    assert 0.2 < np.mean(promised) < 0.95
    assert abs(np.mean(promised) - np.mean(reached)) <= WITHIN, (design, np.mean(promised), np.mean(reached))
