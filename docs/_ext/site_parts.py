"""What the site needs around its pages: MathJax of its own, descriptions, search words, links from names to the API."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.errors import ConfigError

ROOT = Path(__file__).resolve().parents[2]
CACHE = Path(os.environ.get("CALIBRANT_CACHE", ROOT / ".cache")) / "mathjax"
PACKAGE, SCRIPT = "mathjax@3.2.2", "tex-svg.js"  # one file, letters included: it loads nothing else

# A page whose title has one phrase of a line is found by all of them: people search for the words they know.
SYNONYMS = (
    ("reliability diagram", "reliability curve", "calibration curve", "calibration plot", "calibration function"),
    (
        "temperature scaling",
        "platt scaling",
        "isotonic regression",
        "recalibration",
        "repair",
        "calibrators",
        "score maps",
    ),
    (
        "conformal prediction",
        "risk control",
        "selective prediction",
        "selective classification",
        "abstention",
        "accept",
    ),
    ("drift", "monitoring", "dataset shift", "data drift"),
    ("multiclass", "many classes", "multinomial", "softmax"),
    ("survival", "survival analysis", "time to event", "horizon", "within a year", "kaplan meier", "censoring"),
    ("confidence interval", "confidence bound", "certified range", "bound", "certificate", "certificates", "certify"),
    ("sample size", "how many rows", "rows needed", "power analysis", "plan"),
    ("fairness", "subgroups", "groups", "intersectional bias", "group calibration", "multicalibration"),
    ("expected calibration error", "ece", "brier score", "calibration slope", "calibration measures", "measures"),
    ("goodness of fit", "hosmer lemeshow", "tests of calibration", "classical tests", "hypothesis test"),
    ("clustered data", "clusters", "repeated measures", "correlated rows", "intraclass correlation", "design effect"),
    ("survey weights", "sample weights", "inverse probability weights", "weights"),
    ("decision curve", "net benefit", "clinical utility", "decision threshold"),
    ("missing labels", "verification bias", "reject inference", "selection bias"),
    ("language models", "llm", "hallucination", "uncertainty quantification"),
)


def spoken(title: str) -> str:
    """Return a title as words in small letters, spaces around it."""
    return f" {' '.join(re.findall(r'[a-z0-9]+', title.lower()))} "


def keywords(title: str) -> list[str]:
    """Return the words by which people look for a page with this title, without those in it."""
    here = spoken(title)
    found = [" ".join(line) for line in SYNONYMS if any(f" {phrase} " in here for phrase in line)]
    return [w for w in dict.fromkeys(" ".join(found).split()) if f" {w} " not in here]


def searchable(_: Sphinx, tree: nodes.document) -> None:
    """Give the search the synonyms of a page's title."""
    title = next((node.astext() for node in tree.findall(nodes.title)), "")
    if words := keywords(title):
        tree.insert(0, nodes.meta(name="keywords", content=", ".join(words)))


def described(_: Sphinx, __: str, ___: str, context: dict[str, Any], tree: nodes.document | None) -> None:
    """Give a page's head its first paragraph."""
    if tree is not None:
        first = next((n.astext() for n in tree.findall(nodes.paragraph) if len(n.astext()) > 40), "")
        context["description"] = " ".join(first.split())[:200]


def linked(app: Sphinx, tree: nodes.document, page: str) -> None:
    """Link each name of the API that a page writes as code, such as `measure.ece`, to its reference."""
    found = app.env.get_domain("py").objects  # type: ignore[attr-defined]  # of Python alone
    public = {name.removeprefix("calibrant."): entry for name, entry in found.items() if name.startswith("calibrant.")}
    for code in [n for n in tree.findall(nodes.literal) if not isinstance(n.parent, nodes.reference)]:
        name = code.astext().split("(")[0].removeprefix("cal.").removeprefix("calibrant.")
        if (entry := public.get(name)) is not None and ("." in name or name[:1].isupper()) and entry.docname != page:
            uri = f"{app.builder.get_relative_uri(page, entry.docname)}#{entry.node_id}"
            link = nodes.reference("", "", internal=True, refuri=uri)
            code.replace_self(link)
            link += code


def math(app: Sphinx) -> None:
    """Put MathJax into the site, so that formulas need no network."""
    script = CACHE / "node_modules" / "mathjax" / "es5" / SCRIPT
    if not script.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        command = ["npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(CACHE), PACKAGE]
        try:
            subprocess.run(command, check=True)
        except (OSError, subprocess.CalledProcessError) as e:
            raise ConfigError(f"the site needs MathJax; run: {' '.join(command)} ({e})") from e
    target = Path(app.outdir) / "_static" / SCRIPT
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(script, target)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("builder-inited", math)
    app.connect("doctree-read", searchable)
    app.connect("html-page-context", described)
    app.connect("doctree-resolved", linked)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
