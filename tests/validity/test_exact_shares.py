"""What is spent of alpha, added up over everything that could be told: never more than alpha, whatever was found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np
import pytest

import calibrant as cal
from calibrant.audit.checks.decisions import apart
from calibrant.audit.checks.everyone import gap
from calibrant.audit.checks.reliability import Few, _fixed_ranges, bins_of
from calibrant.certify.closed import SignedEvidence, verdicts
from calibrant.certify.groups import sizes
from calibrant.repair.judge import decisions, evidence
from calibrant.repair.judge.evidence import group_changes, groups_of, score_changes, variable_changes
from calibrant.repair.judge.rows import Judged, Judging
from calibrant.repair.judge.verdict import AS_AUDITED
from calibrant.results import Outcome
from calibrant.stats import bounds
from calibrant.stats.betting import Clusters as Bounded
from calibrant.stats.decisions.acceptance import ClusterRanking, Ranking, clopper_pearson, sequence
from calibrant.stats.decisions.comparison import PairedClusters
from calibrant.stats.evidence import Gap, Mean
from calibrant.stats.subgroups.cluster_ranges import ClusterRanges, Side
from calibrant.stats.variable import RowLedger, gap_limits
from calibrant.views.boxes import boxed, tables_of
from calibrant.views.sample import everyone
from factories import decision_lines

ALPHA = 0.2
N, GROUPS = 1200, 4
RNG = np.random.default_rng(8)
P, G = RNG.uniform(0.2, 0.8, N), RNG.integers(0, GROUPS, N)
Y = (RNG.uniform(size=N) < P).astype(int)
CLUSTER = np.arange(N) // 4


def rows(**more: Any) -> cal.Predictions:
    return cal.predictions(Y, P, {"g": np.char.add("g", G.astype(str)), "x": np.linspace(0.0, 1.0, N)}, **more)


@pytest.fixture
def spied(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[float]]:
    """Return a list that holds what a function was given at a place among its arguments, from now on."""

    def watch(owner: Any, name: str, at: int) -> list[float]:
        real, seen = getattr(owner, name), []

        def call(*given: Any, **more: Any) -> Any:
            seen.append(given[at])
            return real(*given, **more)

        monkeypatch.setattr(owner, name, call)
        return seen

    return watch


# ---- groups ----


@pytest.mark.parametrize("judge", ["error", "gap"])
@pytest.mark.parametrize("side", ["two-sided", "lower", "upper"])
def test_all_ends_of_all_groups(judge: Any, side: Any) -> None:
    found = cal.certify.groups(rows(), by="g", judge=judge, alpha=ALPHA, side=side)
    assert len(found) == GROUPS
    assert sum(sum(e.settings["delta"]) for e in found.values()) == pytest.approx(ALPHA)


def test_the_worst_group_shares_its_floors_and_not_its_tops(spied: Any) -> None:
    seen = spied(import_module("calibrant.certify.groups"), "sizes", 1)
    cal.certify.worst_group(rows(), by="g", alpha=ALPHA)
    assert sum(seen[:GROUPS]) == pytest.approx(ALPHA / 2)  # one floor may be wrong: any of them
    assert seen[GROUPS:] == pytest.approx([ALPHA / 2] * GROUPS)  # one top has to hold: that of the worst


def test_thresholds_of_all_groups(spied: Any) -> None:
    seen = spied(import_module("calibrant.decisions.accept").Part, "accepted", 1)
    cal.certify.accept(rows(), by="g", risk=0.6, alpha=ALPHA)
    assert len(seen) == GROUPS
    assert sum(seen) == pytest.approx(ALPHA)


def test_everyone_and_all_groups_without_a_label(spied: Any) -> None:
    """Everyone's two ends share alpha; so do, once more, all ends of all groups."""
    seen = spied(import_module("calibrant.certify.missing_labels"), "lines", 3)
    y = np.where(np.arange(N) % 9, Y, np.nan)
    data = cal.predictions(y, P, {"g": np.char.add("g", G.astype(str))}, missing="keep")
    cal.certify.missing_labels(data, by="g", alpha=ALPHA)
    assert 2 * seen[0] == pytest.approx(ALPHA)
    assert 2 * sum(seen[1:]) == pytest.approx(ALPHA)


