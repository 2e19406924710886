"""The JSON Schema in the documentation describes exactly the records that audits write."""

from __future__ import annotations

import copy
import json
import re
import runpy
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from jsonschema import Draft202012Validator

import calibrant as cal
from calibrant.audit.record import AuditRecord
from calibrant.errors import BadInput

pytestmark = pytest.mark.xdist_group("schema")  # one process makes the records, each once
FILE = Path(__file__).parents[3] / "docs/schema/calibrant-4.json"
SCHEMA = json.loads(FILE.read_text(encoding="utf-8"))
VALIDATOR = Draft202012Validator(SCHEMA)


def rows(n: int, seed: int = 0, power: float = 1.0) -> Any:
    """Return predictions with groups, one of which is small; `power` above one makes them too high."""
    rng = np.random.default_rng(seed)
    p = rng.uniform(size=n)
    site = np.array(["a", "b", "c", "d"])[np.minimum(np.arange(n) // max(n // 3, 1), 3)]
    covariates = {"site": site, "age": rng.integers(18, 90, n)}
    return cal.predictions(rng.uniform(size=n) < p**power, p, covariates)


def one_class(label: int) -> Any:
    """Return rows that all have the same outcome."""
    return cal.predictions(np.full(300, label), np.linspace(0.1, 0.9, 300))


def visits(weighted: bool) -> Any:
    """Return rows of 100 patients, five each, with groups; weighted or not."""
    held = rows(500)
    patient, w = np.repeat(np.arange(100), 5), np.linspace(0.5, 2.0, 500) if weighted else None
    return cal.predictions(held.y, held.p, held.covariates, cluster=patient, weights=w)


def answers() -> Any:
    """Return rows of 24 persons who answer the same 20 questions."""
    person, question = np.divmod(np.arange(480), 20)
    p = np.random.default_rng(0).choice([0.2, 0.5, 0.7], 480)
    sex = np.array(["f", "m"])[person % 2]
    y = np.random.default_rng(1).uniform(size=480) < p
    return cal.predictions(y, p, {"sex": sex}, cluster={"person": person, "question": question})


def reported_how() -> Any:
    """Return the record of a file of which it was said how it is written."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "log.csv"
        path.write_text("y;p\n" + "0;0,25\n1;0,75\n" * 100, encoding="cp1252")
        form = {"encoding": "cp1252", "delimiter": ";", "decimal": ","}
        return cal.audit(path, label="y", score="p", quick=True, **form)


RECORDS: dict[str, Callable[[], Any]] = {
    "groups and a limit": lambda: cal.audit(
        rows(3001), by=["site", "age"], limit=0.05, outcome="case", date="2026-01-31"
    ),
    "intersections": lambda: cal.audit(rows(1501), by=["site", "age"], intersections=True, limit=0.2, quick=True),
    "no limit": lambda: cal.audit(rows(1501), by="site"),
    "told how it is written": reported_how,
    "other labels": lambda: cal.audit(
        {"y": ["no", "yes", "?"] * 100, "p": [0.2, 3.0, 0.4] * 100},
        label="y",
        score="p",
        positive="yes",
        percent=True,
        quick=True,
    ),
    "over": lambda: cal.audit(rows(1501, power=3.0), by="age", limit=0.02),
    "met, no groups": lambda: cal.audit(rows(3001), limit=0.3, quick=True, steps=7, name="seven steps"),
    "clusters": lambda: cal.audit(visits(False), by="site", limit=0.05, quick=True),
    "units and weights": lambda: cal.audit(visits(True), limit=0.2, quick=True),
    "clusters that cross": lambda: cal.audit(answers(), by="sex", limit=0.3, quick=True),
    "tiny": lambda: cal.audit(rows(5), by="site", limit=0.05),
    "one row": lambda: cal.audit(cal.predictions([1], [0.5]), limit=0.05),
    "all cases": lambda: cal.audit(one_class(1), limit=0.05),
    "no cases": lambda: cal.audit(one_class(0)),
    "scores 0 and 1": lambda: cal.audit(cal.predictions([0, 1, 1, 0] * 30, [0.0, 1.0, 0.0, 1.0] * 30), limit=0.05),
    "labels missing": lambda: cal.audit(
        {"y": [0, 1, None] * 100, "p": [0.2, 0.6, 0.5] * 100, "site": ["a", "b", "a", "b"] * 75},
        label="y",
        score="p",
        by="site",
        missing="keep",
        limit=0.9,
    ),
    "labels of units missing": lambda: cal.audit(
        {"y": [0, 1, None] * 100, "p": [0.2, 0.6, 0.5] * 100, "site": ["a", "b"] * 150, "who": [*range(100)] * 3},
        label="y",
        score="p",
        by="site",
        cluster="who",
        missing="keep",
        limit=0.9,
        quick=True,
    ),
    "a sketch with dropped rows": lambda: cal.audit(
        {"y": ["no", "yes", None] * 100, "p": [0.2, 0.6, 0.5] * 100, "id": list(range(300))},
        label="y",
        score="p",
        key="id",
        positive="yes",
        drop_missing=True,
        limit=0.5,
    ),
}


@cache
def written(name: str) -> str:
    """Return the JSON text of a record, made once."""
    return RECORDS[name]().to_json()


def faults(record: dict[str, Any]) -> list[str]:
    """Return where a record departs from the schema."""
    return [f"{e.json_path}: {e.message[:200]}" for e in VALIDATOR.iter_errors(record)]


@pytest.mark.slow
def test_schema_is_a_schema() -> None:
    Draft202012Validator.check_schema(SCHEMA)


def test_the_schema_is_that_of_the_types() -> None:
    script = runpy.run_path(str(FILE.with_name("generate.py")))
    assert FILE.read_text(encoding="utf-8") == script["text"](), "run docs/schema/generate.py"


@pytest.mark.slow
@pytest.mark.parametrize("name", RECORDS)
def test_real_record_is_valid(name: str) -> None:
    assert faults(json.loads(written(name))) == []


@pytest.mark.slow
def test_every_verdict_and_pool_is_covered() -> None:
    records = [cal.AuditRecord.from_json(written(name)) for name in RECORDS]
    assert {r.verdict for r in records} == {"within", "over", "undecided", "not_checked"}
    assert any(g.pooled for r in records for g in r.groups)
    assert {c.status for r in records for c in r.checks} == set(
        SCHEMA["$defs"]["Check"]["properties"]["status"]["enum"]
    )


def _set(*path: Any, to: Any) -> Callable[[Any], None]:
    def change(record: Any) -> None:
        for key in path[:-1]:
            record = record[key]
        record[path[-1]] = to

    return change


def _drop(*path: Any) -> Callable[[Any], None]:
    def change(record: Any) -> None:
        for key in path[:-1]:
            record = record[key]
        del record[path[-1]]

    return change


BROKEN_RECORDS = {
    "unknown top-level key": _set("extra", to=1),
    "missing key": _drop("data", "fingerprint"),
    "other schema": _set("schema", to="calibrant/1"),
    "unknown verdict": _set("verdict", to="passed"),
    "verdict none in spite of a limit": _set("verdict", to="not_checked"),
    "group under the mask": _set("groups", 0, "rows", to=4),
    "bound over one": _set("everyone", "upper", "interval", "high", to=1.5),
    "rows as text": _set("everyone", "rows", to="3001"),
    "interval without a guarantee": _drop("everyone", "lower", "interval", "guarantee"),
    "an estimate of something else": _set("everyone", "lower", "method", to="certify.rounded"),
    "a refusal without a reason": _set(
        "checks", -1, to={"code": "repair", "status": "not-run", "reason": "", "estimate": None, "outcome": None}
    ),
    "infinite as a bare word": _set("estimates", "gap", "value", to="inf"),
    "unknown estimate": _set("estimates", "accuracy", to=0.9),
    "unknown curve": _set("curves", "lift", to={"method": "", "columns": {}, "settings": {}}),
    "a bin without its rows": _drop("curves", "bins", "columns", "rows"),
    "unknown setting": _set("settings", "threads", to=4),
    "pool of one": _set("groups", 0, "pooled", to=1),
    "rows needed though decided": _set("everyone", "rows_needed", to=-1),
}


# What types cannot say, and `RULES` of the schema do
NOT_BY_TYPE = {"verdict none in spite of a limit", "a refusal without a reason", "pool of one"}


@pytest.mark.parametrize("name", BROKEN_RECORDS)
def test_spoilt_record_is_refused(name: str) -> None:
    record = json.loads(written("groups and a limit"))
    spoilt = copy.deepcopy(record)
    BROKEN_RECORDS[name](spoilt)
    assert faults(record) == []
    assert faults(spoilt)
    if name not in NOT_BY_TYPE:
        with pytest.raises(BadInput, match=r"^[^\n]+$"):
            AuditRecord.from_dict(spoilt)


@pytest.mark.slow
def test_a_refusal_names_the_place() -> None:
    record = json.loads(written("groups and a limit"))
    for change, line in (
        (_drop("data", "repeats", "of"), "object missing required field `of` - at `$.data.repeats`"),
        (_set("settings", "threads", to=4), "object contains unknown field `threads` - at `$.settings`"),
        (_set("groups", 0, "lower", "value", to=1.5), "expected `float` <= 1.0 - at `$.groups[0].lower.value`"),
        (_set("curves", "variable_curve/age", to={}), "missing required field `columns` - at `$.curves.variable_curve"),
    ):
        spoilt = copy.deepcopy(record)
        change(spoilt)
        with pytest.raises(BadInput, match=re.escape(line)):
            AuditRecord.from_dict(spoilt)


@pytest.mark.parametrize(
    ("text", "said"),
    [("[" * 200_000, "nested too deep"), ("9" * 5_000, "has 5,000 digits"), ("[]", "not an audit record")],
    ids=("deep", "long", "list"),
)
def test_json_that_is_no_record_is_refused(text: str, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        AuditRecord.from_json(text)
