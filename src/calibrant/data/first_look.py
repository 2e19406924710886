"""The pre-pass: one look at groups and covariates, never at labels, that fixes a spec; mergeable like a sketch."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from calibrant.data.columns import as_float, require, row_ids
from calibrant.data.identity import identities
from calibrant.data.look import Look
from calibrant.data.profile import Profile
from calibrant.data.spec import Spec


class FirstLook:
    """What the group columns hold, and a sample of the covariates.

    Parameters
    ----------
    spec : Spec
        Of columns, key and seed only: what is to be fixed is still missing.
    by : sequence of str
        Group columns.
    covariates : sequence of str
        Columns to sample; none for no sample.
    """

    def __init__(self, spec: Spec, by: Sequence[str], covariates: Sequence[str]) -> None:
        self.spec, self.covariates = spec, tuple(covariates)
        self.profiles = [Profile(name) for name in by]
        self.look = Look()
        self.rows_read = 0

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns to read."""
        sampled = (self.spec.score, *self.covariates, *self.spec.key) if self.covariates else ()
        return tuple(dict.fromkeys([*(q.name for q in self.profiles), *sampled]))

    def update(self, batch: Any, *, part: str = "", first_row: int = 0) -> None:
        """Look at an Arrow record batch; `part` and `first_row` as in `Sketch.update`."""
        self.rows_read += batch.num_rows
        for profile in self.profiles:
            profile.update(batch.column(profile.name))
        if not self.covariates or not batch.num_rows:
            return
        require(self.columns, batch.schema.names, "covariate")
        key, spec = self.spec.key, self.spec
        own = row_ids([batch.column(k) for k in key], spec.seed) if key else None
        ids = identities(batch.num_rows, first_row, spec.salt("" if key else part), own)
        p = as_float(batch.column(spec.score), spec.score, "score")
        self.look.add(ids, p, {name: batch.column(name) for name in self.covariates})

    def merge(self, other: FirstLook) -> FirstLook:
        """Add what another part showed, and return this."""
        self.rows_read += other.rows_read
        for mine, theirs in zip(self.profiles, other.profiles, strict=True):
            mine.merge(theirs)
        self.look.merge(other.look)
        return self

    def to_bytes(self) -> bytes:
        """Return the state: what `load` takes."""
        import pyarrow as pa

        counts, table = self.look.to_table()
        header = {"rows_read": self.rows_read, "profiles": [q.to_dict() for q in self.profiles], "look": counts}
        head = json.dumps(header).encode()
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        state: bytes = sink.getvalue().to_pybytes()
        return len(head).to_bytes(8, "little") + head + state

    def load(self, raw: bytes) -> FirstLook:
        """Take over the state that `to_bytes` wrote, and return this."""
        import pyarrow as pa

        size = int.from_bytes(raw[:8], "little")
        header = json.loads(raw[8 : 8 + size])
        self.rows_read = header["rows_read"]
        self.profiles = [Profile.from_dict(d) for d in header["profiles"]]
        with pa.ipc.open_stream(raw[8 + size :]) as reader:
            self.look = Look.from_table(header["look"], reader.read_all())
        return self
