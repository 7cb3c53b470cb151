"""Rounds of faults around the publisher and the writer, in which everything comes out of a seed: a fixed one in `make
test`, more in slices, hundreds in tests/benchmarks/writer_rounds.py."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.kit.kafka.plan import SPARK_EVERY
from tests.kit.seeds import rounds
from tests.kit.writers.plan import writer_plan_of
from tests.kit.writers.rounds import run_writer_rounds
from tests.kit.writers.stage import WriterStage, writer_stage

pytestmark = [pytest.mark.kafka, pytest.mark.database, pytest.mark.slow, pytest.mark.timeout(900)]

FIXED = (42, 2_399_699_591, 3, 57)
"""Everything is killed in the first; in the second a writer stood still for ever that was given partitions when the
broker went away; disks of producers are full in the others. Add what failed once."""
MANY = 18


@pytest.fixture(scope="module")
def staged() -> Iterator[WriterStage]:
    with writer_stage() as staged:
        yield staged


def test_a_seed_is_a_plan() -> None:
    assert writer_plan_of(7) == writer_plan_of(7)
    assert writer_plan_of(7) != writer_plan_of(8)
    acts = {act.what for seed in range(300) for act in writer_plan_of(seed).acts}
    assert {
        "kill writer",
        "freeze writer",
        "kill database",
        "kill session",
        "kill broker",
        "forget",
        "set database back",
    } <= acts


def without_spark(seeds: Sequence[int]) -> list[int]:
    """Return the seeds, those of rounds with a Spark driver moved to the next one."""
    return [seed + writer_plan_of(seed).producers.is_spark for seed in seeds]


def check_rounds(staged: WriterStage, folder: Path, seeds: Sequence[int]) -> None:
    """Play the rounds; a failure names its seed."""
    tally = run_writer_rounds(staged, folder, without_spark(seeds), tell=print)
    assert tally.rounds == len(seeds)
    assert tally.events > 50 * len(seeds)
    assert tally.starts >= 2 * len(seeds), "two writers are started in each round"


def test_the_store_has_what_was_reported_after_a_round_of_faults(staged: WriterStage, tmp_path: Path) -> None:
    check_rounds(staged, tmp_path, FIXED[:1])


@pytest.mark.long
def test_the_store_has_what_was_reported_after_many_rounds_of_faults(staged: WriterStage, tmp_path: Path) -> None:
    check_rounds(staged, tmp_path, rounds(MANY, FIXED)[1:])


@pytest.mark.long
@pytest.mark.spark
def test_what_a_spark_driver_reported_too(staged: WriterStage, tmp_path: Path) -> None:
    (seed,) = (each - each % SPARK_EVERY + SPARK_EVERY - 1 for each in rounds(1))
    assert writer_plan_of(seed).producers.is_spark
    assert run_writer_rounds(staged, tmp_path, [seed], tell=print).rounds == 1
