"""What the caller says of the model and its use: words of one line, or none."""

from pathlib import Path

import pytest

import calibrant as cal
from calibrant.audit.judging import WORDS, words_of


@pytest.mark.parametrize("words", ["", "  ", "\t", "two\nlines", "one\r", "one\n", "a\u2028b", "a\x0bb"])
@pytest.mark.parametrize("name", ["noun", "model", "intended_use", "period", "population", "set_by"])
def test_empty_words_and_line_breaks_are_refused_in_one_line(name: str, words: str) -> None:
    for given in ({"about": {name: words}}, {name: words}):
        with pytest.raises(cal.BadInput, match=f"{name}=.*: pass words in one line, or leave it out") as reported:
            words_of(given.get("about"), WORDS, {k: v for k, v in given.items() if k != "about"})
        assert len(str(reported.value).splitlines()) == 1


def test_a_file_with_a_line_break_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "about.toml"
    path.write_text('model = """\nrisk\n3.1"""\n')
    with pytest.raises(cal.BadInput, match="one line"):
        words_of(path, WORDS, {})


def test_words_of_one_line_are_kept_as_they_are() -> None:
    stated = {"noun": "people, once a year", "period": None}
    reported = words_of({"noun": "loans", "model": " risk 3.1 "}, WORDS, stated)
    assert reported == {"noun": "people, once a year", "model": " risk 3.1 "}
