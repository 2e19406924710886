"""Models held against each other: cases by hand, verdicts, groups, units, audits, refusals, the command."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.stats import binom, entropy

import calibrant as cal
from calibrant.audit.record import AuditRecord
from calibrant.cli import main
from calibrant.decisions.comparison import decided, least, overall
from calibrant.decisions.terms import Terms, usual_margin
from calibrant.report.outputs import decisions
from calibrant.results import Estimate
from calibrant.stats.decisions.comparison import BETS, PairedClusters, cluster_areas, row_areas, side


@pytest.fixture(scope="module")
def rows() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    n = 6000
    eta = rng.beta(1, 3, n)
    return {
        "y": (rng.uniform(size=n) < eta).astype(int),
        "old": np.clip(eta + 0.1, 0.0, 1.0),
        "new": eta,
        "sex": rng.choice(["f", "m"], n),
        "who": np.arange(n) // 3,
    }


@pytest.fixture(scope="module")
def log(rows: dict[str, np.ndarray], tmp_path_factory: pytest.TempPathFactory) -> str:
    out = tmp_path_factory.mktemp("compare") / "log.parquet"
    pq.write_table(pa.table(rows), out)
    return str(out)


def both(rows: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {name: rows[name] for name in ("old", "new")}


# ---- verdicts ----


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (-0.2, -1e-9, "better"),
        (-0.2, 0.0, "no worse"),
        (-0.2, 0.01, "no worse"),
        (0.0, 0.01, "no worse"),
        (1e-9, 0.01, "worse within margin"),
        (-0.2, 0.011, "undecided"),
        (0.01, 0.2, "undecided"),
        (0.0101, 0.2, "worse"),
    ],
)
def test_an_interval_decides_against_the_margin(low: float, high: float, verdict: str) -> None:
    assert decided(low, high, 0.01) == verdict


def test_better_for_everyone_needs_no_worse_for_every_group() -> None:
    assert overall("better", []) == overall("better", ["no worse", "better"]) == "better"
    assert overall("no worse", ["better"]) == "no worse"
    assert overall("better", ["no worse", "undecided"]) == "undecided"
    assert overall("better", ["worse", "undecided"]) == overall("worse", ["better"]) == "worse"
    assert least(["better", "no worse"]) == "no worse"
    assert overall("better", ["worse within margin"]) == overall("worse within margin", ["better"])
    assert overall("better", ["worse within margin", "no worse"]) == "worse within margin"
    assert overall("worse within margin", ["undecided"]) == "undecided"
    assert overall("worse within margin", ["worse"]) == "worse"


# ---- the margin where none is named ----


@pytest.fixture(scope="module")
def book() -> dict[str, np.ndarray]:
    """A portfolio with 1.5% defaults, and a model that calls nobody one."""
    rng = np.random.default_rng(3)
    pd = rng.beta(0.4, 24, 40_000)
    segment = np.where(rng.uniform(size=40_000) < 0.3, "safe", "usual")
    pd = np.where(segment == "safe", 0.3 * pd, pd)
    return {
        "y": (rng.uniform(size=40_000) < pd).astype(int),
        "pd": pd,
        "zero": np.full(40_000, 1e-6),
        "segment": segment,
    }


def models(book: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {name: book[name] for name in ("pd", "zero")}


def test_a_model_that_says_nothing_is_worse_where_events_are_rare(book: dict[str, np.ndarray]) -> None:
    rate = book["y"].mean()
    for measure, most in (("brier", rate * (1 - rate)), ("log_loss", entropy([rate, 1 - rate]))):
        found = cal.compare(models(book), book["y"], measure=measure)
        assert (found.verdict, found.exit_status) == ("worse", 1)
        assert found.margin == pytest.approx(0.02 * most, rel=0.05)  # two digits
        assert found.settings["margin"] == "usual"
        assert f"margin {found.margin:g}: 2% of" in decisions.compared(found)
    for measure in ("error", "net_benefit", "calibration_error"):
        assert usual_margin(measure, 0.5) == usual_margin(measure, 0.25) == 0.005
        assert usual_margin(measure, 0.01) == usual_margin(measure, 0.99) == 0.0002
    assert usual_margin("auroc", 0.01) == usual_margin("calibration_error") == 0.005
    assert usual_margin("brier", 0.0) == usual_margin("log_loss", 1.0) == 0.0


def test_each_group_has_the_margin_of_its_rate(book: dict[str, np.ndarray]) -> None:
    found = cal.compare(models(book), book["y"], {"segment": book["segment"]}, by="segment")
    everyone, *groups = found.differences
    assert found.margin == everyone.margin
    for d in groups:
        rate = book["y"][book["segment"] == d.population.removeprefix("segment = ")].mean()
        assert d.margin == pytest.approx(0.02 * rate * (1 - rate), rel=0.05)
    assert found.to_arrow()["margin"].to_pylist() == [d.margin for d in found.differences]
    reported = decisions.compared(found)
    assert "each margin is 2% of rate x (1 - rate) of its rows" in reported
    assert f"{groups[0].margin:.6f}" in reported
    assert f"{groups[0].margin:.6f}" in decisions.content(found, "x.html").decode()
    weighted = cal.compare(models(book), book["y"], weights=np.where(book["segment"] == "safe", 1.0, 0.2))
    assert weighted.margin < found.margin


def test_worse_within_the_margin_is_said_whole(
    book: dict[str, np.ndarray], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "book.parquet"
    pq.write_table(pa.table(book), log)
    command = ["compare", str(log), "--label", "y", "--score", "pd,zero"]
    assert main([*command, "--margin", "0.005", "--out", str(tmp_path / "t.html")]) == 0
    found = cal.compare(models(book), book["y"], margin=0.005)
    assert found.verdict == found.differences[0].verdict == "worse within margin"
    assert cal.ModelComparison.from_dict(found.to_dict()) == found
    ends = found.differences[0].interval
    stated = f"zero is worse than pd for everyone by {ends:.4f}, within the margin of 0.005 (Brier score)."
    out = capsys.readouterr().out
    assert out.splitlines()[0] == stated
    assert "no worse" not in out
    assert stated in (tmp_path / "t.html").read_text(encoding="utf-8")
    between = f"{(ends.low + ends.high) / 2:.6f}"
    assert main([*command, "--margin", between]) == 3
    assert "Undecided whether zero is no worse than pd; it is worse for everyone by " in capsys.readouterr().out


# ---- numbers by hand ----


def test_what_is_lost_by_hand() -> None:
    p = np.array([0.0, 0.2, 0.9])
    how = {
        "threshold": None,
        "costs": None,
        "margin": 0.0,
        "target": "population",
        "clip": 0.01,
        "alpha": 0.05,
        "seed": 0,
    }
    by_hand = {
        "brier": ([0.0, 0.04, 0.81], [1.0, 0.64, 0.01]),
        "log_loss": (-np.log([0.99, 0.8, 0.1]), -np.log([0.01, 0.2, 0.9])),
        "error": ([0.0, 0.0, 1.0], [1.0, 1.0, 0.0]),
    }
    for measure, ends in by_hand.items():
        asked = Terms.of(measure=measure, **how)
        for found, expected in zip(asked.losses(p, None), ends, strict=True):
            assert found == pytest.approx(np.array(expected))


# ---- net benefit, as dcurves defines it: true positives a row, less false ones times t / (1 - t) ----

TEN = {
    "y": np.array([1, 1, 1, 1, 0, 0, 0, 0, 0, 0]),
    "old": np.array([0.9, 0.7, 0.3, 0.1, 0.8, 0.5, 0.25, 0.2, 0.1, 0.0]),
    "new": np.array([0.9, 0.6, 0.2, 0.1, 0.2, 0.4, 0.19, 0.1, 0.1, 0.0]),
}


@pytest.mark.parametrize(
    ("threshold", "old", "new"),
    [
        (0.2, 3 / 10 - 4 / 10 * 1 / 4, 3 / 10 - 2 / 10 * 1 / 4),  # at the threshold one acts
        (0.5, 2 / 10 - 2 / 10, 2 / 10),
        (0.8, 1 / 10 - 1 / 10 * 4, 1 / 10),
        (0.05, 4 / 10 - 5 / 10 / 19, 4 / 10 - 5 / 10 / 19),
    ],
)
@pytest.mark.parametrize("target", ["population", "rows"])
def test_net_benefit_by_hand(threshold: float, old: float, new: float, target: str) -> None:
    found = cal.compare(both(TEN), TEN["y"], measure="net_benefit", threshold=threshold, target=target)
    (d,) = found.differences
    assert (d.reference, d.value, d.difference) == pytest.approx((old, new, old - new))
    assert d.threshold == threshold
    assert found.settings["thresholds"] == (threshold,)


def test_net_benefit_is_that_of_the_measure_by_group_and_weight(rows: dict[str, np.ndarray]) -> None:
    weights, at = np.where(rows["who"] % 2, 2.0, 1.0), (0.2, 0.4)
    more = {"covariates": {"sex": rows["sex"]}, "by": "sex", "weights": weights}
    found = cal.compare(both(rows), rows["y"], measure="net_benefit", threshold=at, **more)
    assert [(d.population, d.threshold) for d in found.differences] == [
        (who, t) for t in at for who in ("everyone", "sex = f", "sex = m")
    ]
    for d in found.differences:
        some = np.ones(6000, dtype=bool) if d.population == "everyone" else rows["sex"] == d.population[-1]
        old, new = (
            cal.measure.net_benefit(
                cal.predictions(rows["y"][some], rows[m][some], weights=weights[some]), threshold=d.threshold
            ).value
            for m in ("old", "new")
        )
        assert (d.reference, d.value) == pytest.approx((old, new))
        assert d.interval.low <= d.difference <= d.interval.high
    assert max(d.interval.high for d in found.differences if d.population != "everyone") <= found.worst["new"]


def test_a_false_positive_counts_its_odds_in_what_a_row_can_lose() -> None:
    how = {"measure": "net_benefit", "margin": 0.0, "target": "population", "clip": 0.01, "alpha": 0.05, "seed": 0}
    asked = Terms.of(threshold=[0.1, 0.5, 0.9], costs=None, **how)
    assert [asked.reach(t) for t in asked.at] == pytest.approx([1.0, 1.0, 9.0])
    for t in asked.at:
        (zero, one), (none, nothing) = (asked.losses(np.array([p]), t) for p in (1.0, 0.0))
        span = np.abs([zero - none, one - nothing])
        assert span.max() == pytest.approx(asked.reach(t))
        assert (none, nothing) == (0.0, 0.0)


def test_thresholds_share_alpha_and_their_worst_does_not(rows: dict[str, np.ndarray]) -> None:
    at = [0.1, 0.2, 0.3, 0.4]
    together = cal.compare(both(rows), rows["y"], measure="net_benefit", threshold=at)
    highest = max(d.interval.high for d in together.differences)
    for d in together.differences:
        alone, shared, unshared = (
            cal.compare(both(rows), rows["y"], measure="net_benefit", threshold=d.threshold, alpha=a)
            .differences[0]
            .interval
            for a in (0.05, 0.05 / 8, 0.05)
        )
        assert d.interval.low == shared.low < alone.low
        assert alone.high <= d.interval.high <= shared.high
        assert unshared.high <= highest
    assert together.settings["shares"] == {"everyone": 0.5, "worst_threshold": 0.5}
    assert together.verdict == least(d.verdict for d in together.differences)


def test_costs_set_the_threshold_and_order_does_not_matter(rows: dict[str, np.ndarray]) -> None:
    models = {"old": rows["old"], "new": rows["new"]}
    priced = cal.compare(models, rows["y"], measure="net_benefit", costs=(1, 4))
    assert priced == cal.compare(models, rows["y"], measure="net_benefit", threshold=0.2)
    assert priced.settings["thresholds"] == (0.2,)
    both = cal.compare(models, rows["y"], measure="net_benefit", threshold=[0.5, 0.2, 0.5])
    assert both == cal.compare(models, rows["y"], measure="net_benefit", threshold=[0.2, 0.5])


def test_the_same_decisions_differ_by_nothing_about_these_rows(rows: dict[str, np.ndarray]) -> None:
    nearly = {"old": rows["old"], "new": np.where(rows["old"] >= 0.3, 1.0, 0.0)}
    how = {"measure": "net_benefit", "threshold": 0.3}
    found = cal.compare(nearly, rows["y"], target="rows", **how)
    assert (found.differences[0].interval.low, found.differences[0].interval.high) == (0.0, 0.0)
    high = cal.compare(nearly, rows["y"], **how).differences[0].interval.high
    assert 0.0 < high < 4.0 / 6000  # nothing in 6,000 rows: at most 3 to 4 of as many


# ---- what the two targets say ----


def test_each_target_says_what_it_is_about(
    log: str, rows: dict[str, np.ndarray], capsys: pytest.CaptureFixture[str]
) -> None:
    about = {
        "population": ("About future rows like these.", "Assumes independent rows from one distribution."),
        "rows": (
            "About these rows given their scores, not about others.",
            "Assumes outcomes of different rows independent given the scores.",
        ),
    }
    for target, words in about.items():
        main(["compare", log, "--label", "y", "--score", "old,new", "--target", target])
        out = capsys.readouterr().out
        assert all(w in out for w in words)
    found = cal.compare(both(rows), rows["y"], cluster=rows["who"], weights=1.0 + rows["who"] % 2, target="rows")
    assert found.settings["assumes"] == (
        "outcomes of different clusters independent given the scores, rows of one cluster as dependent as they like, "
        "weights that do not depend on outcomes"
    )
    assert (found.settings["clusters"], "pilot_clusters" in found.settings) == (2000, False)
    main(["compare", "--help"])
    reported = " ".join(capsys.readouterr().out.split())
    assert "about future rows like these (default), or about the rows at hand, given their scores" in reported


def test_the_limit_is_where_evidence_by_hand_refutes() -> None:
    rng = np.random.default_rng(1)
    d, w = rng.uniform(-0.3, 0.4, 60), rng.uniform(0.5, 1.0, 60)
    clusters = PairedClusters(d * w, w, 1.0, 1.0)
    _, high = clusters.limits(0.1)
    target, wealth = math.log(20.0), np.zeros(3)
    squares, total, size = 1.0 / 16.0, 0.0, 0.0
    for u, (z, s) in enumerate(zip(d * w, w, strict=True)):  # one unit after another
        mean = total / size if size else 0.0
        bets = np.minimum(
            np.array(BETS.multiples) * math.sqrt(2 * target / 60 / (squares / (u + 1))), 0.95 / (1 - high)
        )
        wealth += np.log(1.0 - bets * (z - high * s))
        squares, total, size = squares + (z - mean * s) ** 2, total + z, size + s
    assert math.log(np.exp(wealth) @ np.array(BETS.weights)) == pytest.approx(target, abs=1e-6)


def test_differences_are_the_measures_differences(rows: dict[str, np.ndarray]) -> None:
    for measure, of in (("brier", cal.measure.brier), ("auroc", cal.measure.auroc)):
        sign = -1.0 if measure == "auroc" else 1.0
        found = cal.compare(both(rows), rows["y"], measure=measure).differences[0]
        old, new = (of(cal.predictions(rows["y"], rows[m])).value for m in ("old", "new"))
        assert (found.reference, found.value) == pytest.approx((old, new))
        assert found.difference == pytest.approx(sign * (new - old))


def by_pairs(scores: tuple[np.ndarray, np.ndarray], case: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return what each pair of a case and another adds to the old area less the new."""
    old, new = ((p[case][:, None] > p[other]) + 0.5 * (p[case][:, None] == p[other]) for p in scores)
    return old - new


