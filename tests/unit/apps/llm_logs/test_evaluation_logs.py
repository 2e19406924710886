"""Logs of evaluations of language models: what each tool writes becomes questions, right or wrong, and confidences.

`files/` holds logs that the packages themselves wrote, shortened by nothing: Inspect 0.3.285 with its mock model
(`inspect_run.py`), lm-evaluation-harness 0.4.13 with its dummy model, DeepEval 4.3.1 without a language model, and the
recorder of OpenAI's evals 3.0.1. That of promptfoo is written after its documentation.
"""

from __future__ import annotations

import gzip
import importlib.util
import json
import math
import shlex
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import calibrant as cal
from calibrant.apps.llm_logs import inspect_ai, known
from calibrant.apps.llm_logs.answers import FIELDS, of_field
from calibrant.apps.llm_logs.lm_eval import probability
from calibrant.cli.parser import build_parser
from calibrant.cli.run import main
from calibrant.data.sketches.sketch import Sketch
from calibrant.data.sources.files import open_source
from calibrant.data.sources.kinds import log_of
from calibrant.data.specs.column_names import column_of, of_column
from calibrant.plugins import FORMATS
from calibrant.report.brief.rests import rests
from calibrant.report.commands import command
from calibrant.report.spans import plain

HERE = Path(__file__).parent
FILES = HERE / "files"
LM_EVAL = "samples_two_choices_2026-11-24T21-04-45.101739.jsonl"
STATED, JUDGE, TOKENS = "confidence_stated", "confidence_judge", "confidence_token_probability"
RIGHT, CONFIDENCES = (1, 1, 0, 1), (0.91, 0.71, 0.65, 0.87)  # of inspect_run.py, by question and epoch


def rows(path: Path | list[Path]) -> dict[str, list[Any]]:
    """Return the columns of a log."""
    source = open_source(path)
    (part, *_) = source.parts
    return {k: v for b in part.read(list(source.columns), ()) for k, v in b.to_pydict().items()}


# ---- what each tool writes ----


def test_an_archive_of_inspect() -> None:
    found = rows(FILES / "inspect.eval")
    assert found["question"] == ["sums/q0", "sums/q0", "sums/q1", "sums/q1"]
    assert found["epoch"] == [1, 2, 1, 2]
    assert (tuple(found["correct"]), tuple(found[STATED])) == (RIGHT, CONFIDENCES)
    assert found["topic"] == ["history"] * 2 + ["algebra"] * 2
    assert set(found["model"]) == {"mockllm/model"}


def test_json_of_inspect_is_its_archive() -> None:
    packed, archive = rows(FILES / "inspect.json.gz"), rows(FILES / "inspect.eval")
    by = sorted(range(4), key=lambda i: (packed["question"][i], packed["epoch"][i]))
    assert {k: [v[i] for i in by] for k, v in packed.items()} == archive


if importlib.util.find_spec("inspect_ai"):  # no skip, for it is of no extra

    @pytest.mark.slow
    @pytest.mark.parametrize("form", ["eval", "json"])
    def test_logs_that_inspect_makes_today(form: str, tmp_path: Path) -> None:
        from inspect_run import run

        found = rows(Path(run(str(tmp_path), form)))
        assert sorted(zip(found["correct"], found[STATED], strict=True)) == sorted(zip(RIGHT, CONFIDENCES, strict=True))


def test_samples_of_lm_evaluation_harness() -> None:
    found = rows(FILES / LM_EVAL)
    lines = [json.loads(line) for line in (FILES / LM_EVAL).read_text().splitlines()]
    for i, line in enumerate(lines):
        each = [math.exp(float(pair[0])) for pair in line["filtered_resps"]]
        assert found[TOKENS][i] == pytest.approx(max(each) / sum(each), rel=1e-12)
        assert (found["correct"][i], found["correct_acc_norm"][i]) == (line["acc"], line["acc_norm"])
        assert found["question"][i] == f"two_choices/{line['doc_id']}"
    assert found["subject"] == [line["doc"]["subject"] for line in lines]


