"""Progress: the step, the share of the whole that is done, and the time left, from declared costs and a clock."""

from __future__ import annotations

import io
import sys

import pytest
from rich.console import Console

from calibrant.audit.checks import all_checks
from calibrant.audit.context import Cost, Size
from calibrant.cli.progress import Progress
from calibrant.data.progress import ProgressEvent, ProgressTracker, about


class Clock:
    """A clock that is set."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize(
    ("event_now", "text"),
    [
        (ProgressEvent(step="reading"), "reading"),
        (ProgressEvent(step="reading", rows=12_000), "reading: 12,000 rows"),
        (
            ProgressEvent(step="reading", rows=1000, of=4000, share=0.125, left=7.0),
            "reading: 1,000 of 4,000 rows, 12%, about 7 s left",
        ),
        (ProgressEvent(step="certifying groups", share=0.5, left=100.0), "certifying groups: 50%, about 2 min left"),
    ],
)
def test_print_will_do(event_now: ProgressEvent, text: str) -> None:
    assert str(event_now) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.0, "1 s"), (9.4, "9 s"), (43.0, "40 s"), (100.0, "2 min"), (3599.0, "60 min"), (9e3, "2 h")],
)
def test_times_are_said_roughly(seconds: float, text: str) -> None:
    assert about(seconds) == f"about {text}"


def test_the_share_grows_with_the_rows_and_the_declared_costs() -> None:
    clock, reported = Clock(), list[ProgressEvent]()
    tracker = ProgressTracker(reported.append, 2, lambda rows: 20.0, clock)
    tracker.reading(ProgressEvent(step="looking", of=100))
    clock.now = 5.0
    tracker.reading(ProgressEvent(step="looking", rows=100, of=100))
    assert reported[0].share is None
    assert reported[-1].share == pytest.approx(5 / 30)
    assert reported[-1].left == pytest.approx(25.0)
    clock.now = 10.0
    tracker.reading(ProgressEvent(step="reading", rows=100, of=100))
    assert reported[-1].share == pytest.approx(10 / 30)
    tracker.expect({"a": 5.0, "b": 14.0})
    tracker.begin("a")
    assert reported[-1].share == pytest.approx(10 / 29, abs=0.01)
    clock.now = 20.0
    tracker.finish("a")
    tracker.begin("b")
    assert reported[-1].until == pytest.approx(1.0)
    assert reported[-1].left == pytest.approx(14 * 11 / 6), "this machine is slower than planned"
    clock.now = 50.0
    tracker.finish("b")
    tracker.begin("c")
    assert (reported[-1].share, reported[-1].left) == (1.0, 0.0)
    shares = [d.share for d in reported if d.share is not None]
    assert shares == sorted(shares)


def test_a_source_that_cannot_tell_its_rows_has_no_share() -> None:
    reported = list[ProgressEvent]()
    tracker = ProgressTracker(reported.append, 1, lambda rows: 20.0, Clock())
    tracker.reading(ProgressEvent(step="reading", rows=100))
    assert (reported[-1].share, reported[-1].left) == (None, None)


def test_costs_grow_with_what_they_depend_on() -> None:
    small = Size(groups=2, covariates=2, sample_rows=2.0, tests=True)
    large = Size(groups=40, covariates=12, sample_rows=100.0, tests=True)
    assert Cost(tests=True, flat=9.0).seconds(Size(groups=2, covariates=2, sample_rows=2.0, tests=False)) == 0.0
    for q in all_checks():
        assert 0.0 < q.cost.seconds(small) <= q.cost.seconds(large)
    dear = max(all_checks(), key=lambda q: q.cost.seconds(small))
    assert dear.code in ("strong-calibration", "repair")


def shown(clock: Clock) -> tuple[Progress, io.StringIO]:
    out = io.StringIO()
    return Progress(Console(file=out, force_terminal=True, width=120, color_system=None), clock), out


def test_a_terminal_shows_step_share_and_time_left() -> None:
    clock = Clock()
    progress, out = shown(clock)
    with progress:
        progress(ProgressEvent(step="reading", rows=7))
        clock.now = 3.0
        assert progress.line() == "reading: 7 rows, 3 s so far"
        progress(ProgressEvent(step="certifying groups", share=0.5, left=40.0, until=0.8))
        assert progress.line() == f"{'█' * 8}{'░' * 8} certifying groups: 50%, about 40 s left"
        clock.now = 23.0
        assert progress.line().endswith("certifying groups: 75%, about 20 s left"), "time goes on"
        clock.now = 500.0
        assert progress.line().endswith("80%, about 20 s left"), "to the end of the step and no further"
        progress(ProgressEvent(step="measuring", share=0.7, left=30.0, until=1.0))
        assert progress.line().endswith("80%, about 20 s left"), "nor ever back"
        clock.now = 900.0
        assert progress.line().endswith("99%, about 1 s left"), "and a run that goes on is not done"
        progress(ProgressEvent(step="bad \x1b[31m name", share=0.1))
        assert "\x1b" not in progress.line()
    assert "reading" in out.getvalue() or "bad" in out.getvalue()


def test_nothing_is_shown_where_there_is_no_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: False, raising=False)
    with Progress() as progress:
        progress(ProgressEvent(step="reading", rows=7, share=0.5, left=3.0))
    assert capsys.readouterr() == ("", "")
