"""Rounds of faults around the writer in which everything comes out of a seed: twenty here, hundreds in
tests/benchmarks/writer_rounds.py."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import count, islice
from pathlib import Path

import pytest

from tests.faults.round_plan import SPARK_EVERY
from tests.faults.writer_plan import writer_plan_of
from tests.faults.writer_rounds import run_writer_rounds
from tests.faults.writer_stage import WriterStage, writer_stage

pytestmark = [pytest.mark.kafka, pytest.mark.database, pytest.mark.slow, pytest.mark.timeout(900)]

ROUNDS = 19


@pytest.fixture(scope="module")
def staged() -> Iterator[WriterStage]:
    with writer_stage() as staged:
        yield staged


def test_a_seed_is_a_plan() -> None:
    assert writer_plan_of(7) == writer_plan_of(7)
    assert writer_plan_of(7) != writer_plan_of(8)
    acts = {act.what for seed in range(300) for act in writer_plan_of(seed).acts}
    assert {"kill writer", "freeze writer", "kill database", "kill session", "kill broker", "forget"} <= acts


def test_the_store_has_what_was_told_after_rounds_of_faults(staged: WriterStage, tmp_path: Path) -> None:
    """Other ones each time; a failure names the seed."""
    first = int.from_bytes(os.urandom(4), "big")
    plain = (seed for seed in count(first) if not writer_plan_of(seed).producers.is_spark)
    tally = run_writer_rounds(staged, tmp_path, islice(plain, ROUNDS), tell=print)
    assert tally.rounds == ROUNDS
    assert tally.events > 1_000
    assert tally.starts > 2 * ROUNDS


@pytest.mark.spark
def test_what_a_spark_driver_told_too(staged: WriterStage, tmp_path: Path) -> None:
    seed = int.from_bytes(os.urandom(3), "big") * SPARK_EVERY - 1
    assert writer_plan_of(seed).producers.is_spark
    assert run_writer_rounds(staged, tmp_path, [seed], tell=print).rounds == 1
