"""What a fitted repair is: a small immutable value that turns scores into scores, and that JSON can carry."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from importlib import import_module
from typing import Any, Literal, Self

import numpy as np

from calibrant.data.coding import Coding, Encoded, encode
from calibrant.data.columns import require
from calibrant.data.identity import identities_of
from calibrant.data.predictions import MulticlassPredictions, Predictions
from calibrant.errors import BadInput
from calibrant.repair.provenance import FittedOn
from calibrant.repair.soundness import checked_codings, checked_types
from calibrant.results import frozen, plain

FORMAT = "calibrant-map/1"
Order = Literal["kept", "kept up to ties", "may change"]
WHERE = {  # where each kind of map is
    "Augmented": "calibrant.repair.augmented",
    "Branches": "calibrant.repair.branches",
    "BetaCurve": "calibrant.repair.beta",
    "BoostedTrees": "calibrant.repair.boosted_trees",
    "Jittered": "calibrant.repair.jitter",
    "KernelShift": "calibrant.repair.kernel_shift",
    "LevelShifts": "calibrant.repair.level_shifts",
    "Logistic": "calibrant.repair.platt",
    "Piecewise": "calibrant.repair.isotonic",
    "Rounded": "calibrant.repair.rounding",
    "Softmax": "calibrant.repair.dirichlet",
    "Steps": "calibrant.repair.steps",
}


@dataclass(frozen=True)
class Batch:
    """Rows as a map reads them: scores, covariates encoded by the map's codings, identities."""

    p: Any
    covariates: Encoded | None
    ids: Any


@dataclass(frozen=True, kw_only=True)
class FittedMap:
    """A fitted repair: call it on data to repair the scores; `to_json` and `from_json` carry it without pickle.

    Parameters
    ----------
    recipe : str
        The repair that was fitted: ``"Platt"``.
    settings : Mapping
        Its settings, and facts about the fit.
    codings : tuple of Coding
        How the covariates that it reads become numbers and levels; empty for a map of the score alone.
    fitted_on : FittedOn
        The rows it was fitted on, so that it is never judged on them.
    """

    recipe: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    codings: tuple[Coding, ...] = ()
    fitted_on: FittedOn = field(default_factory=FittedOn)

    @property
    def kind(self) -> str:
        """The name of the class, by which `from_dict` finds it."""
        return type(self).__name__

    @property
    def order(self) -> Order:
        """Whether the order of people by score is kept."""
        return "may change"

    @property
    def reads(self) -> tuple[str, ...]:
        """Covariates that the map reads."""
        return tuple(c.name for c in self.codings)

    def values(self, rows: Batch) -> Any:
        """Return the repaired scores, float64 in [0, 1]."""
        raise NotImplementedError

    def check(self) -> None:
        """Raise `ValueError` if parts of the map do not go together; `from_dict` asks, once their types are right."""

    def scores(self, p: Any, columns: Any = None, ids: Any = None) -> Any:
        """Return the repaired scores of rows given as arrays.

        Parameters
        ----------
        p : float array of shape (n,)
        columns : pyarrow.Table or RecordBatch, optional
            Covariates; needed if the map `reads` any.
        ids : uint64 array of shape (n,), optional
            Identities of the rows, for a map that draws; by default those of rows 0 to n - 1.

        Raises
        ------
        BadInput
            A score is missing or outside 0 to 1; a covariate is not there, is of another kind than at the fit, or has
            another number of rows.
        """
        p = np.asarray(p, dtype=np.float64)
        if not p.ndim or not ((p >= 0.0) & (p <= 1.0)).all():
            raise BadInput(
                "scores to repair must be an array of numbers from 0 to 1, none missing: did you pass logits?"
            )
        ids = identities_of(len(p), 0) if ids is None else ids
        if not self.codings:
            return self.values(Batch(p, None, ids))
        if columns is not None and getattr(columns, "num_rows", None) != len(p):
            raise BadInput(f"columns must be a pyarrow.Table of as many rows as there are scores, {len(p):,}")
        available = () if columns is None else tuple(columns.schema.names)
        require(self.reads, available, "covariate")
        return self.values(Batch(p, encode(columns.select(list(self.reads)), self.codings, len(p)), ids))

    def __call__(self, data: Predictions) -> Predictions:
        """Return the data with repaired scores."""
        if isinstance(data, MulticlassPredictions):
            raise BadInput(
                f"{self.recipe} repairs two classes: project with .top_label() or .one_vs_rest(k), or use Dirichlet"
            )
        out = np.asarray(self.scores(data.p, data.covariates), dtype=np.float64)
        out.flags.writeable = False
        return replace(data, p=out, cache={})

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return FittedMap.from_dict, (self.to_dict(),)

    def to_dict(self) -> dict[str, Any]:
        """Return the map as plain lists, dictionaries, numbers and strings."""
        own = {f.name: _plain(getattr(self, f.name)) for f in fields(self)}
        return {"format": FORMAT, "kind": self.kind, **own}

    def to_json(self) -> str:
        """Return the map as JSON text, from which `from_json` makes an equal one."""
        return json.dumps(self.to_dict(), allow_nan=False, indent=1)

    @staticmethod
    def from_dict(d: Mapping[str, Any]) -> FittedMap:
        """Rebuild the map that `to_dict` described.

        Raises
        ------
        BadInput
            It is not a map, was written by a newer calibrant, or lacks something.
        """
        if not isinstance(d, Mapping) or d.get("format") != FORMAT:
            found = d.get("format") if isinstance(d, Mapping) else type(d).__name__
            raise BadInput(f"not a map of this version of calibrant: format is {found!r}, not {FORMAT!r}")
        if d.get("kind") not in tuple(WHERE):
            raise BadInput(f"map of an unknown kind {d.get('kind')!r}: this calibrant knows {', '.join(sorted(WHERE))}")
        cls = getattr(import_module(WHERE[d["kind"]]), d["kind"])
        try:
            return cls._rebuilt({k: v for k, v in d.items() if k not in ("format", "kind")})  # type: ignore[no-any-return]
        except (TypeError, KeyError, ValueError, AttributeError, OverflowError) as e:
            raise BadInput(f"map of kind {d['kind']!r} cannot be used: {e}") from None

    @staticmethod
    def from_json(text: str) -> FittedMap:
        """Rebuild the map from JSON text."""
        try:
            d = json.loads(text)
        except (ValueError, RecursionError) as e:
            raise BadInput(f"not JSON ({e}): a map is written by to_json or calibrant repair --map") from None
        return FittedMap.from_dict(d)

    @classmethod
    def _rebuilt(cls, d: Mapping[str, Any]) -> Self:
        known = {f.name for f in fields(cls)}
        if extra := sorted(set(d) - known):
            raise ValueError(f"unknown field {extra[0]!r}")
        one = cls(**{k: _loaded(k, v) for k, v in d.items()})
        checked_codings(one.codings)
        checked_types(one)
        checked_types(one.fitted_on)
        one.check()
        return one


def _plain(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return [_plain(v) for v in value]
    if isinstance(value, (Coding, FittedOn)):
        return plain(asdict(value))
    return plain(value)


def _loaded(name: str, value: Any) -> Any:
    if name == "codings":
        return tuple(Coding.from_dict(c) for c in value)
    if name == "fitted_on":
        return FittedOn.from_dict(value)
    if isinstance(value, list):
        return tuple(_loaded("", v) for v in value)
    return frozen(value)
