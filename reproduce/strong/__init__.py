"""Is this Model Reliable for Everyone? (Feng et al., AISTATS 2024): one script a table or figure."""

WITHOUT: dict[str, tuple[str, str]] = {  # item: status, and why no script makes it
    "Figure 1": (
        "states no result",
        "A drawing of the procedure. Its control chart is `calibrant.diagnose.control_chart`, drawn on real people in "
        "Figure 3.",
    ),
    "Table 1": (
        "states no result",
        "A list of the tests, by axis and statistic. Here ChiSq is `hosmer_lemeshow_test`, Score `score_test`, "
        "Multicalib `papers.multicalibration_score_test`, AdaptChiSq `papers.adaptive_chi_square_test`, "
        "AdaptScoreSimple `papers.adaptive_score_test` and AdaptScoreCUSUM `strong_calibration_test`. Figures 2 to 4 "
        "run them all.",
    ),
}
