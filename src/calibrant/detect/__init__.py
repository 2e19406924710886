"""Tests whether probabilities are calibrated, each with a null whose error rate is stated."""
