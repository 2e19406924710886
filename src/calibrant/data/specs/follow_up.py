"""Labels that say "the event was seen" of rows that were followed for unlike times: no seen event is no outcome then.

Names say which columns could be such a pair, and the values whether they are: rows without the event that were followed
for less than the latest event took, and events that are rarer the longer rows were followed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from calibrant.arguments import Caller
from calibrant.data.columns import as_float, is_number, label_values
from calibrant.data.layouts import decoded
from calibrant.data.sources.source import Source
from calibrant.data.specs.column_names import pieces
from calibrant.errors import BadInput

Floats = NDArray[np.float64]
Meaning = Literal["follow-up", "time", "length"]

# What a time is called that is one of follow-up by its name, a time, or a length of anything.
FOLLOW_UP = {"tte", "futime", "survtime", "followup", "stime", "ftime", "ttime", "rtime", "lenfol", "rectime"}
FOLLOW_UP |= {"fu", "os", "pfs", "dfs"}
WEAK = {"t", "days", "months"}  # of follow-up only next to a label of `SEEN`: else of a stay, an age, a temperature
TIME = {"time", "times", "survival"} | WEAK
UNITS = {"day", "days", "week", "weeks", "month", "months", "year", "years"}
LENGTH = {"duration", "durations", "tenure", "exposure"} | (UNITS - WEAK)
TIMES = FOLLOW_UP | TIME | LENGTH
BETWEEN = {"to", "until", "till", "of", "in", "follow", "up", "followed", "observation", "observed", "overall", "event"}
BETWEEN |= {"last", "obs", "on", "book", "person", "customer"}
FORECAST = {"predicted", "pred", "prediction", "expected", "estimated", "forecast", "prob", "probability", "score"}
SEEN = {"event", "events", "status", "delta", "cens", "censor", "censored", "censoring", "fustat", "fstat", "censrec"}
ENDED = {"event", "events", "status", "died", "dead", "death", "deceased", "churn", "churned", "default", "defaulted"}
ENDED |= {"relapse", "relapsed", "recurrence", "fustat", "arrest", "censored", "readmitted", "progression", "failure"}
ENDED |= {"cens", "censor", "censoring", "delta", "fstat", "failed", "censrec", "mortality"}
BY_PERIOD = {"churn", "churned", "default", "defaulted", "readmitted"}  # often of one period for every row
BACKWARDS = {"censored", "censor", "censoring"}  # what is 1 there may be that nothing was seen

FEWEST, SHARE = 5, 0.02  # rows lost, and of those without the event, below which a label is complete
VALUES = 12  # distinct times, under which they are codes or steps, unless named as times of follow-up
MANY, ONE_TIME = 0.2, 0.9  # of rows without the event those lost, and of these at one time, which stands for none
FALLS, RISES = -2.0, 3.0  # standard deviations of the rank sum of events' times
MOST = 2_000_000  # rows that are read


@dataclass(frozen=True)
class SeenEvents:
    """A label of events seen and the time of follow-up next to it, with who may be no non-event."""

    time: str
    label: str
    lost: int  # rows without the event that were followed for less than the latest event took
    none: int  # rows without the event
    latest: float  # the latest event
    sure: bool  # names and values say so; else it is likely only

    def refusal(self, positive: str | None, score: str, caller: Caller) -> str:
        """What is wrong, of how many rows, and both ways on."""
        joint = " " if caller.command else ", "
        stated = {"time": self.time, "event": self.label, "positive": positive, "score": score}
        passed = {name: value for name, value in stated.items() if value}
        typed = [caller.typed(name, value) for name, value in passed.items()]
        typed.insert(2, caller.typed("horizon", "H").replace("'", ""))
        return (
            f"label {self.label!r} is an event seen by the end of follow-up, as {self.time!r} shows: {self.lost:,} of "
            f"{self.none:,} rows without it were followed for less than the latest event took ({self.latest:g}), and "
            f"need not be non-events. Name the outcome by a time H: {joint.join(typed)}, in place of "
            f"{caller.typed('label', self.label)}. If every label is final, pass {caller.typed('horizon', 'none')}"
        )


def meaning(name: str) -> Meaning | None:
    """What a name says of a time: of follow-up, any time, a length of anything; None of a time of something else.

    Each word of it must be about times, or about what ends them: `time_in_hospital` is of something else. Next to a
    unit other words may be in a name of follow-up, `days_to_bcr_followup`; `survival_12_months` is a probability.
    """
    listed = pieces(name)
    words = {w for w in listed if not w.isdigit()}
    by_then = any(a.isdigit() and b in UNITS for a, b in pairwise(listed))
    if not words & TIMES or words & FORECAST or by_then:
        return None
    ends = words & ENDED and words & {"to", "until", "till"}
    if words & FOLLOW_UP or {"follow", "up"} <= words or "followed" in words or "survival" in words or ends:
        known = not words - TIMES - BETWEEN - ENDED
        return "follow-up" if known or words & UNITS else None
    if words - TIMES - BETWEEN - ENDED:
        return None
    return "length" if words & LENGTH else "time"


def ends(name: str) -> bool:
    """Whether a name is that of what ends a follow-up."""
    return not ENDED.isdisjoint(pieces(name))


def candidates(label: str, columns: Sequence[str]) -> Iterator[tuple[str, Meaning]]:
    """The columns that could be the time of follow-up of a label, by names alone, those of follow-up first."""
    if not ends(label):
        return
    seen = not SEEN.isdisjoint(pieces(label))
    kept = dict[str, Meaning]()
    for c in columns:
        of, words = meaning(c), set(pieces(c))
        if c == label or of is None or ("t" in words and not seen):
            continue
        kept[c] = "length" if of == "time" and not seen and words & WEAK and "time" not in words else of
    order: tuple[Meaning, ...] = ("follow-up", "time", "length")
    yield from sorted(kept.items(), key=lambda pair: order.index(pair[1]))


def judged(time: Floats, y: Floats, names: tuple[str, str], of: Meaning) -> SeenEvents | None:
    """Whether a time and a label, NaN where missing, are follow-up; None where they are not.

    Events that come late lie above the others where many rows are lost early, so that a name of follow-up decides.
    """
    there = ~(np.isnan(time) | np.isnan(y)) & (time >= 0.0)
    t, event = time[there], y[there] == 1.0
    if not event.any() or event.all() or (of != "follow-up" and (len(np.unique(t)) <= VALUES or (time < 0.0).any())):
        return None
    if t.max() <= 1.0 and (t != np.round(t)).any():  # probabilities, such as of survival
        return None
    latest, none = float(t[event].max()), int((~event).sum())
    away = t[~event & (t < latest)]
    lost = len(away)
    if lost < max(FEWEST, SHARE * none) or np.unique(away, return_counts=True)[1].max() > ONE_TIME * lost:
        return None
    z = rank_sum(t, event)
    by_name = of == "follow-up" and (z < RISES or lost > MANY * none)
    plain = of == "time" and z <= FALLS
    period = not BY_PERIOD.isdisjoint(pieces(names[1]))
    sure = (by_name or plain) and (not period or (by_name and z <= FALLS))
    likely = z <= FALLS or of == "follow-up" or (of == "time" and z < RISES and not period)
    return SeenEvents(*names, lost, none, latest, sure) if sure or likely else None


def rank_sum(t: Floats, event: NDArray[np.bool_]) -> float:
    """How many standard deviations times of events lie over those of the others: Wilcoxon's rank sum, with ties."""
    from scipy.stats import rankdata  # half a second, which few data need

    n, k = len(t), int(event.sum())
    ranks = rankdata(t)
    _, count = np.unique(ranks, return_counts=True)
    tied = float((count.astype(np.float64) ** 3 - count).sum()) / (n * (n - 1.0))
    variance = k * (n - k) / 12.0 * (n + 1.0 - tied)
    return float((ranks[event].sum() - k * (n + 1.0) / 2.0) / math.sqrt(variance))


