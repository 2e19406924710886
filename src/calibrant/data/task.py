"""What every part of a source is asked to do, and the two summaries that come of it; both travel as bytes."""

from __future__ import annotations

import json
import zlib
from dataclasses import asdict, dataclass
from typing import Any, Literal, Protocol, Self

from calibrant.data.faults import Faults
from calibrant.data.first_look import FirstLook
from calibrant.data.sketch import Sketch
from calibrant.data.sketch_file import sketch_bytes
from calibrant.data.spec import Spec
from calibrant.errors import BadInput

QUICK = 1  # compression of what travels and is unpacked at once
SPARE = 12.0  # standard deviations by which more rows than a sample holds are kept in each part


class Summary(Protocol):
    """Something that rows are added to and that adds up."""

    rows_read: int

    def update(self, batch: Any, *, part: str = "", first_row: int = 0) -> None:
        """Add the rows of an Arrow record batch."""

    def merge(self, other: Self) -> Self:
        """Add the rows of another part."""

    def to_bytes(self) -> bytes:
        """Return the state."""


@dataclass(frozen=True, kw_only=True)
class Task:
    """One pass over the rows.

    Parameters
    ----------
    kind : {"look", "count"}
        Fix a spec, or fill a sketch.
    spec : Spec
    by, covariates : tuple of str
        Of a look.
    drop_missing : bool
    rows : int or None
        Rows in all, if known: what cannot be among the smallest hashes then need not travel.
    """

    kind: Literal["look", "count"]
    spec: Spec
    by: tuple[str, ...] = ()
    covariates: tuple[str, ...] = ()
    drop_missing: bool = False
    rows: int | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns to read."""
        return self.spec.columns if self.kind == "count" else FirstLook(self.spec, self.by, self.covariates).columns

    def start(self) -> Any:
        """Return an empty summary."""
        if self.kind == "look":
            return FirstLook(self.spec, self.by, self.covariates)
        sketch = Sketch(self.spec, self.drop_missing)
        if self.rows is not None and "sample" in sketch.parts:
            size = self.spec.sample
            sketch.parts["sample"].narrow((size + SPARE * size**0.5 + SPARE**2) / max(self.rows, 1))
        return sketch

    def to_bytes(self) -> bytes:
        """Return the task as bytes."""
        return zlib.compress(json.dumps(asdict(self)).encode())

    @classmethod
    def from_bytes(cls, raw: bytes) -> Task:
        """Rebuild what `to_bytes` wrote."""
        d = json.loads(zlib.decompress(raw))
        more = {"spec": Spec.from_dict(d["spec"]), "by": tuple(d["by"]), "covariates": tuple(d["covariates"])}
        return cls(**(d | more))


def dumped(summary: Any) -> tuple[dict[str, Any], bytes]:
    """Return a summary's faults and state. Faulty rows that may not be left out are told; their counts need not travel."""
    if isinstance(summary, FirstLook):
        return {}, summary.to_bytes()
    faults = asdict(summary.faults)
    try:
        summary.faults.check(summary.spec, summary.drop_missing)
    except BadInput:
        summary = Sketch(summary.spec, summary.drop_missing)
    return faults, sketch_bytes(summary, QUICK)


def loaded(task: Task, faults: dict[str, Any], state: bytes) -> Any:
    """Rebuild what `dumped` returned."""
    if task.kind == "look":
        return task.start().load(state)
    sketch = Sketch.from_bytes(state)
    first = [None if f is None else (str(f[0]), int(f[1])) for f in faults["first"]]
    sketch.faults = Faults(**(faults | {"first": first}))
    return sketch
