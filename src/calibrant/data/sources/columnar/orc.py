"""ORC, by stripe."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

import pyarrow as pa

from calibrant.data.sources.columnar.sound import AGAIN, checked, names_of, narrowest, once, readable
from calibrant.data.sources.source import Part, Read, Source
from calibrant.errors import BadInput

KIND = "ORC"


def orc(path: str, name: str, filesystem: pa.fs.FileSystem) -> Source:
    """A file's stripes."""
    from pyarrow.orc import ORCFile

    shown = name or PurePosixPath(path).name
    with readable(shown, KIND), filesystem.open_input_file(path) as file:
        opened = ORCFile(file)
        names = names_of(opened.schema, shown, KIND)
        column = narrowest(opened.schema)
        cheap = None if column is None else [names[column]]
        lengths = [opened.read_stripe(i, cheap).num_rows for i in range(opened.nstripes)]
        if sum(lengths) != opened.nrows:
            raise BadInput(f"{shown} has {sum(lengths)} of its {opened.nrows} rows; {AGAIN}")

    def reader(stripe: int) -> Read:
        def read(columns: Sequence[str], _: Sequence[str]) -> Iterator[pa.RecordBatch]:
            once(shown, names, columns)
            with readable(shown, KIND), filesystem.open_input_file(path) as file:
                batch = ORCFile(file).read_stripe(stripe, list(columns) or cheap)
                yield from checked(batch, columns, shown, 0)

        return read

    parts, start = list[Part](), 0
    for stripe, length in enumerate(lengths):
        parts.append(Part(name, start, reader(stripe)))
        start += length
    return Source(name, names, tuple(parts), start)
