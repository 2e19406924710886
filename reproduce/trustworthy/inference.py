"""Figures 1 and 2 share this: models judged on random splits by the usual scores and by what they infer."""

from collections.abc import Callable, Iterable
from typing import Any

import altair as alt
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import calibrant as cal
from calibrant.repair import AugmentedLogistic
from reproduce import claim
from reproduce.claim import Claim
from reproduce.experiment import Row
from reproduce.trustworthy.data import Table, housing

FEW = 10  # splits from which on all rows are used
SCORES = "accuracy", "Brier score", "ECE"
MISSED = "interval excludes 0"
WRONG = "the 95 % interval of its bias excludes 0 in most splits"
RIGHT = "its mean bias over splits is within two standard deviations / root of the number of splits"
Models = dict[str, tuple[list[str], Any]]  # name: features, estimator


def regression() -> Any:
    """Return a logistic regression."""
    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))


def judged(data: Any, bias: Any) -> dict[str, float]:
    """Return a model's usual scores, and what it infers beside its bias."""
    return {
        "accuracy": float(np.mean((data.p >= 0.5) == data.y)),
        "Brier score": cal.measure.brier(data).value,
        "ECE": cal.measure.ece(data, bins=10, strategy="uniform").value,
        "inferred": bias.settings["inferred"],
        "bias": bias.value,
        MISSED: float(not bias.interval.low <= 0 <= bias.interval.high),
    }


def one_split(
    table: Table, models: Models, by_variable: str, held: float, infer: Callable[[Any], Any], seed: int
) -> dict[str, dict[str, float]]:
    """Train and judge the models on one split, and the first one once more, repaired along what is inferred."""
    train, test = train_test_split(np.arange(len(table.y)), test_size=held, random_state=seed)
    found: dict[str, dict[str, float]] = {}
    for name, (seen, model) in models.items():
        model.fit(table.x[seen].iloc[train], table.y[train])
        p = model.predict_proba(table.x[seen].iloc[test])[:, 1]
        data = cal.predictions(table.y[test], p, table.x[[by_variable]].iloc[test])
        if not found:
            halves = np.array_split(np.arange(len(test)), 2)
            column = table.x[by_variable].to_numpy()[test]
            parts: list[Any] = [cal.predictions(data.y[h], data.p[h], {by_variable: column[h]}) for h in halves]
            repaired = AugmentedLogistic(variables=by_variable).fit(parts[0])(parts[1])
            found[f"{name}, repaired"] = judged(repaired, infer(repaired))
        found[name] = judged(data, infer(data))
    return {m: found[m] for m in (*models, *(m for m in found if m not in models))}


