"""What nobody can read from the data: the model and its use, whose rows they are, and who set the limit."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from os import PathLike, fspath
from typing import Any

from calibrant.arguments import PYTHON, Caller, refuse, shown, text
from calibrant.errors import BadInput

AboutInput = Mapping[str, object] | str | PathLike[str] | None
NOUN = "rows"  # what a row is, where nobody says


@dataclass(frozen=True, kw_only=True)
class About:
    """Words for the report, each given or None."""

    noun: str = NOUN  # what a row is, in the plural: "people", "loans"
    # `model` and `intended_use`: name and version of the model; what its probabilities are used for.
    model: str | None = None
    intended_use: str | None = None
    # `period` and `population`: when the rows were recorded; whom or what they stand for.
    period: str | None = None
    population: str | None = None
    set_by: str | None = None  # who set the limit, and when

    @classmethod
    def of(cls, about: AboutInput = None, *, caller: Caller = PYTHON, **value: object) -> About:
        """Join what a mapping or a TOML file says with what is given by itself, which wins."""
        named = {f.name for f in fields(cls)}
        reported = _read(about, caller)
        for name in reported:
            if name not in named:
                raise BadInput(f"{caller.name('about')}: {shown(name)} is not known: use {', '.join(sorted(named))}")
        reported |= {k: v for k, v in value.items() if v is not None}
        return cls(**{k: _one_line(caller.name(k), v) for k, v in reported.items() if v is not None})

    def to_dict(self) -> dict[str, Any]:
        """The words by name."""
        return asdict(self)


def _one_line(name: str, value: object) -> str:
    """Return words of one line as they were given, or refuse them."""
    words = text(name, value)
    if not words.strip() or words.splitlines() != [words]:
        refuse(name, value, "words in one line", "or leave it out")
    return words


def _read(about: AboutInput, caller: Caller) -> dict[str, object]:
    if about is None or isinstance(about, Mapping):
        return dict(about or {})
    if not isinstance(about, (str, PathLike)):
        raise BadInput(f"{caller.name('about')}={shown(about)}: pass a mapping or the path of a TOML file")
    path = fspath(about)
    try:
        with open(path, "rb") as file:
            return tomllib.load(file)
    except OSError as e:
        raise BadInput(f"{caller.name('about')} {path}: {e.strerror or e}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as e:
        raise BadInput(f"{caller.name('about')} {path} is no TOML ({e}): write lines like model = 'risk 3.1'") from None
