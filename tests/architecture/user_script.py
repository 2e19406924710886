"""What a user writes: it runs, and a type checker finds nothing to say. Not collected: `test_user_types` runs it."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

import calibrant as cal
from calibrant.results import Curve

rng = np.random.default_rng(0)
n = 4_000
age, sex, score = rng.integers(18, 90, n), rng.choice(["female", "male"], n), rng.uniform(0.05, 0.95, n)
label = (rng.uniform(size=n) < np.clip(score + np.where(age > 65, 0.1, 0.0), 0.0, 1.0)).astype(int)

data = cal.predictions(label, score, {"age": age, "sex": sex}, weights=None, name="trial")
rows: int = data.n + data.events

table = {"label": label, "score": score, "age": age, "sex": sex}
read = cal.read(table, label="label", score="score", by=["age", "sex"])
whole = cal.sketch(table, label="label", score="score", by="sex", variables="*", progress=lambda event_now: None)
both: cal.Sketch = whole.merge(cal.sketch(table, spec=whole.spec), allow_same=True)

# ---- audit ----

record: cal.AuditRecord = cal.audit(read, by=["sex"], limit=0.05, steps=50, quick=True, progress=print)
verdict: str = record.verdict
worst = max(record.groups, key=lambda g: g.lower.interval.low)
reported: list[tuple[str, float, float]] = [(g.id, g.lower.interval.low, g.upper.interval.high) for g in record.groups]
brier: float = record.estimates["brier"].value
ranked = record.curve("ranking").columns["variable"]
by_variable = record.family("variable_curve")["age"].columns["gap"]
again: cal.AuditRecord = cal.AuditRecord.from_json(record.to_json())
status: int = again.exit_status
with tempfile.TemporaryDirectory() as folder:
    page: Path = record.save(Path(folder) / "audit.html")
    kept: cal.AuditRecord = cal.AuditRecord.load(record.save(f"{folder}/audit.json"))

# ---- certify, measure ----

shown: float = cal.certify.rounded(data, steps=100, alpha=0.05, side="upper").interval.high
groups = {name: e.interval.low for name, e in cal.certify.groups(data, by="sex").items()}
needed: float = cal.certify.rows_needed(0.02).value
error: float = cal.measure.ece(data, bins=15).value + cal.measure.brier(whole).value
plain: bool = cal.measure.brier(data) < 0.25 and 0.1 in cal.measure.brier(data).interval
text: str = f"{cal.measure.ece(data):.3f}"
size: float = float(cal.measure.ece(data)) + cal.measure.ece(data).low
by_group = {name: e.value for name, e in cal.measure.by_group(cal.measure.auroc, data, by="sex").items()}

# ---- detect, diagnose ----

p_value: float = cal.detect.local_calibration_test(data, variables=["age"], draws=99, seed=1).p_value
spiegelhalter: float = cal.detect.spiegelhalter_test(data).p_value
curve: Curve = cal.diagnose.variable_curve(data, "age", draws=99)
gaps = [float(g) for g in curve.columns["gap"]]
first: str = cal.diagnose.rank_variables(data, draws=99).columns["variable"][0]

# ---- repair ----

fitted = cal.repair.Platt().fit(data)
repaired: cal.Predictions = fitted(data)
found = cal.repair.evaluate(data, repairs=[cal.repair.Platt(), cal.repair.Isotonic()], tests=())
recommended: str = found.recommended

# ---- several classes ----

many = cal.multiclass_predictions([0, 2, 1], [[0.7, 0.2, 0.1], [0.1, 0.1, 0.8], [0.5, 0.3, 0.2]])
confidence: cal.Predictions = many.top_label()

try:
    cal.certify.rounded(cal.predictions([0, 1], [0.2, 0.7]), steps=1)
except cal.BadInput as e:
    refusal: str = str(e)
