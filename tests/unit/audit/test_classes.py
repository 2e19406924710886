"""Audits of several classes: the top label as everyone, each class next to it, and who is given in place of whom."""

from __future__ import annotations

import json
import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pytest

import calibrant as cal
from calibrant.audit.record import AuditRecord
from calibrant.certify.closed import bet_sizes_for
from calibrant.certify.groups import signed
from calibrant.kernels.runtime import columns_of
from calibrant.measure import classes
from calibrant.repair.calibrators.dirichlet import log_columns, softmax_map
from calibrant.repair.judge.classes import judged_classes
from calibrant.repair.regression import edge_of, softmax
from calibrant.report.brief.action import state_of
from calibrant.report.commands import audit_again, look, one_class, plan, repair_classes
from calibrant.report.pipelines import judged
from calibrant.report.wording.parts import marked, verdict_word
from calibrant.views.kernel_rows import residuals_of
from calibrant.views.sample import each_class, everyone

NAMES = "cat", "dog", "fox"


def rows(n=1500, seed=0, *, moved=0.0, steps=None, **attached):
    """Rows of three classes; `moved` is the share of the first class's probability that is truly the second's."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet([0.6] * 3, n)
    if steps:
        p = np.floor(p * steps) / steps
        p[:, 2] = 1.0 - p[:, 0] - p[:, 1]
    truth = p.copy()
    truth[:, 1] += moved * p[:, 0]
    truth[:, 0] *= 1.0 - moved
    y = np.minimum((rng.uniform(size=(n, 1)) > truth.cumsum(axis=1)).sum(axis=1), 2)
    return cal.multiclass_predictions(
        np.array(NAMES)[y], p, {"site": rng.choice(["n", "s"], n)}, classes=NAMES, **attached
    )


@pytest.mark.parametrize("steps", [None, 10])
def test_a_class_is_counted_as_its_projection_is(steps):
    data = rows(steps=steps)
    for k, q in enumerate(each_class(data, data.top_label(), 3)):
        other = everyone(data.one_vs_rest(k), 3)
        np.testing.assert_array_equal(q.raw, other.raw[..., :4])
        np.testing.assert_array_equal(q.fine, other.fine)
        np.testing.assert_array_equal(q.scores, other.scores)
        np.testing.assert_array_equal(q.by_score, other.by_score)


def test_a_class_of_clusters_is_certified_as_its_projection_is():
    data = rows(400, cluster=np.arange(400) // 2, weights=np.random.default_rng(1).uniform(1, 2, 400))
    for k, q in enumerate(each_class(data, data.top_label(), 0)):
        other = everyone(data.one_vs_rest(k), 0)
        assert q.gap(0.05).limits(0.1) == other.gap(0.05).limits(0.1)
        assert q.judged(100).above.limit(0.05) == other.judged(100).above.limit(0.05)


@pytest.fixture(scope="module")
def record():
    return cal.audit(rows(moved=0.6), by="site", limit=0.05, quick=True)


def test_every_class_is_judged_next_to_the_top_label(record):
    assert record.classes.names == ("class = cat", "class = dog", "class = fox")
    assert [f.verdict for f in record.classes][:2] == ["over", "over"]
    assert record.classes["class = cat"].gap.value < 0 < record.classes["class = dog"].gap.value
    assert record.verdicts["classes"] == "over" == record.verdict
    assert record.everyone.expected == pytest.approx(rows(moved=0.6).p.max(axis=1).sum())
    assert len(record.groups) == 2


def test_classes_have_a_share_of_alpha_of_their_own(record):
    binary = cal.audit(rows(moved=0.6).top_label(), by="site", limit=0.05, quick=True)
    for wrong, more in (("over", 0.05), ("within", 0.025)):
        assert record.joint_error[wrong] == pytest.approx(binary.joint_error[wrong] + more)
    assert {s.wrong for s in record.shares if s.part == "classes"} == {"over", "within", "error_shown"}


def test_ranges_of_classes_share_alpha(record):
    q = list(each_class(rows(moved=0.6), rows(moved=0.6).top_label(), 0))[2]
    each, bets = 0.8 * 0.05 / (2 * 3), bet_sizes_for(0.8 * 0.05 / 2, 3)
    alone = signed(q, (each, each), 0.95, bets, "rows").interval
    ours = record.classes["class = fox"].gap.guaranteed
    assert (ours.low, ours.high) == (alone.low, alone.high)


def test_no_class_holds_its_blocks_until_all_are_judged(monkeypatch):
    from calibrant.audit.checks import classes

    held, judged = [], classes.judged
    monkeypatch.setattr(classes, "judged", lambda every, context: held.extend(every) or judged(every, context))
    made = cal.audit(rows(moved=0.6), limit=0.05, quick=True)
    assert [g.people.raw.shape[0] for g in held] == [1, 1, 1]
    assert [g.people.n for g in held] == [f.rows for f in made.classes]


def test_the_matrix_says_which_class_comes_true_in_place_of_which(record):
    lines = record.curve("class_matrix").to_arrow().to_pylist()
    worst = max((line for line in lines if line["predicted_class"] != line["true_class"]), key=lambda line: line["low"])
    assert (worst["predicted_class"], worst["true_class"]) == ("cat", "dog")
    assert worst["low"] > 0.1
    for name in NAMES:
        own = [line for line in lines if line["predicted_class"] == name]
        assert sum(line["events"] for line in own) == own[0]["rows"]


def test_the_record_is_read_again_and_the_page_names_classes(record, tmp_path):
    assert AuditRecord.from_json(record.to_json()).classes.names == record.classes.names
    text = (record.save(tmp_path / "audit.md")).read_text()
    assert "**3 classes" in text
    assert "Most probable class" in text
    assert "| Calibration error of all classes, added up |" in text
    assert "`cat`" in text


@pytest.mark.slow
@pytest.mark.parametrize("score", ["p_*", ("p_cat", "p_dog", "p_fox")])
def test_columns_of_a_file_are_classes(tmp_path, score, record):
    data = rows(moved=0.6)
    table = pa.table({f"p_{name}": data.p[:, k] for k, name in enumerate(NAMES)})
    table = table.append_column("kind", pa.array(np.array(["Cat", "Dog", "Fox"])[data.y]))
    table = table.append_column("site", data.covariates.column("site"))
    pyarrow.csv.write_csv(table, tmp_path / "log.csv")
    made = cal.audit(tmp_path / "log.csv", label="kind", score=score, by="site", limit=0.05, quick=True)
    assert made.classes.names == ("class = Cat", "class = Dog", "class = Fox")
    assert [f.gap.value for f in made.classes] == pytest.approx([f.gap.value for f in record.classes])
    assert json.loads(made.to_json())["verdicts"]["classes"] == "over"


def test_a_pattern_of_no_column_is_refused(tmp_path):
    (tmp_path / "log.csv").write_text("kind,p_a,p_b,p_c\na,.5,.3,.2\n")
    with pytest.raises(cal.BadInput, match="score='q_\\*' is the pattern of no column: there are 'kind', 'p_a'"):
        cal.audit(tmp_path / "log.csv", label="kind", score="q_*")


def test_what_reads_two_classes_says_so(tmp_path):
    (tmp_path / "log.csv").write_text("kind,p_a,p_b,p_c\na,.5,.3,.2\n")
    with pytest.raises(cal.NotComputable, match="of several classes: this reads two"):
        cal.sketch(tmp_path / "log.csv", label="kind", score=["p_a", "p_b", "p_c"])


FLAGS = "home,draw,away,p_home,p_draw,p_away\n1,0,0,.5,.3,.2\n0,1,0,.2,.4,.4\n0,0,1,.3333,.3333,.3333\n"


def test_a_column_of_0_and_1_for_each_class_is_a_label(tmp_path):
    (tmp_path / "log.csv").write_text(FLAGS)
    options = {"score": "p_*", "quick": True}
    made = cal.audit(tmp_path / "log.csv", label=["home", "draw", "away"], **options)
    assert made.classes.names == ("class = home", "class = draw", "class = away")
    assert [f.events for f in made.classes] == [1, 1, 1]
    with pytest.raises(cal.BadInput, match="names 2 columns of 3 classes: name one of each"):
        cal.audit(tmp_path / "log.csv", label=["home", "draw"], **options)
    (tmp_path / "two.csv").write_text(FLAGS.replace("0,1,0,", "1,1,0,"))
    with pytest.raises(cal.BadInput, match=r"line 3 of two\.csv has not one of them at 1"):
        cal.audit(tmp_path / "two.csv", label=["home", "draw", "away"], **options)


def test_rows_that_do_not_add_up_are_counted_and_refused(tmp_path):
    (tmp_path / "log.csv").write_text("kind,p_a,p_b,p_c\na,.5,.3,.2\nb,.5,.3,.4\nc,.1,.1,.1\n")
    says = (
        r"columns 'p_a' to 'p_c': 2 rows are not probabilities that add up to one; first: line 3 of log.csv, sum 1\.2"
    )
    with pytest.raises(cal.BadInput, match=says):
        cal.audit(tmp_path / "log.csv", label="kind", score="p_*", quick=True)
    made = cal.audit(tmp_path / "log.csv", label="kind", score="p_*", quick=True, renormalize=True)
    assert made.everyone.expected == pytest.approx(0.5 + 0.5 / 1.2 + 1 / 3)


GAPS = "kind,p_a,p_b,p_c,w\na,.5,.3,.2,1\n,.5,.3,.2,1\nb,,.3,.4,1\nc,.1,.1,.8,2\nb,.1,.8,.1,0\nNA,.1,.8,.1,1\n"


def test_rows_that_lack_something_are_left_out_and_counted(tmp_path):
    (tmp_path / "log.csv").write_text(GAPS)
    options = {"label": "kind", "score": "p_*", "quick": True, "variables": None}
    made = cal.audit(tmp_path / "log.csv", missing="drop", **options)
    assert (made.everyone.rows, made.data["dropped"], made.data["missing"]) == (3, 3, "drop")
    assert "--missing drop" in audit_again(made)
    weighed = cal.audit(tmp_path / "log.csv", missing="drop", weights="w", **options)
    assert (weighed.everyone.rows, weighed.data["dropped"]) == (2, 4)
    with pytest.raises(cal.BadInput, match=r"column 'kind': 2 values are missing, first in line 3 of log.csv: leave"):
        cal.audit(tmp_path / "log.csv", **options)
    with pytest.raises(cal.BadInput, match="missing='keep' is of two classes: rows without a label are left out"):
        cal.audit(tmp_path / "log.csv", missing="keep", **options)


@pytest.mark.parametrize(
    ("line", "options", "says"),
    [
        (
            "b,.5,.3,.4,1,2",
            {},
            "columns 'p_a' to 'p_c': 1 row is not probabilities that add up to one; first: {}, sum 1.2",
        ),
        ("b,.5,,.5,1,2", {}, "first: {}, column 'p_b', nan: leave such rows out: drop_missing=True"),
        ("b,.5,-.3,.8,1,2", {}, "first: {}, column 'p_b', -0.3: of logits pass logits=True"),
        ("d,.5,.3,.2,1,2", {}, "column 'kind' holds 'd' in {}, which is none of the classes 'a', 'b', 'c'"),
        (",.5,.3,.2,1,2", {}, "column 'kind': 1 value is missing, first in {}"),
        ("b,.5,.3,.2,-1,2", {"weights": "w"}, "column 'w' must be positive and finite; {} has -1"),
        ("b,.5,.3,.2,1,", {"cluster": "who"}, "cluster 'who' is missing in 1 rows, first in {}"),
    ],
)
def test_a_refusal_names_the_column_and_the_line_of_the_file(tmp_path, line, options, says):
    """Of several files, the second: its lines are counted by themselves."""
    head = "kind,p_a,p_b,p_c,w,who\n"
    (tmp_path / "jan.csv").write_text(head + "a,.5,.3,.2,1,1\n" * 3 + "b,.5,.3,.2,1,2\nc,.5,.3,.2,1,2\n")
    (tmp_path / "may.csv").write_text(f"{head}a,.5,.3,.2,1,1\n{line}\n")
    sources = [str(tmp_path / f"{month}.csv") for month in ("jan", "may")]
    with pytest.raises(cal.BadInput, match=re.escape(says.format("line 3 of may.csv"))):
        cal.audit(sources, label="kind", score="p_*", quick=True, variables=None, allow_same=True, **options)


def test_what_is_left_out_leaves_the_other_rows_as_they_are():
    data = rows(300)
    y, p, at = [NAMES[k] for k in data.y], data.p.copy(), np.arange(300)
    y[4], p[9, 1], cluster, w = None, np.nan, (at // 2).astype(float), 1.0 + at
    cluster[20], w[30] = np.nan, 0.0
    made = cal.multiclass_predictions(y, p, {"at": at}, cluster=cluster, weights=w, classes=NAMES, drop_missing=True)
    kept = np.setdiff1d(at, [4, 9, 20, 30])
    assert made.covariates.column("at").to_pylist() == kept.tolist()
    assert made.dropped == 4 == made.top_label().dropped
    for name in ("y", "p"):
        np.testing.assert_array_equal(getattr(made, name), getattr(data, name)[kept])
    np.testing.assert_array_equal(made.weights, w[kept])
    np.testing.assert_array_equal(made.cluster, cluster[kept])
    with pytest.raises(cal.BadInput, match=r"1 row is not probabilities .*; first: row 9, column 1, nan"):
        cal.multiclass_predictions([NAMES[0], *y[1:4], NAMES[0], *y[5:]], p, classes=NAMES)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"score": "p_a,p_b"}, "score names two columns, 'p_a', 'p_b': of several classes name three or more"),
        ({"score": "p_a*"}, "score names one column, 'p_a'"),
        ({"score": "p_*", "positive": "a"}, "positive= is of two classes: of several leave it out"),
        ({"score": "p_*", "key": "kind"}, "key= is of two classes"),
    ],
)
def test_what_is_of_two_classes_says_what_to_write(tmp_path, options, says):
    (tmp_path / "log.csv").write_text("kind,p_a,p_b,p_c\na,.5,.3,.2\n")
    score = options["score"].split(",")
    with pytest.raises(cal.BadInput, match=f"^{re.escape(says)}"):
        cal.audit(tmp_path / "log.csv", label="kind", quick=True, **options | {"score": score})


def test_logits_and_log_probabilities_take_their_softmax(tmp_path):
    data = rows(300)
    logs = np.log(np.maximum(data.p, 1e-12)) + 3.0
    table = pa.table({f"z_{k}": logs[:, k] for k in range(3)} | {"kind": data.y})
    pyarrow.csv.write_csv(table, tmp_path / "log.csv")
    made = cal.audit(tmp_path / "log.csv", label="kind", score="z_*", quick=True, logits=True, variables=None)
    assert made.everyone.expected == pytest.approx(data.p.max(axis=1).sum())
    with pytest.raises(cal.BadInput, match="logits=True is of several classes: name their columns in score="):
        cal.audit(tmp_path / "log.csv", label="kind", score="z_0", quick=True, logits=True)


@pytest.mark.parametrize(
    ("text", "options"),
    [
        (FLAGS, "--label home,draw,away --score 'p_*'"),
        (FLAGS.replace("home,draw,away,", "a,b,c,"), None),
        (
            "kind,p_x,p_y,p_z\nx,.5,.3,.2\ny,.2,.3,.5\nz,.4,.3,.3\nx,.1,.8,.1\ny,.25,.5,.25\n",
            "--label kind --score 'p_*'",
        ),
        ("kind,p_x,p_y,p_z\nx,50,30,20\ny,20,30,50\nz,40,30,30\nx,10,80,10\ny,25,50,25\n", "--percent"),
    ],
)
def test_a_look_proposes_the_audit_of_all_classes(tmp_path, text, options):
    lines = text.splitlines(keepends=True)
    (tmp_path / "log.csv").write_text("".join([lines[0], *lines[1:] * 10]))
    seen = cal.look(str(tmp_path / "log.csv"))
    if options is None:
        assert seen.refusals
    else:
        assert options in seen.command
        assert not seen.refusals


@pytest.mark.slow
def test_repairs_of_all_classes_are_judged_on_other_rows():
    result = cal.audit(rows(1200, moved=0.6), limit=0.05, variables=None, mask=None)
    curve = result.curve("class_repairs")
    assert curve.columns["repair"] == ("as audited", "Temperature", "VectorScaling", "Dirichlet")
    assert curve.settings["recommended"] in ("VectorScaling", "Dirichlet")
    assert curve.settings["rows_fitted"] + curve.settings["rows_judged"] == 1200
    assert curve.columns["log_loss_change_high"][-1] < 0
    page = result.to_html()
    assert 'are compared <a href="#classes">under the classes</a>' in page
    assert "No repairs were compared" not in page


@pytest.mark.parametrize(("n", "k"), [(1, 3), (256, 32), (257, 33), (700, 90)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_columns_that_are_copied_together_are_those_of_the_matrix(n, k, dtype):
    p = np.random.default_rng(0).uniform(size=(n, k)).astype(dtype)
    columns = list(columns_of(p))
    assert all(c.flags.c_contiguous and c.dtype == dtype for c in columns)
    assert np.array_equal(np.stack(columns), p.T)


@pytest.mark.parametrize("k", [3, 7, 40])
@pytest.mark.parametrize("each", [np.full, np.linspace])
def test_weights_of_each_class_alone_give_what_the_whole_matrix_gives(k, each):
    rng, own = np.random.default_rng(k), {np.full: (k, 1.3), np.linspace: (0.5, 1.5, k)}[each]
    p, at = rng.dirichlet(np.full(k, 0.2), 600), np.column_stack([np.diag(each(*own)), rng.normal(size=k)])
    data = cal.multiclass_predictions(rng.integers(0, k, 600), p)
    made = softmax_map("VectorScaling", {}, data, at, edge_of(data.p))
    assert np.array_equal(made(data).p, softmax(log_columns(data.p, made.edge) @ at.T))


def test_residuals_of_classes_are_outcomes_less_probabilities():
    data = rows(300)
    p, residual = residuals_of(data)
    assert np.array_equal(residual, np.eye(p.shape[1])[data.y] - p)


@pytest.mark.parametrize("measure", [cal.measure.brier, cal.measure.log_loss, cal.measure.ranked_probability_score])
def test_measures_of_classes_read_weights_and_clusters(measure):
    plain = measure(rows(300))
    heavy = measure(rows(300, weights=np.random.default_rng(2).uniform(1, 5, 300)))
    shared = measure(rows(300, cluster=np.arange(300) // 3))
    assert heavy.value != plain.value
    assert shared.value == plain.value
    assert shared.interval != plain.interval


@pytest.mark.parametrize("more", [{"weights": np.arange(1.0, 301.0)}, {"cluster": np.arange(300) // 3}])
def test_the_error_of_all_classes_in_bins_reads_weights_and_clusters(more):
    plain, other = (cal.measure.classwise_ece(rows(300, **one)) for one in ({}, more))
    assert other.interval != plain.interval


@pytest.mark.parametrize(("reach", "shown"), [(6, True), (7, False)])
def test_the_error_in_bins_is_above_0_where_few_data_sets_of_true_probabilities_are_as_far_off(reach, shown):
    drawn = np.full((300, 2), 0.1)
    drawn[:reach] = 0.2  # as far off as the data: (1 + 6) / 301 is at most 0.025, (1 + 7) / 301 is not
    assert classes._shown(np.array([0.3, -0.1]), drawn, 0.025) is shown


def test_the_error_in_bins_of_independent_rows_alone_waits_for_that(monkeypatch):
    monkeypatch.setattr(classes, "_shown", lambda *_: False)
    more = {"cluster": np.arange(400)}
    plain, shared = (cal.measure.classwise_ece(rows(400, moved=0.8, **one)) for one in ({}, more))
    assert plain.interval.low == 0.0 < shared.interval.low
    assert plain.settings["draws"] == 300
    assert cal.measure.classwise_ece(rows(40), alpha=0.008).settings["draws"] == 500


@pytest.mark.parametrize("few", [0, 5, 30])
def test_predicted_classes_that_are_hidden_are_not_what_is_left_over(few):
    """Of class totals, which are shown, those of the lines shown leave the hidden ones: no fewer people than 20."""
    rng = np.random.default_rng(few)
    top = np.repeat([0, 1, 2], [400, 200 + 20 - few, few])
    p = np.full((len(top), 3), 0.1)
    p[np.arange(len(top)), top] = 0.8
    y = np.minimum((rng.uniform(size=(len(top), 1)) > p.cumsum(axis=1)).sum(axis=1), 2)
    c = cal.audit(cal.multiclass_predictions(y, p), quick=True).curve("class_matrix").columns
    shown = sum(dict(zip(c["predicted_class"], c["rows"], strict=True)).values())
    assert len(top) - shown == {0: 0, 5: 5 + 215, 30: 0}[few]


@pytest.mark.parametrize("more", [{"weights": np.linspace(1.0, 2.0, 300)}, {"cluster": np.arange(300) // 3}])
def test_no_matrix_of_weights_or_clusters_is_made_and_the_record_says_why(more):
    record = cal.audit(rows(300, **more), quick=True)
    assert not record.curve("class_matrix").columns
    assert "independent rows" in next(c.reason for c in record.checks if c.code == "class-matrix")


def test_a_published_matrix_states_the_rows_of_a_predicted_class_once():
    c = cal.audit(rows(), quick=True, publish=True).curve("class_matrix").columns
    of = {}
    for name, n in zip(c["predicted_class"], c["rows"], strict=True):
        of.setdefault(name, set()).add(n)
    assert all(len(v) == 1 for v in of.values())
    assert all(n % 5 == 0 for v in of.values() for n in v)


@pytest.mark.slow
def test_a_class_that_is_within_the_limit_is_not_looked_at():
    calibrated = cal.audit(rows(4000), limit=0.2, quick=True)
    assert state_of(calibrated) not in ("class off", "repair of classes helps")
    assert state_of(cal.audit(rows(4000, moved=0.6), limit=0.02, quick=True)) == "class off"


def test_a_class_of_probability_0_that_came_true_leaves_the_decision_to_the_brier_score():
    data = rows(1200, moved=0.3)
    p = data.p.copy()
    p[:40] = [[0.0, 0.5, 0.5]]
    y = data.y.copy()
    y[:40] = 0
    settings = judged_classes(cal.multiclass_predictions(y, p), steps=100, alpha=0.05, seed=0).curve.settings
    assert settings["by"] == "brier"
    assert 0 < settings["impossible"] <= 40


@pytest.mark.slow
@pytest.mark.parametrize(("at", "verdict"), [("low", "over"), ("between", "undecided"), ("high", "within")])
def test_all_classes_added_up_have_a_verdict_of_their_own(at, verdict, tmp_path):
    """Every class is within 30 points: a sum beyond its own limit makes the audit no better than that sum."""
    data = rows(4000, moved=0.3)
    ends = cal.certify.classwise(data).interval
    limit = {"low": 0.99 * ends.low, "between": (ends.low + ends.high) / 2, "high": ends.high}[at]
    plain = cal.audit(data, limit=0.3, quick=True)
    made = cal.audit(data, limit=0.3, limit_classes=limit, quick=True)
    assert (plain.verdict, plain.verdicts["classes"]) == ("within", "within")
    assert (made.verdict, made.verdicts["classes"]) == (verdict, verdict)
    assert made.exit_status == {"over": 1, "undecided": 3, "within": 0}[verdict]
    assert next(c.status for c in made.checks if c.code == "classwise") == verdict
    spent = [s.alpha for s in made.shares if (s.part, s.by) == ("classes", "error") and s.wrong != "error_shown"]
    assert made.joint_error["within"] == pytest.approx(plain.joint_error["within"] + 0.025)
    assert made.joint_error["over"] == pytest.approx(plain.joint_error["over"] + 0.025)
    assert spent.count(0.025) == 2
    assert AuditRecord.from_json(made.to_json()).settings["limit_classes"] == limit
    assert "limit_classes" not in plain.settings
    assert f"limit_classes={limit:g}"[:17] in audit_again(made)
    text = made.save(tmp_path / "audit.md").read_text()
    words = {"over": "Errors of all classes together are over their limit", "undecided": "are undecided", "within": ""}
    assert words[verdict] in text
    assert "Their limit is" in text
    each = {j.name: j.state for j in judged(made)}
    assert each["all classes added up"] == verdict
    assert each["class = cat"] == "within"


def many(n=2000, k=40):
    """Rows of many classes, all overconfident: each is off by less than five points, and their sum by far more."""
    rng = np.random.default_rng(0)
    p = rng.dirichlet([0.1] * k, n)
    truth = 0.8 * p + 0.2 / k
    y = np.minimum((rng.uniform(size=(n, 1)) > truth.cumsum(axis=1)).sum(axis=1), k - 1)
    return cal.multiclass_predictions(y, p)


def test_a_limit_above_the_probabilities_of_classes_is_said_to_be(tmp_path):
    made = cal.audit(many(), limit=0.05, quick=True)
    assert {f.verdict for f in made.classes} == {"within"}
    assert made.error_shown["classes"]
    assert not any(f.error_shown for f in made.classes)
    text = made.save(tmp_path / "audit.md").read_text()
    assert (
        "For 40 of 40 classes the limit is larger than the mean probability, so overprediction is never over it."
        in text
    )
    assert "limit_relative=" in text
    assert "classes are within the limit" not in text
    assert verdict_word(made, "classes")[0] == "measured"
    assert marked(made, "classes") == ""
    common = cal.audit(rows(6000), limit=0.1, quick=True)
    assert verdict_word(common, "classes")[0] == "within"
    assert "All 3 classes are within the limit." in common.save(tmp_path / "common.md").read_text()
    assert not common.error_shown["classes"]


@pytest.mark.parametrize(("came", "verdict"), [(0, "not_checked"), (400, "over")])
def test_a_class_of_probability_0_has_no_relative_limit(came, verdict):
    rng = np.random.default_rng(2)
    p = np.column_stack([rng.uniform(0.4, 0.6, 6000), np.zeros(6000)])
    p = np.column_stack([p[:, 0], 1.0 - p[:, 0], p[:, 1]])
    y = (rng.uniform(size=6000) > p[:, 0]).astype(int)
    y[:came] = 2
    made = cal.audit(cal.multiclass_predictions(y, p), limit_relative=0.5, quick=True)
    assert [f.verdict for f in made.classes] == ["within", "within", verdict]
    assert made.verdicts["classes"] == ("over" if came else "within")
    assert ("every probability is 0" in str(made.classes["class = 2"].withheld)) == (not came)
    assert AuditRecord.from_json(made.to_json()).classes["class = 2"].withheld == made.classes["class = 2"].withheld


def test_repairs_of_classes_are_certified_simultaneously(tmp_path):
    made = cal.audit(rows(3000, moved=0.3))
    curve = made.curve("class_repairs")
    fitted = judged_classes(rows(3000, moved=0.3), steps=100, alpha=0.05, seed=0)
    kept = np.setdiff1d(np.arange(3000), fitted.fitted)
    data = rows(3000, moved=0.3).part(kept)
    alone = cal.certify.classwise(data, alpha=0.05 / len(curve.columns["repair"])).interval
    assert (curve.columns["low"][0], curve.columns["high"][0]) == (alone.low, alone.high)
    assert "All guaranteed ranges hold simultaneously, at 95%." in made.save(tmp_path / "audit.html").read_text()


@pytest.mark.parametrize("clustered", [False, True])
def test_repairs_of_sorted_files_are_fitted_on_rows_from_all_over(clustered, monkeypatch):
    from calibrant.repair.judge import classes as judge

    monkeypatch.setattr(judge, "FITTED", 900)
    who = np.arange(3000) // 3
    data = rows(3000, **({"cluster": who} if clustered else {}))
    fitted = judged_classes(data, ["Temperature"], steps=100, alpha=0.05, seed=0).fitted
    assert 250 <= len(fitted) <= 302
    assert np.quantile(fitted, [0.25, 0.75]) == pytest.approx([750, 2250], abs=300)
    if clustered:
        assert (np.bincount(who[fitted])[np.unique(who[fitted])] == 3).all()


def test_what_the_sum_of_classes_spends_is_reported(record):
    spent = [s.alpha for s in record.shares if (s.wrong, s.part) == ("error_shown", "classes")]
    assert spent == pytest.approx([0.04, 0.01, 0.025])


def test_error_shown_of_classes_fails_where_it_is_to(record):
    made = cal.audit(rows(moved=0.6), limit=0.9, quick=True, fail_on="error-shown")
    assert (made.verdict, made.exit_status) == ("within", 1)
    assert "classes" in next(j.reported for j in judged(made) if j.name == "error-shown")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"limit_classes": 0.1}, "limit_classes= judges all classes together: pass limit= too"),
        ({"limit_classes": 2.5, "limit": 0.1}, "limit_classes=2.5: pass a number above 0 and at most 2"),
    ],
)
def test_a_limit_of_all_classes_goes_with_that_of_each(options, says):
    with pytest.raises(cal.BadInput, match=re.escape(says)):
        cal.audit(rows(300), quick=True, **options)
    with pytest.raises(cal.BadInput, match="limit_classes= is of three classes or more"):
        cal.audit(rows(300).top_label(), quick=True, limit=0.1, limit_classes=0.1)


@pytest.mark.slow
@pytest.mark.parametrize("way", ["arrays", "frame"])
def test_printed_calls_of_classes_run(way):
    arrays = rows(1200, moved=0.6)
    columns = {f"p_{name}": arrays.p[:, k] for k, name in enumerate(NAMES)}
    frame = pd.DataFrame(columns | {"kind": np.array(NAMES)[arrays.y]})
    data = arrays if way == "arrays" else frame
    record = cal.audit(data, limit=0.02, quick=True, **({} if way == "arrays" else {"label": "kind", "score": "p_*"}))
    for text in (plan(record), repair_classes(record, "Temperature", "temperature"), one_class(record, "dog")):
        assert "name=" not in text
        names = {"cal": cal, "data": data}
        exec(text.replace('record.save("audit.html")', ""), names)  # noqa: S102
        if "plan" in names:
            assert names["plan"].columns["rows"][0] == 1200
            continue
        made = names.get("record", names.get("repaired"))
        assert made.n == 1200 if "repaired" in names else made.settings["limit"] == 0.02


def test_the_record_carries_how_probabilities_were_read_into_every_command(tmp_path):
    data = rows(600)
    table = {f"z_{name}": np.log(data.p[:, k]) for k, name in enumerate(NAMES)} | {"kind": np.array(NAMES)[data.y]}
    path = tmp_path / "k.csv"
    pa.csv.write_csv(pa.table(table), path)
    record = cal.audit(path, label="kind", score="z_*", logits=True, quick=True)
    for text in (repair_classes(record, "Temperature", "temperature"), audit_again(record), look(record)):
        assert "--logits" in text
    assert one_class(record, "dog") == ""  # its column holds no probability
