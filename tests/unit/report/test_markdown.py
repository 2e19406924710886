from __future__ import annotations

import re

import pytest

import factories
from calibrant.report.markdown import render as markdown

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
    assert "## Within the limit for everyone together. Over it for foreign born." in text
    assert "- **41 groups shown: 1 over the limit.** `foreign born`: at least 1.6; 32 undecided." in text
    assert "| `nativity = foreign born` | 40,333 |" in text
    assert "confidence interval" not in text.replace("not a confidence interval", "")


def test_what_is_strong_has_no_space_inside_its_stars():
    text = markdown(factories.whole())
    assert "**Underpredicts for** `age` **20 to 50**, most at 34" in text
    assert "(grey)" not in text
