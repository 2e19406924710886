"""What a look says: a table of the columns, a sentence for each thing to know, and the command to run."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Sequence

from calibrant.data.sources.inferred_types import FIXES
from calibrant.data.specs.column_names import of_column
from calibrant.data.specs.follow_up import BACKWARDS
from calibrant.inspect.command import HORIZON, typed_option
from calibrant.inspect.looked import NO_NUMBER, UNLABELLED, WEIGHTLESS, Column, Look
from calibrant.inspect.roles import called
from calibrant.report import numbers as num
from calibrant.report.outputs.plans import counts_of
from calibrant.report.spans import one_stop
from calibrant.report.terminal import aligned, cells, clip, pad, wrap
from calibrant.report.wording.notices import MEANS, UNFINISHED
from calibrant.report.wording.terms import joined
from calibrant.results import Curve
from calibrant.sanitize import as_message, quote_blank, sanitize

WIDTH = 80
NAME, KIND, HOLDS = 24, 14, 29  # cells of the table's columns, at most
MOST = 40  # columns in the table; of more, those that matter come first
VALUES = 3  # values of a category
LISTED = 4  # columns in a sentence
LIST_ALL = "`calibrant plan --data` lists any groups and limit."
OWN = "label", "score", "key", "weights", "cluster"  # roles that say more than the kind
SPELT = 24  # cells of a value
GROUPED, LARGE = 10_000, 1e15  # whole numbers are written with spaces, and as powers of ten, from here on


# ---- the whole ----


def written(seen: Look) -> str:
    """The look for a terminal of 80 columns, without colour codes."""
    blocks = ["\n".join(wrap(_heading(seen), "", WIDTH)), "\n".join(_table(seen))]
    reported = [line for lead, text in sentences(seen) for line in _item(lead, text)]
    blocks += ["\n".join(reported)] if reported else []
    blocks += ["\n".join(_decided(seen.decides))] if seen.decides is not None else []
    blocks += ["\n".join(_in_the_way(seen))] if seen.refusals else []
    if seen.command:
        blocks.append(f"{_run(seen)}\n" + "\n".join(f"  {line}" for line in typed(seen.command)))
    return "\n\n".join(blocks)


def brief(seen: Look) -> str:
    """The look in ten lines or fewer."""
    kinds = ", ".join(f"{n} {kind}" for kind, n in Counter(c.kind for c in seen.columns).most_common())
    lines = [_heading(seen), f"columns: {kinds}"]
    lines += [f"{lead.lower()}: {text}" for lead, text in list(sentences(seen))[:5]]
    if seen.refusals:
        lines.append(f"in the way: {sanitize(seen.refusals[0])}")
        lines += [f"and {len(seen.refusals) - 1} more in the way"] if len(seen.refusals) > 1 else []
    lines += [f"run: {sanitize(seen.command)}"] if seen.command else []
    return "\n".join(clip(line, 4 * WIDTH) for line in lines)


def html(seen: Look) -> str:
    from jinja2 import Environment, StrictUndefined

    template = Environment(undefined=StrictUndefined, autoescape=True).from_string(HTML)
    return template.render(
        heading=_heading(seen),
        heads=("Column", "Interpreted as", "Missing", "Holds"),
        rows=[_cells(c, seen) for c in seen.columns[: 10 * MOST]],
        more=len(seen.columns) - 10 * MOST,
        reported=[(lead, as_message(text)) for lead, text in sentences(seen)],
        decides=None if seen.decides is None else _decides_parts(seen.decides),
        refusals=[as_message(r) for r in seen.refusals],
        run=_run(seen),
        command=sanitize(seen.command),
    )


HTML = """\
<div><p><strong>{{ heading }}</strong></p>
<table><thead><tr>{% for h in heads %}<th style="text-align:left">{{ h }}</th>{% endfor %}</tr></thead>
<tbody>{% for row in rows %}<tr>{% for c in row %}<td style="text-align:left">{{ c }}</td>{% endfor %}</tr>
{% endfor %}</tbody></table>
{% if more > 0 %}<p>and {{ more }} more columns: to_frame() has all</p>{% endif %}
{% if decides %}<p>{{ decides[0] }}</p>
<table><tbody>{% for row in decides[1] %}<tr>{% for c in row %}<td style="text-align:left">{{ c }}</td>{% endfor %}</tr>
{% endfor %}</tbody></table><p>{{ decides[2] }}</p>{% endif %}
<ul>{% for lead, text in reported %}<li><strong>{{ lead }}</strong>: {{ text }}</li>{% endfor %}</ul>
{% if refusals %}<p>In the way:</p><ol>{% for r in refusals %}<li>{{ r }}</li>{% endfor %}</ol>{% endif %}
{% if command %}<p>{{ run }}</p><pre>{{ command }}</pre>{% endif %}</div>"""


def short(seen: Look) -> str:
    """The look for the first moments of an audit: how it reads, what is to know, and all that is in the way."""
    lines = wrap(_heading(seen), "", WIDTH)
    for lead, text in sentences(seen):
        lines += _item(lead, text) if lead != "Groups" else []
    return "\n".join([*lines, *_in_the_way(seen)])


def _in_the_way(seen: Look) -> list[str]:
    lines = ["In the way:"] if seen.refusals else []
    for i, refusal in enumerate(seen.refusals, 1):
        lines += wrap(sanitize(refusal), f"{i:>3}. ", WIDTH)
    return lines


# ---- its pieces ----


def _heading(seen: Look) -> str:
    columns = f"{num.count(len(seen.columns))} column{'s' * (len(seen.columns) != 1)}"
    name = clip(sanitize(seen.name), NAME)
    if seen.holds == "sketch":
        return f"{name}: a sketch of {num.count(seen.rows_read)} rows, {columns}"
    if seen.whole:
        return f"{name}: {num.count(seen.rows_read)} rows, {columns}; every row was read"
    exact = ", missing values of all" if any(c.missing_in_all is not None for c in seen.columns) else ""
    of = f" of {num.count(seen.rows)}" if seen.rows is not None else ""
    return f"{name}: {columns}; {num.count(seen.rows_read)}{of} rows were read; counts are of these{exact}"


def _table(seen: Look) -> Iterator[str]:
    order = sorted(range(len(seen.columns)), key=lambda i: (_weight(seen.columns[i], seen), i))
    kept = [seen.columns[i] for i in order[:MOST]]
    rows = [("column", "interpreted as", "missing", "holds"), *(_cells(c, seen) for c in kept)]
    wide = [min(max(cells(r[i]) for r in rows), most) for i, most in enumerate((NAME, KIND, 15))]
    rest = WIDTH - sum(wide) - 8
    for i, row in enumerate(rows):
        yield (
            "  "
            + "  ".join([*(pad(clip(t, w), w) for t, w in zip(row, wide, strict=False)), clip(row[3], rest)]).rstrip()
        )
        if not i:
            yield "  " + "-" * (WIDTH - 2)
    if more := [seen.columns[i] for i in order[MOST:]]:
        kinds = ", ".join(f"{n} {kind}" for kind, n in Counter(c.kind for c in more).most_common())
        yield f"  and {num.count(len(more))} more columns ({kinds}); --json has all"


def _weight(c: Column, seen: Look) -> int:
    """Put label and score first, and where not all can be shown, the columns of interest before the others."""
    first = {"label": 0, "score": 1}.get(c.role, 2)
    if first < 2 or len(seen.columns) <= MOST:
        return first
    offered = {name for names in seen.candidates.values() for name in names}
    return 2 if c.role in ("group", "key") else 3 if c.name in offered else 4 if c.of_kind.identifies else 5


def _cells(c: Column, seen: Look) -> tuple[str, str, str, str]:
    likely = "cluster" if c.name in seen.candidates.get("cluster", ()) else c.kind
    interpreted = c.role if c.role in OWN else likely
    return sanitize(c.name) or "(no name)", interpreted, _missing(c, seen), sanitize(_holds(c))


def _missing(c: Column, seen: Look) -> str:
    if (seen.holds == "sketch" and c.role != "group") or (c.kind == "unusable" and not c.stored):  # was not read
        return "-"
    if c.missing_in_all is not None and seen.rows is not None:
        return part_of(c.missing_in_all, seen.rows) if c.missing_in_all else "none"
    return part_of(c.missing, seen.rows_read) if c.missing else "none"


def part_of(n: int, rows: int) -> str:
    """Write a number of rows with its share: "1,204 (1.2%)"."""
    share = 100 * n / max(rows, 1)
    reported = "all" if n == rows else "<0.1%" if share < 0.1 else ">99.9%" if share > 99.9 else f"{share:.1f}%"
    return f"{num.count(n)} ({reported})"


def rows_of(n: int, rows: int) -> str:
    """Write a number of rows with its share: "1,204 rows (1.2%)"."""
    count, share = part_of(n, rows).split(" ")
    return f"{count} row{'' if n == 1 else 's'} {share}"


def _holds(c: Column) -> str:
    if c.kind == "unusable":
        return c.stored or "not read"
    if c.kind == "empty":
        return "nothing"
    if c.role == "cluster" and c.distinct is not None:
        return f"{num.count(c.distinct)} different"  # clusters are people, whom no one names
    if c.frequent and (c.role == "label" or c.of_kind.listed):
        kept = LISTED if c.role == "label" else VALUES
        shown = [
            clip(quote_blank(v), SPELT) + (f" {num.count(n)}" if c.role == "label" else "")
            for v, n in c.frequent[:kept]
        ]
        more = (c.distinct or 0) - len(shown)
        return ", ".join(shown) + (f" and {num.count(more)} more" if more > 0 else "")
    if c.of_kind.names and c.distinct is not None:
        return f"{num.count(c.distinct)} different"
    if c.low is not None and c.high is not None:
        return f"{_end(c.low)} to {_end(c.high)}"
    return f"{num.count(c.distinct)} different" if c.distinct else ""


def _end(value: float | str) -> str:
    """Write an end of a range: dates as they are, whole numbers whole, others to four digits."""
    if isinstance(value, str):
        return value
    if abs(value) < LARGE and (value == round(value) or abs(value) >= GROUPED / 10):
        return num.count(value) if abs(value) >= GROUPED else f"{value:.0f}".replace("-", num.MINUS)
    return f"{num.MINUS if value < 0 else ''}{abs(value):.4g}"


# ---- sentences ----


def sentences(seen: Look) -> Iterator[tuple[str, str]]:
    return ((lead, one_stop(text)) for lead, text in _sentences(seen))


def _sentences(seen: Look) -> Iterator[tuple[str, str]]:
    rows, kept = seen.rows_read, {c.name: c for c in seen.columns}
    if seen.holds == "sketch":
        yield from _of_sketch(seen)
    yield from _of_log(seen)
    if "encoding-guessed" in seen.warnings:
        yield "Encoding", _encoding(seen)
    if seen.label in kept and seen.label_values:
        yield "Label", _label(seen)
    if seen.score in kept and seen.holds == "rows":
        yield "Score", _score(seen, kept[seen.score])
    yield from _of_classes(seen)
    if grades := seen.settings.get("grades"):
        yield "Grades", f"{sanitize(grades)} validates the PDs by grade."
    yield from _of_missing(seen)
    if seen.repeats:
        same = "Where columns take few values chance does that; copies would count twice, and the audit says which."
        which = "every column" if all(c.stored for c in seen.columns) else "every column that was read"
        equal = "equals" if seen.repeats == 1 else "equal"
        yield "Repeated", f"{rows_of(seen.repeats, rows)} {equal} an earlier one in {which}. {same}"
    yield from _of_columns(seen)


# ---- what so many rows can decide ----


def _decides_parts(plan: Curve) -> tuple[str, list[tuple[str, ...]], str]:
    """What the table is about, the table, and what it leaves out."""
    level = f"{100 * plan.settings['power']:g}%"
    about = (
        f"If scores are right, these rows show with probability {level} that a gap or error is at most these points:"
    )
    return about, _decides_rows(plan), _others(plan)


def _decided(plan: Curve) -> list[str]:
    about, rows, others = _decides_parts(plan)
    table = aligned([(clip(row[0], 34), *row[1:]) for row in rows])
    return [*wrap(about, "", WIDTH), "", *(f"  {line}" for line in table), "", *wrap(others, "", WIDTH)]


def _decides_rows(plan: Curve) -> list[tuple[str, ...]]:
    """A row each of everyone and of the largest and smallest groups, below the heads."""
    counts = counts_of(plan)
    rows = [("", *counts, "gap within", "error within")]
    for i, name in enumerate(plan.columns["group"]):
        sizes = [plan.columns[k][i] for k in counts]
        ends = [plan.columns[k][i] for k in ("gap_within", "error_within")]
        limits = ("no limit" if end >= 1.0 else num.upper_bound(end) for end in ends)
        rows.append((sanitize(name), *map(num.count, sizes), *limits))
    return rows


def _others(plan: Curve) -> str:
    count, shown = plan.settings["groups"], len(plan.columns["group"]) - 1
    if not shown:
        return LIST_ALL
    more = f"; the other {num.count(count - shown)} lie between" if count - shown > 1 else ""
    more = "; the other one lies between" if count - shown == 1 else more
    return f"{num.count(count)} group{'s are judged together' if count != 1 else ' is judged'}{more}. {LIST_ALL}"


def _encoding(seen: Look) -> str:
    texts = [t for c in seen.columns for t in (c.name, *(v for v, _ in c.frequent)) if not t.isascii()]
    such = f", as in {_names(list(dict.fromkeys(texts))[:VALUES])}" if texts else ""
    return f"not UTF-8, so read as {seen.settings['encoding']}{such}. If that reads wrong, pass the right --encoding."


def _of_log(seen: Look) -> Iterator[tuple[str, str]]:
    log = seen.settings.get("log")
    if not log:
        return
    results = [(sanitize(name), sanitize(field)) for name, field in log["confidences"].items()]
    reported = [f"{name} from {field} ({MEANS[of_column(name)]})" for name, field in results]
    yield "Log", f"{sanitize(log['tool'])}: {'; '.join(reported)}." if reported else f"{sanitize(log['tool'])}."
    if log.get("unfinished"):
        yield "Partial", f"{'; '.join(map(sanitize, log['unfinished']))}. {UNFINISHED}"
    if log["compare"]:
        yield "Several", f"{sanitize(log['compare'])} compares them."


def _of_classes(seen: Look) -> Iterator[tuple[str, str]]:
    if classes := seen.candidates.get("classes"):
        truth = seen.candidates.get("truth") or ()
        says = "says" if len(truth) == 1 else "say"
        which = f"{_names(truth)} {says} which was true" if truth else "no column says which was true"
        yield (
            "Classes",
            f"{_names(classes)} are of {len(classes)} classes; {which}. None of them is proposed as a group.",
        )


def _of_missing(seen: Look) -> Iterator[tuple[str, str]]:
    """Yield how many rows lack label or score, and what can be done about them."""
    rows, gone, keeps = seen.rows_read, dict(seen.dropped), seen.settings.get("missing") == "keep"
    if zero := gone.pop(WEIGHTLESS, 0):
        yield (
            "Left out",
            f"{sanitize(str(seen.settings['weights']))} is 0 in {rows_of(zero, rows)}, left out.",
        )
    unlabelled = gone.get(UNLABELLED, 0)
    if keeps:  # then they are left out nowhere
        gone.pop(UNLABELLED, 0)
    if lost := sum(gone.values()):
        why = ", ".join(f"{num.count(n)} {reason}" for reason, n in gone.items())
        left = "were left out" if seen.holds == "sketch" else "would be left out with --missing drop"
        left = left.replace("were", "was") if lost == 1 else left
        first = f" First: {sanitize(seen.first_dropped)}." if seen.first_dropped else ""
        yield "Dropped", f"{rows_of(lost, rows)} {left}: {why}.{first}"
    if not unlabelled:
        return
    if keeps:
        of = rows + unlabelled if seen.holds == "sketch" else rows
        yield (
            "Kept",
            f"{rows_of(unlabelled, of)} without a label: counted apart; the report shows what they could change.",
        )
        return
    dependent = any(seen.settings.get(name) for name in ("cluster", "weights"))  # with these nothing is kept
    several = bool(seen.candidates.get("classes")) and not seen.score
    if not dependent and not several and not any("score" in why for why in gone):
        without = "1 row" if unlabelled == 1 else f"{num.count(unlabelled)} rows"
        keep = f"--missing keep, in place of drop, counts the {without} without a label apart"
        yield "Or keep", f"{keep} and reports what they could change."


def _shared(seen: Look, columns: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield which columns rows share, where nobody named the cluster or declared rows independent."""
    if names := next(iter(seen.one_outcome), ()):
        option = sanitize(typed_option("cluster", ("+".join(names),)))
        label = sanitize(seen.label)
        text = (
            f"All rows of one {_names(names)} have one {label}: one outcome seen many times, so {option}; or made from"
        )
        yield "Clusters", f"{text} the outcome, so leave it out. Labels were compared with columns, and with no score."
    elif columns:
        option, both = (sanitize(typed_option("cluster", columns[:k])) for k in (1, 2))
        more = f" With {both} both count: the coarser, or the worse of two that cross." if len(columns) > 1 else ""
        yield "Clusters", f"Rows share {_names(columns)}: without {option} ranges assume independent rows.{more}"


