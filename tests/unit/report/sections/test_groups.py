"""The section about groups: what stands in place of a table, what it leaves out, and what is cut."""

from __future__ import annotations

import re

import factories
from calibrant.report.html import render
from calibrant.report.markdown import render as markdown
from calibrant.report.terminal import render as terminal


def test_groups_that_are_all_too_small_are_not_called_missing():
    record = factories.unshown()
    for text in (terminal(record), markdown(record), render(record)):
        assert "No groups were given" not in text
        assert "very group has fewer than 20 people" in text.replace("\n", " ").replace("  ", " ")
    assert "--by age,sex" not in terminal(record)


def test_folded_values_and_columns_without_a_group_are_told():
    group = factories.finding(variables=[("city", "Springfield")])
    data = {"by": [["city"], ["ward"]], "variables": {"city": {"kind": "category", "edges": [], "folded": 812}}}
    record = factories.record(groups=[group], data=data)
    page = render(record)
    told = "812 less frequent values are shown together as “other” in <code><bdi>city</bdi></code>"
    assert page.count(told) == 2
    assert "No group of <code><bdi>ward</bdi></code> can be shown: all are too small." in page
    assert "less frequent values are shown together as “other” in `city`" in markdown(record)


def test_a_name_of_300_characters_is_cut_in_sentences_and_whole_in_its_table():
    record = factories.record(groups=[factories.finding(0.02, 0.04, variables=[("v", "x" * 300)])])
    page = render(record)
    assert page.count("x" * 300 + "</bdi>") >= 1
    assert "x" * 300 not in re.search(r'<p class="lead">.*?</p>', page, re.S)[0]
