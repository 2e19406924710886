"""Columns that stand in the names of folders: `site=a/year=2020/part.parquet`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePosixPath
from urllib.parse import unquote

import pyarrow as pa

from calibrant.data.sources.source import Fragments, Key, Read, Source
from calibrant.errors import BadInput

ABSENT = "__HIVE_DEFAULT_PARTITION__"
WHOLE = re.compile(r"0|-?[1-9][0-9]{0,14}")  # a number that no leading zero and no length makes a code

Named = dict[str, str | None]  # a file's keys and what they are there


def keys_in(root: str, paths: Sequence[str]) -> list[Named]:
    """The keys of each file: those of folders below the root, and those right above it."""
    above = PurePosixPath(root)
    while "=" in above.name:
        above = above.parent
    return [_keys(PurePosixPath(p).relative_to(above).parent.parts, p) for p in paths]


def _keys(folders: Sequence[str], path: str) -> Named:
    result: Named = {}
    for folder in folders:
        key, equals, value = folder.partition("=")
        if not (key and equals):
            continue
        name, inputs = plain(key), None if value == ABSENT else plain(value)
        if result.get(name, inputs) != inputs:
            raise BadInput(f"{path!r} lies in two folders of {name!r} that differ: {result[name]!r} and {inputs!r}")
        result[name] = inputs
    return result


def plain(text: str) -> str:
    """Return what a folder's name stands for, in which %20 is a space; unchanged if it stands for nothing."""
    try:
        return unquote(text, errors="strict")
    except UnicodeDecodeError:
        return text


def with_keys(
    opened: Sequence[Source], named: Sequence[Named], typed: Mapping[str, bool], files: Sequence[str]
) -> list[Source]:
    """Return files with their keys as columns: whole numbers where `typed` says so or all of a key's values are."""
    names = list(dict.fromkeys(name for own in named for name in own))
    values = {n: [v for own in named if (v := own.get(n)) is not None] for n in names}
    whole = {n: typed[n] if n in typed else bool(v) and all(map(WHOLE.fullmatch, v)) for n, v in values.items()}
    out = []
    for one, own, file in zip(opened, named, files, strict=True):
        keys = tuple((n, own[n], whole[n]) for n in own)
        parts = tuple(replace(p, read=keyed(p.read, keys, one.columns, file)) for p in one.parts)
        columns = (*one.columns, *(n for n in own if n not in one.columns))
        kept = one.fragments
        if kept is not None:
            kept = Fragments(kept.filesystem, tuple((*piece[:5], keys) for piece in kept.pieces))
        out.append(replace(one, columns=columns, parts=parts, fragments=kept))
    return out


def keyed(read: Read, keys: Sequence[Key], stored: Sequence[str], file: str) -> Read:
    """A reader of a file's columns and of its keys; a key that the file has as a column must say the same."""
    if not keys:
        return read
    values = {key[0]: key for key in keys}

    def read_all(columns: Sequence[str], real: Sequence[str]) -> Iterator[pa.RecordBatch]:
        own = [c for c in columns if c in stored]
        any_one = [c for c in stored if stored.count(c) == 1][:1]  # tells how many rows there are
        for batch in read(own or any_one, [r for r in real if r in own]):
            made = []
            for c in columns:
                if c in own and c in values:
                    _same(batch.column(c), values[c], file)
                made.append(batch.column(c) if c in own else _repeated(values[c], batch.num_rows))
            yield pa.RecordBatch.from_arrays(made, list(columns))

    return read_all


def _repeated(key: Key, rows: int) -> pa.Array:
    """A key's value for so many rows."""
    _, value, whole = key
    if whole:
        return pa.nulls(rows, pa.int64()) if value is None else pa.repeat(pa.scalar(int(value), pa.int64()), rows)
    index = pa.nulls(rows, pa.int32()) if value is None else pa.repeat(pa.scalar(0, pa.int32()), rows)
    return pa.DictionaryArray.from_arrays(index, pa.array([value or ""], pa.string()))


def _same(column: pa.Array, key: Key, file: str) -> None:
    """Refuse a file whose column says another thing than its folder."""
    name, inputs, _ = key
    for value in column.unique().to_pylist():
        if not _means(value, inputs):
            folder = f"{name}={ABSENT if inputs is None else inputs}"
            raise BadInput(
                f"{file} holds {value!r} in column {name!r} and lies in a folder {folder}: "
                "rename the folder's key, or leave the column out of the file"
            )


def _means(value: object, input_value: str | None) -> bool:
    """Whether a value is what a folder's name says."""
    if value is None or input_value is None:
        return value is None and input_value is None
    if isinstance(value, bool):
        return input_value.lower() == str(value).lower()
    if isinstance(value, (int, float)):
        try:
            return value == (int(input_value) if isinstance(value, int) else float(input_value))
        except ValueError:
            return False
    return str(value) == input_value
