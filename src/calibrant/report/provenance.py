"""What was audited, and the command that does it again."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from calibrant.audit.record import AuditRecord
from calibrant.report import numbers as num
from calibrant.report import standing
from calibrant.report.order import limit_of
from calibrant.report.spans import Span, Text, code, given, say, visible

EVERY = "*"  # all columns that can be used
BANDWIDTH = 2**-6  # of the jittered certificate: the command line takes no other
ARRAYS = "The data came as arrays or as a frame, so there is no command: call "
UNTYPABLE = "The command line cannot name all that this audit was given, so there is no command: call "


def about(record: AuditRecord) -> Mapping[str, Any]:
    """Return what was audited."""
    return {"entries": tuple(_about(record))}


def _about(record: AuditRecord) -> list[standing.Entry]:
    one, data, limit = record.everyone, record.data, limit_of(record)
    share = num.nearest(one.cases / one.rows)
    not_given = say(Span("not given", "missing"))
    entries: list[standing.Entry] = [
        ("Model", not_given),
        ("Meant for", not_given),
        (
            "Outcome",
            say(
                code(data.get("label", "")),
                " = ",
                code(1 if data.get("positive") is None else data["positive"]),
                f": {num.count(one.cases)} of {num.count(one.rows)} ({share}%); ",
                f"expected by the model {num.count(one.expected)}",
            ),
        ),
        ("Score", say(code(data.get("score", "")))),
        ("People and dates", not_given),
        ("Rows", say(f"{num.count(one.rows + dropped(data))} read, {num.count(dropped(data))} dropped")),
        (
            "Limit",
            say(
                "none"
                if limit is None
                else f"{num.limit_points(limit)} points, given by the caller. "
                "Whether it was set before the data were seen is not known."
            ),
        ),
        ("Groups", _groups_entry(record)),
    ]
    if record.settings.get("date") is not None:
        entries.append(("Date of the report", say(given(record.settings["date"]))))
    entries += [("Note", say(given(n))) for n in [*listed(data.get("notes")), *listed(data.get("warnings"))]]
    return entries


def _groups_entry(record: AuditRecord) -> Text:
    by = groupings(record)
    if not by:
        return say(Span("none given", "missing"))
    pieces = [p for names in by for p in (code(" and ".join(names)), ", ")][:-1]
    noun = "variable" if len(by) == 1 else "variables"
    count = f"{len(by)} {noun}, {num.count(len(record.groups))} groups, chosen by the caller: "
    fewer = [s for text in folded(record) for s in say("; ", *text)]
    return say(count, *pieces, *_cuts(record), *_together(record), *fewer)


def _cuts(record: AuditRecord) -> Text:
    out: list[Text] = []
    for name, edges in cuts(record).items():
        out.append(say("; ", code(name), f" cut at {', '.join(f'{e:g}' for e in edges)}"))
    return tuple(span for text in out for span in text)


def _together(record: AuditRecord) -> Text:
    pools = [g for g in record.groups if g.pooled]
    out: list[Text] = []
    for g in pools:
        values = ", ".join(v for _, v in g.variables)
        out.append(say("; too small to show alone, so shown together: ", given(values)))
    return tuple(span for text in out for span in text)


def groupings(record: AuditRecord) -> list[tuple[str, ...]]:
    """Return the columns that form groups, alone or crossed, however the record holds them."""
    by = record.data.get("by") or ()
    return [tuple(map(str, b)) if isinstance(b, (list, tuple)) else (str(b),) for b in by]


def cuts(record: AuditRecord) -> dict[str, Sequence[float]]:
    """Return the numeric columns that were cut into bands, and where."""
    described: Mapping[str, Any] = record.data.get("variables") or {}
    return {name: d["edges"] for name, d in described.items() if d.get("edges")}


def folded(record: AuditRecord) -> tuple[Text, ...]:
    """Return for each variable with too many values how many of them share the level "other"."""
    described: Mapping[str, Any] = record.data.get("variables") or {}
    out = []
    for name, d in described.items():
        n = int(d.get("folded") or 0)
        if n:
            values = "1 less frequent value is" if n == 1 else f"{num.count(n)} less frequent values are"
            out.append(say(f"{values} shown together as “other” in ", code(name)))
    return tuple(out)


def group_notes(record: AuditRecord) -> tuple[Text, ...]:
    """Return what the table of groups leaves out, a sentence each: folded values, and columns with small groups only."""
    seen = {tuple(k for k, _ in g.variables) for g in record.groups}
    unseen = [names for names in groupings(record) if names not in seen] if record.groups else []
    small = [say("No group of ", code(" and ".join(names)), " can be shown: all are too small.") for names in unseen]
    return (*(say(*text, ".") for text in folded(record)), *small)


def dropped(data: Mapping[str, Any]) -> int:
    """Return how many rows were left out, in all."""
    d = data.get("dropped", 0)
    return int(sum(d.values())) if isinstance(d, Mapping) else int(d or 0)


def listed(value: Any) -> list[str]:
    """Return notes, sources or columns as a list of text, however the record holds them."""
    if value is None or value == "":
        return []
    if isinstance(value, Mapping):
        return [f"{k}: {v}" for k, v in value.items()]
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [str(v) for v in value]
    return [str(value)]


def reproduce(record: AuditRecord) -> Mapping[str, Any]:
    """Return the command and what it rests on."""
    data, one = record.data, record.everyone
    left_out = num.count(dropped(data)) if dropped(data) else "none"
    rows = f"{num.count(one.rows)} rows, {left_out} dropped; fingerprint "
    same = "The same data, settings, seed and versions give this file byte for byte; it holds no time stamp."
    machines = (
        *say("All results are in this page as JSON: element ", code("calibrant-result"), ", schema "),
        *say(code(record.schema), ". No row of the data is in it."),
    )
    entries: tuple[standing.Entry, ...] = (
        ("Data", say(rows, code(data.get("fingerprint", "")))),
        ("Settings", pairs(record.settings)),
        ("Software", pairs(record.versions)),
        ("Same bytes", say(same)),
        ("For machines", machines),
    )
    typed = command(record)
    start = UNTYPABLE if listed(data.get("files")) else ARRAYS
    no_command = () if typed else say(start, code("calibrant.audit"), " with the settings below.")
    return {"command": typed, "no_command": no_command, "entries": entries}


def pairs(values: Mapping[str, Any]) -> Text:
    """Return names and values as one line; what is None is left out."""
    told = [given(f"{k} {_setting(v)}") for k, v in sorted(values.items()) if v is not None]
    return say(*[piece for span in told for piece in (span, ", ")][:-1])


def _setting(value: Any) -> str:
    return " and ".join(map(str, value)) or "none" if isinstance(value, (list, tuple)) else str(value)


def command(record: AuditRecord) -> str:
    """Return the command that writes this report again; empty where no command can."""
    data = record.data
    sources = listed(data.get("sources") or data.get("files"))
    if not sources or _untypable(record, sources):
        return ""
    lines = [f"calibrant audit {' '.join(shlex.quote(f'./{x}' if x.startswith('-') else x) for x in sources)}"]
    for flag, value in _flags(record):
        typed = shlex.quote(str(value))
        lines.append(f"  {flag}={typed}" if typed.startswith(("-", "'-")) else f"  {flag} {typed}")
    s, by = record.settings, groupings(record)
    switches = {"--intersections": any(len(b) > 1 for b in by), "--drop-missing": bool(dropped(data))}
    switches["--quick"] = bool(s.get("quick"))
    lines += [f"  {flag}" for flag, wanted in switches.items() if wanted]
    return visible_lines([*lines, "  --report audit.html"])


def _flags(record: AuditRecord) -> list[tuple[str, Any]]:
    """Return every option with a value that changes the result, but those that were not given."""
    data, s = record.data, record.settings
    names, asked = _group_columns(record), s.get("variables", (EVERY,))
    flags: list[tuple[str, Any]] = [("--label", data.get("label")), ("--score", data.get("score"))]
    flags += [("--positive", data.get("positive")), ("--key", ",".join(listed(data.get("key"))) or None)]
    flags += [("--by", ",".join(names) or None)]
    flags += [("--bins", f"{name}={','.join(map(_edge, edges))}") for name, edges in cuts(record).items()]
    flags += [("--variables", None if tuple(asked) == (EVERY,) else ",".join(asked) or "none")]
    flags += [(f"--{k}", s.get(k)) for k in ("limit", "levels", "alpha", "tolerance", "seed")]
    flags += [("--fail-on", ",".join(listed(s.get("fail_on"))) or None), ("--outcome", s.get("outcome"))]
    flags += [("--name", _named(record)), ("--date", s.get("date"))]
    return [(flag, value) for flag, value in flags if value is not None]


def _edge(edge: float) -> str:
    """Write the edge of a group, short where that is the same number."""
    return f"{edge:g}" if float(f"{edge:g}") == edge else repr(float(edge))


def _group_columns(record: AuditRecord) -> list[str]:
    return list(dict.fromkeys(name for pair in groupings(record) for name in pair))


def _named(record: AuditRecord) -> str | None:
    """Return the name to give, None where it is that of the one file."""
    files = listed(record.data.get("files"))
    return None if len(files) == 1 and files[0].split(".")[0] == record.name else record.name


def _untypable(record: AuditRecord, sources: Sequence[str]) -> bool:
    """Tell whether the record does not name all files, or a list of columns holds what would be read as several."""
    s = record.settings
    columns = [*_group_columns(record), *listed(record.data.get("key")), *s.get("variables", ())]
    more = int(record.data.get("file_count") or 0) > len(sources)
    width = s.get("bandwidth")
    return more or any("," in c or c != c.strip() or not c for c in columns) or width not in (None, BANDWIDTH)


def visible_lines(lines: Sequence[str]) -> str:
    """Join the lines of a command, with unseen characters shown as codes."""
    return " \\\n".join(visible(line) for line in lines)
