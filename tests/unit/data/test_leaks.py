"""Columns that reproduce the outcome are named, and honest ones are not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.special import expit

import calibrant as cal
from calibrant.data.leaks import Column, Leak, area, coded, grown, leaks
from calibrant.data.survey import REPEATED, leaking
from calibrant.report import markdown
from calibrant.report.wording.headline import headline
from calibrant.views.boxes import tables_of

N = 2000


def made(seed: int = 0, n: int = N) -> tuple[np.random.Generator, np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    p = expit(1.3 * x - 1.0)
    return rng, x, p, (rng.random(n) < p).astype(np.int8)


def text(values: list[object]) -> Column:
    return Column.of_text(coded([np.array(values, dtype=object)])[0])


def only(found: list[Leak]) -> Leak:
    assert len(found) == 1
    return found[0]


@pytest.mark.parametrize("n", [200, N])
@pytest.mark.parametrize(
    "column",
    [
        lambda y, _: Column.of_number(y * 1.0),
        lambda y, _: Column.of_number(1.0 - y),
        lambda y, _: text(["won" if v else "lost" for v in y]),
        lambda y, rng: Column.of_number(np.where(y == 1, rng.exponential(30.0, len(y)), np.nan)),
        lambda y, rng: Column.of_number(np.where(y == 1, 1.0, -1.0) * (0.5 + rng.poisson(5, len(y)))),
        lambda y, rng: text([f"r{rng.integers(3)}" if v else None for v in y]),
    ],
    ids=["copy", "mirror", "text", "missing without event", "margin", "reason"],
)
def test_what_reproduces_the_outcome_is_a_leak(column, n: int) -> None:
    rng, _, p, y = made(n=n)
    found = only(leaks({"it": column(y, rng)}, y, p))
    assert (found.columns, found.kind) == (("it",), "leak")
    assert found.error < 0.01
    assert found.limit < 0.1 < found.error_of_score


def test_one_error_in_a_hundred_is_a_leak_and_three_are_asked_about() -> None:
    rng, _, p, y = made()
    noisy = {f"{e}": Column.of_number(np.where(rng.random(N) < e, 1 - y, y) * 1.0) for e in (0.01, 0.03, 0.2)}
    assert [(f.columns[0], f.kind) for f in leaks(noisy, y, p)] == [("0.01", "leak"), ("0.03", "ask")]


def test_pairs_that_reproduce_the_outcome_only_together() -> None:
    rng, _, p, y = made()
    home = rng.integers(0, 40, (N, 2))
    home[:, 1] = (home[:, 0] + 1 + home[:, 1] % 39) % 40
    names = [[f"t{a}", f"t{b}"] for a, b in home]
    wins = [[a, a if v else b] for (a, b), v in zip(names, y, strict=True)]
    first, second = coded([np.array(c, dtype=object) for c in zip(*wins, strict=True)])
    points = np.round(rng.gamma(4.0, 20.0, N))
    columns = {
        "home": Column.of_text(first),
        "winner": Column.of_text(second),
        "points": Column.of_number(points),
        "against": Column.of_number(points - np.where(y == 1, 1, -1) * (1 + rng.poisson(8, N))),
    }
    assert [(f.columns, f.kind, f.way) for f in leaks(columns, y, p)] == [
        (("home", "winner"), "leak", "equality"),
        (("points", "against"), "leak", "order"),
    ]


def test_a_level_that_has_one_outcome_alone_is_asked_about() -> None:
    rng, _, p, y = made()
    seen = np.where(y == 1, rng.choice(["a", "b", "event"], N, p=[0.3, 0.3, 0.4]), rng.choice(["a", "b"], N))
    found = only(leaks({"status": text(list(seen))}, y, p))
    assert (found.kind, found.way, found.rows) == ("ask", "one outcome", int((seen == "event").sum()))


def test_honest_columns_are_not_named() -> None:
    for seed in range(10):
        rng, x, p, y = made(seed)
        columns = {
            "score": Column.of_number(p),
            "logit": Column.of_number(x),
            "sharper": Column.of_number(x + 0.2 * rng.normal(size=N)),
            "number": Column.of_number(np.arange(N) * 1.0),
            "grade": text([f"g{v}" for v in np.digitize(x, [-1, 0, 1])]),
            "site": text([f"s{v}" for v in rng.integers(0, 40, N)]),
            "flag": Column.of_number((x > 1.0) * 1.0),
        }
        assert leaks(columns, y, p) == []


def test_a_strong_honest_test_beside_a_useless_score_is_no_leak() -> None:
    """Nearly all outcomes follow from it, and it still orders those in either of its classes."""
    for seed in range(10):
        rng = np.random.default_rng(seed)
        x = 5.0 * rng.normal(size=N)
        y = (rng.random(N) < expit(x)).astype(np.int8)
        assert leaks({"test": Column.of_number(x)}, y, expit(0.05 * x + rng.normal(size=N))) == []


@pytest.mark.parametrize("n", [500, N])
def test_a_measurement_that_is_nearly_always_right_is_kept(n: int) -> None:
    """It orders labels where it has decided, as no copy does: asked about at most."""
    for seed in range(6):
        rng, _, p, y = made(seed, n)
        found = leaks({"marker": Column.of_number(rng.normal(4.2 * y, 1.0))}, y, p)
        assert [f.kind for f in found] in ([], ["ask"]), seed


@pytest.mark.parametrize("share", [0.3, 0.6])
def test_a_reason_that_some_events_have_is_asked_about(share: float) -> None:
    rng, _, p, y = made()
    cause = np.where((y == 1) & (rng.random(N) < share), rng.choice(list("abcd"), N), None)
    assert [(f.kind, f.way) for f in leaks({"cause": text(list(cause))}, y, p)] == [("ask", "one outcome")]


def test_of_pairs_the_column_that_they_share_is_left_out() -> None:
    one: dict[str, Any] = {"kind": "leak", "way": "equality", "error": 0.0, "limit": 0.01, "error_of_score": 0.3}
    one |= {"p_value": 0.0, "rows": 9}
    pairs = [Leak(columns=names, **one) for names in (("home", "winner"), ("winner", "away"))]
    alone = Leak(columns=("goals", "against"), **one)
    assert [*leaking(pairs)] == ["winner"]
    assert [*leaking(pairs, ["home", "away"])] == ["winner"]
    assert [*leaking([*pairs, alone], ["goals"])] == ["winner", "against"]
    assert [*leaking([alone])] == ["goals", "against"]
    assert [*leaking([alone], ["goals", "against"])] == []


def test_few_of_a_label_say_nothing() -> None:
    y = np.zeros(300, dtype=np.int8)
    y[:7] = 1
    assert leaks({"copy": Column.of_number(y * 1.0)}, y, np.full(300, 0.02)) == []


def test_constant_missing_and_infinite_values_are_no_leak() -> None:
    _, _, p, y = made()
    odd = np.where(np.arange(N) % 3 == 0, np.inf, np.where(np.arange(N) % 3 == 1, -1e308, 1e308))
    columns = {"one": np.ones(N), "none": np.full(N, np.nan), "odd": odd}
    assert leaks({k: Column.of_number(v) for k, v in columns.items()}, y, p) == []


def test_a_tree_is_scikit_learns() -> None:
    tree = pytest.importorskip("sklearn.tree")
    for seed in range(5):
        rng = np.random.default_rng(seed)
        x = np.sort(np.round(rng.normal(size=400), int(rng.integers(1, 4))))
        y = rng.random(400) < expit(3.0 * np.sin(2.0 * x))
        w = np.where(y, 0.5 / y.sum(), 0.5 / (~y).sum())
        ends, rates = grown(x, w * y, w, 5)
        fit = tree.DecisionTreeClassifier(max_leaf_nodes=4, min_samples_leaf=5, random_state=0).fit(x[:, None], y, w)
        mine, theirs = rates[np.searchsorted(ends, x)], fit.predict_proba(x[:, None])[:, 1]
        np.testing.assert_allclose(mine, theirs, atol=1e-12)


def test_the_area_is_scipys() -> None:
    from scipy.stats import mannwhitneyu

    rng = np.random.default_rng(0)
    x, y = np.round(rng.normal(size=300), 1), rng.integers(0, 2, 300)
    events, others = x[y == 1], x[y == 0]
    assert area(x, y) == pytest.approx(mannwhitneyu(events, others).statistic / len(events) / len(others))


# ---- in an audit, in a look, in a repair ----


def table(seed: int = 0, n: int = N) -> dict[str, Any]:
    rng, _, p, y = made(seed, n)
    return {
        "y": y,
        "p": p,
        "hall": rng.choice(list("abcd"), n),
        "result": np.where(y == 1, "Win", "Lose"),
        "nearly": np.where(rng.random(n) < 0.03, 1 - y, y),
        "pred": (p > 0.4).astype(int),
    }


NAMED = {"label": "y", "score": "p"}


@pytest.mark.slow
def test_an_audit_leaves_leaks_and_outputs_out_and_says_so() -> None:
    record = cal.audit(table(n=1000), **NAMED, limit=0.05)
    assert record.data["covariates"] == ("hall", "nearly")
    why = dict(record.data["left_out"])
    assert why["result"].startswith("it reproduces the outcome: 0.0% wrong")
    assert why["pred"] == REPEATED
    assert [name for name, _ in record.data["in_question"]] == ["nearly"]
    assert {"reproduces-outcome", "may-reproduce-outcome", "follows-from-score"} <= {*record.data["warnings"]}
    text = markdown.render(record)
    assert "if nearly is known beforehand." in headline(record)
    assert "Known only with the outcome: `result` (0.0% wrong" in text
    assert "Known before the outcome?: `nearly`" in text


@pytest.mark.slow
def test_what_is_allowed_stays_and_the_command_carries_it() -> None:
    record = cal.audit(table(), **NAMED, allow=["result", "pred"], by="result", quick=True)
    assert {"result", "pred"} <= {*record.data["covariates"]}
    assert record.settings["allow"] == ("result", "pred")


@pytest.mark.slow
@pytest.mark.parametrize("held", [False, True])
def test_a_group_that_is_a_leak_is_refused(held: bool) -> None:
    rows = table()
    source: Any = cal.predictions(rows["y"], rows["p"], {"result": rows["result"]}) if held else rows
    named: dict[str, Any] = {} if held else NAMED
    with pytest.raises(cal.BadInput, match=r"group column 'result' reproduces the outcome .*allow="):
        cal.audit(source, **named, by="result")
    assert cal.audit(source, **named, by="result", allow="result", quick=True).groups


def test_one_that_is_named_by_itself_in_a_test_of_rows_is_kept() -> None:
    data = cal.predictions(table()["y"], table()["p"], {"result": table()["result"], "hall": table()["hall"]})
    assert cal.diagnose.rank_variables(data, draws=99).columns["variable"] == ("hall",)
    assert cal.diagnose.rank_variables(data, variables="result", draws=99).columns["variable"] == ("result",)


@pytest.mark.slow
def test_a_look_names_leaks_without_the_score_and_leaves_them_out_of_the_command() -> None:
    seen = cal.look(table(), label="y", score="p")
    assert [name.split(" ")[0] for name in seen.candidates["outcome"]] == ["result"]
    assert "result" not in seen.command
    assert "reproduces the outcome" in str(seen)
    shuffled = cal.look(table() | {"p": np.random.default_rng(0).permutation(table()["p"])}, label="y", score="p")
    assert shuffled.candidates["outcome"] == seen.candidates["outcome"]


def test_alpha_is_shared_as_if_nothing_had_been_left_out() -> None:
    whole = {k: v for k, v in table().items() if k not in ("nearly", "pred")}
    plain = {k: v for k, v in whole.items() if k != "result"}
    rows = [cal.predictions(t.pop("y"), t.pop("p"), t) for t in (whole, plain)]
    kept, alone = (tables_of(r, None, 2, 0).family(0.05) for r in rows)
    assert alone.weight.sum() == pytest.approx(1.0)
    assert kept.weight.sum() == pytest.approx(1 / 3)  # one pair of attributes of the three that there were
    np.testing.assert_allclose(kept.weight, alone.weight / 3)


@pytest.mark.parametrize("n", [60, 400, N])
def test_what_follows_from_the_score_is_told_from_what_does_not(n: int) -> None:
    rng, x, p, _ = made(3, n)
    logit = np.log(p / (1.0 - p))
    follows = [p, np.round(1.0 - p, 4), logit, 100.0 * p]
    follows += [np.where(p > 0.4, "high", "low"), p > 0.25] if n > 60 else []
    near = x + 0.01 * rng.normal(size=n)
    honest = [x, 40.0 + 9.0 * x, x**3, np.floor(3.0 * p), rng.normal(size=n), np.zeros(n), near]
    honest += [x > 0.3 * rng.normal(size=n), p > np.sort(p)[-6], p > 0.4137]
    read = [text(list(c)) if c.dtype.kind == "U" else Column.of_number(c * 1.0) for c in (*follows, *honest)]
    assert [c.repeats(p) for c in read] == [True] * len(follows) + [False] * len(honest)
    assert not Column.of_number((p > 0.4) * 1.0).repeats(np.where(p > 0.4, 0.7, 0.2))  # groups may have a score each


# ---- rows that a calibrator was fitted on ----


@pytest.mark.slow
@pytest.mark.parametrize("marks", [lambda m: m, lambda m: m.astype(int), lambda m: [str(v) for v in m]])
def test_rows_that_a_calibrator_was_fitted_on_are_left_out_and_counted(marks: Any) -> None:
    rows, mark = table(), np.arange(N) % 4 == 0
    rows = {k: rows[k] for k in ("y", "p", "hall")} | {"p_repaired": rows["p"] ** 1.1, "p_fitted_on": marks(mark)}
    record = cal.audit(rows, label="y", score="p_repaired", quick=True)
    others = {k: v[~mark] for k, v in rows.items() if k != "p_fitted_on"}
    assert record.everyone == cal.audit(others, label="y", score="p_repaired", quick=True).everyone
    assert record.data["rows"] == N - mark.sum()
    assert record.data["excluded"] == (f"{mark.sum()} rows that the calibrator was fitted on, by column 'p_fitted_on'",)
    assert cal.read(rows, label="y", score="p_repaired").n == N - mark.sum()
    assert cal.audit(rows, label="y", score="p", quick=True).data["rows"] == N  # the score itself was fitted on none
    stored = cal.Sketch.from_bytes(cal.sketch(rows, label="y", score="p_repaired").to_bytes())
    assert stored.log.excluded == record.data["excluded"]


def test_a_lazy_frame_is_computed_with_the_column_that_marks_them() -> None:
    pl = pytest.importorskip("polars")
    p, mark = np.linspace(0.1, 0.9, 60), np.arange(60) % 4 == 0
    frame = pl.DataFrame({"y": [0, 1] * 30, "p_repaired": p, "p_fitted_on": mark, "never": ["x"] * 60})
    lazy = frame.lazy().with_columns(never=pl.col("never").cast(pl.Int64))  # computed by nobody
    rows = cal.read(lazy, label="y", score="p_repaired")
    assert rows.p.tolist() == cal.read(frame, label="y", score="p_repaired").p.tolist() == p[~mark].tolist()
    assert rows.excluded == ("15 rows that the calibrator was fitted on, by column 'p_fitted_on'",)


def test_a_mark_that_cannot_be_read_is_refused() -> None:
    rows = {"y": [0, 1] * 30, "p_repaired": np.linspace(0.1, 0.9, 60), "p_fitted_on": ["maybe"] * 60}
    with pytest.raises(cal.BadInput, match="'p_fitted_on' should say which rows"):
        cal.audit(rows, label="y", score="p_repaired")
