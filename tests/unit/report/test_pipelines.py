"""What pipelines read of a record: one verdict in every form, numbers as they are, and no name that acts as markup."""

from __future__ import annotations

import itertools
import json
import math
import re
from dataclasses import replace
from xml.etree import ElementTree as Xml

import pytest
import yaml

import calibrant as cal
import factories
from calibrant.apps.trackers import summaries
from calibrant.audit.record import AuditRecord
from calibrant.errors import BadInput


def gated(p_value: float, limit: float | None = 0.015) -> AuditRecord:
    """Return a record in which the local test counts, whose p-value is this."""
    made = factories.searched(factories.employment(limit), factories.local_outcome(p_value=p_value))
    return replace(made, settings={**made.settings, "fail_on": ("local-calibration",)})


def not_run() -> AuditRecord:
    """Return a record in which a test counts that could not be run."""
    made = factories.mixture("within", ["within"])
    return replace(made, settings={**made.settings, "fail_on": ("local-calibration",)})


RECORDS = {
    **{
        f"{one}, {' '.join(groups) or 'no groups'}": factories.mixture(one, groups)
        for one in ("within", "undecided", "over")
        for groups in ((), *itertools.combinations(("within", "undecided", "over"), 2))
    },
    "employment": factories.employment(),
    "a pocket": factories.scanned(factories.employment()),
    "a pocket alone": factories.scanned(factories.mixture("within", ["within"])),
    "groups that cannot be shown": factories.unshown(),
    "hostile": factories.hostile(),
    "hostile subgroups": factories.hostile_subgroups(),
    "tiny": factories.tiny(),
    "many": factories.many(200),
    "rare": factories.rare(),
    "a test finds error": gated(0.001),
    "a test shows error, no limit": gated(0.001, None),
    "a test finds none, no limit": gated(0.4, None),
    "a test was not run": not_run(),
}
EVERY = pytest.mark.parametrize("record", RECORDS.values(), ids=RECORDS.keys())


# ---- one verdict in every form ----


@EVERY
def test_the_assertion_passes_where_the_exit_status_is_0(record: AuditRecord) -> None:
    if record.exit_status == 0:
        cal.testing.assert_within(record)
        return
    with pytest.raises(AssertionError) as failed:
        cal.testing.assert_within(record)
    line = str(failed.value)
    assert line.splitlines() == [line]
    assert line.isprintable()
    assert len(line) < 700
    assert ("over the limit" in line or "error shown" in line) == (record.exit_status == 1)


@EVERY
def test_the_suite_of_junit_fails_where_the_exit_status_is_not_0(record: AuditRecord) -> None:
    text = cal.testing.junit(record)
    top = Xml.fromstring(text.encode())  # noqa: S314 - our own
    (suite,) = top
    events = suite.findall("testcase")
    assert (record.exit_status == 0) == (not suite.findall("testcase/failure"))
    assert {f.get("type") for f in suite.iter("failure")} <= {"over the limit", "undecided", "error shown"}
    found = {"tests": events, "failures": [*suite.iter("failure")], "skipped": [*suite.iter("skipped")]}
    for whole in (top, suite):
        assert {k: int(str(whole.get(k))) for k in found} == {k: len(v) for k, v in found.items()}
    assert len(events) >= 2 + len(record.groups)
    assert all(case.get("name") for case in events)


def test_who_fails_is_named_with_how_far_off_and_the_worst_come_first() -> None:
    with pytest.raises(AssertionError) as failed:
        cal.testing.assert_within(factories.scanned(factories.employment()))
    assert re.fullmatch(
        r"employment_ma: over the limit of 1\.5 points: nativity = foreign born \(at least 1\.6\), "
        r"subgroup .+ \(at least 2\.6\); undecided: citizenship = naturalised \(1\.4 to 3\.9\), .+ and 29 more",
        str(failed.value),
    )


