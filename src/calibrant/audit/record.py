"""The record of an audit: numbers and statuses only, no sentences, no rows of the data."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, SupportsIndex, overload

from calibrant.arguments import By, shown
from calibrant.errors import BadInput
from calibrant.plugins import OUTPUTS
from calibrant.results import Curve, Estimate, Framed, Interval, Layered, Outcome, Plain, converted, decoded, plain_json
from calibrant.sanitize import has_half_characters, keyed

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.axes import Axes

SCHEMA = "calibrant/4"
SHOWN_BY = "calibrant.report.outputs.notebook"  # loaded when a record is shown: words come last
PRINTED_BY = "calibrant.report.terminal"  # and this at a prompt
PAGE_BY = "calibrant.report.html"
SAVED_BY = "calibrant.report.outputs.files"  # and this when it is saved
READ_BY = "calibrant.audit.schema.record"  # and this when it is read: it knows all that a record may hold
HALF = re.compile(r"\\u[dD][89a-fA-F]|[\ud800-\udfff]")  # what may be half of a character in JSON
SAME_VARIANCE = 1.2  # variance of a mean over that of independent rows, up to which rows are as good as independent
NOUN = "rows"  # what a row is, where nobody says
WRITTEN = "pass the text that to_json wrote"
LONGEST, NAMED = 200, 12  # characters of a name that is looked for; names in a refusal
NO_CURVE = Curve(method="", columns={})
Verdict = Literal["within", "undecided", "over", "not_checked"]
Status = Literal["within", "undecided", "over", "measured", "not-applicable", "not-run"]
Part = Literal["everyone", "groups", "subgroups", "classes"]  # of an audit, about which a verdict is
Wrong = Literal["over", "within", "error_shown"]  # what a verdict can be wrongly
ALL_CLASSES = "classwise"  # the code of the check of all classes added up, and the name of its estimate
CLASS_LOCAL = "class-local"  # the code of the local test of all classes
CLASS_STRONG = "class-strong"  # the same of the search for groups in each class
ERROR_SHOWN = "error-shown"  # what `fail_on` calls error that is shown of anybody


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Share(Plain):
    """The probability, at most, with which one kind of verdict is wrong about one part of an audit.

    Parameters
    ----------
    wrong : {"over", "within", "error_shown"}
        The verdict that would be wrong.
    part : {"everyone", "groups", "subgroups", "classes"}
    by : {"error", "gap", "test"}
        What the verdict rests on.
    alpha : float
        As it was used.
    """

    wrong: Wrong
    part: Part
    by: Literal["error", "gap", "test"]
    alpha: float


def joint_error(shares: Iterable[Share]) -> dict[str, float]:
    """How probable it is, at most, that any verdict of a kind is wrong: the sum of the shares that were used."""
    result = dict.fromkeys(("over", "within", "error_shown"), 0.0)
    for share in shares:
        result[share.wrong] += share.alpha
    return {kind: round(total, 12) for kind, total in result.items()}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Finding(Plain):
    """What was certified about one population: everyone, or one group.

    Parameters
    ----------
    id : str
        ``"everyone"``, or a slug with a short hash, unique in the record.
    variables : tuple of (str, str)
        ``(variable, value)`` pairs that define the group; empty for everyone.
    rows, events : int
        People, and people with the outcome; of a group in multiples of five where it was audited to publish.
    expected : float
        Sum of the predicted probabilities: the events the model expects; of a group rounded as the events are.
    lower : Estimate
        `certify.raw_lower`: the raw score is off by at least ``lower.interval.low``.
    upper : Estimate
        `certify.rounded`: the rounded score in steps is off by at most ``upper.interval.high``.
    error : Layered
        The calibration error of the rounded score: a debiased estimate, moved between the two bounds unless they cross
        (the raw score may be certified off by more than its display), and the range of `lower` and `upper`. Its level
        is that of both ends together: of everyone ``1 - 2 alpha``, where each end spends all of alpha.
    gap : Layered
        Observed minus predicted, on average; of groups all certified ranges hold simultaneously, at the level of the
        interval: ``1 - 0.8 alpha`` by default, by their share of alpha. Ordinary intervals have level ``1 - alpha``
        each.
    observed_expected : Layered or None
        Observed over expected events; certified where the gap is of the rows, whose scores are given. None where fewer
        than one event is expected.
    verdict : {"within", "undecided", "over", "not_checked"}
        Of what `by` names, against `limit`. ``"not_checked"`` without a limit, and where the verdict is withheld.
        Groups are decided by closed testing or Holm's procedure, which may decide where a range still holds the limit.
    by : {"error", "gap"}
        What is judged. A group that is judged by its gap is over too where its error is certified over the limit.
    limit : float or None
        In probability units: as it was given, or the share of the mean score that was given.
    error_shown : bool
        Whether a gap or an error of any size is shown. It has its own share of alpha (see `AuditRecord.shares`), and
        stands next to the verdict: a finding can be within the limit and show error.
    withheld : str or None
        Why there is no verdict although there is a limit: copied rows, or rows that depend on one another.
    rows_needed : int or None
        Rows of the whole log that would decide, if groups keep their shares; None when decided, without a limit, or
        when the estimate is too close to the limit to say.
    pooled : int
        Number of small values pooled into this group; 0 for an ordinary group.
    clusters_needed : int or None
        The same in clusters, where rows share clusters by `cluster`; `rows_needed` is then None.
    rows_at_least : bool
        True where the estimate is within its own noise of the limit: then a calibrated score takes `rows_needed` to be
        shown to be within, so at least. Otherwise it is about how many, if the error is as estimated.
    """

    id: str
    variables: tuple[tuple[str, str], ...]
    rows: int
    events: int
    expected: float
    lower: Estimate
    upper: Estimate
    error: Layered
    gap: Layered
    observed_expected: Layered | None
    verdict: Verdict
    by: By
    limit: float | None
    rows_needed: int | None
    error_shown: bool = False
    withheld: str | None = None
    pooled: int = 0
    rows_at_least: bool = False
    clusters_needed: int | None = None

    @property
    def gap_ends(self) -> tuple[float, float]:
        """The certified ends of the gap, with its sign; those of any gap where none is certified."""
        of = self.gap.guaranteed
        return (-1.0, 1.0) if of is None else (of.low, of.high)

    @property
    def error_ends(self) -> tuple[float, float]:
        """Both certified ends of the calibration error, as the verdict leaves them, whatever is judged.

        A group over the limit by its gap is over it by its calibration error too; one within it by its gap need not be.
        """
        known = self.verdict if self.by == "error" or self.verdict == "over" else None
        return at_limit(self.lower.interval.low, self.upper.interval.high, known, self.limit)

    @property
    def shown(self) -> tuple[float, float]:
        """Both certified ends of what is judged, as the verdict leaves them: what a report shows.

        A group may be decided although its own range still holds the limit; what is decided moves the end to the limit.
        """
        if self.by == "error":
            return self.error_ends
        (low, high), error = size(*self.gap_ends), self.lower.interval.low
        if self.verdict == "over" and self.limit is not None and error > self.limit >= low:  # by its error alone
            return error, max(high, error)
        return at_limit(low, high, self.verdict, self.limit)

    @property
    def proved_above(self) -> bool:
        """Whether the calibration error is certified from above: not by weights of censoring."""
        return self.upper.settings.get("way") != "weights"

    @property
    def two_scores(self) -> bool:
        """Whether the raw lower bound exceeds the upper bound of the rounded score: two scores, two truths."""
        return self.lower.interval.low > self.upper.interval.high


def size(low: float, high: float) -> tuple[float, float]:
    """How large a gap between two signed ends is, at least and at most."""
    return max(low, -high, 0.0), max(abs(low), abs(high))


def at_limit(low: float, high: float, verdict: str | None, limit: float | None) -> tuple[float, float]:
    """Two ends, moved to the limit where the verdict is known to be beyond it."""
    if limit is not None and verdict == "over":
        return max(low, limit), high
    return (low, min(high, limit)) if limit is not None and verdict == "within" else (low, high)


class Groups(tuple[Finding, ...]):
    """The findings of groups in the order of the variables; one also by its name: ``groups["site = Valley"]``.

    Raises
    ------
    BadInput
        There is no group of that name; the message has the nearest one.
    """

    __slots__ = ()

    @property
    def names(self) -> tuple[str, ...]:
        """What each group is called: ``sex = f``, of two variables ``sex = f, age = 40–49``."""
        return tuple(map(name_of, self))

    @overload
    def __getitem__(self, key: SupportsIndex | str, /) -> Finding: ...
    @overload
    def __getitem__(self, key: slice, /) -> tuple[Finding, ...]: ...
    def __getitem__(self, key: SupportsIndex | slice | str, /) -> Finding | tuple[Finding, ...]:
        if not isinstance(key, str):
            return super().__getitem__(key)
        names = self.names
        if key in names:
            return super().__getitem__(names.index(key))
        near = get_close_matches(key[:LONGEST], names, 1, 0.5)
        there = f"there are {', '.join(map(shown, names[:NAMED]))}" if names else "this audit shows no group"
        raise BadInput(
            f"groups[{shown(key)}]: no group is called so; {f'did you mean {shown(*near)}?' if near else there}"
        )

    def __contains__(self, key: object, /) -> bool:
        return key in self.names if isinstance(key, str) else super().__contains__(key)

    @classmethod
    def of_plain(cls, value: object) -> Self:
        """Rebuild what `to_dict` wrote."""
        return cls(converted(value, tuple[Finding, ...]))

    def _ipython_key_completions_(self) -> list[str]:
        return list(self.names)


def name_of(finding: Finding) -> str:
    """The name of the population of a finding: ``everyone``, or that of the group."""
    return keyed(finding.variables) or "everyone"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CheckRecord(Plain):
    """One question an audit asks, and what it found.

    Parameters
    ----------
    code : str
        Stable name, such as ``"error-everyone"``.
    status : {"within", "undecided", "over", "measured", "not-applicable", "not-run"}
        A check that could not run is never a pass.
    reason : str
        Why, for the last two; empty otherwise.
    estimate : Estimate or None
        The number behind the status, where there is one.
    outcome : Outcome or None
        The test behind the status, where there is one. A test is a finding and never within or over.
    """

    code: str
    status: Status
    reason: str = ""
    estimate: Estimate | None = None
    outcome: Outcome | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AuditRecord(Framed, Plain):
    """Everything one audit found. `to_json` and `from_json` round-trip; the schema is `calibrant/4`.

    Parameters
    ----------
    name : str
        Name of the data set, from the file or the caller.
    verdict : {"within", "undecided", "over", "not_checked"}
        The worst over everyone and all groups, and over where a subgroup is certified over the limit; "not_checked"
        without a limit. Subgroups that are undecided leave it as it is.
    verdicts : Mapping of str to str
        In three parts, none of which stands for another: ``"everyone"``, ``"groups"``, ``"subgroups"``. Each is as
        `verdict`; ``"not_checked"`` also where there are no groups, or subgroups were not searched.
    error_shown : Mapping of str to bool
        Whether error of any size is shown in each of the same parts; of subgroups by their test.
    shares : tuple of Share
        The error probabilities that the verdicts used.
    joint_error : Mapping of str to float
        Their sums: how probable any wrong "over" is at most, any wrong "within", and any error wrongly shown.
    everyone : Finding
    groups : Groups, a tuple of Finding
        In the order of the variables, and by their names: ``groups["site = Valley"].gap.interval``. All their bounds
        hold simultaneously with probability ``1 - alpha``.
    classes : Groups
        Of a classifier over several classes each class against the others, by its name: ``classes["class = cat"]``. All
        their bounds hold simultaneously with probability ``1 - alpha``, a share of their own. Empty of two classes.
    checks : tuple of Check
    estimates : Mapping of str to Estimate
        Certified, as their intervals say ("finite-sample"): ``"gap"``, ``"distance"``, ``"jittered"``, and
        ``"subgroups"``: some subgroup is off by at least the low end, none of `clear_size` by more than the high.
        Standard measures of the raw score, not certified, with intervals that are asymptotic: ``"ece"``,
        ``"smooth_ece"``, ``"max_calibration_error"``, ``"brier"``, ``"log_loss"``, ``"auroc"``,
        ``"calibration_intercept"``, ``"calibration_slope"``, ``"observed_expected"``. Those that could not be computed
        are absent and have a not-applicable check.
    curves : Mapping of str to Curve
        What could be drawn; `curve` and `family` read it. A curve that could not be made is absent, or has no columns
        and a reason among its settings. By the score: ``"bins"``, ``"reliability"``, ``"decisions"``,
        ``"decision_curve"``. By covariates: ``"ranking"``, ``"variable_curve/NAME"``, ``"local_bias/NAME"``,
        ``"control_chart"``, ``"searched_subgroups"``, ``"importance"``, ``"subgroups"``, ``"subgroup_map"``,
        ``"inference"``, ``"task_trust"``. Of the rows: ``"dependence"``, ``"sites"``, ``"missing_labels"``,
        ``"without_label"``. Of repairs: ``"repairs"``, ``"repair_decisions"``, ``"fixed"``.
    data, settings : Mapping
        What was read as what, with its counts, names and warnings; and what was asked for. The schema, in
        ``calibrant/schema/`` of the package, says what each of their parts and each curve holds.
    versions : Mapping of str to str
    """

    name: str
    verdict: Verdict
    verdicts: Mapping[str, Verdict]
    error_shown: Mapping[str, bool]
    shares: tuple[Share, ...]
    joint_error: Mapping[str, float]
    everyone: Finding
    groups: Groups
    checks: tuple[CheckRecord, ...]
    estimates: Mapping[str, Estimate]
    curves: Mapping[str, Curve]
    data: Mapping[str, Any]
    settings: Mapping[str, Any]
    versions: Mapping[str, str]
    schema: str = field(default=SCHEMA)
    classes: Groups = field(default=Groups())

    def __post_init__(self) -> None:
        for name in ("groups", "classes"):
            object.__setattr__(self, name, Groups(getattr(self, name)))  # however they were put together

    def to_json(self) -> str:
        """The record as JSON text: keys in their order, full precision, no NaN; the same bytes every time."""
        return json.dumps(self.to_dict(), ensure_ascii=True, indent=1, allow_nan=False)

    @classmethod
    def from_dict(cls, d: Mapping[str, Any]) -> Self:
        """Rebuild from plain data, which hold what `calibrant.audit.schema` says and nothing else."""
        if "schema" not in d:
            raise BadInput("not an audit record: pass what `calibrant audit -o audit.json` or to_json wrote")
        if d["schema"] != SCHEMA:
            raise BadInput(f"schema is {d['schema']!r}: this version reads {SCHEMA!r}; run the audit again")
        import_module(READ_BY).refuse_others(d)
        return decoded(d, cls)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Rebuild the record that `to_json` wrote."""
        d = plain_json(text, WRITTEN)
        if not isinstance(d, dict) or (HALF.search(text) and has_half_characters(d)):
            raise BadInput(f"not an audit record: {WRITTEN}")
        return cls.from_dict(d)

    @classmethod
    def load(cls, source: str | os.PathLike[str]) -> Self:
        """Rebuild the record that is in a file: the JSON that `save` wrote, or a report, which holds its record.

        Raises
        ------
        BadInput
            There is no such file, or it holds no record of this schema.
        """
        result: Self = import_module(SAVED_BY).loaded(Path(source), cls)
        return result

    def save(self, target: str | os.PathLike[str], *, language: str = "en") -> Path:
        """Write the record to a file, whole or not at all, in the format that the ending of its name says.

        Parameters
        ----------
        target : path
            ``.html`` for the page, which loads nothing from a network; ``.json`` for the record itself, which `load`
            reads again; ``.md`` for Markdown; ``.pdf`` for the page printed, by a Chromium, Chrome or Edge found here.
        language : {"en", "de"}
            Of the page and of Markdown; the record itself has none.

        Returns
        -------
        Path

        Raises
        ------
        BadInput
            Another ending or language, a place that cannot be written, or no browser to print a PDF; the message says
            the way out.
        """
        path: Path = import_module(SAVED_BY).save(self, target, language)
        return path

    def tripod(self) -> Curve:
        """The items of TRIPOD+AI with what this record answers of each, a line an item.

        Returns
        -------
        Curve
            Columns ``item``, ``section``, ``applies`` (to development, evaluation or both), ``topic``, ``state``
            (``"answered"``, ``"in part"``, ``"not given"``, ``"for the authors"``), ``answer`` and ``authors``: what is
            left for them. `calibrant report RECORD -o tripod:OUT.md` writes it.
        """
        made: Curve = OUTPUTS.own("tripod").table(self)  # type: ignore[attr-defined]  # which this output alone has
        return made

    def __repr__(self) -> str:
        text: str = import_module(PRINTED_BY).lines(self)
        return text

    def _repr_html_(self) -> str:
        """What a notebook shows: the first screen of the report."""
        html: str = import_module(SHOWN_BY).record(self)
        return html

    @property
    def table(self) -> Curve:
        """Everyone, then each group, in three layers: estimates, their ordinary intervals, and what is guaranteed.

        Columns ``gap``, ``error`` and ``observed_expected`` are estimates, with ``_low`` and ``_high`` their ordinary
        intervals and with ``_guaranteed_low`` and ``_guaranteed_high`` what is certified; ``verdict`` and
        ``error_shown`` are the state.
        """
        rows = [_line(f) for f in (self.everyone, *self.groups, *self.classes)]
        settings = {"alpha": float(self.settings["alpha"]), "limit": self.everyone.limit}
        return Curve(method="audit", columns={k: tuple(row[k] for row in rows) for k in rows[0]}, settings=settings)

    def to_arrow(self) -> pa.Table:
        """The columns of `table` as a `pyarrow.Table`, a row for everyone and each group."""
        import pyarrow as pa

        made = self.table.to_arrow()
        empty = [(i, f.name) for i, f in enumerate(made.schema) if pa.types.is_null(f.type)]
        for i, name in empty:
            made = made.set_column(i, name, made[name].cast(pa.string() if name == "withheld" else pa.float64()))
        return made

    @property
    def library(self) -> str:
        """The library of the frame that the audit read: ``"pandas"``, ``"polars"``, or nothing."""
        return str(self.data.get("frame", ""))

    def to_html(self, language: str = "en") -> str:
        """The report as one HTML page, which `save` writes to a file; `language` is ``"en"`` or ``"de"``."""
        html: str = import_module(PAGE_BY).render(self, language)
        return html

    def summary(self) -> str:
        """The verdict, everyone and the groups, in a few lines of text: what a prompt shows."""
        return repr(self)

    def plot(self, name: str = "reliability", ax: Axes | None = None) -> Axes:
        """One of `curves` on axes of Matplotlib, the reliability curve by default.

        Raises
        ------
        BadInput
            The audit made no such curve.
        """
        if name not in self.curves:
            raise BadInput(f"name={shown(name)}: pass one of {', '.join(map(repr, self.curves)) or 'none'}")
        return self.curves[name].plot(ax)

    @property
    def certified(self) -> dict[str, Estimate]:
        """The estimates whose intervals hold at this number of rows, by name; each says so itself."""
        return {k: e for k, e in self.estimates.items() if e.interval.guarantee == "finite-sample"}

    @property
    def measures(self) -> dict[str, Estimate]:
        """The estimates that are not certified, by name."""
        return {k: e for k, e in self.estimates.items() if k not in self.certified}

    def curve(self, name: str) -> Curve:
        """A curve by its name; one without columns where the audit made none."""
        return self.curves.get(name, NO_CURVE)

    def family(self, kind: str) -> dict[str, Curve]:
        """The curves of one kind by what they are about: ``family("variable_curve")["age"]``."""
        return {k.removeprefix(f"{kind}/"): c for k, c in self.curves.items() if k.startswith(f"{kind}/")}

    @property
    def withheld(self) -> str | None:
        """Why there are no verdicts; None where there are, or no limit asks for one."""
        return self.everyone.withheld

    @property
    def exit_status(self) -> int:
        """0, 1 or 3, the worst of what counts.

        1: over the limit, or what `fail_on` names shows error. 3: undecided or withheld, or a check that counts is
        undecided, or did not apply or run. 0: within, or no limit. Of several horizons the worst of all.
        """
        others = self.curve("horizons").settings.get("exit_statuses", ())
        return next((status for status in (1, 3) if status in (self._own_exit_status, *others)), 0)

    @property
    def _own_exit_status(self) -> int:
        """Of what this record holds itself."""
        counting = self.settings.get("fail_on", ())
        gates = [c for c in self.checks if c.code in counting]
        shown = ERROR_SHOWN in counting and any(self.error_shown.values())
        if self.verdict == "over" or shown or any(map(self.test_shows, gates)):
            return 1
        limited = self.settings.get("limit") is not None
        summed = self.settings.get("limit_classes") is not None
        counted = gates + [c for c in self.checks if limited and c.code.startswith("error-")]
        counted += [c for c in self.checks if summed and c.code == ALL_CLASSES]
        undone = any(c.status == "not-applicable" for c in counted) or (limited and self.withheld is not None)
        undone |= any(c.status in ("undecided", "not-run") for c in gates)
        return 3 if self.verdict == "undecided" or undone else 0

    def test_shows(self, check: CheckRecord) -> bool:
        """Whether a test found error: its p-value is at most `alpha`. Not found is not proof of none."""
        return check.outcome is not None and check.outcome.p_value <= float(self.settings["alpha"])


