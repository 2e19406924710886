"""Maps of variables: what they mend, what they leave alone, and what they cost. CPU time of this process.

    OMP_NUM_THREADS=1 python benchmarks/repair/variables.py PART [DATA]

PART is adult, calibrated, planted, homeowners or cost; DATA the folder of adult_out.parquet and ahs_2019.parquet.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import calibrant as cal
from calibrant.stats.smoothing import Spots, kernel_bias

REPAIR = cal.repair


def expit(eta: Any) -> Any:
    return 1.0 / (1.0 + np.exp(-eta))


def log_loss(data: Any) -> float:
    p = np.clip(data.p, 1e-9, 1 - 1e-9)
    return float(-np.mean(data.y * np.log(p) + (1 - data.y) * np.log1p(-p)))


def line(name: str, *values: Any) -> None:
    print(f"{name:34s}", *(f"{v:10.4f}" if isinstance(v, float) else f"{v!s:>10s}" for v in values), flush=True)


def adult(folder: Path) -> None:
    """Fit on 2,500 rows, judge on 13,781; means of five splits."""
    import pyarrow.parquet as pq

    table = pq.read_table(folder / "adult_out.parquet").to_pandas()
    recipes = {
        "as it is": None,
        "Beta": REPAIR.Beta(),
        "VariableTree, published": REPAIR.VariableTree(variables="age", depth=3, leaf=0.1, paper=True),
        "VariableTree": REPAIR.VariableTree(variables="age"),
        "AugmentedBeta": REPAIR.AugmentedBeta(variables="age"),
        "AugmentedLogistic, quadratic": REPAIR.AugmentedLogistic(variables="age", quadratic=True),
        "LocalBias": REPAIR.LocalBias(variables="age"),
    }
    line("", "ECE", "VECE(age)", "confidence", "log loss", "AUROC")
    for name, recipe in recipes.items():
        found = []
        for split in range(5):
            order = np.random.default_rng([31, split]).permutation(len(table))
            fit, test = (
                cal.predictions(t["actual"].to_numpy(), t["prob_1"].to_numpy(), {"age": t["age"].to_numpy()})
                for t in (table.iloc[order[:2500]], table.iloc[order[2500:]])
            )
            out = test if recipe is None else recipe.fit(fit)(test)
            by_variable = [cal.measure.vece(out, "age", view=v, draws=99).value for v in ("probability", "confidence")]
            found.append((cal.measure.ece(out).value, *by_variable, log_loss(out), cal.measure.auroc(out).value))
        line(name, *(float(v) for v in np.mean(found, axis=0)))


def drawn(n: int, seed: int, wave: float) -> tuple[Any, Any]:
    """Return rows and their true rates; a wave of error along x, of the other sign for high scores."""
    rng = np.random.default_rng([32, seed])
    x, town, p = rng.uniform(-3, 3, n), rng.choice(list("abcd"), n), rng.uniform(0.1, 0.9, n)
    truth = expit(np.log(p / (1 - p)) + wave * np.sin(2 * x) * (0.5 - p))
    return cal.predictions(rng.uniform(size=n) < truth, p, {"x": x, "town": town}), truth


RECIPES = {
    "Platt": REPAIR.Platt(),
    "Isotonic": REPAIR.Isotonic(),
    "AugmentedBeta": REPAIR.AugmentedBeta(variables=["x", "town"]),
    "VariableTree": REPAIR.VariableTree(variables=["x", "town"]),
    "Multicalibrator": REPAIR.Multicalibrator(),
    "LocalBias": REPAIR.LocalBias(),
}


def calibrated(_folder: Path) -> None:
    """Mean move of the scores of a calibrated model, 20 data sets."""
    line("rows", *RECIPES)
    for n in (500, 2_000):
        new, _ = drawn(4_000, 999, 0.0)
        moved = [
            [float(np.abs(r.fit(d)(new).p - new.p).mean()) for r in RECIPES.values()]
            for d in (drawn(n, s, 0.0)[0] for s in range(20))
        ]
        line(f"{n:,}", *(float(v) for v in np.mean(moved, axis=0)))


def averaged(fit: Any, new: Any) -> Any:
    """Return eq. 7 at new rows: the kernel-weighted mean residual of the fit rows, added and cut to [0, 1]."""
    spots = []
    for d in (fit, new):
        z = np.column_stack([d.p, d.covariates.column("x").to_numpy()])
        spots.append((z, np.unique(d.covariates.column("town").to_pylist(), return_inverse=True)[1]))
    width = 0.75 * spots[0][0].std(axis=0) * (0.2 * fit.n / 4) ** (-1 / 6)
    made = [Spots(np.hstack([z / width, np.zeros((len(z), 1))]), np.column_stack([0 * c, 0 * c, c])) for z, c in spots]
    return np.clip(new.p + kernel_bias(made[0], np.ones(fit.n), fit.y - fit.p, made[1], same=False)[0], 0, 1)


def planted(_folder: Path) -> None:
    """Mean distance from the true rate on new rows."""
    line("rows", "as it is", "eq. 7", *RECIPES)
    new, truth = drawn(8_000, 999, 4.0)
    for n in (2_000, 8_000, 32_000):
        fit, _ = drawn(n, 1, 4.0)
        off = [
            float(np.abs(q - truth).mean())
            for q in (new.p, averaged(fit, new), *(r.fit(fit)(new).p for r in RECIPES.values()))
        ]
        line(f"{n:,}", *off)


def homeowners(folder: Path) -> None:
    """Local test on 10,000 rows after a fit on 26,660; models trained on 12,000 others."""
    import pyarrow.parquet as pq
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression

    t = pq.read_table(folder / "ahs_2019.parquet").to_pandas().drop(columns=["Unnamed: 0"])
    order = np.random.default_rng(33).permutation(len(t))
    train, test, fit = t.iloc[order[:12_000]], t.iloc[order[12_000:22_000]], t.iloc[order[22_000:]]
    names = [c for c in t.columns if c != "OWNER"]
    levels = {"BLACK", "HHSEX", "METRO", "HHMAR", "HHCITSHP", "DIVISION"}
    middle, spread = train[names].mean(), train[names].std()
    models = {
        "constant": None,
        "logistic": LogisticRegression(max_iter=2000),
        "forest": RandomForestClassifier(100, min_samples_leaf=5, random_state=0),
    }
    line("", "p", "p local", "log loss", "fit CPU s")
    for model, classifier in models.items():
        if classifier is not None:
            classifier.fit((train[names] - middle) / spread, train["OWNER"])
        for columns in (["HINCP", "BLACK"], names):
            fit_rows, test_rows = (
                cal.predictions(
                    d["OWNER"].to_numpy(),
                    np.full(len(d), train["OWNER"].mean())
                    if classifier is None
                    else classifier.predict_proba((d[names] - middle) / spread)[:, 1],
                    {c: d[c].astype(str).to_numpy() if c in levels else d[c].to_numpy() for c in columns},
                )
                for d in (fit, test)
            )
            for name, recipe in {
                "as it is": None,
                "Platt": REPAIR.Platt(),
                "Isotonic": REPAIR.Isotonic(),
                "Multicalibrator": REPAIR.Multicalibrator(),
                "LocalBias": REPAIR.LocalBias(),
            }.items():
                start = time.process_time()
                fitted = None if recipe is None else recipe.fit(fit_rows)
                cost = time.process_time() - start
                out = test_rows if fitted is None else fitted(test_rows)
                r = cal.detect.local_calibration_test(out)
                line(
                    f"{model}, {len(columns)} variables, {name}",
                    float(r.p_value),
                    float(r.parts["p_local"]),
                    log_loss(out),
                    cost,
                )


def cost(_folder: Path) -> None:
    """CPU seconds of a fit, and microseconds a repaired row, at ten numbers."""
    REPAIR.AugmentedLogistic(variables="x").fit(drawn(500, 0, 0.0)[0])  # loads scikit-learn
    line("", "rows", "fit s", "us a row", "JSON bytes")
    for n in (10_000, 100_000):
        rng = np.random.default_rng(34)
        x = {f"x{j}": rng.normal(size=n) for j in range(10)}
        p = expit(rng.normal(size=n))
        data = cal.predictions(rng.uniform(size=n) < expit(np.log(p / (1 - p)) + 0.3 * np.sin(2 * x["x0"])), p, x)
        for name in ("AugmentedLogistic", "AugmentedBeta", "VariableTree", "LocalBias"):
            start = time.process_time()
            fitted = getattr(REPAIR, name)(variables=list(x)).fit(data)
            middle = time.process_time()
            fitted(data)
            line(name, f"{n:,}", middle - start, (time.process_time() - middle) / n * 1e6, len(fitted.to_json()))


if __name__ == "__main__":
    {f.__name__: f for f in (adult, calibrated, planted, homeowners, cost)}[sys.argv[1]](
        Path(sys.argv[2] if len(sys.argv) > 2 else ".")
    )
