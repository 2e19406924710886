"""What was wrong with the rows read so far, and the one line that says so."""

from __future__ import annotations

from dataclasses import dataclass, field

from calibrant.data.spec import Spec
from calibrant.errors import BadInput

SCORE_MISSING, SCORE_RANGE, LABEL_MISSING, LABEL_VALUE = range(4)


@dataclass
class Faults:
    """Counts and first places of faulty rows, by kind; merged over parts."""

    counts: list[int] = field(default_factory=lambda: [0, 0, 0, 0])
    first: list[tuple[str, int] | None] = field(default_factory=lambda: [None] * 4)
    example: list[str] = field(default_factory=lambda: [""] * 4)
    low: float = 0.0
    high: float = 1.0

    def add(self, kind: int, count: int, where: tuple[str, int], example: str) -> None:
        """Count faulty rows of one kind, keeping the earliest place."""
        self.counts[kind] += count
        known = self.first[kind]
        if known is None or where < known:
            self.first[kind], self.example[kind] = where, example

    def merge(self, other: Faults) -> None:
        """Add another part's faults."""
        for kind in range(4):
            where = other.first[kind]
            if where is not None:
                self.add(kind, other.counts[kind], where, other.example[kind])
        self.low, self.high = min(self.low, other.low), max(self.high, other.high)

    def check(self, spec: Spec, drop_missing: bool) -> None:
        """Raise `BadInput` for the first kind of fault there is."""
        if self.counts[SCORE_RANGE]:
            raise BadInput(self._line(SCORE_RANGE, spec.score, f"outside 0 to 1; {self._hint()}"))
        if self.counts[LABEL_VALUE]:
            fix = "pass positive= (--positive) to name the class that counts as a case"
            raise BadInput(self._line(LABEL_VALUE, spec.label, f"neither 0 nor 1; {fix}"))
        for kind, column in ((SCORE_MISSING, spec.score), (LABEL_MISSING, spec.label)):
            if self.counts[kind] and not drop_missing:
                fix = "fill them in, or pass drop_missing=True (--drop-missing) to leave those rows out and count them"
                raise BadInput(self._line(kind, column, f"missing (null or NaN); {fix}"))

    def _hint(self) -> str:
        if self.low >= -1e-4 and self.high <= 1.0 + 1e-4:
            return "is it rounding error? Clip to 0 and 1"
        if self.low >= 0.0 and self.high <= 100.0 and self.high > 1.5:
            return "did you pass percentages? Divide by 100"
        return "did you pass logits? Apply 1 / (1 + exp(-x)) first"

    def _line(self, kind: int, column: str, what: str) -> str:
        part, row = self.first[kind] or ("", 0)
        place = f"row {row}" + (f" of {part}" if part else "")
        shown = f" ({self.example[kind]})" if self.example[kind] else ""
        count = self.counts[kind]
        noun = "value is" if count == 1 else "values are"
        return f"column {column!r}: {count} {noun} {what}. First: {place}, counting from 0{shown}."
