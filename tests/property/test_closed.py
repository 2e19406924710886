"""Closed testing by averages of e-values: as if every set were looked at, and never less than Holm finds."""

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from calibrant.certify.closed import refuted
from effort import examples

LOGS = st.lists(st.floats(-5.0, 12.0), min_size=1, max_size=8)
DELTAS = st.sampled_from([0.3, 0.05, 0.001])


def over_every_set(log_e, delta):
    """Reject what every set that holds it rejects."""
    e, found = np.exp(log_e), np.ones(len(log_e), dtype=bool)
    for size in range(1, len(e) + 1):
        for chosen in map(list, itertools.combinations(range(len(e)), size)):
            if e[chosen].mean() * delta < 1.0:
                found[chosen] = False
    return found


def holm(log_e, delta):
    """Holm's procedure with ``1 / e`` as p-values."""
    found = np.zeros(len(log_e), dtype=bool)
    for at in np.argsort(-np.asarray(log_e)):
        if log_e[at] + np.log(delta) < np.log((~found).sum()) + 1e-9:
            break
        found[at] = True
    return found


@given(LOGS, DELTAS)
@examples(200)
def test_as_if_every_set_were_looked_at(log_e, delta):
    short = delta * np.exp(log_e) - 1.0
    worst = min(abs(v + np.minimum(np.delete(short, i), 0.0).sum()) for i, v in enumerate(short))
    if worst > 1e-9:  # else rounding decides
        assert refuted(log_e, delta).tolist() == over_every_set(log_e, delta).tolist()


@given(LOGS, DELTAS)
@examples(100)
def test_never_less_than_holm(log_e, delta):
    assert (refuted(log_e, delta) >= holm(log_e, delta)).all()


@given(st.lists(st.floats(0.0, 3.0), min_size=1, max_size=70), DELTAS)
@examples(100)
def test_all_where_all_reach_the_price_of_one(above, delta):
    assert refuted(np.array(above) - np.log(delta) + 1e-9, delta).all()


def test_evidence_beyond_any_float():
    assert refuted([5000.0, -5000.0, -np.inf], 0.05).tolist() == [True, False, False]
