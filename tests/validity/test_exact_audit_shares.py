"""How an audit shares alpha among its verdicts: no kind of verdict wrong more often than the record says, enumerated.

Groups do not overlap, and every true gap and error is at the limit, where each evidence has its largest error: p-values
that are uniform on a grid, and e-values that are the price, or nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from math import exp, log
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

import calibrant as cal
from calibrant.audit.checks.groups import decided
from calibrant.audit.judging import Shares, showing_error
from calibrant.audit.record import Share, joint_error
from calibrant.certify.closed import Limit, SignedEvidence
from calibrant.stats.subgroups.row_gaps import binomial
from factories import finding, replace

ALPHA = 0.2
GRID = 100  # p-values k / 100
EDGE = 1e-9  # so that what is at a price reaches it
GROUPS = 2


@dataclass(frozen=True)
class Evidence:
    """Whether means are refused, as of p-values."""

    p_values: bool = True


@dataclass(frozen=True)
class Group:
    """A group as `decided` reads it."""

    gap: float = 0.0  # minus the logs of p-values against "at most the limit", and "at least"
    inside: float = 0.0
    error: float = 0.0  # the log of an e-value
    limit: float | None = 0.05
    gaps: Evidence = Evidence()
    evidence: Evidence = Evidence()

    def over(self, limit: float, by: str) -> float:
        assert limit == self.limit
        return self.gap if by == "gap" else self.error

    def within(self, limit: float) -> float:
        assert limit == self.limit
        return self.inside


def error_law(share: float) -> list[tuple[float, float]]:
    """An e-value that is the price of one group of all, or nothing, and how probable each is."""
    price = GROUPS / share
    return [(log(price) + EDGE, 1.0 / price), (-50.0, 1.0 - 1.0 / price)]


def p_law() -> list[tuple[float, float]]:
    """Minus the log of a uniform p-value on the grid; all that nothing rejects are one."""
    few = round(GRID * ALPHA)
    return [*((EDGE - log(r / GRID), 1.0 / GRID) for r in range(1, few + 1)), (0.0, 1.0 - few / GRID)]


def wrongly_over(shares: Shares) -> float:
    """The probability that any group is over, if none is."""
    law = [(Group(gap=p, error=e), a * b) for (p, a), (e, b) in product(p_law(), error_law(shares.groups_over_error))]
    return _chance(law, "over", shares)


def wrongly_within(shares: Shares) -> float:
    """The probability that any group is within, if none is."""
    return _chance([(Group(inside=p, error=-50.0), a) for p, a in p_law()], "within", shares)


def _chance(law: list[tuple[Group, float]], verdict: str, shares: Shares) -> float:
    return sum(
        float(np.prod([p for _, p in some]))
        for some in product(law, repeat=GROUPS)
        if verdict in decided([g for g, _ in some], shares)  # type: ignore[arg-type]
    )


class GapShareDropped(Shares):
    """All of alpha by gap, with errors next to it."""

    @property
    def groups_over_gap(self) -> float:
        return self.alpha


class ErrorNotCounted(Shares):
    """All of alpha by error, with gaps next to it."""

    @property
    def groups_over_error(self) -> float:
        return self.alpha


class WithinSpendsAll(Shares):
    @property
    def groups_within(self) -> float:
        return self.alpha


def recorded(shares: Shares, wrong: str) -> float:
    """What a record says of groups."""
    return joint_error(shares.of_groups())[wrong]


def test_no_group_is_wrongly_over_more_often_than_the_record_says() -> None:
    shares = Shares(ALPHA, "auto")
    assert recorded(shares, "over") == pytest.approx(ALPHA)
    assert 0.9 * ALPHA < wrongly_over(shares) <= ALPHA


def test_no_group_is_wrongly_within_more_often_than_the_record_says() -> None:
    shares = Shares(ALPHA, "auto")
    assert recorded(shares, "within") == pytest.approx(ALPHA / 2)
    assert 0.9 * ALPHA / 2 < wrongly_within(shares) <= ALPHA / 2


@pytest.mark.parametrize("broken", [GapShareDropped, ErrorNotCounted])
def test_a_share_that_is_not_counted_is_wrong_more_often(broken: type[Shares]) -> None:
    assert wrongly_over(broken(ALPHA, "auto")) > ALPHA


def test_within_with_all_of_alpha_is_wrong_more_often() -> None:
    assert wrongly_within(WithinSpendsAll(ALPHA, "auto")) > ALPHA / 2


# ---- gaps at the limit, by the law of every count ----


@pytest.mark.parametrize("rows", [12, 400])
def test_gaps_at_the_limit_by_the_law_of_every_count(rows: int) -> None:
    """Two groups, one off by the limit upward and one downward, at few rows and many."""
    limit, shares, law, of = 0.1, Shares(ALPHA, "auto"), [], []
    for score, gap in ((0.4, limit), (0.6, -limit)):
        chance = binom.pmf(np.arange(rows + 1), rows, score + gap)
        likely = np.flatnonzero(chance > 1e-3 / rows)
        each = [SignedEvidence(binomial(int(k), rows, rows * score)) for k in likely]
        at = Limit(limit, limit)
        of.append([Group(gap=e.over(at), inside=e.within(at), error=-50.0, limit=limit) for e in each])
        law.append(chance[likely])
    # Whether a group is decided depends on the other by its order alone: the distinct evidence is enough.
    wrong = {"over": 0.0, "within": 0.0}
    for verdict in wrong:
        kinds = [_kinds(groups, chances, verdict) for groups, chances in zip(of, law, strict=True)]
        for (one, p), (other, q) in product(*kinds):
            if verdict in decided([one, other], shares):  # type: ignore[arg-type]
                wrong[verdict] += p * q
    assert wrong["over"] <= shares.groups_over_gap
    assert wrong["within"] <= shares.groups_within
    assert wrong["over"] > 0.0


def _kinds(groups: list[Group], chances: Any, verdict: str) -> list[tuple[Group, float]]:
    """Groups of evidence that can reject, one by one, and all others as one that cannot."""
    value = [g.gap if verdict == "over" else g.inside for g in groups]
    strong = [(replace(g, inside=0.0) if verdict == "over" else replace(g, gap=0.0), float(p), v)
              for g, p, v in zip(groups, chances, value, strict=True)]  # fmt: skip
    kinds = [(g, p) for g, p, v in strong if exp(-v) <= ALPHA]
    return [*kinds, (Group(limit=groups[0].limit, error=-50.0), 1.0 - sum(p for _, p in kinds))]


# ---- error shown: everyone by itself, and the groups together ----

SHOWN_ALPHA = 0.12
PRICED = Shares(SHOWN_ALPHA, "auto")


def shown_wrongly(part: str, spent: tuple[float, float], groups: int, adjust: Any = showing_error) -> float:
    """The probability that error is shown of a part, if there is none: two uniform p-values a finding, on a grid.

    A range is without 0 exactly where its p-value is at most its own share, as ranges of an audit are.
    """
    own = [share / groups for share in spent]
    grid = sorted({round(q * sum(spent), 9) for q in (0.2, 0.5, 0.8, 1.0)} | {round(share, 9) for share in own})
    chances = [b - a for a, b in zip((0.0, *grid), grid, strict=False)]
    law = [*zip(grid, chances, strict=True), (1.0, 1.0 - grid[-1])]
    rest, wrong = [_with_p(1.0, 1.0, own)], 0.0
    for some in product(law, repeat=2 * groups):
        p = [value - EDGE for value, _ in some]
        findings = [_with_p(gap, error, own) for gap, error in zip(p[::2], p[1::2], strict=True)]
        given = [findings[0]] if part == "everyone" else [*rest, *findings]
        if any(f.error_shown for f in adjust(given, PRICED)):
            wrong += float(np.prod([chance for _, chance in some]))
    return wrong


def _with_p(gap: float, error: float, own: list[float]) -> Any:
    off = [p <= share for p, share in zip((gap, error), own, strict=True)]
    return replace(
        NOBODY,
        gap=replace(NOBODY.gap, p_value=gap, guaranteed=replace(RANGE, low=0.01 if off[0] else -0.2, high=0.2)),
        error=replace(NOBODY.error, p_value=error, guaranteed=replace(RANGE, low=0.01 if off[1] else 0.0, high=0.2)),
        error_shown=False,
    )


NOBODY = finding()
RANGE = NOBODY.gap.guaranteed
PARTS: dict[str, tuple[tuple[float, float], int]] = {
    "everyone": (PRICED.everyone_ranges, 1),
    "groups": (PRICED.groups_ranges, 2),
}


@pytest.mark.parametrize("part", PARTS)
def test_error_is_wrongly_shown_no_more_often_than_its_share(part: str) -> None:
    recorded_as = sum(s.alpha for s in PRICED.of_error_shown(True) if s.part == part)
    assert 0.8 * recorded_as < shown_wrongly(part, *PARTS[part]) <= recorded_as


def test_each_p_value_alone_is_wrong_more_often() -> None:
    def each_alone(some: Any, shares: Shares) -> Any:
        spent = sum(shares.groups_ranges)
        return [replace(f, error_shown=min(f.gap.p_value, f.error.p_value) <= spent) for f in some]

    assert shown_wrongly("groups", *PARTS["groups"], each_alone) > SHOWN_ALPHA


@pytest.mark.parametrize("judge", ["auto", "error", "gap"])
@pytest.mark.parametrize("count", [1, 3, 40])
def test_a_p_value_at_the_price_of_its_range_shows_error(judge: str, count: int) -> None:
    """Before any range is read: Holm's procedure with the weights of the ranges gives each what its range spends."""
    shares = Shares(SHOWN_ALPHA, judge)  # type: ignore[arg-type]
    wide = [1.0 / count, 1.0 / count]
    for at, share in enumerate(shares.groups_ranges):
        p = [1.0, 1.0]
        for factor, shown in ((1.0 - 1e-6, True), (1.0 + 1e-6, False)):
            p[at] = factor * share / count
            some = [_with_p(*p, [0.0, 0.0]), *[_with_p(1.0, 1.0, [0.0, 0.0])] * (count - 1)]
            assert showing_error([_with_p(1.0, 1.0, wide), *some], shares)[1].error_shown is shown


