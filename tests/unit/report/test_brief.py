"""The first layer: what is known, what to do, the forest plot, what it rests on, who signs, and how long it is."""

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
from calibrant.report.brief import brief, nodes, parts
from calibrant.report.brief.action import decision
from calibrant.report.brief.forest import ROWS
from calibrant.report.brief.rests import not_checked, reading, rests
from calibrant.report.document import Decision, Forest, Opening, Paragraph, Parts, Signing
from calibrant.report.numbers import exact
from calibrant.report.sections.groups import table
from calibrant.report.spans import plain
from calibrant.results import Curve


def about(record: AuditRecord, **words: str) -> AuditRecord:
    return replace(record, settings={**record.settings, "about": About(**words).to_dict()})


def of(record: AuditRecord, kind: type) -> object:
    return next(n for n in brief(record).sections[0].nodes if isinstance(n, kind))


def all_words(record: AuditRecord) -> list[str]:
    """Return the words that somebody reads on the page's brief, pictures and what is opened on demand left out."""
    page = html.brief(record)
    body = re.sub(r"<svg.*?</svg>", " ", page.split("<main>")[1].split("</main>")[0], flags=re.S)
    body = re.sub(r"<details.*?</details>", " ", body, flags=re.S)
    return [w for w in re.split(r"[ \n]+", re.sub(r"<[^>]*>", " ", body)) if re.search(r"\w", w)]


# ---- as a whole ----


@pytest.mark.parametrize("make", [factories.whole, factories.employment, factories.tiny, factories.record])
def test_the_brief_has_one_headline_three_cards_one_action_one_plot_and_a_block_to_sign(make):
    record = make()
    kinds = [type(n) for n in brief(record).sections[0].nodes]
    assert kinds[:4] == [Opening, Parts, Decision, Forest]
    assert kinds[-1] is Signing
    assert set(kinds[4:-1]) <= {Paragraph}
    assert len(parts(record)) == 3
    lines = of(record, Forest).lines
    numbers = sum(len(f"{r.who} {r.of} {r.estimate} {r.guaranteed} {r.word}".split()) for r in lines)
    assert len(all_words(record)) - numbers <= 350


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


# ---- the plot ----


def group(name, gap, p, **more):
    made = factories.finding(0.0, 0.04, variables=[("g", name)], observed=0.5 + gap, **more)
    return replace(made, gap=replace(made.gap, p_value=p))


def test_everyone_stands_first_then_groups_by_evidence():
    """Error that is shown, then adjusted p-values; where those are 1, gaps in widths of their intervals."""
    groups = [
        group("a", 0.01, 0.9),
        group("b", 0.03, 0.001),
        group("c", 0.004, 0.8),
        group("d", 0.001, 0.4, error_shown=True),
    ]
    wide = replace(groups[0].gap, interval=replace(groups[0].gap.interval, low=-0.09, high=0.11))
    groups[0] = replace(groups[0], gap=wide)
    drawn = of(factories.record(factories.finding(), groups), Forest)
    assert [r.who for r in drawn.lines] == ["Everyone", "g = d", "g = b", "g = c", "g = a"]
    assert [r.word for r in drawn.lines[:3]] == ["Within the limit", "Error shown", "Undecided"]


def test_at_most_twelve_lines_are_seen_and_the_rest_is_opened_on_demand():
    groups = [group(f"x{i}", 0.01, (i + 1) / 100_000) for i in range(90)]
    drawn = of(factories.record(factories.finding(), groups), Forest)
    assert len(drawn.lines) == ROWS
    assert [r.who for r in drawn.folded[:2]] == ["g = x11", "g = x12"]
    assert (len(drawn.folded), drawn.rest) == (8, "71 more groups are in the table of groups.")


def test_a_subgroup_that_is_shown_to_be_off_stands_in_the_plot():
    drawn = of(factories.scanned(factories.mixture("within", ["within"])), Forest)
    shown = next(r for r in drawn.lines if r.who == factories.CORNER)
    assert (shown.of, shown.estimate, shown.guaranteed) == (
        "2,400 · unlisted subgroup",
        "+6.8",
        "+2.6 to +11.1",
    )
    assert (shown.status, drawn.lines.index(shown)) == ("over", 1)


def test_of_rare_events_everyone_and_the_table_say_observed_over_expected_too():
    one = factories.finding(expected=0.010, observed=0.012)
    record = factories.record(one, [group("a", 0.0, 0.002)])
    line = of(record, Forest).lines[0]
    assert line.estimate.startswith("+0.20 (")
    assert plain(parts(record)[0].text).startswith(
        "Predicted 1.00%, observed 1.20%: observed over expected 1.20 (0.70 to 1.70), +0.20 points ("
    )
    assert "O/E" not in str(list(nodes(record)))
    found = replace(group("a", 0.0069, 0.03), by="gap")
    found = replace(found, gap=replace(found.gap, guaranteed=replace(found.gap.guaranteed, low=0.0069, high=0.03)))
    drawn = factories.record(one, [found], limit=0.005, judge="gap")
    assert "; at least 0.69 guaranteed" in plain(parts(drawn)[1].text)
    heads = [plain(c.head) for c in table(record).columns]
    assert "Observed / expected" in " ".join(heads).replace("\n", " ")
    assert (
        table(record)
        .rows[0]
        .cells[heads.index(next(h for h in heads if "expected" in h))]
        .text[0]
        .text.startswith("1.20")
    )


