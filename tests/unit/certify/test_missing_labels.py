"""Rows without a label: kept apart by every way in, counted alike, and told in one table."""

from __future__ import annotations

import math

import numpy as np
import pytest

import calibrant as cal
from calibrant.errors import BadInput, NotComputable

RNG = np.random.default_rng(0)
N = 4000
P = RNG.integers(1, 100, N) / 100
LOST = RNG.uniform(size=N) < 0.2
Y = np.where(LOST, np.nan, RNG.uniform(size=N) < P)
SEX = np.array(["f", "m", "x"])[np.where(LOST & (P > 0.9), 2, RNG.integers(0, 2, N))]
FRAME = {"y": Y, "p": P, "sex": SEX}
NAMED = {"label": "y", "score": "p", "missing": "keep"}


@pytest.mark.slow
def test_every_way_in_counts_alike() -> None:
    rows = cal.predictions(Y, P, {"sex": SEX}, missing="keep")
    assert (rows.n, len(rows.unlabelled.p), rows.dropped) == (N - LOST.sum(), LOST.sum(), 0)
    whole = cal.sketch(FRAME, by="sex", **NAMED)
    assert (whole.n, whole.unlabelled, whole.dropped) == (N - LOST.sum(), LOST.sum(), 0)
    found = cal.certify.missing_labels(rows, by="sex", limit=0.1)
    assert found == cal.certify.missing_labels(cal.read(FRAME, by="sex", **NAMED), by="sex", limit=0.1)
    assert found == cal.certify.missing_labels(whole, limit=0.1)
    assert found == cal.certify.missing_labels(cal.Sketch.from_bytes(whole.to_bytes()), limit=0.1)
    assert sorted(set(found.columns["people"])) == ["everyone", "sex = f", "sex = m", "sex = x"]


def test_halves_add_up() -> None:
    halves = [{k: v[i::2] for k, v in FRAME.items()} for i in (0, 1)]
    first = cal.sketch(halves[0], **NAMED)
    both = first.copy().merge(cal.sketch(halves[1], spec=first.spec))
    assert both.unlabelled == LOST.sum()
    assert cal.certify.missing_labels(both) == cal.certify.missing_labels(cal.sketch(FRAME, **NAMED))


def test_a_sketch_that_counts_them_merges_with_no_other() -> None:
    full = {k: v[~LOST] for k, v in FRAME.items()}
    with pytest.raises(BadInput, match="different specs"):
        cal.sketch(FRAME, **NAMED).merge(cal.sketch(full, label="y", score="p"))


