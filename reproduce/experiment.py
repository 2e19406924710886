"""What an experiment is, and the file its result is kept in.

A claim is what the paper says of an item, in words, and whether it holds here. Every claim carries the number of data
sets that it rests on and, where it is a rate or a comparison of rates, an interval; if that straddles the bound, the
outcome is "cannot tell" (`reproduce/claim.py`). In `claims(rows)` of a script:

    from reproduce import claim

    return {
        "the level is below 0.07": claim.share(hits, sets, below=0.07),
        "A finds more wrong models than B": claim.more(hits_a, hits_b, sets),
        "so it does at each of three sizes": claim.every(claim.more(a, b, sets, looks=3) for a, b in pairs),
        "A finds what B misses oftener than B what A misses": claim.oftener(a_alone, b_alone, sets),
        "the error falls by a point": claim.mean(fall, standard_error, sets, above=0.01),
        "the order of the curves is the paper's": claim.Claim(order == PRINTED, sets=20),
        "the bound is below 0.1 on this one data set": bound < 0.1,
    }

A plain truth value rests on as many data sets as the row with the fewest says under "data sets", "repeats" or
"replicates", and on one if no row does. Pages, the index and the run print outcome, data sets and interval; of one data
set, that there is none, or that there is no chance in it (`fixed=True`). A claim changed, `run.py NAME --judge` judges
the rows that are checked in, without another run.
"""

import json
import platform
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from importlib import import_module, metadata
from pathlib import Path
from types import ModuleType
from typing import Any

from reproduce import claim
from reproduce.claim import Claim

HERE = Path(__file__).parent
RESULTS = HERE / "results"
CHARTS = HERE.parent / "docs" / "img" / "reproduce"
PAPERS = {
    "trustworthy": "I-trustworthy Models (Vashistha and Farahi, AISTATS 2025)",
    "variable": "Variable-Based Calibration for Machine Learning Classifiers (Kelly and Smyth, AAAI 2023)",
    "strong": "Is this Model Reliable for Everyone? Testing for Strong Calibration (Feng et al., AISTATS 2024)",
    "measuring": "Measuring Uncertainty Calibration (Ciosek et al., ICLR 2026)",
}
ITEMS = {
    "trustworthy": (*(f"Figure {i}" for i in range(1, 7)), *(f"Table {i}" for i in range(1, 4))),
    "variable": (*(f"Figure {i}" for i in range(1, 13)), *(f"Table {i}" for i in range(1, 13))),
    "strong": (*(f"Figure {i}" for i in range(1, 6)), "Table 1"),
    "measuring": (*(f"Figure {i}" for i in range(1, 6)), "Table 1"),
}
REPRODUCED, DIFFERS = "reproduced", "reproduced with these differences"
SUBSTITUTE, IMPOSSIBLE = "substitute data", "not possible"
NO_RESULT = "states no result"
STATUSES = (REPRODUCED, DIFFERS, SUBSTITUTE, IMPOSSIBLE, NO_RESULT)
WIDTHS = ("tiny", "quick", "full")


