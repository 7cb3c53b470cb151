"""Writers and readers of one local log in processes of their own, killed at random: what is promised of a bus holds.

`python -m tests.benchmarks.log_faults` plays as many rounds as one likes.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kit.journal.log_rounds import play
from tests.kit.seeds import rounds

pytestmark = pytest.mark.slow

FIXED = (1, 2, 3)
STEPS = 25


@pytest.mark.parametrize("seed", [FIXED[0], *(pytest.param(seed, marks=pytest.mark.long) for seed in FIXED[1:])])
def test_what_was_acknowledged_is_read_by_every_group(tmp_path: Path, seed: int) -> None:
    outcome = play(tmp_path, seed, STEPS)
    assert outcome.kills > 3, "nobody was in anybody's way"
    assert outcome.partitions > 1


@pytest.mark.parametrize("number", [0, *(pytest.param(each, marks=pytest.mark.long) for each in range(1, 4))])
def test_it_is_in_rounds_of_other_seeds_too(tmp_path: Path, number: int) -> None:
    """What happens in them isn't known beforehand; a failure names its seed."""
    assert play(tmp_path, rounds(4)[number], STEPS).emitted > 0