def test_areas_of_blocks_by_hand() -> None:
    """Blocks share no row, use all, and each is the mean over its own pairs."""
    rng = np.random.default_rng(2)
    y = rng.uniform(size=1500) < 0.4
    scores = (rng.uniform(size=1500).round(1), np.clip(0.3 * y + rng.uniform(size=1500), 0, 1).round(2))
    found = row_areas(scores, y, np.random.default_rng(5))
    again = np.random.default_rng(5)
    few = min(y.sum(), (~y).sum())
    count = few // side(few)
    assert side(few) == 1 == side(999) == side(1)
    assert side(1000) == 2
    case, other = (again.permutation(np.flatnonzero(rows)) for rows in (y, ~y))
    hand = [by_pairs(scores, case[k::count], other[k::count]).mean() for k in range(count)]
    assert found.value == pytest.approx(hand)
    assert set(found.size) == {1.0}


def test_areas_of_units_by_hand() -> None:
    """Sums over pairs of rows of different units, by weight; no size is above what is bet on."""
    rng = np.random.default_rng(3)
    cluster = np.repeat(np.arange(7), 3)
    y, w = rng.uniform(size=21) < 0.4, rng.uniform(0.2, 1.0, 21)
    scores = (rng.uniform(size=21).round(1), rng.uniform(size=21).round(1))
    found = cluster_areas(scores, y, w, cluster, 3.0, np.random.default_rng(5))
    hash_split = np.empty(7, dtype=int)
    hash_split[np.random.default_rng(5).permutation(7)] = np.arange(7) % 3
    for k in range(3):
        pairs = [(i, j) for i in np.flatnonzero(y) for j in np.flatnonzero(~y)]
        pairs = [
            (i, j)
            for i, j in pairs
            if cluster[i] != cluster[j] and hash_split[cluster[i]] == hash_split[cluster[j]] == k
        ]
        own = [by_pairs(scores, np.array([i]), np.array([j])).item() * w[i] * w[j] for i, j in pairs]
        assert found.value[k] == pytest.approx(sum(own), abs=1e-12)
        assert found.size[k] == pytest.approx(sum(w[i] * w[j] for i, j in pairs), abs=1e-12)
    assert found.most == 2 * 9.0  # blocks of three units: one is all cases, the others all others
    assert found.size.max() <= found.most


