"""A limit that is a share of the mean score, in the commands that a page prints and in a record to publish."""

from __future__ import annotations

import re
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
import pytest

import calibrant as cal
import factories
from calibrant.audit.rounding import step
from calibrant.cli.parser import build_parser
from calibrant.report import commands, html, markdown, terminal
from calibrant.report.outline import document

RELATIVE = 0.25


def wards(path: Path) -> Path:
    rng = np.random.default_rng(12)
    ward = np.repeat(["a", "b", "c", "d"], [700, 400, 260, 45])
    p = rng.beta(2, 9, len(ward))
    y = (rng.random(len(p)) < np.where(ward == "b", np.minimum(2.0 * p, 1.0), p)).astype(int)
    file = path / "wards.csv"
    csv.write_csv(pa.table({"died": y, "risk": p, "ward": ward}), file)
    return file


def audited(path: Path, **how: Any) -> cal.AuditRecord:
    return cal.audit(
        str(wards(path)), label="died", score="risk", by="ward", limit_relative=RELATIVE, quick=True, **how
    )


def parsed(command: str) -> dict[str, Any]:
    words = shlex.split(command.replace("\\\n", " "))
    assert words[0] == "calibrant"
    return vars(build_parser().parse_args(words[1:]))


@pytest.mark.slow
def test_printed_commands_ask_for_the_same_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    record = audited(tmp_path)
    for text in (
        commands.command(record),
        commands.audit_again(record),
        commands.without_column(record, "ward"),
    ):
        assert (parsed(text)["limit_relative"], parsed(text)["limit"]) == (RELATIVE, None)
    for text in (commands.plan(record), commands.repair(record)):  # which take points: those of everyone
        assert parsed(text)["limit"] == record.everyone.limit == record.settings["limit"]
    for text in (commands.look(record), commands.rows_of(record, "ward = b")):  # which take no limit
        assert "limit" not in text
        assert parsed(text)
    page = html.render(record)
    assert f"--limit-relative {RELATIVE}" in page
    assert f"limit \u00b1{100 * RELATIVE:g}% of the mean score" in page
    again = cal.AuditRecord.from_json(record.to_json())
    assert commands.command(again) == commands.command(record)


@pytest.mark.slow
def test_a_published_limit_of_a_group_tells_no_expected_events(tmp_path: Path) -> None:
    exact, published = (audited(tmp_path, publish=publish) for publish in (False, True))
    assert [g.verdict for g in published.groups if g.verdict == "over"]
    for one, other in zip(exact.groups, published.groups, strict=True):
        assert one.limit is not None
        assert abs(one.limit / RELATIVE * one.rows - one.expected) < 0.5 + 0.01 * one.expected  # it would be the sum
        u = step(one.rows)
        assert other.limit is None or abs(other.limit / u - round(other.limit / u)) < 1e-9
        assert (other.limit is None) == (one.limit < u)
    assert cal.AuditRecord.from_json(published.to_json()) == published
    told = [g.limit for g in exact.groups if g.limit != exact.everyone.limit]
    assert told
    for text in (html.render(published), markdown.written(document(published)), terminal.render(published)):
        assert not [v for v in told if re.search(rf"(?<![\d.]){100 * v:.3g}(?!\d)", text)]


def test_a_setting_that_no_line_words_is_typed_and_called_as_it_is_recorded() -> None:
    record = factories.whole()
    settings = record.settings | {"ranges": 5, "loud": True, "quiet": False, "judged_by": ("site", "ward, floor")}
    again = commands.audit_again(replace(record, settings=settings))
    for words in ("--ranges 5", "--loud", "--judged-by 'site,\"ward, floor\"'"):
        assert words in again
    assert "quiet" not in again
