"""Do the ordinary intervals of estimates cover, and does the most evident group stand first?

python benchmarks/audit/estimates.py [--sets 4000] [--audits 200]: prints two Markdown tables. Intervals of the gap and
of observed over expected, of scores beta(2, 5), beta(1, 49) and beta(9, 1), rows on their own or in clusters of about
four; outcomes follow the scores, or rates 1.3 times as far from certain. Audits: 2,000 to 20,000 rows in 5 to 25 groups
of uneven sizes, another column of groups, and one group, of ten expected events and non-events or more, off by five
standard errors.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

from validity.estimate_designs import EXPECTED, SHAPES, covered, first


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", type=int, default=4_000)
    parser.add_argument("--audits", type=int, default=200)
    a = parser.parse_args()
    print("| scores | rows | truth | " + " | ".join(f"{n} expected" for n in EXPECTED) + " |")
    print("|---|---|---|" + "---|" * len(EXPECTED))
    for name, shape in SHAPES.items():
        for clustered in (False, True):
            for off in (1.0, 1.3 if shape[0] < shape[1] else 0.9):
                cells = (covered(shape, n, clustered, off, a.sets) for n in EXPECTED)
                rates = " | ".join(f"{100 * gap:.1f}, {100 * ratio:.1f}" for gap, ratio in cells)
                print(f"| {name} | {'clusters' if clustered else 'alone'} | {off:g} times | {rates} |", flush=True)
    if a.audits:
        print(f"\nThe group that is off stands first in {sum(map(first, range(a.audits)))} of {a.audits} audits.")


if __name__ == "__main__":
    main()
