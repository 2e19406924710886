"""What to do: each state of a record has one action, whose command is another than was run, parses, and runs."""

from __future__ import annotations

import re
import shlex
from argparse import Namespace
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import calibrant as cal
import factories
from calibrant.audit.record import AuditRecord, Groups
from calibrant.cli.parser import build_parser
from calibrant.cli.run import main
from calibrant.report import commands, html, markdown, terminal
from calibrant.report.brief.action import MADE, STATES, decision, state_of
from calibrant.report.brief.rests import signing
from calibrant.report.spans import Span, plain
from calibrant.report.wording.in_python import arguments, in_python, unquoted
from effort import examples

DOCS = Path(__file__).parents[3] / "docs"
ENDS = {  # exit statuses that the help of each command names; 2 only where something in the way is the answer
    "audit": {0, 1, 3},
    "look": {0, 2},
    "plan": {0},
    "repair": {0, 1, 3},
}
OUTPUTS = ("json", "out", "open")


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
    return a != b or not {*one.out} <= {*other.out}


def checked(record: AuditRecord) -> str:
    """Hold the action of a record against what every action is; return its command."""
    made = decision(record)
    text = plain(made.text)
    assert re.fullmatch(r"[A-Z“].*[.:]", text, re.DOTALL), text
    assert len(re.findall(r"[.!?](?= [A-Z])", text)) <= 3, text
    assert "  " not in text, text
    assert made.command, (state_of(record), text)
    assert "COLUMN" not in made.command
    edited = state_of(record) == "no use stated"  # what differs is in the file of words
    assert edited or differs(parsed(made.command), parsed(commands.command(record))), made.command
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
    said = commands.wording(record)
    said += "" if "intended_use" in said else "\nintended_use = 'triage'"
    Path("about.toml").write_text(said, encoding="utf-8")
    words = shlex.split(command.replace("\\\n", " "))
    if run:
        status = main(words[1:])
        assert status in ENDS[words[1]], (status, command)
        assert status != 2 or state_of(record) in ("copies", "one outcome", "undecided"), command
    return state_of(record)


@pytest.mark.slow
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


def known(record: AuditRecord, verdict: str, shown: str = "everyone") -> AuditRecord:
    """A record whose parts all have one verdict, with error shown of one part, and without a repair that helps."""
    fixed = record.curve("fixed")
    fixed = replace(fixed, settings={**fixed.settings, "candidate": None})
    parts = ("everyone", "groups", "subgroups")
    one = replace(record.everyone, verdict=verdict, error_shown=shown == "everyone")
    groups = tuple(replace(f, verdict=verdict, error_shown=shown == "groups") for f in record.groups)
    return replace(
        record,
        verdict=verdict,
        verdicts=dict.fromkeys(parts, verdict),
        error_shown={part: part == shown for part in parts},
        everyone=one,
        groups=Groups(groups),
        curves={k: v for k, v in record.curves.items() if k != "subgroups"} | {"fixed": fixed},
    )


def test_error_within_the_limit_is_nothing_to_stop_for() -> None:
    made = factories.whole()
    for shown, command in (("groups", "--rows-of"), ("everyone", "-o audit.json")):
        record = known(made, "within", shown)
        assert state_of(record) == "shown, within the limit"
        text = plain(decision(record).text)
        assert "within the limit, but error is shown" in text
        assert "Do not rely" not in text
        assert command in decision(record).command
        assert state_of(known(made, "undecided", shown)) in ("off, look at it", "off, not repaired")


@pytest.mark.slow
def test_what_is_judged_after_looking_says_so_in_the_next_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(2)
    p = rng.uniform(0.2, 0.8, 900).round(3)
    pd.DataFrame({"y": (rng.uniform(size=900) < p).astype(int), "p": p}).to_csv("log.csv", index=False)
    record = cal.audit("log.csv", label="y", score="p", limit=0.06, quick=True, about={"set_by": "the board"})
    assert state_of(record) == "gap decides"
    made = decision(record)
    (line,) = (span.text for span in made.text if span.text.startswith("set_by = "))
    Path("about.toml").write_text(line, encoding="utf-8")
    main([*shlex.split(made.command.replace("\\\n", " "))[1:], "-o", "next.json"])
    after = AuditRecord.load("next.json")
    assert after.everyone.verdict == "within"
    assert "the board; gap chosen after the calibration error was undecided" in html.render(after)


@pytest.mark.slow
def test_certified_ranges_say_the_level_that_they_have() -> None:
    rng = np.random.default_rng(0)
    p, site = rng.uniform(size=600), np.array(["a", "b", "c"])[np.arange(600) % 3]
    data = cal.predictions(rng.uniform(size=600) < p, p, {"site": site})
    levels = {}
    for judge in ("auto", "error", "gap"):
        record = cal.audit(data, by="site", limit=0.1, judge=judge, quick=True)
        one, group = record.everyone, record.groups[0]
        levels[judge] = tuple(f.guaranteed.level for f in (one.error, one.gap, group.error, group.gap))
        assert all(f.gap.interval.level == 0.95 for f in (one, *record.groups))
        spent = {f.gap.settings["delta"] for f in record.groups}
        assert {round(1.0 - 3 * sum(d), 9) for d in spent} == {round(group.gap.guaranteed.level, 9)}
    assert levels == {
        "auto": (0.9, 0.95, 0.965, 0.96),
        "error": (0.9, 0.95, 0.95, 0.95),
        "gap": (0.9, 0.95, 0.95, 0.95),
    }


