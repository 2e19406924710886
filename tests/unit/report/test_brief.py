"""The first layer: what to do, before and after, what the error follows, what the verdict rests on, how long it is."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import calibrant as cal
import factories
from calibrant.audit.record import About, AuditRecord, CheckRecord
from calibrant.cli.parser import build_parser
from calibrant.report import commands, html
from calibrant.report.brief import action, brief, parts
from calibrant.report.brief.action import decision, rows_that_would_decide
from calibrant.report.brief.follows import figure, follows
from calibrant.report.brief.rests import not_checked, rests
from calibrant.report.document import Changes, Decision, Follows, Opening, Parts, Ruler
from calibrant.report.numbers import exact
from calibrant.report.spans import plain
from calibrant.results import Curve


def about(record: AuditRecord, **words: str) -> AuditRecord:
    return replace(record, settings={**record.settings, "about": About(**words).to_dict()})


def of(record: AuditRecord, kind: type) -> object:
    return next(n for n in brief(record).sections[0].nodes if isinstance(n, kind))


def all_words(record: AuditRecord) -> list[str]:
    """Return the words that somebody reads on the page's brief, those in pictures left out."""
    page = html.brief(record)
    body = re.sub(r"<svg.*?</svg>", " ", page.split("<main>")[1].split("</main>")[0], flags=re.S)
    return [w for w in re.split(r"[ \n]+", re.sub(r"<[^>]*>", " ", body)) if re.search(r"\w", w)]


# ---- as a whole ----


@pytest.mark.parametrize("make", [factories.whole, factories.employment, factories.tiny, factories.record])
def test_the_brief_has_one_headline_three_parts_one_action_and_one_picture(make):
    record = make()
    kinds = [type(n) for n in brief(record).sections[0].nodes]
    assert kinds[:3] == [Opening, Parts, Decision]
    assert kinds[3] in (Changes, Ruler)
    assert kinds.count(Opening) == kinds.count(Parts) == kinds.count(Decision) == 1
    assert len(parts(record)) == 3
    assert len(all_words(record)) <= 350


def test_the_brief_by_itself_is_a_page_that_loads_nothing():
    page = html.brief(factories.whole())
    assert page.count("<h1") == 1
    assert "<script" not in page
    assert "calibrant-result" not in page
    assert 'class="toc"' not in page
    assert not re.search(r'(src|href)="(?!#)', page)
    assert "prefers-color-scheme: dark" in page


def test_hostile_names_stay_text_in_the_brief():
    page = html.brief(factories.hostile_subgroups())
    assert "<img src=x" not in page
    assert "<script>document" not in page


def test_judged_by_the_gap_the_ruler_is_in_the_order_of_gaps():
    groups = [
        factories.finding(0.0, 0.05, variables=[("g", v)], observed=0.5 + d)
        for v, d in zip("abc", (0.01, 0.03, 0.02), strict=True)
    ]
    groups = [replace(g, verdict="undecided") for g in groups]
    made = of(factories.record(factories.finding(), groups, judge="gap"), Ruler)
    assert [m.value for m in made.marks] == ["Everyone", "g = b", "g = c", "g = a"]
    assert made.label.startswith("Certified gap of everyone")


def test_the_ruler_and_what_the_error_follows_show_a_pocket_over_the_limit():
    names = tuple(f"x{i}" for i in range(8))
    record = factories.scanned(factories.mixture("within", ["within"]))
    record = factories.followed(record, factories.ranking(names, found=0), {})
    drawn = of(record, Ruler)
    one_subgroup = next(m for m in drawn.marks if m.value == factories.CORNER)
    assert (one_subgroup.variable, one_subgroup.range, one_subgroup.verdict) == (
        "subgroup, by its gap",
        "2.6–11.1",
        "over",
    )
    stated = plain(of(record, Follows).more)
    assert stated == f"A subgroup is off, though: {factories.CORNER}. Underpredicts by at least 2.6 points."


def test_the_model_and_its_use_stand_over_the_brief():
    record = about(factories.employment(), model="credit-7", intended_use="lending")
    reported = [plain(f.text) for f in brief(record).facts]
    assert reported[1:3] == ["model: credit-7", "use: lending"]
    assert not any("model" in plain(f.text) for f in brief(factories.employment()).facts)


