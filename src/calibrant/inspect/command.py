"""The audit to run, as a command that a shell takes as it is, or as a call of Python where the data is no file."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import fields, replace

from calibrant.arguments import COMMAND, TAB
from calibrant.data.reading import FORM, INDEPENDENT, Reading
from calibrant.data.sources.source import Log
from calibrant.data.sources.standard_input import STDIN
from calibrant.data.specs.options import BY_NUMBER, NONE
from calibrant.data.survey import EVERY
from calibrant.inspect.looked import Column

REPORT = "audit.html"
OUTCOME, SCORE = "OUTCOME", "SCORE"  # stand for a column that the look cannot tell
HORIZON = "H"  # stands for a time that nobody but whoever asks can tell


def command(files: Sequence[str], options: Reading, sql: str = "") -> str:
    """The command for files or a query and, for anything else, the call."""
    return _written(files, ({"sql": sql} if sql else {}) | _options(options), sql)


def with_horizon(files: Sequence[str], options: Reading, time: str, sql: str = "") -> str:
    """The same for a label that is an event seen by the end of follow-up: of the outcome by a horizon."""
    own = _options(options)
    made = {"time": time, "event": own.pop("label"), "horizon": HORIZON}
    return _written(files, ({"sql": sql} if sql else {}) | made | own, sql)


def with_grades(files: Sequence[str], options: Reading, grade: str) -> str:
    """The command that validates PDs by grade, or the call."""
    kept = ("positive", "percent", "missing", "allow_same", *FORM)
    one = {k: v for k, v in _options(options).items() if k in ("label", "score", *kept)}
    if files:
        return " ".join(["calibrant grades", *map(shlex.quote, files), as_typed(one | {"grade": grade}, True)])
    read = as_typed(one | {"by": grade}, False)
    return f"calibrant.grades(calibrant.read(data, {read}), grade={grade!r})"


def of_sketch(files: Sequence[str]) -> str:
    """The command for sketches, or the call: they bring their own columns, groups and seed."""
    return _written(files, {})


def typed(options: Reading, names: Collection[str]) -> list[str]:
    """Those of some options that differ from the default, as they are typed."""
    return [typed_option(name, value) for name, value in _options(options).items() if name in names]


def as_typed(options: Mapping[str, object], command: bool) -> str:
    """Some options as a command or a call takes them, whether or not they differ from the default."""
    if command:
        return " ".join(typed_option(name, value) for name, value in options.items())
    return ", ".join(f"{name}={_python(value)}" for name, value in options.items())


def _written(files: Sequence[str], options: Mapping[str, object], sql: str = "") -> str:
    if not files and not sql:
        reported = ", ".join(["data", *(f"{k}={_python(v)}" for k, v in options.items())])
        return f"calibrant.audit({reported})"
    words = [f"./{f}" if f.startswith("-") and f != STDIN else f for f in files]
    return " ".join(["calibrant audit", *map(shlex.quote, words), *map(typed_option, options, options.values())]) + (
        f" -o {REPORT}"
    )


def _options(request: Reading) -> dict[str, object]:
    """What differs from what an audit does by itself."""
    options: dict[str, object] = {
        "label": request.labels or request.label or OUTCOME,
        "score": request.scores or request.score or SCORE,
    }
    at = request.at
    if at is not None:
        made: dict[str, object] = {
            "time": at.time,
            "event": at.event,
            "horizon": ",".join(map("{:g}".format, at.family or (at.horizon,))),
            "positive": at.positive,
        }
        made |= {"entered": at.entered or None, "closed": at.closed or None, "competing": at.competing or None}
        scores = tuple(dict.fromkeys(at.scores))
        made |= {"way": at.way if at.way != "followed" else None, "within": at.within or None}
        made |= {"score": options["score"] if len(scores) < 2 else at.scores}
        options = {name: value for name, value in made.items() if value is not None}
        options |= {} if request.caller.command else {"horizon": at.family or at.horizon}
    inputs = {
        "horizon": NONE if request.final else None,
        "positive": request.positive,
        "percent": request.percent or None,
        "logits": request.logits or None,
        "renormalize": request.renormalize or None,
        "listed": request.listed or None,
        "rest": request.rest or None,
        "ordered": request.ordered == BY_NUMBER or request.ordered or None,
        "missing": request.missing if request.missing != "level" and (at is None or at.complete) else None,
        "by": request.by or None,
        "key": request.key or None,
        "cluster": request.levels or request.cluster or (INDEPENDENT if request.independent else None),
        "weights": request.weights or None,
        "variables": request.variables if request.variables != ("*",) else None,
        "allow": request.allow or None,
        "bins": {k: tuple(v) for k, v in request.bins.items()} or None,
        "intersections": request.intersections or None,
        "allow_same": request.allow_same or None,
        "seed": request.seed or None,
    }
    inputs |= {f.name: getattr(request.form, f.name) or None for f in fields(request.form)}
    return options | {name: value for name, value in inputs.items() if value is not None}


def _python(value: object) -> str:
    if isinstance(value, tuple):
        return repr(value[0]) if len(value) == 1 else repr(list(value))
    return repr(value)


def typed_option(option: str, value: object) -> str:
    """One option as it is typed."""
    flag = COMMAND.name(option)
    if value is True:
        return flag
    if isinstance(value, dict):
        return " ".join(typed_option(option, f"{k}={','.join(map(_edge, v))}") for k, v in value.items())
    text = ",".join(map(_listed, value)) or "none" if isinstance(value, tuple) else str(value)
    text = TAB if (option, text) == ("delimiter", "\t") else text
    return f"{flag}={shlex.quote(text)}" if text.startswith("-") else f"{flag} {shlex.quote(text)}"


def _edge(edge: float) -> str:
    """An edge, short where that is the same number."""
    return f"{edge:g}" if float(f"{edge:g}") == edge else repr(edge)


def _listed(name: str) -> str:
    """A name as lists of names take it: in quotes where a comma, a quote or a space at its ends is in it."""
    plain = name == name.strip() and "," not in name and not name.startswith('"') and name
    return name if plain else '"' + name.replace('"', '""') + '"'


# ---- the log of an evaluation: right or wrong, how sure, and what explains nothing ----


KEPT = ("positive", "percent", "allow_same", *FORM)  # of the audit's options, in the command that compares


def with_parts(options: Reading, log: Log) -> Reading:
    """What was asked, with the label and the confidence of the log where none was named."""
    score = options.score or next((name for name, _ in log.confidences), "")
    return replace(options, label=options.label or log.label, score=score)


def mended(options: Reading, log: Log, columns: Sequence[Column], rows: int) -> Reading:
    """The audit of a log: its clusters are questions, where answers share one."""
    if not log.tool:
        return options
    question = next((c for c in columns if c.name == log.question), None)
    shared = question is not None and (question.distinct or rows) < rows
    shared = shared and not options.levels and options.missing != "keep"
    cluster = options.cluster or (log.question if shared else "")
    verdicts, variables = {*log.verdicts} - {options.label}, options.variables
    if verdicts and EVERY in variables:
        left = {options.label, options.score, cluster, log.question, *verdicts, *options.key}
        variables = tuple(c.name for c in columns if c.name not in left and c.role != "left out")
    return replace(options, cluster=cluster, variables=variables)


def facts(log: Log, files: Sequence[str], planned: Reading) -> Mapping[str, object]:
    """What a log is, and the command that compares its confidences if there are several."""
    names = tuple(name for name, _ in log.confidences)
    words = ["calibrant compare", *map(shlex.quote, files)]
    words += [typed_option("label", planned.label), typed_option("score", names)]
    words += [typed_option("cluster", (planned.cluster,))] if planned.cluster == log.question else []
    words += typed(planned, KEPT)
    several = len(log.confidences) > 1 and bool(planned.label) and bool(files)
    return {
        "tool": log.tool,
        "confidences": dict(log.confidences),
        "noun": log.noun,
        "unfinished": log.unfinished,
        "compare": " ".join(words) if several else "",
    }
