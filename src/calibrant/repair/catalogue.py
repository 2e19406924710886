"""Every recipe there is: each declares itself where it is written, and whoever names, lists or makes one asks here.

To add a recalibrator, write one file in `maps/`: the map as a `Calibrator`, and the recipe under ``@recipe(...)``. From
then on `calibrant.repair` has it by name, JSON finds its map, the command offers it, the judge knows how simple it is
and the report what to call it.
"""

from __future__ import annotations

import pkgutil
import re
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import Field, dataclass, field, fields
from functools import cache
from importlib import import_module
from importlib.resources import files
from types import MappingProxyType
from typing import Any, ClassVar, Literal, Self, TypeVar, dataclass_transform, get_args

from calibrant.arguments import choice, refuse
from calibrant.errors import BadInput

MAPS = "calibrant.repair.calibrators"  # the folder whose files declare recipes
DECLARATION = re.compile(r"^@recipe\((.*?)\)\n(?:@[^\n]*\n)*class (\w+)", re.MULTILINE | re.DOTALL)
WORDS = re.compile(r'\bwords="([^"\\]+)"')
Tried = Literal["always", "unless quick", "by the command", "when named"]
Class = TypeVar("Class", bound=type)


@dataclass(frozen=True, kw_only=True)
class Entry:
    """What a recipe says of itself."""

    recipe: type  # the class, whose name is the recipe's in Python, in JSON and in tables
    calibrators: tuple[type, ...]  # classes of the maps that it fits, whose names are their ``kind`` in JSON
    words: str  # what it is called in the middle of a sentence: ``"Platt scaling"``
    # Its place in the order of simplicity: of repairs that are equally good the first is recommended. Tens, so that
    # there is room between two.
    simplicity: int
    command: str = ""  # what ``calibrant repair --method`` calls it; empty where the command does not offer it
    covariates: bool = False  # it reads covariates, and is made with ``variables=``
    # Where nobody names recipes: tried by `evaluate`, audits and the command; by these two unless they are to be quick;
    # by the command alone unless it is to be quick; or not at all.
    tried: Tried = "when named"

    @property
    def name(self) -> str:
        """The recipe's name."""
        return self.recipe.__name__

    def fits(self, several: bool) -> bool:
        """Whether it is fitted on several classes at once (`multiclass_predictions`), or on two."""
        calibrators: tuple[Any, ...] = self.calibrators
        return any(m.several == several for m in calibrators)

    def make(self, variables: Sequence[str] = ()) -> Any:
        """The recipe with its default settings; `variables` are the covariates that it may read."""
        return self.recipe(variables=tuple(variables)) if self.covariates else self.recipe()


_DECLARED: dict[str, Entry] = {}


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(field,))
def recipe(
    *,
    calibrators: Sequence[type],
    words: str,
    simplicity: int,
    command: str = "",
    covariates: bool = False,
    tried: Tried = "when named",
) -> Callable[[Class], Class]:
    """Declare the class below to be a recipe, and make it a frozen dataclass of its settings; see `Entry`."""

    from calibrant.data.calls import takes_arrays  # a report names recipes, and loads no library of arrays for that

    def declared(own: Class) -> Class:
        made: Any = own if "__dataclass_fields__" in vars(own) else dataclass(frozen=True, kw_only=True)(own)
        made.fit = takes_arrays(made.fit, scores_first=True)
        _DECLARED[own.__name__] = Entry(
            recipe=own,
            calibrators=tuple(calibrators),
            words=words,
            simplicity=simplicity,
            command=command,
            covariates=covariates,
            tried=tried,
        )
        return own

    return declared


def recipes() -> Mapping[str, Entry]:
    """What every recipe says of itself, by name, the simplest first.

    Examples
    --------
    >>> import calibrant as cal
    >>> entry = cal.repair.recipes()["Platt"]
    >>> entry.words, entry.command, entry.make()
    ('Platt scaling', 'platt', Platt(scale='auto', ridge=None))
    """
    _read_all()
    return MappingProxyType(dict(sorted(_DECLARED.items(), key=lambda item: item[1].simplicity)))


