"""The `calibrant` command: parse, run, print, and say by exit status how it went."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calibrant import __version__, repairing
from calibrant.errors import BadInput, NotComputable
from calibrant.options import audit_options, bins, certify_options, data_options, group_options, plan_options
from calibrant.progress import Progress

if TYPE_CHECKING:
    from calibrant.audit.record import AuditRecord

BAD, UNEXPECTED, STOPPED = 2, 70, 130
STATUS = """exit status:
  0   met, or no limit was given
  1   a limit is certified broken
  2   the data or a setting cannot be used; one line says why
  3   undecided at this sample size, or a limited check was not applicable
  70  an unexpected error: please report it
"""
ABOUT = """Audit the predicted probabilities of any classifier: how far they are off, for whom, with certified bounds.

start here:
  calibrant example                          the audit of bundled real data, with a report
  calibrant audit log.parquet --label y --score p --by sex,age --limit 0.02 --report audit.html
  calibrant repair log.parquet --label y --score p --out repaired.parquet --map map.json
  calibrant plan 0.02                        how many rows a certificate takes
"""


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the whole command line."""
    raw = argparse.RawDescriptionHelpFormatter
    top = argparse.ArgumentParser(prog="calibrant", description=ABOUT, epilog=STATUS, formatter_class=raw)
    top.add_argument("--version", action="version", version=f"calibrant {__version__}")
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True)

    def add(name: str, run: Callable[[argparse.Namespace], int], line: str, more: str = "") -> argparse.ArgumentParser:
        sub = commands.add_parser(name, help=line, description=f"{line}\n\n{more}", epilog=STATUS, formatter_class=raw)
        sub.set_defaults(run=run)
        return sub

    audit = add("audit", _audit, "audit a file of labels, probabilities and covariates", _AUDIT)
    data_options(audit)
    group_options(audit)
    audit_options(audit)
    example = add("example", _example, "run the audit on the bundled employment data", _EXAMPLE)
    audit_options(example, limit=0.014, outcome="employed", report="calibrant-example.html")
    certify = add("certify", _certify, "print certificates for everyone together", _CERTIFY)
    data_options(certify)
    certify_options(certify)
    plan = add("plan", _plan, "rows that a certificate of a given tightness takes", _PLAN)
    plan_options(plan)
    sketch = add("sketch", _sketch, "summarise a file into a small mergeable sketch", _SKETCH)
    data_options(sketch)
    group_options(sketch)
    sketch.add_argument(
        "--like", metavar="SKETCH", help="use the columns and groups of this sketch, so that the two merge"
    )
    sketch.add_argument(
        "--tests", action="store_true", help="also hold what tests need, whole rows among it: guard it like the data"
    )
    sketch.add_argument("--out", required=True, metavar="FILE", help="where to write the sketch")
    merge = add("merge", _merge, "add sketches up into one", _MERGE)
    merge.add_argument("sketches", nargs="+", metavar="SKETCH")
    merge.add_argument("--out", required=True, metavar="FILE", help="where to write the sum")
    repairing.add_commands(add)
    return top


_AUDIT = """One pass over the file (two with --by), whatever its size; then certified bounds for everyone and every group.

examples:
  calibrant audit scores.csv --label readmitted --score risk
  calibrant audit 'log/*.parquet' --label y --score p --by sex,age,site --limit 0.02 --report audit.html
  calibrant audit scores.csv --label outcome --positive yes --score p --json - | jq .verdict
  calibrant audit month/*.sketch --limit 0.02
"""
_EXAMPLE = """277 677 Massachusetts residents, 2015 to 2018: a classifier's probability that a person is employed.
Writes calibrant-example.html into the current directory; open it in a browser.
"""
_CERTIFY = """Each line says which classifier it is about: the raw score, the score shown in steps, or a jittered score.

example:
  calibrant certify scores.csv --label y --score p --method rounded,jittered,distance
"""
_MERGE = "Sketches merge if they were made from one spec: see sketch --like."
_PLAN = """An average case for planning, not a certificate. Uniform scores unless a file of scores is given.

examples:
  calibrant plan 0.02                        whole per cent, within two points
  calibrant plan 0.01 --levels 50 --side two-sided
  calibrant plan 0.02 --data pilot.parquet --label y --score p
"""
_SKETCH = """A sketch holds counts of people by score, label and group. Where a group is small they are as telling as the rows:
guard a sketch like the data. Audits of it give the same numbers as audits of the file.

example:
  calibrant sketch january.parquet --label y --score p --by sex,age --out january.sketch
  calibrant sketch february.parquet --like january.sketch --out february.sketch
  calibrant merge january.sketch february.sketch --out winter.sketch
"""


