"""Pockets of data by units: where no range of them is certified, the test of all of them still speaks."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import calibrant as cal
from calibrant.audit.checks import subgroups as check_file
from calibrant.errors import NotComputable
from calibrant.report.markdown import render


def audited(monkeypatch: pytest.MonkeyPatch, off: float, clusters: int = 250) -> cal.AuditRecord:
    rng = np.random.default_rng(0)
    cluster_code = np.repeat(np.arange(clusters), 8)
    n = len(cluster_code)
    x, z, p = rng.normal(size=n), rng.normal(size=n), rng.uniform(0.1, 0.5, n)
    y = rng.random(n) < p + off * ((x > 0.5) & (z > 0.5))

    def refused(*_: object) -> None:
        raise NotComputable("no range by units")

    monkeypatch.setattr(check_file, "_worst", refused)
    table = pa.table({"y": y.astype(int), "p": p, "x": x, "z": z, "who": cluster_code})
    return cal.audit(table, label="y", score="p", cluster="who", limit=0.05)


@pytest.mark.slow
def test_error_that_a_test_finds_leaves_pockets_not_cleared(monkeypatch: pytest.MonkeyPatch) -> None:
    record = audited(monkeypatch, 0.4)
    check = next(c for c in record.checks if c.code == "subgroups")
    assert (check.status, check.estimate, record.verdicts["subgroups"]) == ("undecided", None, "undecided")
    assert record.error_shown["subgroups"]
    assert check.outcome is not None
    assert check.outcome.p_value <= 0.05
    assert check.outcome.settings["null"] == "signs"
    text = render(record)
    assert "A test of all subgroups shows error (p = " in text
    assert "how far off they are is not certified" in text


@pytest.mark.slow
def test_few_units_have_neither(monkeypatch: pytest.MonkeyPatch) -> None:
    record = audited(monkeypatch, 0.0, clusters=12)
    check = next(c for c in record.checks if c.code == "subgroups")
    assert (check.status, record.verdicts["subgroups"]) == ("not-applicable", "not_checked")
    assert "subgroups need 20 effective clusters" in check.reason
