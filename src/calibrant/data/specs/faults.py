"""What was wrong with the rows read so far, and the one line that says so."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from calibrant.arguments import PYTHON, Caller
from calibrant.data.columns import MULTICLASS, Floats, are_absent, spellings, two_spellings
from calibrant.data.sources.source import Place, row_of
from calibrant.data.specs.sketch_file import need
from calibrant.data.specs.spec import Spec
from calibrant.errors import BadInput

KINDS = 8  # of faults, and of rows of weight 0, which is none
HARDLY = 100  # one in so many scores above 1, or fewer: they are no percent
LEAST_ROWS = 20  # of a file whose scores tell its scale
SCORE_MISSING, SCORE_RANGE, LABEL_MISSING, LABEL_VALUE, CLUSTER_MISSING, WEIGHT_MISSING, WEIGHT_VALUE = range(KINDS - 1)
WEIGHT_ZERO = KINDS - 1

# Of a row.
PARTS = {"label": LABEL_MISSING, "score": SCORE_MISSING, "cluster": CLUSTER_MISSING, "weight": WEIGHT_MISSING}
PARTS |= {"weight above 0": WEIGHT_ZERO}

DIVIDE = "divide all of them by 100"
LOGITS = "apply 1 / (1 + exp(-x))"
ONE_WAY = "store all of them one way, as probabilities from 0 to 1 or all as percent"


@dataclass
class Faults:
    """Counts and first places of faulty rows, by kind, and of gaps that are refused, by column; merged over parts."""

    counts: list[int] = field(default_factory=lambda: [0] * KINDS)
    first: list[tuple[str, int] | None] = field(default_factory=lambda: [None] * KINDS)
    example: list[str] = field(default_factory=lambda: [""] * KINDS)
    low: float = 0.0
    high: float = 1.0
    infinite: int = 0  # of the scores that are outside
    cluster: str = ""  # the first value of the column of clusters
    gaps: dict[str, tuple[int, str, int]] = field(default_factory=dict)
    caller: Caller = PYTHON
    arrays: bool = False  # of rows given as arrays, which no option divides
    files: dict[str, tuple[int, int]] = field(default_factory=dict)  # scores there are, and those stored above 1
    spelt: set[str] = field(default_factory=set)  # ways in which a label of text spells the case
    untold: int = 0  # rows that were left out before, of which nobody knows what they lack

    def add(self, kind: int, count: int, where: tuple[str, int], example: str) -> None:
        """Count faulty rows of one kind, keeping the earliest place."""
        self.counts[kind] += count
        known = self.first[kind]
        if known is None or where < known:
            self.first[kind], self.example[kind] = where, example

    def see(self, p: Floats, percent: bool, part: str = "") -> None:
        """Count the scores of a file that are there, and those above 1 as they are stored, before division by 100."""
        there, above = self.files.get(part, (0, 0))
        known = int(np.count_nonzero(p == p))
        self.files[part] = there + known, above + int(np.count_nonzero(p > (0.01 if percent else 1.0)))

    def note(
        self, p: Floats, y: Floats | NDArray[np.int8] | None = None, part: str = "", first_row: int = 0, digits: int = 9
    ) -> None:
        """Count the faulty among rows: their scores and, if given, their labels as numbers, NaN where missing."""
        missing = np.isnan(p)
        outside = ~missing & ~((p >= 0.0) & (p <= 1.0))
        bad = [missing, outside]
        if y is not None:
            absent = np.isnan(y)
            bad += [absent, ~absent & (y != 0) & (y != 1)]
        for kind, rows in enumerate(bad):
            if rows.any():
                row = int(np.argmax(rows))
                value = p[row] if y is None or kind == SCORE_RANGE else y[row]
                example = f"{value:.{digits}g}" if kind in (SCORE_RANGE, LABEL_VALUE) else ""
                self.add(kind, int(np.count_nonzero(rows)), (part, first_row + row), example)
        if outside.any():
            reach = p[outside & np.isfinite(p)]  # a number divided by zero tells nothing of the scale
            self.infinite += int(np.count_nonzero(outside)) - len(reach)
            self.low = min(self.low, float(reach.min(initial=0.0)))
            self.high = max(self.high, float(reach.max(initial=1.0)))

    def note_rows(
        self, kind: int, rows: NDArray[np.bool_], part: str, first_row: int, values: Floats | None = None
    ) -> None:
        """Count the rows of one kind of fault; `values` are shown as what they hold."""
        if rows.any():
            row = int(np.argmax(rows))
            example = "" if values is None else f"{values[row]:.9g}"
            self.add(kind, int(np.count_nonzero(rows)), (part, first_row + row), example)

    def note_event(self, batch: pa.RecordBatch | pa.Table, spec: Spec) -> None:
        """Keep how the event is spelt, of all rows that are read, left out or not."""
        if spec.positive is not None:
            self.spelt |= spellings(batch.column(spec.label), spec.label, spec.positive)

    def note_gaps(self, batch: pa.RecordBatch, spec: Spec, names: Iterable[str], part: str, first_row: int) -> None:
        """Count the missing values of columns, if the spec says that they are refused."""
        for name in names if spec.missing == "refuse" else ():
            absent = are_absent(batch.column(name), name)
            if absent.any():
                self._gap(name, int(np.count_nonzero(absent)), part, first_row + int(np.argmax(absent)))

    def _gap(self, name: str, count: int, part: str, row: int) -> None:
        known = self.gaps.get(name, (0, part, row))
        self.gaps[name] = (known[0] + count, *min(known[1:], (part, row)))

    def merge(self, other: Faults) -> None:
        """Add another part's faults."""
        for name, gap in other.gaps.items():
            self._gap(name, *gap)
        for kind in range(KINDS):
            where = other.first[kind]
            if where is None:  # none, or those of a stored sketch
                self.counts[kind] += other.counts[kind]
            else:
                self.add(kind, other.counts[kind], where, other.example[kind])
        self.untold += other.untold
        self.spelt |= other.spelt
        self.low, self.high = min(self.low, other.low), max(self.high, other.high)
        self.infinite += other.infinite
        self.cluster = self.cluster or other.cluster
        for part, (there, above) in other.files.items():
            known = self.files.get(part, (0, 0))
            self.files[part] = known[0] + there, known[1] + above

    def check(self, spec: Spec, place: Place = row_of) -> None:
        """Raise `BadInput` for the first fault there is."""
        for _, why in self.refusals(spec, place):
            raise BadInput(why)

    def refusals(self, spec: Spec, place: Place = row_of) -> Iterator[tuple[int, str]]:
        """Yield what is wrong, the gravest first, each behind its kind; of spellings and gaps a number beyond these."""

        def line(kind: int, column: str, what: str) -> str:
            where = self.first[kind]
            return _line(column, self.counts[kind], place(*where) if where else "", self.example[kind], what)

        if self.counts[SCORE_RANGE]:
            span = "outside 0 to 1 after division by 100" if spec.percent else "outside 0 to 1"
            what = "infinite" if self.infinite == self.counts[SCORE_RANGE] else span
            yield SCORE_RANGE, line(SCORE_RANGE, spec.score, f"{what}; {self._hint(spec.percent)}")
        if self.counts[LABEL_VALUE]:
            yield LABEL_VALUE, line(LABEL_VALUE, spec.label, f"neither 0 nor 1; {self._which_case()}")
        if why := two_spellings(self.spelt, spec.label, spec.positive or ""):
            yield KINDS, why
        if self.counts[WEIGHT_VALUE]:
            what = "negative or infinite: a weight is a positive number, or 0 to leave its row out"
            yield WEIGHT_VALUE, line(WEIGHT_VALUE, spec.weights, what)
        attached = (CLUSTER_MISSING, spec.cluster), (WEIGHT_MISSING, spec.weights)
        for kind, column in (*attached, (SCORE_MISSING, spec.score), (LABEL_MISSING, spec.label)):
            if self.counts[kind] and not (spec.drops or (spec.keeps and kind == LABEL_MISSING)):
                yield kind, line(kind, column, f"missing (null or NaN); {self._filling(kind)}")
        fix = f"fill them in, or leave {self.caller.says('missing')} out to make them a level of their own"
        for name, (count, part, row) in sorted(self.gaps.items()):
            yield KINDS + 1 + list(self.gaps).index(name), _line(name, count, place(part, row), "", f"missing; {fix}")

    def _filling(self, kind: int) -> str:
        if "missing" in self.caller.lacks:
            return "fill them in, or leave those rows out of the data"
        how = self.caller.turns_on("drop_missing")
        fix = f"fill them in, or pass {how} to leave those rows out and count them"
        if kind == LABEL_MISSING:
            fix += f", or {self.caller.typed('missing', 'keep')} to say what they could change"
        return fix

    def _hint(self, percent: bool) -> str:
        (there, above), outside = self._scores(), self.counts[SCORE_RANGE]
        mend = "correct it, or leave its row out" if outside == 1 else "correct them, or leave their rows out"
        if self.infinite == outside:
            return mend
        if not self.infinite and self.low >= -1e-4 and self.high <= 1.0 + 1e-4:
            return "is it rounding error? Clip to 0 and 1"
        within = f"{there - outside:,} {'is' if there - outside == 1 else 'are'} within"
        reported, few = f"the other {within}: {mend}", HARDLY * outside <= there
        if self.low >= 0.0 and self.high <= 100.0 and self.high > 1.5 and not percent:
            if files := self._two_scales():
                return f"those of {files[0]!r} are within it: if every score is percent, {DIVIDE}; if not, {ONE_WAY}"
            points = (
                "; points and ranks are no probabilities: fit a calibrator first" if 2.0 <= self.high < 90.0 else ""
            )
            if there and 2 * above <= there:  # few: as many as `check_scale` refuses
                fix = DIVIDE if few or self.arrays else f"pass {self.caller.turns_on('percent')}"
                return f"{reported}; if every score is percent, {fix}{'' if few else points}"
            fix = "Divide by 100" if self.arrays else f"Pass {self.caller.turns_on('percent')}"
            return f"did you pass percentages? {fix}{points}"
        if percent:
            return reported if few else "store percent, 0 to 100"
        if 2 * outside < there:  # of logits hardly most are within
            return reported if few else f"{reported}; if all are logits, {LOGITS}"
        return f"did you pass logits? A{LOGITS[1:]} first"

    def absences(self, spec: Spec) -> dict[str, int]:
        """How many of the rows that were left out lack which part; one may lack several.

        None where it is not known of all of them.
        """
        kept = {part: self.counts[kind] for part, kind in PARTS.items() if not (spec.keeps and part == "label")}
        return {part: n for part, n in kept.items() if n and not self.untold}

    def stored(self, lack: Mapping[str, int], gone: int) -> None:
        """Take from a stored sketch how many of the rows left out lack which part; refuse what cannot be."""
        sound = lack.keys() <= PARTS.keys() and all(0 < n <= gone for n in lack.values())
        need(sound and (not lack or sum(lack.values()) >= gone), "what the rows left out lack", f"is {dict(lack)}")
        for part, n in lack.items():
            self.counts[PARTS[part]] = n
        self.untold = 0 if lack else gone

    def in_one(self) -> None:
        """Forget which part of a frame scores came from: a part is no file, and may well hold the low ones alone."""
        self.files = {"": self._scores()}

    def _which_case(self) -> str:
        """Say what to do about labels that are neither 0 nor 1."""
        says, there = self.caller.says("positive"), self._scores()[0]
        if there and self.counts[LABEL_VALUE] * 100 < there * MULTICLASS:
            return (
                "if these are codes of unknown outcomes, store them as missing or leave their rows out; "
                f"{says} would count every value but the one it names as a non-event"
            )
        return f"pass {says} to name the class that counts as the event; every other value is a non-event"

    def _scores(self) -> tuple[int, int]:
        """The scores that are there, and those above 1 as they are stored."""
        return sum(n for n, _ in self.files.values()), sum(n for _, n in self.files.values())

    def _two_scales(self) -> tuple[str, str] | None:
        """A file none of whose scores is above 1, and one most of whose are; None if there are no two such."""
        kept = [(part, n, above) for part, (n, above) in sorted(self.files.items()) if part and n >= LEAST_ROWS]
        low = [part for part, _, above in kept if not above]
        high = [part for part, n, above in kept if 2 * above > n]
        return (low[0], high[0]) if low and high else None

    def check_scale(self, spec: Spec) -> None:
        """Raise `BadInput` for scores that were said to be percent and may be none: next to none is above 1.

        To be asked when all rows were seen: a part of them may well be low. Of rare events so are all, which no number
        distinguishes from probabilities: whoever knows divides them, and says nothing of percent.
        """
        there, above = self._scores()
        if not spec.percent or not there:
            return
        out = f"leave {self.caller.turns_on('percent')} out"
        if not above:
            seen = "no score is above 1, as if they were probabilities"
            raise BadInput(f"column {spec.score!r}: {seen}: {out}, and if they are percent, {DIVIDE} first")
        if HARDLY * above <= there:
            some = f"{above:,} of {there:,} scores {'is' if above == 1 else 'are'} above 1"
            seen = f"{some}, too few to tell that all are percent"
            ways = f"if they are, {DIVIDE} and {out}; if not, {out} and correct those above 1"
            raise BadInput(f"column {spec.score!r}: {seen}: {ways}")
        if files := self._two_scales():
            low, high = files
            reported = f"no score of {low!r} is above 1, and most of {high!r} are"
            ways = f"if every score is percent, {DIVIDE} and {out}; if not, {ONE_WAY}"
            raise BadInput(f"column {spec.score!r}: {reported}: {ways}")

    def mostly_low(self, spec: Spec) -> bool:
        """Whether most scores that were said to be percent are stored as 1 or less."""
        there, above = self._scores()
        return spec.percent and there > 0 and 2 * above < there


def _line(column: str, count: int, place: str, example: str, what: str) -> str:
    """Say what is wrong with values of a column, and where the first of them is."""
    shown = f" ({example})" if example else ""
    noun = "value is" if count == 1 else "values are"
    first = f" First: {place}{shown}." if place else ""
    return f"column {column!r}: {count:,} {noun} {what}.{first}"