@pytest.mark.slow
def test_whoever_signs_reads_the_error_of_what_is_certified_at_thresholds() -> None:
    rng = np.random.default_rng(1)
    p = rng.uniform(size=600)
    data = cal.predictions(rng.uniform(size=600) < p, p)
    record = cal.audit(data, limit=0.1, threshold=0.4, alpha=0.1, quick=True)
    joint = next(plain(e.text) for e in signing(record).entries if e.term == "Joint error")
    assert "decisions 10%, net benefit curve 10%, rates 10%" in joint
    without = cal.audit(data, limit=0.1, alpha=0.1, quick=True)
    assert "at thresholds" not in next(plain(e.text) for e in signing(without).entries if e.term == "Joint error")


def answered(data: Any, options: dict[str, Any]) -> None:
    """Run the calls of a record made in Python; find no option of the command line in what it says."""
    record = cal.audit(data, **options)
    made = decision(record)
    exec(made.command, {"cal": cal, "data": data})  # noqa: S102  # what a reader would run
    exec(commands.command(record), {"cal": cal, "data": data})  # noqa: S102
    for text in (markdown.render(record), repr(record), terminal.render(record)):
        assert not re.search(r"(?<![\w|-])--[a-z]", text), re.search(r".{40}--[a-z].{20}", text)
    assert made.command.splitlines()[0] in repr(record)


def in_memory(seed: int, path: Path) -> Iterator[tuple[Any, dict[str, Any]]]:
    """A random log as a frame and as arrays, each with the options of its audit."""
    where, how = random_log(seed, path)
    frame = pd.read_csv(where)
    yield frame, how
    more = {k: frame[how[k]] for k in ("cluster", "weights") if k in how} | {
        k: how[k] for k in ("missing",) if k in how
    }
    rest = frame.drop(columns=["y", "p", *(how[k] for k in ("cluster", "weights") if k in how)])
    options = {k: v for k, v in how.items() if k not in ("label", "score", *more)}
    with suppress(cal.BadInput):  # no label may be missing that nobody keeps
        yield cal.predictions(frame["y"], frame["p"], rest, **more), options


@pytest.mark.nightly
@pytest.mark.parametrize("part", range(20))
def test_audits_of_frames_and_arrays_are_answered_in_python(
    part: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    refused = 0
    for seed in range(10 * part, 10 * part + 10):
        for data, options in in_memory(seed, tmp_path):
            try:
                cal.audit(data, **options)
            except (cal.BadInput, cal.NotComputable):
                refused += 1
            else:
                answered(data, options)
    assert refused <= 4


@pytest.mark.slow
def test_an_audit_made_in_python_is_answered_in_python(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The call of each action runs, and no option of the command line stands in text, page or Markdown."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(3)
    p, site = rng.uniform(size=400).round(3), np.array(["Valley", 'a "b", c'])[np.arange(400) % 2]
    off = np.where(site == "Valley", 0.35, 0.0)
    frame = pd.DataFrame({"y": (rng.uniform(size=400) < np.clip(p + off, 0, 1)).astype(int), "p": p, "site": site})
    how: dict[str, Any] = {"label": "y", "score": "p", "quick": True}
    arrays = cal.predictions(frame["y"], frame["p"], {"site": site})
    ward = np.arange(400) // 10  # one outcome each, so that no verdict is given before they are clusters
    wards = cal.predictions(np.repeat(frame["y"][:40], 10), p, {"ward": ward}, weights=1.0 + ward % 2)
    for data, options in (
        (frame, how),
        (frame, how | {"limit": 0.05, "by": "site"}),
        (frame, how | {"limit": 0.3, "by": ["site"], "variables": ()}),
        (arrays, {"quick": True, "limit": 0.2, "by": "site", "judge": "gap"}),
        (cal.predictions(frame["y"], frame["p"], cluster=ward), {"quick": True, "limit": 0.1}),
        (wards, {"quick": True, "limit": 0.05}),
    ):
        answered(data, options)
    assert "cluster=data.covariates" in decision(cal.audit(wards, quick=True)).command
    rows: dict[str, Any] = {"cal": cal, "data": frame}
    exec(commands.rows_of(cal.audit(frame, **how, by="site"), "site = Valley"), rows)  # noqa: S102
    assert len(rows["rows"]) == 200


@pytest.mark.parametrize(
    ("option", "argument"),
    [
        ("--cluster none", 'cluster="none"'),
        ("--by 'site,\"a, b\"' --intersections", 'by=["site", "a, b"], intersections=True'),
        ("--variables none", "variables=()"),
        ("--bins age=40,60", 'bins={"age": [40.0, 60.0]}'),
        ("--limit-relative 0.2", "limit_relative=0.2"),
        ("--costs 1,4", "costs=[1.0, 4.0]"),
        ("--quick", "quick=True"),
        ("--ward", "--ward"),
    ],
)
def test_options_are_arguments_in_python(option: str, argument: str) -> None:
    assert in_python((Span(option, "code"),)) == (Span(argument, "code"),)
    assert in_python(Span("Keep it with --allow (--cluster COLUMN).", "text")).text == (
        'Keep it with allow= (cluster="COLUMN").'
    )


@given(st.lists(st.text(st.sampled_from("ab'\"\\ $=,\n\t")), max_size=4))
@examples(50)
def test_words_of_a_command_are_read_back(words: list[str]) -> None:
    assert unquoted(" ".join(map(shlex.quote, words))) == words


def test_a_long_word_of_a_command_is_read_back() -> None:
    """By `shlex.split` it takes minutes."""
    name = "n" * 4_000_000
    assert arguments([f"--name {name}"]) == {"name": f'"{name}"'}
