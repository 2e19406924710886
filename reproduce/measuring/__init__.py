"""Measuring Uncertainty Calibration (Ciosek, Felicioni and Ghiassian, 2025): one script a table or figure."""

WITHOUT: dict[str, tuple[str, str]] = {  # item: status, and why no script makes it
    "Figure 1": (
        "states no result",
        "a drawing of the three assumptions: Lipschitz, bounded variation, bounded derivatives",
    ),
}
