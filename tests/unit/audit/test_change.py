"""What changed since an earlier audit: ends from those of both, words that agree, and refusals in one line."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pytest

import calibrant as cal
from calibrant.audit.record import AuditRecord
from calibrant.cli import main
from calibrant.report.html import render as page
from calibrant.report.markdown import render as markdown


def rows(seed: int, off: float = 0.0, n: int = 1_500, sites: str = "abc") -> cal.Predictions:
    """Rows of three sites, the first of which is off by so much."""
    rng = np.random.default_rng(seed)
    p, site = rng.uniform(0.2, 0.7, n).round(2), rng.choice(list(sites), n)
    return cal.predictions(rng.uniform(size=n) < p + off * (site == "a"), p, {"site": site})


def audited(data: object, **more: object) -> AuditRecord:
    return cal.audit(data, by="site", limit=0.1, quick=True, variables=(), **more)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def before() -> AuditRecord:
    return audited(rows(0))


@pytest.fixture(scope="module")
def now(before: AuditRecord) -> AuditRecord:
    return audited(rows(1, 0.28), against=before)


def lines(record: AuditRecord) -> list[dict[str, object]]:
    c = record.curve("change").columns
    return [dict(zip(c, line, strict=True)) for line in zip(*c.values(), strict=True)]


def test_each_end_is_of_both_audits(before: AuditRecord, now: AuditRecord) -> None:
    alone = audited(rows(1, 0.28))
    assert (now.everyone, now.groups, now.verdict) == (alone.everyone, alone.groups, alone.verdict)
    assert "change" not in alone.curves
    pairs = [(before.everyone, now.everyone), *zip(before.groups, now.groups, strict=True)]
    for (old, new), line in zip(pairs, lines(now), strict=True):
        a, b = old.gap.guaranteed, new.gap.guaranteed
        assert a is not None
        assert b is not None
        assert (line["low"], line["high"]) == (b.low - a.high, b.high - a.low)
        assert line["level"] == pytest.approx(a.level + b.level - 1.0)
        assert line["change"] == new.gap.value - old.gap.value
    assert [line["group"] for line in lines(now)] == ["everyone", "site = a", "site = b", "site = c"]


@pytest.mark.parametrize(
    ("old", "new", "state"),
    [
        ((-0.02, 0.03), (0.04, 0.09), "worse"),
        ((-0.02, 0.03), (-0.09, -0.04), "worse"),
        ((0.04, 0.09), (-0.02, 0.03), "better"),
        ((0.04, 0.09), (-0.09, -0.04), "changed"),  # to the other side, perhaps as far
        ((0.01, 0.05), (0.04, 0.09), "none"),
        ((-0.02, 0.03), (0.03, 0.09), "none"),  # touching is not beyond
    ],
)
def test_states_say_no_more_than_the_ranges(
    before: AuditRecord, old: tuple[float, float], new: tuple[float, float], state: str
) -> None:
    from calibrant.audit.checks.groups import _change

    def at(ends: tuple[float, float]) -> object:
        gap = before.everyone.gap
        assert gap.guaranteed is not None
        return replace(before.everyone, gap=replace(gap, guaranteed=replace(gap.guaranteed, low=ends[0], high=ends[1])))

    assert _change(at(old), at(new)).state == state  # type: ignore[arg-type]


def test_the_first_screen_the_page_and_the_record_say_who_is_worse(now: AuditRecord) -> None:
    said = " ".join(markdown(now).split())
    assert re.search(
        r"the gap of everyone changed by \+\d+\.\d points, guaranteed at 90% .*: worse\. Worse: `site = a`\.", said
    )
    assert "What changed since the earlier audit?" in page(now)
    assert AuditRecord.from_json(now.to_json()) == now


@pytest.mark.slow
def test_a_group_of_one_audit_alone_is_counted() -> None:
    record = audited(rows(2, sites="abd"), against=audited(rows(0)))
    settings = record.curve("change").settings
    assert (settings["only_before"], settings["only_now"]) == (1, 1)
    assert [line["group"] for line in lines(record)] == ["everyone", "site = a", "site = b"]


@pytest.mark.slow
def test_an_audit_that_certifies_nothing_changes_nothing() -> None:
    few = rows(0, n=200)
    copied = cal.predictions(np.tile(few.y, 4), np.tile(few.p, 4), {"site": np.tile(few.covariates["site"], 4)})
    record = audited(rows(1), against=audited(copied))
    (check,) = (c for c in record.checks if c.code == "change")
    assert (check.status, "the earlier audit certifies nothing" in str(check.reason)) == ("not-applicable", True)


@pytest.mark.slow
def test_changes_are_of_one_estimand(before: AuditRecord) -> None:
    """Gaps of the rows are not held against gaps of a population; a family of horizons holds the gaps of one."""
    other = audited(rows(1), target="population", against=before)
    (check,) = (c for c in other.checks if c.code == "change")
    assert "by the same target" in str(check.reason)
    family = replace(before, curves={**before.curves, "horizons": before.curves["bins"]})
    (check,) = (c for c in audited(rows(1), against=family).checks if c.code == "change")
    assert "audit each horizon by itself" in str(check.reason)
    dated = replace(before, data={**before.data, "horizon": {"horizon": 30.0}})
    (check,) = (c for c in audited(rows(1), against=dated).checks if c.code == "change")
    assert check.reason == "the earlier audit is by 30.0, this one by none"


@pytest.mark.slow
def test_the_command_takes_a_record_a_sketch_and_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, seed, off in (("jan", 0, 0.0), ("feb", 1, 0.28)):
        data = rows(seed, off)
        table = pa.table({"y": data.y.astype(int), "p": data.p, "site": data.covariates["site"]})
        pc.write_csv(table, f"{name}.csv")
    read = ["--label", "y", "--score", "p", "--by", "site"]
    assert main(["sketch", "jan.csv", *read, "-o", "jan.sketch"]) == 0
    main(["audit", "jan.csv", *read, "--limit", "0.1", "--quick", "-o", "jan.json"])
    capsys.readouterr()
    said = set()
    for earlier in ("jan.json", "jan.sketch", "jan.csv"):
        asked = ["audit", "feb.csv", *read, "--limit", "0.1", "--quick", "--against", earlier]
        assert main([*asked, "-o", "feb.json", "-o", "summary:feb.md"]) == 1
        printed = " ".join(capsys.readouterr().out.split())
        said.add(re.search(r"Since jan, .*?Worse: site = a\.", printed)[0])  # type: ignore[index]
        assert f"--against {earlier}" in " ".join(markdown(AuditRecord.load("feb.json")).split())
    assert len(said) == 1
    for gone, why in (("gone.json", "cannot read 'gone.json'"), ("gone.csv", "no file at 'gone.csv'")):
        assert main(["audit", "feb.csv", *read, "--quick", "--against", gone]) == 2
        assert why in capsys.readouterr().err
