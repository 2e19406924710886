"""Reading and writing rows, for applications: a format makes a `Source`, a command takes one and writes files whole."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from calibrant.lazy_module import LazyModule

if TYPE_CHECKING:
    from calibrant.data.calls import takes_arrays as takes_arrays
    from calibrant.data.columns import Floats as Floats
    from calibrant.data.columns import as_covariates as as_covariates
    from calibrant.data.columns import as_text as as_text
    from calibrant.data.columns import clipped as clipped
    from calibrant.data.columns import finite_numbers as finite_numbers
    from calibrant.data.columns import is_number as is_number
    from calibrant.data.columns import level_codes as level_codes
    from calibrant.data.columns import number_texts as number_texts
    from calibrant.data.columns import require as require
    from calibrant.data.inputs import cluster_codes as cluster_codes
    from calibrant.data.inputs import levels_of as levels_of
    from calibrant.data.inputs import weights_of as weights_of
    from calibrant.data.layouts import decoded as decoded
    from calibrant.data.layouts import plain as plain
    from calibrant.data.predictions import checked_data as checked_data
    from calibrant.data.profile import LevelCounts as LevelCounts
    from calibrant.data.progress import counted as counted
    from calibrant.data.read import classes_in_memory as classes_in_memory
    from calibrant.data.read import in_memory as in_memory
    from calibrant.data.reading import FORM as FORM
    from calibrant.data.reading import OF_ROWS as OF_ROWS
    from calibrant.data.reading import Reading as Reading
    from calibrant.data.rewrite import checked_rows as checked_rows
    from calibrant.data.rewrite import rewrite as rewrite
    from calibrant.data.sources.budget import afford as afford
    from calibrant.data.sources.budget import afford_columns as afford_columns
    from calibrant.data.sources.budget import afford_json as afford_json
    from calibrant.data.sources.budget import afford_name as afford_name
    from calibrant.data.sources.files import open_source as open_source
    from calibrant.data.sources.formats import column as column
    from calibrant.data.sources.formats import json_text as json_text
    from calibrant.data.sources.formats import whole as whole
    from calibrant.data.sources.source import Form as Form
    from calibrant.data.sources.source import Log as Log
    from calibrant.data.sources.source import Source as Source
    from calibrant.data.specs.coding import Codes as Codes
    from calibrant.data.specs.coding import codings as codings
    from calibrant.data.specs.coding import encode as encode
    from calibrant.data.specs.column_names import CONFIDENCE as CONFIDENCE
    from calibrant.data.specs.column_names import JUDGE as JUDGE
    from calibrant.data.specs.column_names import SAMPLED as SAMPLED
    from calibrant.data.specs.column_names import STATED as STATED
    from calibrant.data.specs.column_names import TOKENS as TOKENS
    from calibrant.data.specs.column_names import column_of as column_of
    from calibrant.data.targets import checked_targets as checked_targets
    from calibrant.data.targets import written as written

_WHERE = {
    "CONFIDENCE": "calibrant.data.specs.column_names",
    "Codes": "calibrant.data.specs.coding",
    "FORM": "calibrant.data.reading",
    "Floats": "calibrant.data.columns",
    "Form": "calibrant.data.sources.source",
    "JUDGE": "calibrant.data.specs.column_names",
    "LevelCounts": "calibrant.data.profile",
    "Log": "calibrant.data.sources.source",
    "OF_ROWS": "calibrant.data.reading",
    "Reading": "calibrant.data.reading",
    "SAMPLED": "calibrant.data.specs.column_names",
    "STATED": "calibrant.data.specs.column_names",
    "Source": "calibrant.data.sources.source",
    "TOKENS": "calibrant.data.specs.column_names",
    "afford": "calibrant.data.sources.budget",
    "afford_columns": "calibrant.data.sources.budget",
    "afford_json": "calibrant.data.sources.budget",
    "afford_name": "calibrant.data.sources.budget",
    "as_covariates": "calibrant.data.columns",
    "as_text": "calibrant.data.columns",
    "checked_data": "calibrant.data.predictions",
    "checked_rows": "calibrant.data.rewrite",
    "checked_targets": "calibrant.data.targets",
    "classes_in_memory": "calibrant.data.read",
    "clipped": "calibrant.data.columns",
    "cluster_codes": "calibrant.data.inputs",
    "codings": "calibrant.data.specs.coding",
    "column": "calibrant.data.sources.formats",
    "column_of": "calibrant.data.specs.column_names",
    "counted": "calibrant.data.progress",
    "decoded": "calibrant.data.layouts",
    "encode": "calibrant.data.specs.coding",
    "finite_numbers": "calibrant.data.columns",
    "in_memory": "calibrant.data.read",
    "is_number": "calibrant.data.columns",
    "json_text": "calibrant.data.sources.formats",
    "level_codes": "calibrant.data.columns",
    "levels_of": "calibrant.data.inputs",
    "number_texts": "calibrant.data.columns",
    "open_source": "calibrant.data.sources.files",
    "plain": "calibrant.data.layouts",
    "require": "calibrant.data.columns",
    "rewrite": "calibrant.data.rewrite",
    "takes_arrays": "calibrant.data.calls",
    "weights_of": "calibrant.data.inputs",
    "whole": "calibrant.data.sources.formats",
    "written": "calibrant.data.targets",
}
__all__ = sorted(_WHERE)
sys.modules[__name__].__class__ = LazyModule
