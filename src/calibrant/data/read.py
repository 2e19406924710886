"""The two ways in for data that is not arrays: `read` keeps rows, `sketch` keeps sums."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from calibrant.data.columns import as_float, label_values, level_codes, require
from calibrant.data.engines.local import Progress, first_look, sketch_source
from calibrant.data.predictions import Predictions, predictions
from calibrant.data.seed import checked_seed
from calibrant.data.sketch import Sketch
from calibrant.data.sources import Source, open_source
from calibrant.data.spec import Spec, Variable
from calibrant.data.survey import EVERY, KEPT, FirstLook, Profile, survey, survey_rows, with_parts
from calibrant.data.survey import wanted as wanted_covariates
from calibrant.errors import BadInput, NotComputable

MAX_GROUPS = 4000
STEP = 1 << 20
BLOCKS = Spec.blocks
NO_NUMBERS = "rows of a Spark or Dask DataFrame have no number"


def names_of(by: Any) -> tuple[str, ...]:
    """Return column names from a string, a sequence or nothing."""
    if by is None:
        return ()
    return (by,) if isinstance(by, str) else tuple(by)


def read(
    source: Any,
    *,
    y: str,
    p: str,
    by: Iterable[str] | str | None = None,
    positive: str | None = None,
    drop_missing: bool = False,
) -> Predictions:
    """Read rows into memory.

    Parameters
    ----------
    source : path, glob, list of paths, directory or frame
        Parquet, CSV or Arrow IPC; pandas, Polars, Arrow, DuckDB relation, dictionary of columns.
    y, p : str
        Columns of labels (0 and 1) and of probabilities.
    by : str or sequence of str, optional
        Columns to keep as covariates.
    positive : str, optional
        The label that counts as a case.
    drop_missing : bool
        Leave out, and count, rows whose label or probability is missing.

    Returns
    -------
    Predictions

    Raises
    ------
    BadInput
        A column is not there, or a value cannot be used.

    Examples
    --------
    >>> import calibrant as cal
    >>> cal.read({"y": [0, 1, 1], "p": [0.2, 0.7, 0.9]}, y="y", p="p").n
    3
    """
    import pyarrow as pa

    by = names_of(by)
    opened = open_source(source, (y, p, *by))
    if opened.cluster is not None:
        raise BadInput("read keeps rows in memory: pass the frame to calibrant.sketch, or collect it first")
    _require_all(opened, y, p, by, ())
    columns = list(dict.fromkeys([y, p, *by]))
    batches = [b for part in opened.parts for b in part.read(columns, (p,))]
    if not sum(b.num_rows for b in batches):
        raise BadInput("no rows to audit: the data is empty")
    try:
        table = pa.concat_tables([pa.Table.from_batches([b]) for b in batches], promote_options="permissive")
        table = table.unify_dictionaries()
    except (pa.ArrowInvalid, pa.ArrowTypeError) as e:
        raise BadInput(
            f"the files store a column in different types ({str(e).splitlines()[0]}): store it one way"
        ) from None
    labels = label_values(table.column(y), Spec(label=y, score=p, positive=positive))
    if positive is not None and not np.nansum(labels):
        raise BadInput(f"positive={positive!r} does not occur in column {y!r}; check its spelling")
    scores = as_float(table.column(p), p, "score")
    try:
        return predictions(
            labels, scores, table.select(list(by)) if by else None, drop_missing=drop_missing, name=opened.name
        )
    except BadInput as e:
        raise BadInput(str(e).replace("'y_true'", repr(y)).replace("'y_prob'", repr(p))) from None


def sketch(
    source: Any,
    *,
    y: str | None = None,
    p: str | None = None,
    by: Iterable[str] | str | None = None,
    variables: Iterable[str] | str | None = None,
    tests: bool = False,
    intersections: bool = False,
    bins: Mapping[str, Sequence[float]] | None = None,
    key: Iterable[str] | str | None = None,
    positive: str | None = None,
    drop_missing: bool = False,
    seed: int = 0,
    spec: Spec | None = None,
    progress: Progress | None = None,
    engine: Any = None,
) -> Sketch:
    """Summarise any number of rows in one pass (two with `by` or `variables`); only the sums are kept.

    Parameters
    ----------
    source : path, URI, glob, list of paths, directory, query, frame or Predictions
        As `read`; files are streamed in record batches on threads. A Spark or Dask DataFrame is summed up where its
        rows lie. Text that begins with ``select``, ``from`` or ``with`` is a query for DuckDB.
    y, p : str
        Columns of labels and probabilities; not used for `Predictions`.
    by : str or sequence of str, optional
        Columns whose levels are the groups. Numbers with more than 12 values are binned at round numbers,
        dates by month or year, categories keep their 200 most frequent levels. Labels play no part.
    variables : str or sequence of str, optional
        Covariates of curves, rankings and tests; ``"*"`` for every other column that can be used.
    tests : bool
        Also hold what the tests of `detect` need: sums of the local test, and a uniform sample of whole rows. Guard
        such a sketch like the data.
    intersections : bool
        Also every pair of the variables.
    bins : mapping of str to sequence of float, optional
        Inner bin edges of a numeric variable, chosen by you.
    key : str or sequence of str, optional
        Columns that identify a row. By default file and row number do; a Spark or Dask DataFrame has none, and what
        needs them (lower bounds, `variables`, `tests`) is refused without a key.
    positive, drop_missing
        As `read`.
    seed : int
        Deals the rows into random blocks.
    spec : Spec, optional
        Of an earlier sketch, so that the two merge; replaces every other setting.
    progress : callable, optional
        Called with the number of rows just read; on a cluster once, at the end.
    engine : SparkSession, distributed.Client or DuckDB connection, optional
        Live and yours. A session or client reads the Parquet files that `source` names on its own machines, past table
        formats and row policies; a connection runs the query. A DataFrame brings its own.

    Returns
    -------
    Sketch

    Raises
    ------
    BadInput
        The data or a setting cannot be used, here or on a worker.
    EngineFailed
        The cluster did not finish; there is no partial result.
    """
    by = names_of(by)
    if isinstance(source, Predictions):
        if y or p or key or positive or drop_missing or spec or engine is not None:
            raise BadInput(
                "predictions bring labels and scores: leave y, p, key, positive, drop_missing, spec and engine out"
            )
        return sketch_rows(source, by, intersections, bins or {}, seed, names_of(variables), tests).copy()
    wanted = (y, p, *by, *names_of(key), *names_of(variables)) if spec is None else spec.columns
    opened, looked = open_source(source, [] if EVERY in wanted else wanted, engine), None
    if spec is None:
        if y is None or p is None:
            raise BadInput("name the columns: y= for the labels and p= for the probabilities")
        plain = _plain_spec(opened, y, p, by, names_of(key), positive, seed, bool(variables))
        spec, looked = fixed_spec(opened, plain, by, names_of(variables), tests, intersections, bins or {})
    else:
        _require_all(opened, spec.label, spec.score, [v.name for v in spec.variables], spec.key)
        require([c.name for c in spec.codings], opened.columns, "covariate")
        if not opened.numbered and not spec.key and (spec.blocks > 1 or spec.sample or spec.local):
            raise BadInput(f"the spec tells rows by file and number, and {NO_NUMBERS}: make it with key=")
    out = sketch_source(opened, spec, drop_missing, progress, looked)
    out.name, out.files = opened.name, opened.files
    return out


def _plain_spec(
    opened: Source,
    y: str,
    p: str,
    by: tuple[str, ...],
    key: tuple[str, ...],
    positive: str | None,
    seed: int,
    covariates: bool,
) -> Spec:
    """Return the spec of columns, key, seed and blocks; rows that nothing tells apart are not dealt into blocks."""
    _require_all(opened, y, p, by, key)
    if covariates and not key and not opened.numbered:
        raise BadInput(f"variables= needs to know the rows, and {NO_NUMBERS}: pass key= (columns that identify a row)")
    blocks = BLOCKS if key or opened.numbered else 1
    return Spec(label=y, score=p, positive=positive, key=key, seed=checked_seed(seed), blocks=blocks)


def fixed_spec(
    opened: Source,
    plain: Spec,
    by: tuple[str, ...],
    variables: tuple[str, ...],
    tests: bool,
    intersections: bool,
    bins: Mapping[str, Sequence[float]],
) -> tuple[Spec, FirstLook | None]:
    """Fix the levels of groups and the coding of covariates in one look at the data, never at the labels."""
    unknown = [b for b in bins if b not in by]
    if unknown:
        raise BadInput(f"bins for {unknown[0]!r}, which is not a group column: name it in by= (--by) too")
    names = wanted_covariates(variables, opened.columns, plain) if variables else ()
    if not by and not names:
        if opened.rows == 0:
            raise BadInput("no rows to audit: the data is empty")
        if EVERY in variables:  # there is no other column: nothing to look at, but rows may be kept
            return replace(plain, sample=KEPT if tests else 0), None
        return with_parts(plain, None, tests), None
    if not opened.again:
        what = "groups need" if by else "covariates need"
        raise BadInput(f"a stream can be read only once and {what} a first look: pass spec=, or a table or file")
    looked = first_look(opened, plain, by, names)
    spec = grouped(plain, levels_of(looked.profiles, bins), intersections)
    found = survey(looked.look, names, EVERY in variables) if variables else None
    if found is not None and EVERY in variables:
        found = replace(
            found, left_out=(*found.left_out, *((c, "only some of the files have it") for c in opened.partial))
        )
    return with_parts(spec, found, tests), looked


def levels_of(profiles: Sequence[Profile], bins: Mapping[str, Sequence[float]]) -> tuple[Variable, ...]:
    """Fix the levels of group columns."""
    return tuple(q.variable(tuple(map(float, bins[q.name])) if q.name in bins else None) for q in profiles)


def make_spec(y: str, p: str, variables: tuple[Variable, ...], intersections: bool, *, seed: int = 0) -> Spec:
    """Return the spec of rows in memory: see `grouped`."""
    return grouped(Spec(label=y, score=p, seed=checked_seed(seed)), variables, intersections)


def grouped(spec: Spec, variables: tuple[Variable, ...], intersections: bool) -> Spec:
    """Return the spec with the variables and, if asked, every pair of them; refuse too many groups."""
    names = [v.name for v in variables]
    groupings: list[tuple[str, ...]] = [(n,) for n in names]
    if intersections:
        groupings += list(itertools.combinations(names, 2))
    spec = replace(spec, variables=variables, groupings=tuple(groupings))
    if spec.group_count > MAX_GROUPS:
        raise BadInput(
            f"{spec.group_count:,} groups are too many (at most {MAX_GROUPS:,}): name fewer variables, or coarser bins"
        )
    return spec


def _require_all(opened: Source, y: str, p: str, by: Sequence[str], key: Sequence[str]) -> None:
    require([y], opened.columns, "label")
    require([p], opened.columns, "score")
    require(by, opened.columns, "group")
    require(key, opened.columns, "key")
    labelled = sorted({y, p} & set(key))
    if labelled:
        raise BadInput(
            f"key column {labelled[0]!r} is the label or the score: a row's identity must not depend on them"
        )
    twice = sorted({c for c in (y, p, *by, *key) if opened.columns.count(c) > 1})
    if twice:
        raise BadInput(f"the data has two columns named {twice[0]!r}: rename one")
    doubled = sorted({b for b in by if list(by).count(b) > 1} | ({y, p} & set(by)))
    if doubled:
        raise BadInput(
            f"group column {doubled[0]!r} is named twice, or is the label or the score: name each group column once"
        )


def sketch_rows(
    data: Predictions,
    by: tuple[str, ...],
    intersections: bool,
    bins: Mapping[str, Sequence[float]],
    seed: int,
    variables: tuple[str, ...] = (),
    tests: bool = False,
) -> Sketch:
    """Return the sketch of rows in memory, kept with them: callers must not change it."""
    if data.weights is not None or data.cluster is not None:
        what = "weights" if data.weights is not None else "cluster"
        raise NotComputable(f"certificates are proved for independent rows of equal weight, not for {what}=")
    cached = (by, intersections, repr(sorted(bins.items())), seed, variables, tests)
    if cached in data.cache:
        return data.cache[cached]  # type: ignore[no-any-return]
    table = data.covariates
    available = () if table is None else tuple(table.schema.names)
    require(by, available, "group")
    profiles = [Profile(name) for name in by]
    for profile in profiles:
        profile.update(table.column(profile.name))
    levels = levels_of(profiles, bins)
    spec = make_spec("y_true", "y_prob", levels, intersections, seed=seed)
    spec = with_parts(spec, survey_rows(data, spec, variables), tests)
    out = Sketch(spec, drop_missing=data.dropped > 0)
    codes = {v.name: level_codes(table.column(v.name), v) for v in levels}
    for start in range(0, data.n, STEP):
        rows = slice(start, start + STEP)
        part = {k: c[rows] for k, c in codes.items()}
        more = {c.name: table.column(c.name).slice(start, STEP) for c in spec.codings}
        out.update_arrays(data.p[rows], data.y[rows], part, more, first_row=start)
    out.rows_read += data.dropped
    out.name = data.name
    data.cache[cached] = out
    return out
