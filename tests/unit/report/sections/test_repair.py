"""The repair section: what it answers, what it leaves out, and that its numbers are those of the record."""

from __future__ import annotations

import re
import shlex
from dataclasses import replace

import pytest

import factories
from calibrant.audit.record import AuditRecord
from calibrant.report import html, markdown
from calibrant.report.sections import repair
from calibrant.report.spans import plain
from calibrant.results import Curve


def section(record: AuditRecord) -> str:
    found = re.search(r'<section id="repair".*?</section>', html.render(record), re.S)
    assert found is not None
    return found[0]


def held(limit: float | None = 0.015, **settings: object) -> AuditRecord:
    """Return a record with repairs compared, and who is over the limit before and after."""
    of = factories.repaired(limit)
    curve = factories.fixed(limit, candidate="Isotonic", command="isotonic", **settings)  # type: ignore[arg-type]
    return replace(of, curves={**of.curves, "fixed": curve})


def test_the_answer_names_the_repair_and_counts_who_is_over_the_limit() -> None:
    assert plain(repair.answer(held())) == (
        "Isotonic regression: of the three examined, two are over the limit before and none after; one is undecided. "
        "The gap shrinks for 27 of 41 groups and grows for 4. Brier score −0.0001 (−0.0002 to −0.0001), log loss "
        "−0.0007 (−0.0010 to −0.0004), paired, with ordinary intervals."
    )


@pytest.mark.parametrize(
    ("here", "audited", "said"),
    [
        ("rows", "rows", "A gap here is that of the rows judged; in the audit, of all rows in the data."),
        ("rows", "population", "A gap here is that of the rows judged; in the audit, of all rows like these."),
        ("population", "population", "A gap is that of all rows like these, as in the audit."),
    ],
)
def test_whose_gaps_these_are_is_said_where_gaps_are_judged(here: str, audited: str, said: str) -> None:
    record = held()
    fixed = record.curve("fixed")
    gaps = replace(fixed, settings={**fixed.settings, "judge": "gap", "target": here})
    everyone = replace(record.everyone, gap=replace(record.everyone.gap, settings={"target": audited}))
    changed = replace(record, curves={**record.curves, "fixed": gaps}, everyone=everyone)
    assert said in repair.fixed_note(changed)
    assert "A gap" not in repair.fixed_note(record)


def test_before_and_after_is_the_first_table_and_tells_verdicts() -> None:
    page = section(held())
    assert page.index('id="fixed"') < page.index('id="repairs"')
    for text in ("foreign born", "over the limit", "undecided", "before and after isotonic regression", "local test"):
        assert text in page, text


def test_without_a_limit_before_and_after_have_ranges_and_no_verdicts() -> None:
    record = held(None)
    page = section(record)
    assert "over the limit" not in page.lower()
    assert plain(repair.answer(record)).startswith("Isotonic regression: at most 1.0 points instead of 1.4.")


def test_what_is_met_or_broken_is_never_contradicted_by_its_ends() -> None:
    """Verdicts come from ends as they are told; words follow verdicts."""
    page = section(held(after=((0.0021, 0.0149), (0.0151, 0.0262), (0.0011, 0.0131))))
    assert "0.2–1.5, within the limit" in page
    assert "1.5–2.7, over the limit" in page


def test_where_no_repair_helps_only_the_range_now_is_told() -> None:
    of = factories.repaired(recommended="as audited")
    record = replace(of, curves={**of.curves, "fixed": factories.fixed(candidate="")})
    page = section(record)
    assert "None is shown to help" in page
    tried = "repairs tried is shown better, or estimated better in Brier score or log loss, without harm elsewhere"
    assert tried in plain(repair.answer(record))
    assert ">After" not in page
    assert "calibrant repair" not in page


def test_the_one_repair_that_was_tried_is_not_said_to_help() -> None:
    record = factories.repaired(recommended="as audited")
    table = record.curve("repairs")
    two = {name: column[:2] for name, column in table.columns.items()}
    record = replace(record, curves={**record.curves, "repairs": replace(table, columns=two)})
    assert "the one repair tried is not shown better" in plain(repair.answer(record))


def test_the_command_is_whole_and_quoted() -> None:
    record = held()
    record = replace(record, data={**record.data, "files": ("my log.parquet",), "label": "the outcome"})
    typed = repair.command(record)
    words = shlex.split(typed.replace("\\\n", " "))
    assert words[:3] == ["calibrant", "repair", "my log.parquet"]
    assert words[words.index("--label") + 1] == "the outcome"
    assert words[words.index("--method") + 1] == "isotonic"
    assert words[words.index("--limit") + 1] == "0.015"
    assert "…" not in typed
    assert "FILE" not in typed


def test_the_comparison_has_few_columns_and_marks_the_choice() -> None:
    page = section(factories.repaired())
    for number in ("0.6 to 1.4", "0.0 to 1.0", "0.1222", "0.3784", "0.9042", "27, 4"):
        assert number in page, number
    assert page.count('class="chosen"') == 1
    assert page.count('<th scope="col"') <= 7


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
    page = section(factories.repaired(error_low=none, error_high=none, auroc=none, local_p=none))
    assert "–" in page
    assert "None" not in page.replace("None is shown", "")


def test_which_repairs_keep_the_order() -> None:
    assert re.fullmatch(
        "Isotonic regression keeps the order of [a-z]+ up to ties; logistic regression with attributes may change it.",
        repair.orders(factories.repaired()),
    )


def test_which_scale_a_curve_took() -> None:
    assert repair.scales(factories.repaired()) == ""
    assert repair.scales(factories.repaired(scale=(None, "<b>", "probit"))) == ""
    took = factories.repaired(recipe=("", "Platt", "ScalingBinning"), scale=(None, "logit", "raw"))
    reported = "Platt scaling is fitted to the log-odds of the score; scaling-binning is fitted to the raw score."
    assert repair.scales(took) == reported
    assert reported in " ".join(section(took).split())


def test_markdown_says_it_too() -> None:
    assert "Isotonic regression: at most 1.0 points instead of" in " ".join(
        markdown.render(factories.repaired()).split()
    )


@pytest.mark.parametrize("name", ['"><script>alert(1)</script>', "a|b", "\x1b[31m"])
def test_a_hostile_name_is_text(name: str) -> None:
    of = held()
    c = dict(of.curve("fixed").columns)
    c |= {"who": ("everyone", name, name), "value": ("", name, ""), "variable": ("", name, "")}
    curve = Curve(method="repair.evaluate.fixed", columns=c, settings=of.curve("fixed").settings)
    page = section(replace(of, curves={**of.curves, "fixed": curve}))
    assert "<script>alert" not in page
    assert "\x1b" not in page


def test_the_record_round_trips() -> None:
    record = held()
    assert AuditRecord.from_json(record.to_json()).to_json() == record.to_json()


def test_a_repair_that_called_impossible_what_happened_is_told() -> None:
    page = section(factories.repaired(impossible=(0, 2, 0)))
    assert page.count(">infinite<") == 1
    assert "no chance at all" in page
    assert "no chance at all" not in section(factories.repaired())
