"""What the report says of an audit that tested some of many columns."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import factories
from calibrant.report.brief.rests import rests
from calibrant.report.markdown import render
from calibrant.report.spans import plain

SCREEN: dict[str, Any] = {"chosen": ("age", "sex"), "of": 500, "rows_chose": 300, "rows_tested": 600}


def test_it_says_how_many_columns_were_read_and_who_chose_them() -> None:
    whole = factories.whole()
    some = replace(whole, data={**whole.data, "screen": SCREEN})
    reported = [plain(line) for line in rests(some)]
    assert (
        reported[0] == "Tests, subgroups and repairs read 2 of 500 columns, in 600 people; the other rows chose them."
    )
    text = render(some)
    assert "among the 2 columns searched" in text or "No subgroup of" not in text
    assert "2 of 500: those named as groups, and those along which 300" in text
    assert "600" in text
    assert "The other 498 are in the ranking only" in text
    assert "2 of 500 columns" not in render(whole)
