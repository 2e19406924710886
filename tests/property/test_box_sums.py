"""Sums of boxes in a sketch: those of the rows, the same bits in any order, and refused where no rows can have them."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import calibrant as cal
import oracles.boxes
from calibrant.data.sketches import sums
from calibrant.data.sketches.sketch import Sketch
from calibrant.data.sketches.sums import Boxes, Layout
from calibrant.data.specs.attributes import BINS, LEVELS, MOST, Attribute, cells_of
from calibrant.data.specs.coding import Coding, Rows, encode
from calibrant.data.specs.sketch_file import Damaged
from calibrant.data.specs.spec import SPEC_VERSION, Spec
from calibrant.errors import BadInput
from calibrant.kernels.boxes import SUMS
from calibrant.views.boxes import tables_of
from effort import examples

NAMES = ["x", "day", "word", "flag"]
DAY, DAMAGED = 18_000, "the sketch is damaged"


def table(n: int, seed: int) -> pa.Table:
    g = np.random.default_rng([0xB5, seed])
    word = np.array(["a", "b", "other", "missing", None], dtype=object)[g.integers(0, 5, n)]
    return pa.table(
        {
            "y": g.integers(0, 2, n).astype(np.int8),
            "p": g.choice([0.0, 1.0, *g.random(20)], n),
            "x": pa.array(np.where(g.random(n) < 0.1, np.nan, np.round(g.normal(size=n), 2)), from_pandas=True),
            "day": pa.array(g.integers(DAY, DAY + 900, n).astype(np.int32), pa.date32()),
            "word": pa.array(word.tolist(), pa.string()),
            "flag": pa.array(g.random(n) < 0.004),
        }
    )


def sketched(t: pa.Table, **more: Any) -> Sketch:
    made: Sketch = cal.sketch(t, label="y", score="p", **more)
    return made


@cache
def everything() -> Spec:
    return sketched(table(400, 0), variables="*", tests=True).spec


@examples(40)
@given(st.integers(20, 200), st.integers(0, 99), st.lists(st.integers(1, 200), max_size=4), st.randoms())
def test_the_sums_are_those_of_the_rows_however_they_are_split(n: int, seed: int, cuts: list[int], order: Any) -> None:
    spec, t = everything(), table(n, seed)
    how, p, y, ids = spec.codings, t["p"].to_numpy(), t["y"].to_numpy(), np.zeros(n, dtype=np.uint64)
    plain, layout = np.zeros_like(Boxes(spec).sums), Boxes(spec).layout
    cells = cells_of(spec.attributes, p, encode(t, how), how)
    oracles.boxes.box_sums(cells, p, y, layout.tables, layout.sizes, plain)
    pieces = list(pairwise(sorted({0, n, *(min(c, n) for c in cuts)})))
    order.shuffle(pieces)
    merged = Boxes(spec)
    for start, stop in pieces:
        at, one, stored = slice(start, stop), Boxes(spec), Boxes(spec)
        one.update(Rows(p[at], y[at], ids[at], encode(t.slice(start, stop - start), how)))
        stored.load(one.arrays())
        merged.merge(stored)
    np.testing.assert_array_equal(merged.sums, plain)
    assert merged.takes({"sums": plain.shape})
    assert not merged.takes({"sums": plain.shape[:1]})


def test_rows_and_sketches_make_the_same_tables() -> None:
    t = table(2000, 7)
    data = cal.predictions(t["y"].to_numpy(), t["p"].to_numpy(), t.select(NAMES))
    kept = sketched(t, variables="*", tests=True)
    for asked in (None, ["word"], ["day", "x"]):
        for order in (1, 2, 3):
            rows, stored = (tables_of(d, asked, order, 0) for d in (data, kept))
            at = [rows.layout.attributes.index(q) for q in stored.attributes]
            for k, c in enumerate(stored.layout.combined):
                own = sorted(range(len(c)), key=lambda i: at[c[i]])
                there = rows.layout.combined.index(tuple(sorted(at[i] for i in c)))
                axes = (*np.argsort(own), len(c))
                np.testing.assert_array_equal(rows.tables[there].transpose(axes), stored.tables[k])
            assert stored.complete
            assert rows.family(0.05).size == stored.family(0.05).size


def test_the_traits_change_neither_counts_nor_fingerprint() -> None:
    """A sketch for tests knows the rows of one without."""
    t = table(300, 1)
    with_attributes, without = (sketched(t, variables="*", tests=tests) for tests in (True, False))
    assert with_attributes.spec.attributes
    assert not without.spec.attributes
    assert with_attributes.spec.counted == without.spec.counted
    assert with_attributes.fingerprint == without.fingerprint
    assert with_attributes.shares(without) == "hold the same 300 rows"
    other = replace(
        with_attributes.spec,
        attributes=(replace(with_attributes.spec.attributes[0], edges=(0.5,)), *with_attributes.spec.attributes[1:]),
    )
    with pytest.raises(BadInput, match="different specs"):
        with_attributes.merge(Sketch(other), allow_same=True)


def test_a_sketch_without_the_sums_says_so() -> None:
    t = table(300, 1)
    for more in ({}, {"variables": "*"}):
        with pytest.raises(BadInput, match=r"no sums of subgroups.*tests=True"):
            tables_of(sketched(t, **more), None, 2, 0)


def test_the_sums_need_no_sample() -> None:
    spec = replace(everything(), local=None, sample=0)
    kept = cal.sketch(table(400, 0), spec=spec)
    tables = tables_of(Sketch.from_bytes(kept.to_bytes()), None, 2, 0)
    assert tables.sample_rows is None
    assert not tables.complete
    assert cal.detect.scan_test(kept).settings["null"] == "bound"
    with pytest.raises(cal.NotComputable, match="order=3"):
        tables_of(kept, None, 3, 0)


# ---- Stored sums that no rows can have ----


@pytest.fixture(scope="module")
def sound() -> Sketch:
    return sketched(table(400, 3), variables="*", tests=True)


CHANGES = {
    "a row more": ((0, 0, 1),),
    "a row moved": ((0, 0, -1), (1, 0, 1)),
    "a case more": ((0, 1, 1),),
    "a score moved": ((0, 2, -1), (1, 2, 1)),
    "a step of a score": ((0, 2, 1),),
    "a variance": ((0, 3, 1 << 40),),
    "a step of variance": ((0, 3, 1),),
    "a negative count": ((0, 0, -(1 << 20)),),
    "a negative sum": ((0, 2, -(1 << 62)),),
    "a sum over the end": ((0, 2, (1 << 63) - 1),),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("of_pair", [False, True])
def test_sums_that_no_rows_can_have_are_refused(sound: Sketch, change: str, of_pair: bool) -> None:
    damaged = sound.copy()
    part: Boxes = damaged.parts["boxes"]
    first = int(part.layout.ends[len(part.layout.attributes)]) if of_pair else 0
    held = first + np.flatnonzero(part.sums[first:, 0] > 1)
    with np.errstate(over="ignore"):
        for k, column, by in CHANGES[change]:
            part.sums[held[k], column] += by
    with pytest.raises(Damaged, match="the boxes") as e:
        Sketch.from_bytes(damaged.to_bytes())
    assert "\n" not in str(e.value)


def test_scores_that_are_not_those_of_the_cells_are_refused(sound: Sketch) -> None:
    """Even if all tables agree with one another."""
    damaged = sound.copy()
    part: Boxes = damaged.parts["boxes"]
    for t in range(len(part.layout.combined)):
        own = part.layout.of(part.sums, t).reshape(-1, SUMS)
        own[np.argmax(own[:, 0]), 2] += 1
    with pytest.raises(Damaged, match="the boxes"):
        Sketch.from_bytes(damaged.to_bytes())


def test_traits_that_no_data_can_have_led_to_are_refused(sound: Sketch) -> None:
    at = {t.name: k for k, t in enumerate(sound.spec.attributes)}
    wrong: dict[str, list[dict[str, Any]]] = {
        "(score)": [{"kind": "date"}, {"edges": (0.5, 0.5)}, {"levels": ("a",)}, {"edges": tuple(range(BINS))}],
        "x": [{"kind": "category"}, {"name": "y"}, {"edges": (2.0, 1.0)}, {"rest": ("other", "missing")}],
        "day": [{"edges": (1e300,)}, {"kind": "number"}, {"edges": (-1e6, 0.0)}],
        "word": [
            {"levels": ("none",)},
            {"levels": ("b", "a")},
            {"levels": ("a", "a")},
            {"edges": (1.0,)},
            {"rest": ("other", "missing")},
            {"rest": ()},
        ],
    }
    for name, changes in wrong.items():
        for change in changes:
            attributes = list(sound.spec.attributes)
            attributes[at[name]] = replace(attributes[at[name]], **change)
            with pytest.raises(Damaged, match=r"spec( attribute|\.attributes)"):
                replace(sound.spec, attributes=tuple(attributes)).check()
    for attributes in (
        sound.spec.attributes[1:],
        sound.spec.attributes[:-1],
        (*sound.spec.attributes, sound.spec.attributes[1]),
    ):
        with pytest.raises(Damaged, match=r"spec\.attributes"):
            replace(sound.spec, attributes=tuple(attributes)).check()


def wide(covariates: int) -> Spec:
    """As many traits of as many cells as a stored spec may have, and more."""
    levels = tuple(f"v{i:02}" for i in range(LEVELS))
    names = [f"x{j}" for j in range(covariates)]
    own = (Attribute(name=v, kind="category", levels=levels, rest=("other", "missing")) for v in names)
    score = Attribute(name="(score)", kind="number", edges=tuple(range(BINS - 1)))
    how = tuple(Coding(name=v, kind="category", levels=levels) for v in names)
    return Spec(label="y", score="p", codings=how, sample=10, attributes=(score, *own))


@pytest.mark.slow
def test_the_largest_boxes_are_checked_and_larger_ones_refused() -> None:
    spec = wide(MOST)
    spec.check()
    part = Boxes(spec)
    assert len(part.layout.combined) == 101 + 5050
    assert part.sums.nbytes < 80e6
    part.layout.summed(np.zeros((101, 50), dtype=np.uint8), np.full(50, 0.5), np.ones(50, dtype=np.int8), part.sums)
    part.check(50, 50, 50 << 29)
    with pytest.raises(Damaged, match=r"spec\.attributes are 5,001"):
        wide(5000).check()


def test_sums_never_wrap_round(monkeypatch: pytest.MonkeyPatch, sound: Sketch) -> None:
    part = Boxes(sound.spec)
    part.sums[:] = sound.parts["boxes"].sums
    for _ in range(24):
        part.merge(part)
    assert part.sums[:, 0].max() * ((1 << 30) - 1) < 1 << 63
    with pytest.raises(BadInput, match="more than 8,589,934,592 rows"):
        part.merge(part)
    monkeypatch.setattr(sums, "MOST_IN_BOXES", 399)
    with pytest.raises(BadInput, match="more than 399 rows"):
        sketched(table(400, 3), variables="*", tests=True)


def test_older_sketches_are_refused_by_their_version(sound: Sketch) -> None:
    assert sound.spec.version == SPEC_VERSION
    with pytest.raises(BadInput, match=f"version 3, this calibrant knows {SPEC_VERSION}"):
        replace(sound.spec, version=3).check()


def test_tables_lie_where_the_layout_says() -> None:
    sizes = [2, 5, 3]
    layout = Layout([Attribute(name=str(j), kind="number", edges=tuple(range(k - 2))) for j, k in enumerate(sizes)], 3)
    assert layout.combined == [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)]
    assert layout.cells == 2 + 5 + 3 + 10 + 6 + 15 + 30
    assert [layout.shape(t) for t in (1, 4, 6)] == [(5,), (2, 3), (2, 5, 3)]
    sums = np.arange(layout.cells)[:, None] * np.ones(SUMS, dtype=np.int64)
    assert layout.of(sums, 4)[1, 2].tolist() == [2 + 5 + 3 + 10 + 5] * SUMS
    layout.of(sums, 0)[:] = 0  # a view
    assert not sums[:2].any()
