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
    assert all(cells(line) <= 120 for line in lines if not line.startswith("    "))  # a command stays whole
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069\ud800]", text)
    assert not text.endswith("\n")


@pytest.mark.parametrize("make", [factories.employment, factories.whole, factories.tiny, factories.record])
def test_the_brief_is_one_screen(make):
    assert len(terminal(make()).split("\n")) <= 37


def test_terminal_aligns_and_leads_with_the_decision():
    lines = terminal(factories.employment()).split("\n")
    assert lines[2] == "Within the limit for everyone together. Over it for foreign born."
    assert lines[4:6] == [
        "● Everyone: within the limit. Off by 0.6 to 1.2 points on average.",
        "◆ 41 groups shown: 1 over the limit. foreign born: at least 1.6; 32 undecided. No group",
    ]
    rows = [line for line in lines if re.search(r"\d–\d.*(within the limit|over the limit|undecided)$", line)]
    assert len(rows) == 5
    assert len({line.rindex("–") for line in rows}) == 1
    assert [line.split()[-3:] for line in rows[:2]] == [["within", "the", "limit"], ["over", "the", "limit"]]
    assert rows[2].endswith("undecided")
    assert any("nativity = foreign born" in line and "1.6–3.4" in line for line in rows)


def test_terminal_shows_before_and_after():
    lines = terminal(factories.whole()).split("\n")
    rows = [line for line in lines if re.search(r"^  .*\d–\d.*\d–\d", line)]
    assert [re.split(r"\s{2,}", line)[-1] for line in rows] == ["within the limit", "within the limit", "undecided"]
    text = " ".join("\n".join(lines).replace("\\\n", "").split())
    assert "--method augmented-logistic --calibrator calibrator.json" in text


def test_terminal_names_what_was_not_checked():
    stated = " ".join(terminal(factories.employment()).split())
    assert "Not checked, which is not a pass: unlisted subgroups, variables, the local test" in stated


def test_a_long_name_is_cut_at_once():
    start = time.perf_counter()
    assert clip("e\u0301" * 10**6, 9) == "e\u0301" * 8 + "…"
    assert clip("h" * 10**6, 9) == "h" * 8 + "…"
    assert time.perf_counter() - start < 9
