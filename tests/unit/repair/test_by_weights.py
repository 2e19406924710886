"""Repairs where rows were lost before a horizon: what is estimated, what is left out, and the command."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import calibrant as cal
from calibrant.certify.horizon import pilots
from calibrant.cli.run import main
from calibrant.repair.judge.evaluate import _groups
from calibrant.repair.judge.lost import JudgedByWeights, by_weights, fits_by_weights
from calibrant.repair.judge.rows import Judging
from calibrant.views.unlabelled import FollowedRows

H = 365.0
AT = {"score": "p", "time": "t", "event": "e", "horizon": H, "way": "weights"}


def log(n: int = 1500, seed: int = 0, off: float = 0.15) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.05, 0.6, n)
    event, end = rng.exponential(-H / np.log1p(-p)), rng.exponential(1200.0, n)
    kind = (event <= end).astype(int)
    return {"t": np.minimum(event, end), "e": kind, "p": p + off, "site": np.where(rng.random(n) < 0.5, "a", "b")}


def rows(**more: object) -> cal.Predictions:
    return cal.at_horizon(log(), **AT, by="site", **more)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def judged() -> JudgedByWeights:
    of = fits_by_weights(rows(), by_weights(Judging(repairs={"Platt": cal.repair.Platt()}))).judged
    assert isinstance(of, JudgedByWeights)
    return of


def test_scores_are_those_of_the_measures_by_weights(judged: JudgedByWeights) -> None:
    """The table's Brier score, log loss and AUROC are `cal.measure`'s of the same rows."""
    from calibrant.views.unlabelled import taken_with_lost

    half = taken_with_lost(rows(), judged.at)
    line = judged.summary("as audited")
    assert judged.seen(np.arange(judged.data.n)).weights.sum() == pytest.approx(judged.data.n)
    for name in ("brier", "log_loss", "auroc"):
        assert getattr(line, name) == pytest.approx(getattr(cal.measure, name)(half).value)
    oe = cal.measure.observed_expected(half).value
    assert judged.gap("as audited", np.arange(judged.data.n)) == pytest.approx((oe - 1.0) * half_mean(half))


def half_mean(of: cal.Predictions) -> float:
    return float(np.concatenate([of.p, of.unlabelled.p]).mean())


def test_a_paired_change_is_the_difference_of_the_table(judged: JudgedByWeights) -> None:
    for measure in ("brier", "log_loss", "accuracy"):
        change, low, high = judged.change(measure, "Platt", "as audited", 0.05)
        before, after = (getattr(judged.summary(k), measure) for k in ("as audited", "Platt"))
        assert change == pytest.approx(after - before)
        assert judged.paired(measure, "Platt", "as audited", 0.05)[0] == pytest.approx(change)
        assert low <= change <= high


def test_what_reads_covariates_is_left_out_with_the_reason() -> None:
    data = rows()
    found = cal.repair.evaluate(data, by="site", limit=0.05)
    assert dict(found.settings["left_out"])["AugmentedLogistic"].startswith("it reads covariates")
    assert set(found.calibrators) == {"Platt", "Beta", "Isotonic"}
    assert {"certificates", "variables", "local_p", "strong_p", "scan_p"} == set(dict(found.settings["not_applicable"]))
    assert found.settings["way"] == "weights"
    rng = np.random.default_rng(1)
    p, site = rng.uniform(0.1, 0.9, 2000), rng.choice(["a", "b"], 2000)
    known = cal.predictions(rng.random(2000) < np.where(site == "a", p / 2, p), p, {"site": site})
    wide = cal.repair.AugmentedLogistic(variables=("site",)).fit(known)
    both = cal.repair.evaluate(data, repairs=[wide, cal.repair.Platt()])
    assert set(both.calibrators) == {"Platt"}
    with pytest.raises(cal.NotComputable, match="it reads covariates, and weights of censoring"):
        cal.repair.evaluate(data, repairs=[wide])


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        ({"folds": 3}, "folds= is of known outcomes"),
        ({"judge": "error"}, "the gap alone is certified"),
        ({"target": "population"}, "the gap of the rows judged is certified"),
    ],
)
def test_what_has_no_proof_by_weights_is_refused(settings: dict[str, object], line: str) -> None:
    with pytest.raises(cal.BadInput, match=line):
        cal.repair.evaluate(rows(), **settings)  # type: ignore[arg-type]


def test_other_rows_may_be_fitted_on() -> None:
    data, other = rows(), cal.at_horizon(log(seed=1), **AT)  # type: ignore[arg-type]
    found = cal.repair.evaluate(data, fit_on=other, repairs=[cal.repair.Platt()])
    assert (found.settings["how"], found.settings["rows_fit"]) == ("fit_on", 1500)
    assert found.settings["rows_judged"] + found.settings["pilots"] == 1500
    assert 0.25 < found.settings["pilots"] / 1500 < 0.35
    fitted = cal.repair.Platt().fit(other)
    again = cal.repair.evaluate(data, repairs=[fitted])
    assert again.settings["how"] == "fitted"
    assert again.row("Platt")["brier"] == found.row("Platt")["brier"]
    with pytest.raises(cal.BadInput, match="fit_on has outcomes by 100 and data by 365"):
        cal.repair.evaluate(data, fit_on=cal.at_horizon(log(seed=1), **(AT | {"horizon": 100})))  # type: ignore[arg-type]
    with pytest.raises(cal.BadInput, match="of fit_on"):
        cal.repair.evaluate(data, fit_on=data)
    with pytest.raises(cal.NotComputable, match="no fair sample"):
        cal.repair.evaluate(cal.at_horizon(log(), **(AT | {"way": "unknown"})))  # type: ignore[arg-type]


def test_who_fits_and_who_is_a_pilot_does_not_depend_on_how_follow_up_ended() -> None:
    """Known rows stand before lost ones: were rows drawn by their place there, the halves would share follow-up."""
    seen = []
    for seed in (1, 2):
        frame = log() | {k: log(seed=seed)[k] for k in ("t", "e")}  # the same scores, other ends
        data = cal.at_horizon(frame, **AT)  # type: ignore[arg-type]
        q = FollowedRows.of(data)
        halves = fits_by_weights(data, by_weights(Judging(repairs={"Platt": cal.repair.Platt()}))).judged
        seen.append((set(q.p[pilots(q, 0)]), set(halves.data.p), set(q.p), int(q.known.sum())))
    assert seen[0][3] != seen[1][3]
    assert seen[0][:3] == seen[1][:3]


def test_lost_rows_to_fit_on_are_not_judged_too() -> None:
    frame = log(4000)
    lost = (frame["e"] == 0) & (frame["t"] < H)
    first = np.arange(4000) < 2000
    half = {k: v[first | lost] for k, v in frame.items()}
    other = {k: v[~first] for k, v in frame.items()}
    with pytest.raises(cal.BadInput, match="of fit_on"):
        cal.repair.evaluate(
            cal.at_horizon(other, **AT),  # type: ignore[arg-type]
            fit_on=cal.at_horizon(half, **AT),  # type: ignore[arg-type]
            repairs=[cal.repair.Platt()],
        )


def test_known_outcomes_may_be_judged_by_what_was_fitted_by_weights() -> None:
    rng = np.random.default_rng(2)
    p = rng.uniform(0.05, 0.6, 1500)
    known = cal.predictions(rng.random(1500) < p, p + 0.15)
    found = cal.repair.evaluate(known, fit_on=rows(), repairs=[cal.repair.Platt()], tests=())
    assert (found.recommended, found.settings.get("way")) == ("Platt", None)


def test_a_group_that_nobody_followed_to_the_horizon_is_not_judged() -> None:
    frame = log()
    short = frame["site"] == "b"
    frame["e"] = np.where(short & (frame["t"] > 200.0), 0, frame["e"])
    frame["t"] = np.where(short, np.minimum(frame["t"], 200.0), frame["t"])
    data = cal.at_horizon(frame, **AT, by="site", within="site")  # type: ignore[arg-type]
    with pytest.raises(cal.NotComputable, match="no row was followed to 365"):
        cal.repair.evaluate(data, by="site")
    data = cal.at_horizon(frame, **AT, by="site")  # type: ignore[arg-type]
    found = cal.repair.evaluate(data, by="site", limit=0.05)
    assert set(found.groups.columns["level"]) == {"a"}
    how = replace(by_weights(Judging(repairs={"Platt": cal.repair.Platt()})), by=("site",))
    groups = _groups(fits_by_weights(data, how), how)
    assert groups is not None
    assert (len(groups.people), groups.sharing) == (1, 2)  # alpha was shared before follow-up was seen
    assert "site = b" not in found.fixed.columns["who"]


# ---- the command ----


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import pandas as pd

    out = tmp_path_factory.mktemp("weights") / "stays.csv"
    pd.DataFrame(log()).to_csv(out, index=False)
    return out


ASKED = ["--score", "p", "--time", "t", "--event", "e", "--horizon", "365", "--way", "weights"]


def test_the_command_fits_judges_and_writes(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = path.with_name("calibrator.json")
    asked = [str(path), *ASKED, "--by", "site", "--limit", "0.05", "--threshold", "0.3", "-o", str(out)]
    assert main(["repair", *asked]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "judged on 750 others" in text
    assert "weights of censoring stand for them: 750 rows that are not judged give the law of censoring" in text
    assert "independently of outcome and score among these rows" in text
    assert json.loads(out.read_text())["recipe"] == "Platt"
    assert main(["apply", str(out), str(path), "--score", "p", "-o", str(path.with_name("repaired.csv"))]) == 0


@pytest.mark.parametrize(
    ("more", "line"),
    [
        (["--variables", "site"], "not of covariates too: leave it out"),
        (["--method", "augmented-logistic"], "it reads covariates; weights of censoring"),
        (["--judge", "error"], "the gap alone is certified"),
        (["--target", "population"], "the gap of the rows judged is certified"),
        (["--way", "unknown"], "--way weights, which takes being lost as independent of outcome and score"),
        (["--cluster", "site"], "leave cluster= out"),
    ],
)
def test_the_command_refuses_what_has_no_proof(
    path: Path, more: list[str], line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["repair", str(path), *ASKED, *more]) == 2
    assert line in " ".join(capsys.readouterr().err.split())


def test_the_command_refuses_a_person_who_comes_twice(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = path.read_text().splitlines()
    named = path.with_name("named.csv")
    for again, status in ((False, 0), (True, 2)):
        ids = [3 if again and i == 7 else i for i in range(len(lines) - 1)]
        named.write_text("\n".join([f"id,{lines[0]}", *(f"{i},{x}" for i, x in zip(ids, lines[1:], strict=True))]))
        assert main(["repair", str(named), *ASKED, "--key", "id", "--method", "platt", "--quick"]) == status
    assert "--key id: 1 of 1,500 rows repeat the key of another" in capsys.readouterr().err
    assert main(["audit", str(named), *ASKED, "--key", "id", "--quick", "--limit", "0.3"]) in (0, 1, 3)


def test_the_command_judges_another_file_and_refuses_the_same_rows(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = path.read_text().splitlines()
    first, last = path.with_name("first.csv"), path.with_name("last.csv")
    first.write_text("\n".join(lines[:751]) + "\n")
    last.write_text("\n".join([lines[0], *lines[751:]]) + "\n")
    assert main(["repair", str(first), "--judge-on", str(last), *ASKED, "--method", "platt"]) in (0, 3)
    assert "Fitted on 750 other rows" in " ".join(capsys.readouterr().out.split())
    assert main(["repair", str(first), "--judge-on", str(path), *ASKED]) == 2
    assert "rows in common" in " ".join(capsys.readouterr().err.split())
