"""The repair section: what it answers, what it leaves out, and that its numbers are those of the record."""

from __future__ import annotations

import re

import factories
from calibrant.audit.record import AuditRecord
from calibrant.report import html, markdown
from calibrant.report.sections import repair
from calibrant.report.spans import plain


def section(record: AuditRecord) -> str:
    found = re.search(r'<section id="repair".*?</section>', html.render(record), re.S)
    assert found is not None
    return found[0]


def test_the_answer_names_the_repair_and_both_upper_ends() -> None:
    record = factories.repaired()
    assert plain(repair.answer(record)) == (
        "Isotonic regression: at most 1.0 points instead of 1.4. The gap shrinks for 27 of 41 groups and grows for 4."
    )
    page = section(record)
    for number in (
        "0.6 to 1.4",
        "0.0 to 1.0",
        "3.7",
        "0.1222",
        "0.3784",
        "0.9042",
        "0.012",
        "27, 4",
        "marital: separated",
    ):
        assert number in page, number
    assert page.count('class="chosen"') == 1


def test_without_a_recommendation_it_does_not_promise_that_none_helps() -> None:
    record = factories.repaired(recommended="as audited")
    assert "None is shown to help" in plain(repair.answer(record))
    assert "not proof" in plain(repair.answer(record))
    assert "calibrant repair" not in section(record)


def test_an_upper_end_that_stays_says_what_is_better() -> None:
    record = factories.repaired(after=0.0139)
    assert "as before, but better in Brier score" in plain(repair.answer(record))


def test_an_upper_end_that_rises_is_not_told_as_a_gain() -> None:
    record = factories.repaired(after=0.0152)
    assert plain(repair.answer(record)).startswith(
        "Isotonic regression: better in Brier score, but at most 1.6 points instead of 1.4."
    )


def test_without_certificates_the_answer_names_what_is_better() -> None:
    record = factories.repaired(error_low=(None,) * 3, error_high=(None,) * 3)
    assert plain(repair.answer(record)).startswith("Isotonic regression: better in Brier score. The gap shrinks")


def test_without_groups_there_is_no_column_of_groups() -> None:
    page = section(factories.repaired(groups=0))
    assert "group" not in page.replace("Groups", "group").split("<table")[1].split("</table>")[0]
    assert "gap shrinks" not in page


def test_ranges_that_have_no_certificate_are_dashes() -> None:
    none = (None, None, None)
    record = factories.repaired(error_low=none, error_high=none, auroc=none, local_p=none)
    page = section(record)
    assert "–" in page
    assert "None" not in page.replace("None is shown", "")
    assert "Local" not in page


def test_which_repairs_keep_the_order() -> None:
    assert repair.orders(factories.repaired()) == (
        "Isotonic regression keeps the order of people up to ties; logistic regression with traits may change it."
    )


def section_of(page: str, name: str) -> str:
    found = re.search(rf'<section id="{name}".*?</section>', page, re.S)
    assert found is not None
    return found[0]


def test_markdown_says_it_too() -> None:
    assert "Isotonic regression: at most 1.0 points instead of" in " ".join(
        markdown.render(factories.repaired()).split()
    )


def test_a_hostile_group_name_is_text() -> None:
    name = ("", "", '"><script>alert(1)</script>: x')
    assert "<script>alert" not in section(factories.repaired(largest_gap_group=name))


def test_the_record_round_trips() -> None:
    record = factories.repaired()
    assert AuditRecord.from_json(record.to_json()).to_json() == record.to_json()


def test_a_repair_that_called_impossible_what_happened_is_told() -> None:
    page = section(factories.repaired(impossible=(0, 2, 0)))
    assert page.count("infinite") == 1
    assert page.count("refuted") == 1
    assert "no chance at all" in page
    assert "no chance at all" not in section(factories.repaired())
