"""I-trustworthy Models (Vashistha and Farahi, AISTATS 2025): one script a table or figure."""

WITHOUT: dict[str, tuple[str, str]] = {  # item: status, and why no script makes it
    "Table 3": ("states no result", "It lists the variables of the housing data and their values."),
}