@pytest.mark.parametrize(("judge", "of_broken"), [("error", 2.0), ("gap", 1.0)])
def test_a_verdict_on_one_population(judge: Any, of_broken: float) -> None:
    """It is met from a log e-value of ln(2 / alpha) on, and broken likewise, or from ln(1 / alpha) on of two signs."""
    for by in (-1e-9, 1e-9):
        (broken,) = verdicts([np.log(of_broken / ALPHA) + by], [-np.inf], judge, ALPHA)
        (met,) = verdicts([-np.inf], [np.log(2.0 / ALPHA) + by], judge, ALPHA)
        assert (broken == "over", met == "within") == (by > 0, by > 0)


def test_a_gap_is_below_its_floor_on_one_of_two_sides() -> None:
    class Requested:
        """Ends that tell what was spent on them."""

        def ends(self, low: float, high: float) -> tuple[float, float]:
            return low, 10.0 * high

    assert sizes(Requested(), ALPHA, "gap") == (ALPHA / 2, 10.0 * ALPHA)  # type: ignore[arg-type]


def test_routes_to_the_distance(spied: Any) -> None:
    """Nine displays share delta; of its share each spends a tenth on how far scores are moved."""
    rounded, jittered = spied(bounds, "product_upper", 3), spied(bounds, "jittered_upper", 2)
    bounds.distance_upper(everyone(rows()).cells, ALPHA)
    routes = len(bounds.STEPS) + len(bounds.BANDWIDTHS)
    assert rounded
    assert jittered
    assert [*rounded, *jittered] == pytest.approx([0.9 * ALPHA / routes] * (len(rounded) + len(jittered)))


def test_bounded_variation_by_hand() -> None:
    """Theorem 3 at each run length, which share nine tenths of delta; the least of the bounds counts."""
    cells, n, v = everyone(rows()).cells, N, 1.0
    single = np.zeros(cells.size, dtype=bool)
    best = np.log2(0.4 * n / v) * (2.0 / 3.0)
    lengths = sorted({int(np.clip(2.0 ** np.round(best + j), 1, n)) for j in (-1.0, 0.0, 1.0)})
    last, found = -np.log(0.1 * ALPHA) / (2 * n), []
    for m in lengths:
        plug_in, longest = bounds._plug_in(cells, m, single)
        sample = plug_in + longest * v / (2 * n) + np.sqrt(np.log(len(lengths) / (0.9 * ALPHA)) / (2 * n))
        found.append((np.sqrt(last) + np.sqrt(sample + last)) ** 2)
    assert bounds.variation_upper(cells, v, ALPHA, single)[0] == pytest.approx(min(found))


@pytest.mark.parametrize("events", [0, 3, 31, 50])
def test_limits_of_a_mean_residual_are_where_the_evidence_reaches_half_of_delta(events: int) -> None:
    """Fifty rows of one score, by hand, along a variable."""
    n, score = 50, 0.5

    def evidence_at(m: float, sign: float) -> float:
        kappas = np.minimum(np.array([2.0, 4.0, 8.0, 16.0]) / np.sqrt(n), 0.95 / (1.0 + abs(m)))
        won = events * np.log1p(sign * kappas * (1 - score - m)) + (n - events) * np.log1p(sign * kappas * (-score - m))
        return float(np.log(np.mean(np.exp(won))))

    residual = (np.arange(n) < events) - score
    low, high = gap_limits(RowLedger(residual, np.zeros(n, np.int32), np.zeros(n, np.uint8), 1, 1), ALPHA)
    assert evidence_at(low, 1.0) == pytest.approx(np.log(2.0 / ALPHA), abs=1e-6)
    assert evidence_at(high, -1.0) == pytest.approx(np.log(2.0 / ALPHA), abs=1e-6)


def test_everyones_gap_has_two_ends(spied: Any) -> None:
    low, high = spied(SignedEvidence, "ends", 1), spied(SignedEvidence, "ends", 2)
    gap(everyone(rows()), ALPHA)
    assert (low[0], high[0]) == pytest.approx((ALPHA / 2, ALPHA / 2))


# ---- ranges of the score ----


def test_ranges_of_the_score_by_rows(spied: Any) -> None:
    low, high = spied(SignedEvidence, "ends", 1), spied(SignedEvidence, "ends", 2)
    bins_of(everyone(rows()), 20, ALPHA, Few(20))
    assert len(low) > 1
    assert sum(low + high) == pytest.approx(ALPHA)


