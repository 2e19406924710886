"""CPU seconds, memory and page size of whole audits of several classes, from an array of NumPy to page and record.

    python benchmarks/classes/whole.py [--lines 20000x10,100000x1000]

Each line is one process, `calibrant audit FILE.npz --label labels --score 'probs_*' --by site --limit 0.05`, with its
interpreter and imports. The classifier is overconfident: outcomes are drawn at a temperature of 1.25. Probabilities are
kept in single precision. Goals: 8 CPU seconds at 20,000 x 10; 60 CPU seconds and 4 GB at 100,000 x 1,000; a page under
700 kB.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "audit"))

from timed import ROOT, Tree, once

LINES = "20000x10,20000x100,100000x100,100000x1000"
HEAD = "rows,classes,run,CPU seconds,peak MB,page kB,record kB"
TEMPERATURE, AT_ONCE = 1.25, 10_000


def write(path: Path, rows: int, classes: int, seed: int = 0) -> None:
    """Write probabilities that are concentrated on few classes, a label drawn at a temperature, and a site."""
    rng = np.random.default_rng(seed)
    prior = rng.normal(size=classes)  # some classes are rare
    probs, labels = np.empty((rows, classes), dtype=np.float32), np.empty(rows, dtype=np.int32)
    for start in range(0, rows, AT_ONCE):
        here = slice(start, min(start + AT_ONCE, rows))
        logits = prior + 2.5 * rng.normal(size=(here.stop - start, classes))
        logits[np.arange(len(logits)), rng.choice(classes, len(logits), p=_softmax(prior))] += 6.0
        probs[here] = _softmax(logits)
        mass = _softmax(logits / TEMPERATURE).cumsum(axis=1)
        labels[here] = np.minimum((rng.uniform(size=(len(mass), 1)) > mass).sum(axis=1), classes - 1)
    np.savez(path, probs=probs, labels=labels, site=rng.choice(["a", "b", "c"], rows))


def _softmax(x: np.ndarray) -> np.ndarray:
    raised = np.exp(x - x.max(axis=-1, keepdims=True))
    return raised / raised.sum(axis=-1, keepdims=True)


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--lines", default=LINES)
    lines = [tuple(map(int, line.split("x"))) for line in asked.parse_args().lines.split(",")]
    print(HEAD)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        tree = Tree("now", ROOT / "src", folder / "cache")
        warm = folder / "warm.npz"
        write(warm, 40_000, 3)  # so that what is compiled is compiled
        for rows, classes in [(40_000, 3), *lines]:
            file = warm if classes == 3 else folder / "log.npz"
            if file != warm:
                write(file, rows, classes)
            for run in ("whole", "quick"):
                words = ["audit", str(file), "--label", "labels", "--score", "probs_*", "--by", "site"]
                words += ["--limit", "0.05", "-o", "page.html", "-o", "record.json"]
                cost = once(
                    tree.command([*words, *(["--quick"] if run == "quick" else [])]), tree.environment(), folder
                )
                if file == warm:
                    continue
                if cost.failed:
                    print(f"{rows},{classes},{run},{cost.failed}", flush=True)
                    continue
                page, record = ((folder / f).stat().st_size / 1000 for f in ("page.html", "record.json"))
                print(f"{rows},{classes},{run},{cost.cpu:.1f},{cost.peak:.0f},{page:.0f},{record:.0f}", flush=True)


if __name__ == "__main__":
    main()
