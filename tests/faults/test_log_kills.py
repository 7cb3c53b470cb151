"""Writers and readers of one local log in processes of their own, killed at random: what is promised of a bus holds.

`python -m tests.benchmarks.log_faults` plays as many rounds as one likes.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.log_rounds import play

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_what_was_acknowledged_is_read_by_every_group(tmp_path: Path, seed: int) -> None:
    outcome = play(tmp_path, seed, steps=25)
    assert outcome.kills > 3, "nobody was in anybody's way"
    assert outcome.partitions > 1
    assert outcome.compacted, "nothing was compacted meanwhile"
