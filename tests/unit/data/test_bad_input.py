"""Every bad input gets one line that names the column, the value and the fix."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyarrow import csv

import calibrant as cal
from calibrant.apps.trackers.summaries import summary
from calibrant.cli import main
from calibrant.errors import BadInput, NotComputable
from calibrant.report import html, markdown, terminal

GOOD: dict[str, Any] = {"y": [0, 1, 1, 0], "p": [0.2, 0.7, 0.9, 0.1], "g": ["a", "a", "b", None]}


def with_(**columns: Any) -> dict[str, Any]:
    return GOOD | columns


EVENTS: list[tuple[str, dict[str, Any], dict[str, Any], tuple[str, ...]]] = [
    ("nan score", with_(p=[0.2, float("nan"), 0.9, 0.1]), {}, ("'p'", "1 value", "row 1", "drop_missing")),
    ("null score", with_(p=[0.2, None, 0.9, None]), {}, ("'p'", "2 values", "row 1")),
    ("null label", with_(y=[0, 1, None, 0]), {}, ("'y'", "row 2")),
    ("logits", with_(p=[-2.0, 0.7, 3.0, 0.1]), {}, ("'p'", "2 values", "row 0", "-2", "logits")),
    ("percentages", with_(p=[20, 70, 90, 10]), {}, ("'p'", "percentages", "percent=True")),
    ("infinite", with_(p=[0.2, float("inf"), 0.9, 0.1]), {}, ("'p'", "row 1", "inf")),
    ("three labels", with_(y=[0, 1, 2, 0]), {}, ("'y'", "row 2", "(2)", "positive=")),
    ("text labels", with_(y=["no", "yes", "yes", "no"]), {}, ("'y'", "'no'", "positive=")),
    ("text scores", with_(p=["a", "b", "c", "d"]), {}, ("'p'", "numbers")),
    ("wrong positive", with_(y=["no", "yes", "yes", "no"]), {"positive": "Yes"}, ("'Yes'", "does not occur")),
    (
        "case spelt twice",
        with_(y=["no", "Yes", "yes ", "no"]),
        {"positive": "Yes"},
        ("'y'", "'yes '", "'Yes'", "one way"),
    ),
    ("unknown label", GOOD, {"label": "Y"}, ("'Y'", "'y'")),
    ("unknown score", GOOD, {"score": "prob"}, ("'prob'", "score")),
    ("unknown group", GOOD, {"by": "gg"}, ("'gg'", "'g'")),
    ("unknown key", GOOD, {"key": "id"}, ("'id'", "key")),
    ("score as group", GOOD, {"by": ["g", "p"]}, ("'p'", "leave it out of the groups")),
    ("group twice", GOOD, {"by": ["g", "g"]}, ("'g'", "twice")),
    ("empty", {"y": [], "p": []}, {}, ("no rows",)),
    ("all missing", with_(p=[None] * 4), {"drop_missing": True}, ("no rows", "4 rows")),
    ("unequal", {"y": [0, 1], "p": [0.5]}, {}, ("equal length",)),
    ("bins of text", GOOD, {"by": "g", "bins": {"g": [1]}}, ("'g'", "not a number")),
    ("bins unsorted", with_(g=[1.0, 2.0, 3.0, 4.0]), {"by": "g", "bins": {"g": [3, 1]}}, ("'g'", "increase")),
    ("bins without group", GOOD, {"bins": {"g": [1]}}, ("'g'", "by=")),
    ("infinite covariate", with_(g=[1.0, 2.0, 3.0, float("inf")]), {"by": "g"}, ("'g'", "infinite")),
]


@pytest.mark.parametrize(("data", "options", "stated"), [c[1:] for c in EVENTS], ids=[c[0] for c in EVENTS])
@pytest.mark.parametrize("entry", [cal.sketch, cal.audit])
def test_one_clear_line(entry: Callable[..., Any], data: Any, options: dict[str, Any], stated: tuple[str, ...]) -> None:
    with pytest.raises(BadInput) as e:
        entry(data, **({"label": "y", "score": "p"} | options))
    for word in stated:
        assert word in str(e.value)
    assert "\n" not in str(e.value)


@pytest.mark.parametrize(
    ("arguments", "stated"),
    [
        (([0, 1], [0.5]), "2 rows"),
        (([0, 2], [0.5, 0.5]), "'y_true'"),
        (([0, 1], [0.5, 1.5]), "logits"),
        (([0, 1], [0.5, None]), "missing"),
        (([], []), "empty"),
        ((["no", "yes"], [0.5, 0.5]), "positive="),
        (([0, 1], [0.5, 0.5], {"g": ["a"]}), "1 rows"),
        (([0, 1], [0.5, 0.5], [1, 2]), "covariates is a list"),
        (([0, 1, 2], np.full((3, 3), 1 / 3)), r"use calibrant.multiclass_predictions\(y_true, y_prob\)"),
    ],
)
def test_predictions(arguments: tuple[Any, ...], stated: str) -> None:
    with pytest.raises(BadInput, match=stated):
        cal.predictions(*arguments)


@pytest.mark.parametrize(
    ("more", "stated"),
    [
        ({"weights": [1.0, -1.0]}, "weights must be positive"),
        ({"weights": [1.0]}, "weights has shape"),
        ({"cluster": [1]}, "cluster has shape"),
    ],
)
def test_what_stands_beside_predictions(more: dict[str, Any], stated: str) -> None:
    with pytest.raises(BadInput, match=stated):
        cal.predictions([0, 1], [0.5, 0.5], **more)


@pytest.mark.parametrize(
    ("arguments", "stated"),
    [
        (([0, 1, 3], np.full((3, 3), 1 / 3)), "class numbers"),
        (
            ([0, 1, 2], np.full((3, 3), 0.5)),
            r"first: row 0, sum 1.5: pass every class; if all are there, y_prob / y_prob",
        ),
        (([0], [[20.0, 30.0, 50.0]]), r"1 row is not .* sum 100: pass y_prob / 100$"),
        (([0], [[2.0, -0.5, 1.0]]), r"row 0, column 1, -0.5: of logits pass their softmax, scipy.special.softmax\("),
        (([0, 1], [[1.0, 0.0, 0.0], [0.5, 0.5, np.nan]]), "row 1, column 2, nan: leave such rows out"),
        (([0, 1], np.full((2, 3), 1 / 3), {"g": ["a"]}), "1 rows"),
        (([0, 1], [0.5, 0.5]), "three classes or more"),
        (([0], np.full((2, 3), 1 / 3)), "one class number for each row"),
    ],
)
def test_multiclass_predictions(arguments: tuple[Any, ...], stated: str) -> None:
    with pytest.raises(BadInput, match=stated):
        cal.multiclass_predictions(*arguments)


@pytest.mark.parametrize(
    "call",
    [
        lambda d: cal.certify.rounded(d, steps=1),
        lambda d: cal.certify.rounded(d, steps=2.5),
        lambda d: cal.certify.rounded(d, alpha=0),
        lambda d: cal.certify.rounded(d, side="both"),
        lambda d: cal.certify.jittered(d, bandwidth=0),
        lambda d: cal.certify.jittered(d, bandwidth=1e-9),
        lambda d: cal.certify.bounded_variation(d, variation=0),
        lambda d: cal.certify.raw_lower(d, side="upper"),
        lambda d: cal.certify.rows_needed(0),
        lambda d: cal.certify.rows_needed(0.1, method="raw"),
        lambda d: cal.certify.jitter_bandwidth(d, tolerance=0),
        lambda d: cal.certify.groups(d),
        lambda d: cal.certify.rounded("file.csv"),
        lambda d: cal.audit(d, limit=2),
        lambda d: cal.audit(d, steps=0),
    ],
)
def test_settings(call: Callable[[Any], Any]) -> None:
    with pytest.raises(BadInput):
        call(cal.predictions([0, 1, 1], [0.2, 0.7, 0.9]))


@pytest.mark.parametrize("extra", [{"weights": [1.0, 2.0]}, {"cluster": [1, 1]}])
@pytest.mark.parametrize("method", ["jittered", "bounded_variation"])
def test_no_proof_no_certificate(extra: dict[str, Any], method: str) -> None:
    with pytest.raises(NotComputable, match="independent"):
        getattr(cal.certify, method)(cal.predictions([0, 1], [0.5, 0.6], **extra))


def test_one_class_is_a_warning_not_an_error() -> None:
    record = cal.audit(cal.predictions([1] * 30, [0.9] * 30))
    assert record.data["warnings"] == ("one-class", "one-score")
    with pytest.raises(NotComputable, match="both outcomes"):
        cal.certify.jitter_cost(cal.predictions([1, 1], [0.9, 0.8]))


def test_dropped_rows_are_counted() -> None:
    record = cal.audit(with_(p=[0.2, None, 0.9, 0.1], y=[0, None, 1, None]), label="y", score="p", drop_missing=True)
    assert (record.data["rows"], record.data["dropped"]) == (2, 2)
    rows = cal.predictions([0, None, 1], [0.1, 0.2, np.nan], drop_missing=True)
    assert (rows.n, rows.dropped) == (1, 2)


def test_identifiers_are_refused_and_many_levels_folded() -> None:
    n = 4000
    base = {"y": np.arange(n) % 2, "p": np.full(n, 0.5)}
    with pytest.raises(BadInput, match="identifier"):
        cal.sketch(base | {"id": [f"u{i}" for i in range(n)]}, label="y", score="p", by="id")
    names = [f"s{i % 180}" if i < 3960 else f"rare{i}" for i in range(n)]
    variable = cal.sketch(base | {"s": names}, label="y", score="p", by="s").spec.variables[0]
    assert len(variable.values) == 200
    assert variable.folded == 20


# ---- scales: advice that is followed must not spoil the audit ----

IN_RANGE = np.linspace(0.01, 0.99, 200)
TOO_HIGH = [*IN_RANGE, 55.0]
BOTH = np.arange(201) % 2


@pytest.mark.parametrize("entry", [cal.sketch, cal.audit, cal.read])
def test_one_stray_score_is_no_reason_to_read_per_cent(entry: Callable[..., Any]) -> None:
    data = {"y": BOTH, "p": TOO_HIGH}
    with pytest.raises(BadInput, match="1 value is outside 0 to 1; the other 200 are within: correct") as e:
        entry(data, label="y", score="p")
    assert "percent=True" not in str(e.value)
    with pytest.raises(
        BadInput, match=r"1 of 201 scores is above 1, too few to tell.*leave percent=True out and correct"
    ):
        entry(data, label="y", score="p", percent=True)


MEND = "correct {}, or leave {} out. First: row 7, counting from 0"
LOGITS = "apply 1 / (1 + exp(-x))"


@pytest.mark.parametrize(
    ("strange", "stated"),
    [
        ([np.inf], f"1 value is infinite; {MEND.format('it', 'its row')} (inf)."),
        ([-np.inf, np.inf], f"2 values are infinite; {MEND.format('them', 'their rows')} (-inf)."),
        ([-3.2], f"1 value is outside 0 to 1; the other 199 are within: {MEND.format('it', 'its row')} (-3.2)."),
        ([np.inf, 1e4], "2 values are outside 0 to 1; the other 198 are within: correct them"),
        (
            [-2.0, 3.0] * 20,
            "40 values are outside 0 to 1; the other 160 are within: correct them, or leave their rows out",
        ),
        ([-2.0, 3.0] * 20, f"; if all are logits, {LOGITS}. First"),
        ([-2.0, 3.0] * 60, f"120 values are outside 0 to 1; did you pass logits? A{LOGITS[1:]} first."),
        ([np.inf, *[60.0] * 120], "did you pass percentages?"),
        ([1.00001, -0.00001], "is it rounding error? Clip to 0 and 1"),
    ],
)
@pytest.mark.parametrize("entry", [cal.sketch, cal.audit, cal.read])
def test_logits_are_guessed_where_most_scores_are_outside_and_a_few_are_named(
    entry: Callable[..., Any], strange: list[float], stated: str
) -> None:
    p = IN_RANGE.copy()
    p[7 : 7 + len(strange)] = strange
    with pytest.raises(BadInput, match=re.escape(stated)):
        entry({"y": BOTH[:200], "p": p}, label="y", score="p")


@pytest.mark.parametrize("by", [None, "g"])
def test_a_file_of_names_of_columns_alone_is_named(by: str | None, tmp_path: Path) -> None:
    (tmp_path / "march.csv").write_text("y,p,g\n")
    stated = (
        r"^no rows to audit: march\.csv has the columns 'y', 'p', 'g' and nothing below them: check how it was written$"
    )
    for entry in (cal.read, cal.sketch, cal.audit):
        with pytest.raises(BadInput, match=stated):
            entry(str(tmp_path / "march.csv"), label="y", score="p", by=by)


@pytest.mark.parametrize("entry", [cal.sketch, cal.audit, cal.read])
def test_a_folder_of_two_scales_is_refused(entry: Callable[..., Any], tmp_path: Path) -> None:
    for name, times in (("a", 1.0), ("b", 100.0)):
        rows = [f"{i % 2},{times * p}" for i, p in enumerate(IN_RANGE)]
        (tmp_path / f"{name}.csv").write_text("\n".join(["y,p", *rows]), encoding="utf-8")
    with pytest.raises(BadInput, match=r"those of 'a.csv' are within it: .*if not, store all of them one way"):
        entry(str(tmp_path), label="y", score="p")
    with pytest.raises(BadInput, match=r"no score of 'a.csv' is above 1, and most of 'b.csv' are: .*if not, store all"):
        entry(str(tmp_path), label="y", score="p", percent=True)


RARE = np.r_[np.linspace(0.01, 0.9, 992), np.linspace(1.1, 8.0, 8)]  # per cent


@pytest.mark.parametrize("percent", [False, True])
@pytest.mark.parametrize(
    "files",
    [
        {"rare": RARE},
        {"low": np.linspace(0.01, 0.9, 200)},
        {"low": np.linspace(0.05, 0.95, 100), "high": np.linspace(1.2, 40.0, 100)},  # a folder split by risk
    ],
)
def test_per_cent_that_look_like_probabilities_have_a_way_in(
    files: dict[str, Any], percent: bool, tmp_path: Path
) -> None:
    def audited(times: float, percent: bool) -> Any:
        for name, scores in files.items():
            rows = [f"{int(i % 20 == 0)},{times * p}" for i, p in enumerate(scores)]
            (tmp_path / f"{name}.csv").write_text("\n".join(["y,p", *rows]), encoding="utf-8")
        return cal.audit(str(tmp_path), label="y", score="p", percent=percent, quick=True)

    if percent or max(map(max, files.values())) > 1:
        with pytest.raises(BadInput, match="percent, divide all of them by 100" if len(files) > 1 else "by 100") as e:
            audited(1, percent)
        assert ("leave percent=True out" in str(e.value)) == percent
    assert audited(0.01, False).data["rows"] == sum(map(len, files.values()))


@pytest.mark.parametrize("high", [10, 1])
def test_arrays_are_advised_no_option_that_they_lack(high: int) -> None:
    with pytest.raises(BadInput, match="if every score is percent, divide all of them by 100") as e:
        cal.predictions([0, 1] * 50, [0.5] * (100 - high) + [40.0] * high)
    assert "percent=" not in str(e.value)


def test_per_cent_of_rare_cases_are_read_and_told() -> None:
    rare = {"y": np.arange(400) % 40 == 0, "p": np.r_[np.linspace(0.01, 0.9, 300), np.linspace(1.1, 20, 100)]}
    with pytest.raises(BadInput, match=r"the other 300 are within.*if every score is percent, pass percent"):
        cal.audit(rare, label="y", score="p", quick=True)
    found = cal.audit(rare, label="y", score="p", quick=True, percent=True)
    assert "mostly-under-1-percent" in found.data["warnings"]
    assert "Hardly percent: With percent=True most scores are under 1 percent." in reported(found)
    usual = cal.audit({"y": BOTH, "p": 100 * np.r_[IN_RANGE, 0.5]}, label="y", score="p", quick=True, percent=True)
    assert "mostly-under-1-percent" not in usual.data["warnings"]


@pytest.mark.parametrize(
    ("name", "scores", "told"),
    [
        ("score", np.arange(400) % 11, True),
        ("score", np.arange(400) % 5 + 1.0, True),
        ("score", np.arange(400) % 90, True),
        ("score", np.arange(400) % 91, False),
        ("score", np.arange(400) % 11 + 0.5, False),
        ("score (%)", np.arange(400) % 11, False),
    ],
)
def test_points_that_are_passed_as_percent_are_told(name: str, scores: Any, told: bool) -> None:
    rows = {"y": np.arange(400) % 3 == 0, name: scores}
    found = cal.audit(rows, label="y", score=name, percent=True, quick=True)
    assert ("perhaps-points" in found.data["warnings"]) == told
    assert ("Points, perhaps: With percent=True all scores are whole numbers below 90." in reported(found)) == told
    with_words = {"y": np.arange(400) % 3 == 0, "p": np.asarray(scores) / 100}
    assert "perhaps-points" not in cal.audit(with_words, label="y", score="p", quick=True).data["warnings"]


# ---- labels: what counts as no case ----


def reported(found: Any) -> str:
    return " ".join(terminal.render(found).split())


@pytest.mark.parametrize("batches", [1, 2])
def test_a_case_that_is_spelt_in_two_ways_is_refused_however_rows_are_split(
    batches: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also where the other way stands in another file, or in a row without a score; by a repair too."""
    labels = [*(["Yes", "No"] * 200), *(["yes", "No"] * (200 if batches == 2 else 1))]
    p = [(i % 97 + 1) / 99 for i in range(len(labels))]
    p[400] = float("nan")
    whole = pa.table({"y": labels, "p": p, "part": [int(i >= 400) for i in range(len(labels))]})
    for k in range(batches):
        keep = whole.filter(pc.equal(whole["part"], k)) if batches == 2 else whole
        csv.write_csv(keep, tmp_path / f"{k}.csv")
    asked: dict[str, Any] = {"label": "y", "score": "p", "positive": "Yes", "drop_missing": True}
    stated = r"label column 'y' holds 'yes' next to 'Yes', which would count as a non-event: write both in one way"
    for entry in (cal.sketch, cal.audit, cal.read):
        with pytest.raises(BadInput, match=stated):
            entry(str(tmp_path), **asked)
    words = ["--label", "y", "--score", "p", "--positive", "Yes", "--missing", "drop"]
    assert main(["repair", str(tmp_path), *words]) == 2
    assert stated in capsys.readouterr().err
    with pytest.raises(BadInput, match="'y_true' holds 'yes' next to 'Yes'"):
        cal.predictions(labels, np.full(len(labels), 0.5), positive="Yes")


