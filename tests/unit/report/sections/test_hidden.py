"""The section about error hidden in traits: what it says, what it rounds, and what it leaves unsaid."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import factories
from calibrant.audit.record import AuditRecord, CheckRecord
from calibrant.report import numbers as num
from calibrant.report.document import Entries, Items, Node
from calibrant.report.html import render
from calibrant.report.markdown import render as markdown
from calibrant.report.sections import curves, hidden, search, variables
from calibrant.report.sections import reference as methods
from calibrant.report.sections.reference import line as check_line
from calibrant.report.spans import Text, plain
from calibrant.report.terminal import render as terminal
from calibrant.report.wording.terms import LOOKED_AT, WHO
from effort import examples

SIMULATED = "p = 0.001, the smallest that 999 simulations can show"


@pytest.fixture(scope="module")
def page() -> str:
    return render(factories.hidden())


def section(text: str) -> str:
    return re.search(r'<section id="hidden".*?</section>', text, re.S)[0]


def words(text: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<script.*?</script>|<[^>]*>", " ", section(text), flags=re.S))


def reported(local: Any = None, strong: Any = None, **curves: Any) -> str:
    return plain(hidden.answer(factories.searched(factories.record(), local, strong, **curves)))


def test_one_search_that_does_not_stand_once_joined_is_not_called_found():
    record = factories.searched(factories.record(), None, factories.strong_outcome(0.042))
    joined = factories.scanned(record, 0.0, 0.01, p_value=0.084)
    stated = plain(hidden.answer(joined))
    assert stated.startswith(
        "None was found, which is not proof of none. Trained models find error (p = 0.042), but not"
    )
    assert stated.endswith("which allows for having searched twice (p = 0.084).")
    strong = next(c for c in joined.checks if c.code == "strong-calibration")
    assert check_line(strong, joined).status == "unfound"
    assert check_line(strong, record).status == "found"
    asked = replace(joined, settings={**joined.settings, "fail_on": ("strong-calibration",)})
    assert plain(hidden.answer(asked)).startswith("Yes: ")


def farthest(record: AuditRecord) -> Text:
    return curves.farthest(record, curves.maps(record))


def entries(nodes: Iterable[Node]) -> dict[str, str]:
    """Return what is said of each term."""
    return {e.term: plain(e.text) for n in nodes if isinstance(n, Entries) for e in n.entries}


def limits(record: AuditRecord) -> tuple[Text, ...]:
    (node,) = methods.limits(record)
    assert isinstance(node, Items)
    return node.items


def number(text: str) -> Fraction:
    return Fraction(text.replace("\u2212", "-"))


def test_the_answer_names_the_traits():
    start = "Yes: among rows with the same score, what happens still depends on "
    assert reported(factories.local_outcome()) == f"{start}age and marital ({SIMULATED})."
    many = factories.local_outcome([f"v{i}" for i in range(8)], [0.001] * 7 + [0.3])
    assert reported(many).startswith(f"{start}v0, v1, v2 and four more (")
    law = factories.local_outcome(p_value=0.00025, law="asymptotic: the sums' joint Gaussian law")
    assert reported(law) == f"{start}age and marital (p < 0.001)."


@pytest.mark.parametrize(
    ("outcome", "answer"),
    [
        ({"p_value": 0.43}, "None was found, which is not proof of none (p = 0.43)."),
        ({"adjusted": (0.001, 0.3, 0.4, 0.8)}, f"Yes, by the score itself ({SIMULATED}); no attribute is shown"),
        ({"adjusted": (0.3, 0.3, 0.4, 0.8)}, "Yes: among rows with the same score some error is left"),
        ({"adjusted": (0.3,) * 4, "p_local": 0.2}, "Only in the level or slope of the score as a whole"),
        ({"p_value": 0.0, "contradicted": 2}, "Yes, certain: 2 outcomes that the score called impossible."),
    ],
)
def test_each_finding_has_its_own_words(outcome, answer):
    assert reported(factories.local_outcome(**outcome)).startswith(answer)


def test_what_the_whole_test_does_not_find_is_no_evidence_along_a_variable():
    record = factories.searched(factories.record(), factories.local_outcome(p_value=0.2))
    assert not any(e.error_shown for e in hidden.carried(record))


def test_both_tests_are_told_together():
    found, none = factories.strong_outcome(), factories.strong_outcome(0.3)
    search = "A model trained to find the error predicts it on rows it has not seen"
    assert reported(factories.local_outcome(), found).endswith(f" {search} ({SIMULATED}).")
    assert reported(None, found) == f"Yes: a{search[1:]} ({SIMULATED})."
    clear = factories.local_outcome(p_value=0.43)
    assert reported(clear, found).startswith(
        f"Yes: a{search[1:]} ({SIMULATED}). Among rows with the same score, no attribute"
    )
    assert reported(clear, none) == (
        "None was found, which is not proof of none: not by attribute (p = 0.43), and a model trained to find the "
        "error does not predict it on rows it has not seen (p = 0.30)."
    )
    wide = factories.strong_outcome(tolerance=0.02)
    assert "trained to find errors of over 2.0 points predicts them" in reported(None, wide)


@pytest.mark.parametrize(
    ("largest", "words"),
    [
        ("products", "products of three attributes show the error"),
        ("corners", "ranges of two attributes show the error"),
        ("steps", "thresholds of single attributes show the error"),
    ],
)
def test_products_are_told_where_they_show_the_error(largest, words):
    found = factories.of_products(factories.strong_outcome(null="refit"), largest=largest)
    assert reported(None, found) == f"Yes: {words} ({SIMULATED})."
    record = factories.searched(factories.record(), None, found, control_chart=factories.control_chart(line=9.0))
    text = markdown(record)
    assert ("The product that stands out most is of `age`, `race` and `the score`." in text) == (largest == "products")
    assert "The peak comes after" not in text  # it is the models', which do not show the error
    assert "3,000 of 4,495 triples of columns have events enough and are looked at" in text
    assert "with weights of 0.6 and 0.4" in text


def test_products_that_show_nothing_are_told_too():
    none = factories.of_products(factories.strong_outcome(0.3), "models")
    assert reported(None, none).endswith(
        "on rows it has not seen, and no product of three attributes shows it (p = 0.30)."
    )
    found = factories.of_products(factories.strong_outcome(), "models")
    assert "a model trained to find the error predicts it on rows it has not seen" in reported(None, found)


def test_the_worst_place_is_told_with_numbers():
    gaps = [0.0] * 20 + [0.031, 0.048, 0.02] + [0.0] * 8
    record = factories.searched(
        factories.record(), factories.local_outcome(), maps={"age": factories.bias_map(gaps=gaps, half=0.017)}
    )
    text = plain(farthest(record))
    assert text.startswith("Farthest off by a group variable: age 60 to 64. Of these 1,263 rows, those at 62")
    assert "underpredicted by 4.8 points (band +3.1 to +6.5)." in text
    level = factories.bias_map("marital", "category", ("a", "b"), gaps=(0.0, -0.05))
    text = plain(farthest(factories.searched(factories.record(), factories.local_outcome(), maps={"m": level})))
    assert text.startswith("Farthest off by a group variable: m = b. There the model says")
    assert text.endswith("overpredicted by 5.0 points (band \u22125.6 to \u22124.4). 401 rows.")


def test_the_worst_place_allows_for_all_maps():
    """A p-value of 0.02 on one map is a finding; the smallest of five such maps is not."""
    curve = factories.bias_map(gaps=[0.02] * 31)
    curve = replace(curve, columns={**curve.columns, "p_adjusted": (0.02,) * 31})
    for n, found in ((1, True), (2, True), (3, False)):
        record = factories.searched(
            factories.record(), factories.local_outcome(), maps={f"v{i}": curve for i in range(n)}
        )
        assert (curves.worst(curves.maps(record), 0.05) is not None) is found
        assert ("is the model shown to be off" in plain(farthest(record))) is not found


@examples(50)
@given(st.lists(st.floats(-0.3, 0.3), min_size=2, max_size=9), st.floats(1e-4, 0.2))
def test_bands_are_rounded_outward_and_keep_their_side(gaps, half):
    places = [f"level {i}" for i in range(len(gaps))]
    curve = factories.bias_map("g", "category", places, gaps=gaps, half=half)
    record = factories.searched(factories.record(), factories.local_outcome(), maps={"g": curve})
    (made,) = curves.maps(record)
    low = dict(zip(curve.columns["label"], zip(curve.columns["low"], curve.columns["high"], strict=True), strict=True))
    (drawn,) = curves.map_figure(record, made).nodes
    for row in drawn.table.rows:
        a, b = map(number, re.search(r"\((.*) to (.*)\)", plain(row.cells[2].text)).groups())
        true = low[plain(row.cells[0].text)]
        assert a <= Fraction(repr(true[0])) * 100
        assert b >= Fraction(repr(true[1])) * 100
        assert (a > 0) == (true[0] > 0)
        assert (b < 0) == (true[1] < 0)


def test_every_map_is_a_small_picture_on_demand_that_its_line_leads_to():
    calibrators_ = factories.hidden().family("local_bias")
    page = render(factories.searched(factories.record(), factories.local_outcome(), maps=calibrators_))
    shown = re.findall(r'<details class="along" id="(map-[a-z0-9-]+)">(.*?)</figure></details>', page, re.S)
    assert len(shown) == 4
    assert all(len(body.encode()) < 14_000 for _, body in shown)
    assert sum("preserveAspectRatio" in body for _, body in shown) == 2
    assert set(re.findall(r'<a href="#(map-[a-z0-9-]+)"', page)) <= {anchor for anchor, _ in shown}


def test_a_variable_with_a_curve_has_no_map_beside_it():
    both = factories.variables()
    both = factories.searched(both, factories.local_outcome(), maps={"age": factories.bias_map()})
    ids = re.findall(r'<details class="along" id="([a-z0-9-]+)"', render(both))
    assert [i for i in ids if "age" in i and i.startswith("map")] == []


def test_holes_break_the_line_and_missing_values_stand_alone():
    curve = factories.bias_map(places=[1.0, 2.0, 3.0, 4.0, None], gaps=[0.02] * 5, masked=[1], scaling="rank")
    record = factories.searched(factories.record(), factories.local_outcome(), maps={"income": curve})
    by_variable = curves.maps(record)[0].by_variable
    assert [p.stretch for p in by_variable.line] == [0, 1, 1]
    assert [p.label for p in by_variable.levels] == ["missing"]


def test_codes_are_not_read_as_numbers():
    curve = factories.bias_map("zip", "category", ("007", "012"), gaps=(0.03, 0.0))
    record = factories.searched(factories.record(), factories.local_outcome(), maps={"zip": curve})
    assert "zip = 007" in plain(farthest(record))
    years = factories.bias_map("year", "category", ("2018", "2015"), gaps=(0.03, 0.0))
    record = factories.searched(factories.record(), factories.local_outcome(), maps={"year": years})
    assert [p.x for p in curves.maps(record)[0].by_variable.levels] == [2015.0, 2018.0]


def test_few_people_are_not_counted():
    curve = factories.bias_map("g", "category", ("a", "b"), gaps=(0.05, 0.0))
    curve = replace(curve, columns={**curve.columns, "people": (7, 9_000)})
    record = factories.searched(factories.record(), factories.local_outcome(), maps={"g": curve})
    assert "7 rows" not in plain(farthest(record))


@pytest.mark.parametrize(
    ("peak", "side", "says"),
    [
        (0.1, "underpredicts", "after 10% of rows: the error is concentrated in few rows. The model underpredicts"),
        (0.3, "overpredicts", "neither in few rows nor spread over most. The model overpredicts for them."),
        (
            0.66,
            "both ways",
            "widely spread, not confined to a small subgroup. The model underpredicts for some of them",
        ),
    ],
)
def test_the_peak_says_how_widely_error_is_spread(peak, side, says):
    record = factories.drawn(factories.hidden(), control_chart=factories.control_chart(peak, side=side))
    assert says in search.spread(record)
    assert says in section(render(record))
    clear = factories.searched(
        record, factories.local_outcome(), factories.strong_outcome(0.4), control_chart=record.curve("control_chart")
    )
    assert search.spread(clear) == ""
    assert "It stays under the dashed line" in plain(search.control(clear).caption)


def test_the_readout_of_the_chart_rounds_the_line_up(page):
    drawn = re.search(r'<figure[^>]*id="fig-control".*?</figure>', page, re.S)[0]
    assert "stays under 2.40 in 95 of 100 repeats" in drawn
    assert drawn.count("<tr>") == 1 + 51
    record = factories.drawn(factories.hidden(), control_chart=factories.control_chart(line=2.834))
    assert "stays under 2.84 in" in search.control(record).readout.form


def unmasked():
    """Return a record in which small groups are shown, and every number is exact."""
    of = factories.hidden()
    return factories.replace(of, settings={**of.settings, "publish": False, "mask": None})


def test_a_rule_of_few_people_has_no_exact_rates_where_small_groups_are_not_shown():
    """A set that a search cut is rounded without --publish too."""
    of = factories.hidden()
    masked = factories.replace(of, settings={**of.settings, "publish": False})
    row = next(r for r in markdown(masked).splitlines() if r.startswith("| `age over 72"))
    assert "| 29 to 40 | 72 to 87 | \u2013 (+27.0 to +57.1) |" in row


def test_rules_are_told_with_their_ranges_rounded_outward(page):
    text = words(page)
    again = "120 rows judged; found again in 4 of 5 searches"
    few = "2.4% 29 to 40 72 to 87 \u2013"  # of 120 people in multiples of five
    assert f"age over 72 and sex = female {again} {few} (+27.0 to +57.1) underpredicts" in text
    assert f"age up to 30 {again} {few} (\u22123.1 to +57.1) undecided" in text
    exact = words(render(unmasked()))
    assert f"age over 72 and sex = female {again} 2.4% 34.0 79.0 +45.0 (+27.0 to +57.1) underpredicts" in exact
    assert f"age up to 30 {again} 2.4% 34.0 79.0 +45.0 (\u22123.1 to +57.1) undecided" in exact
    assert "every number is from the other half, 5,000 that did not find them" in text
    assert "all two ranges hold simultaneously" not in text
    none = factories.drawn(factories.hidden(), searched_subgroups=factories.searched_subgroups(()))
    assert "no rule was worth judging" in section(render(none))


def test_a_rule_is_shown_to_be_off_only_where_its_range_is():
    curve = factories.searched_subgroups(found=2)
    for low, tolerance, shown in ((-0.001, 0.0, False), (0.2, 0.0, True), (0.04, 0.05, False), (0.06, 0.05, True)):
        columns = {**curve.columns, "low": (low, low)}
        made = replace(curve, columns=columns, settings={**curve.settings, "tolerance": tolerance})
        record = factories.drawn(factories.hidden(), searched_subgroups=made)
        assert (search.first_shown(record) is not None) is shown
        assert all(search.off(r, record) is shown for r in search.rules(record))


def test_who_they_are_is_said_only_where_a_rule_is_shown():
    none = factories.drawn(factories.hidden(), searched_subgroups=factories.searched_subgroups(found=0))
    for record, heading in ((factories.hidden(), WHO), (none, LOOKED_AT)):
        assert f'<h3 class="small">{heading}</h3>' in section(render(record))
        assert f"### {heading}\n" in markdown(record)
    assert "Who they are" not in render(none) + markdown(none) + terminal(none)
    one = factories.drawn(factories.hidden(), searched_subgroups=factories.searched_subgroups(["age over 72"]))
    assert "that did not find it. Its range holds in at least 95 of 100 audits." in search.rules_note(one)


def test_importance_shows_whole_ranges_and_whose_evidence_it_splits_up():
    curve = factories.importance()
    wide = {**curve.columns, "low": (2.1, -1.05, -0.21), "high": (6.3, 4.05, 2.2), "drop": (3.0, 1.5, -0.1)}
    record = factories.drawn(factories.hidden(), importance=replace(curve, columns=wide))
    made = variables.table(record, variables.reported(record))
    words_ = {plain(row.cells[0].text): plain(row.cells[-1].text) for row in made.rows}
    assert words_["age"] == "71% (50–150)"
    assert words_["the score itself"] == words_["sex"] == "not shown"
    note = search.needs_note(record)
    assert f"those of the test above; the evidence split up, 4.20 in all, is that of {num.count(10_000)}" in note
    old = {k: v for k, v in curve.settings.items() if k != "rows_tested"}
    older = factories.drawn(factories.hidden(), importance=replace(curve, columns=wide, settings=old))
    assert "4.20 in all, comes from a fit of its own, not that of the test above" in search.needs_note(older)
    assert "outside 0 to 100%: the shuffles are few (10 of each variable)" in note
    text = markdown(record)
    assert "| 71% (50–150) |" in text
    assert "| 36% (\u221225 to 96) |" in text


def test_the_chart_says_where_it_ends_and_on_how_many_repeats_it_rests():
    chart = factories.control_chart()
    short = {k: v[:31] for k, v in chart.columns.items()}
    more = {"tolerance": 0.05, "rows_beyond": 6_000, "null": "refit", "draws": 23}
    record = factories.drawn(
        factories.hidden(), control_chart=replace(chart, columns=short, settings={**chart.settings, **more})
    )
    record = factories.searched(
        record, None, factories.strong_outcome(0.4, "refit", draws=99), control_chart=record.curve("control_chart")
    )
    caption = plain(search.control(record).caption)
    assert "ends at 60% of rows: the others are predicted to be off by no more than the tolerance of 5.0" in caption
    assert "All was fitted again in 23 repeats, and then no more:" in caption
    assert "23 of at most 99 repeats of all of it" in entries(methods.methods(record))["Search"]
    whole = plain(search.control(factories.hidden()).caption)
    assert "ends at" not in whole
    assert "fitted again" not in whole


def test_importance_is_left_out_where_nothing_is_found():
    record = factories.searched(
        factories.hidden(), factories.local_outcome(), factories.strong_outcome(0.4), importance=factories.importance()
    )
    assert search.needs(record) == []
    assert "where nothing is found it would be noise" in markdown(record)
    assert "The search needs it" not in render(record)


@pytest.mark.parametrize("status", ["not-run", "not-applicable"])
def test_without_tests_it_says_why(status):
    record = factories.record()
    why = CheckRecord(code="local-calibration", status=status, reason="left out by --quick")
    record = replace(record, checks=tuple(why if c.code == why.code else c for c in record.checks))
    assert "Left out by --quick." in words(render(record))
    assert "## Is error hiding" not in markdown(record)
    one = factories.searched(factories.record(), factories.local_outcome())
    assert "The search for a mix of attributes was not made. The strong calibration test is not built" in words(
        render(one)
    )
    other = factories.searched(factories.record(), None, factories.strong_outcome())
    assert "The test of each attribute was not made." in words(render(other))
    assert search.control(other) is None


def test_the_checks_are_findings_and_never_met():
    record = factories.hidden()
    lines = {c.code: check_line(c, record) for c in record.checks}
    local, strong = lines["local-calibration"], lines["strong-calibration"]
    assert (local.status, local.error_shown, local.numbers) == (
        "found",
        "Error shown",
        f"{SIMULATED}; evidence in 2 of 3 variables",
    )
    assert (strong.status, strong.numbers) == ("found", f"{SIMULATED}; 1 of 2 rules shown to be off")
    clear = factories.searched(factories.record(), factories.local_outcome(p_value=0.4), factories.strong_outcome(0.3))
    for code in ("local-calibration", "strong-calibration"):
        line = check_line(next(c for c in clear.checks if c.code == code), clear)
        assert (line.status, line.error_shown) == ("unfound", "No error shown (not proof of none)")


def test_methods_words_and_limits_follow_what_was_run():
    plain_record, record = factories.record(), factories.hidden()
    terms = set(entries(methods.methods(record))) - set(entries(methods.methods(plain_record)))
    assert {"Attributes", "Maps", "Search", "Rules"} <= terms
    words_ = set(entries(methods.glossary(record))) - set(entries(methods.glossary(plain_record)))
    assert {"Local calibration", "Carries evidence", "Evidence, in the search"} <= words_
    assert any("The search finds some mixes of attributes, not all." in plain(t) for t in limits(record))
    assert not any("The search finds" in plain(t) for t in limits(plain_record))
    fixed = factories.searched(plain_record, None, factories.strong_outcome(null="fixed"))
    assert "more ready to find error" in "".join(entries(methods.methods(fixed)).values())


def test_hostile_names_stay_text():
    text = section(render(factories.hostile()))
    assert "<img" not in text
    assert "alert(1)&gt;" in text
    assert not re.search("[\u202e\x00\x1b]", text)
    assert text.count("<script") == text.count("</script>") == 0
    ids = re.findall(r' id="([^"]*)"', text)
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch("[a-z0-9-]+", i) for i in ids)
    fences = r"(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)"
    part = re.search("## Is error hiding.*?(?=\n## )", markdown(factories.hostile()), re.S)[0]
    assert "stars** @" in part
    assert "stars** @" not in re.sub(fences, "", part.replace("\\", ""))


def test_texts_carry_the_finding():
    record = factories.hidden()
    text = markdown(record)
    assert "## Is error hiding in a mix of attributes?" in text
    again = "120 rows judged; found again in 4 of 5 searches"
    start = f"| `age over 72 and sex = female` ({again}) | 2.4% |"
    assert f"{start} 29 to 40 | 72 to 87 | \u2013 (+27.0 to +57.1) | underpredicts |" in text
    assert f"{start} 34.0 | 79.0 | +45.0 (+27.0 to +57.1) | underpredicts |" in markdown(unmasked())
    assert re.search(r"\| `marital` \|.*\| p = 0.001\\?\* \|", text)
    again = AuditRecord.from_json(record.to_json())
    assert render(again) == render(record)


def test_the_words_of_the_section_are_plain(page):
    assert not re.search(
        r"KLCE|CUSUM|residual|kernel|bias|quantile|permut|nan\b|None\b",
        words(page).replace("None was", ""),
    )
