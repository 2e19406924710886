"""What a monitor knows after each day: the evidence, the sums it needs, what was concluded, and when."""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import date
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from calibrant.audit.monitor.plan import Plan, Watched
from calibrant.errors import BadInput
from calibrant.results import Plain, decoded
from calibrant.stats.sequential import ranges
from calibrant.stats.sequential.detector import Detector

Verdict: TypeAlias = Literal["over", "within", "undecided", "not_checked"]
Floats = NDArray[np.float64]

# Shares of alpha: of the recent window and of all days; of everyone and of all groups; of everyone's gap and
# error; of the error from below, as far as it is not that of the gap.
WINDOW, EVERYONE, GAP, FLOOR = 0.8, 0.5, 0.5, 0.2
MASK = 20  # rows of which a group must have so many in the window to be shown and judged
LEVEL = 0.9  # of the evidence, in the interval of when an error began
LONG = 100.0  # how often the days that one look stands for go into the time between false alarms, at least
OF_ALL = "everyone", "slope", "shape"  # kinds of directions that every row is of
NAMED = 5  # directions that an alarm names
POINTS, ALARMS = 1000, 100  # looks, and alarms, that are kept; of older looks every other one
ENCODED = "base64"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RangeNow(Plain):
    """What is guaranteed of one population and span of days: observed less predicted, and the calibration error."""

    name: str
    rows: int
    predicted: float  # mean score
    gap: float
    low: float
    high: float
    error_low: float  # of the score itself
    error_high: float  # of the score rounded to whole percent, or the end of the gap if that is larger; 1: not known
    verdict: Verdict  # of everyone, by the error: over by `error_low`, within by `error_high`
    since: str = ""  # the first of the looks up to now that all have this verdict on it


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Suspect(Plain):
    """A direction with its share of the evidence."""

    name: str
    kind: str
    observed: Literal["above", "below"]  # outcomes against what is predicted, along the direction
    share: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Alarm(Plain):
    """Evidence that some person's probability is off by more than the tolerance."""

    day: str
    kind: Literal["changed", "ever"]
    log_evidence: float
    # The day on which it most plausibly began, and the first and last of those that share 90% of the evidence: of a
    # change since the alarm before; of any error, of the change that lasts, and None if alarms before it have passed.
    onset: str | None
    onset_first: str | None
    onset_last: str | None
    suspects: tuple[Suspect, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Look(Plain):
    """One look in the history: everyone in the window, and the evidence."""

    day: str
    gap: float
    low: float
    high: float
    error_high: float
    verdict: Verdict  # of everyone
    worst: Verdict  # of everyone and the groups
    log_ever: float
    log_change: float


def day_text(day: int, *, dated: bool) -> str:
    """A day as it was entered."""
    return date.fromordinal(day).isoformat() if dated else str(day)


@dataclass(frozen=True, eq=False)
class Day:
    """One complete day."""

    day: int
    gains: Floats
    sums: Floats
    counts: NDArray[np.int64]
    seen: NDArray[np.int64]  # rows of each direction, shape (directions,)
    cells: Floats  # sums of its ranges of the score, shape (ranges, 3)
    dated: bool = False  # it is a date, by its ordinal
    unlabelled: int = 0  # rows whose label had not come when the day closed: left out

    def text(self, day: int) -> str:
        """A day as it was entered."""
        return day_text(day, dated=self.dated)

    def number(self, text: str) -> int:
        """The number of a day that `text` wrote."""
        return date.fromisoformat(text).toordinal() if self.dated else int(text)

    @property
    def rows(self) -> int:
        return int(self.sums[0, ranges.ROWS])


@dataclass(frozen=True, eq=False)
class State:
    """Everything after some days; immutable."""

    detector: Detector
    looks: int = 0
    started: int = 0  # the first day
    # The days of the window, oldest first: `days` (d,), `sums` (d, populations, SUMS), `counts` (d, levels, 2).
    days: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    sums: Floats = field(default_factory=lambda: np.zeros((0, 0, ranges.SUMS)))
    counts: NDArray[np.int64] = field(default_factory=lambda: np.zeros((0, ranges.LEVELS + 1, 2), dtype=np.int64))
    # Of the days of the window and of the one before it: `cell_days` (c,), `cells` (c, ranges of the score, 3).
    cell_days: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    cells: Floats = field(default_factory=lambda: np.zeros((0, 0, 3)))
    # Of all days: `all_sums` (populations, SUMS), `all_counts` (levels, 2), rows of each direction, rows left out.
    all_sums: Floats = field(default_factory=lambda: np.zeros((0, ranges.SUMS)))
    all_counts: NDArray[np.int64] = field(default_factory=lambda: np.zeros((ranges.LEVELS + 1, 2), dtype=np.int64))
    seen: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    unlabelled: int = 0
    window: tuple[RangeNow, ...] = ()  # everyone and the groups, in the window
    all_days: tuple[RangeNow, ...] = ()  # the same since the first day
    since: int = 0  # the first of the looks up to now that all have this verdict
    alarms: tuple[Alarm, ...] = ()
    history: tuple[Look, ...] = ()

    @classmethod
    def fresh(cls, plan: Plan) -> State:
        populations = len(plan.populations)
        sums = np.zeros((0, populations, ranges.SUMS))
        seen = np.zeros(len(plan.watched), dtype=np.int64)
        cells = np.zeros((0, *plan.no_rows().cells.shape))
        all_sums = np.zeros((populations, ranges.SUMS))
        return cls(Detector.fresh(plan.prior), sums=sums, all_sums=all_sums, seen=seen, cells=cells)

    @property
    def last(self) -> int | None:
        """The latest day; None before the first."""
        return int(self.days[-1]) if len(self.days) else None

    @property
    def worst(self) -> Verdict:
        """The verdict on everyone and the groups together, in the window."""
        return worst_of([r for r in self.window if r.verdict != "not_checked"])

    def after(self, day: Day, plan: Plan) -> State:
        """The state after one more day, which is later than the others."""
        s, last = plan.settings, self.last
        # Fewer days than have passed may count: after years without a look a day must be no alarm by itself.
        elapsed = 1 if last is None else min(day.day - last, max(1, int(s.days_between_false_alarms / LONG)))
        detector = self.detector.after(day.gains, day.day, elapsed)
        alarms, new = list(self.alarms), self._with_rows(day, plan)
        if detector.log_ever >= -math.log(s.alpha) and not any(a.kind == "ever" for a in alarms):
            ever = _alarm(detector, plan, day, new.seen, change=False)
            if any(a.kind == "changed" for a in alarms):  # the detector has started again since
                began = lasting(alarms, day.day, s.window, day.number)
                of = (None,) * 3 if began is None else (began.onset, began.onset_first, began.onset_last)
                ever = replace(ever, onset=of[0], onset_first=of[1], onset_last=of[2])
            alarms.append(ever)
        log_change = detector.log_change
        if log_change >= math.log(s.days_between_false_alarms):
            alarms.append(_alarm(detector, plan, day, new.seen, change=True))
            detector = detector.restarted()
        while len(alarms) > ALARMS:  # the one of any error stays
            alarms.remove(next(a for a in alarms if a.kind == "changed"))
        alpha = ranges.look_alpha(s.alpha, new.looks)
        total = ranges.added(new.sums), new.counts.sum(axis=0)
        recent = new.cell_days > day.day - s.window
        signed = new.cells[recent].sum(axis=0), new.cells[~recent].sum(axis=0)
        earlier = not recent.all()  # days before the window, without which there are no signs
        window = _judged(plan, *total, WINDOW * alpha, signed if earlier else None)
        all_days = _judged(plan, new.all_sums, new.all_counts, (1.0 - WINDOW) * alpha)
        worst = worst_of([r for r in window if r.verdict != "not_checked"])
        look = _look(day.text(day.day), window[0], worst, detector.log_ever, log_change)
        return replace(
            new,
            detector=detector,
            window=_since(window, self.window, day),
            all_days=_since(all_days, self.all_days, day),
            since=self.since if self.looks and self.worst == worst else day.day,
            alarms=tuple(alarms),
            history=_thinned((*self.history, look)),
        )

    def _with_rows(self, day: Day, plan: Plan) -> State:
        """This with the day's rows, and without those of days that have left the window."""
        window = plan.settings.window
        kept, signed = self.days > day.day - window, self.cell_days > day.day - 2 * window
        return replace(
            self,
            looks=self.looks + 1,
            started=self.started if self.looks else day.day,
            days=np.append(self.days[kept], day.day),
            sums=np.concatenate([self.sums[kept], day.sums[None]]),
            counts=np.concatenate([self.counts[kept], day.counts[None]]),
            cell_days=np.append(self.cell_days[signed], day.day),
            cells=np.concatenate([self.cells[signed], day.cells[None]]),
            all_sums=ranges.added(np.stack([self.all_sums, day.sums])),
            all_counts=self.all_counts + day.counts,
            seen=self.seen + day.seen,
            unlabelled=self.unlabelled + day.unlabelled,
        )


def worst_of(judged: list[RangeNow]) -> Verdict:
    """Over if anyone is; within if everyone who is judged is; else undecided."""
    verdicts = {r.verdict for r in judged}
    if not verdicts:
        return "not_checked"
    return "over" if "over" in verdicts else "within" if verdicts == {"within"} else "undecided"


def lasting(alarms: Sequence[Alarm], last: int, window: int, number: Callable[[str], int]) -> Alarm | None:
    """Of the alarms of a change that follow each other within the window up to a day, the first; None without any."""
    first = None
    for a in reversed([a for a in alarms if a.kind == "changed"]):
        if last - (before := number(a.day)) >= window:
            break
        first, last = a, before
    return first


def shown(judged: Sequence[RangeNow]) -> tuple[RangeNow, ...]:
    """Everyone, and the groups that have so many rows that they may be shown."""
    return tuple(r for i, r in enumerate(judged) if i == 0 or r.rows >= MASK)


def _since(judged: tuple[RangeNow, ...], before: tuple[RangeNow, ...], day: Day) -> tuple[RangeNow, ...]:
    """Ranges with the first of the looks that all have their verdict."""
    old, now = {r.name: r for r in before}, day.text(day.day)
    same = (old[r.name].since if before and old[r.name].verdict == r.verdict else now for r in judged)
    return tuple(replace(r, since=since) for r, since in zip(judged, same, strict=True))


def _judged(
    plan: Plan, sums: Floats, counts: NDArray[np.int64], alpha: float, signed: tuple[Floats, Floats] | None = None
) -> tuple[RangeNow, ...]:
    """The ranges of every population, which hold simultaneously with probability at least ``1 - alpha``.

    `signed`: the sums of ranges of the score, and those of rows before, by which they get a sign.
    """
    # A level without rows, such as "missing", has no share: which have rows follows from the covariates alone.
    s, groups = plan.settings, int(np.sum(sums[1:, ranges.ROWS] > 0))
    everyone = alpha * (EVERYONE if groups else 1.0)
    with_error, floor = s.independent_rows, 0.0 if signed is None else FLOOR
    gap_share = everyone * (GAP if with_error else 1.0)
    low, high = ranges.gap_limits(sums[0], gap_share)
    error_low, error_high = 0.0, 1.0
    if with_error:  # of the score in whole percent, whose gap is another: an error is no smaller than its own gap
        error_high = min(1.0, max(ranges.error_limit(counts, (everyone - gap_share) * (1.0 - floor)), -low, high))
        if signed is not None:
            error_low = ranges.error_floor(sums[0], *signed, (everyone - gap_share) * floor)
    out = [_range("everyone", sums[0], (low, high), (error_low, error_high), s.limit, error=s.judge == "error")]
    for name, own in zip(plan.populations[1:], sums[1:], strict=True):
        limits = ranges.gap_limits(own, alpha * (1.0 - EVERYONE) / groups) if own[ranges.ROWS] else (-1.0, 1.0)
        out.append(_range(name, own, limits, (0.0, 1.0), s.limit, error=False))
    return tuple(out)


def _range(
    name: str,
    sums: Floats,
    limits: tuple[float, float],
    errors: tuple[float, float],
    limit: float | None,
    *,
    error: bool,
) -> RangeNow:
    low, high = limits
    rows = int(sums[ranges.ROWS])
    gap_low = max(low, -high, 0.0)
    error_low, error_high = max(errors[0], gap_low), errors[1]  # a gap is never larger than the error
    least, most = (error_low, error_high) if error else (gap_low, max(-low, high))
    verdict: Verdict = "undecided"
    if limit is None or (rows < MASK and name != "everyone"):
        verdict = "not_checked"
    elif least > limit:
        verdict = "over"
    elif most <= limit:
        verdict = "within"
    return RangeNow(
        name=name,
        rows=rows,
        predicted=float(sums[ranges.PREDICTED]) / max(rows, 1),
        gap=float(sums[ranges.RESIDUAL]) / max(rows, 1),
        low=low,
        high=high,
        error_low=error_low,
        error_high=error_high,
        verdict=verdict,
    )


def _look(day: str, everyone: RangeNow, worst: Verdict, log_ever: float, log_change: float) -> Look:
    e = everyone
    return Look(
        day=day,
        gap=e.gap,
        low=e.low,
        high=e.high,
        error_high=e.error_high,
        verdict=e.verdict,
        worst=worst,
        log_ever=log_ever,
        log_change=log_change,
    )


def _thinned(history: tuple[Look, ...]) -> tuple[Look, ...]:
    """The history, of whose older half every other look is left out when it is full."""
    half = POINTS // 2
    return (*history[:half:2], *history[half:]) if len(history) > POINTS else history


def _alarm(detector: Detector, plan: Plan, day: Day, seen: NDArray[np.int64], *, change: bool) -> Alarm:
    onset = detector.onset(LEVEL) if len(detector.starts) else (day.day,) * 3
    most, first, last = map(day.text, onset)
    return Alarm(
        day=day.text(day.day),
        kind="changed" if change else "ever",
        log_evidence=detector.log_change if change else detector.log_ever,
        onset=most,
        onset_first=first,
        onset_last=last,
        suspects=suspects(detector, plan.watched, seen, change=change),
    )


def suspects(
    detector: Detector, watched: tuple[Watched, ...], seen: NDArray[np.int64], *, change: bool
) -> tuple[Suspect, ...]:
    """The directions that have most of the evidence, without those of too few rows to be shown."""
    if change and not len(detector.starts):
        return ()
    share = detector.directions(change=change)
    order = [i for i in np.argsort(-share.sum(axis=1), kind="stable") if seen[i] >= MASK or watched[i].kind in OF_ALL]
    return tuple(
        Suspect(
            name=watched[i].name,
            kind=watched[i].kind,
            observed="above" if share[i, 0] >= share[i, 1] else "below",
            share=float(share[i].sum()),
        )
        for i in order[:NAMED]
    )


# ---- as plain data ----


def to_plain(value: object) -> object:
    """A day, a state or a detector as plain data; arrays as their bytes."""
    if isinstance(value, np.ndarray):
        kept = np.ascontiguousarray(value, dtype="<f8" if value.dtype.kind == "f" else "<i8")
        return {"shape": list(value.shape), ENCODED: base64.b64encode(kept.tobytes()).decode()}
    if isinstance(value, Plain):
        return value.to_dict()
    if isinstance(value, tuple):
        return [to_plain(v) for v in value]
    if isinstance(value, (Day, State, Detector)):
        return {f.name: to_plain(getattr(value, f.name)) for f in fields(value)}
    return value


FLOATS = {"log_prior", "ever", "starts", "gains", "sums", "all_sums", "cells", "history"}
RANGES: dict[str, type[Plain]] = {"window": RangeNow, "all_days": RangeNow, "alarms": Alarm, "history": Look}


def day_of(d: Mapping[str, object]) -> Day:
    return Day(**{k: decoded_field(k, v) for k, v in d.items()})  # type: ignore[arg-type]


def state_of(d: Mapping[str, Mapping[str, object]]) -> State:
    detector = Detector(**{k: decoded_field(k, v) for k, v in d["detector"].items()})  # type: ignore[arg-type]
    return State(detector, **{k: decoded_field(k, v) for k, v in d.items() if k != "detector"})  # type: ignore[arg-type]


def decoded_field(name: str, v: object, kinds: Mapping[str, type[Plain]] = RANGES) -> object:
    """The field of this name that `to_plain` wrote."""
    if isinstance(v, dict):
        kept = np.frombuffer(base64.b64decode(v[ENCODED], validate=True), dtype="<f8" if name in FLOATS else "<i8")
        return kept.reshape(v["shape"])
    if isinstance(v, list):
        return tuple(decoded(one, kinds[name]) for one in v)
    if not isinstance(v, int):
        raise BadInput(f"{name} is {v!r}, which is no whole number")
    return v