def test_of_few_people_whose_counts_are_published_no_estimate_is_shown():
    few = factories.finding(0.0, 0.4, variables=[("g", "few")], rows=120)
    record = factories.record(factories.finding(), [few])
    record = replace(record, settings={**record.settings, "publish": True})
    line = of(record, Forest).lines[1]
    assert (line.of, line.estimate.partition(" ·")[0]) == ("120", "estimate withheld")
    assert "spot" not in line.picture
    assert "span" not in line.picture
    assert "sure" in line.picture


def test_without_a_limit_the_same_plot_is_shown():
    record = factories.employment(limit=None)
    drawn = of(record, Forest)
    assert "okzone" not in "".join(r.picture for r in drawn.lines)
    assert {r.who for r in drawn.lines} == {r.who for r in of(factories.employment(), Forest).lines}
    assert "No limit is set" in of(record, Opening).headline


@given(st.floats(-0.6, 0.6), st.floats(0.0, 0.4), st.floats(0.0, 0.9), st.sampled_from([None, 0.001, 0.05, 0.4]))
def test_everything_in_the_plot_stays_inside_its_axis(gap, half, wide, limit):
    made = group("a", 0.0, 0.5)
    of_gap = replace(
        made.gap,
        value=gap,
        interval=replace(made.gap.interval, low=gap - half, high=gap + half),
        guaranteed=replace(made.gap.guaranteed, low=max(gap - wide, -1.0), high=min(gap + wide, 1.0)),
    )
    drawn = of(factories.record(factories.finding(limit=limit), [replace(made, gap=of_gap)], limit=limit), Forest)
    for text in (*(r.picture for r in drawn.lines), drawn.foot):
        assert all(0 <= float(x) <= 100 for x in re.findall(r' (?:x|x1|x2|width)="(-?[\d.e+-]+)%"', text))
    places = re.findall(r'<rect class="(?:sure|okzone)[^"]*" x="([\d.]+)%" width="([\d.]+)%"', drawn.lines[1].picture)
    assert all(float(x) + float(w) <= 100.1 for x, w in places)


def test_how_often_a_verdict_is_wrong_is_the_sum_of_the_shares_used():
    record = factories.employment()
    record = replace(record, joint_error={"over": 0.15, "within": 0.125, "error_shown": 0.1})
    stated = "In at most 15% of such reports is any “over” wrong, in at most 12.5% any “within”."
    assert reading(record, drawn=False).endswith(stated)  # the page says it where it is signed
    assert "error shown 10%." in plain(of(record, Signing).entries[1].text)


# ---- over the brief, and under it ----


def test_the_model_and_its_use_stand_over_the_brief():
    record = about(factories.employment(), model="credit-7", intended_use="lending")
    reported = [plain(f.text) for f in brief(record).facts]
    assert reported[:2] == ["credit-7", "lending"]
    assert reported[2:] == [plain(f.text) for f in brief(factories.employment()).facts]


def test_ranges_that_say_nothing_are_told_as_too_few_rows():
    none = Curve(method="diagnose.subgroups", columns={})
    record = factories.scanned(factories.mixture("within", ["within"]), 0.0, 0.5, p_value=0.4)
    record = factories.drawn(record, subgroups=none)
    assert "Too few rows to say what none exceeds." in plain(parts(record)[2].text)


# ---- what to do ----


def test_a_repair_that_helps_is_the_action_with_its_whole_command():
    made = decision(factories.whole())
    assert plain(made.text) == (
        "Do not rely on it yet for foreign born and two more. "
        "Recalibrate by logistic regression with attributes: on 138,838 people held out it brings foreign born from "
        "+2.7 to +0.4 points; no group's gap is estimated to rise by more than 0.6."
    )
    words = shlex.split(made.command.replace("\\\n", " "))
    assert words[:3] == ["calibrant", "repair", "employment_ma.parquet"]
    assert words[-4:] == ["--method", "augmented-logistic", "-o", "calibrator.json"]
    build_parser().parse_args(words[1:])


def test_what_stays_over_the_limit_and_what_still_finds_error_is_said():
    after = ((0.002, 0.009), (0.0181, 0.0262), (0.0011, 0.0131))
    fixed = factories.fixed(after=after, tests={"local": {"now": 0.001, "after": 0.004}})
    stated = plain(decision(factories.drawn(factories.whole(), fixed=fixed)).text)
    assert "foreign born stays over the limit" in stated
    plainly = stated.replace("\N{NO-BREAK SPACE}", " ")
    assert "On those rows the local test still finds error (p = 0.0040): audit it again once repaired." in plainly


