"""Commands that are refused, and the files that they name."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from frozen.inputs import Columns, lines, people, write

BOTH = ["--label", "y", "--score", "p"]
REFUSED: list[list[str]] = [
    [],
    ["audit"],
    ["audit", "absent.csv", *BOTH],
    ["audit", "log.csv"],
    ["audit", "log.csv", "--label", "y"],
    ["audit", "log.csv", "--label", "yy", "--score", "p"],
    ["audit", "log.csv", "--label", "y", "--score", "y"],
    ["audit", "log.csv", *BOTH, "--by", "agee"],
    ["audit", "log.csv", *BOTH, "--by", "a,ge"],
    ["audit", "log.csv", *BOTH, "--by", "p"],
    ["audit", "log.csv", *BOTH, "--limit", "2"],
    ["audit", "log.csv", *BOTH, "--limit", "nan"],
    ["audit", "log.csv", *BOTH, "--limit", "x"],
    ["audit", "log.csv", *BOTH, "--alpha", "0"],
    ["audit", "log.csv", *BOTH, "--alpha", "0.6"],
    ["audit", "log.csv", *BOTH, "--levels", "0"],
    ["audit", "log.csv", *BOTH, "--levels", "37"],
    ["audit", "log.csv", *BOTH, "--mask", "2"],
    ["audit", "log.csv", *BOTH, "--judge", "gaps"],
    ["audit", "log.csv", *BOTH, "--fail-on", "nothing"],
    ["audit", "log.csv", *BOTH, "--quick", "--fail-on", "local-calibration"],
    ["audit", "log.csv", *BOTH, "--missing-odds", "0.5", "--missing", "keep"],
    ["audit", "log.csv", *BOTH, "--threshold", "0.2", "--costs", "1,4"],
    ["audit", "log.csv", *BOTH, "--threshold", "1.5"],
    ["audit", "log.csv", *BOTH, "--costs", "1"],
    ["audit", "log.csv", *BOTH, "--bins", "age=1,nan"],
    ["audit", "log.csv", *BOTH, "--bins", "age=40,18", "--by", "age"],
    ["audit", "log.csv", *BOTH, "--bins", "age=40,40", "--by", "age"],
    ["audit", "log.csv", *BOTH, "--bins", "age=x", "--by", "age"],
    ["audit", "log.csv", *BOTH, "--bins", "sex=1,2", "--by", "sex"],
    ["audit", "log.csv", *BOTH, "--key", "sex"],
    ["audit", "log.csv", *BOTH, "--cluster", "absent"],
    ["audit", "log.csv", *BOTH, "--weights", "sex"],
    ["audit", "log.csv", *BOTH, "--percent"],
    ["audit", "log.csv", *BOTH, "--positive", "7"],
    ["audit", "log.csv", *BOTH, "-o", ""],
    ["audit", "log.csv", *BOTH, "-o", "json:log.csv"],
    ["audit", "log.csv", *BOTH, "-o", "json:a", "-o", "html:a"],
    ["audit", "log.csv", *BOTH, "--json", "-o", "html:-"],
    ["audit", "log.csv", *BOTH, "-o", "absent/a.json"],
    ["audit", "log.csv", *BOTH, "--against", "a.json"],
    ["audit", "log.csv", *BOTH, "--about", "absent.toml"],
    ["audit", "log.csv", *BOTH, "--colour", "red"],
    ["audit", "log.csv", *BOTH, "--sql", "select 1"],
    ["audit", "log.csv", *BOTH, "--by", '"a'],
    ["audit", "log.csv", "log.csv", *BOTH],
    ["audit", "", *BOTH],
    ["audit", "--sql", "copy (select 1) to 'x.csv'", *BOTH],
    ["audit", "--sql", "select 1; select 2", *BOTH],
    ["audit", "--sql", "attach 'x.db'", *BOTH],
    ["audit", "--sql", "select * from 'http://localhost/x.csv'", *BOTH],
    ["audit", "empty.csv", *BOTH],
    ["audit", "header.csv", *BOTH],
    ["audit", "quote.csv", *BOTH],
    ["audit", "ragged.csv", *BOTH],
    ["audit", "cp1252.csv", *BOTH],
    ["audit", "missing.csv", *BOTH],
    ["audit", "logits.csv", *BOTH],
    ["audit", "percent.csv", *BOTH],
    ["audit", "text.csv", *BOTH],
    ["audit", "labels.csv", *BOTH],
    ["audit", "classes.csv", *BOTH],
    ["audit", "huge.csv", *BOTH, "--by", "age"],
    ["audit", "infinite.csv", *BOTH, "--by", "age"],
    ["audit", "double.csv", *BOTH],
    ["audit", "ids.csv", *BOTH, "--by", "id"],
    ["audit", "picture.png", *BOTH],
    ["audit", "stata.dta", *BOTH],
    ["audit", "broken.parquet", *BOTH],
    ["audit", "broken.sketch"],
    ["audit", "pickle.pkl", *BOTH],
    ["audit", "weights.csv", *BOTH, "--weights", "w"],
    ["audit", "no-unit.csv", *BOTH, "--cluster", "u"],
    ["audit", "ones.csv", *BOTH, "--limit", "0.1", "--quick"],
    ["audit", "ten.csv", *BOTH, "--limit", "0.1"],
    ["audit", "one.csv", *BOTH, "--quick"],
    ["audit", "log.csv", *BOTH, "--missing", "never"],
    ["audit", "missing.csv", *BOTH, "--missing", "refuse"],
    ["certify", "log.csv", *BOTH, "--method", "nothing"],
    ["certify", "log.csv", *BOTH, "--method", "values"],
    ["certify", "log.csv", *BOTH, "--method", "rounded", "--variables", "age"],
    ["certify", "log.csv", *BOTH, "--method", "rounded", "--by", "sex"],
    ["measure", "nothing", "log.csv", *BOTH],
    ["measure", "net_benefit", "log.csv", *BOTH],
    ["measure", "ece", "log.csv", *BOTH, "--bins", "x"],
    ["measure", "ece", "log.csv", *BOTH, "--bins", "0"],
    ["measure", "brier", "log.csv", *BOTH, "--out", "b.html"],
    ["detect", "scan_test", "log.csv", *BOTH, "--variables", "p"],
    ["detect", "score_test", "log.csv", *BOTH, "--null", "none"],
    ["diagnose", "variable_curve", "log.csv", *BOTH, "--variable", "colour"],
    ["accept", "log.csv", *BOTH, "--risk", "0"],
    ["accept", "log.csv", *BOTH, "--power", "0.9"],
    ["compare", "log.csv", "--label", "y", "--score", "p"],
    ["compare", "log.csv", "--label", "y", "--score", "p,p"],
    ["compare", "log.csv", "--label", "y", "--score", "p,age"],
    ["compare", "a.json", "b.json"],
    ["plan", "0"],
    ["plan", "0.02", "--label", "y"],
    ["repair", "log.csv", *BOTH, "--method", "magic"],
    ["repair", "log.csv", *BOTH, "--out", "log.csv"],
    ["repair", "log.csv", *BOTH, "--out", "a.docx"],
    ["apply", "map.json", "log.csv", "--score", "p", "--out", "o.csv"],
    ["apply", "log.csv", "log.csv", "--score", "p", "--out", "o.csv"],
    ["merge", "broken.sketch", "--out", "m.sketch"],
    ["sketch", "log.csv", *BOTH, "--out", "log.csv"],
    ["sketch", "log.csv", *BOTH],
    ["report", "log.csv"],
    ["report", "map.json"],
    ["grades", "log.csv", *BOTH],
    ["grades", "log.csv", *BOTH, "--grade", "sex"],
    ["weights", "log.csv"],
    ["weights", "log.csv", "--to", "ten.csv", "--by", "colour"],
    ["weights", "log.csv", "--margins", "bad.toml"],
]


def refused_files() -> None:
    d = people(120, 70)
    text = write("log.csv", d) and lines(d)
    rows = text.splitlines(keepends=True)
    Path("empty.csv").write_text("")
    Path("header.csv").write_text(rows[0])
    Path("ten.csv").write_text("".join(rows[:11]))
    Path("one.csv").write_text("".join(rows[:2]))
    Path("quote.csv").write_text("".join(rows[:50]) + '1,0.5,30,"f,north,0001\n' + "".join(rows[50:]))
    Path("ragged.csv").write_text("".join(rows[:50]) + "1,0.5\n" + "".join(rows[50:]))
    Path("cp1252.csv").write_bytes("".join(rows[:50]).replace("north", "Orléans").encode("cp1252"))
    Path("double.csv").write_text(text.replace("y,p,age", "y,p,p", 1))
    logits = np.log(d["p"] / (1 - d["p"]))
    changed: dict[str, Columns] = {
        "missing": {"p": ["", *d["p"][1:].tolist()]},
        "logits": {"p": logits},
        "percent": {"p": d["p"] * 100},
        "text": {"p": ["1,234", "low", *d["p"][2:].tolist()]},
        "labels": {"y": [2, 0.5, -1, *d["y"][3:].tolist()]},
        "classes": {"y": ["yes", "no", "perhaps"] * 40},
        "huge": {"age": [1e300, *d["age"][1:].tolist()]},
        "infinite": {"age": ["1e400", *d["age"][1:].tolist()]},
        "weights": {"w": [0, -1, *[1] * 118]},
        "no-unit": {"u": ["", *["a", "b"] * 59, "c"]},
        "ones": {"y": [1] * 120},
        "ids": {"id": np.arange(120)},
    }
    for name, columns in changed.items():
        write(f"{name}.csv", d | columns)
    Path("picture.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(100))
    Path("stata.dta").write_bytes(b"<stata_dta><header><release>118</release>" + bytes(100))
    Path("pickle.pkl").write_bytes(b"\x80\x04\x95" + bytes(100))
    Path("broken.parquet").write_bytes(b"PAR1" + bytes(200) + b"PAR1")
    Path("broken.sketch").write_bytes(b"calibrant sketch\n" + bytes(200))
    Path("map.json").write_text('{"recipe": "Nothing"}')
    Path("bad.toml").write_text("sex = 3\n")
