"""A monitor: outcomes of one day after another, and after each what is certain, since when and for whom."""

from __future__ import annotations

import datetime
import hashlib
import json
import math
import os
from collections.abc import Iterable
from contextlib import nullcontext
from dataclasses import dataclass
from dataclasses import replace as changed
from functools import cached_property
from importlib import import_module
from pathlib import Path

from calibrant.arguments import (
    Caller,
    check_int,
    flag,
    refuse,
    shown,
)
from calibrant.audit.monitor.drift import Drift, DriftNow
from calibrant.audit.monitor.locking import LOCK, locked
from calibrant.audit.monitor.plan import Judge, Plan, Settings, settings_of
from calibrant.audit.monitor.state import (
    LEVEL,
    MASK,
    Alarm,
    Day,
    Look,
    RangeNow,
    State,
    Suspect,
    Verdict,
    day_of,
    day_text,
    lasting,
    state_of,
    suspects,
)
from calibrant.audit.monitor.state import shown as shown_of
from calibrant.audit.monitor.state import to_plain as plain_of
from calibrant.data.columns import require
from calibrant.data.predictions import Predictions
from calibrant.data.read import in_memory
from calibrant.data.reading import Reading
from calibrant.data.sketches.sketch import Sketch
from calibrant.data.specs.options import NONE
from calibrant.data.targets import written
from calibrant.errors import BadInput
from calibrant.results import Plain, converted, plain_json

SCHEMA = "calibrant-monitor/1"
SAVED = "pass the file that Monitor.save wrote"
REPORTED_BY = "calibrant.report.outputs.monitored"
EXPECTED = 20.0  # events by the scores, with which a first day has one, or the positive value is misspelt
FUTURE = 3_652_059  # the last day that a date can be
IN_PYTHON = Caller(lacks=("missing",))  # a day's rows are all there: no argument leaves some out
EARLY = "a monitor without outcomes has nothing to report: update it with a first day"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MonitorState(Plain):
    """What a monitor knows at its latest day."""

    at: str  # the latest day
    started: str
    looks: int
    rows: int  # of all days
    unlabelled: int  # rows left out, whose labels had not come when their day closed
    verdict: Verdict  # of the recent window: the worst of everyone and the groups
    since: str  # the first of the looks up to now that all have this verdict
    window: tuple[RangeNow, ...]  # everyone, then the groups of 20 rows or more, in the recent window
    all_days: tuple[RangeNow, ...]  # the same since the first day
    small_groups: int  # groups with rows in the recent window, but fewer than 20: they are not judged, and not shown
    alarms: tuple[Alarm, ...]
    alarmed: bool  # the latest day brought an alarm
    # Of the alarms of a change that follow each other within the window up to now, the first: it says when the error
    # that lasts began, and for whom. None where there was none within the window.
    lasting: Alarm | None
    # The e-process and the e-detector as shares of what an alarm takes, in logs: 1 is an alarm.
    ever: float
    change: float
    suspects: tuple[Suspect, ...]  # directions that have most of the evidence now
    onset: tuple[str, str, str] | None  # when it most plausibly began, and the days that have 90% of the evidence
    history: tuple[Look, ...]
    drift: DriftNow | None = None  # of scores and columns, which says nothing of calibration; None without a reference

    @property
    def exit_status(self) -> int:
        """1 if the latest day brought an alarm, or the window is over the limit for anyone; else 0."""
        return int(self.alarmed or self.verdict == "over")