def _of_columns(seen: Look) -> Iterator[tuple[str, str]]:
    free = {role: names for role, names in seen.candidates.items() if not seen.settings.get(role)}  # of parts unnamed
    if "cluster" in free:
        yield from _shared(seen, free["cluster"])
    if weights := free.get("weights"):
        name, option = sanitize(weights[0]), sanitize(typed_option("weights", weights[0]))
        yield "Weights", f"Does {name} say how many people a row stands for? Without {option} every row counts once."
    yield from _unread(seen)
    if out := [c.name for c in seen.columns if c.role == "left out" and c.of_kind.identifies]:
        yield "Left out", f"{_names(out)}: {'looks like an identifier' if len(out) == 1 else 'look like identifiers'}."
    if single := [c.name for c in seen.columns if c.role == "left out" and c.kind in ("constant", "empty")]:
        yield "Left out", f"{_names(single)}: one value only, or none."
    yield from _of_outcome(free.get("outcome", ()))
    if output := free.get("output"):
        yield "Output", f"{_names(output)}: also a model's output? Name --variables to leave it out."
    if groups := free.get("by"):
        yield "Groups", f"--by could name {_names(groups)}. Choose before you see results."
    if len(ends := free.get("horizon", ())) == 2:
        yield "Follow-up", _of_follow_up(ends, free.get("lost", ()))
    if "words-for-missing" in seen.warnings:
        yield "Words", "Texts such as NA or ? are levels of their own."


