"""The texts that are the same on every page: limits, methods, words, and sections not built yet."""

from __future__ import annotations

from calibrant.audit.record import AuditRecord
from calibrant.report import numbers as num
from calibrant.report import searched
from calibrant.report.evidence import draws_of, local_test
from calibrant.report.order import check_of, limit_of
from calibrant.report.ranking import certified, draws, ranked
from calibrant.report.spans import Text, code, say, sentence, title
from calibrant.report.wording import unshown_reason
from calibrant.results import Estimate

Entry = tuple[str, Text]

ABSENT = {  # section, named like its check: what is said where no reason was recorded
    "variables": "No variables were ranked in this audit.",
    "repair": "No repairs were compared in this audit.",
}

LIMITS = (
    (
        "Whether decisions are good or fair.",
        "Probabilities can be right and the rule built on them wrong.",
    ),
    (
        "Whether the model ranks people well.",
        "A model that says 50% to everyone can be perfectly calibrated.",
    ),
    (
        "Other people, places or years.",
        "The certificate covers the population these {rows} rows were drawn from.",
    ),
    ("Groups nobody listed.", "{searched} No finding is not a proof."),
    ("Whether the recorded outcome is true.", "Errors in the labels count as errors of the model."),
)

AT_LEAST = (
    "Part of the rows, dealt at random, guesses where the raw score is too low or too high; "
    "the other rows put the guess to the test."
)
AT_MOST = (
    "At each step of {step}, what happened is compared with what the step says, and an allowance for chance is added."
)
FURTHER = {
    "distance": (
        "Distance",
        "The error of a coarser or noisier score, plus how far that is from the raw score.",
    ),
    "jittered": ("Noise", "A little random noise, of width {width}, is added to the score on paper only."),
    "shift": ("Overall shift", "Cases that happened minus cases expected, over the number of people."),
}
GROUPS = (
    "The same two bounds on each group’s rows, the {alpha}% shared over {groups} groups, so that all hold together."
)
BINS = "People with similar scores are put together; each gap has a range, and all ranges of the figure hold together."
CURVE = (
    " The line averages the gap over neighbouring scores (at most {reach} points away, near ones more). Its band comes "
    "from {draws} sets of simulated outcomes: for a calibrated model it takes in zero everywhere in at least {times} of "
    "{of} audits, at any number of rows; where the model is off it holds the smoothed gap about as often, "
    "approximately. Bumps narrower than the average are not seen. Function "
)
RANKING = (
    "Each variable is cut into ranges of about equally many people, or its levels; in each, what happened is compared "
    "with what the model says, less the overall shift, and the sizes are averaged. What chance alone adds is taken off "
    "the estimate. p-values come from {null}; they are adjusted so that, if the model is calibrated, "
    "any finding at all has a chance of at most {alpha} in 100. "
)
NULLS = {
    True: "{draws} sets of outcomes simulated for every person at the score given",
    False: "the normal law of sums over many people, which is approximate",
}
RANGES = "Certified ranges hold together at this number of people. "
ALONG = (
    "Each curve averages the gap over the nearest {span}% of the people, near ones more, by a local curve of degree "
    "{degree}. Its band, from {draws} sets of simulated outcomes, takes in zero everywhere in at least {times} of "
    "{of} audits of a calibrated model; where the model is off it holds the smoothed gap about as often, approximately. "
    "Function "
)
SEARCHED = {
    True: "Only the groups named are certified. The search finds some mixes of traits, not all.",
    False: "Only the groups named are audited.",
}
TRAITS = (
    "Among people with similar scores and traits, what happened minus what the model says is compared with {null}: for "
    "all traits jointly, for each trait by itself, in ranges and levels, and for the score. What moving or stretching "
    "all scores alike would mend is taken out of these, and tested beside them. All of it is one test, with a chance of at most {alpha} in 100 of a "
    "finding where there is no error{rough}. Function "
)
TRAITS_NULLS = {True: "{draws} sets of simulated outcomes", False: "the normal law of sums over many people"}
MAPS = (
    "Each map averages what happened minus what the model says over people near a value, or of a level, near ones more. "
    "Its band, from {draws} sets of simulated outcomes, excludes zero anywhere on a calibrated model’s map in at most "
    "{alpha} of 100 audits, at any number of rows; where the model is off it holds the averaged gap about as often, "
    "approximately. An edge is seen blurred. Function "
)
SEARCH = (
    "Models learn from part of the people where what happened departs from what the model says. Other people are sorted "
    "by their guesses, the most suspicious first, and the departures are added up. The largest sum over all models and "
    "places is compared with {null}. Function "
)
SEARCH_NULLS = {
    "split": "the same from {draws} sets of outcomes simulated at the score; true at this number of rows",
    "refit": "{done}{draws} repeats of all of it on simulated outcomes, models fitted anew; true at this number of rows",
    "fixed": "the same from {draws} sets of simulated outcomes, with the models held; approximate{inflated}",
    "clusters": "the same from {draws} sets of random signs of whole clusters; approximate{inflated}",
}
INFLATED = ", and more ready to find error in a model that is right than asked for"
RULES = (
    "One half of the people finds the rules: all pairs of simple conditions are tried, beside a tree of conditions that "
    "follows models of the error, and the best is bettered one condition at a time. The other half judges each rule, "
    "against the share that the model says{edge}. Ranges of the gaps hold together at this number of rows. "
    "Whether a rule is shown to be off is tested on the side it was found on, which can find what its range leaves open. "
    "Function "
)
EDGE = ", plus the tolerance of {points} points where it seemed to say too little, minus it where too much"
ROUNDING = "Lower bounds are rounded down and upper bounds up, so every printed bound is true as printed."
ESTIMATED = "The error as estimated, and the rows that would decide, are guides; no verdict rests on them."

