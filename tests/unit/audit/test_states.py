"""What an audit says of everyone and each group: its verdict, error shown next to it, estimates, and why not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import calibrant as cal
from calibrant.audit.judging import three_digits
from calibrant.report import markdown, terminal

RNG = np.random.default_rng(3)
N = 3000
P, G = RNG.uniform(0.1, 0.6, N), RNG.choice(["a", "b", "c"], N, p=[0.5, 0.4, 0.1])
U = RNG.uniform(size=N)
HOW: dict[str, Any] = {"label": "y", "score": "p", "variables": None, "quick": True}


def audited(rate: Any, by: str | None = "g", **more: Any) -> Any:
    data = {"y": (rate > U).astype(int), "p": P, "g": G, "c": np.arange(N) // 3}
    return cal.audit(data, **({"by": by} if by else {}), **HOW, **more)


OFF = np.clip(P + 0.15 * (G == "b"), 0.0, 1.0)
TURNED = np.where(P < 0.35, P + 0.25, P - 0.25)  # errors that cancel: the gap is none


@pytest.fixture(scope="module")
def off() -> Any:
    return audited(OFF, limit=0.08)


def group(record: Any, level: str) -> Any:
    return next(f for f in record.groups if f.variables == (("g", level),))


def test_everyone_is_judged_by_error_and_groups_by_their_gap(off: Any) -> None:
    assert off.settings["judge"] == "auto"
    assert [f.by for f in (off.everyone, *off.groups)] == ["error", "gap", "gap", "gap"]
    assert group(off, "b").verdict == "over"
    assert group(off, "a").verdict == "within"
    assert "gap within 8.0" in terminal.render(off)
    assert "Gap within 8.0" in markdown.render(off)


@pytest.mark.slow
def test_a_group_whose_error_is_certified_over_the_limit_is_over() -> None:
    """By gaps alone it is within: errors of opposite signs cancel in it."""
    auto, gap = (audited(TURNED, limit=0.1, judge=judge) for judge in ("auto", "gap"))
    assert (group(auto, "a").verdict, group(gap, "a").verdict) == ("over", "within")
    one = group(auto, "a")
    assert one.lower.interval.low > 0.1 > one.gap.guaranteed.high
    assert "error\N{NO-BREAK SPACE}≥\N{NO-BREAK SPACE}1" in next(
        line for line in terminal.render(auto).splitlines() if "g = a" in line
    )


@pytest.mark.slow
def test_judged_by_one_measure_all_are() -> None:
    for judge in ("error", "gap"):
        record = audited(P, limit=0.1, judge=judge)
        assert {f.by for f in (record.everyone, *record.groups)} == {judge}


@pytest.mark.slow
def test_error_shown_stands_next_to_the_verdict() -> None:
    """Three points off, with a limit of thirty."""
    record = audited(np.clip(P + 0.08, 0.0, 1.0), limit=0.3)
    assert (record.everyone.verdict, record.everyone.error_shown) == ("within", True)
    assert record.verdicts["everyone"] == "within"
    assert record.error_shown["everyone"]
    assert "Everyone: within the limit, error shown." in terminal.render(record)
    none = audited(P, limit=0.3)
    assert not any(none.error_shown.values())
    assert "error shown" not in terminal.render(none)


@pytest.mark.slow
def test_what_fails_on_error_shown() -> None:
    rate = np.clip(P + 0.08, 0.0, 1.0)
    assert audited(rate, limit=0.3).exit_status == 0
    assert audited(rate, limit=0.3, fail_on="error-shown").exit_status == 1
    assert audited(P, limit=0.3, fail_on="error-shown").exit_status == 0


@pytest.mark.slow
def test_copies_withhold_every_verdict_and_say_so() -> None:
    data = {"y": np.repeat((U < OFF).astype(int), 3), "p": np.repeat(P, 3), "g": np.repeat(G, 3)}
    record = cal.audit(data, by="g", limit=0.05, **HOW)
    for f in (record.everyone, *record.groups):
        assert (f.verdict, f.withheld, f.error_shown) == ("not_checked", "copied rows", False)
        assert f.gap.guaranteed is not None  # ranges stay
    assert (record.withheld, record.exit_status, record.shares) == ("copied rows", 3, ())
    assert "Everyone: withheld." in terminal.render(record)
    assert cal.audit(data, by="g", **HOW).exit_status == 0  # nothing was to be judged


def test_estimates_have_ordinary_intervals_and_certified_ones(off: Any) -> None:
    for f in (off.everyone, *off.groups):
        for of in (f.gap, f.error, f.observed_expected):
            assert of.interval.low <= of.value <= of.interval.high
            assert (of.interval.guarantee, of.guaranteed.guarantee) == ("asymptotic", "finite-sample")
            assert 0.0 <= of.p_value <= 1.0
        width = f.gap.interval.high - f.gap.interval.low
        assert width < f.gap.guaranteed.high - f.gap.guaranteed.low
    assert group(off, "b").gap.p_value < 1e-6
    with pytest.raises(TypeError):
        assert off.everyone.gap < 0.1
    assert format(off.everyone.gap, ".3f").count("certified") == 1


def test_the_ratio_is_one_plus_the_gap_over_the_mean_score(off: Any) -> None:
    one = off.everyone
    ratio, mean = one.observed_expected, one.expected / one.rows
    assert ratio.value == pytest.approx(one.events / one.expected, abs=1e-6)
    assert ratio.guaranteed.low == pytest.approx(1.0 + one.gap.guaranteed.low / mean)
    own = cal.measure.observed_expected(cal.predictions((U < OFF).astype(int), P))
    assert (ratio.interval.low, ratio.interval.high) == pytest.approx((own.interval.low, own.interval.high), abs=2e-3)


@pytest.mark.slow
def test_of_clusters_the_ordinary_interval_is_cluster_robust() -> None:
    """Every row three times in a cluster: the interval is as wide as of the rows once."""
    y = (U < OFF).astype(int)[: N // 3]
    rows = {"y": np.repeat(y, 3), "p": np.repeat(P[: N // 3], 3), "c": np.arange(N) // 3}
    once = cal.audit({"y": y, "p": P[: N // 3]}, **HOW).everyone.gap.interval
    clustered = cal.audit(rows, cluster="c", **HOW).everyone
    alone = cal.audit(rows, allow_same=True, **HOW).everyone.gap.interval
    width = clustered.gap.interval.high - clustered.gap.interval.low
    assert width == pytest.approx(once.high - once.low, rel=0.15)
    assert width > 1.5 * (alone.high - alone.low)
    assert clustered.observed_expected.guaranteed is None  # the mean score is drawn too


def test_a_relative_limit_is_a_share_of_the_mean_score_of_each() -> None:
    record = audited(OFF, limit_relative=0.25)
    for f in (record.everyone, *record.groups):
        assert f.limit == pytest.approx(0.25 * f.expected / f.rows, rel=0.05)
        assert f.limit == three_digits(f.limit)
    assert (record.settings["limit"], record.settings["limit_relative"]) == (record.everyone.limit, 0.25)
    assert group(record, "b").verdict == "over"
    assert "limit 25% of the mean score" in terminal.render(record)
    with pytest.raises(cal.BadInput, match="limit= and limit_relative= are two ways to give one limit"):
        audited(P, limit=0.1, limit_relative=0.1)
    with pytest.raises(cal.BadInput, match="limit_relative"):
        audited(P, limit_relative=1.5)


@pytest.mark.parametrize(("value", "short"), [(0.0, 0.0), (0.071868, 0.0718), (0.25, 0.25), (1e-4, 1e-4), (0.3, 0.3)])
def test_a_number_is_rounded_down_to_three_digits(value: float, short: float) -> None:
    assert three_digits(value) == pytest.approx(short, abs=1e-15)


def test_the_page_says_once_how_probable_a_wrong_verdict_is(off: Any) -> None:
    assert off.joint_error == {"over": 0.1, "within": 0.075, "error_shown": 0.15}
    reported = terminal.render(off)
    stated = "In at most 10% of such reports is any “over” wrong, in at most 7.5% any “within”."
    assert " ".join(reported.split()).count(stated) == 1
    assert "any “over” wrong" not in terminal.render(audited(P))
