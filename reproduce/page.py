"""Write the pages of the documentation from the results that are checked in: python reproduce/page.py"""

import re
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from reproduce import experiment
from reproduce.experiment import ITEMS, PAPERS, Result

DOCS = Path(__file__).resolve().parents[1] / "docs"
NOTE = "<!-- Written by reproduce/page.py from reproduce/results. -->\n"
HEAD = f"""{NOTE}# The four papers, made again

calibrant unites four papers. Here is every table and figure of theirs, made again with this library's public interface,
beside what was published, and what differs and why. Each is a short script that reads like the paper's experiment; its
result is checked in, in `reproduce/results`, with seed and versions.

```text
pip install --editable ".[reproduce]"
python reproduce/run.py all                      # --quick
python reproduce/run.py strong/figure_2 --full
python reproduce/page.py                         # these pages, from results
```

`--quick`, two experiments at a time, each a process with one thread, took 15 CPU minutes when last timed whole: some
eight minutes of two free cores. What `--full`, the paper's size, costs stands with each. Data come with packages of the
Python index and are fetched on first use; nothing is copied into the repository. The authors' own predictions
are read where they are at hand. Where data are private or in no package that we found, a public substitute stands in,
by name: for the Yelp reviews, the readmission records and comments, and most texts and images of the bounds paper. A
simulation that follows a paper's description is no substitute. Claims are what the paper says of the item, and what is
asked of this library beyond it; those that did not come out are written out on the paper's page, with every difference;
here is the first of each, and what did not come out.

Linear algebra has one thread, so that identical runs on one machine give the same numbers, also of trained networks:
three runs of the networks on Adult agreed to the last digit. Another processor changes the last bits of a network; with
the instructions of two older ones, the ECE of a small network on Adult was the same to 0.001 points. Other versions of
NumPy, scikit-learn or PyTorch may change more.

Every claim stands with the data sets that it rests on: samples drawn, networks trained, or random parts of one. A claim
about a rate, a mean or a slope has its number with a 95% interval (exact binomial; of a mean, Student's; of a slope,
least squares), and one whose interval straddles the bound is neither a yes nor a no: cannot tell. Of a claim about
several numbers, the one that decides, or the closest to its bound, is shown. What rests on one split, network or audit
has no interval, says so, and tells nothing of others; the authors' predictions in the authors' own deal are one data
set with no chance in it, and what other deals of the same rows give stands below them.
"""
BEYOND = "beyond the paper: "


def paper_page(paper: str) -> str:
    """Name of a paper's page."""
    return f"reproduce-{paper}.md"


def anchor(name: str) -> str:
    """Anchor of an experiment on its paper's page."""
    return name.split("/")[1].replace("_", "-")


def number(value: Any) -> str:
    """Return a cell as text."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < 1e4 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) and value > 9999 else str(value).replace("|", "\\|")


def table(rows: list[dict[str, Any]]) -> str:
    """Return rows as a Markdown table; a column that is text in any row is set to the left."""
    columns = list(dict.fromkeys(k for r in rows for k in r))
    left = [any(isinstance(r.get(c), str) for r in rows) for c in columns]
    lines = ["| " + " | ".join(columns) + " |", "|" + "|".join("---" if t else "---:" for t in left) + "|"]
    return "\n".join(lines + ["| " + " | ".join(number(r.get(c)) for c in columns) + " |" for r in rows])


def without(paper: str) -> dict[str, tuple[str, str]]:
    """Items of a paper that no script makes: their status, and why."""
    found: dict[str, tuple[str, str]] = import_module(f"reproduce.{paper}").WITHOUT
    return found


def held(result: Result, beyond: bool) -> str:
    """Return how many claims hold, of the paper's or of those beyond it, and how many cannot be told."""
    kept = [c.holds for words, c in result.claims.items() if words.startswith(BEYOND) == beyond]
    open_ = f", {kept.count(None)} cannot tell" if None in kept else ""
    return f"{kept.count(True)} of {len(kept)}{open_}" if kept else ""


