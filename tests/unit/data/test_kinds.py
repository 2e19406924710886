"""What columns are taken for."""

from __future__ import annotations

import uuid
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from calibrant.data.profile import ColumnProfile
from calibrant.data.specs.column_names import names_code

RNG = np.random.default_rng(0x51D5)
N = 1000
COLUMNS: list[tuple[str, Any, str]] = [
    ("a row counter", np.arange(N), "id"),
    ("numbers of people", RNG.permutation(10**6)[:N], "id"),
    ("amounts in cents", np.rint(RNG.lognormal(12, 0.6, N)).astype(int), "number"),
    ("account_id", np.unique(np.rint(RNG.lognormal(12, 0.6, N)).astype(int)), "id"),
    ("large numbers of people", 10**18 + RNG.permutation(N), "id"),
    ("UUIDs", [str(uuid.UUID(int=int(v))) for v in RNG.integers(1, 2**62, 50)], "id"),
    ("names", [f"person {v}" for v in range(N)], "id"),
    ("a measurement", RNG.normal(size=N), "number"),
    ("a measurement in whole numbers", RNG.integers(20, 200, N), "number"),
    ("a change in whole numbers", RNG.permutation(2 * 10**6)[:N] - 10**6, "number"),
    ("a code with leading zeros", [f"{v:05d}" for v in RNG.integers(0, 90, N)], "code"),
    ("large codes", 10**18 + RNG.integers(0, 20, N), "code"),
    ("zip", RNG.integers(10_000, 10_090, N), "code"),
    ("hospital_id", RNG.integers(1, 15, N), "code"),
    ("hospital_id", RNG.integers(1, 15, N) + 0.5, "number"),
    ("n_hospital", RNG.integers(1, 15, N), "number"),
    ("days as text", [f"2024-03-{v:02d}" for v in RNG.integers(1, 30, N)], "date"),
    ("times as text", [f"2024-03-{v:02d}T10:30:00Z" for v in RNG.integers(1, 30, N)], "date"),
    ("almost days as text", [f"2024-13-{v:02d}" for v in RNG.integers(1, 30, N)], "category"),
    ("days", pa.array(RNG.integers(0, 20_000, N).astype(np.int32), pa.date32()), "date"),
    ("zeros and ones", RNG.integers(0, 2, N), "label"),
    ("truth", RNG.integers(0, 2, N) > 0, "label"),
    ("answers", np.array(["Yes", "No", ""])[RNG.integers(0, 3, N)], "label"),
    ("texts", np.array(["m", "f"])[RNG.integers(0, 2, N)], "category"),
    ("one value", np.full(N, 3.0), "constant"),
    ("nothing", pa.nulls(N), "constant"),
    ("lists", [[1], [2]], "unusable"),
]


@pytest.mark.parametrize(("name", "values", "kind"), COLUMNS, ids=[f"{name}, {kind}" for name, _, kind in COLUMNS])
def test_what_a_column_is_taken_for(name: str, values: Any, kind: str) -> None:
    found = ColumnProfile(pa.chunked_array([pa.array(values)]), name)
    assert found.kind == kind, found.why
    assert found.why


def test_missing_ends_and_examples_are_told() -> None:
    found = ColumnProfile(pa.chunked_array([pa.array([3.5, None, float("nan"), -1.0, 2.0])]), "x")
    assert (found.missing, found.distinct, found.low, found.high) == (2, 3, "-1", "3.5")
    assert found.examples == ("3.5", "-1", "2")


CODES = (
    "hospital_id id ID siteCode customer_no zip zip_code icd9 icd10_code hospital ward patientid room_number site_num"
)
CODES += " code_postal id_hospital state place_of_birth_code admission_type_id region2 Kunden-Nr"
QUANTITIES = (
    "number_of_visits n_hospital num_visits num_patient no_of_patient number_diagnoses age year month_id year_no"
)
QUANTITIES += (
    " time_in_hospital distance_to_hospital days_in_ward comorbidity_index index paid grid covid num n_ids score"
)


@pytest.mark.parametrize("name", CODES.split())
def test_names_of_codes(name: str) -> None:
    assert names_code(name)


@pytest.mark.parametrize("name", QUANTITIES.split())
def test_names_of_quantities(name: str) -> None:
    assert not names_code(name)
