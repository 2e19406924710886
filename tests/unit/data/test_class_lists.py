"""Rows that list some classes only: what they lack of one is one more class, and nothing else is made up."""

from __future__ import annotations

import json
import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse

import calibrant as cal
from calibrant.data.classes.columns import REST

K, M, N = 30, 4, 400


@pytest.fixture(scope="module")
def top():
    """Probabilities of many classes, the most probable few of each row, and labels."""
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.full(K, 0.3), N)
    y = np.minimum((rng.uniform(size=(N, 1)) > p.cumsum(axis=1)).sum(axis=1), K - 1)
    at = np.argsort(-p, axis=1)[:, :M]
    return p, y, at, np.take_along_axis(p, at, axis=1)


def full(p, y, at):
    """The same by hand: probabilities of each class where it is listed, and of all that is not."""
    shown = np.zeros_like(p)
    np.put_along_axis(shown, at, np.take_along_axis(p, at, axis=1), axis=1)
    listed = (at == y[:, None]).any(axis=1)
    return np.column_stack([shown, 1.0 - shown.sum(axis=1)]), np.where(listed, y, K)


def same(data, p, y):
    """By the names of classes, those that no row lists left out."""
    names = [data.name_of(k) for k in range(data.p.shape[1])]
    assert names[-1] == REST
    at = [K if name == REST else int(name) for name in names]
    np.testing.assert_allclose(data.p, p[:, at])
    np.testing.assert_array_equal(np.array(at)[data.y], y)
    assert data.rest


@pytest.mark.parametrize("way", ["arrays", "text", "frame", "lists"])
def test_lists_are_classes_and_a_rest(top, way):
    p, y, at, shown = top
    kinds = {"text": np.char.mod("%d", at), "frame": pd.DataFrame(at), "lists": at.tolist()}
    data = cal.multiclass_predictions(y, shown, listed=kinds.get(way, at))
    same(data, *full(p, y, at))
    np.testing.assert_array_equal(data.top_label().p, shown[:, 0])
    np.testing.assert_array_equal(data.top_label().y, y == at[:, 0])


