"""What the first screen says of units and weights."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import calibrant as cal
import factories
from calibrant.audit.record import AuditRecord
from calibrant.report import markdown, terminal
from calibrant.report.outline import declared
from factories import whole


def audited(*, cluster: bool, weights: bool) -> AuditRecord:
    """Return the audit of 600 visits of 60 patients whose fates are shared."""
    rng = np.random.default_rng(3)
    patient, score = np.repeat(np.arange(60), 10), rng.integers(1, 10, 600) / 10
    fate = np.where(rng.uniform(size=600) < 0.7, rng.uniform(size=60)[patient], rng.uniform(size=600))
    log = {"y": (fate < score).astype(int), "p": score, "patient": patient, "w": rng.uniform(0.2, 3.0, 600)}
    more = {"cluster": "patient"} if cluster else {}
    more |= {"weights": "w"} if weights else {}
    return cal.audit(log, label="y", score="p", variables=None, limit=0.03, noun="visits", quick=True, **more)


def test_units_are_counted_named_and_needed() -> None:
    record = audited(cluster=True, weights=False)
    reported = markdown.render(record)
    assert "600 visits of 60 clusters (`patient`)" in reported
    assert "ranges hold however correlated the rows of one cluster are" in reported
    assert "Theorem CL from below, CU from above" in reported
    assert "Rows count as independent" not in reported
    assert record.data["clusters"]["count"] == 60
    assert record.data["clusters"]["design_effect"] > 1.2
    assert record.data["clusters"]["wider"] > 1.0
    assert record.everyone.rows_needed is None
    statuses = {c.code: c.status for c in record.checks}
    assert statuses["jittered"] == "not-applicable"
    assert record.estimates["distance"].settings["clusters"] == 60
    assert statuses["reliability"] == "measured"
    bins = record.curves["bins"].columns
    assert len(bins["x"]) <= 10
    assert all(low <= gap <= high for low, gap, high in zip(bins["low"], bins["gap"], bins["high"], strict=True))
    assert record.curves["reliability"].settings["clusters"] == 60


def test_weights_say_what_they_count() -> None:
    record = audited(cluster=False, weights=True)
    reported = markdown.render(record)
    assert "600 visits, weighted by `w`" in reported
    assert "counts of rows and events are not weighted" in reported
    assert record.data["clusters"]["effective"] < 600


CLUSTERS = {
    "exact": True,
    "count": 60,
    "held": 60,
    "effective": 50,
    "design_effect": 2.0,
    "wider": 1.4,
    "truncated_weights": 0,
}
CLUSTERS |= {"pilots": 6}


def methods_of(**data: object) -> str:
    """Return how every section says it was computed, of a record with all of them."""
    one = whole()
    record = replace(one, data={**one.data, **data})
    return " ".join(str(part.text) for d in declared() for e in d.methods(record) for part in e.text)


def test_how_units_were_computed_claims_nothing_that_holds_of_rows_alone() -> None:
    rows, clusters = methods_of(), methods_of(cluster="patient", clusters=CLUSTERS)
    for reported in (
        "at any number of rows",
        "sets of simulated outcomes",
        "exact binomial limits",
        "Part of the rows",
    ):
        assert reported in rows
        assert reported not in clusters
    for reported in ("random signs of whole clusters", "if clusters are many", "Theorem CB", "Part of the clusters"):
        assert reported in clusters
        assert reported not in rows


def test_how_weighted_rows_were_computed() -> None:
    reported = methods_of(weights="w", clusters=CLUSTERS)
    assert "weighted error of each row is one independent term (Theorem CB)" in reported
    assert "exact binomial limits" not in reported
    assert "sets of simulated outcomes" in reported


def test_independent_rows_say_nothing_of_units() -> None:
    record = audited(cluster=False, weights=False)
    assert record.data["clusters"] is None
    assert record.everyone.clusters_needed is None
    assert "Clusters and weights" not in markdown.render(record)


def test_a_sketch_that_holds_not_all_units_asks_for_more_of_them() -> None:
    rng = np.random.default_rng(4)
    patient, score = np.repeat(np.arange(400), 5), rng.integers(1, 10, 2000) / 10
    log = pa.table({"y": (rng.uniform(size=2000) < score).astype(int), "p": score, "patient": patient})
    whole = cal.sketch(log, label="y", score="p", cluster="patient")
    small = cal.Sketch(replace(whole.spec, sample=1000))
    small.update(log.to_batches()[0])
    record = cal.audit(small, limit=0.08, quick=True)
    clusters = record.data["clusters"]
    assert (clusters["held"], clusters["rows_in_sample"], clusters["exact"]) == (200, 1000, False)
    reported = " ".join(markdown.render(record).split())
    assert "of 200 of about" in reported
    assert "the sketch holds 200 of about" in reported
    assert "has grown from" not in reported
    assert cal.certify.values(small).settings["clusters"] == 200
    same = cal.audit(small.rows(), limit=0.08, quick=True).data[
        "clusters"
    ]  # compared with the rows of these units alone
    assert abs(clusters["wider"] - same["wider"]) < 0.3
    assert AuditRecord.from_dict(record.to_dict()) == record


def test_three_units_are_too_few_and_nothing_else_is_blamed() -> None:
    clusters = {**CLUSTERS, "count": 3, "held": 3, "effective": 2, "design_effect": 1.0, "wider": 31.0}
    one = factories.finding(0.0, 1.0, limit=0.05)
    undecided = factories.Finding.from_dict({**one.to_dict(), "rows_needed": None})
    order = factories.ranking(("a", "site"), found=0)
    order = replace(order, columns={**order.columns, "beyond_high": (1.0, 0.7)})
    record = factories.followed(factories.record(undecided, limit=0.05), order, {})
    reported = terminal.render(replace(record, data={**record.data, "cluster": "site", "clusters": clusters}))
    assert "Guaranteed: calibration error 0.0 to 100.0." in " ".join(reported.split())
    assert "More clusters (site) are needed: the range is too wide to say how many." in " ".join(reported.split())
    stated = " ".join(reported.split())
    assert "hardly more correlated than others, but of 3 clusters the range of the overall gap is 31.0 times" in stated
    for words in ("too close to the limit", "Too few rows", "others: the range"):
        assert words not in stated


@pytest.mark.slow
def test_clusters_of_one_row_each_are_certified_as_rows_and_tested_by_their_signs() -> None:
    rng = np.random.default_rng(3)
    p = rng.beta(2, 5, 600)
    y, table = rng.uniform(size=600) < p, {"x": rng.normal(size=600), "g": rng.choice(["a", "b"], 600)}
    alone, rows = (
        cal.audit(cal.predictions(y, p, table, **more), by="g", limit=0.1) for more in ({"cluster": np.arange(600)}, {})
    )
    assert not alone.data["clusters"]
    for one, other in zip((alone.everyone, *alone.groups), (rows.everyone, *rows.groups), strict=True):
        assert (one.verdict, one.gap, one.error, one.rows_needed) == (
            other.verdict,
            other.gap,
            other.error,
            other.rows_needed,
        )
    text = markdown.render(alone)
    assert "random signs of whole clusters, which is approximate" in text
    assert "random signs" not in markdown.render(rows)
    lost = cal.predictions(np.where(rng.uniform(size=600) < 0.1, np.nan, y), p, cluster=np.arange(600), missing="keep")
    assert "clusters have rows without an outcome" in markdown.render(cal.audit(lost, quick=True))


def test_ranges_of_weighted_rows_say_so_where_rows_without_an_outcome_alone_are_weighted() -> None:
    rng = np.random.default_rng(3)
    p, lost = rng.beta(2, 5, 600), rng.uniform(size=600) < 0.1
    y = np.where(lost, np.nan, rng.uniform(size=600) < p)
    kept = {"y": y, "p": p, "w": np.where(lost, rng.uniform(0.5, 2.0, 600), 1.0)}
    reported = [
        markdown.render(cal.audit(kept, label="y", score="p", missing="keep", quick=True, **more))
        for more in ({"weights": "w"}, {})
    ]
    assert ["Ranges are of the weighted rows." in text for text in reported] == [True, False]
