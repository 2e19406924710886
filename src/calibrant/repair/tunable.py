"""Settings of a recipe by name, as scikit-learn's `clone`, `set_params` and searches want them."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import fields
from typing import TYPE_CHECKING, ClassVar, Self

from calibrant.errors import BadInput

if TYPE_CHECKING:
    from dataclasses import Field


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
