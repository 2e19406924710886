"""The texts that are the same on every page: limits, methods, words, and sections not built yet."""

from __future__ import annotations

from calibrant.audit.record import AuditRecord
from calibrant.report import numbers as num
from calibrant.report.order import check_of
from calibrant.report.spans import Text, code, say, title, visible
from calibrant.results import Estimate

Entry = tuple[str, Text]

ABSENT = {
    "variables": (
        "variables",
        "This version does not rank the variables; the groups above show each of their values.",
    ),
    "hidden": (
        "strong-calibration",
        "This version does not search mixes of traits; name a mix as a group of its own to audit it.",
    ),
    "repair": (
        "repair",
        "This version does not compare repairs; recalibrate on other people, then audit the result.",
    ),
}


def absent(record: AuditRecord, section: str) -> Text:
    """Return in one line why a section is empty, and how to get what it would hold."""
    code_, standard = ABSENT[section]
    check = check_of(record, code_)
    return say(visible(check.reason) if check is not None and check.reason else standard)


def limits(record: AuditRecord) -> tuple[Text, ...]:
    """Return what the report does not show."""
    return (
        say(title("Whether decisions are good or fair."), "Probabilities can be right and the rule built on them wrong."),
        say(title("Whether the model ranks people well."), "A model that says 50% to everyone can be perfectly calibrated."),
        say(title("Other people, places or years."), f"The certificate covers the population these "
            f"{num.count(record.everyone.rows)} rows were drawn from."),
        say(title("Groups nobody listed."), "Only the groups named are audited. No finding is not a proof."),
        say(title("Whether the recorded outcome is true."), "Errors in the labels count as errors of the model."),
    )  # fmt: skip


def methods(record: AuditRecord) -> tuple[Entry, ...]:
    """Return how each number was computed."""
    one = record.everyone
    alpha = num.percent(float(record.settings["alpha"]))
    rest = (
        ("Groups", say(f"The same two bounds on each group’s rows, the {alpha}% shared over "
                       f"{num.count(len(record.groups))} groups, so that all ranges hold together."
                       if record.groups else "None were given.")),
        ("Estimates", say("The error as estimated, which decides nothing, lies between the two bounds where possible.")),
        ("Curve", say("Rows with similar scores are put together; each gap has a range, and all ranges of the "
                      "figure hold together.")),
        ("Rounding", say("Lower bounds are rounded down and upper bounds up, so every printed bound is true as printed.")),
    )  # fmt: skip
    at_least = say("Part of the rows, dealt at random, guesses where the raw score is too low or too high; "
                   "the other rows put the guess to the test. ", *_made(one.lower))  # fmt: skip
    at_most = say(f"At each of the steps of {num.step(record.settings['levels'])}, what happened is compared with "
                  "what the step says, and the allowance for chance is added. ", *_made(one.upper))  # fmt: skip
    return (("At least", at_least), ("At most", at_most), *_further(record), *rest)


def _further(record: AuditRecord) -> tuple[Entry, ...]:
    told = {
        "distance": ("Distance", "The error of a coarser or noisier score, plus how far that score is from the raw one. "),
        "jittered": ("Noise", f"A little random noise (width {float(record.settings['bandwidth']):g}) is added to the "
                              "score on paper, which makes every range of scores well filled. "),
        "shift": ("Overall shift", "Cases that happened minus cases expected, over the number of people. "),
    }  # fmt: skip
    return tuple(
        (word, say(text, *_made(record.estimates[key])))
        for key, (word, text) in told.items()
        if key in record.estimates
    )


def _made(estimate: Estimate) -> Text:
    return say(f"{guarantee(estimate)} Function ", code(estimate.method), ".")


def guarantee(estimate: Estimate) -> str:
    """Return what the probability of a range rests on, as a sentence."""
    words = {
        "finite-sample": "True at this number of rows, not only for very many.",
        "asymptotic": "True in the limit of very many rows.",
    }
    return words.get(estimate.interval.guarantee, "As its authors published it; we know no complete proof.")


def glossary(record: AuditRecord) -> tuple[Entry, ...]:
    """Return the words used on the page, each in plain language."""
    times, of = num.confidence(1 - float(record.settings["alpha"]))
    by = num.step(record.settings["levels"])
    judged = () if record.settings.get("limit") is None else (
        ("Met, broken, undecided", say("The whole certified range is within the limit; the whole range is over it; "
                                       "the limit lies inside.")),
    )  # fmt: skip
    return (
        ("Point", say("One hundredth of probability; one person in 100. From 70% to 72% is 2 points.")),
        ("Score", say("The probability the model gives a person. Raw: exactly as given. As shown: rounded to "
                      f"the nearest step of {by}.")),
        ("Average error", say("Take everyone given the same probability, compare it with the share of them for "
                              "whom it happened, and average the size of the gap over all people.")),
        ("Certified", say(f"Proved to hold in at least {times} of {of} audits like this one, whatever the model, "
                          "if rows are independent.")),
        ("Certified range", say("From the least the raw score can be off to the most the score as shown can be off; "
                                "the headline calls it the interval. Its two ends are about two versions of the score.")),
        *judged,
        ("Calibrated", say("Of all people told 70%, 70 in 100 have the outcome; likewise for every other number.")),
        ("Case", say("A person with the outcome.")),
        ("Gap, overall shift", say("What happened minus what the model says, in one group; over everyone. "
                                   "Errors in both directions cancel.")),
        ("Distance from calibration", say("How far scores would have to move, on average, to be calibrated.")),
        ("Brier score, log loss", say("How far single predictions are from what happened; smaller is better. "
                                      "They mix calibration with how well people are told apart.")),
        ("AUROC", say("How often a person with the outcome has a higher score than one without; 0.5 is guessing.")),
    )  # fmt: skip
