from __future__ import annotations

import re
import time

import pytest

import factories
from calibrant.report.terminal import SEEN, cells, certificates, clip
from calibrant.report.terminal import render as terminal
from calibrant.results import Estimate, Interval

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
    assert len(terminal(make()).split("\n")) <= 39


def test_terminal_aligns_and_leads_with_the_decision():
    lines = terminal(factories.employment()).split("\n")
    assert lines[2] == "Within the limit overall. Group foreign born is over it."
    assert lines[4].startswith("● Everyone: within the limit. Predicted 49.26%, observed 50.13%: +0.9 points (+0.4 to")
    assert any(line.startswith("◆ 41 groups shown: 1 over the limit, 8 within, 32 undecided.") for line in lines)
    rows = [
        line for line in lines if re.search(r"(\)|withheld)( ·|  ).*(within the limit|over the limit|undecided)$", line)
    ]
    assert len(rows) == SEEN
    assert len({re.search(r"  ([+−]|estimate)", line).start() for line in rows}) == 1
    assert rows[0].startswith("  ● Everyone")
    assert rows[1].startswith("  ◆ nativity = foreign born")
    assert any("and 36 more, less evident" in line for line in lines)


def test_terminal_names_what_was_not_checked():
    stated = " ".join(terminal(factories.employment()).split())
    assert "Not checked: unlisted subgroups, variables, the local test" in stated


def test_a_long_name_is_cut_at_once():
    start = time.perf_counter()
    assert clip("e\u0301" * 10**6, 9) == "e\u0301" * 8 + "…"
    assert clip("h" * 10**6, 9) == "h" * 8 + "…"
    assert time.perf_counter() - start < 9


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [(-0.127, 0.117, "−12.7 to 11.7"), (0.0, 0.117, "at most 11.7"), (0.02, 1.0, "at least 2.0")],
)
def test_a_gap_below_zero_is_no_trivial_end(low: float, high: float, words: str) -> None:
    interval = Interval(low=low, high=high, level=0.95, guarantee="finite-sample")
    one = Estimate(
        method="certify.one",
        value=0.1,
        unit="probability",
        n=100,
        interval=interval,
        assumes="rows are independent",
        settings={"about": "the raw score"},
    )
    assert f" {words} points" in certificates([one], {})
