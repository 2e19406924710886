"""The report names the unit of time that makes groups of dates."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

import calibrant as cal
from calibrant.report.markdown import render


def test_the_unit_of_dates_is_named() -> None:
    at = np.arange(3000)
    source = pa.table(
        {"y": at % 2, "p": np.full(3000, 0.5), "seen": [f"{2014 + v % 5}-{1 + v % 12:02d}-15" for v in at]}
    )
    record = cal.audit(source, label="y", score="p", by="seen", quick=True)
    assert record.data["variables"]["seen"]["kind"] == "quarter"
    assert "`seen` by quarter" in render(record)
