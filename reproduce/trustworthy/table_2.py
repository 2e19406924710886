"""Training losses: cross-entropy alone, with the MMCE penalty, and with the MMD penalty.

A logistic regression in PyTorch on the American Housing Survey (tested for income and race), Adult and heart disease
(age and gender). Three quarters of the rows train, the last quarter is judged by Brier score, ECE, and KLCE^2 given the
two variables with its p-value (score width 0.1, gamma 25,
500 permutations). The print names neither epochs nor strengths; those here are the ones of the authors' program
(github.com/ritwikvashistha/I-trustworthy): Adam at 0.01, batches of 32, 100 epochs, penalties times 0.7, the MMD's
kernel of width 25 on all features. Their ECE is the mean over ten equal-width bins whatever their rows, made here with
scikit-learn.

The losses are `repair.objectives`. Beside the published test stands the p-value of `local_calibration_test`. The size
is the number of epochs on the large tables, heart disease always has 100; --full: 100, about 20 CPU minutes.
"""

from typing import Any

import numpy as np
from sklearn.calibration import calibration_curve
from sklearn.model_selection import train_test_split

import calibrant as cal
from reproduce.claim import Claim
from reproduce.experiment import DIFFERS, Experiment, Row
from reproduce.trustworthy.data import Table, adult, heart, housing
from reproduce.trustworthy.table_1 import rejected

LOSSES = "XE", "XE + MMCE", "XE + MMD"
PUBLISHED = {  # Brier score, ECE, KLCE² and p
    ("AHS", "XE"): (0.1699, 0.0193, 0.0006, 0.002),
    ("AHS", "XE + MMCE"): (0.1703, 0.0157, 0.0001, 0.002),
    ("AHS", "XE + MMD"): (0.1711, 0.0266, 0.0003, 0.002),
    ("Adult", "XE"): (0.1080, 0.0478, 0.0009, 0.002),
    ("Adult", "XE + MMCE"): (0.1145, 0.0680, 0.0014, 0.002),
    ("Adult", "XE + MMD"): (0.1092, 0.0360, 0.0015, 0.002),
    ("Heart Disease", "XE"): (0.1162, 0.1014, 0.0031, 0.26),
    ("Heart Disease", "XE + MMCE"): (0.1130, 0.0801, 0.0038, 0.222),
    ("Heart Disease", "XE + MMD"): (0.1150, 0.0964, 0.0028, 0.262),
}
MEASURES = "Brier score", "ECE", "KLCE²", "published p"
FAILS = "level fails, see Figure 5"
THEIRS = f"p by the published test ({FAILS})"
FEW = 600  # rows of a table at the size of a test


def objective(name: str) -> Any:
    """Return the loss of logits, labels and features."""
    from torch import nn

    from calibrant.repair.objectives import CrossEntropyMMCE, CrossEntropyMMD

    if name == "XE":
        entropy = nn.BCEWithLogitsLoss()
        return lambda z, y, _: entropy(z, y.to(z.dtype))
    if name == "XE + MMCE":
        penalised = CrossEntropyMMCE(0.7)
        return lambda z, y, _: penalised(z, y)
    return CrossEntropyMMD(0.7, width=25.0)


def trained(x: Any, y: Any, loss: Any, epochs: int, seed: int) -> Any:
    """Return a linear model, trained."""
    import torch

    torch.manual_seed(seed)
    model = torch.nn.Linear(x.shape[1], 1)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(epochs):
        for batch in torch.randperm(len(y)).split(32):
            if len(batch) > 1:
                optimiser.zero_grad()
                loss(model(x[batch])[:, 0], y[batch], x[batch]).backward()
                optimiser.step()
    return model


def judged(y: Any, p: Any, on: Any, seed: int) -> dict[str, float]:
    """Return the measures of the table, and this library's p-value."""
    data, test = cal.predictions(y, p, on), cal.detect.local_calibration_test
    published = cal.papers.published_local_test(
        data,
        null="permuted",
        score_width=0.1,
        covariate_gamma=25.0,
        normalisation="code",
        draws=500,
        seed=seed,
    )
    happened, stated = calibration_curve(y, p, n_bins=10)
    return {
        "Brier score": cal.measure.brier(data).value,
        "ECE": float(np.abs(happened - stated).mean()),
        "ECE by rows": cal.measure.ece(data, bins=10, strategy="uniform").value,
        "KLCE²": published.statistic,
        "published p": published.p_value,
        "our p": test(data, draws=499, seed=seed).p_value,
    }


