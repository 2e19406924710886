"""What a record holds: estimates, findings, checks, data and settings; `AuditRecord.from_dict` refuses anything else.

``docs/schema/generate.py`` writes the same as JSON Schema, for other programs. Loaded when a record is read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, get_args

from msgspec import Meta

from calibrant.audit.record import SCHEMA, Part, Status, Verdict
from calibrant.audit.schema.curves import CURVES
from calibrant.audit.schema.kinds import (
    ALL_OR_NONE,
    NULL,
    UNDONE,
    By,
    Condition,
    Count,
    Distinct,
    Fewest,
    Fields,
    Gap,
    Joint,
    Judge,
    Kind,
    Level,
    Odds,
    One,
    Order,
    Pair,
    Positive,
    Several,
    Share,
    Size,
    Some,
    Steps,
    Target,
    Zero,
    many,
    named,
    noted,
    part,
    settings_of,
)
from calibrant.errors import BadInput
from calibrant.results import Guarantee, converted, plain

INTERVAL = {"low high": float, "level": Level, "guarantee": Guarantee}
ANY = {"value": float, "n": Some, "interval": part("Interval", INTERVAL), "assumes": str, "settings": dict}
PROBABILITY = {**ANY, "unit": Literal["probability"]}
CLUSTERS = {
    "about": str,
    "clusters? diagonals?": Some,
    "pilot_clusters? truncated_clusters? blocks?": Count,
    "effective_clusters? effective_blocks?": Size,
    "largest_cluster? largest_block?": Positive,
    "two_way?": Pair,
}
OF_GAP = {
    **CLUSTERS,
    "target?": noted(Target, "Whose gap: of the rows in the data, given scores, or of all rows like these."),
    "by?": noted(Literal["binomial", "bets"], "What certifies it; of rows, scores alone choose."),
    "delta?": tuple[Level, Level],
    "grid?": Literal[1024, 16384],
}
OF_LOST = {"about": str, "target": Target, "way": Literal["weights", "unknown"], "estimate?": Literal["none"]}
SEEDED = {**CLUSTERS, "seed": Count}
DISPLAYED = {**SEEDED, "delta": tuple[Zero, Level]}
GRID = {"grid": Literal[1024, 16384], "seed": Count}


def certified(
    method: str, ends: tuple[Kind, Kind], settings: Fields | None, value: Kind = Share, text: str = "", end: str = ""
) -> Kind:
    """The type of what a certificate finds: with those of its two ends, its settings and its value.

    `end`: which of several kinds of one method.
    """
    name = method.title().replace(".", "").replace("_", "") + end
    low, high = ends
    own = {
        "value": value,
        "interval": part(f"{name}Interval", {"low": low, "high": high, "level": Level, "guarantee": Guarantee}),
        "settings": dict if settings is None else settings_of(name, settings),
    }
    return part(name, {**PROBABILITY, **own}, text, ("method", method))


KERNEL = {
    "features": Literal["default"],
    "variables": list[str],
    "landmarks": Several,
    "joint_features": Some,
    "width": Positive,
    "bound": noted(Positive, "Largest size of the kernel between two rows."),
    "accepted": noted(Positive, "The estimate of a calibrated model is under it with probability 1 - alpha."),
    "alpha": Level,
    "seed": Count,
}
KLCE = part(
    "Klce",
    {**ANY, "method": Literal["measure.klce"], "settings": settings_of("Klce", KERNEL)},
    "Squared kernel local calibration error of the raw score along score and covariates; no unit.",
    ("unit", ""),
)
MEASURE = part(
    "Measure",
    {**ANY, "method": str, "value": float | Literal["inf", "-inf"], "unit": Literal["probability", "ratio", ""]},
    "A standard measure of the raw score: not certified, with an interval that is asymptotic.",
)
WORST = certified(
    "certify.subgroups",
    (Share, Share),
    {
        "about": str,
        "attributes": list[str],
        "order": Order,
        "subgroups": Some,
        "min_size clear_size": Share,
        "seed": Count,
        "subgroup_low subgroup_high": str | None,
        "conditions_low conditions_high": many(Condition),
        "rows_low rows_high": Some | None,
        "share_low share_high": Share | None,
        "rows_needed?": noted(Some | None, "Rows that would decide, about, or with rows_at_least at least."),
        "clusters_needed?": noted(Some | None, "The same in clusters, where rows share clusters."),
        "rows_at_least? clusters_at_least?": bool,
    },
    text="The worst gap of any subgroup: some subgroup of at least min_size of the people is off by at least low, none "
    "of at least clear_size by more than high. The ends are about subgroups of different sizes, so low can lie above "
    "high. Settings say which: null where nothing is shown to be off, or where few people are in it or outside.",
)
ESTIMATES = part(
    "Estimates",
    {
        "gap?": certified("measure.gap", (Gap, Gap), OF_GAP, Gap)
        | certified("certify.horizon", (Gap, Gap), OF_LOST, Gap, end="Gap")
        | certified("certify.missing_labels", (Gap, Gap), OF_LOST, Gap, end="Gap"),
        "classwise?": part(
            "Classwise",
            {**ANY, "method": Literal["certify.classwise"], "unit": Literal["probability"]},
            "The errors of all classes, each against the others, added up: from 0 to 2. Of several classes only.",
        ),
        "distance?": certified("certify.distance", (Zero, Share), {**SEEDED, "route": str}),
        "jittered?": certified("certify.jittered", (Zero, Share), {"about": str, "bandwidth": Level, **GRID}),
        "klce?": KLCE,
        "ece? smooth_ece? max_calibration_error? brier? log_loss? auroc? ranked_probability_score?": MEASURE,
        "calibration_intercept? calibration_slope? observed_expected? integrated_calibration_index?": MEASURE,
        "subgroups?": WORST,
        "worst_group?": part(
            "WorstGroup",
            {**PROBABILITY, "method": str},
            "No group shown is off by more than the high end, from above at alpha / 2; settings: pooled, how many "
            "small ones are judged only together.",
        ),
    },
    "Certified, as their guarantee says (finite-sample): gap, classwise, distance, jittered, klce, subgroups, "
    "worst_group. The others are standard measures of the raw score. Absent where not computable.",
)


# ---- findings and checks ----


def layered(name: str, ends: tuple[Kind, Kind], value: Kind, text: str) -> Kind:
    """The type of a number in two layers: an estimate with its ordinary interval, and what is guaranteed of it."""
    low, high = ends
    kinds = {
        layer: part(f"{name}{layer.title()}", {"low": low, "high": high, "level": Joint, "guarantee": Literal[of]})
        for layer, of in (("interval", "asymptotic"), ("guaranteed", "finite-sample"))
    }
    fields = {
        "value": value,
        "interval": noted(kinds["interval"] | None, "Ordinary: it decides nothing. Null where none is known."),
        "guaranteed": kinds["guaranteed"] | None,
        "p_value": noted(Share, "Against none; it holds at this number of rows."),
        "assumes": str,
        "settings": dict,
    }
    return part(name, fields, text)


FINDING = {
    "id": Annotated[str, Meta(pattern="^[a-z0-9-]+$")],
    "variables": list[tuple[str, str]],
    "rows": Some,
    "events": Count,
    "expected": noted(Size, "Sum of the predicted probabilities."),
    "lower": certified("certify.raw_lower", (Share, One), {**CLUSTERS, **GRID, "delta": Level})
    | certified("certify.horizon", (Share, One), OF_LOST, end="Lower")
    | certified("certify.missing_labels", (Share, One), OF_LOST, end="Lower"),
    "upper": noted(
        certified("certify.values", (Zero, Share), {**DISPLAYED, "values": Distinct})
        | certified("certify.rounded", (Zero, Share), {**DISPLAYED, "steps": Steps})
        | certified("certify.horizon", (Zero, Share), OF_LOST, end="Upper")
        | certified("certify.missing_labels", (Zero, Share), OF_LOST, end="Upper"),
        "Of the raw score where it takes few values, else of the rounded score; data.display says which.",
    ),
    "error": layered(
        "Error", (Share, Share), Share, "Calibration error of the judged score: estimate, and lower to upper."
    ),
    "gap": layered("MeanGap", (Gap, Gap), Gap, "Observed minus predicted, on average."),
    "observed_expected": noted(
        layered("Ratio", (Size, Size), Size, "Observed over expected events.") | None,
        "Null where fewer than one event is expected; certified where the gap is of the rows.",
    ),
    "verdict": noted(Verdict, "Of what by names, against limit; a group is over by its certified error too."),
    "by": By,
    "limit": noted(Share | None, "In probability units, of these people."),
    "error_shown": noted(bool, "A gap or an error of any size is shown, by its own share of alpha."),
    "withheld": noted(str | None, "Why there is no verdict: copied rows, or what rows depend by."),
    "rows_needed": noted(Some | None, "Rows of the log that would decide, about, or with rows_at_least at least."),
    "clusters_needed": noted(Some | None, "The same in clusters, where rows share clusters; rows_needed is then null."),
    "rows_at_least": noted(bool, "The limit is within the estimate's noise: so many rows if the score is calibrated."),
    "pooled": noted(Count, "Number of small levels pooled; 0 for an ordinary group."),
}
DECIDED: dict[str, object] = {
    "if": {"properties": {"verdict": {"const": "undecided"}}},
    "else": {"properties": {"rows_needed": NULL, "clusters_needed": NULL}},
}
NOBODY = Annotated[list[tuple[str, str]], Meta(max_length=0)]
EVERYONE = part(
    "Everyone", {**FINDING, "id": Literal["everyone"], "variables": NOBODY, "pooled": Literal[0]}, rules=DECIDED
)
GROUP = part(
    "Group",
    {
        **FINDING,
        "variables": noted(list[tuple[str, str]], "Of a pool one, with its members.", min_length=1, max_length=2),
        "rows": noted(Some, "At least settings.mask."),
    },
    rules={**DECIDED, "properties": {"id": {"not": {"const": "everyone"}}, "pooled": {"not": {"const": 1}}}},
)
OUTCOME = part(
    "Outcome",
    {"method alternative null law": str, "statistic": float, "p_value": Share, "settings parts": dict},
    "A test: a finding, never within or over.",
)
CHECK = part(
    "Check",
    {
        "code reason": str,
        "status": Status,
        "estimate": part("Estimate", {**ANY, "method": str}, "", ("unit", "probability")) | KLCE | None,
        "outcome": OUTCOME | None,
    },
    rules={
        "if": {"properties": {"status": UNDONE}},
        "then": {"properties": {"reason": {"minLength": 1}, "estimate": NULL, "outcome": NULL}},
        "else": {"properties": {"reason": {"const": ""}}},
    },
)


# ---- data, settings and all of it ----

CLUSTERED = part(
    "Clusters",
    {
        "count": noted(Some, "Clusters of the data; rows, where only weights are known."),
        "exact": noted(bool, "Counted; otherwise estimated from the hashes of those held."),
        "held": noted(Some, "Clusters whose rows are certified, or are pilots."),
        "rows_in_sample": Some,
        "effective": noted(Size, "Squared sum of the certified clusters' sizes over the sum of their squares."),
        "pilots": noted(Some, "Clusters set aside as pilot sample; they give the largest size."),
        "truncated_weights": noted(Count, "Certified clusters larger than any pilot, cut to weigh as much as one."),
        "design_effect": noted(Size, "Variance of the mean error by clusters over that by rows."),
        "wider": noted(Size | None, "Width of everyone's certified range of the gap over that of rows, all alike."),
    },
    "What is certified where rows share a cluster or count more; where clusters cross, blocks of rows that share none.",
)
VARIABLE = part(
    "Variable",
    {
        "kind": Literal["category", "number", "month", "quarter", "year", "decade"],
        "edges": list[float],
        "folded": noted(Count, 'Distinct values of a category folded into "other".'),
    },
)
REPEATS = part(
    "Repeats",
    {
        "rows": noted(Count, "Rows that are equal to an earlier one."),
        "of": Some,
        "exact": noted(bool, "Counted; otherwise estimated from 16,384 hashes of different rows."),
        "by": noted(Literal["row", "key"], "What is equal: every column that is read, as it is counted, or the key."),
        "copied": noted(bool, "More than chance explains."),
        "times": noted(Odds, "How often a row's own content is there, on average over rows."),
    },
)
COLUMN = part(
    "Column",
    {
        "kind": Literal["category", "constant", "date", "id", "label", "number", "score", "unusable"],
        "used": Literal["cluster", "covariate", "group", "key", "label", "left out", "score", "weights"],
        "missing": noted(Share | None, "Share of the rows, in steps of at least mask people; null where not counted."),
    },
)
DISPLAY = part(
    "Display",
    {"values?": Distinct, "steps?": Steps},
    "What the upper ends are about: the score itself, of so many values, or the score in so many rounding steps.",
    rules={"minProperties": 1, "maxProperties": 1},
)
CONFIDENCE = part(
    "Confidence",
    {"provenance": Literal["stated", "token_probability", "judge", "sampled"], "tool field": str | None},
    "Where a confidence of a language model comes from: as its column's name says, and which field of which log.",
)
ARRIVAL = part(
    "Arrival", {"column first last": str, "rows_a_year": Positive}, "How fast rows come, where a date is known."
)
SCREEN = part(
    "Screen",
    {"chosen": list[str], "of": Some, "rows_chose rows_tested": Count},
    "Of more columns than tests take at once: those that tests, subgroups and repairs read, and how many rows, not "
    "among those tested, chose them. Null where all were read.",
)
HORIZON = part(
    "Horizon",
    {
        "time event": str,
        "positive entered closed competing": str | None,
        "horizon": Positive,
        "way": Literal["followed", "weights", "unknown"],
        "rows": Some,
        "late lacking events competing_events none unknown": Count,
        "pilots?": noted(Count, "Rows that estimate the law of censoring, and are certified nowhere."),
        "followed_at_least?": noted(Level, "The lower limit of the probability of being followed to the horizon."),
        "within?": noted(str, "Columns within whose levels being lost is taken as independent of the outcome."),
        "lost_unlike?": noted(dict[str, Share], "Group columns by which rows are lost unlike: p of the log-rank test."),
        "own_law?": noted(list[str], "Those of them whose levels, crossed, have bounded weights each."),
        "implied_odds?": noted(Positive, "Of rows lost to those of rows known, were loss independent of the outcome."),
    },
    "How outcomes by a horizon were made of times and events: rows that entered too late and rows that lack a time, an "
    "event or an entry were left out; of the others so many had the event, another one, none, or an unknown outcome.",
)
SEEN_EVENTS = part(
    "SeenEvents",
    {
        "time label": str,
        "lost": noted(Some, "Rows without the event that were followed for less than the latest event took."),
        "none": noted(Some, "Rows without the event."),
        "latest": noted(Positive, "The time of the latest event."),
        "sure": noted(Literal[False], "A label of which this is sure is refused."),
    },
    "A label that may be an event seen by the end of follow-up, and the column of its time.",
)
KEPT_AND_LATE = Annotated[list[str | float], Meta(min_length=4, max_length=4)]
WARNINGS = Literal[
    "columns-not-read",
    "horizon",
    "likely-id",
    "mostly-under-1-percent",
    "one-class",
    "one-score",
    "other-labels",
    "perhaps-points",
    "perhaps-seen-events",
    "repeated-rows",
    "repeats-score",
    "reproduces-outcome",
    "may-reproduce-outcome",
    "follows-from-score",
    "scores-are-decisions",
    "unfinished-log",
    "fitted-rows",
    "weights-not-used",
]
LACKED = Literal["label", "score", "cluster", "weight", "weight above 0"]
DATA = part(
    "Data",
    {
        "label score": str,
        "positive": str | None,
        "by": noted(list[Annotated[list[str], Meta(min_length=1, max_length=2)]], "Variables, or pairs of them."),
        "key": list[str],
        "cluster": noted(str | None, "Column that names the clusters of rows; null where rows are independent."),
        "classes?": noted(dict[str, str | None], "Of several classes, each with the column of its probability."),
        "two_way?": noted(dict[str, Some], "Clusters of each of two columns that cross.", min_length=2, max_length=2),
        "nested?": noted(dict[str, Some], "Clusters of other columns, each whole in one cluster of the coarsest."),
        "weights": noted(str | None, "Column of how much each row counts; null where all count alike."),
        "clusters": CLUSTERED | None,
        "rows": Some,
        "events dropped file_count": Count,
        "unlabelled": noted(Count | None, "Rows without a label, counted apart; null for fewer than mask."),
        "logits? renormalize? rest?": noted(bool, "Of several classes: what was done to each row as it was read."),
        "ordered?": noted(bool, "Classes have an order, that of `classes`; cuts of it are among the findings."),
        "listed?": noted(str, "Columns that name the classes that each row lists."),
        "rest_mass?": noted(float, "Mean probability of what rows do not list, which is the class '(rest)'."),
        "percent": noted(bool, "Scores were percentages, divided by 100 as they were read."),
        "missing": noted(Literal["level", "drop", "keep", "refuse"], "What was done about missing values."),
        "fingerprint": Annotated[str, Meta(pattern="^[0-9a-f]{64}$")],
        "files": Annotated[list[str], Meta(max_length=20)],
        "variables": named(VARIABLE),
        "repeats": REPEATS,
        "warnings": noted(list[WARNINGS], "What the reader of the numbers should know of the data."),
        "dropped_for?": noted(
            dict[LACKED, Some],
            "How many of the rows left out lack which part, and perhaps others; empty where it is not known.",
            extra_json_schema={"propertyNames": {"enum": sorted(get_args(LACKED))}},
        ),
        "other_labels?": noted(dict[str, Some | None], "Frequent values that are no event: rows, null of a few."),
        "other_label_count?": noted(Several | None, "How many there are of them; null for more than 1,000."),
        "excluded?": noted(list[str], "Rows that the calibrator was fitted on, left out: how many, and who says so."),
        "horizon?": HORIZON,
        "seen_events?": SEEN_EVENTS,
        "kept_and_late?": noted(
            list[KEPT_AND_LATE],
            "Of rows kept by the horizon and of rows that entered too late: column, level or mean, and both numbers.",
        ),
        "noun?": noted(str, "What the log of an evaluation calls its rows."),
        "unfinished?": noted(list[str], "Logs that did not come to their end, each with how many answers it has."),
        "repeats_score?": noted(list[str], "Covariates that reveal the score: error along them is the score's own."),
        "columns": noted(named(COLUMN), "What each column was interpreted and used as."),
        "covariates": noted(list[str], "Columns that were ranked and tested."),
        "left_out": noted(list[Pair], "Columns that are no attributes or could not be used, each with the reason."),
        "in_question?": noted(list[Pair], "Covariates that may reproduce the outcome: kept, and asked about."),
        "display?": DISPLAY,
        "rounded_for?": noted(Pair, "Group columns of which exact numbers would tell those of small groups."),
        "confidence?": CONFIDENCE,
        "arrival?": ARRIVAL | None,
        "screen?": SCREEN | None,
        "frame?": noted(Literal["pandas", "polars"], "Library of the frame that was read; to_frame gives one back."),
    },
)
ABOUT = part("About", {"noun": str, "model intended_use period population set_by": str | None}, "As it was given.")
FORM = part(
    "Form", {"encoding? delimiter? decimal? sheet? dates? format?": str}, "What was said of how files are written."
)
TESTS = Literal["local-calibration", "strong-calibration", "subgroups", "error-shown"]
SETTINGS = part(
    "Settings",
    {
        "alpha": Level,
        "limit": noted(Level | None, "In probability units; of everyone, where it is relative."),
        "limit_relative?": noted(Level, "The limit as a share of the mean score of those judged."),
        "against?": noted(str, "The file of the earlier audit, or of its data."),
        "limit_classes?": noted(Annotated[float, Meta(gt=0, le=2)], "The limit of all classes' errors, added up."),
        "steps": Steps,
        "bandwidth": Annotated[float, Meta(gt=0, le=0.5)],
        "seed": Count,
        "blocks": Some,
        "quick": bool,
        "outcome date": str | None,
        "mask": noted(Fewest | None, "Groups with fewer people are never shown, nor are their names; null: all are."),
        "publish?": noted(bool, "Numbers of groups are multiples of five; so too in records that do not say."),
        "fail_on": noted(list[TESTS], "Tests that count for the exit status."),
        "tolerance": noted(Annotated[float, Meta(ge=0, lt=1)], "Of the strong calibration test."),
        "missing_odds": noted(Odds, "How many times the odds may differ of people without a label."),
        "variables?": noted(list[str], "Covariates asked for; * is every column that can be used."),
        "allow?": noted(list[str], "Columns that were kept though they reproduce the outcome or the score."),
        "judge": noted(Judge, "What the limit is about."),
        "target?": noted(Target | None, "Whose gaps were asked for; each gap's settings say whose it is."),
        "about": ABOUT,
        "allow_same?": noted(bool, "Rows that are there more than once are meant, and count so."),
        "final?": noted(bool, "Labels were declared to be outcomes, however long rows were followed."),
        "independent?": noted(bool, "Rows were declared independent, whatever columns they share."),
        "form?": FORM,
        "threshold?": noted(list[Level], "Scores from which on people are acted on, increasing; empty without."),
        "costs?": noted(list[Positive], "Of acting on a non-event, and of not acting on an event; else empty."),
        "infer?": noted(list[str], "Covariates whose mean among the events was to be inferred."),
    },
)


def of_verdict(verdict: Mapping[str, object]) -> dict[str, object]:
    """That the verdict of all, of everyone and of each group is such a one."""
    one = {"properties": {"verdict": verdict}}
    return {"properties": {"verdict": verdict, "everyone": one, "groups": {"items": one}}}


FEWEST = 5  # the smallest mask
RECORD = part(
    "AuditRecord",
    {
        "schema": Literal[SCHEMA],
        "name": noted(str, "Name of the data set."),
        "verdict": noted(Verdict, "The worst of everyone and all groups, and over where a subgroup is."),
        "verdicts": part(
            "Verdicts",
            {
                "everyone groups subgroups classes?": Verdict,
            },
            "In parts, none of which stands for another; not_checked also where nothing was looked at.",
        ),
        "error_shown": part(
            "ErrorShown",
            {"everyone groups subgroups classes?": bool},
            "Whether error of any size is shown in each part; of subgroups by their test.",
        ),
        "shares": noted(
            many(
                part(
                    "Share",
                    {
                        "wrong": Literal["over", "within", "error_shown"],
                        "part": Part,
                        "by": Literal["error", "gap", "test"],
                        "alpha": Level,
                    },
                )
            ),
            "How probable a wrong verdict of each kind is at most, about each part: alpha as it was used.",
        ),
        "joint_error": part(
            "JointError",
            {"over within error_shown": noted(Size, "The sum of its shares.")},
            "How probable any wrong verdict of a kind is at most.",
        ),
        "everyone": EVERYONE,
        "groups": noted(many(GROUP), "All bounds of all groups hold together with probability 1 - alpha."),
        "classes": noted(many(GROUP), "Of several classes each against the others; all bounds hold together."),
        "checks": Annotated[many(CHECK), Meta(min_length=1)],
        "estimates": ESTIMATES,
        "curves": part(
            "Curves",
            {f"{name.rstrip('/')}?": named(kind) if name.endswith("/") else kind for name, kind in CURVES.items()},
            "What could be drawn, by name; covariates' names follow the slash.",
        ),
        "data": DATA,
        "settings": SETTINGS,
        "versions": Annotated[dict[str, str], Meta(extra_json_schema={"required": ["calibrant", "python"]})],
    },
    "What AuditRecord.to_dict and `calibrant audit -o x.json` write. Probabilities are in [0, 1]; 0.01 is one point.",
    rules={
        "if": {"properties": {"settings": {"properties": {"limit": NULL}}}},
        "then": of_verdict({"const": "not_checked"}),
        "else": {
            "if": {"properties": {"everyone": {"properties": {"withheld": {"type": "string"}}}}},
            "then": of_verdict({"const": "not_checked"}),
            "else": of_verdict({"enum": ["within", "undecided", "over"]}),
        },
        "anyOf": [
            {"properties": {"settings": {"properties": {"mask": NULL}}}},
            {"properties": {"groups": {"items": {"properties": {"rows": {"minimum": 5}}}}}},
        ],
    },
)


def refuse_others(record: Mapping[str, Any]) -> None:
    """Refuse what is no record and name the place, where curves of a family ("variable_curve/age") are together."""
    read = plain(record, str)
    if isinstance(curves := read.get("curves"), dict):
        read["curves"] = {name: curve for name, curve in curves.items() if "/" not in name}
        for name in curves.keys() - read["curves"].keys():
            family, _, about = name.partition("/")
            read["curves"].setdefault(family, {})[about] = curves[name]
    try:
        converted(read, RECORD)
        _refuse_huge(read, "$")
        for name, one in record["curves"].items():
            _refuse_columns(one["columns"], f"$.curves[{name!r}].columns", ALL_OR_NONE.get(one["method"], 0))
        fewest = record["settings"]["mask"] and FEWEST
        if fewest and (few := [g["id"] for g in record["groups"] if g["rows"] < fewest]):
            raise BadInput(f"{NONE}: group {few[0]!r} has fewer rows than a mask leaves")
    except RecursionError:
        raise BadInput(f"{NONE}: it is nested without end") from None


def _refuse_huge(value: object, where: str) -> None:
    """Refuse a number that no audit writes, such as NaN or 1e300: what is computed with it is none."""
    if isinstance(value, (int, float)) and not abs(value) <= MOST:
        raise BadInput(f"{NONE}: {str(value)[:40]} is no number of an audit - at `{where}`")
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inside:
        if not isinstance(one, str):
            _refuse_huge(one, f"{where}.{key}" if isinstance(key, str) else f"{where}[{key}]")


def _refuse_columns(columns: Mapping[str, Sequence[object]], where: str, whole: int = 0) -> None:
    """Refuse columns of different lengths, those that hold values of several kinds, and some where all go together."""
    if columns and len(columns) < whole:
        raise BadInput(f"{NONE}: {len(columns)} of {whole} columns that stand together - at `{where}`")
    if mixed := next((column for column, values in columns.items() if _mixed(values)), ""):
        raise BadInput(f"{NONE}: column {mixed!r} holds values of several kinds - at `{where}`")
    lengths = {column: len(values) for column, values in columns.items()}
    if len(set(lengths.values())) > 1:
        short, long = min(lengths, key=lengths.__getitem__), max(lengths, key=lengths.__getitem__)
        ends = f"columns {short!r} ({lengths[short]:,}) and {long!r} ({lengths[long]:,})"
        raise BadInput(f"{NONE}: {ends} differ in length - at `{where}`")


def _mixed(values: Sequence[object]) -> bool:
    """Whether a column holds numbers and text, or lists next to them; an infinite number is text here."""
    of: dict[type, type] = {list: list, dict: list, str: str}
    return len({of.get(type(v), float) for v in values if v not in GAPS}) > 1


GAPS = None, "inf", "-inf"
MOST = 1e100  # a size that no number of an audit has: covariates end at 1e30
NONE = "no AuditRecord as `to_dict` writes one"
