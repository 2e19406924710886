"""Write docs/notebooks/employment.ipynb and run it: python docs/notebooks/build.py

Needs nbformat, nbclient and ipykernel (written with 5.11.1, 0.11.0 and 7.4.0) next to calibrant, in an environment of
their own. No time stamps, no random ids: the same versions write the same bytes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

HERE = Path(__file__).parent
LARGEST = 200_000  # bytes of one output

CELLS = (
    """# An audit of employment probabilities

277 677 residents of Massachusetts, 2015 to 2018, and a classifier's probability that each is employed. The data come
with the package. This is [Start](../start.md) on real data; every number below was computed by the cell above it.""",
    """import calibrant as cal
from calibrant.data import employment_path

data = cal.read(employment_path(), label="employed", score="predicted_probability", by=["sex", "nativity", "age"])
print(f"{data.n:,} people, {data.events:,} employed")""",
    """## The audit

The limit, 1.4 points, is an example. In your own audit choose limit and groups before you see outcomes. In each
range the first number is about the raw score and the second about the score shown in steps of 2 %. `quick=True` leaves
out the tests, which come below.""",
    """groups = ["sex", "nativity", "age"]
record = cal.audit(data, by=groups, limit=0.014, outcome="employed", name="employment", quick=True)
print(record.verdict, record.exit_status)


def line(finding):
    who = ", ".join(f"{variable}: {level}" for variable, level in finding.variables) or "everyone"
    low, high = 100 * finding.lower.interval.low, 100 * finding.upper.interval.high
    return f"{who:26}{finding.rows:>9,}{low:>8.2f} to {high:5.2f}  {finding.verdict:10}{finding.rows_needed or '':>10}"


print(f"{'':26}{'people':>9}{'points':>13}{'':10}{'would decide':>17}")
print(line(record.everyone))""",
    """## The groups

All ranges hold together with 95 %. One group is over the limit; most are undecided, which is not a pass.""",
    """for finding in record.groups:
    print(line(finding))""",
    """For the group over the limit, plain counting says it best:""",
    """over = next(g for g in record.groups if g.verdict == "over")
per = 1000 / over.rows
print(f"of every 1,000 {over.variables[0][1]} people the model expects {per * over.expected:.0f} employed;")
print(f"{per * over.events:.0f} were")""",
    """## The report

A notebook shows a record by its first screen.""",
    """record""",
    """`record.save("audit.html")` writes the whole report, `.json` the record, `.md` Markdown, `.pdf` the page printed.
Nothing of the rows is in any of them.""",
    """from calibrant.report import html

page = html.render(record)
print(f"{len(page):,} characters of HTML, {len(record.to_json()):,} of JSON")
print([check.code for check in record.checks if check.status == "not-run"])""",
    """## Measures

Estimates with approximate intervals. No verdict rests on them.""",
    """names = ["ece", "smooth_ece", "brier", "log_loss", "auroc"]
for name in [*names, "calibration_intercept", "calibration_slope", "observed_expected"]:
    found = getattr(cal.measure, name)(data)
    print(f"{name:22} {found:.4f}")""",
    """By group the intervals are each for itself: with two groups, `alpha` halved makes them hold together.""",
    """rates = cal.measure.by_group(cal.measure.observed_expected, data, by="nativity", alpha=0.025)
for group, found in rates.items():
    print(group, f"{found:.3f}")""",
    """## Where along the score

A curve is drawn without a network; `curve.chart()` is an interactive chart, `curve.to_frame()` its numbers.""",
    """cal.diagnose.reliability_curve(data)""",
    """## Along which variable

The last year, with every column that describes people. Everybody is off in the same direction, so the overall shift is
taken out: what is left of the error along each variable, with certified ranges that hold simultaneously.""",
    """import numpy as np