def test_identical_models_differ_by_nothing_about_these_rows(rows: dict[str, np.ndarray]) -> None:
    same = {"a": rows["new"], "b": rows["new"]}
    found = cal.compare(same, rows["y"], target="rows").differences[0]
    assert (found.interval.low, found.interval.high, found.verdict) == (0.0, 0.0, "no worse")
    assert cal.compare(same, rows["y"]).verdict == "no worse"
    assert cal.compare(same, rows["y"], margin=0.0).verdict == "undecided"


# ---- groups, units, order, round trip ----


def test_swapping_models_swaps_the_ends(rows: dict[str, np.ndarray]) -> None:
    one = cal.compare(both(rows), rows["y"]).differences[0].interval
    other = cal.compare(both(rows), rows["y"], reference="new").differences[0].interval
    assert (one.low, one.high) == pytest.approx((-other.high, -other.low))


@pytest.mark.parametrize("measure", ["brier", "log_loss", "error", "calibration_error", "auroc"])
def test_groups_share_and_the_worst_bounds_all(rows: dict[str, np.ndarray], measure: str) -> None:
    found = cal.compare(both(rows), rows["y"], {"sex": rows["sex"]}, by="sex", measure=measure)
    everyone, *groups = found.differences
    assert [everyone.population, *(g.population for g in groups)] == ["everyone", "sex = f", "sex = m"]
    assert all(g.interval.high <= max(found.worst["new"], g.difference) for g in groups)
    assert all(g.rows % 5 == 0 for g in groups)
    alone = cal.compare(both(rows), rows["y"], measure=measure).differences[0].interval
    assert alone.low >= everyone.interval.low
    assert alone.high <= everyone.interval.high