Row = dict[str, Any]  # text, numbers, truth values or None: what JSON holds


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """One table or figure, or several that one run makes.

    Parameters
    ----------
    items : tuple of str
        What the paper calls them: `("Table 1", "Table 7")`.
    title : str
        What it shows, in a few words.
    status : str
        One of `STATUSES`.
    difference : str
        What differs from the paper and why; one sentence for each difference.
    sizes : dict
        An integer for each of tiny (a test, under three CPU seconds), quick and full: replicates, rows, as the script
        says.
    run : callable
        `run(size, seed)` returns the rows of the result: flat, in long form, published numbers beside ours.
    claims : callable
        `claims(rows)` returns what the paper says of them, each claim in words with whether it holds here: a `Claim`,
        or a plain truth value.
    sure : tuple of str
        Claims that hold at any size; the tests assert at the tiny one that none is refuted.
    chart : callable, optional
        `chart(rows)` returns an Altair chart.
    table : callable, optional
        `table(rows)` returns the rows of the docs page, if not all rows: published and reproduced side by side.
    needs : tuple of str
        Modules beyond the library's own ("torch"), and files of `../shared/data` without a public substitute.
    """

    items: tuple[str, ...]
    title: str
    status: str
    difference: str
    sizes: dict[str, int]
    run: Callable[[int, int], list[Row]]
    claims: Callable[[list[Row]], Mapping[str, Claim | bool]]
    sure: tuple[str, ...] = ()
    chart: Callable[[list[Row]], Any] | None = None
    table: Callable[[list[Row]], list[Row]] | None = None
    needs: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Result:
    """What a run of an experiment left: enough to draw the page without another run."""

    name: str
    items: tuple[str, ...]
    size: str
    amount: int
    seed: int
    cpu_seconds: float
    versions: dict[str, str]
    claims: dict[str, Claim]
    rows: list[Row] = field(repr=False)

    def save(self) -> Path:
        """Write the result beside the others."""
        path = place(self.name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(asdict(self), indent=1, allow_nan=False) + "\n", encoding="utf-8")
        return path

    @classmethod
    def load(cls, name: str) -> "Result":
        """Read the result that is checked in."""
        known = json.loads(place(name).read_text(encoding="utf-8"))
        claims = {k: claim.of(v, known["rows"]) for k, v in known["claims"].items()}
        return cls(**{**known, "items": tuple(known["items"]), "claims": claims})


def place(name: str) -> Path:
    """File of a result."""
    return RESULTS / f"{name}.json"


def picture(name: str) -> Path:
    """File of a chart."""
    return CHARTS / f"{name.replace('/', '_')}.svg"


def names() -> list[str]:
    """Name of every experiment: the paper, and the script in its folder."""
    scripts = (p for paper in PAPERS for p in sorted((HERE / paper).glob("*.py")))
    return [f"{p.parent.name}/{p.stem}" for p in scripts if "EXPERIMENT = " in p.read_text(encoding="utf-8")]


def script(name: str) -> ModuleType:
    """Module of an experiment."""
    return import_module(f"reproduce.{name.replace('/', '.')}")


def find(name: str) -> Experiment:
    """Experiment of this name."""
    found = script(name).EXPERIMENT
    assert isinstance(found, Experiment)
    assert found.status in STATUSES
    assert set(found.sizes) == set(WIDTHS)
    return found


def carry_out(name: str, size: str = "quick", seed: int = 0) -> Result:
    """Run an experiment."""
    experiment, start = find(name), time.process_time()
    rows = [plain(r) for r in experiment.run(experiment.sizes[size], seed)]
    took = round(time.process_time() - start, 1)
    return Result(
        name=name,
        items=experiment.items,
        size=size,
        amount=experiment.sizes[size],
        seed=seed,
        cpu_seconds=took,
        versions=versions(),
        claims=judged(experiment, rows),
        rows=rows,
    )


def judged(experiment: Experiment, rows: list[Row]) -> dict[str, Claim]:
    """Return the claims of an experiment, each with its data sets."""
    return {words: claim.of(found, rows) for words, found in experiment.claims(rows).items()}


def judged_anew(name: str) -> Result:
    """Return the result that is checked in, with the claims of the script as it is now; nothing is run."""
    known = Result.load(name)
    return replace(known, claims=judged(find(name), known.rows))


def plain(row: Row) -> Row:
    """Return a row as JSON holds it: NumPy's numbers become Python's, and reals keep six significant digits."""
    out = {k: v.item() if hasattr(v, "item") else v for k, v in row.items()}
    return {k: float(f"{v:.6g}") if isinstance(v, float) else v for k, v in out.items()}


def versions() -> dict[str, str]:
    """Versions that the numbers may hang on."""
    return {
        "python": platform.python_version(),
        **{k: metadata.version(k) for k in ("calibrant", "numpy", "scikit-learn")},
    }


def draw(name: str, rows: Iterable[Row]) -> Path | None:
    """Draw the chart of an experiment, if it has one."""
    import vl_convert

    make = find(name).chart
    if make is None:
        return None
    path = picture(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(vl_convert.vegalite_to_svg(make(list(rows)).to_json()), encoding="utf-8")
    return path
