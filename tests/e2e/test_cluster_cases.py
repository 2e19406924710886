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

PAGE = ROOT / "docs/cases-clusters.md"
EVENTS = ("Forecasts by people", "A clinic's log", "A weighted survey")

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


def stated(pattern: str, text: str) -> tuple[str, ...]:
    """Return the numbers that a text has in the place of each group."""
    found = re.search(pattern, text)
    assert found is not None, pattern
    return tuple(value.rstrip(".,") for value in found.groups())


@pytest.mark.parametrize("done", [EVENTS[0]], indirect=True)
def test_forecasts_by_people(done: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    reported, file = prose(case(EVENTS[0])), ["people.parquet", "--label", "closed", "--score", "said"]
    rows, cluster_sums = stated(r"error of this file at most \| ([\d.]+) \| ([\d.]+)", reported)
    by_rows, by_clusters = (
        text for command, text in done.items() if command.startswith("certify")
    )  # in the order of the page
    assert f"at most {rows} points" in by_rows
    assert f"at most {cluster_sums} points" in by_clusters
    people, forecasts = stated(r"([\d,]+) people say .*? ([\d,]+) forecasts", reported)
    assert f"{forecasts} rows of {people} clusters (person)" in by_clusters
    few, many = stated(r"within 1 point \| ([\d,]+) rows, too few \| ([\d,]+) clusters", reported)
    assert f"About {many} clusters for an upper bound within 1 point of" in one(done, "plan")
    assert f"About {few} rows for an upper bound within 1 point of" in run(["plan", "0.01", "--data", *file], capsys)


@pytest.mark.parametrize("done", [EVENTS[1]], indirect=True)
def test_a_clinics_log(done: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    reported, file = prose(case(EVENTS[1])), ["clinic.parquet", "--label", "event", "--score", "risk"]
    patients, visits = stated(r"([\d,]+) patients with ([\d,]+) visits", reported)
    low, high, low_rows, high_rows = stated(
        r"by patients: off by ([\d.]+) to ([\d.]+) points \(by rows ([\d.]+) to ([\d.]+)\)", reported
    )
    printed = one(done, "certify", "clinic.parquet")
    assert f"{visits} rows of {patients} clusters (patient)" in printed
    assert f"{low}–{high} points" in printed
    assert f"{low_rows}–{high_rows} points" in run(["certify", *file, "--method", "values"], capsys)
    low, high = stated(r"the audit, each of whose ends may be wrong separately, ([\d.]+) to ([\d.]+)", reported)
    assert f"calibration error {low} to {high}." in " ".join(one(done, "audit", "clinic.parquet").split())
    fit, clusters_fit, judged, others = stated(
        r"fits on ([\d,]+) rows of ([\d,]+) clusters and judges on ([\d,]+) rows of the ([\d,]+) others", reported
    )
    sentence = f"Fitted on {fit} rows of {clusters_fit} clusters, judged on {judged} rows of {others} other clusters."
    assert sentence in one(done, "repair")
    *ends, name, low, high = stated(
        r"as audited they are off by ([\d.]+) to ([\d.]+) points, after (\w+) by ([\d.]+) to ([\d.]+)", reported
    )
    assert f"as audited {ends[0]}–{ends[1]} " in one(done, "repair")
    assert f"{name} {low}–{high} " in one(done, "repair")
    low, high, more = stated(r"repaired risk is off by ([\d.]+) to ([\d.]+): .*? at least ([\d,]+) clusters", reported)
    after = one(done, "audit", "next-repaired.parquet")
    assert "Everyone: undecided. " in after
    assert f"calibration error {low} to {high}." in " ".join(after.split())
    assert f"to at least {more} clusters (patient)" in after


@pytest.mark.parametrize("done", [EVENTS[2]], indirect=True)
def test_a_weighted_survey(done: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    reported, file = (
        prose(case(EVENTS[2])),
        ["survey.parquet", "--label", "employed", "--score", "predicted_probability"],
    )
    weighted, intraclass_correlation = stated(
        r"At most ([\d.]+) points weighted, ([\d.]+) for the rows alike", reported
    )
    assert f"at most {weighted} points" in one(done, "certify")
    assert f"at most {intraclass_correlation} points" in run(["certify", *file, "--method", "rounded"], capsys)
    (rows,) = stated(r"([\d,]+) rows would bring the upper bound within 2 points", reported)
    assert f"About {rows} rows for an upper bound within 2 points" in one(done, "plan")


def test_adult_with_census_weights(shared: Any, capsys: pytest.CaptureFixture[str]) -> None:
    reported = prose(case(EVENTS[2]))
    low, high, low_rows, high_rows = stated(
        r"([\d.]+) to ([\d.]+) points weighted, ([\d.]+) to ([\d.]+) without", reported
    )
    file = [str(shared / "data/adult_out.parquet"), "--label", "actual", "--score", "prob_1", "--method", "rounded"]
    assert f"{low}–{high} points" in run(["certify", *file, "--weights", "fnlwgt"], capsys)
    assert f"{low_rows}–{high_rows} points" in run(["certify", *file], capsys)


@pytest.mark.nightly
def test_floors_of_a_hundred_files_of_forecasts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The table's shares of files whose error is certified above the true 0."""
    monkeypatch.chdir(tmp_path)
    body = next(body for info, body, _ in blocks(case(EVENTS[0])) if info == "python")
    above = np.zeros(2, dtype=int)
    for seed in range(100):
        exec(body.replace("default_rng(11)", f"default_rng({1000 + seed})"), {})  # noqa: S102
        log = pq.read_table("people.parquet")
        y, p, person = (log[name].to_numpy() for name in ("closed", "said", "person"))
        for i, cluster in enumerate((None, person)):
            low = cal.certify.raw_lower(cal.predictions(y, p, cluster=cluster), side="lower").interval.low
            above[i] += low > 0.0
    rows, clusters = stated(r"floor above the true 0 \(5 allowed\) \| (\d+) \| (\d+)", case(EVENTS[0]))
    assert abs(above[0] - int(rows)) <= 20, above
    assert int(clusters) <= 5
    assert not refuted(int(above[1]), 100, 0.05)
