from __future__ import annotations

import re
import time

import pytest

import factories
from calibrant.report.terminal import cells, clip
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
    assert len(lines) <= 48
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


def test_a_long_name_is_cut_at_once():
    start = time.perf_counter()
    assert clip("e\u0301" * 10**6, 9) == "e\u0301" * 8 + "…"
    assert clip("h" * 10**6, 9) == "h" * 8 + "…"
    assert time.perf_counter() - start < 1