GUARANTEES = {
    "finite-sample": "True at this number of rows, not only for very many.",
    "asymptotic": "Approximate; true in the limit of very many rows.",
    "as published": "As its authors published it.",
}

WORDS = (
    ("Point", "One hundredth of probability; one person in 100. From 70% to 72% is 2 points."),
    (
        "Score",
        "The probability the model gives a person. Raw: exactly as given. "
        "As shown: rounded to the nearest step of {step}.",
    ),
    (
        "Average error",
        "Take everyone given the same probability, compare it with the share of them for whom it happened, "
        "and average the size of the gap over all people.",
    ),
    (
        "Certified",
        "Proved to hold in at least {times} of {of} audits like this one, whatever the model, if rows are independent.",
    ),
    (
        "Certified range",
        "From the least the raw score can be off to the most the score as shown can be off. "
        "A headline calls it the interval.",
    ),
    (
        "Met, broken, undecided",
        "The whole certified range is within the limit; the whole range is over it; the limit lies inside.",
    ),
    ("Calibrated", "Of all people told 70%, 70 in 100 have the outcome; likewise for every other number."),
    ("Case", "A person with the outcome."),
    (
        "Gap, overall shift",
        "What happened minus what the model says: in one group, or over everyone. Errors in both directions cancel.",
    ),
    ("Distance from calibration", "How far scores would have to move, on average, to be calibrated."),
    (
        "Average gap along a variable",
        "In each range or level of the variable, the size of the gap; averaged over all people. Errors that cancel "
        "within a range do not count.",
    ),
    (
        "Beyond the overall shift",
        "What would be left if everyone’s probability were moved by the overall shift. Without that, a model that is "
        "too low for everyone has the same error along every variable.",
    ),
    (
        "Adjusted p",
        "How often simulations of a model that is right show at least this much, allowing for having looked at all "
        "the variables.",
    ),
    (
        "Brier score, log loss",
        "How far single predictions are from what happened; smaller is better. "
        "They mix calibration with how well people are told apart.",
    ),
    (
        "Local calibration",
        "Among people with the same score and the same traits, the share with the outcome is the score. "
        "Calibrated on average does not make it so.",
    ),
    (
        "Carries evidence",
        "Simulations of a model that is right hardly ever show this much error along the variable, among people with "
        "the same score, allowing for having looked at all variables.",
    ),
    (
        "Evidence, in the search",
        "What happened less what the model says, added up from the most suspicious people on, in units of its chance "
        "spread over everyone.",
    ),
    ("AUROC", "How often a person with the outcome has a higher score than one without; 0.5 is guessing."),
)


TRAITED = ("Local calibration", "Carries evidence")  # words of the local calibration test
SEARCHING = ("Evidence, in the search",)
FOLLOWED = ("Average gap along a variable", "Beyond the overall shift", "Adjusted p")  # words of the ranking


def absent(record: AuditRecord, section: str) -> Text:
    """Return in one line why a section is empty, and how to get what it would hold."""
    check = check_of(record, section)
    refused = check is not None and check.status in ("not-applicable", "not-run") and check.reason
    return say(sentence(check.reason) if check is not None and refused else ABSENT[section])


def limits(record: AuditRecord) -> tuple[Text, ...]:
    """Return what the report does not show."""
    rows = num.count(record.everyone.rows)
    searched = SEARCHED[any(c.outcome is not None for c in record.checks)]
    return tuple(say(title(start), text.format(rows=rows, searched=searched)) for start, text in LIMITS)


