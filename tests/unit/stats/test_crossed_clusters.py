"""Units that cross: blocks of one shift share neither unit, and results are those of rows in any order."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import calibrant as cal
from calibrant.cli.run import main
from calibrant.stats.clusters.clusters import DIAGONALS, Design
from calibrant.stats.evidence import log_mean_exp

PERSONS, QUESTIONS = 30, 20


def exam(off=0.0, **more):
    rng = np.random.default_rng(3)
    person, question = np.divmod(np.arange(PERSONS * QUESTIONS), QUESTIONS)
    p = rng.choice([0.2, 0.5, 0.7], len(person))
    table = {"sex": np.array(["f", "m"])[person % 2]}
    y = (rng.uniform(size=len(p)) < p + off).astype(int)
    return {"y_true": y, "y_prob": p, "covariates": table, "cluster": {"person": person, "question": question}} | more


def test_blocks_of_a_shift_share_no_person_and_no_question_and_hold_every_row_of_all_shifts():
    rng = np.random.default_rng(0)
    codes = np.array([rng.integers(0, 19, 300), rng.integers(0, 12, 300)])
    design = Design(codes, 0)
    found = design.diagonal_blocks(rng.uniform(size=300), rng.integers(0, 2, 300).astype(np.int8), np.ones(300))
    assert design.groups == 12 <= DIAGONALS
    held = np.concatenate([s.rows for s in found])
    assert len(held) == len(np.unique(held)) == 300
    for s in found:
        for code in codes:
            blocks = np.unique(np.column_stack([code[s.rows], s.clusters.cluster]), axis=0)
            assert len(blocks) == len(np.unique(blocks[:, 0]))  # each unit has rows in one block
        assert s.clusters.largest == s.clusters.size_at.max()
        assert s.clusters.truncated_weights == 0


def test_more_units_than_shifts_are_looked_at_evenly():
    person, question = np.divmod(np.arange(40 * 50), 50)
    design = Design(np.array([person, question]), 0)
    assert design.groups == 40
    assert design.diagonals.tolist() == (np.arange(DIAGONALS) * 40 // DIAGONALS).tolist()


def test_the_mean_is_of_e_values_and_not_of_their_logs():
    assert log_mean_exp([np.log(3.0), np.log(1.0)]) == pytest.approx(np.log(2.0))
    assert log_mean_exp([-np.inf, 0.0]) == pytest.approx(-np.log(2.0))


def test_order_of_rows_and_of_columns_changes_nothing():
    given = exam(off=0.25)
    one = cal.certify.values(cal.predictions(**given))
    order = np.random.default_rng(1).permutation(PERSONS * QUESTIONS)
    mixed = {k: given[k][order] for k in ("y_true", "y_prob")}
    columns = {k: v[order] for k, v in reversed(given["cluster"].items())}
    other = cal.certify.values(cal.predictions(**mixed, cluster=columns))
    assert other.interval.high == pytest.approx(one.interval.high, abs=1e-9)
    assert other.value == pytest.approx(one.value, abs=1e-12)
    assert one.interval.high < 0.8


def test_both_columns_are_less_sure_than_either_and_say_what_they_rest_on():
    data = cal.predictions(**exam(off=0.25))
    both = cal.certify.values(data)
    alone = [cal.certify.values(cal.predictions(**exam(off=0.25, cluster=c))) for c in exam()["cluster"].values()]
    assert both.interval.high > max(e.interval.high for e in alone)
    assert both.settings["two_way"] == ("person", "question")
    assert "rows that share neither are independent" in both.assumes
    groups = cal.certify.groups(data, by="sex", limit=0.05, judge="gap")
    assert all(e.interval.low < 0.25 < e.interval.high for e in groups.values())
    worst = cal.certify.worst_group(data, by="sex", judge="gap").interval
    assert worst.low < 0.25 < worst.high


def test_a_group_of_few_rows_has_ends_that_say_little():
    table = {"g": np.where(np.arange(PERSONS * QUESTIONS) < 2, "few", "many")}
    found = cal.certify.groups(cal.predictions(**exam(covariates=table)), by="g")
    assert (found["g = few"].interval.low, found["g = few"].interval.high) == (0.0, 1.0)


def test_what_has_no_proof_for_both_is_refused():
    data = cal.predictions(**exam())
    for asked in (cal.certify.variable, cal.diagnose.variable_curve):
        with pytest.raises(cal.NotComputable, match="cluster"):
            asked(data, variable="sex")
    with pytest.raises(cal.NotComputable, match="cross"):
        cal.sketch(data)
    with pytest.raises(cal.NotComputable, match="cross"):
        cal.certify.rows_needed(0.1, data)
    with pytest.raises(cal.NotComputable, match="not"):
        cal.diagnose.heterogeneity(data, site="sex")


@pytest.mark.slow
def test_the_command_certifies_both(tmp_path, capsys):
    given, path = exam(off=0.25), tmp_path / "exam.parquet"
    pq.write_table(
        pa.table({"y": given["y_true"], "p": given["y_prob"], **given["cluster"], **given["covariates"]}), path
    )
    asked = ["certify", str(path), "--label", "y", "--score", "p", "--cluster", "person,question"]
    assert main([*asked, "--by", "sex", "--method", "values,worst_group", "--json"]) == 0
    values, worst = json.loads(capsys.readouterr().out)
    assert values["settings"]["two_way"] == ["person", "question"]
    assert worst["settings"]["groups"] == 2
    assert main(asked) == 0
    assert "clusters (person and question) cross" in capsys.readouterr().out
