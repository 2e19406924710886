"""Write what the results that are checked in show: `python reproduce/page.py`, the summary and the list of claims.

`details(folder)` writes a page for each paper, with its tables as CSV; the build of the documentation calls it.
"""

import csv
import sys
from collections import Counter
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from reproduce import experiment
from reproduce.claim import Claim
from reproduce.experiment import ITEMS, PAPERS, Result

DOCS = Path(__file__).resolve().parents[1] / "docs"
SUMMARY, CLAIMS = DOCS / "reproduce.md", DOCS / "papers" / "claims.csv"
APART = "---\norphan: true\nnosearch: true\n---\n"  # in neither the sidebar nor the search
BEYOND = "beyond the paper: "


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


def made(paper: str) -> list[str]:
    """Experiments of a paper, as its items are listed."""
    return sorted((n for n in experiment.names() if n.startswith(f"{paper}/")), key=order)


def written(paper: str) -> str:
    """Return the table of a paper's items in the summary."""
    rows = []
    for name in made(paper):
        e, result = experiment.find(name), Result.load(name)
        rows.append(
            {
                "item": f"[{', '.join(e.items)}](papers/{paper}.myst#{anchor(name)})",
                "shows": e.title,
                "status": e.status,
                "claims of the paper that hold": held(result, False),
                "claims beyond it": held(result, True),
            }
        )
    for item, (status, why) in without(paper).items():
        rows.append({"item": item, "shows": why, "status": status})
    return f"### {PAPERS[paper]}\n\n{table(rows)}"


def counts() -> str:
    """Return how many items came out, and how many claims hold."""
    status = Counter(
        experiment.find(n).status for paper in PAPERS for n in made(paper) for _ in experiment.find(n).items
    )
    status.update(s for paper in PAPERS for s, _ in without(paper).values())
    words = (
        "are reproduced",
        "are reproduced with differences",
        "use substitute data",
        "were not possible",
        "state no result",
    )
    *most, last = (f"{status[s]} {w}" for s, w in zip(experiment.STATUSES, words, strict=True) if status[s])
    claims = Counter((c.holds, w.startswith(BEYOND)) for _, _, w, c in judged())
    text = f"Of {sum(status.values())} tables and figures {', '.join(most)}, and {last}."
    for beyond, whose in ((False, "claims of the papers"), (True, "claims that we add")):
        yes, no, open_ = (claims[holds, beyond] for holds in (True, False, None))
        text += f" Of {yes + no + open_} {whose} {yes} hold, {no} do not, and {open_} cannot be decided."
    return text


def judged() -> Iterator[tuple[str, str, str, Claim]]:
    """Every claim: paper, experiment, words, outcome."""
    for paper in PAPERS:
        for name in made(paper):
            yield from ((paper, name, words, c) for words, c in Result.load(name).claims.items())


def summary() -> str:
    """Return the summary page, its counts and tables made again."""
    text = SUMMARY.read_text(encoding="utf-8")
    parts = {"counts": counts(), **{paper: written(paper) for paper in PAPERS}}
    for part, content in parts.items():
        before, start, rest = text.partition(f"<!-- made: {part} -->\n")
        _, end, after = rest.partition("<!-- end -->")
        assert start, part
        assert end, part
        text = f"{before}{start}\n{content}\n\n{end}{after}"
    return text


def claims() -> list[dict[str, Any]]:
    """Return every claim as a row of the list."""
    return [
        {
            "paper": paper,
            "items": ", ".join(experiment.find(name).items),
            "claim": words.removeprefix(BEYOND),
            "of the paper": not words.startswith(BEYOND),
            "holds": c,
            "data sets": c.sets,
            "number": c.value,
            "low": c.low,
            "high": c.high,
            "bound": c.bound,
        }
        for paper, name, words, c in judged()
    ]


def write_csv(path: Path, rows: list[dict[str, Any]]) -> None:
    """Write rows as CSV, a column for every key."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        out = csv.DictWriter(file, list(dict.fromkeys(k for r in rows for k in r)), lineterminator="\n")
        out.writeheader()
        out.writerows({k: f"{v:.6g}" if isinstance(v, float) else v for k, v in r.items()} for r in rows)


def section(name: str, folder: Path) -> str:
    """Return an experiment as a section: what was done, claims, numbers side by side, the chart."""
    e, result = experiment.find(name), Result.load(name)
    rows = e.table(result.rows) if e.table else result.rows
    data = folder / f"{name.replace('/', '_')}.csv"
    write_csv(data, rows)
    claims = [
        {"claim": words, "holds here": str(c), "data sets": c.sets, "number, 95% interval and bound": c.evidence}
        for words, c in result.claims.items()
    ]
    parts = [
        f'<a id="{anchor(name)}"></a>',
        f"## {', '.join(e.items)}: {e.title}",
        f"*{e.status[0].upper()}{e.status[1:]}.* {e.difference}",
        (experiment.script(name).__doc__ or "").strip(),
        *[table(claims)] * bool(claims),
        f"{table(rows)}\n\n{{download}}`This table as CSV <{data.name}>`",
    ]
    if experiment.picture(name).is_file():
        parts.append(f"![{', '.join(e.items)}: {e.title}](../img/reproduce/{experiment.picture(name).name})")
    seen = ", ".join(f"{k} {v}" for k, v in result.versions.items())
    parts.append(
        f"`python reproduce/run.py {name} --{result.size}`: size {result.amount:,}, seed {result.seed}, "
        f"{result.cpu_seconds:,.0f} CPU seconds; {seen}."
    )
    return "\n\n".join(parts) + "\n"


def details(folder: Path) -> None:
    """Write the page of each paper, with its tables as CSV, into a folder beside the summary."""
    for paper, title in PAPERS.items():
        body = "\n".join(section(name, folder) for name in made(paper))
        text = f"{APART}# {title}\n\n[Papers reproduced](../reproduce.md)\n\n{body}"
        (folder / f"{paper}.myst").write_text(text, encoding="utf-8")


def order(name: str) -> tuple[int, str]:
    """Place of an experiment on its page: as in the paper's list of items."""
    return ITEMS[name.split("/")[0]].index(experiment.find(name).items[0]), name


if __name__ == "__main__":
    SUMMARY.write_text(summary(), encoding="utf-8")
    write_csv(CLAIMS, claims())