def _unread(seen: Look) -> Iterator[tuple[str, str]]:
    """Yield what was not read, and what was read as text though it may be numbers or dates."""
    lost = [c for c in seen.columns if c.kind == "unusable" and not c.stored and c.why not in ("", *seen.refusals)]
    for why in list(dict.fromkeys(c.why for c in lost))[:LISTED]:
        yield "Not read", f"{_names([c.name for c in lost if c.why == why])}: {sanitize(why)}."
    marked = {c.name: fix for c in seen.columns for why, fix in FIXES.items() if c.why.endswith(f": {why}")}
    marked |= {c.name: "Write a number there, or leave it empty" for c in seen.columns if f": {NO_NUMBER}" in c.why}
    for c in [c for c in seen.columns if c.name in marked and c.role not in ("label", "score")][:LISTED]:
        yield "Text", f"{sanitize(c.name)}: {sanitize(c.why)}. {marked[c.name]}."


def _of_follow_up(ends: Sequence[str], lost: Sequence[str]) -> str:
    """What columns look like follow-up, how many rows a label of events seen would miscount, and what to write."""
    option = sanitize(" ".join(map(typed_option, ("time", "event"), ends)))
    text = f"{_names(ends)} look like follow-up: whoever was lost early is no non-event. "
    if len(lost) == 2 and int(lost[0]):
        of = f"{num.count(int(lost[0]))} of {num.count(int(lost[1]))} rows without an event"
        text += f"{of} were followed for less than the latest event took. "
    if called(ends[1], BACKWARDS):
        text += f"Of {sanitize(ends[1])} the event may be 0: name it by --positive. "
    return f"{text}For an outcome by a horizon write {option} --horizon H in place of --label."


