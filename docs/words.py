"""Count the prose of each page and hold it to its budget: python docs/words.py [PAGE ...]

Code, tables, images and what stands between `<!-- table -->` and `<!-- end -->` are not counted. A page over its
budget, an average sentence over 25 words, a sentence over 35 and a paragraph over 90 are printed, and are an error.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
AVERAGE, SENTENCE, PARAGRAPH = 25, 35, 90
BUDGETS = {  # words; howto/* have the last
    "README.md": 900,
    "docs/index.md": 300,
    "docs/start.md": 600,
    "docs/read-a-report.md": 1_600,
    "docs/concepts.md": 1_200,
    "docs/data.md": 2_000,
    "docs/audit.md": 1_800,
    "docs/groups.md": 1_500,
    "docs/bounds.md": 1_800,
    "docs/measures.md": 2_000,
    "docs/covariates.md": 1_700,
    "docs/tests.md": 1_300,
    "docs/repair.md": 1_300,
    "docs/repair-methods.md": 800,
    "docs/deploy.md": 400,
    "docs/classes.md": 780,
    "docs/compare.md": 1_200,
    "docs/decisions.md": 1_400,
    "docs/clusters.md": 2_400,
    "docs/plan.md": 600,
    "docs/distributed.md": 900,
    "docs/privacy.md": 900,
    "docs/glossary.md": 800,
    "docs/faq.md": 800,
    "docs/compared.md": 700,
    "docs/proofs.md": 3_000,
    "docs/proofs-clusters.md": 2_000,
    "docs/proofs-methods.md": 5_600,
    "docs/howto/*": 400,
}
CUT = re.compile(r"<!-- table -->.*?<!-- end -->|<!--.*?-->|^( *)(```+)[^\n]*\n.*?^\1\2 *$|^\$\$.*?\$\$", re.M | re.S)
LIST = re.compile(r"^\s*(?:[*-]|\d+\.)\s+")


def budget(name: str) -> int | None:
    """Return a page's budget, if it has one."""
    folder = f"{name.rpartition('/')[0]}/*"
    return None if name.endswith("howto/index.md") else BUDGETS.get(name, BUDGETS.get(folder))


def paragraphs(text: str) -> list[str]:
    """Return the running text of a page: paragraphs and items of lists, without marks, links and images."""
    text = re.sub(r"!\[[^\]]*\]\([^)]*\)", "", CUT.sub("\n\n", text))
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", re.sub(r"</?\w[^>]*>", "", text))
    text = re.sub(r"`[^`\n]+`", "code", text).replace("*", "* ").replace("* * ", "")
    text = re.sub(r"\$[^$\n]+\$", "formula", text)
    out: list[list[str]] = [[]]
    for line in text.splitlines():
        if not line.strip() or LIST.match(line) or line.startswith(("|", "#")):
            out.append([])
        if not line.startswith("|"):
            out[-1].append(re.sub(r"^#+ ", "", LIST.sub("", line)).replace("* ", "").lstrip("> "))
    return [" ".join(" ".join(part).split()) for part in out if any(map(str.strip, part))]


def words(text: str) -> int:
    """Return the number of words of a text: what has a letter or a digit."""
    return sum(bool(re.search(r"\w", word)) for word in text.split())


def sentences(text: str) -> list[str]:
    """Return the sentences of a paragraph."""
    return re.split(r"(?<=[.!?])[\")]*\s+(?!al\b)", text)


def faults(name: str, text: str) -> list[str]:
    """Return what a page breaks of its budget and of the lengths."""
    parts, limit = paragraphs(text), budget(name)
    total = sum(map(words, parts))
    lines = [words(s) for p in parts for s in sentences(p)]
    out = []
    if limit is not None and total > limit:
        out.append(f"{name}: {total} words, budget {limit}")
    if lines and sum(lines) / len(lines) > AVERAGE:
        out.append(f"{name}: {sum(lines) / len(lines):.0f} words a sentence")
    out += [f"{name}: a paragraph of {words(p)} words: {p[:60]}" for p in parts if words(p) > PARAGRAPH]
    out += [f"{name}: {words(s)} words: {s[:90]}" for p in parts for s in sentences(p) if words(s) > SENTENCE]
    return out


def pages() -> dict[str, str]:
    """Return the text of every page that has a budget, by its path."""
    every = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
    named = {p.relative_to(ROOT).as_posix(): p for p in every if p.exists()}
    return {name: p.read_text(encoding="utf-8") for name, p in named.items() if budget(name) is not None}


def main(requested: list[str]) -> int:
    """Print words and budget of each page, and what is over."""
    wrong: list[str] = []
    total = 0
    for name, text in pages().items():
        if requested and not any(part in name for part in requested):
            continue
        count = sum(map(words, paragraphs(text)))
        total += count
        print(f"{count:6,} of {budget(name):5,}  {name}")
        wrong += faults(name, text)
    print(f"{total:6,} in all", *wrong, sep="\n")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
