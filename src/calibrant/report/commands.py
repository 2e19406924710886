"""The commands that a report prints: the audit again, and the repair that it recommends.

Of data that came as arrays or as a frame each is the Python call that does the same; a report is
written in options of the command line, and `in_python` words every one of them as an argument, so that no sentence
has to ask who reads it.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from calibrant.arguments import MASK, STEPS, TAB
from calibrant.audit.record import About, AuditRecord
from calibrant.data.specs.column_names import AT_MOST, names_cluster
from calibrant.data.specs.options import NONE
from calibrant.report.findings import crossing, drops_missing, groupings, lost
from calibrant.report.spans import label
from calibrant.report.wording.in_python import DATA, FORM, OF_ROWS, WIDTH, arguments, call, called, in_code, rows_where
from calibrant.sanitize import sanitize

EVERY = "*"  # all columns that can be used
DEFAULTS = {"--steps": STEPS, "--alpha": 0.05, "--tolerance": 0.0, "--seed": 0, "--missing-odds": 2.0}
OF_TWO = "--key", "--by", "--bins", "--variables", "--allow", "--limit", "--judge", "--threshold", "--costs"
READING = (  # options that read data
    *("--time", "--event", "--horizon", "--entered", "--closed", "--competing", "--way", "--within"),
    *("--label", "--score", "--positive", "--key", "--cluster", "--weights", "--by", "--missing", "--bins", "--allow"),
    *("--encoding", "--delimiter", "--decimal", "--sheet", "--dates", "--format", "--seed"),
    *("--intersections", "--percent", "--logits", "--renormalize", "--listed", "--rest", "--ordered", "--allow-same"),
)
REPAIRING = (  # options that `repair` takes too
    *(k for k in READING if k not in ("--intersections", "--allow-same")),
    *("--variables", "--limit", "--judge", "--threshold", "--costs", "--steps", "--alpha"),
)
LOOKING = tuple(k for k in READING if k not in ("--seed", "--intersections"))
PLANNING = (*(k for k in READING if k not in ("--key", "--seed", "--allow")), "--steps", "--alpha")
ARRAYS = ("y_true", "y_prob")  # what label and score of `Predictions` are called
GROUPS = 2  # columns that a report proposes
ABOUT = "about.toml"  # holds the words of the report
STATED = ("independent", "final")  # settings that are the value "none" of an option
WORDED = (*STATED, "form", "about", "outcome", "date", "blocks", "bandwidth")  # that are no option of their own
BANDWIDTH = 2**-6  # of the jittered certificate: the command line takes no other


def command(record: AuditRecord) -> str:
    """The command that writes this report again, with every setting; empty where no command can."""
    words = _audit_words(record, _flags(record))
    if words and from_python(record):
        return _finished(record, [*words, "-o audit.html"])
    return " \\\n  ".join([*words, "-o audit.html"]) if words else ""


def audit_again(record: AuditRecord, more: Sequence[str] = (), *, without: Sequence[str] = ()) -> str:
    """The audit as somebody would type it again, without what is the default; `more` are options to add.

    `without` names options to leave out. Empty where no command can do it.
    """
    kept = [(k, v) for k, v in _flags(record) if DEFAULTS.get(k) != v and k not in without]
    words = _audit_words(record, kept)
    if not words:
        return ""
    return _finished(record, [w for w in words if w not in without] + [*more, "-o audit.html"])


def repair(record: AuditRecord, method: str = "") -> str:
    """The command that fits a repair and writes its map; empty where no command can."""
    start, of_lost = _start(record, "repair"), bool(lost(record))
    if not start or (of_lost and record.data.get("cluster")):
        return ""
    kept = [(k, v) for k, v in _of_one_horizon(record) if k in REPAIRING and DEFAULTS.get(k) != v]
    if of_lost:  # without an assumption none is judged, and by weights gaps alone
        kept = [(k, "weights" if k == "--way" else v) for k, v in kept if k != "--judge"]
    if record.data.get("classes"):  # judged as they are by everyone, at no limit
        kept = [(k, v) for k, v in kept if k not in OF_TWO]
    elif record.settings.get("limit_relative") is not None:  # a repair is judged by everyone's limit, in points
        kept.append(("--limit", record.settings["limit"]))
    named = [f"--method {sanitize(method)}"] if method else []
    switched = [k for k in _switched(record) if k in REPAIRING]
    return _finished(record, [start, *_typed(kept), *switched, *named, "-o calibrator.json"])


def repair_classes(record: AuditRecord, name: str, method: str) -> str:
    """What fits a repair of all classes at once: a command, or a call; empty where no command can."""
    if not from_python(record):
        return repair(record, method)
    if arrays(record):
        return f"calibrator = cal.repair.{name}().fit({DATA})\nrepaired = calibrator({DATA})"
    made = _classes_in_python(record)
    return f"{made}\ncalibrator = cal.repair.{name}().fit(rows)\nrepaired = calibrator(rows)" if made else ""


def _classes_in_python(record: AuditRecord, columns: Sequence[str] = (), project: bool = False) -> str:
    """The line that makes `rows` of several classes, with some covariates, or of their most probable class.

    Empty where columns are no probabilities.
    """
    end = ".top_label()" if project else ""
    if arrays(record):
        return f"rows = {DATA}{end}"
    if not _columns_are_probabilities(record):
        return ""
    classes: Mapping[str, str] = record.data["classes"]
    parts = [f"{DATA}[{in_code(record.data['label'])}]", f"{DATA}[{in_code([*classes.values()])}]"]
    parts += [f"{DATA}[{in_code([*columns])}]"] if columns else []
    kept = {"drop_missing": "True"} if drops_missing(record.data) else {}
    kept |= {k: f"{DATA}[{in_code(v)}]" for k in ("weights", "cluster") if isinstance(v := record.data.get(k), str)}
    named = {"classes": in_code([*classes])} | kept
    return called("rows = cal.multiclass_predictions", named, ", ".join(parts)) + end


def _columns_are_probabilities(record: AuditRecord) -> bool:
    """Whether one column holds the label, and each class's column its probability as it was audited."""
    made = any(map(record.data.get, ("percent", "logits", "renormalize", "rest_mass")))
    return not made and "," not in str(record.data.get("label"))