def _of_outcome(leaks: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield what is known only once the outcome is."""
    if leaks:
        more = [f"{num.count(len(leaks) - LISTED)} more"] if len(leaks) > LISTED else []
        named = joined([*map(sanitize, leaks[:LISTED]), *more])
        which = "reproduces" if len(leaks) == 1 else "reproduce"
        yield (
            "Outcome",
            f"{named} {which} the outcome: left out of the audit. Keep with --allow what was known before the "
            "outcome. (Labels were compared with other columns, never with the score.)",
        )


def _of_sketch(seen: Look) -> Iterator[tuple[str, str]]:
    s = seen.settings
    tests = "and what tests need, whole rows among it" if s["tests"] else "and not what tests need"
    yield "Holds", f"sums by score, label and group, {num.count(int(s['covariates']))} covariates, {tests}."
    if s["intersections"]:
        yield "Pairs", f"{_names(list(s['two_way']))}."


def _label(seen: Look) -> str:
    total = sum(n for _, n in seen.label_values)
    values = dict(seen.label_values)
    name, is_event = sanitize(seen.label), sanitize(quote_blank(seen.event))
    if len(values) == 1 and seen.settings.get("positive") is None and seen.holds == "rows":
        only = sanitize(next(iter(values)))
        more = "" if seen.event in values else f" If {only} is the event, pass {typed_option('positive', only)}."
        return f"{name} is {only} in every row. Add rows of the other outcome, or name another column.{more}"
    if seen.event not in values:
        return f"{name} holds no {sanitize(seen.event)!r}, which would be the event."
    reported = f"{name} = {is_event} is the event: {rows_of(values[seen.event], total)}."
    named = seen.settings.get("positive") is not None or {v.lower() for v in values} <= {"0", "1", "true", "false"}
    others = [v for v in values if v != seen.event]
    if not others:
        return f"{reported} No row holds another value: add rows of the other outcome, or name another column."
    if named or seen.holds == "sketch":
        return reported
    return f"{reported} If it is {sanitize(others[0])!r}, pass {sanitize(typed_option('positive', others[0]))}."


def _score(seen: Look, c: Column) -> str:
    name = sanitize(seen.score)
    run = f"{name} runs {_end(c.low)} to {_end(c.high)}" if c.low is not None and c.high is not None else name
    return run + {
        "probability": ": probabilities.",
        "percent": ": percent." if seen.settings.get("percent") else ": percent, so pass --percent.",
        "points": ": read as percent, as you say; points, ranks and deciles are none."
        if seen.settings.get("percent")
        else ": points or percent? Points, ranks and deciles are no probabilities.",
        "logit": ": looks like logits; apply 1/(1+exp(-x)).",
        "outliers": ": probabilities, but for a few values.",
        "rounding": ": a trifle outside 0 to 1; clip it.",
        "decision": ": 0 and 1 only, decisions; a probability is audited.",
        "other": ": neither probabilities nor percent nor logits.",
    }.get(seen.scale, ": no numbers.")


def _names(names: Sequence[str]) -> str:
    shown = [clip(sanitize(n), NAME) for n in names[:LISTED]]
    more = len(names) - len(shown)
    if more:
        return f"{', '.join(shown)} and {num.count(more)} more"
    return joined(shown)


def _item(lead: str, text: str) -> list[str]:
    first, *more = wrap(as_message(text), " " * 10, WIDTH)
    return [f"{lead:<10}{first.strip()}", *more]


def _run(seen: Look) -> str:
    if lacking := [
        word
        for word, kept in (("OUTCOME", seen.label), ("SCORE", seen.score), (HORIZON, ""))
        if word != kept and (word in shlex.split(seen.command) or f"='{word}'" in seen.command)
    ]:
        if lacking == [HORIZON]:
            return f"Run, with the time that {HORIZON} stands for, in the unit of the times:"
        both = len(lacking) > 1
        return f"Run, with the column{'s' if both else ''} that {' and '.join(lacking)} stand{'' if both else 's'} for:"
    if len(seen.label_values) == 1 and not seen.refusals:
        return "Run, once rows of both outcomes are there:"
    return "Run, once that is fixed:" if seen.refusals else "Run:"


def typed(command: str) -> list[str]:
    """A command as lines of at most 80 cells, to be pasted into a shell; an option stays with its value."""
    if not command.startswith("calibrant "):
        return [sanitize(command)]
    words: list[str] = []
    for word in shlex.split(command):
        quoted = shlex.quote(word)
        joins = words and words[-1].startswith("--") and " " not in words[-1] and "=" not in words[-1]
        if joins and not word.startswith("--") and words[-1] not in ("--percent", "--intersections"):
            words[-1] += f" {quoted}"
        else:
            words.append(quoted)
    lines = [words[0]]
    for word in words[1:]:
        if cells(lines[-1]) + cells(word) + 5 > WIDTH:
            lines.append(f"  {word}")
        else:
            lines[-1] += f" {word}"
    return [*(f"{line} \\" for line in lines[:-1]), lines[-1]]
