"""I-trustworthy Models (Vashistha and Farahi, AISTATS 2025): one script a table or figure."""

WITHOUT: dict[str, tuple[str, str]] = {}  # item: status, and why no script makes it
