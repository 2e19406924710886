"""The frozen cases: seeded inputs, and what the product makes of them through its public face alone.

A rename of an option, a command or a function is told once, in `NAMES`; the cases keep the words they were written in.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import calibrant as cal
from frozen.bench import Bench, readable
from frozen.inputs import (
    FILES,
    Columns,
    clustered,
    copied,
    crowded,
    data,
    inspect_log,
    json_lines,
    lines,
    parquet,
    people,
    rare,
    sharp,
    three,
    tied,
    unlabelled,
    write,
)
from frozen.refused import REFUSED, refused_files

NAMES: dict[str, str] = {
    "--levels": "--steps",
    "--distinct-units": "--distinct-clusters",
    "levels=": "steps",
    "along=": "by_variable",
    "beyond_shift=": "beyond_gap",
    "--beyond-shift": "--beyond-gap",
    "--along": "--by-variable",
    "distinct_units=": "distinct_clusters",
    "certify.pockets": "certify.subgroups",
    "detect.pocket_test": "detect.subgroup_test",
    "diagnose.pockets": "diagnose.subgroups",
    "diagnose.pocket_map": "diagnose.subgroup_map",
    "diagnose pockets": "diagnose subgroups",
    "diagnose pocket_map": "diagnose subgroup_map",
    "detect pocket_test": "detect subgroup_test",
    "--method pockets": "subgroups",
    "testing.assert_met": "testing.assert_within",
    **{f"certify.{n}": f"papers.{n}" for n in ("published_kernel", "published_lipschitz", "published_total_variation")},
    **{f"detect.{n}": f"papers.{n}" for n in ("adaptive_score_test", "adaptive_chi_square_test")},
    "detect.multicalibration_score_test": "papers.multicalibration_score_test",
    "diagnose.calibration_function": "papers.calibration_function",
    "diagnose calibration_function": "papers calibration_function",
}
"""As written in the cases -> as it is spelled now.