def one_class(record: AuditRecord, name: str) -> str:
    """The audit of one of several classes against the others, or of a cut of them; empty where no command can."""
    if arrays(record):
        words = _audit_words(record, [(k, v) for k, v in _flags(record) if DEFAULTS.get(k) != v])
        kept = {k: v for k, v in arguments(words[1:]).items() if k not in (*OF_ROWS, *FORM)}
        own = name in record.data["classes"]
        way, of = ("one_vs_rest", name) if own else ("at_most", name.removeprefix(AT_MOST.format("")))
        return called("record = cal.audit", kept, f"{DATA}.{way}({in_code(of)})")
    column = (record.data.get("classes") or {}).get(name)
    if column is None or not _columns_are_probabilities(record):
        return ""
    more = _typed([("--score", column), ("--positive", name)])
    return audit_again(record, more, without=["--score", "--positive"])


def look(record: AuditRecord) -> str:
    """The command that says what the files hold and what is in the way; empty where no command can."""
    return _reading(record, "look", LOOKING)


def rows_of(record: AuditRecord, name: str) -> str:
    """The command that writes the rows of a group or subgroup; empty where no command can."""
    if from_python(record):
        return _rows_in_python(record, name)
    out = "rows.csv" if "rows.csv" not in listed(record.data.get("sources")) else "rows-to-look-at.csv"
    return _reading(record, "audit", READING, [*_typed([("--rows-of", name)]), f"-o {out}"])


def plan(record: AuditRecord) -> str:
    """The command that says what these rows can decide, and how many would; empty where it takes no such data."""
    files, limit = listed(record.data.get("sources") or record.data.get("files")), record.everyone.limit
    if not from_python(record) and (len(files) != 1 or files[0] == "-"):
        return ""
    if crossing(record) or record.data.get("missing") == "keep":
        return ""
    words = [] if limit is None else _typed([("--limit", limit)])
    text = _reading(record, "plan", PLANNING, words)
    return text.replace("calibrant plan ", "calibrant plan --data ", 1)


