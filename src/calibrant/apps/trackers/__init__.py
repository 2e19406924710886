"""Calibration next to a model: numbers for trackers, a run of MLflow, a section of a model card, a summary."""
