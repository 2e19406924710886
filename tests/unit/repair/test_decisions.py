"""Whose decisions a repair changes, and what that gains: by hand, in groups, masked, refused, on the command."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import calibrant as cal
from calibrant.cli import main
from calibrant.repair.judge.decisions import DecisionChange, decision_changes
from calibrant.repair.judge.evidence import groups_of
from calibrant.repair.judge.rows import Judged
from calibrant.repair.judge.verdict import AS_AUDITED, UNASKED, Comparison
from calibrant.report.terminal import comparison, recommendation
from factories import decision_lines

N = 4000


def judged(n: int = N, **more: np.ndarray) -> Judged:
    """Return rows as audited, and under a repair that raises low scores of women."""
    rng = np.random.default_rng(5)
    eta = rng.uniform(0.0, 0.6, n)
    sex = np.where(np.arange(n) % 2, "f", "m")
    p = np.where(sex == "f", eta * 0.4, eta)
    data = cal.predictions(rng.uniform(size=n) < eta, p, {"sex": sex}, **more)
    return Judged.of(data, {AS_AUDITED: p, "raised": eta}, np.zeros(n, dtype=np.int64))


def reported(of: Judged, *thresholds: float, alpha: float = 0.05) -> list[DecisionChange]:
    groups = groups_of(of.data, ["sex"], {}, 20, 0)
    return decision_lines(decision_changes(of, groups, thresholds, alpha))


def benefit(of: Judged, name: str, t: float, some: np.ndarray) -> float:
    """As dcurves counts it: true positives a row, less false ones times t / (1 - t)."""
    y, acted = of.data.y[some], of.scores[name][some] >= t
    n = some.sum()
    return float((acted & (y == 1)).sum() / n - (acted & (y == 0)).sum() / n * t / (1 - t))


def test_changes_by_hand() -> None:
    of = judged()
    women = np.arange(N) % 2 == 1
    everyone, f, m = reported(of, 0.2)
    moved = int(((of.scores["raised"] >= 0.2) & (of.data.p < 0.2)).sum())
    for line, some in ((everyone, np.ones(N, dtype=bool)), (f, women)):
        gain = benefit(of, "raised", 0.2, some) - benefit(of, AS_AUDITED, 0.2, some)
        step = 0.001 if line is everyone else 0.002  # of five people's share, 1, 2 or 5 times a power of ten
        assert line.gain == pytest.approx(step * round(gain / step))
        assert line.gain_low < gain < line.gain_high
        assert (line.to_act, line.to_leave) == (5 * round(moved / 5), 0)
        assert line.gain_low / step == pytest.approx(round(line.gain_low / step))
    assert (everyone.population, f.population, m.population) == ("everyone", "sex = f", "sex = m")
    assert (m.to_act, m.to_leave, m.gain, m.gain_low, m.gain_high, m.shown) == (0, 0, 0.0, 0.0, 0.0, "none")
    assert everyone.shown == "better"


def test_ends_are_those_of_the_judges_moved_outward_at_each_ones_share() -> None:
    of, t = judged(), 0.3
    both = reported(of, 0.2, t)
    change = (of.scores["raised"] >= t).astype(float) - (of.data.p >= t)
    for line, rows in zip(both[3:5], (np.arange(N), np.arange(1, N, 2)), strict=True):
        delta = 0.05 * 0.5 / 2 / (1 if line.population == "everyone" else 2)
        _, low, high = of.mean_range(-change * t / (1 - t), change, delta, among=rows)
        step = 0.001 if len(rows) == N else 0.002
        assert low - step <= line.gain_low <= low
        assert high <= line.gain_high <= high + step


def test_the_way_back_is_the_reverse() -> None:
    of = judged()
    back = replace(of, scores={AS_AUDITED: of.scores["raised"], "raised": of.data.p})
    there, here = reported(of, 0.2)[0], reported(back, 0.2)[0]
    assert (here.to_act, here.to_leave) == (there.to_leave, there.to_act)
    assert here.gain == -there.gain
    assert here.shown == "worse"


def test_of_few_who_change_side_no_more_is_told() -> None:
    of = judged()
    few = of.data.p.copy()
    few[np.flatnonzero((of.scores["raised"] >= 0.2) & (of.data.p < 0.2))[:19]] = 0.2
    few = replace(of, scores={AS_AUDITED: of.data.p, "raised": few})
    for line in reported(few, 0.2)[:2]:
        assert {line.to_act, line.to_leave, line.gain, line.gain_low, line.gain_high, line.shown} == {None}
    pairs = judged(cluster=np.arange(N) // 300)  # many rows of few people
    assert reported(pairs, 0.2)[0].shown is None
    assert [line.population for line in reported(pairs, 0.2)] == ["everyone"]  # of 14 people no group is told


def shown_of(site: np.ndarray, moved: np.ndarray, smallest: int = 20) -> dict[str, int | None]:
    """Return how many rows are told to change side, of a repair that raises the rows given over 0.5."""
    p = np.full(len(site), 0.4)
    data = cal.predictions(np.arange(len(site)) % 2, p, {"site": site})
    of = Judged.of(data, {AS_AUDITED: p, "raised": np.where(moved, 0.6, 0.4)}, np.zeros(len(site), dtype=np.int64))
    lines = decision_lines(decision_changes(of, groups_of(data, ["site"], {}, smallest, 0), [0.5], 0.05))
    return {line.population: line.to_act for line in lines}


def test_no_group_can_be_had_by_subtraction() -> None:
    """Everyone less those told is one group of few, or one that is not judged: the next fewest are not told either."""
    site = np.repeat(["a", "b", "c", "d"], [400, 400, 400, 15])

    def first(**many: int) -> np.ndarray:
        return np.concatenate([np.flatnonzero(site == k)[:n] for k, n in many.items()])

    def reported_of(**many: int) -> dict[str, int | None]:
        return shown_of(site, np.isin(np.arange(len(site)), first(**many)))

    assert reported_of(a=100, b=50, c=30) == {"everyone": 180, "site = a": 100, "site = b": 50, "site = c": 30}
    # c is few: b, with fewer than a, would give it away
    assert reported_of(a=100, b=50, c=5) == {"everyone": 155, "site = a": 100, "site = b": None, "site = c": None}
    # two are few and together enough
    assert reported_of(a=100, b=15, c=10) == {"everyone": 125, "site = a": 100, "site = b": None, "site = c": None}
    # nobody changes in c: that is told, and b would give away nothing but itself
    assert reported_of(a=100, b=50) == {"everyone": 150, "site = a": 100, "site = b": 50, "site = c": 0}
    # d has too few people to be judged, and is what everyone has more than the others
    assert reported_of(a=100, b=50, c=30, d=5) == {"everyone": 185, "site = a": 100, "site = b": 50, "site = c": None}
    for many in ({"a": 100, "b": 50, "c": 5}, {"a": 40, "b": 3, "c": 2, "d": 7}, {"a": 25, "b": 24, "c": 1, "d": 1}):
        found = reported_of(**many)
        rest = sum(many.values()) - sum(v for k, v in found.items() if v and k != "everyone")
        assert rest == 0 or rest >= 20


def test_units_weights_and_folds() -> None:
    copies = np.repeat(np.arange(1000), 4)
    kept = {k: p[copies] for k, p in judged().scores.items()}
    sex = {"sex": judged().data.covariates["sex"].take(copies)}
    plain, clusters = (
        reported(
            Judged.of(cal.predictions(judged().data.y[copies], kept[AS_AUDITED], sex, **more), kept, 0 * copies), 0.2
        )[0]
        for more in ({}, {"cluster": copies})
    )
    assert clusters.gain == plain.gain
    assert clusters.gain_high - clusters.gain_low > 1.3 * (plain.gain_high - plain.gain_low)
    weights = np.where(np.arange(N) % 2, 3.0, 1.0)
    heavy = reported(judged(weights=weights), 0.2)[0]
    everyone, women = (reported(judged(), 0.2)[i].gain for i in (0, 1))
    assert everyone < heavy.gain < women
    folds = replace(judged(), part=np.arange(N) // 2 % 4)
    in_folds = reported(folds, 0.2)
    assert in_folds[1].gain == reported(judged(), 0.2)[1].gain
    assert in_folds[1].gain_low <= reported(judged(), 0.2)[1].gain_low


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> str:
    data = judged().data
    path = tmp_path_factory.mktemp("repair") / "log.parquet"
    pq.write_table(pa.table({"y": data.y, "p": data.p, "sex": data.covariates["sex"]}), path)
    return str(path)


@pytest.mark.slow
def test_the_command_prints_and_writes_what_python_returns(log: str, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["repair", log, "--label", "y", "--score", "p", "--by", "sex", "--method", "platt", "--quick"]
    main([*asked, "--threshold", "0.2,0.3", "--json"])
    found = Comparison.from_dict(json.loads(capsys.readouterr().out))
    assert len(decision_lines(found.decisions)) == 2 * 3
    assert found.decisions.settings["thresholds"] == (0.2, 0.3)
    again = Comparison.from_json(found.to_json())
    assert again == found
    main([*asked, "--threshold", "0.2,0.3"])
    out = capsys.readouterr().out
    for line in decision_lines(found.decisions):
        if line.shown not in (None, "none"):
            assert f"{line.gain_low:+.4f} to {line.gain_high:+.4f}  {line.shown}" in out
    assert "0.2 Platt: everyone" in out
    assert "A gain is called better or worse wrongly with probability at most 0.05, simultaneously." in " ".join(
        out.split()
    )
    main([*asked, "--json"])
    without = Comparison.from_dict(json.loads(capsys.readouterr().out))
    assert without.decisions == UNASKED
    assert without.differences == found.differences  # a threshold changes nothing else


@pytest.mark.parametrize("given", ["1", "0", "0.3,2", "nan"])
def test_the_command_refuses_other_thresholds(log: str, given: str, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["repair", log, "--label", "y", "--score", "p", "--method", "platt", "--quick"]
    assert main([*asked, "--threshold", given]) == 2
    err = capsys.readouterr().err
    assert "--threshold" in err
    assert "pass a number between 0 and 1" in err
    assert err.count("\n") == 1


def test_python_refuses_other_thresholds(tmp_path: Path) -> None:
    with pytest.raises(cal.BadInput, match="threshold=2: pass a number between 0 and 1"):
        cal.repair.evaluate(judged(200).data, repairs=[cal.repair.Platt()], threshold=2)


def test_the_recommendation_says_what_the_repair_loses() -> None:
    rng = np.random.default_rng(1)
    eta = rng.uniform(0.02, 0.6, 4000)
    data = cal.predictions(rng.uniform(size=4000) < eta, eta**2, {"sex": np.where(np.arange(4000) % 2, "f", "m")})
    found = cal.repair.evaluate(data, repairs=[cal.repair.Platt()], by="sex", threshold=(0.1, 0.2), tests=())
    assert found.recommended == "Platt"
    assert "But:" not in recommendation(found)
    c = found.decisions.columns
    lines = zip(c["threshold"], c["population"], strict=True)
    worse = tuple("worse" if t == 0.2 and who != "sex = m" else "better" for t, who in lines)
    hurt = replace(found, decisions=replace(found.decisions, columns={**c, "shown": worse}))
    lost = "But: Its decisions are shown to lose net benefit: from 20% on for everyone and 1 more."
    assert " ".join(recommendation(hurt).split()).endswith(lost)
    assert "But: Its decisions" in comparison(hurt)


@pytest.mark.slow
def test_costs_set_the_threshold(log: str, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["repair", log, "--label", "y", "--score", "p", "--method", "platt", "--quick", "--json"]
    main([*asked, "--costs", "1,4"])
    priced = Comparison.from_dict(json.loads(capsys.readouterr().out))
    main([*asked, "--threshold", "0.2"])
    assert priced.decisions == Comparison.from_dict(json.loads(capsys.readouterr().out)).decisions
    assert main([*asked, "--costs", "1,4", "--threshold", "0.2"]) == 2
    assert "--threshold and --costs both say where people are acted on" in capsys.readouterr().err
    with pytest.raises(cal.BadInput, match="costs=1: pass two costs"):
        cal.repair.evaluate(judged(200).data, repairs=[cal.repair.Platt()], costs=1)  # type: ignore[arg-type]
