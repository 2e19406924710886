"""Groups against a limit, as they are told: verdicts, the worst of all, gaps, and rows of the log that would decide."""

from typing import Any

import numpy as np
import pytest

import calibrant as cal
from calibrant.audit.checks import groups as checked
from calibrant.audit.checks.groups import of_groups
from calibrant.audit.context import AuditContext
from calibrant.audit.judging import Judging
from calibrant.audit.rounding import step
from calibrant.report import html, markdown, terminal

ROWS = {"a": 4000, "b": 4000, "c": 900, "d": 60}
OFF = {"a": 0.0, "b": 0.15, "c": 0.0, "d": 0.0}
LIMITS = (*np.linspace(0.0071, 0.2971, 60), 0.01, 0.02, 0.035, 0.05, 0.1)


@pytest.fixture(scope="module")
def whole() -> Any:
    rng = np.random.default_rng(11)
    site = np.repeat(list(ROWS), list(ROWS.values()))
    p = rng.uniform(0.2, 0.7, len(site))
    y = rng.uniform(size=len(site)) < p + np.vectorize(OFF.get)(site)
    return cal.sketch(cal.predictions(y, p, {"site": site}), by="site")


def case(whole: Any, limit: float | None, judge: str = "error") -> AuditContext:
    return AuditContext(whole, Judging.of(gates=(), limit=limit, judge=judge, publish=True))


def requested(whole: Any, limit: float | None, judge: str = "error") -> Any:
    answer = of_groups(case(whole, limit, judge), {})
    return answer.findings, answer.estimates["worst_group"]


def size(finding: Any, judge: str) -> tuple[float, float]:
    if judge == "error":
        return finding.lower.interval.low, finding.upper.interval.high
    low, high = finding.gap.guaranteed.low, finding.gap.guaranteed.high
    return max(low, -high, 0.0), max(high, -low)


@pytest.mark.parametrize("judge", ["error", "gap"])
def test_verdicts_follow_ranges_and_the_worst_of_all(whole: Any, judge: str) -> None:
    """Whatever a range as told decides is decided so; U is at most the limit if and only if all are met."""
    seen = set()
    for limit in (0.02, 0.05, 0.08, 0.12, 0.2, 0.4):
        findings, worst = requested(whole, limit, judge)
        for f in findings:
            low, high = size(f, judge)
            assert low <= limit or f.verdict == "over"
            assert high > limit or f.verdict in ("within", "over")
        says = [f.verdict for f in findings]
        assert (worst.interval.high <= limit) == all(v == "within" for v in says)
        seen |= set(says)
    assert seen == {"within", "over", "undecided"}


@pytest.mark.parametrize("judge", ["error", "gap"])
def test_a_verdict_tells_no_more_than_an_end_as_told(whole: Any, judge: str) -> None:
    """Evidence, as a function of the limit, changes at multiples of the group's step only."""
    for name, q, members in checked.group_populations(whole, 20):
        g = checked.certified(name, members, q, case(whole, 0.05, judge), 4)
        cluster = step(g.reported.exact[0])
        for limit in LIMITS[:59]:
            first = cluster * (np.floor(limit / cluster) + 1e-6)
            assert g.over(limit) == pytest.approx(g.over(first), abs=1e-9)
            assert g.within(limit) == pytest.approx(g.within(first), abs=1e-9)


def test_evidence_at_the_limit_itself_would_tell_more(whole: Any) -> None:
    """What the test above must see: without the step, two limits near each other tell exact ends apart."""
    (name, q, members), *_ = checked.group_populations(whole, 20)
    g = checked.certified(name, members, q, case(whole, 0.05), 4)
    cluster = step(g.reported.exact[0])
    near = [g.evidence.over(checked.Limit(x, x)) for x in (0.1 * cluster, 0.9 * cluster)]
    assert abs(near[0] - near[1]) > 1e-6


@pytest.mark.parametrize("judge", ["error", "gap"])
def test_the_price_is_reached_where_the_end_as_told_is_over(whole: Any, judge: str) -> None:
    delta = 0.05 / 8
    for name, q, members in checked.group_populations(whole, 20):
        g = checked.certified(name, members, q, case(whole, 0.05, judge), 4)
        for limit in LIMITS:
            if judge == "error":
                reported = g.lower.interval.low, g.upper.interval.high
                assert (reported[0] > limit) == (g.over(limit) >= -np.log(delta))
            else:
                reported = g.gap.interval.low, max(g.gap.interval.high, -g.gap.interval.low)
                assert reported[0] <= limit or g.over(limit) >= -np.log(2 * delta)
            assert (reported[1] <= limit) == (g.within(limit) >= -np.log(delta))


def test_rows_needed_are_rows_of_the_log(whole: Any) -> None:
    findings, _ = requested(whole, 0.05)
    undecided = [f for f in findings if f.verdict == "undecided"]
    assert undecided
    for f in undecided:
        assert f.rows_needed is None or f.rows_needed >= whole.n * 0.999


def test_gaps_have_signed_ranges_that_hold_the_truth(whole: Any) -> None:
    for f in requested(whole, None)[0]:
        off = OFF[dict(f.variables)["site"]]
        assert f.gap.settings["target"] == "rows"
        assert f.gap.guaranteed.low <= off <= f.gap.guaranteed.high
        assert f.gap.guaranteed.low <= f.gap.value <= f.gap.guaranteed.high
        assert f.gap.interval.low <= f.gap.value <= f.gap.interval.high
        assert f.gap.interval.guarantee == "asymptotic"
    assert requested(whole, None)[0][1].gap.guaranteed.low > 0.08


