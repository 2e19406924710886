"""Every frozen case leaves what it left before: numbers within 1e-12, everything else byte for byte."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from frozen import cases, freeze
from frozen.bench import Bench, Outputs, versions
from frozen.compared import NUMBERS, compared, first_line

pytestmark = pytest.mark.slow(turns=1)


def differences(case: str, new: Outputs) -> str:
    """What differs from the archive, the first line of each file; nothing if nothing does."""
    found = compared({case: freeze.kept()[case]}, {case: new})
    if not found:
        return ""
    made = freeze.kept_versions()
    other = ", ".join(f"{k} {made.get(k, 'none')} then, {v} now" for k, v in versions().items() if made.get(k) != v)
    return "\n".join(
        [*(f"{name}: {what}" for name, what in found[case].files), f"(other versions: {other})" * bool(other)]
    )


@pytest.mark.parametrize("case", cases.CASES)
def test_a_case_leaves_what_it_left(case: str) -> None:
    told = differences(case, freeze.made(case))
    assert not told, f"{case} differs from {freeze.ARCHIVE.name}:\n{told}"


def test_the_archive_holds_the_cases_and_nothing_else() -> None:
    assert set(freeze.kept()) == set(cases.CASES)
    assert all(freeze.kept().values())


def test_the_archive_is_the_same_bytes_whatever_the_order() -> None:
    some = {case: freeze.kept()[case] for case in ("commands-plan", "refusals-python")}
    turned = {case: dict(reversed(of.items())) for case, of in reversed(some.items())}
    assert freeze.packed(some) == freeze.packed(turned)


# ---- a changed output fails ----


def word(content: bytes) -> bytes:
    return content.replace(b"guarantee", b"warrant", 1)


def number(content: bytes) -> bytes:
    return content.replace(b"0.95", b"0.96", 1)


def byte(content: bytes) -> bytes:
    return content.replace(b"\n", b" \n", 1)


@pytest.mark.parametrize("change", [word, number, byte])
def test_a_changed_output_fails_and_its_line_is_shown(change: Callable[[bytes], bytes]) -> None:
    name = "brier.json"
    old = freeze.kept()["measure-independent"]
    assert change(old[name]) != old[name]
    told = differences("measure-independent", old | {name: change(old[name])})
    line = next(
        i for i, (a, b) in enumerate(zip(old[name].splitlines(), change(old[name]).splitlines(), strict=True)) if a != b
    )
    assert told.startswith(f"{name}: line {line + 1}\n  was ")


def test_a_changed_product_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """A case that is run, not a text that is edited: one word of an option is another."""
    monkeypatch.setitem(cases.NAMES, "--side lower", "upper")
    told = differences("commands-plan", freeze.made("commands-plan"))
    assert told.startswith("weights.txt: line ")


def test_a_file_that_is_gone_or_new_fails() -> None:
    old = freeze.kept()["accepting"]
    fewer = {k: v for k, v in old.items() if k != "high.txt"}
    assert differences("accepting", fewer) == "high.txt: is gone\n"
    assert differences("accepting", old | {"more.txt": b""}) == "more.txt: is new\n"


@pytest.mark.parametrize(
    ("old", "new", "alike"),
    [
        ("0.1234567890123456", "0.1234567890123999", True),
        ("0.1234567890123456", "0.1234567891", False),
        ("12345678.90123456", "12345678.90123457", True),
        ("0.30000000000000004", "0.3", True),
        ("1.1102230246251565e-16", "0.0", True),
        ("0.30", "0.3", False),
        ("0.123", "0.124", False),
        ("123456789012345", "123456789012346", False),
        ("-0.5000000000000001", "0.5000000000000001", False),
        ("v1.0000000000000001", "v1.0", False),
    ],
)
def test_numbers_of_many_digits_agree_within_a_millionth_of_a_millionth(old: str, new: str, alike: bool) -> None:
    found = compared({"c": {"f": f"a {old}, b".encode()}}, {"c": {"f": f"a {new}, b".encode()}})
    assert (not found) == alike


def test_words_that_differ_are_counted_over_all_cases() -> None:
    old = {"a": {"f": b"pocket of 3 rows, pocket"}, "b": {"g": b"the pocket\n0.5 of it\n", "h": b"same"}}
    new = {"a": {"f": b"subgroup of 3 rows, subgroup"}, "b": {"g": b"the subgroup\n0.6 of it\n", "h": b"same"}}
    found = compared(old, new)
    assert found["a"].words == {("pocket", "subgroup"): 2}
    assert found["b"].words == {("pocket", "subgroup"): 1, NUMBERS: 1}
    assert "     3 x 'pocket' -> 'subgroup'" in freeze.told(found)


def test_words_that_came_are_found_between_those_that_stayed() -> None:
    old = "\n".join(f"line {i} says that" for i in range(200))
    new = old.replace("line 77 says that", "line 77 now says\nthat")
    (pairs,) = [d.words for d in compared({"c": {"f": old.encode()}}, {"c": {"f": new.encode()}}).values()]
    assert sum(pairs.values()) <= 2
    assert first_line(old, new).startswith("line 78\n")


def test_a_rename_is_told_once(tmp_path: Path) -> None:
    at = Bench(
        tmp_path, {"--levels": "--steps", "diagnose pockets": "diagnose subgroups", "measure.old": "measure.brier"}
    )
    assert at._spelled(["diagnose", "pockets", "--levels", "3"]) == ["diagnose", "subgroups", "--steps", "3"]
    assert at.function("measure.old").__name__ == "brier"