def test_a_few_strange_labels_may_be_codes_of_unknown_outcomes() -> None:
    labels = np.where(np.arange(201) % 50 == 7, 9, BOTH)
    with pytest.raises(BadInput, match=r"4 values are neither 0 nor 1; if these are codes of unknown outcomes, store"):
        cal.audit({"y": labels, "p": np.r_[IN_RANGE, 0.5]}, label="y", score="p")


@pytest.mark.parametrize(
    ("labels", "positive", "held", "stated"),
    [
        (np.where(np.arange(201) % 10 == 7, 9, BOTH), "1", {"0": 101, "9": 20}, "0 (101), 9 (20) count as a non-event"),
        (np.where(np.arange(201) % 90 == 7, 9.0, BOTH), "1", {"0": None, "9": None}, "0, 9 count as a non-event"),
        (
            np.r_[np.where(BOTH == 1, "Yes", "No")[:198], ["yeah", "yeah", "maybe"]],
            "Yes",
            {"No": None, "maybe": None, "yeah": None},
            "No, maybe, yeah count as a non-event",
        ),
    ],
)
def test_values_that_count_as_no_case_are_named(labels: Any, positive: str, held: dict[str, Any], stated: str) -> None:
    data = {"y": labels, "p": np.r_[IN_RANGE, 0.5]}
    found = cal.audit(data, label="y", score="p", positive=positive, quick=True)
    assert found.data["other_labels"] == held
    assert f"Other labels: {stated}. If one means that the outcome is not known" in reported(found)
    stored = cal.sketch(data, label="y", score="p", positive=positive)
    again = type(stored).from_bytes(stored.to_bytes())
    assert again.no_event == stored.no_event
    assert set(again.no_event) == set(held)


