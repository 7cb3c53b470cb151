"""How long laws are tried: a glance in `make check`, then longer in `make test`, its slices and `make bench`."""

from __future__ import annotations

import os
from typing import Final

from hypothesis import HealthCheck, settings

from tests.kit import seeds

FACTORS: Final = {"glance": 0.2, "quick": 0.5, "slice": 5.0, "thorough": 40.0}
PROFILE: Final = os.environ.get(seeds.PROFILE_VARIABLE, "quick")
EXAMPLES: Final = 25


def examples(count: int) -> int:
    """What a law that asks for so many examples gets in this run."""
    return max(1, round(count * FACTORS[PROFILE]))


def load() -> None:
    """Make the profile hold for laws that ask for no number.

    Its examples come from the run's seed (tests/kit/seeds.py). What Hypothesis does by itself where the variable CI is
    set, the same examples each time, isn't wanted: each commit is to try others. A failure prints what repeats it.
    """
    settings.register_profile(
        PROFILE,
        max_examples=examples(EXAMPLES),
        deadline=None,
        derandomize=False,
        database=None,
        print_blob=True,
        suppress_health_check=[HealthCheck.too_slow],
    )
    settings.load_profile(PROFILE)