def seen_events(
    label: str, positive: str | None, columns: Sequence[str], read: Callable[[str], pa.Array | pa.ChunkedArray]
) -> SeenEvents | None:
    """The pair that a label makes with one of some columns, the surest; None of none. `read` returns a column."""
    likely, y = None, None
    for name, of in candidates(label, columns):
        try:
            y = label_values(read(label), label, positive).astype(np.float64) if y is None else y
            time = decoded(read(name), name)
            if not is_number(time.type):
                continue
            one = judged(as_float(time, name, "time"), y, (name, label), of)
        except BadInput:  # of labels that are no outcomes, or times that are no numbers, others say so
            continue
        if one is not None and one.sure:
            return one
        likely = likely or one
    return likely


def of_source(opened: Source, label: str, positive: str | None, used: Collection[str]) -> SeenEvents | None:
    """The same of a source, whose rows are read where names call for it, and may be read again.

    Columns that are used for something else, such as the score, are no times.
    """
    names = [name for name, _ in candidates(label, [c for c in opened.columns if c not in used])]
    if not names or label not in opened.columns or opened.engine is not None or not opened.again:
        return None
    batches, rows = [], 0
    with opened.one_pass():
        for batch in opened.read([label, *names]):
            batches.append(batch)
            rows += batch.num_rows
            if rows >= MOST:
                break
    try:
        table = pa.concat_tables([pa.Table.from_batches([b]) for b in batches], promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError):  # whoever reads these columns refuses them
        return None
    return seen_events(label, positive, names, table.column) if rows else None
