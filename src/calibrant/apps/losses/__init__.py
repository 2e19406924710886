"""Training losses that weigh calibration, for PyTorch."""
