"""How much is tried: quick by default, all with --all, what the default left with --rest, more with --nightly."""

from __future__ import annotations

from typing import Any

from hypothesis import is_hypothesis_test, settings

QUICK, USUAL, NIGHTLY = 20, 100, 1000  # examples of a property test that does not say how many it needs
PROFILES = {"quick": QUICK, "all": USUAL, "rest": USUAL - QUICK, "nightly": NIGHTLY}

for name, number in PROFILES.items():
    settings.register_profile(name, max_examples=number, deadline=None)


def load(effort: str) -> None:
    """Choose one of the four for this run, before any test module is imported."""
    settings.load_profile(effort)


def examples(usual: int, quick: int = QUICK, **more: Any) -> settings:
    """Return the settings of a property test that tries `usual` examples with --all, and at most `quick` by default.

    Fewer than 20 by default where an example takes a tenth of a second or more.
    """
    number = {
        "quick": min(usual, quick),
        "all": usual,
        "rest": max(usual - quick, 1),
        "nightly": usual * (NIGHTLY // USUAL),
    }[settings.get_current_profile_name()]
    return settings(max_examples=number, **more)


def has_rest(test: Any) -> bool:
    """Tell whether a property test has examples that the default does not try."""
    return is_hypothesis_test(test) and test._hypothesis_internal_use_settings.max_examples > 1
