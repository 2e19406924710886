"""Faces: packages that load each public name when it is first used, and show no others.

A face says where its names live in a mapping `_WHERE`, which `where` makes of the names of each module, and becomes one
by ``sys.modules[__name__].__class__ = LazyModule``.
``"module:"`` is a module itself in place of a name in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any, NoReturn

PUBLIC = "calibrant"  # the package whose modules are searched for a name that another lacks
SYNONYMS = {  # names that other libraries use, and what they are here
    "CalibratedClassifierCV": "CalibratedClassifier",
    "brier_score": "brier",
    "brier_score_loss": "brier",
    "expected_calibration_error": "ece",
    "hosmer_lemeshow": "hosmer_lemeshow_test",
    "roc_auc": "auroc",
    "roc_auc_score": "auroc",
}
INSTEAD = {  # names that were changed, or are looked for, and what to write
    ("testing", "assert_met"): "testing.assert_within",
    ("repair", "compare"): "repair.evaluate",
}
FIRST = {  # what a module, called as if it were a function, may be meant to be
    "certify": "certify.rounded",
    "detect": "detect.local_calibration_test",
    "diagnose": "diagnose.reliability_curve",
    "measure": "measure.ece",
    "papers": "papers.published_kernel",
}


def where(modules: Mapping[str, str]) -> dict[str, str]:
    """Each name of a face with its module, of the names by module, which are separated by spaces."""
    return {name: module for module, names in modules.items() for name in names.split()}


def synonym(name: str, own: Iterable[str]) -> str:
    """The name here of what another library calls so; empty where there is none."""
    ours = SYNONYMS.get(name, "")
    return ours if ours in own else ""


def lacking(module: str, name: str, own: Iterable[str]) -> AttributeError:
    """The error of a module without such a name, which says what to write where that is known."""
    stated = f"module {module!r} has no attribute {name!r}"
    if name.startswith("_") or _is_file(module, name):
        return AttributeError(stated)
    short = module.removeprefix(PUBLIC).lstrip(".")
    instead = INSTEAD.get((short, name)) or _elsewhere(SYNONYMS.get(name, name), short)
    if instead:
        return AttributeError(f"{stated}: write {PUBLIC}.{instead}")
    near = get_close_matches(name, own, 1)
    return AttributeError(f"{stated}: did you mean {near[0]}?" if near else stated)


def _is_file(module: str, name: str) -> bool:
    """Tell a file of the package, which is imported by its name: nothing need be searched to say that it is no name."""
    try:
        return find_spec(f"{module}.{name}") is not None
    except ModuleNotFoundError:  # a module that is no package
        return False


def _elsewhere(name: str, module: str) -> str:
    """Where another public module has a name, as ``"measure.ece"``."""
    others = (m for m in import_module(PUBLIC)._MODULES if m != module)
    return next((f"{m}.{name}" for m in others if name in import_module(f"{PUBLIC}.{m}").__all__), "")


class PublicModule(ModuleType):
    """A module that says what to write for a name that it lacks, and where it is called."""

    def __getattr__(self, name: str) -> Any:
        own = self.__dict__["__all__"]
        ours = synonym(name, own)
        if ours:
            return getattr(self, ours)
        raise lacking(self.__name__, name, own)

    def __call__(self, *_: object, **__: object) -> NoReturn:
        short = self.__name__.removeprefix(f"{PUBLIC}.")
        one = FIRST.get(short, f"{short}.{self.__dict__['__all__'][0]}")
        raise TypeError(f"{self.__name__} is a module: name the function, such as {PUBLIC}.{one}(y_true, y_prob)")


class LazyModule(PublicModule):
    """A package whose public names live in its modules, or in those of other packages.

    Importing a module binds it to its name in the package. A public function of that name stays the function, whichever
    is imported first.
    """

    _WHERE: dict[str, str]

    def __getattr__(self, name: str) -> Any:
        if name not in self.__dict__["_WHERE"]:
            return super().__getattr__(name)
        where = self._WHERE[name]
        value = import_module(where.removesuffix(":"))
        if not where.endswith(":"):
            value = getattr(value, name)
        setattr(self, name, value)
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        own = isinstance(value, ModuleType) and value.__name__ == f"{self.__name__}.{name}"
        if not (name in self._WHERE and own):
            super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return sorted(self._WHERE)
