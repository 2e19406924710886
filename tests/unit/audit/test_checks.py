"""The questions of an audit: each declares itself, and a file in the folder is all that a new one takes."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import calibrant as cal
from calibrant.audit import checks
from calibrant.audit.checks import all_checks, gates
from calibrant.audit.checks.reliability import Few, _fixed_ranges, _people, _shares
from calibrant.report import markdown
from calibrant.report.brief.rests import not_checked
from calibrant.report.outline import declared
from calibrant.report.spans import plain
from calibrant.views.sample import everyone

ADDED = """
from calibrant.audit.context import CheckResult, Check
from calibrant.errors import NotComputable
from calibrant.results import Estimate, Interval

def spread(case, so_far):
    if case.everyone.n < 100:
        raise NotComputable("fewer than 100 people")
    assert so_far["reliability"].method == "diagnose.reliability_curve"
    found = Estimate(method="spread", value=0.25, unit="probability", n=case.everyone.n, assumes="nothing",
                     interval=Interval(low=0.2, high=0.3, level=0.95, guarantee="finite-sample"))
    return CheckResult(status="measured", estimate=found, estimates={"spread": found})

DECLARED = (Check(code="spread", order=65, make=spread, step="spreading", gate=True,
                     asks="Spread of the scores", means="wide tells people apart",
                     about="the spread"),)
"""


def rows(n: int = 400) -> cal.Predictions:
    rng = np.random.default_rng(3)
    p = rng.uniform(size=n)
    return cal.predictions(rng.uniform(size=n) < p, p, {"x": rng.normal(size=n), "site": np.arange(n) % 2})


@pytest.fixture
def one_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """One more file in the folder of checks, and nothing else."""
    (tmp_path / "spread.py").write_text(ADDED, encoding="utf-8")
    monkeypatch.setattr(checks, "__path__", [*checks.__path__, str(tmp_path)])
    all_checks.cache_clear()
    yield
    sys.modules.pop("calibrant.audit.checks.spread", None)
    all_checks.cache_clear()


def test_codes_and_orders_are_each_ones_own() -> None:
    asked = all_checks()
    assert len({q.code for q in asked}) == len({q.order for q in asked}) == len(asked)
    assert gates() == ("local-calibration", "strong-calibration", "subgroups")


def test_each_check_has_its_section_its_entry_in_the_schema_and_its_line_in_the_guide() -> None:
    read = {code for d in declared() for code in d.checks}
    docs = Path(__file__).parents[3] / "docs"
    listed = json.loads((docs / "schema/calibrant-4.json").read_text(encoding="utf-8"))["$defs"]["Check"]["properties"]
    guide = (docs / "audit.md").read_text(encoding="utf-8")
    asked = {q.code: q for q in all_checks()}
    assert listed["code"]["enum"] == list(asked)
    assert read <= set(asked)
    for code, q in asked.items():
        assert code in read or (q.asks and q.means), code
        assert f"`{code}`" in guide or f"`{code.replace('-', '_')}`" in guide, code


@pytest.mark.slow
def test_a_record_lists_every_check_in_order_even_where_it_was_not_run() -> None:
    listed = [c.code for c in cal.audit(rows(60), by="site", quick=True).checks]
    order = {q.code: i for i, q in enumerate(all_checks())}
    assert [order[c] for c in listed] == sorted(order[c] for c in listed)
    assert {"error-everyone", "error-groups", "reliability", "local-calibration", "repair"} <= set(listed)


@pytest.mark.slow
def test_a_file_in_the_folder_is_a_check_everywhere(one_more: None) -> None:
    reported: list[str] = []
    record = cal.audit(rows(), quick=True, progress=lambda event_now: reported.append(event_now.step))
    assert record.estimates["spread"].value == 0.25
    assert set(record.certified) == {"gap", "distance", "jittered", "spread"}
    codes = [c.code for c in record.checks]
    assert codes.index("reliability") < codes.index("spread") < codes.index("variables")
    assert "spreading" in reported
    assert "| Spread of the scores | Measured | 20.0 to 30.0 points | wide tells rows apart |" in markdown.render(
        record
    )
    assert "| spread | 20.0 to 30.0 |  | `nothing` |" in markdown.render(record)  # among what is certified
    assert gates() == ("spread", "local-calibration", "strong-calibration", "subgroups")
    small = cal.audit(rows(60), quick=True)
    few = next(c for c in small.checks if c.code == "spread")
    assert (few.status, few.reason) == ("not-applicable", "fewer than 100 people")
    assert "the spread" in plain(not_checked(small))


@pytest.mark.parametrize(
    ("source", "asked", "code", "reason"),
    [
        (lambda: rows(), {"quick": True}, "strong-calibration", "left out by --quick"),
        (lambda: rows(), {"quick": True}, "subgroups", "left out by --quick"),
        (lambda: rows(), {"variables": None}, "subgroups", "no covariates were given"),
        (lambda: rows(20), {}, "subgroups", "at least 20"),
        (lambda: cal.sketch(rows(), variables="x"), {}, "subgroups", "without what tests need"),
        (lambda: rows(), {"variables": None}, "variables", "no covariates were given"),
        (lambda: rows(), {"variables": None}, "repair", "no rows were kept"),
        (lambda: rows(), {"quick": True}, "error-groups", "no groups were given"),
        (lambda: rows(30), {"quick": True, "by": "site"}, "error-groups", "fewer than 20 rows"),
        (lambda: rows(30), {"quick": True, "by": "site", "noun": "loans"}, "error-groups", "fewer than 20 loans"),
        (lambda: cal.sketch(rows(), variables="x"), {}, "local-calibration", "without what tests need"),
        (lambda: rows(60), {"quick": True}, "reliability", "50 expected events"),
    ],
)
def test_a_check_that_is_not_made_says_why(source: Any, asked: dict[str, Any], code: str, reason: str) -> None:
    check = next(c for c in cal.audit(source(), **asked).checks if c.code == code)
    assert check.status in ("not-run", "not-applicable")
    assert reason in check.reason


def test_no_score_of_a_certified_unit_moves_an_edge_of_its_ranges() -> None:
    """Given all scores of a unit its rate is not that of one score: edges that they move would bias the gap."""
    rng = np.random.default_rng(4)
    patient, p = np.repeat(np.arange(200), 5), rng.beta(2, 4, 1000)
    y = (rng.uniform(size=1000) < p).astype(int)
    first = everyone(cal.predictions(y, p, cluster=patient))
    assert first.clusters is not None
    certified = first.clusters.certified[first.clusters.cluster]
    other = np.where(certified, p**3, p)
    second = everyone(cal.predictions(y, other, cluster=patient))
    assert second.clusters is not None
    ranges = _fixed_ranges(first)
    np.testing.assert_array_equal(ranges, _fixed_ranges(second))
    # every run of ranges that people may ask for has its share
    alone = _shares(ranges, ranges, 0.05)
    joined = _people(second, ranges, Few(20))
    some = _shares(ranges, joined, 0.05)
    k = len(np.unique(ranges))
    assert k == 10
    assert joined[-1] < 9
    assert sum(alone) + k * (k - 1) / 2 * min(some) == pytest.approx(0.05)
    assert set(some) <= {alone[0], min(some)}