def test_the_right_answer_is_no_column(tmp_path: Path) -> None:
    """Nobody has it beforehand: among questions of one right answer even honest probabilities are off."""
    lines = [json.loads(line) for line in (FILES / LM_EVAL).read_text().splitlines()]
    for line in lines:
        line["doc"] |= {"answerKey": "AB"[int(line["target"])], "label": line["target"], "year": 2024}
    path = tmp_path / LM_EVAL
    path.write_text("\n".join(map(json.dumps, lines)))
    found = rows(path)
    assert {"subject", "year"} < {*found}
    assert not {"answerKey", "label"} & {*found}
    with pytest.raises(
        cal.BadInput,
        match="'answerKey' cannot be read: it is the right answer to a question, which nobody has beforehand",
    ):
        cal.read(path, label="correct", score=TOKENS, by=["answerKey"])
    reported = " ".join(str(cal.look(path)).split())
    assert "Not read answer, answerKey and label: it is the right answer to a question" in reported


def test_the_right_answer_in_the_metadata_of_a_test_case_is_no_column(tmp_path: Path) -> None:
    run = json.loads((FILES / "deepeval.json").read_text())
    for i, case in enumerate(run["testCases"]):
        case["metadata"] = (case.get("metadata") or {}) | {"expected": "AB"[i % 2], "year": 2024}
    path = tmp_path / "deepeval.json"
    path.write_text(json.dumps(run))
    found = rows(path)
    assert "year" in found
    assert "expected" not in found


def test_the_right_answer_within_other_fields_is_no_column(tmp_path: Path) -> None:
    """What a scorer calls the answer is what the model said, which is there with the score."""
    path = made(tmp_path / "run.json", n=60, target="A", answer="B", judge={"gold": "A"})
    log = json.loads(path.read_text())
    for sample in log["samples"]:
        sample["metadata"]["info"] = {"gold": "A", "answer": "A", "year": 2024}
    path.write_text(json.dumps(log))
    found = rows(path)
    assert {"info.year", "scores.match.metadata.answer"} < {*found}
    gone = {"info.gold", "info.answer", "scores.match.metadata.target", "scores.match.metadata.judge.gold"}
    assert not gone & {*found}
    with pytest.raises(cal.BadInput, match=r"'info\.gold' cannot be read: it is the right answer"):
        cal.read(path, label="correct", score=STATED, by=["info.gold"])


def test_the_confidence_of_a_multiple_choice_is_that_of_the_answer_that_acc_judges() -> None:
    """If the likeliest choice is the right one, `acc` is 1: the confidence is the probability of that choice."""
    lines = [json.loads(line) for line in (FILES / LM_EVAL).read_text().splitlines()]
    for line in lines:
        logs = [float(pair[0]) for pair in line["filtered_resps"]]
        assert line["acc"] == float(int(np.argmax(logs)) == int(line["target"]))


@pytest.mark.parametrize(
    "responses",
    [["Paris"], [["Paris", "Rome"]], [[-1.0, False]], [[-1.0, False], ["-inf", "False"]], [[-1.0, False], "x"], []],
)
def test_what_has_no_likelihood_of_every_choice_has_no_token_probability(responses: list[object]) -> None:
    assert probability(responses) is None


def test_very_unlikely_choices_have_a_probability_all_the_same() -> None:
    assert probability([[-5000.0, False], [-5000.0 + math.log(3), False]]) == pytest.approx(0.75, rel=1e-9)


def test_a_test_run_of_deepeval() -> None:
    found = rows(FILES / "deepeval.json")
    assert found["correct"] == [0, 1, 1, 0]  # the exact match; the judge is the confidence
    assert found[JUDGE] == [0.35, 0.9, 0.9, 0.35]
    assert found[STATED] == pytest.approx([0.5, 0.6, 0.7, 0.8])


def test_events_of_openai_evals() -> None:
    found = rows(FILES / "openai_evals.jsonl")
    assert found["correct"] == [1, 0, 1]
    assert found[STATED] == [0.9, 0.6, 0.8]
    assert (found["question"][0], found["model"][0]) == ("sums/sums.dev.0", "mock")


