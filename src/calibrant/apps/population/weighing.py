"""The command that weighs rows: weights, and what a terminal shows of them."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from typing import Literal

import pyarrow as pa

from calibrant.apps.population.margins import margins_of
from calibrant.apps.population.population import AUTO, Covariates, columns_of, table_of_rows, to
from calibrant.apps.population.weighting import Weighting
from calibrant.errors import BadInput
from calibrant.sanitize import as_message, sanitize
from calibrant.toolkit.command import Progress, inputs_of, names, print_result, reading
from calibrant.toolkit.data import (
    Source,
    checked_rows,
    checked_targets,
    cluster_codes,
    counted,
    levels_of,
    open_source,
    require,
    rewrite,
    weights_of,
)
from calibrant.toolkit.report import cells, pad
from calibrant.toolkit.report import numbers as num


def weights(a: Namespace) -> int:
    """Make weights, print what they do, and write the rows with them."""
    if bool(a.to) == bool(a.margins):
        raise BadInput("name the population: rows with --to, or shares with --margins" + (", not both" if a.to else ""))
    if a.to and not a.by:
        raise BadInput("--by: name the columns in which the rows are to be like those of --to")
    data, options = inputs_of(a), reading(a, variables=())
    path = checked_targets({"-o": a.out}, (*data, *([a.to] if a.to else [a.margins]))).get("-o")
    source = open_source(list(data) if len(data) > 1 else data[0], form=options.form)
    if path:
        checked_rows(path, source, (a.column,))
    target = a.to if a.to else margins_of(a.margins, names)
    columns = a.by if a.to else columns_of(target)
    result = to(
        _rows(a, source, columns),
        target,
        columns=a.by or (),
        method=a.method,
        cap=_cap(a.cap),
        target_weights=a.to_weights,
        pool=_pools(a.pool),
        leave_out=a.leave_out,
        pilot=a.pilot,
        learner=a.learner,
        seed=a.seed,
    )
    if path:
        with Progress() as progress:
            rows_done = counted(progress, "writing", source.rows)
            rewrite(source, path, (), _Column(result, a.column).added, lambda: None, rows_done)
    print_result(a.json, result.to_dict, lambda: weighting(result))
    if path and not a.json:
        print(as_message(f"rows: {a.out}, with column {a.column}"))
    return 0


def _rows(a: Namespace, source: Source, columns: Sequence[str]) -> Covariates:
    """The columns that are made alike, and the weights and clusters that the rows have already."""
    require(columns, source.columns, "covariate")
    own = [c for c in (a.weights, *(a.cluster or ())) if c]
    require(own, source.columns, "weight" if a.weights else "cluster")
    table = table_of_rows(source, tuple(dict.fromkeys((*columns, *own))), "the data")
    n = table.num_rows
    base = weights_of(table.column(a.weights), n, False)[0] if a.weights else None
    clusters = cluster_codes({name: table.column(name) for name in a.cluster or ()})
    cluster = clusters[levels_of(clusters)[0][0]] if clusters else None
    return Covariates(table.select(list(columns)), base, cluster)


class _Column:
    """The weights, row by row in the order of the source; nothing where a row is left out."""

    def __init__(self, result: Weighting, name: str) -> None:
        self.weights, self.name, self.at = result.weights, name, 0

    def added(self, batch: pa.RecordBatch, _part: str, _row: int) -> dict[str, pa.Array]:
        """The weights of the next rows."""
        these = self.weights[self.at : self.at + batch.num_rows]
        self.at += batch.num_rows
        return {self.name: pa.array(these, mask=these <= 0)}


def _cap(text: str | None) -> float | Literal["auto"] | None:
    """The cap that was written."""
    if text in (None, AUTO):
        return AUTO
    if text == "none":
        return None
    try:
        return float(str(text))
    except ValueError:
        raise BadInput(f"--cap {text!r}: write a number above 1, or none") from None


def _pools(items: Sequence[str]) -> dict[str, dict[str, str]]:
    """The levels to count as another, by column."""
    out: dict[str, dict[str, str]] = {}
    for item in items:
        column, _, rest = item.partition("=")
        levels, _, into = rest.rpartition("=")
        if not (column and levels and into):
            raise BadInput(f"--pool {item!r}: write COLUMN=LEVEL,LEVEL=INTO, such as region=Guam,Samoa=West")
        out.setdefault(column, {}).update(dict.fromkeys(names(levels), into))
    return out


# ---- in a terminal: what weights are about, what they cost, and the balance before and after ----


def weighting(result: Weighting) -> str:
    """What weights are about, what they cost, and the balance before and after."""
    kept = int(result.kept.sum())
    lines = [
        f"{num.count(kept)} of {num.count(result.n)} rows weighted ({result.method}); "
        f"they say as much as {num.count(int(result.effective))} equal ones",
        f"about: {result.estimand}",
    ]
    if result.pilot:
        lines.append(f"{num.count(result.pilot)} pilot rows taught the weights and are left out")
    if result.outside:
        lines.append(f"{num.count(result.outside)} rows are like nobody of the population and are left out")
    if result.uncovered:
        named = "; ".join(result.uncovered[:5]) + ("; ..." if len(result.uncovered) > 5 else "")
        lines.append(f"left out of the population, like no row: {named}")
    top = f"largest weight {result.largest:.3g} times the mean"
    if result.capped:
        top += (
            f", capped at {result.cap:g}: {num.count(result.capped)} rows count less, {result.trimmed:.1%} of "
            f"the weight"
        )
    lines += [top, ""]
    rows = [("", "rows", "weighted", "population", "off before", "after")]
    for b in result.balance:
        off = (f"{b.difference_before:+.3f}", f"{b.difference_after:+.3f}")
        rows.append((f"{b.column} {b.level}", f"{b.before:.4g}", f"{b.after:.4g}", f"{b.target:.4g}", *off))
    wide = [max(cells(r[i]) for r in rows) for i in range(len(rows[0]))]
    lines += [
        "  ".join([pad(r[0], wide[0]), *(v.rjust(w) for v, w in zip(r[1:], wide[1:], strict=True))]) for r in rows
    ]
    lines += ["off: difference from the population, in its standard deviations"]
    return sanitize("\n".join(lines), keep="\n")
