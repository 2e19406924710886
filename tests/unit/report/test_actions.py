"""What to do: each state of a record has one action, whose command is another than was run, parses, and runs."""

from __future__ import annotations

import re
import shlex
from argparse import Namespace
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import calibrant as cal
from calibrant.audit.record import AuditRecord
from calibrant.cli.parser import build_parser
from calibrant.cli.run import main
from calibrant.report import commands
from calibrant.report.brief.action import MADE, STATES, decision, state_of
from calibrant.report.spans import plain

DOCS = Path(__file__).parents[3] / "docs"
ENDS = {  # exit statuses that the help of each command names; 2 only where something in the way is the answer
    "audit": {0, 1, 3},
    "look": {0, 2},
    "plan": {0},
    "repair": {0, 1, 3},
}
OUTPUTS = ("report", "markdown", "json", "out", "open", "func", "installed")


def any_of(rng: np.random.Generator, *values: Any) -> Any:
    return values[int(rng.integers(len(values)))]


def random_log(seed: int, path: Path) -> tuple[Path, dict[str, Any]]:
    """Write a small log of a kind that chance picks, and return it with the options of its audit."""
    rng = np.random.default_rng([0xAC7, seed])
    n = int(any_of(rng, 90, 160, 300, 600, 1500))
    centre = float(any_of(rng, -4.0, -1.0, 0.0))
    patient = rng.integers(0, max(n // 3, 2), n)
    site = rng.choice(np.array(["Valley", "Bay, north", "Hill", "Lake"]), n, p=[0.15, 0.35, 0.3, 0.2])
    frame = pd.DataFrame({"site": site, "age": rng.integers(18, 95, n), "x 2": rng.normal(size=n).round(3)})
    logit = centre + rng.normal(size=n) + 0.3 * frame["x 2"]
    p = 1 / (1 + np.exp(-logit))
    kind = any_of(rng, "calibrated", "calibrated", "all", "site", "slope", "age")
    off = {
        "all": np.full(n, 1.0),
        "site": 1.5 * (site == "Valley"),
        "slope": -0.6 * (logit - centre),
        "age": 1.2 * (frame["age"] > 60),
    }.get(kind, np.zeros(n))
    rate = 1 / (1 + np.exp(-(logit + off)))
    uniform = rng.uniform(size=n)
    if rng.uniform() < 0.25:
        uniform = rng.uniform(size=n)[patient]  # correlated, whether or not somebody names the cluster
    frame.insert(0, "y", (uniform < rate).astype(int))
    frame.insert(1, "p", p.round(int(any_of(rng, 1, 2, 6))))
    how: dict[str, Any] = {"label": "y", "score": "p"}
    if rng.uniform() < 0.5:
        frame["patient"] = [f"P{i}" for i in patient]
        if rng.uniform() < 0.7:
            how["cluster"] = "patient"
    if rng.uniform() < 0.15:
        frame["w"] = rng.uniform(0.5, 2.0, n).round(2)
        how["weights"] = "w"
    if rng.uniform() < 0.1:
        frame.loc[rng.uniform(size=n) < 0.05, "y"] = np.nan
        how["missing"] = any_of(rng, "drop", "keep")
    if rng.uniform() < 0.05:
        frame = pd.concat([frame] * 3)
    if rng.uniform() < 0.05:
        frame["y"] = 0
    by = any_of(rng, None, ["site"], ["site", "age"], ["age"])
    how |= {} if by is None else {"by": by, "intersections": bool(rng.uniform() < 0.15 and len(by) > 1)}
    how |= any_of(rng, {}, {"limit": 0.02}, {"limit": 0.05}, {"limit": 0.05}, {"limit": 0.1}, {"limit_relative": 0.2})
    how |= any_of(rng, {}, {}, {"judge": "gap"}, {"judge": "error"}) if len(how) else {}
    how |= any_of(rng, {}, {}, {}, {"variables": ()})
    how |= any_of(rng, {}, {}, {"about": {"intended_use": "triage", "set_by": "the board"}})
    how |= any_of(rng, {"quick": True}, {"quick": True}, {})
    where = path / f"log {seed}.csv"
    frame.to_csv(where, index=False)
    return where, how


def parsed(command: str) -> Namespace:
    words = shlex.split(command.replace("\\\n", " "))
    assert words[0] == "calibrant"
    return build_parser().parse_args(words[1:])


def differs(one: Namespace, other: Namespace) -> bool:
    """Whether two commands ask for something else, another file to write apart."""
    a, b = ({k: v for k, v in vars(x).items() if k not in OUTPUTS} for x in (one, other))
    return a != b or (one.json is not None and other.json is None)


def checked(record: AuditRecord) -> str:
    """Hold the action of a record against what every action is; return its command."""
    made = decision(record)
    text = plain(made.text)
    assert re.fullmatch(r"[A-Z“].*[.:]", text, re.DOTALL), text
    assert len(re.findall(r"[.!?](?= [A-Z])", text)) <= 3, text
    assert made.command, (state_of(record), text)
    assert "COLUMN" not in made.command
    assert differs(parsed(made.command), parsed(commands.command(record))), made.command
    return made.command


def audited(seed: int, path: Path) -> AuditRecord | None:
    """The record of a random log; None where the audit refuses it, which has no record."""
    where, how = random_log(seed, path)
    try:
        return cal.audit(where, **how)
    except (cal.BadInput, cal.NotComputable):
        return None


def ran(seed: int, path: Path, monkeypatch: pytest.MonkeyPatch, *, run: bool = True) -> str:
    """Return the state of a random record whose action is as every one is, and whose command runs."""
    monkeypatch.chdir(path)
    record = audited(seed, path)
    if record is None:
        return "refused"
    command = checked(record)
    words = shlex.split(command.replace("\\\n", " "))
    if run:
        status = main(words[1:])
        assert status in ENDS[words[1]], (status, command)
        assert status != 2 or state_of(record) in ("copies", "one outcome", "undecided"), command
    return state_of(record)


@pytest.mark.parametrize("seed", [2, 8, 9])
def test_the_command_of_an_action_runs(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert ran(seed, tmp_path, monkeypatch) in STATES


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_commands_of_actions_run(part: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 40 random records each command is another than was run, and of every fifth it runs to its end."""
    seen = Counter(ran(s, tmp_path, monkeypatch, run=s % 5 == 0) for s in range(10 * part, 10 * part + 10))
    assert seen["refused"] <= 3
    assert len(seen) >= 3


@pytest.mark.nightly
@pytest.mark.parametrize("part", range(20))
def test_commands_of_actions_run_in_depth(part: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same of 200, all of which run."""
    seen = Counter(ran(s, tmp_path, monkeypatch) for s in range(100 + 10 * part, 110 + 10 * part))
    assert seen["refused"] <= 4


def test_the_documented_table_has_every_state_in_its_order() -> None:
    lines = (DOCS / "read-a-report.md").read_text(encoding="utf-8").splitlines()
    rows = [line.split("|")[1].strip() for line in lines if line.startswith("| ") and line.count("|") == 5]
    assert [row for row in rows if row in STATES] == list(STATES) == list(MADE)
