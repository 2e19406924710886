"""The headline and the three parts of the verdict, in every mixture; and what sections answer."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import factories
from calibrant.audit.record import About, AuditRecord, CheckRecord
from calibrant.report import findings as facts
from calibrant.report.brief import parts
from calibrant.report.brief.action import decision
from calibrant.report.brief.cards import MOST_WORDS
from calibrant.report.brief.rests import rests
from calibrant.report.findings import Off
from calibrant.report.markdown import render as markdown
from calibrant.report.sections.groups import groups_answer, table
from calibrant.report.sections.overall import overall_answer
from calibrant.report.sections.reference import line
from calibrant.report.spans import label, plain
from calibrant.report.terminal import render as terminal
from calibrant.report.wording import terms
from calibrant.report.wording.headline import headline, off_named, words_of
from calibrant.report.wording.parts import page_status, state_of, subgroups_reported, verdict_word

EVERYONE = ("within", "undecided", "over")
GROUPS = (
    [],
    ["within", "within"],
    ["undecided", "within"],
    ["undecided"] * 3,
    ["over", "within"],
    ["over"] * 3 + ["undecided"],
)
SUBGROUPS = {  # low, high, p-value; None where none were searched
    "absent": None,
    "within": (0.0, 0.012, 0.4),
    "undecided": (0.0, 0.039, 0.4),
    "error_shown": (0.0, 0.039, 0.002),
    "over": (0.0261, 0.119, 0.002),
}
SHORT = factories.subgroup_lines(("age over 72",), (0.0261,), (0.11,))
LONG = factories.subgroup_lines(
    ("a very long rule of many traits = that no sentence has any room for",), (0.0261,), (0.11,)
)
NONE = factories.subgroup_lines(("the score over 0.9",), (-0.02,), (0.031,))


def mixed(everyone: str, groups: list[str], subgroups: str, use: str | None = "lending", **about: str) -> AuditRecord:
    """Return a record with these three verdicts, and an intended use or none."""
    record = factories.mixture(everyone, groups)
    if (ends := SUBGROUPS[subgroups]) is not None:
        lines = SHORT if subgroups == "over" else NONE
        record = factories.scanned(record, *ends[:2], p_value=ends[2], lines=lines, needed=700_000)
    return replace(record, settings={**record.settings, "about": About(intended_use=use, **about).to_dict()})


def headline_is_short_and_never_better_than_the_worst_part(record, everyone, subgroups):
    stated = headline(record)
    assert facts.state(record, "subgroups") == subgroups
    assert words_of(stated) <= 15
    assert stated.count(". ") == 1
    assert stated[0].isupper()
    assert stated.endswith(".")
    assert not any(odd in stated for odd in ("  ", "..", "None", "nan", " ."))
    start = {
        "within": "Within the limit overall.",
        "undecided": "Undecided overall.",
        "over": "Over the limit overall.",
    }
    assert stated.startswith(start[everyone])
    states, (_, others) = facts.states(record), stated.split(". ", 1)
    if "over" in (states["groups"], subgroups):
        assert re.search(r"(is|are) over (it|the limit)\.$", others)
    elif "error_shown" in states.values():
        assert others == "Error is shown in unlisted subgroups."
    elif "undecided" in (states["groups"], subgroups):
        assert "undecided" in others
    elif "absent" in (states["groups"], subgroups):
        assert others.endswith("not checked.")
    else:
        assert re.fullmatch(r"Every group and unlisted subgroup is within (it|the limit)\.", others)


def words_and_marks_of_the_parts_are_the_verdicts(record, everyone, subgroups):
    words = {"within": "within", "undecided": "undecided", "over": "over the limit", "error_shown": "error shown"}
    words |= {"absent": "not checked"}
    for part, state in facts.states(record).items():
        status, word = verdict_word(record, part)
        assert status == state
        assert words[state] in word.lower()
    worst = next((s for s in ("over", "error_shown", "undecided", "within") if s in facts.states(record).values()), "")
    assert page_status(record) == worst
    for card in parts(record):
        stated = plain(card.text)
        assert stated.endswith(".")
        assert len(stated.split()) <= MOST_WORDS
        assert not any(odd in stated for odd in ("  ", "..", "None", "nan", " .", "1 groups"))
    assert ("Searched" in plain(parts(record)[2].text)) == (subgroups != "absent")


def headline_says_of_whom_it_is_where_outcomes_are_not_known(record):
    stated = headline(factories.unlabelled(record))
    assert words_of(stated) <= 15
    assert "nown" in stated.split(":", maxsplit=1)[0]
    assert headline(factories.unlabelled(record, 50)) == headline(record)  # of 10 000: hardly anyone


def answers_read_as_sentences(record):
    for text in (overall_answer(record), groups_answer(record)):
        stated = plain(text)
        assert stated[0].isupper()
        assert stated.endswith(".")
        assert not any(odd in stated for odd in ("  ", "..", "None", "nan", "1 groups", " ."))


@pytest.mark.parametrize(("everyone", "groups"), list(itertools.product(EVERYONE, GROUPS)))
def test_every_mixture_reads_well(everyone, groups):
    for subgroups in SUBGROUPS:
        record = mixed(everyone, groups, subgroups)
        headline_is_short_and_never_better_than_the_worst_part(record, everyone, subgroups)
        words_and_marks_of_the_parts_are_the_verdicts(record, everyone, subgroups)
        headline_says_of_whom_it_is_where_outcomes_are_not_known(record)
    answers_read_as_sentences(factories.mixture(everyone, groups))


KNOWN = [
    (
        "within",
        [],
        "absent",
        "Known outcomes: within the limit overall. Groups and unlisted subgroups were not checked.",
    ),
    (
        "within",
        ["over", "within"],
        "within",
        "Where the outcome is known: within the limit overall. Group region 0 is over it.",
    ),
    ("over", [], "within", "Of those whose outcome is known: over the limit overall. Groups were not checked."),
]


@pytest.mark.parametrize(("everyone", "groups", "subgroups", "stated"), KNOWN)
def test_headlines_of_those_whose_outcome_is_known(everyone, groups, subgroups, stated):
    record = factories.unlabelled(mixed(everyone, groups, subgroups))
    assert headline(record) == stated
    assert [p.who.endswith(", outcomes known") for p in parts(record)] == [True] * 3
    for shown in (terminal(record), markdown(record), repr(record)):
        assert stated in " ".join(shown.split())
        assert "Everyone, outcomes known" in shown
    assert "Of those whose outcome is known: on average" in " ".join(markdown(record).split())


def test_errors_that_cancel_are_told_of_the_known_too():
    record = factories.unlabelled(factories.mixture("within", []))
    high = replace(record.everyone.lower, interval=replace(record.everyone.lower.interval, low=0.021))
    record = replace(record, everyone=replace(record.everyone, lower=high))
    record = replace(record, settings={**record.settings, "judge": "gap"})
    assert headline(record).startswith("Known outcomes: on balance within the limit overall; errors cancel. ")


EXACT = [
    ("within", ["over", "within"], "absent", "Within the limit overall. Group region 0 is over it."),
    ("within", ["over"], "over", "Within the limit overall. Group region 0 and subgroup age over 72 are over it."),
    ("within", ["over"] * 3, "over", "Within the limit overall. Group region 0 and three more are over it."),
    ("undecided", ["within"], "over", "Undecided overall. Subgroup age over 72 is over the limit."),
    ("over", ["within"], "within", "Over the limit overall. Every group and unlisted subgroup is within it."),
    ("within", ["within"], "error_shown", "Within the limit overall. Error is shown in unlisted subgroups."),
    ("within", ["undecided"] * 3, "within", "Within the limit overall. Three groups are undecided."),
    ("within", ["undecided"], "undecided", "Within the limit overall. One group and unlisted subgroups are undecided."),
]


@pytest.mark.parametrize(("everyone", "groups", "subgroups", "stated"), EXACT)
def test_headlines(everyone, groups, subgroups, stated):
    assert headline(mixed(everyone, groups, subgroups)) == stated


def test_error_that_is_shown_of_any_size_is_named_where_nothing_is_over_the_limit():
    """A group within the limit, or undecided, whose error is shown, stands in the headline, its card and its state."""
    group = factories.finding(0.0, 0.04, variables=[("site", "Valley")], error_shown=True)
    record = factories.record(groups=[group])
    assert headline(record) == "Within the limit overall. Valley is miscalibrated."
    assert verdict_word(record, "groups") == ("error_shown", "Error shown")
    within = replace(group, verdict="within")
    assert state_of(within) == ("within", "Within the limit, error shown")
    one = replace(record.everyone, error_shown=True)
    shown = replace(record, everyone=one, error_shown={**record.error_shown, "everyone": True})
    assert headline(shown) == "Within the limit overall, with error shown. Valley is miscalibrated."
    over = factories.scanned(shown)
    assert headline(over) == "Within the limit overall. Subgroup x2 over 0.8 with x3 over 0.8 is over it."
    nolimit = replace(
        factories.record(factories.finding(limit=None), [replace(group, verdict="not_checked")], limit=None)
    )
    assert headline(nolimit) == "No limit is set. Valley is miscalibrated."


def test_two_traits_of_one_pocket_are_not_two_groups():
    record = factories.scanned(factories.mixture("within", []))
    assert headline(record).endswith("x2 over 0.8 with x3 over 0.8 is over it.")


def test_a_pocket_that_is_a_named_group_is_named_once():
    lines = factories.subgroup_lines(("region = 0",), (0.0261,), (0.11,))
    level = ({"variable": "region", "kind": "category", "levels": ("0",)},)
    lines = replace(lines, settings={**lines.settings, "conditions": (level,)})
    group = factories.finding(0.03, 0.05, variables=[("region", "0")])
    record = factories.scanned(factories.record(groups=[group]), lines=lines)
    assert headline(record).endswith("overall. Group region = 0 is over it.")


def test_a_long_rule_is_told_by_its_traits_and_odd_names_are_counted():
    record = factories.scanned(factories.employment(), lines=LONG)
    assert headline(record).endswith("foreign born and one unlisted subgroup are over it.")
    alone = factories.scanned(factories.mixture("within", []), lines=LONG)
    assert headline(alone).endswith("A subgroup of x2 and x3 is over it.")
    group = factories.finding(0.03, 0.05, variables=[("g", "@everyone <b>")])
    assert off_named(Off(0.03, group)) == ""
    assert headline(factories.record(groups=[group])).endswith("One group is over it.")
    assert off_named(Off(0.03, factories.finding(variables=[("age", "45–54")]))) == "age = 45–54"
    assert off_named(Off(0.03, factories.finding(variables=[("disability", "yes")]))) == "disability = yes"


@given(st.text(min_size=1, max_size=60), st.sampled_from(EVERYONE), st.booleans(), st.text(min_size=1, max_size=30))
def test_no_name_makes_a_headline_long(name, everyone, use, noun):
    group = factories.finding(0.03, 0.05, variables=[("g", name)])
    one = factories.mixture(everyone, []).everyone
    record = factories.record(one, [group], about=About(noun=noun, intended_use="x" if use else None).to_dict())
    stated = headline(record)
    assert words_of(stated) <= 15
    assert len(stated) <= 130


# ---- the parts ----


def test_the_card_of_groups_counts_states_and_names_the_most_evident():
    groups = [factories.finding(0.02, 0.08, variables=[("region", f"north {i}")]) for i in range(4)]
    groups[2] = replace(groups[2], gap=replace(groups[2].gap, p_value=1e-9))
    groups.append(factories.finding(0.0, 0.04, variables=[("region", "south")]))
    record = factories.record(groups=groups)
    assert verdict_word(record, "groups") == ("over", "4 over the limit, 1 undecided")
    assert plain(parts(record)[1].text) == (
        "north 2: +1.0 points (+0.5 to +1.5); calibration error 2.0 to 8.0 guaranteed."
    )


def test_what_closed_testing_decided_is_never_contradicted():
    """A group may be over the limit though its own lower end is not, or within it though its upper end is not."""
    over, within = (factories.finding(0.012, 0.03, variables=[("g", v)]) for v in ("over it", "within it"))
    groups = [replace(over, verdict="over"), replace(within, verdict="within")]
    record = factories.record(groups=groups)
    assert "calibration error 1.5 to 3.0 guaranteed" in plain(parts(record)[1].text)
    assert record.groups[0].error_ends == record.groups[0].shown == (0.015, 0.03)
    assert record.groups[1].error_ends == record.groups[1].shown == (0.012, 0.015)
    assert replace(groups[1], by="gap").error_ends == (0.012, 0.03)


def test_what_a_report_shows_of_a_group_that_is_over_by_its_error_alone_is_the_error():
    """The range of the gap holds 0, and the calibration error is certified over the limit."""
    one = replace(factories.finding(0.03, 0.05, variables=[("g", "a")], observed=0.5), verdict="over", by="gap")
    assert one.gap_ends == pytest.approx((-0.01, 0.01))
    assert one.shown == (0.03, 0.03)
    assert one.error_ends == (0.03, 0.05)
    assert replace(one, verdict="within").shown == pytest.approx((0.0, 0.01))
    assert replace(one, gap=replace(one.gap, guaranteed=None), verdict="undecided").shown == (0.0, 1.0)


def test_pockets_of_opposite_signs_are_both_named():
    lines = factories.subgroup_lines(("age over 72", "age up to 30"), (0.0261, -0.09), (0.11, -0.0311))
    record = factories.scanned(factories.mixture("within", ["within"]), lines=lines)
    stated = plain(subgroups_reported(record))
    assert "age up to 30: overpredicted, a gap of at least 3.1." in stated
    assert "age over 72: underpredicted, a gap of at least 2.6." in stated


def test_judged_by_the_gap_the_words_speak_of_the_gap():
    one = replace(factories.finding(0.004, 0.039, observed=0.52), verdict="over")
    group = factories.finding(0.004, 0.039, observed=0.52, variables=[("g", "north")])
    record = factories.record(one, [replace(group, verdict="over")], judge="gap", limit=0.005)
    assert plain(parts(record)[0].text).endswith("Guaranteed: gap +1.0 to +3.1.")
    assert plain(parts(record)[1].text) == "north: +2.0 points (+1.5 to +2.5); at least 1.0 guaranteed."


def test_a_pool_clears_nobody_in_it():
    """Of sites judged only together, in whose sum errors may cancel, no sentence says that each is within the limit."""
    small = factories.finding(0.002, 0.009, variables=[("site", "100 levels pooled")], pooled=100)
    groups = [factories.finding(0.002, 0.009, variables=[("site", "north")]), small]
    record = factories.scanned(factories.record(groups=groups), *SUBGROUPS["within"][:2], p_value=0.4, lines=NONE)
    assert headline(record) == "Within the limit overall. Every group shown and unlisted subgroup is within it."
    assert "100 small groups are judged only pooled." in [plain(t) for t in rests(record)]
    stated = f"{plain(groups_answer(record))} {parts(record)[1].who} {record!r}"
    assert "All 2 groups shown are within the limit; 100 small ones only pooled." in stated
    assert stated.count("2 groups shown") == 3
    assert "named group" not in stated
    gone = replace(record, groups=tuple(groups[:1]), data={**record.data, "by": [["site"], ["ward"]]})
    assert "Every group shown" in headline(gone)


def test_a_group_over_by_its_raw_score_is_no_contradiction_of_what_is_shown():
    over = factories.finding(0.207, 0.014, variables=[("group", "x1")], limit=0.08)
    stated = plain(parts(factories.record(groups=[over], limit=0.08))[1].text)
    assert stated.endswith("raw 20.7, rounded 1.4 guaranteed.")


def test_ranges_that_go_beyond_what_no_group_exceeds_are_explained():
    groups = [factories.finding(0.025, 0.26, variables=[("region", v)]) for v in ("north", "south")]
    record = factories.record(groups=groups)
    reported = "The ranges of groups are simultaneous; that none exceeds 24.0 is a separate statement."
    for high, stated in ((0.24, True), (0.26, False)):
        bound = factories.estimate(0.0, high)
        with_bound = replace(record, estimates={**record.estimates, "worst_group": bound})
        assert (reported in table(with_bound).caption) == stated


def test_an_error_that_cancels_in_the_gap_is_told_and_never_cut_to_the_limit():
    """Ten points too high for half and too low for the others: the gap is met, the average error far over the limit."""
    one = replace(factories.finding(0.092, 0.109, observed=0.5), verdict="within")
    gap = replace(one.gap, value=0.0, guaranteed=replace(one.gap.guaranteed, low=-0.004, high=0.003))
    one = replace(one, gap=gap)
    record = factories.record(one, judge="gap", limit=0.02)
    assert headline(record).startswith("On balance within the limit overall; errors cancel. ")
    assert plain(parts(record)[0].text).endswith("Errors cancel: calibration error at least 9.2 guaranteed.")
    assert terms.certified_range(record.everyone) == "9.2 to 10.9"
    assert terms.judged_range(record.everyone) == "0.0 to 0.4"
    assert plain(overall_answer(record)).startswith("On average by 9.2 to 10.9 points.")
    read = line(CheckRecord(code="error-everyone", status="within"), record)
    assert plain(read.question) == "Everyone: gap at most 2.0 points"
    assert read.numbers == "0.0 to 0.4 points"
    assert "calibration error at least 9.2" in repr(record)
    over = replace(factories.finding(0.05, 0.09, variables=[("g", "north")]), verdict="over")
    with_group = headline(factories.record(one, [over], judge="gap", limit=0.02))
    assert with_group.endswith("errors cancel. Group north is over it.")
    met = replace(record, verdicts=dict.fromkeys(record.verdicts, "within"))
    assert "judge the calibration error too" in plain(decision(met).text)


# ---- the sections ----


def test_pooled_and_blank_names():
    assert label(factories.finding(variables=[("race", "x")], pooled=3)) == "race: x pooled"
    assert label(factories.finding(variables=[("race", ""), ("sex", "f")])) == "race = (blank), sex = f"
    assert label(factories.finding(variables=[("g", "a")])) == "g = a"
    assert label(factories.finding(variables=[("g", "a ")])) == 'g = "a "'


@pytest.mark.parametrize(
    ("code", "status", "found"),
    [
        ("error-everyone", "over", "Over the limit"),
        ("gap", "measured", "Error shown"),
        ("reliability", "measured", "Error shown"),
        ("distance", "measured", "Measured"),
        ("local-calibration", "not-run", "Not run"),
        ("jittered", "not-applicable", "Not applicable (not a pass)"),
        ("a-code-from-the-future", "measured", "Measured"),
    ],
)
def test_checks_never_call_a_measurement_met_or_over_the_limit(code, status, found):
    check = CheckRecord(code=code, status=status, reason="why")
    read = line(check, factories.employment())
    assert read.error_shown == found
    if status.startswith("not-"):
        assert read.numbers == "Why."
    if code == "a-code-from-the-future":
        assert code in plain(read.question)


def test_a_shift_that_may_be_zero_is_no_proof_of_none():
    record = factories.record(estimates={"gap": factories.estimate(-0.002, 0.003)})
    read = line(CheckRecord(code="gap", status="measured"), record)
    assert read.error_shown == "No error shown (not proof of none)"
    assert "not shown to be off" in plain(overall_answer(record))


def test_no_verdict_is_called_broken():
    for everyone, groups in itertools.product(EVERYONE, GROUPS):
        record = mixed(everyone, groups, "over")
        texts = (headline(record), *(verdict_word(record, p)[1] for p in record.verdicts))
        assert not re.search("broken", " ".join(texts), re.I)
