"""The one door for rows: whatever holds them, as a source."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from calibrant.data.sources.files import files_of, listed
from calibrant.data.sources.formats.standard_input import STDIN, spooled
from calibrant.data.sources.frames import frame
from calibrant.data.sources.query import Query, relation
from calibrant.data.sources.remote import dataset_files
from calibrant.data.sources.source import DETECTED, Form, Source


def open_source(source: object, wanted: Sequence[str] = (), form: Form = DETECTED) -> Source:
    """The source behind a path, a URI, a glob, a list of paths, a directory, a query, or any kind of frame.

    Text is a path, never a query; ``"-"`` is standard input. `wanted` are the columns that will be read: a frame with
    unreadable others is cut down to them, and of text their types alone are detected at once. `form` says how files of
    text are to be taken.
    """
    read = [w for w in wanted if w]
    if isinstance(source, Query):
        return relation(source.relation())
    if isinstance(source, str) and source == STDIN:
        return replace(files_of([str(spooled(form.format))], form, read), files=(STDIN,))
    if isinstance(source, (str, Path)):
        return files_of([str(source)], form, read)
    if isinstance(source, (list, tuple)) and source and all(isinstance(s, (str, Path)) for s in source):
        return files_of([str(s) for s in source], form, read)
    if hasattr(source, "get_fragments"):  # of pyarrow.dataset, which need not be loaded
        return listed(dataset_files(source), "data")
    return frame(source, read)
