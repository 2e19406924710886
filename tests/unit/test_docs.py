"""The documentation is true: its code runs, its links lead somewhere, its commands parse, its signatures are real."""

from __future__ import annotations

import csv
import doctest
import importlib
import math
import pkgutil
import re
import runpy
import shlex
import unicodedata
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import calibrant as cal
from calibrant.cli import build_parser
from pages import FENCE, PAGES, ROOT, blocks, commands, name_of

WITH = [ROOT / f"{name}.md" for name in ("AGENTS", "CONTRIBUTING", "CHANGELOG", "SECURITY")]
LINKED = [*PAGES, *(p for p in WITH if p.exists())]
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)(?:\s+\"[^\"]*\")?\)")
OTHERS = ("gallery/index", "notebooks/employment")  # pages of the site that are no Markdown
OUTSIDE = ("http://", "https://", "mailto:")


@cache
def anchors(page: Path) -> set[str]:
    """Return the ids of the headings of a page, as `docs/_ext/pages.py` makes them, and those written out."""
    text = page.read_text(encoding="utf-8")
    out = set(re.findall(r'<a id="([^"]+)"></a>', text))
    for line in FENCE.sub("", text).splitlines():
        if line.startswith("#"):
            plain = re.sub(r"[`*]", "", line.lstrip("#").strip())
            ascii_only = unicodedata.normalize("NFKD", plain).encode("ascii", "ignore").decode()
            out.add(re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", ascii_only).strip().lower()))
    return out


def test_info_strings_are_known() -> None:
    known = {"python", "python no-run", "bash", "console", "text", "yaml", "json", "toml", "sh", ""}
    known |= {"{toctree}", "{eval-rst}", "r", "text formula", "text elsewhere"}
    for page in LINKED:
        for info, _, line in blocks(page.read_text(encoding="utf-8")):
            assert info in known, f"{name_of(page)}:{line}: {info!r} would not be run"


def test_relative_links_resolve() -> None:
    links = [(p, t) for p in LINKED for t in LINK.findall(FENCE.sub("", p.read_text(encoding="utf-8")))]
    assert len(links) > 250
    for page, target in links:
        if target.startswith(OUTSIDE):
            continue
        file, _, anchor = target.partition("#")
        there = (page.parent / file).resolve() if file else page
        if there.suffix == ".myst":
            continue  # the build of the site writes it; tests/papers and test_reference.py look at these
        assert there.exists(), f"{name_of(page)} links to {target}"
        if anchor and there.suffix == ".md":
            assert anchor in anchors(there), f"{name_of(page)} links to {target}"


def test_command_lines_parse() -> None:
    parser = build_parser()
    typed = [
        (f"{name_of(page)}:{line}", words)
        for page in LINKED
        for info, body, line in blocks(page.read_text(encoding="utf-8"))
        if info in ("bash", "console", "yaml")
        for words in commands(body)
        if words != ["COMMAND", "--help"]
    ]
    assert len(typed) > 60
    for where, words in typed:
        try:
            parser.parse_args(words)
        except SystemExit as stop:
            assert stop.code == 0, f"{where}: calibrant {' '.join(words)}"  # noqa: PT017


def test_commands_are_found_and_cut_at_the_shell() -> None:
    text = "$ calibrant audit a.csv --label y \\\n  --score p | jq .verdict\n  calibrant plan 0.02 > out.txt # why\n"
    assert list(commands(text)) == [["audit", "a.csv", "--label", "y", "--score", "p"], ["plan", "0.02"]]
    assert any(list(commands(b)) for p in PAGES for _, b, _ in blocks(p.read_text(encoding="utf-8")))


FOLDERS = sorted(m.name for m in pkgutil.iter_modules(cal.__path__) if m.ispkg)


@pytest.mark.slow
@pytest.mark.parametrize("folder", ["", *FOLDERS])
def test_doctests(folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    root = Path(cal.__path__[0])
    for path in sorted((root / folder).rglob("*.py") if folder else root.glob("*.py")):
        if ">>>" in path.read_text(encoding="utf-8"):
            module = ".".join(["calibrant", *path.relative_to(root).with_suffix("").parts]).removesuffix(".__init__")
            failed, tried = doctest.testmod(importlib.import_module(module), raise_on_error=False)
            assert tried, module
            assert not failed, module


@pytest.mark.slow
@pytest.mark.skipif(not (ROOT / "docs/start.md").exists(), reason="a source distribution without docs")
def test_the_start_page_shows_the_headline_of_the_example(example: Any) -> None:
    printed = " ".join(example.printed.split())
    page = (ROOT / "docs/start.md").read_text(encoding="utf-8")
    headline = next(body for info, body, _ in blocks(page) if info == "text elsewhere").strip()
    assert headline in printed
    least = re.search(r"\*\*(at least [\d.]+) points\*\*", page)
    assert least is not None
    assert re.search(rf"foreign born: [^;]*; {re.escape(least[1])} guaranteed", printed)
    limit = re.search(r"limit of the example is ([\d.]+) points", page)
    assert limit is not None
    assert f"limit {limit[1]} points" in printed


@pytest.mark.slow
def test_the_readme_states_the_error_probabilities_of_the_example(example: Any) -> None:
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    stated = re.search(r"\"over\" wrongly in at most ([\d.]+)% of audits .*\"within\" .* at most ([\d.]+)%", page)
    assert stated is not None
    joint = example.record.joint_error
    assert [float(v) / 100 for v in stated.groups()] == pytest.approx([joint["over"], joint["within"]])


def test_every_page_is_in_the_navigation_once() -> None:
    docs = ROOT / "docs"
    pages = sorted(p for p in docs.rglob("*.md") if "_" not in p.relative_to(docs).parts[0][:1])
    listed = [docs / "index.md"]
    for page in pages:
        for info, body, _ in blocks(page.read_text(encoding="utf-8")):
            if info == "{toctree}":
                names = [re.sub(r".*<(.*)>", r"\1", n) for n in body.splitlines() if n and not n.startswith(":")]
                listed += [(page.parent / f"{n}.md").resolve() for n in names if n not in OTHERS]
    assert sorted(listed) == pages


@pytest.mark.parametrize("face", cal._MODULES)
def test_the_reference_has_a_page_of_every_public_name(face: str) -> None:
    if not (ROOT / "docs/reference").exists():
        pytest.skip("a source distribution without docs")
    page = (ROOT / f"docs/reference/{face}.md").read_text(encoding="utf-8")
    names = set(getattr(cal, face).__all__)
    if face == "papers":  # what other modules hold too has its page there
        names -= {
            name for other in ("certify", "detect", "diagnose", "measure") for name in getattr(cal, other).__all__
        }
    assert sorted(re.findall(r"^   (\w+)$", page, re.M)) == sorted(names)


def test_pictures_are_small_drawn_by_the_script_and_shown() -> None:
    script = (ROOT / "docs/pictures.py").read_text(encoding="utf-8")
    shown = "".join(p.read_text(encoding="utf-8") for p in PAGES)
    for picture in sorted((ROOT / "docs/img").glob("*.svg")):
        assert picture.stat().st_size < 50_000
        assert f"def {picture.stem}() -> Any:" in script
        assert f"img/{picture.name})" in shown, f"no page shows {picture.name}"


def test_prose_keeps_its_budget() -> None:
    """Words of a page, of a paragraph and of a sentence: docs/words.py counts."""
    script = runpy.run_path(str(ROOT / "docs/words.py"))
    wrong = [fault for name, text in script["pages"]().items() for fault in script["faults"](name, text)]
    assert not wrong, "\n".join(["", *wrong])


def test_prose_is_counted_without_code_tables_and_links() -> None:
    script = runpy.run_path(str(ROOT / "docs/words.py"))
    code, table = "```bash\nnot this\n```\n\n", "| nor | this |\n|---|---|\n\n"
    text = f"# One title\n\nTwo `code` [words](a.md) here.\n\n{code}{table}* an item\n"
    assert script["paragraphs"](text) == ["One title", "Two code words here.", "an item"]
    long = "word " * 36 + "end. " + "Short one."
    assert len(script["faults"]("docs/index.md", long)) == 1
    assert "docs/index.md: 301 words, budget 300" in script["faults"]("docs/index.md", "A b.\n\n" * 150 + "end")


@pytest.mark.skipif(not (ROOT / "docs/evidence.md").exists(), reason="a source distribution without docs")
def test_the_price_of_certificates_by_units_is_that_of_its_table() -> None:
    page = (ROOT / "docs/evidence.md").read_text(encoding="utf-8").partition("<!-- clusters: begin -->")[2]
    even: list[tuple[float, float]] = []
    hard: list[tuple[float, float]] = []
    with (ROOT / "docs/evidence/clusters-width.csv").open(encoding="utf-8", newline="") as file:
        for line in csv.DictReader(file):
            names = "high end: clusters, rows, bootstrap", "half width of the gap"
            high, gap = ([float(v) for v in line[name].split(",")] for name in names)
            (even if re.match(r"2,000 rows|200 clusters of 10,", line["design"]) else hard).append(
                (gap[0] / gap[2], high[0] / high[2])
            )
    assert (len(even), len(hard)) == (10, 9)
    span = r"([\d.]+) to ([\d.]+)"
    sentence = re.search(
        rf"the gap is {span} times as wide.*? {span} times as high\. .*?, the factors are {span} and {span} times", page
    )
    assert sentence is not None
    ends = [float(v) for v in sentence.groups()]
    for which, (low, high) in enumerate(zip(ends[::2], ends[1::2], strict=True)):
        values = [pair[which % 2] for pair in (even, hard)[which // 2]]
        assert low == math.floor(10 * min(values)) / 10
        assert high == math.ceil(10 * max(values)) / 10


def test_the_guide_for_agents_is_what_the_command_prints(capsys: pytest.CaptureFixture[str]) -> None:
    from calibrant.cli import main

    assert main(["guide"]) == 0
    assert capsys.readouterr().out == (ROOT / "AGENTS.md").read_text(encoding="utf-8")


def test_the_guide_for_agents_names_real_commands() -> None:
    from calibrant.cli import build_parser

    text = (ROOT / "AGENTS.md").read_text(encoding="utf-8")
    table = text.partition("## Which command")[2].partition("## How to read")[0]
    asked = [shlex.split(c) for c in re.findall(r"`calibrant ([^`]+)`", table)]
    assert len(asked) > 12
    for words in asked:
        if "NAME" not in words and len(words) > 1:
            build_parser().parse_args(words)
    named = {words[0] for words in asked}
    assert {"look", "audit", "plan", "accept", "compare", "repair", "apply", "sketch", "merge", "report"} <= named


@pytest.mark.skipif(not (ROOT / "CITATION.cff").exists(), reason="an installed package")
def test_there_is_one_version() -> None:
    reported = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {cal.__version__}\n" in reported
    assert 'dynamic = ["version",' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")


def test_installs_are_from_the_repository() -> None:
    """As long as no package index has calibrant: pip would fail, or find what somebody else called so."""
    for page in LINKED:
        for words in re.findall(r"pip install ([^`#&|\n]*)", page.read_text(encoding="utf-8")):
            asked = [re.sub(r"[\[<>=~!@;].*", "", word.strip("'\",.;:)")) for word in words.split()]
            assert "calibrant" not in asked, f"{name_of(page)}: pip install {words}"
