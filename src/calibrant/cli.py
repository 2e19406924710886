"""The `calibrant` command: parse, run, print, and say by exit status how it went."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calibrant import __version__
from calibrant.errors import BadInput, NotComputable
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
    _data_options(audit)
    _group_options(audit)
    _audit_options(audit)
    example = add("example", _example, "run the audit on the bundled employment data", _EXAMPLE)
    _audit_options(example, limit=0.015, outcome="employed", report="calibrant-example.html")
    certify = add("certify", _certify, "print certificates for everyone together", _CERTIFY)
    _data_options(certify)
    _certify_options(certify)
    plan = add("plan", _plan, "rows that a certificate of a given tightness takes", _PLAN)
    _plan_options(plan)
    sketch = add("sketch", _sketch, "summarise a file into a small mergeable sketch", _SKETCH)
    _data_options(sketch)
    _group_options(sketch)
    sketch.add_argument(
        "--like", metavar="SKETCH", help="use the columns and groups of this sketch, so that the two merge"
    )
    sketch.add_argument("--out", required=True, metavar="FILE", help="where to write the sketch")
    merge = add(
        "merge",
        _merge,
        "add sketches up into one",
        "Sketches merge if they were made from one spec: see sketch --like.",
    )
    merge.add_argument("sketches", nargs="+", metavar="SKETCH")
    merge.add_argument("--out", required=True, metavar="FILE", help="where to write the sum")
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
_PLAN = """An average case for planning, not a certificate. Uniform scores unless a file of scores is given.

examples:
  calibrant plan 0.02                        whole per cent, within two points
  calibrant plan 0.01 --levels 50 --side two-sided
  calibrant plan 0.02 --data pilot.parquet --label y --score p
"""
_SKETCH = """A sketch holds counts, no rows; audits of it give the same numbers as audits of the file.

example:
  calibrant sketch january.parquet --label y --score p --by sex,age --out january.sketch
  calibrant sketch february.parquet --label y --score p --like january.sketch --out february.sketch
  calibrant merge january.sketch february.sketch --out winter.sketch
