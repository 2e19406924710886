"""Faces: packages that load each public name when it is first used, and show no others.

A face says where its names live in a mapping `_WHERE`, and becomes one by ``sys.modules[__name__].__class__ = Face``.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import Any


class Face(ModuleType):
    """A package whose public names live in its modules, or in those of other packages.

    Importing a module binds it to its name in the package. A public function of that name stays the function, whichever
    is imported first.
    """

    _WHERE: dict[str, str]

    def __getattr__(self, name: str) -> Any:
        if name not in self.__dict__["_WHERE"]:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        value = getattr(import_module(self._WHERE[name]), name)
        setattr(self, name, value)
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name in self._WHERE and isinstance(value, ModuleType)):
            super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return sorted(self._WHERE)