def run(size: int, seed: int) -> list[Row]:
    """Return the measures of every table and loss."""
    import torch

    torch.set_num_threads(1)
    tables: dict[str, Table] = {t.name: t for t in (housing(), *([adult()] if size > 1 else []), heart())}
    out: list[Row] = []
    for table in tables.values():
        rows = np.random.default_rng(seed).permutation(len(table.y))[: FEW if size == 1 else None]
        train, test = train_test_split(rows, test_size=0.25, random_state=1090 + seed)
        x = torch.from_numpy(table.scaled().astype(np.float32))
        y = torch.from_numpy(table.y.astype(np.int64))
        epochs = max(size, 100) if len(train) < FEW * 2 and size > 1 else max(size, 2)
        for name in LOSSES:
            model = trained(x[train], y[train], objective(name), epochs, seed)
            with torch.no_grad():
                p = torch.sigmoid(model(x[test])[:, 0].double()).numpy()
            found = judged(table.y[test], p, table.x[list(table.tested)].iloc[test], seed)
            head = {"data": table.name, "tested": len(test), "loss": name}
            published = dict(zip(MEASURES, PUBLISHED[table.name, name], strict=True))
            out.append({**head, **found, **{f"{k} in print": v for k, v in published.items()}})
    return out


def claims(rows: list[Row]) -> dict[str, Claim]:
    """Return what the paper says of the table: of one split, the number nearest to its bound."""
    of = {(r["data"], r["loss"]): r for r in rows}
    large = [r for r in rows if r["data"] != "Heart Disease"]
    small = [r for r in rows if r["data"] == "Heart Disease"]
    unlike = [{tuple(sorted(LOSSES, key=lambda k: of[d, k][m])) for d, _ in of} for m in ("Brier score", "KLCE²")]
    least, off = (
        min(r["published p"] for r in small),
        max(abs(r["Brier score"] - r["Brier score in print"]) for r in rows),
    )
    return {
        f"no loss makes the two large tables locally calibrated: {THEIRS}": rejected([r["published p"] for r in large]),
        "beyond the paper: no loss makes them so by this library's test either": rejected([r["our p"] for r in large]),
        f"heart disease: local calibration is not rejected, whatever the loss: {THEIRS}": Claim(
            least > 0.05, value=least, bound=0.05
        ),
        "the order of the losses differs from table to table": Claim(all(len(orders) > 1 for orders in unlike)),
        "beyond the paper: every Brier score is within 0.02 of the published one": Claim(
            off < 0.02, value=off, bound=0.02
        ),
    }


def side_by_side(rows: list[Row]) -> list[Row]:
    """Return a line for each table and loss, published numbers first."""
    lines = []
    for r in rows:
        line: Row = {"data": r["data"], "loss": r["loss"]}
        for k in MEASURES:
            line[f"p, published ({FAILS})" if k == "published p" else f"{k}, published"] = r[f"{k} in print"]
            line[THEIRS if k == "published p" else k] = round(r[k], 3 if k == "published p" else 4)
        lines.append({**line, "p by this library's test": round(r["our p"], 3)})
    return lines


EXPERIMENT = Experiment(
    items=("Table 2",),
    title="cross-entropy with and without MMCE and MMD penalties",
    status=DIFFERS,
    difference=(
        "Splits and start values are ours; with --quick, two epochs on the large tables, too few to tell XE + MMD from "
        "XE on the housing data. The public Adult has the 45,222 rows of UCI's two files without missing values; "
        "32,561 rows is its training file alone, with them. Features are 10, 103 and 15 here, 11, 104 and 12 in print, "
        "which seems to count the outcome, and heart disease before coding; they are standardised with the mean and "
        "deviation of all rows, not of the training rows. The published KLCE² of XE + MMCE on the housing data, "
        "0.0001, is 0.0010 in the run that the authors' program prints. The form of their MMCE is not known; ours is "
        "the unweighted one, for the weighted destroys a model (training losses)."
    ),
    sizes={"tiny": 1, "quick": 2, "full": 100},
    run=run,
    claims=claims,
    table=side_by_side,
    needs=("torch",),
)