def without_column(record: AuditRecord, name: str) -> str:
    """The audit again without a column, as a group and as a covariate; empty where no command can."""
    kept = record.data.get("columns") or {}
    used = [n for n, c in kept.items() if c.get("used") == "covariate" and n != name]
    by = [n for n in _group_columns(record) if n != name]
    more = [("--variables", _list(used) or "none"), *([("--by", _list(by))] if by else [])]
    return audit_again(record, _typed(more), without=["--variables", "--by", "--intersections"])


def by_fewer(record: AuditRecord, names: Sequence[str]) -> str:
    """The audit again with these group columns alone, none crossed, cut as they were; empty where no command can."""
    edges = [("--bins", f"{name}={','.join(map(_edge, at))}") for name, at in cuts(record).items() if name in names]
    more = _typed([("--by", _list(names)), *edges])
    return audit_again(record, more, without=["--by", "--bins", "--intersections"])


def _reading(record: AuditRecord, what: str, options: Collection[str], more: Sequence[str] = ()) -> str:
    """A command that reads the same data in the same way, with the options that it takes."""
    start = _start(record, what)
    if not start:
        return ""
    flags = _flags(record) if what == "look" else _of_one_horizon(record)
    kept = [(k, v) for k, v in flags if k in options and DEFAULTS.get(k) != v]
    switched = [k for k in _switched(record) if k in options]
    return _finished(record, [start, *_typed(kept), *switched, *more])


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


def within_levels(record: AuditRecord, names: Sequence[str]) -> str:
    """The option that gives each level of more columns a law of its own of being followed."""
    kept = [record.data["horizon"].get("within"), _list(names)]
    return _typed([("--within", ",".join(filter(None, kept)))])[0]


def by_clusters(column: str) -> list[str]:
    return _typed([("--cluster", _list([column]))])


def by_groups(columns: Sequence[str]) -> str:
    """The option that names columns as groups."""
    return " ".join(_typed([("--by", _list(columns))]) + ["--intersections"] * (len(columns) > 1))


def _rows_in_python(record: AuditRecord, name: str) -> str:
    """The rows of a group of categories; of other groups and subgroups the error along their first variable."""
    kinds, group = described(record), next((f for f in record.groups if label(f) == name), None)
    of = () if group is None else group.variables
    plain = [k for k, v in of if kinds.get(k, {}).get("kind") == "category" and not kinds[k].get("folded")]
    if of and len(plain) == len(of) and not arrays(record):
        return rows_where(of)
    c = record.curve("subgroups")
    rules = dict(zip(c.columns.get("rule", ()), c.settings.get("conditions", ()), strict=True))
    variable = of[0][0] if of else str(rules[name][0]["variable"])
    made = _classes_in_python(record, [variable], project=True) if record.data.get("classes") else ""
    kept = [(k, v) for k, v in _of_one_horizon(record) if k in READING and DEFAULTS.get(k) != v]
    return call("audit", _typed(kept), arrays(record), variable, made)


def from_python(record: AuditRecord) -> bool:
    """Whether the data came as arrays or as a frame, so that what is to be typed is Python."""
    return not listed(record.data.get("sources") or record.data.get("files")) and not _untypable(record, ())


def arrays(record: AuditRecord) -> bool:
    """Whether the data were `Predictions`."""
    return (record.data.get("label"), record.data.get("score")) == ARRAYS


def _finished(record: AuditRecord, words: Sequence[str]) -> str:
    """A command on as few lines as hold it; in Python the call."""
    if not from_python(record):
        return _wrapped(words)
    what = words[0].split()[1]
    several = what == "plan" and record.data.get("classes")
    rows = _classes_in_python(record, _group_columns(record), project=True) if several else ""
    if several and not rows:
        return ""
    made = call(what, words[1:], arrays(record), made=rows)
    named = None if record.data.get("cluster") else arguments(words[1:]).get("cluster")
    if not arrays(record) or named in (None, in_code("none")):
        return made
    return f"{_clustered(record, json.loads(str(named)))}\n{made}" if record.data.get("missing") != "keep" else ""


def _clustered(record: AuditRecord, column: str) -> str:
    """The line that makes `Predictions` again, with clusters: those of a covariate, or of several together."""
    table = f"{DATA}.covariates"
    tested = record.curve("dependence").columns.get("columns", ())
    names = next((names for names in tested if "+".join(names) == column), (column,))  # an option joins them
    texts = [f"{table}[{in_code(name)}]" for name in names]
    cluster = texts[0] if len(texts) == 1 else f"[*zip({', '.join(f'map(str, {text})' for text in texts)})]"
    passed = {"weights": f"{DATA}.weights"} if record.data.get("weights") else {}
    return f"{DATA} = " + called("cal.predictions", passed | {"cluster": cluster}, f"{DATA}.y, {DATA}.p, {table}")


