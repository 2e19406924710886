"""An audit tells who is without a label, and every verdict with them; of few people nothing, and nothing exactly."""

from __future__ import annotations

import numpy as np
import pytest

import calibrant as cal
from calibrant.audit.checks.missing_labels import Outward
from calibrant.audit.record import AuditRecord
from calibrant.audit.rounding import MULTIPLE, RandomRounding
from calibrant.certify.missing_labels import MissingLabelOptions as Of
from calibrant.certify.missing_labels import ends, lines, verdict
from calibrant.errors import BadInput
from calibrant.report import html, markdown, terminal
from calibrant.stats.missing.unlabelled import ODDS
from calibrant.views.unlabelled import Cells

# the whole file takes seconds: it waits for --rest
pytestmark = pytest.mark.slow

RNG = np.random.default_rng(3)
N = 6000
P = RNG.integers(1, 100, N) / 100
SITE = np.array(["a", "b", "c"])[RNG.choice(3, N, p=[0.5, 0.4, 0.1])]
LOST = RNG.uniform(size=N) < np.where(SITE == "a", 0.3, 0.1)
HAPPENED = (RNG.uniform(size=N) < P).astype(float)


def audited(
    lost: np.ndarray = LOST, site: np.ndarray = SITE, happened: np.ndarray = HAPPENED, **more: object
) -> AuditRecord:
    frame = {"y": np.where(lost, np.nan, happened), "p": P, "site": site}
    settings = {"by": "site", "limit": 0.1, "quick": True, **more}
    return cal.audit(frame, label="y", score="p", missing="keep", **settings)


def by_people(record: AuditRecord, column: str, assumption: str = "odds") -> dict[str, object]:
    c = record.curve("missing_labels").columns
    return {p: v for p, a, v in zip(c["people"], c["assumption"], c[column], strict=True) if a == assumption}


def checked(record: AuditRecord) -> str:
    return next((c.status for c in record.checks if c.code == "missing-labels"), "absent")


@pytest.mark.slow
def test_every_group_has_its_lines_and_the_check_the_worst_verdict() -> None:
    record = audited()
    assert list(by_people(record, "verdict")) == ["everyone", "site = a", "site = b", "site = c"]
    assert record.settings["missing_odds"] == 2.0
    assert record.data["unlabelled"] == LOST.sum()
    assert checked(record) == "undecided"
    assert by_people(record, "verdict")["everyone"] == "within"
    assert checked(audited(limit=0.9)) == "within"
    assert checked(audited(limit=None)) == "measured"


def test_the_stated_odds_are_those_given() -> None:
    wide, narrow = (audited(missing_odds=odds) for odds in (3.0, 1.0))
    assert set(by_people(wide, "odds").values()) == {3.0}
    for name, high in by_people(narrow, "high").items():
        assert high == by_people(narrow, "high", "at random")[name]
        assert high < by_people(wide, "high")[name]
    for odds in (0.5, float("nan"), "2"):
        with pytest.raises(BadInput, match="missing_odds"):
            audited(missing_odds=odds)


@pytest.mark.slow
def test_over_the_limit_under_an_assumption_is_not_the_verdict() -> None:
    low = (P < 0.2) & (SITE == "c")
    happened = np.where(low, 1.0, HAPPENED)  # of c, whoever has a low score is off, and hardly anyone has a label
    lost = low & (np.random.default_rng(4).uniform(size=N) < 0.4)
    record = audited(lost, happened=happened, limit=0.03, missing_odds=1.0)
    assert by_people(record, "verdict")["site = c"] == "over"
    assert checked(record) == "over"
    assert record.verdict == "over"  # by its own group
    alone = audited(lost, happened=happened, limit=0.1, missing_odds=1.0, by=None)
    assert (alone.verdict, checked(alone)) == ("within", "within")


@pytest.mark.slow
def test_groups_are_told_in_fives_and_outward() -> None:
    record = audited(publish=True)
    whole = cal.sketch({"y": np.where(LOST, np.nan, HAPPENED), "p": P, "site": SITE}, label="y", score="p", by="site",
                       missing="keep")  # fmt: skip
    exact = dict(cal.certify.missing_labels(whole, limit=0.1).columns)
    by_gap = cal.certify.missing_labels(whole, limit=0.1, judge="gap").columns  # as groups are judged
    exact = {k: (*v[:4], *by_gap[k][4:]) for k, v in exact.items()}
    assert exact["low"][:4] == record.curve("missing_labels").columns["low"][:4]  # everyone's are exact
    for column in ("rows", "unlabelled"):
        reported = record.curve("missing_labels").columns[column]
        assert all(n % MULTIPLE == 0 for n in reported[4:])
        assert all(abs(a - b) < MULTIPLE for a, b in zip(reported, exact[column], strict=True))
        assert all(n % MULTIPLE == 0 for n in record.curve("without_label").columns[column])
    c = record.curve("missing_labels").columns
    assert all(a <= b for a, b in zip(c["low"], exact["low"], strict=True))
    assert all(a >= b for a, b in zip(c["high"], exact["high"], strict=True))
    assert [g.rows for g in record.groups] == list(by_people(record, "rows").values())[1:]  # told once