def first(text: str) -> str:
    """Return the first sentence of a text."""
    return re.split(r"(?<=[.]) (?=[A-Z'0-9`])", text)[0]


def misses(result: Result) -> str:
    """Return the paper's claims that did not come out, and those that cannot be told, three at most of each."""
    out = ""
    for head, outcome in (("Not so here", False), ("Cannot tell", None)):
        words = [w for w, c in result.claims.items() if c.holds is outcome and not w.startswith(BEYOND)]
        more = f"; and {len(words) - 3} more" if len(words) > 3 else ""
        out += f" **{head}:** {'; '.join(words[:3])}{more}." if words else ""
    return out


def index() -> str:
    """Return the page that has a row for every item of every paper."""
    parts = [HEAD]
    for paper, title in PAPERS.items():
        made = {i: n for n in experiment.names() if n.startswith(f"{paper}/") for i in experiment.find(n).items}
        rows = []
        for item in ITEMS[paper]:
            if item in made:
                name, e = made[item], experiment.find(made[item])
                link = f"[{item}]({paper_page(paper)}#{anchor(name)})"
                rows.append(
                    {
                        "item": link,
                        "shows": e.title,
                        "status": e.status,
                        "the paper's claims that hold": held(Result.load(name), False),
                        "claims beyond it": held(Result.load(name), True),
                        "differences": f"{first(e.difference)}{misses(Result.load(name))}",
                    }
                )
            else:
                status, why = without(paper)[item]
                rows.append(
                    {
                        "item": item,
                        "shows": "",
                        "status": status,
                        "the paper's claims that hold": "",
                        "claims beyond it": "",
                        "differences": why,
                    }
                )
        parts.append(f"## {title}\n\n[Everything, side by side]({paper_page(paper)})\n\n{table(rows)}\n")
    return "\n".join(parts)


def section(name: str) -> str:
    """Return an experiment as a section: what was done, claims, numbers side by side, the chart."""
    e, result = experiment.find(name), Result.load(name)
    text = (experiment.script(name).__doc__ or "").strip()
    rows = e.table(result.rows) if e.table else result.rows
    claims = [
        {"claim": words, "holds here": str(c), "data sets": c.sets, "number, 95% interval and bound": c.evidence}
        for words, c in result.claims.items()
    ]
    if not any(c.evidence for c in result.claims.values()):
        claims = [{k: v for k, v in line.items() if not k.startswith("number")} for line in claims]
    parts = [
        f'<a id="{anchor(name)}"></a>',
        f"## {', '.join(e.items)}: {e.title}",
        f"*{e.status[0].upper()}{e.status[1:]}.* {e.difference}",
        text,
    ]
    parts += [table(claims)] * bool(claims) + [table(rows)]
    if experiment.picture(name).is_file():
        parts.append(f"![{', '.join(e.items)}: {e.title}](img/reproduce/{experiment.picture(name).name})")
    seen = ", ".join(f"{k} {v}" for k, v in result.versions.items())
    parts.append(
        f"`python reproduce/run.py {name} --{result.size}`: size {result.amount:,}, seed {result.seed}, "
        f"{result.cpu_seconds:,.0f} CPU seconds; {seen}."
    )
    return "\n\n".join(parts) + "\n"


def pages() -> dict[str, str]:
    """Return the text of each page by its file name."""
    out = {"reproduce.md": index()}
    for paper, title in PAPERS.items():
        made = [n for n in experiment.names() if n.startswith(f"{paper}/")]
        out[paper_page(paper)] = "\n".join(
            [f"{NOTE}# {title}\n\n[All four papers](reproduce.md)\n", *map(section, sorted(made, key=order))]
        )
    return out


def order(name: str) -> tuple[int, str]:
    """Place of an experiment on its page: as in the paper's list of items."""
    return ITEMS[name.split("/")[0]].index(experiment.find(name).items[0]), name


if __name__ == "__main__":
    for file, content in pages().items():
        (DOCS / file).write_text(content, encoding="utf-8")
