"""What to know of the data, in plain words: first on the page, in Markdown and in a terminal."""

from __future__ import annotations

import pytest

import factories
from calibrant.report import html, markdown, terminal
from calibrant.report.wording import NOTICES, notices

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
        assert "300 of 3\u202f300 rows equal an earlier one" in text.replace("\n", " ")
    assert "count more than once" in html.render(made)
    about = record("repeated-rows", repeats=REPEATS | {"exact": False, "by": "key"})
    assert "About 300 of 3\u202f300 rows have the key of an earlier one" in markdown.render(about)


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
    assert warning not in terminal.render(record(warning))


def test_an_identifier_that_is_a_group_is_named_too_and_no_sentence_ends_twice() -> None:
    left = [["grp", "it looks like an identifier: its values are whole numbers that almost all differ"]]
    told = terminal.render(record("likely-id", by=[["grp"]], left_out=left))
    assert "Neither ranked nor tested, like identifiers: grp." in told
    both = terminal.render(record("likely-id", by=[["grp"]], left_out=[*left, ["nr", "it looks like an identifier"]]))
    assert "Identifiers left out: grp, nr." in both
    for text in (told, both, terminal.render(record("likely-id"))):
        assert ".." not in text
