"""The three cases of the page on units and weights: its code and commands run, and its numbers are what they print."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import calibrant as cal
from calibrant.cli import main
from pages import ROOT, blocks, play
from validity.acceptance import refuted

PAGE = ROOT / "docs/cases-units.md"
CASES = ("Forecasts by people", "A clinic's log", "A weighted survey")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not PAGE.exists(), reason="a source distribution without docs"),
]


def case(name: str) -> str:
    """Return a case of the page."""
    return PAGE.read_text(encoding="utf-8").partition(f"## {name}\n")[2].partition("\n## ")[0]


def prose(text: str) -> str:
    """Return what a case says, without code."""
    return re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)


def flat(text: str) -> str:
    """Return a text on one line, without the spaces within numbers."""
    return re.sub(r"(?<=\d)[\u202f\u00a0 ](?=\d{3}\b)", ",", " ".join(text.split()))


def run(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """Return what a command prints, on one line."""
    assert main(words) == 0
    return flat(capsys.readouterr().out)


@pytest.fixture
def done(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: Any, capsys: Any) -> dict[str, str]:
    """Run the code of a case, and return what each of its commands prints."""
    monkeypatch.chdir(tmp_path)
    out = {command: flat(text) for command, text in play(case(request.param), capsys).commands.items()}
    for page in tmp_path.glob("*.html"):
        assert len(page.read_text(encoding="utf-8")) > 10_000
    return out


def one(printed: dict[str, str], *words: str) -> str:
    """Return what the one command with these words printed."""
    (found,) = (text for command, text in printed.items() if all(w in command.split() for w in words))
    return found


def said(pattern: str, text: str) -> tuple[str, ...]:
    """Return the numbers that a text has in the place of each group."""
    found = re.search(pattern, text)
    assert found is not None, pattern
    return tuple(value.rstrip(".,") for value in found.groups())


@pytest.mark.parametrize("done", [CASES[0]], indirect=True)
def test_forecasts_by_people(done: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    told, file = prose(case(CASES[0])), ["people.parquet", "--label", "closed", "--score", "said"]
    rows, units = said(r"error of this file at most \| ([\d.]+) \| ([\d.]+)", told)
    by_rows, by_units = (
        text for command, text in done.items() if command.startswith("certify")
    )  # in the order of the page
    assert f"at most {rows} points" in by_rows
    assert f"at most {units} points" in by_units
    people, forecasts = said(r"([\d,]+) people say .*? ([\d,]+) forecasts", told)
    assert f"{forecasts} rows of {people} clusters (person)" in by_units
    few, many = said(r"within 1 point \| ([\d,]+) rows, too few \| ([\d,]+) clusters", told)
    assert f"About {many} clusters for an upper bound within 1 point of" in one(done, "plan")
    assert f"About {few} rows for an upper bound within 1 point of" in run(["plan", "0.01", "--data", *file], capsys)


@pytest.mark.parametrize("done", [CASES[1]], indirect=True)
def test_a_clinics_log(done: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    told, file = prose(case(CASES[1])), ["clinic.parquet", "--label", "event", "--score", "risk"]
    patients, visits = said(r"([\d,]+) patients with ([\d,]+) visits", told)
    low, high, low_rows, high_rows = said(
        r"by patients: off by ([\d.]+) to ([\d.]+) points \(by rows ([\d.]+) to ([\d.]+)\)", told
    )
    printed = one(done, "certify", "clinic.parquet")
    assert f"{visits} rows of {patients} clusters (patient)" in printed
    assert f"{low}–{high} points" in printed
    assert f"{low_rows}–{high_rows} points" in run(["certify", *file, "--method", "values"], capsys)
    low, high = said(r"the audit, each of whose ends may be wrong separately, ([\d.]+) to ([\d.]+)", told)
    assert f"Off by {low} to {high} points" in one(done, "audit", "clinic.parquet")
    fit, units_fit, judged, others = said(
        r"fits on ([\d,]+) rows of ([\d,]+) clusters and judges on ([\d,]+) rows of the ([\d,]+) others", told
    )
    sentence = f"Fitted on {fit} rows of {units_fit} clusters, judged on {judged} rows of {others} other clusters."
    assert sentence in one(done, "repair")
    *ends, name, low, high = said(
        r"as audited they are off by ([\d.]+) to ([\d.]+) points, after (\w+) by ([\d.]+) to ([\d.]+)", told
    )
    assert f"as audited {ends[0]}–{ends[1]} " in one(done, "repair")
    assert f"{name} {low}–{high} " in one(done, "repair")
    low, high, more = said(r"repaired risk is off by ([\d.]+) to ([\d.]+): .*? at least ([\d,]+) clusters", told)
    after = one(done, "audit", "next-repaired.parquet")
    assert f"Everyone: undecided. Off by {low} to {high} points" in after
    assert f"to at least {more} clusters (patient)" in after


@pytest.mark.parametrize("done", [CASES[2]], indirect=True)
def test_a_weighted_survey(done: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    told, file = prose(case(CASES[2])), ["survey.parquet", "--label", "employed", "--score", "predicted_probability"]
    weighted, alike = said(r"At most ([\d.]+) points weighted, ([\d.]+) for the rows alike", told)
    assert f"at most {weighted} points" in one(done, "certify")
    assert f"at most {alike} points" in run(["certify", *file, "--method", "rounded"], capsys)
    (rows,) = said(r"([\d,]+) rows would bring the upper bound within 2 points", told)
    assert f"About {rows} rows for an upper bound within 2 points" in one(done, "plan")


def test_adult_with_census_weights(shared: Any, capsys: pytest.CaptureFixture[str]) -> None:
    told = prose(case(CASES[2]))
    low, high, low_rows, high_rows = said(r"([\d.]+) to ([\d.]+) points weighted, ([\d.]+) to ([\d.]+) without", told)
    file = [str(shared / "data/adult_out.parquet"), "--label", "actual", "--score", "prob_1", "--method", "rounded"]
    assert f"{low}–{high} points" in run(["certify", *file, "--weights", "fnlwgt"], capsys)
    assert f"{low_rows}–{high_rows} points" in run(["certify", *file], capsys)


@pytest.mark.nightly
def test_floors_of_a_hundred_files_of_forecasts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The table's shares of files whose error is certified above the true 0."""
    monkeypatch.chdir(tmp_path)
    body = next(body for info, body, _ in blocks(case(CASES[0])) if info == "python")
    above = np.zeros(2, dtype=int)
    for seed in range(100):
        exec(body.replace("default_rng(11)", f"default_rng({1000 + seed})"), {})  # noqa: S102
        log = pq.read_table("people.parquet")
        y, p, person = (log[name].to_numpy() for name in ("closed", "said", "person"))
        for i, cluster in enumerate((None, person)):
            low = cal.certify.raw_lower(cal.predictions(y, p, cluster=cluster), side="lower").interval.low
            above[i] += low > 0.0
    rows, units = said(r"floor above the true 0 \(5 allowed\) \| (\d+) \| (\d+)", case(CASES[0]))
    assert abs(above[0] - int(rows)) <= 20, above
    assert int(units) <= 5
    assert not refuted(int(above[1]), 100, 0.05)
