"""The audit of a log of a language model's answers, next to the log: of Inspect, lm-evaluation-harness and others."""

from __future__ import annotations

import re
from collections.abc import Mapping
from logging import getLogger
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlparse

import numpy as np

from calibrant import AuditRecord, Predictions, audit, look, predictions
from calibrant.apps.trackers.streamed import certified
from calibrant.arguments import checked_alpha, checked_seed, text
from calibrant.errors import BadInput, NotComputable

if TYPE_CHECKING:
    from inspect_ai.hooks import TaskEnd
    from inspect_ai.scorer import Metric, SampleScore

RUN = re.compile(r"samples_.+_(\d{4}-\d{2}-\d{2}T[\d.:-]+)\.jsonl?")  # of lm-evaluation-harness: task and moment
QUESTION = "question"  # the column of logs that names it
PREFIX = "calibrant_"  # of our files: neither tool takes what begins so for a log of its own
RIGHT = {"C": 1, "I": 0, "N": 0, 1: 1, 0: 0}  # verdicts of Inspect; N: no answer was given


def audit_log(log: str | Path, *, label: str = "", score: str = "", **settings: object) -> AuditRecord:
    """Audit a log of a language model's answers, and write record and page next to it.

    Parameters
    ----------
    log : path
        A log of Inspect (``.eval`` or JSON); a file of samples of lm-evaluation-harness, or the folder of one model,
        whose newest run is read with all its tasks; or another log that `calibrant.look` reads.
    label, score : str, optional
        The columns of right and wrong, and of the confidence; by default those that `calibrant.look` proposes.
    settings
        As `calibrant.audit`: ``by="topic"``, ``limit=0.05``, ``quick=True`` and so on. Answers to one question are a
        cluster where questions repeat, unless `cluster` is given.

    Returns
    -------
    AuditRecord
        Also written as ``calibrant_NAME.json`` and ``calibrant_NAME.html`` into the folder of the log.

    Raises
    ------
    BadInput
        The log cannot be read, holds no confidence, or several columns could be label or score: all are named.

    Notes
    -----
    **Guarantee.** That of `calibrant.audit`. Choosing label, score and cluster reads no label.
    **Cost.** That of an audit.
    **Reads.** The log.

    Examples
    --------
    >>> import json, tempfile
    >>> from pathlib import Path
    >>> import calibrant as cal
    >>> known = [{"confidence": (i % 10) / 10} for i in range(200)]
    >>> scores = [{"choice": {"value": "CI"[i % 3 > 1], "metadata": m}} for i, m in enumerate(known)]
    >>> samples = [{"id": i, "epoch": 1, "scores": s} for i, s in enumerate(scores)]
    >>> log = {"version": 2, "status": "success", "eval": {"task": "sums", "model": "m"}, "samples": samples}
    >>> path = Path(tempfile.mkdtemp(), "sums.json")
    >>> _ = path.write_text(json.dumps(log))
    >>> cal.tracking.audit_log(path, quick=True).verdict
    'not_checked'
    >>> sorted(p.name for p in path.parent.iterdir())
    ['calibrant_sums.html', 'calibrant_sums.json', 'sums.json']
    """
    files, target = _files(_local(log))
    seen = look(files, label=label or None, score=score or None)
    chosen = {"label": seen.label, "score": seen.score}
    for role, name in chosen.items():
        if not name:
            could = ", ".join(seen.candidates.get(role, ()))
            raise BadInput(f"{files[0]}: {role} is not clear: pass {role}=, " + (f"one of {could}" if could else NONE))
    repeat = any(c.name == QUESTION and c.distinct != seen.rows_read for c in seen.columns)
    covariates = tuple(c.name for c in seen.columns if c.role in ("covariate", "group") and c.name != QUESTION)
    usual: dict[str, object] = {"variables": covariates} | ({"cluster": QUESTION} if repeat else {})
    usual |= {"name": target.name.removeprefix(PREFIX)} | chosen
    record: AuditRecord = audit(files, **(usual | settings))  # type: ignore[call-overload]
    for ending in (".json", ".html"):
        record.save(target.with_name(target.name + ending))
    return record


NONE = "a column of the log with a confidence for every answer"


def _local(log: str | Path) -> Path:
    """The path of a log on this machine."""
    place = urlparse(str(log))
    if place.scheme == "file":
        return Path(unquote(place.path))
    if len(place.scheme) > 1:  # one letter is a drive
        raise BadInput(f"{log}: record and page are written next to a log on this machine: copy the log here first")
    return Path(log)


