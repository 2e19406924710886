"""What the command says of itself: short and whole help, what is meant by another word, and completion in shells."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from calibrant.arguments import HEADINGS
from calibrant.cli import main
from calibrant.cli.completion import SHELLS, known
from calibrant.cli.options import KNOWN_AS
from calibrant.cli.parser import COMMANDS, FIRST
from calibrant.plugins import COMMANDS as PLUGGED

SHORT = {
    *("--label", "--score", "--by", "--limit", "--cluster", "--weights", "--positive", "--missing", "--quick"),
    *("--alpha", "--out", "--open"),
}
OLD = {
    "audit": {
        "--report a.html": "write -o a.html",
        "--report=page": "write -o html:page",
        "--markdown -": "write -o markdown:-",
        "--json a.json": "--json prints the record: write -o a.json",
        "--json -": "--json prints the record: leave - out",
        "--pdf a.pdf": "write -o a.pdf",
        "--tripod items.md": "write -o tripod:items.md",
        "--junit j.xml": "write -o j.xml",
        "--summary s.md": "write -o summary:s.md",
        "--metrics m.json": "write -o metrics:m.json",
        "--model-card c.md": "write -o model-card:c.md",
        "--noun loans": 'write noun = "loans" into a file, and pass it by --about about.toml',
        "--date 2026-01-31": 'write date = "2026-01-31" into a file',
        "--set-by": 'write set_by = "…" into a file',
        "--drop-missing": "write --missing drop",
    },
    "report": {"--report a.html": "write -o a.html"},
    "example": {"--outcome ill": 'write outcome = "ill" into a file'},
    "repair": {"--calibrator c.json": "write -o c.json"},
    "apply": {"--print-sql spark": "write -o spark:-", "--print-javascript": "write -o javascript:-"},
    "certify": {"--odds 2": "write --missing-odds 2"},
}


def said(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """What a refusal says."""
    assert main(words) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    return err


def help_of(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(words) == 0
    return capsys.readouterr().out


def options(text: str) -> set[str]:
    return set(re.findall(r"^  (?:-\w [\w.]+, )?(--[\w-]+)", text, re.MULTILINE)) - {"--help", "--help-all"}


def test_the_first_help_has_seven_commands_and_more_has_the_rest(capsys: pytest.CaptureFixture[str]) -> None:
    listed = help_of(capsys, "--help").partition("exit status")[0]
    assert tuple(dict.fromkeys(re.findall(r"^  calibrant (\w+)", listed, re.MULTILINE))) == FIRST
    others = re.findall(r"^  (\w+) ", help_of(capsys, "more"), re.MULTILINE)
    assert {*others} == {*COMMANDS, *PLUGGED.table} - {*FIRST, "more"}


def test_the_help_of_an_audit_has_twelve_options_and_the_whole_help_has_all(
    capsys: pytest.CaptureFixture[str],
) -> None:
    short, whole = (help_of(capsys, "audit", h) for h in ("--help", "--help-all"))
    assert options(short) == SHORT
    assert options(whole) == {o for o in known()["audit"].options if o.startswith("--")} - {"--help", "--help-all"}
    headings = re.findall(r"^([A-Z]\w+):$", whole, re.MULTILINE)
    assert tuple(headings) == HEADINGS
    unsorted = whole.partition("\noptions:")[2].partition(f"\n{HEADINGS[0]}:")[0]
    assert options(unsorted) == set()


@pytest.mark.parametrize(("command", "words", "instead"), [(c, w, i) for c, of in OLD.items() for w, i in of.items()])
def test_an_old_option_is_refused_with_the_new_one(
    command: str, words: str, instead: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert instead in said(capsys, command, "x", *words.split())


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["audti"], "did you mean calibrant audit?"),
        (["recalibrate"], "did you mean calibrant repair?"),
        (["measure", "eec"], "did you mean calibrant measure ece?"),
        (["audit", "x", "--lmit", "0.1"], "no option --lmit: did you mean --limit?"),
        (["audit", "x", "--prob", "p"], "no option --prob: did you mean --score?"),
        (["look", "x", "--pos-label=yes"], "no option --pos-label: did you mean --positive?"),
        (["measure", "ece", "x", "--n_bins", "10"], "no option --n_bins: did you mean --bins?"),
        (["audit", "x", "--colour", "red"], "no option --colour; all options: calibrant audit --help-all"),
        (["report", "a.json", "b.json"], "unrecognized arguments: b.json"),
    ],
)
def test_what_is_meant_is_named(words: list[str], meant: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert meant in said(capsys, *words)


def test_other_words_lead_to_options_and_commands_that_there_are() -> None:
    every = known()
    options = {o for one in every.values() for o in one.options}
    assert {*KNOWN_AS.values()} <= options | {*every[""].words}
    assert {f"--{word}" for word in KNOWN_AS} & {*every["audit"].options} == {"--help"}


# ---- outputs ----


@pytest.mark.parametrize(
    ("out", "why"),
    [
        ("tripd:x.md", "'tripd' names no output: write tripod:x.md, or ./tripd:x.md for a file whose name has a colon"),
        ("rows.csv", "end the name of a file in .html, .json, .md, .pdf, .xml, that of a directory in /"),
        ("-", "say what to write before a colon, such as markdown:-"),
        ("", "cannot write '': name a file"),
    ],
)
def test_an_output_without_a_kind_is_refused(out: str, why: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert why in said(capsys, "audit", "x.csv", "--label", "y", "--score", "p", "-o", out)


@pytest.mark.parametrize("command", [["sketch", "x.csv"], ["merge", "a.sketch", "b.sketch"]])
def test_one_file_is_written_by_what_writes_one(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    why = said(capsys, *command, "-o", "a", "-o", "b")
    assert "argument -o/--out: a and b: this command writes one file, name one" in why


# ---- completion ----

ASKED = {
    "calibrant aud": {"audit"},
    "calibrant audit x --missing-": {"--missing-odds"},
    "calibrant audit x --lab": {"--label"},
    "calibrant audit x --missing ": {"level", "drop", "keep", "refuse"},
    "calibrant measure ec": {"ece"},
    "calibrant measure ece x --steps-nothing": set[str](),
    "calibrant detect local_calibration_test --nul": {"--null"},
    "calibrant completion ": {*SHELLS},
}
IN_BASH = """source {script}
read -r -a COMP_WORDS <<< "$1"
[[ $1 == *" " ]] && COMP_WORDS+=("")
COMP_CWORD=$(( ${{#COMP_WORDS[@]}} - 1 ))
_calibrant
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


def completed(shell: str, script: Path, line: str) -> set[str]:
    """What a shell offers behind a line."""
    if shell == "fish":
        words = ["fish", "--no-config", "-c", f"cd /; source {script}; complete -C $argv[1]", line]
    else:
        words = ["bash", "--norc", "-c", IN_BASH.format(script=script), "bash", line]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    return {w.split("\t")[0] for w in done.stdout.splitlines()} - {""}


@pytest.mark.slow
@pytest.mark.parametrize("shell", ["bash", "fish"])
def test_a_shell_completes(shell: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    script = tmp_path / f"calibrant.{shell}"
    script.write_text(help_of(capsys, "completion", shell), encoding="utf-8")
    for line, offered in ASKED.items():
        assert completed(shell, script, line) == offered, line


IN_ZSH = """zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell 'PS1=; source {script}; calibrant() {{ print -r -- "<$*>" }}'
zpty -w -n shell $'calibrant aud\\tx --missing dr\\t\\n'
zpty -r -m shell line '*<audit*>*' && print -r -- "$line"
"""


@pytest.mark.slow
def test_zsh_completes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if shutil.which("zsh") is None:
        pytest.skip("zsh is not installed")
    script = tmp_path / "calibrant.zsh"
    script.write_text(help_of(capsys, "completion", "zsh"), encoding="utf-8")
    words = ["zsh", "-f", "-c", IN_ZSH.format(script=script)]
    done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=60, cwd="/")
    assert "<audit x --missing drop>" in done.stdout