@pytest.mark.parametrize(
    ("record", "settings", "passes"),
    [
        (factories.mixture("within", ["over"]), {"groups": False}, True),
        (factories.mixture("over", ["within"]), {"groups": False}, False),
        (factories.mixture("within", ["undecided"]), {"allow_undecided": True}, True),
        (factories.mixture("within", ["undecided", "over"]), {"allow_undecided": True}, False),
        (factories.scanned(factories.mixture("within", ["within"])), {"subgroups": False}, True),
        (factories.scanned(factories.mixture("within", ["within"])), {"groups": False}, False),
        (factories.unshown(), {"groups": False}, True),
        (factories.unshown(), {"subgroups": False}, False),
    ],
)
def test_what_counts_can_be_said(record: AuditRecord, settings: dict[str, bool], passes: bool) -> None:
    if passes:
        cal.testing.assert_within(record, **settings)
        return
    with pytest.raises(AssertionError):
        cal.testing.assert_within(record, **settings)


def test_an_audit_that_judged_nobody_is_no_pass() -> None:
    with pytest.raises(BadInput, match="judged nobody: give it a limit"):
        cal.testing.assert_within(factories.employment(None))
    with pytest.raises(BadInput, match="record is a dict: pass what"):
        cal.testing.assert_within(factories.employment().to_dict())  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="groups='no': pass True or False"):
        cal.testing.assert_within(factories.employment(), groups="no")  # type: ignore[arg-type]
    suite = Xml.fromstring(cal.testing.junit(factories.employment(None)).encode())[0]  # noqa: S314
    assert suite.get("tests") == suite.get("skipped")


# ---- numbers as they are ----


@EVERY
def test_metrics_are_flat_finite_numbers_under_names_that_trackers_take(record: AuditRecord) -> None:
    found = cal.tracking.metrics(record)
    assert all(type(v) is float and math.isfinite(v) for v in found.values())
    assert all(re.fullmatch(r"[/\w.\- :]+", k, re.ASCII) for k in found)
    assert json.loads(summaries.as_json(record)) == found
    one = record.everyone
    ends = (found["everyone/error_low"], found["everyone/error"], found["everyone/error_high"])
    assert ends == (one.lower.interval.low, one.error.value, one.upper.interval.high)
    assert sum(found[f"groups_{k}"] for k in ("within", "over", "undecided")) in (0, len(record.groups))
    assert sum(k.startswith("groups/") for k in found) == 7 * len({g.id for g in record.groups})
    assert found["exit_status"] == record.exit_status


def test_a_number_that_json_cannot_hold_is_left_out() -> None:
    made = factories.record(measured={"observed_expected": factories.estimate(0.5, math.inf, value=1.2)})
    found = cal.tracking.metrics(made)
    assert found["observed_expected"] == 1.2
    assert "observed_expected_high" not in found


@EVERY
def test_a_model_card_says_in_yaml_what_the_record_says(record: AuditRecord) -> None:
    card = cal.tracking.model_card(record, task="text-classification")
    _, front, text = card.split("---\n", 2)
    (model,) = yaml.safe_load(front)["model-index"]
    (result,) = model["results"]
    assert result["task"] == {"type": "text-classification"}
    first, *more = result["metrics"]
    one = record.everyone
    assert (first["value"], first["args"]["low"], first["args"]["high"]) == (
        one.error.value,
        one.lower.interval.low,
        one.upper.interval.high,
    )
    assert first["args"]["guarantee"] == "finite-sample"
    assert all(isinstance(m["value"], float) for m in (first, *more))
    assert text.lstrip().startswith("## Calibration\n")


