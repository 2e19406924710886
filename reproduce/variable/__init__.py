"""Variable-Based Calibration for Machine Learning Classifiers (Kelly and Smyth, AAAI 2023): one script a table or figure."""

WITHOUT: dict[str, tuple[str, str]] = {}  # item: status, and why no script makes it
