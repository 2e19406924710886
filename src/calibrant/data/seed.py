"""The check that every seed passes where it enters: see `calibrant.arguments`."""

from calibrant.arguments import LARGEST_SEED as LARGEST
from calibrant.arguments import checked_seed

__all__ = ["LARGEST", "checked_seed"]
