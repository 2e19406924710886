"""No sentence of a report contradicts another: random audits of many kinds, held against rules about what they say."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from agree.reading import read
from agree.records import Audited, audited, design
from agree.rules import RULES, Rule, contradictions, every_mark_lies_on_its_chart
from agree.spoilt import PATHS, SPOILT

QUICK = (3, 5, 11, 150)  # of little data: under 0.4 seconds each
MANY = 200
OF_ALL = 44  # of few rows, with groups and a limit: every rule has something to read


@pytest.fixture(scope="module")
def true(tmp_path_factory: pytest.TempPathFactory) -> Audited:
    return audited(OF_ALL, tmp_path_factory.mktemp("true"))


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: str(rule.__name__))
def test_a_rule_accepts_a_true_report_and_catches_a_spoilt_one(rule: Rule, true: Audited) -> None:
    assert not list(rule(true, read(true.markdown)))
    spoilt = SPOILT[rule.__name__](true)
    assert list(rule(spoilt, read(spoilt.markdown)))


@pytest.mark.parametrize("which", PATHS)
def test_a_mark_beyond_its_chart_is_caught_in_any_unit(which: str, true: Audited) -> None:
    spoilt = replace(true, page=true.page.replace("</main>", f"{PATHS[which]}</main>"))
    assert list(every_mark_lies_on_its_chart(spoilt, read(true.markdown)))


@pytest.mark.slow
@pytest.mark.parametrize("seed", QUICK)
def test_no_sentence_of_a_report_contradicts_another(seed: int, tmp_path: Path) -> None:
    result = audited(seed, tmp_path)
    assert not contradictions(result), result.command


@pytest.mark.slow(turns=10)
@pytest.mark.parametrize("seed", [s for s in range(MANY) if s not in QUICK])
def test_no_sentence_of_many_reports_contradicts_another(seed: int, tmp_path: Path) -> None:
    result = audited(seed, tmp_path)
    assert not contradictions(result), result.command


@pytest.mark.slow
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
