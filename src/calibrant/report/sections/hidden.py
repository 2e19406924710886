"""The section about error hidden in attributes: the test of each attribute, the search for a mix of them, the maps."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from calibrant.audit.record import AuditRecord, CheckRecord
from calibrant.report import numbers as num
from calibrant.report.document import MARKDOWN, PAGE, Entry, Node, Paragraph
from calibrant.report.findings import STRONG, SUBGROUPS, draws_of, impossible, noun, ran, stands
from calibrant.report.outline import Declared, OutlineCheck
from calibrant.report.sections import curves, search
from calibrant.report.spans import Text, code, say
from calibrant.report.wording.clusters import chance, independent
from calibrant.report.wording.terms import UNPROVEN, capital, cardinal, p_reported, unmade, variable_names

LOCAL = "local-calibration"
KERNEL_ERROR = "kernel-error"
SCORE = "(score)"  # how the test calls the score among its variables
SCORE_NAME = "the score itself"
UNTESTED = "Error hidden in attributes was not tested."


def hidden(record: AuditRecord) -> Iterator[Node]:
    if ran(record, LOCAL) is None and ran(record, STRONG) is None:
        yield Paragraph(unmade(record, LOCAL, UNTESTED), "quiet", PAGE)
        return
    made = curves.maps(record)
    yield Paragraph(answer(record), "answer")
    if made:
        yield Paragraph(curves.farthest(record, made), where=MARKDOWN)
    for what, test in (("test of each attribute", LOCAL), ("search for a mix of attributes", STRONG)):
        if ran(record, test) is None:
            yield Paragraph(say(f"The {what} was not made. ", *unmade(record, test, UNTESTED)), "quiet")
    yield from search.search(record)


# ---- the test of each attribute ----


@dataclass(frozen=True, slots=True)
class Evidence:
    """One variable of the test; `adjusted` allows for all of them, `error_shown` for the whole test as well."""

    variable: str
    p: float
    adjusted: float
    error_shown: bool


def carried(record: AuditRecord) -> tuple[Evidence, ...]:
    """The variables of the test, the strongest evidence first."""
    check = ran(record, LOCAL)
    if check is None or check.outcome is None:
        return ()
    parts, alpha, result = check.outcome.parts, float(record.settings["alpha"]), record.test_shows(check)
    lines = zip(*(parts.get(k, ()) for k in ("variables", "variable_p", "variable_adjusted_p")), strict=True)
    rows = [Evidence(str(v), float(p), float(q), result and float(q) <= alpha) for v, p, q in lines]
    return tuple(sorted(rows, key=lambda e: (e.adjusted, e.p, e.variable)))


# ---- in words ----


def answer(record: AuditRecord) -> Text:
    """The first line of "Is error hiding in a mix of attributes?"."""
    local, strong = ran(record, LOCAL), ran(record, STRONG)
    if strong is None:
        return local_answer(record)
    if record.test_shows(strong) and not stands(record, strong):
        return _alone(record)
    clause, p = search.predicts(record), search.reported(record)
    if local is None or local.outcome is None:
        return say(f"Yes: {clause} ({p}).") if record.test_shows(strong) else say(search.none_detected(record))
    if record.test_shows(local):
        unproven = "" if record.test_shows(strong) else f", {UNPROVEN}"
        return say(*local_answer(record), f" {capital(clause)}{unproven} ({p}).")
    by_attribute = p_reported(local.outcome)
    if record.test_shows(strong):
        rest = (
            f"Among {noun(record)} with the same score, no attribute is shown to carry it separately ({by_attribute})."
        )
        return say(f"Yes: {clause} ({p}). {rest}")
    return say(f"None was found, {UNPROVEN}: not by attribute ({by_attribute}), and {clause} ({p}).")


def _alone(record: AuditRecord) -> Text:
    """The answer where the search by models finds error, and not once it is joined with the one of subgroups."""
    local, joined = ran(record, LOCAL), ran(record, SUBGROUPS)
    both = "" if joined is None or joined.outcome is None else f" ({p_reported(joined.outcome)})"
    by_itself = (
        f"Trained models find error ({search.reported(record)}), but not after adjustment for the search of subgroups"
    )
    attributes = local_answer(record) if local is not None else say(f"None was found, {UNPROVEN}.")
    return say(*attributes, f" {by_itself}, which allows for having searched twice{both}.")


def local_answer(record: AuditRecord) -> Text:
    check = ran(record, LOCAL)
    if check is None or check.outcome is None:
        return ()
    reported = p_reported(check.outcome)
    if impossible(check.outcome):
        return say(f"Yes, {reported}.")
    if not record.test_shows(check):
        return say(f"None was found, {UNPROVEN} ({reported}).")
    yes = [e.variable for e in carried(record) if e.error_shown]
    attributes = [v for v in yes if v != SCORE]
    if attributes:
        start = f"Yes: among {noun(record)} with the same score, what happens still depends on "
        return say(start, *variable_names(attributes), f" ({reported}).")
    if yes:
        return say(f"Yes, by the score itself ({reported}); no attribute is shown to add to it, {UNPROVEN}.")
    if float(check.outcome.parts.get("p_local", 1.0)) <= float(record.settings["alpha"]):
        start = f"Yes: among {noun(record)} with the same score some error is left"
        return say(f"{start} ({reported}), though no single attribute is shown to carry it.")
    start = "Only in the level or slope of the score as a whole"
    return say(f"{start} ({reported}): no error was found that varies with an attribute, {UNPROVEN}.")


def note(record: AuditRecord) -> str:
    """What the p-values of the variables allow for, and their floor."""
    check, rows = ran(record, LOCAL), carried(record)
    if check is None or check.outcome is None:
        return ""
    n = draws_of(check.outcome)
    looked = f"p-values are adjusted for looking at {cardinal(len(rows))} variables. " if len(rows) > 1 else ""
    starred = n is not None and any(e.adjusted <= 1 / (n + 1) for e in rows)
    star = f" * The smallest value that {num.count(n)} simulations can show." if starred and n is not None else ""
    left = "Evidence leaves out what moving or stretching all scores at once would correct; gaps include it."
    return f"{looked}{left}{star}"


# ---- what the section adds to others ----

METHOD = (
    "Among people with similar scores and attributes, what happened minus what the model says is compared with {null}: "
    "for all attributes jointly, for each attribute separately, in ranges and levels, and for the score. What moving "
    "or stretching all scores at once would correct is left out of these, and tested separately. All of it is one "
    "test, with a chance of at most {alpha} in 100 of a finding where there is no error{rough}.{kernel} Function "
)
KERNEL = " Similarity is a Gaussian kernel, for all attributes jointly {width} standard deviations wide."
OTHERS = "calibrant detect local_calibration_test --help"  # where the other kernels and nulls are
TUNING = "calibrant detect kernel_tuning --help"  # which of the kernels would find an error of a given size
KERNEL_MEANS = "size, with no unit, of the error that a kernel sees by score and attributes; zero if calibrated"
MANY = "the normal law of sums over many people"
MAPS = (
    "Each map averages what happened minus what the model says over people near a value, or of a level, near ones "
    "more. Its band, from {null}, excludes zero anywhere on a calibrated model’s map in "
    "{often}; where the model is off it holds the averaged gap about as "
    "often, approximately. An edge is seen blurred. Function "
)
WORDS = (
    Entry(
        "Local calibration",
        say(
            "Among people with the same score and the same attributes, the share with the outcome is the score. "
            "Calibrated on average does not make it so."
        ),
    ),
    Entry(
        "Carries evidence",
        say(
            "Simulations of a calibrated model hardly ever show this much error along the variable, among people "
            "with the same score, allowing for having looked at all variables."
        ),
    ),
)


def methods(record: AuditRecord) -> Iterator[Entry]:
    check = ran(record, LOCAL)
    if check is not None and check.outcome is not None:
        outcome, n = check.outcome, draws_of(check.outcome)
        null = MANY if n is None else chance(record, n)
        rough = ", approximately" if n is None or "asymptotic" in outcome.law else ""
        width = None if outcome.settings.get("score_only", True) else outcome.settings.get("width")
        kernel = "" if width is None else KERNEL.format(width=num.decimals(width, 1))
        words = METHOD.format(null=null, alpha=num.percent(float(record.settings["alpha"])), rough=rough, kernel=kernel)
        yield Entry(
            "Attributes",
            say(
                words,
                code(outcome.method),
                "; other kernels and nulls: ",
                code(OTHERS),
                "; which kernel would find an error: ",
                code(TUNING),
                ".",
            ),
        )
    for curve in list(record.family("local_bias").values())[:1]:
        s = curve.settings
        by = independent(record)
        often = f"{by.most} {num.percent(float(s['alpha']))} of 100 audits, {by.when}"
        made = MAPS.format(null=chance(record, int(s["draws"])), often=often)
        yield Entry("Maps", say(made, code(curve.method), "."))
    yield from search.methods(record)


def words(record: AuditRecord) -> Iterator[Entry]:
    if ran(record, LOCAL) is not None:
        yield from WORDS
    if ran(record, STRONG) is not None:
        yield search.WORD


def _check(check: CheckRecord, record: AuditRecord) -> OutlineCheck:
    numbers = ""
    if check.outcome is not None:
        rows = [e for e in carried(record) if e.variable != SCORE]
        numbers = p_reported(check.outcome)
        if rows:
            numbers += (
                f"; evidence in {num.count(sum(e.error_shown for e in rows))} of {num.count(len(rows))} variables"
            )
    return OutlineCheck("Local calibration test", numbers, "is error left among people with the same score?")


def _kernel(check: CheckRecord, record: AuditRecord) -> OutlineCheck:
    e, test = check.estimate, ran(record, LOCAL)
    numbers = ""
    if e is not None:
        under = math.ceil(float(e.settings["accepted"]) * 1e4) / 1e4
        numbers = f"{e:.4f}; a calibrated model is accepted under {under:.4f}".replace("-", num.MINUS)
        if test is not None and test.outcome is not None:
            numbers += f"; {num.p_value(float(test.outcome.parts['p_klce']), draws=draws_of(test.outcome))}"
    return OutlineCheck("Kernel local calibration error (KLCE²)", numbers, KERNEL_MEANS)


DECLARED = (
    Declared(
        id="hidden",
        order=50,
        nav="Hidden in attributes?",
        heading="Is error hiding in a mix of attributes?",
        nodes=hidden,
        methods=methods,
        words=words,
        checks={LOCAL: _check, KERNEL_ERROR: _kernel, STRONG: search.read},
    ),
)