def test_ranges_that_say_nothing_are_told_as_too_few_rows():
    order = factories.ranking(("a", "site"), found=0)
    order = replace(order, columns={**order.columns, "beyond_high": (1.0, 0.7)})
    (made,) = follows(factories.followed(factories.employment(), order, {})).items
    assert (plain(made.title), made.note) == ("Too few rows to say what the error varies with", ())
    record = factories.scanned(factories.mixture("within", ["within"]), 0.0, 0.5, p_value=0.4)
    assert "Too few rows to say what no subgroup exceeds." in plain(parts(record)[2].text)


# ---- what to do ----


def test_a_repair_that_helps_is_the_action_with_its_whole_command():
    made = decision(factories.whole())
    assert plain(made.text) == (
        "Recalibrate by logistic regression with attributes. On 138,838 people held out, nothing is over "
        "the limit any more; one stays undecided."
    )
    words = shlex.split(made.command.replace("\\\n", " "))
    assert words[:3] == ["calibrant", "repair", "employment_ma.parquet"]
    assert words[-4:] == ["--method", "augmented-logistic", "--calibrator", "calibrator.json"]
    build_parser().parse_args(words[1:])


def test_what_stays_over_the_limit_and_what_still_finds_error_is_said():
    after = ((0.002, 0.009), (0.0181, 0.0262), (0.0011, 0.0131))
    fixed = factories.fixed(after=after, tests={"local": {"now": 0.001, "after": 0.004}})
    stated = plain(decision(factories.drawn(factories.whole(), fixed=fixed)).text)
    assert "foreign born stays over the limit" in stated
    assert stated.replace("\N{NO-BREAK SPACE}", " ").endswith("The local test still finds error (p = 0.0040).")


def test_that_nothing_helps_is_an_answer():
    made = decision(factories.drawn(factories.whole(), fixed=factories.fixed(candidate="")))
    stated = plain(made.text)
    assert "none of the three repairs tried is shown to help, on 138,838 people held out" in stated
    assert stated.endswith("Then audit the new scores.")
    assert made.command == ""  # the same file again would give the same answer


def test_advice_never_repeats_a_number_that_did_not_change():
    fixed = factories.fixed(None, after=((0.0064, 0.0118), (0.0024, 0.0262), (0.0011, 0.0131)))
    record = factories.drawn(factories.whole(None), fixed=fixed)
    assert "instead" not in action.outcome(record)
    better = factories.drawn(factories.whole(None), fixed=factories.fixed(None))
    assert "at most 1.0 points instead of 1.2" in action.outcome(better)


@pytest.mark.parametrize(
    ("record", "words", "option"),
    [
        (factories.employment(None), "Choose the largest error you can accept", "--limit 0.02"),
        (
            factories.mixture("undecided", ["within"]),
            "Audit again when this log has grown from 204,311",
            "--limit 0.015",
        ),
        (factories.mixture("within", []), "Name the groups that matter", "--by COLUMN"),
        (
            factories.scanned(factories.mixture("within", ["within"]), 0.0, 0.012, p_value=0.4),
            "Say what it is for",
            '--intended-use "…"',
        ),
        (
            about(
                factories.scanned(factories.mixture("within", ["within"]), 0.0, 0.012, p_value=0.4), intended_use="x"
            ),
            "Nothing to repair",
            "--limit 0.015",
        ),
    ],
)
def test_each_state_has_one_action_and_one_command(record, words, option):
    made = decision(record)
    assert words in plain(made.text)
    assert option in made.command.replace("\\\n   ", "")


def test_groups_are_proposed_of_the_columns_there_are():
    columns = {
        "branch": {"kind": "category", "used": "covariate"},
        "a, b": {"kind": "category", "used": "covariate"},
        "amount": {"kind": "number", "used": "covariate"},
    }
    record = factories.record(data={"columns": columns})
    made = decision(record)
    assert """--by 'branch,"a, b"'""" in made.command.replace("\\\n   ", "")


def test_quick_says_how_to_search_the_pockets():
    record = factories.mixture("within", ["within"])
    quick = replace(record, settings={**record.settings, "quick": True})
    made = decision(quick)
    assert plain(made.text) == "Search the unlisted subgroups."
    assert "--quick" not in made.command


# ---- rows that would decide ----