def test_groups_of_few_people_are_left_out(rows: dict[str, np.ndarray]) -> None:
    site = np.where(np.arange(6000) < 19, "few", "many")
    found = cal.compare(both(rows), rows["y"], {"site": site}, by="site")
    assert [d.population for d in found.differences] == ["everyone", "site = many"]
    with pytest.raises(cal.NotComputable, match="no group has 20 people"):
        cal.compare({k: v[:19] for k, v in both(rows).items()}, rows["y"][:19], {"s": site[:19]}, by="s")


def test_rows_of_one_unit_widen(rows: dict[str, np.ndarray]) -> None:
    thrice = {k: np.repeat(v[:2000], 3) for k, v in rows.items()}
    for target in ("population", "rows"):
        plain = cal.compare(both(thrice), thrice["y"], target=target).differences[0].interval
        by_clusters = cal.compare(both(thrice), thrice["y"], cluster=rows["who"], target=target)
        wide = by_clusters.differences[0].interval
        assert wide.high - wide.low > 1.3 * (plain.high - plain.low)
    assert cal.compare(both(thrice), thrice["y"], cluster=rows["who"]).settings["clusters"] == 2000


def test_weights_weigh(rows: dict[str, np.ndarray]) -> None:
    w = np.where(rows["sex"] == "f", 2.0, 1.0)
    found = cal.compare(both(rows), rows["y"], weights=w).differences[0]
    gain = (rows["new"] - rows["y"]) ** 2 - (rows["old"] - rows["y"]) ** 2
    assert found.difference == pytest.approx(np.average(gain, weights=w))
    assert found.interval.low < found.difference < found.interval.high


