"""The validation of a rating scale: formulas by other programs, refusals, the workbook, the command."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

import calibrant as cal
from calibrant.apps.grades import concentration, migrations
from calibrant.apps.grades import workbook as written
from calibrant.apps.grades.defaults import default_tails, light
from calibrant.apps.grades.page import _summary
from calibrant.apps.grades.sheet import GradeValidation
from calibrant.cli import main
from calibrant.errors import BadInput, NotComputable

N, D, PD = (200, 150, 80, 40), (1, 4, 9, 6), (0.005, 0.02, 0.06, 0.2)
NAMES = ("A", "B", "C", "D")
SCHEMA = Path(__file__).parents[4] / "docs/schema/calibrant-grades-1.json"


def book(**more: Any) -> cal.Predictions:
    """Return a portfolio of four grades with so many defaults in each."""
    at = np.repeat(np.arange(4), N)
    y = np.concatenate([np.arange(n) < d for n, d in zip(N, D, strict=True)])
    columns = {"grade": np.array(NAMES)[at], **{k: v(at, y) if callable(v) else v for k, v in more.items()}}
    return cal.predictions(y, np.array(PD)[at], columns)


def moved(at: np.ndarray, y: np.ndarray) -> list[str | None]:
    """Return where each ended: every tenth a grade worse, every tenth a grade better, every twentieth gone."""
    i = np.arange(len(at))
    end = np.clip(at + (i % 10 == 0) - (i % 10 == 5), 0, 3)
    return [None if k % 20 == 3 else NAMES[e] for k, e in zip(i, end, strict=True)]


def whole(**how: Any) -> GradeValidation:
    data = book(end=moved, owed=lambda at, y: 10.0 * (1 + at) + y)
    return cal.grades(data, grade="grade", end_grade="end", exposure="owed", **{"draws": 99, **how})


# ---- golden: SciPy, scikit-learn and the published formulas, and MathWorks' example ----


def test_back_testing_is_the_beta_law_of_another_program() -> None:
    found = whole()
    golden = 0.42811342770948924, 0.2590577878305321, 0.033093051326825614, 0.7808154634171257  # scipy.stats.beta.cdf
    assert [b.p_value for b in found.back_testing] == pytest.approx(golden, rel=1e-12)
    assert found.portfolio.p_value == pytest.approx(0.20897889986536738, rel=1e-12)
    assert [(b.number_of_customers, b.number_of_defaults) for b in found.back_testing] == list(zip(N, D, strict=True))
    assert [b.pd for b in found.back_testing] == list(PD)
    assert [b.light for b in found.back_testing] == ["green", "green", "amber", "green"]
    assert found.portfolio.exposure == pytest.approx(sum(b.exposure or 0 for b in found.back_testing))


def test_correlated_tails_are_the_integral_of_another_program() -> None:
    golden = {  # scipy.integrate.quad of scipy.stats.binom.sf times the normal density
        (3, 50, 0.02, 0.12): 0.11745457921471043,
        (40, 2000, 0.01, 0.24): 0.14034573343959922,
        (900, 50000, 0.01, 0.12): 0.1501332472563237,
        (1, 10, 0.001, 0.5): 0.00830044535830426,
    }
    for asked, value in golden.items():
        assert float(default_tails(*asked)) == pytest.approx(value, abs=1e-12)
    assert float(default_tails(0, 10, 0.1, 0.2)) == 1.0


def test_discrimination_is_delongs_against_the_initial_auc() -> None:
    d = whole(initial_auc=0.85).discrimination
    assert d is not None
    assert d.auc_curr == pytest.approx(0.8011111111111111, rel=1e-12)  # sklearn.metrics.roc_auc_score
    assert d.variance_curr == pytest.approx(0.0018786625321449296, rel=1e-12)  # placements, by hand
    assert (d.statistic, d.p_value) == pytest.approx((1.1279394333428714, 0.12967274937261164), rel=1e-12)


def test_bandwidths_are_those_of_mathworks_example() -> None:
    counts = [[10, 8, 15, 9, 10], [11, 9, 13, 9, 8], [0, 10, 10, 11, 10], [0, 0, 9, 11, 11], [0, 0, 0, 11, 10]]
    upper, lower = migrations.bandwidth(np.array(counts))  # risk.validation.matrixWeightedBandwidth: 0.3306, 0.6066
    assert (round(lower, 4), round(upper, 4)) == (0.3306, 0.6066)


def test_steps_are_differences_of_two_cells_over_their_multinomial_error() -> None:
    found = migrations.steps(np.array([[50, 30, 45], [10, 60, 30], [12, 8, 20]]))  # by the covariance matrix of a row
    golden = {(0, 2): -1.7532171832956913, (0, 1): 2.2821773229381925, (2, 0): -0.9035079029052511}
    for cell, z in golden.items():
        assert found.statistic[cell] == pytest.approx(z, rel=1e-12)
    assert found.p_value[0, 2] == pytest.approx(0.03978236729659525, rel=1e-12)
    assert np.isnan(np.diag(found.statistic)).all()


def test_steps_are_those_of_mathworks_example() -> None:
    """Rows of the documented example of risk.validation.migrationMatrixStabilityTest, and what it rejects at 5 %."""
    counts = np.zeros((15, 15), dtype=int)
    counts[0] = np.arange(1, 142, 10)
    counts[1, :4] = 89, 120, 81, 14
    counts[2, :5] = 24, 81, 114, 81, 15
    p, nan = migrations.steps(counts).p_value[:3, :14], float("nan")
    theirs = [[nan, 1, 1, *[0] * 11], [0, nan, 0, 0, 0, *[nan] * 9], [0, 0, nan, 0, 0, 0, *[nan] * 8]]
    np.testing.assert_array_equal(np.where(np.isnan(p), nan, p <= 0.05), np.array(theirs))


def test_concentration_is_the_published_formula() -> None:
    cv = concentration.variation(N)
    assert cv == pytest.approx(0.5259237061407777, rel=1e-12)  # numpy: std over mean of the shares
    assert concentration.herfindahl(cv, 4) == pytest.approx(0.17615087196544066, rel=1e-12)
    assert concentration.variation_of(concentration.herfindahl(cv, 4), 4) == pytest.approx(cv)
    assert concentration.rise(0.3, cv, 4) == pytest.approx(0.19924796530588945, rel=1e-12)  # scipy.stats.norm.sf
    assert concentration.herfindahl(concentration.variation([5, 5, 5]), 3) == pytest.approx(0.0)
    assert concentration.herfindahl(concentration.variation([9, 0, 0]), 3) == pytest.approx(1.0)
    assert concentration.rise(0.0, 0.0, 3) == 1.0


# ---- what it holds ----


def test_migrations_count_who_stayed_and_say_who_left_or_defaulted() -> None:
    m = whole().migrations
    assert m is not None
    assert sum(map(sum, m.counts)) + sum(m.defaulted) + sum(m.left) == sum(N)
    assert m.defaulted == D
    assert all(sum(p for p in row if p is not None) == pytest.approx(1.0) for row in m.p_ij)
    assert m.p_value[0][0] is None


def test_correlation_makes_the_same_defaults_less_surprising() -> None:
    alone, moved_together = whole().back_testing[2], whole(rho=0.12).back_testing[2]
    assert alone.p_value == moved_together.p_value
    assert alone.correlated_p_value < moved_together.correlated_p_value  # type: ignore[operator]
    assert (alone.light, moved_together.light) == ("amber", "green")


def test_lights_change_at_their_levels() -> None:
    assert [light(p, (0.05, 0.01)) for p in (0.0501, 0.05, 0.0101, 0.01, 0.0)] == [
        "green",
        "amber",
        "amber",
        "red",
        "red",
    ]
    assert whole(lights=(0.5, 0.3)).back_testing[1].light == "red"


def test_initial_rows_bring_their_auc_and_both_concentrations() -> None:
    data = book(owed=lambda at, y: 1.0 + at)
    found = cal.grades(data, grade="grade", exposure="owed", initial=data, draws=19)
    assert found.discrimination is not None
    assert found.discrimination.statistic == 0.0
    assert [c.p_value for c in found.concentration] == [0.5, 0.5]
    assert found.concentration[1].hi_init == found.concentration[1].hi_curr


def test_what_cannot_be_computed_is_absent_with_its_reason() -> None:
    at = np.repeat([0, 1], 20)
    none = cal.predictions(np.zeros(40), np.array([0.01, 0.1])[at], {"g": np.array(["x", "y"])[at]})
    found = cal.grades(none, grade="g", order=["x", "y", "z"], draws=19)
    assert found.discrimination is None
    assert set(found.absent) == {"discrimination", "migrations", "hi_init", "exposure"}
    assert found.back_testing[2].p_value is None
    assert found.back_testing[2].light is None
    assert found.concentration[0].grades == 3


def test_grades_that_are_numbers_keep_their_names_and_the_order_of_their_pd() -> None:
    at = np.tile([10, 9, 2], 30)
    data = cal.predictions(np.arange(90) % 9 == 0, at / 100.0, {"g": at})
    assert cal.grades(data, grade="g", draws=19).scale == ("2", "9", "10")


def test_json_round_trips_and_fits_the_schema() -> None:
    found = whole(rho=0.12, initial_auc=0.8)
    assert GradeValidation.from_json(found.to_json()) == found
    assert found.to_json() == whole(rho=0.12, initial_auc=0.8).to_json()
    jsonschema.validate(json.loads(found.to_json()), json.loads(SCHEMA.read_text(encoding="utf-8")))
    bare = cal.grades(book(), grade="grade", draws=19)
    jsonschema.validate(json.loads(bare.to_json()), json.loads(SCHEMA.read_text(encoding="utf-8")))
    with pytest.raises(BadInput, match="calibrant-grades/1"):
        GradeValidation.from_json("{}")


# ---- refusals ----


def of(grades: list[Any], pd: list[float], **more: Any) -> cal.Predictions:
    return cal.predictions([0, 1] * (len(grades) // 2), pd, {"g": grades, **more})


@pytest.mark.parametrize(
    ("data", "how", "says"),
    [
        (lambda: book(), {"grade": "grad"}, "did you mean 'grade'"),
        (lambda: of(["a", None, "b", "b"], [0.1, 0.1, 0.2, 0.2]), {}, "1 of 4 rows have no grade, first in row 1"),
        (lambda: of(["a", "a", "b", "b"], [0.1, 0.15, 0.2, 0.2]), {}, "'a' has PDs from 0.1 to 0.15.*average_pd"),
        (
            lambda: of(["a", "a", "b", "b"], [0.1, 0.1, 0.1, 0.1]),
            {},
            "'a' and 'b' have one PD, 0.1: say which is better",
        ),
        (lambda: of(["a", "a", "a", "a"], [0.1] * 4), {}, "holds one grade"),
        (lambda: of(["a", "a", "b", "b"], [0.3, 0.3, 0.2, 0.2]), {"order": ["a", "b"]}, "is not by PD: grade"),
        (
            lambda: of(["a", "a", "b", "b"], [0.1, 0.1, 0.2, 0.2]),
            {"order": ["a", "c"]},
            r"'b', which order= \(--order\) does not name: add it to a, c",
        ),
        (
            lambda: of(["a", "a", "b", "b"], [0.1, 0.1, 0.2, 0.2], e=["a", "b", "w", "b"]),
            {"end_grade": "e"},
            "'w'.*no grade",
        ),
        (
            lambda: of(["a", "a", "b", "b"], [0.1, 0.1, 0.2, 0.2], x=[1, -2, 3, 4]),
            {"exposure": "x"},
            "below 0, first in row 1",
        ),
        (lambda: of(["a", "a", "b", "b"], [0.1, 0.1, 0.2, 0.2], x=[0, 0, 0, 0]), {"exposure": "x"}, "zeros only"),
        (lambda: of([f"g{i}" for i in range(60)], [(1 + i) / 100 for i in range(60)]), {}, "at most 50 grades"),
        (lambda: book(), {"grade": "grade", "lights": (0.01, 0.05)}, "the larger first"),
        (lambda: book(), {"grade": "grade", "rho": 1.0}, "rho"),
        (lambda: book(), {"grade": "grade", "initial_auc": 1.4}, "initial_auc"),
    ],
)
def test_bad_input_is_refused_in_a_line_that_names_the_way_out(data: Any, how: dict[str, Any], says: str) -> None:
    with pytest.raises(BadInput, match=says) as why:
        cal.grades(data(), **{"grade": "g", "draws": 19, **how})
    assert "\n" not in str(why.value)


def test_an_initial_figure_beside_initial_rows_is_refused_and_so_are_weights_and_clusters() -> None:
    with pytest.raises(BadInput, match=r"leave initial_auc= \(--initial-auc\) out"):
        cal.grades(book(), grade="grade", initial=book(), initial_auc=0.8)
    for row_attributes in ({}, {"cluster": ["p", "p", "q", "q"]}):
        weighted = {"weights": [1.0, 2.0] * 2, **row_attributes}
        with pytest.raises(NotComputable, match="weights"):
            cal.grades(cal.predictions([0, 1, 0, 1], [0.1, 0.1, 0.2, 0.2], {"g": list("aabb")}, **weighted), grade="g")


# ---- segments, customers of several rows, relative limits, a page ----


def test_segments_are_the_validation_of_their_rows() -> None:
    data = book(region=lambda at, y: np.where(np.arange(len(at)) % 3 == 0, "N", "S"))
    found = cal.grades(data, grade="grade", by="region", draws=99)
    assert [s.segment for s in found.segments if s.rating_grade == "portfolio"] == ["region = N", "region = S"]
    north = np.array(data.covariates["region"].to_pylist()) == "N"  # type: ignore[index]
    part = cal.predictions(
        data.y[north], data.p[north], {"grade": np.array(data.covariates["grade"].to_pylist())[north]}
    )
    alone = cal.grades(part, grade="grade", draws=99)
    own = [s for s in found.segments if s.segment == "region = N"]
    for a, b in zip(own, (*alone.back_testing, alone.portfolio), strict=True):
        assert (a.rating_grade, a.number_of_customers, a.p_value) == (b.rating_grade, b.number_of_customers, b.p_value)
    assert all((s.adjusted_p or 0) >= (s.p_value or 0) * 0.3 for s in own)


def test_rows_of_one_customer_count_once() -> None:
    grade, y = ["a", "a", "a", "b", "b", "b"], [0, 1, 0, 0, 0, 1]
    data = cal.predictions(
        y, [0.1] * 3 + [0.2] * 3, {"g": grade, "owed": [1.0, 2, 3, 4, 5, 6]}, cluster=["p", "p", "q", "r", "s", "s"]
    )
    found = cal.grades(data, grade="g", exposure="owed", draws=19)
    assert [(b.number_of_customers, b.number_of_defaults, b.exposure) for b in found.back_testing] == [
        (2, 1, 6.0),
        (2, 1, 15.0),
    ]
    assert found.settings["cluster_rows"] == 6
    assert "6 rows of 4 customers" in written.lines(found)
    assert any("6 rows of 4 customers" in str(row[1]) for row in written.sheets(found)[-1].rows)
    two = cal.predictions([0, 1], [0.1, 0.2], {"g": ["a", "b"]}, cluster=["p", "p"])
    with pytest.raises(BadInput, match="column 'g': customer 'p' has 'a' and 'b'; rows of one customer"):
        cal.grades(two, grade="g")


def test_ratios_and_their_ranges_are_those_of_another_program() -> None:
    from scipy.stats import beta

    found = whole(limit_relative=0.5)
    for b, n, d, pd in zip(found.back_testing, N, D, PD, strict=True):
        each = 0.05 / 4 / 2
        ends = beta.ppf(each, d, n - d + 1) / pd, beta.ppf(1 - each, d + 1, n - d) / pd
        assert b.observed_expected == pytest.approx(d / n / pd)
        assert (b.observed_expected_low, b.observed_expected_high) == pytest.approx(ends)
        inside = ends[0] >= 0.5 and ends[1] <= 1.5
        assert b.verdict == ("within" if inside else "over" if ends[0] > 1.5 or ends[1] < 0.5 else "undecided")
    assert whole().portfolio.verdict is None


def test_a_book_far_beyond_its_pds_is_over_and_one_far_below_too() -> None:
    at = np.arange(4000) % 2
    pd = np.array([0.1, 0.3])[at]
    for rate, wanted in ((2.0, "over"), (1.0, "within"), (0.3, "over")):
        quantile = (np.arange(4000) // 2 + 0.5) / 2000
        found = cal.grades(
            cal.predictions(quantile < rate * pd, pd, {"g": at}), grade="g", limit_relative=0.3, draws=19
        )
        assert [b.verdict for b in (*found.back_testing, found.portfolio)] == [wanted] * 3


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ({"by": "grade"}, "by= .--by. names 'grade', which is the grade or the exposure"),
        ({"by": "regoin"}, "segment column 'regoin' is not in the data"),
        ({"by": 3}, "by=3: pass names of columns"),
        ({"by": "id"}, "segment column 'id' holds 470 values: name a column of at most 50"),
        ({"limit_relative": 1.5}, "limit_relative=1.5: pass"),
        ({"alpha": 0.9}, "alpha=0.9"),
    ],
)
def test_what_is_said_of_segments_and_limits(how: dict[str, Any], says: str) -> None:
    data = book(id=lambda at, y: np.array([f"c{i}" for i in range(len(at))]))
    with pytest.raises(BadInput, match=says):
        cal.grades(data, **{"grade": "grade", "draws": 19, **how})


def summary(**how: Any) -> str:
    """Return the words of a page's summary."""
    found = replace(cal.grades(book(), grade="grade", draws=19), **how)
    return str([node.to_dict() if hasattr(node, "to_dict") else node for node in _summary(found)])


