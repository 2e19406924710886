"""Measuring Uncertainty Calibration: one script a table or figure.

K. Ciosek, N. Felicioni, S. Ghiassian, J. Elenter Litwin, F. Tonolini, D. Gustafsson, E. Garcia Martin, C. Barcena
Gonzales and R. Bertrand-Lalo, ICLR 2026.
"""

WITHOUT: dict[str, tuple[str, str]] = {  # item: status, and why no script makes it
    "Figure 1": (
        "states no result",
        "a drawing of the three assumptions: Lipschitz, bounded variation, bounded derivatives",
    ),
}
