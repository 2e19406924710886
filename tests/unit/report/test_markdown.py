from __future__ import annotations

import re

import pytest

import factories
from calibrant.report.markdown import marked
from calibrant.report.markdown import render as markdown
from calibrant.report.spans import say, strong

RECORDS = [
    factories.employment,
    factories.hostile,
    factories.tiny,
    factories.record,
    lambda: factories.employment(limit=None),
]


@pytest.mark.parametrize("make", RECORDS)
def test_markdown_tables_are_square(make):
    text = markdown(make())
    assert "\n\n\n" not in text
    for block in re.findall(r"(?:^\|.*\|\n?)+", text, re.M):
        widths = {len(re.findall(r"(?<!\\)\|", line)) for line in block.strip().split("\n")}
        assert len(widths) == 1


def test_markdown_keeps_names_inside_code_spans():
    text = markdown(factories.hostile())
    outside = re.sub(r"(?s)(`+)(?!`).*?(?<!`)\1(?!`)", "", text)
    assert "<" not in outside
    assert "@" not in outside
    assert "javascript" not in outside
    assert "\\|pipes\\|" in text


def test_markdown_says_what_the_page_says():
    text = markdown(factories.employment())
    assert "## Within the limit overall. Group foreign born is over it." in text
    assert "- **41 groups shown: 1 over the limit, 8 within, 32 undecided.** `foreign born`: +" in text
    assert "| `nativity = foreign born` | 40,333 |" in text
    assert "confidence interval" not in text.replace("not a confidence interval", "")


def test_what_is_strong_has_no_space_inside_its_stars():
    assert marked(say("a", strong(" b "), "c")) == "a **b** c"
    text = markdown(factories.whole())
    assert "(grey)" not in text
