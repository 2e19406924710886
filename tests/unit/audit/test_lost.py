"""An audit where some outcomes by a horizon are unknown: by weights of censoring, and by no assumption."""

from __future__ import annotations

import numpy as np
import pytest

import calibrant as cal
from calibrant.audit.lost import WEIGHTS, WeighedRows
from calibrant.audit.record import AuditRecord
from calibrant.report import markdown, terminal
from calibrant.stats.missing import survival

pytestmark = pytest.mark.slow  # each makes an audit

N, H = 3000, 365.0


def log(seed: int = 0, off: float = 0.0, lost: float = 900.0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    site = np.array(["a", "b", "c"])[rng.choice(3, N, p=[0.6, 0.395, 0.005])]
    scale = rng.uniform(300.0, 1500.0, N)
    event, end = rng.exponential(scale), rng.exponential(lost, N)
    p = np.clip(1.0 - np.exp(-H / scale) + off, 0.0, 1.0)
    return {"t": np.minimum(event, end), "e": (event <= end).astype(int), "p": p, "site": site}


AT = {"score": "p", "time": "t", "event": "e", "horizon": H}


def audited(way: str, frame: dict[str, np.ndarray], **more: object) -> AuditRecord:
    return cal.audit(frame, **AT, way=way, by="site", **more)


@pytest.fixture(scope="module")
def frame() -> dict[str, np.ndarray]:
    return log()


@pytest.fixture(scope="module", params=["weights", "unknown"])
def record(request: pytest.FixtureRequest, frame: dict[str, np.ndarray]) -> AuditRecord:
    return audited(request.param, frame, limit=0.1)


def words(record: AuditRecord) -> str:
    return " ".join(terminal.render(record).split())


def test_everyone_is_everyone_followed_or_not(record: AuditRecord, frame: dict[str, np.ndarray]) -> None:
    one = record.everyone
    assert one.rows == N
    assert one.expected == pytest.approx(frame["p"].sum())
    risk = survival.incidence(frame["t"], frame["e"].astype(np.int8)).at(H)
    assert one.events == round(N * risk)
    assert one.gap.value == pytest.approx(risk - frame["p"].mean())
    assert record.data["horizon"]["unknown"] == int(((frame["e"] == 0) & (frame["t"] < H)).sum())


def test_ranges_are_those_of_the_certificates(frame: dict[str, np.ndarray]) -> None:
    rows = cal.at_horizon(frame, **AT, way="weights", by="site")
    table = cal.certify.horizon(rows, by="site").columns
    made = audited("weights", frame).everyone.gap.guaranteed
    assert (made.low, made.high) == pytest.approx((table["low"][0], table["high"][0]))
    lost = cal.at_horizon(frame, **AT, way="unknown", by="site")
    table = cal.certify.missing_labels(lost, judge="gap").columns
    made = audited("unknown", frame).everyone.gap.guaranteed
    assert (made.low, made.high) == pytest.approx((table["low"][3], table["high"][3]))


def test_ranges_of_groups_are_those_of_the_certificate_of_each_alone(frame: dict[str, np.ndarray]) -> None:
    """A group's law of censoring is learned from its own pilots: other groups change its range by alpha alone."""
    two = {k: v[frame["site"] != "c"] for k, v in frame.items()}
    table = cal.certify.horizon(cal.at_horizon(two, **AT, way="weights", by="site"), by="site").columns
    made = {dict(f.variables)["site"]: f for f in audited("weights", two, quick=True).groups}
    for name, f in made.items():
        i = table["people"].index(f"site = {name}")
        assert (f.upper.n, f.gap.guaranteed.low, f.gap.guaranteed.high) == pytest.approx(
            (table["rows"][i], table["low"][i], table["high"][i])
        )


def test_small_groups_are_pooled_with_all_of_their_rows(record: AuditRecord, frame: dict[str, np.ndarray]) -> None:
    assert {f.rows for f in record.groups} == {int((frame["site"] == "a").sum()), int((frame["site"] != "a").sum())}
    assert [f.pooled for f in record.groups if f.rows == int((frame["site"] != "a").sum())] == [2]


def test_what_is_proved_of_known_outcomes_alone_does_not_apply(record: AuditRecord) -> None:
    state = {c.code: c.status for c in record.checks}
    for code in ("subgroups", "local-calibration", "strong-calibration", "distance", "jittered", "ece"):
        assert state[code] == "not-applicable", code
    weighs = record.data["horizon"]["way"] == "weights"
    assert state["repair"] == ("measured" if weighs else "not-applicable")
    assert "error-classes" not in state
    assert record.verdicts["subgroups"] == "not_checked"


def test_measures_are_by_weights_or_not_at_all(frame: dict[str, np.ndarray]) -> None:
    rows = cal.at_horizon(frame, **AT, way="weights")
    made = audited("weights", frame).estimates
    for name in ("brier", "log_loss", "auroc", "observed_expected", "calibration_slope", "calibration_intercept"):
        assert made[name].value == getattr(cal.measure, name)(rows).value
    assert not {"brier", "auroc", "ece"} & {*audited("unknown", frame).estimates}


def test_the_first_screen_says_the_way_and_what_it_assumes(frame: dict[str, np.ndarray]) -> None:
    by_weights, by_none = (words(audited(way, frame, limit=0.1)) for way in ("weights", "unknown"))
    assert "rows were lost before 365" in by_weights
    assert "being lost as independent of outcome and score together: for everyone among all rows" in by_weights
    assert "for a group among its own. No data can show it" in by_weights
    assert "pilot rows, which are certified nowhere" in by_weights
    assert "hold whatever their outcomes" in by_none
    assert "Nothing is assumed of them" in by_none
    assert "estimated" in by_weights
    assert "% happened" in by_none
    for text in (by_weights, by_none):
        assert "outcomes known" not in text
        assert "was followed to the event or to the horizon" not in text


def test_the_page_and_the_command_name_the_way(record: AuditRecord) -> None:
    page = markdown.render(record)
    way = record.data["horizon"]["way"]
    assert f'way="{way}"' in page
    assert "missing=" not in page
    assert "As those known" in page
    assert "the odds of those lost would be about" in page
    assert "–100.0" not in page
    lost = f"{record.data['horizon']['unknown']:,} of 3,000 rows were lost before 365."
    assert lost in " ".join(page.split())
    assert lost in words(record)
    assert lost in record.to_html()


def test_a_page_says_of_how_many_rows_its_ranges_are(frame: dict[str, np.ndarray]) -> None:
    record = audited("weights", frame, limit=0.1, quick=True)
    pilots = record.data["horizon"]["pilots"]
    assert record.everyone.upper.n == N - pilots
    assert sum(f.upper.n for f in record.groups) == N - pilots
    page = " ".join(markdown.render(record).split())
    assert f"of the {N - pilots:,} rows that are no pilots" in page
    assert f"site = a {record.groups['site = a'].upper.n:,}" in page
    assert "of the rows in the data, observed minus predicted" in " ".join(
        markdown.render(audited("unknown", frame, limit=0.1, quick=True)).split()
    )


def by_ward(n: int, seed: int, *means: float) -> dict[str, np.ndarray]:
    """A score that is right for all, in wards whose follow-up has these means."""
    rng = np.random.default_rng(seed)
    ward = rng.integers(0, len(means), n)
    event, end = rng.exponential(900.0, n), rng.exponential(np.array(means)[ward], n)
    p = np.full(n, 1.0 - np.exp(-H / 900.0))
    return {"t": np.minimum(event, end), "e": (event <= end).astype(int), "p": p, "site": np.array([*"ABC"])[ward]}


def test_groups_followed_unlike_one_another_hold_their_own_gap() -> None:
    """One law of censoring for both certified A above 2 points and B below 0 where the truth is 0."""
    record = audited("weights", by_ward(20_000, 0, 350.0, 3000.0), limit=0.1, quick=True)
    assert len(record.groups) == 2
    for f in (record.everyone, *record.groups):
        ends = f.gap.guaranteed
        assert ends.low <= 0.0 <= ends.high
        assert f.verdict == "within"
        assert f.withheld is None
    wide, narrow = (f.gap.guaranteed.high - f.gap.guaranteed.low for f in sorted(record.groups, key=lambda f: f.id))
    assert wide > 1.5 * narrow  # whoever is lost sooner has weights of its own


def test_a_group_that_hardly_anybody_of_reached_the_horizon_is_not_judged() -> None:
    record = audited("weights", by_ward(8000, 1, 80.0, 2000.0), limit=0.2, quick=True)
    bare = next(f for f in record.groups if f.withheld is not None)
    assert dict(bare.variables) == {"site": "A"}
    assert "may be less likely than 0.05" in bare.withheld
    assert (bare.verdict, bare.gap.guaranteed.low, bare.gap.guaranteed.high) == ("undecided", -1.0, 1.0)
    assert record.verdict == "undecided"
    assert record.exit_status == 3
    assert "Not judged is site = A: being followed to 365 may be" in words(record)
    assert AuditRecord.from_json(record.to_json()).to_json() == record.to_json()


def test_an_estimate_outside_of_the_range_is_shown_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """It says that what both assume is not so; a group is then not judged, and shows no error."""
    monkeypatch.setattr(WeighedRows, "gap", lambda *_: (0.3, 0.4))
    record = audited("weights", log(), limit=0.2, quick=True)
    assert record.everyone.gap.value < 0.1
    assert record.everyone.gap.interval.high < 0.3
    assert all("follow-up differs" in f.withheld and not f.error_shown for f in record.groups)
    assert {f.verdict for f in record.groups} == {"undecided"}
    assert "lies outside of the guaranteed range" in words(record)


def never_so_long() -> dict[str, np.ndarray]:
    """Sites b and c are closed after 200 days; the curve of its events would go on flat to 365."""
    frame = log(3, lost=3000.0)
    end = np.where(frame["site"] != "a", np.random.default_rng(5).uniform(50.0, 200.0, N), 1e9)
    return frame | {"t": np.minimum(frame["t"], end), "e": np.where(frame["t"] <= end, frame["e"], 0)}


def test_nothing_is_estimated_behind_all_follow_up() -> None:
    record = audited("unknown", never_so_long(), limit=0.2, quick=True)
    f = next(f for f in record.groups if f.pooled)  # b and c
    assert f.gap.settings["estimate"] == "none"
    assert f.gap.value == pytest.approx((f.gap.guaranteed.low + f.gap.guaranteed.high) / 2, abs=0.05)
    assert "estimate" not in record.everyone.gap.settings
    assert "no estimate" in words(record)
    assert AuditRecord.from_json(record.to_json()).to_json() == record.to_json()
    only = {k: v[never_so_long()["site"] != "a"] for k, v in never_so_long().items()}
    alone = audited("unknown", only, limit=0.2, quick=True)
    assert "Nobody was followed to 365, so that there is no estimate" in words(alone)
    assert "implied_odds" not in alone.data["horizon"]
    rows = cal.at_horizon(only, **AT, way="weights")
    for measure in (cal.measure.brier, cal.measure.auroc, cal.measure.observed_expected):
        with pytest.raises(cal.NotComputable, match="was followed to 365"):
            measure(rows)


def test_a_record_is_read_again(record: AuditRecord) -> None:
    assert AuditRecord.from_json(record.to_json()).to_json() == record.to_json()


def test_odds_of_rows_lost_at_random_follow_from_the_rows(frame: dict[str, np.ndarray]) -> None:
    known = (frame["e"] == 1) | (frame["t"] >= H)
    events = float(((frame["e"] == 1) & (frame["t"] <= H)).sum())
    lost = N * survival.incidence(frame["t"], frame["e"].astype(np.int8)).at(H) - events
    share, other = lost / (~known).sum(), events / known.sum()
    made = audited("unknown", frame).data["horizon"]["implied_odds"]
    assert made == pytest.approx(share / (1 - share) / (other / (1 - other)))
    assert 0.2 < made < 0.7  # events are known sooner


@pytest.mark.parametrize("way", ["weights", "unknown"])
def test_a_model_that_is_off_is_over(way: str) -> None:
    record = audited(way, log(1, off=0.45, lost=4000.0), limit=0.05, quick=True)
    assert record.verdict == record.everyone.verdict == "over"
    assert record.everyone.gap.guaranteed.high < -0.05
    assert record.error_shown["everyone"]
    assert record.exit_status == 1


def test_ranges_of_the_score_hold_every_row_and_are_drawn(frame: dict[str, np.ndarray]) -> None:
    record = audited("weights", frame)
    c = record.curve("bins").columns
    assert sum(c["rows"]) == N
    assert all(low <= gap <= high for low, gap, high in zip(c["low"], c["gap"], c["high"], strict=True))
    assert list(c["predicted"]) == sorted(c["predicted"])
    assert "Reliability diagram" in record.to_html()
    assert not audited("unknown", frame).curve("bins").columns


def test_errors_are_judged_without_an_assumption_alone(frame: dict[str, np.ndarray]) -> None:
    record = audited("unknown", frame, limit=0.5, judge="error", quick=True)
    assert (record.everyone.by, record.everyone.verdict) == ("error", "within")
    with pytest.raises(cal.BadInput, match="the gap alone is certified"):
        audited("weights", frame, judge="error")


def test_a_limit_may_be_a_share_of_the_mean_score(frame: dict[str, np.ndarray]) -> None:
    limit = audited("weights", frame, limit_relative=0.5, quick=True).everyone.limit
    assert limit == pytest.approx(0.5 * frame["p"].mean(), abs=1e-3)


def test_rows_that_were_all_followed_need_no_way(frame: dict[str, np.ndarray]) -> None:
    whole = frame | {"e": np.ones(N, dtype=int)}
    for way in ("weights", "unknown"):
        record = audited(way, whole, quick=True)
        assert record.everyone.upper.method != WEIGHTS
        assert record.data["horizon"]["way"] == "followed"


def test_rows_in_memory_are_audited_as_files_are(frame: dict[str, np.ndarray]) -> None:
    rows = cal.at_horizon(frame, **AT, way="weights", by="site")
    one, other = cal.audit(rows, by="site"), audited("weights", frame)
    assert one.everyone.to_dict() == other.everyone.to_dict()
    assert one.curves["bins"].to_dict() == other.curves["bins"].to_dict()


def test_a_horizon_that_hardly_anybody_reached_is_refused() -> None:
    with pytest.raises(cal.NotComputable, match=r"may be less likely than 0.05.*--way unknown"):
        audited("weights", log(2, lost=100.0))


def test_clusters_go_with_no_assumption_and_not_with_weights(frame: dict[str, np.ndarray]) -> None:
    shared = frame | {"who": np.arange(N) // 2}
    assert audited("unknown", shared, cluster="who", quick=True).everyone.rows == N
    with pytest.raises(cal.NotComputable, match="leave cluster= out"):
        audited("weights", shared, cluster="who")


def test_tripod_names_horizon_and_way(frame: dict[str, np.ndarray]) -> None:
    for way, words_of_it in (("weights", "weights of censoring"), ("unknown", "no assumption")):
        c = audited(way, frame, limit=0.1).tripod().columns
        answer = str(c["answer"][c["item"].index("8a")])
        assert "365 of t; what ended it: e" in answer.replace("`", "")
        assert f"rows were lost before it: {words_of_it}" in answer


def test_what_to_do_is_no_plan(frame: dict[str, np.ndarray]) -> None:
    assert "no plan says how many, where the outcomes of some are unknown" in words(
        audited("weights", frame, limit=0.01)
    )


@pytest.mark.parametrize("limit", [{"limit": 0.1}, {"limit_relative": 0.5}])
def test_weights_of_rows_are_refused_in_words_that_are_true(frame: dict[str, np.ndarray], limit: dict) -> None:
    weighted = frame | {"w": np.random.default_rng(1).uniform(0.5, 2.0, N)}
    with pytest.raises(cal.NotComputable, match=r"counts each row once.*certify.missing_labels"):
        audited("unknown", weighted, weights="w", **limit)
    rows = cal.at_horizon(weighted, **AT, way="unknown", weights="w")
    low, high = (cal.certify.missing_labels(rows, judge="gap").columns[k][3] for k in ("low", "high"))
    assert -1.0 < low < 0.0 < high < 1.0  # which is the way it names


def test_repairs_by_weights_are_on_the_page_with_what_they_assume() -> None:
    record = audited("weights", log(3, off=0.2, lost=1500.0), limit=0.05, threshold=0.4)
    s = record.curve("repairs").settings
    assert (s["way"], s["how"], s["tests"]) == ("weights", "halves", ())
    assert s["pilots"] == s["rows_fit"]
    assert s["rows_fit"] + s["rows_judged"] == N
    assert s["recommended"] in ("Platt", "Beta", "Isotonic", "Temperature")
    assert "AugmentedLogistic" not in record.curve("repairs").columns["recipe"]
    everyone = next(p for p in zip(*record.curve("fixed").columns.values(), strict=True) if p[0] == "everyone")
    line = dict(zip(record.curve("fixed").columns, everyone, strict=True))
    assert line["now_high"] < -0.05
    assert abs(line["after_gap"]) < 0.05 < abs(line["now_gap"])
    assert record.curve("repair_decisions").columns["gain"]
    assert AuditRecord.from_json(record.to_json()).to_json() == record.to_json()
    page = " ".join(markdown.render(record).split())
    assert "Repairs are fitted and judged by weights of censoring" in page
    assert "in the audit, of the rows that are no pilots" in page
    assert "all subgroups" not in page
    assert "Certified error, points" not in page
    assert "calibrant apply then repairs every row" not in page  # the audit was made in Python


def test_a_right_score_is_left_as_it_is_by_weights(frame: dict[str, np.ndarray]) -> None:
    record = audited("weights", frame, limit=0.1)
    assert record.curve("repairs").settings["recommended"] == "as audited"
    assert "None is shown to help" in " ".join(markdown.render(record).split())