# ---- commands ----


def _load(a: argparse.Namespace, progress: Any = None, tests: bool = False) -> Any:
    """Return the sketch of the files named, which are sketches or data; `tests`: hold what tests need."""
    by: tuple[str, ...] = getattr(a, "by", ())
    variables = tuple(v for v in getattr(a, "variables", ()) if v != "none")
    if all(f.endswith(".sketch") for f in a.files):
        given = [a.label, a.score, by, a.positive, a.drop_missing, a.key, a.seed]
        if any(given) or getattr(a, "intersections", False) or getattr(a, "bins", []):
            raise BadInput(
                "a sketch brings its own columns, groups and seed: leave --label, --score, --by and the like out"
            )
        return _merged(a.files)
    from calibrant.data.read import sketch

    if any(f.endswith(".sketch") for f in a.files):
        raise BadInput("sketches and data files do not mix: audit them apart, or sketch the data and merge")
    like = getattr(a, "like", None)
    if like and (by or a.bins or a.key or a.positive or a.seed or a.intersections or a.label or a.score):
        raise BadInput("--like brings columns, groups, key, positive value and seed: leave those options out")
    if not like and not (a.label and a.score):
        raise BadInput("name the columns: --label for the outcomes and --score for the probabilities")
    return sketch(
        a.files if len(a.files) > 1 else a.files[0],
        label=a.label,
        score=a.score,
        by=by,
        intersections=getattr(a, "intersections", False),
        bins=bins(getattr(a, "bins", [])),
        key=a.key,
        positive=a.positive,
        drop_missing=a.drop_missing,
        seed=a.seed,
        spec=_merged([like]).spec if like else None,
        progress=None if progress is None else lambda _, n: progress(n),
        variables=() if like else variables,
        tests=tests and bool(variables) and not like,
    )


def _merged(files: Sequence[str]) -> Any:
    from calibrant.data.sketch import Sketch
    from calibrant.data.sketch_file import stored_sketch

    whole = None
    for file in files:
        try:
            one = Sketch.from_bytes(stored_sketch(file))
            whole = one if whole is None else whole.merge(one)
        except BadInput as e:
            raise BadInput(f"{file}: {e}") from None
    return whole


def _one_output(a: argparse.Namespace) -> None:
    """Refuse two outputs on standard output, before any work is done."""
    if a.json == a.markdown == "-":
        raise BadInput("--json - and --markdown - both claim standard output: write one to a file")


def _audit(a: argparse.Namespace) -> int:
    from calibrant.audit.run import audit

    _one_output(a)
    with Progress() as progress:
        whole = _load(a, progress.rows, not a.quick)
        record = audit(
            whole,
            limit=a.limit,
            levels=a.levels,
            alpha=a.alpha,
            outcome=a.outcome,
            name=a.name,
            date=a.date,
            quick=a.quick,
            tolerance=a.tolerance,
            fail_on=a.fail_on,
            seed=whole.spec.seed,
            step=progress.step,
        )
    if not a.files[0].endswith(".sketch"):
        asked = tuple(v for v in a.variables if v != "none")
        record = replace(record, settings={**record.settings, "variables": asked})
    return _deliver(record, a)


def _example(a: argparse.Namespace) -> int:
    from calibrant.audit.run import audit
    from calibrant.data.examples import EMPLOYMENT, EMPLOYMENT_BY, employment_path

    _one_output(a)
    with Progress() as progress:
        record = audit(
            employment_path(),
            label=EMPLOYMENT["label"],
            score=EMPLOYMENT["score"],
            by=EMPLOYMENT_BY,
            limit=a.limit,
            levels=a.levels,
            alpha=a.alpha,
            outcome=a.outcome,
            name=a.name,
            date=a.date,
            quick=a.quick,
            tolerance=a.tolerance,
            fail_on=a.fail_on,
            seed=a.seed,
            rows_read=progress.rows,
            step=progress.step,
        )
    _deliver(record, a)
    return 0