def test_it_round_trips_and_is_a_table(rows: dict[str, np.ndarray]) -> None:
    found = cal.compare(both(rows) | {"third": rows["new"]}, rows["y"], {"sex": rows["sex"]}, by="sex")
    assert cal.ModelComparison.from_dict(json.loads(json.dumps(found.to_dict()))) == found
    assert found.to_arrow().num_rows == 6
    assert found == cal.compare(both(rows) | {"third": rows["new"]}, rows["y"], {"sex": rows["sex"]}, by="sex")
    assert found.verdicts.keys() == {"new", "third"}


# ---- audits of different rows ----


@pytest.mark.slow
def test_audits_differ_by_their_certified_ranges(rows: dict[str, np.ndarray]) -> None:
    covariates = {"sex": rows["sex"]}
    old, new = (
        cal.audit(cal.predictions(rows["y"], rows[m], covariates), by="sex", quick=True) for m in ("old", "new")
    )
    found = cal.compare({"jan": old, "feb": new}, margin=0.02)
    everyone, *groups = found.differences
    assert everyone.interval.low == new.everyone.lower.interval.low - old.everyone.upper.interval.high
    assert everyone.interval.high == new.everyone.upper.interval.high - old.everyone.lower.interval.low
    assert everyone.interval.level == pytest.approx(0.8)  # both of everyone's ends have all of alpha, in both audits
    assert [g.interval.level for g in groups] == pytest.approx([0.9, 0.9])
    reported = decisions.compared(found)
    assert (
        "Everyone's ranges hold at level 0.8, each bound separately at 0.9; all groups' simultaneously at 0.9, finite"
        in reported
    )
    assert [g.population for g in groups] == ["sex = f", "sex = m"]
    assert found.verdict == "better"
    assert cal.compare({"feb": new, "jan": old}, margin=0.02).verdict == "worse"
    with pytest.raises(cal.BadInput, match="audits bring their own rows"):
        cal.compare({"jan": old, "feb": new}, rows["y"])


