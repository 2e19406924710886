"""Each check of an argument returns what it was given, or names argument, value and fix in one line."""

from __future__ import annotations

import inspect
from typing import Annotated, Any, Literal, TypedDict, Unpack

import numpy as np
import pandas as pd
import pytest

from calibrant import arguments
from calibrant.arguments import COMMAND, Option, checked, optional, share, takes
from calibrant.errors import BadInput

SOUND = [
    (arguments.check_int("bins", np.int64(15), 1, 100), 15),
    (arguments.check_int("draws", 19, 19), 19),
    (arguments.number("clip", 0, least=0, below=0.5), 0.0),
    (arguments.number("span", np.float32(0.5), above=0, most=1), 0.5),
    (arguments.share("alpha", 0.05), 0.05),
    (arguments.positive("width", 3), 3.0),
    (arguments.finite("gap", -2), -2.0),
    (arguments.flag("paper", np.True_), True),
    (arguments.text("name", "log"), "log"),
    (arguments.choice("norm", np.int64(2), (1, 2)), 2),
    (arguments.choice("side", "lower", ("lower", "upper")), "lower"),
    (arguments.names("by", "sex"), ("sex",)),
    (arguments.names("by", ["sex", "age"]), ("sex", "age")),
    (arguments.names("by", None), ()),
    (arguments.checked_seed(2**63 - 1), 2**63 - 1),
    (arguments.checked_draws(19, 0.05), 19),
    (arguments.checked_steps(1024), 1024),
]
REFUSED = [
    (lambda: arguments.check_int("bins", True, 1, 100_000), "bins=True: pass a whole number from 1 to 100,000"),
    (
        lambda: arguments.check_int("draws", 18, 19, hint="such as 999"),
        "draws=18: pass a whole number from 19 up, such as 999",
    ),
    (
        lambda: arguments.check_int("bins", 2.0, 1, 10, of="groups"),
        "bins=2.0: pass a whole number of groups from 1 to 10",
    ),
    (lambda: arguments.number("clip", 0.5, least=0, below=0.5), "clip=0.5: pass a number from 0 to below 0.5"),
    (lambda: arguments.number("span", 0, above=0, most=1), "span=0: pass a number above 0 and at most 1"),
    (lambda: arguments.number("rate", 2, least=0.001, most=1), "rate=2: pass a number from 0.001 to 1"),
    (lambda: arguments.number("ridge", -1.0, least=0), "ridge=-1.0: pass a number from 0 up"),
    (lambda: arguments.number("ridge", float("nan"), least=0), "ridge=nan: pass a number from 0 up"),
    (lambda: arguments.share("alpha", 1), "alpha=1: pass a number between 0 and 1"),
    (lambda: arguments.positive("width", 0), "width=0: pass a positive number"),
    (lambda: arguments.positive("width", "3"), "width='3': pass a positive number"),
    (lambda: arguments.finite("gap", float("inf")), "gap=inf: pass a finite number"),
    (lambda: arguments.flag("paper", 1), "paper=1: pass True or False"),
    (lambda: arguments.text("name", 3), "name=3: pass text"),
    (lambda: arguments.text("name", b"log"), "name=b'log': pass text"),
    (lambda: arguments.choice("norm", True, (1, 2)), "norm=True: pass 1 or 2"),
    (
        lambda: arguments.choice("side", ["lower"], ("two-sided", "lower", "upper")),
        "pass 'two-sided', 'lower' or 'upper'",
    ),
    (lambda: arguments.names("by", 3), "by=3: pass the name of a column, or a list of names"),
    (lambda: arguments.names("by", ["sex", "sex"], distinct=True), "names 'sex' twice: name each once"),
    (lambda: arguments.names("by", [], least=1), "pass the name of a column"),
    (lambda: arguments.checked_seed(-1), r"seed=-1: pass a whole number from 0 to 2\*\*63 - 1"),
    (lambda: arguments.checked_alpha(0), "alpha=0: pass an error probability above 0 and at most 0.5, such as 0.05"),
    (lambda: arguments.checked_steps(1, "--steps"), "--steps=1: pass a whole number of steps from 2 to 1,024"),
    (lambda: arguments.checked_draws(18, 0.05), "draws=18: alpha=0.05 needs at least 19 draws"),
]


def test_an_argument_is_called_as_it_was_given():
    assert arguments.PYTHON.says("label", "score", "by") == "label=, score= and by="
    assert arguments.COMMAND.says("drop_missing") == "--missing drop"
    with pytest.raises(BadInput, match=r"^--limit=2: pass a number between 0 and 1$"):
        arguments.share(arguments.COMMAND.name("limit"), 2)


@pytest.mark.parametrize(
    "value",
    [np.linspace(0, 1, 900), list(range(900)), pd.Series(range(900)), "a" * 900, [["b"]]],
    ids=lambda value: type(value).__name__,
)
def test_a_refusal_is_short_whatever_is_refused(value):
    for check in (arguments.share, arguments.flag, lambda name, v: arguments.names(name, [v, 3])):
        with pytest.raises(BadInput) as error:
            check("x", value)
        assert "\n" not in str(error.value)
        assert len(str(error.value)) < 200
    column = "a column whose name is a whole question, as in tables of surveys"
    assert arguments.shown(column) == repr(column)


@pytest.mark.parametrize(("value", "expected"), SOUND)
def test_returns_what_was_given(value, expected):
    assert value == expected
    assert type(value) is type(expected)


@pytest.mark.parametrize(("check", "line"), REFUSED, ids=[line for _, line in REFUSED])
def test_names_argument_value_and_fix(check, line):
    with pytest.raises(BadInput, match=line) as error:
        check()
    assert "\n" not in str(error.value)


def test_a_whole_number_beyond_all_real_ones_is_refused() -> None:
    with pytest.raises(BadInput, match="finite number"):
        arguments.finite("bins", 10**400)


class Options(TypedDict, total=False):
    """What a function takes, declared once."""

    limit: Annotated[float | None, "largest error", Option("L", check=optional(share))]
    quick: Annotated[bool, "leave out the tests"]
    way: Annotated[Literal["drop", "keep"], "what is done", Option(default="drop")]
    more: str | None


@takes(Options, ("quick",), more="other")
def takes_options(data: object, *, label: str, engine: object = None, **options: Unpack[Options]) -> dict[str, Any]:
    return checked(Options, options, COMMAND)


def test_declared_arguments_are_a_signature_and_are_checked() -> None:
    names = ["data", "label", "quick", "limit", "way", "more", "engine"]
    parameters = inspect.signature(takes_options).parameters
    assert [*parameters] == names
    assert [parameters[n].default for n in names[2:]] == [False, None, "drop", "other", None]
    assert takes_options(1, label="y", limit=0.2) == {"limit": 0.2, "quick": False, "way": "drop", "more": "other"}
    for wrong, words in (
        ({"limit": 2}, "--limit=2: pass a number between 0 and 1"),
        ({"quick": 1}, "--quick=1: pass True or False"),
        ({"way": "lose"}, "--way='lose': pass 'drop' or 'keep'"),
    ):
        with pytest.raises(BadInput, match=f"^{words}$"):
            takes_options(1, label="y", **wrong)  # type: ignore[arg-type]
    for given in ({"label": "y", "colour": "red"}, {}):
        with pytest.raises(TypeError, match=r"^takes_options\(\): "):
            takes_options(1, **given)  # type: ignore[arg-type]