def test_the_summary_speaks_of_the_portfolio_segments_and_a_limit_only_where_there_is_one() -> None:
    found = cal.grades(book(), grade="grade", draws=19)
    green = tuple(replace(b, light="green") for b in found.back_testing)
    calm = {"back_testing": green, "portfolio": replace(found.portfolio, light="green")}
    none, limited = "No grade is amber or red", "none is shown to be outside the limit"
    assert none in (text := summary(**calm))
    assert limited not in text
    assert limited in summary(**calm, settings={**found.settings, "limit_relative": 0.2})
    north = replace(green[0], segment="region = N", light="red")
    assert none not in (text := summary(**calm, segments=(north,)))
    assert "region = N, A" in text
    assert none not in (text := summary(back_testing=green, portfolio=replace(found.portfolio, light="amber")))
    assert "Amber: " in text


def test_the_page_to_sign(tmp_path: Path) -> None:
    data = book(region=lambda at, y: np.where(np.arange(len(at)) % 3 == 0, "<b>N", "S"))
    found = cal.grades(data, grade="grade", by="region", limit_relative=0.2, draws=19)
    page = found.save(tmp_path / "x.html").read_text(encoding="utf-8")
    for words in (
        "Validation of PD by grade",
        "Segments",
        "Date and signature",
        "Against the limit",
        "Not checked: whether",
    ):
        assert words in page
    assert "<b>N" not in page
    assert found.save(tmp_path / "y.html").read_text(encoding="utf-8") == page
    assert '"schema":"calibrant-grades/1"' in page


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ({"order": "a,b"}, r"order= \(--order\) is 'a,b': name every grade of the scale, the best first"),
        ({"order": []}, r"is \[\]: name every grade"),
        ({"order": 3}, "is 3: name every grade"),
        ({"order": ["a", "b", "a"]}, "names 'a' twice"),
        ({"order": [f"g{i}" for i in range(60)]}, "names 60 grades: rating scales have at most 50"),
        ({"grade": None}, "grade=None: pass the name of one column"),
        ({"exposure": ["x"]}, r"exposure=\['x'\]: pass the name of one column"),
        ({"average_pd": "no"}, "average_pd='no': pass True or False"),
        ({"initial": "first.csv"}, "initial is a str: pass calibrant.predictions"),
        ({"initial": of(["a", "b"], [0.1, 0.2], h=["a", "b"])}, None),
        ({"initial": of(["a", "c"], [0.1, 0.2])}, r"initial validation \(initial=, --initial\): column 'g' holds 'c'"),
        ({"initial": of(["a", None], [0.1, 0.2])}, "initial validation .* 1 of 2 rows have no grade"),
        ({"initial": of(["a", "b"], [0.1, 0.2]), "initial_herfindahl": 0.2}, "leave initial_herfindahl="),
        ({"initial_herfindahl": -0.1}, "initial_herfindahl=-0.1: pass a number from 0 to 1"),
    ],
)
def test_what_is_said_of_the_scale_and_of_the_initial_rows(how: dict[str, Any], says: str | None) -> None:
    data = of(["a", "a", "b", "b"], [0.1, 0.1, 0.2, 0.2])
    if says is None:
        assert cal.grades(data, **{"grade": "g", "draws": 19, **how}).discrimination
        return
    with pytest.raises(BadInput, match=says):
        cal.grades(data, **{"grade": "g", "draws": 19, **how})


