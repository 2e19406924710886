"""What the four papers print, by its number, and the command that has it."""

from __future__ import annotations

from typing import NamedTuple


class Paper(NamedTuple):
    """A paper: its procedures as commands of `calibrant papers`, and those that are another command."""

    title: str
    methods: dict[str, str]  # each with its numbers in print
    others: dict[str, str]  # each command, with its numbers in print


PAPERS = (
    Paper(
        "I-trustworthy Models (Vashistha, Farahi, AISTATS 2025)",
        {
            "inferred_mean": "equation 1, Figure 1",
            "inferred_gap": "Figure 2",
            "published_local_test": "equations 4 to 6 and 8, Algorithm 1, Theorem 3.6, Corollary 3.7, Figures 3 and 5",
            "published_local_bias": "Proposition 3.8, equation 7, Figure 6",
        },
        {
            "calibrant measure klce": "Definition 3.3, Theorem 3.4, equation 3",
            "calibrant detect kernel_tuning": "Appendix A.5",
            "calibrant repair --method multicalibrator,proportional-multicalibrator": "Table 1",
            "calibrant repair --method local-bias": "correction by LCB",
            "calibrant repair --method platt,temperature,isotonic,bbq,histogram": "Figure 4",
            "calibrant.repair.objectives in Python": "Table 2",
        },
    ),
    Paper(
        "Variable-Based Calibration (Kelly, Smyth, AAAI 2023)",
        {
            "reliability_diagram": "equations 1 to 3 (ECE), Figure 1a",
            "published_variable_curve": (
                "equations 4, 6, 7 and 8 (VCE, VECE, VCE(v*)), Theorems 5.1, 5.2 and 5.4, Definition 5.3, Figure 1b"
            ),
            "published_variable_table": "Tables 1 and 7",
        },
        {
            "calibrant repair --method variable-tree": "section 6, Tables 2 to 12",
            "calibrant repair --method augmented-beta,augmented-logistic": "Appendix C",
            "calibrant repair --method scaling-binning,platt,beta,dirichlet": "Tables 2 to 5",
        },
    ),
    Paper(
        "Testing for Strong Calibration (Feng et al., AISTATS 2024)",
        {
            "adaptive_score_cusum_test": "AdaptScoreCUSUM, equations 9 and 12, Theorems 1, 3 and 4, Table 1",
            "adaptive_score_test": "AdaptScoreSimple, Table 1",
            "adaptive_chi_square_test": "AdaptChiSq, Table 1",
            "multicalibration_score_test": "Multicalib, Table 1",
            "score_test": "Score, Table 1",
            "hosmer_lemeshow_test": "ChiSq, Table 1",
            "control_chart": "Figures 1 and 3",
            "importance": "variable importance, Figures 2 and 3",
        },
        {"calibrant plan --strong": "power, Theorem 2"},
    ),
    Paper(
        "Measuring Uncertainty Calibration (Ciosek et al., ICLR 2026)",
        {
            "calibration_function": "equation 2, Lemmas 4 and 6, Figure 5",
            "published_total_variation": "Proposition 1, Corollaries 1 and 2, equation 5",
            "published_kernel": "Proposition 2, Lemma 1, Appendix E",
            "published_lipschitz": "Corollary 3, Appendix E",
            "perturb": "equation 8, Figure 2",
            "jittered_classes": "section 5, of several classes",
        },
        {"calibrant.repair.objectives.JitteredCrossEntropy in Python": "Appendix F, equation 34"},
    ),
)


def listed() -> str:
    """Every procedure by paper, with its numbers, as the help has it."""
    out = []
    for paper in PAPERS:
        out.append(f"{paper.title}\n")
        for name, numbers in (*paper.methods.items(), *paper.others.items()):
            out.append(f"  {name}\n      {numbers}\n")
    return "".join(out)