def test_results_of_promptfoo(tmp_path: Path) -> None:
    found = rows(FILES / "promptfoo.json")
    assert found["correct"] == [1, 0]  # by what no model judged
    assert (found[STATED], found[JUDGE]) == ([0.9, 0.7], [0.9, 0.8])
    assert (found["topic"], found["level"]) == (["sums", "places"], ["easy", "hard"])
    assert "response.output.answer" not in found
    whole = json.loads((FILES / "promptfoo.json").read_text())
    lines = tmp_path / "promptfoo.jsonl"
    lines.write_text("".join(json.dumps(r) + "\n" for r in whole["results"]["results"]))
    assert rows(lines) == found


@pytest.mark.parametrize(
    ("output", "stated"),
    [
        ('{"answer": "1", "confidence": 0.7}', 0.7),
        ('\n {"said": {"confidence": "85%"}}\n', 0.85),
        ('Sure: {"answer": "1", "confidence": 0.7}', None),
        ('```json\n{"confidence": 0.7}\n```', None),
        ('{"answer": "1", "confidence": 0.7', None),
        ('{"answer": "1", "confidence": NaN}', None),
        ('[{"confidence": 0.7}]', None),
        ('"confidence: 0.7"', None),
        ("\ud800", None),
        ('{"a":' * 5000 + "1" + "}" * 5000, None),
        ("0.7", None),
        ("", None),
    ],
)
def test_an_output_of_promptfoo_that_is_text_is_read_if_all_of_it_is_a_json_object(
    output: str, stated: float | None, tmp_path: Path
) -> None:
    whole = json.loads((FILES / "promptfoo.json").read_text())
    for result in whole["results"]["results"]:
        result["response"]["output"] = output
    path = tmp_path / "promptfoo.json"
    path.write_text(json.dumps(whole))
    assert rows(path).get(STATED) == (None if stated is None else [stated] * 2)


# ---- a log as the log is: looked at, audited, accepted, compared ----


def made(path: Path, n: int = 400, epochs: int = 1, **more: Any) -> Path:
    """Write a log of Inspect, as JSON."""
    rng = np.random.default_rng(3)
    samples = []
    for i in range(n):
        for epoch in range(1, epochs + 1):
            p = round(float(rng.uniform(0.3, 1.0)), 3)
            score = {"value": "C" if rng.uniform() < p else "I", "metadata": {"confidence": p} | more}
            meta = {"topic": ("law", "art")[i % 2]}
            samples.append({"id": i, "epoch": epoch, "scores": {"match": score}, "metadata": meta})
    log = {"version": 2, "status": "success", "eval": {"task": "quiz", "model": "m"}, "samples": samples}
    path.write_text(json.dumps(log, indent=2))
    return path


@pytest.mark.slow
def test_the_command_of_a_look_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = made(tmp_path / "run.json", n=200, epochs=2)
    seen = cal.look(str(path))
    assert (seen.label, seen.score, seen.refusals) == ("correct", STATED, ())
    words = shlex.split(seen.command)
    requested = build_parser().parse_args(words[1:])
    assert (requested.cluster, requested.by) == (("question",), ("topic",))
    assert "compares them" not in str(seen)
    assert main([*words[1 : words.index("-o")], "--quick", "-o", str(tmp_path / "a.json")]) in (0, 3)
    assert "answers" in capsys.readouterr().out
    record = cal.AuditRecord.load(tmp_path / "a.json")
    assert (record.data["cluster"], record.data["noun"]) == ("question", "answers")
    assert "--about" not in command(record)  # the log says what its rows are called


def test_one_answer_a_question_is_its_own_unit(tmp_path: Path) -> None:
    assert "--cluster" not in cal.look(str(made(tmp_path / "run.json"))).command


