"""What somebody who knows scikit-learn writes at first: 105 lines, and what each of them does.

``python tests/e2e/guesses.py`` runs them and writes the table of docs/reference/guesses.md.
"""

from __future__ import annotations

import copy
import pickle
import tempfile
import warnings
from functools import cached_property
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import polars as pl
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

import calibrant as cal

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "guesses.md"
START = "| written | does |\n|---|---|\n"
GUESSES = """
cal.measure.ece(y, p)
cal.measure.ece(y_true=y, y_prob=p)
cal.ece(y, p)
cal.measure.expected_calibration_error(data)
cal.measure.brier_score(data)
cal.measure.brier_score_loss(data)
cal.measure.roc_auc(data)
cal.measure.ece(data, n_bins=10)
cal.measure.ece(data, 10)
cal.measure.ece(data)
float(cal.measure.ece(data))
round(cal.measure.ece(data), 3)
cal.measure.ece(data) < 0.05
tuple(cal.measure.ece(data).interval)
cal.measure.ece(data).low
cal.measure.ece(data).to_dict()
cal.measure.ece(data).to_frame()
cal.predictions(y, np.column_stack([1 - p, p]))
cal.predictions(p, y)
cal.predictions(df.y, df.p, df[["sex", "age"]])
cal.predictions(text, p)
cal.predictions(text, p, pos_label="yes")
cal.predictions(y, p, sample_weight=np.ones(len(y)))
cal.audit(y, p, quick=True)
cal.audit(df, label="y", score="p", by="sex", limit=0.05, quick=True)
cal.audit(df)
cal.audit(df, y_true="y", y_prob="p", quick=True)
cal.audit(df, target="y", prob="p")
cal.audit(pl.from_pandas(df), label="y", score="p", by=["sex"], limit=0.05, quick=True)
cal.audit(data, by=sex, limit=0.05, quick=True)
cal.audit(data, groups="sex", limit=0.05)
repr(record)
record._repr_html_()
record.to_frame()
pd.DataFrame(record.groups)
record.to_pandas()
record.to_html()
record.plot()
record.summary()
record.save(folder / "audit.html")
pickle.loads(pickle.dumps(record)) == record
pickle.loads(pickle.dumps(data))
repr(data)
len(data)
data.to_frame()
data.head()
repr(curve)
curve.plot()
curve.chart()
curve.to_frame().head(2)
curve.to_pandas()
pickle.loads(pickle.dumps(curve)) == curve
cal.diagnose.ReliabilityDisplay.from_predictions(y, p, ax=ax)
cal.diagnose.ReliabilityDisplay.from_predictions(y, p, n_bins=10)
cal.diagnose.variable_curve(data, "age", draws=99).plot(ax=ax)
cal.diagnose.rank_variables(data, draws=99).to_frame()
repr(cal.detect.hosmer_lemeshow_test(data))
cal.detect.hosmer_lemeshow_test(data).p_value
cal.detect.hosmer_lemeshow_test(data).pvalue
cal.detect.hosmer_lemeshow(data)
cal.certify.groups(data, by="sex")
cal.certify.groups(data, by="sexx")
cal.certify(data)
cal.measure(data)
cal.compare(data, other)
cal.compare({"a": p, "b": p**0.9}, y)
cal.compare(y, {"a": p, "b": p**0.9})
cal.compare(df.assign(q=p**0.9), label="y", score=["p", "q"])
cal.grades(df, grade="sex")
cal.look(df)
cal.measure.ece(data, alpha=0.95)
cal.measure.ece(data, confidence=0.95)
cal.measure.ece(data, random_state=0)
clone(R.Platt())
R.Isotonic().fit(p, y)
R.Isotonic().fit(data)
fitted.predict(p)
fitted.transform(p)
fitted.predict_proba(p)
fitted(p)
fitted.scores(p)
pickle.loads(pickle.dumps(fitted)).scores(p)
R.Recalibrator(R.Isotonic()).fit(column, y).predict_proba(column)
R.Recalibrator(R.Isotonic()).fit(p, y).predict_proba(p)
R.Recalibrator("isotonic").fit(p, y)
clone(R.Recalibrator(R.Beta()))
GridSearchCV(R.Recalibrator(), {"recipe": [R.Platt(), R.Beta()]}, scoring="neg_log_loss", cv=2).fit(column, y)
GridSearchCV(R.Recalibrator(R.Histogram()), bins, scoring=cal.measure.scorer("ece"), cv=2).fit(column, y)
GridSearchCV(R.Recalibrator(R.Histogram()), bins, scoring=cal.measure.scorer(cal.measure.ece), cv=2).fit(column, y)
R.CalibratedClassifier(forest).fit(X, y).predict_proba(X)
R.CalibratedClassifier(forest, method="isotonic").fit(X, y)
R.CalibratedClassifier(forest, repair="isotonic").fit(X, y)
R.CalibratedClassifier(logistic, cv="prefit").fit(X, y)
R.CalibratedClassifier(LogisticRegression()).fit(X, y, sample_weight=np.ones(len(y)))
pickle.loads(pickle.dumps(R.CalibratedClassifier(LogisticRegression()).fit(X, y))).predict(X)
R.CalibratedClassifier(LogisticRegression())._repr_html_()
R.Recalibrator().set_output(transform="pandas")
make_pipeline(R.CalibratedClassifier(LogisticRegression())).fit(X, y).score(X, y)
R.compare(data, by="sex")
R.CalibratedClassifierCV
cal.audit(logistic, X, y, quick=True)
cal.data.load_employment()
cal.datasets.load_employment()
cal.testing.assert_met(record)
cal.__doc__
""".strip().splitlines()