def no_event(labels: Any, positive: str = "case", **more: Any) -> dict[str, int]:
    n = len(labels)
    data = {"y": labels, "p": (np.arange(n) % 97 + 1) / 99, **more}
    return cal.sketch(data, label="y", score="p", positive=positive, drop_missing=True).no_event


def test_values_that_are_told_alike_are_counted_together() -> None:
    assert no_event(["case"] * 9 + ["v1"] * 30 + ["v1.0"] * 70) == {"v1": 30, "v1.0": 70}
    long = "x" * 60
    assert list(no_event(["case"] * 9 + [long + "a"] * 30 + [long + "b"] * 70).values()) == [100]
    assert no_event(np.r_[np.ones(9), np.zeros(5), np.full(4, -0.0), np.full(3, 2.5)], "1") == {"0": 9, "2.5": 3}


def test_other_labels_are_counted_of_the_rows_that_are_audited() -> None:
    labels = ["case"] * 90 + ["a"] * 60 + ["b"] * 50
    scores = [None if i % 10 == 0 else 0.5 for i in range(200)]
    weights = [None if i % 10 == 1 else 1.0 for i in range(200)]
    data = {"y": labels, "p": scores, "w": weights}
    whole = cal.sketch(data, label="y", score="p", weights="w", positive="case", drop_missing=True)
    assert whole.no_event == {"a": 48, "b": 40}
    assert sum(whole.no_event.values()) == whole.n - whole.events