def test_several_confidences_are_kept_apart_and_compared(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    log = json.loads(made(path, n=60).read_text())
    for i, sample in enumerate(log["samples"]):
        sample["scores"]["match"]["metadata"] |= {"judge_score": i / 60, "self_consistency": (i % 5) / 4}
    path.write_text(json.dumps(log))
    seen = cal.look(str(path))
    reported = seen.settings["log"]
    assert list(reported["confidences"]) == [STATED, JUDGE, "confidence_sampled"]
    assert reported["confidences"][JUDGE] == "scores.match.metadata.judge_score"
    assert shlex.split(reported["compare"])[1:] == [
        *("compare", str(path), "--label", "correct"),
        *("--score", f"{STATED},{JUDGE},confidence_sampled"),
    ]
    build_parser().parse_args(shlex.split(reported["compare"])[1:])
    how = cal.look(str(path), encoding="utf-8", positive="1", percent=True).settings["log"]["compare"]
    requested = build_parser().parse_args(shlex.split(how)[1:])
    assert (requested.encoding, requested.positive, requested.percent) == ("utf-8", "1", True)
    for means in ("stated: the model named it", "sampled: how often", "judge: another model"):
        assert means in " ".join(str(seen).split())


def test_a_confidence_that_two_scorers_kept_is_one(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    log = json.loads(made(path, n=20).read_text())
    for sample in log["samples"]:
        sample["scores"]["strict"] = sample["scores"]["match"]
    path.write_text(json.dumps(log))
    seen = cal.look(str(path))
    assert (seen.score, seen.label) == (STATED, "")  # two scorers: who is right has to be named
    assert "2 columns could be the label" in seen.refusals[0]
    log["samples"][0]["scores"]["strict"] = {"value": "I", "metadata": {"confidence": 0.123}}
    path.write_text(json.dumps(log))
    assert {f"{STATED}_match", f"{STATED}_strict"} <= set(rows(path))


def test_the_verdicts_of_other_scorers_explain_nothing() -> None:
    """They know what the label knows: among the covariates they would find pockets that are none."""
    seen = cal.look(str(FILES / LM_EVAL))
    words = shlex.split(seen.command)
    assert "correct_acc_norm" not in words[words.index("--variables") + 1].split(",")
    assert "correct_acc_norm" not in seen.candidates["by"]


def test_logs_of_two_runs_are_one_data_set(tmp_path: Path) -> None:
    first, second = made(tmp_path / "a.json", n=30), made(tmp_path / "b.json", n=30)
    log = json.loads(second.read_text())
    log["eval"]["model"] = "other"
    for sample in log["samples"]:
        sample["metadata"] = {"topic": "law", "source": "web"}
    second.write_text(json.dumps(log))
    source = open_source([first, second])
    assert "source" not in source.columns  # of one log alone
    assert (source.rows, source.log.label) == (60, "correct")
    assert "--cluster question" in cal.look([str(first), str(second)]).command


@pytest.mark.slow
def test_a_log_that_did_not_come_to_its_end_is_read_and_said_to_be_unfinished(tmp_path: Path) -> None:
    path, ended = made(tmp_path / "part.json", n=60, epochs=2), made(tmp_path / "whole.json", n=60)
    log = json.loads(path.read_text())
    path.write_text(json.dumps(log | {"status": "error", "results": {"total_samples": 160}}))
    reported = "part.json (error, 120 of 160 answers)"
    assert reported in " ".join(str(cal.look(str(path))).split())
    record = cal.audit([str(path), str(ended)], label="correct", score=STATED, cluster="question", quick=True)
    assert (record.data["unfinished"], "unfinished-log" in record.data["warnings"]) == ((reported,), True)
    first, *_ = rests(record)
    assert plain(first).startswith(f"Unfinished evaluation: {reported}. Answers that are missing may be unlike these")
    assert "unfinished" not in cal.audit(str(ended), label="correct", score=STATED, quick=True).data
    assert "nfinished" not in str(cal.look(str(ended)))
    stopped = tmp_path / "stopped.eval"  # without the header, which is written last
    with zipfile.ZipFile(stopped, "w") as archive:
        archive.writestr("_journal/start.json", json.dumps({"eval": {"task": "t", "model": "m"}}))
        archive.writestr("samples/0_epoch_1.json", json.dumps(log["samples"][0]))
    assert open_source(stopped).log.unfinished == ("stopped.eval (started, 1 answer)",)


def test_an_unfinished_log_is_named_by_what_is_made_of_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, ended = made(tmp_path / "part.json", n=60), made(tmp_path / "whole.json", n=80)
    path.write_text(json.dumps(json.loads(path.read_text()) | {"status": "error"}))
    reported = ("part.json (error, 60 answers)",)
    requested = {"label": "correct", "score": STATED}
    part = cal.sketch(str(path), variables=None, **requested)
    whole = cal.sketch(str(ended), spec=part.spec)
    assert Sketch.from_bytes(part.to_bytes()).log.unfinished == reported
    assert all(reported == a.copy().merge(b, allow_same=True).log.unfinished for a, b in ((part, whole), (whole, part)))
    assert cal.read(str(path), **requested).unfinished == reported
    assert cal.read(str(ended), **requested).unfinished == ()
    columns = ["--label", "correct", "--score", STATED]
    for words in (["measure", "ece", str(path)], ["accept", str(path), "--risk", "0.4"]):
        main([*words, *columns])
        assert capsys.readouterr().err.startswith(f"Unfinished evaluation: {reported[0]}. Answers that are missing")
    main(["measure", "ece", str(ended), *columns])
    assert "nfinished" not in capsys.readouterr().err


# ---- confidences as people write them ----


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (["85%", "7 %"], [0.85, 0.07]),
        (["0.85", ".07"], [0.85, 0.07]),
        (["85", "7"], [85.0, 7.0]),  # per cent by the look of it: --percent, as in any file
        ([0.85, None], [0.85, None]),
        (["0.85", ""], [0.85, None]),
        (["0.85", "very sure"], ["0.85", "very sure"]),
        (["Confidence: 85%", "Confidence: 7%"], ["Confidence: 85%", "Confidence: 7%"]),
    ],
)
def test_numbers_are_read_and_prose_is_not(written: list[object], read: list[object], tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    log = json.loads(made(path, n=2).read_text())
    for sample, value in zip(log["samples"], written, strict=True):
        sample["scores"]["match"]["metadata"]["confidence"] = value
    path.write_text(json.dumps(log))
    assert rows(path)[STATED] == read


def test_per_cents_are_written_one_way(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    log = json.loads(made(path, n=2).read_text())
    for sample, value in zip(log["samples"], ["85%", 0.9], strict=True):
        sample["scores"]["match"]["metadata"]["confidence"] = value
    path.write_text(json.dumps(log))
    with pytest.raises(cal.BadInput, match=r"scores\.match\.metadata\.confidence' holds percentages with and without"):
        open_source(path)


def test_prose_is_refused_as_a_score_by_its_value(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    log = json.loads(made(path, n=3).read_text())
    log["samples"][1]["scores"]["match"]["metadata"]["confidence"] = "very sure"
    path.write_text(json.dumps(log))
    with pytest.raises(cal.BadInput, match=STATED):
        cal.audit(str(path), label="correct", score=STATED)


@pytest.mark.parametrize("name", ["confidence", "Stated-Confidence", "selfConfidence"])
def test_a_field_tells_where_a_confidence_comes_from(name: str) -> None:
    assert of_field(name) == "stated"


def test_a_column_keeps_where_its_confidence_comes_from() -> None:
    for provenance in FIELDS:
        assert of_column(column_of(provenance)) == of_column(column_of(provenance, "strict")) == provenance
    assert not of_column("confidence")
    assert not of_column("confidence_interval")
    assert not of_field("overconfidence")


# ---- what cannot be read ----


def refusal(path: Path) -> str:
    """Return the line in which a log is refused."""
    with pytest.raises(cal.BadInput) as caught:
        open_source(path)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_log_without_a_confidence_says_where_it_was_looked_for(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    log = json.loads(made(path, n=20).read_text())
    for sample in log["samples"]:
        sample["scores"]["match"]["metadata"] = None
    path.write_text(json.dumps(log))
    stated = "an Inspect log holds no confidence: looked in the metadata of scores and samples"
    assert any(stated in r for r in cal.look(str(path)).refusals)
    with pytest.raises(cal.BadInput, match=stated):
        cal.audit(str(path), label="correct", score="confidence")


@pytest.mark.parametrize(("value", "named"), [(0.3, "'0.3'"), ("P", "'P'"), ("great", "'great'")])
def test_scores_between_right_and_wrong_are_refused_with_a_way_out(value: object, named: str, tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    log = json.loads(made(path, n=3).read_text())
    log["samples"][1]["scores"]["match"]["value"] = value
    path.write_text(json.dumps(log))
    reported = refusal(path)
    assert named in reported
    assert "'quiz/1'" in reported
    assert "by a threshold set beforehand" in reported


def test_a_graded_score_beside_a_verdict_is_a_column(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    log = json.loads(made(path, n=3).read_text())
    for i, sample in enumerate(log["samples"]):
        sample["scores"]["rubric"] = {"value": {"style": i / 4, "right": i % 2}}
    path.write_text(json.dumps(log))
    found = rows(path)
    assert found["score_rubric.style"] == [0.0, 0.25, 0.5]
    assert {"correct_match", "correct_rubric.right"} <= set(found)


def test_a_sample_without_a_score_is_a_missing_label(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    log = json.loads(made(path, n=3).read_text())
    log["samples"][1]["scores"] = None
    path.write_text(json.dumps(log))
    assert rows(path)["correct"][1] is None
    assert cal.look(str(path)).dropped == {"label and score missing": 1}


def test_a_log_without_scores(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    log = json.loads(made(path, n=2).read_text())
    for sample in log["samples"]:
        sample["scores"] = {}
    path.write_text(json.dumps(log))
    assert (
        refusal(path) == "run.json is an Inspect log without scores: score it first (inspect score), then read it again"
    )
    log["samples"] = None
    path.write_text(json.dumps(log))
    assert "without answers" in refusal(path)


def test_damaged_logs_are_refused_by_name(tmp_path: Path) -> None:
    whole = (FILES / "inspect.eval").read_bytes()
    cut = tmp_path / "cut.eval"
    cut.write_bytes(whole[: len(whole) // 2])
    assert refusal(cut).startswith("cut.eval is damaged")
    bad = tmp_path / "bad.eval"
    with zipfile.ZipFile(FILES / "inspect.eval") as archive:
        first = next(i for i in archive.infolist() if i.filename.startswith("samples/"))
    at = (
        first.header_offset + 30 + sum(struct.unpack("<HH", whole[first.header_offset + 26 : first.header_offset + 30]))
    )
    bad.write_bytes(whole[: at + 40] + bytes(b ^ 255 for b in whole[at + 40 : at + 44]) + whole[at + 44 :])
    assert f"bad.eval: '{first.filename}' is damaged" in refusal(bad)
    text = tmp_path / "cut.json"
    text.write_bytes(gzip.decompress((FILES / "inspect.json.gz").read_bytes())[:5000])
    assert refusal(text).startswith("cut.json is damaged")
    odd = tmp_path / "odd.json"
    odd.write_text('{"version": 2, "status": "success", "eval": {"task": 3}}')
    assert "is not what the tool that it seems to be from writes" in refusal(odd)
    other = tmp_path / "other.eval"
    with zipfile.ZipFile(other, "w") as archive:
        archive.writestr("x.txt", "x")
    assert "is no log of Inspect" in refusal(other)


def test_members_stored_and_deflated_are_read_too(tmp_path: Path) -> None:
    """Earlier releases of Inspect deflate."""
    sample = {"id": "a", "scores": {"match": {"value": True, "metadata": {"confidence": 0.5}}}}
    for form in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        path = tmp_path / f"run{form}.eval"
        with zipfile.ZipFile(path, "w", form) as archive:
            archive.writestr("header.json", json.dumps({"eval": {"task": "t", "model": "m"}}))
            archive.writestr("samples/a_epoch_1.json", json.dumps(sample))
        assert rows(path)[STATED] == [0.5]


def test_plain_json_is_no_log(tmp_path: Path) -> None:
    for text in ('{"y": 1, "p": 0.5}', '{"version": 2, "rows": []}', '[{"doc_id": 1, "p": 0.5}]', '{"results": 1}'):
        assert not log_of(text.encode())
    path = tmp_path / "log.json"
    path.write_text('{"doc_id": 1, "p": 0.5, "y": 1}\n')
    assert open_source(path).columns == ("doc_id", "p", "y")


def test_every_tool_has_one_name() -> None:
    called = {log.called for log in FORMATS.ours().values()}
    assert known.INSPECT.called == inspect_ai.INSPECT.name
    assert {open_source(path).log.tool for path in FILES.iterdir()} <= called
