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
from calibrant.report.findings import Off
from calibrant.report.markdown import render as markdown
from calibrant.report.sections.groups import groups_answer, table
from calibrant.report.sections.overall import overall_answer
from calibrant.report.sections.reference import line
from calibrant.report.spans import label, plain
from calibrant.report.terminal import render as terminal
from calibrant.report.wording import terms
from calibrant.report.wording.headline import headline, off_named, words_of
from calibrant.report.wording.parts import (
    everyone_reported,
    groups_reported,
    page_status,
    subgroups_reported,
    verdict_word,
)

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


def headline_is_short_and_never_better_than_the_worst_part(record, everyone, subgroups, use):
    stated = headline(record)
    assert facts.state(record, "subgroups") == subgroups
    assert words_of(stated) <= 16
    assert stated[0].isupper()
    assert stated.endswith(".")
    assert not any(odd in stated for odd in ("  ", "..", "None", "nan", " ."))
    states = set(facts.states(record).values())
    assert ("Use it" in stated or "not use" in stated) <= (use is not None)
    if "over" in states:
        over = ("Do not use it", "not for") if use else ("Over the limit", "Over it for", "over it for")
        assert any(words in stated for words in over)
        assert stated.startswith("Use it for everyone together") <= (everyone == "within" and use is not None)
    else:
        assert "not use" not in stated
        assert "ver the limit" not in stated.replace("Over all", "")
    if everyone == "over":
        assert stated.startswith(("Do not use it", "Over the limit"))
    if "undecided" in states and not states & {"over"}:
        assert "Too few" in stated or "undecided" in stated or "error shown" in stated.lower()
    if "error_shown" in states and "over" not in states:
        assert "error shown" in stated.lower() or "error is shown in unlisted subgroups" in stated
    if states == {"within"}:
        assert stated in (
            "Use it for everyone, every named group and unlisted subgroups.",
            "Within the limit for everyone, every named group and unlisted subgroups.",
        )
    if subgroups == "absent" and "over" not in states and "undecided" not in states:
        assert "not checked" in stated


def words_and_marks_of_the_parts_are_the_verdicts(record, everyone, subgroups):
    words = {
        "within": "Within the limit",
        "undecided": "Undecided",
        "over": "Over the limit",
        "error_shown": "Error shown",
    }
    words |= {"absent": "Not checked"}
    for part, state in facts.states(record).items():
        status, word = verdict_word(record, part)
        assert status == state
        assert words[state].lower() in word.lower()
    assert verdict_word(record, "everyone")[1] == words[everyone]
    worst = next((s for s in ("over", "error_shown", "undecided", "within") if s in facts.states(record).values()), "")
    assert page_status(record) == worst
    for reported in (everyone_reported, groups_reported, subgroups_reported):
        stated = plain(reported(record))
        assert stated.endswith(".")
        assert not any(odd in stated for odd in ("  ", "..", "None", "nan", " .", "1 groups"))
    assert ("gap" in plain(subgroups_reported(record))) == (subgroups != "absent")


def headline_says_of_whom_it_is_where_outcomes_are_not_known(record):
    stated = headline(factories.unlabelled(record))
    assert words_of(stated) <= 16
    assert "use it" not in stated.lower()  # by those of whom nothing is known too
    assert "nown" in stated or (stated.startswith("Too few") and stated == headline(record))
    if "over" in facts.states(record).values():
        assert "ver the limit" in stated or "ver it for" in stated
    assert headline(factories.unlabelled(record, 50)) == headline(record)  # of 10 000: hardly anyone


def answers_read_as_sentences(record):
    for text in (overall_answer(record), groups_answer(record)):
        stated = plain(text)
        assert stated[0].isupper()
        assert stated.endswith(".")
        assert not any(odd in stated for odd in ("  ", "..", "None", "nan", "1 groups", " ."))


@pytest.mark.parametrize(("everyone", "groups"), list(itertools.product(EVERYONE, GROUPS)))
def test_every_mixture_reads_well(everyone, groups):
    for subgroups, use in itertools.product(SUBGROUPS, (None, "lending")):
        record = mixed(everyone, groups, subgroups, use)
        headline_is_short_and_never_better_than_the_worst_part(record, everyone, subgroups, use)
        words_and_marks_of_the_parts_are_the_verdicts(record, everyone, subgroups)
        headline_says_of_whom_it_is_where_outcomes_are_not_known(record)
    answers_read_as_sentences(factories.mixture(everyone, groups))


