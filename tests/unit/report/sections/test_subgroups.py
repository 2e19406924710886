"""The third part of the verdict: what is said of unnamed pockets, and the section that shows them."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

import factories
from calibrant.audit.record import AuditRecord, CheckRecord
from calibrant.report import html, markdown, terminal
from calibrant.report.findings import subgroups_state
from calibrant.report.sections import subgroups
from calibrant.report.sections.reference import limits, line
from calibrant.report.spans import plain
from calibrant.report.wording.headline import headline, page_title
from calibrant.report.wording.parts import subgroups_reported, verdict_word

NONE = factories.subgroup_lines(("the score over 0.9",), (-0.02,), (0.031,))


def met(low: float = 0.0, high: float = 0.039, p_value: float | None = 0.4) -> AuditRecord:
    """Return a record with everyone and both groups within the limit."""
    lines = None if low else NONE
    return factories.scanned(factories.mixture("within", ["within", "within"]), low, high, p_value=p_value, lines=lines)


def broken() -> AuditRecord:
    """Return the same with a pocket over the limit."""
    return met(0.0261, 0.119, p_value=0.002)


def unjudged(low: float = 0.0261) -> AuditRecord:
    return factories.scanned(factories.employment(None), low)


def section(record: AuditRecord) -> str:
    found = re.search(r'<section id="subgroups".*?</section>', html.render(record), re.S)[0]
    return re.sub(r"\s+", " ", re.sub(r"<svg.*?</svg>|<[^>]*>", " ", found, flags=re.S))


def reported(record: AuditRecord) -> str:
    return plain(subgroups_reported(record))


# ---- the verdict, its word and its sentence ----


@pytest.mark.parametrize(
    ("record", "state", "word", "stated"),
    [
        (broken(), "over", "1 over the limit", "x2 over 0.8 with x3 over 0.8 is over it."),
        (met(), "undecided", "Undecided", "Unlisted subgroups are undecided."),
        (met(0.004, p_value=0.002), "error_shown", "Error shown", "Two unlisted subgroups are miscalibrated."),
        (met(high=0.012, p_value=0.002), "error_shown", "Error shown", "Error is shown in unlisted subgroups."),
        (
            met(high=0.012),
            "within",
            "Within the limit",
            "Within the limit overall. Every group and unlisted subgroup is within it.",
        ),
        (
            met(high=0.012, p_value=None),
            "within",
            "Within the limit",
            "Every group and unlisted subgroup is within it.",
        ),
        (factories.mixture("within", ["within"]), "absent", "Not checked", "Unlisted subgroups were not checked."),
        (unjudged(), "measured", "Error shown", "Two unlisted subgroups are miscalibrated."),
    ],
)
def test_a_state_has_its_word_and_the_headline_says_the_worst(record, state, word, stated):
    assert subgroups_state(record) == state
    assert verdict_word(record, "subgroups")[1] == word
    assert stated in headline(record)
    assert f"Unlisted subgroups: {word.lower()}. " in terminal.render(record).replace("\n", " ")
    assert f"**Unlisted subgroups: {word.lower()}.** " in markdown.render(record)


def test_no_green_headline_stands_alone():
    for record in (met(), met(0.004, p_value=0.002), met(high=0.012, p_value=0.002)):
        assert record.verdict == "within"
        assert "nlisted subgroup" in headline(record)
        assert "subgroups" in page_title(record).split(":")[0]
    assert broken().verdict == "over"


NUMBERS = "worst at least 2.6 points; of 5% of the rows or more, at most 11.9; test: p = 0.0020"
MOST = "No subgroup of one or two attributes with 5% of rows has a gap over 11.9."


def test_what_is_certified_is_said_in_one_sentence_each():
    corner = "x2 over 0.8 and x3 over 0.8: underpredicted, a gap of at least 2.6."
    assert reported(broken()) == f"{corner} {MOST}"
    assert reported(met()).endswith("over 3.9. About 240,000 rows would decide.")
    test = "A test shows error (p = 0.0020); no subgroup is certified over the limit. "
    assert reported(met(0.004, p_value=0.002)).startswith(test)
    assert reported(unjudged()).startswith("A test shows error (p = 0.0020). x2 over 0.8")
    unnamed = factories.scanned(factories.record(), box=None)
    unnamed = replace(unnamed, curves={k: c for k, c in unnamed.curves.items() if k != "subgroups"})
    assert reported(unnamed).startswith("One subgroup: off, a gap of at least 2.6. No subgroup")


def test_bounds_are_rounded_outward_and_true_to_the_verdict():
    lines = factories.subgroup_lines(("age over 72",), (0.0161,), (0.11,))
    stated = reported(factories.scanned(factories.mixture("within", ["within"]), 0.0261, 0.119, lines=lines))
    assert "a gap of at least 1.6. The largest gap certified, of x2 over 0.8 and x3 over 0.8: at least 2.6." in stated
    hidden = reported(factories.scanned(factories.mixture("within", ["within"]), 0.0261, 0.119, lines=lines, box=None))
    assert "The largest gap certified is of too few rows to name, or leaves too few outside: at least 2.6." in hidden
    assert "over 1.5." in reported(met(high=0.014803))


def test_a_search_that_was_not_made_says_why():
    quick = CheckRecord(code="subgroups", status="not-run", reason="left out by --quick")
    of = factories.record()
    record = replace(of, checks=(*of.checks, quick))
    assert reported(record) == "Left out by --quick."
    assert "Left out by --quick." in section(record)
    assert subgroups.figure(record) is None
    assert "Unlisted subgroups: not checked. Left out by --quick." in terminal.render(record)


def test_the_first_screen_has_three_parts_with_shape_and_word():
    page = html.render(broken())
    parts = re.search(r'<ul class="parts">.*?</ul>', page, re.S)[0]
    assert re.findall(r'<li class="([\w-]+)"><span>([^<]*)', parts) == [
        ("within", "Everyone"),
        ("within", "2 groups"),
        ("over", "Unlisted subgroups"),
    ]
    assert parts.count("<svg") == 3
    assert re.findall(r"</svg>([^<]*)</b>", parts) == ["Within the limit", "Within the limit", "1 over the limit"]
    assert page.index('<ul class="parts">') < page.index('<table class="fp"')


# ---- the section ----


def test_pockets_are_told_with_all_that_is_known_of_them():
    shown = section(broken())
    assert "2,400 rows, 4%: 31.0 predicted, 37.8 happened" in shown
    assert (
        "x2 over 0.8 and x3 over 0.8 : marital = married (61%, of others 38%); x1 over 0.5 (70%, of others 50%)"
        in shown
    )
    assert "Found again in 7 of 10 halves; without those above: \u22122.3" in shown
    assert "+6.8 (+2.6 to +11.1)" in shown
    assert "\u22124.7 (\u22128.3 to \u22121.1)" in shown
    assert re.findall(r"Over the limit|Undecided|Within the limit", shown.split("Verdict")[1])[:3] == [
        "Over the limit",
        "Undecided",
        "Within the limit",
    ]
    assert "Only the search of subgroups finds error" in shown
    assert subgroups.LOOKED_AT not in shown


def test_a_pocket_that_is_not_shown_to_be_off_is_told_as_looked_at():
    shown = section(met())
    assert subgroups.LOOKED_AT in shown
    assert "Neither finds error, which is not proof of none" in shown


def test_pockets_of_too_few_people_are_not_shown():
    empty = replace(NONE, columns=dict.fromkeys(NONE.columns, ()), settings={**NONE.settings, "besides": ()})
    assert subgroups.NOT_SHOWN in section(factories.scanned(factories.record(), lines=empty))


def test_without_a_limit_the_direction_is_told():
    table = subgroups.table(unjudged(), subgroups.reported(unjudged()))
    assert [plain(r.cells[-1].text) for r in table.rows] == ["underpredicts", "overpredicts", "not shown off"]


def test_the_map_has_more_rows_than_columns_and_its_pocket():
    drawn = subgroups.figure(broken())
    assert drawn is not None
    assert drawn.title == "Underpredicts by at least 2.6 points: x2 over 0.8 and x3 over 0.8"
    assert ("blank", "too few to show") in drawn.key
    assert "Cells of fewer than 20 are blank" in plain(drawn.caption)
    assert re.search(r'class="frame" d="M8 1h2v2h-2z"', drawn.panels[0].picture)
    levels = ("a", "b", "c", "d", "e", "f", "g", "h", "j", "k")  # turned: ten levels across, eleven tenths up
    turned = subgroups.figure(factories.scanned(factories.record(), drawn_map=factories.subgroup_map(levels=levels)))
    assert turned is not None
    assert turned.panels[0].title == "Gap by x3 (across) and x2 (up)"
    assert re.search(r'class="frame" d="M8 1h2v2h-2z"', turned.panels[0].picture)


def test_small_gaps_have_a_decimal_and_none_is_minus_zero():
    drawn = subgroups.figure(factories.scanned(factories.record(), drawn_map=factories.subgroup_map(gap=0.02)))
    assert drawn is not None
    words = re.findall(r'class="in"[^>]*>([^<]*)<', drawn.panels[0].picture)
    assert "+2.0" in words
    assert "\u22120.0" not in words
    assert all(re.fullmatch(r"0|[+\u2212]\d\.\d", w) for w in words)


def test_two_levels_that_are_not_neighbours_are_two_frames_and_a_whole_trait_ends_with_its_labels():
    found = list(subgroups._frames(((1, 2, 4, 5), (0, 11)), True, (10, 6)))
    assert found == [(0, 10, 1, 2), (0, 10, 4, 5)]


def test_the_other_sections_know_of_pockets():
    record = broken()
    text = markdown.render(record)
    assert "- **Subgroups:** Each covariate and the score is cut" in text
    assert "- **Two searches:**" in text
    assert "- **Subgroup:** Everyone with the same one or two attributes" in text
    shown = line(record.checks[-1], record)
    assert (shown.status, shown.numbers) == ("over", NUMBERS)
    (items,) = limits(record)
    assert any("Subgroups of one or two attributes are certified" in plain(t) for t in items.items)


@pytest.mark.slow
def test_hostile_names_stay_text_and_the_record_survives():
    record = factories.hostile_subgroups()
    page = html.render(record)
    assert "<img src=x" not in page
    assert "owned'</script>" not in page
    assert AuditRecord.from_json(record.to_json()).to_json() == record.to_json()
    island = re.search(r'id="calibrant-result"[^>]*>(.*?)</script>', page, re.S)[1]
    assert json.loads(island)["estimates"]["subgroups"]["interval"]["low"] == 0.0261
    assert len(terminal.render(record).split("\n")) <= 50