def test_what_lacks_rows_without_a_label_or_the_groups_is_refused_by_its_own_reason() -> None:
    full, who = {k: v[~LOST] for k, v in FRAME.items()} | {"who": np.arange(N)[~LOST] // 2}, np.arange(N) // 2
    for settings in ({}, {"cluster": "who"}):
        plain = cal.sketch(full, label="y", score="p", **settings)
        grouped = cal.sketch(full, label="y", score="p", by="sex", **settings)
        with pytest.raises(BadInput, match="this sketch has no groups: leave by= out, or sketch again"):
            cal.certify.missing_labels(plain, by="sex")
        with pytest.raises(BadInput, match=r"this sketch has the groups of \['sex'\]: leave by= out"):
            cal.certify.missing_labels(grouped, by="age")
        for whole, by in ((plain, None), (grouped, "sex")):
            with pytest.raises(NotComputable, match="rows without a label were not kept"):
                cal.certify.missing_labels(whole, by=by)
    for settings in ({}, {"cluster": who[~LOST]}):
        with pytest.raises(NotComputable, match="rows without a label were not kept"):
            cal.certify.missing_labels(cal.predictions(Y[~LOST], P[~LOST], **settings))
    crossed = {"a": np.arange(N)[~LOST] % 50, "b": np.arange(N)[~LOST] // 50}
    with pytest.raises(NotComputable, match="clusters cross, and rows without a label are kept apart by one column"):
        cal.certify.missing_labels(cal.predictions(Y[~LOST], P[~LOST], cluster=crossed))


def test_ranges_widen_with_what_is_not_assumed_and_agree_where_nothing_is_missing() -> None:
    for judge in ("error", "gap"):
        low, high = (
            cal.certify.missing_labels(cal.read(FRAME, **NAMED), judge=judge).columns[k] for k in ("low", "high")
        )
        assert low[1] >= low[2] >= low[3]
        assert high[1] <= high[2] <= high[3]
    full = cal.predictions(Y[~LOST], P[~LOST], missing="keep")
    columns = cal.certify.missing_labels(full, limit=0.1).columns
    assert len(set(columns["high"])) == len(set(columns["low"])) == 1
    assert columns["stands_to"] == (math.inf,) * 4


def test_a_group_without_any_label_is_bounded_by_nothing_but_its_scores() -> None:
    found = cal.certify.missing_labels(
        cal.predictions(Y, P, {"sex": SEX}, missing="keep"), by="sex", judge="gap", limit=0.05
    )
    lone = [row for row in zip(*found.columns.values(), strict=True) if row[0] == "sex = x"]
    assert lone[0][3:8] == (0, lone[0][4], -1.0, 1.0, "undecided")
    mean = P[SEX == "x"].mean()
    assert all(row[5] <= -mean and row[6] >= 1.0 - mean for row in lone[1:])


@pytest.mark.slow
def test_a_large_error_is_broken_whatever_the_missing_labels() -> None:
    y = np.where(LOST, np.nan, 0.0)
    columns = cal.certify.missing_labels(cal.predictions(y, P, missing="keep"), limit=0.05).columns
    assert columns["verdict"] == ("over",) * 4
    assert columns["stands_to"] == (math.inf,) * 4
    clusters = cal.predictions(y, P, missing="keep", cluster=np.arange(len(y)) // 2)
    assert cal.certify.missing_labels(clusters, limit=0.05).columns["stands_to"] == (math.inf,) * 4


@pytest.mark.parametrize(
    ("call", "kind", "says"),
    [
        (lambda: cal.certify.missing_labels(cal.predictions([0, 1], [0.2, 0.7])), NotComputable, 'missing="keep"'),
        (
            lambda: cal.predictions(
                [0, 1, 0, None],
                [0.2, 0.7, 0.3, 0.4],
                cluster={"a": [1, 1, 2, 2], "b": [1, 2, 1, 2]},
                missing="keep",
            ),
            NotComputable,
            "name one of them",
        ),
        (lambda: cal.sketch(FRAME, cluster="sex", **NAMED), NotComputable, "by no sketch"),
        (lambda: cal.sketch(cal.read(FRAME, cluster="sex", **NAMED)), NotComputable, "neither stored nor merged"),
        (lambda: cal.predictions([0, None], [0.2, 0.7], drop_missing=True, missing="keep"), BadInput, "one of them"),
        (lambda: cal.predictions([0, 1], [0.2, None], missing="keep"), BadInput, "1 value is missing"),
        (lambda: cal.predictions([0, 1], [0.2, 0.3], {"a": [1.0, None]}, missing="refuse"), BadInput, "'a'"),
        (lambda: cal.certify.missing_labels(cal.read(FRAME, **NAMED), odds=0.5), BadInput, "odds"),
    ],
)
def test_what_cannot_be_done_is_said(call: object, kind: type[Exception], says: str) -> None:
    with pytest.raises(kind, match=says):
        call()  # type: ignore[operator]


CLUSTER = np.arange(len(Y)) // 4
WEIGHT = np.random.default_rng(5).uniform(0.5, 2.0, len(Y))


@pytest.mark.slow
def test_units_and_weights_are_certified_and_told() -> None:
    rows = {"y": Y, "p": P, "sex": SEX, "house": CLUSTER, "w": WEIGHT}
    plain = cal.certify.missing_labels(cal.predictions(Y, P, {"sex": SEX}, missing="keep"), by="sex", limit=0.3)
    for more in ({"cluster": "house"}, {"weights": "w"}, {"cluster": "house", "weights": "w"}):
        found = cal.certify.missing_labels(cal.read(rows, by="sex", **more, **NAMED), by="sex", limit=0.3)
        assert found.columns["people"] == plain.columns["people"]
        assert found.columns["unlabelled"] == plain.columns["unlabelled"]  # people are counted, whatever they weigh
        assert "independent clusters" in str(found.settings["assumes"])
        high = found.columns["high"]
        assert high[1] <= high[2] <= high[3]
    same = cal.audit(rows, by="sex", limit=0.3, quick=True, cluster="house", weights="w", **NAMED)
    reported = same.curve("missing_labels")
    assert reported.settings["clusters"] == found.settings["clusters"]
    assert reported.columns["high"][:4] == found.columns["high"][:4]
    assert all(v is None for v in same.curve("without_label").columns["p_value"])
    assert found.settings["clusters"] == len(np.unique(CLUSTER))
    assert found.settings["clusters_unlabelled"] == len(np.unique(CLUSTER[LOST]))


def test_copies_of_every_row_in_one_unit_change_nothing() -> None:
    """Where units hold two copies of a row each, ends are those of the rows: nothing is counted twice."""
    data = cal.predictions(Y, P, weights=np.ones(len(Y)), cluster=np.arange(len(Y)), missing="keep")
    twice = [np.repeat(v, 2) for v in (Y, P)]
    double = cal.predictions(*twice, cluster=np.repeat(np.arange(len(Y)), 2), missing="keep")
    one, two = (cal.certify.missing_labels(d, judge="gap").columns for d in (data, double))
    for side in ("low", "high"):
        assert one[side] == pytest.approx(two[side], abs=1e-9)


def test_stored_counts_that_no_rows_can_have_are_refused() -> None:
    whole = cal.sketch(FRAME, by="sex", **NAMED)
    whole.parts["unlabelled"].stored[1, 5, 0] += 1
    with pytest.raises(BadInput, match="without a label"):
        cal.Sketch.from_bytes(whole.to_bytes())
