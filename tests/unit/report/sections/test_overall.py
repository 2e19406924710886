"""The reliability figure: the line in its band, what it says in words, and that nobody can be counted from it."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np

import calibrant as cal
import factories
from calibrant.audit.pooling import MASK
from calibrant.audit.record import AuditRecord, CheckRecord
from calibrant.diagnose.reliability_curve import Drawing, scored
from calibrant.report.by_variable import Stretch
from calibrant.report.html import render
from calibrant.report.markdown import render as markdown
from calibrant.report.sections import overall
from calibrant.report.sections.reference import line
from calibrant.report.spans import plain
from calibrant.views.sample import everyone


def test_findings_in_words():
    low = [Stretch("low", 0.03, 0.21), Stretch("low", 0.35, 0.35), Stretch("high", 0.8, 0.9)]
    assert overall.curve_finding(low, 1) == (
        "Underpredicts where it says 3% to 21% and about 35%; overpredicts at 80% to 90%"
    )
    assert overall.curve_finding(None, 1) == "At no score shown to be off"
    assert "at no single score" in overall.curve_finding([], 1)
    many = [Stretch("low", i / 10, i / 10 + 0.05) for i in range(6)]
    assert "and two more stretches" in overall.curve_finding(many, 1)


def test_check_follows_the_test_of_the_whole_curve():
    check = CheckRecord(code="reliability", status="measured")
    found = line(check, factories.record())
    assert found.error_shown == "Error shown"
    assert found.numbers.startswith("p = 0.001, the smallest that 999 simulations can show; off in ")
    clear = line(check, factories.record(line=factories.curve(p_value=0.4)))
    assert clear.error_shown == "No error shown (not proof of none)"
    assert clear.numbers.startswith("p = 0.40")


def test_a_record_without_the_curve_still_draws_its_bins():
    d = factories.record().to_dict()
    del d["curves"]["reliability"]
    old = AuditRecord.from_dict(d)
    page = render(old)
    assert old.measures == {}
    assert "Ranges: all 20 hold simultaneously" in page
    assert "Band: holds the whole curve" not in page
    assert "ranges of the score" in overall.finding(old)


def test_at_most_says_which_score_it_is_about():
    record = factories.record()
    text = markdown(record)
    assert "the score in 50 rounding steps" in text
    assert "At each rounding step of 2%, what happened" in text
    about = "the raw score, which takes 51 values"
    upper = replace(record.everyone.upper, method="certify.values", settings={"about": about, "values": 51, "seed": 0})
    exact = replace(
        record, everyone=replace(record.everyone, upper=upper), data={**record.data, "display": {"values": 51}}
    )
    text = markdown(exact)
    assert about in text
    assert "At each value of the score, what happened" in text
    assert "in 50 steps" not in text


def test_rare_events_get_an_axis_of_their_own():
    record = factories.rare()
    made = overall.figure(record)
    assert (made.readout.low, made.readout.high) == ("0", "1")
    labels = re.findall(r'<text class="[xy]l"[^>]*>([^<]*)</text>', made.panels[1].picture)
    assert "+" in "".join(labels)
    for text in labels:
        assert re.fullmatch(r"[+−]?[\d.]+%?", text), text
    assert plain(made.numbers[0].rows[0].cells[0].text).startswith("0.")


def test_measures_are_a_table():
    record = factories.record(measured=factories.measures())
    page, text = render(record), markdown(record)
    assert "Standard measures, not certified: Binned calibration error (ECE)" in page
    assert "95% ranges are approximate" in page
    assert "| Calibration slope | 1.021 | 1.013–1.029 |" in text
    assert [plain(row.cells[0].text) for row in overall.measures(record).rows][:2] == [
        "Binned calibration error (ECE)",
        "Smooth calibration error",
    ]
    assert AuditRecord.from_json(record.to_json()).to_dict() == record.to_dict()


def test_a_measure_not_known_here_is_shown_as_it_is():
    odd = {"kuiper": factories.estimate(0.01, 0.02, guarantee="asymptotic")}
    (row,) = overall.measures(factories.record(measured=odd)).rows
    assert [plain(cell.text) for cell in row.cells] == ["kuiper", "1.5 points", "1.0–2.0", ""]


def test_the_curve_of_an_audit_rests_on_cells_of_at_least_twenty_people():
    rng = np.random.default_rng(0)
    p = np.concatenate([rng.uniform(0.2, 0.8, 3000), np.full(3, 0.91), np.full(400, 0.95)])
    record = cal.audit(cal.predictions(rng.random(len(p)) < p, p))
    made = record.curve("reliability")
    assert made.settings["smallest"] == record.settings["mask"] == 20
    assert min(made.columns["rows"]) >= 20
    drawn = overall.figure(record)
    assert "{5} rows in {6}." in drawn.readout.form
    people = (plain(row.cells[5].text) for row in drawn.numbers[0].rows)
    assert min(int(text.replace(",", "")) for text in people) >= 20


def test_three_people_at_a_score_of_their_own_leave_no_trace_of_their_number():
    """Whether 3 or 5 people share an unusual score changes the curve only through a cell of 20 or more."""
    rng = np.random.default_rng(0)
    p = np.concatenate([rng.uniform(0.2, 0.8, 3000), np.full(3, 0.91), np.full(400, 0.95)])
    runs = scored(everyone(cal.predictions(rng.random(len(p)) < p, p)), Drawing(smallest=MASK)).runs
    assert runs.rows.min() >= MASK
    assert runs.rows.sum() == len(p)


def test_the_band_of_units_is_said_to_need_many():
    d = factories.record().to_dict()
    assert "Band: holds the whole curve, 95 of 100 times." in render(AuditRecord.from_dict(d))
    d["curves"]["reliability"]["settings"]["clusters"] = 40
    assert "Band: holds the whole curve, 95 of 100 times, if clusters are many." in render(AuditRecord.from_dict(d))
