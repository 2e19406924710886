"""Networks as the paper describes them, each with its calibration rows and its test rows."""

import warnings
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

import calibrant as cal
from reproduce import sources
from reproduce.variable import data
from reproduce.variable.data import NUMBERS, Rows


@dataclass(frozen=True)
class Fold:
    """Calibration and test rows of one network; `zero` is the probability that it states of the class 0 of each."""

    fit: Any
    test: Any
    zero_fit: Any
    zero_test: Any


AUTHORS = {  # file: rows that calibrate, variables of interest
    "adult": (2_500, NUMBERS),
    "bank": (1_000, ("age", "balance")),
    "cardio": (6_000, ("age",)),
}


def authors(name: str = "adult", deal: tuple[int, int] | None = None) -> list[list[Fold]]:
    """Return the authors' predictions, dealt as theirs, or at random by the seed `deal`; nothing if not here."""
    try:
        table = read(name)
    except sources.Missing:
        return []
    size, columns = AUTHORS[name]
    draw = np.random.RandomState(0) if deal is None else np.random.default_rng([29, *deal])  # 0: theirs
    order = draw.permutation(len(table))
    parts = table.iloc[order[:size]], table.iloc[np.sort(order[size:])]
    fit, test = (
        cal.predictions(t["actual"].to_numpy(), t["prob_1"].to_numpy(), {c: t[c].to_numpy() for c in columns})
        for t in parts
    )
    return [[Fold(fit, test, *(t["prob_0"].to_numpy() for t in parts))]]


@cache
def read(name: str) -> Any:
    """Return the authors' file of predictions; of the cardiovascular data people older than 32, as they do."""
    import pandas as pd

    table = pd.read_parquet(sources.shared(f"{name}_out.parquet"))
    return table[table["age"] > 32] if name == "cardio" else table


def network(hidden: tuple[int, ...], epochs: int, scaled: bool, seed: int, early: bool = False) -> Any:
    """Multi-layer perceptron; inputs as they are or standardised, weights the last or (early) the best on a tenth."""
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    inside = MLPClassifier(hidden, max_iter=epochs, random_state=seed, early_stopping=early)
    return make_pipeline(StandardScaler(), inside) if scaled else inside


def trained(model: Any, x: Any, y: Any) -> Any:
    """Train for the epochs asked for, converged or not."""
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(x, y)


def fold(rows: Rows, p: Any, fit: Any, test: Any) -> Fold:
    """Put a network's probabilities beside what happened."""
    made = [cal.predictions(rows.y[i], p[i], {k: v[i] for k, v in rows.columns.items()}) for i in (fit, test)]
    return Fold(*made, *(1.0 - p[i] for i in (fit, test)))


def hash_split(n: int, shares: tuple[float, float], seed: int) -> list[Any]:
    """Deal rows to training, calibration and test; `shares` of the first two."""
    cuts = [round(n * shares[0]), round(n * sum(shares))]
    return np.split(np.random.default_rng([17, seed]).permutation(n), cuts)


def adult(n: int, seed: int, networks: int = 3) -> list[list[Fold]]:
    """Networks of 100 and 75 on n rows of Adult (one on few), each with its own deal, as 32,561 to 2,500 to 13,781."""
    rows, rounds = data.adult().some(n, seed), []
    for k in range(networks if n > 10_000 else 1):
        train, fit, test = hash_split(len(rows.y), (32_561 / 48_842, 2_500 / 48_842), seed + k)
        model = trained(network((100, 75), 20, False, seed + k, early=True), rows.x[train], rows.y[train])
        rounds.append([fold(rows, model.predict_proba(rows.x)[:, 1], fit, test)])
    return rounds


def reviews(n: int, seed: int) -> list[list[Fold]]:
    """A network on weighted words of film reviews; 70.5, 10 and 19.5 % of the rows."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    rows = data.reviews(n, seed)
    train, fit, test = hash_split(len(rows.y), (0.705, 0.1), seed)
    words = TfidfVectorizer(sublinear_tf=True, max_features=20_000, dtype=np.float32).fit(rows.x[train])
    x = words.transform(rows.x)
    model = trained(network((32,), 8, False, seed), x[train], rows.y[train])
    return [[fold(rows, model.predict_proba(x)[:, 1].astype(float), fit, test)]]


def cross_fitted(rows: Rows, networks: int, epochs: int, seed: int) -> list[list[Fold]]:
    """Rounds of five networks: each is trained on three fifths of the rows, calibrated on one and tested on one."""
    rounds: list[list[Fold]] = []
    for k in range(networks):
        part = np.random.default_rng([23, seed, k // 5]).permutation(len(rows.y)) % 5
        train, fit, test = ((part + 5 - k % 5) % 5 > 1, (part + 5 - k % 5) % 5 == 1, (part + 5 - k % 5) % 5 == 0)
        model = trained(network((100, 75), epochs, True, seed + k), rows.x[train], rows.y[train])
        if k % 5 == 0:
            rounds.append([])
        rounds[-1].append(fold(rows, model.predict_proba(rows.x)[:, 1], fit, test))
    return rounds


def digits(seed: int, n: int = 1_797) -> Fold:
    """A network of 64, trained to the end on a quarter of the digits; half calibrate, a quarter is tested."""
    rows = data.digits().some(n, seed)
    train, fit, test = hash_split(len(rows.y), (0.25, 0.5), seed)
    p = trained(network((64,), 400, False, seed), rows.x[train], rows.y[train]).predict_proba(rows.x)
    hard = data.ambiguity(rows.x, rows.x[train], rows.y[train])
    made = [cal.multiclass_predictions(rows.y[i], p[i], {"ambiguity": hard[i]}) for i in (fit, test)]
    return Fold(*made, *(1.0 - p[i] for i in (fit, test)))
