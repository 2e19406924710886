"""Classes that have an order: the probability of at most each is an event, judged with the classes."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

import calibrant as cal
from calibrant.audit.record import AuditRecord
from calibrant.report.commands import audit_again, one_class
from calibrant.views.sample import each_class, everyone

STARS = 5


def rows(n=1500, seed=0, *, moved=0.0, **attached):
    """Grades of which a share of the second's probability is truly the third's."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet([0.6] * STARS, n)
    truth = p.copy()
    truth[:, 2] += moved * p[:, 1]
    truth[:, 1] *= 1.0 - moved
    y = np.minimum((rng.uniform(size=(n, 1)) > truth.cumsum(axis=1)).sum(axis=1), STARS - 1)
    return cal.multiclass_predictions(y, p, {"site": rng.choice(["n", "s"], n)}, **attached)


def test_cuts_are_counted_as_their_projections_are():
    data = rows(ordered=True)
    parts = list(each_class(data, data.top_label(), 3))
    assert len(parts) == len(data.events) == 2 * STARS - 3
    for k, q in enumerate(parts[STARS:], 1):
        other = everyone(data.at_most(k), 3)
        np.testing.assert_array_equal(q.raw, other.raw[..., :4])
        np.testing.assert_array_equal(q.fine, other.fine)
    np.testing.assert_allclose(data.at_most("1").p if data.classes else data.at_most(1).p, data.p[:, :2].sum(axis=1))


@pytest.fixture(scope="module")
def record():
    return cal.audit(rows(moved=0.6, ordered=True), limit=0.04, quick=True)


def test_the_cut_between_two_classes_that_are_confused_is_off(record):
    assert record.classes.names[STARS:] == tuple(f"class = at most {k}" for k in range(1, STARS - 2))
    off = {f.variables[0][1] for f in record.classes if f.verdict == "over"}
    assert off == {"1", "2", "at most 1"}
    assert record.classes["class = at most 1"].gap.value == pytest.approx(
        record.classes["class = 1"].gap.value, abs=0.02
    )


@pytest.mark.slow
def test_classes_and_cuts_share_alpha(record):
    plain = cal.audit(rows(moved=0.6), limit=0.04, quick=True)
    assert record.joint_error == plain.joint_error
    assert len(plain.classes) == STARS
    wide, narrow = (r.classes["class = 3"].gap.guaranteed for r in (record, plain))
    assert wide.high - wide.low > narrow.high - narrow.low


def test_a_fault_of_the_lowest_class_counts_once():
    rng = np.random.default_rng(3)
    p = rng.dirichlet([0.6] * 3, 3000)
    y = np.where(rng.uniform(size=3000) < 0.6 * p[:, 0], 0, 1 + (rng.uniform(size=3000) < 0.5))
    record = cal.audit(cal.multiclass_predictions(y, p, ordered=True), limit=0.02, quick=True)
    assert len(record.classes) == 3
    plain = cal.audit(cal.multiclass_predictions(y, p), limit=0.02, quick=True)
    assert [f.gap.guaranteed for f in record.classes] == [f.gap.guaranteed for f in plain.classes]


@pytest.mark.slow
def test_the_page_draws_classes_in_their_order(record, tmp_path):
    assert AuditRecord.from_json(record.to_json()).data["ordered"] is True
    page = record.save(tmp_path / "audit.html").read_text()
    assert "Gap of each class, from 0 at the top to 4" in page
    assert "Gap of each cut, from at most 0 at the top to at most 3" in page
    text = record.save(tmp_path / "audit.md").read_text()
    assert "Three of 5 classes and 2 cuts are over the limit" in text
    listed = [text.index(f"| `{name}` |") for name in ("0", "1", "2", "3", "4", "at most 1", "at most 2")]
    assert listed == sorted(listed)
    assert "Ranked probability score" in text
    score = cal.measure.ranked_probability_score(rows(moved=0.6, ordered=True))
    assert record.estimates["ranked_probability_score"].value == score.value
    names = {"cal": cal, "data": rows(moved=0.6, ordered=True)}
    for text, score in ((one_class(record, "at most 1"), "at_most"), (one_class(record, "1"), "one_vs_rest")):
        exec(text, names)  # noqa: S102
        assert names["record"].everyone.events == getattr(names["data"], score)(1).events


@pytest.mark.slow
@pytest.mark.parametrize("order", [True, ("low", "mid", "high")])
def test_a_file_is_put_in_order(order, tmp_path):
    names = ("1", "2", "3") if order is True else ("low", "mid", "high")
    rng = np.random.default_rng(1)
    p = rng.dirichlet([1.0] * 3, 600)
    y = (rng.uniform(size=(600, 1)) > p.cumsum(axis=1)).sum(axis=1)
    at = (2, 0, 1)  # the order of the columns
    table = pa.table({f"p_{names[k]}": p[:, k] for k in at} | {"grade": np.array(names)[y]})
    pyarrow.csv.write_csv(table, tmp_path / "log.csv")
    record = cal.audit(tmp_path / "log.csv", label="grade", score="p_*", ordered=order, quick=True, limit=0.1)
    assert record.classes.names == tuple(f"class = {n}" for n in names)  # each cut of three is that of a class
    assert f"at the top to at most {names[1]}" in record.save(tmp_path / "page.html").read_text()
    assert f"--ordered {','.join(names)}" in audit_again(record)
    ranked = cal.measure.ranked_probability_score(cal.multiclass_predictions(y, p))
    assert record.estimates["ranked_probability_score"].value == pytest.approx(ranked.value)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (
            {"ordered": True},
            "ordered: classes such as 'low' are no numbers: name all from the lowest, ordered=['low', ",
        ),
        (
            {"ordered": "low,mid"},
            "ordered and the classes differ in 'low,mid': name each class once, of 'low', 'mid', ",
        ),
        ({"ordered": ["low", "mid"]}, "ordered and the classes differ in 'high': name each class once"),
        ({"ordered": ["low", "low", "mid"]}, "names 'low' twice"),
    ],
)
def test_an_order_that_cannot_be_known_is_refused(options, says):
    p = np.full((60, 3), 1 / 3)
    with pytest.raises(cal.BadInput, match=re.escape(says)):
        cal.multiclass_predictions(np.repeat(["low", "mid", "high"], 20), p, classes=["low", "mid", "high"], **options)


def test_what_has_no_order_has_no_cuts():
    with pytest.raises(cal.BadInput, match="at_most is of classes that have an order"):
        rows().at_most(1)
    with pytest.raises(cal.BadInput, match="ordered= is of three classes or more"):
        cal.audit(rows().top_label(), quick=True, ordered=True)
    with pytest.raises(cal.NotComputable, match="ordered: rows list some classes only"):
        cal.multiclass_predictions([0, 1], [[0.5, 0.2], [0.4, 0.3]], listed=[[0, 1], [1, 2]], ordered=True)