def over_splits(
    size: int, seed: int, held: float, models: Callable[[Table], Models], asked: Callable[[Table], tuple[str, Any]]
) -> list[Row]:
    """Return means, deviations and histograms over splits."""
    table = housing()
    if size < FEW:
        rows = np.random.default_rng(seed).permutation(len(table.y))[:6000]
        table = Table(**{**vars(table), "x": table.x.iloc[rows].reset_index(drop=True), "y": table.y[rows]})
    by_variable, infer = asked(table)
    found = [one_split(table, models(table), by_variable, held, infer, 1000 * seed + i) for i in range(size)]
    out: list[Row] = []
    for measure in (*SCORES, "inferred", "bias", MISSED):
        values = {m: np.array([f[m][measure] for f in found]) for m in found[0]}
        for model, v in values.items():
            head = {"data": table.name, "model": model, "measure": measure}
            out.append({**head, "kind": "summary", "mean": v.mean(), "sd": v.std(), "splits": size})
            if measure in (*SCORES, "inferred"):
                edges = np.histogram_bin_edges(np.concatenate(list(values.values())), 12 + size // 8)
                for count, low, high in zip(np.histogram(v, edges)[0], edges[:-1], edges[1:], strict=True):
                    out += [{**head, "kind": "bar", "low": low, "high": high, "splits": count}] * bool(count)
    return out


def summary(rows: Iterable[Row]) -> dict[str, dict[str, tuple[float, float]]]:
    """Return mean and deviation by model and measure."""
    found: dict[str, dict[str, tuple[float, float]]] = {}
    for r in rows:
        if r["kind"] == "summary":
            found.setdefault(r["model"], {})[r["measure"]] = r["mean"], r["sd"]
    return found


def of_means(rows: list[Row], measure: str, weights: dict[str, float], **bound: Any) -> Claim:
    """Return the claim of a weighted sum of models' means over splits, as if models and splits were independent.

    Two models judged on the same rows err alike, which makes the interval of their difference too wide; splits share
    rows, which makes it a bit short.
    """
    s, splits = summary(rows), splits_of(rows)
    value = sum(w * s[m][measure][0] for m, w in weights.items())
    error = np.sqrt(sum((w * s[m][measure][1]) ** 2 for m, w in weights.items()) / splits)
    return claim.mean(float(value), float(error), splits, **bound)


def splits_of(rows: list[Row]) -> int:
    """Return the number of splits."""
    return next(int(r["splits"]) for r in rows if r["kind"] == "summary")


def better(rows: list[Row], a: str, b: str, measure: str) -> Claim:
    """Return whether one model is better than another on average."""
    sign = 1.0 if measure == "accuracy" else -1.0
    return of_means(rows, measure, {a: sign, b: -sign}, above=0.0)


def biased(rows: list[Row], model: str) -> Claim:
    """Return whether the 95 % interval of the bias excludes 0 in most splits."""
    splits = splits_of(rows)
    return claim.share(round(summary(rows)[model][MISSED][0] * splits), splits, above=0.5)


def unbiased(rows: list[Row], model: str) -> Claim:
    """Return whether the mean bias is within two standard errors of 0 (splits share rows: these are a bit short)."""
    mean, sd = summary(rows)[model]["bias"]
    splits = splits_of(rows)
    if splits < 2:
        return Claim(None, splits)
    wide = float(f"{2 * sd / np.sqrt(splits):.6g}")
    return Claim(bool(abs(mean) < wide), splits, mean, mean - wide, mean + wide, 0.0)


def side_by_side(rows: list[Row]) -> list[Row]:
    """Return a line for each model; there is no number in print."""
    return [
        {
            "model": model,
            "published": "no numbers in print",
            **{m: round(v[m][0], 4) for m in (*SCORES, "inferred", "bias")},
            "standard deviation of the bias": round(v["bias"][1], 4),
            "splits whose 95 % interval of the bias excludes 0": f"{v[MISSED][0]:.0%}",
        }
        for model, v in summary(rows).items()
    ]


def drawn(rows: list[Row], inferred: str) -> Any:
    """Draw histograms over splits as the paper does, with what is inferred on the right (dashed: the truth)."""
    panels = []
    for measure in (*SCORES, "inferred"):
        x = alt.X(
            "low:Q",
            title=inferred if measure == "inferred" else measure,
            scale=alt.Scale(zero=False, nice=False),
            axis=alt.Axis(tickCount=3),
        )
        y = alt.Y("splits:Q", title="splits" if measure == "accuracy" else None).stack(None)
        color = alt.Color("model:N", title=None, legend=alt.Legend(orient="top"))
        bars = [r for r in rows if r["kind"] == "bar" and r["measure"] == measure]
        panel = (
            alt.Chart(alt.Data(values=bars))
            .mark_rect(opacity=0.6)
            .encode(x=x, x2="high:Q", y=y, y2=alt.datum(0), color=color)
        )
        if measure == "inferred":
            first = next(iter(summary(rows).values()))
            truth = [{"low": first["inferred"][0] - first["bias"][0]}]
            panel += alt.Chart(alt.Data(values=truth)).mark_rule(strokeDash=[4, 3]).encode(x="low:Q")
        panels.append(panel.properties(width=135, height=130))
    return alt.hconcat(*panels)
