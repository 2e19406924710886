"""No sentence of a report contradicts another: random audits of many kinds, held against rules about what they say."""

from __future__ import annotations

from pathlib import Path

import pytest

from agree.records import audited, design
from agree.rules import RULES, contradictions

QUICK = (3, 5, 11, 150)  # of little data: under 0.4 seconds each
MANY = 200


@pytest.mark.parametrize("seed", QUICK)
def test_no_sentence_of_a_report_contradicts_another(seed: int, tmp_path: Path) -> None:
    result = audited(seed, tmp_path)
    assert not contradictions(result), result.command


@pytest.mark.slow
@pytest.mark.parametrize("seed", [s for s in range(MANY) if s not in QUICK])
def test_no_sentence_of_many_reports_contradicts_another(seed: int, tmp_path: Path) -> None:
    result = audited(seed, tmp_path)
    assert not contradictions(result), result.command


def test_random_audits_are_of_every_kind() -> None:
    designs = [design(seed) for seed in range(MANY)]
    kinds = [
        *("--cluster", "--weights", "--missing", "--by", "--limit", "--limit-relative", "--judge", "--variables"),
        *("--publish", "--mask", "--target", "--threshold", "--quick"),
    ]
    for option in kinds:
        named = sum(option in (*d.reading, *d.options) for d in designs)
        assert 5 < named < MANY - 5, option
    assert sum(d.sketch for d in designs) > 5
    assert len({r.__name__ for r in RULES}) == len(RULES)