def test_ranges_of_the_score_by_units(spied: Any) -> None:
    seen = spied(Mean, "limit", 1)
    bins_of(everyone(rows(cluster=CLUSTER)), 20, ALPHA, Few(20))
    assert len(seen) > 2
    assert sum(seen) <= ALPHA + 1e-12


def test_ranges_of_the_score_are_cut_by_pilot_units_alone() -> None:
    """Scores of units that certify may be anything: outcomes go with them."""
    q = everyone(rows(cluster=CLUSTER))
    clusters = q.clusters
    assert clusters is not None
    certify = clusters.certified[clusters.cluster]
    moved = replace(clusters, p=np.where(certify, 0.999, clusters.p))
    assert (_fixed_ranges(q) == _fixed_ranges(replace(q, diagonals=(moved,)))).all()
    other = replace(clusters, p=np.where(certify, clusters.p, 0.999))
    assert (_fixed_ranges(q) != _fixed_ranges(replace(q, diagonals=(other,)))).any()


# ---- lists of units ----


@pytest.mark.parametrize("by", [-1e-6, 1e-6])
def test_two_sequences_of_thresholds_share_alpha(by: float, monkeypatch: pytest.MonkeyPatch) -> None:
    clusters = everyone(rows(cluster=CLUSTER)).clusters
    assert clusters is not None
    ranking = ClusterRanking(clusters, clusters.y == 0, True)
    monkeypatch.setattr(ClusterRanking, "log_evidence", lambda *_: float(np.log(2.0 / ALPHA)) + by)
    assert ranking.deepest(0.1, ALPHA) == (len(ranking.threshold) - 1 if by > 0 else -1)


@pytest.mark.parametrize("rate", [0.2, 0.45])
def test_the_evidence_about_a_list_of_units_is_a_mean_over_bets(rate: float) -> None:
    clusters = everyone(rows(cluster=CLUSTER)).clusters
    assert clusters is not None
    ranking = ClusterRanking(clusters, clusters.y == 0, True)
    bad, there = ranking.sums(0.3)
    each = [np.exp(np.log1p(-k * (bad - rate * there)).sum()) for k in ranking.bets]
    assert len(each) > 1
    assert ranking.log_evidence(0.3, rate) == pytest.approx(np.log(np.mean(each)))


def test_a_sequence_of_thresholds_ends_at_the_first_that_fails() -> None:
    """A hundred right ones, a hundred wrong ones, then right ones enough for the whole to pass."""
    wrong = np.concatenate([np.zeros(100), np.ones(100), np.zeros(9800)]).astype(int)
    ranking = Ranking(-np.arange(10_000.0), np.arange(1, 10_001), np.cumsum(wrong))
    assert (clopper_pearson(ranking.rows, ranking.wrong, 0.05) <= 0.1)[-1]
    assert sequence(ranking, 0.1, 0.05) < 100


# ---- pockets of units ----


def test_boxes_of_units_have_their_weights_of_alpha(spied: Any) -> None:
    data = rows(cluster=CLUSTER)
    ranges = boxed(data, tables_of(data, None, 1, 0)).ranges(0.05)
    assert isinstance(ranges, ClusterRanges)
    weight = ranges.family.weight
    assert weight.sum() <= 1.0 + 1e-12
    seen = spied(ClusterRanges, "_least", 3)
    ranges.together(ALPHA)
    assert sum(seen) <= ALPHA + 1e-12
    assert sum(seen) == pytest.approx(ALPHA * weight.sum())
    seen.clear()
    boxes = spied(ClusterRanges, "_least", 1)
    assert ranges.floor(ALPHA)[0] >= 0.0
    assert seen == pytest.approx([ALPHA / 2.0 * weight[b] for b in boxes])


def test_the_evidence_about_a_box_of_units_is_a_mean_over_bets() -> None:
    data = rows(cluster=CLUSTER)
    ranges = boxed(data, tables_of(data, None, 1, 0)).ranges(0.05)
    assert isinstance(ranges, ClusterRanges)
    t, w = ranges._clusters_in(0)
    bets = ranges._bets(0, np.array([0.01]), np.array([0]))[:, 0]
    for mean in (-0.1, 0.0):
        each = [np.exp(np.log1p(k * (t - mean * w)).sum()) for k in bets]
        assert ranges._log_evidence(0, 0, 0.01)(mean) == pytest.approx(np.log(np.mean(each)))


