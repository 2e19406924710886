"""Decisions before and after a repair in the audit: the record, its schema, the page and Markdown."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from jsonschema import Draft202012Validator

import calibrant as cal
from calibrant.audit.record import AuditRecord

SCHEMA = json.loads(Path(__file__).parents[3].joinpath("docs/schema/calibrant-4.json").read_text(encoding="utf-8"))


def audited(**more: object) -> AuditRecord:
    rng = np.random.default_rng(3)
    eta, sex = rng.beta(1, 4, 3000), rng.choice(["f", "m", "x"], 3000, p=[0.5, 0.48, 0.02])
    data = {"y": (rng.uniform(size=3000) < eta).astype(int), "p": eta**1.6, "sex": sex}
    return cal.audit(data, label="y", score="p", by="sex", **more)


@pytest.fixture(scope="module")
def record() -> AuditRecord:
    return audited(threshold=0.2)


@pytest.mark.slow
def test_the_record_tells_every_repair_and_fits_its_schema(record: AuditRecord) -> None:
    Draft202012Validator(SCHEMA).validate(json.loads(record.to_json()))
    c = record.curve("repair_decisions").columns
    tried = [name for name in record.curve("repairs").columns["probability"] if name != "as audited"]
    assert list(dict.fromkeys(c["probability"])) == tried
    assert set(c["threshold"]) == {0.2}
    everyone = [i for i, who in enumerate(c["population"]) if who == "everyone"]
    assert all(c["to_act"][i] > 100 and c["gain_low"][i] <= c["gain"][i] <= c["gain_high"][i] for i in everyone)
    few = [i for i, who in enumerate(c["population"]) if who == "sex = x"]
    assert all(c[k][i] is None for i in few for k in ("to_act", "to_leave", "gain", "gain_low", "gain_high"))


@pytest.mark.slow
def test_page_and_markdown_show_it(record: AuditRecord, tmp_path: Path) -> None:
    for name in ("a.html", "a.md"):
        record.save(tmp_path / name)
        text = (tmp_path / name).read_text(encoding="utf-8")
        assert "Who comes to be acted on, and who is not any more, under a repair" in text
        assert "Judged on rows held out, numbers rounded to multiples of five" in text


@pytest.mark.slow
def test_the_first_screen_and_the_section_say_what_the_repair_loses(tmp_path: Path) -> None:
    record = audited(threshold=0.2, limit=0.02)
    lost = "Its decisions are shown to lose net benefit: from 20% on for everyone"
    curve = record.curve("repair_decisions")
    reported = zip(*(curve.columns[k] for k in ("population", "shown")), strict=True)
    hurt = tuple("worse" if who == "everyone" else v for who, v in reported)
    worse = replace(curve, columns={**curve.columns, "shown": hurt})
    for of, times in ((record, 0), (replace(record, curves={**record.curves, "repair_decisions": worse}), 2)):
        of.save(tmp_path / "b.md")
        assert (tmp_path / "b.md").read_text(encoding="utf-8").count(lost) == times
