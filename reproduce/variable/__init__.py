"""Variable-Based Calibration for Machine Learning Classifiers (Kelly and Smyth, AAAI 2023): a script a figure."""

WITHOUT: dict[str, tuple[str, str]] = {}  # item: status, and why no script makes it