def test_the_most_frequent_of_many_other_labels_are_told() -> None:
    labels = [f"c{i % 40:02}" if i % 3 else "often" if i % 2 else "case" for i in range(3_000)]
    data = {"y": labels, "p": (np.arange(3_000) % 97 + 1) / 99}
    found = cal.audit(data, label="y", score="p", positive="case", quick=True)
    assert (len(found.data["other_labels"]), found.data["other_label_count"]) == (20, 41)
    assert found.data["other_labels"]["often"] == 500
    assert "Other labels: often (500), c00 (50), c01 (50) and 38 more count as a non-event." in reported(found)


@pytest.mark.slow
def test_other_labels_are_the_same_however_rows_were_split() -> None:
    labels = np.array([f"v{i * i % 1_301}" if i % 4 else "case" for i in range(6_000)])
    data = {"y": labels, "p": (np.arange(6_000) % 97 + 1) / 99, "id": np.arange(6_000)}
    asked: dict[str, Any] = {"label": "y", "score": "p", "positive": "case", "key": "id"}
    for most in (1_400, 400):  # too many values, and few enough
        rows = {k: v[[len(x) < 2 or x == "case" or int(x[1:]) < most for x in labels]] for k, v in data.items()}
        whole = cal.sketch(rows, **asked)
        n = len(rows["y"])
        parts = [cal.sketch({k: v[at::7] for k, v in rows.items()}, spec=whole.spec) for at in range(7)]
        joined = parts[3].copy()
        for at in (6, 0, 2, 5, 1, 4):
            joined.merge(parts[at], allow_same=True)
        assert joined.no_event == whole.no_event
        assert joined.n == whole.n == n
        assert type(whole).from_bytes(whole.to_bytes()).no_event == whole.no_event


