"""The commands that read data or sketches: look, audit, example, certify, sketch and merge; and the guide."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib.resources import files as resources
from typing import Any, NamedTuple, TypeVar

from calibrant.arguments import COMMAND, lacking, of_declared
from calibrant.audit.checks import gates
from calibrant.audit.judging import Judging, JudgingOptions
from calibrant.audit.run import audited
from calibrant.cli.options import CLASSES, bin_edges
from calibrant.cli.progress import Progress, reported_first
from calibrant.cli.reporting import check_outputs, deliver, only_target
from calibrant.cli.standard_output import print_result
from calibrant.data.engines.reduce import merged
from calibrant.data.inputs import ClustersCross
from calibrant.data.predictions import Predictions
from calibrant.data.progress import counted
from calibrant.data.read import fixed_spec, in_memory, summarised, with_classes
from calibrant.data.reading import FORM, OF_ROWS, Reading, ReadingOptions
from calibrant.data.rewrite import checked_rows, extract
from calibrant.data.sketches.sketch import Sketch
from calibrant.data.sources.files import open_source
from calibrant.data.sources.query import Query
from calibrant.data.sources.source import Log, spread
from calibrant.data.targets import checked_targets, written
from calibrant.errors import BadInput, NotComputable
from calibrant.results import Curve, Estimate
from calibrant.sanitize import as_message, sanitize
from calibrant.views.rules import selected

EVERY = ("*",)
Files = Query | list[str] | str
Plain = dict[str, Any]  # arguments by name
Data = TypeVar("Data")
EXAMPLE = "calibrant-example.html"

# ---- from options to what is read and what is judged ----


def reading(a: Namespace, **more: Any) -> Reading:
    """What the options say to read: each is called as the argument of `Reading.of`."""
    inputs = of_declared(ReadingOptions, vars(a)) | more
    if "bins" in inputs:
        inputs["bins"] = bin_edges(inputs["bins"])
    if like := getattr(a, "like", None):
        inputs["spec"] = merged([like]).spec
    if "variables" in inputs:
        named = inputs["variables"] if inputs["variables"] is not None else () if like else EVERY
        inputs["variables"] = tuple(v for v in named if v != "none")
    return Reading.of(caller=COMMAND, **inputs)


def judging(a: Namespace) -> Judging:
    """What the options say to judge: each is called as the argument of `Judging.of`."""
    return Judging.of(gates=gates(), caller=COMMAND, **of_declared(JudgingOptions, vars(a)))


def inputs_of(a: Namespace) -> list[str] | list[Query]:
    """What the command line gives as data: the files, or the query in their place."""
    if bool(a.files) == bool(a.sql):
        raise BadInput("name the data: files, or a query with --sql" + (", not both" if a.files else ""))
    return [Query(a.sql)] if a.sql else list(a.files)


def source(data: Sequence[str] | Sequence[Query], allow_same: bool = False) -> Sketch | Files:
    """The one sketch that sketch files add up to, the files, or the query."""
    sketches = _sketches(data)
    return merged(sketches, allow_same) if sketches else _files(data)


def source_of_rows(data: Sequence[str] | Sequence[Query], no_sketch: str) -> Files:
    """The files, or the query; `no_sketch` says why sketches are refused."""
    if _sketches(data):
        raise BadInput(no_sketch)
    return _files(data)


def _files(data: Sequence[str] | Sequence[Query]) -> Files:
    return data[0] if len(data) == 1 else [f for f in data if isinstance(f, str)]


def _sketches(data: Sequence[str] | Sequence[Query]) -> list[str]:
    """The sketches among the data, which are all of them or none."""
    sketches = [f for f in data if isinstance(f, str) and f.endswith(".sketch")]
    if 0 < len(sketches) < len(data):
        raise BadInput("sketches and data files do not mix: audit them apart, or sketch the data and merge")
    return sketches


def report_sketch(sketch: Sketch) -> Sketch:
    """A sketch of which standard error says what it leaves out."""
    _report(sketch.log, sketch.dropped, sketch.unlabelled, lacking(sketch.spec.cluster, sketch.spec.weights))
    return sketch


def data_of(a: Namespace, data: Sequence[str] | Sequence[Query], rows: Callable[[Files, Plain], Data]) -> Sketch | Data:
    """The sketch that sketch files add up to, as it is asked; or what `rows` makes of files and how to read them."""
    files = source(data, a.allow_same)
    how = {k: getattr(a, k) for k in (*OF_ROWS, *FORM, *CLASSES, "allow_same") if hasattr(a, k)}
    if isinstance(files, Sketch):
        return report_sketch(summarised(files, Reading.of(caller=COMMAND, **how)))
    return rows(files, how)


def report_left_out(rows: Predictions) -> None:
    """Say on standard error what rows leave out: of an unfinished log, and left out or counted apart, with why."""
    apart = 0 if rows.unlabelled is None else len(rows.unlabelled.p)
    _report(rows, rows.dropped, apart, lacking(rows.cluster is not None, rows.weights is not None))


def _report(log: Log | Predictions, dropped: int, apart: int, without: str) -> None:
    """Say what a log says of some rows; how many were left out, `without` what; and how many are counted apart."""
    for unfinished in log.unfinished:
        from calibrant.report.wording.notices import NOTICES

        what, advice = NOTICES["unfinished-log"]
        print(f"{what}: {sanitize(unfinished)}. {advice}", file=sys.stderr)
    report_rows(int(log.horizon.get("late") or 0), "left out", "that entered too late to be followed to the horizon")
    report_seen_events(log.seen_events)
    for some in log.excluded:
        print(f"left out {sanitize(some)}", file=sys.stderr)
    report_rows(dropped, "left out", f"without {without}")
    if log.horizon:
        report_rows(apart, "counted", "lost before the horizon, whose outcome is unknown")
    else:
        report_rows(apart, "counted apart", "without a label: the answer is of the others")


def report_seen_events(of: Mapping[str, str | int | float | bool]) -> None:
    """Say on standard error that a label may be an event seen by the end of follow-up; nothing where it is not."""
    if of:
        from calibrant.report.spans import plain
        from calibrant.report.wording.notices import NOTICES, seen_events

        print(f"{NOTICES['perhaps-seen-events'][0]} {as_message(plain(tuple(seen_events(of))))}", file=sys.stderr)


def report_rows(count: int, done: str, why: str) -> None:
    """Say on standard error what was done with some rows; nothing of none."""
    if count:
        print(f"{done} {count:,} {'row' if count == 1 else 'rows'} {why}", file=sys.stderr)


# ---- before anything is computed ----


def look(a: Namespace) -> int:
    """Print what files, a query or sketches hold, and the audit to run; say by exit status whether it would run."""
    from calibrant.inspect.command import of_sketch
    from calibrant.inspect.run import looked
    from calibrant.report.looked import written as lines

    options = reading(a)
    data = source(inputs_of(a), a.allow_same)
    seen = looked(data, options)
    if isinstance(data, Sketch):
        seen = replace(seen, command=of_sketch(a.files))
    print_result(a.json, seen.to_dict, lambda: lines(seen))
    return 2 if seen.refusals else 0


def guide(_: Namespace) -> int:
    """Print which command answers which question, how to read a verdict, and what never to claim."""
    print(resources("calibrant.cli").joinpath("guide.md").read_text(encoding="utf-8"), end="")
    return 0


# ---- audits ----


def audit(a: Namespace) -> int:
    """Audit files or sketches; or write the rows of one group or subgroup, and audit nothing."""
    data = inputs_of(a)
    if a.rows_of is not None:
        return _rows_of(a, data)
    targets = check_outputs(a, data)
    options, plan, whole = reading(a), judging(a), source(data, a.allow_same)
    opened = reported_first(whole, options)
    with Progress() as progress:
        record = audited(opened, options, plan, progress)
    deliver(record, targets, a)
    return record.exit_status


NO_ROWS = "a sketch holds no rows to write: name the files that it was made of"
AS_WRITTEN = "a report may say a few more or fewer, where it rounds"


def _rows_of(a: Namespace, data: list[str] | list[Query]) -> int:
    """Write the rows of a group or subgroup, with all their columns, to look at."""
    out = only_target(a.out)
    if out is None:
        raise BadInput("--rows-of GROUP: say where to write the rows with -o, such as -o rows.csv")
    if stated := [name for name in ("json", "open") if getattr(a, name)]:
        raise BadInput(f"--rows-of writes rows and audits nothing: leave {COMMAND.says(*stated)} out")
    path = checked_targets({"-o": out}, data)["-o"]
    options, whole = reading(a, tests=True), source_of_rows(data, NO_ROWS)
    if options.at is not None:
        raise BadInput("--rows-of writes rows of a file as they are: of outcomes by a horizon leave --time out")
    opened = spread(open_source(whole, form=options.form), options.scores)
    checked_rows(path, opened, ())
    with Progress() as progress:
        options = options.in_columns(opened.columns)
        if options.scores:  # groups and subgroups as an audit of the most probable class makes them
            classes, sketch = with_classes(opened, options)
            scores = () if classes is None else classes.columns
            chosen = replace(selected(sketch.spec, a.rows_of), classes=replace(options, scores=scores))
        else:
            spec, _, _ = fixed_spec(opened, options.named(), progress)
            scores, chosen = (spec.score,), selected(spec, a.rows_of)
        rows = extract(opened, path, (*scores, *chosen.reads), chosen.of, counted(progress, "writing", opened.rows))
    count = f"{rows:,} {'row' if rows == 1 else 'rows'}"
    if chosen.has_thresholds:
        print(f"thresholds are taken as written in --rows-of, which gives {count}: {AS_WRITTEN}", file=sys.stderr)
    print(as_message(f"{out}: {count} of {a.rows_of}"))
    return 0


def example(a: Namespace) -> int:
    """Audit the bundled data; whatever is found, the example has worked."""
    from calibrant.data.read import EMPLOYMENT, EMPLOYMENT_BY, employment_path

    a.files = [str(employment_path())]
    a.out, a.about = a.out or [EXAMPLE], a.about or {"outcome": "employed"}
    targets = check_outputs(a, a.files)
    options, plan = reading(a, **EMPLOYMENT, by=EMPLOYMENT_BY, variables=None), judging(a)
    with Progress() as progress:
        record = audited(employment_path(), options, plan, progress)
    deliver(record, targets, a)
    return 0


# ---- certificates ----


def certify(a: Namespace) -> int:
    """Print the certificates named, each with its own settings; of those usual, the ones that can be had."""
    from calibrant.certify.certificate import certificates

    known = {c.name: c for c in certificates()}
    named = [name.replace("-", "_") for name in a.method or (c.name for c in known.values() if c.usual)]
    for name, stated in zip(named, a.method or named, strict=True):
        if name not in known:
            raise BadInput(f"--method {stated!r}: choose from {', '.join(known)}")
    chosen = [known[name] for name in named]
    tests = any(c.tests for c in chosen)
    if a.variables is not None and not tests:
        raise BadInput(f"--variables goes with --method {','.join(c.name for c in known.values() if c.tests)}")
    if a.by is not None and not any(c.grouped for c in chosen):
        raise BadInput(f"--by goes with --method {','.join(c.name for c in known.values() if c.grouped)}")
    if a.target is not None and "worst_group" not in named:
        raise BadInput("--target goes with --method worst_group")
    columns = {"tests": True} if tests else {"variables": ()}
    files, options = source(inputs_of(a), a.allow_same), reading(a, **columns)
    data = certified_data(files, options)
    if a.side != "two-sided" and (tables := [c.name for c in chosen if c.table]):
        raise BadInput(f"--method {tables[0]} gives both bounds: leave --side out")
    result, missed = [], {}
    for c in chosen:
        side = {} if c.table else {"side": c.side if a.side == "two-sided" else a.side}
        own = {s.name: s.default if (v := getattr(a, s.name)) is None else v for s in c.settings}
        own |= {"judge": a.judge, **data.groups} if c.grouped else {}
        own |= {"target": a.target} if c.name == "worst_group" else {}
        try:
            result.append(c.function(data.whole, alpha=a.alpha, seed=data.seed, **side, **own))
        except NotComputable as e:
            if a.method:
                raise
            missed[c.name] = e.reason
    print_result(a.json, lambda: [e.to_dict() for e in result], lambda: _certificates(result, missed, data.cluster))
    return 0


class Certified(NamedTuple):
    """What is certified: a sketch, or rows, which take the groups with each call."""

    whole: Sketch | Predictions
    groups: dict[str, object]
    cluster: str  # the column of clusters
    seed: int


def certified_data(files: Sketch | Files, options: Reading) -> Certified:
    """The sketch of files; their rows where clusters cross, or rows without a label have clusters or weights."""
    try:
        if not options.keeps_attached:
            full_sketch = report_sketch(summarised(files, options))
            return Certified(full_sketch, {}, full_sketch.spec.cluster, full_sketch.spec.seed)
    except ClustersCross:
        pass
    if isinstance(files, Sketch):
        raise BadInput("a sketch brings its own columns: leave --cluster, --weights and --missing out")
    rows = in_memory(files, options.named())
    report_left_out(rows)
    return Certified(rows, {"by": options.by, "intersections": options.intersections}, options.cluster, options.seed)


def _certificates(matches: Sequence[Estimate | Curve], missed: Mapping[str, str], cluster: str) -> str:
    """Certificates for a terminal: those of one range together, then every table."""
    from calibrant.report import terminal
    from calibrant.report.outputs import results

    ranges = [e for e in matches if isinstance(e, Estimate)]
    blocks = [terminal.certificates(ranges, missed, cluster)] if ranges else []
    return "\n\n".join([*blocks, *(results.lines(c) for c in matches if isinstance(c, Curve))])


# ---- sketches ----


def sketch(a: Namespace) -> int:
    """Write the sketch of files."""
    data = inputs_of(a)
    checked_targets({"-o": a.out}, (*data, *([a.like] if a.like else ())))
    with Progress() as progress:
        full_sketch = summarised(source(data, a.allow_same), reading(a), progress)
    return _save(full_sketch, a.out)


def merge(a: Namespace) -> int:
    """Write the sum of sketches."""
    checked_targets({"-o": a.out}, a.sketches)
    return _save(merged(a.sketches, a.allow_same), a.out)


def _save(full_sketch: Sketch, out: str) -> int:
    written(out, full_sketch.to_bytes())
    print(f"{sanitize(out)}: {full_sketch.n:,} rows, fingerprint {full_sketch.fingerprint[:16]}")
    return 0