def test_rows_are_rows_of_the_log_and_a_time_stands_only_where_the_rate_is_known():
    record = factories.whole()
    assert plain(rows_that_would_decide(record)) == (
        "32 groups are undecided: too few people. Half of them would settle when this log has grown from 277,677 "
        "to about 940,000 people, in 10 years at 69,000 a year."
    )
    soon = replace(record, data={**record.data, "arrival": {"column": "d", "rows_a_year": 600_000.0}})
    assert plain(rows_that_would_decide(soon)).endswith("in 14 months at your rate.")
    late = replace(record, data={**record.data, "arrival": {"column": "d", "rows_a_year": 300.0}})
    assert plain(rows_that_would_decide(late)).endswith("in over 50 years at your rate.")
    never = replace(record, data={**record.data, "arrival": None})
    assert plain(rows_that_would_decide(never)).endswith("people.")
    assert rows_that_would_decide(factories.mixture("within", ["within"])) == ()
    unclear = replace(record, groups=tuple(replace(f, rows_at_least=True) for f in record.groups))
    assert "has grown from 277,677 to at least 940,000" in plain(rows_that_would_decide(unclear))
    two = plain(rows_that_would_decide(factories.mixture("within", ["undecided"] * 2)))
    assert "One of the two would settle" in two


# ---- before and after ----


def test_before_and_after_are_the_records_numbers_rounded_outward():
    record = factories.whole()
    table = of(record, Changes)
    assert [c.who for c in table.rows] == ["Everyone", factories.CORNER, "nativity = foreign born"]
    c = record.curve("fixed").columns
    for change in table.rows:
        i = next(k for k, who in enumerate(c["who"]) if change.who.lower() in who)
        for text, when in ((change.now, "now"), (change.after, "after")):
            low, high = map(Decimal, text.split("–"))
            assert low <= exact(c[f"{when}_low"][i])
            assert exact(c[f"{when}_high"][i]) <= high
        assert change.status == c["after"][i]
    assert "1.5 points" not in table.caption


def outcome(after, tests=None):
    fixed = factories.fixed(0.015, after=after, tests={"local": {"now": 0.001, "after": tests or 0.3}})
    return action.outcome(factories.drawn(factories.whole(), fixed=fixed))


def test_a_repair_is_enough_only_where_somebody_is_within_the_limit_and_no_test_finds_error():
    mended, unclear = (0.0011, 0.0131), (0.0024, 0.0262)
    assert "nothing is over the limit any more; one stays undecided." in outcome((mended, unclear, mended))
    for stated in (outcome((mended, unclear, unclear)), outcome((mended, mended, mended), 0.001)):
        assert "not shown to be enough" in stated
        assert "any more" not in stated


def test_ends_that_cross_say_which_score_each_is_about():
    cross = factories.fixed(0.015, after=((0.0112, 0.0108), (0.0, 0.01), (0.0, 0.01)))
    rows = action.changes(factories.drawn(factories.whole(), fixed=cross)).rows
    assert next(c.after for c in rows if c.who == "Everyone") == "raw at least 1.1, rounded at most 1.1"


@given(st.floats(0, 0.5), st.floats(0, 0.5), st.sampled_from(["within", "undecided", "over"]))
def test_a_range_after_never_contradicts_its_verdict(a, b, verdict):
    low, high = sorted((a, b))
    low = min(low, 0.015) if verdict == "within" else low
    high = max(high, 0.015) if verdict == "over" else high
    fixed = factories.fixed(0.015, after=((low, high), (0.0, 0.01), (0.0, 0.01)))
    fixed = replace(fixed, columns={**fixed.columns, "after": (verdict, "within", "within")})
    record = factories.drawn(factories.whole(), fixed=fixed)
    shown = next(c for c in action.changes(record).rows if c.who == "Everyone")
    least, most = map(Decimal, shown.after.split("–"))
    if verdict == "over":
        assert least >= Decimal("1.5")
    if verdict == "within":
        assert most <= Decimal("1.5")


def test_a_gap_is_told_by_its_size():
    fixed = factories.fixed()
    fixed = replace(
        fixed, columns={**fixed.columns, "now_low": (0.0064, 0.0162, -0.09), "now_high": (0.0118, 0.0334, -0.02)}
    )
    rows = action.changes(factories.drawn(factories.whole(), fixed=fixed)).rows
    assert next(c for c in rows if c.who == factories.CORNER).now == "2.0–9.0"