def recipe_named(argument: str, name: str) -> object:
    """The recipe of the score that a word names, with its default settings: its command's word, or "sigmoid"."""
    of_scores = {e.command or key.lower(): e for key, e in recipes().items() if not e.covariates}
    named = {"sigmoid": of_scores["platt"]} | of_scores  # as scikit-learn calls it
    if name not in named:
        of_variables = [key for key, e in recipes().items() if e.covariates and name in (e.command, key)]
        if of_variables:
            refuse(argument, name, f"the recipe with the variables that it reads: {of_variables[0]}(variables=[...])")
        choice(argument, name, sorted(of_scores))
    return named[name].make()


def words_of(name: str) -> str | None:
    """What a recipe is called in the middle of a sentence; None for one that is not known.

    A report names the recipes of its record and fits none, so declarations are read as they are written in the files,
    without the numerical libraries that importing the files would load.
    """
    if name in _DECLARED:
        return _DECLARED[name].words
    written = _written_words().get(name)
    if written is not None:
        return written
    entry = recipes().get(name)
    return None if entry is None else entry.words


@cache
def _written_words() -> Mapping[str, str]:
    """The words of the recipes that the text of the files declares."""
    texts = (f.read_text(encoding="utf-8") for f in files(MAPS).iterdir() if f.name.endswith(".py"))
    results = ((name, WORDS.search(stated)) for text in texts for stated, name in DECLARATION.findall(text))
    return {name: words[1] for name, words in results if words is not None}


@cache
def _read_all() -> None:
    """Import the files that declare recipes."""
    for file in pkgutil.iter_modules(import_module(MAPS).__path__):
        import_module(f"{MAPS}.{file.name}")


def calibrator_classes() -> Mapping[str, type]:
    """The classes of fitted maps by name."""
    return {kind.__name__: kind for entry in recipes().values() for kind in entry.calibrators}


def tried_by_default(variables: Sequence[str], upto: Tried = "always") -> dict[str, Any]:
    """The recipes that are tried where none is named: maps of the score, and with variables maps of them too."""
    levels: tuple[Tried, ...] = get_args(Tried)
    tried = levels[: levels.index(upto) + 1]
    return {
        name: entry.make(variables)
        for name, entry in recipes().items()
        if entry.tried in tried and (variables or not entry.covariates)
    }


# ---- Settings of a recipe by name, as scikit-learn's `clone`, `set_params` and searches want them ----


class Tunable:
    """What a recipe, or a part of one, is made of: a dataclass whose fields are its settings.

    Like a kernel of `sklearn.gaussian_process`, a recipe has parameters and can be copied, but is no estimator: its
    `fit` takes predictions, not X and y. `calibrant.repair.Recalibrator` is the estimator.
    """

    __dataclass_fields__: ClassVar[dict[str, Field[object]]]

    def get_params(self, deep: bool = True) -> dict[str, object]:
        """The settings by name.

        Parameters
        ----------
        deep : bool
            Those of a part too, as ``learner__depth``.

        Returns
        -------
        dict
        """
        own: dict[str, object] = {f.name: getattr(self, f.name) for f in fields(self)}
        inner = {
            f"{name}__{key}": value
            for name, part in own.items()
            if deep and isinstance(part, Tunable)
            for key, value in part.get_params().items()
        }
        return own | inner

    def set_params(self, **params: object) -> Self:
        """Change settings of this very recipe, as scikit-learn's searches do to copies of theirs, and return it.

        Parameters
        ----------
        **params
            Settings by name; of a part as ``learner__depth``.

        Returns
        -------
        The recipe itself.

        Raises
        ------
        BadInput
            A setting that it does not have, or cannot be used; then nothing is changed.
        """
        new, inner = self.get_params(deep=False), dict[str, dict[str, object]]()
        for key, value in params.items():
            name, _, rest = key.partition("__")
            if name not in new or (rest and not isinstance(params.get(name, new[name]), Tunable)):
                known = ", ".join(self.get_params()) or "none"
                raise BadInput(f"{type(self).__name__} has no setting {key!r}; its settings: {known}")
            if rest:
                inner.setdefault(name, {})[rest] = value
            else:
                new[name] = value
        for name, own in inner.items():
            part = deepcopy(new[name])
            if isinstance(part, Tunable):  # as was checked above
                new[name] = part.set_params(**own)
        made = type(self)(**new)  # which checks them together
        for name, value in vars(made).items():
            object.__setattr__(self, name, value)
        return self

    def __sklearn_clone__(self) -> Self:
        """A copy, for `sklearn.base.clone`."""
        return deepcopy(self)