names = ["age", "sex", "race", "schooling", "marital", "disability", "citizenship", "nativity"]
rows = cal.read(employment_path(), label="employed", score="predicted_probability", by=[*names, "year"])
last = np.asarray(rows.covariates.column("year")) == 2018
people = cal.predictions(rows.y[last], rows.p[last], rows.covariates.filter(last).select(names))
ranking = cal.diagnose.rank_variables(people)
keys = ("variable", "vece", "beyond_gap", "beyond_low", "beyond_high", "p_adjusted")
print(f"{people.n:,} people; in points\\n{'':14}{'error':>7}{'beyond shift':>14}{'certified':>16}{'adjusted p':>13}")
for v, e, b, low, high, p in zip(*(ranking.columns[k] for k in keys), strict=True):
    print(f"{v:14}{100 * e:7.2f}{100 * b:14.2f}{100 * low:10.2f} to {100 * high:.2f}{p:12.3f}")""",
    """Age comes first. Where along it? The band holds at every age at once.""",
    """by_variable = cal.diagnose.variable_curve(people, "age", grid=51)
s = by_variable.settings
print(f"p = {s['p_value']}; worst near {s['worst_label']}: {100 * s['worst_gap']:+.1f} points,")
print(f"allowing for having looked everywhere {100 * s['worst_low']:.1f} to {100 * s['worst_high']:.1f}")
by_variable""",
    """## Among people with the same score

Does what happens still depend on who they are? One test for all columns together, exact at any number of rows. A large
p-value is not proof of none.""",
    """test = cal.detect.local_calibration_test(people)
print(f"p = {test.p_value}: level and slope {test.parts['p_global']}, everything else {test.parts['p_local']}")
for v, p in zip(test.parts["variables"], test.parts["variable_adjusted_p"], strict=True):
    print(f"{v:14}adjusted p = {p:.3f}")""",
    """The map of the size, women and men apart, under one band:""",
    """ages = range(0, 91, 3)
cal.diagnose.local_bias(people, "age", by="sex", grid=ages)""",
    """## What noise or rounding would cost

`certify.jittered` is tighter from above than anything for the raw score, but it is about a score with noise. What would
the noise cost?""",
    """cost = cal.certify.jitter_cost(data, bandwidths=[2**-5, 2**-6, 2**-7], steps=[20, 50, 100])
print(f"{'display':12}{'h':>10}{'steps':>7}{'AUROC':>9}{'Brier':>9}")
wanted = [cost.columns[name] for name in ("display", "bandwidth", "steps", "auroc", "brier")]
for how, h, steps, auroc, brier in zip(*wanted, strict=True):
    print(f"{how:12}{h:10.4f}{steps:7}{auroc:9.4f}{brier:9.4f}")""",
    """For a bandwidth of 1/64, about one thousandth of AUROC. What it buys:""",
    """noisy = cal.certify.jittered(data, bandwidth=2**-6, side="upper")
shown = cal.certify.rounded(data, steps=50, side="upper")
near = cal.certify.distance(data, side="upper")
print(f"with noise, off by at most             {100 * noisy.interval.high:.2f} points")
print(f"shown in steps of 2 %, at most         {100 * shown.interval.high:.2f} points")
print(f"raw, distance from calibration at most {100 * near.interval.high:.2f} points ({near.settings['route']})")""",
    """## How many rows would have been enough?

For steps of 2 % and a bound within half a point of the truth, with scores like these:""",
    """plan = cal.certify.rows_needed(0.005, data=data, steps=50)
print(f"about {plan.value:,.0f}")""",
    """Next: [The audit](../audit.md).""",
)


def notebook() -> Any:
    """Return the notebook without outputs: text and code by turns, one text between two codes at most."""
    cells = []
    for i, source in enumerate(CELLS):
        make = nbformat.v4.new_markdown_cell if i % 2 == 0 else nbformat.v4.new_code_cell
        cells.append(make(source, id=f"cell-{i:02}"))
    meta = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    return nbformat.v4.new_notebook(cells=cells, metadata=meta)


def main() -> None:
    """Run the notebook and write it."""
    book = notebook()
    where = {"metadata": {"path": str(HERE)}}
    NotebookClient(book, timeout=600, record_timing=False, coalesce_streams=True, resources=where).execute()
    book.metadata["language_info"] = {"name": "python"}
    for cell in book.cells:
        for output in cell.get("outputs", ()):
            if len(str(output)) > LARGEST:
                raise SystemExit(f"an output of {cell.id} is larger than {LARGEST:,} bytes")
    nbformat.validate(book)
    (HERE / "employment.ipynb").write_text(nbformat.writes(book, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