def methods(record: AuditRecord) -> tuple[Entry, ...]:
    """Return how each number was computed."""
    one, step = record.everyone, num.step(record.settings["levels"])
    width = f"{float(record.settings.get('bandwidth') or 0.0):g}"
    further = [
        (word, made(text.format(width=width), record.estimates[key]))
        for key, (word, text) in FURTHER.items()
        if key in record.estimates
    ]
    shared = GROUPS.format(alpha=num.percent(float(record.settings["alpha"])), groups=num.count(len(record.groups)))
    return (
        ("At least", made(AT_LEAST, one.lower)),
        ("At most", made(AT_MOST.format(step=step), one.upper)),
        *further,
        ("Groups", say(shared if record.groups else unshown_reason(record) or "None were given.")),
        ("Figure", _figure(record)),
        *((("Variables", _ranking(record)),) if ranked(record) else ()),
        *((("Curves", _along(record)),) if record.family("variable_curve") else ()),
        *((("Traits", _traits(record)),) if local_test(record) else ()),
        *((("Maps", _maps(record)),) if record.family("local_bias") else ()),
        *((("Search", _search(record)),) if searched.strong_test(record) else ()),
        *((("Rules", _rules(record)),) if searched.rules(record) else ()),
        ("Estimates", say(ESTIMATED)),
        ("Rounding", say(ROUNDING)),
    )


def _figure(record: AuditRecord) -> Text:
    """Return how the figure was made."""
    s = record.curve("reliability").settings
    if "p_value" not in s:
        return say(BINS)
    times, of = num.confidence(1 - float(s["alpha"]))
    reach = num.nearest(float(s["bandwidth"]), 1 if s["bandwidth"] >= 0.01 else 3)
    words = CURVE.format(reach=reach, draws=num.count(s["draws"]), times=times, of=of)
    return say(BINS + words, code(record.curve("reliability").method), ".")


def _ranking(record: AuditRecord) -> Text:
    """Return how the variables were ranked."""
    s = record.curve("ranking").settings
    n = draws(record)
    null = NULLS[n is not None].format(draws=num.count(n or 0))
    words = RANKING.format(null=null, alpha=num.percent(float(s.get("alpha", record.settings["alpha"]))))
    return say(words, RANGES if certified(record) else "", "Function ", code(record.curve("ranking").method), ".")


def _along(record: AuditRecord) -> Text:
    """Return how the curves along variables were made."""
    curve = next(iter(record.family("variable_curve").values()))
    s = curve.settings
    times, of = num.confidence(1 - float(s["alpha"]))
    span, drawn = num.percent(float(s["span"])), num.count(s["draws"])
    return say(ALONG.format(span=span, degree=s["degree"], draws=drawn, times=times, of=of), code(curve.method), ".")


def _traits(record: AuditRecord) -> Text:
    """Return how the local calibration test was made."""
    check = local_test(record)
    if check is None or check.outcome is None:
        return ()
    outcome, n = check.outcome, draws_of(check.outcome)
    null = TRAITS_NULLS[n is not None].format(draws=num.count(n or 0))
    rough = ", approximately" if n is None or "asymptotic" in outcome.law else ""
    words = TRAITS.format(null=null, alpha=num.percent(float(record.settings["alpha"])), rough=rough)
    return say(words, code(outcome.method), ".")


def _search(record: AuditRecord) -> Text:
    """Return how the strong calibration test was made."""
    check = searched.strong_test(record)
    if check is None or check.outcome is None:
        return ()
    s, law = check.outcome.settings, check.outcome.law
    kind = "clusters" if "clusters" in law else str(s.get("null"))
    inflated = INFLATED if "too often" in law else ""
    done = f"{num.count(n)} of at most " if (n := record.curve("control_chart").settings.get("draws")) else "up to "
    null = SEARCH_NULLS.get(kind, law).format(draws=num.count(int(s.get("draws", 0))), inflated=inflated, done=done)
    return say(SEARCH.format(null=null), code(check.outcome.method), ".")


def _rules(record: AuditRecord) -> Text:
    """Return how the rules were found and judged."""
    t = float(record.curve("subgroups").settings.get("tolerance", 0.0))
    edge = EDGE.format(points=num.limit_points(t)) if t else ""
    return say(RULES.format(edge=edge), code(record.curve("subgroups").method), ".")


def _maps(record: AuditRecord) -> Text:
    """Return how the maps were made."""
    curve = next(iter(record.family("local_bias").values()))
    s = curve.settings
    words = MAPS.format(draws=num.count(s["draws"]), alpha=num.percent(float(s["alpha"])))
    return say(words, code(curve.method), ".")


def made(text: str, estimate: Estimate) -> Text:
    """Return how an estimate was made: in words, what it rests on, and by which function."""
    return say(f"{text} {GUARANTEES[estimate.interval.guarantee]} Function ", code(estimate.method), ".")


def glossary(record: AuditRecord) -> tuple[Entry, ...]:
    """Return the words used on the page, each in plain language."""
    times, of = num.confidence(1 - float(record.settings["alpha"]))
    step = num.step(record.settings["levels"])
    judged = limit_of(record) is not None
    return tuple(
        (word, say(text.format(step=step, times=times, of=of)))
        for word, text in WORDS
        if (judged or not word.startswith("Met,"))
        and (ranked(record) or word not in FOLLOWED)
        and (local_test(record) or word not in TRAITED)
        and (searched.strong_test(record) or word not in SEARCHING)
    )
