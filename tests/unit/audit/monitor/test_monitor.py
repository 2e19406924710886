"""The monitor: days in order, what is refused, what it knows, and that it is the same after it was saved."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from unittest.mock import PropertyMock, patch

import numpy as np
import pyarrow as pa
import pytest

import calibrant as cal
from calibrant.audit.monitor.state import ALARMS
from calibrant.errors import BadInput, NotComputable


def rows(seed: int = 0, off: float = 0.0, n: int = 400) -> pa.Table:
    rng = np.random.default_rng(seed)
    p, site = rng.uniform(0.1, 0.65, n), rng.choice(["A", "B"], n)
    y = rng.uniform(size=n) < p + np.where(site == "B", off, 0.0)
    return pa.table({"y": y.astype(int), "p": p, "site": site, "age": rng.integers(18, 90, n)})


def watched(days: int = 5, **more: object) -> cal.Monitor:
    watch = cal.Monitor(label="y", score="p", **{"limit": 0.1, "by": "site", "variables": "age"} | more)
    for day in range(days):
        watch.update(rows(day), at=f"2026-01-{day + 1:02}")
    return watch


def test_an_error_of_a_group_is_found_since_when_and_for_whom() -> None:
    watch, statuses = watched(8), set()
    for day in range(8, 16):
        state = watch.update(rows(day, 0.2), at=datetime.date(2026, 1, day + 1))
        statuses.add(state.exit_status)
    assert state.alarms[0].suspects[0].name == "site = B"
    assert state.alarms[0].suspects[0].observed == "above"
    assert state.lasting is not None
    assert "2026-01-07" <= state.lasting.onset <= "2026-01-11"
    assert state.lasting.onset_first <= state.lasting.onset <= state.lasting.onset_last
    assert statuses == {0, 1}
    assert state.looks == len(state.history) == 16
    assert state.rows == 16 * 400


def test_an_alarm_for_somebody_else_is_named_with_its_own_beginning() -> None:
    from calibrant.report.outputs.monitored import lines

    watch = watched(4, days_between_false_alarms=100_000.0)
    for day in range(4, 14):
        some = rows(day, 0.3 if day < 7 else 0.0, 1000)
        if day >= 9:  # fewer events of everyone at site A
            a = np.array(some["site"].to_pylist()) == "A"
            some = some.set_column(0, "y", pa.array(np.where(a, 0, some["y"].to_numpy())))
        state = watch.update(some, at=f"2026-01-{day + 1:02}")
        if day == 6:
            assert "site = B (underpredicts). It most plausibly began about 2026-01-05" in lines(watch)
            assert "by the evidence since" not in lines(watch)
    assert state.lasting is not None
    assert state.lasting.suspects[0].name == "site = B"
    first = next(a for a in state.alarms if a.kind == "changed" and a.suspects[0].name == "site = A")
    assert "2026-01-09" <= str(first.onset) <= first.day <= "2026-01-12"
    assert "by the evidence since the alarm before: site = A (overpredicts), since about 2026-01-" in lines(watch)


def test_a_headline_names_four_populations_that_are_over_and_counts_the_rest() -> None:
    from calibrant.report.outputs.monitored import HEADED, headline

    watch = cal.Monitor(label="y", score="p", by="ward", limit=0.02)
    rng = np.random.default_rng(0)
    p, ward = np.full(12_000, 0.3), rng.choice(list("abcdef"), 12_000)
    state = watch.update(pa.table({"y": (rng.uniform(size=12_000) < 0.7).astype(int), "p": p, "ward": ward}), at=1)
    over = sum(r.verdict == "over" for r in state.window)
    assert over == 7
    assert headline(watch.settings, state).endswith(f" since 1 and {over - HEADED} more.")


def test_the_same_days_give_the_same_monitor_saved_in_between_or_not(tmp_path: Path) -> None:
    whole, parts = watched(6), watched(3)
    for day in range(3, 6):
        parts = cal.Monitor.load(parts.save(tmp_path / "m.json"))
        parts.update(rows(day), at=f"2026-01-{day + 1:02}")
    assert parts.to_json() == whole.to_json()
    assert parts.state == whole.state
    assert repr(parts) == repr(whole)


def test_the_latest_day_can_be_replaced_and_no_other() -> None:
    corrected = watched(4)
    corrected.update(rows(9), at="2026-01-05")
    corrected.update(rows(4), at="2026-01-05", replace=True)
    assert corrected.to_json() == watched(5).to_json()
    with pytest.raises(BadInput, match="2026-01-05 has been entered: pass replace=True"):
        corrected.update(rows(4), at="2026-01-05")
    with pytest.raises(BadInput, match=r"earlier than the latest day, 2026-01-05.*only the latest can be replaced"):
        corrected.update(rows(4), at="2026-01-04", replace=True)
    with pytest.raises(BadInput, match="2026-01-04 is earlier than the latest day, 2026-01-05"):
        corrected.update(rows(4), at="2026-01-04")
    assert corrected.to_json() == watched(5).to_json()  # a refusal changes nothing
    corrected.update(rows(5), at="2026-01-06", replace=True)  # a later day enters, for a scheduler that always says so
    assert corrected.to_json() == watched(6).to_json()


@pytest.mark.parametrize(
    ("more", "line"),
    [
        ({"limit": 2}, "limit=2: pass a number between 0 and 1"),
        ({"alpha": 0.7}, "alpha=0.7"),
        ({"window": 0}, "window=0: pass a whole number of days from 1"),
        ({"tolerance": -0.1}, "tolerance=-0.1: pass a number from 0 to below 1"),
        ({"judge": "worst"}, "judge='worst'"),
        ({"days_between_false_alarms": 1}, "days_between_false_alarms=1: pass a number from 2 up"),
        ({"by": "p"}, "column 'p' is the label or the score"),
        ({"cluster": "id", "shared_shocks": True}, "a day is one cluster already"),
        ({"cluster": "id", "judge": "error"}, "pass 'gap'"),
        ({"labels_within": 30}, "labels_within needs key="),
    ],
)
def test_settings_that_cannot_be_are_refused_in_one_line(more: dict[str, object], line: str) -> None:
    with pytest.raises(BadInput) as e:
        cal.Monitor(label="y", score="p", **more)
    assert line in str(e.value)
    assert "\n" not in str(e.value)


def test_batches_that_cannot_be_used_are_refused() -> None:
    watch = watched(1)
    with pytest.raises(BadInput, match="'site'"):
        watch.update(rows().drop_columns(["site"]), at="2026-01-02")
    with pytest.raises(BadInput, match="at='soon': pass a date such as 2026-01-05"):
        watch.update(rows(), at="soon")
    for number in (7, np.int64(7)):
        with pytest.raises(BadInput, match="the days before are dates"):
            watch.update(rows(), at=number)
    with pytest.raises(BadInput, match="a sketch does not hold"):
        watch.update(cal.sketch(rows(), label="y", score="p"), at="2026-01-02")
    two = ([0, 1], [0.1, 0.2], {"site": ["A", "B"], "age": [1, 2]})
    with pytest.raises(BadInput, match="the monitor takes rows as independent"):
        watch.update(cal.predictions(*two, cluster=[0, 0]), at="2026-01-02")
    with pytest.raises(NotComputable, match="weights"):
        watch.update(cal.predictions(*two, weights=[1, 2]), at="2026-01-02")
    with pytest.raises(BadInput, match="waits 30 days for labels"):
        cal.Monitor(label="y", score="p", labels_within=30, key="id").update(rows(), at=1)
    with pytest.raises(BadInput, match="nothing to report"):
        _ = cal.Monitor(label="y", score="p").state


def test_too_many_levels_are_refused_with_the_column_that_has_them() -> None:
    n, levels = 8000, {f"c{i}": 90 for i in range(6)} | {"d": 95}
    columns = {name: [f"{name}{i % k}" for i in range(n)] for name, k in levels.items()}
    wide = pa.table({"y": [0, 1] * (n // 2), "p": [0.5] * n, **columns})
    with pytest.raises(BadInput, match=r"too many to watch \(at most 600\): leave 'd' out, which has 97 levels"):
        cal.Monitor(label="y", score="p", by=list(levels)).update(wide, at=0)


@pytest.mark.parametrize(
    ("by", "variables", "paired"),
    [
        (("a", "b"), ("c", "d"), ["a", "b", "c", "d"]),
        (("a", "b"), ("c", "wide"), ["a", "b"]),  # every pair of them would be too many
        (("wide", "wider"), ("a",), []),
        (("a",), ("b", "c", "d", "e", "f", "g"), ["a"]),
    ],
)
def test_pairs_are_watched_where_directions_are_not_too_many(
    by: tuple[str, ...], variables: tuple[str, ...], paired: list[str]
) -> None:
    n = 4000
    columns = {name: [f"{name}{i % 5}" for i in range(n)] for name in "abcdefg"}
    columns |= {name: [f"{name}{i % 40}" for i in range(n)] for name in ("wide", "wider")}
    rows = pa.table({"y": [0, 1] * (n // 2), "p": np.linspace(0.1, 0.9, n), **columns})
    watch = cal.Monitor(label="y", score="p", by=by, variables=variables)
    watch.update(rows, at=0)
    assert [v.name for v in watch.plan.paired] == paired
    pairs = sum(w.kind == "pair" for w in watch.plan.watched)
    sizes = {v.name: len(v.labels) for v in watch.plan.attributes}
    assert pairs == sum(sizes[x] * sizes[z] for i, x in enumerate(paired) for z in paired[i + 1 :])


def test_what_is_no_monitor_is_refused() -> None:
    d = json.loads(watched(2).to_json())
    with pytest.raises(BadInput, match="not a monitor"):
        cal.Monitor.from_json("{}")
    for broken in (
        d | {"latest": None, "settled": d["settled"], "plan": None},
        d | {"settings": d["settings"] | {"alpha": "x"}},
        d | {"latest": d["latest"] | {"gains": {"shape": [1, 1], "base64": "AAAAAAAA8D8="}}},
        d | {"settled": {k: v for k, v in d["settled"].items() if k != "detector"}},
    ):
        if broken["plan"] is None:
            with pytest.raises(BadInput):
                _ = cal.Monitor.from_json(json.dumps(broken)).state
        else:
            with pytest.raises(BadInput, match="not a monitor"):
                cal.Monitor.from_json(json.dumps(broken))


def test_a_reference_fixes_levels_without_its_labels() -> None:
    one = cal.Monitor(rows(1), label="y", score="p", by="site")
    flipped = rows(1).set_column(0, "y", pa.array(1 - rows(1).column("y").to_numpy()))
    other = cal.Monitor(flipped, label="y", score="p", by="site")
    assert one.to_json() == other.to_json()
    assert one.plan.populations[:3] == ("everyone", "site = A", "site = B")


def test_clusters_are_judged_by_their_gap() -> None:
    watch = cal.Monitor(label="y", score="p", limit=0.2, cluster="age")
    for day in range(3):
        state = watch.update(rows(day, n=2000), at=day)
    assert watch.settings.judge == "gap"
    assert state.window[0].error_high == 1.0
    assert state.window[0].low < 0 < state.window[0].high < 0.2
    assert state.verdict == "within"


def test_the_state_stays_small() -> None:
    watch = cal.Monitor(label="y", score="p", window=3)
    sizes = {}
    for day in range(48):
        watch.update(rows(day, n=30), at=day)
        sizes[day] = len(watch.to_json())
    # Of each look a line, and of as many days again a few blocks of starts.
    assert sizes[47] - sizes[23] < 24 * 300 + 4 * 8 * 10 * len(watch.plan.watched) * 4 / 3


@pytest.mark.slow
@pytest.mark.parametrize(("levels", "window"), [(3, 40), (12, 3), (12, 40)])
def test_the_state_has_the_size_that_is_said(levels: int, window: int) -> None:
    watch = cal.Monitor(label="y", score="p", by=("a", "b"), window=window, tolerance=0.6)
    codes = np.arange(240)
    covariates = {"a": [f"a{i % levels}" for i in codes], "b": [f"b{i // 3 % levels}" for i in codes]}
    for day in range(48):
        watch.update(cal.predictions(codes % 2, np.linspace(0.3, 0.7, 240), covariates), at=day)
    directions, populations = len(watch.plan.watched), len(watch.plan.populations)
    numbers = 10 * directions * (3 * np.log2(48) + 3) + min(window, 48) * (10 * populations + 203)
    assert 0.5 < len(watch.to_json()) / (11 * numbers + 300 * 48 + 8000) < 1.0


def test_over_is_by_the_score_itself_and_within_by_the_rounded_one(tmp_path: Path) -> None:
    """Both scores are 30 percent rounded, and five points off in opposite directions: the page says what is what."""
    watch = cal.Monitor(label="y", score="p", limit=0.03, window=3, alpha=0.5)
    rng = np.random.default_rng(0)
    for day in range(6):
        p = rng.choice([0.301, 0.304], 20_000)
        watch.update(cal.predictions(rng.uniform(size=len(p)) < np.where(p == 0.301, 0.251, 0.354), p), at=day)
    everyone = watch.state.window[0]
    assert everyone.verdict == "over"
    assert everyone.error_high < 0.03 < everyone.error_low
    page = watch.report(tmp_path / "p.html").read_text()
    assert "Everyone is over the limit by the calibration error of the score itself, and within it by the gap" in page
    gap = cal.Monitor(label="y", score="p", limit=0.03, judge="gap")
    gap.update(cal.predictions([0, 1] * 50, [0.2, 0.6] * 50), at=1)
    assert "over the limit by the calibration error" not in gap.report(tmp_path / "g.html").read_text()


def test_a_day_makes_its_state_once() -> None:
    watch = cal.Monitor(label="y", score="p")
    with patch.object(cal.Monitor, "drift", PropertyMock(return_value=None)) as made:
        watch.update(cal.predictions([0, 1] * 50, [0.2, 0.6] * 50), at=1)
    assert made.call_count == 1


def test_a_page_without_a_limit(tmp_path: Path) -> None:
    watch = cal.Monitor(label="y", score="p")
    watch.update(cal.predictions([0, 1] * 50, [0.2, 0.6] * 50), at=1)
    assert "No limit was set: ranges and alarms only." in watch.report(tmp_path / "p.html").read_text()


def test_reports_say_what_is_known(tmp_path: Path) -> None:
    watch = watched(4, window=4)
    for day in range(4, 8):
        watch.update(rows(day, 0.3, n=3000), at=f"2026-01-{day + 1:02}")
    page = watch.report(tmp_path / "page.html").read_text()
    alert = watch.report(tmp_path / "alert.md").read_text()
    state = json.loads(watch.report(tmp_path / "state.json").read_text())
    assert state == watch.state.to_dict()
    for text in (page, alert):
        assert "site = B (underpredicts)" in text
        assert "Over the limit of 10.0 points: " in text
    assert "<svg" in page
    assert "with probability 95% none" in page
    assert "false with probability at most 5%, ever" in page
    assert "Evidence of any error since the start: more than an alarm takes" in page
    assert "calibrant-result" in page
    with pytest.raises(BadInput, match=r"a monitor is written as .html, .json, .md"):
        watch.report(tmp_path / "page.pdf")


def test_names_of_the_data_stay_text(tmp_path: Path) -> None:
    table = rows().set_column(2, "site", pa.array(["<script>x</script>", "|b`"] * 200))
    watch = cal.Monitor(label="y", score="p", by="site", limit=0.3)
    watch.update(table, at=0)
    page = watch.report(tmp_path / "page.html").read_text()
    assert "<script>x" not in page.replace('id="calibrant-result"', "")
    assert "\\u003cscript>x" in page or "&lt;script&gt;x" in page


def test_whole_numbers_of_numpy_are_days_by_number() -> None:
    watch = cal.Monitor(label="y", score="p")
    assert watch.update(rows(0), at=np.int64(5)).at == "5"


def test_years_without_a_look_are_no_alarm() -> None:
    """A start counts for the days it stands for; more of them than an alarm takes would be one by themselves."""
    watch = watched(3, days_between_false_alarms=3650)
    state = watch.update(rows(3), at="2056-01-04")
    assert not state.alarms
    assert watch._now.detector.days.sum() == 4


@pytest.mark.slow
def test_an_error_on_one_weekday_is_found_by_it() -> None:
    watch, first = cal.Monitor(label="y", score="p"), datetime.date(2026, 1, 1)
    for number in range(60):
        day = first + datetime.timedelta(number)
        state = watch.update(rows(number, 0.25 * (day.weekday() == 6) or 0.0, n=600), at=day)
    assert state.alarms[0].suspects[0].name == "Sundays"
    assert state.alarms[0].suspects[0].kind == "season"
    assert cal.Monitor.from_json(watch.to_json()).to_json() == watch.to_json()


def test_a_date_bets_on_its_weekday_and_month_and_on_no_other() -> None:
    watch = watched(1)  # a Thursday in January
    plan, names = watch.plan, [w.name for w in watch.plan.watched]
    gains = plan.day(watch.rows_of(rows(7)), datetime.date(2026, 2, 3).toordinal())[0]
    seasons = {w.name: g for w, g in zip(plan.watched, gains, strict=True) if w.kind == "season"}
    assert len(seasons) == 19
    for name, won in seasons.items():
        assert np.array_equal(won, gains[0] if name in ("Tuesdays", "February") else np.zeros(len(won)))
    assert np.isclose(plan.prior.sum(), 1.0)
    assert len(names) == len(plan.prior)


def test_days_by_number_have_no_seasons_and_a_reference_leaves_them_open() -> None:
    numbers = cal.Monitor(label="y", score="p")
    numbers.update(rows(), at=1)
    assert all(w.kind != "season" for w in numbers.plan.watched)
    referred = cal.Monitor(rows(1), label="y", score="p", by="site")
    referred.update(rows(), at="2026-01-01")
    assert sum(w.kind == "season" for w in referred.plan.watched) == 19


@pytest.mark.slow
def test_a_score_that_rounding_moves_towards_the_truth_is_not_within() -> None:
    """Scores of .0149 are shown as 1%, which is the truth; the score itself is off by half a point."""
    rng = np.random.default_rng(0)
    watch = cal.Monitor(label="y", score="p", limit=0.004)
    for day in range(4):
        y = (rng.uniform(size=100_000) < 0.01).astype(int)
        state = watch.update(cal.predictions(y, np.full(len(y), 0.0149)), at=day)
    for r in (state.window[0], state.all_days[0]):
        assert r.error_low <= r.error_high
        assert -r.low <= r.error_high
    assert state.window[0].verdict == "over"
    assert all(k.verdict != "within" for k in state.history)


@pytest.mark.slow
def test_the_alarm_of_any_error_stays_after_many_alarms_of_a_change() -> None:
    watch = cal.Monitor(label="y", score="p", days_between_false_alarms=2)
    for day in range(ALARMS + 5):
        state = watch.update(cal.predictions([1] * 300, [0.05] * 300), at=day)
    assert [a.kind for a in state.alarms].count("changed") == ALARMS - 1
    assert [a.day for a in state.alarms if a.kind == "ever"] == ["0"]
    assert state.alarms[-1].day == str(ALARMS + 4)


def groups(day: int, b: float = 0.0, c: float = 0.0, of_c: int = 300) -> cal.Predictions:
    """Two groups of 3,000 rows, and one of `of_c`, of which b and c are off."""
    rng, site = np.random.default_rng(day), np.repeat(["A", "B", "C"], [3000, 3000, of_c])
    p = rng.uniform(0.2, 0.6, len(site))
    y = rng.uniform(size=len(site)) < p + np.where(site == "B", b, np.where(site == "C", c, 0.0))
    return cal.predictions(y.astype(int), p, {"site": site})


def test_each_group_has_its_own_since(tmp_path: Path) -> None:
    watch = cal.Monitor(label="y", score="p", by="site", limit=0.1, window=5)
    for day in range(14):
        state = watch.update(groups(day, b=0.3 * (day >= 3), c=0.35 * (day >= 9)), at=day)
    since = {r.name: int(r.since) for r in state.window if r.verdict == "over"}
    assert since["site = B"] < 9 < since["site = C"]
    assert int(state.since) == since["site = B"]
    alert = watch.report(tmp_path / "alert.md").read_text()
    assert f"site = B since {since['site = B']}, site = C since {since['site = C']}." in alert
    again = cal.Monitor.from_json(watch.to_json()).state
    assert [r.since for r in again.window] == [r.since for r in state.window]


def test_groups_of_few_rows_are_counted_and_not_shown(tmp_path: Path) -> None:
    watch = cal.Monitor(label="y", score="p", by="site", limit=0.1, tolerance=0.0, days_between_false_alarms=2)
    for day in range(6):
        state = watch.update(groups(day, c=0.4, of_c=3), at=day)
    assert [r.name for r in state.window] == ["everyone", "site = A", "site = B"]
    assert [r.name for r in state.all_days] == ["everyone", "site = A", "site = B"]
    assert state.small_groups == 1
    assert state.alarms
    assert state.verdict == "within"
    for target in ("page.html", "alert.md", "state.json"):
        assert "site = C" not in watch.report(tmp_path / target).read_text()
    alert = watch.report(tmp_path / "alert.md").read_text()
    assert "for everyone and every group of 20 rows or more, at every look since" in alert
    assert "1 group has fewer rows, and no verdict." in alert
    watch.update(groups(6, c=0.4, of_c=3), at=6)
    assert "site = C" in {r.name for r in watch.update(groups(7, c=0.4, of_c=3), at=7).window}


@pytest.mark.parametrize("passed", [0, 40])
def test_the_alarm_of_any_error_knows_no_onset_from_a_search_that_started_again(passed: int, tmp_path: Path) -> None:
    """Of an error that lasts it is that of the first alarm; where alarms before it have passed, none is known."""
    watch = cal.Monitor(label="y", score="p", days_between_false_alarms=1e4, alpha=1e-6, window=10)
    state, day = watch.update(cal.predictions([0, 1] * 20, [0.5] * 40), at=0), 0
    while not any(a.kind == "ever" for a in state.alarms):
        day += 1
        at = day + passed * bool(state.alarms)
        state = watch.update(cal.predictions([1] * 25 + [0] * 15, [0.5] * 40), at=at)
    first, ever = state.alarms
    assert (first.kind, ever.kind) == ("changed", "ever")
    assert ever.onset == (None if passed else first.onset)
    alert = watch.report(tmp_path / "alert.md").read_text()
    assert ("not known" in alert) == bool(passed)
    for day in range(100, 130):
        state = watch.update(cal.predictions([1] * 40, [0.1] * 40), at=day)
    assert "any error since the start" in watch.report(tmp_path / "alert.md").read_text()
    assert "(since the last alarm)" in (tmp_path / "alert.md").read_text()
