"""
Two models in one scikit-learn display
======================================

A fitted classifier as scikit-learn's displays draw it, without bins, and with a band for the whole curve.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.naive_bayes import GaussianNB

import calibrant as cal

rng = np.random.default_rng(3)
x = rng.normal(size=6000)
X = np.column_stack([x, x + 0.3 * rng.normal(size=6000), x + 0.3 * rng.normal(size=6000)])  # nearly thrice the same
y = rng.uniform(size=6000) < 1 / (1 + np.exp(-x))
train, test = slice(0, 3000), slice(3000, 6000)

naive = GaussianNB().fit(X[train], y[train])
repaired = cal.repair.CalibratedClassifier(GaussianNB(), cal.repair.Beta()).fit(X[train], y[train])

# %%
chart, ax = plt.subplots(figsize=(5, 5), layout="constrained")
cal.diagnose.ReliabilityDisplay.from_estimator(naive, X[test], y[test], name="Naive Bayes", ax=ax)
cal.diagnose.ReliabilityDisplay.from_estimator(repaired, X[test], y[test], name="Repaired", ax=ax)

# %%
# **How to read it.** The dotted diagonal is right. Naive Bayes counts one feature three times: where it says 90%,
# about 74 in a hundred happen, and its band leaves the diagonal, so that this is no chance (p = 0.001). The band of the
# repaired model holds the diagonal everywhere.
