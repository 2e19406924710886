"""Reading and writing rows, for applications: a format makes a `Source`, a command takes one and writes files whole."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from calibrant.lazy_module import LazyModule, where

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

_WHERE = where(
    {
        "calibrant.data.calls": "takes_arrays",
        "calibrant.data.columns": (
            "Floats as_covariates as_text clipped finite_numbers is_number level_codes number_texts require"
        ),
        "calibrant.data.inputs": "cluster_codes levels_of weights_of",
        "calibrant.data.layouts": "decoded plain",
        "calibrant.data.predictions": "checked_data",
        "calibrant.data.profile": "LevelCounts",
        "calibrant.data.progress": "counted",
        "calibrant.data.read": "classes_in_memory in_memory",
        "calibrant.data.reading": "FORM OF_ROWS Reading",
        "calibrant.data.rewrite": "checked_rows rewrite",
        "calibrant.data.sources.budget": "afford afford_columns afford_json afford_name",
        "calibrant.data.sources.files": "open_source",
        "calibrant.data.sources.formats": "column json_text whole",
        "calibrant.data.sources.source": "Form Log Source",
        "calibrant.data.specs.coding": "Codes codings encode",
        "calibrant.data.specs.column_names": "CONFIDENCE JUDGE SAMPLED STATED TOKENS column_of",
        "calibrant.data.targets": "checked_targets written",
    }
)
__all__ = sorted(_WHERE)
sys.modules[__name__].__class__ = LazyModule
