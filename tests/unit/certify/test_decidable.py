"""What a log can decide: the promised power is that of the certificates, and no outcome is read."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import calibrant as cal
from calibrant.cli.run import main
from calibrant.results import Curve

SITES = np.array(["a", "b", "c", "d"])


def rows(n: int, seed: int, cluster: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    p, site = rng.beta(2, 5, n), SITES[rng.choice(4, n, p=[0.5, 0.3, 0.15, 0.05])]
    return {"p": p, "site": site, "unit": rng.integers(0, n // cluster, n) if cluster else None, "rng": rng}


def predictions(d: dict[str, Any], more: float = 0.0) -> cal.Predictions:
    """Outcomes by the scores; of site b, `more` events."""
    p = d["p"]
    rate = np.clip(p + more * (d["site"] == "b"), 0, 1)
    y = (d["rng"].uniform(size=len(p)) < rate).astype(int)
    return cal.predictions(y, p, {"site": d["site"]}, cluster=d["unit"])


def of(plan: Curve, name: str) -> dict[str, float]:
    i = plan.columns["group"].index(name)
    return {k: v[i] for k, v in plan.columns.items()}


@pytest.mark.slow
def test_no_outcome_is_read() -> None:
    d = rows(800, 1)
    plans = [cal.certify.decidable(predictions(d), by="site", draws=20) for _ in range(2)]
    assert plans[0] == plans[1]


def test_fewer_groups_and_more_rows_decide_more() -> None:
    plan = cal.certify.decidable(predictions(rows(2000, 2)), by="site", draws=20, limit=0.05)
    sizes = [of(plan, f"site = {s}") for s in "abcd"]
    within = [s["gap_within"] for s in sizes]
    assert within == sorted(within)
    assert all(s["gap_within_alone"] <= s["gap_within"] * 1.02 for s in sizes)
    assert all(s["gap_within"] < s["error_within"] for s in sizes)
    assert all(s["gap_over"] > 0.05 for s in sizes)
    power = [s["power_within"] for s in sizes]
    assert power == sorted(power, reverse=True)
    assert [s["power_within"] >= 0.8 for s in sizes] == [w <= 0.05 for w in within]


@pytest.mark.slow
def test_gaps_over_a_limit_spend_what_the_judge_does() -> None:
    """All of alpha is more than .8 of it; "within" spends a half either way."""
    d = rows(600, 4)
    auto, gap = (cal.certify.decidable(predictions(d), by="site", judge=j, draws=20) for j in ("auto", "gap"))
    assert auto.columns["gap_within"] == gap.columns["gap_within"]
    assert auto.columns["gap_over"][0] == gap.columns["gap_over"][0]  # of everyone: all of alpha, whatever is judged
    assert sum(gap.columns["gap_over"][1:]) < sum(auto.columns["gap_over"][1:])
    assert auto.settings["simulation_error"] == pytest.approx(0.4 / 20**0.5)


def test_clusters_are_counted_and_decide_less() -> None:
    d = rows(600, 3, cluster=3)
    clusters = cal.certify.decidable(predictions(d), draws=20)
    alone = cal.certify.decidable(predictions(d | {"unit": None}), draws=20)
    assert (clusters.columns["clusters"], alone.columns["clusters"]) == ((len(set(d["unit"])),), (None,))
    assert clusters.columns["gap_within"][0] > alone.columns["gap_within"][0]


@pytest.mark.slow(turns=10)
def test_the_power_is_that_of_the_certificates() -> None:
    """At more sizes, and with clusters: benchmarks/certify/decidable.py."""
    d = rows(600, 600)
    b = of(cal.certify.decidable(predictions(d), by="site", draws=200), "site = b")
    sets, met, over = 100, 0, 0
    for _ in range(sets):
        groups = cal.certify.groups(predictions(d), by="site", judge="gap", limit=b["gap_within"])
        met += groups["site = b"].settings["verdict"] == "within"
        moved = predictions(d, b["gap_over"])
        over += cal.certify.groups(moved, by="site", judge="gap", limit=1e-9)["site = b"].settings["verdict"] == "over"
    # three standard errors of either are .12
    assert abs(met / sets - 0.8) < 0.12
    assert over / sets > 0.68


@pytest.mark.slow
def test_a_look_says_what_can_be_decided(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    d = rows(900, 5)
    y = (d["rng"].uniform(size=900) < d["p"]).astype(int)
    lines = [f"{a},{b:.4f},{c}" for a, b, c in zip(y, d["p"], d["site"], strict=True)]
    (tmp_path / "log.csv").write_text("\n".join(["ill,risk,site", *lines]))
    assert main(["look", str(tmp_path / "log.csv")]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "If scores are right, these rows show with probability 80% that a gap or error is at most these" in said
    assert re.search(r"rows gap within error within everyone 900 \d+\.\d \d+\.\d site = a \d+", said)
    assert "4 groups are judged together." in said
    options = ["--data", str(tmp_path / "log.csv"), "--label", "ill", "--score", "risk", "--draws", "20"]
    assert main(["plan", *options, "--by", "site", "--limit", "0.15", "--judge", "gap"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "The 80% is simulated from 20 drawn sets: true to about 8.9 percentage points." in said
    assert "Of 4 groups" in said
    assert "can be shown to be within 15.0 points together" in said
    assert main(["plan", *options, "--by", "site", "--json"]) == 0
    assert '"group"' in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "pass a gap such as 0.02, a log (--data)"),
        (["0.02", "--limit", "0.1"], "--limit does not go with a gap: leave it out"),
        (["--by", "site"], "go with --data or --sql"),
    ],
)
def test_what_does_not_go_together_is_refused(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plan", *arguments]) == 2
    assert said in capsys.readouterr().err


def test_settings_are_refused_by_name() -> None:
    data = predictions(rows(100, 1))
    for name, value in (("power", 1.0), ("draws", 5), ("limit", 0.0), ("steps", 1), ("judge", "both")):
        with pytest.raises(cal.BadInput, match=name):
            cal.certify.decidable(data, **{name: value})  # type: ignore[arg-type]
