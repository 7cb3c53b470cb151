"""How long laws are tried: a glance in `make check`, longer in `make test`, long in `make bench`."""

from __future__ import annotations

import os
from typing import Final

from hypothesis import HealthCheck, settings

FACTORS: Final = {"glance": 0.2, "quick": 1.0, "thorough": 40.0}
PROFILE: Final = os.environ.get("HYPOTHESIS_PROFILE", "quick")
EXAMPLES: Final = 25


def examples(count: int) -> int:
    """What a law that wants so many examples in `make test` gets in this run."""
    return max(1, round(count * FACTORS[PROFILE]))


def load() -> None:
    """Make the profile hold for laws that ask for no number."""
    slow = [HealthCheck.too_slow]
    settings.register_profile(PROFILE, max_examples=examples(EXAMPLES), deadline=None, suppress_health_check=slow)
    settings.load_profile(PROFILE)