"""


def _data_options(p: argparse.ArgumentParser) -> None:
    p.add_argument(
        "files",
        nargs="+",
        metavar="FILE",
        help="Parquet, CSV, Arrow IPC, sketch; a quoted glob or a directory works too",
    )
    p.add_argument("--label", metavar="COLUMN", help="outcomes: 0 and 1, or any values with --positive")
    p.add_argument("--score", metavar="COLUMN", help="predicted probabilities, 0 to 1")
    p.add_argument("--positive", metavar="VALUE", help="the label value that counts as a case")
    p.add_argument(
        "--drop-missing", action="store_true", help="leave out, and count, rows with a missing label or score"
    )
    p.add_argument(
        "--key",
        metavar="COLUMNS",
        type=_names,
        default=(),
        help="columns that identify a row (default: file and row number)",
    )
    p.add_argument("--seed", type=int, default=0, help="deals the rows into random blocks (default 0)")


def _group_options(p: argparse.ArgumentParser) -> None:
    p.add_argument("--by", metavar="COLUMNS", type=_names, default=(), help="group columns, separated by commas")
    p.add_argument("--intersections", action="store_true", help="also every pair of the group columns")
    p.add_argument(
        "--bins",
        metavar="COLUMN=A,B,…",
        action="append",
        default=[],
        help="bin edges of a numeric group column, such as age=18,40,65",
    )


def _audit_options(
    p: argparse.ArgumentParser, limit: float | None = None, outcome: str | None = None, report: str | None = None
) -> None:
    p.add_argument(
        "--limit", type=float, default=limit, metavar="L", help="largest acceptable average error; 0.02 is two points"
    )
    p.add_argument(
        "--levels",
        type=int,
        default=50,
        metavar="K",
        help="steps in which probabilities are shown (default 50: steps of 2%%)",
    )
    p.add_argument("--alpha", type=float, default=0.05, help="error probability of each certificate (default 0.05)")
    p.add_argument("--quick", action="store_true", help="leave out the tests; measures and certificates remain")
    p.add_argument("--outcome", default=outcome, metavar="WORD", help="what a case is, for wording: employed")
    p.add_argument("--name", metavar="NAME", help="name of the data in the report (default: the file's)")
    p.add_argument("--date", metavar="DATE", help="date to print in the report (default: none)")
    p.add_argument("--report", default=report, metavar="OUT.html", help="write the HTML report")
    p.add_argument("--markdown", metavar="OUT.md", help="write the report as Markdown (- for standard output)")
    p.add_argument("--json", metavar="OUT.json", help="write the record as JSON (- for standard output)")
    if report:
        p.add_argument("--seed", type=int, default=0, help="deals the rows into random blocks (default 0)")


def _certify_options(p: argparse.ArgumentParser) -> None:
    p.add_argument("--method", type=_names, default=("raw_lower", "rounded", "distance"), metavar="NAMES",
                   help="raw_lower, rounded, jittered, distance, bounded_variation (default: raw_lower,rounded,distance)")  # fmt: skip
    p.add_argument("--side", choices=("two-sided", "lower", "upper"), default="two-sided")
    p.add_argument(
        "--levels", type=int, default=100, metavar="K", help="steps of rounded (default 100: whole per cent)"
    )
    p.add_argument("--bandwidth", type=float, default=2**-6, metavar="H", help="of jittered (default 2^-6)")
    p.add_argument(
        "--variation",
        type=float,
        default=1.0,
        metavar="V",
        help="of bounded_variation (default 1: a monotone event rate)",
    )
    p.add_argument("--alpha", type=float, default=0.05)
    p.add_argument("--json", action="store_true", help="print JSON instead of a table")


def _plan_options(p: argparse.ArgumentParser) -> None:
    p.add_argument("gap", type=float, help="how close the bound should come to the truth; 0.02 is two points")
    p.add_argument("--method", choices=("rounded", "jittered"), default="rounded")
    p.add_argument("--levels", type=int, default=100, metavar="K")
    p.add_argument("--bandwidth", type=float, default=2**-6, metavar="H")
    p.add_argument("--alpha", type=float, default=0.05)
    p.add_argument("--side", choices=("upper", "lower", "two-sided"), default="upper")
    p.add_argument("--data", metavar="FILE", help="rows whose scores to plan for (needs --label and --score)")
    p.add_argument("--label", metavar="COLUMN")
    p.add_argument("--score", metavar="COLUMN")


def _names(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _bins(items: Sequence[str]) -> dict[str, tuple[float, ...]]:
    out = {}
    for item in items:
        name, _, edges = item.rpartition("=")
        try:
            out[name] = tuple(float(e) for e in edges.split(","))
        except ValueError:
            name = ""
        if not name:
            raise BadInput(f"--bins {item!r}: write COLUMN=EDGE,EDGE,… such as age=18,40,65")
    return out


# ---- commands ----


def _load(a: argparse.Namespace, progress: Any = None) -> Any:
    """Return the sketch of the files named, which are sketches or data."""
    by: tuple[str, ...] = getattr(a, "by", ())
    if all(f.endswith(".sketch") for f in a.files):
        if a.label or a.score or by:
            raise BadInput("a sketch brings its own columns and groups: leave --label, --score and --by out")
        return _merged(a.files)
    from calibrant.data.read import sketch

    if not (a.label and a.score):
        raise BadInput("name the columns: --label for the outcomes and --score for the probabilities")
    like = getattr(a, "like", None)
    return sketch(
        a.files if len(a.files) > 1 else a.files[0], y=a.label, p=a.score, by=by, intersections=getattr(a, "intersections", False),
        bins=_bins(getattr(a, "bins", [])), key=a.key, positive=a.positive, drop_missing=a.drop_missing, seed=a.seed,
        spec=_merged([like]).spec if like else None, progress=progress,
    )  # fmt: skip


def _merged(files: Sequence[str]) -> Any:
    from calibrant.data.sketch import Sketch

    whole = None
    for file in files:
        try:
            raw = Path(file).read_bytes()
        except OSError as e:
            raise BadInput(f"cannot read {file!r}: {e.strerror}") from None
        one = Sketch.from_bytes(raw)
        whole = one if whole is None else whole.merge(one)
    return whole


def _audit(a: argparse.Namespace) -> int:
    from calibrant.audit.run import audit

    with Progress() as progress:
        whole = _load(a, progress.rows)
        record = audit(
            whole, limit=a.limit, levels=a.levels, alpha=a.alpha, outcome=a.outcome, name=a.name, date=a.date,
            quick=a.quick, seed=a.seed, step=progress.step,
        )  # fmt: skip
    return _deliver(record, a)


def _example(a: argparse.Namespace) -> int:
    from calibrant.audit.run import audit
    from calibrant.data.examples import EMPLOYMENT, EMPLOYMENT_BY, employment_path

    with Progress() as progress:
        record = audit(
            employment_path(), y=EMPLOYMENT["y"], p=EMPLOYMENT["p"], by=EMPLOYMENT_BY, limit=a.limit, levels=a.levels,
            alpha=a.alpha, outcome=a.outcome, name=a.name, date=a.date, quick=a.quick, seed=a.seed,
            rows_read=progress.rows, step=progress.step,
        )  # fmt: skip
    _deliver(record, a)
    return 0


def _deliver(record: AuditRecord, a: argparse.Namespace) -> int:
    """Write what was asked for; print the summary unless standard output was claimed."""
    from calibrant.report import text

    if a.report:
        from calibrant.report.html import render

        _write(a.report, render(record))
        print(f"report: {a.report}", file=sys.stderr)
    if a.json:
        _write(a.json, record.to_json() + "\n")
    if a.markdown:
        _write(a.markdown, text.markdown(record))
    if "-" not in (a.json, a.markdown):
        print(text.terminal(record))
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
        side = "lower" if name == "raw_lower" and a.side == "upper" else a.side
        found.append(getattr(certify, name)(whole, alpha=a.alpha, side=side, seed=a.seed, **extra.get(name, {})))
    if a.json:
        import json

        print(json.dumps([e.to_dict() for e in found], sort_keys=True, indent=1))
        return 0
    from calibrant.report.certificates import certificates

    print(certificates(found))
    return 0


def _plan(a: argparse.Namespace) -> int:
    from calibrant.certify.rows_needed import rows_needed

    data = None
    if a.data:
        from calibrant.data.read import sketch

        data = sketch(a.data, y=a.label, p=a.score)
    found = rows_needed(a.gap, data, a.method, a.levels, a.bandwidth, a.alpha, a.side)
    from calibrant.report.certificates import plan

    print(plan(found))
    return 0


def _sketch(a: argparse.Namespace) -> int:
    with Progress() as progress:
        whole = _load(a, progress.rows)
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
