"""Who is without a label: shares, differences and tests against numbers worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

import calibrant as cal
from calibrant.errors import BadInput, NotComputable
from calibrant.measure.unlabelled import adjusted, independence, standardised_difference


def lost(f: int, m: int) -> object:
    """Return 100 people of each sex, of whom so many have no label."""
    y = np.concatenate([np.repeat([np.nan, 1.0], [f, 100 - f]), np.repeat([np.nan, 0.0], [m, 100 - m])])
    p = np.tile((np.arange(100) + 0.5) / 100, 2)
    return cal.predictions(y, p, {"sex": ["f"] * 100 + ["m"] * 100}, missing="keep")


def test_numbers_by_hand() -> None:
    c = cal.diagnose.missing_labels(lost(30, 10), by="sex", ranges=2).columns
    assert (c["about"], c["variable"][2:]) == (("score", "score", "group", "group"), ("sex", "sex"))
    assert c["level"] == ("0 to 0.495", "0.495 to 1", "f", "m")
    assert (c["rows"], c["unlabelled"]) == ((60, 100, 70, 90), (40, 0, 30, 10))
    assert c["share"] == pytest.approx((0.4, 0.0, 0.3, 0.1))
    # of 40 without 30 are f, of 160 with 70: (.75 - .4375) / sqrt((.1875 + .24609375) / 2)
    assert c["difference"][2] == pytest.approx(0.3125 / np.sqrt((0.1875 + 0.24609375) / 2))
    assert c["difference"][2] == pytest.approx(-c["difference"][3])
    # chi-square of 2 x 2: 200 (70 * 10 - 90 * 30)^2 / (160 * 40 * 100 * 100) = 12.5, one degree of freedom
    assert c["p_value"][2] == pytest.approx(0.000406952, rel=1e-5)
    assert c["p_adjusted"][2] == pytest.approx(c["p_value"][2])  # the score's is smaller, so this one is last
    assert c["p_adjusted"][0] == pytest.approx(2 * c["p_value"][0])


def test_sketch_and_rows_say_the_same_and_ranges_hold_everyone() -> None:
    rows = lost(30, 10)
    whole = cal.sketch({"y": [1.0, None] * 50, "p": np.linspace(0.1, 0.9, 100)}, label="y", score="p", missing="keep")
    found = cal.diagnose.missing_labels(whole, ranges=4)
    assert (sum(found.columns["rows"]), sum(found.columns["unlabelled"])) == (50, 50)
    assert found == cal.diagnose.missing_labels(cal.Sketch.from_bytes(whole.to_bytes()), ranges=4)
    tied = cal.predictions([1, None, 0] * 40, [0.5] * 120, missing="keep")
    assert cal.diagnose.missing_labels(tied).columns["p_value"] == (None,)
    assert cal.diagnose.missing_labels(rows).columns["level"][-1].endswith("to 1")


def test_what_cannot_be_told_is_none() -> None:
    assert standardised_difference(0, 40, 0, 60) == 0.0
    assert standardised_difference(40, 40, 0, 60) is None  # all on one side, nobody on the other
    assert independence([9, 0], [1, 0]) is None
    assert independence([3, 3], [1, 2]) is None  # Cochran
    assert independence([30, 30], [0, 0]) is None
    assert independence([30, 30], [10, 10]) == 1.0
    assert adjusted([0.04, None, 0.01]) == [0.04, None, 0.02]


def test_what_cannot_be_asked_is_said() -> None:
    with pytest.raises(NotComputable, match='missing="keep"'):
        cal.diagnose.missing_labels(cal.predictions([0, 1], [0.2, 0.7]))
    with pytest.raises(NotComputable, match="no label is missing"):
        cal.diagnose.missing_labels(cal.predictions([0, 1], [0.2, 0.7], missing="keep"))
    with pytest.raises(BadInput, match="ranges"):
        cal.diagnose.missing_labels(lost(3, 1), ranges=1)