@pytest.mark.parametrize(("group", "perhaps"), [("within", True), ("over", False)])
def test_error_is_perhaps_beyond_the_limit_only_where_nobody_is_over_it(group: str, perhaps: bool) -> None:
    record = factories.mixture("undecided", [group])
    shown = replace(record.everyone, error_shown=True)
    record = replace(record, everyone=shown, error_shown={**record.error_shown, "everyone": True})
    stated = plain(decision(record).text)
    assert stated.startswith("Do not rely on it yet")
    assert ("error is shown, perhaps beyond the limit" in stated) == perhaps


def test_that_nothing_helps_is_an_answer():
    made = decision(factories.drawn(factories.whole(), fixed=factories.fixed(candidate="")))
    stated = plain(made.text)
    assert "None of the three repairs tried is shown to help on 138,838 people held out" in stated
    assert stated.startswith("Do not rely on it yet for foreign born, +2.4 points (+1.9 to +2.9)")
    assert "--rows-of 'nativity = foreign born' -o rows.csv" in made.command


@pytest.mark.parametrize(
    ("record", "words", "option"),
    [
        (factories.employment(None), "Choose the largest error you can accept", "--limit 0.02"),
        (
            factories.mixture("undecided", ["within"]),
            "Collect more: everyone would settle when this log has grown from 204,311",
            "--limit 0.015",
        ),
        (
            factories.scanned(factories.mixture("within", ["within"]), 0.0, 0.012, p_value=0.4),
            "Say what it is for",
            "--about about.toml",
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


# ---- what it rests on ----


def test_what_was_tested_of_three_attributes_is_counted():
    def line(strong):
        record = factories.searched(factories.scanned(factories.record()), None, strong)
        return next(plain(t) for t in rests(record) if plain(t).startswith("Subgroups of three or more"))

    found = factories.strong_outcome()
    assert "three or more attributes are tested by models, not certified." in line(found)
    some = line(factories.of_products(found))
    assert "are tested by models and by 3,000 of 4,495 triples of columns" in some
    assert some.endswith(", without a guaranteed range.")
    every = factories.of_products(found)
    every = replace(every, parts={**every.parts, "products": 165, "triples": 165})
    assert "by all 165 triples of columns," in line(every)
    none = replace(every, parts={**every.parts, "products": 0})
    assert "three or more attributes are tested by models, not certified." in line(none)


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
    assert len([t for t in rests(copies) if "judged only pooled" not in plain(t)]) <= 3


def test_a_test_that_counts_by_itself_is_on_the_brief_where_it_finds_error():
    record = factories.searched(factories.record(), factories.local_outcome(), factories.strong_outcome(0.042))
    asked = replace(record, settings={**record.settings, "fail_on": ("strong-calibration",)})
    assert asked.exit_status == 1
    assert plain(rests(asked)[0]) == "The strong test counts separately, by --fail-on: error shown (p = 0.042)."
    assert "--fail-on" not in " ".join(plain(t) for t in rests(record))


def test_what_was_not_checked_is_on_the_brief():
    stated = plain(not_checked(factories.employment()))
    assert stated.startswith("unlisted subgroups, variables, the local test")
    quick = replace(factories.employment(), settings={**factories.employment().settings, "quick": True})
    assert plain(not_checked(quick)).endswith("--quick left out tests and repairs.")
    unknown = replace(factories.whole(), checks=(CheckRecord(code="rain", status="not-run", reason="dry"),))
    assert "rain" in plain(not_checked(unknown))
    codes = "calibration-slope", "auroc"
    undone = tuple(CheckRecord(code=c, status="not-applicable", reason="x") for c in codes)
    measures = replace(factories.whole(), checks=undone)
    assert plain(not_checked(measures)).startswith("some standard measures: not a pass.")
    done = replace(factories.whole(), checks=())
    assert not_checked(done) == ()


# ---- every number is the record's ----

shares = st.floats(0, 0.6)


@given(shares, shares, shares, shares, st.sampled_from([None, 0.015, 0.0125, 0.1]))
def test_numbers_of_the_cards_are_the_records_rounded_outward(a, b, c, d, limit):
    (low, high), (least, most) = sorted((a, b)), sorted((c, d))
    group = factories.finding(least, most, variables=[("g", "north")], limit=limit)
    record = factories.record(factories.finding(low, high, limit=limit), [group], limit=limit)
    everyone, named, _ = (plain(p.text) for p in parts(record))
    for stated, ends in ((everyone, (low, high)), (named, (least, most))):
        shown = re.search(r"calibration error (\d+\.\d+) to (\d+\.\d+)", stated)
        assert Decimal(shown[1]) <= exact(ends[0])
        assert exact(ends[1]) <= Decimal(shown[2])
    if limit is not None:
        assert ("over the limit" in parts(record)[0].word.lower()) == (low > limit)


# ---- commands that can be typed as they are printed ----


@pytest.mark.slow
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
        assert done.command.startswith("look = cal.look("), "no repair can be fitted"
