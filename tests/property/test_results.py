"""Whatever a result holds, what `to_dict` writes makes an equal one, through JSON too."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from calibrant.results import Curve, Estimate, Interval, Outcome, Plain

finite = st.floats(allow_nan=False, allow_infinity=False)
number = st.floats(allow_nan=False)
word = st.one_of(st.text(max_size=6), st.sampled_from(("inf", "-inf", "\\inf", "nan", "\\\\-inf")))
value = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(2**60), 2**60), number, word),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(word, inner, max_size=3)),
    max_leaves=8,
)
settings = st.dictionaries(word, value, max_size=4)
intervals = st.builds(
    Interval, low=number, high=number, level=finite, guarantee=st.sampled_from(("finite-sample", "asymptotic"))
)
estimates = st.builds(
    Estimate,
    method=word,
    value=number,
    unit=word,
    n=st.integers(0, 2**40),
    interval=intervals,
    assumes=word,
    settings=settings,
)
outcomes = st.builds(
    Outcome,
    method=word,
    statistic=number,
    p_value=finite,
    alternative=word,
    null=word,
    law=word,
    settings=settings,
    parts=settings,
)
columns = st.dictionaries(word, st.tuples(value, value), max_size=3)
curves = st.builds(Curve, method=word, columns=columns, settings=settings)


def tupled(v: Any) -> Any:
    """Return what comes back: lists are tuples."""
    if isinstance(v, dict) or hasattr(v, "keys"):
        return {k: tupled(x) for k, x in v.items()}
    return tuple(map(tupled, v)) if isinstance(v, (list, tuple)) else v


@given(st.one_of(intervals, estimates, outcomes, curves))
def test_results_come_back_equal(one: Plain) -> None:
    again = type(one).from_dict(json.loads(json.dumps(one.to_dict(), allow_nan=False)))
    assert again == one
    assert hash(again) == hash(one)
    assert again.to_dict() == one.to_dict()
    for name in ("settings", "columns", "parts"):
        if hasattr(one, name):
            assert tupled(getattr(again, name)) == tupled(getattr(one, name))