def test_initial_rows_with_weights_are_refused_and_a_scale_of_numbers_is_named_by_numbers() -> None:
    before = cal.predictions([0, 1, 0, 1], [0.1, 0.1, 0.2, 0.2], {"g": list("aabb")}, weights=[1.0, 2.0] * 2)
    with pytest.raises(NotComputable, match=r"initial= \(--initial\) has"):
        cal.grades(of(list("aabb"), [0.1, 0.1, 0.2, 0.2]), grade="g", initial=before)
    numbers = of([1, 1, 2, 2], [0.1, 0.1, 0.2, 0.2])
    assert cal.grades(numbers, grade="g", order=[1, 2, 3], draws=19).scale == ("1", "2", "3")


# ---- the workbook, and the command ----


def test_a_workbook_opens_with_heads_frozen_numbers_as_numbers_and_notes(tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    pytest.importorskip("xlsxwriter")
    found = whole(rho=0.12, initial_auc=0.85)
    path = found.save(tmp_path / "sheet.xlsx")
    assert path.read_bytes() == written.workbook(found)
    opened = openpyxl.load_workbook(path)
    assert opened.sheetnames == [s.name for s in written.sheets(found)]
    for page in opened:
        assert page.freeze_panes == "B2"
        assert all(cell.font.b for cell in page[1])
        assert all(page.column_dimensions[c[0].column_letter].width >= 10 for c in page.columns)
    page = opened["PD back-testing"]
    row = dict(zip([c.value for c in page[1]], page[4], strict=True))
    assert (row["Rating grade"].value, row["Number of defaults (D)"].value) == ("C", 9)
    assert row["PD"].number_format == "0.00%"
    assert row["p-value"].value == pytest.approx(found.back_testing[2].p_value)
    assert row["Traffic light"].fill.fgColor.rgb.endswith("C6E6CC")
    assert page.max_row == 6
    notes = [c.value for c in opened["Notes"]["B"]]
    assert any("European Central Bank (2019)" in n for n in notes)
    assert any("green above 0.05, red at most 0.001" in n for n in notes)


def test_no_name_of_a_grade_is_a_formula(tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    pytest.importorskip("xlsxwriter")
    data = of(["=1+1", "=1+1", "@x", "@x"], [0.1, 0.1, 0.2, 0.2])
    page = openpyxl.load_workbook(cal.grades(data, grade="g", draws=19).save(tmp_path / "x.xlsx"))["PD back-testing"]
    assert [page.cell(i, 1).data_type for i in (2, 3)] == ["s", "s"]


def test_the_command_prints_and_writes_what_the_function_returns(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, path = book(end=moved), tmp_path / "book.csv"
    table = data.covariates.append_column("y", [data.y]).append_column("pd", [data.p])  # type: ignore[union-attr]
    table.to_pandas().to_csv(path, index=False)
    asked = ["grades", str(path), "--label", "y", "--score", "pd", "--grade", "grade", "--end-grade", "end"]
    more = ["--initial", str(path), "--rho", "0.12", "--draws", "99"]
    assert main([*asked, *more, "--json", "--out", str(tmp_path / "x.json")]) == 0
    printed = capsys.readouterr().out
    direct = cal.grades(data, grade="grade", end_grade="end", initial=data, rho=0.12, draws=99).to_dict()
    reported = json.loads(printed)
    assert reported == json.loads((tmp_path / "x.json").read_text(encoding="utf-8"))
    assert {k: v for k, v in reported.items() if k != "settings"} == {
        k: v for k, v in direct.items() if k != "settings"
    }
    assert main([*asked, "--lights", "0.05,0.01", "--out", str(tmp_path / "x.csv")]) == 0
    out = capsys.readouterr().out
    assert "portfolio" in out
    assert "Herfindahl index by number" in out
    assert (tmp_path / "x.csv").read_text(encoding="utf-8").startswith("segment,rating_grade,pd,number_of_customers")
    for wrong in (["--out", "x.docx"], ["--lights", "a"], ["--initial-auc", "0.8", "--initial", str(path)]):
        assert main([*asked, *wrong]) == 2
    assert main(asked[:-4]) == 2


def test_defaults_within_a_year_are_those_of_customers_followed_so_long(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By dates of entry and one closing date the sheet is that of the labels; where loans moved it says the way on."""
    rng = np.random.default_rng(0)
    n = 600
    pd, entered = np.array(PD)[rng.integers(0, 4, n)], rng.integers(0, 700, n)
    default, moved_away, closing = rng.exponential(-365.0 / np.log1p(-pd)), rng.exponential(900.0, n), 730.0 - entered
    day = np.datetime64("2024-01-01") + entered

    def table(ends: np.ndarray) -> Path:
        t = np.minimum(default, ends)
        end = np.where(default <= ends, "default", "none")
        path = tmp_path / "loans.csv"
        rows = zip(pd, t, end, day, t / 30.44, strict=True)
        head = "pd,days,end,entered,months,grade\n"
        path.write_text(head + "".join(f"{p},{a:.4f},{e},{d},{m:.4f},g{p}\n" for p, a, e, d, m in rows))
        return path

    asked = ["--event", "end", "--positive", "default", "--score", "pd", "--grade", "grade", "--draws", "99"]
    dated = ["--entered", "entered", "--closed", "2025-12-31"]
    path = table(closing)
    assert main(["grades", str(path), "--time", "days", "--horizon", "365", *asked, *dated, "--json"]) == 0
    result = capsys.readouterr()
    kept = closing >= 365.0
    assert f"left out {int((~kept).sum())} rows that entered too late" in result.err
    grade = np.array([f"g{p}" for p in pd])[kept]
    direct = cal.grades(cal.predictions((default <= 365.0)[kept], pd[kept], {"grade": grade}), grade="grade", draws=99)
    assert json.loads(result.out)["back_testing"] == json.loads(direct.to_json())["back_testing"]
    assert main(["grades", str(path), "--time", "months", "--horizon", "12", *asked, *dated]) == 2
    assert "'entered' holds dates, so that 'months' and --horizon count days" in capsys.readouterr().err
    path = table(moved_away)
    for way in ([], ["--way", "weights"], ["--way", "unknown"]):
        assert main(["grades", str(path), "--time", "days", "--horizon", "365", *asked, *way]) == 2
        said = capsys.readouterr().err
        assert "calibrant certify --method horizon --by GROUP --way weights" in said
        assert "--way unknown assumes" not in said
    more = ["--method", "horizon", "--by", "grade", "--way", "weights", "--time", "days", "--horizon", "365"]
    assert main(["certify", str(path), *asked[:-4], *more]) == 0
