"""Two audits of groups that differ by one person do not tell what happened to that person."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import calibrant as cal
from calibrant.audit.rounding import (
    FEW,
    MULTIPLE,
    RandomRounding,
    Sums,
    reported_layer,
    reported_peak,
    step,
    stepped,
    two_digits,
)
from calibrant.results import Curve, Estimate, Interval, Layered


def people(seed: int, outcome: int, score: float, n: int = 400) -> pa.Table:
    """One person is 40 years old; nobody else is."""
    rng = np.random.default_rng(seed)
    age = rng.choice([a for a in range(20, 80) if a != 40], n)
    p = rng.uniform(0.05, 0.6, n)
    y = (rng.random(n) < p).astype(int)
    age[n // 2], p[n // 2], y[n // 2] = 40, score, outcome
    return pa.table({"y": y, "p": p, "age": age.astype(float)})


def young(data: pa.Table, edge: int) -> dict[str, Any]:
    record = cal.audit(
        data, label="y", score="p", by="age", bins={"age": [edge]}, variables=None, quick=True, seed=1, publish=True
    )
    return json.loads(record.to_json())["groups"][0]


def reported_of_the_person(seed: int, outcome: int, score: float) -> tuple[float, float, float]:
    """Return people, cases and expected cases by which two published records differ."""
    before, after = (young(people(seed, outcome, score), edge) for edge in (40, 41))
    return tuple(after[k] - before[k] for k in ("rows", "events", "expected"))  # type: ignore[return-value]


@pytest.mark.slow
def test_no_difference_of_two_records_is_a_person() -> None:
    """Exact records would differ by (1, outcome, score); told ones differ by multiples of five, either way."""
    found = [reported_of_the_person(seed, outcome, 0.37) for seed in range(3) for outcome in (0, 1)]
    assert {v % MULTIPLE for line in found for v in line} == {0.0}
    signs = [{np.sign(line[1]) for line in found[outcome::2]} for outcome in (0, 1)]
    assert all(len(s) > 1 for s in signs)  # what the cases differ by does not follow from the outcome


def odds(gap: int, other: int, draws: int = 20_000) -> float:
    """Return how much likelier any told difference is after one true difference than after another, at most."""
    rng = np.random.default_rng(0)

    def differences(by: int) -> dict[int, float]:
        events, expected = rng.integers(0, 1000, draws).tolist(), rng.uniform(0, 1000, draws).tolist()
        reported = [
            (RandomRounding.of(3000, c, e), RandomRounding.of(3001, c + by, e + 0.37))
            for c, e in zip(events, expected, strict=True)
        ]
        value, count = np.unique([b.events - a.events for a, b in reported], return_counts=True)
        return dict(zip(value.tolist(), (count / draws).tolist(), strict=True))

    one, two = differences(gap), differences(other)
    assert set(one) == set(two)
    return max(one[k] / two[k] for k in one)


@pytest.mark.slow
def test_the_odds_of_an_outcome_given_two_records_at_most_about_double() -> None:
    assert max(odds(1, 0), odds(0, 1)) < 2.2


@pytest.mark.slow
def test_the_same_people_are_told_alike_wherever_and_however_often_they_appear() -> None:
    data = people(3, 1, 0.4)
    again = data.append_column("young", pa.array([str(v < 45) for v in data["age"].to_pylist()]))
    one = cal.audit(data, label="y", score="p", by="age", bins={"age": [45]}, variables=None, quick=True, publish=True)
    two = cal.audit(again, label="y", score="p", by="young", variables=["young"], quick=True, seed=7, publish=True)
    reported = {(g.rows, g.events, g.expected) for g in one.groups}
    assert reported == {(g.rows, g.events, g.expected) for g in two.groups}
    curve = two.curve("variable_curve/young").columns
    assert set(curve["rows"]) == {float(rows) for rows, _, _ in reported}
    assert {round(v, 9) for v in curve["observed"]} == {round(events / rows, 9) for rows, events, _ in reported}


@pytest.mark.parametrize("people", [20, 37, 150, 2_000, 300_000])
def test_ends_move_outward_by_at_most_two_steps(people: int) -> None:
    rng, u = np.random.default_rng(people), step(people)
    assert FEW / people <= u * (1 + 1e-9) <= 2.5 * FEW / people * (1 + 1e-9)
    for i in range(300):
        reported = RandomRounding.of(people, int(rng.integers(people + 1)), float(rng.uniform(0, people)))
        low, high = np.sort(rng.uniform(0.0, 1.0, 2)).tolist()
        of = Estimate(
            method="certify.rounded",
            value=(low + high) / 2,
            unit="probability",
            n=people,
            interval=Interval(low=low, high=high, level=0.95, guarantee="finite-sample"),
            assumes="",
        )
        found = reported.estimate(of)
        assert max(low - 2.001 * u, 0.0) <= found.interval.low <= low, i
        assert high <= found.interval.high <= min(high + 2.001 * u, 1.0), i
        assert found.interval.low <= found.value <= found.interval.high
        assert found.n == reported.rows
    trivial = reported.estimate(
        Estimate.from_dict(of.to_dict() | {"interval": Interval(low=0.0, high=1.0, level=0.9, guarantee="asymptotic")})
    )
    assert (trivial.interval.low, trivial.interval.high) == (0.0, 1.0)


def test_counts_are_right_on_average_and_none_stays_none() -> None:
    rng = np.random.default_rng(5)
    reported = [RandomRounding.of(1234, 321, 300 + float(rng.uniform(0, 1))) for _ in range(4000)]
    assert {t.rows % MULTIPLE for t in reported} == {t.events % MULTIPLE for t in reported} == {0}
    assert abs(np.mean([t.rows for t in reported]) - 1234) < 0.2
    assert abs(np.mean([t.events for t in reported]) - 321) < 0.2
    assert RandomRounding.of(22, 0, 0.0).events == 0
    assert RandomRounding.of(22, 22, 22.0).observed <= 1.0


def test_steps() -> None:
    assert [step(n) for n in (20, 1_000, 400, 10**6)] == pytest.approx([0.1, 0.002, 0.005, 0.000002])
    assert stepped(0.0237, 0.01, -1) == 0.02
    assert stepped(0.0237, 0.01, 1) == 0.03
    assert stepped(-0.0237, 0.01) == -0.02
    assert [two_digits(v) for v in (0.0, 98, 12345, 0.00034501)] == [0.0, 98, 13000, 0.00035]


@pytest.mark.slow
def test_the_verdict_follows_from_what_is_told() -> None:
    data = people(4, 0, 0.3, n=4000)
    for limit in (0.05, 0.1, 0.2):
        record = cal.audit(
            data,
            label="y",
            score="p",
            by="age",
            bins={"age": [40]},
            variables=None,
            quick=True,
            limit=limit,
            publish=True,
        )
        for g in record.groups:
            least, most = g.gap.guaranteed.low, g.gap.guaranteed.high
            low, high = max(least, -most, 0.0), max(most, -least)
            assert g.verdict == ("over" if low > limit else "within" if high <= limit else g.verdict)
            side = "over" if abs(g.gap.value) > limit else "within"  # what Holm decides beyond the range
            assert g.verdict in (side, "undecided")


def five_sites() -> dict[str, Any]:
    """A thousand people in five sites."""
    rng = np.random.default_rng(1)
    z = rng.normal(size=1000) - 1
    site = rng.choice(list("abcde"), 1000, p=[0.4, 0.3, 0.2, 0.06, 0.04])
    p = 1 / (1 + np.exp(-z))
    return {"y": (rng.random(1000) < p).astype(int), "p": p, "site": site}


@pytest.fixture(scope="module")
def site_record() -> Any:
    """Their audit with every test."""
    return cal.audit(five_sites(), label="y", score="p", by="site", seed=1, publish=True)


@pytest.mark.slow
def test_one_group_is_told_alike_in_every_part_of_a_record(site_record: Any) -> None:
    reported = {g.variables[0][1]: (g.rows, g.events, g.expected) for g in site_record.groups}
    curve, bias = (site_record.curve(name) for name in ("variable_curve/site", "local_bias/site"))
    for c in (curve.columns, bias.columns):
        for label, rows, observed, predicted in zip(c["label"], c["rows"], c["observed"], c["predicted"], strict=True):
            n, events, expected = reported[label]
            assert (rows, observed, predicted) == (n, pytest.approx(events / n), pytest.approx(expected / n)), label
    assert bias.columns["people"] == tuple(map(int, bias.columns["rows"]))
    at = curve.columns["label"].index(curve.settings["worst_label"])
    assert curve.settings["worst_gap"] == curve.columns["gap"][at]
    assert curve.settings["worst_low"] <= abs(curve.settings["worst_gap"]) <= curve.settings["worst_high"]


@pytest.mark.slow
def test_no_number_of_some_people_is_exact_anywhere(site_record: Any) -> None:
    """Neither as a count, nor as a share of all from which the count follows."""
    assert "-0.0," not in site_record.to_json()
    peak = next(c.outcome for c in site_record.checks if c.code == "strong-calibration").parts
    assert round(peak["peak_share"] * 1000, 6) % MULTIPLE == 0
    for share in site_record.curve("searched_subgroups").columns.get("share", ()):
        assert round(share * 1000, 6) % MULTIPLE == 0
    table = site_record.curve("repairs").columns
    for gap in table["largest_gap"]:
        assert gap == round(gap, 2)  # a group of half the rows has 20 to 200 people: steps of a hundredth or more


def test_ranges_of_the_score_are_wide_enough_for_rates_told_in_fives() -> None:
    record = cal.audit(five_sites(), label="y", score="p", variables=None, quick=True)
    rows = record.curve("bins").columns["rows"]
    assert 8 <= len(rows) <= 10
    assert min(rows) >= 95


def test_the_position_of_a_peak_is_told_alike_in_its_chart() -> None:
    share = (0.0, *(k / 1000 for k in (10, 100, 130, 133, 136, 200, 900)))
    facts = {"rows_tested": 1000, "peak_rows": 133, "peak_share": 0.133, "peak_observed": 0.4, "peak_predicted": 0.2}
    columns = {"x": share, "evidence": (0.0, 1.0, 2.0, 2.5, 3.0, 2.5, 2.0, 1.0), "null_1": share}
    reported = reported_peak(
        Curve(method="diagnose.control_chart", columns=columns, settings=facts), 20, RandomRounding
    )
    x, evidence = reported.columns["x"], reported.columns["evidence"]
    assert 0.133 not in x
    assert x[evidence.index(3.0)] == reported.settings["peak_share"]
    assert list(x) == sorted(set(x))


def test_exact_numbers_are_reported_as_they_are() -> None:
    exact = Sums.of(37, 4, 5.25)
    assert (exact.rows, exact.events, exact.expected) == (37, 4, 5.25)
    assert exact.end(0.123, -1) == exact.over(0.123) == exact.within(0.123) == exact.near(0.123) == 0.123
    assert exact.step(37) == 0.0
    assert stepped(0.0237, exact.step(37), -1) == 0.0237


@pytest.mark.slow
def test_numbers_of_groups_are_exact_unless_they_are_to_be_published() -> None:
    data = people(3, 1, 0.4)
    age, y, p = (data[name].to_numpy() for name in ("age", "y", "p"))
    how = {"label": "y", "score": "p", "by": "age", "bins": {"age": [45]}, "variables": None, "quick": True}
    exact, rounded = (cal.audit(data, **how, publish=publish).groups[0] for publish in (False, True))
    young = age < 45
    assert (exact.rows, exact.events) == (young.sum(), y[young].sum())
    assert exact.expected == pytest.approx(p[young].sum(), abs=1e-3)
    assert exact.gap.value == pytest.approx(y[young].mean() - p[young].mean(), abs=1e-6)
    assert rounded.rows % MULTIPLE == rounded.events % MULTIPLE == 0
    assert rounded.gap.interval.low <= exact.gap.interval.low <= exact.gap.interval.high <= rounded.gap.interval.high


def test_published_p_values_are_powers_of_ten() -> None:
    assert [RandomRounding.p_value(p) for p in (1.0, 0.31, 0.0021, 1e-5, 0.0)] == pytest.approx(
        [1, 1, 0.01, 1e-5, 1e-12]
    )
    assert Sums.p_value(0.00213) == 0.0022


def test_layers_of_a_group_share_their_draws() -> None:
    """The same end is reported alike in each layer: by draws of its own the mean of several would tell more."""
    reported = RandomRounding.of(250, 61, 70.2)
    ends = Interval(low=-0.0513, high=0.0291, level=0.95, guarantee="asymptotic")
    exact = Estimate(
        method="certify.gap", value=-0.01, unit="probability", n=250, interval=ends, assumes="", settings={}
    )
    certified = reported.gap(exact)
    layer = Layered(value=-0.01, interval=ends, guaranteed=certified.interval, p_value=1.0, assumes="", settings={})
    moved = reported_layer(layer, reported).interval
    assert moved is not None
    assert (moved.low, moved.high) == (certified.interval.low, certified.interval.high)


@pytest.mark.parametrize("below", [False, True])
def test_numbers_of_a_group_move_together(below: bool) -> None:
    """The more is added to its events by chance, the higher its gap and, where too few happened, the lower its error.

    So error and gap are mirror images: moved apart, their difference would be free of chance.
    """
    rng, moved = np.random.default_rng(3), []
    for _ in range(200):
        expected = 70.0 + float(rng.uniform(-20, 20))
        one = RandomRounding.of(250, round(expected) + (-12 if below else 12), expected)
        low, high = np.sort(rng.uniform(0.02, 0.4, 2)).tolist()
        gap = (one.end(-high, -1), one.end(-low, 1)) if below else (one.end(low, -1), one.end(high, 1))
        error = one.end(low, -1, 0.0, rises=one.error_rises), one.end(high, 1, 0.0, rises=one.error_rises)
        assert error == pytest.approx((-gap[1], -gap[0]) if below else gap)
        u = step(250)
        moved.append([(one.end(v, side) - v) / u for v, side in ((-0.5 * u, -1), (0.5 * u, 1))])
        assert one.near(0.033 * u) / u in (pytest.approx(0.0), pytest.approx(1.0))
    lows, highs = np.array(moved).T
    assert (lows <= 0).all()
    assert (highs >= 0).all()
    assert np.corrcoef(lows, highs)[0, 1] > 0.9  # of draws of their own: 0


def right_guesses(n: int, numbers: Any, tries: int = 1_500) -> float:
    """How often the mean change of some numbers guesses the outcome of one person who joins n others.

    The person's score is known. A guess is the likelier outcome: one event more than expected, or none.
    """
    rng, right = np.random.default_rng(n), 0
    for _ in range(tries):
        events, expected, score = int(rng.integers(n // 8, n // 3)), float(rng.uniform(n / 8, n / 3)), 0.3
        outcome = int(rng.integers(2))
        before = RandomRounding.of(n, events, expected)
        after = RandomRounding.of(n + 1, events + outcome, expected + score)
        half = np.array([0.1, 0.06, 0.03]) + rng.uniform(0, 0.02, 3)
        first, then = (np.mean(numbers(q, (q.exact[1] - q.exact[2]) / n, half)) for q in (before, after))
        right += ((then - first) * n > 0.5 - score) == bool(outcome)
    return right / tries


def signed(q: RandomRounding, gap: float, half: Any) -> list[float]:
    """All that is reported of a gap and of the error, signed as the gap is."""
    out = [q.end(gap - w, -1) for w in half] + [q.end(gap + w, 1) for w in half]
    sign, rises = (1.0, True) if q.error_rises else (-1.0, False)
    return [*out, *(sign * q.end(abs(gap) + w, 1, -1.0, 2.0, rises=rises) for w in half)]


@pytest.mark.slow
@pytest.mark.parametrize("n", [60, 250, 2_500])
def test_all_numbers_of_a_group_tell_hardly_more_than_one(n: int) -> None:
    """One end guesses two in three; nine with draws of their own would guess some four in five."""
    alone = right_guesses(n, lambda q, gap, half: [q.end(gap + half[0], 1)])
    assert right_guesses(n, signed) <= alone + 0.06
    assert right_guesses(n, signed) <= 0.72


def test_a_relative_limit_of_few_people_is_in_steps() -> None:
    """A share of the mean score to three digits would be the expected events of a group to a tenth of one."""
    for n in (25, 250, 6_000):
        u = step(n)
        told = [RandomRounding.of(n, n // 9, n / 8 + i / 7) for i in range(9)]
        for limit in (0.0004, 0.0231, 0.0589, 0.2, 0.41):
            reported = {one.relative(limit) for one in told}
            assert len(reported) == 1  # no chance: what is judged by it is the same
            (value,) = reported
            assert value is None if limit < u else value == pytest.approx(u * math.floor(limit / u + 1e-9))
            for one in told if value is not None else ():  # verdicts are those at the limit as reported
                for rises in (True, False):
                    assert one.over(limit, rises=rises) == pytest.approx(one.over(value, rises=rises))
                    assert one.within(limit, rises=rises) == pytest.approx(one.within(value, rises=rises))
        assert RandomRounding.of(n, 1, 1.0).relative(None) is None
        assert Sums.of(n, 1, 1.0).relative(0.0231) == 0.0231
