"""Lets the tests here import the factories that all tests share."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
