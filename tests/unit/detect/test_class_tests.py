"""Tests of several classes at once: what they find, of which classes, and what they refuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import calibrant as cal
from calibrant.detect.class_tests import MOST, OTHERS, PREDICTED, VALUES, ClassRows, ranks_of, together_of_classes
from calibrant.errors import BadInput, NotComputable
from calibrant.kernels.draws import outcomes
from calibrant.results import Outcome
from calibrant.search.detectors import ClassInputs, Settings, detector_inputs
from calibrant.search.repeats import Repeats

local = cal.detect.local_calibration_test
NAMES = "cat", "dog", "fox"


def rows(n: int = 600, moved: float = 0.0, classes: int = 3, seed: int = 0, **attached: Any) -> Any:
    """Rows of which, at site b, a share of the first class's probability is truly the second's."""
    rng = np.random.default_rng([seed, n])
    p, site = rng.dirichlet(np.full(classes, 0.6), n), rng.choice(["a", "b"], n)
    truth = p.copy()
    truth[:, 1] += moved * p[:, 0] * (site == "b")
    truth[:, 0] *= 1.0 - moved * (site == "b")
    y = np.minimum((rng.uniform(size=(n, 1)) > truth.cumsum(axis=1)).sum(axis=1), classes - 1)
    names = NAMES if classes == 3 else [f"c{k}" for k in range(classes)]
    return cal.multiclass_predictions(np.array(names)[y], p, {"site": site}, classes=names, **attached)


def test_it_names_the_class_that_gets_too_much_the_one_that_pays_and_where() -> None:
    data = rows(1500, 0.6)
    found = local(data, draws=199)
    parts = found.parts
    assert found.p_value == 0.005
    assert (parts["over_class"], parts["under_class"]) == ("cat", "dog")
    assert (parts["region_over_class"], parts["region_under_class"]) == ("cat", "dog")
    assert max(parts["class_adjusted_p"][:2]) <= 0.05
    assert dict(zip(parts["variables"], parts["variable_adjusted_p"], strict=True))["site"] == 0.005
    off = (data.y == 0) - data.p[:, 0]
    assert parts["over_gap"] == pytest.approx(off.mean())
    assert Outcome.from_dict(found.to_dict()) == found


def test_the_pair_of_the_region_is_of_its_rows() -> None:
    data = rows(1500, 0.6)
    parts = local(data, variables="site", draws=99).parts
    assert (parts["region_variable"], parts["region_side"]) == (PREDICTED, "is")
    inside = np.array(NAMES)[data.p.argmax(axis=1)] == parts["region_value"]
    assert parts["region_rows"] == inside.sum()
    assert parts["region_over_gap"] == pytest.approx(((data.y == 0) - data.p[:, 0])[inside].mean())
    assert parts["region_under_gap"] == pytest.approx(((data.y == 1) - data.p[:, 1])[inside].mean())


def test_of_the_predicted_class_no_covariate_is_needed() -> None:
    data = rows(400)
    bare = cal.multiclass_predictions(data.y, data.p)
    found = local(bare, draws=19)
    assert found.settings["variables"] == ()
    assert PREDICTED in found.parts["variables"]


def test_every_draw_has_one_class_a_row_with_the_probabilities_stated() -> None:
    data = rows(300)
    p = data.p.copy()
    p[:100] = [0.5, 0.0, 0.5]
    p[100:200] = [0.3, 0.7, 0.0]
    made = ClassRows.of(cal.multiclass_predictions(data.y, p), None, 0)
    drawn = np.stack([d for _, d in made.drawn(4000, 0)])
    assert (drawn.sum(axis=0) == 1).all()
    assert not drawn[p.T == 0.0].any()
    spread = np.sqrt(p.T * (1 - p.T) / 4000)
    assert (np.abs(drawn.mean(axis=2) - p.T) <= 5 * spread + 1e-12).all()
    ids = np.arange(3, dtype=np.uint64)
    assert outcomes(ids, np.ones(3), 0, 9, 1).all()  # the last class is drawn whatever the sum rounds to


def test_rare_classes_count_as_one() -> None:
    data = rows(800, classes=MOST + 3)
    made = ClassRows.of(data, None, 0)
    assert made.joined.classes[-1] == OTHERS
    common = [data.classes.index(c) for c in made.joined.classes[:-1]]
    np.testing.assert_allclose(made.joined.p[:, -1], 1.0 - data.p[:, common].sum(axis=1), atol=1e-12)
    assert ((made.joined.y == MOST) == ~np.isin(data.y, common)).all()
    assert ClassRows.of(rows(200, classes=MOST + 1), None, 0).joined.p.shape[1] == MOST + 1


def test_of_many_rows_some_whole_clusters_are_tested() -> None:
    n = VALUES // 4 + 2000
    who = np.arange(n) // 4
    made = ClassRows.of(rows(n, cluster=who), (), 0).data
    assert VALUES // 4 - 8 <= made.n < n
    assert (np.unique(made.cluster, return_counts=True)[1] == 4).all()


def test_the_overall_pair_is_of_all_rows_and_the_page_says_how_many_are_tested(tmp_path: Any) -> None:
    n = VALUES // 4 + 2000
    data = rows(n, moved=0.5)
    made = cal.audit(data, limit=0.05, variables=())
    parts = next(c.outcome.parts for c in made.checks if c.code == "class-local" and c.outcome is not None)
    gap = [float(((data.y == k) - data.p[:, k]).mean()) for k in range(3)]
    assert (parts["over_gap"], parts["under_gap"]) == pytest.approx((min(gap), max(gap)), abs=6e-5)  # four digits
    assert f"rows of {VALUES // 4:,} tested where" in made.save(tmp_path / "audit.md").read_text()


@pytest.mark.parametrize("attached", [{"weights": 1.0 + np.arange(600) % 2}, {"cluster": np.arange(600) // 3}])
def test_weights_and_clusters_are_used(attached: dict[str, Any]) -> None:
    found = local(rows(600, 0.9, **attached), draws=99)
    assert found.p_value <= 0.05
    assert ("region_clusters" in found.parts) == ("cluster" in attached)
    assert found.law.startswith("sign flips" if "cluster" in attached else "exact")


def test_what_is_refused() -> None:
    data = rows(60)
    with pytest.raises(BadInput, match="null='gaussian' is for two classes"):
        local(data, null="gaussian")
    with pytest.raises(BadInput, match="rename the column"):
        local(cal.multiclass_predictions(data.y, data.p, {PREDICTED: data.y}), variables=PREDICTED, draws=19)
    with pytest.raises(NotComputable, match="single row"):
        local(cal.multiclass_predictions([0], [[0.2, 0.3, 0.5]]))
    with pytest.raises(NotComputable, match="row by row, as if those of a cluster were independent"):
        local(rows(60, cluster=np.arange(60) // 3), features="exact", draws=19)
    impossible = cal.multiclass_predictions([0, 2, 1] * 9, [[1, 0, 0], [0.5, 0.5, 0], [0, 1, 0]] * 9)
    found = local(impossible, draws=19)
    assert (found.p_value, found.parts["contradicted"], found.parts["class_adjusted_p"][2]) == (0.0, 9, 0.0)


def test_exact_whichever_of_exchangeable_sets_is_the_data_few_have_a_small_p_value() -> None:
    """Each set takes the place of the data in turn: at most a share alpha of them has a p-value up to alpha."""
    rng, sets = np.random.default_rng(5), 40
    base = rng.normal(size=(3, 1, sets)) + rng.normal(size=(3, 2, sets))  # statistics of a class that go together
    by_class = [ranks_of({"intercept": one[0], "joint": one[1]}) for one in base]
    turned = ([{n: np.roll(v, -j) for n, v in one.items()} for one in by_class] for j in range(sets))
    p = np.array([together_of_classes(one, {"intercept": 3.0, "joint": 1.0}) for one in turned])
    assert all((p <= alpha + 1e-12).sum() <= alpha * sets + 1e-9 for alpha in np.arange(1, sets + 1) / sets)


# ---- The strong test ----

strong = cal.detect.strong_calibration_test


def test_the_strong_test_names_the_pair_of_classes_at_its_peak() -> None:
    found = strong(rows(1000, 0.7), draws=99)
    parts = found.parts
    assert found.p_value == 0.01
    assert (parts["peak_over_class"], parts["peak_under_class"]) == ("cat", "dog")
    assert max(parts["class_adjusted_p"][:2]) <= 0.05
    assert parts["refits"] == found.settings["draws"] == 99
    assert Outcome.from_dict(found.to_dict()) == found


@pytest.mark.parametrize("n", [200, 4200])  # by plain arrays, and by kernels
def test_all_classes_of_the_strong_test_see_one_class_a_row(n: int) -> None:
    data = rows(n)
    made = ClassRows.of(data, None, 0)
    total, words = np.zeros((n, 64)), np.zeros(n, dtype=np.uint64)
    for k in made.classes:
        inputs = detector_inputs(made.joined.one_vs_rest(k), Settings(variables=made.variables).checked())
        search = Repeats(ClassInputs.of(inputs, made.edges[:, k], made.edges[:, k + 1]), 7)
        drawn = search.outcomes(0, 64).T
        bits = search.q.simulated_words(search.order, search.bars.rate, 0, 7)
        assert (np.unpackbits(bits.view(np.uint8), bitorder="little").reshape(n, 64) == drawn).all()
        total[search.order] += drawn
        assert not (words[search.order] & bits).any()
        words[search.order] |= bits
    assert (total == 1).all()


def test_what_the_strong_test_of_classes_refuses() -> None:
    data = rows(100)
    for setting in ({"tolerance": 0.05}, {"alternative": "greater"}, {"null": "fixed"}, {"detector": "paper"}):
        with pytest.raises(BadInput, match="several classes are tested at once at tolerance 0"):
            strong(data, **setting)
    with pytest.raises(NotComputable, match="independent rows only"):
        strong(rows(100, cluster=np.arange(100) // 2))
