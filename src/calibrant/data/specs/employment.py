"""The bundled data: where they are, and which of their columns play which part."""

from __future__ import annotations

from pathlib import Path

EMPLOYMENT = {"label": "employed", "score": "predicted_probability"}
EMPLOYMENT_BY = ("year", "age", "sex", "race", "schooling", "marital", "disability", "citizenship", "nativity")


def employment_path() -> Path:
    """The path of the bundled Parquet file: 277,677 Massachusetts residents, 2015 to 2018.

    A classifier trained on earlier years of the American Community Survey predicts who is employed; see NOTICE.
    """
    return Path(__file__).parents[1] / "employment_ma.parquet"
