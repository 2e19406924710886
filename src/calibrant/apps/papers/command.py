"""The command that asks one of the papers' own procedures of a file, and what each paper prints, by its number."""

from __future__ import annotations

from argparse import Namespace
from typing import NamedTuple

from calibrant.plugins import Command, Parser
from calibrant.toolkit.command import CHECK, CHECK_STATUS, asking
from calibrant.toolkit.command import options as take


class Paper(NamedTuple):
    """A paper: its procedures as commands of `calibrant papers`, and those that are another command."""

    title: str
    methods: dict[str, str]  # each with its numbers in print
    others: dict[str, str]  # each command, with its numbers in print


PUBLISHED = (
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
    for paper in PUBLISHED:
        out.append(f"{paper.title}\n")
        for name, numbers in (*paper.methods.items(), *paper.others.items()):
            out.append(f"  {name}\n      {numbers}\n")
    return "".join(out)


# ---- the command ----

EXAMPLES = """\
  calibrant papers published_local_test log.parquet --label y --score p --null bounded --variables age
  calibrant papers published_variable_table log.parquet --label y --score p
  calibrant papers calibration_function log.parquet --label y --score p --method total-variation
  calibrant papers perturb log.parquet --label y --score p -o perturbed.parquet"""
NUMBERS = "methods of this command, and other commands, with their numbers in print:"
PERTURB = """\
Chooses the bandwidth on pilot rows, perturbs every score, and certifies the perturbed score on the other rows. The rows
written hold every column, SCORE_perturbed, and SCORE_certified: false for pilot rows. The calibrator (.json) perturbs
the next rows: calibrant apply jitter.json TOMORROW --score SCORE -o OUT.parquet.

Of several classes (--score 'p_*') it chooses the number of steps, and writes each class's column.

example:
  calibrant papers perturb log.parquet --label y --score p --loss 0.001 -o perturbed.parquet -o jitter.json
  calibrant papers perturb digits.parquet --label digit --score 'p_*' -o perturbed.parquet
"""


class Papers(Command):
    """The command ``papers``."""

    line = "print what a paper's own procedure gives"
    more = f"{CHECK.format(face='papers', examples=EXAMPLES)}\n{NUMBERS}\n{listed()}"
    status, after = CHECK_STATUS, "diagnose"

    def options(self, p: Parser) -> None:
        """Add each procedure with its settings."""
        numbers = {name: text for paper in PUBLISHED for name, text in paper.methods.items()}
        own = {"perturb": ("Perturb a score and certify the perturbed score.", PERTURB, perturbing)}
        asking("papers", numbers, own)(p)

    def run(self, inputs: Namespace) -> int:
        """Ask the procedure of the data."""
        if inputs.method == "perturb":
            from calibrant.apps.papers.perturbed import run

            return run(inputs)
        from calibrant.toolkit.command import run_method

        return run_method(inputs)


def perturbing(p: Parser) -> None:
    """Add the options of `perturb`."""
    take.files(p)
    take.columns(p)
    take.reading(p, "renormalize", "logits")
    line = "AUROC that it may cost, of several classes Brier score (default 0.001)"
    p.add_argument("--loss", type=float, default=0.001, metavar="X", help=line)
    p.add_argument("--pilot", type=float, default=0.1, metavar="S", help="share of rows that choose (default 0.1)")
    p.add_argument("--bandwidth", type=float, metavar="H", help="in place of a pilot: fixed before labels are seen")
    p.add_argument("--steps", type=int, metavar="M", help="the same of several classes: multiples of 1/M")
    p.add_argument("--alpha", type=float, default=0.05, metavar="X", help="error probability (default 0.05)")
    p.add_argument("--side", choices=("two-sided", "lower", "upper"), default="two-sided")
    take.seed(p)
    take.as_json(p, "print JSON instead of text")
    take.out(p, "write the rows (.parquet, .csv, .tsv, .arrow) or the calibrator (.json), once each")


PAPERS = Papers()