def _files(log: Path) -> tuple[list[str], Path]:
    """The files of one run, and where its record goes, without an ending."""
    if not log.is_dir():
        stem = log.name.removesuffix(".gz").removesuffix(".bz2")
        return [str(log)], log.with_name(PREFIX + re.sub(r"\.(eval|jsonl?)$", "", stem))
    runs: dict[str, list[str]] = {}
    for path in sorted(log.glob("samples_*.json*")):
        if match := RUN.fullmatch(path.name):
            runs.setdefault(match[1], []).append(str(path))
    if not runs:
        raise BadInput(
            f"{log} holds no samples_TASK_DATE.jsonl: run lm-evaluation-harness with --log_samples and --output_path, "
            "and name the folder of one model, or a log"
        )
    newest = max(runs)
    return runs[newest], log / f"{PREFIX}{newest}"


# ---- within Inspect ----


def inspect_metric(*, confidence: str = "confidence", alpha: float = 0.05, seed: int = 0) -> Metric:
    """A metric of Inspect: the certified calibration error of stated confidences, in the log's own results.

    Parameters
    ----------
    confidence : str
        The field of ``Score.metadata`` with the probability that the answer is correct, 0 to 1.
    alpha : float in (0, 0.5]
        Error probability of the range.
    seed : int

    Returns
    -------
    inspect_ai.scorer.Metric
        For ``@scorer(metrics=[accuracy(), cal.tracking.inspect_metric()])``. The results of the log then hold
        ``calibration_error``, ``calibration_error_low`` and ``calibration_error_high``.

    Raises
    ------
    ImportError
        Inspect is missing: ``pip install inspect-ai``.

    Notes
    -----
    **Assumes.** Independent questions; answers to one question (epochs) are a cluster, as dependent as they like.
    **Guarantee.** Each end is wrong with probability at most ``alpha / 2``.
    **Method.** `certify.raw_lower` from below, `certify.rounded` from above. Epochs are read one by one, before Inspect
    reduces them.
    **Reads.** ``Score.value`` (C, I, N, 1 or 0) and the confidence of every sample. Where one lacks them, Inspect
    prints a warning that names it, the results have no such number, and the evaluation stands.
    """
    from inspect_ai.scorer import SampleScore, metric

    level, number, name = checked_alpha(alpha), checked_seed(seed), text("confidence", confidence)

    def calibration_error() -> Metric:
        def measured(scores: list[SampleScore]) -> Mapping[str, float]:
            if not scores:  # asked before the first answer
                return {}
            try:
                lower, upper = certified(_answers(scores, name), alpha=level, seed=number)
            except (BadInput, NotComputable) as e:  # raised, it would end an evaluation that may have cost much
                getLogger(__name__).warning("calibration_error is left out: %s", e)
                return {}
            ends = {"_low": lower.low, "_high": upper.high, "": upper.value}
            return {f"calibration_error{end}": float(value) for end, value in ends.items()}

        measured.__annotations__ = {"scores": list[SampleScore], "return": Mapping[str, float]}  # Inspect reads them
        return measured

    made: Metric = metric("calibration_error", scores="unreduced")(calibration_error)()
    return made


def _answers(scores: list[SampleScore], name: str) -> Predictions:
    """The answers as predictions, in clusters where a question has several."""
    right, sure, questions = [], [], []
    for one in scores:
        verdict, known = one.score.value, one.score.metadata or {}
        if not isinstance(verdict, (str, int, float)) or verdict not in RIGHT:
            raise NotComputable(f"sample {one.sample_id!r}: its score {verdict!r} is neither C nor I: score it so")
        if not isinstance(known.get(name), (int, float)):
            raise BadInput(
                f"sample {one.sample_id!r}: its score has no number metadata[{name!r}]: keep the confidence there"
            )
        right.append(RIGHT[verdict])
        sure.append(float(known[name]))
        questions.append(str(one.sample_id))
    repeat = len(set(questions)) < len(questions)
    return predictions(right, np.array(sure), cluster=questions if repeat else None)


def inspect_hooks(**settings: object) -> None:
    """Have Inspect audit each finished task, and write record and page next to its log.

    Parameters
    ----------
    settings
        As `audit_log`: ``by="topic"``, ``limit=0.05``, ``score="confidence_stated"`` and so on.

    Raises
    ------
    ImportError
        Inspect is missing: ``pip install inspect-ai``.

    Notes
    -----
    **Guarantee.** That of `calibrant.audit`.
    **Method.** Registers a hook for this process: call it once, in the file of the task. A later call replaces the
    settings. A task that was cancelled or failed is left alone; where the audit is refused, Inspect prints the line as
    a warning, and the evaluation stands.
    **Cost.** That of an audit, once a task, in a thread of its own.
    **Reads.** The log, once it is written.
    """
    from anyio import to_thread
    from inspect_ai.hooks import Hooks, hooks

    class Audit(Hooks):  # type: ignore[misc]
        async def on_task_end(self, data: TaskEnd) -> None:
            if data.log.status == "success":
                await to_thread.run_sync(lambda: audit_log(data.log.location, **settings))  # type: ignore[arg-type]

    hooks(name="calibrant", description="Audits stated confidences, and writes the record next to the log.")(Audit)