@pytest.mark.parametrize("judge", ["error", "gap"])
@pytest.mark.parametrize("happened", [HAPPENED, np.zeros(N)])
def test_a_verdict_stands_as_far_as_its_ends_as_told_do(judge: str, happened: np.ndarray) -> None:
    y = np.where(LOST, np.nan, happened)
    whole = cal.sketch({"y": y, "p": P, "site": SITE}, label="y", score="p", by="site", missing="keep")
    cells = Cells.of(whole, 0)
    reported, asked = Outward.of(cells, judge, RandomRounding), Of(judge, 0.12, 2.0, 100)
    rows = list(lines("site = a", cells, asked, 0.01, reported))
    beyond = [odds for odds in ODDS if odds > rows[0].stands_to][:1]
    up_to = [odds for odds in ODDS if odds <= rows[0].stands_to]
    assert len(up_to) > 1
    for odds in (*up_to[:2], *up_to[2::40], up_to[-1], *beyond):  # by the pair of ends as it is told
        low, high = ends(cells.ranged(100, odds), judge, 0.01, reported)
        assert (verdict(low, high, 0.12) == rows[1].verdict) == (odds not in beyond)


@pytest.mark.slow
def test_a_level_without_any_label_is_told_and_a_small_one_is_not() -> None:
    site = np.where(np.arange(N) < 50, "refused", SITE)
    lost = LOST | (site == "refused")
    record = audited(lost, site)
    assert by_people(record, "rows")["site = refused"] == 0
    assert by_people(record, "unlabelled")["site = refused"] == 50
    assert "None is known of site = refused." in " ".join(terminal.render(record).split())
    few = np.where(np.arange(N) < 12, "refused", SITE)
    record = audited(LOST | (few == "refused"), few)
    assert "refused" not in record.to_json()
    assert list(by_people(record, "rows"))[1:] == ["site = a", "site = b", "site = c + 1 more"]  # with the smallest
    assert "c + 1 more" in record.curve("without_label").columns["level"]


def test_a_pair_without_any_label_of_few_people_leaves_its_table_out() -> None:
    old = RNG.uniform(size=N) < 0.5
    gone = (SITE == "c") & old & (np.cumsum((SITE == "c") & old) <= 15)
    frame = {"y": np.where(LOST | ((SITE == "c") & old), np.nan, HAPPENED), "p": P, "site": SITE, "old": old}
    kept = ~((SITE == "c") & old) | gone
    record = cal.audit({k: v[kept] for k, v in frame.items()}, label="y", score="p", by=["site", "old"],
                       intersections=True, missing="keep", quick=True)  # fmt: skip
    names = list(by_people(record, "rows"))
    assert "site = c" in names
    assert not [name for name in names if "," in name]


def test_fewer_than_the_mask_are_not_told() -> None:
    record = audited(np.arange(N) < 19)
    assert checked(record) == "absent"
    assert record.curve("without_label").columns == {}
    assert record.data["unlabelled"] is None
    assert "fewer than 20 more have no label" in markdown.render(record)
    none = audited(np.zeros(N, dtype=bool))
    assert (none.data["unlabelled"], checked(none)) == (0, "absent")


def test_copies_decide_nothing_here_either() -> None:
    y = np.tile(np.where(LOST, np.nan, HAPPENED)[:1500], 4)
    record = cal.audit({"y": y, "p": np.tile(P[:1500] + RNG.uniform(size=1500) / 1e6, 4)}, label="y", score="p",
                       missing="keep", limit=0.2, quick=True)  # fmt: skip
    assert record.withheld
    assert checked(record) == "not-run"


def test_the_report_holds_both_tables_closed_and_the_rows_that_were_read() -> None:
    record = audited(missing_odds=1.5)
    page, text = html.render(record), markdown.render(record)
    for shown in (page, text):
        for part in ("Odds up to 1.5", "Whatever they are", "Stands to", "Standardised difference"):
            assert part in shown
    assert '<details id="missing-labels"' in page
    assert "6,000 read, 0 dropped, 1,220 counted apart: they have no label" in text
    assert "missing_odds 1.5" in text  # how to do it again
    assert "missing-labels" not in markdown.render(cal.audit({"y": HAPPENED, "p": P}, label="y", score="p", quick=True))


@pytest.mark.slow
def test_units_are_people_of_whom_nothing_is_told_if_they_are_few() -> None:
    """Thirty rows without a label of one person are one person; so are those of a level."""
    person = np.arange(N) // 40
    frame = {"p": P, "site": SITE, "person": person}
    own = {"label": "y", "score": "p", "by": "site", "cluster": "person", "missing": "keep", "quick": True}
    one = cal.audit(frame | {"y": np.where(person == 3, np.nan, HAPPENED)}, **own)
    assert checked(one) == "absent"
    assert one.data["unlabelled"] is None
    record = cal.audit(frame | {"y": np.where(LOST, np.nan, HAPPENED)}, **own, limit=0.3)
    assert checked(record) in ("within", "undecided")
    assert record.data["cluster"] == "person"
    reported = " ".join(markdown.render(record).split())
    assert (
        "150 of 150 clusters have rows without an outcome, and each cluster, with all of its rows, is one "
        "independent observation." in reported
    )
    assert "| not tested |" in reported
    assert "is not tested, for the test assumes independent rows" in " ".join(html.render(record).split())
    assert AuditRecord.from_json(record.to_json()) == record