class Monitor:
    r"""A watch over a model's probabilities with guarantees at every look.

    Estimand: at each look, for everyone and each group, the mean of ``E[y | features] - p`` over the rows of the recent
    window and of all days, and everyone's calibration error, from above of the score rounded to whole percent, from
    below of the score itself; in probability units. Alarms are about the pointwise tolerance: that ``|E[y | features] -
    p| <= tolerance`` for every row.

    Parameters
    ----------
    reference : rows, optional
        A file, frame or `Predictions` whose scores and covariates, never its labels, fix the levels of `by` and
        `variables` and the ranges of the score. By default the first day does. With a reference, `state.drift` says
        which shares of levels and scores have changed since; not with `cluster` or `shared_shocks`.
    label, score : str
        Columns of outcomes and probabilities.
    positive, percent
        As `calibrant.read`.
    limit : float between 0 and 1, optional
        Largest acceptable error, which verdicts compare with. Without one there are ranges and alarms only.
    by, variables : str or sequence of str
        Columns of groups, which get ranges and verdicts; further columns in which alarms look for errors. Of at most
        six columns every pair of levels is watched, too; of more, or where that makes over 600 directions, pairs of
        groups, or none.
    cluster : str
        Rows of one value on one day are one cluster. Different days are independent.
    shared_shocks : bool
        The rows of a day may share a shock, so that a day counts as one cluster.
    tolerance : float from 0 to below 1, optional
        What alarms tolerate of every single row; the limit by default, 0 without one.
    judge : {"error", "gap"}, optional
        What of everyone must be within the limit: the gap and the calibration error of the score rounded to whole
        percent (default for independent rows), or the gap alone. Over is the calibration error of the score itself, as
        in an audit: it can be over while that of the rounded score is not.
    alpha : float in (0, 0.5]
        Probability, at most, that any verdict at any look is ever wrong; and that the alarm "ever" is ever false.
    days_between_false_alarms : float of at least 2
        Mean time to a false alarm "changed", at least.
    window : int
        Days of the recent window, on which the headline rests.
    labels_within : int, optional
        For predictions that come before their labels: a day is complete so many days after it. Used by `calibrant
        watch`; with it, `update` is refused.
    key : str or sequence of str
        Columns that name a row, by which labels that come later find it.
    drift_alpha : float in (0, 0.5], optional
        Probability, at most, that drift of a share of rows is ever reported falsely, next to `alpha`; 0.05 by default.
        Falsely: its rows since it was reported before, or of `reference` and all days, are alike (exchangeable).
        Refused without a reference, and with `cluster` or `shared_shocks`.

    Notes
    -----
    **Assumes.** Outcomes of different rows (clusters, days) are independent given scores and covariates. The columns,
    limit, window and levels are fixed beforehand. Days enter when they are complete. Drift assumes more: rows of
    different days are different draws. The same people on several days make their levels look drifted.
    **Guarantee.** Finite-sample, at every look: with probability ``1 - alpha`` no verdict on everyone or a group, in
    the window or since the first day, is ever wrong. The alarm "ever" is false with probability at most alpha over all
    time, also under drift of the scores. Alarms "changed" are false once in `days_between_false_alarms` days in the
    mean, at most.
    **Method.** Verdicts: confidence sequences by betting, the k-th look at ``6 alpha / (pi^2 k^2)``. Alarms: likelihood
    ratios against the tolerance for every direction (everyone, slopes, shapes and ranges of the score, levels, pairs of
    levels, weekdays and months of dates), mixed and never maximised, as an e-process and as an e-detector. Drift: ranks
    of a day's counts among all rows so far, or since the share was reported, each share at its part of `drift_alpha`
    (documentation: Proofs, monitoring).
    **Cost.** Linear in a day's rows. The state has about 11 bytes for each of ``10 directions (3 log2(days) + 3)``
    numbers, and of ``window (10 populations + 263)``, the days of the window with rows; and 300 for each look, of which
    1,000 are kept. With 226 directions, 15 populations and 28 days that is half a megabyte in the first year; with 591,
    47 and 365 days six. Drift adds ``shares (8 (3 log2(days) + 3) + window)`` numbers, and 200
    looks of one for each column.
    **Reads.** Rows.

    References
    ----------
    Shin, Ramdas, Rinaldo (2023), E-detectors, arXiv:2203.03532. Waudby-Smith and Ramdas (2024),
    doi:10.1093/jrsssb/qkad009.

    Examples
    --------
    >>> import calibrant as cal
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> watch = cal.Monitor(label="y", score="p", limit=0.05)
    >>> for day in range(3):
    ...     p = rng.uniform(size=5000)
    ...     state = watch.update(cal.predictions(rng.uniform(size=5000) < p, p), at=day)
    >>> state.verdict
    'within'
    """

    def __init__(
        self,
        reference: object = None,
        *,
        label: str,
        score: str,
        positive: str | None = None,
        percent: bool = False,
        limit: float | None = None,
        by: Iterable[str] | str | None = None,
        variables: Iterable[str] | str | None = None,
        cluster: str | None = None,
        shared_shocks: bool = False,
        tolerance: float | None = None,
        judge: Judge | None = None,
        alpha: float = 0.05,
        days_between_false_alarms: float = 3650.0,
        window: int = 28,
        labels_within: int | None = None,
        key: Iterable[str] | str | None = None,
        drift_alpha: float | None = None,
    ) -> None:
        own = {k: v for k, v in locals().items() if k not in ("self", "reference")}
        self._set_up(settings_of(own))
        self._against(reference)

    @classmethod
    def of(cls, settings: Settings, reference: object = None, caller: Caller = IN_PYTHON) -> Monitor:
        """A monitor of settings that are checked; `caller` is how refusals name arguments."""
        made = cls.__new__(cls)
        made._set_up(settings, caller)
        made._against(reference)
        return made

    def _set_up(self, settings: Settings, caller: Caller = IN_PYTHON) -> None:
        self.settings, self._caller = settings, caller
        self._settled: State | None = None  # before the latest day, which can be replaced
        self._latest: Day | None = None
        self._dated: bool | None = None
        self._files: dict[Path, bytes] = {}  # digests of the files that this was read from, or saved to
        self._plan: Plan | None = None
        self._drift: Drift | None = None

    def _against(self, reference: object) -> None:
        """Fix what is watched by a reference, if there is one, and watch for drift against it."""
        s, say = self.settings, self._caller.says
        if (reference is None or not s.independent_rows) and s.drift_alpha is not None:
            lacks = f"without {say('reference')}" if reference is None else f"with {say(s.bets_on.argument)}"
            raise BadInput(f"{say('drift_alpha')}: {lacks} there is nothing that rows could be exchangeable with")
        if reference is not None:
            rows = self.rows_of(reference)
            self._plan = Plan.of(s, rows)
            # Rows of a cluster, or of a day with a shock, are no draws of their own.
            self._drift = Drift.of(s, self._plan, rows) if s.independent_rows else None

    # ---- days ----

    def update(self, batch: object, *, at: object, replace: bool = False) -> MonitorState:
        """The state after one more complete day.

        Parameters
        ----------
        batch : Predictions, frame, path, glob or query
            The day's rows, all of them.
        at : date, ISO text, or whole number
            The day: later than every day before, or with `replace` the latest one too.
        replace : bool
            Where this is the latest day, these rows take the place of those entered: after a correction, or because a
            scheduler runs a job twice. A later day enters as it always does.
            What was said of the day before it was corrected is withdrawn, and is no part of the guarantee; nor does a
            guarantee hold for days that were replaced because of what was said of them.

        Returns
        -------
        MonitorState

        Raises
        ------
        BadInput
            The day has been entered, or is earlier than the latest; or the rows cannot be used.
        """
        if self.settings.labels_within is not None:
            raise BadInput(
                f"this monitor waits {self.settings.labels_within} days for labels: enter predictions and labels with "
                "`calibrant watch predictions` and `calibrant watch labels`, since rows whose labels come early are "
                "no fair sample of their day"
            )
        data = self.rows_of(batch)
        drift = self._drifted(data, at)
        self._enter(data, at, flag("replace", replace))
        self._drift = drift
        return self.state

    def _drifted(self, data: Predictions, at: object) -> Drift | None:
        if self._drift is None:
            return None
        return self._drift.after(data, self.settings, self.day_number(at), dated=self.is_date(at))

    def predicted(self, data: Predictions, at: object) -> DriftNow | None:
        """Enter the scores and columns of a day whose labels come later, whose outcomes are not read."""
        self._drift = self._drifted(data, at)
        return self.drift

    @property
    def drift(self) -> DriftNow | None:
        """What is known of scores and columns, before any label; None without a reference, or before the first day."""
        return None if self._drift is None else self._drift.now(self.settings.window)

    def entered(
        self, data: Predictions | None, at: object, *, replace: bool = False, unlabelled: int = 0
    ) -> MonitorState:
        """The state after the rows of a day that is complete; None of a day of which no label came."""
        self._enter(data, at, replace, unlabelled)
        return self.state

    def _enter(self, data: Predictions | None, at: object, replace: bool, unlabelled: int = 0) -> None:
        day = self.day_number(at)
        self._check_day(day, replace)
        plan = self.plan if data is None else self._plan or Plan.of(self.settings, data)
        if self._settled is None:  # the first day says whether days are dates, which have weekdays and months
            plan = changed(plan, dated=self.is_date(at))
        kept = plan.no_rows() if data is None else plan.day(data, day)
        again = self._latest is not None and day == self._latest.day
        before = State.fresh(plan) if self._settled is None else self._settled if again else self._now
        self._plan, self._settled = plan, before
        self._latest = Day(day, *kept, self.is_date(at), unlabelled)
        self._dated = self._latest.dated
        self.__dict__.pop("_now", None)

    def _check_day(self, day: int, replace: bool) -> None:
        last = None if self._latest is None else self._latest.day
        if last is None or day > last or (replace and day == last):
            return
        if day == last:
            again = f"pass {self._caller.turns_on('replace')} to put these rows in its place"
            raise BadInput(f"{self.day_text(day)} has been entered: {again}")
        raise BadInput(
            f"{self.day_text(day)} is earlier than the latest day, {self.day_text(last)}: days go in their order, and "
            "only the latest can be replaced"
        )

    @staticmethod
    def is_date(at: object) -> bool:
        """Whether a day is given as a date, not as a whole number."""
        return isinstance(at, (datetime.date, str))

    def day_number(self, at: object) -> int:
        """A day as a number: of a date its ordinal."""
        number_ = _day_number(at)
        if self._dated is not None and self._dated != self.is_date(at):
            kind = "dates, such as 2026-01-05" if self._dated else "whole numbers"
            raise BadInput(f"at={shown(at)}: the days before are {kind}", argument="at")
        return number_

    def day_text(self, day: int) -> str:
        """A day as it was entered."""
        return day_text(day, dated=bool(self._dated))

    def day_of_text(self, day: str) -> int:
        """The number of a day that `day_text` wrote."""
        return self.day_number(day if self._dated else int(day))

    def fix(self, data: Predictions) -> bool:
        """Fix what is watched by rows whose outcomes are not read, and return whether it was open so far."""
        was_open = self._plan is None
        self._plan = self._plan or Plan.of(self.settings, data)
        return was_open

    def rows_of(self, batch: object, *, coded: bool = False) -> Predictions:
        """A batch as rows with the columns that are watched; `coded` labels are 0 and 1 by now."""
        s = self.settings
        if isinstance(batch, Sketch):
            raise BadInput("a sketch does not hold what a day's bets need: pass the rows of the day")
        if not isinstance(batch, Predictions):
            reading = Reading.of(
                label=s.label,
                score=s.score,
                positive=None if coded else s.positive,
                percent=s.percent,
                by=s.by,
                variables=s.variables,
                cluster=s.cluster or None,
                horizon=NONE,  # a day is not refused for what an audit asks once
                caller=self._caller,
            )
            return in_memory(batch, changed(reading, eventless=EXPECTED if self._latest is None else math.inf))
        if batch.unlabelled is not None and len(batch.unlabelled.p):
            raise BadInput("the batch has rows without a label: a day enters when it is complete")
        there = () if batch.covariates is None else batch.covariates.column_names
        require(s.attributes, there, "watched")
        return batch

    # ---- what is known ----

    @cached_property
    def _now(self) -> State:
        if self._plan is None or self._settled is None or self._latest is None:
            raise BadInput(EARLY)
        return self._settled.after(self._latest, self._plan)

    @property
    def plan(self) -> Plan:
        """What is watched; refused before the first day fixes it."""
        if self._plan is None:
            raise BadInput(EARLY)
        return self._plan

    @property
    def last(self) -> int | None:
        """The number of the latest day; None before the first."""
        return None if self._latest is None else self._latest.day

    @property
    def last_drift(self) -> int | None:
        """The number of the latest day whose scores and columns are known; None before the first."""
        return None if self._drift is None or self._drift.latest is None else self._drift.latest.day

    @property
    def state(self) -> MonitorState:
        """What is known at the latest day: the verdict, since when, for whom, and how sure."""
        now, s, say = self._now, self.settings, self.day_text
        last, detector = now.history[-1], now.detector
        # After an alarm the detector starts again: what it knew is in the alarm.
        onset = detector.onset(LEVEL) if len(detector.starts) else None
        return MonitorState(
            at=last.day,
            started=say(now.started),
            looks=now.looks,
            rows=now.all_days[0].rows,
            unlabelled=now.unlabelled,
            verdict=now.worst,
            since=say(now.since),
            window=shown_of(now.window),
            all_days=shown_of(now.all_days),
            small_groups=sum(0 < r.rows < MASK for r in now.window[1:]),
            alarms=now.alarms,
            alarmed=any(a.day == last.day for a in now.alarms),
            lasting=lasting(now.alarms, int(now.days[-1]), s.window, self.day_of_text),
            ever=last.log_ever / -math.log(s.alpha),
            change=last.log_change / math.log(s.days_between_false_alarms),
            suspects=suspects(detector, self.plan.watched, now.seen, change=True),
            onset=None if onset is None else (say(onset[0]), say(onset[1]), say(onset[2])),
            history=now.history,
            drift=self.drift,
        )

    # ---- files ----

    def to_json(self) -> str:
        """The monitor as JSON, which `load` reads; it holds sums and no rows."""
        d = {
            "schema": SCHEMA,
            "settings": _plain(self.settings),
            "plan": None if self._plan is None else _plain(self._plan),
            "dated": self._dated,
            "settled": None if self._settled is None else plain_of(self._settled),
            "latest": None if self._latest is None else plain_of(self._latest),
            "drift": None if self._drift is None else self._drift.to_plain(),
        }
        return json.dumps(d, separators=(",", ":"), allow_nan=False) + "\n"

    @classmethod
    def from_json(cls, content: str, caller: Caller = IN_PYTHON) -> Monitor:
        """Rebuild the monitor that `to_json` wrote.

        Raises
        ------
        BadInput
            The text is no monitor.
        """
        d = plain_json(content, SAVED)
        if not isinstance(d, dict) or d.get("schema") != SCHEMA:
            raise BadInput(f"not a monitor: {SAVED}")
        try:
            made = cls.__new__(cls)
            made._set_up(converted(d["settings"], Settings), caller)
            made._dated = d["dated"]
            made._plan = None if d["plan"] is None else converted(d["plan"], Plan)
            made._settled = None if d["settled"] is None else state_of(d["settled"])
            made._latest = None if d["latest"] is None else day_of(d["latest"])
            made._drift = None if d["drift"] is None else Drift.from_plain(d["drift"])
            if made._latest is not None:
                made._check()
        except (KeyError, TypeError, ValueError) as e:  # a BadInput is a ValueError
            raise BadInput(f"not a monitor ({e}): {SAVED}") from None
        return made

    def _check(self) -> None:
        """Refuse arrays that do not go with the plan."""
        plan, settled, latest = self.plan, self._settled, self._latest
        if settled is None or latest is None:
            raise BadInput("a day is missing")
        shape, populations = plan.prior.shape, len(plan.populations)
        if latest.gains.shape != shape or settled.detector.ever.shape != shape or len(latest.sums) != populations:
            raise BadInput("the evidence is of other directions than the plan's")
        if settled.cells.shape[1:] != latest.cells.shape:
            raise BadInput("the sums are of other ranges of the score than the plan's")
        if not len(latest.seen) == len(settled.seen) == shape[0]:
            raise BadInput("the rows are of other directions than the plan's")
        if settled.detector.starts.shape[1:] != shape or settled.sums.shape[1] != populations:
            raise BadInput("the sums are of other groups than the plan's")

    def save(self, target: str | os.PathLike[str]) -> Path:
        """Write the monitor to a file, whole or not at all; `load` reads it.

        Raises
        ------
        BadInput
            The file that was loaded, or saved before, has changed meanwhile: another process has entered days, which
            this would undo. Or another process is writing to the directory of `calibrant watch`.
        """
        path = Path(target)
        with locked(path.parent) if (path.parent / LOCK).is_file() else nullcontext():
            before = self._files.get(path.resolve())
            if before is not None and path.is_file() and _digest(path.read_bytes()) != before:
                raise BadInput(
                    f"{os.fspath(target)!r} has changed since it was read, and days that were entered would be lost: "
                    "load it again, and update that"
                )
            content = self.to_json().encode()
            written(os.fspath(target), content)
        self._files[path.resolve()] = _digest(content)
        return path

    @classmethod
    def load(cls, source: str | os.PathLike[str]) -> Monitor:
        """Read the monitor that `save` wrote."""
        path = Path(source)
        if not path.is_file():
            raise BadInput(f"there is no file {os.fspath(source)!r}: {SAVED}")
        content = path.read_bytes()
        made = cls.from_json(content.decode("utf-8"))
        made._files[path.resolve()] = _digest(content)
        return made

    def report(self, target: str | os.PathLike[str], *, language: str = "en") -> Path:
        """Write what is known: ``.html`` the page, ``.md`` the text of an alert, ``.json`` the state.

        Parameters
        ----------
        target : path
        language : {"en", "de"}
            Of the page and of the alert; the state is the same.

        Returns
        -------
        Path
            Of the file.
        """
        path: Path = import_module(REPORTED_BY).save(self, target, language)
        return path

    def __repr__(self) -> str:
        if self._latest is None:
            return f"Monitor({self.settings.label} by {self.settings.score}: no day yet)"
        s = self.state
        return f"Monitor({s.verdict} since {s.since}, {s.looks:,} looks to {s.at}, {len(s.alarms)} alarms)"


def _plain(value: object) -> object:
    """Settings or a plan as plain data."""
    import msgspec

    return msgspec.to_builtins(value)


def _digest(content: bytes) -> bytes:
    return hashlib.sha256(content).digest()


def _day_number(at: object) -> int:
    if isinstance(at, datetime.datetime):
        return at.date().toordinal()
    if isinstance(at, datetime.date):
        return at.toordinal()
    if isinstance(at, str):
        try:
            return datetime.date.fromisoformat(at).toordinal()
        except ValueError:
            refuse("at", at, "a date such as 2026-01-05")
    return check_int("at", at, 0, FUTURE, of="days", hint="or a date such as 2026-01-05")
