"""Rounds in which everything comes out of a seed: two fixed ones in `make test`, more in slices, hundreds in
tests/benchmarks/kafka_rounds.py."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.kit.kafka.plan import SPARK_EVERY, plan_of
from tests.kit.kafka.rounds import run_rounds
from tests.kit.kafka.stage import Stage
from tests.kit.seeds import rounds

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

FIXED = (3, 57)
"""Full disks, killed producers and brokers, stalled and cut connections, a clock that jumps. Add what failed once."""
MANY = 18


def test_a_seed_is_a_plan() -> None:
    assert plan_of(7) == plan_of(7)
    assert plan_of(7) != plan_of(8)
    assert [seed for seed in range(30) if plan_of(seed).is_spark] == [9, 19, 29]


def without_spark(seeds: Sequence[int]) -> list[int]:
    """Return the seeds, those of rounds with a Spark driver moved to the next one."""
    return [seed + plan_of(seed).is_spark for seed in seeds]


def test_nothing_is_lost_in_fixed_rounds_of_faults(staged: Stage, tmp_path: Path) -> None:
    """A failure names its seed."""
    tally = run_rounds(staged, tmp_path, FIXED, tell=print)
    assert tally.rounds == len(FIXED)
    assert tally.events > 100


@pytest.mark.long
def test_nothing_is_lost_in_many_rounds_of_faults(staged: Stage, tmp_path: Path) -> None:
    tally = run_rounds(staged, tmp_path, without_spark(rounds(len(FIXED) + MANY, FIXED)[len(FIXED) :]), tell=print)
    assert tally.rounds == MANY
    assert tally.events > 800


@pytest.mark.long
@pytest.mark.spark
def test_nothing_is_lost_by_spark_drivers_in_rounds_of_faults(staged: Stage, tmp_path: Path) -> None:
    seeds = [seed - seed % SPARK_EVERY + SPARK_EVERY - 1 for seed in rounds(2)]
    assert all(plan_of(seed).is_spark for seed in seeds)
    assert run_rounds(staged, tmp_path, seeds, tell=print).rounds == 2
