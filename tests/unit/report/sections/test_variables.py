"""The section about variables: what it says, what it rounds, and that no name or small count gets through."""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

import factories
from calibrant.audit.record import AuditRecord, CheckRecord
from calibrant.report.by_variable import by_variable_of
from calibrant.report.findings import ranked
from calibrant.report.html import render
from calibrant.report.markdown import render as markdown
from calibrant.report.sections import curves, variables
from calibrant.report.sections.reference import line as check_line
from calibrant.report.spans import plain
from effort import examples


@pytest.fixture(scope="module")
def page() -> str:
    return render(factories.variables())


def section(text: str) -> str:
    return re.search(r'<section id="variables".*?</section>', text, re.S)[0]


def with_ranking(**columns: object) -> AuditRecord:
    order = factories.ranking()
    return factories.followed(factories.record(), replace(order, columns={**order.columns, **columns}), {})


def reported(record: AuditRecord) -> str:
    return plain(variables.answer(record))


def number(text: str) -> Fraction:
    return Fraction(text.replace("\u2212", "-"))


def test_the_answer_names_what_is_shown_and_does_not_call_the_rest_nothing():
    assert reported(factories.variables()) == (
        "age first, then start and marital. sex is not shown to add anything beyond the overall gap."
    )
    many = factories.followed(factories.record(), factories.ranking([f"v{i}" for i in range(30)], found=7), {})
    assert reported(many).startswith("v0 first, then v1, v2, v3 and three more. v7, v8, v9 and 20 more are not shown")
    none = factories.followed(factories.record(), factories.ranking(found=0), {})
    assert reported(none).startswith(
        "None of the three is shown: no error beyond the overall gap was found, which is not"
    )
    one = factories.followed(factories.record(), factories.ranking(["x"], found=0), {})
    assert reported(one).startswith("Not shown for x: ")


def test_every_variable_has_a_line_that_leads_to_its_curve(page):
    text = section(page)
    table = re.search(r'<table class="cards follow.*?</table>', text, re.S)[0]
    assert len(re.findall("<tr><th", table)) == 1 + 4
    targets = re.findall(r'<a href="#(curve-[a-z0-9-]+)"', text)
    assert sorted(targets) == sorted(re.findall(r'<details class="along" id="([a-z0-9-]+)"', text))
    assert len(targets) == 4
    assert '<details class="along" id="curve-age' in text.split('<details id="curves">')[1]
    assert not re.search(r"<details[^>]* open", text)
    assert len(re.findall('<svg class="spark"', text)) == 4
    assert all(len(s) <= 600 for s in re.findall(r'<svg class="spark".*?</svg>', text, re.S))


@pytest.mark.parametrize("name", ["age", "start", "marital", "sex"])
def test_a_figure_is_small(page, name):
    shown = re.findall(r'<details class="along" id="curve-' + name + r".*?</figure></details>", page, re.S)
    assert len(shown[0].encode()) < 14_000


def test_a_variable_is_told_once_whatever_looked_at_it():
    record = factories.searched(
        factories.variables(), factories.local_outcome(), factories.strong_outcome(), importance=factories.importance()
    )
    names = [v.name for v in variables.reported(record)]
    assert len(names) == len(set(names))
    assert set(names) >= {"age", "marital", "sex", "start", "the score itself"}
    (age,) = (v for v in variables.reported(record) if v.name == "age")
    assert age.shown
    assert None not in (age.ranked, age.evidence, age.needed, age.by_variable)
    heads = [plain(c.head) for c in variables.table(record, variables.reported(record)).columns if "page" in c.where]
    assert heads == [
        "Variable",
        "Gap by value",
        "Beyond the overall gap (certified)",
        "Adjusted p",
        "Farthest off at (gap)",
        "Among equal scores, p",
        "The search needs it",
    ]


def test_the_page_shows_what_is_found_and_the_rest_on_demand():
    record = factories.followed(factories.record(), factories.ranking([f"v{i}" for i in range(12)], found=5), {})
    text = section(render(record))
    assert re.search(r'<table class="cards follow" data-most="5"', text)
    assert text.count("<tr><th") == 1 + 12
    none = section(render(factories.followed(factories.record(), factories.ranking(found=0), {})))
    assert '<details id="variables-all"><summary>What was examined: 3 variables</summary>' in none


