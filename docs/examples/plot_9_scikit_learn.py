"""
Reliability diagram as a scikit-learn display
=============================================

A fitted classifier as scikit-learn's displays draw it, without bins and with a simultaneous band.
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
# **How to read it.** The dotted diagonal is calibrated. Naive Bayes counts one feature three times. Where it predicts
# 90%, about 74 in a hundred have the event, and its band excludes the diagonal (p = 0.001). The band of the
# recalibrated model contains the diagonal everywhere.