def test_a_model_card_has_the_measures_of_an_audit_and_small_numbers_stay_numbers() -> None:
    tiny = factories.finding(1e-05, 3e-05)
    made = factories.record(
        tiny,
        measured={
            **factories.measures(),
            "worst_group": factories.estimate(0.0, 0.03),
            "log_loss": factories.estimate(0.1, math.inf, value=0.3, guarantee="asymptotic"),
        },
        about={"model": 'risk: "3.1" # new', "intended_use": "ranking *only*"},
    )
    card = cal.tracking.model_card(made)
    model = yaml.safe_load(card.split("---\n")[1])["model-index"][0]
    metrics = {m["type"]: m for m in model["results"][0]["metrics"]}
    assert model["name"] == 'risk: "3.1" # new'
    assert metrics["calibration_error"]["args"]["low"] == 1e-05
    assert metrics["worst_group_calibration_error"]["value"] == 0.03
    assert metrics["log_loss"]["args"]["high"] == math.inf
    assert metrics["roc_auc"]["args"]["guarantee"] == "asymptotic"
    assert "Intended use: `ranking *only*`." in card


# ---- a summary of changes ----


def test_a_summary_is_short_and_says_the_decision_first() -> None:
    text = cal.testing.summary(factories.scanned(factories.employment()))
    assert "## Within the limit overall. Group foreign born and one unlisted subgroup are over it." in text
    assert "**What to do.**" in text
    assert "What changed" not in text
    assert len(text.split()) < 350


def changed(*before: str) -> AuditRecord:
    """Return the audit that was before, with these verdicts of everyone and groups."""
    one, *groups = before
    return factories.mixture(one, groups)  # type: ignore[arg-type]


def test_a_change_is_told_with_both_ranges_and_is_certified_where_they_do_not_meet() -> None:
    now = factories.mixture("within", ["over", "within", "undecided"])
    text = cal.testing.summary(now, against=changed("over", "within", "within", "undecided"))
    rows = [line.split(" | ") for line in text.splitlines() if line.startswith("| ")][2:]
    assert rows == [
        [
            "| `region = region 0`",
            "0.2 to 0.7, within the limit",
            "2.9 to 4.6, over the limit",
            "larger by at least 2.2 |",
        ],
        ["| Everyone", "2.9 to 4.6, over the limit", "0.2 to 0.7, within the limit", "smaller by at least 2.2 |"],
    ]
    assert "For 2 of those in both audits, everyone counted, the verdict is the same and no change" in text


def test_a_change_of_verdict_alone_is_no_certified_change() -> None:
    now, before = factories.mixture("undecided", ["within"]), changed("within", "within", "within")
    text = cal.testing.summary(now, against=before)
    assert "| Everyone | 0.2 to 0.7, within the limit | 0.4 to 3.9, undecided | none shown |" in text
    assert "1 group is in one audit only." in text
    assert "different limits" not in text
    text = cal.testing.summary(factories.scanned(now), against=factories.mixture("within", ["within"], limit=0.02))
    assert "different limits: compare ranges" in text
    assert "Unlisted subgroups: not checked before, 1 over the limit now." in text


def test_of_many_changes_ten_are_listed_and_the_others_counted() -> None:
    now, before = factories.mixture("within", ["over"] * 30), factories.mixture("within", ["within"] * 30)
    text = cal.testing.summary(now, against=before)
    assert text.count("larger by at least") == 10
    assert "20 more changed." in text


def test_no_name_acts_as_markup() -> None:
    hostile = factories.hostile_subgroups()
    earlier = replace(hostile, groups=tuple(replace(g, verdict="within") for g in hostile.groups))
    for text in (cal.testing.summary(hostile, against=earlier), cal.tracking.model_card(hostile).split("---\n", 2)[2]):
        bare = re.sub(r"(`+)(?!`).+?(?<!`)\1(?!`)", "", text, flags=re.DOTALL)
        assert "<img" not in bare
        assert "<script" not in bare
        assert "@everyone" not in bare
    assert "\x1b" not in cal.testing.junit(hostile)


@EVERY
def test_the_same_record_gives_the_same_bytes(record: AuditRecord) -> None:
    again = AuditRecord.from_json(record.to_json())
    for tell in (cal.testing.junit, cal.testing.summary, cal.tracking.model_card, summaries.as_json):
        assert tell(record) == tell(again)  # type: ignore[operator]