def _deliver(record: AuditRecord, a: argparse.Namespace) -> int:
    """Write what was asked for; print the summary unless standard output was claimed."""
    from calibrant.report import html, markdown, sections, terminal

    report = sections.document(record)
    if a.report:
        _write(a.report, html.written(report, record))
        print(f"report: {a.report}", file=sys.stderr)
    if a.json:
        _write(a.json, record.to_json() + "\n")
    if a.markdown:
        _write(a.markdown, markdown.written(report))
    if "-" not in (a.json, a.markdown):
        print(terminal.written(report))
    return record.exit_status


def _write(target: str, content: str) -> None:
    if target == "-":
        sys.stdout.write(content)
        return
    try:
        Path(target).write_text(content, encoding="utf-8", newline="\n")
    except OSError as e:
        raise BadInput(f"cannot write {target!r}: {e.strerror}") from None


def _certify(a: argparse.Namespace) -> int:
    from calibrant import certify

    whole = _load(a)
    extra = {
        "rounded": {"levels": a.levels},
        "jittered": {"bandwidth": a.bandwidth},
        "bounded_variation": {"variation": a.variation},
    }
    known = ("raw_lower", "rounded", "jittered", "distance", "bounded_variation")
    found = []
    for name in a.method:
        if name not in known:
            raise BadInput(f"--method {name!r}: choose from {', '.join(known)}")
        side = "lower" if name == "raw_lower" and a.side == "two-sided" else a.side
        found.append(
            getattr(certify, name)(whole, alpha=a.alpha, side=side, seed=whole.spec.seed, **extra.get(name, {}))
        )
    if a.json:
        import json

        print(json.dumps([e.to_dict() for e in found], sort_keys=True, indent=1))
        return 0
    from calibrant.report.terminal import certificates

    print(certificates(found))
    return 0


def _plan(a: argparse.Namespace) -> int:
    from calibrant.certify.rows_needed import rows_needed

    data = None
    if a.data:
        data = _load(
            argparse.Namespace(
                files=[a.data],
                label=a.label,
                score=a.score,
                positive=a.positive,
                key=(),
                seed=0,
                drop_missing=a.drop_missing,
            )
        )
    elif a.label or a.score or a.positive or a.drop_missing:
        raise BadInput("--label, --score, --positive and --drop-missing go with --data")
    found = rows_needed(a.gap, data, method=a.method, levels=a.levels, bandwidth=a.bandwidth, alpha=a.alpha, side=a.side)
    from calibrant.report.terminal import plan

    print(plan(found))
    return 0


def _sketch(a: argparse.Namespace) -> int:
    with Progress() as progress:
        whole = _load(a, progress.rows, a.tests)
    return _save(whole, a.out)


def _merge(a: argparse.Namespace) -> int:
    return _save(_merged(a.sketches), a.out)


def _save(whole: Any, out: str) -> int:
    try:
        Path(out).write_bytes(whole.to_bytes())
    except OSError as e:
        raise BadInput(f"cannot write {out!r}: {e.strerror}") from None
    print(f"{out}: {whole.n:,} rows, fingerprint {whole.fingerprint[:16]}")
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="replace")
    try:
        a = build_parser().parse_args(argv)
        return int(a.run(a))
    except SystemExit as e:
        return int(e.code or 0)
    except (BadInput, NotComputable) as e:
        print(f"calibrant: {e}", file=sys.stderr)
        return BAD
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        print("calibrant: stopped", file=sys.stderr)
        return STOPPED
    except Exception as e:
        if os.environ.get("CALIBRANT_TRACEBACK"):
            raise
        print(
            f"calibrant: unexpected {type(e).__name__}: {e} (set CALIBRANT_TRACEBACK=1 to see where)", file=sys.stderr
        )
        return UNEXPECTED


if __name__ == "__main__":
    sys.exit(main())