@examples(60)
@given(st.floats(0, 0.5), st.floats(0, 0.5), st.floats(0, 0.3))
def test_certified_ranges_are_rounded_outward(low, width, beyond):
    high = low + width
    record = with_ranking(
        beyond_low=[low] * 3, beyond_high=[high] * 3, low=[low] * 3, high=[high] * 3, beyond_gap=[beyond] * 3
    )
    for row in variables.table(record, [v for v in variables.reported(record) if v.ranked]).rows:
        for text in (plain(row.cells[2].text).partition("(")[2].rstrip(")"), plain(row.cells[3].text)):
            a, b = map(number, text.split("–"))
            assert a <= Fraction(repr(low)) * 100
            assert b >= Fraction(repr(high)) * 100


@examples(60)
@given(st.lists(st.floats(-0.3, 0.3), min_size=2, max_size=9), st.floats(1e-4, 0.2))
def test_bands_are_rounded_outward_and_keep_their_side(gaps, half):
    curve = factories.by_variable(xs=[float(i) for i in range(len(gaps))], gaps=gaps, half=half)
    (drawn,) = curves.figure(factories.record(), by_variable_of("age", curve)).nodes
    for row, low, high in zip(drawn.numbers[0].rows, curve.columns["low"], curve.columns["high"], strict=True):
        reported = plain(row.cells[4].text)
        a, b = map(number, reported.split(" to "))
        assert a <= Fraction(repr(low)) * 100
        assert b >= Fraction(repr(high)) * 100
        assert (a > 0) == (low > 0)
        assert (b < 0) == (high < 0)
        assert reported.startswith("+") == (low > 0)  # by which the page's script tells the side
        assert ("to \u2212" in reported) == (high < 0)


def test_where_no_proof_covers_the_data_the_table_says_about():
    none = [None] * 3
    record = with_ranking(beyond_low=none, beyond_high=none, low=none, high=none)
    text = section(render(record))
    assert ">about 0.7</td>" in text
    assert "Certified ranges" not in text
    assert "Ranges are certified" not in markdown(record)


def test_the_finding_gives_each_stretch_with_its_largest_gap():
    gaps = [0.0] * 5 + [0.021, 0.01] + [0.0] * 5 + [-0.011] + [0.0] * 5
    curve = by_variable_of("age", factories.by_variable(xs=[float(40 + i) for i in range(18)], gaps=gaps, half=0.004))
    assert plain(curves.finding(curve, 1)) == (
        "The model underpredicts at age 45 to 46 (by up to 2.1 points), and overpredicts for 52 (by 1.1 points); "
        "elsewhere it is not shown to be off."
    )
    assert curves.heading(curve, 1) == "underpredicts for 45 to 46, by up to 2.1 points; one more"
    assert "adjusted for looking everywhere, the largest is 1.7 to 2.5." in curves.further(curve, 1)


def test_what_the_whole_test_does_not_find_is_not_told_as_a_finding(page):
    sex = by_variable_of("sex", factories.variables().family("variable_curve")["sex"])
    assert curves.heading(sex, 1) == "not shown to be off anywhere"
    assert plain(curves.finding(sex, 1)) == "At no value of sex is the model shown to be off."
    loud = by_variable_of("x", factories.by_variable(gaps=[0.02] * 41, p_value=0.4))
    assert plain(curves.finding(loud, 1)) == "At no value of x is the model shown to be off."


def test_dates_are_dates_and_years_are_years():
    text = section(render(factories.variables()))
    assert re.search(r'<text class="xl"[^>]*>20(17|18|19)</text>', text)
    assert "17000" not in re.sub(r'data-(lo|s)="[^"]*"|min="[^"]*"', "", text)
    year = with_ranking(worst=["2,015"] * 3, kind=["number"] * 3)
    assert plain(variables.farthest(variables.reported(year)[0])) == "2015"
    apart = with_ranking(worst=["1,234,567 to 12,015"] * 3, kind=["number"] * 3)
    whole = plain(variables.farthest(variables.reported(apart)[0]))
    assert whole == "1,234,567 to 12,015"


def test_missing_values_are_a_row_under_the_curve():
    curve = factories.by_variable("income", xs=[1.0, 2.0, 3.0, None], gaps=[0.0, 0.0, 0.0, 0.05])
    record = factories.followed(factories.record(), factories.ranking(["income"], 1), {"income": curve})
    text = section(render(record))
    assert "Without a place on the axis." in text
    assert "underpredicts for missing, by 5.0 points" in text