# ---- what the error follows ----


def test_titles_are_findings_and_what_shows_nothing_is_said_once():
    made = of(factories.hidden(), Follows)
    titles = [plain(f.title) for f in made.items]
    assert titles[0] == "Underpredicts for age 20 to 50, most at 34: +2.1 points"
    assert titles[-1] == "No variation with sex beyond the overall gap"
    assert plain(made.more) == "Also varies with marital."
    assert plain(made.items[0].note) == "age · certified 0.1 to 1.1 beyond the overall gap"
    assert plain(made.items[1].note) == "start · 0.1 to 0.9"
    assert all('role="img" aria-label=' in f.picture for f in made.items)
    assert follows(factories.record()) is None


def test_a_level_is_named_by_its_gap_and_the_other_side_too():
    curve = factories.by_variable("marital", labels=("married", "separated"), gaps=(0.02, -0.03))
    record = factories.followed(factories.employment(), factories.ranking(("marital",), found=1), {"marital": curve})
    (made,) = follows(record).items
    assert plain(made.title) == "Overpredicts for separated: −3.0 points; underpredicts for married"
    assert "separated −3.0" in made.picture


def test_nothing_found_along_many_variables_is_one_sentence():
    names = tuple(f"x{i}" for i in range(8))
    record = factories.followed(factories.employment(), factories.ranking(names, found=0), {})
    (made,) = follows(record).items
    assert plain(made.title) == "No variation with 8 variables beyond the overall gap"


@given(st.lists(st.floats(-0.5, 0.5), min_size=1, max_size=30), st.floats(0.0, 0.5))
def test_pictures_stay_inside_their_plot(gaps, half):
    curve = factories.by_variable(xs=[float(i) for i in range(len(gaps))], gaps=gaps, half=half)
    drawn = figure(sparks_along(curve), "a label")
    heights = [int(y) for y in re.findall(r'class="(?:curve|lone)" d="M\d+ (-?\d+)', drawn)]
    assert heights
    assert all(0 <= y <= 1000 for y in heights)


def sparks_along(curve):
    from calibrant.report.by_variable import by_variable_of

    return by_variable_of("age", curve)


# ---- what it rests on ----


def test_what_was_tested_of_three_attributes_is_counted():
    def line(strong):
        record = factories.searched(factories.scanned(factories.record()), None, strong)
        return next(plain(t) for t in rests(record) if plain(t).startswith("Subgroups of three or more"))

    found = factories.strong_outcome()
    assert "three or more attributes are tested by models, not certified." in line(found)
    some = line(factories.of_products(found))
    assert "are certified only where the search makes a rule of them; error over three is tested" in some
    assert "by models and by products of 3,000 of 4,495 triples of columns." in some
    every = factories.of_products(found)
    every = replace(every, parts={**every.parts, "products": 320, "triples": 165})
    assert "by products of all 165 triples of columns." in line(every)


def test_what_it_rests_on_is_true_of_the_data():
    record = factories.whole()
    few_values = replace(record, data={**record.data, "display": {"values": 51}})
    assert "takes 51 values, so both bounds apply to the raw score" in plain(rests(few_values)[0])
    whole = replace(record, data={**record.data, "display": {"steps": 100}})
    assert "apply to the score rounded to whole percent" in plain(rests(whole)[0])
    copies = replace(record, data={**record.data, "warnings": ["repeated-rows"]})
    assert plain(rests(copies)[0]).startswith("Repeated rows: ")
    assert "Few events: 8 expected." in plain(rests(factories.tiny())[0])
    looked = Curve(method="audit.dependence", columns={}, settings={"level": 0.01, "columns": 12, "joint": 30})
    site = replace(factories.employment(), curves={**factories.employment().curves, "dependence": looked})
    assert any("looked at 12 columns and 30 pairs and triples that rows share" in plain(t) for t in rests(site))
    assert len(rests(copies)) <= 3