@pytest.mark.parametrize("by", [-0.3, 0.1])
def test_a_box_of_units_is_over_a_limit_by_the_mean_of_its_two_sides(
    by: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = rows(cluster=CLUSTER)
    ranges = boxed(data, tables_of(data, None, 1, 0)).ranges(0.05)
    assert isinstance(ranges, ClusterRanges)
    price = -np.log(ALPHA * ranges.family.weight)
    monkeypatch.setattr(Side, "at_least", lambda *_: np.full(len(price), -1.0))  # bounds that decide nothing
    monkeypatch.setattr(Side, "at_most", lambda *_: np.full(len(price), 50.0))
    monkeypatch.setattr(ClusterRanges, "_log_evidence", lambda _, box, *__: lambda _: price[box] + by)
    assert (ranges.over(0.1, ALPHA) == (by > 0)).all()


# ---- two models ----


@pytest.mark.parametrize("groups", [False, True])
@pytest.mark.parametrize("thresholds", [1, 3])
def test_models_groups_and_thresholds(spied: Any, groups: bool, thresholds: int) -> None:
    """One statement that is fixed beforehand, the worst of all, has a share that nobody shares: asked of each."""
    seen = spied(PairedClusters, "limits", 1)
    rng = np.random.default_rng(1)
    models = {name: np.clip(P + rng.normal(0.0, 0.2, N), 0.01, 0.99) for name in ("old", "one", "two")}
    how: dict[str, Any] = {"measure": "net_benefit", "threshold": [0.3, 0.5, 0.7][:thresholds]}
    if thresholds == 1:
        how = {"measure": "brier"}
    cal.compare(models, Y, rows().covariates, by="g" if groups else None, alpha=ALPHA, **how)
    shares = import_module("calibrant.audit.compare").SHARES[groups, thresholds > 1]
    assert sum(shares.values()) == pytest.approx(1.0)
    each = ALPHA / 2.0  # of two models against the reference
    reported = {"everyone": thresholds, "groups": GROUPS * thresholds}
    worst = {"worst_threshold": thresholds, "worst": GROUPS * thresholds}
    expected = [each * shares[k] / m for k, m in reported.items() if k in shares for _ in range(m)]
    expected += [2.0 * each * shares[k] for k, m in worst.items() if k in shares for _ in range(m)]  # one end counts
    assert sorted(seen) == pytest.approx(sorted(expected * 2))


# ---- decisions of an audit ----


@pytest.mark.slow
def test_decisions_of_an_audit(spied: Any) -> None:
    seen = spied(import_module("calibrant.audit.checks.decisions"), "line", 2)
    data = {"y": Y, "p": P, "g": np.char.add("g", G.astype(str))}
    how = {"label": "y", "score": "p", "by": "g", "variables": None, "quick": True, "alpha": ALPHA}
    cal.audit(data, threshold=(0.4, 0.6), **how)
    assert len(seen) == 2 * (1 + GROUPS)
    assert sum(seen) <= ALPHA + 1e-12


@pytest.mark.slow
def test_rates_of_an_audit(spied: Any) -> None:
    """Of one rate groups share alpha; certified ends of all rates of everyone and groups at all thresholds add up."""
    seen = spied(import_module("calibrant.audit.checks.decisions"), "layers", 2)
    data = {"y": Y, "p": P, "g": np.char.add("g", G.astype(str))}
    how = {"label": "y", "score": "p", "by": "g", "variables": None, "quick": True, "alpha": ALPHA}
    cal.audit(data, threshold=(0.4, 0.6), **how)
    assert len(seen) == 2 * 4 * (1 + GROUPS)
    assert 2 * sum(each for _, each in seen) == pytest.approx(ALPHA)
    ordinary = [alpha for alpha, _ in seen]
    assert ordinary.count(ALPHA) == 2 * 4
    assert ordinary.count(ALPHA / GROUPS) == 2 * 4 * GROUPS


def test_ranges_of_differences_hold_whichever_groups_are_apart() -> None:
    ranges = [(0.1, 0.3), (0.5, 0.6), (0.2, 0.9)]
    assert apart(ranges) == pytest.approx((0.2, 0.8, 0.1 / 0.9, 0.3 / 0.5))
    rng = np.random.default_rng(0)
    for _ in range(200):
        truth = [rng.uniform(a, b) for a, b in ranges]
        low, high, least, most = apart(ranges)
        assert low <= max(truth) - min(truth) <= high
        assert least <= min(truth) / max(truth) <= most
    assert apart([(0.0, 0.0), (0.0, 0.0)]) == (0.0, 0.0, 0.0, 1.0)


# ---- the judge of repairs ----

SCORES = {AS_AUDITED: P, "one": np.clip(P + 0.1, 0, 1), "two": P**1.3, "three": np.sqrt(P)}


def judged(folds: int, **more: Any) -> Judged:
    return Judged.of(rows(**more), SCORES, np.arange(N) % folds)


@pytest.mark.parametrize("folds", [1, 3])
def test_paired_changes_of_scores(spied: Any, folds: int) -> None:
    """Three scores share alpha; that of the Brier score all pairs share, those of the others the repairs."""
    seen = spied(import_module("calibrant.repair.judge.rows"), "mean_limits", 1)
    score_changes(judged(folds), ALPHA)
    assert sum(seen) == pytest.approx(ALPHA)


@pytest.mark.parametrize("folds", [1, 3])
def test_paired_changes_along_variables(spied: Any, folds: int) -> None:
    seen = spied(import_module("calibrant.repair.judge.rows"), "mean_limits", 1)
    variable_changes(judged(folds), ("x", "g"), ALPHA, 0)
    assert sum(seen) == pytest.approx(ALPHA)


@pytest.mark.parametrize("by_clusters", [False, True])
def test_gaps_of_groups_serve_every_repair(spied: Any, by_clusters: bool) -> None:
    owner, name = (import_module("calibrant.repair.judge.rows"), "mean_limits") if by_clusters else (Gap, "limits")
    seen = spied(owner, name, 1)
    of = judged(1, **({"cluster": CLUSTER} if by_clusters else {}))
    changes = group_changes(of, groups_of(of.data, ("g",), {}, 20, 0), ALPHA)
    assert len(changes) == GROUPS * len(SCORES)
    ordinary = 0.0 if by_clusters else 2.0 * ALPHA  # of intervals that guarantee nothing, by the same limits
    assert sum(seen) == pytest.approx(ALPHA + ordinary)


def test_decisions_of_repairs(spied: Any) -> None:
    seen = spied(import_module("calibrant.repair.judge.rows"), "mean_limits", 1)
    of = judged(1)
    groups = groups_of(of.data, ("g",), {}, 20, 0)
    lines = decision_lines(decisions.decision_changes(of, groups, (0.4, 0.6), ALPHA))
    assert len(lines) == 3 * 2 * (1 + GROUPS)
    assert 0.9 * ALPHA < sum(seen) <= ALPHA + 1e-12  # of few who change side nothing is told, nor spent


def test_paired_changes_of_units_are_those_of_units(spied: Any) -> None:
    seen = spied(import_module("calibrant.repair.judge.rows"), "mean_limits", 0)
    judged(1, cluster=CLUSTER).change("brier", "one", AS_AUDITED, ALPHA)
    assert isinstance(seen[0], Bounded)
    assert len(seen[0].value) == CLUSTER[-1] + 1


def test_p_values_of_folds_are_joined_by_bonferroni(monkeypatch: pytest.MonkeyPatch) -> None:
    reported = iter([0.04, 0.5, 0.2])

    def test(_: cal.Predictions, **settings: Any) -> Outcome:
        return Outcome(method="", statistic=0.0, p_value=next(reported), alternative="", null="", law="")

    monkeypatch.setattr(evidence, "TESTS", {"local": test})
    of = judged(3)
    row = of.summary("one")
    how = Judging(tests=("local",), variables=("x",), test_rows=N, draws=99)
    found, _, _ = evidence.tested({"one": row}, of, how, ["one"])
    assert replace(row).with_p("local", 3 * 0.04) == found["one"]


def test_both_ends_of_a_stream_share_alpha() -> None:
    metric, data = cal.tracking.CalibrationMetric(alpha=ALPHA), cal.predictions(Y, P**2)
    for rows in np.array_split(np.arange(N), 7):
        metric.update(P[rows] ** 2, Y[rows])
    found = metric.compute()
    assert found["raw_lower"].low == cal.certify.raw_lower(data, side="lower", alpha=ALPHA / 2).low > 0
    assert found["rounded"].high == cal.certify.rounded(data, side="upper", alpha=ALPHA / 2).high
    assert [found[end].interval.level for end in ("raw_lower", "rounded")] == [1 - ALPHA / 2] * 2
