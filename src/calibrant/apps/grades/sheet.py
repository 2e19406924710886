"""What the validation of a rating scale holds: back-testing, discrimination, migrations, concentration.

Fields are called as in the instructions of the European Central Bank (2019), sections 2.5.3 to 2.5.5, in their order.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Self

from calibrant.errors import BadInput
from calibrant.results import Curve, Plain
from calibrant.toolkit.data import checked_targets
from calibrant.toolkit.data import written as write

SCHEMA = "calibrant-grades/1"
WRITTEN_BY = "calibrant.apps.grades.files"  # loaded when a validation is saved: words come last
Matrix = tuple[tuple[float | None, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BackTest(Plain):
    """Defaults of one grade, or of the portfolio, against its PD (section 2.5.3).

    Parameters
    ----------
    segment : str
        ``"region = North"``; empty for the whole book.
    rating_grade : str
        ``"portfolio"`` for all grades together.
    pd : float or None
        Of the grade at the beginning of the observation period; of the portfolio the mean over customers. None of a
        grade without customers, as all that follows from them.
    number_of_customers, number_of_defaults : int
        At the beginning of the period; within it.
    default_rate : float or None
    exposure : float or None
        At the beginning; None where no column was named.
    p_value : float or None
        The Jeffreys probability that the default rate is at most the PD.
    correlated_p_value : float or None
        The probability of so many defaults or more at the PD, with correlation `rho`, this grade by itself.
    adjusted_p : float or None
        Jeffreys test of all grades together, with correlation `rho`: for the finding "this grade".
    light : {"green", "amber", "red"} or None
        By `p_value`, or with `rho` by `correlated_p_value`, of the portfolio with `rho` by `adjusted_p`.
    observed_expected, observed_expected_low, observed_expected_high : float or None
        Defaults over those that the PD expects, with their range: certified where customers are independent, and
        simultaneous over all grades, or over all lines of a column of segments. None where the PD is 0.
    verdict : {"over", "within", "undecided"} or None
        Of that range against the relative limit; None without one.
    """

    segment: str = ""
    rating_grade: str
    pd: float | None = None
    number_of_customers: int = 0
    number_of_defaults: int = 0
    default_rate: float | None = None
    exposure: float | None = None
    p_value: float | None = None
    correlated_p_value: float | None = None
    adjusted_p: float | None = None
    light: str | None = None
    observed_expected: float | None = None
    observed_expected_low: float | None = None
    observed_expected_high: float | None = None
    verdict: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Discrimination(Plain):
    """The AUC of the grades against that at initial validation (section 2.5.4).

    Parameters
    ----------
    auc_curr, variance_curr : float
        Of the grades as they are ordered, ties half; by DeLong.
    auc_init, statistic, p_value : float or None
        ``S = (auc_init - auc_curr) / s``, ``1 - Phi(S)``: small where the AUC has fallen. None without an initial AUC.
    number_of_customers, number_of_defaults : int
    """

    auc_curr: float
    variance_curr: float
    auc_init: float | None
    statistic: float | None
    p_value: float | None
    number_of_customers: int
    number_of_defaults: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Migrations(Plain):
    """Customers by grade at the beginning (rows) and at the end (columns) of the period (sections 2.5.5.1, 2.5.5.2).

    Parameters
    ----------
    counts : tuple of tuple of int
        Of customers with a grade at both ends and without a default.
    defaulted, left : tuple of int
        By grade at the beginning: who defaulted; who has no grade at the end and did not.
    mwb_upper, mwb_lower : float or None
        Matrix weighted bandwidths, to worse and to better grades; None where nobody went that way.
    p_ij, z_ij, p_value : tuple of tuple of (float or None)
        Shares of a row; each cell off the diagonal against its neighbour nearer to it; ``Phi(z_ij)``.
    """

    counts: tuple[tuple[int, ...], ...]
    defaulted: tuple[int, ...]
    left: tuple[int, ...]
    mwb_upper: float | None
    mwb_lower: float | None
    p_ij: Matrix
    z_ij: Matrix
    p_value: Matrix


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Concentration(Plain):
    """Concentration in rating grades now and at initial validation (section 2.5.5.3).

    Parameters
    ----------
    weighted_by : {"number", "exposure"}
    grades : int
        K, those without customers too.
    cv_curr, hi_curr : float
        Coefficient of variation; Herfindahl index, 0 for equal shares and 1 for one grade.
    cv_init, hi_init, p_value : float or None
        The same at initial validation, and of the finding "more concentrated now". None without an initial value.
    """

    weighted_by: str
    grades: int
    cv_curr: float
    hi_curr: float
    cv_init: float | None
    hi_init: float | None
    p_value: float | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GradeValidation(Plain):
    """The validation of a rating scale. `to_json` and `from_json` round-trip; `save` writes a workbook.

    Parameters
    ----------
    scale : tuple of str
        Grades, the best first.
    back_testing : tuple of BackTest
        One a grade, in that order.
    portfolio : BackTest
    segments : tuple of BackTest
        The grades of each segment that have customers, then the segment's total.
    discrimination : Discrimination or None
    migrations : Migrations or None
    concentration : tuple of Concentration
        By number of customers and, where a column was named, by exposure.
    absent : Mapping of str to str
        Why a part is not there.
    settings : Mapping
    """

    scale: tuple[str, ...]
    back_testing: tuple[BackTest, ...]
    portfolio: BackTest
    discrimination: Discrimination | None
    migrations: Migrations | None
    concentration: tuple[Concentration, ...]
    segments: tuple[BackTest, ...] = ()
    absent: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, object] = field(default_factory=dict)
    schema: str = SCHEMA

    @property
    def lights(self) -> tuple[float, float]:
        """The two levels of the lights."""
        return tuple(self.settings["lights"])  # type: ignore[arg-type, return-value]

    @property
    def table(self) -> Curve:
        """Back-testing as columns: grades, the portfolio, then segments."""
        rows = [b.to_dict() for b in (*self.back_testing, self.portfolio, *self.segments)]
        columns = {name: tuple(r[name] for r in rows) for name in rows[0]}
        return Curve(method="grades", columns=columns, settings=dict(self.settings))

    def save(self, target: str | os.PathLike[str]) -> Path:
        """Write it to a file, whole or not at all.

        Parameters
        ----------
        target : path
            ``.html`` for a page to sign, ``.xlsx`` for a workbook, ``.json``, or ``.csv`` for back-testing.

        Raises
        ------
        BadInput
            Another ending, a place that cannot be written, or no XlsxWriter for a workbook.
        """
        out = os.fspath(target)
        written = import_module(WRITTEN_BY)
        path = checked_targets({"the target": written.checked(out)}, ())["the target"]
        write(str(path), written.content(self, out))
        return path

    def to_json(self) -> str:
        """The validation as JSON text: full precision, no NaN, the same bytes every time."""
        return json.dumps(self.to_dict(), ensure_ascii=True, indent=1, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Rebuild the validation that `to_json` wrote."""
        try:
            d = json.loads(text)
        except ValueError:
            raise BadInput("not JSON: pass the text that to_json wrote") from None
        if not isinstance(d, dict) or d.get("schema") != SCHEMA:
            raise BadInput(f"not a validation of grades: this version reads {SCHEMA!r}")
        return cls.from_dict(d)
