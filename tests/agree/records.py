"""Random audits: small data of many kinds, and the options that somebody would audit them with."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import shlex
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from calibrant.audit.record import AuditRecord
from calibrant.cli import main
from calibrant.report import html, markdown, terminal
from calibrant.report.document import Document
from calibrant.report.outline import document

WORDS = {"noun": "stays", "model": "risk 3.1", "set_by": "the board", "intended_use": "discharge calls"}

SITES = ("Valley", "Harbor", "North", "Old Town", "Lake", "West")
PLACES = ("home", "ward", "other")
STATUSES = (0, 1, 3)  # of an audit that ran: a verdict is no error


@dataclass(frozen=True, slots=True)
class Audited:
    """One audit: the command that was typed, its record, and what a reader sees of it."""

    command: str
    record: AuditRecord
    tree: Document
    page: str
    markdown: str
    terminal: str


@dataclass(frozen=True, slots=True)
class Design:
    """Columns of a file, the options of the audit, and whether it goes by a sketch."""

    columns: dict[str, list[object]]
    reading: list[str]  # options that say how the file is read, by a sketch too
    options: list[str]
    sketch: bool = False


def design(seed: int) -> Design:
    """One random design; every kind of audit that a page can be about is drawn now and then."""
    rng = np.random.default_rng(seed)
    rows = int(rng.choice([60, 150, 400, 900, 1500, 2500, 4000], p=[0.08, 0.15, 0.2, 0.2, 0.17, 0.1, 0.1]))
    base = float(rng.choice([0.0, -1.5, -3.2, 1.5], p=[0.5, 0.25, 0.15, 0.1]))
    patients = int(rng.integers(rows // 4 + 2, rows)) if rng.random() < 0.35 else 0
    owner = rng.integers(0, patients, rows) if patients else np.arange(rows)
    site = rng.choice(len(SITES), rows, p=[0.3, 0.25, 0.2, 0.15, 0.07, 0.03])
    age = np.clip(rng.normal(60, 18, rows), 18, 95).round()
    place = rng.choice(len(PLACES), rows, p=[0.6, 0.3, 0.1])
    x = base + rng.normal(0, 1, rows) + 0.02 * (age - 60)
    score = _sigmoid(x).round(int(rng.choice([2, 4])))
    label = (rng.random(rows) < _sigmoid(_truth(rng, x, site, age, place) + _of_clusters(rng, patients, owner))) * 1
    if label.min() == label.max():
        label[:2] = (0, 1)
    columns: dict[str, list[object]] = {
        "outcome": label.tolist(),
        "risk": score.tolist(),
        "site": [SITES[i] for i in site],
        "age": age.astype(int).tolist(),
        "place": [PLACES[i] for i in place],
        "seen": [f"2025-{1 + i // 28:02d}-{1 + i % 28:02d}" for i in rng.integers(0, 330, rows).tolist()],
    }
    options = ["--label", "outcome", "--score", "risk"]
    if patients:
        columns["patient"] = [f"P{i}" for i in owner.tolist()]
        options += ["--cluster", str(rng.choice(["patient", "none"], p=[0.85, 0.15]))]
    if rng.random() < 0.15:
        columns["weight"] = rng.choice([0.5, 1.0, 2.0, 3.5], rows).tolist()
        options += ["--weights", "weight"]
    if rng.random() < 0.15:
        columns["outcome"] = ["" if drop else y for drop, y in zip(rng.random(rows) < 0.1, label.tolist(), strict=True)]
        options += ["--missing", str(rng.choice(["drop", "keep"]))]
    sketch = rng.random() < 0.1 and not ("keep" in options and {"--cluster", "--weights"} & set(options))
    _spoil(rng, columns)
    return Design(columns, options, _sets(rng, sketch), sketch)


def _spoil(rng: np.random.Generator, columns: dict[str, list[object]]) -> None:
    """Now and then one site alone, every row twice, a perfect score, or a column that repeats the score."""
    kind = rng.choice(["", "one site", "copies", "perfect", "repeats"], p=[0.78, 0.06, 0.06, 0.04, 0.06])
    if kind == "one site":
        columns["site"] = ["Valley"] * len(columns["site"])
    elif kind == "copies":
        for values in columns.values():
            values.extend(values[: len(values) // 2])
    elif kind == "perfect":
        columns["risk"] = [0.5 if y == "" else float(str(y)) for y in columns["outcome"]]
    elif kind == "repeats":
        columns["rank"] = [round(10 * float(str(p)), 3) for p in columns["risk"]]


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return np.asarray(1 / (1 + np.exp(-x)))


def _truth(rng: np.random.Generator, x: np.ndarray, site: np.ndarray, age: np.ndarray, place: np.ndarray) -> np.ndarray:
    """What the logits should be: these, or tilted, moved, wrong at one site, along age, or where two things meet."""
    kind = rng.choice(["right", "tilted", "moved", "site", "age", "corner", "far", "opposite"])
    strength = float(rng.uniform(0.3, 1.5))
    off = {
        "right": 0 * x,
        "tilted": strength * (x - x.mean()),
        "moved": strength / 2 + 0 * x,
        "site": strength * (site == 1),
        "age": strength * (age - 60) / 20,
        "corner": 2 * strength * ((site == 0) & (place == 1)),
        "far": 4 * strength + 0 * x,
        "opposite": strength * np.where(place == 0, 1.0, -1.5),
    }
    return np.asarray(x + off[str(kind)])


def _of_clusters(rng: np.random.Generator, patients: int, owner: np.ndarray) -> np.ndarray:
    return np.asarray(rng.normal(0, 0.7, patients)[owner] if patients and rng.random() < 0.6 else 0.0 * owner)


def _sets(rng: np.random.Generator, sketch: bool) -> list[str]:
    """Options that change what is said: groups, limits, what is judged, readers, how much is tested."""
    out: list[str] = []
    by: list[list[str]] = [
        [],
        ["--by", "site"],
        ["--by", "site,age"],
        ["--by", "site,place", "--intersections"],
        ["--by", "place"],
    ]
    if not sketch:
        out += by[int(rng.choice(len(by), p=[0.2, 0.25, 0.25, 0.15, 0.15]))]
    limits: list[list[str]] = [
        [],
        ["--limit", "0.01"],
        ["--limit", "0.05"],
        ["--limit", "0.15"],
        ["--limit-relative", "0.15"],
    ]
    out += limits[int(rng.choice(len(limits), p=[0.2, 0.15, 0.35, 0.15, 0.15]))]
    judges: list[list[str]] = [[], ["--judge", "gap"], ["--judge", "error"]]
    out += judges[int(rng.choice(len(judges), p=[0.6, 0.25, 0.15]))]
    now_and_then: list[tuple[float, list[str]]] = [
        (0.15, ["--variables", "none"]),
        (0.1, ["--publish"]),
        (0.1, ["--mask", "none"]),
        (0.1, ["--mask", "60"]),
        (0.1, ["--target", "population"]),
        (0.12, ["--threshold", "0.3,0.5"]),
        (0.2, ["--about", "WORDS"]),
        (0.4, ["--quick"]),
    ]
    for chance, more in now_and_then:
        refused = (sketch and more[0] in ("--variables", "--threshold")) or (more[0] == "--mask" and "--publish" in out)
        out += more if rng.random() < chance and not refused else []
    return out


def audited(seed: int, folder: Path) -> Audited:
    """Audit a design with the command, as a user would; the record is read as it was written."""
    made = design(seed)
    source, target = folder / f"log{seed}.csv", folder / f"log{seed}.json"
    with source.open("w", newline="", encoding="utf-8") as out:
        writer = csv.writer(out)
        writer.writerow(made.columns)
        writer.writerows(zip(*made.columns.values(), strict=True))
    about = folder / "about.toml"
    about.write_text("".join(f'{name} = "{word}"\n' for name, word in WORDS.items()), encoding="utf-8")
    options = [str(about) if word == "WORDS" else word for word in made.options]
    words = ["audit", str(source), *made.reading, *options]
    if made.sketch:
        sketch = str(source.with_suffix(".sketch"))
        _runs(["sketch", str(source), *made.reading, "--by", "site", "--out", sketch])
        words = ["audit", sketch, *options]
    _runs([*words, "-o", str(target)])
    record = AuditRecord.from_dict(json.loads(target.read_text(encoding="utf-8")))
    return Audited(
        shlex.join(["calibrant", *words]),
        record,
        document(record),
        html.render(record),
        markdown.render(record),
        terminal.render(record),
    )


def _runs(words: list[str]) -> None:
    with contextlib.redirect_stdout(io.StringIO()) as printed, contextlib.redirect_stderr(printed):
        status = main(words)
    assert status in STATUSES, f"{shlex.join(words)}: {status}\n{printed.getvalue()}"