def missed(record: AuditRecord, rng: np.random.Generator) -> bool:
    """Tell whether everyone's difference misses 0, of audits whose ends are the truth, or wrong as often as allowed."""

    def end(side: Estimate, wrong: float) -> Estimate:
        at = wrong if rng.uniform() < record.settings["alpha"] else 0.1
        return replace(side, interval=replace(side.interval, low=at, high=at))

    def drawn() -> AuditRecord:
        e = record.everyone
        return replace(record, everyone=replace(e, lower=end(e.lower, 0.2), upper=end(e.upper, 0.05)), groups=())

    found = cal.compare({"jan": drawn(), "feb": drawn()}).differences[0].interval
    return not found.low <= 0.0 <= found.high


@pytest.mark.slow
def test_the_level_of_two_audits_holds_at_both_ends(rows: dict[str, np.ndarray]) -> None:
    record = cal.audit(cal.predictions(rows["y"], rows["new"]), quick=True)
    rng, draws = np.random.default_rng(0), 2000
    times = sum(missed(record, rng) for _ in range(draws))
    assert binom.sf(times - 1, draws, 0.2) > 1e-6
    assert binom.sf(times - 1, draws, 0.1) < 1e-6  # each audit's alpha counted once: the level of one end


# ---- refusals ----


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"models": {"old": [0.5] * 4}}, "pass two models or more by name"),
        ({"models": {"old": [0.5] * 4, "new": [0.5] * 3}}, "model 'new'.*4 rows"),
        ({"models": {"old": [0.5] * 4, "new": [0.5, math.nan, 0.5, 0.5]}}, "model 'new'.*missing"),
        ({"models": {"old": [0.5] * 4, "new": [0.5, 1.5, 0.5, 0.5]}}, "model 'new'.*outside"),
        ({"margin": -0.1}, "margin=-0.1"),
        ({"measure": "ece"}, "measure='ece'"),
        ({"target": "all"}, "target='all'"),
        ({"clip": 0.5}, "clip=0.5"),
        ({"measure": "net_benefit"}, "net_benefit acts from a threshold on: name it, threshold= such as 0.2"),
        ({"measure": "net_benefit", "threshold": 1.0}, "threshold=1.0: pass a number between 0 and 1"),
        ({"measure": "net_benefit", "threshold": [0.2, 2]}, "threshold=2: pass a number between 0 and 1"),
        ({"measure": "net_benefit", "threshold": 0.2, "costs": [1, 4]}, "threshold and costs both say"),
        ({"measure": "net_benefit", "costs": [1, -4]}, "costs=-4: pass two positive costs"),
        ({"costs": [1, 4]}, "costs= is of net_benefit, and the measure is brier"),
        ({"measure": "net_benefit", "threshold": []}, r"threshold=\[\]"),
        ({"measure": "net_benefit", "threshold": "0.2"}, "threshold='0.2'"),
        ({"threshold": 0.2}, "threshold= is of net_benefit, and the measure is brier"),
        ({"reference": "x"}, "reference='x'.*old, new"),
        ({"by": "sex"}, "sex"),
        ({"y_true": None}, "name the outcomes"),
    ],
)
def test_bad_input_is_told_in_one_line(change: dict[str, object], why: str) -> None:
    usual = {"models": {"old": [0.5] * 4, "new": [0.4] * 4}, "y_true": [0, 1, 0, 1]}
    with pytest.raises(cal.BadInput, match=why) as reported:
        cal.compare(**(usual | change))
    assert "\n" not in str(reported.value)


