"""Which column could play which part, by its name and by what it holds alone: never by how two columns go together."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet

from calibrant.data.specs.column_names import (
    CLUSTERS,
    PERCENT,
    POINTS,
    names_cluster,
    names_percent,
    names_weights,
    pieces,
)
from calibrant.data.specs.column_names import FEWEST as FEWEST_CLUSTERS
from calibrant.data.specs.follow_up import ends, meaning
from calibrant.inspect.looked import NO_NUMBER, Column

# ---- words that columns are called by, in whole pieces of a name: "y_prob" is "y" and "prob" ----

SCORES = {"score", "prob", "proba", "probability", "p", "phat", "risk", "pred", "predicted", "prediction", "propensity"}
SCORES |= {"predict", "forecast", "likelihood", "logit", "logits", "confidence", "pd", "probs"}
PROBABILITIES = SCORES - {"score", "pred", "predicted", "prediction", "predict", "logit", "logits"}
LABELS = {"label", "y", "target", "outcome", "truth", "true", "actual", "event", "class", "observed", "response"}
LABELS |= {"labels", "gold"}
TRUTHS = {"label", "labels", "target", "outcome", "truth", "true", "gold", "y"}  # by no other use of the word
EVENTS = {"readmitted", "died", "death", "dead", "mortality", "default", "defaulted", "churn", "churned", "survived"}
EVENTS |= {"employed", "fraud", "diagnosis", "converted", "clicked", "relapse", "case", "positive", "correct"}
SPLITS = {"train", "test", "split", "fold", "holdout", "validation", "weight", "weights"}
GROUPS: tuple[str, ...] = ("sex", "gender", "age", "race", "ethnicity", "ethnic", "nativity", "disability")
GROUPS += ("citizenship", "language")
GROUPS += ("education", "schooling", "income", "insurance", "occupation", "religion", "marital", "region", "country")
GROUPS += ("state", "site", "hospital", "clinic", "center", "centre", "department", "year", "month")
GROUPS += ("product", "segment")
KEYS = {"id", "key", "uuid", "guid", "index", "number", "nr", "no", "unnamed", "row", "record", "case", "visit", "loan"}
NEGATIVE = {"0", "no", "n", "false", "negative", "neg", "none", "absent", "control", "healthy", "alive", "f", "-1"}
NEGATIVE |= {"nein", "falsch", "nee", "nej", "non", "não", "nao", "nie"}
AFFIRMATIVE = {"1", "yes", "y", "true", "positive", "pos", "case", "event", "present", "died", "dead", "t", "+1"}
AFFIRMATIVE |= {"ja", "j", "wahr", "oui", "sí", "si", "sì", "sim", "tak"}

FEW, MANY = 2, 50  # levels of a group column that is proposed
FEWEST = 12  # values up to which a number is a group as it is
OFFERED = 4  # group columns in the command
ONE_HOT = 3  # yes/no columns of one beginning, from which on they are one category
LISTED, LABELS_LISTED = 6, 12  # candidates of one part; of the label, which stands last in many a table
LABEL_VALUES = 2
WHOLE = "its values are whole numbers"
TENTHS = 20.0  # up to which numbers that are not whole may be points, too
GRADES = {"grade", "grades", "rating", "ratings", "bucket"}
DEFAULTS = {"default", "defaulted", "defaults"}


def called(name: str, words: AbstractSet[str]) -> bool:
    """Whether a name has one of some words in it."""
    return not words.isdisjoint(pieces(name))


# ---- the score ----


def scale_of(column: Column | None, mostly_above: bool = True) -> str:
    """What the numbers of a score look like: see `Look.scale`. Percent have the sign, or are mostly above 1."""
    if column is None or not isinstance(column.low, float) or not isinstance(column.high, float):
        return ""
    low, high = column.low, column.high
    if "sign" in column.why and low >= 0.0 and high <= 100.0:
        return "percent"
    if low >= 0.0 and high <= 1.0:
        return "decision" if (column.distinct or 0) <= 2 and {low, high} <= {0.0, 1.0} else "probability"
    if low >= -1e-4 and high <= 1.0 + 1e-4:
        return "rounding"
    if low >= 0.0 and 1.5 < high <= 100.0:
        if _like_points(column, high, mostly_above):
            return "points"
        return "percent" if mostly_above else "other"
    return "logit" if -50.0 <= low < 0.0 and 0.0 < high <= 50.0 else "other"


def _like_points(c: Column, high: float, mostly_above: bool) -> bool:
    """Whether numbers from 0 up may as well be points, ranks or deciles: whole, or low, and not named as percent."""
    if names_percent(c.name):
        return False
    if c.why == WHOLE:
        return high < POINTS
    return mostly_above and high <= TENTHS and not called(c.name, PROBABILITIES)


def scores(columns: Sequence[Column]) -> tuple[str, ...]:
    """The columns that could be the score, the most likely first; of a pair, that of the event."""
    return _best(columns, _score_points(columns))


def nearly_scores(columns: Sequence[Column]) -> tuple[str, ...]:
    """The columns called as scores are that would be numbers but for a few values."""
    return tuple(c.name for c in columns if c.kind == "text" and f": {NO_NUMBER}" in c.why and called(c.name, SCORES))


def _score_points(columns: Sequence[Column]) -> Callable[[Column], float]:
    endings = {c.name: re.fullmatch(r"(.*\D)([01])", c.name) for c in columns}
    pairs = Counter(re.sub(r"\d+$", "", c.name) for c in columns)

    def points(c: Column) -> float:
        scale, ending = scale_of(c), endings[c.name]
        if scale in ("", "other") or names_weights(c.name) or c.kind != "number" or (c.distinct or 0) <= FEW:
            return 0.0
        named = called(c.name, SCORES) or (scale == "percent" and names_percent(c.name))
        result = 3.0 if named else 1.0
        if scale != "probability":
            result = 2.0 if named and c.why != WHOLE else 1.5 if named else 0.0
        if result and ending and pairs[ending[1]] == LABEL_VALUES:  # prob_0 and prob_1
            return result + (0.5 if ending[2] == "1" else -0.5)
        return result

    return points


# ---- the label ----


ENDS = (2, 3, 4)  # an event and none, with or without others that compete


def labels(columns: Sequence[Column], score: str) -> tuple[str, ...]:
    """The columns that could be the label, the most likely first: two values, or a name that says so."""
    return _best([c for c in columns if c.name != score], _like_a_label, LABELS_LISTED)


def _like_a_label(c: Column) -> float:
    if c.kind not in ("yes/no", "category", "code", "number", "constant") or called(c.name, SPLITS) or not c.distinct:
        return 0.0
    if c.kind == "constant":  # of one class, where nothing else is a label
        return 0.5 if called(c.name, LABELS | EVENTS) else 0.0
    if c.distinct != LABEL_VALUES:  # several classes: one of them against the others
        return 1.5 if LABEL_VALUES < c.distinct <= FEWEST and called(c.name, LABELS) else 0.0
    points = 4.0 if called(c.name, LABELS) else 3.0 if called(c.name, EVENTS) else 0.0
    return max(points + (1.0 if c.kind == "yes/no" else 0.0) - (2.5 if is_output(c) else 0.0), 0.0)


def follow_up(columns: Sequence[Column]) -> tuple[str, ...]:
    """The columns of times and of what ended them, where names and values of both say so; nothing of one alone."""
    times = [c for c in columns if c.kind == "number" and meaning(c.name) and isinstance(c.low, (int, float))]
    long = [c.name for c in times if float(c.low or 0.0) >= 0.0 and (c.distinct or FEWEST + 1) > FEWEST]
    ended = [c.name for c in columns if c.distinct in ENDS and ends(c.name) and c.name not in long]
    return (long[0], ended[0]) if long and ended else ()


def event_of(values: Sequence[tuple[str, int]]) -> tuple[str, bool]:
    """The label value that would count as the event, and whether it need not be named."""
    there = [v for v, _ in values]
    if {v.lower() for v in there} <= {"0", "1", "true", "false"}:
        return next((v for v in there if v.lower() in ("1", "true")), "1"), True
    yes = [v for v in there if v.lower() in AFFIRMATIVE]
    if len({v.lower() for v in yes}) == 1:  # one word, spelt in several ways
        return yes[0], False  # values come the most frequent first
    not_no = [v for v in there if v.lower() not in NEGATIVE and not v.lower().startswith(("no ", "not ", "non"))]
    if len(there) == LABEL_VALUES and len(not_no) == 1:
        return not_no[0], False
    return (there[-1] if there else ""), False  # the rarest


# ---- groups, keys and clusters ----


def groups(columns: Sequence[Column], taken: Iterable[str]) -> tuple[str, ...]:
    """The columns that could be groups: those called as groups are, in that order, then others of few levels."""
    out, families = {*taken}, Counter(_family(c) for c in columns)

    def points(c: Column) -> float:
        rank = next((i for i, word in enumerate(GROUPS) if word in pieces(c.name)), len(GROUPS))
        if c.kind == "number" and (rank < len(GROUPS) or (c.distinct or 0) <= FEWEST):
            return 100.0 - rank if rank < len(GROUPS) else 0.5
        if c.kind == "date":
            return 1.0
        if c.kind not in ("category", "code", "yes/no") or not FEW <= (c.distinct or 0) <= MANY:
            return 0.0
        if families[_family(c)] >= ONE_HOT and c.kind == "yes/no":
            return 0.1  # one of the columns that a category was spread over
        return (100.0 if rank < len(GROUPS) else 50.0) - rank - (c.distinct or 0) / 1000

    out |= {
        c.name
        for c in columns
        if is_output(c) or called(c.name, SPLITS | TRUTHS) or (c.kind == "number" and names_weights(c.name))
    }
    return _best([c for c in columns if c.name not in out], points)


def _family(c: Column) -> str:
    """What the columns of one category that was spread over several begin with."""
    return re.split(r"[_=.]", c.name)[0] if c.kind == "yes/no" and re.search(r"[_=.]", c.name) else f"\0{c.name}"


def is_output(c: Column) -> bool:
    """Whether a column is called as what a model says: another score, or its decision."""
    return c.kind in ("number", "yes/no") and called(c.name, SCORES - LABELS) and not names_weights(c.name)


def keys(columns: Sequence[Column]) -> tuple[str, ...]:
    """The columns that distinguish every row."""
    return _best(columns, lambda c: (2.0 if called(c.name, KEYS) else 1.0) if c.kind == "id" and not c.missing else 0.0)


def weights(columns: Sequence[Column], taken: Iterable[str]) -> tuple[str, ...]:
    """The columns of numbers from 0 up that are called as weights of rows are, those that say so first."""
    out = {*taken}

    def points(c: Column) -> float:
        positive = c.kind == "number" and isinstance(c.low, float) and c.low >= 0.0 and c.name not in out
        return {"design": 2.0, "any": 1.0, "": 0.0}[names_weights(c.name)] if positive else 0.0

    return _best(columns, points)


def clusters(columns: Sequence[Column]) -> tuple[str, ...]:
    """The columns by which rows share clusters: a patient's, a household's.

    Those that hold identifiers, and categories or whole numbers of at least 20 values whose name is that of a cluster;
    of more than 50 if that is the name of groups too, such as `site`.
    """
    return _best(columns, _like_a_cluster)


def _like_a_cluster(c: Column) -> float:
    if c.kind == "cluster":
        return 2.0 if called(c.name, CLUSTERS) else 1.0
    of_clusters = c.kind in ("category", "code") or (c.kind == "number" and c.why == WHOLE)
    below = isinstance(c.low, float) and c.low < 0.0  # amounts, such as those of an `account`
    if not of_clusters or below or c.role not in ("", "covariate") or not names_cluster(c.name):
        return 0.0
    place = called(c.name, {*GROUPS}) and not called(c.name, CLUSTERS.difference(GROUPS))
    return 0.5 if (c.distinct or 0) >= (MANY + 1 if place else FEWEST_CLUSTERS) else 0.0


def sure_score(columns: Sequence[Column], results: Sequence[str]) -> str:
    """The one candidate, or the one that is called as a score and holds no points; else nothing.

    Of a pair such as prob_0 and prob_1 the first counts as no candidate.
    """
    kept = {c.name: c for c in columns}
    lower = {re.sub("1$", "0", name) for name in results if name.endswith("1")}
    free = [name for name in results if name not in lower]
    called_so = [name for name in free if called(name, SCORES) and scale_of(kept[name]) != "points"]
    likely = called_so or free
    return likely[0] if len(likely) == 1 else ""


def sure_label(columns: Sequence[Column], results: Sequence[str], score: str) -> str:
    """The first candidate if it is likelier than the second and no other is called as a label or by the score."""
    kept = {c.name: c for c in columns}
    ranked = [_like_a_label(kept[name]) for name in results[:2]]
    if not ranked or (len(ranked) > 1 and ranked[0] <= ranked[1]):
        return ""
    about = {word for word in pieces(score) if not word.isdigit()} - SCORES - PERCENT
    likewise = LABELS if called(results[0], LABELS) else EVENTS
    others = (kept[name] for name in results[1:] if kept[name].distinct == LABEL_VALUES and not is_output(kept[name]))
    return "" if any(called(c.name, likewise | about) for c in others) else results[0]


def grade(columns: Sequence[Column], label: str, score: str) -> str:
    """The column of rating grades next to a PD and a default; nothing where there is none."""
    if not (called(score, {"pd"}) and called(label, DEFAULTS)):
        return ""
    kinds = ("category", "code", "number")
    graded = (c for c in columns if c.kind in kinds and called(c.name, GRADES) and FEW <= (c.distinct or 0) <= MANY)
    return next((c.name for c in graded if c.name not in (label, score)), "")


def _best(columns: Sequence[Column], points: Callable[[Column], float], most: int = LISTED) -> tuple[str, ...]:
    ranked = [(-points(c), i, c.name) for i, c in enumerate(columns)]
    return tuple(name for value, _, name in sorted(ranked) if value < 0)[:most]
