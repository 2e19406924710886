"""How the documentation is built: sphinx-build -W docs OUT."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from calibrant import __version__

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "calibrant"
author = "The calibrant developers"
copyright = "The calibrant developers"  # noqa: A001
release = __version__
version = __version__

extensions = [
    "made",
    "pages",
    "site_parts",
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_design",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
]
source_suffix = {".rst": "restructuredtext", ".md": "myst-nb", ".ipynb": "myst-nb"}  # generated pages have the first,
source_suffix |= {".myst": "myst-nb"}  # and those of docs/_ext/made.py this
exclude_patterns = [
    "_templates",
    "examples",
    "gallery/*.ipynb",
    "gallery/*.py",
    "**sg_execution_times.rst",
]
templates_path = ["_templates"]
default_role = "literal"  # docstrings name functions in single backticks


myst_enable_extensions = ["dollarmath", "amsmath", "colon_fence", "attrs_inline"]
smartquotes_action = "q"  # quotes alone: --by is an option and no dash
myst_heading_anchors = 6
myst_heading_slug_func = "pages.slug"
myst_dmath_double_inline = True
suppress_warnings = ["myst.header"]  # a page may begin at the level that it has inside another

mathjax_path = "tex-svg.js"  # docs/_ext/site_parts.py puts it there: formulas need no network

nb_execution_mode = "off"  # what is stored is shown; tests/unit/test_notebook.py runs every cell

autosummary_generate = True
APART = ("Predictions", "MulticlassPredictions", "Sketch", "Look")  # where a file system does not tell capitals
autosummary_filename_map = {f"calibrant.{name}": f"calibrant.{name}-class" for name in APART}
autosummary_ignore_module_all = False  # what is public is what a module names in __all__
autodoc_typehints = "none"  # docstrings say them in words
autodoc_default_options = {  # of scikit-learn, which documents them
    "exclude-members": "set_fit_request, set_predict_request, set_predict_proba_request, set_score_request"
}
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

sphinx_gallery_conf = {
    "examples_dirs": "examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",
    "image_scrapers": ("pages.charts",),
    "reset_modules": (),
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "show_memory": False,
    "min_reported_time": 1e6,  # a page says the same wherever it is built
    "remove_config_comments": True,
}

html_theme = "pydata_sphinx_theme"
html_title = "calibrant"
html_logo = html_favicon = "_static/logo.svg"
html_baseurl = os.environ.get("CALIBRANT_SITE_ADDRESS", "").rstrip("/")  # where the site will be, if that is known
repository = os.environ.get("CALIBRANT_REPOSITORY", "").rstrip("/")  # as hatch_build.py reads it
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_search_scorer = str(Path(__file__).parent / "_static/scorer.js")  # pages that explain come first
html_show_sourcelink = False
html_copy_source = False
html_context = {"default_mode": "auto", "html_baseurl": html_baseurl}
html_sidebars = {"index": []}  # it links to all by itself
html_theme_options = {
    "logo": {"text": f"calibrant {__version__}", "alt_text": "calibrant: start page"},
    "icon_links": [{"name": "Repository", "url": repository, "icon": "fa-solid fa-code-branch"}] if repository else [],
    "show_nav_level": 1,
    "navigation_depth": 3,
    "navigation_with_keys": False,
    "navbar_center": [],  # every page is in the one list at the side
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