def _audit_words(record: AuditRecord, flags: Sequence[tuple[str, object]]) -> list[str]:
    start = _start(record, "audit")
    return [start, *_typed(flags), *_switched(record)] if start else []


def _switched(record: AuditRecord) -> list[str]:
    """The options without a value, of the audit and of its data."""
    data, s = record.data, record.settings
    switches = {"intersections": any(len(b) > 1 for b in groupings(record))}
    switches |= {name: bool(data.get(name)) for name in ("percent", "logits", "renormalize", "rest")}
    switches |= {name: s[name] is True for name in dict.fromkeys(("quick", "publish", "allow_same", *s)) if name in s}
    return [f"--{name.replace('_', '-')}" for name, wanted in switches.items() if wanted and name not in STATED]


def _start(record: AuditRecord, what: str) -> str:
    """The command and its files; empty where the command line cannot name all that was audited."""
    sources = listed(record.data.get("sources") or record.data.get("files"))
    if from_python(record):
        return f"calibrant {what} {DATA}"
    if not sources or _untypable(record, sources):
        return ""
    paths = (f"./{x}" if x.startswith("-") and x != "-" else x for x in sources)
    return sanitize(f"calibrant {what} {' '.join(map(shlex.quote, paths))}")


def _typed(flags: Sequence[tuple[str, object]]) -> list[str]:
    """Write options with their values as a shell reads them."""
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
    """Write names as an option takes them, in quotes those that would be read as something else; None for none."""
    return ",".join('"' + n.replace('"', '""') + '"' if _odd(n) else n for n in names) or None


def _plain(value: object) -> object:
    """The value of an option that is typed as it is: names and numbers as a list of them."""
    if isinstance(value, str) or not isinstance(value, Sequence):
        return value
    return _list([str(each) for each in value])


def _odd(name: str) -> bool:
    return not name or name != name.strip() or "," in name or name.startswith('"')


def _flags(record: AuditRecord) -> list[tuple[str, object]]:
    """Every option with a value that changes the result, but those that were not given."""
    data, s, family = record.data, record.settings, record.curve("horizons").settings  # which has the alpha of all
    options = s.get("variables", (EVERY,))
    several = bool(data.get("classes"))  # then columns or a pattern, joined as they are typed
    flags: list[tuple[str, object]] = [
        (f"--{k}", _list([v]) if not several and "," in (v := data.get(k) or "") else data.get(k))
        for k in ("label", "score")
    ]
    if of := data.get("horizon"):
        every, scores = family.get("horizons") or (of["horizon"],), _list(family.get("scores") or ()) or flags[1][1]
        flags = [(f"--{k}", of[k]) for k in ("time", "event")] + [("--horizon", ",".join(map("{:g}".format, every)))]
        flags += [("--score", scores), *((f"--{k}", of[k]) for k in ("entered", "closed", "competing"))]
        ways = family.get("ways", (of["way"],))
        flags += [("--way", next((how for how in ways if how != "followed"), None)), ("--within", of.get("within"))]
    flags += [("--horizon", NONE)] if s.get("final") else []
    flags += [("--listed", data.get("listed"))]
    flags += [("--ordered", _list([*data["classes"]]) if data.get("ordered") and not arrays(record) else None)]
    positive = (of or data).get("positive")
    flags += [("--positive", positive), ("--key", _list(listed(data.get("key"))))]
    clusters = list(data.get("two_way") or ()) or [*listed(data.get("cluster")), *(data.get("nested") or ())]
    flags += [
        ("--cluster", _list(clusters) or ("none" if s.get("independent") else None)),
        ("--weights", data.get("weights")),
    ]
    flags += [("--by", _list(_group_columns(record)))]
    ways = data.get("missing") if not of and data.get("missing") in ("refuse", "keep") else None
    flags += [("--missing", ways or ("drop" if drops_missing(data) else None))]
    flags += [("--bins", f"{name}={','.join(map(_edge, edges))}") for name, edges in cuts(record).items()]
    flags += [("--allow", _list(listed(s.get("allow"))))]
    flags += [("--variables", None if tuple(options) == (EVERY,) else _list(options) or "none")]
    relative = s.get("limit_relative")
    flags += [("--limit", s.get("limit") if relative is None else None), ("--limit-relative", relative)]
    flags += [("--limit-classes", s.get("limit_classes")), ("--against", s.get("against"))]
    flags += [(f"--{k}", {**s, **family}.get(k)) for k in ("steps", "alpha", "tolerance", "seed")]
    flags += [("--missing-odds", s.get("missing_odds") if data.get("missing") == "keep" else None)]
    flags += [("--mask", "none" if s["mask"] is None else s["mask"] if s["mask"] != MASK else None)]
    flags += [("--fail-on", ",".join(listed(s.get("fail_on"))) or None)]
    costs, acting = (",".join(f"{v!r}" for v in s.get(k) or ()) or None for k in ("costs", "threshold"))
    flags += [("--costs", costs), ("--threshold", None if costs else acting)]
    flags += [("--infer", _list(listed(s.get("infer"))))]
    flags += [
        ("--judge", judge if (judge := {**s, **family}["judge"]) != "auto" else None),
        ("--target", s.get("target")),
    ]
    worded = {flag for flag, _ in flags}
    every = {f"--{k.replace('_', '-')}": v for k, v in s.items() if k not in WORDED and not isinstance(v, bool)}
    flags += [(flag, _plain(v)) for flag, v in every.items() if flag not in worded]
    flags += [(f"--{k}", v) for k, v in (s.get("form") or {}).items()]
    if from_python(record):  # where each word is an argument
        flags += [(f"--{k.replace('_', '-')}", v) for k, v in _words(record).items()]
    else:
        flags += [("--about", ABOUT if _words(record) else None)]
    return [(flag, value) for flag, value in flags if value is not None]