@pytest.mark.parametrize("judge", ["error", "gap"])
def test_the_worst_of_all_is_the_public_function_from_above(whole: Any, judge: str) -> None:
    """At half of alpha and from above only; its end is told, so no less than the exact one, by two steps at most."""
    reported = requested(whole, 0.05, judge)[1]
    exact = cal.certify.worst_group(whole, judge=judge, alpha=0.025, side="upper")
    assert reported.settings["delta"] == exact.settings["delta"]
    assert reported.interval.level == exact.interval.level == 0.975
    assert reported.interval.low == exact.interval.low == 0.0
    assert exact.interval.high <= reported.interval.high <= exact.interval.high + 2 * step(ROWS["d"])
    assert exact.settings["clear_high"] <= reported.settings["clear_high"]


@pytest.mark.slow
def test_which_groups_are_large_is_seen_by_no_outcome() -> None:
    """The choice is by rows; rows as told are moved by a draw that reads the cases."""
    site, p = np.repeat(["a", "b"], [1901, 99]), np.full(2000, 0.5)
    for seed in range(12):
        y = np.random.default_rng(seed).uniform(size=2000) < p
        found = requested(cal.sketch(cal.predictions(y, p, {"site": site}), by="site"), 0.05)
        tops = found[1].settings["clear_high"], found[1].interval.high
        assert tops[0] < tops[1]  # 99 of 2,000 is less than 5%


def test_the_worst_of_all_says_what_is_judged_only_together() -> None:
    """Sites of 15, off by 40 points in turn, whose sum is right: no sentence is about each of them."""
    n, small = 20_000, 100
    site = np.concatenate([np.repeat(["A", "B"], n // 2), np.repeat([f"s{i}" for i in range(small)], 15)])
    p, rate = np.full(len(site), 0.5), np.full(len(site), 0.5)
    rate[n:] = np.where(np.arange(small * 15) // 15 % 2, 0.9, 0.1)
    y = np.random.default_rng(4).uniform(size=len(site)) < rate
    findings, worst = requested(cal.sketch(cal.predictions(y, p, {"site": site}), by="site"), 0.1)
    assert [f.verdict for f in findings] == ["within"] * 3
    assert sum(f.pooled for f in findings) == worst.settings["pooled"] == small
    assert "3 groups shown, 100 small ones only pooled" in worst.settings["about"]


def test_a_raw_score_over_the_limit_where_its_display_is_within() -> None:
    """The worst of all is about the display: at most the limit though a group is broken, never though one is open."""
    rng = np.random.default_rng(2)
    p = rng.uniform(0.45, 0.55, 30_000)
    y = rng.uniform(size=len(p)) < np.where(p < 0.5, 0.7, 0.3)
    data = cal.predictions(y, p, {"g": np.repeat(["x"], len(p))})
    found = cal.certify.groups(data, by="g", limit=0.08, steps=10)
    assert found["g = x"].settings["verdict"] == "over"
    assert cal.certify.worst_group(data, by="g", steps=10).interval.high <= 0.08


def test_the_public_functions_agree(whole: Any) -> None:
    """The same verdicts where nothing is rounded, and U is at most the limit if and only if every group is met."""
    for judge in ("error", "gap"):
        for limit in (0.05, 0.12, 0.4):
            found = cal.certify.groups(whole, limit=limit, judge=judge)
            worst = cal.certify.worst_group(whole, judge=judge)
            met = [e.settings["verdict"] == "within" for e in found.values()]
            assert (worst.interval.high <= limit) == all(met)
            floors = [max(e.interval.low, -e.interval.high if judge == "gap" else 0.0) for e in found.values()]
            assert worst.interval.low == pytest.approx(max(floors), abs=0.01)
            assert worst.settings["group_low"] == "site = b"
    with pytest.raises(cal.BadInput, match="both sides"):
        cal.certify.groups(whole, limit=0.1, side="lower")


@pytest.mark.slow
def test_a_column_whose_groups_are_units_is_told_as_not_checked() -> None:
    """It was asked for: the first screen said nothing of it, and counted the groups of the other column."""
    rng = np.random.default_rng(5)
    p, sex = rng.uniform(size=3_000), np.array(["f", "m"])[rng.integers(0, 2, 3_000)]
    ward = np.array([f"w{i % 60:02d}" for i in range(3_000)])
    few = np.where(np.arange(3_000) < 9, "rare", "usual")
    data = {"y": (rng.uniform(size=3_000) < p).astype(int), "p": p, "sex": sex, "ward": ward, "few": few}
    asked = {"label": "y", "score": "p", "limit": 0.03, "quick": True, "variables": None}
    by_ward = cal.audit(data, by=["sex", "ward"], cluster="ward", intersections=True, **asked)
    stated = " ".join(terminal.render(by_ward).split())
    assert "60 groups of ward: not checked, one cluster each." in stated
    assert stated.count("not checked, one cluster each") == 1  # once, and not of both columns crossed too
    assert "60 groups of `ward`: not checked, one cluster each." in markdown.render(by_ward)
    assert "60 groups of <bdi>ward</bdi>: not checked, one cluster each." in html.render(by_ward)
    small = " ".join(terminal.render(cal.audit(data, by=["sex", "few"], **asked)).split())
    assert "Groups of few: not checked, none can be shown without revealing a few people." in small
    assert "not checked, " not in terminal.render(cal.audit(data, by="sex", **asked)).split("What to do")[0]
