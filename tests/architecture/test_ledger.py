"""The ledger holds: nothing weighs more than it says, and each rise says what people get for it."""

from __future__ import annotations

import ast

import pytest

from architecture import ledger

pytestmark = pytest.mark.slow(turns=1)  # every file of the package is parsed


def test_nothing_rises_without_saying_what_it_buys() -> None:
    up = ledger.risen(ledger.count(), ledger.held())
    assert not up, f'{up}: cut, or run `python {ledger.__file__} --buys "what people get for it"`'


def test_what_falls_is_held_down() -> None:
    late = ledger.behind(ledger.count(), ledger.held())
    assert not late, f"the ledger holds more than there is, of {late}: run `python {ledger.__file__}`"


def test_each_rise_says_what_people_get() -> None:
    for entry in ledger.bought():
        assert len(str(entry["buys"]).split()) >= 3, f"{entry['rises']}: say in a sentence what people get for it"


def test_a_rise_and_a_fall_are_seen() -> None:
    """The two saboteurs: a branch more, a page of words less."""
    before = {"branches": {"audit": 3}, "words": {"docs/a.md": 500}}
    assert ledger.risen({"branches": {"audit": 4}, "words": {"docs/a.md": 500}}, before) == {"branches.audit": (3, 4)}
    assert ledger.risen({"branches": {"watch": 1}}, before) == {"branches.watch": (0, 1)}
    assert ledger.risen({"words": {"docs/a.md": 521}}, before) == {"words.docs/a.md": (500, 521)}
    assert not ledger.risen({"words": {"docs/a.md": 520}}, before)
    assert ledger.behind({"branches": {"audit": 3}, "words": {"docs/a.md": 400}}, before) == ["words.docs/a.md"]
    assert ledger.behind({"branches": {"audit": 3}, "words": {}}, before) == ["words.docs/a.md"]
    assert not ledger.behind({"branches": {"audit": 3}, "words": {"docs/a.md": 495}}, before)


def test_branches_on_the_kind_of_data_are_counted() -> None:
    """One for each condition that names a kind of data, and none for a loop over values of that name."""
    asks = """
if data.clusters is None: pass
x = 1 if weights is not None else 2
y = [u for u in rows if isinstance(u, Sketch)]
match data.cluster:
    case None: pass
"""
    silent = """
for cluster in clusters: pass
total = weights.sum()
if limit is None: pass
"""
    assert ledger.branches(ast.parse(asks)) == 4
    assert ledger.branches(ast.parse(silent)) == 0


def test_the_ledger_is_written_as_it_is_read() -> None:
    text = ledger.LEDGER.read_text(encoding="utf-8")
    assert ledger.written({k: dict(v) for k, v in ledger.held().items()}, ledger.bought()) == text
