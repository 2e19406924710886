"""What the worker runs: a look and an audit of one file, in words that the page shows."""

import json
import traceback
from collections.abc import Callable
from functools import wraps
from pathlib import Path

import numpy as np

HELD = Path("/audit")  # of the memory that the browser gives: no disk is touched


def widened(counted, repeated):
    """Return NumPy's `bincount` and `repeat`, taking 64-bit places as they do where Python has 64 bits."""

    @wraps(counted)
    def bincount(x, /, weights=None, minlength=0):
        found = counted(np.asarray(x).astype(np.intp, copy=False), weights, minlength)
        return found.astype(np.int64) if weights is None else found

    @wraps(repeated)
    def repeat(a, repeats, axis=None):
        return repeated(a, np.asarray(repeats).astype(np.intp, copy=False), axis)

    return bincount, repeat


np.bincount, np.repeat = widened(np.bincount, np.repeat)  # before calibrant is loaded

import calibrant as cal  # noqa: E402


def answering(work: Callable[..., dict]) -> Callable[..., str]:
    """Return a function that answers in JSON; what it refuses, and what fails, is an answer too."""

    @wraps(work)
    def answer(*args: object) -> str:
        try:
            return json.dumps(work(*args))
        except (cal.BadInput, cal.NotComputable) as e:
            return json.dumps({"refused": str(e)})
        except MemoryError:
            return json.dumps({"refused": "the browser gives no more memory: take fewer rows, or the command line"})
        except Exception:
            return json.dumps({"failed": traceback.format_exc()})

    return answer


def options(asked: str) -> dict:
    """Return what the page asks for, as arguments: what is left empty is left out."""
    return {name: value for name, value in json.loads(asked).items() if value not in (None, "", [], False)}


@answering
def look(file: str, asked: str) -> dict:
    """Return what the file holds, and which column is likely what."""
    seen = cal.look(HELD / file, **options(asked)).to_dict()
    kept = ("rows", "label", "score", "case", "label_values", "scale", "candidates", "refusals", "dropped", "command")
    return {k: seen[k] for k in kept} | {"columns": [c["name"] for c in seen["columns"]]}


@answering
def audit(file: str, asked: str, tell: Callable[[str, float | None], object]) -> dict:
    """Return the verdict, the report and the record."""
    record = cal.audit(HELD / file, **options(asked), progress=lambda doing: tell(str(doing), doing.share))
    page, kept = (record.save(HELD / f"audit.{kind}") for kind in ("html", "json"))
    return {"verdict": record.verdict, "page": page.read_text("utf-8"), "record": kept.read_text("utf-8")}