class Names(dict[str, Any]):
    """What the lines may name; what takes long is made when it is first named."""

    def __init__(self, folder: Path) -> None:
        mpl.use("Agg")
        rng, n = np.random.default_rng(0), 1200
        p, age = rng.uniform(size=n), rng.integers(18, 90, n)
        sex = np.where(rng.uniform(size=n) < 0.5, "f", "m")
        y = (rng.uniform(size=n) < np.where(sex == "f", p, p**1.3)).astype(int)
        super().__init__(
            cal=cal, np=np, pd=pd, pl=pl, pickle=pickle, copy=copy, clone=clone, GridSearchCV=GridSearchCV, R=cal.repair
        )
        self.update(make_pipeline=make_pipeline, LogisticRegression=LogisticRegression, folder=folder)
        self.update(p=p, y=y, sex=sex, df=pd.DataFrame({"y": y, "p": p, "sex": sex, "age": age}))
        self.update(text=np.where(y, "yes", "no"), column=p.reshape(-1, 1), bins={"recipe__bins": [5, 10]})
        self.update(X=pd.DataFrame({"age": age, "z": p}), forest=RandomForestClassifier(3, random_state=0))
        self.update(data=cal.predictions(y, p, {"sex": sex, "age": age}), other=cal.predictions(y, p**0.9))

    def __missing__(self, name: str) -> Any:
        try:
            made = getattr(self, f"a_{name}")
        except AttributeError:
            raise KeyError(name) from None
        self[name] = made
        return made

    @cached_property
    def a_record(self) -> Any:
        return cal.audit(self["data"], by="sex", limit=0.05, quick=True)

    @cached_property
    def a_curve(self) -> Any:
        return cal.diagnose.reliability_curve(self["data"], draws=99)

    @cached_property
    def a_fitted(self) -> Any:
        return cal.repair.Isotonic().fit(self["data"])

    @cached_property
    def a_logistic(self) -> Any:
        return LogisticRegression().fit(self["X"], self["y"])

    @property
    def a_ax(self) -> Any:
        from matplotlib import pyplot as plt

        return plt.subplots()[1]


def line_of(written: str, names: Names) -> str:
    """What one line does, as a row of the table: the type that it returns, or what it raises."""
    from matplotlib import pyplot as plt

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made = eval(written, {}, names)  # noqa: S307 - the lines of this file
    except Exception as e:
        does = f"**{type(e).__name__}**: {' '.join(str(e).split()).replace('|', chr(92) + '|')}"
    else:
        kind = made if isinstance(made, type) else type(made)
        does = f"`{kind.__name__}`"
    finally:
        plt.close("all")
    return f"| `{written}` | {does} |"


def page(lines: list[str]) -> str:
    """The page with its table."""
    raised = sum("| **" in line for line in lines)
    return (
        "# What a scikit-learn user writes\n\n"
        f"{len(lines)} lines that people try first, each run as it stands. {len(lines) - raised} work; {raised} raise, "
        "and say what to write. `R` is `cal.repair`, `data` are predictions, `fitted` is a fitted calibrator.\n\n"
        f"{START}{chr(10).join(lines)}\n"
    )


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        names = Names(Path(folder))
        PAGE.write_text(page([line_of(written, names) for written in GUESSES]), encoding="utf-8")