@pytest.mark.parametrize("seed", range(5))
def test_exact_what_is_listed_comes_as_often_as_it_says(seed):
    """Every label as often as its probability says: each class is true where it is listed as often as it is listed."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(6))
    for m in range(1, 6):
        at = rng.permutation(6)[:m]
        rows = [at.tolist()] * 6 + [[k] + [0] * (m - 1) for k in range(6)]  # so that every class is listed somewhere
        shown = np.full((12, m), np.nan)
        shown[:6], shown[6:, 0] = p[at], 0.5
        data = cal.multiclass_predictions([*range(6), *range(6)], shown, listed=rows)
        came = np.array([(data.y[:6] == k) @ p for k in range(data.p.shape[1])])
        np.testing.assert_allclose(came, data.p[0], atol=1e-12)


def test_the_rest_is_never_the_most_probable_class():
    data = cal.multiclass_predictions([1, 2, 0], [[0.2, 0.1], [0.3, 0.1], [0.2, 0.2]], listed=[[0, 1], [2, 1], [0, 2]])
    assert [data.name_of(k) for k in data.predicted] == ["0", "2", "0"]
    assert data.p[:, -1].max() > 0.5


@pytest.mark.parametrize("empty", [0.0, np.nan])
def test_rows_that_list_no_class_are_refused_and_counted(top, empty, tmp_path):
    p, y, at, shown = top
    wide = np.full_like(p, empty)
    np.put_along_axis(wide, at, shown, axis=1)
    wide[[7, 11]] = empty
    counted = r"2 rows have no probability above 0; first: row 7: leave such rows out, drop_missing=True"
    with pytest.raises(cal.BadInput, match=counted):
        cal.multiclass_predictions(y, wide, rest=True)
    kept = cal.multiclass_predictions(y, wide, rest=True, drop_missing=True)
    assert (kept.n, kept.dropped) == (N - 2, 2)
    by_hand = cal.multiclass_predictions(np.delete(y, [7, 11]), np.delete(wide, [7, 11], axis=0), rest=True)
    np.testing.assert_array_equal(kept.p, by_hand.p)
    none = shown.copy()
    none[7] = np.nan
    with pytest.raises(cal.BadInput, match="1 row has no probability above 0; first: row 7"):
        cal.multiclass_predictions(y, none, listed=at)
    path = tmp_path / "log.csv"
    wide[[7, 11]] = 0.0  # as written
    pd.DataFrame(wide).add_prefix("p_").assign(gold=y).to_csv(path, index=False)
    with pytest.raises(cal.BadInput, match=r"2 rows have no probability above 0; first: line 9 of log\.csv"):
        cal.audit(path, label="gold", score="p_*", rest=True, quick=True)


@pytest.mark.parametrize("row", [[0.333, 0.333, 0.333], [0.334, 0.334, 0.333], [0.001, 0.997, 0.001]])
def test_probabilities_of_three_decimals_are_read(row):
    data = cal.multiclass_predictions([0, 1], [row, row])
    np.testing.assert_allclose(data.p.sum(axis=1), 1.0, atol=1e-15)
    assert cal.certify.jitter_classes([row], ids=[0], steps=4).sum() == 1.0
    assert cal.multiclass_predictions([0, 1], [row, row], rest=True).p[:, -1].max() < 0.00101
    with pytest.raises(cal.BadInput, match="add up to one"):
        cal.multiclass_predictions([0, 1], [[*row[:2], row[2] + (0.002 if sum(row) > 1 else -0.001)]] * 2)
    assert cal.predictions([0, 1], [[0.333, 0.666], [0.5, 0.501]]).n == 2


def test_columns_of_all_classes_with_gaps_say_the_same(top):
    p, y, at, _ = top
    wide = np.full_like(p, np.nan)
    np.put_along_axis(wide, at, np.take_along_axis(p, at, axis=1), axis=1)
    for one in (wide, np.nan_to_num(wide), scipy.sparse.csr_array(np.nan_to_num(wide))):
        same(cal.multiclass_predictions(y, one, rest=True), *full(p, y, at))


def table(top, **more):
    """One column for each class listed, and for its probability."""
    _, y, at, shown = top
    columns = {f"class_{i + 1}": at[:, i] for i in range(M)} | {f"prob_{i + 1}": shown[:, i] for i in range(M)}
    return pa.table(columns | {"gold": y} | more)


def pairs(top, of=lambda v: v, name="prob"):
    _, _, at, shown = top
    return [
        [{"class": str(c), name: of(float(v))} for c, v in zip(row, values, strict=True)]
        for row, values in zip(at, shown, strict=True)
    ]


@pytest.mark.slow
@pytest.mark.parametrize("way", ["columns", "pairs", "logs", "text"])
def test_a_file_lists_classes(top, way, tmp_path):
    p, y, at, _ = top
    path, options = tmp_path / "log.parquet", {"score": "top_*"}
    if way == "columns":
        made, options = table(top), {"score": "prob_*", "listed": "class_*"}
    elif way == "text":
        made = pa.table({"top": [json.dumps(row) for row in pairs(top)], "gold": y})
    else:
        logs = way == "logs"
        made = pa.table({"top": pairs(top, np.log, "logprob") if logs else pairs(top), "gold": y})
        options |= {"logits": True} if logs else {}
    pq.write_table(made, path)
    record = cal.audit(path, label="gold", quick=True, limit=0.2, **options)
    by_hand = cal.audit(cal.multiclass_predictions(y, top[3], listed=at), quick=True, limit=0.2)
    assert [f.gap.value for f in record.classes] == pytest.approx([f.gap.value for f in by_hand.classes])
    assert record.everyone.gap.value == pytest.approx(by_hand.everyone.gap.value)
    assert record.classes.names[-1] == f"class = {REST}"
    assert record.data["rest_mass"] == pytest.approx(by_hand.data["rest_mass"])
    assert record.data["rest_mass"] == pytest.approx(full(p, y, at)[0][:, -1].mean())
    assert all(f.rows == N for f in record.classes)
    text = record.save(tmp_path / "audit.md").read_text()
    assert "over all rows, by whether it was listed and true: where few rows list it, its gap is small" in text
    text = record.save(tmp_path / "audit.md").read_text()
    assert "Each row lists some of the classes" in text


def test_lists_of_several_lengths_are_read(tmp_path):
    rows = [[{"token": "A", "logprob": -0.1}], None, [{"token": "B", "logprob": -0.5}, {"token": "A", "logprob": -1.2}]]
    pq.write_table(pa.table({"top": [*rows, []], "gold": ["A", "B", "C", "A"]}), tmp_path / "log.parquet")
    options = {"label": "gold", "score": "top_*", "logits": True, "quick": True}
    with pytest.raises(cal.BadInput, match="2 rows have no probability above 0; first: row 1"):
        cal.audit(tmp_path / "log.parquet", **options)
    record = cal.audit(tmp_path / "log.parquet", missing="drop", **options)
    assert record.classes.names == ("class = A", "class = B", f"class = {REST}")
    assert [f.events for f in record.classes] == [1, 0, 1]
    assert record.classes[f"class = {REST}"].expected == pytest.approx(2 - np.exp([-0.1, -0.5, -1.2]).sum())


@pytest.mark.parametrize(
    ("more", "options", "says"),
    [
        (
            {"prob_2": [0.9] * N},
            {},
            "columns 'prob_1' to 'prob_4': 400 rows list no probabilities that add up to at most",
        ),
        ({"prob_1": [-0.2] * N}, {}, "row 0, counting from 0, -0.2: of log-probabilities pass logits=True"),
        ({"prob_2": [40.0] * N}, {}, "of percentages pass percent=True"),
        (
            {"class_2": None},
            {},
            "column 'prob_2': row 0, counting from 0 has a probability and no class: name the class",
        ),
        ({}, {"logits": True}, "of some classes logits tell no probability: pass log-probabilities, at most 0, and"),
        ({}, {"listed": "class_1"}, "listed= names 1 columns and score= 4: name as many"),
        ({}, {"renormalize": True}, "renormalize=True leaves no rest, which listed= states: leave one out"),
        (
            {"gold": ["x"] * N},
            {},
            "column 'gold' holds 'x' and no class that a row lists, such as '0': write both alike",
        ),
    ],
)
def test_lists_that_cannot_be_read_are_refused(top, more, options, says):
    made = table(top)
    for name, values in more.items():
        at = made.column_names.index(name)
        made = made.set_column(at, name, pa.array(values if values else pa.nulls(N, pa.string())))
    with pytest.raises(cal.BadInput, match=re.escape(says)):
        cal.audit(made, **{"label": "gold", "score": "prob_*", "listed": "class_*", "quick": True} | options)


def test_a_class_listed_twice_is_refused():
    with pytest.raises(cal.BadInput, match="y_prob: row 1 lists '3' twice: list each class once"):
        cal.multiclass_predictions([1, 2], [[0.2, 0.1], [0.3, 0.1]], listed=[[0, 1], [3, 3]])


@pytest.mark.slow
def test_what_reads_every_class_refuses_lists(top):
    _, y, at, shown = top
    data = cal.multiclass_predictions(y, shown, listed=at)
    with pytest.raises(cal.NotComputable, match="Temperature reads the probability of every class, and rows list some"):
        cal.repair.Temperature().fit(data)
    record = cal.audit(data, limit=0.2)
    assert next(c for c in record.checks if c.code == "class-repairs").status == "not-applicable"
    assert next(c for c in record.checks if c.code == "class-local").status != "not-applicable"


def test_accepting_by_class_reads_lists(top):
    _, y, at, shown = top
    found = cal.certify.accept(cal.multiclass_predictions(y, shown, listed=at), risk=0.5, by="class")
    assert REST not in str(found.settings["groups"])


@pytest.mark.slow
def test_a_sparse_matrix_in_an_archive_is_columns(top, tmp_path):
    p, y, at, _ = top
    shown = full(p, y, at)[0][:, :K]
    sparse = scipy.sparse.csr_matrix(shown)
    scipy.sparse.save_npz(tmp_path / "probs.npz", sparse)
    np.savez(tmp_path / "log.npz", labels=y, **np.load(tmp_path / "probs.npz"))
    record = cal.audit(tmp_path / "log.npz", label="labels", score="data_*", rest=True, quick=True, limit=0.2)
    by_hand = cal.audit(cal.multiclass_predictions(y, sparse, rest=True), quick=True, limit=0.2)
    assert [f.gap.value for f in record.classes] == pytest.approx([f.gap.value for f in by_hand.classes])
    with pytest.raises(cal.BadInput, match="label column 'labels' is not in the data"):
        cal.audit(tmp_path / "probs.npz", label="labels", score="data_*", rest=True, quick=True)
