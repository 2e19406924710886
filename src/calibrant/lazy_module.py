"""Faces: packages that load each public name when it is first used, and show no others.

A face says where its names live in a mapping `_WHERE`, and becomes one by ``sys.modules[__name__].__class__ = Face``.
``"module:"`` is a module itself in place of a name in it.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import Any


class LazyModule(ModuleType):
    """A package whose public names live in its modules, or in those of other packages.

    Importing a module binds it to its name in the package. A public function of that name stays the function, whichever
    is imported first.
    """

    _WHERE: dict[str, str]

    def __getattr__(self, name: str) -> Any:
        if name not in self.__dict__["_WHERE"]:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
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
