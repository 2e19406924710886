"""The section about groups: what stands in place of a table, what it leaves out, and what is cut."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

import factories
from calibrant.report.html import render
from calibrant.report.markdown import render as markdown
from calibrant.report.sections import groups
from calibrant.report.terminal import render as terminal


def test_groups_that_are_all_too_small_are_not_called_missing():
    record = factories.unshown()
    for text in (terminal(record), markdown(record), render(record)):
        assert "No groups were given" not in text
        assert "very group has fewer than 20 people" in text.replace("\n", " ").replace("  ", " ")
    assert "--by COLUMN" not in terminal(record)


def test_folded_values_and_columns_without_a_group_are_told():
    group = factories.finding(variables=[("city", "Springfield")])
    data = {"by": [["city"], ["ward"]], "variables": {"city": {"kind": "category", "edges": [], "folded": 812}}}
    record = factories.record(groups=[group], data=data)
    page = render(record)
    reported = "812 less frequent values are shown together as “other” in <code><bdi>city</bdi></code>"
    assert page.count(reported) == 2
    assert "No group of <code><bdi>ward</bdi></code> can be shown: all are too small." in page
    assert "less frequent values are shown together as “other” in `city`" in markdown(record)


def test_a_name_of_300_characters_is_cut_in_sentences_and_whole_in_its_table():
    record = factories.record(groups=[factories.finding(0.02, 0.04, variables=[("v", "x" * 300)])])
    page = render(record)
    assert page.count("x" * 300 + "</bdi>") >= 1
    assert "x" * 300 not in re.search(r'<ul class="parts">.*?</ul>', page, re.S)[0]


def test_fewer_than_five_people_are_never_told_as_none():
    """To publish, cases expected of a group are told in fives: 0 of 1,350 stands for up to 4, not "0.0 in 100"."""
    group = factories.finding(0.02, 0.09, variables=[("ward", "B")], rows=1_350, expected=0.0, observed=50 / 1_350)
    few = factories.finding(0.02, 0.09, variables=[("ward", "C")], rows=135, expected=0.0, observed=5 / 135)
    for one, cells in ((group, ("under 0.4", "3.7")), (few, ("0 to 4", "0 to 8"))):  # of few people, ranges
        record = factories.record(groups=[one], publish=True)
        row = [line for line in markdown(record).splitlines() if line.startswith("| ") and "ward" in line][-1]
        assert f"| {' | '.join(cells)} |" in row
        assert cells[0] in render(record)
        for text in (terminal(record), markdown(record), render(record)):
            assert "expects 0 " not in text
    exact = markdown(factories.record(groups=[few], publish=False))
    assert "| 0.0 | 3.7 |" in [line for line in exact.splitlines() if line.startswith("| ") and "ward" in line][-1]
    everyone = factories.record(everyone=factories.finding(expected=0.0, observed=0.0))
    assert "under 0.1" not in markdown(everyone)


def test_both_measures_are_shown_and_which_of_them_the_limit_is_about():
    group = factories.finding(0.02, 0.04, variables=[("sex", "female")])
    for judge, which in (("error", "calibration error"), ("gap", "gap")):
        page = render(factories.record(groups=[group], judge=judge))
        section = re.search(r'<section id="groups".*?</section>', page, re.S)[0]
        assert f"The limit is about the {which}." in section
        assert "errors in both directions cancel" in section
        low, high = groups.num.signed_range(group.gap.guaranteed.low, group.gap.guaranteed.high)
        assert f"({low} to {high})</td>" in section
        assert ("Gap, either way, <br>0 to " in section) == (judge == "gap")
        assert re.search(r'<td class="r iv">[\d.]+–[\d.]+</td>', section)


@pytest.mark.parametrize(("verdict", "low", "high"), [("over", 0.01, 0.04), ("within", 0.0, 0.03)])
def test_no_end_contradicts_a_verdict_that_all_groups_together_decide(verdict, low, high):
    """A group may be decided although its own range still holds the limit of 1.5 points."""
    group = replace(factories.finding(low, high, variables=[("sex", "female")]), verdict=verdict, rows_needed=None)
    record = factories.record(groups=[group])
    row = re.search(rf'<tr id="{group.id}">.*?</tr>', render(record), re.S)[0]
    shown = re.search(r'<td class="r iv">([\d.]+)–([\d.]+)</td>', row)
    ends = tuple(map(float, shown.groups()))
    assert ends == ((1.5, 4.0) if verdict == "over" else (0.0, 1.5))
    assert ("Over the limit" in row) == (verdict == "over")