def test_people_of_levels_do_not_tell_how_many_are_left_out():
    """With one level left out for being small, no share but the smallest shown could tell its people."""
    labels, gaps = ("a", "b", "c"), (0.02, 0.02, 0.02)
    record = factories.followed(
        factories.record(),
        factories.ranking(["g"], 1),
        {"g": factories.by_variable("g", labels=labels, gaps=gaps, masked=1)},
    )
    text = section(render(record))
    assert "One level is left out" in text
    assert "900" not in re.sub(r"<script.*?</script>", "", text)


def test_values_of_too_few_people_are_not_named_where_the_error_is_largest():
    for rows, gap in ((6, 0.01), (None, None)):
        record = with_ranking(worst=["tiny"] * 3, worst_rows=[rows] * 3, worst_beyond_gap=[gap] * 3)
        text = section(render(record))
        assert "tiny" not in text
        assert len(re.findall('class="at none">–</td>', text)) == 3


def test_hostile_names_stay_text():
    text = section(render(factories.hostile()))
    assert "<img" not in text
    assert "alert(1)&gt;" in text
    assert "49" not in re.findall(r"<h3>(.*?)</h3>", text)
    assert not re.search("[\u202e\x00\x1b]", text)
    assert "<script" not in text
    ids = re.findall(r' id="([^"]*)"', text)
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch("[a-z0-9-]+", i) for i in ids)


def test_the_check_is_a_finding_and_never_met():
    record = factories.variables()
    line = check_line(next(c for c in record.checks if c.code == "variables"), record)
    assert (line.status, line.error_shown) == ("found", "Error shown")
    assert line.numbers.startswith("3 of 4 variables; smallest adjusted p = 0.001, the smallest that 999")
    clear = factories.followed(factories.record(), factories.ranking(found=0), {})
    line = check_line(CheckRecord(code="variables", status="measured"), clear)
    assert (line.status, line.error_shown) == ("unfound", "No error shown (not proof of none)")


def test_only_simulated_p_values_have_a_floor():
    order = factories.ranking()
    law = {**order.settings, "null": "asymptotic: Gaussian residual sums"}
    columns = {**order.columns, "p_adjusted": [9e-5, 1.2e-4, 1.0]}
    text = render(factories.followed(factories.record(), replace(order, settings=law, columns=columns), {}))
    reported = re.findall(r'<td data-l="Adjusted p" class="r p[^>]*>(p .*?)</td>', section(text))
    assert reported == ["p &lt; 0.001", "p &lt; 0.001", "p = 1.0"]
    assert "simulations can show" not in section(text)
    assert "p-values come from the normal law of sums" in text


@pytest.mark.parametrize("status", ["not-run", "not-applicable"])
def test_without_a_ranking_it_says_why(status):
    record = factories.record()
    why = CheckRecord(code="variables", status=status, reason="no covariates were given: add columns")
    record = replace(record, checks=tuple(why if c.code == "variables" else c for c in record.checks))
    assert "No covariates were given: add columns." in section(render(record))
    assert "Beyond the overall gap" not in markdown(record)
    assert "Beyond the overall gap" not in render(record)


def test_pairs_are_not_rows_of_the_ranking_of_variables():
    order = factories.ranking(["a", "b", "a x b"])
    record = factories.followed(
        factories.record(), replace(order, columns={**order.columns, "kind": ["number", "number", "pair"]}), {}
    )
    assert [r.variable for r in ranked(record)] == ["a", "b"]


def test_texts_carry_the_ranking():
    record = factories.variables()
    text = markdown(record)
    assert "## Which variables does the error vary with?" in text
    assert re.search(r"\| `age` \| 0.7 \(0.1–1.1\) \| .* \| p = 0.001", text)
    assert AuditRecord.from_json(record.to_json()).curve("ranking").columns["variable"][0] == "age"


def test_the_words_of_the_page_are_plain(page):
    text = re.sub(r"<script.*?</script>|<[^>]*>", " ", section(page))
    assert not re.search(r"VECE|LOESS|residual|quantile|nan\b", text, re.I)
    assert render(factories.variables()) == page