def test_a_test_that_counts_by_itself_is_on_the_brief_where_it_finds_error():
    record = factories.searched(factories.record(), factories.local_outcome(), factories.strong_outcome(0.042))
    asked = replace(record, settings={**record.settings, "fail_on": ("strong-calibration",)})
    assert asked.exit_status == 1
    assert plain(rests(asked)[0]) == "The strong test counts separately, by --fail-on: error shown (p = 0.042)."
    assert "--fail-on" not in " ".join(plain(t) for t in rests(record))


def test_what_was_not_checked_is_on_the_brief():
    stated = plain(not_checked(factories.employment()))
    assert stated.startswith("Not checked, which is not a pass: unlisted subgroups, variables, the local test")
    quick = replace(factories.employment(), settings={**factories.employment().settings, "quick": True})
    assert plain(not_checked(quick)).endswith("--quick left out tests and repairs.")
    unknown = replace(factories.whole(), checks=(CheckRecord(code="rain", status="not-run", reason="dry"),))
    assert "rain" in plain(not_checked(unknown))
    codes = "calibration-slope", "auroc"
    undone = tuple(CheckRecord(code=c, status="not-applicable", reason="x") for c in codes)
    measures = replace(factories.whole(), checks=undone)
    assert plain(not_checked(measures)).startswith("Not checked, which is not a pass: some standard measures.")
    done = replace(factories.whole(), checks=())
    assert not_checked(done) == ()


# ---- every number is the record's ----

shares = st.floats(0, 0.6)


@given(shares, shares, shares, shares, st.sampled_from([None, 0.015, 0.0125, 0.1]))
def test_numbers_of_the_parts_are_the_records_rounded_outward(a, b, c, d, limit):
    (low, high), (least, most) = sorted((a, b)), sorted((c, d))
    group = factories.finding(least, most, variables=[("g", "north")], limit=limit)
    record = factories.record(factories.finding(low, high, limit=limit), [group], limit=limit)
    everyone, named, _ = (plain(p.text) for p in parts(record))
    shown_low, shown_high = map(Decimal, re.match(r"Off by ([\d.]+) to ([\d.]+) points", everyone).groups())
    assert shown_low <= exact(low)
    assert exact(high) <= shown_high
    if found := re.search(r"north: at least (\d+\.\d+)", named):
        assert Decimal(found[1]) <= exact(least)
    if found := re.search(r"No group is off by more than (\d+\.\d+)\.", named):
        assert exact(most) <= Decimal(found[1])
    if limit is not None:
        assert ("over the limit" in parts(record)[0].word.lower()) == (low > limit)


# ---- commands that can be typed as they are printed ----


@pytest.mark.parametrize(("between", "typed"), [(";", ";"), ("\t", r"\t")])
def test_printed_commands_read_the_file_as_it_was_read(between: str, typed: str, tmp_path: Path) -> None:
    lines = [f"{'ja' if i % 3 else 'nein'};0,{i % 90 + 10};{'Köln' if i % 2 else 'Ulm'}" for i in range(300)]
    path = tmp_path / "daten.csv"
    path.write_text("\n".join(["fall;risiko;größe", *lines]).replace(";", between), encoding="cp1252")
    reported = {"encoding": "cp1252", "decimal": ",", "delimiter": typed}
    plan = {"label": "fall", "score": "risiko", "positive": "ja", "by": "größe", "limit": 0.01, "quick": True}
    record = cal.audit(path, **plan, **reported)
    for text in (commands.command(record), commands.audit_again(record), commands.repair(record)):
        a = build_parser().parse_args(shlex.split(text.replace("\\\n", " "))[1:])
        assert "$" not in text
        assert {name: getattr(a, name) for name in reported} == reported
    assert AuditRecord.from_dict(json.loads(json.dumps(record.to_dict()))) == record
    found_out = cal.audit({"y": [0, 1] * 50, "p": [0.25, 0.5] * 50}, label="y", score="p", quick=True)
    assert "form" not in found_out.settings


@pytest.mark.parametrize(("label", "words"), [(1, "is an event"), (0, "is a non-event")])
def test_of_one_outcome_the_label_is_to_be_checked(label: int, words: str) -> None:
    log = {"y": [label] * 200, "p": [i / 200 for i in range(200)]}
    for limit in (None, 0.02):
        done = decision(cal.audit(log, label="y", score="p", limit=limit, quick=True))
        assert plain(done.text).startswith(f"Check the label: by y each of these rows {words}.")
        assert done.command == "", "no repair can be fitted"
