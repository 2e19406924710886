"""Where along the score, or along a variable, the probabilities are off.

The functions are imported here, at once, so that `diagnose.reliability_curve` is always the function and never the
module of the same name, whichever is imported first.
"""

from __future__ import annotations

from calibrant.diagnose.reliability_curve import reliability_curve

__all__ = ["reliability_curve"]
