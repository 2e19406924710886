"""The published tables and the authors' values, recomputed by the published procedure.

Settings that the print leaves open, from the authors' files: 2,500 calibration rows by numpy's legacy
``RandomState(0).permutation``; Platt scaling on the raw probability with scikit-learn's default ridge; beta calibration
likewise; scaling-binning of each class by its authors' program (uncertainty-calibration, whose module is
`calibration`); correctness by the uncalibrated argmax; error bins of Table 2 on the uncalibrated predicted error.
"""

import json

import numpy as np
import pytest

import calibrant as cal

VARIABLES = ("age", "fnlwgt", "education-num", "hours-per-week", "capital-gain", "capital-loss")


def fitted(features, y, at, **settings):
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(**settings).fit(features, y).predict_proba(at)


def beta_features(p):
    p = np.where(p == 0, 1e-4, np.where(p == 1, 1 - 1e-4, p))
    return np.column_stack([np.log(p), -np.log(1 - p)])


def scaling_binning(fit, y, at):
    authors = pytest.importorskip("calibration", reason="uncertainty-calibration is not installed")
    model = authors.PlattBinnerMarginalCalibrator(len(y), num_bins=10)
    model.train_calibration(fit, y)
    return np.array(model.calibrate(at))


@pytest.fixture(scope="module")
def adult(shared):
    """Test rows, whether the uncalibrated argmax is right, and the confidences of four models."""
    import pyarrow.parquet as pq

    table = pq.read_table(shared / "data/adult_out.parquet").to_pandas()
    order = np.random.RandomState(0).permutation(len(table))
    fit, test = table.iloc[order[:2500]], table.iloc[np.sort(order[2500:])]
    p, q, y = fit["prob_1"].to_numpy(), test["prob_1"].to_numpy(), fit["actual"].to_numpy()
    both, asked = (t[["prob_0", "prob_1"]].to_numpy() for t in (fit, test))
    shown = {
        "": asked,
        "_log": fitted(p[:, None], y, q[:, None]),
        "_beta": fitted(beta_features(p), y, beta_features(q)),
        "_kumar": scaling_binning(both, y, asked),
    }
    confidence = {k: v.max(axis=1) for k, v in shown.items()}
    columns = {v: test[v].to_numpy() for v in VARIABLES} | {"uncalibrated": 1 - confidence[""]}
    right = (test["pred"] == test["actual"]).to_numpy()
    return {k: cal.predictions(right, np.clip(v, 0, 1), columns) for k, v in confidence.items()}


@pytest.fixture(scope="module")
def printed(shared):
    return json.loads((shared / "golden/B_vece/paper_repro.json").read_text())["adult"]


def published(data, variable, bins=10, view="probability"):
    return cal.measure.vece(data, variable, bins=bins, view=view, paper=True, draws=99).value


@pytest.mark.parametrize("model", ["", "_log", "_beta", "_kumar"])
def test_table_2(adult, printed, model):
    assert published(adult[model], "uncalibrated") == pytest.approx(printed["ECE" + model], abs=1e-9)
    assert published(adult[model], "age") == pytest.approx(printed["VECE" + model], abs=1e-9)


@pytest.mark.parametrize("variable", VARIABLES)
def test_tables_1_and_7(adult, printed, variable):
    assert published(adult["_beta"], variable) == pytest.approx(printed[f"VECE_{variable}_beta"], abs=1e-9)
    assert published(adult[""], variable) == pytest.approx(printed["VECE"], abs=1e-9)


@pytest.mark.parametrize("variable", ["age", "fnlwgt", "education-num", "hours-per-week"])
def test_table_1_worst_case(adult, printed, variable):
    """VCE(v*): largest distance of two local quadratic curves, span 0.9, between the 5 % and 95 % quantiles."""
    loess = pytest.importorskip("skmisc.loess", reason="scikit-misc is not installed").loess
    data = adult["_beta"]
    x = data.covariates.column(variable).to_numpy().astype(float)
    at = np.linspace(*np.quantile(x, [0.05, 0.95]), 500)

    def smooth(values):
        model = loess(x, values, family="symmetric", span=0.9, iterations=0)
        model.fit()
        return model.predict(at, stderror=False).values

    worst = np.abs(smooth(100.0 * (1 - data.y)) - smooth(100.0 * (1 - data.p))).max()
    assert worst == pytest.approx(printed[f"maxdiff_{variable}_beta_s0.9"], abs=1e-6)


@pytest.mark.parametrize("bins", [5, 10, 20, 50])
def test_authors_values_with_ties(shared, bins):
    golden = json.loads((shared / "golden/B_vece/vece_golden2_signflip.json").read_text())
    rows = np.genfromtxt(shared / "golden/B_vece/input2_signflip_n3000.csv", delimiter=",", names=True)
    error = 1 - np.maximum(rows["prob_0"], rows["prob_1"])
    data = cal.predictions(rows["actual"], rows["prob_1"], {"v": rows["v"], "g": rows["g"], "error": error})
    for variable, key in (("v", "VECE_v"), ("g", "VECE_g"), ("error", "ECE")):
        assert published(data, variable, bins, "confidence") == pytest.approx(golden[f"{key}_b{bins}"], abs=1e-13)
    found = cal.measure.vece(data, "g", view="confidence", paper=True, draws=99)
    assert found.settings["bins_used"] == len(golden["g_bins_10"])
