"""The commands that a report prints: the audit again, and the repair that it recommends."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from calibrant.arguments import MASK, STEPS, TAB
from calibrant.audit.record import About, AuditRecord
from calibrant.data.specs.column_names import names_cluster
from calibrant.sanitize import sanitize

EVERY = "*"  # all columns that can be used
WIDTH = 84  # characters of a line of a command
DEFAULTS: Mapping[str, object] = {
    "--steps": STEPS,
    "--alpha": 0.05,
    "--tolerance": 0.0,
    "--seed": 0,
    "--missing-odds": 2.0,
}
REPAIRING = (  # options that `repair` takes too
    *(
        "--label",
        "--score",
        "--positive",
        "--key",
        "--cluster",
        "--weights",
        "--by",
        "--missing",
        "--bins",
        "--variables",
        "--allow",
    ),
    *("--limit", "--judge", "--threshold", "--costs", "--steps", "--alpha", "--seed"),
    *("--encoding", "--delimiter", "--decimal", "--sheet", "--dates", "--format"),
)
READING = (  # options that read data
    *("--label", "--score", "--positive", "--key", "--cluster", "--weights", "--by", "--missing", "--bins", "--allow"),
    *("--encoding", "--delimiter", "--decimal", "--sheet", "--dates", "--format", "--seed"),
    *("--intersections", "--percent", "--drop-missing", "--allow-same"),
)
LOOKING = tuple(k for k in READING if k not in ("--seed", "--intersections"))
PLANNING = (*(k for k in READING if k not in ("--key", "--seed", "--allow")), "--steps", "--alpha")
GROUPS = 2  # columns that a report proposes
BANDWIDTH = 2**-6  # of the jittered certificate: the command line takes no other


def command(record: AuditRecord) -> str:
    """The command that writes this report again, with every setting; empty where no command can."""
    words = _audit_words(record, _flags(record))
    return " \\\n  ".join([*words, "-o audit.html"]) if words else ""


def audit_again(record: AuditRecord, more: Sequence[str] = (), *, without: Sequence[str] = ()) -> str:
    """The audit as somebody would type it again, without what is the default; `more` are options to add.

    `without` names options to leave out. Empty where no command can do it.
    """
    kept = [(k, v) for k, v in _flags(record) if DEFAULTS.get(k) != v and k not in without]
    words = _audit_words(record, kept)
    if not words:
        return ""
    return _wrapped([w for w in words if w not in without] + [*more, "-o audit.html"])


def repair(record: AuditRecord, method: str = "") -> str:
    """The command that fits a repair and writes its map; empty where no command can."""
    start, data = _start(record, "repair"), record.data
    if not start:
        return ""
    kept = [(k, v) for k, v in _flags(record) if k in REPAIRING and DEFAULTS.get(k) != v]
    switches = {"--percent": bool(data.get("percent")), "--drop-missing": drops_missing(data)}
    words = [start, *_typed(kept), *(k for k, wanted in switches.items() if wanted)]
    return _wrapped([*words, *([f"--method {sanitize(method)}"] if method else []), "-o calibrator.json"])


def look(record: AuditRecord) -> str:
    """The command that says what the files hold and what is in the way; empty where no command can."""
    return _reading(record, "look", LOOKING)


def rows_of(record: AuditRecord, name: str) -> str:
    """The command that writes the rows of a group or subgroup; empty where no command can."""
    out = "rows.csv" if "rows.csv" not in listed(record.data.get("sources")) else "rows-to-look-at.csv"
    return _reading(record, "audit", READING, [*_typed([("--rows-of", name)]), f"-o {out}"])


def plan(record: AuditRecord) -> str:
    """The command that says what these rows can decide, and how many would; empty where it takes no such data."""
    files, limit = listed(record.data.get("sources") or record.data.get("files")), record.everyone.limit
    if len(files) != 1 or files[0] == "-" or record.data.get("two_way") or record.data.get("missing") == "keep":
        return ""
    words = _typed([("--limit", limit)]) if limit is not None else []
    text = _reading(record, "plan", PLANNING, words)
    return text.replace("calibrant plan ", "calibrant plan --data ", 1)


def without_column(record: AuditRecord, name: str) -> str:
    """The audit again without a column, as a group and as a covariate; empty where no command can."""
    kept = record.data.get("columns") or {}
    used = [n for n, c in kept.items() if c.get("used") == "covariate" and n != name]
    by = [n for n in _group_columns(record) if n != name]
    more = [("--variables", _list(used) or "none"), *([("--by", _list(by))] if by else [])]
    return audit_again(record, _typed(more), without=["--variables", "--by", "--intersections"])


def _reading(record: AuditRecord, what: str, options: Collection[str], more: Sequence[str] = ()) -> str:
    """A command that reads the same data in the same way, with the options that it takes."""
    start, data = _start(record, what), record.data
    if not start:
        return ""
    kept = [(k, v) for k, v in _flags(record) if k in options and DEFAULTS.get(k) != v]
    switches = {
        "--intersections": any(len(b) > 1 for b in groupings(record)),
        "--percent": bool(data.get("percent")),
        "--drop-missing": drops_missing(data),
        "--allow-same": bool(record.settings.get("allow_same")),
    }
    switched = [k for k, wanted in switches.items() if wanted and k in options]
    return _wrapped([start, *_typed(kept), *switched, *more])


def naming_groups(record: AuditRecord) -> str:
    """The option that names groups, of columns that there are, or of a placeholder."""
    return proposed_groups(record) or "--by COLUMN"


def proposed_groups(record: AuditRecord) -> str:
    """The option that names groups, such as ``--by branch``: categories if there are any, else numbers; or nothing."""
    is_kept = record.data.get("columns") or {}
    taken = {name for names in record.curve("dependence").columns.get("columns", ()) for name in names}
    taken |= {*dict(record.data.get("in_question") or ())}  # nor what may be made of the outcome
    for kinds in (("category",), ("number", "date")):
        usable = [name for name, c in is_kept.items() if c.get("kind") in kinds and c.get("used") == "covariate"]
        results = [name for name in usable if name not in taken and not names_cluster(name)]
        if results:
            return _typed([("--by", _list(results[:GROUPS]))])[0]
    return ""


def by_clusters(column: str) -> list[str]:
    return _typed([("--cluster", _list([column]))])


def by_groups(columns: Sequence[str]) -> str:
    """Return the option that names columns as groups."""
    return " ".join(_typed([("--by", _list(columns))]) + ["--intersections"] * (len(columns) > 1))


def _audit_words(record: AuditRecord, flags: Sequence[tuple[str, object]]) -> list[str]:
    start, data, s = _start(record, "audit"), record.data, record.settings
    if not start:
        return []
    switches = {
        "--intersections": any(len(b) > 1 for b in groupings(record)),
        "--percent": bool(data.get("percent")),
        "--drop-missing": drops_missing(data),
        "--quick": bool(s.get("quick")),
        "--publish": bool(s.get("publish")),
        "--allow-same": bool(s.get("allow_same")),
    }
    return [start, *_typed(flags), *(flag for flag, wanted in switches.items() if wanted)]


def _start(record: AuditRecord, what: str) -> str:
    """The command and its files; empty where the command line cannot name all that was audited."""
    sources = listed(record.data.get("sources") or record.data.get("files"))
    if not sources or _untypable(record, sources):
        return ""
    paths = (f"./{x}" if x.startswith("-") and x != "-" else x for x in sources)
    return sanitize(f"calibrant {what} {' '.join(map(shlex.quote, paths))}")


def _typed(flags: Sequence[tuple[str, object]]) -> list[str]:
    """Return options with their values as a shell reads them."""
    out = []
    for flag, value in flags:
        typed = shlex.quote(TAB if (flag, value) == ("--delimiter", "\t") else str(value))
        out.append(sanitize(f"{flag}={typed}" if typed.startswith(("-", "'-")) else f"{flag} {typed}"))
    return out


def _wrapped(words: Sequence[str]) -> str:
    """A command on as few lines as hold it, each but the last with the mark that it goes on."""
    lines = [words[0]]
    for word in words[1:]:
        if len(lines[-1]) + len(word) + 3 > WIDTH:
            lines.append(f"    {word}")
        else:
            lines[-1] += f" {word}"
    return " \\\n".join(lines)


def _list(names: Sequence[str]) -> str | None:
    """Return names as an option takes them, in quotes those that would be read as something else; None for none."""
    return ",".join('"' + n.replace('"', '""') + '"' if _odd(n) else n for n in names) or None


def _odd(name: str) -> bool:
    return not name or name != name.strip() or "," in name or name.startswith('"')


def _flags(record: AuditRecord) -> list[tuple[str, object]]:
    """Return every option with a value that changes the result, but those that were not given."""
    data, s = record.data, record.settings
    options, files = s.get("variables", (EVERY,)), listed(data.get("files"))
    named_after_file = len(files) == 1 and files[0].split(".")[0] == record.name
    flags: list[tuple[str, object]] = [("--label", data.get("label")), ("--score", data.get("score"))]
    flags += [("--positive", data.get("positive")), ("--key", _list(listed(data.get("key"))))]
    clusters = list(data.get("two_way") or ()) or [*listed(data.get("cluster")), *(data.get("nested") or ())]
    flags += [
        ("--cluster", _list(clusters) or ("none" if s.get("independent") else None)),
        ("--weights", data.get("weights")),
    ]
    flags += [("--by", _list(_group_columns(record)))]
    flags += [("--missing", data["missing"] if data.get("missing") in ("refuse", "keep") else None)]
    flags += [("--bins", f"{name}={','.join(map(_edge, edges))}") for name, edges in cuts(record).items()]
    flags += [("--allow", _list(listed(s.get("allow"))))]
    flags += [("--variables", None if tuple(options) == (EVERY,) else _list(options) or "none")]
    relative = s.get("limit_relative")
    flags += [("--limit", s.get("limit") if relative is None else None), ("--limit-relative", relative)]
    flags += [(f"--{k}", s.get(k)) for k in ("steps", "alpha", "tolerance", "seed")]
    flags += [("--missing-odds", s.get("missing_odds") if data.get("missing") == "keep" else None)]
    flags += [("--mask", "none" if s["mask"] is None else s["mask"] if s["mask"] != MASK else None)]
    flags += [("--fail-on", ",".join(listed(s.get("fail_on"))) or None), ("--outcome", s.get("outcome"))]
    costs, acting = (",".join(f"{v!r}" for v in s.get(k) or ()) or None for k in ("costs", "threshold"))
    flags += [("--costs", costs), ("--threshold", None if costs else acting)]
    flags += [("--judge", s["judge"] if s["judge"] != "auto" else None), ("--target", s.get("target"))]
    flags += [(f"--{k.replace('_', '-')}", v) for k, v in s["about"].items() if v != getattr(About(), k)]
    flags += [(f"--{k}", v) for k, v in (s.get("form") or {}).items()]
    flags += [("--name", None if named_after_file else record.name), ("--date", s.get("date"))]
    return [(flag, value) for flag, value in flags if value is not None]


def _edge(edge: float) -> str:
    """Write the edge of a group, short where that is the same number."""
    return f"{edge:g}" if float(f"{edge:g}") == edge else repr(float(edge))


def _group_columns(record: AuditRecord) -> list[str]:
    return list(dict.fromkeys(name for pair in groupings(record) for name in pair))


def _untypable(record: AuditRecord, sources: Sequence[str]) -> bool:
    """Whether the record does not name all files, or was made with what is no option."""
    more = int(record.data.get("file_count") or 0) > len(sources)
    return more or record.settings.get("bandwidth") not in (None, BANDWIDTH)


# ---- what the record holds of the data, as options name it ----


def groupings(record: AuditRecord) -> list[tuple[str, ...]]:
    """The columns that form groups, alone or crossed, however the record holds them."""
    by = record.data.get("by") or ()
    return [tuple(map(str, b)) if isinstance(b, (list, tuple)) else (str(b),) for b in by]


def described(record: AuditRecord) -> Mapping[str, Mapping[str, Any]]:
    """Return how each group variable was read: its kind, its edges, and how many values share one level."""
    values: Mapping[str, Mapping[str, Any]] = record.data.get("variables") or {}
    return values


def cuts(record: AuditRecord) -> dict[str, Sequence[float]]:
    return {name: d["edges"] for name, d in described(record).items() if d.get("edges")}


def drops_missing(data: Mapping[str, Any]) -> bool:
    """Whether rows were left out that an audit takes only if told so; those of weight 0 it leaves out unasked."""
    return dropped(data) > 0 and {*(data.get("dropped_for") or ())} != {"weight above 0"}


def dropped(data: Mapping[str, Any]) -> int:
    d = data.get("dropped", 0)
    return int(sum(d.values())) if isinstance(d, Mapping) else int(d or 0)


def listed(value: object) -> list[str]:
    """Return notes, sources or columns as a list of text, however the record holds them."""
    if value is None or value == "":
        return []
    if isinstance(value, Mapping):
        return [f"{k}: {v}" for k, v in value.items()]
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [str(v) for v in value]
    return [str(value)]