KNOWN = [
    (
        "within",
        [],
        "absent",
        "Within the limit for everyone whose outcome is known. Groups and subgroups were not checked.",
    ),
    (
        "within",
        ["within"],
        "within",
        "Where the outcome is known: within the limit for everyone, every named group and unlisted subgroups.",
    ),
    (
        "within",
        ["over", "within"],
        "within",
        "Of those whose outcome is known: within the limit for everyone. Over it for region 0.",
    ),
    ("over", [], "within", "Of those whose outcome is known: over the limit for everyone."),
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
    assert headline(record) == "Known outcomes: on balance within the limit; on average off by at least 2.1 points."


def test_points_are_of_the_known_too():
    record = factories.unlabelled(factories.employment(limit=None), 50_000)
    assert headline(record) == ("Known outcomes: off by 0.6 to 1.2 points; at least 1.6 for foreign born.")


EXACT = [
    (
        "within",
        ["over", "within"],
        "absent",
        "use",
        "Use it for everyone together. Do not use it as it is for region 0.",
    ),
    ("within", ["over", "within"], "absent", None, "Within the limit for everyone together. Over it for region 0."),
    ("within", ["within"], "over", "use", "Use it for everyone together. Do not use it as it is for age over 72."),
    (
        "within",
        ["over"],
        "over",
        None,
        "Within the limit for everyone together. Over it for region 0 and age over 72.",
    ),
    ("over", ["within"], "within", "use", "Do not use it as it is."),
    ("over", ["within"], "within", None, "Over the limit for everyone together."),
    ("undecided", [], "within", "use", "Too few rows to decide: about 1,500,000 would."),
    ("undecided", ["within"], "over", "use", "Do not use it for age over 72. Too few rows to decide for everyone."),
    (
        "within",
        ["within"],
        "error_shown",
        "use",
        "Use it for everyone together and every named group. Error shown in unlisted subgroups.",
    ),
    (
        "within",
        ["undecided"] * 3,
        "within",
        "use",
        "Use it for everyone together. Too few rows to decide for three groups.",
    ),
]


@pytest.mark.parametrize(("everyone", "groups", "subgroups", "use", "stated"), EXACT)
def test_headlines(everyone, groups, subgroups, use, stated):
    assert headline(mixed(everyone, groups, subgroups, use)) == stated


def test_a_pocket_worse_than_the_worst_group_is_named_first():
    record = factories.scanned(factories.employment(), lines=SHORT)
    assert headline(record).endswith("Over it for age over 72 and foreign born.")


def test_two_traits_of_one_pocket_are_not_two_groups():
    record = factories.scanned(factories.mixture("within", []))
    assert headline(record).endswith("Over it for x2 over 0.8 with x3 over 0.8.")


def test_a_pocket_that_is_a_named_group_is_named_once():
    lines = factories.subgroup_lines(("region = 0",), (0.0261,), (0.11,))
    level = ({"variable": "region", "kind": "category", "levels": ("0",)},)
    lines = replace(lines, settings={**lines.settings, "conditions": (level,)})
    group = factories.finding(0.03, 0.05, variables=[("region", "0")])
    record = factories.scanned(factories.record(groups=[group]), lines=lines)
    assert headline(record).endswith("Over it for region = 0.")


def test_nobody_is_farther_off_than_everyone_by_less_than_everyone_may_be():
    one = factories.finding(0.04, 0.08)
    near, far = (factories.finding(low, 0.09, variables=[("g", "north")]) for low in (0.045, 0.07))
    assert headline(factories.record(one, [near])) == "Over the limit for everyone together."
    assert headline(factories.record(one, [far])).endswith("most of all for north.")


def test_a_long_rule_is_told_by_its_traits_and_odd_names_are_counted():
    record = factories.scanned(factories.employment(), lines=LONG)
    assert "a subgroup of x2 and x3" in headline(record)
    group = factories.finding(0.03, 0.05, variables=[("g", "@everyone <b>")])
    assert off_named(Off(0.03, group)) == ""
    assert headline(factories.record(groups=[group])).endswith("Over it for one group.")
    assert off_named(Off(0.03, factories.finding(variables=[("age", "45–54")]))) == "age = 45–54"
    assert off_named(Off(0.03, factories.finding(variables=[("disability", "yes")]))) == "disability = yes"


@given(st.text(min_size=1, max_size=60), st.sampled_from(EVERYONE), st.booleans(), st.text(min_size=1, max_size=30))
def test_no_name_makes_a_headline_long(name, everyone, use, noun):
    group = factories.finding(0.03, 0.05, variables=[("g", name)])
    one = factories.mixture(everyone, []).everyone
    record = factories.record(one, [group], about=About(noun=noun, intended_use="x" if use else None).to_dict())
    stated = headline(record)
    assert words_of(stated) <= 16
    assert len(stated) <= 130


# ---- without a limit: points ----


def test_headline_without_a_limit_names_who_is_farther_off():
    assert headline(factories.employment(limit=None)) == (
        "Off by 0.6 to 1.2 points for everyone, by at least 1.6 for foreign born."
    )
    record = factories.scanned(factories.employment(limit=None), lines=SHORT)
    assert headline(record).endswith("by at least 2.6 for age over 72.")
    alone = factories.record(factories.finding(limit=None), limit=None)
    assert headline(alone) == "Off by 0.4 to 1.2 points for everyone."


def test_headline_where_the_raw_score_is_off_by_more_than_the_score_shown():
    record = factories.record(factories.finding(0.0351, 0.0099, limit=None), limit=None)
    assert headline(record) == "Off by at least 3.5 points raw, at most 1.0 rounded."
    assert "3.5 to 1.0" not in plain(overall_answer(record))


# ---- the parts ----


def test_the_part_of_groups_names_the_worst_two_and_what_none_exceeds():
    groups = [factories.finding(0.02 + 0.01 * i, 0.08, variables=[("region", f"north {i}")]) for i in range(4)]
    bound = factories.estimate(0.0, 0.0712)
    record = factories.record(groups=groups)
    record = replace(record, estimates={**record.estimates, "worst_group": bound})
    assert verdict_word(record, "groups") == ("over", "4 over the limit")
    assert plain(groups_reported(record)) == (
        "north 3: at least 5.0; north 2: at least 4.0; 2 more. No group is off by more than 7.2."
    )


def test_what_closed_testing_decided_is_never_contradicted():
    """A group may be over the limit though its own lower end is not, or within it though its upper end is not."""
    over, within = (factories.finding(0.012, 0.03, variables=[("g", v)]) for v in ("over it", "within it"))
    groups = [replace(over, verdict="over"), replace(within, verdict="within")]
    record = factories.record(groups=groups)
    assert "over it: at least 1.5" in plain(groups_reported(record))
    assert terms.bounds(groups[0], 0.015, "error") == ("1.5", "3.0")
    assert terms.bounds(groups[1], 0.015, "error") == ("1.2", "1.5")
    assert terms.bounds(groups[1], 0.015, "gap") == ("1.2", "3.0")


def test_pockets_of_opposite_signs_are_both_named():
    lines = factories.subgroup_lines(("age over 72", "age up to 30"), (0.0261, -0.09), (0.11, -0.0311))
    record = factories.scanned(factories.mixture("within", ["within"]), lines=lines)
    stated = plain(subgroups_reported(record))
    assert "age up to 30: overpredicted, a gap of at least 3.1." in stated
    assert "age over 72: underpredicted, a gap of at least 2.6." in stated


def test_judged_by_the_gap_the_words_speak_of_the_gap():
    one = factories.finding(0.004, 0.039, observed=0.52)
    record = factories.record(replace(one, verdict="over"), judge="gap", limit=0.005)
    assert plain(everyone_reported(record)) == "Gap of +1.0 to +3.1 points."
    group = factories.finding(0.004, 0.039, observed=0.52, variables=[("g", "north")])
    assert "No group’s gap is more than 3.1." in plain(
        groups_reported(factories.record(one, [group], judge="gap", limit=0.005))
    )


def test_a_pool_clears_nobody_in_it():
    """Of sites judged only together, in whose sum errors may cancel, no sentence says that each is within the limit."""
    small = factories.finding(0.002, 0.009, variables=[("site", "100 levels pooled")], pooled=100)
    groups = [factories.finding(0.002, 0.009, variables=[("site", "north")]), small]
    record = factories.scanned(factories.record(groups=groups), *SUBGROUPS["within"][:2], p_value=0.4, lines=NONE)
    assert headline(record) == "Within the limit for everyone, every group shown and unlisted subgroups."
    assert headline(factories.record(groups=groups)).startswith(
        "Within the limit for everyone together and every group shown."
    )
    assert plain(groups_reported(record)) == (
        "No group shown is off by more than 0.9. 100 small ones are judged only pooled."
    )
    stated = f"{plain(groups_answer(record))} {parts(record)[1].who} {record!r}"
    assert "All 2 groups shown are within the limit; 100 small ones only pooled." in stated
    assert stated.count("2 groups shown") == 3
    assert "named group" not in stated
    gone = replace(record, groups=tuple(groups[:1]), data={**record.data, "by": [["site"], ["ward"]]})
    assert "every group shown" in headline(gone)
    assert "No group shown is off" in plain(groups_reported(gone))


@pytest.mark.parametrize("worst", [0.014, 0.05])
def test_a_group_over_by_its_raw_score_is_no_contradiction_of_what_is_shown(worst):
    over = factories.finding(0.207, 0.014, variables=[("group", "x1")], limit=0.08)
    record = factories.record(groups=[over], limit=0.08)
    bound = factories.estimate(0.0, worst)
    record = replace(record, estimates={**record.estimates, "worst_group": bound})
    stated = f"After rounding, no group is off by more than {100 * worst:.1f}."
    assert plain(groups_reported(record)) == f"group = x1: at least 20.7. {stated}"
    within = factories.record(groups=[factories.finding(0.002, 0.009, variables=[("group", "x1")])])
    assert plain(groups_reported(within)) == "No group is off by more than 0.9."


def test_ranges_that_go_beyond_what_no_group_exceeds_are_explained():
    groups = [factories.finding(0.025, 0.26, variables=[("region", v)]) for v in ("north", "south")]
    record = factories.record(groups=groups)
    reported = "The ranges of groups are simultaneous; that none exceeds 24.0 is a separate statement."
    for high, stated in ((0.24, True), (0.26, False)):
        bound = factories.estimate(0.0, high)
        with_bound = replace(record, estimates={**record.estimates, "worst_group": bound})
        assert (reported in markdown(with_bound)) == stated
        assert (reported in table(with_bound).caption) == stated
        assert (reported in terminal(with_bound).replace("\n", " ").replace("  ", " ")) == stated


CANCEL = "On balance within the limit for everyone together; on average off by at least 9.2 points."


@pytest.mark.parametrize("use", ["who to call", None])
def test_an_error_that_cancels_in_the_gap_is_told_and_never_cut_to_the_limit(use):
    """Ten points too high for half and too low for the others: the gap is met, the average error far over the limit."""
    one = replace(factories.finding(0.092, 0.109, observed=0.5), verdict="within")
    gap = replace(one.gap, value=0.0, guaranteed=replace(one.gap.guaranteed, low=-0.004, high=0.003))
    one = replace(one, gap=gap)
    about = About(intended_use=use).to_dict()
    record = factories.record(one, judge="gap", limit=0.02, about=about)
    assert headline(record) == CANCEL
    assert plain(everyone_reported(record)) == (
        "Gap of −0.4 to +0.3 points. Errors of opposite signs cancel in it: on average off by at least 9.2."
    )
    assert terms.certified_range(record, one) == "9.2 to 10.9"
    assert terms.judged_range(record, one) == "0.0 to 0.4"
    assert plain(overall_answer(record)).startswith("On average by 9.2 to 10.9 points.")
    read = line(CheckRecord(code="error-everyone", status="within"), record)
    assert plain(read.question) == "Everyone: gap at most 2.0 points"
    assert read.numbers == "0.0 to 0.4 points"
    assert "a gap of 0.0 to 0.4 points" in repr(record)
    over = replace(factories.finding(0.05, 0.09, variables=[("g", "north")]), verdict="over")
    with_group = headline(factories.record(one, [over], judge="gap", limit=0.02, about=about))
    assert "Use it" not in with_group
    assert with_group.startswith("On balance within the limit")
    assert with_group.endswith("for north.")
    met = replace(record, verdicts=dict.fromkeys(record.verdicts, "within"))
    assert "judge the calibration error too" in plain(decision(met).text)
    within = replace(one, lower=factories.estimate(0.0, 1.0))
    assert headline(replace(record, everyone=within)).startswith("Use it" if use else "Within the limit")


def test_the_unit_noun_is_said_only_where_it_was_given():
    for noun in (None, "loans"):
        about = About.of(noun=noun).to_dict()
        record = mixed("undecided", ["undecided"], "within")
        record = replace(record, settings={**record.settings, "about": about})
        stated = " ".join((headline(record), plain(everyone_reported(record))))
        assert (noun or "rows") in stated
        assert "people" not in stated


# ---- the sections ----


def test_estimate_on_the_limit_promises_no_number_of_rows():
    one = factories.finding(0.004, 0.039)
    record = factories.record(factories.Finding.from_dict({**one.to_dict(), "rows_needed": None}))
    assert headline(record) == "Too few rows to decide: the error is too close to the limit."
    over = replace(record, verdict="over")
    assert "too close to the limit to say how many rows" in plain(everyone_reported(over))


def test_pooled_and_blank_names():
    assert label(factories.finding(variables=[("race", "x")], pooled=3)) == "race: 3 small values pooled"
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