# ---- what a record says is what was used ----


def test_the_joint_error_is_the_sum_of_all_shares() -> None:
    shares = Shares(0.05, "auto")
    used = (*shares.of_everyone(), *shares.of_groups(), *shares.of_subgroups(), *shares.of_error_shown(True))
    assert joint_error(used) == {"over": 0.15, "within": 0.125, "error_shown": 0.15}
    assert joint_error(shares.of_error_shown(False))["error_shown"] == pytest.approx(0.1)
    assert joint_error(used[:2]) == {"over": 0.05, "within": 0.05, "error_shown": 0.0}
    assert joint_error([]) == {"over": 0.0, "within": 0.0, "error_shown": 0.0}
    assert {s.by: s.alpha for s in shares.of_groups() if s.wrong == "over"} == pytest.approx(
        {"gap": 0.04, "error": 0.01}
    )
    assert Shares(0.05, "gap").of_everyone()[1] == Share(wrong="within", part="everyone", by="gap", alpha=0.025)


N = 240
RNG = np.random.default_rng(5)
P, G = RNG.uniform(0.2, 0.7, N), RNG.integers(0, 3, N)
DATA = {"y": (RNG.uniform(size=N) < P).astype(int), "p": P, "g": np.char.add("g", G.astype(str))}


@pytest.mark.parametrize("judge", ["auto", "error", "gap"])
def test_an_audit_spends_what_it_records(judge: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every call of closed testing, and the ends of every range that can decide over."""
    from calibrant.audit.checks import groups as module

    spent: list[float] = []
    real = module.rejected
    monkeypatch.setattr(module, "rejected", lambda e, delta, p: (spent.append(delta), real(e, delta, p))[1])
    record = cal.audit(DATA, label="y", score="p", by="g", limit=0.1, judge=judge, quick=True, alpha=ALPHA)
    groups = [s for s in record.shares if s.part == "groups" and s.wrong != "error_shown"]
    assert sorted(spent) == pytest.approx(sorted(s.alpha for s in groups))
    assert record.joint_error == joint_error(record.shares)
    over = {s.by: s.alpha for s in groups if s.wrong == "over"}
    for kind, ends in (("gap", [sum(g.gap.settings["delta"]) for g in record.groups]),
                       ("error", [g.lower.settings["delta"] for g in record.groups])):  # fmt: skip
        if kind in over:
            assert sum(ends) == pytest.approx(over[kind])
    ranges = {(s.part, s.by): s.alpha for s in record.shares if s.wrong == "error_shown"}
    for part, some in (("everyone", [record.everyone]), ("groups", record.groups)):
        assert sum(sum(f.gap.settings["delta"]) for f in some) == pytest.approx(ranges[part, "gap"])
        assert sum(f.lower.settings["delta"] for f in some) == pytest.approx(ranges[part, "error"])


@pytest.mark.slow
def test_lines_that_were_to_be_inferred_share_alpha(monkeypatch: pytest.MonkeyPatch) -> None:
    from calibrant.audit.checks import inference as check

    spent: list[float] = []
    real = check.described

    def spy(q: Any, level: Any, what: Any, alpha: float, *, guaranteed: bool = False) -> Any:
        if guaranteed:
            spent.append(alpha)
        return real(q, level, what, alpha, guaranteed=guaranteed)

    monkeypatch.setattr(check, "described", spy)
    rng = np.random.default_rng(0x1FE2)
    p, age = rng.uniform(0.3, 0.7, 1000), rng.integers(18, 90, 1000)
    x = {"age": age, "sex": rng.choice(["f", "m"], 1000), "size": rng.uniform(size=1000)}
    cal.audit(cal.predictions(rng.uniform(size=1000) < p, p, x), quick=True, infer=["age", "sex", "size"])
    assert spent == [0.05 / 3] * 3
