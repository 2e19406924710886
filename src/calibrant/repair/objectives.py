"""Training losses for PyTorch, under their public name; they need the extra ``torch``."""

from __future__ import annotations

from calibrant.apps.losses.objectives import CrossEntropyMMCE, CrossEntropyMMD, JitteredCrossEntropy

__all__ = ["CrossEntropyMMCE", "CrossEntropyMMD", "JitteredCrossEntropy"]
