"""Maps of several classes against programs not written here.

The values of dirichletcal 0.5.3 (jax 0.10.2, scikit-learn 1.9.1) were printed, with `sharp` below, by::

    model = FullDirichletCalibrator(reg_lambda=strength).fit(p, y)
    print(model.weights, model.predict_proba(p[:6])[:, :3])

Those of the variable paper's images are the output of its authors' notebook, `cifar_example.ipynb`. Their program sends
an image at the very cut of a split to the right, where the tree that made it sends it to the left, as does ours: five
of the 7,767 images, and 0.0007 points of the tree's VECE.
"""

import numpy as np
import pytest

import calibrant as cal
from calibrant.repair import Dirichlet, ScalingBinning, VariableTree

WEIGHTS = {
    0.001: [
        [0.97708536, -0.06007243, 0.01303219, -0.69030644, 0.21167623],
        [-0.01267032, 0.6673599, -0.01187759, -0.67806265, -0.32026081],
        [0.01609382, -0.02457957, 0.60367253, -0.6983144, 0.19813786],
        [0.0, 0.0, 0.0, 0.0, 0.0],
    ],
    0.05: [
        [0.54197311, -0.04467996, 0.00298254, -0.36733714, 0.02905069],
        [-0.00913059, 0.547089, -0.0117818, -0.36003342, -0.01746669],
        [0.00640475, -0.02228232, 0.41363914, -0.37065819, 0.04513418],
        [0.0, 0.0, 0.0, 0.0, 0.0],
    ],
}
SHOWN = {
    0.001: [
        [7.43507412e-02, 9.95925316e-03, 2.72001112e-07],
        [9.88494005e-01, 1.13841228e-02, 5.89256129e-09],
        [1.88946350e-02, 4.94105697e-03, 9.75907706e-01],
        [6.79783146e-01, 3.19651735e-01, 2.19618038e-05],
        [9.89794628e-01, 8.51564483e-03, 1.34569394e-06],
        [3.00710021e-08, 7.01226862e-01, 2.18825357e-01],
    ],
    0.05: [
        [2.09506727e-01, 2.49416502e-02, 2.46332665e-05],
        [9.60452479e-01, 3.24778419e-02, 1.85689339e-06],
        [9.78639449e-02, 1.67912757e-02, 8.74453633e-01],
        [5.87528795e-01, 3.98785695e-01, 4.25038638e-04],
        [9.44562883e-01, 2.62314805e-02, 8.03710191e-05],
        [3.89782753e-05, 6.15494884e-01, 2.21757595e-01],
    ],
}
BINNED = (0.038268302141212435, 0.03596244205491177)  # ECE and VECE of scaling-binning, each class by itself
IMAGES = {  # ECE, VECE along the reaction time, accuracy
    "none": (0.019001828564384413, 0.019190431212893905, 0.9719325350843312),
    "Dirichlet": (0.00788522273842585, 0.011205297090148118, 0.968971288785889),
    "tree": (0.01179183436501638, 0.008624956755133554, 0.9591863010171238),
}
PAPER = Dirichlet(penalty="published", strength=0.001)
TREE = VariableTree(variables="median_rt", depth=3, leaf=0.1, paper=True)


def sharp():
    """Return probabilities of four classes, a third of them below a millionth."""
    rng = np.random.default_rng(20_190_925)
    p = rng.dirichlet([0.06, 0.1, 0.04, 0.08], 500)
    truth = p**0.7 / (p**0.7).sum(axis=1, keepdims=True)
    return p, (rng.uniform(size=(500, 1)) > truth.cumsum(axis=1)).sum(axis=1).clip(0, 3)


@pytest.mark.parametrize("strength", WEIGHTS)
def test_published_penalty_equals_dirichletcal(strength):
    p, y = sharp()
    fitted = Dirichlet(penalty="published", strength=strength).fit(cal.multiclass_predictions(y, p))
    ours = np.column_stack([fitted.weights, fitted.intercepts])
    assert np.abs(ours - WEIGHTS[strength]).max() < 1e-5
    assert np.abs(fitted.scores(p[:6])[:, :3] - SHOWN[strength]).max() < 1e-6


@pytest.fixture(scope="module")
def images(shared):
    """Return 2,000 images to calibrate and 7,767 to test, dealt as the authors' program deals them."""
    import pyarrow.parquet as pq

    table = pq.read_table(shared / "data/cifar_out.parquet")
    p = np.column_stack([table.column(f"prob_{k}").to_numpy() for k in range(10)])
    y, time = (table.column(c).to_numpy() for c in ("actual", "median_rt"))
    order = np.random.RandomState(0).permutation(len(y))
    return tuple(
        cal.multiclass_predictions(y[i], p[i], {"median_rt": time[i]}) for i in (order[:2_000], np.sort(order[2_000:]))
    )


def errors(test, p):
    """Return the published ECE and VECE: the class, and the bins of the ECE, from before recalibration."""
    columns = {"time": test.covariates.column("median_rt").to_numpy(), "before": 1.0 - test.p.max(axis=1)}
    shown = cal.predictions(test.p.argmax(axis=1) != test.y, np.clip(1.0 - p.max(axis=1), 0.0, 1.0), columns)
    return tuple(cal.measure.vece(shown, c, paper=True, draws=99).value for c in ("before", "time"))


@pytest.mark.parametrize(("name", "recipe"), [("none", None), ("Dirichlet", PAPER), ("tree", TREE)])
def test_table_5_and_the_accuracies_of_table_6(images, name, recipe):
    fit, test = images
    p = test.p if recipe is None else recipe.fit(fit)(test).p
    accuracy = (p.argmax(axis=1) == test.y).mean()
    assert (*errors(test, p), accuracy) == pytest.approx(IMAGES[name], abs=1e-5)


def test_scaling_binning_of_each_class(images):
    fit, test = images
    recipe = ScalingBinning(scale="log ratio", ridge=1e-10, split=False, fewest=1)
    p = np.column_stack([recipe.fit(fit.one_vs_rest(k))(test.one_vs_rest(k)).p for k in range(10)])
    assert errors(test, p) == pytest.approx(BINNED, abs=1e-4)


def test_its_cuts_are_those_of_a_tree_of_classes(images):
    from sklearn.tree import DecisionTreeClassifier

    fit = images[0]
    time = fit.covariates.column("median_rt").to_numpy()[:, None]
    theirs = DecisionTreeClassifier(max_depth=3, min_samples_leaf=200, random_state=0).fit(time, fit.y).tree_
    ours = TREE.fit(fit)
    assert sorted(t for t, f in zip(ours.threshold, ours.feature, strict=True) if f >= 0) == sorted(
        theirs.threshold[theirs.feature >= 0]
    )


@pytest.mark.slow
def test_the_default_tree_lowers_the_error_along_the_variable_and_the_log_loss(images):
    fit, test = images
    loss, error = {}, {}
    for recipe in (Dirichlet(), VariableTree(variables="median_rt")):
        out = recipe.fit(fit)(test)
        loss[recipe] = -np.log(out.p[np.arange(test.n), test.y]).mean()
        error[recipe] = cal.measure.vece(out.top_label(), "median_rt", draws=99).value
    (before, after), (off, less) = loss.values(), error.values()
    assert after < before - 0.003
    assert less < 0.5 * off
