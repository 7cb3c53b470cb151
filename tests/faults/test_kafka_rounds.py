"""Rounds in which everything comes out of a seed: twenty here, hundreds in tests/benchmarks/kafka_rounds.py."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.faults.kafka_rounds import run_rounds
from tests.faults.kafka_stage import Stage
from tests.faults.round_plan import SPARK_EVERY, plan_of

pytestmark = [pytest.mark.kafka, pytest.mark.slow, pytest.mark.spark, pytest.mark.timeout(600)]

ROUNDS = 20


def test_a_seed_is_a_plan() -> None:
    assert plan_of(7) == plan_of(7)
    assert plan_of(7) != plan_of(8)
    assert [seed for seed in range(30) if plan_of(seed).is_spark] == [9, 19, 29]


def test_nothing_is_lost_in_rounds_of_faults(staged: Stage, tmp_path: Path) -> None:
    """Other ones each time; a failure names the seed."""
    first = int.from_bytes(os.urandom(4), "big")
    tally = run_rounds(staged, tmp_path, range(first, first + ROUNDS), tell=print)
    assert tally.rounds == ROUNDS
    assert ROUNDS // SPARK_EVERY == 2
    assert tally.events > 1000