def test_too_many_other_labels_are_not_named() -> None:
    labels = [f"v{i % 1_100}" if i % 3 else "case" for i in range(6_600)]
    data = {"y": labels, "p": (np.arange(6_600) % 97 + 1) / 99}
    found = cal.audit(data, label="y", score="p", positive="case", quick=True)
    assert (found.data["other_labels"], found.data["other_label_count"]) == ({}, None)
    assert "Other labels: More than 1,000 values count as a non-event." in reported(found)


@pytest.mark.parametrize(
    ("words", "stated"),
    [
        (
            ("0", "1", "unknown"),
            "'unknown' next to 0 and 1; if these outcomes are not known, store it as missing; only",
        ),
        (
            ("no", "yes", "Maybe"),
            "'Maybe' next to no and yes; if these outcomes are not known, store it as missing and",
        ),
        (("0", "1", "na"), "'na' next to 0 and 1; if"),
        (("false", "true", "missing"), "'missing' next to false and true; if"),
        (("0", "1", "withdrawn"), "'withdrawn' next to 0 and 1; if"),  # a few
    ],
)
def test_labels_of_text_that_are_no_outcomes_are_to_be_missing(words: tuple[str, ...], stated: str) -> None:
    labels = np.where(np.arange(201) % 25 == 7, words[2], np.array(words[:2])[BOTH])
    data = {"y": labels, "p": np.r_[IN_RANGE, 0.5]}
    for entry in (cal.audit, cal.read, cal.sketch):
        with pytest.raises(BadInput, match=stated):
            entry(data, label="y", score="p")
    seen = cal.look(data)
    assert any(stated in refusal for refusal in seen.refusals)
    assert ("positive" in seen.command) == (words[0] == "no")
    named = cal.audit(data, label="y", score="p", positive=words[1], quick=True)
    assert "other-labels" in named.data["warnings"]


