"""Scores of few values: when they are certified as they are, and what is said of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import calibrant as cal
from calibrant.certify.whole import shown_certificate
from calibrant.cli import main
from calibrant.data.sketches.sketch import Sketch
from calibrant.errors import BadInput, NotComputable
from calibrant.stats.bounds import product_upper
from calibrant.views.sample import everyone, few, group, sketch_of


def data(p: Any, seed: int = 0, **covariates: Any) -> Any:
    p = np.asarray(p, dtype=float)
    y = np.random.default_rng(seed).uniform(size=len(p)) < p
    return cal.predictions(y, p, covariates or None)


def per_cent(n: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).integers(0, 101, n) / 100


def test_the_upper_end_is_that_of_the_values() -> None:
    p = np.repeat([0.0, 0.125, 0.5, 1.0], [100, 200, 300, 50])
    rows = data(p)
    found = cal.certify.values(rows, side="upper", alpha=0.1)
    events = [int(rows.y[p == v].sum()) for v in (0.0, 0.125, 0.5, 1.0)]
    by_hand = product_upper([0.0, 0.125, 0.5, 1.0], [100, 200, 300, 50], events, 0.1)
    assert found.interval.high == pytest.approx(by_hand + 2.0**-30, abs=1e-12)
    assert found.interval.low == 0.0
    assert found.settings["values"] == 4
    assert found.settings["about"] == "the raw score, which takes 4 values"
    assert found.method == "certify.values"


def test_the_lower_end_is_that_of_the_raw_score() -> None:
    rows = cal.predictions(np.arange(4000) % 2, per_cent(4000))
    both, raw = cal.certify.values(rows), cal.certify.raw_lower(rows, side="two-sided")
    assert both.interval.low == raw.interval.low > 0.1
    assert both.interval.low <= both.value <= both.interval.high
    assert cal.certify.values(rows, side="lower").interval.high == 1.0


@pytest.mark.parametrize(
    ("p", "exact"),
    [
        (np.arange(10_240) % 1024 / 1024, True),
        (np.arange(10_239) % 1024 / 1024, False),
        (np.arange(20_000) % 1025 / 1025, False),
        (np.full(10, 0.3), True),
        (np.full(9, 0.3), False),
        (np.linspace(0, 1, 1000), False),
    ],
    ids=["1,024 values, ten rows each", "a row less", "1,025 values", "one value", "of nine rows", "continuous"],
)
def test_few_are_at_most_1024_and_one_for_ten_rows(p: Any, exact: bool) -> None:
    rows = data(p)
    q = everyone(rows)
    assert few(sketch_of(rows, 0)) is q.exact is exact
    found = shown_certificate(q, q.judged(100)).run((0.0, 0.05), 0.95, 0)
    display = {"values": len(np.unique(p))} if exact else {"steps": 100}
    assert q.judged(100).display == display
    assert display.items() <= found.settings.items()
    if exact:
        assert found == cal.certify.values(rows, side="upper")
    else:
        assert found == cal.certify.rounded(rows, side="upper")
        assert found.settings["about"] == "the score rounded to whole percent"
        with pytest.raises(NotComputable, match="too many values"):
            cal.certify.values(rows)


def test_a_display_that_is_not_of_whole_per_cent_says_its_steps() -> None:
    found = cal.certify.rounded(data(np.linspace(0, 1, 500)), steps=50)
    assert found.settings["about"] == "the score in 50 rounding steps"
    one = cal.certify.values(data(np.full(100, 0.25)))
    assert one.settings["about"] == "the raw score, which takes one value"


def test_one_choice_serves_every_group() -> None:
    """A group of few rows is certified by everyone's values, not by a choice of its own."""
    n = 3000
    sex = np.array(["f"] * 40 + ["m"] * (n - 40))
    rows = data(per_cent(n), sex=sex)
    whole = sketch_of(rows, 0, by=("sex",))
    f, m = group(whole, 0), group(whole, 1)
    assert f.exact
    assert f.n == 40
    assert f.judged(100).display == m.judged(100).display == {"values": 101}
    for q, one in ((f, "f"), (m, "m")):
        own = sex == one
        values, at = np.unique(rows.p, return_inverse=True)
        counts = np.zeros((len(values), 2), dtype=np.int64)
        np.add.at(counts, (at[own], rows.y[own].astype(int)), 1)
        np.testing.assert_array_equal(q.judged(100).cells.totals, counts)
        np.testing.assert_allclose(q.judged(100).cells.low, values, atol=2.0**-29)
    both = group(whole, 0, 1)
    np.testing.assert_array_equal(both.by_score, everyone(rows).by_score)
    ranges = cal.certify.groups(rows, by="sex")
    assert {e.settings["about"] for e in ranges.values()} == {"the raw score, which takes 101 values"}
    few_rows = data(per_cent(900), sex=sex[:900])
    ranges = cal.certify.groups(few_rows, by="sex")
    assert {e.settings["steps"] for e in ranges.values()} == {100}


def test_rows_a_sketch_and_a_merged_sketch_agree() -> None:
    rows = data(per_cent(2000))
    spec = sketch_of(rows, 0)
    again = Sketch.from_bytes(spec.to_bytes())
    assert cal.certify.values(again) == cal.certify.values(rows)
    twice = again.copy().add(again)
    assert cal.certify.values(twice).settings["values"] == 101
    assert cal.certify.values(twice).n == 4000


def test_the_raw_score_has_an_upper_end_under_its_own_name() -> None:
    with pytest.raises(BadInput, match="use values"):
        cal.certify.raw_lower(data(per_cent(2000)), side="upper")


@pytest.mark.slow
def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def written(p: Any) -> str:
        rows = data(p)
        path = tmp_path / "log.csv"
        lines = [f"{int(y)},{v!r}" for y, v in zip(rows.y, rows.p.tolist(), strict=True)]
        path.write_text("\n".join(["y,p", *lines]), encoding="utf-8")
        return str(path)

    columns = ("--label", "y", "--score", "p")
    exact = written(per_cent(2000))
    assert main(["certify", exact, *columns, "--method", "values", "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert (found["method"], found["settings"]["values"]) == ("certify.values", 101)
    assert main(["certify", exact, *columns]) == 0
    assert "the raw score, which takes 101 values" in capsys.readouterr().out
    many = written(np.linspace(0.001, 0.999, 2000))
    assert main(["certify", many, *columns, "--method", "values"]) == 2
    assert "certify the rounded score, with rounded" in capsys.readouterr().err
    assert main(["certify", many, *columns]) == 0
    out = capsys.readouterr().out
    assert "values                         none          the score takes too many values" in out
    assert "the score rounded to whole percent" in out


def test_an_audit_says_which_score_it_judged() -> None:
    """In steps of two percent the errors of neighbours cancel."""
    rng = np.random.default_rng(5)
    k = rng.integers(10, 91, 40_000)
    rows = cal.predictions(rng.uniform(size=len(k)) < k / 100 + np.where(k % 2, 0.025, -0.025), k / 100)
    record = cal.audit(rows, limit=0.02, quick=True, steps=50)
    assert record.data["display"] == {"values": 81}
    assert record.everyone.verdict != "within"
    assert record.everyone.upper.settings["about"] == "the raw score, which takes 81 values"
    assert cal.certify.rounded(rows, steps=50, side="upper").interval.high < 0.02
