"""The scripts that make the papers' tables and figures again: complete, short, on the public interface, in shape."""

import ast
import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from threadpoolctl import threadpool_limits

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from reproduce import claim, experiment, page, sources  # noqa: E402
from reproduce.variable import deals, models  # noqa: E402

NAMES = experiment.names()
PUBLIC = {
    "calibrant",
    "calibrant.data",
    "calibrant.repair",
    "calibrant.repair.objectives",
    "calibrant.results",
}


def path_of(name: str) -> Path:
    return ROOT / "reproduce" / f"{name}.py"


def imported(path: Path) -> set[str]:
    """Modules of the library that a file imports."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {a.name for a in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add(node.module or "")
    return {m for m in found if m.split(".")[0] == "calibrant"}


@pytest.mark.parametrize("name", NAMES)
def test_shape_at_a_small_size(name: str) -> None:
    """Every script runs, and what must come out at any size comes out."""
    found = experiment.find(name)
    try:
        sources.require(found.needs)
        with threadpool_limits(1):
            result = experiment.carry_out(name, "tiny")
    except sources.Missing as e:
        pytest.skip(f"{e} (CALIBRANT_SHARED)")
    assert result.rows
    assert set(found.sure) <= set(result.claims)
    assert [words for words in found.sure if result.claims[words].holds is False] == []
    assert found.table is None or found.table(result.rows)
    assert found.chart is None or found.chart(result.rows).to_dict()


@pytest.mark.parametrize("name", ["figure_1", "figures_4_8_12", "table_6", "tables_4_9_12"])
def test_a_substitute_stands_in_where_predictions_are_absent(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sources, "SHARED", tmp_path)
    models.read.cache_clear()
    test_shape_at_a_small_size(f"variable/{name}")


@pytest.mark.parametrize("name", NAMES)
def test_what_is_checked_in_is_of_this_script(name: str) -> None:
    result, found = experiment.Result.load(name), experiment.find(name)
    assert result.items == found.items
    assert result.size in ("quick", "full")
    assert result.amount == found.sizes[result.size]
    assert experiment.judged(found, result.rows) == result.claims
    assert experiment.picture(name).is_file() == (found.chart is not None)


def test_a_claim_holds_fails_or_cannot_be_told() -> None:
    """Exact binomial ends by hand: none of 10 is at most 1 - 0.025 ** (1/10) = 0.308."""
    none = claim.share(0, 10, below=0.4)
    assert (none.holds, none.low) == (True, 0.0)
    assert none.high == pytest.approx(1 - 0.025**0.1, abs=1e-6)
    assert [claim.share(0, 10, below=b).holds for b in (0.31, 0.30)] == [True, None]
    assert claim.share(10, 10, below=0.5).holds is False
    assert claim.share(0, 10, below=0.31, looks=2).holds is None
    assert [claim.more(k, 10, 100).holds for k in (60, 12, 0)] == [True, None, False]
    assert [claim.oftener(w, 1, 50).holds for w in (20, 3)] == [True, None]
    assert claim.oftener(0, 0, 50) == claim.Claim(None, 50)
    assert [claim.mean(1.0, 0.1, n, above=0.0).holds for n in (5, 1)] == [True, None]
    parts = [claim.share(0, 10, below=0.4), claim.share(0, 20, below=0.1), claim.Claim(True, 3)]
    assert claim.every(parts) == replace(parts[1], sets=3)
    assert claim.every([]).holds is None
    assert claim.every([*parts, claim.Claim(False)]).holds is False


def test_a_plain_truth_value_rests_on_the_fewest_data_sets_of_any_row() -> None:
    assert claim.of(True) == claim.Claim(True, 1)
    assert claim.of(False, [{"repeats": 8}, {"data sets": 3}, {"n": 2}]) == claim.Claim(False, 3)


@pytest.mark.parametrize("name", NAMES)
def test_every_claim_tells_its_data_sets_and_its_interval_or_why_it_has_none(name: str) -> None:
    for words, c in experiment.Result.load(name).claims.items():
        assert c.sets >= 1, words
        assert c.evidence, words
        assert c.sets == 1 or "[" in c.evidence, words


def test_of_one_data_set_it_is_told_whether_there_is_chance_in_it() -> None:
    assert claim.Claim(True).evidence == claim.ONE
    assert claim.Claim(True, fixed=True).evidence == claim.FIXED
    assert claim.Claim(False, value=0.55, bound=0.05).evidence == f"0.55 against 0.05; {claim.ONE}"
    assert claim.Claim(True, 7).evidence == ""


def test_a_claim_on_networks_holds_in_their_means_and_in_most_of_them() -> None:
    rows = deals.trained([3, 1, 4, 1, 5, 9], lambda r: {"over 0": r[0] > 0, "over 2": r[0] > 2, "over 9": r[0] > 9})
    assert [r["hits"] for r in rows] == [6, 4, 0]
    found = deals.joined({w: claim.Claim(True) for w in ("over 0", "over 2", "over 9")}, rows)
    assert [c.holds for c in found.values()] == [True, None, None]
    assert {c.sets for c in found.values()} == {6}


def test_the_authors_own_deal_of_their_predictions_has_no_chance_in_it() -> None:
    rows = deals.counted(lambda k: [k[1]], 8, 0, lambda r: {"even": r[0] % 2 == 0})
    found = deals.joined({"even": claim.Claim(True), "other": claim.Claim(True)}, rows)
    assert [c.fixed for c in found.values()] == [True, False, False]
    assert list(found.values())[2].sets == 8


@pytest.mark.parametrize("paper", experiment.PAPERS)
def test_no_table_or_figure_is_missing(paper: str) -> None:
    made = [i for n in NAMES if n.startswith(f"{paper}/") for i in experiment.find(n).items]
    assert sorted({*made, *page.without(paper)}) == sorted(experiment.ITEMS[paper])
    assert not set(made) & set(page.without(paper))
    assert {status for status, _ in page.without(paper).values()} <= set(experiment.STATUSES)


def test_the_summary_and_the_list_of_claims_say_what_the_results_say(tmp_path: Path) -> None:
    assert page.SUMMARY.read_text(encoding="utf-8") == page.summary(), "run: python reproduce/page.py"
    page.write_csv(tmp_path / "claims.csv", page.claims())
    assert page.CLAIMS.read_bytes() == (tmp_path / "claims.csv").read_bytes(), "run: python reproduce/page.py"


def test_the_summary_links_to_every_section_of_the_details(tmp_path: Path) -> None:
    page.details(tmp_path)
    links = re.findall(r"\]\(papers/(\w+\.myst)#([\w-]+)\)", page.SUMMARY.read_text(encoding="utf-8"))
    assert len(links) == len(NAMES)
    for file, place in links:
        assert f'<a id="{place}"></a>' in (tmp_path / file).read_text(encoding="utf-8")
    assert {p.stem for p in tmp_path.glob("*.csv")} == {n.replace("/", "_") for n in NAMES}


@pytest.mark.parametrize("path", sorted((ROOT / "reproduce").rglob("*.py")), ids=lambda p: f"{p.parent.name}/{p.name}")
def test_scripts_are_short_and_use_the_public_interface(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 250
    assert imported(path) <= PUBLIC


def test_an_unknown_package_is_named_in_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sources, "CACHE", tmp_path)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(sources.Missing, match="pip could not download no-such-thing==1"):
        sources.package("no-such-thing==1")


def test_results_survive_a_round_trip() -> None:
    for name in NAMES:
        result = experiment.Result.load(name)
        assert [experiment.plain(r) for r in result.rows] == result.rows


def test_numbers_that_json_cannot_hold_are_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(experiment, "RESULTS", tmp_path)
    row = {"share": float("nan")}
    result = experiment.Result(
        name="x/y",
        items=("Table 1",),
        size="quick",
        amount=1,
        seed=0,
        cpu_seconds=0.0,
        versions={},
        claims={},
        rows=[row],
    )
    with pytest.raises(ValueError, match="not JSON compliant"):
        result.save()
