"""What to know of the data, in plain words: first on the page, in Markdown and in a terminal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import calibrant as cal
import factories
from calibrant.report import html, markdown, terminal
from calibrant.report.wording.notices import NOTICES, notices

REPEATS = {"rows": 300, "of": 3300, "exact": True, "by": "row", "copied": True}
COLUMNS = {
    "y": {"kind": "label", "used": "label", "missing": None},
    "sex": {"kind": "category", "used": "group", "missing": 0.02},
    "nr": {"kind": "id", "used": "left out", "missing": None},
    "<b>": {"kind": "number", "used": "covariate", "missing": 0.0},
}


def record(*warnings: str, **data: object):
    return factories.record(data={"warnings": list(warnings), **data})


def test_repeats_are_counted_in_words() -> None:
    made = record("repeated-rows", repeats=REPEATS)
    for text in (terminal.render(made), markdown.render(made)):
        assert "300 of 3,300 rows equal an earlier one" in text.replace("\n", " ")
    assert "count more than once" in html.render(made)
    about = record("repeated-rows", repeats=REPEATS | {"exact": False, "by": "key"})
    assert "About 300 of 3,300 rows have the key of an earlier one" in markdown.render(about)


def test_identifiers_are_named_and_columns_told() -> None:
    made = record("likely-id", columns=COLUMNS, left_out=[["nr", "it looks like an identifier: it counts the rows"]])
    text = markdown.render(made)
    assert "neither ranked nor tested: `nr`" in text
    assert "| `sex` | category | group | at most 2% |" in text
    assert "| `nr` | id | left out: `it looks like an identifier: it counts the rows` |" in text
    page = html.render(made)
    assert 'id="columns"' in page
    assert "<b></b>" not in page


def test_silent_where_there_is_nothing_to_know() -> None:
    assert notices(record()) == ()
    assert "Data:" not in terminal.render(record())
    assert "Data:" not in terminal.render(record("a code of tomorrow"))


@pytest.mark.parametrize("warning", NOTICES)
def test_every_code_has_words(warning: str) -> None:
    ((lead, _),) = notices(record(warning))
    assert lead
    assert warning == "horizon" or warning not in terminal.render(record(warning))  # a word as any other


def test_an_identifier_that_is_a_group_is_named_too_and_no_sentence_ends_twice() -> None:
    left = [["grp", "it looks like an identifier: its values are whole numbers that almost all differ"]]
    reported = terminal.render(record("likely-id", by=[["grp"]], left_out=left))
    assert "Neither ranked nor tested, like identifiers: grp." in " ".join(reported.split())
    both = terminal.render(record("likely-id", by=[["grp"]], left_out=[*left, ["nr", "it looks like an identifier"]]))
    assert "Identifiers left out: grp, nr." in " ".join(both.split())
    for text in (reported, both, terminal.render(record("likely-id"))):
        assert ".." not in text


def test_columns_of_one_name_are_told() -> None:
    left = [["g", "several columns have this name: rename all but one"], ["h", "it is empty"]]
    made = record("columns-not-read", left_out=left)
    for text in (terminal.render(made), markdown.render(made)):
        reported = " ".join(text.replace("`", "").replace("*", "").split())
        assert "Columns not read: g: several columns have this name: rename all but one." in reported
        assert "h: it is empty" not in reported.split("Reproduce")[0].split("Columns not read")[1][:80]


def test_weights_that_are_ranked_are_told() -> None:
    made = record("weights-not-used", covariates=["age", "survey_weight"])
    reported = " ".join(terminal.render(made).split())
    assert "Weights not used: survey_weight is ranked as a variable. If it says how many people a row" in reported


@pytest.mark.slow
def test_an_audit_finds_both(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = [f"{i // 2 % 2},{p:.3f},{w:.3f},a,b,{'ab'[i % 2]}" for i, (p, w) in enumerate(rng.uniform(0.2, 1, (400, 2)))]
    (tmp_path / "log.csv").write_text("\n".join(["y,p,survey_weight,g,g,s", *rows]), encoding="utf-8")
    asked: dict[str, Any] = {"label": "y", "score": "p", "quick": True}
    made = cal.audit(tmp_path / "log.csv", by="s", **asked)
    assert {"columns-not-read", "weights-not-used"} <= {*made.data["warnings"]}
    assert made.data["left_out"] == (("g", "several columns have this name: rename all but one"),)
    alone = cal.audit(tmp_path / "log.csv", by="s", weights="survey_weight", **asked)
    assert "weights-not-used" not in alone.data["warnings"]
    assert "columns-not-read" in alone.data["warnings"]
    named = cal.audit(tmp_path / "log.csv", variables="s", **asked)
    assert not {"columns-not-read", "weights-not-used"} & {*named.data["warnings"]}


def test_a_code_that_a_record_repeats_is_shown_once() -> None:
    assert notices(record(*["one-class"] * 3)) == notices(record("one-class"))
    assert len(notices(record("one-class", "one-class", "likely-id", columns=COLUMNS))) == 2