def _of_one_horizon(record: AuditRecord) -> list[tuple[str, object]]:
    """The same for what takes one horizon: of several that which the record is about."""
    of, own = record.data.get("horizon"), {}
    if of and record.curve("horizons").columns:
        way = of["way"] if of["way"] != "followed" else None
        own = {"--horizon": f"{of['horizon']:g}", "--score": _list([record.data["score"]]), "--way": way}
    kept = ((flag, own.get(flag, value)) for flag, value in _flags(record))
    return [(flag, value) for flag, value in kept if value is not None]


def wording(record: AuditRecord) -> str:
    """The file of words that the command names, as lines of TOML; empty where it names none."""
    return "" if from_python(record) else "\n".join(toml_line(k, v) for k, v in _words(record).items())


def _words(record: AuditRecord) -> dict[str, str]:
    """The words of the report that are not the default."""
    s, files = record.settings, listed(record.data.get("files"))
    named_after_file = len(files) == 1 and files[0].split(".")[0] == record.name
    usual = asdict(About()) | ({"noun": noun} if (noun := record.data.get("noun")) else {})
    words = {k: v for k, v in s["about"].items() if v != usual[k]}
    unnamed = named_after_file or (record.name == DATA and from_python(record))
    words |= {"outcome": s.get("outcome"), "name": None if unnamed else record.name, "date": s.get("date")}
    return {k: str(v) for k, v in words.items() if v is not None}


def toml_line(name: str, words: str) -> str:
    return f"{name} = {json.dumps(words, ensure_ascii=False)}".replace("\x7f", "\\u007f")


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


def described(record: AuditRecord) -> Mapping[str, Mapping[str, Any]]:
    """How each group variable was read: its kind, its edges, and how many values share one level."""
    values: Mapping[str, Mapping[str, Any]] = record.data.get("variables") or {}
    return values


def cuts(record: AuditRecord) -> dict[str, Sequence[float]]:
    return {name: d["edges"] for name, d in described(record).items() if d.get("edges")}


def listed(value: object) -> list[str]:
    """Notes, sources or columns as a list of text, however the record holds them."""
    if isinstance(value, Mapping):
        return [f"{k}: {v}" for k, v in value.items()]
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [str(v) for v in value]
    return [] if value is None or value == "" else [str(value)]
