from __future__ import annotations

import re

import pytest

import factories
from calibrant.report.markdown import render as markdown
from calibrant.report.terminal import cells
from calibrant.report.terminal import render as terminal

RECORDS = [
    factories.employment,
    factories.hostile,
    factories.tiny,
    factories.record,
    lambda: factories.employment(limit=None),
]


@pytest.mark.parametrize("make", RECORDS)
def test_terminal_fits_and_holds_no_control_characters(make):
    text = terminal(make())
    lines = text.split("\n")
    assert len(lines) <= 44
    assert all(cells(line) <= 120 for line in lines)
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069\ud800]", text)
    assert not text.endswith("\n")


def test_terminal_aligns_and_leads_with_the_verdict():
    lines = terminal(factories.employment()).split("\n")
    assert lines[2] == "BROKEN. Within the limit for everyone together, over it for 1 of 41 groups"
    rows = [line for line in lines if re.search(r"\d to \d.*(met|broken|undecided)$", line)]
    assert len(rows) == 10
    assert len({line.rindex(" to ") for line in rows}) == 1
    assert [line.split()[-1] for line in rows[:3]] == ["met", "broken", "undecided"]
    assert any("nativity: foreign born" in line and "1.6 to 3.4" in line for line in rows)


def test_terminal_names_what_was_not_checked():
    assert "Not checked, which is not a pass: variables, local-calibration" in terminal(factories.employment())


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
    assert "## Within the limit for everyone together, over it for 1 of 41 groups" in text
    assert "| `nativity: foreign born` | 40\u202f333 | 56.2 | 58.5 | +2.4 | 1.6 to 3.4 | Broken | – |" in text
    assert "confidence interval" not in text.replace("not a confidence interval", "")
