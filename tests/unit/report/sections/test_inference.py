"""Probabilities in place of labels: what the record holds, what the page and the texts say, and what they must not."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import calibrant as cal
import factories
from calibrant.audit.record import AuditRecord
from calibrant.report.html import render
from calibrant.report.markdown import render as markdown
from calibrant.report.spans import plain
from calibrant.report.terminal import render as terminal
from calibrant.report.wording import inferred


def audited(n: int = 4000, **columns: Any) -> AuditRecord:
    """Return an audit of a model blind to age, which the outcome follows."""
    rng = np.random.default_rng([0x1FE2, n])
    age = rng.integers(18, 90, n)
    p = rng.uniform(0.3, 0.7, n)
    y = rng.uniform(size=n) < p + 0.006 * (age - 54)
    town = np.array(["a", "b", "c", "d"])[np.minimum(np.arange(n) * 7 // n, 3)]
    return cal.audit(cal.predictions(y, p, {"age": age, "town": town} | columns), quick=True, outcome="well")


def reported(lines: tuple[Any, ...]) -> AuditRecord:
    """Return a record with these lines."""
    keys = ("variable", "level", "inferred", "observed", "bias", "low", "high")
    columns = {k: tuple(line[i] for line in lines) for i, k in enumerate(keys)}
    settings = {"dates": ("start",)}
    return factories.drawn(
        factories.record(), inference=replace(factories.inference(), columns=columns, settings=settings)
    )


def section(text: str) -> str:
    found = re.search(r'<details id="inference".*?</details>', text, re.S)
    return "" if found is None else found[0]


@pytest.mark.slow
def test_audit_measures_every_covariate_with_limits_that_hold_together():
    record = audited()
    c, s = record.curve("inference").columns, record.curve("inference").settings
    assert c["variable"][0] == "age"
    assert c["low"][0] < c["bias"][0] < c["high"][0] < 0
    assert s["lines"] == len(c["variable"]) == 5
    z = np.abs(c["bias"]) / np.subtract(c["high"], c["low"])
    assert list(z) == sorted(z, reverse=True)
    assert sum(v for v, name in zip(c["observed"], c["variable"], strict=True) if name == "town") == pytest.approx(
        1, abs=0.003
    )
    assert AuditRecord.from_json(record.to_json()).to_json() == record.to_json()


@pytest.mark.slow
def test_audit_agrees_with_the_measure():
    rng = np.random.default_rng([0x1FE2, 3])
    p, age = rng.uniform(size=3000), rng.integers(18, 90, 3000)
    data = cal.predictions(rng.uniform(size=3000) < p, p, {"age": age, "sex": rng.choice(["f", "m"], 3000)})
    c = cal.audit(data, quick=True).curve("inference").columns
    assert sorted(c["variable"]) == ["age", "sex"]
    for name, level, bias, low, high in zip(*(c[k] for k in ("variable", "level", "bias", "low", "high")), strict=True):
        alone = cal.measure.inferred_mean(data, name, level=level, alpha=0.025)
        ends, step = alone.interval, 0.32 * alone.settings["error"]
        assert bias == pytest.approx(alone.value, abs=step / 2)
        assert ends.low - step <= low <= ends.low
        assert ends.high <= high <= ends.high + step


@pytest.mark.slow
def test_of_two_levels_the_rarer_one_is_told():
    sex = np.where(np.arange(4000) % 3, "f", "m")
    c = audited(sex=sex, few=np.where(np.arange(4000) % 1000, "x", "y")).curve("inference").columns
    assert [v for n, v in zip(c["variable"], c["level"], strict=True) if n == "sex"] == ["m"]
    assert "few" not in c["variable"]


@pytest.mark.slow
def test_small_levels_cannot_be_worked_out():
    n = 4000
    town = np.array(["a"] * 2000 + ["b"] * 1500 + ["c"] * 490 + ["d"] * 10)
    rooms = np.repeat([1.0, 2.0, 3.0, 4.0], [2000, 1500, 490, 10])
    lost = np.where(np.arange(n) < 7, np.nan, np.arange(n) % 3)
    c = audited(place=town, rooms=rooms, lost=lost).curve("inference").columns
    assert {v for k, v in zip(c["variable"], c["level"], strict=True) if k == "place"} == {"a", "b"}
    assert not {"rooms", "lost"} & set(c["variable"])


@pytest.mark.slow
@pytest.mark.parametrize(("missing", "there"), [(0, True), (5, False), (19, False), (20, True)])
def test_few_missing_values_hide_a_number(missing, there):
    years = np.where(np.arange(4000) < missing, np.nan, np.arange(4000) % 72)
    assert ("years" in audited(years=years).curve("inference").columns["variable"]) is there


@pytest.mark.slow
@pytest.mark.parametrize(("people", "there"), [(15, False), (60, True)])
def test_a_number_that_few_have_is_not_described(people, there):
    debt = np.where(np.arange(4000) < people, 1000.0 + np.arange(4000), 0.0)
    assert ("debt" in audited(debt=debt).curve("inference").columns["variable"]) is there


@pytest.mark.slow
@pytest.mark.parametrize("people", [1, 10])
def test_a_number_that_the_rich_decide_is_not_described(people):
    income = 30_000.5 + 3 * np.arange(4000)
    rich = np.where(np.arange(4000) < people, 1e9, income)
    assert {"income", "rich"} & set(audited(income=income, rich=rich).curve("inference").columns["variable"]) == {
        "income"
    }


@pytest.mark.slow
def test_one_person_far_off_among_few_cases_is_not_described():
    rng = np.random.default_rng([0x1FE2, 25])
    far = rng.integers(18, 90, 4000).astype(float)
    near = far.copy()
    far[0] = 1000.0  # of all 4000 one part in seventy; of 25 cases, more than all others' years
    data = cal.predictions(np.arange(4000) < 25, rng.uniform(0, 0.02, 4000), {"far": far, "near": near})
    assert cal.audit(data, quick=True).curve("inference").columns["variable"] == ("near",)


@pytest.mark.slow
def test_the_record_holds_no_more_digits_than_a_tenth_of_a_standard_error():
    rng = np.random.default_rng([0x1FE2, 7])
    p, x = rng.uniform(size=2000), rng.uniform(size=2000)
    sharp = np.where(rng.uniform(size=2000) < p, 0.99, 0.01)
    data = cal.predictions(rng.uniform(size=2000) < sharp, sharp, {"x": x})
    c = cal.audit(data, quick=True).curve("inference").columns
    bias, known = (cal.measure.inferred_mean(data, "x", quantity=q).settings["error"] for q in ("bias", "observed"))
    assert bias < known / 3
    for key, error in (("inferred", known), ("observed", known), ("bias", bias), ("low", bias), ("high", bias)):
        digits = 1 - round(np.log10(error))
        assert c[key][0] == round(c[key][0], digits)


@pytest.mark.slow
def test_many_levels_constants_and_missing_values_are_not_described():
    many = np.arange(4000) % 11
    sparse = np.where(np.arange(4000) % 4, np.where(np.arange(4000) % 3, "u", "v"), None)
    c = audited(many=many.astype(str), one=np.full(4000, "z"), sparse=sparse).curve("inference").columns
    assert not {"many", "one"} & set(c["variable"])
    assert sorted(v for n, v in zip(c["variable"], c["level"], strict=True) if n == "sparse") == ["u", "v"]


@pytest.mark.slow
def test_few_cases_and_no_covariates_say_why():
    p = np.full(400, 0.01)
    few = cal.audit(cal.predictions(np.arange(400) < 5, p, {"x": np.arange(400) / 7}), quick=True).curve("inference")
    none = cal.audit(cal.predictions(np.arange(400) < 200, p), quick=True).curve("inference")
    assert few.columns == none.columns == {}
    assert "need 20 events" in few.settings["reason"]
    assert "no covariates" in none.settings["reason"]


@pytest.mark.slow
def test_a_record_without_it_has_no_section():
    d = audited().to_dict()
    del d["curves"]["inference"]
    old = AuditRecord.from_dict(d)
    assert old.curve("inference").columns == {}
    assert section(render(old)) == ""
    assert "in place of labels" not in terminal(old) + markdown(old)


@pytest.mark.slow
def test_page_and_texts_say_it_in_plain_words():
    record = audited()
    sentence = plain(inferred.answer(record))
    c = record.curve("inference").columns
    assert sentence.startswith(
        "If the probabilities stood in for the labels, those who are well would look different: "
    )
    assert f"age would average {c['inferred'][0]:.1f} and not {c['observed'][0]:.1f}" in sentence
    page = section(render(record))
    assert len(page.encode()) < 4000
    assert page.count("<tr><th") == 1 + 5
    assert "simultaneous: they hold 95 of 100 times" in page
    line = plain(inferred.short(record))
    assert line.startswith("Probabilities in place of labels: age of the events would average ")
    assert "Probabilities in place of labels: `age` of the events" in markdown(record)


def test_nothing_found_is_one_sentence_on_the_page_only():
    record = reported((("age", None, 43.61, 43.6, 0.01, -0.2, 0.22),))
    assert plain(inferred.answer(record)).endswith("is shown to be biased, which is not proof of none.")
    assert "in place of labels" not in terminal(record) + markdown(record)


def test_numbers_are_written_in_their_units_and_ranges_outward():
    lines = inferred.lines(
        reported(
            (
                ("age", None, 41.234, 43.6, -2.366, -2.55, -2.18),
                ("start", None, 17_600.0, 17_620.0, -20.0, -30.2, -9.8),
                ("income", None, 51_234.6, 60_000.0, -8765.4, -12_000.4, -5000.2),
                ("town", "a", 0.3456, 0.34, 0.0056, 0.0003, 0.011),
                ("tiny", None, 2e-9, 1e-9, 1e-9, -1e-9, 3e-9),
            )
        )
    )
    shown = [(v.name, v.value(v.inferred), v.value(v.observed), v.off(), v.range()) for v in lines]
    assert shown == [
        ("age", "41.23", "43.60", "−2.37", "−2.55 to −2.18"),
        ("start", "2018-03-10", "2018-03-30", "−20 days", "−31 to −9"),
        ("income", "51,235", "60,000", "−8765", "−12,001 to −5000"),
        ("town = a", "34.6%", "34.0%", "+0.6 points", "+0.03 to +1.10"),
        ("tiny", "2e−09", "1e−09", "+1e−09", "−1e−09 to 3e−09"),
    ]


def test_values_written_alike_are_told_by_how_far_off_they_are():
    record = reported(
        (
            ("start", None, 17_620.2, 17_619.8, -0.42, -0.8, -0.04),
            ("town", "a", 0.3, 0.3, 0.0004, 0.0001, 0.0007),
            ("age", None, 41.0, 41.0, -0.04, -0.06, -0.02),
        )
    )
    assert plain(inferred.answer(record)).endswith(
        "the events would look different: start would average 0.4 days too early; town = a would be "
        "0.04 points too high among them. One more of 3 means and shares is shown to be biased."
    )
    assert plain(inferred.short(record)).endswith(
        "start of the events would average 0.4 days too early; two more of 3 means and shares are shown to be biased."
    )
    last = inferred.lines(record)[-1]
    assert (last.value(last.inferred), last.off()) == ("41", "−0.040")


def test_a_mean_date_is_the_nearest_day():
    line = inferred.lines(reported((("start", None, 17_619.9, 17_621.4, -1.5, -2.5, -0.5),)))[0]
    assert (line.value(line.inferred), line.value(line.observed)) == ("2018-03-30", "2018-03-31")


def test_it_is_shown_without_a_ranking():
    record = reported((("age", None, 43.1, 43.6, -0.5, -0.7, -0.3),))
    assert not record.curve("ranking").columns
    page = section(render(record))
    assert "1 of 1 means and shares of the events is shown to be biased" in page
    assert "age of the events would average 43.1 and not 43.6" in markdown(record).replace("`", "")
    none = reported((("age", None, 43.6, 43.6, 0.01, -0.2, 0.22),))
    assert "0 of 1 means and shares of the events are shown to be biased" in section(render(none))


def test_hostile_names_stay_text():
    page = section(render(factories.hostile()))
    assert page.count("<tr><th") == 1 + inferred.SHORT
    assert "<img" not in page
    assert "\u202e" not in page


# ---- what was to be inferred: on the first screen, guaranteed ----


def inferring(**settings: Any) -> AuditRecord:
    """Return an audit of a model blind to age, of which covariates were to be inferred."""
    rng = np.random.default_rng([0x1FE2, 1])
    n = 4000
    age, p = rng.integers(18, 90, n), rng.uniform(0.3, 0.7, n)
    y = rng.uniform(size=n) < p + 0.006 * (age - 54)
    x = {"age": age, "sex": rng.choice(["f", "m"], n), "day": np.datetime64("2020-01-01") + age}
    return cal.audit(cal.predictions(y, p, x), quick=True, outcome="well", **settings)


@pytest.mark.slow
def test_what_was_to_be_inferred_is_on_the_first_screen_with_a_guarantee() -> None:
    record = inferring(infer=["age", "sex"])
    c = record.curve("task_trust").columns
    assert (c["variable"], c["level"][0]) == (("age", "sex"), None)
    line = "Inferred from the probabilities, among those who are well: age 5"
    for text in (plain_text(terminal(record)), markdown(record), render(record)):
        assert line in re.sub(r"<[^>]+>|\*|`", "", text)
        assert "guaranteed); sex = " in re.sub(r"<[^>]+>|\*|`", "", text)
    assert record.settings["infer"] == ("age", "sex")
    assert next(check for check in record.checks if check.code == "task-trust").status == "measured"


def plain_text(text: str) -> str:
    return re.sub(r"\s+", " ", text)


@pytest.mark.slow
def test_a_range_is_that_of_the_measure_rounded_outward() -> None:
    record = inferring(infer="age", variables="age")
    rng = np.random.default_rng([0x1FE2, 1])
    age, p = rng.integers(18, 90, 4000), rng.uniform(0.3, 0.7, 4000)
    y = rng.uniform(size=4000) < p + 0.006 * (age - 54)
    sure = cal.measure.inferred_mean(cal.predictions(y, p, {"age": age}), "age", guaranteed=True).interval
    c = record.curve("task_trust").columns
    assert c["low"][0] <= sure.low + 0.02
    assert c["high"][0] >= sure.high - 0.02
    assert abs(c["low"][0] - sure.low) + abs(c["high"][0] - sure.high) < 0.3
    assert c["high"][0] < 0.0


@pytest.mark.slow
def test_without_a_name_nothing_is_said_and_a_wrong_one_is_refused() -> None:
    record = inferring()
    assert record.curve("task_trust").columns == {}
    assert "infer" not in record.settings
    assert "Inferred from" not in terminal(record)
    with pytest.raises(cal.errors.BadInput, match="did you mean 'age'"):
        inferring(infer="agee")
    with pytest.raises(cal.errors.BadInput, match=r"infer \(--infer\) names 'age', which is not read"):
        inferring(infer="age", variables="sex")


@pytest.mark.slow
def test_clusters_have_the_measure_and_few_people_have_nothing() -> None:
    rng = np.random.default_rng(5)
    p, age = rng.uniform(0.2, 0.6, 600), rng.integers(18, 90, 600)
    y = rng.uniform(size=600) < p
    record = cal.audit(cal.predictions(y, p, {"age": age}, cluster=np.arange(600) // 2), quick=True, infer="age")
    check = next(c for c in record.checks if c.code == "task-trust")
    assert check.status == "not-applicable"
    assert "inferred_mean --variable age --guaranteed" in check.reason
    few = cal.audit(cal.predictions(y, p, {"age": np.where(np.arange(600) < 3, 90, 20)}), quick=True, infer="age")
    assert next(c for c in few.checks if c.code == "task-trust").status == "not-applicable"