def test_what_cannot_be_computed_says_so(rows: dict[str, np.ndarray]) -> None:
    for measure in ("auroc", "calibration_error"):
        with pytest.raises(cal.NotComputable, match="about a population"):
            cal.compare(both(rows), rows["y"], measure=measure, target="rows")
    with pytest.raises(cal.NotComputable, match="one outcome only"):
        cal.compare({"a": [0.1, 0.2], "b": [0.2, 0.3]}, [0, 0], measure="auroc")


# ---- the command ----


@pytest.mark.slow
def test_the_command_prints_what_python_returns(
    log: str, rows: dict[str, np.ndarray], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    common = ["compare", log, "--label", "y", "--score", "old,new", "--by", "sex"]
    assert main([*common, "--json", "--out", str(tmp_path / "t.csv")]) == 0
    found = cal.ModelComparison.from_dict(json.loads(capsys.readouterr().out))
    assert found == cal.compare(both(rows), rows["y"], {"sex": rows["sex"]}, by="sex")
    assert (tmp_path / "t.csv").read_text().count("\n") == 4
    assert main(common) == 0
    out = capsys.readouterr().out
    assert "new is better than old: it loses less, and no worse in any group (Brier score)." in out
    assert "In every group it is better by at least" in out
    assert main([*common, "--reference", "new"]) == 1
    assert "old is worse than new for everyone, sex = f" in capsys.readouterr().out
    assert main([*common, "--measure", "error", "--margin", "0"]) == 3
    acting = [*common, "--measure", "net_benefit", "--threshold", "0.1,0.3"]
    capsys.readouterr()
    assert main([*acting, "--json", "--out", str(tmp_path / "n.csv")]) in (0, 3)
    how = {"measure": "net_benefit", "threshold": [0.1, 0.3]}
    found = cal.ModelComparison.from_dict(json.loads(capsys.readouterr().out))
    assert found == cal.compare(both(rows), rows["y"], {"sex": rows["sex"]}, by="sex", **how)
    assert (tmp_path / "n.csv").read_text().splitlines()[0].startswith("model,population,threshold,")
    main(acting)
    out = capsys.readouterr().out
    assert "(net benefit at 0.1 and 0.3)" in out
    assert "sex = f at 0.3" in out


@pytest.mark.slow
def test_the_command_compares_audits(log: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    kept = [str(tmp_path / f"{m}.json") for m in ("old", "new")]
    for out, score in zip(kept, ("old", "new"), strict=True):
        main(["audit", log, "--label", "y", "--score", score, "--by", "sex", "--quick", "-o", out])
    capsys.readouterr()
    assert main(["compare", *kept]) == 0
    assert "new is better than old" in capsys.readouterr().out
    assert main(["compare", *kept[::-1]]) == 1


@pytest.mark.parametrize(
    ("more", "why"),
    [
        (["--label", "y", "--score", "old"], "name two models or more"),
        (["--label", "y", "--score", "old,old"], "'old' twice"),
        (["--label", "y", "--score", "old,nw"], "'nw' is not in the data; did you mean 'new'?"),
        (["--label", "y", "--score", "old,who"], "column 'who'"),
        (["--label", "y", "--score", "old,new", "--margin", "-1"], "--margin=-1"),
        (["--score", "old,new"], "name the columns"),
        (["--label", "y", "--score", "old,new", "--reference", "x"], "--reference x"),
        (["--label", "y", "--score", "old,new", "--measure", "net_benefit"], "name it, --threshold such as 0.2"),
        (["--label", "y", "--score", "old,new", "--threshold", "0.2"], "--threshold is of net_benefit"),
        (
            ["--label", "y", "--score", "old,new", "--measure", "net_benefit", "--threshold", "0.2,1"],
            "--threshold=1.0: pass a number between 0 and 1, such as 0.2",
        ),
    ],
)
def test_the_command_refuses_in_one_line(
    log: str, more: list[str], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", log, *more]) == 2
    err = capsys.readouterr().err
    assert why in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("x.json bad.json", "'x.json': not an audit record"),
        ("bad.json x.json", "'bad.json': not JSON (Expecting property name enclosed in double quotes: line 1"),
        ("list.json x.json", "'list.json': not an audit record"),
        ("old.json x.json", "'old.json': schema is 'calibrant/1'"),
        ("x.json x.json", "name two different audits"),
        ("x.json log.parquet", "audits are compared with audits"),
        ("x.json bad.json --measure auroc --alpha 0.01", "leave --measure and --alpha out"),
        ("x.json bad.json --by sex", "leave --by out"),
    ],
)
def test_what_is_no_audit_is_told_by_file(
    words: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in (("x", '{"value": 1}'), ("bad", "{"), ("list", "[1]"), ("old", '{"schema": "calibrant/1"}')):
        Path(f"{name}.json").write_text(text)
    assert main(["compare", *words.split()]) == 2
    err = capsys.readouterr().err
    assert why in err
    assert err.count("\n") == 1


@pytest.mark.slow
def test_audits_refuse_what_they_have_settled(rows: dict[str, np.ndarray]) -> None:
    kept = {m: cal.audit(cal.predictions(rows["y"], rows[m]), quick=True) for m in ("old", "new")}
    assert cal.compare(kept, measure="calibration_error").measure == "calibration_error"
    with pytest.raises(cal.BadInput, match="leave measure= and seed= out"):
        cal.compare(kept, measure="auroc", seed=3)


# ---- the page ----


def test_the_page_shows_verdicts_and_every_range(log: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "t.html"
    common = ["compare", log, "--label", "y", "--score", "old,new", "--by", "sex", "--out", str(out)]
    assert main(common) == 0
    stated = capsys.readouterr().out.splitlines()
    page = out.read_text(encoding="utf-8")
    assert stated[0] in page
    assert stated[1] in page
    assert page.count('<svg class="t"') == 3  # everyone, and two groups
    assert "Assumes independent rows" in page
    assert "<script" not in page
    again = tmp_path / "again.html"
    main([*common[:-1], str(again)])
    assert again.read_bytes() == out.read_bytes()


def test_names_in_the_page_stay_text(rows: dict[str, np.ndarray], tmp_path: Path) -> None:
    found = cal.compare({"<b>": rows["old"], "new": rows["new"]}, rows["y"], {"s<i>": rows["sex"]}, by="s<i>")
    page = decisions.content(found, "x.html").decode()
    assert "<b>" not in page
    assert "s<i>" not in page
    assert "&lt;b&gt;" in page


def test_rows_without_a_label_are_refused_with_what_compare_takes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [f"{'' if i == 6 else i % 2},0.{i % 9 + 1},{'' if i == 7 else 0.5}" for i in range(60)]
    path = tmp_path / "log.csv"
    for gap, column in ((6, "y"), (7, "new")):
        kept = [line for i, line in enumerate(lines) if i in (gap,) or i not in (6, 7)]
        path.write_text("\n".join(["y,old,new", *kept]), encoding="utf-8")
        assert main(["compare", str(path), "--label", "y", "--score", "old,new"]) == 2
        err = capsys.readouterr().err
        assert f"column {column!r}: 1 value is missing" in err
        assert "fill them in, or leave those rows out of the data" in err
        assert "--" not in err.replace("--label", ""), "no option that compare lacks"


# ---- as a scikit-learn program calls it ----


def test_models_come_as_predictions_as_columns_and_in_either_order(rows: dict[str, np.ndarray], log: str) -> None:
    plain = cal.compare(both(rows), rows["y"], {"sex": rows["sex"]}, by="sex", margin=0.01)
    made = {name: cal.predictions(rows["y"], p, {"sex": rows["sex"]}) for name, p in both(rows).items()}
    how = {"by": "sex", "margin": 0.01}
    assert cal.compare(made, **how) == plain
    assert cal.compare(made["old"], made["new"], **how) == plain
    assert cal.compare(rows["y"], both(rows), {"sex": rows["sex"]}, **how) == plain
    assert cal.compare(log, label="y", score=["old", "new"], **how) == plain
    turned = cal.compare(log, label="y", score=["new", "old"], reference="old", **how)
    assert turned.verdicts == plain.verdicts
    for refused, line in (
        (lambda: cal.compare(log, label="y", score=["old"]), "pass the columns of two models or more"),
        (lambda: cal.compare(log, rows["y"], label="y", score=["old", "new"]), "leave y_true and covariates out"),
        (lambda: cal.compare(log, label="y", score=["old", "new"], reference="neww"), "reference='neww': pass 'old'"),
        (lambda: cal.compare({"a": made["old"], "b": rows["new"]}, rows["y"]), "pass predictions alone"),
        (
            lambda: cal.compare(made["old"], cal.predictions(1 - rows["y"], rows["new"])),
            "model 'new': its labels are not those of the first",
        ),
    ):
        with pytest.raises(cal.BadInput, match=line):
            refused()