def _line(f: Finding) -> dict[str, object]:
    """A finding as a row of `AuditRecord.table`."""
    line: dict[str, object] = {"id": f.id, "group": name_of(f), "rows": f.rows, "events": f.events}
    line["expected"] = f.expected
    for name, layer in (("gap", f.gap), ("error", f.error), ("observed_expected", f.observed_expected)):
        line |= dict(_layers(name, layer))
    return line | {
        "by": f.by,
        "limit": f.limit,
        "verdict": f.verdict,
        "error_shown": f.error_shown,
        "withheld": f.withheld,
        "rows_needed": f.rows_needed,
        "clusters_needed": f.clusters_needed,
        "rows_at_least": f.rows_at_least,
        "pooled": f.pooled,
    }


def _layers(name: str, layer: Layered | None) -> Iterator[tuple[str, float | None]]:
    """The columns of a number in layers; None where there is nothing of it."""
    ranges: tuple[tuple[str, Interval | None], ...] = (("", None), ("guaranteed_", None))
    if layer is not None:
        ranges = (("", layer.interval), ("guaranteed_", layer.guaranteed))
    yield name, None if layer is None else layer.value
    for kind, of in ranges:
        yield f"{name}_{kind}low", None if of is None else of.low
        yield f"{name}_{kind}high", None if of is None else of.high
    yield f"{name}_p_value", None if layer is None else layer.p_value


@dataclass(frozen=True, kw_only=True)
class About:
    """Words for the report, each given or None."""

    noun: str = NOUN  # what a row is, in the plural: "people", "loans"
    # `model` and `intended_use`: name and version of the model; what its probabilities are used for.
    model: str | None = None
    intended_use: str | None = None
    # `period` and `population`: when the rows were recorded; whom or what they stand for.
    period: str | None = None
    population: str | None = None
    set_by: str | None = None  # who set the limit, and when

    def to_dict(self) -> dict[str, Any]:
        """The words by name."""
        return asdict(self)