@pytest.mark.parametrize("words", [("0", "1", "2"), ("0", "1", "dead"), ("yes", "later", "unknown"), ("a", "b", "c")])
def test_labels_of_several_classes_want_the_case_named(words: tuple[str, ...]) -> None:
    labels = np.array(words)[np.arange(201) % 3]
    with pytest.raises(BadInput, match=r"not numbers; pass positive="):
        cal.audit({"y": labels, "p": np.r_[IN_RANGE, 0.5]}, label="y", score="p")


def test_two_values_of_a_label_need_no_notice() -> None:
    data = {"y": np.where(BOTH == 1, "yes", "no"), "p": np.r_[IN_RANGE, 0.5]}
    found = cal.audit(data, label="y", score="p", positive="yes", quick=True)
    assert "other_labels" not in found.data
    assert "other-labels" not in found.data["warnings"]


# ---- rows that are left out ----


@pytest.mark.slow
@pytest.mark.parametrize(
    ("missing", "lack", "stated"),
    [
        ({"y": 40}, {"label": 40}, "40 of 901 rows left out, without label"),
        (
            {"y": 40, "p": 9},
            {"label": 40, "score": 9},
            "49 of 901 rows left out: 40 without label, 9 ",
        ),
        ({}, {}, ""),
    ],
)
def test_rows_left_out_stand_on_the_first_screen(missing: dict[str, int], lack: dict[str, int], stated: str) -> None:
    held: dict[str, list[Any]] = {"y": [i % 2 for i in range(901)], "p": [(i % 97 + 1) / 99 for i in range(901)]}
    first = 0
    for name, count in missing.items():
        held[name][first : first + count] = [None] * count
        first += count
    found = cal.audit(held, label="y", score="p", missing="drop", quick=True)
    assert (found.data["dropped"], found.data["dropped_for"]) == (sum(missing.values()), lack)
    screens = (
        reported(found),
        summary(found),
        markdown.render(found),
        html.render(found),
        html.brief(found),
    )
    for screen in screens:
        assert stated in screen
        assert bool(stated) == (" of 901 rows left out" in screen)
    stored = cal.sketch(held, label="y", score="p", missing="drop")
    again = cal.audit(type(stored).from_bytes(stored.to_bytes()), quick=True)
    assert ("49 of" in reported(again) or "40 of" in reported(again)) == bool(stated)