``"--levels": "--steps"`` is an option, ``"--judge error": "--judge size"`` a value of one, ``"certify.pockets":
"certify.subgroups"`` a function of the API, ``"diagnose pockets": "diagnose subgroups"`` a command and its method,
``"levels=": "steps="`` without the last ``=`` a keyword of every function (``"certify.rounded:levels="`` of one), and
``"pockets": "subgroups"`` any other word of a command. Keywords map to keywords: ``"levels=": "steps"``.
"""

Case = Callable[[Bench], None]
CASES: dict[str, Case] = {}


def case(run: Case) -> Case:
    """Declare a case, named as its function is."""
    CASES[run.__name__.replace("_", "-")] = run
    return run


def cases(**named: Case) -> None:
    """Declare cases made by a function."""
    CASES.update({name.replace("_", "-"): run for name, run in named.items()})


ROWS: dict[str, Callable[[], cal.Predictions | cal.Sketch]] = {
    "independent": lambda: data(people(800, off=0.1)),
    "units": lambda: data(d := clustered(900, units=180), cluster=d["patient"]),
    "weights": lambda: data(d := clustered(800), weights=d["w"]),
    "units-and-weights": lambda: data(d := clustered(900, units=180), cluster=d["patient"], weights=d["w"]),
    "crossed": lambda: data(d := clustered(900, units=120), cluster={k: d[k] for k in ("patient", "ward")}),
    "unlabelled": lambda: data(unlabelled(800), missing="keep"),
    "sketch": lambda: cal.sketch(
        pa.table(people(800, off=0.1)),
        label="y",
        score="p",
        by=["sex", "region"],
        variables=["age", "sex", "region"],
        tests=True,
    ),
    "few-values": lambda: data((d := people(800, off=0.1)) | {"p": np.round(d["p"] * 0.9 + 0.05, 1)}),
    "crossed-at-sites": lambda: data(d := clustered(1200, units=200), cluster={k: d[k] for k in ("nurse", "bed")}),
    "few": lambda: data({k: v[:40] for k, v in people(200).items()}),
}

COLUMNS = "--label y --score p"

# ---- audits ----

PIPELINES = "-o a.xml -o summary:s.md -o metrics:m.json -o model-card:c.md -o tripod:t.md"
EVERYTHING = f"-o a.html -o a.json -o a.md {PIPELINES}"


def audit(make: Callable[[], Columns], options: str, outputs: str = "-o a.json") -> Case:
    """An audit of a CSV file."""

    def run(at: Bench) -> None:
        Path("ill.toml").write_text('noun = "patients"\noutcome = "ill"\n')
        at.run(f"audit {write('log.csv', make())} {COLUMNS} {options} {outputs}", "audit")

    return run


cases(
    audit_independent=audit(lambda: people(1500, off=0.15), "--by sex,region --limit 0.03", EVERYTHING),
    audit_within=audit(lambda: people(1500, 5), "--by sex --limit 0.15 --quick", "-o a.html -o a.json"),
    audit_over=audit(
        lambda: people(1500, 6, bend=-0.6),
        "--by sex,region --limit 0.01 --quick --about ill.toml",
        EVERYTHING,
    ),
    audit_by_gap=audit(
        lambda: people(1000, off=0.2),
        "--by sex,age --bins age=18,40,65 --intersections --judge gap --limit 0.05 --quick",
    ),
    audit_small_groups=audit(
        lambda: people(700, 7),
        "--by region,code --mask 30 --limit 0.05 --quick",
        "-o a.html -o a.md -o a.json",
    ),
    audit_without_limit=audit(lambda: people(200, 8), "--variables none --levels 20 --alpha 0.1"),
    audit_units=audit(
        clustered,
        "--cluster patient --by sex --variables age,sex,region --limit 0.05",
        "-o a.html -o a.json -o a.md",
    ),
    audit_weights=audit(clustered, "--weights w --by sex,region --variables age,sex --limit 0.05 --quick"),
    audit_units_and_weights=audit(
        clustered,
        "--cluster patient --weights w --by sex --variables age --limit 0.05 --quick",
        "-o a.html -o a.json",
    ),
    audit_nested_units=audit(
        lambda: (d := clustered()) | {"visit": [f"{u}-{i % 2}" for i, u in enumerate(d["patient"])]},
        "--cluster patient,visit --by sex --variables age --limit 0.05 --quick",
    ),
    audit_crossed=audit(
        clustered,
        "--cluster patient,ward --by sex --variables age,sex --limit 0.05",
        "-o a.html -o a.json -o a.md",
    ),
    audit_unlabelled=audit(
        unlabelled,
        "--missing keep --by sex,region --variables age,sex --limit 0.05",
        "-o a.html -o a.json -o a.md",
    ),
    audit_unlabelled_units=audit(
        lambda: unlabelled(1000) | {"u": np.arange(1000) // 5},
        "--missing keep --missing-odds 1.5 --cluster u --by sex --variables age --limit 0.1 --quick",
    ),
    audit_missing_dropped=audit(unlabelled, "--missing drop --by sex --variables age --quick"),
    audit_decisions=audit(
        lambda: people(1000, 9, off=0.1),
        "--by sex --threshold 0.2,0.5 --limit 0.05 --quick",
        "-o a.html -o a.json -o a.md",
    ),
    audit_costs=audit(clustered, "--cluster patient --variables age --costs 1,4 --limit 0.05 --quick"),
    audit_gates=audit(
        lambda: people(800, 10, off=0.3),
        "--by sex --fail-on local-calibration,strong-calibration --tolerance 0.02 --seed 3",
        "-o a.xml -o a.json",
    ),
    audit_ties=audit(tied, "--by sex --limit 0.05", "-o a.html -o a.json"),
    audit_met=audit(sharp, "--by sex --variables age,sex --limit 0.2", "-o a.html -o a.json -o a.xml -o summary:s.md"),
    audit_crossed_over=audit(
        crowded, "--cluster patient,ward --by sex --variables age,sex --limit 0.02 --quick", EVERYTHING
    ),
    audit_crossed_at_sites=audit(
        lambda: clustered(1500, units=300), "--cluster nurse,bed --by sex --variables age --limit 0.1 --quick"
    ),
    audit_rare=audit(rare, "--by sex --limit 0.01 --quick"),
    audit_copied_rows=audit(copied, "--key id --by sex --quick --limit 0.1"),
)


@case
def audit_named(at: Bench) -> None:
    """Labels of text, scores in per cent, names that mean something elsewhere, and everything said about the data."""
    d = people(500, 16)
    names = np.where(d["sex"] == "f", '<b>"f"</b>', "=1+1")
    made = {"y": np.where(d["y"] == 1, "yes", "no"), "p": d["p"] * 100, "sex, or not": names, "age": d["age"]}
    write("log.csv", made)
    words = {"model": "risk 3.1", "intended_use": "triage", "population": "adults", "period": "2025", "noun": "people"}
    words |= {"set_by": "the board, May 2025", "name": "Risk <3>", "date": "1 June 2025"}
    Path("about.toml").write_text("".join(f'{k} = "{v}"\n' for k, v in words.items()))
    said = ["--about", "about.toml"]
    how = [
        "--label",
        "y",
        "--positive",
        "yes",
        "--score",
        "p",
        "--percent",
        "--by",
        '"sex, or not"',
        "--limit",
        "0.05",
        "--quick",
    ]
    at.run(
        [
            "audit",
            "log.csv",
            *how,
            *said,
            "-o",
            "a.html",
            "-o",
            "a.json",
            "-o",
            "a.md",
            "-o",
            "tripod:t.csv",
        ],
        "audit",
    )


@case
def audit_folder(at: Bench) -> None:
    """Everything that is kept of an audit, in a directory."""
    at.run(
        f"audit {write('log.csv', people(600, 17, off=0.1))} {COLUMNS} --by sex,region --limit 0.05 --quick -o kept/",
        "audit",
    )


@case
def audit_sketch(at: Bench) -> None:
    """Sketches of two halves, merged and audited."""
    d = people(1200, 18, off=0.15)
    for name, part in (("a", slice(0, 600)), ("b", slice(600, None))):
        write(f"{name}.csv", {k: v[part] for k, v in d.items()})
    at.run(f"sketch a.csv {COLUMNS} --by sex,region --variables age,sex --tests --out a.sketch", "first")
    at.run("sketch b.csv --like a.sketch --out b.sketch", "second")
    at.run("merge a.sketch b.sketch --out c.sketch", "merged")
    at.run("look c.sketch", "look")
    at.run("audit c.sketch --limit 0.05 -o a.html -o a.json", "audit")
    at.run("certify c.sketch --method rounded,raw-lower,worst-group", "certify")
    at.run("measure brier c.sketch --by sex", "measure")
    at.run("merge a.sketch a.sketch --out d.sketch", "itself")
    at.run(f"sketch a.csv {COLUMNS} --by sex --out plain.sketch", "plain")
    at.run("audit plain.sketch --limit 0.05", "audit-plain")


@case
def audit_sketch_of_units(at: Bench) -> None:
    """Sketches that hold units, weights, and rows without a label."""
    write("log.csv", clustered(1200))
    write("gone.csv", unlabelled(800))
    how = "--by sex --variables age,sex --intersections"
    at.run(f"sketch log.csv {COLUMNS} {how} --cluster patient --weights w --out units.sketch", "units")
    at.run("audit units.sketch --limit 0.1 -o a.html -o a.json", "audit-units")
    at.run(f"sketch log.csv {COLUMNS} {how} --weights w --out weights.sketch", "weights")
    at.run("certify weights.sketch", "certify-weights")
    at.run(f"sketch gone.csv {COLUMNS} {how} --missing keep --out gone.sketch", "gone")
    at.run("audit gone.sketch --limit 0.1 -o a2.json", "audit-gone")
    at.run("diagnose missing_labels gone.sketch", "diagnose-gone")


@case
def audit_python(at: Bench) -> None:
    """The audit of arrays, and what its record does."""
    d = people(700, 19, off=0.1)
    record = at.call("audit", "audit", data(d), by=["sex"], limit=0.04, quick=True, name="arrays")
    for ending in ("html", "json", "md"):
        at.keep(f"record.{ending}", _saved(record, f"a.{ending}"))
    at.keep("notebook.html", record._repr_html_())
    at.call("testing.assert_met", "assert", record)
    at.call("testing.assert_met", "assert-undecided", record, allow_undecided=True)
    for name in (
        "testing.junit",
        "testing.summary",
        "tracking.metrics",
        "tracking.model_card",
    ):
        at.call(name, name, record)
    at.call(
        "testing.summary",
        "against",
        record,
        against=at.function("audit")(data(people(700, 20)), by=["sex"], limit=0.04, quick=True),
    )


def _saved(record: cal.AuditRecord, target: str) -> bytes:
    record.save(target)
    return readable(target, Path(target).read_bytes())


@case
def example(at: Bench) -> None:
    """The bundled data."""
    at.run("example -o e.html -o e.json -o e.md", "example", joined=True)


@case
def report_outputs(at: Bench) -> None:
    """Every output of a record that was kept, and of a page that holds one."""
    for name, seed, off in (("jan", 21, 0.0), ("feb", 22, 0.2)):
        write(f"{name}.csv", people(600, seed, off=off))
        at.run(f"audit {name}.csv {COLUMNS} --by sex,region --limit 0.04 --quick -o {name}.json", name)
    at.run(f"report feb.json --against jan.json {EVERYTHING.replace('-o a.json ', '')} --out kept/", "report")
    at.run("report kept/report.html -o markdown:-", "page")
    for output in ("report", "json", "tripod", "junit", "summary", "metrics", "model-card"):
        at.run(f"report jan.json --{output} -", f"stdout-{output}")
    Path("old.json").write_text(Path("jan.json").read_text().replace("calibrant/4", "calibrant/2"))
    at.run("report old.json", "older")
    at.run("compare jan.json feb.json --out c.csv", "compare")
    at.run("compare feb.json jan.json --margin 0.02 --json", "compare-json")


# ---- certificates, estimates, tests and curves through Python ----

CERTIFY: list[tuple[str, str, Mapping[str, Any]]] = [
    ("rounded", "rounded", {}),
    ("rounded-upper", "rounded", {"steps": 20, "side": "upper", "alpha": 0.1, "seed": 5}),
    ("raw-lower", "raw_lower", {}),
    ("values", "values", {}),
    ("jittered", "jittered", {}),
    ("jittered-wide", "jittered", {"bandwidth": 2**-5, "side": "lower"}),
    ("distance", "distance", {}),
    ("bounded-variation", "bounded_variation", {}),
    ("groups", "groups", {"by": ["sex", "region"], "limit": 0.05}),
    ("groups-by-gap", "groups", {"by": ["sex"], "judge": "gap", "limit": 0.05}),
    ("worst-group", "worst_group", {"by": ["sex", "region"]}),
    ("missing-labels", "missing_labels", {"by": ["sex"], "limit": 0.05}),
    ("pockets", "pockets", {"variables": ["age", "sex"], "clear_size": 0.2}),
    ("variable", "variable", {"variable": "age"}),
    ("variable-level", "variable", {"variable": "sex", "beyond_shift": True}),
    ("variable-pair", "variable", {"variable": ["age", "sex"], "bins": 4}),
    ("accept", "accept", {"risk": 0.3}),
    ("accept-low", "accept", {"risk": 0.2, "end": "low", "by": ["sex"], "target": "rows"}),
    ("jitter-cost", "jitter_cost", {"bandwidths": [2**-6, 2**-5], "levels": [20, 100]}),
    ("jitter-bandwidth", "jitter_bandwidth", {}),
    ("published-kernel", "published_kernel", {}),
    ("published-total-variation", "published_total_variation", {}),
    ("published-lipschitz", "published_lipschitz", {}),
    ("rows-needed", "rows_needed", {"gap": 0.02}),
]
MEASURE: list[tuple[str, str, Mapping[str, Any]]] = [
    ("ece", "ece", {}),
    ("ece-squared", "ece", {"bins": 10, "strategy": "uniform", "norm": 2, "debiased": True}),
    ("max", "max_calibration_error", {}),
    ("smooth-ece", "smooth_ece", {}),
    ("vece", "vece", {"variable": "age", "draws": 99}),
    ("vece-pair", "vece", {"variable": ["age", "sex"], "draws": 99, "bins": 4, "view": "confidence"}),
    ("klce", "klce", {"variables": ["age"], "family": "laplace"}),
    ("net-benefit", "net_benefit", {"threshold": 0.3}),
    ("regret", "regret", {"threshold": 0.3}),
    ("brier", "brier", {}),
    ("log-loss", "log_loss", {"clip": 0.01}),
    ("auroc", "auroc", {}),
    ("intercept", "calibration_intercept", {}),
    ("slope", "calibration_slope", {}),
    ("observed-expected", "observed_expected", {}),
    ("inferred-mean", "inferred_mean", {"variable": "age"}),
    ("inferred-gap", "inferred_gap", {"variable": "sex", "level": "f"}),
]
DETECT: list[tuple[str, str, Mapping[str, Any]]] = [
    ("kernel", "kernel_calibration_test", {"draws": 99}),
    ("local", "local_calibration_test", {"variables": ["age", "sex"], "draws": 99}),
    ("score", "score_test", {"draws": 99}),
    ("score-tolerance", "score_test", {"draws": 99, "tolerance": 0.02, "alternative": "greater"}),
    ("cox", "cox_test", {"draws": 99}),
    ("cumulative", "cumulative_test", {"draws": 99}),
    ("spiegelhalter", "spiegelhalter_test", {"draws": 99}),
    ("jeffreys", "jeffreys_test", {"by": "sex", "draws": 99}),
    ("hosmer-lemeshow", "hosmer_lemeshow_test", {"draws": 99}),
    ("scan", "scan_test", {"variables": ["age", "sex"], "draws": 99}),
]
DETECT_SLOW: list[tuple[str, str, Mapping[str, Any]]] = [
    ("strong", "strong_calibration_test", {"variables": ["age", "sex"], "draws": 19}),
    ("pocket", "pocket_test", {"variables": ["age", "sex"], "draws": 19}),
    ("adaptive-score", "adaptive_score_test", {"variables": ["age", "sex"], "draws": 19}),
    ("adaptive-chi-square", "adaptive_chi_square_test", {"variables": ["age", "sex"], "draws": 19}),
    ("multicalibration", "multicalibration_score_test", {"variables": ["age", "sex"], "draws": 19}),
    (
        "kernel-tuning",
        "kernel_tuning",
        {"along": "age", "runs": 20, "widths": [1.0], "families": ["gaussian"], "draws": 19},
    ),
]
DIAGNOSE: list[tuple[str, str, Mapping[str, Any]]] = [
    ("reliability", "reliability_curve", {"draws": 99, "grid": 21}),
    ("variable", "variable_curve", {"variable": "age", "draws": 99, "grid": 9}),
    ("variable-by", "variable_curve", {"variable": "sex", "draws": 99}),
    ("rank", "rank_variables", {"draws": 99}),
    ("local-bias", "local_bias", {"variables": ["age"], "grid": 5, "draws": 99}),
    ("missing-labels", "missing_labels", {"by": ["sex"]}),
    ("acceptance", "acceptance_curve", {"risk": 0.3, "points": 10}),
    ("decision", "decision_curve", {"thresholds": [0.1, 0.3, 0.5], "by": ["sex"]}),
    ("calibration-function", "calibration_function", {"grid": 11}),
    ("total-variation", "calibration_function", {"method": "total-variation", "grid": 11}),
    ("heterogeneity", "heterogeneity", {"site": "region"}),
    ("pockets", "pockets", {"variables": ["age", "sex"], "limit": 0.05}),
    ("pocket-map", "pocket_map", {"first": "age", "second": "sex"}),
]
DIAGNOSE_SLOW: list[tuple[str, str, Mapping[str, Any]]] = [
    ("control-chart", "control_chart", {"variables": ["age", "sex"], "draws": 19}),
    ("importance", "importance", {"variables": ["age", "sex"], "repeats": 2}),
    ("subgroups", "subgroups", {"method": "searched", "variables": ["age", "sex"]}),
]
POSITIONAL = ("variable", "gap", "level", "first", "second")  # asked about; together with the data


def asked(face: str, rows: str, some: Iterable[tuple[str, str, Mapping[str, Any]]]) -> Case:
    """Functions of one face, of one kind of rows; a refusal is an answer too."""

    def run(at: Bench) -> None:
        made = ROWS[rows]()
        for step, name, settings in some:
            how = dict(settings)
            if name == "local_bias":
                first = (made, how.pop("variables"))
            elif name == "rows_needed":
                first = (how.pop("gap"), made)
            else:
                first = (made, *(how.pop(k) for k in POSITIONAL if k in how))
            if isinstance(made, cal.Sketch):
                how = {k: v for k, v in how.items() if k not in ("by", "site")} if name != "jeffreys_test" else how
            at.call(f"{face}.{name}", f"{step}.json", *first, **how)

    return run


for _rows in ROWS:
    cases(
        **{f"certify_{_rows}": asked("certify", _rows, CERTIFY), f"measure_{_rows}": asked("measure", _rows, MEASURE)}
    )
    cases(
        **{f"detect_{_rows}": asked("detect", _rows, DETECT), f"diagnose_{_rows}": asked("diagnose", _rows, DIAGNOSE)}
    )
for _rows in ("independent", "units", "weights", "sketch"):
    cases(
        **{f"detect_models_{_rows}": asked("detect", _rows, DETECT_SLOW if _rows == "independent" else DETECT_SLOW[:2])}
    )
cases(diagnose_models_independent=asked("diagnose", "independent", DIAGNOSE_SLOW))


@case
def one_by_one(at: Bench) -> None:
    """Groups one by one, scorers, and certificates that need no data."""
    made = ROWS["independent"]()
    for name in ("brier", "auroc", "ece"):
        at.call(
            "measure.by_group",
            f"{name}.json",
            at.function(f"measure.{name}"),
            made,
            by=["sex", "region"],
            intersections=True,
        )
    at.call("certify.rows_needed", "rows.json", 0.02)
    at.call("certify.rows_to_accept", "accept.json", risk=0.02, error=0.01)
    at.keep(
        "public.txt",
        "\n".join(
            f"{f} {n}"
            for f in ("certify", "measure", "detect", "diagnose", "papers", "repair", "testing", "tracking", "weights")
            for n in sorted(getattr(cal, f).__all__)
        ),
    )


@case
def several_classes(at: Bench) -> None:
    """Whatever takes three classes, or one of them against the others."""
    d = three()
    shares = np.column_stack([d[c] for c in ("ill", "well", "dead")])
    many = cal.multiclass_predictions(d["y"], shares, {"age": d["age"]}, classes=("ill", "well", "dead"))
    at.call("measure.klce", "klce.json", many)
    at.call("detect.local_calibration_test", "local.json", many, draws=99)
    at.call("detect.local_calibration_test", "exact.json", many, draws=19, features="exact")
    for name, two in (("top", many.top_label()), ("first", many.one_vs_rest(0))):
        at.call("measure.ece", f"ece-{name}.json", two)
        at.call("certify.rounded", f"rounded-{name}.json", two)
    fitted = at.function("repair.Dirichlet")().fit(many)
    at.keep("dirichlet.json", fitted.to_json())
    at.keep("dirichlet.txt", np.array2string(fitted(many).p[:40], precision=17))
    Path("map.json").write_text(fitted.to_json())
    write("log.csv", d)
    several = "log.csv --label y --scores ill,well,dead"
    at.run(f"measure klce {several}", "klce")
    at.run(f"detect local_calibration_test {several} --draws 19 --json", "local")
    at.run(f"measure klce {several} --classes dead,ill,well", "order")
    at.run(f"measure brier {several}", "two-only")
    for dialect in DIALECTS:
        at.run(f"apply map.json --scores ill,well,dead -o {dialect}:- --table t --keep y,age", f"sql-{dialect}")
    at.run("apply map.json -o javascript:-", "javascript")


# ---- commands of one question ----


@case
def commands_measure(at: Bench) -> None:
    write("log.csv", people(600, 30, off=0.1))
    for name in (
        "brier",
        "auroc",
        "log_loss",
        "calibration-slope",
        "ece --bins 10",
        "smooth_ece",
        "klce --variables age --family laplace",
        "vece --variable age --draws 99",
        "net_benefit --threshold 0.4",
    ):
        at.run(f"measure {name.split()[0]} log.csv {COLUMNS} {' '.join(name.split()[1:])}", name.split()[0])
    at.run(f"measure brier log.csv {COLUMNS} --by sex,region --out b.csv", "by")
    at.run(f"measure brier log.csv {COLUMNS} --by sex --json --out b.json", "json")
    at.run(f"measure inferred_gap log.csv {COLUMNS} --variable sex --level f", "gap")


@case
def commands_detect(at: Bench) -> None:
    write("log.csv", people(600, 31, off=0.1))
    for name in (
        "score_test",
        "cox-test",
        "spiegelhalter_test",
        "hosmer_lemeshow_test",
        "cumulative_test",
        "kernel_calibration_test",
        "jeffreys_test --by sex",
    ):
        at.run(f"detect {name.split()[0]} log.csv {COLUMNS} --draws 99 {' '.join(name.split()[1:])}", name.split()[0])
    at.run(
        f"papers published-local-test log.csv {COLUMNS} --draws 19 --null bounded --variables age",
        "local",
    )
    at.run(f"detect scan_test log.csv {COLUMNS} --draws 19 --json --out s.csv", "scan")


@case
def commands_diagnose(at: Bench) -> None:
    write("log.csv", people(600, 32, off=0.1))
    at.run(f"diagnose reliability_curve log.csv {COLUMNS} --draws 99 --grid 21 --out r.html", "reliability")
    at.run(f"diagnose variable_curve log.csv {COLUMNS} --variable age --draws 99 --grid 9 --out v.html", "variable")
    at.run(f"diagnose calibration_function log.csv {COLUMNS} --no-perturb --out c.csv", "function")
    at.run(f"diagnose rank_variables log.csv {COLUMNS} --draws 99 --out r.json", "rank")
    at.run(f"diagnose pockets log.csv {COLUMNS} --variables age,sex --out p.html", "pockets")
    at.run(f"diagnose pocket_map log.csv {COLUMNS} --first age --second sex", "map")
    at.run(f"diagnose heterogeneity log.csv {COLUMNS} --site region --json", "heterogeneity")
    at.run(f"diagnose decision_curve log.csv {COLUMNS} --by sex --out d.html", "decision")


@case
def commands_certify(at: Bench) -> None:
    write("log.csv", clustered(900))
    at.run(f"certify log.csv {COLUMNS}", "usual")
    at.run(
        f"certify log.csv {COLUMNS} --method rounded,jittered,distance,bounded-variation "
        "--side upper --alpha 0.1 --seed 2",
        "upper",
    )
    at.run(f"certify log.csv {COLUMNS} --method worst_group --by sex,region", "groups")
    at.run(f"certify log.csv {COLUMNS} --method worst_group --by sex --judge gap --cluster patient --json", "units")
    at.run(f"certify log.csv {COLUMNS} --method pockets --variables age,sex --clear-size 0.2 --order 1", "pockets")
    at.run(f"certify log.csv {COLUMNS} --cluster patient,ward", "crossed")
    at.run(f"certify log.csv {COLUMNS} --weights w", "weights")
    write("gone.csv", unlabelled(600))
    at.run(f"certify gone.csv {COLUMNS} --missing keep --method missing-labels --by sex", "missing")


@case
def commands_plan(at: Bench) -> None:
    write("log.csv", clustered(900))
    at.run("plan 0.02", "plan")
    at.run("plan 0.02 --method jittered --side two-sided", "jittered")
    at.run(f"plan 0.05 --data log.csv {COLUMNS} --levels 20", "data")
    at.run(f"plan 0.05 --data log.csv {COLUMNS} --cluster patient", "units")
    at.run(f"plan 0.05 --data log.csv {COLUMNS} --weights w --side lower", "weights")


@case
def commands_help(at: Bench) -> None:
    """The help of every command, and which command is for which question."""
    at.run("--help", "help")
    at.run("--version", "version")
    at.run("guide", "guide")
    for name in (
        "look",
        "audit",
        "example",
        "report",
        "certify",
        "measure",
        "detect",
        "diagnose",
        "accept",
        "compare",
        "grades",
        "plan",
        "sketch",
        "merge",
        "repair",
        "weights",
        "apply",
    ):
        at.run(f"{name} --help", name)
    at.run("measure ece --help", "measure-ece")


@case
def accepting(at: Bench) -> None:
    write("log.csv", sharp())
    at.run(f"accept log.csv {COLUMNS} --risk 0.1", "high")
    at.run(f"accept log.csv {COLUMNS} --risk 0.1 --end low --by sex --target rows --out a.csv", "low")
    at.run(f"accept log.csv {COLUMNS} --risk 0.15 --cluster patient --json --out a.html", "units")
    at.run(f"accept log.csv {COLUMNS} --risk 0.15 --weights w --out a.json", "weights")
    at.run(f"accept log.csv {COLUMNS} --risk 0.001", "nothing")
    at.run("accept --risk 0.02 --error 0.01", "plan")
    at.run("accept --risk 0.02 --error 0.01 --share 0.5 --power 0.9 --json", "plan-json")


@case
def comparing_models(at: Bench) -> None:
    d = clustered(1200)
    rng = np.random.default_rng(33)
    d["new"] = np.round(np.clip(d["p"] + rng.normal(0, 0.05, len(d["p"])), 0.001, 0.999), 3)
    d["worse"] = np.round(1 - d["p"], 3)
    write("log.csv", d)
    models = "compare log.csv --label y --score p,new,worse"
    for measure in ("brier", "log_loss", "error", "calibration_error", "auroc"):
        at.run(f"{models} --measure {measure}", measure)
    at.run(f"{models} --measure net_benefit --threshold 0.2,0.5 --out c.html", "net-benefit")
    at.run(f"{models} --by sex,region --margin 0.02 --out c.csv", "by")
    at.run(f"{models} --cluster patient --reference new --json", "units")
    at.run(f"{models} --weights w --target rows --alpha 0.1 --out c.json", "weights")
    at.run(f"{models} --cluster patient,ward", "crossed")
    at.call(
        "compare", "python.json", {"old": d["p"], "new": d["new"]}, d["y"], {"sex": d["sex"]}, by="sex", margin=0.01
    )


# ---- repairs ----

DIALECTS = ("duckdb", "postgres", "spark", "bigquery", "tsql", "sqlite")
STEPS = ("variable-tree", "local-bias", "proportional-multicalibrator", "multicalibrator")  # not one expression
METHODS = {
    "score": ("platt", "beta", "isotonic", "temperature", "histogram", "scaling-binning", "bbq"),
    "variables": ("augmented-logistic", "augmented-beta", "variable-tree"),
    "groups": ("local-bias", "proportional-multicalibrator", "multicalibrator"),
}


def repairs(kind: str) -> Case:
    """Each method alone: the comparison, the map, SQL in every dialect where there is any, and JavaScript."""

    def run(at: Bench) -> None:
        write("log.csv", people(1000, 40, bend=-0.4, off=0.1))
        for method in METHODS[kind]:
            at.run(
                f"repair log.csv {COLUMNS} --by sex --variables age,sex --quick --method {method} -o {method}.json",
                method,
            )
            if not Path(f"{method}.json").exists():
                continue
            table = " --table people --keep y,age" if method in STEPS else ""
            dialects = (
                DIALECTS if method in ("platt", "isotonic", "augmented-logistic", "variable-tree") else DIALECTS[:1]
            )
            for dialect in dialects:
                at.run(f"apply {method}.json --score p -o {dialect}:-{table}", f"{method}-{dialect}")
            at.run(f"apply {method}.json -o javascript:-", f"{method}-javascript")

    return run


cases(**{f"repair_by_{kind}": repairs(kind) for kind in METHODS})


@case
def repair_auto(at: Bench) -> None:
    """What is tried of itself, judged, written and applied; and the same of units."""
    write("log.csv", people(2000, 41, bend=-0.8))
    write("tomorrow.csv", people(200, 42, bend=-0.8))
    at.run(
        f"repair log.csv {COLUMNS} --by sex --variables age,sex --limit 0.05 --threshold 0.3 --quick "
        "--out r.csv -o m.json",
        "repair",
    )
    at.run("apply m.json tomorrow.csv --score p --out t.csv", "apply")
    at.run("apply m.json tomorrow.csv --score p --out t.parquet", "parquet")
    at.run("apply m.json --score p -o postgres:- --table people --keep y,age", "table")
    write("units.csv", clustered(1000))
    at.run(
        f"repair units.csv {COLUMNS} --cluster patient --by sex --variables age --method platt --quick --json", "units"
    )
    at.run(
        f"repair units.csv {COLUMNS} --weights w --variables age --method platt,beta --quick --judge gap --limit 0.02",
        "weights",
    )
    write("other.csv", people(500, 43, bend=-0.5))
    at.run(f"repair log.csv {COLUMNS} --method platt --judge-on other.csv --quick -o other.json", "judge-on")


@case
def repair_python(at: Bench) -> None:
    """Recipes fitted and applied, and the comparison."""
    made = data(people(800, 44, bend=-0.4))
    for name in (
        "Platt",
        "Beta",
        "Isotonic",
        "Temperature",
        "Histogram",
        "ScalingBinning",
        "BBQ",
        "Rounding",
        "Jitter",
    ):
        fitted = at.function(f"repair.{name}")().fit(made)
        at.keep(f"{name}.json", fitted.to_json())
        at.keep(f"{name}.txt", json.dumps(fitted(made).p[:30].tolist()))
    for name in ("AugmentedLogistic", "VariableTree", "LocalBias"):
        fitted = at.function(f"repair.{name}")(variables=["age", "sex"]).fit(made)
        at.keep(f"{name}.json", fitted.to_json())
        at.keep(f"{name}.txt", json.dumps(fitted(made).p[:30].tolist()))
    recipes = {name: at.function(f"repair.{name}")() for name in ("Platt", "Isotonic")}
    at.call(
        "repair.evaluate",
        "compare.json",
        made,
        repairs=recipes,
        by="sex",
        limit=0.05,
        tests="local",
        draws=99,
        threshold=0.3,
    )


@case
def calibrated_classifier(at: Bench) -> None:
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(45)
    x = rng.normal(size=(500, 3))
    y = (rng.uniform(size=500) < 1 / (1 + np.exp(-2 * x[:, 0] + x[:, 1] ** 2))).astype(int)
    for name in ("Platt", "Beta", "Isotonic"):
        model = at.function("repair.CalibratedClassifier")(
            LogisticRegression(), at.function(f"repair.{name}")(), cv=3
        ).fit(x, y)
        at.keep(f"{name}.json", json.dumps(model.predict_proba(x[:40]).tolist()))
    plain = LogisticRegression().fit(x, y)
    for name in ("brier", "ece", "auroc"):
        at.keep(f"scorer-{name}.json", json.dumps(float(at.function("measure.scorer")(name)(plain, x, y))))
    model = at.function("repair.Recalibrator")(at.function("repair.Platt")()).fit(x[:, :1], y)
    at.keep("recalibrator.json", json.dumps(np.asarray(model.predict_proba(x[:40, :1])).tolist()))


# ---- grades, weights, look ----


@case
def grades(at: Bench) -> None:
    rng = np.random.default_rng(50)
    n, d, pd = (400, 300, 160, 80), (1, 6, 12, 19), (0.005, 0.02, 0.06, 0.2)
    where = np.repeat(np.arange(4), n)
    names = np.array(["A", "B", "C", "D"])
    end = np.clip(where + rng.integers(-1, 2, len(where)), 0, 3)
    gone = rng.uniform(size=len(where)) < 0.05
    book = {
        "y": np.concatenate([(np.arange(k) < j).astype(int) for k, j in zip(n, d, strict=True)]),
        "p": np.array(pd)[where],
        "grade": names[where],
        "end": np.where(gone, "", names[end]),
        "owed": np.round(rng.uniform(1, 100, len(where)), 2),
    }
    write("book.csv", book)
    how = f"grades book.csv {COLUMNS} --grade grade --draws 99"
    at.run(
        f"{how} --end-grade end --exposure owed --rho 0.12 --initial-auc 0.8 --initial-herfindahl 0.2 --out g.xlsx",
        "grades",
    )
    at.run(f"{how} --json --out g.csv", "json")
    at.run(f"{how} --order D,C,B,A", "order")
    at.run(f"{how} --order A,B,C,D --lights 0.1,0.01", "lights")


@case
def weighing(at: Bench) -> None:
    write("log.csv", people(600, 51))
    write("all.csv", {k: v for k, v in people(900, 52).items() if k not in ("y", "p")})
    Path("m.toml").write_text("[sex]\nf = 60\nm = 40\n")
    at.run("weights log.csv --margins m.toml --out w.csv", "margins")
    at.run("weights log.csv --to all.csv --by sex,region --method rake --cap 3 --json", "rake")
    at.run("weights log.csv --to all.csv --by sex,region --pool region=far,west=west", "cells")
    at.run("weights log.csv --to all.csv --by age,sex --method classifier --seed 2", "classifier")
    at.run(f"audit w.csv {COLUMNS} --weights weight --by sex --variables age --limit 0.1 --quick", "audit")


@case
def looking(at: Bench) -> None:
    """A look at sound rows, at rows with obstacles, and at text that could be much."""
    write("log.csv", clustered(600))
    at.run("look log.csv", "columns")
    at.run(f"look log.csv {COLUMNS} --by sex --cluster patient --weights w --json", "json")
    d = people(300, 53)
    odd = d | {
        "p": d["p"] * 100,
        "day": [f"{1 + i % 28:02d}.03.2025" for i in range(300)],
        "id": np.arange(300),
        "note": [f"text {i}" for i in range(300)],
        "half": [1.5 if i % 3 else "" for i in range(300)],
        "none": [""] * 300,
    }
    write("odd.csv", odd)
    at.run("look odd.csv", "odd")
    write("bad.csv", d | {"p": ["x", *d["p"][1:].tolist()], "y": [7, *d["y"][1:].tolist()]})
    at.run(f"look bad.csv {COLUMNS}", "bad")
    at.run("look unlabelled.csv", "absent")
    at.call("look", "python.json", pa.table(d))
    Path("empty.csv").write_text("")
    at.run("look empty.csv", "empty")


# ---- kinds of files ----


def file_of(name: str) -> Case:
    """A look and a quick audit of one kind of file."""

    def run(at: Bench) -> None:
        path, make = FILES[name]
        make(path, people(300, 61))
        more = "--encoding cp1252" if name == "cp1252" else ""
        at.run(f"look {path} {more}", "look")
        at.run(f"audit {path} {COLUMNS} --by sex,code --quick {more}", "audit")
        at.run(f"measure brier {path} {COLUMNS} --by code --json {more}", "measure")

    return run


cases(**{f"file_{name}": file_of(name) for name in FILES})


@case
def file_evaluation_log(at: Bench) -> None:
    inspect_log("run.json")
    at.run("look run.json", "look")
    how = "run.json --label correct --score confidence_stated --cluster question"
    at.run(f"audit {how} --by topic --limit 0.1 --quick -o a.json", "audit")
    at.run("compare run.json --label correct --score confidence_stated,confidence_judge --cluster question", "compare")


@case
def file_standard_input(at: Bench) -> None:
    d = people(300, 61)
    at.piped(f"audit - {COLUMNS} --by sex --quick --json", "csv", lines(d).encode())
    json_lines("log.jsonl", d)
    at.piped(f"measure brier - {COLUMNS}", "json-lines", Path("log.jsonl").read_bytes())
    at.piped(f"audit - {COLUMNS}", "empty", b"")


@case
def file_several(at: Bench) -> None:
    """Files together, a folder with keys in its names, a query, and frames: the same rows."""
    import pandas
    import polars

    d = people(400, 62)
    for name, part in (("year=2024", slice(0, 200)), ("year=2025", slice(200, None))):
        Path("log", name).mkdir(parents=True)
        parquet(f"log/{name}/rows.parquet", {k: v[part] for k, v in d.items()})
        write(f"{name[-4:]}.csv", {k: v[part] for k, v in d.items()})
    at.run(f"audit log {COLUMNS} --by year,sex --quick", "folder")
    at.run(f"audit 2024.csv 2025.csv {COLUMNS} --by sex --quick", "files")
    at.run(f"audit 2024.csv 2024.csv {COLUMNS} --quick", "twice")
    at.run(
        ["audit", "--sql", "select * from '2024.csv' where age > 30", *COLUMNS.split(), "--by", "sex", "--quick"],
        "query",
    )
    table = pa.table(d)
    for name, frame in (
        ("arrow", table),
        ("pandas", pandas.DataFrame(d)),
        ("polars", polars.DataFrame(d)),
        ("lazy", polars.DataFrame(d).lazy()),
        ("dictionary", d),
    ):
        found = at.function("sketch")(frame, label="y", score="p", by=["sex", "code"])
        at.keep(f"{name}.txt", f"{found.fingerprint} {found.n}\n")
        at.call("measure.brier", f"{name}.json", at.function("read")(frame, label="y", score="p"))


# ---- refusals ----


@case
def refusals(at: Bench) -> None:
    """What is refused: each command, its exit status, and its line."""
    refused_files()
    for number, argv in enumerate(REFUSED):
        at.run(argv, f"{number:03d}", files=False)
    together = [at.outputs.pop(f"{number:03d}.txt").decode() for number in range(len(REFUSED))]
    at.keep("refusals.txt", "\n".join(together))


@case
def refusals_python(at: Bench) -> None:
    """What Python is told of arrays."""
    p, y = np.linspace(0.01, 0.99, 50), np.arange(50) % 2
    given: list[tuple[Any, Any, dict[str, Any]]] = [
        (y, p[:40], {}),
        (y, p * 3, {}),
        (y, np.where(p > 0.9, np.nan, p), {}),
        (y + 1, p, {}),
        (y, p, {"weights": -p}),
        (y, p, {"cluster": y[:3]}),
        (y, p, {"missing": "perhaps"}),
        ([], [], {}),
        (["a"] * 50, p, {}),
        (["a", "b"] * 25, p, {"positive": "c"}),
        (y, np.column_stack([p, p]), {}),
    ]
    for number, (labels, scores, how) in enumerate(given):
        at.call("predictions", f"predictions-{number}.txt", labels, scores, **how)
    made = cal.predictions(y, p, {"g": y})
    asked_wrongly: list[tuple[str, dict[str, Any]]] = [
        ("certify.rounded", {"steps": 7.5}),
        ("certify.rounded", {"side": "both"}),
        ("certify.rounded", {"alpha": 1.0}),
        ("certify.rounded", {"seed": "x"}),
        ("certify.values", {}),
        ("certify.groups", {"by": "h"}),
        ("certify.missing_labels", {}),
        ("measure.ece", {"norm": 3}),
        ("measure.ece", {"strategy": "none"}),
        ("measure.net_benefit", {"threshold": 1.0}),
        ("detect.score_test", {"draws": 0}),
        ("detect.scan_test", {"order": 4}),
        ("diagnose.heterogeneity", {"site": "g"}),
        ("diagnose.rank_variables", {"variables": "h"}),
        ("audit", {"limit": -1}),
        ("audit", {"label": "y"}),
    ]
    for number, (name, how) in enumerate(asked_wrongly):
        at.call(name, f"{name}-{number}.txt", made, **how)
