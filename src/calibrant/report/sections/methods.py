"""What the report does not show, how it was computed, and the words it uses; sections add to the last two."""

from __future__ import annotations

from collections.abc import Iterator

from calibrant.audit.record import AuditRecord
from calibrant.report import numbers as num
from calibrant.report.document import Entries, Entry, Items, Node
from calibrant.report.findings import limit_of
from calibrant.report.outline import Declared, declared
from calibrant.report.spans import say, title

LIMITS = (
    ("Whether decisions are good or fair.", "Probabilities can be right and the rule built on them wrong."),
    ("Whether the model ranks people well.", "A model that says 50% to everyone can be perfectly calibrated."),
    ("Other people, places or years.", "The certificate covers the population these {rows} rows were drawn from."),
    ("Groups nobody listed.", "{searched} No finding is not a proof."),
    ("Whether the recorded outcome is true.", "Errors in the labels count as errors of the model."),
)
SEARCHED = {
    True: "Only the groups named are certified. The search finds some mixes of traits, not all.",
    False: "Only the groups named are audited.",
}
ALWAYS = (
    Entry(
        "Estimates",
        say("The error as estimated, and the rows that would decide, are guides; no verdict rests on them."),
    ),
    Entry(
        "Rounding", say("Lower bounds are rounded down and upper bounds up, so every printed bound is true as printed.")
    ),
)
WORDS = {
    "Point": "One hundredth of probability; one person in 100. From 70% to 72% is 2 points.",
    "Score": (
        "The probability the model gives a person. Raw: exactly as given. "
        "As shown: rounded to the nearest step of {step}."
    ),
    "Average error": (
        "Take everyone given the same probability, compare it with the share of them for whom it happened, "
        "and average the size of the gap over all people."
    ),
    "Certified": (
        "Proved to hold in at least {times} of {of} audits like this one, whatever the model, if rows are independent."
    ),
    "Certified range": (
        "From the least the raw score can be off to the most the score as shown can be off. "
        "A headline calls it the interval."
    ),
    "Met, broken, undecided": (
        "The whole certified range is within the limit; the whole range is over it; the limit lies inside."
    ),
    "Calibrated": "Of all people told 70%, 70 in 100 have the outcome; likewise for every other number.",
    "Case": "A person with the outcome.",
    "Gap, overall shift": (
        "What happened minus what the model says: in one group, or over everyone. Errors in both directions cancel."
    ),
    "Distance from calibration": "How far scores would have to move, on average, to be calibrated.",
    "Brier score, log loss": (
        "How far single predictions are from what happened; smaller is better. "
        "They mix calibration with how well people are told apart."
    ),
    "AUROC": "How often a person with the outcome has a higher score than one without; 0.5 is guessing.",
}
JUDGED = "Met, broken, undecided"  # a word of reports with a limit


def limits(record: AuditRecord) -> Iterator[Node]:
    """Return what the report does not show."""
    rows = num.count(record.everyone.rows)
    searched = SEARCHED[any(c.outcome is not None for c in record.checks)]
    yield Items(tuple(say(title(start), text.format(rows=rows, searched=searched)) for start, text in LIMITS))


def methods(record: AuditRecord) -> Iterator[Node]:
    """Return how each number was computed, in the order of the sections."""
    yield Entries((*(e for d in declared() for e in d.methods(record)), *ALWAYS))


def glossary(record: AuditRecord) -> Iterator[Node]:
    """Return the words used on the page, each in plain language."""
    times, of = num.confidence(1 - float(record.settings["alpha"]))
    step = num.step(record.settings["levels"])
    ours = (
        Entry(word, say(text.format(step=step, times=times, of=of)))
        for word, text in WORDS.items()
        if word != JUDGED or limit_of(record) is not None
    )
    yield Entries((*ours, *(e for d in declared() for e in d.words(record))))


DECLARED = (
    Declared(id="limits", order=90, nav="Not shown here", heading="What this report does not show", nodes=limits),
    Declared(id="methods", order=100, nav="How computed", heading="How this was computed", nodes=methods),
    Declared(id="glossary", order=110, nav="Words used", heading="Words used here", nodes=glossary),
)