def without(n: int, **missing: Any) -> dict[str, list[Any]]:
    """Rows of 30 units, with values that are missing where a test of the row's number says so."""
    held: dict[str, list[Any]] = {"y": [i % 2 for i in range(n)], "p": [(i % 97 + 1) / 99 for i in range(n)]}
    held |= {"cluster": [f"u{i % 30}" for i in range(n)], "w": [1.0 + i % 3 for i in range(n)], "id": [*range(n)]}
    for name, gone in missing.items():
        held[name] = [None if gone(i) else v for i, v in enumerate(held[name])]
    return held


BY_CLUSTERS = {"label": "y", "score": "p", "cluster": "cluster", "weights": "w", "key": "id", "drop_missing": True}
LACKS: list[Any] = [
    ({"cluster": lambda i: i % 20 == 3}, {"cluster": 45}, "45 of 900 rows left out, without cluster"),
    ({"w": lambda i: i % 20 == 3}, {"weight": 45}, "45 of 900 rows left out, without weight"),
    (
        {"cluster": lambda i: i % 20 == 3, "w": lambda i: i % 20 < 4},
        {"cluster": 45, "weight": 180},
        "180 of 900 rows left out: 45 without cluster, 180 without weight",
    ),
    (
        {"y": lambda i: i % 20 in (3, 4), "cluster": lambda i: i % 20 in (3, 5)},
        {"label": 90, "cluster": 90},
        "135 of 900 rows left out: 90 without label, 90 without cluster",
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize(("missing", "lack", "stated"), LACKS)
def test_rows_without_a_unit_do_not_lack_a_label(missing: Any, lack: dict[str, int], stated: str) -> None:
    rows = without(900, **missing)
    found = cal.audit(rows, **BY_CLUSTERS, quick=True)
    assert found.data["dropped_for"] == lack
    assert stated in reported(found)
    whole = cal.sketch(rows, **BY_CLUSTERS)
    parts = [cal.sketch({k: v[at::3] for k, v in rows.items()}, spec=whole.spec) for at in range(3)]
    stored = [type(whole).from_bytes(part.to_bytes()) for part in parts]
    for a, b, c in (parts, stored, (parts[2].copy(), stored[0].copy(), parts[1].copy())):
        joined = a.merge(b).merge(c)
        assert joined.dropped_for == whole.dropped_for == lack
        assert stated in reported(cal.audit(type(whole).from_bytes(joined.to_bytes()), quick=True))


@pytest.mark.slow
def test_what_rows_lack_that_were_left_out_before_is_not_known() -> None:
    rows = without(900, cluster=lambda i: i % 20 == 3)
    held = cal.read(rows, **{k: v for k, v in BY_CLUSTERS.items() if k != "key"})
    found = cal.audit(held, quick=True)
    assert found.data["dropped_for"] == {}
    assert "45 of 900 rows left out, without label, score, cluster or weight above 0" in reported(found)
    plain = cal.read(without(900, p=lambda i: i % 20 == 3), label="y", score="p", drop_missing=True)
    assert "45 of 900 rows left out, without label or score" in reported(cal.audit(plain, quick=True))
    clusters = cal.read(rows, label="y", score="p", cluster="cluster", drop_missing=True)
    assert "45 of 900 rows left out, without label, score or cluster" in reported(cal.audit(clusters, quick=True))


@pytest.mark.parametrize("claimed", [{"cluster": 44}, {"cluster": 46}, {"luck": 45}, {"cluster": 45, "label": 0}])
def test_a_stored_sketch_cannot_claim_what_rows_lack(claimed: dict[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    whole = cal.sketch(without(900, cluster=lambda i: i % 20 == 3), **BY_CLUSTERS)
    monkeypatch.setattr(type(whole), "dropped_for", claimed)
    raw = whole.to_bytes()
    monkeypatch.undo()
    with pytest.raises(BadInput, match="what the rows left out lack"):
        type(whole).from_bytes(raw)
